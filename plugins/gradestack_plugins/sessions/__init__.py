"""Sessions of coding agents, as the agents write them down."""

from gradestack import Component, hookimpl

_TABLE = """
reader claude_code .claude:ClaudeCode Claude Code: session files, and its stream-json
reader copilot_cli .copilot:CopilotCli GitHub Copilot CLI: events of its sessions
reader cursor .cursor:Cursor Cursor: transcripts of its agent, and its stream-json
reader codex .codex:Codex Codex: rollout files, and the events of `codex exec --json`
reader gemini_cli .gemini:GeminiCli Gemini CLI: chats as JSON or JSON Lines, and its stream-json
reader goose .goose:Goose goose: session files, exports, and its stream-json
panel sessions .panels:sessions Sessions of coding agents: calls by tool, usage by day and branch
reader opencode .opencode:OpenCode opencode: exported sessions, and the events of `opencode run`
reader opencode_storage .opencode_storage:OpenCodeStorage opencode: the folder of its sessions
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))

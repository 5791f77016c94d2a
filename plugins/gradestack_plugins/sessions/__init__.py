"""Sessions of coding agents, as the agents write them down."""

from gradestack import Component, hookimpl

_TABLE = """
reader claude_code .claude:ClaudeCode Claude Code: session files, and what it prints as stream-json
reader codex .codex:Codex Codex: rollout files, and what `codex exec --json` prints
reader gemini_cli .gemini:GeminiCli Gemini CLI: chats as JSON or JSON Lines, and what it prints as stream-json
reader goose .goose:Goose goose: session files, exports, and what it prints as stream-json
panel sessions .panels:sessions Sessions of coding agents: calls by tool, tokens and cost by day and branch
reader opencode .opencode:OpenCode opencode: exported sessions, and what `opencode run` prints as JSON
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))

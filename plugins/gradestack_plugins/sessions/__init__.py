"""Sessions of coding agents, as the agents write them down."""

from gradestack import Component, hookimpl

_TABLE = """
reader claude_code .claude:ClaudeCode Claude Code: session files, and what it prints as stream-json
reader codex .codex:Codex Codex: rollout files, and what `codex exec --json` prints
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))

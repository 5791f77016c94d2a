"""Exit codes of commands in the results of shell tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from gradestack import ToolCall, compile_later
from gradestack.jsonio import JsonProblem, as_map, loads

SHELLS: Final = frozenset(
    """
    bash sh zsh shell terminal powershell command execute exec run_command run_shell
    run_shell_command run_bash run_terminal_cmd run_terminal_command run_in_terminal
    execute_command execute_bash execute_shell execute_shell_command exec_command local_shell
    shell_command bash_tool bash_command terminal_command container_exec
    """.split()  # noqa: SIM905
)
"""Names of tools that run commands in a shell."""
ONE_IS_FINE: Final = frozenset(
    """
    grep egrep fgrep zgrep rg ag ack diff cmp test [ [[ find pgrep which command type expr
    """.split()  # noqa: SIM905
)
"""Commands whose exit code 1 is no error: nothing was found, or there is a difference."""
_FIELDS: Final = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_LINE: Final = compile_later(
    r"""
    \W*(?:[\w ']{0,40}\s)?(?:exit(?:ed\ with)?|return|returned)[ _]?(?:code|status)?
    \s*[:=]?\s*(-?\d{1,10})\W*
    | <(?:returncode|exit_code)>\s*(-?\d{1,10})\s*</(?:returncode|exit_code)>
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A line of an exit code alone: ``Exit code: 1``."""
_SEPARATORS: Final = compile_later(r"&&|\|\||[;|\n]")
_ASSIGNMENT: Final = compile_later(r"[A-Za-z_]\w*=\S*")
_PREFIXES: Final = frozenset({"sudo", "env", "time", "nice", "nohup", "exec", "git"})
"""Words in front of a command."""
_LONGEST_LINE: Final = 200


def exit_code_of(call: ToolCall) -> int | None:
    """Return the exit code in the result of a shell tool; None of other tools, and without one."""
    if not _is_shell(call.name):
        return None
    result = call.result
    if isinstance(result, str) and result.lstrip().startswith("{"):
        try:
            result = loads(result)
        except JsonProblem:
            return None
    if isinstance(result, Mapping):
        return _code_in(result)
    return _code_in_text(result) if isinstance(result, str) else None


@lru_cache(maxsize=1024)
def _is_shell(name: str) -> bool:
    """Return whether a tool of this name, however it is spelled, runs commands in a shell."""
    in_snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return in_snake.replace("-", "_") in SHELLS


def _code_in(result: Mapping[str, Any]) -> int | None:
    metadata = result.get("metadata")
    for holder in (result, as_map(metadata)):
        for name in _FIELDS:
            code = holder.get(name)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def _code_in_text(text: str) -> int | None:
    """Return the exit code in the first or last line of a text."""
    lines = text.strip().splitlines()
    for line in (lines[0], lines[-1]) if lines else ():
        match = None
        if len(line) <= _LONGEST_LINE:
            match = _LINE.fullmatch(line.strip())
        if match is not None:
            return int(match[1] or match[2])
    return None


def is_failure(code: int, call: ToolCall) -> bool:
    """Return whether an exit code says that a command failed.

    0 is no failure, nor is 1 where the last command means by it that it found nothing.
    """
    return code != 0 and (code != 1 or last_command(call) not in ONE_IS_FINE)


def last_command(call: ToolCall) -> str:
    """Return the name of the last command that a call of a shell tool runs; "" where unknown."""
    arguments = as_map(call.arguments)
    command = next((arguments[key] for key in _COMMANDS if arguments.get(key)), "")
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        is_wrapped = len(words) > 2 and _OPTION.fullmatch(words[-2])
        if is_wrapped:
            command = words[-1]
        else:
            command = " ".join(words)
    if command:
        parts = [part for part in _SEPARATORS.split(command) if part.strip()]
    else:
        parts = []
    for word in parts[-1].split() if parts else ():
        if word not in _PREFIXES and not _ASSIGNMENT.fullmatch(word):
            return word.rpartition("/")[2]
    return ""


_OPTION: Final = compile_later(r"-.*c", re.DOTALL)
"""An option before a command that is one text, as in ``bash -lc``."""
_COMMANDS: Final = ("command", "cmd", "script", "input", "code", "commands")
"""Arguments of a shell tool that hold its command."""

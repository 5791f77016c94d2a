"""Terminals and CI logs."""

from __future__ import annotations

import os
import re
from types import TracebackType
from typing import TextIO

_COMMAND = re.compile(r"^( *):(?=:)|#(?=#\w*\[)")
_COLOURS = {"✓|Gate .*: PASSED": "32", "✗|Gate .*: FAILED|error:": "31", "[Ww]arning:": "33", "[A-Z][a-z ]+:$": "1"}


def terminal_line(text: object) -> str:
    r"""Return a text as one line that a terminal or CI log shows and does not obey.

    Line ends, control characters (so ANSI sequences), characters that hide or reorder others and lone surrogates are
    escaped as in a Python string, and so is what a CI system takes for a command: ``::`` at the beginning of the line,
    ``##[`` and the like (``##vso[``) anywhere. All else stays, so a line that was made safe stays as it is.

    >>> print(terminal_line("m\n::error::x"))
    m\n::error::x
    >>> print(terminal_line("::error::x"))
    \x3a:error::x
    """
    line = str(text)
    if not line.isprintable():
        line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
    return _COMMAND.sub(lambda match: f"{match[1] or ''}\\x{ord(match[0][-1]):x}", line)


def coloured(line: str, stream: TextIO | None) -> str:
    """Return a line in its colour where a stream is a terminal that shows colours, and nobody asked for none."""
    if stream is None or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return line
    return next((f"\x1b[{code}m{line}\x1b[0m" for lines, code in _COLOURS.items() if re.match(lines, line)), line)


def traceback_text(error: BaseException, at: TracebackType | None) -> str:
    """Return a traceback whose lines are safe; further lines of a message stand behind a bar."""
    import traceback  # noqa: PLC0415 - only where something is wrong

    found: list[str] = []
    for part in traceback.format_exception(type(error), error, at):
        first, *more = part.rstrip("\n").split("\n")
        frame = part.startswith((" ", "\n"))  # or what stands between two tracebacks
        found += [first, *(more if frame else (f"  | {line}" for line in more))]
    return "\n".join(map(terminal_line, found))

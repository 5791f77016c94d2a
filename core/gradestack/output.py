"""The output boundary: texts from data pass one function per medium on their way out.

Numbers in words and digits.
"""

from __future__ import annotations

import os
import re
from types import TracebackType
from typing import TextIO

from gradestack.patterns import compile_later

_MOST_DECIMALS = 17


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 task``, ``1,200 tasks``.

    >>> counted(1, "task"), counted(0, "run"), counted(1200, "task")
    ('1 task', '0 runs', '1,200 tasks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def state_text(state: str, number: int) -> str:
    """Return the number of grades in a state, in the console's words.

    >>> state_text("failed", 2), state_text("skipped", 4)
    ('2 errors', '4 not applicable')
    """
    if state == "failed":
        return counted(number, "error")
    return f"{number:,} {'not applicable' if state == 'skipped' else state}"


def distinguishing_decimals(number: float, threshold: float, decimals: int = 2) -> str:
    """Return a number with as many decimals as show on which side of a threshold it is.

    Args:
        number: A finite number.
        threshold: What it is compared with.
        decimals: The fewest there are; a whole number that needs none has none.

    Returns:
        ``0.8999`` beside 0.9 and ``0.80`` beside 0.75: rounded, it compares to the threshold as it
        does itself.
    """
    fewest = 0 if isinstance(number, int) else decimals
    side = _side(number, threshold)
    for places in range(fewest, _MOST_DECIMALS):
        text = f"{number:.{places}f}"
        if _side(float(text), threshold) == side:
            return f"{number:,.{places}f}"
    return repr(number)


def _side(number: float, threshold: float) -> int:
    return (number > threshold) - (number < threshold)


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Line:
    """A file for CSV that keeps nothing, so that writing a line to it returns the line."""

    write = str


def csv_line(*values: object, delimiter: str = ",") -> str:
    """Return values as one line of a CSV file, with its line end.

    What a spreadsheet would calculate becomes a text.

    A text that begins with ``=``, ``+``, ``-``, ``@``, tab or CR gets a ``'`` before it. Numbers
    stay, also negative ones; None is an empty cell. The delimiter of TSV is a tab.

    >>> print(csv_line("=1+1", -0.5, None, "a,b"), end="")
    '=1+1,-0.5,,"a,b"
    """
    import csv  # noqa: PLC0415 - not needed for --help

    cells = []
    for value in values:
        is_formula = isinstance(value, str) and value.startswith(_FORMULA)
        cells.append(f"'{value}" if is_formula else value)
    # with CR LF: it quotes what stands in its line end only
    line: str = csv.writer(_Line, delimiter=delimiter).writerow(cells)
    return line.removesuffix("\r\n") + "\n"


_COMMAND = compile_later(r"^( *):(?=:)|#(?=#\w*\[)")
_COLOURS = {
    "✓|Gate .*: PASSED": "32",
    "✗|Gate .*: FAILED|error:": "31",
    "[Ww]arning:": "33",
    "[A-Z][a-z ]+:$": "1",
}


def terminal_line(text: object) -> str:
    r"""Return a text as one line that a terminal or CI log shows and does not obey.

    Line ends, control characters (so ANSI sequences), characters that hide or reorder others and
    lone surrogates are escaped as in a Python string. So is what a CI system takes for a command:
    ``::`` at the beginning of the line, ``##[`` and the like (``##vso[``) anywhere. All else stays,
    so a line that was made safe stays as it is.

    >>> print(terminal_line("m\n::error::x"))
    m\n::error::x
    >>> print(terminal_line("::error::x"))
    \x3a:error::x
    """
    line = str(text)
    if not line.isprintable():
        line = "".join(map(_escape, line))
    return _COMMAND.sub(_escape_command, line)


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    return char.encode("unicode_escape").decode()


def _escape_command(match: re.Match[str]) -> str:
    last = match[0][-1]
    return f"{match[1] or ''}\\x{ord(last):x}"


def coloured(line: str, stream: TextIO | None) -> str:
    """Return a line in its colour where a stream is a terminal that shows colours, and nobody asked
    for none.
    """
    is_unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if stream is None or not stream.isatty() or is_unwanted:
        return line
    for pattern, code in _COLOURS.items():
        if re.match(pattern, line):
            return f"\x1b[{code}m{line}\x1b[0m"
    return line


def traceback_text(error: BaseException, at: TracebackType | None) -> str:
    """Return a traceback that is safe to print.

    The second and further lines of a message begin with a bar.
    """
    import traceback  # noqa: PLC0415 - only where something is wrong

    lines: list[str] = []
    for part in traceback.format_exception(type(error), error, at):
        first, *rest = part.rstrip("\n").split("\n")
        is_frame = part.startswith((" ", "\n"))  # or what stands between two tracebacks
        if not is_frame:
            rest = [f"  | {line}" for line in rest]
        lines += [first, *rest]
    return "\n".join(map(terminal_line, lines))

"""The line of an author's code that has to be changed for a problem that the kit finds."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from gradestack.patterns import compile_later

_WORK = {
    "grader": ("combine", "grade"),
    "aggregator": ("figures_of", "compute", "contribution", "figures"),
    "program": ("run",),
    "extractor": ("extract",),
    "reader": ("read", "sample_of", "sniff"),
}
"""Kind -> members that do its work, the first that a class has of its own is looked at first."""
_MEMBER = compile_later(r"has '?(\w+)|among its (\w+)|`(\w+)`|(\w+)\(\)")
"""How messages name members of a class."""


def with_line(message: str, target: Any, *, of_work: bool) -> str:
    """Return a message with the line to change behind it, where it names none.

    Args:
        message: The message.
        target: The class or function of a component.
        of_work: Whether it is about what the component gives, not what it declares.
    """
    if re.search(r"\w\.py:\d", message):
        return message
    try:
        source, first = inspect.getsourcelines(target)
        file = Path(inspect.getfile(target)).name
        code = textwrap.dedent("".join(source))
        node: Any = ast.parse(code).body[0]
    except (OSError, TypeError, SyntaxError):  # code that is in no file
        return message
    lines = _lines_of_members(node)
    matches = _MEMBER.findall(message)
    names = [name for match in matches for name in match]
    if of_work:
        names += _WORK.get(getattr(target, "contract", ""), ())
    known = [lines[name] for name in names if name in lines]
    line = first - 1 + (known[0] if known else node.lineno)
    return f"{message} ({file}:{line})"


def _lines_of_members(node: Any) -> dict[str, int]:
    """Return the line of each member that a class defines itself."""
    lines: dict[str, int] = {}
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            lines[member.name] = member.lineno
        targets = getattr(member, "targets", [getattr(member, "target", None)])
        lines |= {target.id: member.lineno for target in targets if isinstance(target, ast.Name)}
    return lines

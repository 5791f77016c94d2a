"""The line of an author's code that has to be changed for a problem that the kit finds."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from importlib import resources
from pathlib import Path
from typing import Any

from gradestack.hooks import Component

_WORK = {
    "grader": ("combine", "grade"),
    "aggregator": ("figures_of", "compute", "contribution", "figures"),
    "program": ("run",),
    "extractor": ("extract",),
    "reader": ("read", "sample_of", "sniff"),
}
"""Kind -> members that do its work, the first that a class has of its own is looked at first."""
_MEMBER = re.compile(r"has '?(\w+)|among its (\w+)|`(\w+)`|(\w+)\(\)")
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
    names = [name for match in _MEMBER.findall(message) for name in match]
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


def check_summary(component: Component, target: Any) -> None:
    """Check that a summary is not the scaffold's where the component is another."""
    folder = resources.files("gradestack_templates") / "new"
    scaffold = "".join(file.read_text(encoding="utf-8") for file in folder.iterdir())
    is_scaffold = target.__doc__.splitlines()[0] in scaffold
    if f'summary="{component.summary}"' in scaffold and not is_scaffold:
        package, _, _ = component.target.partition(":")[0].partition(".")
        where = _line_with(package, component.summary)
        raise AssertionError(f"its summary is the scaffold's; say what this one does ({where})")


def _line_with(module: str, text: str) -> str:
    """Return where a text stands in the file of a module; the module where that is not known."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None:
        for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
            if text in line:
                return f"{Path(file).name}:{number}"
    return module

"""The description that a plugin gives of itself when it is found.

Its classes, and what they need, are imported when they are used.
"""

from __future__ import annotations

import textwrap
from typing import Any, Literal, NamedTuple, get_args

import pluggy

from gradestack.patterns import compile_later

NAME = "gradestack"
"""Entry-point group, pluggy project name and hook prefix."""
Kind = Literal[
    "reader",
    "grader",
    "aggregator",
    "exporter",
    "program",
    "extractor",
    "engine",
    "reporter",
    "panel",
    "command",
    "stack",
    "table",
    "address",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
FUNCTIONS: frozenset[Kind] = frozenset({"command", "panel", "stack", "table", "address"})
"""Kinds whose components are functions, or made of functions, and no classes with options."""

_INDENTED_ROW = compile_later(rf"\n    \s*((?:{'|'.join(KINDS)}) [a-z0-9_-]+ \S*:\S+ .*)")

hookimpl = pluggy.HookimplMarker(NAME)
"""Decorator for hook implementations in plugins."""


class Component(NamedTuple):
    """The record that a plugin hands the kernel: a name for a class that is not imported yet."""

    kind: Kind
    name: str
    """Lower case, digits and underscores (stacks may use hyphens).

    Unique per kind in its distribution.
    """
    target: str
    """``package.module:Class``.

    For a stack it is ``package.module:FUNCTION``, which returns a suite mapping; for a command, a
    command of click; for a panel, a function under ``@panel``; for a table, a function of a report
    and the table's name; for an address, a function that opens it.
    """
    summary: str
    """One line for listings; of a command, what ``--help`` says of it."""

    @classmethod
    def table(cls, package: str, text: str) -> tuple[Component, ...]:
        """Return a package's components from lines of kind, name, target below it, and summary.

        Lines that are indented more than the first go on.

        Raises:
            ValueError: A line that goes on is a component of its own by its looks.
        """
        text = textwrap.dedent(text).strip()
        if row := _INDENTED_ROW.search(text):
            raise ValueError(
                f"the line {row[1]!r} of a table is indented; begin the table below its quotes"
            )
        lines = text.replace("\n    ", " ").split("\n")
        rows: list[Any] = [line.split(" ", 3) for line in lines]
        return tuple(
            cls(kind, name, package + target, summary) for kind, name, target, summary in rows
        )

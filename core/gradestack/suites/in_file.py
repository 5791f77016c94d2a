"""References to something in a Python file, as suites and the command line write them: ``FILE.py:NAME``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_IN_FILE = re.compile(r"(.+\.py):(.*)")


class InFile(NamedTuple):
    """``FILE.py:NAME``, a reference to something in a Python file."""

    file: str
    name: str

    @classmethod
    def parse(cls, reference: str) -> InFile | None:
        """Return a reference's two parts; None for the name of an installed component."""
        found = _IN_FILE.fullmatch(reference)
        return cls(*found.groups()) if found else None

    @property
    def shown(self) -> str:
        """The reference without the folder: the component's name in results, which do not depend on places."""
        return f"{Path(self.file).name}:{self.name}"


def short(reference: Any) -> Any:
    """Return a component reference as written, files cut to their last part."""
    if isinstance(reference, Mapping):
        return {
            key: short(each) if key in ("kind", "extractor", "function") else each for key, each in reference.items()
        }
    found = InFile.parse(reference) if isinstance(reference, str) else None
    return found.shown if found is not None else reference


def key_of(reference: str) -> str:
    """Return the grader key of a reference that was given without one: its name in snake case, of a file alone its."""
    file, _, name = reference.rpartition(":")
    name = name or file
    return snake(Path(name).stem if name.endswith(".py") else name)


def snake(name: str) -> str:
    """Return a class's name as components are called: ``FewCalls`` is ``few_calls``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()

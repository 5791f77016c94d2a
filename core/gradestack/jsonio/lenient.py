"""Reading of JSON values whose shape is expected but not certain. Nothing here raises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

_OBJECT: Final = (dict, Mapping)
"""What counts as an object. JSON decodes to dicts, which are told at once; asking for a mapping alone takes long."""


def as_map(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, an empty one for anything else."""
    return value if isinstance(value, _OBJECT) else {}


def as_list(value: Any) -> Sequence[Any]:
    """Return a list or tuple as it is, an empty one for anything else."""
    return value if isinstance(value, list | tuple) else ()


def as_text(value: Any) -> str:
    """Return a text as it is, "" for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Return an integer as it is, 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def as_number(value: Any) -> float | None:
    """Return a finite number as float, None for anything else (booleans are no numbers)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def is_number(value: Any) -> bool:
    """Return whether the value is an integer or float, booleans excluded."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(left: Any, right: Any) -> bool:
    """Return ``left == right``; values too deep to compare are different."""
    try:
        return bool(left == right)
    except RecursionError:
        return False

"""Recognising tau-bench result files by their records."""

from __future__ import annotations

from typing import Any

_NAMES = ("task_id", "reward", "info", "traj")


def looks_like(record: Any) -> float:
    """Return 0.95 for an object with ``task_id``, ``reward`` and at least one of ``info`` and ``traj``.

    Records of runs that ended in an error have them too.
    """
    keys = record.keys() if isinstance(record, dict) else set()
    return 0.95 if {"task_id", "reward"} <= keys and keys & {"info", "traj"} else 0.0


def begins_like(text: bytes) -> float | None:
    """Return 0.95 where the same names stand, and 0.4 where a long conversation stands before the others."""
    named = {name: None for name in _NAMES if f'"{name}"'.encode() in text}
    return looks_like(named) or (0.4 if "traj" in named else None)


def complaint(record: dict[str, Any]) -> str | None:
    """Return which of the names are missing from an object that has two of those that make it a record."""
    missing = [name for name in ("task_id", "reward") if name not in record]
    sides = {"info", "traj"} & record.keys()
    if not missing and not sides:
        return "info and traj missing"
    return f"{missing[0]} missing" if len(missing) == 1 and len(sides) == 2 else None

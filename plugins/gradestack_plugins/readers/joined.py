"""Rows of the When2Call data set, as its readers join them to records by ``uuid``."""

from __future__ import annotations

from typing import Any

from gradestack import Profile
from gradestack.jsonio import as_map, as_text, compact

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
"""Gold labels in canonical order: of matrices, of outputs, and of ``answers`` in a row."""
INVALID = "invalid"
"""Stands in place of any other label."""
NO_UUID = "uuid is missing or not a non-empty text"


def uuid_of(record: Any) -> str | None:
    """Return the uuid of a record or a row; None unless it is non-empty text."""
    return as_text(as_map(record).get("uuid")) or None


def required_uuid(record: Any, what: str) -> str:
    """Return the uuid of a record, named by what it is.

    Raises:
        ValueError: It has none, or is no object.
    """
    if not isinstance(record, dict):
        raise ValueError(f"expected {what} (an object), found {compact(record)[:60]}")
    uuid = uuid_of(record)
    if uuid is None:
        raise ValueError(NO_UUID)
    return uuid


def row_uuid(row: Any, profile: Profile) -> str:
    """Return the uuid of a row; ``upstream`` takes any number, true, false or null for one.

    Raises:
        ValueError: It has none, or is no object.
    """
    if not isinstance(row, dict):
        raise ValueError(f"expected a dataset row (an object), found {compact(row)[:60]}")
    uuid = uuid_of(row)
    if uuid is None and profile == "upstream" and not isinstance(row.get("uuid", []), list | dict):
        uuid = compact(row["uuid"])
    if uuid is None:
        raise ValueError(NO_UUID)
    return uuid


def gold_label(record: Any, key: str, *, required: bool = False) -> str | None:
    """Return the gold label under a key; None where there is none, unless it is ``required``.

    Raises:
        ValueError: It is none of the labels.
    """
    gold: str | None = record.get(key)
    if gold in LABELS or (gold is None and not required):
        return gold
    raise ValueError(f"{key} must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}")

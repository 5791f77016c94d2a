"""Ids of tasks that a user says where to find: at a place of each record, or in what was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from gradestack.jsonio.paths import path_steps, path_value
from gradestack.jsonio.values import dumps, json_data
from gradestack.model import Sample, replace

INPUT: Final = "input"
"""In place of a place: samples of the same first question and tools are runs of one task."""
MADE: Final = "id_made"
_LOST: Final = "id_not_found"
"""Kind of remark on a record that has nothing usable where its id should be; it keeps the id it has."""


def check_place(place: str) -> None:
    """Check a place."""
    if not place:
        raise ValueError(f"expected {INPUT!r}, a key of the records, or a path such as $.metadata.task")
    path_steps(place)


def identified(sample: Sample, record: Any, place: str) -> Sample:
    """Return a sample with the id that stands at a place of its record, or that of its input."""
    found = _of_input(sample) if place == INPUT else _at(record, place)
    if found is None:
        return replace(sample, remarks={**sample.remarks, _LOST: sample.remarks.get(_LOST, 0) + 1})
    changes: dict[str, Any] = {"id": str(found)}
    if MADE in sample.remarks:
        changes["remarks"] = {kind: times for kind, times in sample.remarks.items() if kind != MADE}
    if MADE in sample.facets:
        changes["facets"] = {name: each for name, each in sample.facets.items() if name != MADE}
    if sample.cluster is not None and sample.cluster == sample.id:
        changes["cluster"] = str(found)
    if sample.source is not None:
        changes["source"] = replace(sample.source, id=found if isinstance(found, int) else None)
    return replace(sample, **changes)


def _at(record: Any, place: str) -> str | int | None:
    steps = path_steps(place)
    found = path_value(record, steps) if isinstance(record, Mapping) or place.startswith("$") else None
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return found if isinstance(found, str | int) and not isinstance(found, bool) and found != "" else None


def _of_input(sample: Sample) -> str | None:
    """Return a digest of the first user message and the tools; None where nobody asked anything."""
    asked: Any = sample.input[0] if isinstance(sample.input, tuple) and sample.input else sample.input
    if asked is None:
        said = (each.content for turn in sample.turns for each in turn if each.role == "user")
        asked = next(said, None)
    if asked is None:
        return None
    tools = None if sample.tools is None else [json_data(each) for each in sample.tools]
    text = dumps([json_data(asked), tools])
    return f"input-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"

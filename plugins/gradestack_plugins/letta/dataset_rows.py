"""Rows of a letta-evals dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack import JSON, Profile, Sample, Source, replace
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.letta.references import VARIABLES, expectation, facets_of, input_of, truth_of

KEYS = frozenset(
    {"input", "prompt", "ground_truth", "id", "sample_id", "rubric", "rubric_path", "metadata", "tags", *VARIABLES}
)
RESULT_KEYS = frozenset(
    {"expected", "predicted", "messages", "turns", "trajectory", "sample", "grade", "grades", "submission", "uuid"}
)
"""Keys of recorded results in other forms: a row with one of them is no dataset row."""
_OBJECTS = (*VARIABLES, "metadata")


def _texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def row_sample(record: Any, source: Source, profile: Profile) -> Sample:
    """Return the sample of a row.

    Raises:
        ValueError: The row cannot be used; the message names the key.
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"expected a row (an object), found {compact(record)[:60]}")  # noqa: TRY004
    name = "input" if "input" in record else "prompt"
    if name not in record:
        raise ValueError("input is missing")
    given = record[name]
    if not isinstance(given, str) and not (_texts(given) and given):
        raise ValueError(f"{name} must be a text or a list of texts, got {compact(given)[:60]}")
    for key in _OBJECTS:
        if record.get(key) is not None and not isinstance(record[key], Mapping):
            raise ValueError(f"{key} must be an object, got {compact(record[key])[:60]}")
    identifier = _identifier(record, source.ordinal, profile)
    return Sample(
        id=str(identifier),
        input=input_of(given),
        expected=expectation(_truth(record.get("ground_truth"), given, profile)),
        facets=facets_of(record),
        source=source if isinstance(identifier, str) else replace(source, id=identifier),
    )


def _identifier(record: Mapping[str, Any], ordinal: int, profile: Profile) -> str | int:
    if profile == "upstream":
        return ordinal
    for name in ("sample_id", "id"):
        value = record.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"{name} must be a text or a whole number, got {compact(value)[:60]}")  # noqa: TRY004
        return value
    return ordinal


def _truth(value: JSON, given: JSON, profile: Profile) -> str | tuple[str, ...] | None:
    turns = isinstance(given, list)
    if profile == "upstream":
        if value is not None and not isinstance(value, str) and not _texts(value):
            raise ValueError(f"ground_truth must be a text or a list of texts, got {compact(value)[:60]}")
        if isinstance(value, list) and not turns:
            raise ValueError("ground_truth is a list but input is not; give one text, or a list of user turns")
    if isinstance(value, list) and turns and len(value) != len(given):
        raise ValueError(f"ground_truth has {len(value)} text(s) for {len(given)} user turn(s)")
    return truth_of(value, turns=turns)


def csv_record(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the row a CSV line stands for, cells decoded and empty ones left out.

    Raises:
        ValueError: A cell cannot be decoded, or there are more cells than columns.
    """
    if row.get(None):
        raise ValueError(f"more cells than columns: {compact(row[None])[:60]}")
    cells = {name: cell for name, cell in row.items() if cell or (name in {"input", "prompt"} and cell is not None)}
    cells.pop(None, None)
    for name in ("input", "prompt"):
        if name in cells:
            cells[name] = _list_cell(cells[name])
    if any(isinstance(cells.get(name), list) for name in ("input", "prompt")) and "ground_truth" in cells:
        cells["ground_truth"] = _list_cell(cells["ground_truth"])
    for name in _OBJECTS:
        if name in cells:
            cells[name] = _object_cell(name, cells[name])
    if isinstance(cells.get("tags"), str):
        tags = _list_cell(cells["tags"])
        cells["tags"] = tags if isinstance(tags, list) else [tag.strip() for tag in tags.split(",") if tag.strip()]
    return cells


def _list_cell(cell: str) -> str | list[str]:
    """Return a cell that is a JSON list of texts as that list, any other as it is."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return cell
    try:
        found = loads(text)
    except JsonProblem:
        return cell
    return found if found and _texts(found) else cell


def _object_cell(name: str, cell: str) -> dict[str, Any]:
    try:
        found = loads(cell)
    except JsonProblem as problem:
        raise ValueError(f"{name} must hold a JSON object: {problem}") from problem
    if not isinstance(found, dict):
        raise ValueError(f"{name} must hold a JSON object, got {cell[:60]}")  # noqa: TRY004
    return found

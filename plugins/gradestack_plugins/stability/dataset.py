"""The dataset behind a sweep: which tasks there are, and their gold labels."""

from __future__ import annotations

from typing import Any

import attrs

from gradestack import BadRecord, Input, Profile, Source, read_records
from gradestack.jsonio import Element, compact
from gradestack_plugins.stability.records import LABELS, uuid_of

Found = tuple[int, str | None, str | None]
"""Number of rows, gold label, question."""


@attrs.frozen(kw_only=True)
class Dataset:
    """The rows of a dataset by uuid, and those that cannot be used."""

    shown: str
    rows: dict[str, Found]
    bad: tuple[BadRecord, ...] = ()

    def find(self, uuid: str) -> Found:
        """Return what is known of a task; it has no row when the dataset does not know it."""
        return self.rows.get(uuid, (0, None, None))


def read_dataset(source: Input, profile: Profile) -> Dataset:
    """Return the rows of a dataset: the first gold label and question of a uuid count.

    Raises:
        DataError: The file cannot be read.
    """
    rows: dict[str, Found] = {}
    bad: list[BadRecord] = []
    for raw in read_records(source):
        try:
            uuid, gold, question = _row(raw, profile)
        except ValueError as problem:
            place = Source(file=source.shown, ordinal=raw.ordinal, line=raw.line)
            bad.append(BadRecord(source=place, reason=str(problem), native=raw.value))
            continue
        count, known, asked = rows.get(uuid, (0, None, None))
        rows[uuid] = (count + 1, known or gold, asked or question)
    return Dataset(shown=source.shown, rows=rows, bad=tuple(bad))


def _row(raw: Element, profile: Profile) -> tuple[str, str | None, str | None]:
    """Return the identifier, gold label and question of a row.

    Raises:
        ValueError: It is broken, no object, has no identifier, or a gold label that is none of the four.
    """
    if raw.problem is not None:
        raise ValueError(raw.problem)
    if not isinstance(raw.value, dict):
        raise ValueError(f"expected a dataset row (an object), found {compact(raw.value)[:60]}")  # noqa: TRY004
    uuid = uuid_of(raw.value)
    if uuid is None and profile == "upstream":
        uuid = _other_uuid(raw.value)
    if uuid is None:
        raise ValueError("uuid is missing or not a non-empty text")
    gold, question = raw.value.get("correct_answer"), raw.value.get("question")
    if gold is not None and gold not in LABELS:
        raise ValueError(f"correct_answer must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}")
    return uuid, gold, question if isinstance(question, str) else None


def _other_uuid(record: dict[str, Any]) -> str | None:
    """Return an identifier no record can have, as JSON text: the suite counts such a row as one without runs."""
    if "uuid" not in record or isinstance(record["uuid"], list | dict):
        return None
    return compact(record["uuid"])

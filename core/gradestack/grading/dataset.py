"""The dataset: read whole, joined to samples by id, and the rows of it that no record answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gradestack.errors import DataError
from gradestack.grading.plan import Plan
from gradestack.grading.reading import records_of, shards_of
from gradestack.model import BadRecord, Sample, Status, replace


def read_dataset(plan: Plan) -> tuple[dict[str, Sample] | None, list[str]]:
    """Return the rows of the dataset by id, and ids of rows that expect something else than an earlier one of theirs.

    None in place of rows: there is no dataset, or the reader joins it itself. Of several rows of an id the last counts.
    """
    stage, dataset = plan.dataset_reader, plan.inputs.dataset
    if stage is None or dataset is None:
        return None, []
    shards, index = shards_of(stage.component, msgspec.structs.replace(plan.inputs, data=(dataset,), dataset=None))
    rows: dict[str, Sample] = {}
    others: dict[str, None] = {}
    for shard in shards:
        for record in records_of(stage.component, shard, index):
            if isinstance(record, BadRecord):
                raise DataError(f"{replace(record.source, file=str(dataset.path))}: {record.reason}")
            if (earlier := rows.get(record.id)) is not None and earlier.expected != record.expected:
                others[record.id] = None
            if not plan.max_samples or plan.subset or len(rows) < plan.max_samples or earlier is not None:
                rows[record.id] = record
    if not rows:
        raise DataError(f"{dataset.path}: the dataset holds no row")
    return rows, list(others)


def joined(sample: Sample, dataset: Mapping[str, Sample], *, same_inputs: bool = False) -> Sample:
    """Return a sample with what the dataset knows of its task: expectations always, tools and input if it has none."""
    row = dataset.get(sample.id)
    if row is None:
        return sample
    if same_inputs and None not in (row.input, sample.input) and row.input != sample.input:
        msg = f"{sample.source or sample.id}: the input of sample {sample.id!r} differs from the dataset's"
        raise DataError(msg, "the recording was made with another dataset; grade it with that one")
    changes: dict[str, Any] = {"expected": row.expected}
    if row.facets:
        changes["facets"] = {**row.facets, **sample.facets}
    if sample.tools is None and row.tools is not None:
        changes["tools"] = row.tools
    if sample.input is None and row.input is not None:
        changes["input"] = row.input
    return replace(sample, **changes)


def unmatched(dataset: Mapping[str, Sample], seen: set[tuple[str, str, str]]) -> tuple[list[str], list[str]]:
    """Return the ids of samples that have no row in the dataset, sorted, and of rows that no sample answers."""
    there = {identifier for _, identifier, _ in seen}
    return sorted(there - dataset.keys()), [identifier for identifier in dataset if identifier not in there]


def unanswered(dataset: Mapping[str, Sample], seen: set[tuple[str, str, str]]) -> Iterator[Sample]:
    """Yield a missing sample for every dataset row no record answers, per model seen, and per run where told apart."""
    models = sorted({model for model, _, _ in seen}) or [""]
    runs = {run: json.loads(run) if run else None for run in sorted({run for _, _, run in seen}) or [""]}
    for model in models:
        for run, number in runs.items():
            for identifier, row in dataset.items():
                if (model, identifier, run) not in seen:
                    yield replace(row, model=model or None, status=Status.MISSING, run=number, native=None)

"""Ids that stand for other tasks in other inputs: a first pass over the inputs finds them.

Their samples are read with the input's name before the id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import islice
from typing import Any

import msgspec

from gradestack.api import Inputs, Reader, Shard
from gradestack.errors import GradestackError
from gradestack.grading.reading import DisambiguatedIds, records_of
from gradestack.model import BadRecord, Expectation, Sample, Status

Known = tuple[int | str | None, ...]
"""Checksums of a task's question and expectation; None of what is unknown."""
_VARIES = "varies"
"""In place of a checksum that is not the same in all that know it."""


def disambiguate_ids(
    reader: Reader, inputs: Inputs, shards: Sequence[Shard], index: Any
) -> DisambiguatedIds | None:
    """Return names in place of ids that stand for several tasks; None where none does.

    An id stands for one task where its questions and expectations are the same in all inputs, as
    far as they are known. Questions that differ between the runs of one input, as those of
    simulated users do, say nothing. With a dataset, an id stands for its row.
    """
    if len(inputs.data) < 2 or inputs.dataset is not None:
        return None
    ids: dict[tuple[str, str], str] = {}
    for task, inputs_of_task in _tasks_by_id(reader, shards, index).items():
        first_input: dict[Known, str] = {}
        for name, known in _distinguish(inputs_of_task).items():
            ids[name, task] = f"{first_input.setdefault(known, name)}:{task}"
    if not ids:
        return None
    tasks = [*dict.fromkeys(task for _, task in ids)]
    count = "1 id stands" if len(tasks) == 1 else f"{len(tasks):,} ids stand"
    names = dict.fromkeys(name for (_, task), name in ids.items() if task == tasks[0])
    examples = " and ".join(islice(names, 2))
    why = "for other questions or expectations in other inputs"
    note = f"{count} {why}: tasks of their own, such as {examples}"
    return DisambiguatedIds(index, ids, note)


def _tasks_by_id(
    reader: Reader, shards: Sequence[Shard], index: Any
) -> dict[str, dict[str, Known]]:
    """Read all samples; map id and name of the input to checksums of the task there."""
    tasks: dict[str, dict[str, Known]] = {}
    for shard in shards:
        name = shard.input.name
        with suppress(GradestackError, OSError):  # grading will say so
            for sample in records_of(reader, shard, index):
                if isinstance(sample, BadRecord) or sample.cluster is not None:
                    continue
                if sample.status is not Status.MISSING:
                    inputs = tasks.setdefault(sample.id, {})
                    known = _checksums(sample, reader)
                    inputs[name] = tuple(map(_combine, inputs.get(name, known), known))
    return tasks


def _distinguish(inputs: Mapping[str, Known]) -> dict[str, Known]:
    """Return by input what tells its task from those of other inputs: nothing where all agree."""
    columns = [
        column
        for column in zip(*inputs.values(), strict=True)
        if _VARIES not in column and reduce(_combine, column) == _VARIES
    ]
    return dict(zip(inputs, zip(*columns, strict=True), strict=True)) if columns else {}


def _combine(one: Any, other: Any) -> Any:
    """Combine the knowledge of two; None is nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one if one == other else _VARIES


def _checksums(sample: Sample, reader: Reader) -> Known:
    """Return checksums of the first question and of the expectation."""
    question = expectation = None
    if sample.input and not reader.simulated_users:
        first = sample.input if isinstance(sample.input, str) else sample.input[0]
        question = hash(tuple(str(first).split()))
    if sample.expected != Expectation():
        try:
            text: Any = msgspec.json.encode(sample.expected, order="deterministic")
        except (TypeError, ValueError, OverflowError, RecursionError):  # not all of it is JSON
            text = repr(sample.expected)
        expectation = hash(text)
    return question, expectation

"""The samples of the input that count, and their dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gradestack.api import Reader, Shard
from gradestack.errors import DataError
from gradestack.grading.filters import Fields
from gradestack.grading.plan import Plan
from gradestack.grading.reading import records_of, shards_of
from gradestack.grading.subset import Subset
from gradestack.model import BadRecord, Sample, Status, replace

Identity = tuple[str, str | None, int | str | None]
Place = tuple[int, int]
"""The number of a shard, and a sample's position in it."""


def identity_of(sample: Sample) -> Identity:
    """Return the identity that two records of one run share: id, model, run."""
    return sample.id, sample.model, sample.run


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A picklable choice of samples."""

    ids: frozenset[str] | None = None
    tags: frozenset[str] = frozenset()
    subset: Subset = Subset()
    last: Mapping[Identity, Place] | None = None
    """Where the record of a repeated identity stands that counts, when the last duplicate wins."""

    def takes(self, sample: Sample, location: Place) -> bool:
        """Return whether a sample counts."""
        if self.ids is not None and sample.id not in self.ids:
            return False
        if self.tags and self.tags.isdisjoint(tags_of(sample)):
            return False
        if self.subset and not self.subset.admits(Fields.of(sample)):
            return False
        return not self.superseded(sample, location)

    def superseded(self, sample: Sample, location: Place) -> bool:
        """Return whether a later record of the same (id, model, run) takes this one's place."""
        return self.last is not None and self.last.get(identity_of(sample), location) != location


def tags_of(sample: Sample) -> set[str]:
    """Return the facet ``tags``: a list of texts, or one text."""
    tags = sample.facets.get("tags")
    if isinstance(tags, str):
        return {tags}
    return (
        {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list | tuple) else set()
    )


def _samples(reader: Reader, shards: Iterable[Shard], index: Any) -> Iterator[tuple[Place, Sample]]:
    """Yield the place (shard, position) of each sample of the shards, and the sample."""
    for shard in shards:
        position = 0
        for record in records_of(reader, shard, index):
            if isinstance(record, Sample):
                yield (shard.ordinal, position), record
                position += 1


def first_ids(
    reader: Reader, shards: Iterable[Shard], index: Any, count: int, takes: Callable[[Sample], bool]
) -> frozenset[str]:
    """Return the first ``count`` distinct task ids of the samples that are taken.

    Reads no further than it must.
    """
    ids: set[str] = set()
    for _, sample in _samples(reader, shards, index):
        if sample.id in ids or not takes(sample):
            continue
        if len(ids) == count:
            break
        ids.add(sample.id)
    return frozenset(ids)


def last_records(
    reader: Reader, shards: Iterable[Shard], index: Any, *, named: bool = False
) -> dict[Identity, Place]:
    """Return where the last record of every repeated (id, model, run) stands.

    A first pass over all inputs. ``named`` leaves out records without the name of a run: each is a
    run of its own.
    """
    hashes, last = set[int](), dict[Identity, Place]()
    for location, sample in _samples(reader, shards, index):
        if named and sample.run is None:
            continue
        identity = identity_of(sample)
        if hash(identity) in hashes:  # one of the same hash is the last of its own
            last[identity] = location
        hashes.add(hash(identity))
    return last


def read_dataset(plan: Plan) -> tuple[dict[str, Sample] | None, list[str]]:
    """Return the rows of the dataset by id, and ids of rows that expect something else than an
    earlier one of theirs.

    None in place of rows: there is no dataset, or the reader joins it itself. Of several rows of an
    id the last counts.
    """
    stage, dataset = plan.dataset_reader, plan.inputs.dataset
    if stage is None or dataset is None:
        return None, []
    inputs = msgspec.structs.replace(plan.inputs, data=(dataset,), dataset=None)
    shards, index = shards_of(stage.component, inputs)
    most = 0 if plan.subset else plan.max_samples
    rows: dict[str, Sample] = {}
    contradicted: dict[str, None] = {}
    for shard in shards:
        for record in records_of(stage.component, shard, index):
            if isinstance(record, BadRecord):
                source = replace(record.source, file=str(dataset.path))
                raise DataError(f"{source}: {record.reason}")
            earlier = rows.get(record.id)
            if earlier is not None and earlier.expected != record.expected:
                contradicted[record.id] = None
            if earlier is not None or not most or len(rows) < most:
                rows[record.id] = record
    if not rows:
        raise DataError(f"{dataset.path}: the dataset holds no row")
    return rows, list(contradicted)


def joined(sample: Sample, dataset: Mapping[str, Sample], *, same_inputs: bool = False) -> Sample:
    """Return a sample with what the dataset knows of its task.

    Expectations always, tools and input if it has none.
    """
    row = dataset.get(sample.id)
    if row is None:
        return sample
    if same_inputs and None not in (row.input, sample.input) and row.input != sample.input:
        where = sample.source or sample.id
        problem = f"{where}: the input of sample {sample.id!r} differs from the dataset's"
        advice = "the recording was made with another dataset; grade it with that one"
        raise DataError(problem, advice)
    changes: dict[str, Any] = {"expected": row.expected}
    if row.facets:
        changes["facets"] = {**row.facets, **sample.facets}
    for name in ("tools", "input"):
        if getattr(sample, name) is None:
            changes[name] = getattr(row, name)
    return replace(sample, **changes)


def unmatched(
    dataset: Mapping[str, Sample], answered: set[tuple[str, str, str]]
) -> tuple[list[str], list[str]]:
    """Return the ids of samples that have no row in the dataset, sorted, and of rows that no sample
    answers.
    """
    ids = {identifier for _, identifier, _ in answered}
    return sorted(ids - dataset.keys()), [row for row in dataset if row not in ids]


def unanswered(
    dataset: Mapping[str, Sample], answered: set[tuple[str, str, str]]
) -> Iterator[Sample]:
    """Yield a missing sample for every dataset row no record answers, per model seen, and per run
    where told apart.
    """
    models = sorted({model for model, _, _ in answered}) or [""]
    runs = sorted({run for _, _, run in answered}) or [""]
    for model in models:
        for run in runs:
            number = json.loads(run) if run else None
            for identifier, row in dataset.items():
                if (model, identifier, run) not in answered:
                    yield replace(
                        row, model=model or None, status=Status.MISSING, run=number, native=None
                    )

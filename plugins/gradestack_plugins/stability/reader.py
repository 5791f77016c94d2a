"""Reader of stability sweeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Input, Inputs, Profile, Reader, Shard
from gradestack.errors import DataError
from gradestack.jsonlist import Range
from gradestack.jsontext import compact
from gradestack.model import BadRecord, Expectation, Sample, Source, Status
from gradestack_plugins.stability.records import Raw, RunLabel, Sweep, iter_raw, ranges, read_sweep, uuid_of


@attrs.frozen(kw_only=True)
class StabilityRun:
    """What the reader hands the stability grader about one run beside the general fields."""

    label: RunLabel = attrs.field(factory=RunLabel)
    first: bool = False
    """Whether this run speaks for the whole record (its first one does)."""
    n_runs: int = 0
    derived: dict[str, Any] | None = None
    dataset_rows: int | None = None
    """How many dataset rows have this uuid; None without a dataset."""


@attrs.frozen(kw_only=True)
class _Twins:
    """Records whose uuid occurs several times in one file: the last one counts, in the place of the first."""

    replaced: dict[int, Raw] = attrs.field(factory=dict)
    dropped: frozenset[int] = frozenset()
    uuids: frozenset[str] = frozenset()
    model: str | None = None
    experiment: str | None = None


@attrs.frozen(kw_only=True)
class StabilityIndex:
    """Duplicates of every file, and the dataset: uuid -> (number of rows, gold label, question)."""

    twins: dict[str, _Twins]
    dataset: dict[str, tuple[int, str | None, str | None]] | None = None


@attrs.frozen(kw_only=True)
class StabilityReader(Reader):
    """Reads the sweeps of the evaluation suite (JSON Lines, or one JSON list): one sample per run of every record.

    A record needs ``uuid`` and ``run_labels``; ``gold_label``, ``n_runs`` and ``target_model`` are used where they are
    there. The sample's id is the uuid, its run the position in ``run_labels``. A repeated uuid overwrites: the last
    record counts, in the place of the first. ``ckpt_name`` becomes the facet ``experiment``, so that sweeps at several
    temperatures stay apart.

    With a dataset a row without a record becomes a missing sample, which lowers the coverage, and records outside it
    are marked. ``documented`` takes a gold label the record lacks from the dataset; ``upstream`` uses the record alone.
    """

    provides = frozenset({"label", "expected", "text", "native"})
    stack = "stability"
    takes_dataset = True

    profile: Profile = "documented"

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Recognise a sweep by ``uuid`` and ``run_labels`` in its first record."""
        text = head.decode("utf-8-sig", errors="replace").lstrip()
        text = text[1:].lstrip() if text.startswith("[") else text
        try:
            record = json.JSONDecoder().raw_decode(text)[0]
        except (ValueError, RecursionError):
            return 0.7 if text[:1] == "{" and '"run_labels"' in text and '"uuid"' in text else 0.0
        return 0.95 if uuid_of(record) is not None and "run_labels" in record else 0.0

    def index(self, inputs: Inputs) -> StabilityIndex:
        """Find repeated records, and read the dataset's identifiers and gold labels."""
        twins = {each.name: _twins(each) for each in inputs.data}
        if inputs.dataset is None:
            return StabilityIndex(twins=twins)
        dataset: dict[str, tuple[int, str | None, str | None]] = {}
        for raw in _rows(inputs.dataset):
            uuid = uuid_of(raw.value)
            if uuid is not None:
                gold, question = raw.value.get("correct_answer"), raw.value.get("question")
                count, known, asked = dataset.get(uuid, (0, None, None))
                known = known or (gold if isinstance(gold, str) else None)
                dataset[uuid] = (count + 1, known, asked or (question if isinstance(question, str) else None))
        return StabilityIndex(twins=twins, dataset=dataset)

    def plan(self, inputs: Inputs, index: StabilityIndex) -> Iterable[Shard]:
        """Cut every file into ranges of records, followed by the dataset rows it has no record of."""
        number = position = 0
        for each in inputs.data:
            size = each.path.stat().st_size
            for part in ranges(each.path):
                yield Shard(
                    ordinal=number,
                    input=each,
                    start=part.start,
                    end=part.end,
                    first_line=part.first_line,
                    first_row=part.first_row,
                    position=position + part.start,
                    extra="records",
                )
                number += 1
            position += size + 1
            if index.dataset is not None and inputs.dataset is not None:
                yield Shard(ordinal=number, input=each, position=position, extra=inputs.dataset.shown)
                number += 1
                position += inputs.dataset.path.stat().st_size + 1

    def read(self, shard: Shard, index: StabilityIndex) -> Iterator[Sample | BadRecord]:
        """Yield one sample per run of the records of a range, or one per dataset row without a record."""
        twins = index.twins[shard.input.name]
        if shard.extra != "records":
            yield from _missing_rows(index, twins, shard.extra)
            return
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        for found in iter_raw(shard.input.path, part):
            if found.ordinal in twins.dropped:
                continue
            raw = twins.replaced.get(found.ordinal, found)
            place = Source(file=shard.input.shown, ordinal=raw.ordinal, line=raw.line)
            try:
                sweep = read_sweep(*_usable(raw), self.profile)
            except ValueError as problem:
                yield BadRecord(source=place, reason=str(problem), native=raw.value)
                continue
            yield from self._samples(sweep, place, index)

    def _samples(self, sweep: Sweep, place: Source, index: StabilityIndex) -> Iterator[Sample]:
        rows, gold, question = (
            (None, None, None) if index.dataset is None else index.dataset.get(sweep.uuid, (0, None, None))
        )
        if sweep.gold is not None or self.profile == "upstream":
            gold = sweep.gold
        for run, label in enumerate(sweep.runs or (RunLabel(),)):
            yield Sample(
                id=sweep.uuid,
                model=sweep.model,
                run=run if sweep.runs else None,
                input=question,
                label=label.text,
                text=sweep.texts[run] if run < len(sweep.texts) else None,
                expected=Expectation(label=gold),
                status=Status.MISSING if label.missing else Status.OK,
                facets={"experiment": sweep.experiment} if sweep.experiment else {},
                source=place,
                native=StabilityRun(
                    label=label, first=run == 0, n_runs=sweep.n_runs, derived=sweep.derived, dataset_rows=rows
                ),
            )


def _usable(raw: Raw) -> tuple[dict[str, Any], str]:
    """Return a record and its uuid.

    Raises:
        ValueError: It is broken, no object, or has none.
    """
    if raw.problem is not None:
        raise ValueError(raw.problem)
    if not isinstance(raw.value, dict):
        raise ValueError(f"expected a stability record (an object), found {compact(raw.value)[:60]}")  # noqa: TRY004
    uuid = uuid_of(raw.value)
    if uuid is None:
        raise ValueError("uuid is missing or not a non-empty text")
    return raw.value, uuid


def _rows(source: Input) -> Iterator[Raw]:
    try:
        yield from iter_raw(source.path)
    except OSError as error:
        raise DataError(f"{source.shown}: cannot be read: {error.strerror or error}") from error


def _twins(source: Input) -> _Twins:
    """Find the records of a file whose uuid occurs again; only those are kept in memory."""
    first: dict[str, int] = {}
    replaced: dict[int, Raw] = {}
    dropped: set[int] = set()
    marks: dict[str, set[str]] = {"target_model": set(), "ckpt_name": set()}
    for raw in _rows(source):
        uuid = uuid_of(raw.value)
        if uuid is None:
            continue
        for name, values in marks.items():
            if isinstance(value := raw.value.get(name), str) and value:
                values.add(value)
        if uuid in first:
            replaced[first[uuid]] = raw
            dropped.add(raw.ordinal)
        else:
            first[uuid] = raw.ordinal
    only = {name: values.pop() if len(values) == 1 else None for name, values in marks.items()}
    return _Twins(
        replaced=replaced,
        dropped=frozenset(dropped),
        uuids=frozenset(first),
        model=only["target_model"],
        experiment=only["ckpt_name"],
    )


def _missing_rows(index: StabilityIndex, twins: _Twins, shown: str) -> Iterator[Sample]:
    for ordinal, (uuid, (count, gold, question)) in enumerate((index.dataset or {}).items()):
        if uuid not in twins.uuids:
            yield Sample(
                id=uuid,
                model=twins.model,
                input=question,
                expected=Expectation(label=gold),
                status=Status.MISSING,
                facets={"experiment": twins.experiment} if twins.experiment else {},
                source=Source(file=shown, ordinal=ordinal),
                native=StabilityRun(first=True, dataset_rows=count),
            )

"""Reader ``stability``: sweeps of the evaluation suite, one line per task with the labels of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs
from typing_extensions import override

from gradestack import (
    BadRecord,
    Expectation,
    Input,
    Inputs,
    Profile,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    Status,
    read_records,
    replace,
)
from gradestack.jsonio import Element, Range, compact
from gradestack_plugins.stability.records import LABELS, RunLabel, Sweep, read_sweep, sweep_name, uuid_of

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
    """Return the rows of a dataset: the first gold label and question of a uuid count."""
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
    """Return the identifier, gold label and question of a row."""
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

    replaced: dict[int, Element] = attrs.field(factory=dict)
    dropped: frozenset[int] = frozenset()
    uuids: frozenset[str] = frozenset()
    """Those whose record that counts can be used."""
    model: str | None = None
    experiment: str | None = None
    """The sweep, when the file names exactly one."""
    name: str = ""
    """What the sweep is called, named or not."""


@attrs.frozen(kw_only=True)
class StabilityIndex:
    """Duplicates of every file, and the dataset."""

    twins: dict[str, _Twins]
    dataset: Dataset | None = None
    experiments: dict[str, str] = attrs.field(factory=dict)
    """Input name -> sweep of the records that name none, where several files have to be told apart."""


@attrs.frozen(kw_only=True)
class StabilityReader(RecordReader):
    """Reads the sweeps of the evaluation suite (JSON Lines, or one JSON list): one sample per run of every record.

    A record needs ``uuid`` and ``run_labels``; ``gold_label``, ``n_runs`` and ``target_model`` are used where they are
    there. The sample's id is the uuid, its run the position in ``run_labels``. A repeated uuid overwrites: the last
    record counts, in the place of the first. ``ckpt_name`` becomes the facet ``experiment``, so that sweeps at several
    temperatures stay apart; of several files graded together each is a sweep of its own, whether it names one or not.

    With a dataset a row without a record becomes a missing sample, which lowers the coverage, and records outside it
    are marked; a row that cannot be used is reported as bad and is no row. ``documented`` takes a gold label the record
    lacks from the dataset; ``upstream`` uses the record alone.
    """

    provides = frozenset({"label", "expected", "text", "native"})
    stack = "stability"
    takes_dataset = True
    behind_others = 0.0

    profile: Profile = "documented"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float:
        return 0.95 if uuid_of(record) is not None and "run_labels" in record else 0.0

    @classmethod
    def begins_like(cls, text: bytes) -> float | None:
        """Recognise a record that breaks off by the same names."""
        return 0.7 if b'"run_labels"' in text and b'"uuid"' in text else None

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        return "run_labels without a uuid" if "run_labels" in record and uuid_of(record) is None else None

    @override
    def index(self, inputs: Inputs) -> StabilityIndex:
        """Find repeated records, and read the dataset's identifiers and gold labels."""
        profile = self.profile
        twins = {each.name: _twins(each, profile if inputs.dataset else None) for each in inputs.data}
        dataset = None if inputs.dataset is None else read_dataset(inputs.dataset, profile)
        return StabilityIndex(twins=twins, dataset=dataset, experiments=_experiments(twins))

    def files(self, inputs: Inputs, index: StabilityIndex) -> Iterator[RecordFile]:
        """Yield every file, followed by the dataset rows it has no record of."""
        for place, given in enumerate(inputs.data):
            yield RecordFile(input=given, extra="records")
            if index.dataset is not None:
                extra = "rows" if place else "dataset"
                yield RecordFile(input=given, file=inputs.dataset, ranges=(Range(),), extra=extra)

    @override
    def read(self, shard: Shard, index: StabilityIndex) -> Iterator[Sample | BadRecord]:
        if shard.extra == "records":
            yield from self.samples(shard, partial(self._runs, index, shard.input.name))
            return
        if shard.extra == "dataset" and index.dataset is not None:
            yield from index.dataset.bad  # once, however many files are joined with it
        yield from _missing_rows(index, shard.input.name)

    def _runs(self, index: StabilityIndex, name: str, record: Any, place: Source) -> Iterator[Sample | BadRecord]:
        twins = index.twins[name]
        if place.ordinal in twins.dropped:
            return
        if later := twins.replaced.get(place.ordinal):
            record, place = later.value, replace(place, ordinal=later.ordinal, line=later.line)
        try:
            sweep = read_sweep(*_usable(record), self.profile)
        except ValueError as problem:
            yield BadRecord(source=place, reason=str(problem), native=record)
        else:
            yield from self._samples(sweep, place, index, sweep.experiment or index.experiments.get(name))

    def _samples(self, sweep: Sweep, place: Source, index: StabilityIndex, experiment: str | None) -> Iterator[Sample]:
        rows, gold, question = (None, None, None) if index.dataset is None else index.dataset.find(sweep.uuid)
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
                facets={"experiment": experiment} if experiment else {},
                source=place,
                native=StabilityRun(
                    label=label, first=run == 0, n_runs=sweep.n_runs, derived=sweep.derived, dataset_rows=rows
                ),
            )


def _usable(record: Any) -> tuple[dict[str, Any], str]:
    """Return a record and its uuid."""
    if not isinstance(record, dict):
        raise ValueError(f"expected a stability record (an object), found {compact(record)[:60]}")  # noqa: TRY004
    uuid = uuid_of(record)
    if uuid is None:
        raise ValueError("uuid is missing or not a non-empty text")
    return record, uuid


def _twins(source: Input, profile: Profile | None) -> _Twins:
    """Find the records of a file whose uuid occurs again; only those are kept in memory."""
    first: dict[str, int] = {}
    replaced: dict[int, Element] = {}
    dropped: set[int] = set()
    unusable: set[str] = set()
    name = source.name
    marks: dict[str, set[str]] = {"target_model": set(), "ckpt_name": set()}
    for raw in read_records(source):
        uuid = uuid_of(raw.value)
        if uuid is None:
            continue
        if not first:
            name = sweep_name(raw.value, source.name)
        for mark, values in marks.items():
            if isinstance(value := raw.value.get(mark), str) and value:
                values.add(value)
        if uuid in first:
            replaced[first[uuid]] = raw
            dropped.add(raw.ordinal)
            unusable.discard(uuid)
        else:
            first[uuid] = raw.ordinal
        if profile is not None and not _can_be_used(raw.value, profile):
            unusable.add(uuid)
    only = {mark: values.pop() if len(values) == 1 else None for mark, values in marks.items()}
    return _Twins(
        replaced=replaced,
        dropped=frozenset(dropped),
        uuids=frozenset(first) - unusable,
        model=only["target_model"],
        experiment=only["ckpt_name"],
        name=name,
    )


def _can_be_used(record: dict[str, Any], profile: Profile) -> bool:
    try:
        read_sweep(record, "", profile)
    except ValueError:
        return False
    return True


def _experiments(twins: dict[str, _Twins]) -> dict[str, str]:
    """Return a name of its own for each of several files, whatever sweep it is; nothing for a single file.

    Runs of a task belong together within a file only: without this, sweeps at two temperatures that do not name
    themselves would be one.
    """
    if len(twins) < 2:
        return {}
    shared = Counter(each.name for each in twins.values())
    return {stem: each.experiment or (each.name if shared[each.name] == 1 else stem) for stem, each in twins.items()}


def _missing_rows(index: StabilityIndex, name: str) -> Iterator[Sample]:
    if index.dataset is None:
        return
    twins = index.twins[name]
    experiment = twins.experiment or index.experiments.get(name)
    for ordinal, (uuid, (count, gold, question)) in enumerate(index.dataset.rows.items()):
        if uuid not in twins.uuids:
            yield Sample(
                id=uuid,
                model=twins.model,
                input=question,
                expected=Expectation(label=gold),
                status=Status.MISSING,
                facets={"experiment": experiment} if experiment else {},
                source=Source(file=index.dataset.shown, ordinal=ordinal),
                native=StabilityRun(first=True, dataset_rows=count),
            )

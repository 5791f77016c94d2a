"""Reader ``stability``: sweeps of the evaluation suite, one line per task with the labels of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import attrs
import msgspec
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
from gradestack_plugins.stability.records import LABELS, RunLabel, read_sweep, sweep_name, uuid_of


class StabilityRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader hands the stability grader about one run beside the general fields."""

    label: RunLabel = msgspec.field(default_factory=RunLabel)
    first: bool = False
    """Whether this run speaks for the whole record (its first one does)."""
    n_runs: int = 0
    derived: dict[str, Any] | None = None
    dataset_rows: int | None = None
    """How many dataset rows have this uuid; None without a dataset."""


class Task(NamedTuple):
    """What a dataset says of a task."""

    rows: int | None = 0
    gold: str | None = None
    question: str | None = None


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """A file's records whose uuid occurs again (the last one counts, in the place of the first), and its sweep."""

    replaced: dict[int, Element]
    dropped: frozenset[int]
    uuids: frozenset[str]
    """Those whose record that counts can be used."""
    model: str | None
    experiment: str | None
    """The sweep, when the file names exactly one."""
    name: str
    """What the sweep is called, named or not."""


class StabilityIndex(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated records of every file, and the dataset."""

    files: dict[str, _File]
    shown: str = ""
    tasks: dict[str, Task] | None = None
    """Rows of the dataset by uuid; None without one."""
    bad: tuple[BadRecord, ...] = ()
    """Rows that cannot be used."""

    def experiment(self, name: str) -> str | None:
        """Return the sweep of records of a file that name none.

        Of several files each has a name of its own, whatever sweep it is: runs of a task belong together within a file
        only, and sweeps at two temperatures that do not name themselves would be one.
        """
        file = self.files[name]
        if len(self.files) < 2 or file.experiment is not None:
            return file.experiment
        return file.name if sum(each.name == file.name for each in self.files.values()) == 1 else name


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
        """Find repeated records, and read the dataset's identifiers and gold labels.

        Raises:
            DataError: A file cannot be read.
        """
        files = {each.name: _file(each, self.profile if inputs.dataset else None) for each in inputs.data}
        if inputs.dataset is None:
            return StabilityIndex(files=files)
        tasks: dict[str, Task] = {}
        bad: list[BadRecord] = []
        for raw in read_records(inputs.dataset):
            try:
                uuid, gold, question = _row(raw, self.profile)
            except ValueError as problem:
                place = Source(file=inputs.dataset.shown, ordinal=raw.ordinal, line=raw.line)
                bad.append(BadRecord(source=place, reason=str(problem), native=raw.value))
                continue
            rows, first, asked = tasks.get(uuid, Task())
            tasks[uuid] = Task((rows or 0) + 1, first or gold, asked or question)
        return StabilityIndex(files=files, shown=inputs.dataset.shown, tasks=tasks, bad=tuple(bad))

    def files(self, inputs: Inputs, index: StabilityIndex) -> Iterator[RecordFile]:
        """Yield every file, followed by the dataset rows it has no record of."""
        for place, given in enumerate(inputs.data):
            yield RecordFile(input=given, extra="records")
            if index.tasks is not None:
                extra = "rows" if place else "dataset"
                yield RecordFile(input=given, file=inputs.dataset, ranges=(Range(),), extra=extra)

    @override
    def read(self, shard: Shard, index: StabilityIndex) -> Iterator[Sample | BadRecord]:
        if shard.extra == "records":
            yield from self.samples(shard, partial(self._runs, index, shard.input.name))
            return
        if shard.extra == "dataset":
            yield from index.bad  # once, however many files are joined with it
        file, experiment = index.files[shard.input.name], index.experiment(shard.input.name)
        for ordinal, (uuid, task) in enumerate((index.tasks or {}).items()):
            if uuid not in file.uuids:
                yield Sample(
                    id=uuid,
                    model=file.model,
                    input=task.question,
                    expected=Expectation(label=task.gold),
                    status=Status.MISSING,
                    facets={"experiment": experiment} if experiment else {},
                    source=Source(file=index.shown, ordinal=ordinal),
                    native=StabilityRun(first=True, dataset_rows=task.rows),
                )

    def _runs(self, index: StabilityIndex, name: str, record: Any, place: Source) -> Iterator[Sample | BadRecord]:
        file = index.files[name]
        if place.ordinal in file.dropped:
            return
        if later := file.replaced.get(place.ordinal):
            record, place = later.value, replace(place, ordinal=later.ordinal, line=later.line)
        try:
            if not isinstance(record, dict):
                raise ValueError(f"expected a stability record (an object), found {compact(record)[:60]}")  # noqa: TRY004, TRY301
            if (uuid := uuid_of(record)) is None:
                raise ValueError("uuid is missing or not a non-empty text")  # noqa: TRY301
            sweep = read_sweep(record, uuid, self.profile)
        except ValueError as problem:
            yield BadRecord(source=place, reason=str(problem), native=record)
            return
        rows, gold, question = Task(None) if index.tasks is None else index.tasks.get(uuid, Task())
        if sweep.gold is not None or self.profile == "upstream":
            gold = sweep.gold
        experiment = sweep.experiment or (index.experiment(name) if len(index.files) > 1 else None)
        for run, label in enumerate(sweep.runs or (RunLabel(),)):
            yield Sample(
                id=uuid,
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


def _row(raw: Element, profile: Profile) -> tuple[str, str | None, str | None]:
    """Return the identifier, gold label and question of a dataset row; ValueError where it cannot be used.

    ``upstream`` counts a row whose identifier is no text as one without runs: it has its JSON text for an identifier,
    which no record can have.
    """
    record = raw.value
    if raw.problem is not None:
        raise ValueError(raw.problem)
    if not isinstance(record, dict):
        raise ValueError(f"expected a dataset row (an object), found {compact(record)[:60]}")  # noqa: TRY004
    uuid = uuid_of(record)
    if uuid is None and profile == "upstream" and not isinstance(record.get("uuid", []), list | dict):
        uuid = compact(record["uuid"])
    if uuid is None:
        raise ValueError("uuid is missing or not a non-empty text")
    gold, question = record.get("correct_answer"), record.get("question")
    if gold is not None and gold not in LABELS:
        raise ValueError(f"correct_answer must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}")
    return uuid, gold, question if isinstance(question, str) else None


def _file(source: Input, profile: Profile | None) -> _File:
    """Return the records of a file whose uuid occurs again; only those stay in memory.

    With a profile (there is a dataset), those that cannot be used under it as well.
    """
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
        if profile is not None:
            try:
                read_sweep(raw.value, uuid, profile)
            except ValueError:
                unusable.add(uuid)
    only = {mark: values.pop() if len(values) == 1 else None for mark, values in marks.items()}
    return _File(
        replaced=replaced,
        dropped=frozenset(dropped),
        uuids=frozenset(first) - unusable,
        model=only["target_model"],
        experiment=only["ckpt_name"],
        name=name,
    )

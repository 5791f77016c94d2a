"""Reader ``stability``.

Sweeps of the evaluation suite, one line per task with the labels of its runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
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
)
from gradestack.jsonio import Element, Range, as_list, as_text, compact, is_number
from gradestack_plugins.readers.joined import (
    INVALID,
    LABELS,
    NO_UUID,
    gold_label,
    row_uuid,
    uuid_of,
)
from gradestack_plugins.stability.items import item_measures

UPSTREAM_FLOATS = (
    "consistency",
    "mean_accuracy_across_runs",
    "entropy",
    "normalized_entropy",
    "flip_rate",
)
UPSTREAM_FLAGS = ("is_stable", "is_mode_correct", "is_stable_and_correct", "is_stable_but_wrong")
"""Derived fields of a record that ``upstream`` trusts."""

_LARGEST = 10**15
"""No count of runs is larger; beyond, counts are no longer exact as floats."""

_LARGEST_UPSTREAM = 10**308
"""What the suite can still divide by."""

_LARGEST_FIGURE = 1e100
"""Sums of many figures of this size stay finite."""


class RunLabel(msgspec.Struct, frozen=True, kw_only=True):
    """The label of one run: text, or for other values their JSON text."""

    text: str | None = None
    json: str | None = None

    @property
    def missing(self) -> bool:
        """Whether there is no run here."""
        return self.text is None and self.json is None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """One record: a task and its runs."""

    uuid: str
    gold: str | None
    runs: tuple[RunLabel, ...]
    texts: tuple[str | None, ...] = ()
    model: str | None = None
    n_runs: int = 0
    """Runs asked for; 0 when the record does not say."""
    derived: dict[str, Any] | None = None
    """Derived fields the record already has; only kept where they are trusted."""
    experiment: str | None = None


def read_sweep(record: Mapping[str, Any], uuid: str, profile: Profile) -> Sweep:
    """Return a record's runs; ValueError where it cannot be used."""
    trusting, labels = profile == "upstream", record.get("run_labels")
    texts = record.get("run_target_texts") or record.get("run_aux")
    if trusting:
        n_runs = _whole(record, "n_runs")
        _computable(record, "n_runs", n_runs, _LARGEST_UPSTREAM)
        n_runs, derived = min(max(0, n_runs), _LARGEST_UPSTREAM), _derived(record)
        if _measured(record) and any(
            isinstance(label, list | dict) for label in record["run_labels"]
        ):
            raise ValueError("run_labels holds a list or an object, which cannot be counted")
    else:
        if labels is not None and not isinstance(labels, list):
            raise ValueError(f"run_labels must be a list, got {compact(labels)[:60]}")
        given: Any = record.get("n_runs")
        n_runs, derived = int(given) if is_number(given) and 0 < given <= _LARGEST else 0, None
    return Sweep(
        uuid=uuid,
        gold=_gold(record, trusting=trusting),
        runs=tuple(_label(value, trusting=trusting) for value in labels)
        if isinstance(labels, list)
        else (),
        texts=tuple(text if isinstance(text, str) else None for text in as_list(texts)),
        model=as_text(record.get("target_model")) or None,
        n_runs=n_runs,
        derived=derived,
        experiment=as_text(record.get("ckpt_name")) or None,
    )


def _known_gold(record: Mapping[str, Any]) -> bool:
    return record.get("gold_label") in LABELS


def _measured(record: Mapping[str, Any]) -> bool:
    """Return whether the suite looks at the runs at all.

    It does for a known gold label and a list of runs.
    """
    labels = record.get("run_labels")
    return _known_gold(record) and isinstance(labels, list) and bool(labels)


def _gold(record: Mapping[str, Any], *, trusting: bool) -> str | None:
    gold = record.get("gold_label")
    if isinstance(gold, str) or "gold_label" not in record:
        return gold
    return compact(gold) if trusting or gold is not None else None


def _label(value: Any, *, trusting: bool) -> RunLabel:
    if isinstance(value, str):
        return RunLabel(text=value)
    if not trusting:
        return RunLabel() if value is None else RunLabel(text=INVALID)
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)  # true, 1 and 1.0 are one value to the suite
    return RunLabel(json=compact(value))


def _whole(record: Mapping[str, Any], name: str) -> int:
    """Return a field as a whole number the way ``int()`` reads it.

    What is empty or not there is 0.
    """
    value = record.get(name)
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a whole number, got {compact(value)[:60]}") from None


def _computable(record: Mapping[str, Any], name: str, number: int, largest: float) -> None:
    if abs(number) > largest and "consistency" not in record and _measured(record):
        raise ValueError(f"{name} is too large")


def _derived(record: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: bool(record[name]) for name in UPSTREAM_FLAGS if name in record}
    for name in UPSTREAM_FLOATS:
        if name in record:
            try:
                number = float(record[name])
            except (TypeError, ValueError, OverflowError):
                raise ValueError(
                    f"{name} must be a number, got {compact(record[name])[:60]}"
                ) from None
            if abs(number) <= _LARGEST_FIGURE:
                found[name] = number
            elif _known_gold(record):
                raise ValueError(
                    f"{name} must be finite" + (", not this large" if math.isfinite(number) else "")
                )
    if "mode_label" in record and "mode_count" in record and _measured(record):
        found["mode_label"], found["mode_count"] = (
            record["mode_label"],
            _whole(record, "mode_count"),
        )
        _computable(record, "mode_count", found["mode_count"], _LARGEST_FIGURE)
    return found


def kind_of(record: Mapping[str, Any]) -> str:
    """Return the evaluation method: as the record says, else by the fields it has."""
    named = str(record.get("eval_type") or record.get("ckpt_name") or "").lower()
    if "judge" in named or (not named and "run_judge_raw_outputs" in record):
        return "llm_judge"
    return "mcq_logprob" if "logprob" in named else "mcq"


def sweep_name(record: Mapping[str, Any], stem: str) -> str:
    """Return the name of the sweep a record belongs to."""
    if name := as_text(record.get("ckpt_name")):
        return name
    kind, k, temperature = kind_of(record), record.get("n_runs"), record.get("temperature")
    mark = "Ttarget" if kind == "llm_judge" else "T"
    return (
        f"{kind}_stability_k={k}_{mark}={temperature}"
        if k is not None and temperature is not None
        else stem
    )


class StabilityRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader hands the stability grader about one run beside the general fields."""

    label: RunLabel = msgspec.field(default_factory=RunLabel)
    first: bool = False
    """Whether this run speaks for the whole record (its first one does)."""
    n_runs: int = 0
    derived: dict[str, Any] | None = None
    item: dict[str, Any] = msgspec.field(default_factory=dict)
    """Measures of all runs of its record: ``m_i``, ``H_i``, ``H_i^norm``, ``FlipRate_i``."""
    dataset_rows: int | None = None
    """How many dataset rows have this uuid; None without a dataset."""


class Task(NamedTuple):
    """What a dataset says of a task."""

    rows: int | None = 0
    gold: str | None = None
    question: str | None = None


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """A file's records whose uuid occurs again (the last one counts, in the place of the first),
    and its sweep.
    """

    replaced: dict[int, Element]
    dropped: frozenset[int]
    uuids: frozenset[str]
    """Those whose record that counts can be used."""
    model: str | None
    experiment: str | None
    """The sweep, when the file names exactly one."""
    name: str

    def latest(self, elements: Iterable[Element]) -> Iterator[Element]:
        """Yield the last record of each uuid, in the place of its first."""
        for element in elements:
            if element.ordinal not in self.dropped:
                yield self.replaced.get(element.ordinal, element)


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

        Of several files each has a name of its own, whatever sweep it is: runs of a task belong
        together within a file only, and sweeps at two temperatures that do not name themselves
        would be one.
        """
        file = self.files[name]
        if len(self.files) < 2 or file.experiment is not None:
            return file.experiment
        return (
            file.name if sum(each.name == file.name for each in self.files.values()) == 1 else name
        )


@attrs.frozen(kw_only=True)
class StabilityReader(RecordReader):
    """Reads the sweeps of the evaluation suite (JSON Lines, or one JSON list).

    One sample per run of every record.

    A record needs ``uuid`` and ``run_labels``; ``gold_label``, ``n_runs`` and ``target_model`` are
    used where they are there. The sample's id is the uuid, its run the position in ``run_labels``.
    A repeated uuid overwrites: the last record counts, in the place of the first. ``ckpt_name``
    becomes the facet ``experiment``, so that sweeps at several temperatures stay apart; of several
    files graded together each is a sweep of its own, whether it names one or not.

    With a dataset a row without a record becomes a missing sample, which lowers the coverage, and
    records outside it are marked; a row that cannot be used is reported as bad and is no row.
    ``documented`` takes a gold label the record lacks from the dataset; ``upstream`` uses the
    record alone.
    """

    provides = frozenset({"label", "expected", "text", "native"})
    stack = "stability"
    takes_dataset = True
    keeps_copies = True
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
        return (
            "run_labels without a uuid"
            if "run_labels" in record and uuid_of(record) is None
            else None
        )

    @override
    def index(self, inputs: Inputs) -> StabilityIndex:
        """Find repeated records, and read the dataset's identifiers and gold labels."""
        files = {
            each.name: _file(each, self.profile if inputs.dataset else None) for each in inputs.data
        }
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
            part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
            records = index.files[shard.input.name].latest(self.elements(shard.input, part))
            runs_of = partial(self._runs, index, shard.input.name)
            yield from self.samples_in(records, runs_of, shard.input.shown)
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

    def _runs(
        self, index: StabilityIndex, name: str, record: Any, place: Source
    ) -> Iterator[Sample]:
        if not isinstance(record, dict):
            raise ValueError(
                f"expected a stability record (an object), found {compact(record)[:60]}"
            )
        if (uuid := uuid_of(record)) is None:
            raise ValueError(NO_UUID)
        sweep = read_sweep(record, uuid, self.profile)
        rows, gold, question = Task(None) if index.tasks is None else index.tasks.get(uuid, Task())
        if sweep.gold is not None or self.profile == "upstream":
            gold = sweep.gold
        experiment = sweep.experiment or (index.experiment(name) if len(index.files) > 1 else None)
        item = self._item(sweep)
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
                    label=label,
                    first=run == 0,
                    n_runs=sweep.n_runs,
                    derived=sweep.derived,
                    item=item,
                    dataset_rows=rows,
                ),
            )

    def _item(self, sweep: Sweep) -> dict[str, Any]:
        recorded = [label for label in sweep.runs if not label.missing]
        if not recorded:
            return {}
        if self.profile == "upstream":
            values = [label.text or label.json for label in recorded]
            return item_measures(values, len(LABELS))
        known = [label.text if label.text in LABELS else INVALID for label in recorded]
        return item_measures(known, len(LABELS) + (INVALID in known))


def _row(raw: Element, profile: Profile) -> tuple[str, str | None, str | None]:
    """Return the identifier, gold label and question of a dataset row.

    ValueError where it cannot be used.
    """
    if raw.problem is not None:
        raise ValueError(raw.problem)
    uuid, gold = row_uuid(raw.value, profile), gold_label(raw.value, "correct_answer")
    question = raw.value.get("question")
    return uuid, gold, question if isinstance(question, str) else None


def _file(source: Input, profile: Profile | None) -> _File:
    """Return the records of a file whose uuid occurs again; only those stay in memory."""
    first, replaced, name = dict[str, int](), dict[int, Element](), source.name
    dropped, unusable = set[int](), set[str]()
    marks: dict[str, set[str]] = {"target_model": set(), "ckpt_name": set()}
    for raw in read_records(source):
        uuid = uuid_of(raw.value)
        if uuid is None:
            continue
        if not first:
            name = sweep_name(raw.value, source.name)
        for mark, values in marks.items():
            values.update({as_text(raw.value.get(mark))} - {""})
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
    model, experiment = (values.pop() if len(values) == 1 else None for values in marks.values())
    return _File(
        replaced=replaced,
        dropped=frozenset(dropped),
        uuids=frozenset(first) - unusable,
        model=model,
        experiment=experiment,
        name=name,
    )

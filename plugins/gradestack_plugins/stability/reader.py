"""Reader ``stability``.

Sweeps of the evaluation suite, one line per task with the labels of its runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    Expectation,
    Input,
    Inputs,
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
    gold_label,
    required_uuid,
    uuid_of,
)
from gradestack_plugins.stability.items import item_measures
from gradestack_plugins.stability.program import name_sweep

_MOST_RUNS = 10**15
"""No count of runs is larger; beyond, counts are no longer exact as floats."""


def runs_of(record: Mapping[str, Any]) -> list[str | None]:
    """Return the labels of a record's runs, None for one that is missing.

    Raises:
        ValueError: They are no list.
    """
    labels = record.get("run_labels")
    if not isinstance(labels, list | None):
        raise ValueError(f"run_labels must be a list, got {compact(labels)[:60]}")
    return [label if isinstance(label, str | None) else INVALID for label in labels or ()]


class StabilityRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run beside the general fields, as the reader hands it to the stability grader."""

    first: bool = False
    """Whether this run speaks for the whole record (its first one does)."""
    n_runs: int = 0
    """Runs asked for; 0 when the record does not say."""
    counts: dict[str, int] = {}
    """``m_i`` of its record's runs; of a first one ``dataset_rows``, how many have this uuid."""
    parts: dict[str, float | None] = {}
    """Measures of its record's runs: ``H_i``, ``H_i^norm``, ``FlipRate_i``."""


class Task(msgspec.Struct):
    """A task in the dataset."""

    rows: int = 0
    gold: str | None = None
    question: str | None = None


class SweepFile(msgspec.Struct):
    """A file before it is read: its sweep, and records whose uuid occurs again.

    The last record of a uuid counts, in the place of the first.
    """

    name: str
    model: str = ""
    experiment: str = ""
    """Model and sweep, when the file names exactly one."""
    usable: set[str] = msgspec.field(default_factory=set)
    """Uuids whose record that counts can be used."""
    repeated: dict[int, Element | None] = msgspec.field(default_factory=dict)
    """Ordinal of a record -> the record that counts in its place, None where none does."""

    def latest(self, elements: Iterable[Element]) -> Iterator[Element]:
        """Yield the records that count."""
        for element in elements:
            latest = self.repeated.get(element.ordinal, element)
            if latest is not None:
                yield latest


class StabilityIndex(msgspec.Struct, frozen=True):
    """The files by input name, and the dataset."""

    files: dict[str, SweepFile]
    tasks: dict[str, Task] | None = None
    """Rows of the dataset by uuid; None without one."""
    bad_rows: list[Sample | BadRecord] = []
    dataset: str = ""
    """Shown name of the dataset."""

    def experiment(self, name: str) -> str:
        """Return the sweep of records of a file that name none.

        Of several files each has a name of its own, whatever sweep it is: runs of a task belong
        together within a file only, and sweeps at two temperatures that do not name themselves
        would be one.
        """
        file = self.files[name]
        if len(self.files) < 2 or file.experiment:
            return file.experiment
        names = [other.name for other in self.files.values()]
        return file.name if names.count(file.name) == 1 else name


class StabilityReader(RecordReader):
    """Reads the sweeps of the evaluation suite (JSON Lines, or one JSON list).

    One sample per run of every record.

    A record needs ``uuid`` and ``run_labels``; ``gold_label``, ``n_runs`` and ``target_model`` are
    used where they are there. The sample's id is the uuid, its run the position in ``run_labels``.
    A repeated uuid overwrites: the last record counts, in the place of the first. ``ckpt_name``
    becomes the facet ``experiment``, so that sweeps at several temperatures stay apart; of several
    files graded together each is a sweep of its own, whether it names one or not.

    With a dataset a row without a record becomes a missing sample, which lowers the coverage, and
    records outside it are marked; a row that cannot be used is reported as bad and is no row. A
    gold label the record lacks is taken from the dataset.
    """

    example_file = "runs.jsonl"
    keys = frozenset({"uuid", "run_labels"})
    provides = frozenset({"label", "expected", "text", "native"})
    stack = "stability"
    takes_dataset = True
    keeps_copies = True
    behind_others = 0.0

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
        files = {file.name: _look_through(file) for file in inputs.data}
        dataset = inputs.dataset
        if dataset is None:
            return StabilityIndex(files)
        tasks: dict[str, Task] = {}
        bad = self.samples_in(read_records(dataset), partial(_add_row, tasks), dataset.shown)
        return StabilityIndex(files, tasks, [*bad], dataset.shown)

    def files(self, inputs: Inputs, index: StabilityIndex) -> Iterator[RecordFile]:
        """Yield every file, followed by the dataset rows it has no record of."""
        for number, file in enumerate(inputs.data):
            yield RecordFile(input=file, extra="records")
            if index.tasks is not None:
                extra = "rows" if number else "dataset"
                yield RecordFile(input=file, file=inputs.dataset, ranges=(Range(),), extra=extra)

    @override
    def read(self, shard: Shard, index: StabilityIndex) -> Iterator[Sample | BadRecord]:
        if shard.extra == "records":
            part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
            records = index.files[shard.input.name].latest(self.elements(shard.input, part))
            samples_of = partial(self._runs, index, shard.input.name)
            yield from self.samples_in(records, samples_of, shard.input.shown)
            return
        if shard.extra == "dataset":
            yield from index.bad_rows  # once, however many files are joined with it
        name = shard.input.name
        file = index.files[name]
        unanswered = {"target_model": file.model, "ckpt_name": index.experiment(name)}
        for ordinal, uuid in enumerate(index.tasks or {}):
            if uuid not in file.usable:
                source = Source(file=index.dataset, ordinal=ordinal)
                yield from self._runs(index, name, {"uuid": uuid, **unanswered}, source)

    def _runs(
        self, index: StabilityIndex, name: str, record: Any, source: Source
    ) -> Iterator[Sample]:
        uuid = required_uuid(record, "a stability record")
        runs = runs_of(record)
        texts = as_list(record.get("run_target_texts") or record.get("run_aux"))
        text_of = dict(enumerate(texts))
        task = (index.tasks or {}).get(uuid, Task())
        gold = record.get("gold_label")
        if gold is None:
            gold = task.gold
        elif not isinstance(gold, str):
            gold = compact(gold)
        experiment = as_text(record.get("ckpt_name"))
        if not experiment and len(index.files) > 1:
            experiment = index.experiment(name)
        facets: dict[str, Any] = {"experiment": experiment} if experiment else {}
        model = as_text(record.get("target_model")) or None
        n_asked: Any = record.get("n_runs")
        n_runs = int(n_asked) if is_number(n_asked) and 0 < n_asked <= _MOST_RUNS else 0
        values = [label if label in LABELS else INVALID for label in runs if label is not None]
        counts: dict[str, int] = {}
        parts: dict[str, float | None] = {}
        if values:
            counts = {"m_i": max(Counter(values).values())}
            parts = item_measures(values, len(LABELS) + (INVALID in values))
        rows_of_task = {} if index.tasks is None else {"dataset_rows": task.rows}
        for run, label in enumerate(runs or [None]):
            text = text_of.get(run)
            native = StabilityRun(
                first=run == 0,
                n_runs=n_runs,
                counts=counts if run else rows_of_task | counts,
                parts=parts,
            )
            yield Sample(
                id=uuid,
                model=model,
                run=run if runs else None,
                input=task.question,
                label=label,
                text=text if isinstance(text, str) else None,
                expected=Expectation(label=gold),
                status=Status.MISSING if label is None else Status.OK,
                facets=facets,
                source=source,
                native=native,
            )


def _add_row(tasks: dict[str, Task], row: Any, _: Source) -> Iterable[Sample]:
    """Add a dataset row to its task; no sample is made of it.

    Raises:
        ValueError: It cannot be used.
    """
    uuid, gold = required_uuid(row, "a dataset row"), gold_label(row, "correct_answer")
    question = row.get("question")
    task = tasks.setdefault(uuid, Task())
    task.rows += 1
    task.gold = task.gold or gold
    task.question = task.question or (question if isinstance(question, str) else None)
    return ()


def _look_through(source: Input) -> SweepFile:
    """Look through a file for its sweep and repeated records; only those stay in memory."""
    file = SweepFile(source.name)
    first_ordinals: dict[str, int] = {}
    models: set[str] = set()
    experiments: set[str] = set()
    for element in read_records(source):
        record = element.value
        uuid = uuid_of(record)
        if uuid is None:
            continue
        if not first_ordinals:
            file.name = name_sweep(record, source.name)
        models.add(as_text(record.get("target_model")))
        experiments.add(as_text(record.get("ckpt_name")))
        first = first_ordinals.setdefault(uuid, element.ordinal)
        if first != element.ordinal:
            file.repeated |= {first: element, element.ordinal: None}
        if isinstance(record.get("run_labels"), list | None):
            file.usable.add(uuid)
        else:
            file.usable.discard(uuid)
    file.model, file.experiment = _only(models), _only(experiments)
    return file


def _only(names: set[str]) -> str:
    """Return the one name there is beside an empty one; "" of several."""
    names -= {""}
    return names.pop() if len(names) == 1 else ""

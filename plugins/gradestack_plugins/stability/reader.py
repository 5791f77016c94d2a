"""Reader ``stability``.

Sweeps of the evaluation suite, one line per task with the labels of its runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from typing_extensions import override

from gradestack import Expectation, Input, Sample, Source, Status, read_records
from gradestack.jsonio import as_text, compact
from gradestack_plugins.readers.declared import Items, Text, convert_record
from gradestack_plugins.readers.joined import (
    INVALID,
    LABELS,
    JoinedReader,
    LastRecords,
    gold_label,
    last_records,
    required_uuid,
    uuid_of,
)
from gradestack_plugins.stability.items import item_measures

_RunCount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""Beyond, counts are no longer exact as floats."""


class SweepRecord(msgspec.Struct, kw_only=True):
    """The keys of a sweep's record that are used."""

    uuid: str
    run_labels: list[Any]
    gold_label: Any = None
    n_runs: _RunCount | None = None
    target_model: Text = None
    ckpt_name: Text = None
    run_target_texts: Items = None
    run_aux: Items = None


def read_sweep_record(record: Any) -> SweepRecord:
    """Read a record; ValueError where it cannot be used."""
    required_uuid(record, "a stability record")
    return convert_record(record, SweepRecord)[0]


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


class SweepFile(LastRecords, frozen=True, kw_only=True):
    """The records of a file."""

    model: str = ""
    """The model tested, when the file names exactly one."""
    experiment: str = ""
    """Its sweep, when the file names exactly one; else its own name, unless it is alone."""


class StabilityReader(JoinedReader):
    """Reads the sweeps of the evaluation suite (JSON Lines, or one JSON list).

    One sample per run of every record.

    A record needs ``uuid`` and ``run_labels``; ``gold_label``, ``n_runs`` and ``target_model`` are
    used where they are there. The sample's id is the uuid, its run the position in ``run_labels``.
    A repeated uuid overwrites: the last record counts, in the place of the first. ``ckpt_name``
    becomes the facet ``experiment``, so that sweeps at several temperatures stay apart. Of several
    files graded together, one whose records name no sweep is told apart by its name.

    With a dataset: rows in dataset order, each with the runs of its record, and records that no
    row has at the end, marked. A row without a record becomes a missing sample, which lowers the
    coverage; a row that cannot be used is reported as bad and is no row. A gold label the record
    lacks is taken from the dataset.
    """

    example_file = "runs.jsonl"
    keys = frozenset({"uuid", "run_labels"})
    provides = frozenset({"label", "expected", "text", "native"})
    stack = "stability"
    keeps_copies: ClassVar[bool] = True
    has_repeats: ClassVar[bool] = False

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        if "run_labels" in record and uuid_of(record) is None:
            return "run_labels without a uuid"
        return None

    @override
    def load(self, file: Input, *, is_only: bool) -> SweepFile:
        last = last_records(read_records(file), lambda record: read_sweep_record(record).uuid)
        by_uuid = last.by_uuid.values()
        records = [element.value for element in by_uuid]
        names = {as_text(record.get("target_model")) for record in records}
        model = _only(names)
        ckpt_names = {as_text(record.get("ckpt_name")) for record in records}
        experiment = _only(ckpt_names)
        return SweepFile(
            by_uuid=last.by_uuid,
            unusable=last.unusable,
            model=model,
            experiment=experiment or ("" if is_only else file.name),
        )

    @override
    def check_row(self, row: Mapping[str, Any]) -> None:
        gold_label(row, "correct_answer")

    @override
    def samples_of_pair(
        self, file: SweepFile, row: Any, record: Any, source: Source, *, n_rows: int | None
    ) -> Iterator[Sample]:
        row = row or {}
        sweep = read_sweep_record(record or {"uuid": row["uuid"], "run_labels": []})
        labels = [_read_label(label) for label in sweep.run_labels] or [None]
        texts = dict(enumerate(sweep.run_target_texts or sweep.run_aux or ()))
        if sweep.gold_label is None:
            gold = row.get("correct_answer")
        else:
            gold = sweep.gold_label
        if not isinstance(gold, Text):
            gold = compact(gold)
        experiment = sweep.ckpt_name or file.experiment
        counts, parts = _measure_runs(labels)
        counts_of_first = counts if n_rows is None else {"dataset_rows": n_rows, **counts}
        for run, label in enumerate(labels):
            n_runs = int(sweep.n_runs or 0)
            native = StabilityRun(
                first=run == 0,
                n_runs=n_runs,
                counts=counts if run else counts_of_first,
                parts=parts,
            )
            model = sweep.target_model or file.model or None
            question = row.get("question")
            text = _read_text(question)
            yield Sample(
                id=sweep.uuid,
                model=model,
                run=run if sweep.run_labels else None,
                input=text,
                label=label,
                text=_read_text(texts.get(run)),
                expected=Expectation(label=gold),
                status=Status.MISSING if label is None else Status.OK,
                facets={"experiment": experiment} if experiment else {},
                source=source,
                native=native,
            )


def _read_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _read_label(value: Any) -> str | None:
    """Return the label of a run, None for one that is missing."""
    return value if isinstance(value, Text) else INVALID


def _measure_runs(labels: Iterable[str | None]) -> tuple[dict[str, int], dict[str, float | None]]:
    """Return counts and measures of a record's runs; none without a label."""
    values = [label if label in LABELS else INVALID for label in labels if label is not None]
    if not values:
        return {}, {}
    n_labels = len(LABELS) + (INVALID in values)
    measures = item_measures(values, n_labels)
    m_i = max(Counter(values).values())
    return {"m_i": m_i}, measures


def _only(names: set[str]) -> str:
    """Return the one name there is beside an empty one; "" of several."""
    names -= {""}
    if len(names) == 1:
        return names.pop()
    return ""

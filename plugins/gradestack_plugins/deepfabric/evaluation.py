"""Evaluation as one call: the original's result object, from recorded replies.

results = evaluate("joined.jsonl")
for p in results.predictions:
    if not p.tool_selection_correct:
        print(p.query, p.expected_tool, p.predicted_tool)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gradestack import JSON, BadRecord, Fault, Grade, Input, Inputs, Outcome, Sample, Source, Status, figures
from gradestack_plugins.deepfabric.exporter import Prediction, document, native_config, native_metrics, prediction
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.reader import NO_ROW, DeepFabricReader, Join
from gradestack_plugins.deepfabric.samples import Validation, build, split_entry, with_reply

Lines = str | Path | Iterable[Any]
"""A JSONL file, or its lines decoded."""


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """The eight figures of the original, and the rates over processed samples; None where undefined."""

    tool_selection_accuracy: float | None
    parameter_accuracy: float | None
    execution_success_rate: float | None
    response_quality: float | None
    overall_score: float | None
    samples_evaluated: int
    samples_processed: int
    processing_errors: int
    samples_missing: int = 0
    samples_skipped: int = 0
    tool_selection_accuracy_attempted: float | None = None
    parameter_accuracy_attempted: float | None = None
    execution_success_rate_attempted: float | None = None
    response_quality_attempted: float | None = None
    overall_score_attempted: float | None = None
    interpretation: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    """Band of the overall score and advice, for people."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """Result of :func:`evaluate`."""

    metrics: Metrics
    predictions: tuple[Prediction, ...]
    """One record per sample, in input order."""
    bad_records: tuple[BadRecord, ...]
    """Lines no sample could be made of."""
    config: Mapping[str, JSON]
    grader: DeepFabric

    def to_json(self) -> str:
        """Return the result file as the original writes it."""
        metrics = native_metrics(msgspec.structs.asdict(self.metrics), self.grader)
        return document(metrics, self.config, self.predictions)


def evaluate(
    dataset: Lines,
    replies: Lines | None = None,
    *,
    join: Join = "auto",
    validation: Validation = "strict",
    grader: DeepFabric | None = None,
    **options: Any,
) -> Evaluation:
    """Grade recorded replies and return DeepFabric's result object.

    Args:
        dataset: JSONL file, or decoded lines: records that carry their reply, joined lines, or (with ``replies``)
            plain records.
        replies: JSONL file or decoded lines with the replies to ``dataset``; both must be files, or neither. Decoded
            replies belong to the records at the same place, None being none; those beyond the last record are
            bad records.
        join: How replies in a file find their record.
        validation: How strictly records are held against the rules of the format.
        grader: A grader with all its options; replaces those given here.
        options: Options of the grader :class:`DeepFabric`, such as ``profile``, ``weights`` and ``multi_turn``.

    Returns:
        Metrics, one prediction per sample, and the configuration.

    Raises:
        DataError: A file cannot be used, or ``on_stop: stop`` met a record on which the program ends.
        TypeError: An option the grader does not have.
        ValueError: Weights or arguments that cannot be honoured.
    """
    grader = DeepFabric(**options) if grader is None else grader
    reader = DeepFabricReader(profile=grader.profile, join=join, validation=validation)
    predictions, bad, graded = [], [], []
    for record in _records(reader, dataset, replies):
        if isinstance(record, BadRecord):
            bad.append(record)
            continue
        if record.status is Status.MISSING:
            fault = record.error or Fault(category="data", code="missing_reply")
            grade = Grade(outcome=Outcome.MISSING, fault=fault)
        else:
            grade = grader.grade(record)
        graded.append((record.id, record.run, record.model, grade))
        predictions.append(prediction(record, grade))
    found = figures({"deepfabric": {}}, graded, profile=grader.profile)["deepfabric"]
    names = set(Metrics.__struct_fields__)
    return Evaluation(
        metrics=Metrics(**{name: value for name, value in found.items() if name in names}),
        predictions=tuple(predictions),
        bad_records=tuple(bad),
        config=native_config(str(dataset) if isinstance(dataset, str | Path) else "", grader),
        grader=grader,
    )


def _records(reader: DeepFabricReader, dataset: Lines, replies: Lines | None) -> Iterator[Sample | BadRecord]:
    if not isinstance(dataset, str | Path):
        if isinstance(replies, str | Path):
            raise ValueError("decoded records take decoded replies")  # noqa: TRY004  either class is fine, the pair is not
        yield from _from_lines(reader, dataset, replies)
        return
    if replies is not None and not isinstance(replies, str | Path):
        raise ValueError("a dataset file takes its replies from a file")
    first, *second = (
        Input(path=Path(each), name=Path(each).stem, shown=str(each)) for each in (dataset, replies) if each is not None
    )
    inputs = Inputs(data=(second[0],), dataset=first) if second else Inputs(data=(first,))
    index = reader.index(inputs)
    for shard in reader.plan(inputs, index):
        yield from reader.read(shard, index)


def _from_lines(
    reader: DeepFabricReader, records: Iterable[Any], replies: Iterable[Any] | None
) -> Iterator[Sample | BadRecord]:
    answered = iter(replies) if replies is not None else None
    row = -1
    for row, record in enumerate(records):
        entry = split_entry(record)
        if answered is not None:
            reply = next(answered, None)
            entry = entry if reply is None else with_reply(entry, reply)
        source = Source(file="<records>", ordinal=row)
        yield build(entry, row=row, source=source, profile=reader.profile, validation=reader.validation)
    for place, reply in enumerate(answered or (), row + 1):
        if reply is not None:
            yield BadRecord(source=Source(file="<replies>", ordinal=place), reason=NO_ROW, native=reply)

"""Exporter ``deepfabric``: native/deepfabric.json, the original's result file; and evaluation as one call."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    BadRecord,
    Exporter,
    ExportSummary,
    Fault,
    Grade,
    Input,
    Inputs,
    Outcome,
    Sample,
    Shard,
    Source,
    Status,
    figures,
)
from gradestack_plugins.deepfabric.aggregators import FIGURES, NO_SCORE
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.options import METRICS, OLD, USUAL, Reading, as_numbers, weighted
from gradestack_plugins.deepfabric.reader import NO_ROW, DeepFabricReader, Join
from gradestack_plugins.deepfabric.replies import Call
from gradestack_plugins.deepfabric.samples import NO_REPLY, Native, Truth, Validation, build, split_entry, with_reply


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, expected and done in one sample, and the verdicts; fields in the original's order."""

    sample_id: int
    query: str
    available_tools: tuple[str, ...] | None = ()
    """Names of the tools; None: the version that was followed does not write them."""
    expected_tool: str | None = None
    predicted_tool: str | None = None
    expected_parameters: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    predicted_parameters: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    expected_answer: str | None = None
    predicted_answer: str | None = None
    tool_selection_correct: bool | None = False
    """None when the sample was skipped."""
    parameters_correct: bool | None = False
    execution_valid: bool | None = False
    response_score: float = 0.0
    error: str | None = None
    """Why the sample could not be processed; None when it was."""
    state: str = "graded"
    """State of the grade (not part of the written record)."""


def prediction(sample: Sample, grade: Grade | None) -> Prediction:
    """Return the result record of a graded sample."""
    native: Native = sample.native
    error = _error(sample, grade)
    reading = Reading.of(grade.metadata) if grade is not None and grade.metadata else USUAL
    seen = native.as_read(reading)
    truth = seen.truth or Truth("", (), None)
    made, expected = next(iter(seen.calls), Call()), next(iter(truth.calls), None)
    shown: dict[str, Any] = {
        "query": truth.query,
        "available_tools": seen.offered,
        "expected_tool": expected.name if expected is not None else None,
        "predicted_tool": made.name,
        "expected_parameters": (expected.arguments or {}) if expected is not None else {},
        "predicted_parameters": made.arguments if isinstance(made.arguments, Mapping) else {},
        "expected_answer": truth.answer,
        "predicted_answer": seen.responses[-1].content if seen.responses else None,
    }
    if error is not None:
        shown |= {"predicted_tool": None, "predicted_parameters": {}, "predicted_answer": None}
    if reading.version == OLD:
        shown["available_tools"] = None
    skipped = grade is not None and grade.outcome is Outcome.SKIPPED
    parts: Mapping[str, float | None] = grade.parts if grade is not None else {}
    verdicts = [None if skipped else bool(parts.get(name)) for name in METRICS[:3]]
    return Prediction(
        sample_id=native.row,
        **shown,
        tool_selection_correct=verdicts[0],
        parameters_correct=verdicts[1],
        execution_valid=verdicts[2],
        response_score=parts.get("response_quality") or 0.0,
        error=error,
        state=str(grade.outcome) if grade is not None else str(Outcome.MISSING),
    )


def _error(sample: Sample, grade: Grade | None) -> str | None:
    if sample.status is Status.MISSING:
        return NO_REPLY
    fault = grade.fault if grade is not None else sample.error
    return fault.message if fault is not None and fault.code != NO_SCORE else None


_WRITTEN: Final = tuple(name for name in Prediction.__struct_fields__ if name != "state")
_TOOLS: Final = "available_tools"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_WORDS: Final = {None: "null", True: "true", False: "false"}


def written(record: Prediction) -> str:
    """Return a record as the original writes it inside ``predictions``: indented by two steps, in its key order."""
    named = {name: getattr(record, name) for name in _WRITTEN}
    return "    " + render({name: value for name, value in named.items() if value is not None or name != _TOOLS}, 2)


def render(value: Any, level: int = 0) -> str:
    """Return a value as the original writes it: indent 2, non-ASCII kept, NaN and infinities as null."""
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        inner = "\n" + "  " * (level + 1)
        rows = []
        for key, item in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            rows.append(f"{_text(str(key))}: {render(item, level + 1)}")
        return _enclose("{", rows, "}", inner)
    if isinstance(value, list | tuple):
        inner = "\n" + "  " * (level + 1)
        rows = []
        for item in value:
            rows.append(render(item, level + 1))
        return _enclose("[", rows, "]", inner)
    return render(dict(value), level) if isinstance(value, Mapping) else _text(str(value))


def _enclose(opening: str, rows: list[str], closing: str, inner: str) -> str:
    return f"{opening}{inner}{f',{inner}'.join(rows)}{inner[:-2]}{closing}" if rows else opening + closing


def _text(value: str) -> str:
    text = encode_basestring(value)
    if text.isascii():
        return text
    # UTF-8 cannot carry a lone surrogate, so it is escaped as JSON allows.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: float) -> str:
    """Return a float as the original writes it: like Python, but 0.00001 and exponents without a leading zero."""
    if not math.isfinite(value):
        return "null"
    text = float.__repr__(value)
    mantissa, mark, exponent = text.partition("e-")
    if not mark:
        return text
    if exponent != "05":
        return f"{mantissa}e-{exponent.lstrip('0')}"
    sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    return f"{sign}0.0000{digits.replace('.', '')}"


ARTEFACT = "deepfabric.json"
TOO_DEEP = "the parameters are nested too deeply to be written"


@attrs.frozen(kw_only=True)
class DeepFabricExporter(Exporter):
    """Writes ``{"metrics", "predictions", "config"}`` with indent 2 and no final newline, as the original does.

    The keys are those of version 4.13, or of 4.3 where the grader follows it.
    ``metrics`` are the eight figures; ``overall_score`` is the weighted sum of the four rates, with the original's
    rounding. ``predictions`` are the result records in input order (in a skipped sample the verdicts are null, and a
    row without a reply carries the error "no recorded reply"). ``config`` has the original's keys; what nobody ran
    (inference) is null, and a key for the cloud is never written. NaN and infinities are null.
    """

    version: ClassVar[str] = "2"
    reader: ClassVar[str] = "deepfabric"
    graders: ClassVar[tuple[str, ...]] = ("deepfabric",)
    separator: ClassVar[str] = ",\n"

    @override
    def row(
        self,
        record: Sample | BadRecord,
        grades: Mapping[str, Grade],
        shard: Shard,
    ) -> Iterable[tuple[str, str]]:
        if isinstance(record, Sample):
            found = prediction(record, grades.get("deepfabric"))
            try:
                text = written(found)
            except RecursionError:
                text = written(
                    msgspec.structs.replace(found, expected_parameters={}, predicted_parameters={}, error=TOO_DEEP)
                )
            yield ARTEFACT, text

    @override
    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        head, tail = _around(*_figures(summary))
        return f"{head}\n", f"\n  {tail}"

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        if any(summary.graders["deepfabric"].states.values()):
            return {}
        return {ARTEFACT: "".join(_around(*_figures(summary)))}


def _figures(summary: ExportSummary) -> tuple[dict[str, Any], dict[str, Any]]:
    graded = summary.graders["deepfabric"]
    metrics = dict(graded.aggregates.get("deepfabric", {}))
    grader = graded.grader
    if not isinstance(grader, DeepFabric):
        return metrics, {}
    dataset = summary.dataset or summary.input
    return native_metrics(metrics, grader), native_config(dataset.shown, grader, summary.max_samples)


def native_metrics(metrics: Mapping[str, Any], grader: DeepFabric) -> dict[str, Any]:
    """Return the eight figures in the original's order, the overall score with the original's rounding."""
    names = (*FIGURES, "samples_evaluated", "samples_processed", "processing_errors")
    found = {name: metrics.get(name) for name in names}
    selection, parameters, execution, quality = (found[name] for name in FIGURES[:4])
    if None not in (selection, parameters, execution, quality) and found["samples_evaluated"]:
        rates: Any = (selection, parameters, execution, quality)
        found["overall_score"] = weighted(rates, grader.resolved_weights)
    return found


def native_config(dataset: str, grader: DeepFabric, max_samples: int | None = None) -> dict[str, Any]:
    """Return the configuration in the keys of the version that is followed; ``documented`` adds its own options."""
    weights = grader.given_weights
    old = grader.profile == "upstream" and grader.reading.version == OLD
    config: dict[str, Any] = {
        "dataset_path": dataset,
        "output_path": None,
        "model_path" if old else "model": None,
        "inference_config": None,
        "batch_size": 1,
        "max_samples": max_samples,
        "save_predictions": True,
        "metric_weights": None if weights is None else as_numbers(weights, grader.profile),
        "evaluators": ["tool_calling"],
        "reporters": ["file"],
        "cloud_api_key": None,
    }
    if not old:
        config |= {"multi_turn": grader.multi_turn, "max_turns": grader.max_turns}
    if grader.profile == "documented":
        config |= {
            "profile": grader.profile,
            "weights_in_effect": dict(zip(METRICS, grader.resolved_weights, strict=True)),
            "unknown_arguments": grader.unknown_arguments,
            "check_enums": grader.check_enums,
            "nested": grader.nested,
        }
    return config


def _around(metrics: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[str, str]:
    head, mark, tail = render({"metrics": metrics, "predictions": [], "config": config}).partition('"predictions": [')
    return head + mark, tail


def document(metrics: Mapping[str, Any], config: Mapping[str, Any], records: Sequence[Prediction]) -> str:
    """Return a whole result file."""
    head, tail = _around(metrics, config)
    text = DeepFabricExporter.separator.join(map(written, records))
    return f"{head}\n{text}\n  {tail}" if records else head + tail


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
    """Result of ``evaluate``."""

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
        options: Options of the grader ``DeepFabric``, such as ``profile``, ``weights`` and ``multi_turn``.

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

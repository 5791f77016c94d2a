"""Exporter ``deepfabric``: native/deepfabric.json, the original's result file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import asdict
from typing_extensions import override

from gradestack import (
    BadRecord,
    Exporter,
    ExportSummary,
    Grade,
    Outcome,
    Sample,
    Shard,
    compile_later,
)
from gradestack.jsonio import check_depth
from gradestack_plugins.deepfabric.aggregators import FIGURES
from gradestack_plugins.deepfabric.grader import METRICS, DeepFabric

COUNTS: Final = ("samples_evaluated", "samples_processed", "processing_errors")


VERDICTS: Final = ("tool_selection_correct", "parameters_correct", "execution_valid")


class Prediction(msgspec.Struct):
    """A result record as the original writes it; by default that of which nothing is known."""

    sample_id: int
    query: Any = ""
    available_tools: list[str] = []
    expected_tool: str | None = None
    predicted_tool: str | None = None
    expected_parameters: Any = {}
    predicted_parameters: Any = {}
    expected_answer: Any = None
    predicted_answer: str | None = None
    tool_selection_correct: bool | None = False
    parameters_correct: bool | None = False
    execution_valid: bool | None = False
    response_score: float = 0.0
    error: str | None = None

    def set_verdicts(self, verdicts: Sequence[bool | None]) -> None:
        """Set whether tool and parameters are right, and both; null in a skipped sample."""
        self.tool_selection_correct, self.parameters_correct, self.execution_valid = verdicts


def predict(sample: Sample, grade: Grade | None) -> Prediction:
    """Return the result record of a sample."""
    result = Prediction(sample.native.row, sample.input or "")
    tools = sample.tools or ()
    result.available_tools = [tool.name for tool in tools]
    result.expected_answer = sample.expected.text
    fault = sample.error or (None if grade is None else grade.fault)
    result.error = None if fault is None else fault.message
    for wanted in (sample.expected.calls or ())[:1]:
        result.expected_tool = wanted.name
        result.expected_parameters = wanted.arguments or {}
    if sample.turns and fault is None:
        result.predicted_answer = sample.text
        messages = sample.turns[0]
        calls = [call for message in messages for call in message.tool_calls]
        for made in calls[:1]:
            result.predicted_tool = made.name or None
            result.predicted_parameters = made.arguments or {}
    if grade is not None:
        is_skipped = grade.outcome is Outcome.SKIPPED
        keys = METRICS[:3]
        verdicts = [None if is_skipped else bool(grade.parts.get(key)) for key in keys]
        result.set_verdicts(verdicts)
        response_quality = grade.parts.get("response_quality")
        result.response_score = response_quality or 0.0
    return result


_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_ODD_NUMBER: Final = compile_later(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|NaN|-?Infinity|-?\d(?:\.\d+)?e-0\d'
)


def render(value: Any, level: int = 0) -> str:
    """Return a value as the original writes it.

    Indent 2, non-ASCII kept, NaN and infinities as null.

    Lone surrogates, which UTF-8 cannot carry, are escaped; RecursionError where it is nested too
    deeply.
    """
    text = _encode(value)
    check_depth(text)
    text = _ODD_NUMBER.sub(_number, text)
    lines = msgspec.json.format(text.encode(errors="surrogatepass"), indent=2)
    text = lines.decode(errors="surrogatepass").replace("\n", "\n" + "  " * level)
    return text.encode(errors="backslashreplace").decode()


def _number(text: re.Match[str]) -> str:
    """Return a number that the original writes otherwise than Python; texts as they are."""
    if text[0].startswith('"'):
        return text[0]
    return msgspec.json.encode(float(text[0])).decode()


ARTEFACT: Final = "deepfabric.json"
TOO_DEEP: Final = "the parameters are nested too deeply to be written"


def render_prediction(result: Prediction) -> str:
    """Render a result record as an indented JSON object of the file's list of predictions.

    Parameters that are nested too deeply for that are left out: the record is changed to have
    empty ones, and ``TOO_DEEP`` as its error.
    """
    try:
        record_text = render(asdict(result), 2)
    except RecursionError:
        result.expected_parameters = result.predicted_parameters = {}
        result.error = TOO_DEEP
        record_text = render(asdict(result), 2)
    return f"    {record_text}"


class DeepFabricExporter(Exporter):
    """Writes ``{"metrics", "predictions", "config"}`` with indent 2 and no final newline, as the
    original does.

    ``metrics`` are the eight figures. ``predictions`` are the result records in input order (in a
    skipped sample the verdicts are null, and a row without a reply carries the error "no recorded
    reply").
    ``config`` has the original's keys and the grader's options; what nobody ran (inference) is
    null, and a key for the cloud is never written. NaN and infinities are null.
    """

    version = "2"
    reader = "deepfabric"
    graders = ("deepfabric",)
    separator = ",\n"

    @override
    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterable[tuple[str, str]]:
        if isinstance(record, Sample):
            deepfabric = grades.get("deepfabric")
            result = predict(record, deepfabric)
            yield ARTEFACT, render_prediction(result)

    @override
    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        head, tail = render_around(*_figures(summary))
        return f"{head}\n", f"\n  {tail}"

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        deepfabric = summary.graders["deepfabric"]
        if any(deepfabric.states.values()):
            return {}
        figures = _figures(summary)
        return {ARTEFACT: "".join(render_around(*figures))}


def _figures(summary: ExportSummary) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metrics of the result file, and its configuration with the grader's options."""
    graded = summary.graders["deepfabric"]
    grader: Any = graded.grader
    dataset = summary.dataset or summary.input
    config = native_config(dataset.shown, grader, summary.max_samples)
    weights_in_effect = dict(zip(METRICS, grader.weights, strict=True))
    config |= {
        "profile": "documented",
        "weights_in_effect": weights_in_effect,
        "unknown_arguments": grader.unknown_arguments,
        "check_enums": grader.check_enums,
        "nested": grader.nested,
    }
    figures = graded.aggregates.get("deepfabric", {})
    return {name: figures.get(name) for name in (*FIGURES, *COUNTS)}, config


def native_config(dataset: str, grader: DeepFabric, max_samples: int | None) -> dict[str, Any]:
    """Return the original's configuration."""
    weights = grader.metric_weights
    metric_weights = weights and {name: float(weight) for name, weight in weights.items()}
    return {
        "dataset_path": dataset,
        "output_path": None,
        "model": None,
        "inference_config": None,
        "batch_size": 1,
        "max_samples": max_samples,
        "save_predictions": True,
        "metric_weights": metric_weights,
        "evaluators": ["tool_calling"],
        "reporters": ["file"],
        "cloud_api_key": None,
        "multi_turn": grader.multi_turn,
        "max_turns": grader.max_turns,
    }


def render_around(metrics: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the file's text before and behind the predictions."""
    text = render({"metrics": metrics, "predictions": [], "config": config})
    head, mark, tail = text.partition('"predictions": [')
    return head + mark, tail

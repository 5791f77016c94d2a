"""Exporter ``deepfabric``: native/deepfabric.json, the original's result file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import BadRecord, Exporter, ExportSummary, Grade, Outcome, Sample, Shard, Status
from gradestack.jsonio import check_depth
from gradestack_plugins.deepfabric.aggregators import FIGURES, NO_SCORE
from gradestack_plugins.deepfabric.grader import METRICS, DeepFabric, as_numbers, weighted
from gradestack_plugins.deepfabric.options import OLD, USUAL, Reading
from gradestack_plugins.deepfabric.replies import Call
from gradestack_plugins.deepfabric.samples import NO_REPLY, Native, Truth


def prediction(sample: Sample, grade: Grade | None) -> dict[str, Any]:
    """Return the result record of a sample.

    What was asked, expected and done, and the verdicts, in that order.
    """
    native: Native = sample.native
    error = _error(sample, grade)
    reading = (
        msgspec.convert(grade.metadata, Reading) if grade is not None and grade.metadata else USUAL
    )
    seen = native.as_read(reading)
    truth = seen.truth or Truth("", (), None)
    made, expected = next(iter(seen.calls), Call()), next(iter(truth.calls), None)
    tools = {} if reading.version == OLD else {"available_tools": seen.offered}
    skipped = grade is not None and grade.outcome is Outcome.SKIPPED
    parts: Mapping[str, float | None] = grade.parts if grade is not None else {}
    verdicts = [None if skipped else bool(parts.get(name)) for name in METRICS[:3]]
    given = made.arguments if isinstance(made.arguments, Mapping) and error is None else {}
    return {
        "sample_id": native.row,
        "query": truth.query,
        **tools,
        "expected_tool": expected.name if expected is not None else None,
        "predicted_tool": made.name if error is None else None,
        "expected_parameters": (expected.arguments or {}) if expected is not None else {},
        "predicted_parameters": given,
        "expected_answer": truth.answer,
        "predicted_answer": seen.responses[-1].content
        if seen.responses and error is None
        else None,
        "tool_selection_correct": verdicts[0],
        "parameters_correct": verdicts[1],
        "execution_valid": verdicts[2],
        "response_score": parts.get("response_quality") or 0.0,
        "error": error,
    }


def _error(sample: Sample, grade: Grade | None) -> str | None:
    if sample.status is Status.MISSING:
        return NO_REPLY
    fault = grade.fault if grade is not None else sample.error
    return fault.message if fault is not None and fault.code != NO_SCORE else None


_encode: Final = json.JSONEncoder(
    ensure_ascii=False, default=lambda x: dict(x) if isinstance(x, Mapping) else str(x)
).encode
_ODD_NUMBER: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|NaN|-?Infinity|-?\d(?:\.\d+)?e-0\d')


def render(value: Any, level: int = 0) -> str:
    """Return a value as the original writes it.

    Indent 2, non-ASCII kept, NaN and infinities as null.

    Lone surrogates, which UTF-8 cannot carry, are escaped; RecursionError where it is nested too
    deeply.
    """
    text = _encode(value)
    check_depth(text)
    if any(mark in text for mark in ("e-0", "NaN", "Infinity")):
        text = _ODD_NUMBER.sub(_number, text)
    text = msgspec.json.format(text.encode(errors="surrogatepass"), indent=2).decode(
        errors="surrogatepass"
    )
    return text.encode(errors="backslashreplace").decode().replace("\n", "\n" + "  " * level)


def _number(found: re.Match[str]) -> str:
    """Return a number like Python, but 0.00001 and exponents without a leading zero.

    Texts as they are.
    """
    mantissa, mark, exponent = found[0].partition("e-0")
    if mantissa[0] == '"':
        return found[0]
    if not mark:
        return "null"
    if exponent != "5":
        return f"{mantissa}e-{exponent}"
    sign = "-" if mantissa[0] == "-" else ""
    return f"{sign}0.0000{mantissa.lstrip('-').replace('.', '')}"


ARTEFACT = "deepfabric.json"
TOO_DEEP = "the parameters are nested too deeply to be written"


@attrs.frozen(kw_only=True)
class DeepFabricExporter(Exporter):
    """Writes ``{"metrics", "predictions", "config"}`` with indent 2 and no final newline, as the
    original does.

    The keys are those of version 4.13, or of 4.3 where the grader follows it.
    ``metrics`` are the eight figures; ``overall_score`` is the weighted sum of the four rates, with
    the original's rounding. ``predictions`` are the result records in input order (in a skipped
    sample the verdicts are null, and a row without a reply carries the error "no recorded reply").
    ``config`` has the original's keys; what nobody ran (inference) is null, and a key for the cloud
    is never written. NaN and infinities are null.
    """

    version: ClassVar[str] = "2"
    reader: ClassVar[str] = "deepfabric"
    graders: ClassVar[tuple[str, ...]] = ("deepfabric",)
    separator: ClassVar[str] = ",\n"

    @override
    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterable[tuple[str, str]]:
        if isinstance(record, Sample):
            found = prediction(record, grades.get("deepfabric"))
            try:
                text = render(found, 2)
            except RecursionError:
                text = render(
                    {
                        **found,
                        "expected_parameters": {},
                        "predicted_parameters": {},
                        "error": TOO_DEEP,
                    },
                    2,
                )
            yield ARTEFACT, f"    {text}"

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
    return native_metrics(metrics, grader), native_config(
        dataset.shown, grader, summary.max_samples
    )


def native_metrics(metrics: Mapping[str, Any], grader: DeepFabric) -> dict[str, Any]:
    """Return the eight figures in the original's order, the overall score with the original's
    rounding.
    """
    names = (*FIGURES, "samples_evaluated", "samples_processed", "processing_errors")
    found = {name: metrics.get(name) for name in names}
    selection, parameters, execution, quality = (found[name] for name in FIGURES[:4])
    if None not in (selection, parameters, execution, quality) and found["samples_evaluated"]:
        rates: Any = (selection, parameters, execution, quality)
        found["overall_score"] = weighted(rates, grader.resolved_weights)
    return found


def native_config(
    dataset: str, grader: DeepFabric, max_samples: int | None = None
) -> dict[str, Any]:
    """Return the configuration in the keys of the version that is followed.

    ``documented`` adds its own options.
    """
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
    head, mark, tail = render({"metrics": metrics, "predictions": [], "config": config}).partition(
        '"predictions": ['
    )
    return head + mark, tail

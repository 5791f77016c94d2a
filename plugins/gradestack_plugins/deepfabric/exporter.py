"""native/deepfabric.json, the original's result file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import BadRecord, Exporter, ExportSummary, Grade, Sample, Shard
from gradestack_plugins.deepfabric.aggregators import FIGURES
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.predictions import Prediction, prediction, render, written
from gradestack_plugins.deepfabric.versions import OLD
from gradestack_plugins.deepfabric.weights import METRICS, as_numbers, weighted

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
                text = written(attrs.evolve(found, expected_parameters={}, predicted_parameters={}, error=TOO_DEEP))
            yield ARTEFACT, text

    @override
    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        return _frame(*_figures(summary), empty=False)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        if any(summary.graders["deepfabric"].states.values()):
            return {}
        return {ARTEFACT: "".join(_frame(*_figures(summary), empty=True))}


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


def _frame(metrics: Mapping[str, Any], config: Mapping[str, Any], *, empty: bool) -> tuple[str, str]:
    head = f'{{\n  "metrics": {render(metrics, 1)},\n  "predictions": ['
    tail = f'],\n  "config": {render(config, 1)}\n}}'
    return (head, tail) if empty else (f"{head}\n", f"\n  {tail}")


def document(metrics: Mapping[str, Any], config: Mapping[str, Any], records: Sequence[Prediction]) -> str:
    """Return a whole result file."""
    head, tail = _frame(metrics, config, empty=not records)
    return head + DeepFabricExporter.separator.join(map(written, records)) + tail

"""``native/stability.json``: the evaluation suite's stability metrics file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Exporter, ExportSummary, read_records
from gradestack_plugins.stability.aggregators import PER_GOLD, RATES
from gradestack_plugins.stability.reader import kind_of, sweep_name, uuid_of

_COUNTS = ("n_items_total", "n_items_processed", "coverage")
_ADDED = (
    "n_items_without_runs",
    "n_items_without_gold",
    "n_items_unknown_gold",
    "n_items_outside_dataset",
    "n_runs_expected",
    "n_runs_recorded",
    "n_runs_missing",
)


def metrics_block(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics in the suite's order; empty when there are none."""
    if "stability_at_k" not in found:
        return {}
    per_gold = [f"{name}_gold_{label}" for label in found["gold_labels"] for name in PER_GOLD]
    return {name: found[name] for name in (*_COUNTS, *RATES, *per_gold)}


def heading(record: Mapping[str, Any], stem: str) -> dict[str, Any]:
    """Return what stands before the metrics: name, number of runs, temperatures and, for scoring, the delimiter."""
    kind, temperature = kind_of(record), record.get("temperature")
    found: dict[str, Any] = {"exp_name": sweep_name(record, stem), "n_runs": record.get("n_runs")}
    if kind == "llm_judge":
        return {**found, "target_temperature": temperature, "judge_temperature": record.get("judge_temperature", 0.0)}
    found["temperature"] = temperature
    if kind == "mcq_logprob":
        found["forced_delimiter"] = record.get("forced_delimiter")
    return found


@attrs.frozen(kw_only=True)
class StabilityExporter(Exporter):
    """Writes ``{exp_name, n_runs, temperature, metrics}`` as the suite does after a sweep.

    In ``documented`` a last key ``gradestack`` holds counts the suite does not have: tasks without runs, without or
    with an unknown gold label, outside the dataset; runs expected, recorded and missing.
    """

    reader = "stability"
    graders = ("stability_label",)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        found = summary.graders["stability_label"].aggregates.get("stability")
        if found is None:
            return {}
        # the suite has one experiment per file, that of its first usable record
        first: Mapping[str, Any] = next(
            (raw.value for raw in read_records(summary.input) if uuid_of(raw.value) is not None), {}
        )
        document = heading(first, summary.input.path.stem)
        document["metrics"] = metrics_block(found)
        if summary.profile == "documented":
            document["gradestack"] = {name: found[name] for name in _ADDED}
        return {"stability.json": json.dumps(document, indent=2)}

"""The evaluation suite's metrics file, with the document's figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from gradestack import Exporter, ExportSummary, read_records
from gradestack_plugins.readers.joined import uuid_of
from gradestack_plugins.stability.aggregators import MEANS
from gradestack_plugins.stability.program import METRICS_PER_GOLD, head_document

_SUITE_COUNTS = ("n_items_total", "n_items_processed", "coverage")
_OWN_COUNTS = (
    "n_items_without_runs",
    "n_items_without_gold",
    "n_items_unknown_gold",
    "n_items_outside_dataset",
    "n_runs_expected",
    "n_runs_recorded",
    "n_runs_missing",
)


class StabilityExporter(Exporter):
    """Writes ``{exp_name, n_runs, temperature, metrics}`` as the suite does after a sweep.

    A last key ``gradestack`` holds counts the suite does not have: tasks without runs, without or
    with an unknown gold label, outside the dataset; runs expected, recorded and missing.
    """

    reader = "stability"
    graders = ("stability_label",)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        stability_label = summary.graders["stability_label"]
        figures = stability_label.aggregates.get("stability")
        if figures is None:
            return {}
        records = read_records(summary.input)
        values = (element.value for element in records)
        first: Mapping[str, Any] = next((value for value in values if uuid_of(value)), {})
        document = head_document(first, summary.input.path.stem)
        tasks_by_k = figures["tasks_by_k"]
        n_runs = document["n_runs"]
        document["n_runs"] = max(map(int, tasks_by_k), default=n_runs)
        names = [*_SUITE_COUNTS, *MEANS]
        for label in figures["gold_labels"]:
            names += [f"{name}_gold_{label}" for name in METRICS_PER_GOLD]
        document["metrics"] = {name: figures[name] for name in names}
        document["gradestack"] = {name: figures[name] for name in _OWN_COUNTS}
        return {"stability.json": json.dumps(document, indent=2)}

"""Stability as the When2Call evaluation suite computes it after a sweep.

Records are those of the suite's checkpoint: one per item, with the labels of its runs and, where
the suite has been here before, fields derived of them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from typing_extensions import override

from gradestack import (
    Input,
    Program,
    ProgramFigure,
    ProgramInput,
    ProgramRun,
    read_records,
)
from gradestack.jsonio import as_list, as_text
from gradestack_plugins.readers.joined import LABELS, uuid_of

FLOATS = (
    "consistency",
    "mean_accuracy_across_runs",
    "entropy",
    "normalized_entropy",
    "flip_rate",
)
FLAGS = ("is_stable", "is_mode_correct", "is_stable_and_correct", "is_stable_but_wrong")
"""Derived fields of a record."""

METRICS = {
    "stability_at_k": "is_stable",
    "mean_consistency_at_k": "consistency",
    "stable_and_correct_rate": "is_stable_and_correct",
    "stable_but_wrong_rate": "is_stable_but_wrong",
    "mode_correct_rate": "is_mode_correct",
    "mean_accuracy_across_runs": "mean_accuracy_across_runs",
    "mean_entropy": "entropy",
    "mean_normalized_entropy": "normalized_entropy",
    "mean_flip_rate": "flip_rate",
}
"""Metric -> derived field it is the mean of, in the order of the file."""

METRICS_PER_GOLD = (
    "stability_at_k",
    "mean_consistency_at_k",
    "mean_entropy",
    "mean_normalized_entropy",
    "mean_flip_rate",
    "mean_accuracy_across_runs",
    "mode_correct_rate",
)

LARGEST = 1e100
"""Sums of many figures of this size stay finite."""


def derive_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the derived fields of a record; those it already has are trusted.

    Raises:
        ValueError, TypeError, OverflowError: The program skips the record.
    """
    n_runs = int(record.get("n_runs") or 0)
    trusted: dict[str, Any] = {name: float(record[name]) for name in FLOATS if name in record}
    trusted |= {name: bool(record[name]) for name in FLAGS if name in record}
    if record.get("gold_label") not in LABELS:
        return trusted  # counted as processed, nothing else is looked at
    run_labels = as_list(record.get("run_labels"))
    computed: dict[str, Any] = dict.fromkeys(FLOATS + FLAGS, 0.0)
    if run_labels:
        computed = compute_fields(record, run_labels, n_runs, trusted)
    derived = computed | trusted
    if not all(abs(derived[name]) <= LARGEST for name in FLOATS):
        # the program writes NaN, which is no JSON, and lets one record spoil every mean
        raise ValueError("a derived field is not finite")
    return derived


def compute_fields(
    record: Mapping[str, Any], run_labels: Sequence[Any], n_runs: int, trusted: Mapping[str, Any]
) -> dict[str, Any]:
    """Compute the derived fields of the runs, with those that are trusted where one needs another.

    ``invalid`` and null are labels like any other.
    """
    gold = record["gold_label"]
    n_recorded = len(run_labels)
    k = n_runs if n_runs > 0 else n_recorded
    counts = Counter(run_labels)
    mode_label, mode_count = counts.most_common(1)[0]
    if "mode_label" in record and "mode_count" in record:
        mode_label = record["mode_label"]
        mode_count = int(record["mode_count"] or 0)
    is_stable = trusted.get("is_stable", mode_count == k)
    is_mode_correct = trusted.get("is_mode_correct", mode_label == gold)
    entropy = 0.0
    for count in counts.values():
        p = count / float(n_recorded)
        entropy -= p * math.log2(p)
    normalized_entropy = trusted.get("entropy", entropy) / math.log2(len(LABELS))
    n_flips = sum(label != before for before, label in pairwise(run_labels))
    flip_rate = 0.0
    if n_recorded > 1:
        flip_rate = n_flips / float(n_recorded - 1)
    is_stable_and_correct = is_stable and is_mode_correct
    is_stable_but_wrong = is_stable and not is_mode_correct
    computed = {
        "is_stable": is_stable,
        "is_mode_correct": is_mode_correct,
        "is_stable_and_correct": is_stable_and_correct,
        "is_stable_but_wrong": is_stable_but_wrong,
        "mean_accuracy_across_runs": counts[gold] / float(n_recorded),
        "entropy": entropy,
        "normalized_entropy": normalized_entropy,
        "flip_rate": flip_rate,
    }
    if "consistency" not in trusted:
        computed["consistency"] = float(mode_count) / float(k)
    return computed


def mean_fields(
    records: list[dict[str, Any]], metrics: Iterable[str], n_items: int
) -> dict[str, float]:
    """Return sums over records by the number of items, 0.0 of none."""
    means = {}
    for metric in metrics:
        total = 0.0
        for derived in records:
            total += derived[METRICS[metric]]
        means[metric] = total / float(n_items) if n_items else 0.0
    return means


def aggregate_metrics(records: list[tuple[Any, dict[str, Any]]], n_items: int) -> dict[str, float]:
    """Return the metrics of a sweep.

    Sums run over every record, also of items that were not asked for.

    Args:
        records: Gold label and derived fields of every record that has a gold label.
        n_items: How many items were asked for.
    """
    if not n_items:
        return {}
    known = [derived for gold, derived in records if gold in LABELS]
    coverage = len(records) / float(n_items)
    n_items_processed = float(len(records))
    metrics = {
        "n_items_total": float(n_items),
        "n_items_processed": n_items_processed,
        "coverage": coverage,
        **mean_fields(known, METRICS, n_items),
    }
    for label in LABELS:
        of_label = [derived for gold, derived in records if gold == label]
        means = mean_fields(of_label, METRICS_PER_GOLD, len(of_label))
        metrics |= {f"{metric}_gold_{label}": mean for metric, mean in means.items()}
    return metrics


def kind_of(record: Mapping[str, Any]) -> str:
    """Return the evaluation method: as the record says, else by the fields it has."""
    eval_type = record.get("eval_type")
    name = str(eval_type or record.get("ckpt_name") or "").lower()
    if "judge" in name or (not name and "run_judge_raw_outputs" in record):
        return "llm_judge"
    return "mcq_logprob" if "logprob" in name else "mcq"


def name_sweep(record: Mapping[str, Any], stem: str) -> str:
    """Return the name of the sweep a record belongs to; the file's where it does not say."""
    if name := as_text(record.get("ckpt_name")):
        return name
    k = record.get("n_runs")
    temperature = record.get("temperature")
    if k is None or temperature is None:
        return stem
    kind = kind_of(record)
    mark = "Ttarget" if kind == "llm_judge" else "T"
    return f"{kind}_stability_k={k}_{mark}={temperature}"


def head_document(record: Mapping[str, Any], stem: str) -> dict[str, Any]:
    """Return the head of a sweep's file: its name, number of runs, and temperatures."""
    kind = kind_of(record)
    temperature = record.get("temperature")
    exp_name = name_sweep(record, stem)
    n_runs = record.get("n_runs")
    head: dict[str, Any] = {"exp_name": exp_name, "n_runs": n_runs}
    if kind == "llm_judge":
        head["target_temperature"] = temperature
        head["judge_temperature"] = record.get("judge_temperature", 0.0)
        return head
    head["temperature"] = temperature
    if kind == "mcq_logprob":
        head["forced_delimiter"] = record.get("forced_delimiter")
    return head


def is_item(row: Any) -> bool:
    """Return whether a row of the dataset can be loaded; the program ends at one that cannot."""
    if not isinstance(row, dict) or isinstance(row.get("uuid", []), list | dict):
        return False
    correct_answer = row.get("correct_answer")
    return correct_answer in (None, *LABELS)


def stability_document(
    records: Iterable[Any],
    rows: Iterable[Any] | None = None,
    stem: str = "",
    max_items: int | None = None,
) -> dict[str, Any]:
    """Return the content of a sweep's metrics file.

    Args:
        records: Of the checkpoint; the last one of a uuid counts, in the place of the first.
        rows: Of the dataset, which are the items asked for; without one, those with a record.
        stem: Name of the file without its ending.
        max_items: How many items to keep at most.
    """
    first: Mapping[str, Any] = {}
    checkpoint: dict[str, Any] = {}
    for record in records:
        if uuid := uuid_of(record):
            first = first or record
            checkpoint[uuid] = record
    derived: list[tuple[Any, dict[str, Any]]] = []
    n_items = 0
    for record in list(checkpoint.values())[:max_items]:
        try:
            fields = derive_fields(record)
        except (TypeError, ValueError, OverflowError):
            continue
        n_items += 1
        if "gold_label" in record:
            derived.append((record["gold_label"], fields))
    if rows is not None:
        n_items = len([row for row in rows if is_item(row)][:max_items])
    document = head_document(first, stem)
    document["metrics"] = aggregate_metrics(derived, n_items)
    return document


WHY = {
    "coverage": "the program counts records outside the dataset, too",
    "mean_accuracy_across_runs": "the program divides by all items, and by the runs recorded",
    "mean_normalized_entropy": "the program divides by all items, and always by log2 4",
    "mean_flip_rate": "the program divides by all items, and gives a single run 0",
}
WHY_ANY_MEAN = "the program divides by all items of the dataset, not by those with runs"


class StabilityProgram(Program):
    """The metrics file of a sweep as the When2Call evaluation suite writes it.

    A broken line of the checkpoint, which ends the program, is skipped.
    """

    reader = "stability"
    title = "the When2Call evaluation suite"

    @override
    def run(self, program_input: ProgramInput) -> ProgramRun:
        if program_input.dataset is None:
            rows = None
        else:
            rows = read_values(program_input.dataset)
        records = read_values(program_input.input)
        stem = program_input.input.path.stem
        document = stability_document(
            records,
            rows,
            stem,
            program_input.max_samples,
        )
        graders = program_input.graders.items()
        key = next((key for key, grader in graders if "stability" in grader.metrics), None)
        metrics = document["metrics"]
        figures = tuple(
            ProgramFigure(
                label=name,
                value=metrics.get(name),
                figure=f"{key}.stability.{name}" if key else "",
                why=WHY.get(name, WHY_ANY_MEAN),
            )
            for name in ("coverage", *METRICS)
        )
        text = json.dumps(document, indent=2)
        return ProgramRun(files={"stability.json": text}, figures=figures)


def read_values(file: Input) -> Iterator[Any]:
    """Yield the JSON values of a file; None for a line that is none."""
    return (element.value for element in read_records(file))

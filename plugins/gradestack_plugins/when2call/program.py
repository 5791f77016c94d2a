"""When2Call's evaluation suite, ported: the metrics file that it writes of one prediction file.

It scores dataset rows. A row without a prediction, or whose prediction is none of the four labels,
is scored as ``cannot_answer``, which is right where that is the gold label.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from typing_extensions import override

from gradestack import (
    BadRecord,
    Inputs,
    Program,
    ProgramFigure,
    ProgramInput,
    ProgramRun,
    Sample,
    Status,
    native_of,
    ratio,
)
from gradestack_plugins.readers.joined import LABELS
from gradestack_plugins.when2call.aggregators import RATES, When2Call, metrics_document
from gradestack_plugins.when2call.reader import (
    SINGLE,
    VARIANTS,
    Method,
    When2CallRecord,
    judge_label,
)

FALLBACK = "cannot_answer"
"""Stands in place of a label that is missing or none of the four."""
_FIGURES = {
    "classification": ("accuracy", "macro_f1", "macro_f1_no_direct"),
    "hallucination": tuple(f"{rate}_hallucination_rate" for rate in RATES),
}
"""Aggregator that has ours -> metrics."""
_WHY = (
    "over all dataset rows: one without a prediction, or with a label that is none of the four, "
    "is scored as cannot_answer"
)


class ScoredRow(NamedTuple):
    """One dataset row and what was predicted for it."""

    gold: str
    has_no_tools: bool
    labels: Mapping[str, str | None]
    """Prediction set -> label; empty where there is no prediction."""


def score_samples(
    samples: Iterable[Sample | BadRecord], method: Method, grader: When2Call
) -> dict[str, Any]:
    """Return the metrics file of predictions.

    Args:
        method: The evaluation method of the file.
        samples: The dataset's rows with their predictions as recorded, and predictions of no row.
        grader: The grader whose journal holds labels of answers without one.
    """
    rows = list[ScoredRow]()
    uuids = set[str]()
    counts = Counter[str]()
    for sample in samples:
        if isinstance(sample, BadRecord):
            rows += row_with_odd_uuid(sample.native)
            continue
        native = native_of(sample, When2CallRecord)
        if native is not None and sample.id not in uuids:  # a record counts once, not its rows
            counts.update(native.counts)
            uuids.add(sample.id)
        labels = {
            name.removeprefix("label").strip(): sample.recorded[name] for name in sample.recorded
        }
        if sample.status is Status.OK and not labels:
            labels = judged_label(sample, grader)
            if not labels:
                continue  # the suite would ask its judge at once
            counts["judge_fallback_to_cannot_answer"] += FALLBACK in labels
        if sample.expected.label is not None:
            scored_row = ScoredRow(sample.expected.label, sample.tools == (), labels)
            rows.append(scored_row)
    sets = VARIANTS if method == "mcq_logprob" else (SINGLE,)
    metrics = {name: compute_metrics(rows, name) for name in sets}
    return metrics_document(method, metrics, counts, rate_of_nothing=0.0)


def row_with_odd_uuid(row: Any) -> list[ScoredRow]:
    """Return a dataset row whose uuid is a number, null or empty: no prediction can have it.

    The suite stops at any other row that it cannot use; here that row is left out.
    """
    if not isinstance(row, dict) or "question" not in row or "uuid" not in row:
        return []
    gold = row.get("correct_answer")
    if gold not in LABELS or isinstance(row["uuid"], list | dict):
        return []
    tools = row.get("tools")
    return [ScoredRow(gold, not tools, {})]


def judged_label(sample: Sample, grader: When2Call) -> dict[str, str | None]:
    """Return the label of the judge's reply on record, the fallback where it names none."""
    requests = grader.requests(sample)
    keys = [request.key for request in requests]
    for reply in grader.journal.replies(keys):
        if reply is not None:
            label = judge_label(reply.content or "")
            return {SINGLE: label} if label else {SINGLE: FALLBACK, FALLBACK: None}
    return {}


def compute_metrics(rows: Sequence[ScoredRow], prediction_set: str = SINGLE) -> dict[str, Any]:
    """Return the suite's metrics of one prediction set."""
    confusion = {gold: dict.fromkeys(LABELS, 0) for gold in LABELS}
    n_missing = n_invalid = n_without_tools = n_called_without_tools = 0
    for row in rows:
        label = row.labels.get(prediction_set)
        if label is None:
            n_missing += 1
        if label not in LABELS:
            n_invalid += 1  # a missing one, too
            label = FALLBACK
        confusion[row.gold][label] += 1
        if row.gold == "cannot_answer" and row.has_no_tools:
            n_without_tools += 1
            n_called_without_tools += label == "tool_call"
    n_total = len(rows)
    n_correct = sum(confusion[label][label] for label in LABELS)
    golds = LABELS[1:]
    n_wrongly_direct = sum(confusion[gold]["direct"] for gold in golds)
    accuracy = n_correct / n_total if n_total else 0.0
    f1 = {label: f1_score(confusion, label) for label in LABELS}
    macro_f1 = mean_in_order(f1.values())
    labels = LABELS[1:]
    macro_f1_no_direct = mean_in_order([f1[label] for label in labels])
    support = {gold: sum(cells.values()) for gold, cells in confusion.items()}
    tool_rate = ratio(n_called_without_tools, n_without_tools)
    answer_rate = ratio(n_wrongly_direct, n_total)
    tool_call = confusion["request_for_info"]["tool_call"]
    parameter_rate = ratio(tool_call, support["request_for_info"])
    return {
        "accuracy": accuracy,
        "macro_f1": macro_f1,
        "macro_f1_no_direct": macro_f1_no_direct,
        "per_class_f1": f1,
        "per_class_support": support,
        "confusion_matrix": confusion,
        "tool_hallucination_rate": tool_rate,
        "answer_hallucination_rate": answer_rate,
        "parameter_hallucination_rate": parameter_rate,
        "n_total": n_total,
        "n_missing_uuid": n_missing,
        "n_invalid_label": n_invalid,
        "n_converted_to_cannot_answer": n_invalid,
    }


def f1_score(confusion: Mapping[str, Mapping[str, int]], label: str) -> float:
    """Return the F1 of a class, 0.0 where a denominator is 0."""
    hits = confusion[label][label]
    predicted = sum(cells[label] for cells in confusion.values())
    support = sum(confusion[label].values())
    precision = hits / predicted if predicted else 0.0
    recall = hits / support if support else 0.0
    total = precision + recall
    if total:
        return 2 * precision * recall / total
    return 0.0


def mean_in_order(values: Collection[float]) -> float:
    """Return a mean, summed left to right: the built-in sum compensates from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values)


class When2CallProgram(Program):
    """The evaluation suite's scoring of recorded predictions: ``native/when2call.json``."""

    reader = "when2call"
    title = "When2Call's evaluation suite"

    @override
    def run(self, program_input: ProgramInput) -> ProgramRun:
        inputs = Inputs(data=(program_input.input,), dataset=program_input.dataset)
        index = program_input.reader.index(inputs)
        shards = program_input.reader.plan(inputs, index)
        samples = (sample for shard in shards for sample in program_input.reader.read(shard, index))
        graders = [
            (key, grader)
            for key, grader in program_input.graders.items()
            if isinstance(grader, When2Call)
        ]
        key, grader = graders[0] if graders else ("", When2Call())
        method = index.files[program_input.input.name].method
        document = score_samples(islice(samples, program_input.max_samples), method, grader)
        metrics = document["metrics"]
        metrics = metrics.get(grader.variant, metrics)
        figures = []
        for aggregator, names in _FIGURES.items() if key else ():
            for name in names:
                ours = f"{key}.{aggregator}.{name}"
                value = metrics[name]
                program_figure = ProgramFigure(label=name, value=value, figure=ours, why=_WHY)
                figures.append(program_figure)
        text = json.dumps(document, indent=2)
        files = {"when2call.json": text}
        return ProgramRun(files=files, figures=tuple(figures))

"""Grader of the label of one run."""

from __future__ import annotations

from typing import Any

import attrs
from typing_extensions import override

from gradestack import (
    Fault,
    Grade,
    Grader,
    Outcome,
    Profile,
    Reason,
    Sample,
    Status,
    failed,
    native_of,
    replace,
    skipped,
)
from gradestack_plugins.stability.reader import INVALID, LABELS, StabilityRun

_LABEL_SET = {"labels": list(LABELS)}


@attrs.frozen(kw_only=True)
class StabilityLabel(Grader):
    """Compares the label of one run with the gold label: score 1.0 when equal, 0.0 otherwise.

    The aggregator ``stability`` folds the labels of a task's runs; the mean score over runs is the mean accuracy across
    runs when every task has as many. The first run of a record carries what the record says of itself: the runs asked
    for and, in ``upstream``, the derived fields that are trusted.

    Differences between the profiles:

    - a label outside the four is ``invalid`` in ``documented`` and a value of its own in ``upstream``
    - a null label is a missing run in ``documented`` and a value like any other in ``upstream``
    - a gold label outside the four is a failure in ``documented``; ``upstream`` counts the task as processed and adds
      nothing for it

    Samples of other formats are graded by their ``label`` and expected label, whatever the label set.
    """

    needs = frozenset({"label", "expected", "native"})
    handles = frozenset({Status.OK, Status.MISSING})
    aggregators = ("mean", "stability")
    words = ("correct", "wrong")
    native = StabilityRun

    profile: Profile = "documented"

    @override
    def grade(self, sample: Sample) -> Grade:
        native = native_of(sample, StabilityRun)
        grade = self._grade(sample, native)
        if native is None:
            return grade
        about: dict[str, Any] = {"label_json": native.label.json}
        if native.first:
            about = {"label_set": _LABEL_SET, "n_runs": native.n_runs, "derived": native.derived, **about}
        rows = native.dataset_rows if native.first else None
        metadata = {name: value for name, value in about.items() if value is not None} | {**grade.metadata}
        return replace(grade, metadata=metadata, counts={} if rows is None else {"dataset_rows": rows})

    def _grade(self, sample: Sample, native: StabilityRun | None) -> Grade:
        gold = sample.expected.label
        if sample.status is Status.MISSING:
            return Grade(outcome=Outcome.MISSING, gold=gold, rationale="this run was not recorded")
        label = sample.label
        if label is None and (native is None or native.label.json is None):
            return skipped("no_label", "the run has no label")
        documented = native is not None and self.profile == "documented"
        if documented and label not in LABELS:
            label = INVALID
        if gold is None:
            return replace(skipped("no_gold_label", "no gold label: give the dataset (--dataset)"), label=label)
        if documented and gold not in LABELS:
            message = f"gold label {gold!r} is none of {', '.join(LABELS)}"
            fault = Fault(category="data", code="unknown_gold", message=message)
            return replace(failed(fault), label=label, gold=gold)
        if label == gold:
            return Grade(score=1.0, label=label, gold=gold)
        reason = Reason(code="wrong_label", expected=gold, actual=label)
        return Grade(score=0.0, label=label, gold=gold, reasons=(reason,), rationale=reason.code)

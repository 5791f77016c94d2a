"""Remarks on samples, counted while they are graded: what console and summary say of a run."""

from __future__ import annotations

from collections.abc import Sequence

from gradestack.grading.merging import ShardResult
from gradestack.grading.plan import Plan
from gradestack.model import (
    IMPOSSIBLE_AMOUNT,
    Grade,
    Sample,
    Status,
    failed_verdict,
    impossible_amounts,
)

TO_COMPARE = "to compare: --"
"""In a kind of remark on expectations that no grader reads.

Before the options with which one would.
"""
ERROR_COUNTS = "run_ended_in_an_error_and_counts"
"""Kind of remark on a run that ended in an error and has a verdict all the same."""
FAILED_ON_RECORD = "recorded as failed"
"""How a remark begins on a run with a recorded verdict that no grader reads."""
_FOR_VERDICTS = "is read by no grader of this run; to grade by it, --stack recorded"


def count_remarks(
    result: ShardResult, plan: Plan, samples: Sequence[Sample], grades: Sequence[Grade]
) -> None:
    """Count what a shard's summary says of samples, given the grades of the main grader.

    What readers remarked, amounts that cannot be any, runs that count although they ended in an
    error, failures on record and expectations that no grader reads, and forms of ids.
    """
    reads_verdicts = plan.reads_verdicts
    for sample in samples:
        for kind, times in sample.remarks.items():
            _remark(result, kind, sample, times)
        if sample.agent_usage is not None:
            _count_impossible_amounts(result, sample)
        if sample.recorded and not reads_verdicts:
            _count_failed_verdict(result, sample)
        if sample.id.isdecimal() and sample.status is not Status.MISSING:
            _note_form_of_id(result, sample)
    for sample, grade in zip(samples, grades, strict=False):
        if sample.status is Status.FAILED and grade.score is not None:
            _remark(result, ERROR_COUNTS, sample)
    for kind, grader in plan.unused.items():
        _count_unused(result, kind, grader, samples)


def _count_impossible_amounts(result: ShardResult, sample: Sample) -> None:
    amounts = impossible_amounts(sample.agent_usage)
    if amounts:
        _remark(result, IMPOSSIBLE_AMOUNT, sample, amounts)


def _count_failed_verdict(result: ShardResult, sample: Sample) -> None:
    """Count a run that is a failure by a recorded verdict, by its name."""
    name = failed_verdict(sample.recorded)
    if name is not None:
        _remark(result, f"{FAILED_ON_RECORD}: {name} {_FOR_VERDICTS}", sample)


def _count_unused(result: ShardResult, kind: str, grader: str, samples: Sequence[Sample]) -> None:
    """Count expectations of a kind that no grader reads, with the grader that would."""
    unused = f"expected {kind}: read by no grader of this run, in no figure"
    for sample in samples:
        expected = sample.expected
        is_given = getattr(expected, kind) is not None
        if is_given and (kind != "label" or expected.text is None):  # one word is both
            _remark(result, f"{unused}; {TO_COMPARE}grader {grader}", sample)


def _note_form_of_id(result: ShardResult, sample: Sample) -> None:
    """Note how a whole number that is an id was recorded, where it is the first of its form."""
    source = sample.source
    form = "number" if source and source.id is not None else "text"
    if form not in result.ids:
        result.ids[form] = f"{source or sample.id}"


def _remark(result: ShardResult, kind: str, sample: Sample, times: int = 1) -> None:
    result.add_remark(kind, times, f"{sample.source or sample.id}")

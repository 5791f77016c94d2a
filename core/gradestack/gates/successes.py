"""Successes: how many samples pass, by the outcome grader and by the rule of a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradestack.api import Direction
from gradestack.gates.rules import OPERATORS, Op
from gradestack.grades import Grades
from gradestack.grading.plan import Success
from gradestack.intervals import Cell, ratio_interval
from gradestack.metrics.counts import Count
from gradestack.model import JSON
from gradestack.table import Table


def grader_figures(count: Count) -> dict[str, JSON]:
    """Return one grader's figures.

    Attempted means graded, and skipped samples are in ``total`` alone.
    """
    graded, passed = count.graded, count.passed
    required = graded + count.lost - count.unreadable
    total_score = count.sum
    failed = graded - passed
    pass_rate = 100.0 * passed / graded if graded else None
    avg_score_attempted = float(total_score / graded) if graded else None
    avg_score_total = float(total_score / required) if required else None
    return {
        "total": sum(count.states.values()),
        "total_attempted": graded,
        "avg_score_attempted": avg_score_attempted,
        "avg_score_total": avg_score_total,
        "passed_attempts": passed,
        "failed_attempts": failed,
        "pass_rate": pass_rate,
    }


def successes(table: Table, success: Success, rows: Sequence[int] | None = None) -> dict[str, Any]:
    """Count the samples that are successes by the outcome grader, in all and by model.

    ``own_verdicts`` is the number of samples with a verdict of the grader's own.
    """
    key = success.grader
    values: list[dict[str, int] | None] = []
    for grade in table.grades(key):
        passed = success.passed(grade)
        values.append(None if passed is None else {"passed": int(passed)})
    verdict = table.verdicts[key]
    grades = Grades(table, key, rows, (values, verdict.codes))
    every, models = grades.sums("", "passed")
    own_verdicts = 0
    for grade, times in grades.counted:
        if grade.score is not None and grade.passed is not None:
            own_verdicts += times
    by_model = {name: _counts(counts) for name, counts in models.items()}
    return {**_counts(every), "own_verdicts": own_verdicts, "models": by_model}


def _counts(tasks: Mapping[Cell, int]) -> dict[str, JSON]:
    """Add up tasks (runs, passed) into counts and the share that passed, with its interval."""
    runs = passed = 0
    for cell, times in tasks.items():
        number = int(cell[0])
        runs += number * times
        passed += int(cell[1]) * times
    share = passed / runs if runs else None
    interval = {**ratio_interval(tasks)}
    failed = runs - passed
    return {"passed": passed, "failed": failed, "share": share, "share_interval": interval}


def rule_text(grader: str, rule: Any, better: Direction = "higher") -> str:
    """Return a rule for one score as people read it: ``quality score >= 0.75``."""
    op: Op = "lte" if better == "lower" else "gte"
    threshold = 0.0 if better == "lower" else 1.0
    if rule is not None:
        op, threshold = rule.sample_rule
    sign, _ = OPERATORS[op]
    return f"{grader} score {sign} {threshold:.15g}"


def verdict_text(success: Success, graded: int, own_verdicts: int) -> str:
    """Return the rule that decided on success, as people read it."""
    has_rule = success.better != "neither"
    rule = rule_text(success.grader, success.rule, success.better)
    if success.rule is not None or (has_rule and not own_verdicts):
        return rule
    verdict = f"passed by grader {success.grader}"
    if own_verdicts == graded or not has_rule:
        return verdict
    return f"{verdict}, without a verdict {rule}"

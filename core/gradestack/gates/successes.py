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
    total, graded = sum(count.states.values()), count.graded
    counted = graded + count.lost - count.unreadable
    mean = float(count.sum / graded) if graded else None
    over_all = float(count.sum / counted) if counted else None
    return {
        "total": total,
        "total_attempted": graded,
        "avg_score_attempted": mean,
        "avg_score_total": over_all,
        "passed_attempts": count.passed,
        "failed_attempts": graded - count.passed,
        "pass_rate": 100.0 * count.passed / graded if graded else None,
    }


def successes(table: Table, success: Success, rows: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how many samples the outcome grader's verdict calls a success, the interval of their
    share, by model, too.

    ``own_verdicts`` is how many samples have a verdict of the grader's own.
    """
    verdicts = [success.passed(grade) for grade in table.grades(success.grader)]
    values = [None if passed is None else {"passed": int(passed)} for passed in verdicts]
    grades = Grades(table, success.grader, rows, (values, table.verdicts[success.grader].codes))
    every, models = grades.sums("", "passed")
    own = [times for grade, times in grades.counted if None not in (grade.score, grade.passed)]
    return {
        **_counts(every),
        "own_verdicts": sum(own),
        "models": {name: _counts(cells) for name, cells in models.items()},
    }


def _counts(tasks: Mapping[Cell, int]) -> dict[str, JSON]:
    of = sum(int(cell[0]) * times for cell, times in tasks.items())
    passed = sum(int(cell[1]) * times for cell, times in tasks.items())
    share = passed / of if of else None
    return {
        "passed": passed,
        "failed": of - passed,
        "share": share,
        "share_interval": {**ratio_interval(tasks)},
    }


def rule_text(grader: str, rule: Any, better: Direction = "higher") -> str:
    """Return a rule for one score as people read it: ``quality score >= 0.75``."""
    op: Op = "lte" if better == "lower" else "gte"
    threshold = 0.0 if better == "lower" else 1.0
    if rule is not None:
        op, threshold = rule.sample_rule
    sign, _ = OPERATORS[op]
    return f"{grader} score {sign} {threshold:.15g}"


def verdict_text(success: Success, graded: int, own: int) -> str:
    """Return what decided on success, as people read it."""
    rule = rule_text(success.grader, success.rule, success.better)
    verdict = f"passed by grader {success.grader}"
    if success.rule is not None or (not own and success.better != "neither"):
        return rule
    is_alone = own == graded or success.better == "neither"
    return verdict if is_alone else f"{verdict}, without a verdict {rule}"

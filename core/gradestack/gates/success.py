"""Successes: how many samples pass by the run's outcome grader, and the interval of their share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradestack.api import Direction
from gradestack.estimates.grades import Grades
from gradestack.gates.rules import OPERATORS, GateSpec, SimpleGate
from gradestack.grading.counts import SampleRule
from gradestack.model import JSON
from gradestack.rows.success import Success
from gradestack.table import Table


def successes(table: Table, success: Success, rows: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how many samples the outcome grader's verdict calls a success, and the interval of their share.

    Returns:
        ``passed``, ``failed``, ``share``, ``share_interval``, ``own_verdicts``: how many samples have a verdict of the
        grader's own, and the same per model under ``models``.
    """
    verdicts = [success.passed(grade) for grade in table.grades(success.grader)]
    values = [None if passed is None else {"passed": int(passed)} for passed in verdicts]
    grades = Grades(table, success.grader, rows, (values, table.verdicts[success.grader].codes))
    sums = grades.sums("", "passed")
    figures = sums.figures(_share)
    models = figures.pop("models", None) or dict.fromkeys(sums.models, figures)
    own = sum(times for grade, times in grades.counted if grade.score is not None and grade.passed is not None)
    return {
        **_counts(sums.totals(), figures),
        "own_verdicts": own,
        "models": {name: _counts(sums.totals(name), each) for name, each in models.items()},
    }


def _share(samples: float, passed: float) -> dict[str, float | None]:
    return {"share": passed / samples if samples else None}


def _counts(totals: Mapping[str, Fraction], figures: Mapping[str, Any]) -> dict[str, JSON]:
    passed = int(totals["passed"])
    failed = int(totals[""]) - passed
    return {"passed": passed, "failed": failed, **{name: figures[name] for name in ("share", "share_interval")}}


def rule_text(grader: str, rule: SampleRule | None, better: Direction = "higher") -> str:
    """Return a rule for one score as people read it: ``quality score >= 0.75``."""
    sign, threshold = ("<=", 0.0) if better == "lower" else (">=", 1.0)
    if isinstance(rule, SimpleGate):
        threshold = rule.pass_threshold
    elif isinstance(rule, GateSpec) and not (rule.metric == "accuracy" and rule.pass_value is None):
        sign = OPERATORS[rule.pass_op or rule.op][0]
        threshold = rule.value if rule.pass_value is None else rule.pass_value
    return f"{grader} score {sign} {threshold:.15g}"


def verdict_text(success: Success, graded: int, own: int) -> str:
    """Return what decided on success, as people read it."""
    score = rule_text(success.grader, success.rule, success.better)
    verdict = f"verdict of {success.grader}"
    if success.rule is None and (own == graded > 0 or success.better == "neither"):
        return verdict
    return score if success.rule is not None or not own else f"{verdict}, where it has none {score}"

"""Successes, counted while grading: how many samples pass by the run's outcome grader, and how sure their share is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack.api import Aggregator, Memory
from gradestack.gates.rules import OPERATORS, GateSpec, SimpleGate
from gradestack.grading.counts import SampleRule
from gradestack.intervals.task_cells import CellsState, TaskCells
from gradestack.jsonio.lenient import as_map
from gradestack.model import JSON, Grade, Key
from gradestack.rows.success import Success

SUCCESSES = "(successes)"
"""Key of the count among a suite's metrics: not one a suite would give its own."""
_CELLS = TaskCells("samples", "passed")
_PASSED: list[float] = [1, 1]
_FAILED: list[float] = [1, 0]


class _State(TypedDict):
    """JSON state: verdicts the grader gave itself, and per model and task the samples graded and those that pass."""

    own: int
    cells: CellsState


@attrs.frozen(kw_only=True)
class SuccessCount(Aggregator[_State]):
    """Counts the samples the outcome grader graded by their verdict, per model, with the interval of their share."""

    version: ClassVar[str] = "2"
    memory: ClassVar[Memory] = "per_key"

    success: Success

    @override
    def start(self) -> _State:
        return {"own": 0, "cells": _CELLS.start()}

    @override
    def add(self, state: _State, key: Key, grade: Grade) -> _State:
        return self.add_many(state, (key,), (grade,))

    @override
    def add_many(self, state: _State, keys: Sequence[Key], grades: Sequence[Grade]) -> _State:
        graded = [
            (key, each.score, each.passed) for key, each in zip(keys, grades, strict=True) if each.score is not None
        ]
        state["own"] += sum([own is not None for _, _, own in graded])
        verdict = self.success.verdict
        cells = [_PASSED if verdict(score, own) else _FAILED for _, score, own in graded]
        _CELLS.add_many(state["cells"], [key for key, _, _ in graded], cells)
        return state

    @override
    def merge(self, left: _State, right: _State) -> _State:
        left["own"] += right["own"]
        _CELLS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: _State) -> Mapping[str, JSON]:
        cells = _CELLS.together(state["cells"])
        figures = cells.figures(_share)
        models = as_map(figures.get("models")) or dict.fromkeys(state["cells"], figures)
        return {
            **_counts(cells.totals(), figures),
            "own_verdicts": state["own"],
            "models": {name: _counts(cells.totals(name), each) for name, each in models.items()},
        }


def _share(samples: float, passed: float) -> dict[str, float | None]:
    return {"share": passed / samples if samples else None}


def _counts(totals: Mapping[str, Fraction], figures: Mapping[str, Any]) -> dict[str, JSON]:
    passed = int(totals["passed"])
    failed = int(totals["samples"]) - passed
    return {"passed": passed, "failed": failed, **{name: figures[name] for name in ("share", "share_interval")}}


def rule_text(grader: str, rule: SampleRule | None) -> str:
    """Return a rule for one score as people read it: ``quality score >= 0.75``."""
    sign, threshold = ">=", 1.0
    if isinstance(rule, SimpleGate):
        threshold = rule.pass_threshold
    elif isinstance(rule, GateSpec) and not (rule.metric == "accuracy" and rule.pass_value is None):
        sign = OPERATORS[rule.pass_op or rule.op][0]
        threshold = rule.value if rule.pass_value is None else rule.pass_value
    return f"{grader} score {sign} {threshold:.15g}"


def verdict_text(success: Success, graded: int, own: int) -> str:
    """Return what decided on success, as people read it.

    Args:
        success: What makes a sample a success.
        graded: Samples the outcome grader graded.
        own: On how many of them it gave a verdict of its own.
    """
    score = rule_text(success.grader, success.rule)
    if success.rule is not None or not own:
        return score
    verdict = f"verdict of {success.grader}"
    return verdict if own == graded else f"{verdict}, where it has none {score}"

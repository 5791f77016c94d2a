"""Successes, counted while grading: how many samples pass by the run's outcome grader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs
from typing_extensions import override

from gradestack.api import Aggregator
from gradestack.gates.rules import OPERATORS, GateSpec, SimpleGate
from gradestack.grading.counts import SampleRule
from gradestack.model import JSON, Grade, Key
from gradestack.rows.success import Success

SUCCESSES = "(successes)"
"""Key of the count among a suite's metrics: not one a suite would give its own."""
_State = dict[str, list[int]]
"""Model ("" without a name) -> samples that pass, samples that do not, verdicts the grader gave itself."""


@attrs.frozen(kw_only=True)
class SuccessCount(Aggregator[_State]):
    """Counts the samples the outcome grader graded by their verdict, per model."""

    success: Success

    @override
    def start(self) -> _State:
        return {}

    @override
    def add(self, state: _State, key: Key, grade: Grade) -> _State:
        return self.add_many(state, (key,), (grade,))

    @override
    def add_many(self, state: _State, keys: Sequence[Key], grades: Sequence[Grade]) -> _State:
        models = [key.model or "" for key in keys]
        scores, own = [each.score for each in grades], [each.passed for each in grades]
        for (model, score, verdict), times in Counter(zip(models, scores, own, strict=True)).items():
            counts = state.setdefault(model, [0, 0, 0])
            if score is not None:
                counts[0 if self.success.verdict(score, verdict) else 1] += times
                counts[2] += 0 if verdict is None else times
        return state

    @override
    def merge(self, left: _State, right: _State) -> _State:
        for model, more in right.items():
            counts = left.setdefault(model, [0, 0, 0])
            for place, number in enumerate(more):
                counts[place] += number
        return left

    @override
    def finish(self, state: _State) -> Mapping[str, JSON]:
        passed, failed, own = (sum(counts[place] for counts in state.values()) for place in range(3))
        models = {model: {"passed": counts[0], "failed": counts[1]} for model, counts in state.items()}
        return {"passed": passed, "failed": failed, "own_verdicts": own, "models": models}


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

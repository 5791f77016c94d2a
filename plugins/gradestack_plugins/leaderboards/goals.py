"""Goal completion of AppWorld: its aggregator and its stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Figure, Grades, ratio_interval, valid_confidence


@attrs.frozen(kw_only=True)
class GoalCompletion(Aggregator):
    """Share of the scenarios in which every task passed, in [0, 1].

        scenario_goal_completion = scenarios whose tasks all passed / scenarios

    The scenario of a task is its facet ``scenario``. A task without a grade is in no scenario. The
    interval takes scenarios as clusters. Of several models ``models`` holds the same for each.

    Source: the evaluator of appworld 0.1.3.
    """

    figures: ClassVar = (
        Figure(
            "scenario_goal_completion",
            "Scenario goal completion",
            about="scenarios whose tasks all passed / scenarios",
            divisor="scenarios",
            undefined="no task was graded",
        ),
    )

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the interval, between 0 and 1."""

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return ("scenario",)

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        scores: dict[str, dict[str, list[float]]] = {}
        for key, grade in grades:
            if grade.score is not None:
                scenario = str(key.facets.get("scenario", key.id))
                by_scenario = scores.setdefault(key.model or "", {})
                by_scenario.setdefault(scenario, []).append(grade.score)
        models = {model: self._figures(by_scenario) for model, by_scenario in scores.items()}
        if len(models) == 1:
            return next(iter(models.values()))
        pooled: dict[str, list[float]] = {}
        for model, by_scenario in scores.items():
            pooled |= {
                f"{model} {scenario}": own_scores for scenario, own_scores in by_scenario.items()
            }
        return {**self._figures(pooled), "models": models}

    def _figures(self, by_scenario: Mapping[str, list[float]]) -> dict[str, JSON]:
        """Compute the share of scenarios in which every goal was completed, with its interval."""
        completed = [min(scores) >= 1.0 for scores in by_scenario.values()]
        scenario_counts = Counter[tuple[float, ...]](
            (1.0, float(is_completed)) for is_completed in completed
        )
        count = len(completed)
        if not count:
            return {"scenarios": 0, "scenario_goal_completion": None}
        scenario_goal_completion = sum(completed) / count
        return {
            "scenarios": count,
            "scenario_goal_completion": scenario_goal_completion,
            "scenario_goal_completion_interval": {
                **ratio_interval(scenario_counts, confidence=self.confidence)
            },
        }


def appworld() -> dict[str, Any]:
    """Return the stack of AppWorld's reports: goal completion by task and by scenario."""
    figures = {
        "Task goal completion": "recorded.mean",
        "Scenario goal completion": "recorded.goals.scenario_goal_completion",
        "Requirements": "requirements.mean",
    }
    return {
        "graders": {
            "recorded": {"kind": "recorded", "metric": "success"},
            "requirements": {"kind": "recorded", "metric": "requirements"},
        },
        "outcome": "recorded",
        "metrics": {"goals": {"kind": "appworld_goals", "of": "recorded"}},
        "headline": {"figures": figures},
    }

"""Intervals of the figures of one model: a task is a scenario, all its trials and files are left out together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gradestack import JSON, Interval, Profile, estimate, interval
from gradestack_plugins.orchestrationbench.calls.decisions import CELLS, MATRIX
from gradestack_plugins.orchestrationbench.results.figures import FC_PARTS, MEANS, Figures, composed, file_figures
from gradestack_plugins.orchestrationbench.results.files import File

_COUNTS = (*MATRIX, *CELLS, "rejection_type_mismatch", "rejection_cases", "function_call_cases", "trials")
_VIEWS = ("reject", "fc")
_OF = "files of "
_DECIDED = tuple(f"{cell}_{view}" for view in _VIEWS for cell in ("true_positive", "false_positive", "false_negative"))
_CALLS = tuple(f"{_OF}{name}" for name in FC_PARTS)
_PLANS = (f"{_OF}workflow_evaluation_with_failure",)
_DIVISORS: Mapping[str, tuple[str, ...]] = {
    **{name: (f"{_OF}{name}",) for name in MEANS},
    **{
        f"{view}_decision_performance.precision": (f"true_positive_{view}", f"false_positive_{view}") for view in _VIEWS
    },
    **{f"{view}_decision_performance.recall": (f"true_positive_{view}", f"false_negative_{view}") for view in _VIEWS},
    **{
        f"{view}_decision_performance.f1": tuple(each for each in _DECIDED if each.endswith(f"_{view}"))
        for view in _VIEWS
    },
    **{
        f"{view}_decision_performance.accuracy": tuple(each for each in MATRIX if each.endswith(f"_{view}"))
        for view in _VIEWS
    },
    **{
        f"error_patterns.{name}": ("false_positive_reject", "false_negative_reject", "rejection_type_mismatch")
        for name in ("overaction_rate", "underaction_rate", "type_mismatch_rate")
    },
    "rejection_type_accuracy": ("true_positive_reject",),
    "overall_function_call_failed_rate": ("function_call_cases",),
    "call_rejection_accuracy": _DECIDED,
    "fc": _CALLS,
    "fc_upper_bound": (*_CALLS[:2], f"{_OF}arguments_value_score_upper_bound"),
    "plan": _PLANS,
    "plan_upper_bound": (f"{_OF}workflow_evaluation_upper_bound",),
    "average": (*_DECIDED, *_CALLS, *_PLANS),
}
"""Figure -> sums that make up its divisors: a task that adds to none of them has no part in it."""


class Sureness:
    """Intervals of one model's figures, before any rounding.

    Args:
        files: Files by name.
        profile: Which definition is followed.
        confidence: Of the intervals.
    """

    def __init__(self, files: Mapping[str, File], profile: Profile, confidence: float) -> None:
        self.profile, self.confidence = profile, confidence
        self.tasks: dict[str, dict[str, float]] = {}
        for name, file in sorted(files.items()):
            figures = file_figures(name, file, profile, exact=True)
            if figures["error"] is None:
                _add(self.tasks.setdefault(file.scenario, {}), _sums(figures, profile))
        names = {name for sums in self.tasks.values() for name in sums}
        self.totals = {name: math.fsum(sums.get(name, 0) for sums in self.tasks.values()) for name in names}
        self.whole = _flat(self._figures(self.totals, left_out=False))
        self.left = {
            task: _flat(self._figures({name: self.totals[name] - sums.get(name, 0) for name in names}, left_out=True))
            for task, sums in self.tasks.items()
        }

    def beside(self, figures: Iterable[str], undefined: Mapping[str, str]) -> dict[str, JSON]:
        """Return intervals by ``NAME_interval``, of a map of figures a map of them.

        Args:
            figures: Names of figures.
            undefined: Why some of them are undefined.
        """
        found: dict[str, JSON] = {}
        for name in figures:
            below = [path.removeprefix(f"{name}.") for path in _DIVISORS if path.startswith(f"{name}.")]
            if below:
                found[f"{name}_interval"] = {each: {**self._interval(f"{name}.{each}")} for each in below}
            elif name in _DIVISORS:
                why = undefined.get(name)
                found[f"{name}_interval"] = {**self._interval(name)} if why is None else {"reason": why}
        return found

    def _interval(self, name: str) -> Interval:
        tasks = [task for task, sums in self.tasks.items() if any(sums.get(each) for each in _DIVISORS[name])]
        value = self.whole.get(name) if tasks else None
        found = estimate(value, [(self.left[task].get(name), 1) for task in tasks], len(tasks))
        return interval(found, int(sum(self.tasks[task]["trials"] for task in tasks)), confidence=self.confidence)

    def _figures(self, sums: Mapping[str, float], *, left_out: bool) -> Figures:
        """Return the figures of sums over tasks; a class that occurs in one task only has the F1 0 without it."""
        totals: Figures = dict(sums)
        for name in MEANS:
            files = sums.get(f"{_OF}{name}", 0)
            totals[name] = sums[name] / files if files else 0.0 if self.profile == "upstream" else None
        for name in _COUNTS:
            totals.setdefault(name, 0)
        return totals | composed(totals, self.profile, exact=True, absent=0 if left_out else None)


def _sums(figures: Figures, profile: Profile) -> dict[str, float]:
    """Return what a file adds to the sums; in ``upstream`` mismatches are lost between file and directory."""
    found: dict[str, float] = {name: figures[name] for name in _COUNTS}
    if profile == "upstream":
        found["rejection_type_mismatch"] = 0
    for name in MEANS:
        if figures[name] is not None:
            found[name] = figures[name]
            found[f"{_OF}{name}"] = 1
    return found


def _add(into: dict[str, float], more: Mapping[str, float]) -> None:
    for name, number in more.items():
        into[name] = into.get(name, 0) + number


def _flat(figures: Figures) -> Figures:
    """Return figures by path."""
    found: Figures = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            found[name] = value
    return found

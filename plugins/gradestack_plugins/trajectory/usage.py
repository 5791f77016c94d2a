"""Grader ``usage``, the steps, calls, tokens, seconds and cost of a run, and ``usage_totals``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Literal

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    LARGEST_SCORE,
    Figure,
    Grade,
    Grader,
    Grades,
    Numbers,
    Sample,
    Usage,
    skipped,
)
from gradestack_plugins.statistics.mean import QUANTILES, IntervalAggregator
from gradestack_plugins.trajectory.calls import judged_calls

Part = Literal[
    "steps", "calls", "turns", "requests", "input_tokens", "output_tokens", "seconds", "cost_usd"
]
Parts = dict[str, float | None]
_BY_TURN: Final = ("steps", "calls", "input_tokens", "output_tokens", "seconds")


@attrs.frozen(kw_only=True)
class RunUsage(Grader):
    """The amounts a run took: figures, no verdict, so that more is neither better nor worse.

    ``parts`` has ``steps`` (answers of the model in the conversation), ``turns`` (of the user),
    ``calls`` that were made and ``executed_calls``. Where they are recorded it has ``requests``,
    ``input_tokens`` (cached ones included), ``cached_input_tokens``, ``cache_write_tokens``,
    ``output_tokens`` (reasoning included), ``reasoning_tokens``, ``cost_usd``, ``seconds`` and
    ``first_token_seconds``. ``NAME_per_turn`` is the mean over the turns, of steps, calls, tokens
    and seconds. ``step_ratio`` is calls made / calls expected, optional ones left out, where any
    are expected.

    What was not recorded is None, never 0, and nothing is estimated: a run without a recorded cost
    has none.

    Attributes:
        score: The figure that is the score; a run that does not record it is skipped.
    """

    version = "3"
    compares = frozenset[str]()
    """Calls that are expected are no reference for it: it counts the steps that would do."""
    metrics = ("usage_totals", "mean")
    bounds = (0.0, math.inf)
    better = "neither"

    score: Part = "steps"

    @property
    def label(self) -> str:  # type: ignore[override]
        """The label of the figure that is the score."""
        return self._mean.label

    @property
    def score_unit(self) -> Any:  # type: ignore[override]
        """The unit of the figure that is the score."""
        return self._mean.unit

    @property
    def _mean(self) -> Figure:
        name = f"{self.score}.mean"
        return next(figure for figure in UsageTotals.figures if figure.name == name)

    @override
    def grade(self, sample: Sample) -> Grade:
        parts = _parts_of(sample)
        score = parts[self.score]
        if score is None:
            return skipped("usage_not_recorded", f"{self.score} not recorded")
        return Grade(score=float(score), parts=parts)


def _parts_of(sample: Sample) -> Parts:
    """Return all that a run took, None where it is not recorded."""
    turns, calls = sample.turns, sample.calls
    roles = [message.role for turn in turns for message in turn]
    steps = roles.count("assistant") or None
    questions = roles.count("user") if len(turns) == 1 else 0  # not cut into turns
    n_turns = max(len(turns), questions) if steps else None
    executed = _count_executed(sample)
    parts: Parts = {
        "steps": steps,
        "turns": n_turns,
        "calls": None if calls is None else len(calls),
        "executed_calls": executed,
    }
    for name in Usage.__struct_fields__:
        amount = getattr(sample.usage, name, None)
        is_sound = amount is not None and -LARGEST_SCORE < amount < LARGEST_SCORE
        parts[name] = amount if is_sound else None
    for name in _BY_TURN:
        total = parts[name]
        parts[f"{name}_per_turn"] = total / n_turns if total is not None and n_turns else None
    expected = [call for call in sample.expected.calls or () if not call.optional]
    parts["step_ratio"] = len(calls) / len(expected) if calls is not None and expected else None
    return parts


def _count_executed(sample: Sample) -> int | None:
    calls = judged_calls(sample, "executed", None)
    return None if isinstance(calls, Grade) else len(calls)


_RUNS, _SUM = "runs ", "sum "
_COUNTS: Final = frozenset({"steps", "turns", "calls", "executed_calls", "requests"})
_MEANS: Final[tuple[Any, ...]] = (  # name, label, unit, and where there is one, what is better
    ("steps", "Steps per run", "count"),
    ("turns", "Turns a run", "count"),
    ("calls", "Calls a run", "count"),
    ("executed_calls", "Executed calls a run", "count"),
    ("requests", "Requests a run", "count"),
    ("input_tokens", "Input tokens a run", "tokens", "lower"),
    ("cached_input_tokens", "Cached input tokens a run", "tokens"),
    ("cache_write_tokens", "Cache write tokens a run", "tokens"),
    ("output_tokens", "Output tokens a run", "tokens", "lower"),
    ("reasoning_tokens", "Reasoning tokens a run", "tokens"),
    ("cost_usd", "Cost of a run", "usd", "lower"),
    ("seconds", "Seconds a run", "seconds", "lower"),
    ("first_token_seconds", "Seconds to the first token", "seconds", "lower"),
    ("steps_per_turn", "Steps a turn", "count"),
    ("calls_per_turn", "Calls a turn", "count"),
    ("input_tokens_per_turn", "Input tokens a turn", "tokens"),
    ("output_tokens_per_turn", "Output tokens a turn", "tokens"),
    ("seconds_per_turn", "Seconds a turn", "seconds"),
    ("step_ratio", "Calls made for each expected one", "count"),
)


def _mean_figure(name: str, label: str, unit: Any, better: Any = "neither") -> Figure:
    """Declare the figure of a mean over the runs that record an amount."""
    divisor = f"{_RUNS}{name}"
    return Figure(
        f"{name}.mean",
        label,
        better=better,
        unit=unit,
        about="total / runs that record it",
        divisor=divisor,
        least=0.0,
        optional=True,
    )


class UsageTotals(IntervalAggregator):
    """Figures of every part of a grade.

    ``total``, ``mean`` over the ``n`` runs that record it, ``min`` and ``max``.

    The mean's interval is that of an amount, clustered by task; of a part this family does not know
    the mean -+ t se.
    """

    version = "2"
    figures = (
        *(_mean_figure(*row) for row in _MEANS),
        Figure(
            "{part}.mean", "Mean of a part", better="neither", unit="score", divisor="runs {part}"
        ),
    )

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        numbers: dict[str, float] = {}
        for name, value in grade.parts.items():
            if value is not None:
                numbers[f"{_RUNS}{name}"] = 1
                numbers[f"{_SUM}{name}"] = float(value)
        return numbers

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Mapping[str, float | None]]:
        means: dict[str, dict[str, float | None]] = {}
        for name, runs in totals.items():
            if name.startswith(_RUNS) and runs:
                part = name.removeprefix(_RUNS)
                total = totals[f"{_SUM}{part}"]
                mean = total / runs
                means[part] = {"mean": mean}
        return means

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs = 0
        values = dict[str, list[float]]()
        for grade, times in grades.counted:
            if grade.score is None:
                continue
            runs += times
            for name, value in grade.parts.items():
                if value is not None:
                    values.setdefault(name, []).append(value)
        figures: dict[str, JSON] = {"runs": runs}
        for name, amounts in sorted(values.items()):
            total = _total_of(name, grades.totals[f"{_SUM}{name}"])
            number = int(grades.totals[f"{_RUNS}{name}"])
            figures[name] = {
                "total": total,
                "min": float(min(amounts)),
                "max": float(max(amounts)),
                **QUANTILES,
                "n": number,
            }
        return figures


def _total_of(name: str, total: int | Fraction) -> float:
    """Return a total; one of calls, tokens and the like as the whole number it is."""
    is_count = name in _COUNTS or name.endswith("_tokens")
    return int(total) if is_count else float(total)

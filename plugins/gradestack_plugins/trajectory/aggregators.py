"""Aggregators ``tool_outcomes`` and ``usage_totals``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grade,
    Grades,
    Numbers,
    ratio,
    ratio_interval,
    valid_confidence,
)

_NONE, _RATE = "no call was executed", "ok / (ok + error)"


def _executed(counts: Mapping[str, int]) -> int:
    return counts.get("ok", 0) + counts.get("error", 0)


@attrs.frozen(kw_only=True)
class ToolOutcomes(Aggregator):
    """Calls by outcome, over all runs and by tool.

    Every count of the graded runs' grades is added up, and for each tool those of its items. ``success_rate`` = ok /
    (ok + error), over calls, not over runs; None where no call was executed. Its interval leaves out one task at a
    time.
    """

    version: ClassVar[str] = "2"
    figures: ClassVar = (
        Figure("success_rate", "Successful calls", about=_RATE, divisor="executed", undefined=_NONE),
        Figure("tools.{tool}.success_rate", "Successful calls of a tool", about=_RATE, divisor="executed"),
    )
    needs: ClassVar = frozenset({"items"})

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        found = Counter({"ok": grade.counts.get("ok", 0), "executed": _executed(grade.counts)})
        for item in grade.items:
            counts = {**item.counts, "executed": _executed(item.counts)}
            found.update({f"{name}\n{item.id}": number for name, number in counts.items()})
        return found

    @override
    def estimate(self, ok: float, executed: float) -> Mapping[str, float | None]:
        return {"success_rate": ratio(ok, executed)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, counts = 0, Counter[str]()
        for grade, times in grades.counted:
            if grade.score is not None:
                runs += times
                counts.update({name: number * times for name, number in grade.counts.items()})
        found = {"runs": runs, **counts, "executed": _executed(counts)}
        reason = {} if found["executed"] else {"success_rate_reason": _NONE}
        return {**found, **reason, "tools": self._tools(grades)}

    def _tools(self, grades: Grades) -> dict[str, JSON]:
        counts: dict[str, dict[str, int]] = {}
        for name, number in grades.totals.items():
            count, of_tool, tool = name.partition("\n")
            if of_tool:
                counts.setdefault(tool, {})[count] = int(number)
        tasks: dict[str, Counter[tuple[float, ...]]] = {tool: Counter() for tool in counts}
        for numbers, times in grades.task_numbers()[0].items():
            known = dict(numbers)
            for name, executed in numbers:
                count, _, tool = name.partition("\n")
                if count == "executed" and tool in tasks:
                    tasks[tool][executed, known.get(f"ok\n{tool}", 0)] += times
        found: dict[str, JSON] = {}
        for tool, of in sorted(counts.items()):
            rate = ratio(of.get("ok", 0), of["executed"])
            sure = {"reason": _NONE} if rate is None else {**ratio_interval(tasks[tool], confidence=self.confidence)}
            found[tool] = {**of, "success_rate": rate, "success_rate_interval": sure}
        return found


_RUNS, _SUM = "runs ", "sum "


def _mean(name: str, label: str, unit: Any, better: Any = "neither") -> Figure:
    about, by = "total / runs that record it", f"{_RUNS}{name}"
    return Figure(f"{name}.mean", label, better=better, unit=unit, about=about, divisor=by, least=0.0, optional=True)


@attrs.frozen(kw_only=True)
class UsageTotals(Aggregator):
    """Of every part of a grade: ``total``, ``mean`` over the ``n`` runs that record it, ``min`` and ``max``.

    The interval of the mean, which is no share, is the mean -+ t se, clustered by task; not below 0 for what cannot be.
    """

    version: ClassVar[str] = "2"
    figures: ClassVar = (
        _mean("steps", "Steps a run", "count"),
        _mean("turns", "Turns a run", "count"),
        _mean("calls", "Calls a run", "count"),
        _mean("executed_calls", "Executed calls a run", "count"),
        _mean("requests", "Requests a run", "count"),
        _mean("input_tokens", "Input tokens a run", "tokens", "lower"),
        _mean("cached_input_tokens", "Cached input tokens a run", "tokens"),
        _mean("cache_write_tokens", "Cache write tokens a run", "tokens"),
        _mean("output_tokens", "Output tokens a run", "tokens", "lower"),
        _mean("reasoning_tokens", "Reasoning tokens a run", "tokens"),
        _mean("cost_usd", "Cost of a run", "usd", "lower"),
        _mean("seconds", "Seconds a run", "seconds", "lower"),
        _mean("first_token_seconds", "Seconds to the first token", "seconds", "lower"),
        Figure("{part}.mean", "Mean of a part", better="neither", unit="score", divisor="runs {part}"),
    )

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        known = {name: float(value) for name, value in grade.parts.items() if value is not None}
        return {f"{_RUNS}{name}": 1 for name in known} | {f"{_SUM}{name}": value for name, value in known.items()}

    @override
    def estimate(self, **sums: float) -> Mapping[str, Mapping[str, float | None]]:
        names = [name.removeprefix(_RUNS) for name in sums if name.startswith(_RUNS)]
        return {name: {"mean": ratio(sums.get(f"{_SUM}{name}", 0), sums[f"{_RUNS}{name}"])} for name in names}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, ends = 0, dict[str, tuple[float, float]]()
        for grade, times in grades.counted:
            if grade.score is None:
                continue
            runs += times
            for name, value in grade.parts.items():
                if value is not None:
                    low, high = ends.get(name, (value, value))
                    ends[name] = (min(low, value), max(high, value))
        found: dict[str, JSON] = {"runs": runs}
        for name, (low, high) in sorted(ends.items()):
            found[name] = {
                "total": float(grades.totals[f"{_SUM}{name}"]),
                "mean_interval": self._interval(grades, name, 0.0 if low >= 0 else -math.inf),
                "min": float(low),
                "min_interval": {"reason": "quantile"},
                "max": float(high),
                "max_interval": {"reason": "quantile"},
                "n": int(grades.totals[f"{_RUNS}{name}"]),
            }
        return found

    def _interval(self, grades: Grades, name: str, least: float) -> dict[str, JSON]:
        """Return the interval of a mean, not below 0 if no run is: whether a part can be, grades tell alone."""
        tasks, _ = grades.sums(f"{_RUNS}{name}", f"{_SUM}{name}").rounded
        return {**ratio_interval(tasks, confidence=self.confidence, share=False, least=least)}

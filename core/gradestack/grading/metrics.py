"""Figures of a table of grades.

Counts that every run has, estimates with intervals, what else a metric computes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from operator import sub
from typing import Any

import msgspec

from gradestack.api import Aggregator, Figure, Ratio
from gradestack.errors import suggest
from gradestack.estimates import (
    Estimate,
    Grades,
    Interval,
    estimate,
    interval,
    total,
    with_ends,
)
from gradestack.exact_sums import TaskNumbers
from gradestack.grading.plan import Metric, SampleRule
from gradestack.interpreter import ticking
from gradestack.model import JSON, Grade, Outcome, replace
from gradestack.table import Contribution, Numbers, Table, Wanted


def passes(gate: SampleRule | None, score: float) -> bool:
    """Return whether one score passes by the gate's per-sample rule.

    Without a gate, score >= 1.0.
    """
    return score >= 1.0 if gate is None else gate.sample_passes(score)


class Count(msgspec.Struct):
    """What is counted of one grader's grades."""

    states: dict[str, int] = msgspec.field(
        default_factory=lambda: {str(outcome): 0 for outcome in Outcome}
    )
    scores: Counter[float] = msgspec.field(default_factory=Counter)
    """Score -> samples that have it."""
    passed: int = 0
    unreadable: int = 0
    """Records no sample could be made of, where they count as lost."""

    @property
    def graded(self) -> int:
        """Samples with a score."""
        return self.states[Outcome.GRADED]

    @property
    def lost(self) -> int:
        """Samples the grader applies to and has no score for.

        Failed, missing or unreadable ones.
        """
        return self.states[Outcome.FAILED] + self.states[Outcome.MISSING] + self.unreadable

    def with_unreadable(self, number: int) -> Count:
        """Return the same with unreadable records, where the grader applies to anything else."""
        return replace(self, unreadable=number if self.graded or self.lost else 0)

    @property
    def sum(self) -> Fraction:
        """Sum of the scores, exact."""
        return sum((Fraction(score) * times for score, times in self.scores.items()), Fraction(0))

    def add(self, grade: Grade, times: int, rule: SampleRule | None) -> None:
        """Count so many equal grades."""
        self.states[grade.outcome] += times
        if grade.score is not None:
            self.scores[grade.score] += times
            self.passed += times * passes(rule, grade.score)


def counts_by_model(
    table: Table, key: str, rule: SampleRule | None, rows: Sequence[int] | None = None
) -> dict[str, Count]:
    """Return what is counted of a grader's grades.

    Of each model, in the order of first samples, empty for none.
    """
    models, grades = table.keys["model"], table.grades(key)
    found: dict[str, Count] = {}
    for (code, model), times in table.alike(key, rows).items():
        count = found.setdefault(models.values[model] or "", Count())
        count.add(grades[code], times, rule)
    return found


def in_all(counts: Iterable[Count]) -> Count:
    """Return what counts of several models come to."""
    found = Count()
    for each in counts:
        found.states = {state: times + each.states[state] for state, times in found.states.items()}
        found.scores.update(each.scores)
        found.passed += each.passed
    return found


Path = tuple[str, ...]
_COUNT = ""
"""Name under which samples are counted."""


def has_sums(aggregator: Aggregator) -> bool:
    """Return whether a metric makes figures of sums: of what each grade contributes."""
    return _has_ratio(aggregator) or type(aggregator).contribution is not Aggregator.contribution


def _has_ratio(aggregator: Aggregator) -> bool:
    return any(isinstance(figure, Ratio) for figure in aggregator.figures)


def wanted(graders: Iterable[str], metrics: Sequence[Metric], facets: Iterable[str] = ()) -> Wanted:
    """Return what the figures of some metrics need of grades."""
    parts: dict[str, dict[str, None]] = {key: {} for key in graders}
    contributions: dict[str, tuple[str, Contribution]] = {}
    names = dict.fromkeys(facets)
    for metric in metrics:
        aggregator: Aggregator = metric.stage.component
        parts[metric.of] |= dict.fromkeys(sorted(aggregator.keeps))
        if has_sums(aggregator):
            contributions[metric.name] = (metric.of, aggregator.contribution)
        names |= dict.fromkeys(aggregator.facets)
    return Wanted(
        parts={key: tuple(each) for key, each in parts.items()},
        contributions=contributions,
        facets=tuple(names),
    )


def grades_of(
    aggregator: Aggregator, table: Table, key: str, name: str, rows: Sequence[int] | None = None
) -> Grades:
    """Return one grader's grades with what they add to the sums of the metric of this name."""
    if not has_sums(aggregator):
        return Grades(table, key, rows)
    codes = table.numbers_column(name).codes
    return Grades(table, key, rows, (table.contributions(name), codes))


SECONDS = 60.0
"""How long a metric may take for its figures."""


def figures_of(aggregator: Aggregator, grades: Grades) -> dict[str, JSON]:
    """Return everything a metric makes of grades, as it stands in summary.json.

    An error where it is not sound.
    """
    found: dict[str, Any] = {}
    if _has_ratio(aggregator) or type(aggregator).figures_of is not Aggregator.figures_of:
        with ticking(SECONDS, _too_long):
            found = estimated(aggregator, grades)
    with ticking(SECONDS, _too_long):
        _lay_over(found, _mapping("compute()", aggregator.compute(grades)))
    json.dumps(found, sort_keys=True, allow_nan=False)
    for each in aggregator.figures:
        if "{" not in each.name:
            optional = each.optional or (not each.pooled and "models" in found)
            _check_declared(each, found, optional=optional)
    models = found.get("models")
    for of in (found, *(models.values() if isinstance(models, Mapping) else ())):
        if isinstance(of, dict):
            _hold_to_bounds(aggregator, of)
            _order_intervals(aggregator.figures, of)
    return found


_ROUNDING = 1e-9
"""By how much a figure may lie beyond its bounds: what adding up in floats can cost."""


def _order_intervals(figures: Sequence[Figure], found: Mapping[str, Any]) -> None:
    """Let the ends of intervals of families fall or rise with k, as their figures do."""
    for figure in figures:
        name = figure.name.removesuffix(".{k}")
        values, intervals = found.get(name), found.get(f"{name}_interval")
        if figure.course is None or not isinstance(values, dict) or not isinstance(intervals, dict):
            continue
        farther = min if figure.course == "falls" else max
        before: Interval | None = None
        for k in sorted(values, key=int):
            here: Interval = intervals.get(k, {})
            if "low" not in here:
                continue
            if before is not None:
                low = farther(here["low"], before["low"])
                high = farther(here["high"], before["high"])
                here = intervals[k] = with_ends(here, values[k], low, high)
            before = here


_ROUNDING = 1e-9
"""By how much a figure may lie beyond its bounds: what adding up in floats can cost."""


def _hold_to_bounds(aggregator: Aggregator, found: dict[str, Any]) -> None:
    """Refuse figures beyond their bounds, a share of 3, and cut their intervals to the bounds."""
    for path, value in [*numbers_in(found)]:
        name = ".".join(path)
        declared = next((each for each in aggregator.figures if each.covers(name)), None)
        if declared is None:
            continue
        low, high = declared.bounds
        is_within = value is None or low - _ROUNDING <= value <= high + _ROUNDING
        if not is_within and not aggregator.of_scores:
            raise ValueError(
                f"the figure {name} is {value:g}, beyond its bounds {low:g} to {high:g}"
            )
        *above, last = _beside(declared, path)
        holder: Any = found
        for key in above:
            holder = holder.setdefault(key, {}) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or "reason" in holder:  # of a whole map of figures
            continue
        reason = declared.undefined if value is None else "no interval is computed"
        interval = holder.setdefault(last, {"reason": reason})
        if not isinstance(interval, dict) or "low" not in interval:
            continue
        are_no_shares = interval.get("method") == "t" and declared.unit == "share"
        if value is not None and low <= value <= high and not are_no_shares:
            interval["low"] = max(interval["low"], low)
            interval["high"] = min(interval["high"], high)


def numbers_in(found: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, float | None]]:
    """Yield the path and value of every figure that is a number or undefined, over all models."""
    for name, value in found.items():
        if name.endswith("_interval") or (name == "models" and not above):
            continue
        if isinstance(value, Mapping):
            yield from numbers_in(value, (*above, name))
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield (*above, name), value


def _mapping(what: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} gave {given!r:.200}, not a mapping of names to figures")
    if _COUNT in given:
        raise ValueError(f"{what} gave an empty name")
    return given


def _check_declared(declared: Figure, found: Any, *, optional: bool) -> None:
    for part in declared.name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            if optional:
                return
            raise ValueError(f"it declares the figure {declared.name!r}, and does not give it")
        found = found[part]
    if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
        raise ValueError(
            f"the figure {declared.name} is {found!r:.200}, not a finite number or None"
        )


def _too_long(*_: object) -> None:
    raise TimeoutError(f"took longer than {SECONDS:g} s")


def _lay_over(found: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        held = found.get(name)
        if (
            isinstance(held, dict) and isinstance(value, Mapping) and value.keys() != {"reason"}
        ):  # no ends beside it
            _lay_over(held, value)
        else:
            found[name] = value


def estimated(aggregator: Aggregator, grades: Grades) -> dict[str, Any]:
    """Return the figures of a metric's sums with their intervals.

    Of several models ``models`` has those of each.
    """
    try:
        return _estimated(aggregator, Estimates(aggregator, grades))
    except UnknownSumError:  # one that figures of all tasks did not read, or none at all
        return _estimated(aggregator, Estimates(aggregator, grades, set(grades.names)))


def _estimated(aggregator: Aggregator, estimates: Estimates) -> dict[str, Any]:
    several = len(estimates.models) > 1
    is_pooled = not several or all(figure.pooled for figure in aggregator.figures)
    found = estimates.of() if is_pooled else {}
    models = estimates.by_model() if several else {}
    if models:
        found["models"] = models
    return found


class Estimates:
    """Figures of a metric's sums, over all models and of each."""

    def __init__(
        self, aggregator: Aggregator, grades: Grades, names: set[str] | None = None
    ) -> None:
        self.aggregator, self.grades = aggregator, grades
        self.confidence: float = getattr(aggregator, "confidence", 0.95)
        self._figures: dict[Path, Figure] = {}
        self._names: set[str] = set()
        if makes_task_contributions(aggregator):
            self._every, self._cells = grades.task_numbers()
            self._make_task_contributions()
        else:
            self._names = names_read(aggregator, grades) if names is None else names
            self._every, self._cells = grades.task_numbers(self._names)

    def _make_task_contributions(self) -> None:
        """Put what the metric makes of each task in place of the task's sums."""
        aggregator, grades = self.aggregator, self.grades
        several = len(self._cells) > 1
        known = {
            model: task_defaults(aggregator, grades.of_model(model) if several else grades)
            for model in self._cells
        }
        made = {
            model: _counted(
                (task_contribution(aggregator, task, known[model]), times)
                for task, times in each.items()
            )
            for model, each in self._cells.items()
        }
        if several:
            self._every = _counted(
                (
                    _pooled(
                        task_contribution(aggregator, task, known[model]) for model, task in parts
                    ),
                    times,
                )
                for parts, times in grades.tasks_by_model().items()
            )
        else:
            self._every = next(iter(made.values()), Counter())
        self._cells = made
        tasks = chain(self._every, *made.values())
        self._names = {name for task in tasks for name, _ in task}

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return list(self._cells)

    def of(self, model: str | None = None) -> dict[str, Any]:
        """Return the figures over all models, or of one, with their intervals."""
        cells = {
            cell: times
            for cell, times in (self._every if model is None else self._cells[model]).items()
            if cell
        }
        whole, left = leave_one_out(self.aggregator, list(cells), list(cells.values()), self._names)
        tasks = [(dict(cell), times) for cell, times in cells.items()]
        found: dict[str, Any] = {}
        if any(not each.divisor for each in self.aggregator.figures):
            found |= {"n": sum(int(numbers[_COUNT]) * times for numbers, times in tasks)}
            found |= {"clusters": sum(cells.values())}
        for path, value in whole.items():
            declared = self._declared(path)
            _put(found, path, value)
            _put(found, _beside(declared, path), self._interval(declared, path, value, tasks, left))
        return found

    def by_model(self) -> dict[str, dict[str, Any]]:
        """Return the figures of each model that has some.

        Of models whose tasks add the same they are computed once.
        """
        found: dict[str, dict[str, Any]] = {}
        known: dict[frozenset[tuple[TaskNumbers, int]], dict[str, Any]] = {}
        for model, cells in self._cells.items():
            key = frozenset(cells.items())
            if key not in known:
                known[key] = self.of(model)
            if known[key]:
                found[model] = _copied(known[key])
        return found

    def _declared(self, path: Path) -> Figure:
        if path not in self._figures:
            name = ".".join(path)
            declared = next((each for each in self.aggregator.figures if each.covers(name)), None)
            if declared is None:
                raise ValueError(f"figures_of() gave {name!r}, which is not among its figures")
            self._figures[path] = declared
        return self._figures[path]

    def _interval(
        self,
        declared: Figure,
        path: Path,
        value: float | None,
        tasks: Sequence[tuple[Mapping[str, float], int]],
        left: Sequence[Mapping[Path, float | None]],
    ) -> JSON:
        if value is None:
            return {"reason": declared.undefined}
        by = declared.divisor_of(".".join(path)) or _COUNT
        counted = declared.samples or by
        pairs, n = [], 0
        for (numbers, times), without in zip(tasks, left, strict=True):
            if numbers.get(by):
                pairs.append((without.get(path), times))
                n += int(numbers.get(counted, 0)) * times
        if not pairs:
            raise ValueError(f"the figure {'.'.join(path)} is divided by {by!r}, which no task has")
        clusters = sum(times for _, times in pairs)
        found: Estimate = estimate(value, pairs, clusters)
        low, high = declared.bounds
        options = {
            "least": low,
            "most": high,
            "amount": declared.amount,
            "share": declared.unit == "share",
        }
        return {**interval(found, n, confidence=self.confidence, **options)}  # type: ignore[arg-type]


def makes_task_contributions(aggregator: Aggregator) -> bool:
    """Return whether a metric makes something of its own of a task's sums."""
    return type(aggregator).task_contribution is not Aggregator.task_contribution


def task_defaults(aggregator: Aggregator, grades: Grades) -> Numbers:
    """Return what a metric finds in the sums of any task of a model: zeros, and model totals."""
    totals = _mapping("model_totals()", aggregator.model_totals(grades))
    return {**dict.fromkeys(grades.names, 0), **totals}


def task_contribution(aggregator: Aggregator, numbers: TaskNumbers, known: Numbers) -> TaskNumbers:
    """Return what a task adds, made of the sums of its samples and of what is ``known``."""
    if not makes_task_contributions(aggregator):
        return numbers
    sums = {**known, **dict(numbers)}
    samples = sums.pop(_COUNT)
    made: Mapping[str, Any] | None = aggregator.task_contribution(sums)
    if made is None:
        return ()
    added = _mapping("task_contribution()", made)
    return tuple(sorted([(_COUNT, samples), *added.items()]))


def _pooled(parts: Iterable[TaskNumbers]) -> TaskNumbers:
    added: dict[str, float] = {}
    for name, number in chain.from_iterable(parts):
        added[name] = added.get(name, 0) + number
    return tuple(sorted(added.items()))


def _counted(tasks: Iterable[tuple[TaskNumbers, int]]) -> Counter[TaskNumbers]:
    found: Counter[TaskNumbers] = Counter()
    for numbers, times in tasks:
        found[numbers] += times
    return found


class UnknownSumError(ValueError):
    """Figures are made of a sum that is not there."""


class Totals(dict[str, Any]):
    """Sums over tasks by name; one that no grade contributed is an error, not 0.

    Where no grade counts at all, every sum is 0.
    """

    def __missing__(self, name: str) -> int:
        if not self:
            return 0
        known = ", ".join(self)
        hint = suggest(name, self)
        raise UnknownSumError(
            f"figures_of() reads {name!r}, which no grade contributed{hint}; there are: {known}"
        )


class _Probe(Totals):
    """Totals that remember which names are read; whoever iterates over them reads all."""

    def __init__(self, totals: Mapping[str, Any]) -> None:
        super().__init__(totals)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self.read.update(super().keys())
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def keys(self) -> Any:
        self.read.update(super().keys())
        return super().keys()

    def values(self) -> Any:
        self.read.update(super().keys())
        return super().values()

    def items(self) -> Any:
        self.read.update(super().keys())
        return super().items()


def names_read(aggregator: Aggregator, grades: Grades) -> set[str]:
    """Return the sums that a metric's figures are made of, and those they are divided by.

    A metric may contribute thousands of others for its ``compute``.
    """
    probe = _Probe(grades.totals)
    aggregator.figures_of(probe)
    divisors = {name for each in aggregator.figures for name in (each.divisor, each.samples)}
    if any("{" in name for name in divisors):
        return set(grades.names)
    return (probe.read | divisors).intersection(grades.names)


def leave_one_out(
    aggregator: Aggregator,
    cells: Sequence[TaskNumbers],
    times: Sequence[int],
    names: Iterable[str] = (),
) -> tuple[dict[Path, float | None], list[dict[Path, float | None]]]:
    """Return the figures of all tasks, and those without one task of each kind.

    Args:
        aggregator: The metric.
        cells: What tasks add, each kind of task once.
        times: How many tasks are of each kind.
        names: Names of sums that may be 0 in all of these tasks.
    """
    of_cells = {name for cell in cells for name, _ in cell}
    known = sorted({*of_cells, *names} - {_COUNT}) if cells else []
    vectors = [[numbers.get(name, 0) for name in known] for numbers in map(dict, cells)]
    columns = zip(*vectors, strict=True)
    sums = [total(column, times) for column in columns]
    whole = dict(_figures_of(aggregator, known, sums))
    if sum(times) < 2:
        return whole, [{} for _ in vectors]
    left = [
        dict(_figures_of(aggregator, known, list(map(sub, sums, vector)))) for vector in vectors
    ]
    return whole, left


def _figures_of(
    aggregator: Aggregator, names: Sequence[str], sums: Sequence[Any]
) -> Iterator[tuple[Path, float | None]]:
    totals = Totals(zip(names, sums, strict=True))
    return _flat(_mapping("figures_of()", aggregator.figures_of(totals)))


def _flat(figures: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, float | None]]:
    for name, value in figures.items():
        path = (*above, name)
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        elif value is None or (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        ):
            yield path, value
        else:
            raise ValueError(
                f"the figure {'.'.join(path)} is {value!r}, not a finite number or None"
            )


def _copied(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _copied(value) if isinstance(value, dict) else value
        for name, value in figures.items()
    }


def _beside(declared: Figure, path: Path) -> Path:
    if declared.name.endswith("}") and len(path) > 1:
        return (*path[:-2], f"{path[-2]}_interval", path[-1])
    return (*path[:-1], f"{path[-1]}_interval")


def _put(found: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        found = found.setdefault(name, {})
    found[path[-1]] = value

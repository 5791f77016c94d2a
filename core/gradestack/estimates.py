"""Figures of sums over tasks.

The grades of one grader as a metric sees them, added up by task, and intervals.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, compress, repeat
from operator import sub
from statistics import NormalDist
from typing import Any, TypedDict

import msgspec

from gradestack.exact_sums import ExactSums, Sums, TaskNumbers
from gradestack.model import Grade, Key
from gradestack.table import Numbers, Table

Cell = tuple[float, ...]
"""What one task adds to the sums a figure is computed from."""
Figures = Mapping[str, float | None]
"""Figures by name; None where one is undefined."""

_ROUNDING = 1e-14
"""Spread of pseudo-values, by task and size of the figure, up to which tasks that are alike may
seem to differ.
"""
_ROUNDING_OF_ENDS = 1e-9
"""Share of half an interval by which its ends may seem to differ."""
_METHODS = ("logit_t", "wilson", "t", "skewed_t")
_SEVERAL = 5
"""Tasks from which on a share next to 0 or 1 is less sure than logit t says (by simulation,
benchmarks/coverage.py).
"""
_LARGE = 1000
"""Degrees of freedom from which on the expansion about the normal quantile is exact to 1e-11."""
_SUREST = 1 - 2**-53
"""Probability next to 1."""
# Abramowitz and Stegun 26.7.5, and its fifth term: divisor, powers of z and their factors
_EXPANSION = (
    (4, ((3, 1), (1, 1))),
    (96, ((5, 5), (3, 16), (1, 3))),
    (384, ((7, 3), (5, 19), (3, 17), (1, -15))),
    (92160, ((9, 79), (7, 776), (5, 1482), (3, -1920), (1, -945))),
    (368640, ((11, 27), (9, 339), (7, 930), (5, -1782), (3, -765), (1, 17955))),
)


class Interval(TypedDict, total=False):
    """An interval as it stands beside its figure in summary.json.

    Or only ``reason``, why there is none.
    """

    low: float
    high: float
    confidence: float
    n: int
    clusters: int
    method: str
    reason: str
    stderr: float
    """Only where the ends of another confidence do not follow from these.

    The same of ``skewness`` and ``df``.
    """
    skewness: float
    df: int


class Estimate(msgspec.Struct, frozen=True):
    """A figure and its standard error over tasks."""

    value: float | None
    stderr: float | None
    """None for fewer than two tasks, and where it or the figure without some task is undefined or
    beyond any float.
    """
    clusters: int
    """Number of tasks."""
    skewness: float = 0.0
    """Of the pseudo-values, unbiased (G1); 0 for fewer than three tasks."""
    kurtosis: float = 0.0
    """Excess kurtosis of the pseudo-values, unbiased (G2); 0 for fewer than four tasks."""


def jackknife(
    figures: Callable[..., Figures], cells: Mapping[Cell, int], width: int
) -> dict[str, Estimate]:
    """Return figures with their standard errors, leaving out one task at a time.

    Args:
        figures: Returns the figures of sums: called with one number for each of a cell's, over all
            tasks, and over all but one. A figure that is None without a task is undefined without
            it, and has no standard error.
        cells: What tasks add to the sums -> how many tasks add that; finite numbers.
        width: How many numbers a cell has.
    """
    clusters = sum(cells.values())
    times = [*cells.values()]
    totals = [total(column, times) for column in zip(*cells, strict=True)] or [0.0] * width
    whole = figures(*totals)
    if clusters < 2:
        return {name: Estimate(value, None, clusters) for name, value in whole.items()}
    left = [figures(*map(sub, totals, cell)) for cell in cells]
    return {
        name: estimate(value, [*zip([each[name] for each in left], times, strict=True)], clusters)
        for name, value in whole.items()
    }


def total(values: Sequence[float], times: Sequence[int]) -> float:
    """Return the sum of values, each so many times.

    That of floats is rounded once: order and grouping do not show.
    """
    if not any(isinstance(value, float) for value in values):
        return sum(value * more for value, more in zip(values, times, strict=True))
    return math.fsum(
        chain(
            values,
            *[
                repeat(value, more - 1)
                for value, more in zip(values, times, strict=True)
                if more > 1
            ],
        )
    )


def estimate(
    value: float | None, left: Sequence[tuple[float | None, int]], clusters: int
) -> Estimate:
    """Return a figure with its standard error.

    The standard deviation of the pseudo-values over the root of the tasks.

    Args:
        value: The figure over all tasks.
        left: The figure without a task, and without how many tasks it is that.
        clusters: Number of tasks.
    """
    nothing = Estimate(value, None, clusters)
    if value is None or clusters < 2:
        return nothing
    whole, others = clusters * value, clusters - 1
    pseudo = [whole - others * without for without, _ in left if without is not None]
    if len(pseudo) < len(left):
        return nothing
    times = [number for _, number in left]
    try:
        mean = total(pseudo, times) / clusters
        spread = math.sqrt(total([(each - mean) ** 2 for each in pseudo], times) / others)
    except OverflowError:  # squares beyond the range of floats
        return nothing
    if spread <= _ROUNDING * clusters * max(1.0, abs(value)):
        return Estimate(value, 0.0, clusters)
    gaps = [(each - mean) / spread for each in pseudo]
    cubes, fourths = (
        total([each**power for each in gaps], times) * clusters / others for power in (3, 4)
    )
    skewness = cubes / (clusters - 2) if clusters > 2 else 0.0
    below = (clusters - 2) * (clusters - 3)
    kurtosis = (fourths * (clusters + 1) - 3 * others**2) / below if clusters > 3 else 0.0
    return Estimate(value, spread / math.sqrt(clusters), clusters, skewness, kurtosis)


def interval(
    of: Estimate,
    n: int,
    *,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
    most: float = math.inf,
    amount: bool = False,
) -> Interval:
    """Return the interval of a figure, for ``summary.json``; or the reason why there is none.

    Which form it has, and the formulas, stand in docs/figures.md: "logit_t" and "wilson" of shares,
    "skewed_t" (Hall's) of amounts, else "t".

    Args:
        of: The figure.
        n: Number of samples it is of.
        confidence: Share of such intervals that hold the true figure, between 0 and 1.
        share: Whether the figure is bound to [0, 1].
        least: What a figure that is no share cannot be below.
        most: What it cannot be above.
        amount: Whether it is an amount: no share, not below 0, without an upper bound.
    """
    value, stderr, clusters = of.value, of.stderr, of.clusters
    if value is None:
        return {"reason": "undefined"}
    if clusters < 2:
        return {"reason": "one task"}
    if stderr is None:
        return {"reason": "undefined without some task"}
    more: Interval = {}
    if not (stderr or share):
        return {"reason": "the same in every task"}
    if amount and value >= 0:
        if 2 * stderr > value:
            return {"reason": "too few tasks for amounts so uneven"}
        spread = stderr * math.sqrt(clusters) / value
        skewness = max(of.skewness, 2 * spread * min(1.0, spread))
        kurtosis = max(of.kurtosis, 1.5 * skewness**2)
        df = int(2 / (2 / (clusters - 1) + kurtosis / clusters) + _ROUNDING_OF_ENDS)
        more, least = {"stderr": stderr, "skewness": skewness, "df": max(1, df)}, max(0.0, least)
        low, high = _skewed(value, clusters, more, confidence)
        method = "skewed_t"
    else:
        low, high, method = ends(value, stderr, clusters, confidence=confidence, share=share)
        if method == "logit_t" and _near_an_end(value, clusters):
            more = {"stderr": stderr}
    low, high = max(low, min(least, value)), min(high, max(most, value))
    return {
        "low": low,
        "high": high,
        "confidence": confidence,
        "n": n,
        "clusters": clusters,
        "method": method,
        **more,
    }


def ends(
    value: float, stderr: float, clusters: int, *, confidence: float = 0.95, share: bool = True
) -> tuple[float, float, str]:
    """Return both ends of ``interval`` of what is no amount, and the method.

    For two tasks and more.
    """
    q = t_quantile((1 + confidence) / 2, clusters - 1)
    if not share or not 0 <= value <= 1:
        return value - q * stderr, value + q * stderr, "t"
    if not (stderr > 0 and 0 < value < 1):
        return *_wilson(value, clusters, q), "wilson"
    centre, half = math.log(value / (1 - value)), q * stderr / (value * (1 - value))
    low, high = _expit(centre - half), _expit(centre + half)
    if _near_an_end(value, clusters):
        wide, one = _wilson(value, clusters, q), -math.expm1(math.log(confidence) / clusters)
        low, high = min(low, wide[0]), max(high, wide[1])
        low, high = (min(low, one), high) if value < 0.5 else (low, max(high, 1 - one))
    return low, high, "logit_t"


def _near_an_end(share: float, clusters: int) -> bool:
    """Return whether all that separates a share from 0 or 1 comes to one task at most.

    Of few, q is large enough.
    """
    return clusters >= _SEVERAL and clusters * min(share, 1 - share) <= 1 + _ROUNDING_OF_ENDS


def _skewed(value: float, clusters: int, known: Interval, confidence: float) -> tuple[float, float]:
    """Return both ends of an amount's interval, from ``stderr``, ``skewness`` and ``df``."""
    stderr, g = known["stderr"], known["skewness"] / math.sqrt(clusters)
    q = t_quantile((1 + confidence) / 2, known["df"])
    low, high = [3 / g * (math.cbrt(1 + g * (x - g / 6)) - 1) for x in (q, -q)]
    return value - stderr * low, value - stderr * high


def again(of: Interval, value: float, confidence: float) -> Interval:
    """Return the interval of a figure of this value once more, at another confidence."""
    if "reason" in of:
        return of
    if of["method"] not in _METHODS:  # an aggregator's own
        return (
            of
            if confidence == of["confidence"]
            else {"reason": f"known at {of['confidence']:g} only"}
        )
    low, high, clusters = of["low"], of["high"], of["clusters"]
    q, before = (
        t_quantile((1 + confidence) / 2, clusters - 1),
        t_quantile((1 + of["confidence"]) / 2, clusters - 1),
    )
    if of["method"] == "skewed_t":
        low, high = _skewed(value, clusters, of, confidence)
        low = max(0.0, low)
    elif of["method"] == "wilson" or "stderr" in of:
        low, high, _ = ends(value, of.get("stderr", 0.0), clusters, confidence=confidence)
    elif of["method"] == "t":
        cut = high - value > (1 + _ROUNDING_OF_ENDS) * (value - low)
        centre, half = (value, high - value) if cut else ((low + high) / 2, (high - low) / 2)
        half *= q / before
        low, high = max(centre - half, low if cut else -math.inf), centre + half
    elif (
        low > 0 and high < 1
    ):  # an end that is 0 or 1 stays: how far beyond it would be is not known
        left, right = math.log(low / (1 - low)), math.log(high / (1 - high))
        centre, half = (left + right) / 2, (right - left) / 2 * q / before
        low, high = _expit(centre - half), _expit(centre + half)
    return {**of, "low": low, "high": high, "confidence": confidence}


def with_ends(of: Interval, value: float, low: float, high: float) -> Interval:
    """Return the interval of a figure of this value with other ends.

    Its ends at another confidence still follow from the standard error, not from these.
    """
    before = of["low"], of["high"]
    if (low, high) == before:
        return of
    found: Interval = {**of, "low": low, "high": high}
    if of["method"] == "logit_t" and "stderr" not in of and before[0] > 0 and before[1] < 1:
        left, right = (math.log(end / (1 - end)) for end in before)
        q = t_quantile((1 + of["confidence"]) / 2, of["clusters"] - 1)
        found["stderr"] = (right - left) / 2 / q * value * (1 - value)
    return found


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else (small := math.exp(max(x, -745.0))) / (1 + small)


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    weight = z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    return 0.0 if share == 0 else max(0.0, centre - half), 1.0 if share == 1 else min(
        1.0, centre + half
    )


@lru_cache(maxsize=256)
def t_quantile(probability: float, df: int) -> float:
    """Return the quantile of Student's t distribution: t with P(T < t) = ``probability``.

    Args:
        probability: Between 0 and 1, both excluded.
        df: Degrees of freedom, at least 1.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    if df >= _LARGE:
        z = NormalDist().inv_cdf(min(probability, _SUREST))
        terms = [
            math.fsum(factor * z**power for power, factor in powers) / over
            for over, powers in _EXPANSION
        ]
        return z + math.fsum(term / df**order for order, term in enumerate(terms, 1))
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > 1 - probability:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _upper_tail(middle, df) > 1 - probability else (low, middle)
    return (low + high) / 2


def _upper_tail(t: float, df: int) -> float:
    """Return P(T > t) for t >= 0, from the finite series (Abramowitz and Stegun 26.7.3
    and 26.7.4).
    """
    theta = math.atan2(t, math.sqrt(df))
    cosine = math.cos(theta)
    term = total = cosine if df % 2 else 1.0
    for step in range(3 if df % 2 else 2, df, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    if df % 2 == 0:
        return (1 - math.sin(theta) * total) / 2
    within = theta + math.sin(theta) * total if df > 1 else theta
    return (1 - 2 / math.pi * within) / 2


def ratio_interval(
    tasks: Mapping[Cell, int],
    *,
    n: int | None = None,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
    most: float = math.inf,
) -> Interval:
    """Return the interval of a ratio of sums over tasks, for ``summary.json``.

    ``tasks`` are divisor and dividend of a task -> how many tasks have them: the figure is the sum
    of the dividends over that of the divisors, in which a task that adds nothing to the divisor has
    no part. ``n`` is the number of samples, by default the divisor; the rest is as for
    ``interval``.
    """
    parts = {cell: times for cell, times in tasks.items() if cell[0]}
    divisor = sum(int(cell[0]) * times for cell, times in parts.items())
    estimated = jackknife(lambda below, above: {"ratio": ratio(above, below)}, parts, 2)["ratio"]
    return interval(
        estimated,
        divisor if n is None else n,
        confidence=confidence,
        share=share,
        least=least,
        most=most,
    )


def ratio(above: float, below: float) -> float | None:
    """Return ``above / below``; None where ``below`` is 0."""
    return above / below if below else None


class Grades:
    """Grades of one grader, in input order.

    Iterating yields ``(key, grade)``. A grade has outcome, score, passed, label, gold, counts and
    parts; ``fault`` and ``metadata`` only where the aggregator's ``keeps`` names them.
    ``key.facets`` holds the aggregator's ``facets``.
    """

    def __init__(
        self,
        table: Table,
        key: str,
        rows: Sequence[int] | None = None,
        numbers: tuple[Sequence[Numbers | None], Sequence[int]] | None = None,
    ) -> None:
        self.table, self.key, self._rows, self._numbers = table, key, rows, numbers

    def __len__(self) -> int:
        return len(self.table) if self._rows is None else len(self._rows)

    def _of(self, codes: Sequence[int]) -> Sequence[int]:
        return codes if self._rows is None else array("I", map(codes.__getitem__, self._rows))

    @property
    def rows(self) -> Sequence[int]:
        """Numbers of the rows."""
        return range(len(self.table)) if self._rows is None else self._rows

    def __iter__(self) -> Iterator[tuple[Key, Grade]]:
        distinct = self.table.grades(self.key)
        verdicts = self.table.verdicts[self.key].codes
        columns = self.table.keys
        ids, clusters, models, runs = (columns[name] for name in ("id", "cluster", "model", "run"))
        facets, of_facets = self.table.facets(), columns["facets"].codes
        for row in self.rows:
            key = Key(
                id=ids.values[ids.codes[row]],
                cluster=clusters.values[clusters.codes[row]],
                model=models.values[models.codes[row]],
                run=runs.values[runs.codes[row]],
                ordinal=row,
                facets=facets[of_facets[row]],
            )
            yield key, distinct[verdicts[row]]

    def of(self, key: str) -> Grades:
        """Return another grader's grades of the same samples.

        Raises:
            KeyError: No grader has this key.
        """
        if key not in self.table.verdicts:
            raise KeyError(
                f"no grader has the key {key!r}; there are: {', '.join(self.table.verdicts)}"
            )
        return Grades(self.table, key, self._rows)

    def within(self, rows: Sequence[int]) -> Grades:
        """Return the grades of some rows of the table."""
        return Grades(self.table, self.key, rows, self._numbers)

    @cached_property
    def models(self) -> list[str]:
        """Names of the models, empty for none, in the order of their first samples."""
        values = self.table.keys["model"].values
        return [
            values[code] or "" for code in dict.fromkeys(self._of(self.table.keys["model"].codes))
        ]

    def of_model(self, name: str) -> Grades:
        """Return the grades of one model."""
        column = self.table.keys["model"]
        wanted = [(value or "") == name for value in column.values]
        return self.within(
            array("I", compress(self.rows, map(wanted.__getitem__, self._of(column.codes))))
        )

    @cached_property
    def by_task(self) -> dict[str, list[tuple[Key, Grade]]]:
        """Task -> its keys and grades."""
        found: dict[str, list[tuple[Key, Grade]]] = {}
        for key, grade in self:
            found.setdefault(key.id if key.cluster is None else key.cluster, []).append(
                (key, grade)
            )
        return found

    @cached_property
    def counted(self) -> list[tuple[Grade, int]]:
        """The distinct grades, in the order of their first samples, and how many
        samples have them.
        """
        distinct = self.table.grades(self.key)
        return [(distinct[code], times) for code, times in self._times.items()]

    @cached_property
    def _times(self) -> Counter[int]:
        found: Counter[int] = Counter()
        for (code, *_), times in self.table.alike(self.key, self._rows).items():
            found[code] += times
        return found

    def columns(self) -> dict[str, list[Any]]:
        """Return the grades as columns of equal length, by name.

        ``id``, ``cluster``, ``model``, ``run``, ``outcome``, ``score`` (None unless graded),
        ``passed``, ``label``, ``gold``, and ``counts.NAME`` and ``parts.NAME`` (None where a grade
        has none).
        """
        pairs = list(self)
        found: dict[str, list[Any]] = {
            name: [getattr(key, name) for key, _ in pairs]
            for name in ("id", "cluster", "model", "run")
        }
        found["outcome"] = [str(grade.outcome) for _, grade in pairs]
        found |= {
            name: [getattr(grade, name) for _, grade in pairs]
            for name in ("score", "passed", "label", "gold")
        }
        for of in ("counts", "parts"):
            names = sorted({name for grade, _ in self.counted for name in getattr(grade, of)})
            found |= {
                f"{of}.{name}": [getattr(grade, of).get(name) for _, grade in pairs]
                for name in names
            }
        return found

    @cached_property
    def _adding(self) -> ExactSums:
        """What adds up what grades contribute."""
        return ExactSums(self._numbers[0] if self._numbers else ())

    @cached_property
    def names(self) -> list[str]:
        """Names of all numbers, sorted."""
        return self._adding.names

    @cached_property
    def _by_cell(self) -> list[Sums]:
        """What samples add, of each cell of the table."""
        cells = self.table.cells()
        codes = self._numbers[1] if self._numbers else ()
        if not codes:
            return [()] * len(cells.tasks)
        rows = map(self._adding.contributions.__getitem__, self._of(codes))
        return self._adding.added(self._of(cells.codes), rows, len(cells.tasks))

    def _by_task(self, sums: Sequence[Sums]) -> list[Sums]:
        cells = self.table.cells()
        if len(cells.models) == 1:
            return list(sums)
        return self._adding.added(cells.tasks, sums, len(cells.names))

    @cached_property
    def _tasks(self) -> tuple[Counter[Sums], dict[str, Counter[Sums]]]:
        """How many tasks have which sums.

        Over all models, and of each model that has any.
        """
        cells, sums = self.table.cells(), self._by_cell
        of_model: list[list[Sums]] = [[] for _ in cells.models]
        for model, added in zip(cells.of_models, sums, strict=True):
            if added:
                of_model[model].append(added)
        models = {
            name: Counter(found)
            for name, found in zip(cells.models, of_model, strict=True)
            if found
        }
        if len(models) == 1:
            return next(iter(models.values())), models
        return Counter(filter(None, self._by_task(sums))), models

    def _counted(
        self, cells: Callable[[list[Sums]], Iterable[Any]]
    ) -> tuple[Counter[Any], dict[str, Counter[Any]]]:
        """Return how many tasks have which cells, made of sums.

        Over all models, and of each model's tasks.
        """

        def count(sums: Mapping[Sums, int]) -> Counter[Any]:
            found: Counter[Any] = Counter()
            for cell, times in zip(cells(list(sums)), sums.values(), strict=True):
                found[cell] += times
            return found

        every, models = self._tasks
        by_model = {model: count(each) for model, each in models.items()}
        return (next(iter(by_model.values())) if len(by_model) == 1 else count(every)), by_model

    def sums(
        self, *names: str, whole: bool = False
    ) -> tuple[Counter[Cell], dict[str, Counter[Cell]]]:
        """Return how many tasks have which sums of some numbers.

        Over all models, and of each model's tasks.

        Args:
            names: Of the numbers; "" is the number of samples.
            whole: Whether sums are exact, in units of which ``unit(name)`` are 1; default: each is
                rounded once.
        """
        column: Callable[[str, list[Sums]], Sequence[float]] = self._adding.numbers_of
        if whole:
            column = self._adding.units_of
        return self._counted(lambda sums: zip(*[column(name, sums) for name in names], strict=True))

    def unit(self, name: str) -> int:
        """Return how many units of exact sums are 1."""
        return self._adding.unit(name)

    def numbers_by_task(self) -> dict[str, TaskNumbers]:
        """Return task -> what its samples add; tasks without any are left out."""
        sums = self._by_task(self._by_cell)
        named = zip(self.table.cells().names, self._adding.named(sums), strict=True)
        return {task: numbers for task, numbers in named if numbers}

    def tasks_by_model(self) -> Counter[tuple[tuple[str, TaskNumbers], ...]]:
        """Return how many tasks have which numbers under each of several models."""
        cells, parts = self.table.cells(), dict[int, list[tuple[str, Sums]]]()
        for task, model, added in zip(cells.tasks, cells.of_models, self._by_cell, strict=True):
            if added:
                parts.setdefault(task, []).append((cells.models[model], added))
        counted = Counter([tuple(sorted(each)) for each in parts.values()])
        distinct = list({added: None for each in counted for _, added in each})
        named = dict(zip(distinct, self._adding.named(distinct), strict=True))
        found: Counter[tuple[tuple[str, TaskNumbers], ...]] = Counter()
        for several, times in counted.items():
            found[tuple([(model, named[added]) for model, added in several])] += times
        return found

    def task_numbers(
        self, names: Container[str] | None = None
    ) -> tuple[Counter[TaskNumbers], dict[str, Counter[TaskNumbers]]]:
        """Return how many tasks have which numbers by name.

        Over all models, and of each model's tasks.

        The number of samples stands under the empty name.

        Args:
            names: The only ones wanted; default: all.
        """
        return self._counted(lambda sums: self._adding.named(sums, names))

    @cached_property
    def totals(self) -> dict[str, int | Fraction]:
        """The exact sums of all numbers, by name."""
        counted = Counter[Sums]()
        if self._numbers is not None:
            for code, times in Counter(self._of(self._numbers[1])).items():
                counted[self._adding.contributions[code]] += times
        return self._adding.exact_totals(counted)

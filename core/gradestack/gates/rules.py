"""Gates as rules: what each form compares, which samples pass by it, and how people read it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from gradestack.errors import ConfigError, suggest
from gradestack.model import JSON

Aggregates = Mapping[
    str, Mapping[str, JSON]
]  # grader key -> metric key -> what that aggregator computed


class NoFigure(ConfigError):
    """There is no figure at a path; the text says where it ends and what is nearest."""


class Located(NamedTuple):
    """A figure among those of an aggregator."""

    value: Any
    path: str  # the whole path below the aggregator
    reason: Any = None
    interval: Any = None
    """What stands beside it under ``NAME_interval``, or for it in that of the map it is in."""


def _first_key(text: str, keys: Iterable[str]) -> tuple[str, str]:
    """Return the longest key that a path begins with, and what is left of the path.

    Keys may hold dots.
    """
    key = max(
        (key for key in keys if text == key or text.startswith(f"{key}.")), key=len, default=""
    )
    return key, text[len(key) + 1 :] if key else ""


def split_path(path: str, metrics: Mapping[str, Iterable[str]]) -> tuple[str, str, str]:
    """Return grader, aggregator and the rest of ``GRADER.AGGREGATOR[.FIGURE]``.

    "" for a key there is none of.
    """
    grader, rest = _first_key(path, metrics)
    return grader, *_first_key(rest, metrics.get(grader, ()))


def figure_at(made: JSON, path: str, own: Iterable[str], at: str) -> Located:
    """Return the figure at a path below the aggregator at ``at``, given what that computed and what
    it is called.

    A figure of such a name need not be named: ``pass_hat_k.4`` is ``pass_hat_k.pass_hat_k.4``.
    """
    if isinstance(made, Mapping) and not (path and _first_key(path, made)[0]):
        inner = next((name for name in own if name in made), "")
        path = f"{inner}.{path}" if inner and path else inner or path
    value, beside, rest, reason, interval = made, made, path, None, None
    while rest:
        if not isinstance(value, Mapping):
            raise NoFigure(f"no figure {rest.partition('.')[0]!r} in {at}, which has none")
        beside = value
        name, left = _first_key(rest, value)
        if not name:
            step = rest.partition(".")[0]
            hint = suggest(step, value) or f"; there are: {', '.join(map(str, value)) or 'none'}"
            raise NoFigure(f"no figure {step!r} in {at}{hint}")
        within: Any = interval.get(name) if isinstance(interval, Mapping) else None
        interval = beside.get(f"{name}_interval", within)
        value, rest, at, reason = beside[name], left, f"{at}.{name}", beside.get(f"{name}_reason")
    return Located(value, path, reason, interval)


def number_at(made: JSON, path: str, own: Iterable[str], at: str) -> tuple[float | None, Any]:
    """Return the number at such a path, None where it is not defined, and its interval."""
    found = figure_at(made, path, own, at)
    value, interval = found.value, found.interval
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        what = (
            f"holds {', '.join(map(str, value))}: name one of them"
            if isinstance(value, Mapping)
            else "is no number"
        )
        raise NoFigure(f"{at}{'.' * bool(found.path)}{found.path} {what}")
    known = isinstance(interval, Mapping) and (
        "reason" in interval or {"low", "clusters", "method"} <= interval.keys()
    )
    return value, interval if known else None


Op = Literal["gt", "gte", "lt", "lte", "eq"]
OPERATORS: dict[Op, tuple[str, Callable[[float, float], bool]]] = {
    "gt": (">", operator.gt),
    "gte": (">=", operator.ge),
    "lt": ("<", operator.lt),
    "lte": ("<=", operator.le),
    "eq": ("==", operator.eq),
}
Aggregation = Literal[
    "avg_score", "accuracy", "pass_rate", "share", "min", "max", "median", "p50", "p95", "p99"
]
PERCENT = ("accuracy", "pass_rate")
"""Aggregations from 0 to 100. ``share`` is ``accuracy`` from 0 to 1, and is resolved to it."""
SHARE_OF_RUNS = "share"
OnNoData = Literal["fail", "pass"]
OnUndecided = Literal["fail", "pass", "warn"]
Over = Literal["total", "graded"]
"""What a percentage of samples is of.

All the grader applies to, or those of them that were graded.
"""


def exactly(value: float) -> str:
    """Return a number as people write it, every digit of it."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def compared(name: str, op: Op, value: float, unit: str = "") -> str:
    """Return a comparison as people read it: ``quality >= 0.75``."""
    return f"{name} {OPERATORS[op][0]} {exactly(value)}{unit}"


def _comparison(name: str, gate: AggregateGate) -> str:
    how = "" if gate.aggregation == "avg_score" else f" {gate.aggregation}"
    return compared(f"{name}{how}", gate.op, gate.value, "%" if gate.aggregation in PERCENT else "")


class _AllPoints:
    """The rule per sample of a gate that has none of its own."""

    def sample_passes(self, score: float) -> bool:
        return score >= 1.0


class _Threshold(_AllPoints, msgspec.Struct, frozen=True, kw_only=True):
    """What every gate has that compares one figure with a limit."""

    op: Op
    value: float
    on_no_data: OnNoData = "fail"  # what an empty series decides
    confidence: float | None = None
    """With it the one-sided bound of the interval decides, in place of the value.

    Between 0.5 and 1.
    """
    on_undecided: OnUndecided = "fail"  # what decides when the bounds hold the limit
    per: str | None = None  # `model`, or the name of a facet: the gate must hold in every group

    def __post_init__(self) -> None:
        if self.confidence is not None and not 0.5 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0.5 and 1, got {self.confidence}")
        if self.confidence is not None and self.op == "eq":
            why = "nothing is surely equal to a value; compare with gt, gte, lt or lte"
            raise ValueError(f"confidence: {why}")
        if self.per in ("task", "id"):
            why = "a gate per task says how many runs of each must pass: at_least: 3 of 4"
            raise ValueError(f"per: {why}")


def _check_over(over: Over | None, aggregation: Aggregation) -> None:
    if over == "total" and aggregation not in PERCENT:
        known = " and ".join(PERCENT)
        raise ValueError(f"over: {aggregation} is over graded samples; total is for {known}")


class GateSpec(_Threshold, frozen=True, kw_only=True):
    """A flat gate, as letta-evals suites write it."""

    metric_key: str | None = None  # grader key; default the first grader. A resolved gate has it.
    metric: Literal["avg_score", "accuracy", "share"] = "avg_score"
    pass_op: Op | None = None  # per-sample rule; default: the gate's own `op`
    pass_value: float | None = None  # per-sample rule; default: the gate's own `value`
    over: Over | None = (
        None  # for `accuracy`; default `total`: failed and missing samples count against the gate
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_over(self.over, self.metric)

    @property
    def aggregation(self) -> Aggregation:
        """``metric``, by the name the other forms have for it."""
        return self.metric

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes.

        For ``accuracy`` without ``pass_value``, whatever ``pass_op`` says, at 1.
        """
        if self.metric == "accuracy" and self.pass_value is None:
            return score >= 1.0
        threshold = self.value if self.pass_value is None else self.pass_value
        return OPERATORS[self.pass_op or self.op][1](score, threshold)

    @property
    def text(self) -> str:
        """The rule as people read it: ``quality >= 0.75``."""
        return _comparison(self.metric_key or "", self)


class SimpleGate(_Threshold, frozen=True, kw_only=True):
    """One metric, aggregated, against a threshold.

    ``accuracy`` (also spelled ``pass_rate``) is the percentage of samples with a score >=
    ``pass_threshold``.
    """

    metric_key: str
    kind: Literal["simple"] = "simple"
    aggregation: Aggregation = "avg_score"
    pass_threshold: float = 1.0
    over: Over | None = None  # for `accuracy` and `pass_rate`, as in the flat form

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_over(self.over, self.aggregation)

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes: score >= ``pass_threshold``."""
        return score >= self.pass_threshold

    @property
    def text(self) -> str:
        """The rule as people read it: ``quality p95 >= 0.75``."""
        return _comparison(self.metric_key, self)


class WeightedGate(_Threshold, frozen=True, kw_only=True):
    """Each metric is aggregated first.

    The gate compares sum(weight x figure) / sum(weights), rounded once.
    """

    weights: dict[str, float]
    aggregation: Aggregation
    kind: Literal["weighted_average"] = "weighted_average"
    over: Over | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_over(self.over, self.aggregation)
        if not self.weights:
            raise ValueError("weights: at least one is needed")
        if min(self.weights.values()) < 0 or not any(self.weights.values()):
            raise ValueError(f"weights must not be negative and not all zero, got {self.weights}")

    @property
    def text(self) -> str:
        """The rule as people read it: ``weighted average of 3 quality + 1 speed >= 0.75``."""
        names = " + ".join(f"{exactly(weight)} {key}" for key, weight in self.weights.items())
        return _comparison(f"weighted average of {names}", self)


class FigureGate(_Threshold, frozen=True, kw_only=True):
    """Any figure of an aggregator against a threshold."""

    figure: str | tuple[str | int, ...]
    """``GRADER.METRIC.FIGURE``, or a list of its parts.

    Of a resolved gate grader key, metric key, the path below it, and the metric's kind: a figure of
    that name, or of the metric's key, may be left out of the path.
    """
    kind: Literal["figure"] = "figure"
    on_uncalibrated: OnUndecided = "fail"
    """What decides where the figure is a model's verdict that labels of people do not correct well
    enough.
    """

    @property
    def name(self) -> str:
        """The path as people read it."""
        return ".".join(filter(None, map(str, self.figure[:3])))

    @property
    def text(self) -> str:
        """The rule as people read it: ``reward.pass_hat_k.4 >= 0.2``."""
        return compared(self.name, self.op, self.value)


class NativeGate(_Threshold, frozen=True, kw_only=True):
    """A number of a native file against a threshold, as the original program computes it."""

    path: tuple[str, ...]
    """Name of the file below ``native/`` without its ending, then keys and positions in it."""
    kind: Literal["native"] = "native"

    @property
    def name(self) -> str:
        """The path as people read it: ``native.stability.metrics.stability_at_k``."""
        return ".".join(["native", *self.path])

    @property
    def text(self) -> str:
        """The rule as people read it."""
        return compared(self.name, self.op, self.value)


class LogicalSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A logical gate as written: its conditions are not resolved yet."""

    operator: Literal["and", "or"]
    conditions: tuple[dict[str, Any], ...]
    kind: Literal["logical"] = "logical"
    on_no_data: OnNoData = "fail"  # taken over by conditions that say nothing of their own
    over: Over | None = None  # taken over likewise, by those that are a percentage of samples
    per: str | None = None

    def __post_init__(self) -> None:
        if not self.conditions:
            raise ValueError("conditions: at least one is needed")


class LogicalGate(_AllPoints, msgspec.Struct, frozen=True, kw_only=True):
    """All (``and``) or any (``or``) of several conditions.

    Simple gates, gates on a figure, or again logical ones.
    """

    operator: Literal["and", "or"]
    conditions: tuple[Gate, ...]
    on_no_data: OnNoData = "fail"
    per: str | None = None

    @property
    def text(self) -> str:
        """The rule as people read it: ``(quality >= 0.75) and (speed >= 0.5)``."""
        return f" {self.operator} ".join(f"({part.text})" for part in self.conditions)


class BaselineGate(_AllPoints, msgspec.Struct, frozen=True, kw_only=True):
    """A run against an earlier one, paired by task.

    Not worse by more than a margin, or better, or with few flips.
    """

    baseline: str
    """Run directory, relative to the suite.

    ``latest``: the newest complete run of the same suite beside this one whose gates passed;
    ``latest_any``: the newest complete one.
    """
    metric_key: str | None = (
        None  # grader key; default the first grader, of a percentage the outcome grader
    )
    metric: Literal["avg_score", "accuracy", "pass_rate", "share"] = "avg_score"
    """The mean score of the grader, or the percentage (or share) of runs that pass."""
    figure: str | tuple[str | int, ...] | None = None
    """Any figure in their place.

    ``GRADER.METRIC.FIGURE``, or a list of its parts, as a resolved gate has it.
    """
    not_worse_than: float | None = None
    """Most by which it may be worse over the matched tasks; of a percentage in points."""
    require: Literal["improvement"] | None = None  # it must be better
    max_flips: int | None = None  # most runs that passed in the baseline and do not any more
    confidence: float = 0.95  # of the one-sided bounds
    on_undecided: OnUndecided | None = None
    """By default ``warn`` where no more than ``not_worse_than`` was lost, else ``fail``."""
    kind: Literal["baseline"] = "baseline"

    per: ClassVar[None] = None
    on_no_data: ClassVar[OnNoData] = "fail"

    def __post_init__(self) -> None:
        if not 0.5 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0.5 and 1, got {self.confidence}")
        if self.not_worse_than is None and self.require is None and self.max_flips is None:
            raise ValueError("not_worse_than, require or max_flips: at least one is needed")
        if (self.not_worse_than or 0) < 0 or (self.max_flips or 0) < 0:
            raise ValueError("not_worse_than and max_flips must not be negative")
        if self.figure is not None and (self.metric_key is not None or self.metric != "avg_score"):
            raise ValueError("figure stands in place of metric_key and metric")

    @property
    def aggregation(self) -> Aggregation:
        """``metric``, by the name the other forms have for it."""
        return self.metric

    @property
    def compares_values(self) -> bool:
        """Whether it compares figures, in a direction, and not runs alone."""
        return self.not_worse_than is not None or self.require is not None

    @property
    def grader(self) -> str:
        """Key of the grader it is about."""
        return self.metric_key or "" if self.figure is None else str(self.figure[0])

    @property
    def name(self) -> str:
        """What is compared, as people read it: a grader's mean score by its key."""
        if self.figure is not None:
            return ".".join(filter(None, map(str, self.figure)))
        return f"{self.grader} {self.metric}" if self.metric in PERCENT else self.grader

    @property
    def text(self) -> str:
        """The rule as people read it: ``reward not worse than runs/before by 0.05``."""
        parts, points = [], " points" if self.metric in PERCENT else ""
        if self.not_worse_than is not None:
            parts.append(
                f"{self.name} not worse than {self.baseline} by "
                f"{exactly(self.not_worse_than)}{points}"
            )
        if self.require is not None:
            parts.append(f"{self.name} better than {self.baseline}")
        if self.max_flips is not None:
            parts.append(f"{self.metric_key} runs broken since {self.baseline} <= {self.max_flips}")
        return " and ".join(parts)


class TaskGate(_AllPoints, msgspec.Struct, frozen=True, kw_only=True):
    """Each task must pass a number of its runs, by the grader's verdict."""

    at_least: int | str
    """``3 of 4``: of four runs three must pass, of more runs the same share. ``3``: three runs."""
    metric_key: str | None = None
    """Grader key; default the outcome grader."""
    per: Literal["task"] = "task"
    kind: Literal["tasks"] = "tasks"
    on_no_data: OnNoData = "fail"

    def __post_init__(self) -> None:
        self.needed()

    def needed(self) -> tuple[int, int]:
        """Return how many runs must pass, and of how many; 0 for any number of runs.

        Raises:
            ValueError: ``at_least`` is neither a number nor ``N of K`` with N from 1 to K.
        """
        written = str(self.at_least)
        match = re.fullmatch(r"([0-9]{1,6})(?: of ([0-9]{1,6}))?", written)
        passing = int(match[1]) if match else 0
        runs = int(match[2] or 0) if match else 0
        if passing < 1 or (match and match[2] and passing > runs):
            raise ValueError(f"at_least: expected runs such as 3 of 4, got {written!r}")
        return passing, runs

    def is_met(self, passed: int, runs: int) -> bool:
        """Return whether a task with so many passed runs passes."""
        needed, of = self.needed()
        if not of:
            return passed >= needed
        return passed * of >= needed * max(runs, of)

    @property
    def text(self) -> str:
        """The rule as people read it: ``reward passes 3 of 4 runs of every task``."""
        needed, of = self.needed()
        runs = f"{needed} of {of} runs" if of else f"{needed} run{'s' * (needed > 1)}"
        return f"{self.metric_key or ''} passes {runs} of every task"


AggregateGate = GateSpec | SimpleGate | WeightedGate  # a gate that compares an aggregate of scores
Threshold = AggregateGate | FigureGate  # a gate that compares one figure
Gate = Threshold | LogicalGate | TaskGate | NativeGate
AnyGate = Gate | BaselineGate


PERCENT_TEXT = r"([0-9]{1,3}(\.[0-9]{1,15})?) ?%"  # a share as a percentage, as a pattern
THRESHOLDS = ("value", "pass_value", "pass_threshold", "not_worse_than")
"""Keys of gates that hold a threshold; each may be written as text with a percent sign."""


def read_threshold(written: Any, *, in_percent: bool) -> Any:
    """Return a threshold written as text with a percent sign as a number of its gate's unit.

    Args:
        written: What the suite has.
        in_percent: Whether the gate compares percentages (80) and not fractions (0.8).

    Returns:
        The number; anything that is not text unchanged.

    Raises:
        ConfigError: The text is no percentage.
    """
    if not isinstance(written, str):
        return written
    match = re.fullmatch(PERCENT_TEXT, written.strip())
    if match is None:
        raise ConfigError(f'expected a number, or a percentage such as "80%"; got {written!r}')
    percent = Fraction(match[1])
    return float(percent if in_percent else percent / 100)


def as_percent(share: float) -> float:
    """Return a share as a percentage, with the digits people write it with.

    0.29 is 29, not 28.999999999999996.
    """
    return float(Fraction(repr(share)) * 100)


def doubtful_percentage(value: Any) -> str | None:
    """Return what to write instead of a number that may be a share or a percentage; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        return None
    percent = f"{as_percent(value):g}"
    reading = f"{value:g} is a percentage here: {value:g}% of the samples"
    return f'{reading}; write "{percent}%" or "{value:g}%"'


def over_total(gate: AggregateGate) -> bool:
    """Return whether failed and missing samples count in what a gate compares."""
    return gate.aggregation in PERCENT and gate.over != "graded"


Limit = int | float  # a number of samples, or as a float a share of them, 0 to 1


def as_limit(written: Any) -> Limit:
    """Return what ``max_failed`` says.

    Whole numbers are samples, ``5%`` and 0.05 a share of them.
    """
    percent = re.fullmatch(PERCENT_TEXT, written) if isinstance(written, str) else None
    limit = float(Fraction(percent[1]) / 100) if percent else written
    is_share = type(limit) is float
    if type(limit) not in (int, float) or not limit >= 0 or (is_share and limit > 1):
        what = "expected a number of samples, such as 3, or a share of them, such as 5% or 0.05"
        raise ConfigError(f"{what}; got {written!r}")
    return limit


def as_share(written: Any) -> float:
    """Return what ``min_graded`` says: a share from 0 to 1.

    Raises:
        ConfigError: It is none.
    """
    share = read_threshold(written, in_percent=False)
    if type(share) not in (int, float) or not 0 <= share <= 1:
        raise ConfigError(f"expected a share such as 50% or 0.5, got {written!r}")
    return float(share)


def keys_of(gate: AnyGate) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (place below the gate, grader key) for every grader a gate names."""
    if isinstance(gate, LogicalGate):
        for position, part in enumerate(gate.conditions):
            for place, key in keys_of(part):
                yield ("conditions", position, *place), key
    elif isinstance(gate, WeightedGate):
        for key in gate.weights:
            yield ("weights", key), key
    elif isinstance(gate, FigureGate | BaselineGate) and gate.figure is not None:
        yield ("figure",), str(gate.figure[0])
    elif not isinstance(gate, FigureGate | NativeGate) and gate.metric_key:
        yield ("metric_key",), gate.metric_key

"""Gates as rules: what each form compares, which samples pass by it, and how people read it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal

import msgspec

from gradestack.errors import ConfigError

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
"""The samples a percentage is of: all the grader applies to, or the graded ones."""


def exactly(value: float) -> str:
    """Return a number as people write it, every digit of it."""
    short = f"{value:g}"
    if float(short) == value:
        return short
    return repr(value)


def compare_text(name: str, op: Op, value: float, unit: str = "") -> str:
    """Return a comparison as people read it: ``quality >= 0.75``."""
    sign, _ = OPERATORS[op]
    return f"{name} {sign} {exactly(value)}{unit}"


def check_confidence(confidence: float | None) -> None:
    """Refuse a confidence that no one-sided bound has."""
    if confidence is not None and not 0.5 < confidence < 1:
        raise ValueError(f"confidence must be between 0.5 and 1, got {confidence}")


GraderKeys = Mapping[tuple[str, ...], str]
"""Place below a gate -> the grader key there."""


class _Rule:
    """Properties of gates of every form."""

    fields: ClassVar[tuple[str, ...]] = ("kind", "metric_key")
    """What summary.json has of the gate, by name."""
    figure: Any = None

    @property
    def metric(self) -> str:
        """Name of the aggregation of scores; "" where none are aggregated."""
        return ""

    @property
    def metric_key(self) -> str | None:
        """Key of the grader it is about, if it is one."""
        return None

    @property
    def graders(self) -> GraderKeys:
        """Place below the gate -> grader key, of the graders it is about."""
        if self.metric_key:
            return {("metric_key",): self.metric_key}
        return {}

    @property
    def sample_rule(self) -> tuple[Op, float]:
        """Operator and limit of the rule by which a sample's score passes."""
        return "gte", 1.0

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes by the gate's rule for samples."""
        op, limit = self.sample_rule
        return OPERATORS[op][1](score, limit)

    @property
    def is_percent(self) -> bool:
        """Whether it compares a percentage of samples."""
        return self.metric in PERCENT

    @property
    def name(self) -> str:
        """The figure that is compared, as people read it."""
        figure = self.figure[:3]
        return ".".join(filter(None, map(str, figure)))

    @property
    def unit(self) -> str:
        """The sign behind a threshold."""
        return "%" if self.is_percent else ""


class Threshold(_Rule, msgspec.Struct, frozen=True, kw_only=True):
    """A gate that compares one figure with a limit."""

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
        check_confidence(self.confidence)
        if self.confidence is not None and self.op == "eq":
            why = "nothing is surely equal to a value; compare with gt, gte, lt or lte"
            raise ValueError(f"confidence: {why}")
        if self.per in ("task", "id"):
            why = "a gate per task says how many runs of each must pass: at_least: 3 of 4"
            raise ValueError(f"per: {why}")

    def holds(self, number: float) -> bool:
        """Return whether a number compares to the threshold as asked."""
        return OPERATORS[self.op][1](number, self.value)

    @property
    def text(self) -> str:
        """The rule as people read it."""
        return compare_text(self.name, self.op, self.value, self.unit)


class ScoreGate(Threshold, frozen=True, kw_only=True):
    """A gate that aggregates scores of graders."""

    over: Over | None = None
    """Of a percentage; by default all samples, so that failed and missing ones count against it."""

    fields = ("kind", "metric", "metric_key", "weights", "op", "value")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.over == "total" and not self.is_percent:
            known = " and ".join(PERCENT)
            why = f"{self.metric} is over graded runs; total is for {known}"
            raise ValueError(f"over: {why}")

    @property
    def counts_lost(self) -> bool:
        """Whether failed and missing samples count in what it compares."""
        return self.is_percent and self.over != "graded"

    @property
    def lost_passes(self) -> bool:
        """Whether a failed or missing sample counts as passed: always against the gate."""
        return self.op in ("lt", "lte")

    @property
    def parts(self) -> Mapping[str, float]:
        """Grader key -> weight of its figure."""
        return dict.fromkeys(self.graders.values(), 1.0)

    @property
    def name(self) -> str:
        """Name of the compared figure, as people read it: ``quality p95``."""
        subject = self.metric_key or ""
        if self.metric == "avg_score":
            return subject
        return f"{subject} {self.metric}"


class GateSpec(ScoreGate, frozen=True, kw_only=True):
    """A flat gate, as letta-evals suites write it."""

    metric_key: str | None = None  # grader key; default the first grader. A resolved gate has it.
    metric: Literal["avg_score", "accuracy", "share"] = "avg_score"
    pass_op: Op | None = None  # per-sample rule; default: the gate's own `op`
    pass_value: float | None = None  # per-sample rule; default: the gate's own `value`

    @property
    def sample_rule(self) -> tuple[Op, float]:
        """For ``accuracy`` without ``pass_value``, whatever ``pass_op`` says, at 1."""
        if self.metric == "accuracy" and self.pass_value is None:
            return super().sample_rule
        if self.pass_value is None:
            limit = self.value
        else:
            limit = self.pass_value
        return self.pass_op or self.op, limit


class SimpleGate(ScoreGate, frozen=True, kw_only=True):
    """One metric, aggregated, against a threshold.

    ``accuracy`` (also spelled ``pass_rate``) is the percentage of samples with a score >=
    ``pass_threshold``.
    """

    metric_key: str
    kind: Literal["simple"] = "simple"
    aggregation: Aggregation = "avg_score"
    pass_threshold: float = 1.0

    @property
    def metric(self) -> Aggregation:
        """``aggregation``, by the name the flat form has for it."""
        return self.aggregation

    @property
    def sample_rule(self) -> tuple[Op, float]:
        """At ``pass_threshold``."""
        return "gte", self.pass_threshold


class WeightedGate(ScoreGate, frozen=True, kw_only=True):
    """Each metric is aggregated first.

    The gate compares sum(weight x figure) / sum(weights), rounded once.
    """

    weights: dict[str, float]
    aggregation: Aggregation
    kind: Literal["weighted_average"] = "weighted_average"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.weights:
            raise ValueError("weights: at least one is needed")
        weights = self.weights.values()
        if min(weights) < 0 or not any(self.weights.values()):
            raise ValueError(f"weights must not be negative and not all zero, got {self.weights}")

    @property
    def metric(self) -> Aggregation:
        """``aggregation``, by the name the flat form has for it."""
        return self.aggregation

    @property
    def graders(self) -> GraderKeys:
        """Place below the gate -> grader key, of the graders it is about."""
        return {("weights", key): key for key in self.weights}

    @property
    def parts(self) -> Mapping[str, float]:
        """Grader key -> weight of its figure."""
        weights = self.weights.items()
        return {key: weight for key, weight in weights if weight}

    @property
    def name(self) -> str:
        """Name of the figure, as people read it: ``weighted average of 3 quality + 1 speed``."""
        weights = self.weights.items()
        terms = [f"{exactly(weight)} {key}" for key, weight in weights]
        return f"weighted average of {' + '.join(terms)}{super().name}"


class FigureGate(Threshold, frozen=True, kw_only=True):
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

    fields = ("kind", "metric_key", "op", "value")

    @property
    def metric_key(self) -> str:
        """Key of the grader."""
        return str(self.figure[0])


class NativeGate(Threshold, frozen=True, kw_only=True):
    """A number of a native file against a threshold, as the original program computes it."""

    figure: str
    """Name of the file below ``native/`` without its ending, then keys and positions in it."""
    kind: Literal["native"] = "native"

    fields = ("kind", "op", "value")

    @property
    def name(self) -> str:
        """The path as people read it: ``native.stability.metrics.stability_at_k``."""
        return f"native.{self.figure}"


class LogicalSpec(_Rule, msgspec.Struct, frozen=True, kw_only=True):
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


class LogicalGate(LogicalSpec, frozen=True, kw_only=True):
    """All (``and``) or any (``or``) of several conditions.

    Simple gates, gates on a figure, or again logical ones.
    """

    conditions: tuple[Any, ...]

    fields = ("kind", "operator")

    @property
    def text(self) -> str:
        """The rule as people read it: ``(quality >= 0.75) and (speed >= 0.5)``."""
        return f" {self.operator} ".join(f"({part.text})" for part in self.conditions)


class BaselineGate(_Rule, msgspec.Struct, frozen=True, kw_only=True):
    """A run against an earlier one, paired by task.

    Not worse by more than a margin, or better, or with few flips.
    """

    baseline: str
    """Report directory, relative to the suite.

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
    fields = (
        *("kind", "metric", "baseline", "not_worse_than", "require", "max_flips", "confidence"),
        "on_undecided",
    )

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not self.compares_values and self.max_flips is None:
            raise ValueError("not_worse_than, require or max_flips: at least one is needed")
        if (self.not_worse_than or 0) < 0 or (self.max_flips or 0) < 0:
            raise ValueError("not_worse_than and max_flips must not be negative")
        if self.figure is not None and (self.metric_key is not None or self.metric != "avg_score"):
            raise ValueError("figure replaces metric_key and metric")

    @property
    def compares_values(self) -> bool:
        """Whether the gate compares a figure with a bound or a baseline, not runs one by one."""
        return self.not_worse_than is not None or self.require is not None

    @property
    def grader(self) -> str:
        """Key of the grader that the gate is about."""
        if self.figure is None:
            return self.metric_key or ""
        return str(self.figure[0])

    @property
    def name(self) -> str:
        """Name of the compared figure, as people read it: a grader's mean score by its key."""
        if self.figure is not None:
            return super().name
        if self.is_percent:
            return f"{self.grader} {self.metric}"
        return self.grader

    @property
    def text(self) -> str:
        """The rule as people read it: ``reward not worse than runs/before by 0.05``."""
        points = " points" if self.is_percent else ""
        parts = []
        if self.not_worse_than is not None:
            margin = f"{exactly(self.not_worse_than)}{points}"
            parts.append(f"{self.name} not worse than {self.baseline} by {margin}")
        if self.require is not None:
            parts.append(f"{self.name} better than {self.baseline}")
        if self.max_flips is not None:
            parts.append(f"{self.grader} runs broken since {self.baseline} <= {self.max_flips}")
        return " and ".join(parts)


class TaskGate(_Rule, msgspec.Struct, frozen=True, kw_only=True):
    """Each task must pass a number of its runs, by the grader's verdict."""

    at_least: int | str
    """``3 of 4``: of four runs three must pass, of more runs the same share. ``3``: three runs."""
    metric_key: str | None = None
    """Grader key; default the outcome grader."""
    per: Literal["task"] = "task"
    kind: Literal["tasks"] = "tasks"
    on_no_data: OnNoData = "fail"

    fields = ("kind", "metric_key", "at_least", "per")

    def __post_init__(self) -> None:
        self.needed()

    def needed(self) -> tuple[int, int]:
        """Return the number of runs that must pass, and of how many; 0 for any number of runs.

        Raises:
            ValueError: ``at_least`` is neither a number nor ``N of K`` with N from 1 to K.
        """
        written = str(self.at_least)
        match = re.fullmatch(r"([0-9]{1,6})(?: of ([0-9]{1,6}))?", written)
        passing, runs = map(int, match.groups("0")) if match else (0, 0)
        if passing < 1 or (runs < passing and " " in written):
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
        if of:
            runs = f"{needed} of {of} runs"
        else:
            runs = f"{needed} run{'s' * (needed > 1)}"
        return f"{self.metric_key or ''} passes {runs} of every task"


Gate = ScoreGate | FigureGate | NativeGate | LogicalGate | TaskGate
AnyGate = Gate | BaselineGate


PERCENT_TEXT = r"([0-9]{1,3}(\.[0-9]{1,15})?) ?%"  # a share as a percentage, as a pattern
THRESHOLDS = ("value", "pass_value", "pass_threshold", "not_worse_than")
"""Keys of gates that hold a threshold; each may be written as text with a percent sign."""


def read_threshold(written: Any, *, in_percent: bool = False) -> Any:
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
    fraction = Fraction(repr(share))
    return float(fraction * 100)


def doubtful_percentage(value: float) -> str:
    """Return advice about a number that may be a share or a percentage; "" for a clear one."""
    if not 0 < value <= 1:
        return ""
    percent = f"{as_percent(value):g}"
    reading = f"{value:g} is a percentage here: {value:g}% of the runs"
    return f'{reading}; write "{percent}%" or "{value:g}%"'


Limit = int | float  # a number of samples, or as a float a share of them, 0 to 1


def as_limit(written: Any) -> Limit:
    """Return the limit in ``max_failed``.

    Whole numbers are samples, ``5%`` and 0.05 a share of them.
    """
    if type(written) is int and written >= 0:
        return written
    return as_share(written, "a number of runs, such as 3, or a share of them, such as 5% or 0.05")


def as_share(written: Any, expected: str = "a share such as 50% or 0.5") -> float:
    """Return the share in ``min_graded``, from 0 to 1.

    Raises:
        ConfigError: It is none.
    """
    share = read_threshold(written)
    if type(share) not in (int, float) or not 0 <= share <= 1:
        raise ConfigError(f"expected {expected}; got {written!r}")
    return float(share)

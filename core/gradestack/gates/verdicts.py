"""Gates beyond the flat form: one metric with any aggregation, weighted averages, logical combinations, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import attrs

from gradestack.api import Profile
from gradestack.exact import exact_mean
from gradestack.gates.rules import OPERATORS, GateSpec, Op, evaluate
from gradestack.model import JSON

Aggregation = Literal["avg_score", "accuracy", "pass_rate", "min", "max", "median", "p50", "p95", "p99"]
_QUANTILES: dict[str, float] = {"min": 0.0, "median": 0.5, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
OnNoData = Literal["fail", "pass"]


@attrs.frozen(kw_only=True)
class SimpleGate:
    """One metric, aggregated, against a threshold.

    ``accuracy`` (also spelled ``pass_rate``) is the percentage of graded scores >= ``pass_threshold``.
    """

    metric_key: str
    op: Op
    value: float
    kind: Literal["simple"] = "simple"
    aggregation: Aggregation = "avg_score"
    pass_threshold: float = 1.0
    on_no_data: OnNoData = "fail"
    per: str | None = None
    """``model``, or the name of a facet: the gate must hold in every group."""

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes: score >= ``pass_threshold``."""
        return score >= self.pass_threshold


@attrs.frozen(kw_only=True)
class WeightedGate:
    """Each metric is aggregated first; the gate compares sum(weight x figure) / sum(weights)."""

    weights: dict[str, float]
    aggregation: Aggregation
    op: Op
    value: float
    kind: Literal["weighted_average"] = "weighted_average"
    on_no_data: OnNoData = "fail"
    per: str | None = None

    def __attrs_post_init__(self) -> None:
        if not self.weights:
            msg = "weights: at least one is needed"
            raise ValueError(msg)
        negative = [key for key, weight in self.weights.items() if weight < 0]
        if negative or not any(self.weights.values()):
            msg = f"weights must not be negative and not all zero, got {self.weights}"
            raise ValueError(msg)

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes: score >= 1.0."""
        return score >= 1.0


@attrs.frozen(kw_only=True)
class LogicalSpec:
    """A logical gate as written: its conditions are not resolved yet."""

    operator: Literal["and", "or"]
    conditions: tuple[dict[str, Any], ...]
    kind: Literal["logical"] = "logical"
    on_no_data: OnNoData = "fail"
    """Taken over by conditions that say nothing of their own."""
    per: str | None = None

    def __attrs_post_init__(self) -> None:
        if not self.conditions:
            msg = "conditions: at least one is needed"
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class LogicalGate:
    """All (``and``) or any (``or``) of several conditions, each a simple or again a logical gate."""

    operator: Literal["and", "or"]
    conditions: tuple[Gate, ...]
    on_no_data: OnNoData = "fail"
    per: str | None = None

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes: score >= 1.0."""
        return score >= 1.0


Gate = GateSpec | SimpleGate | WeightedGate | LogicalGate


def keys_of(gate: Gate, headline: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (place below the gate, grader key) for every grader a gate names."""
    if isinstance(gate, LogicalGate):
        for position, part in enumerate(gate.conditions):
            for place, key in keys_of(part, headline):
                yield ("conditions", position, *place), key
    elif isinstance(gate, WeightedGate):
        for key in gate.weights:
            yield ("weights", key), key
    else:
        yield ("metric_key",), gate.metric_key or headline


class Series(dict[str, list[float]]):
    """Grader key -> scores of graded samples, in input order.

    Attributes:
        ran: Those of recorded runs that did not fail, as letta-evals' accuracy has it.
        runs: How many such runs there are, graded or not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ran: dict[str, list[float]] = {}
        self.runs = 0

    def add(self, scores: Mapping[str, float], *, ran: bool) -> None:
        """Add the scores of one sample, by grader key; ``ran`` says whether its recorded run did not fail."""
        self.runs += ran
        for key, score in scores.items():
            self.setdefault(key, []).append(score)
            if ran:
                self.ran.setdefault(key, []).append(score)


def quantile(ordered: list[float], q: float) -> float:
    """Return the q-quantile of sorted values by linear interpolation (position q x (n - 1), as numpy's default)."""
    position = (len(ordered) - 1) * q
    low = int(position)
    share = position - low
    if not share:
        return ordered[low]
    below, above = ordered[low], ordered[low + 1]
    return above - (above - below) * (1 - share) if share >= 0.5 else below + (above - below) * share


def aggregate(scores: list[float], how: str, threshold: float) -> float | None:
    """Return one figure of a series; None when it is empty."""
    if not scores:
        return None
    if how == "avg_score":
        return exact_mean(scores, len(scores))
    if how in ("accuracy", "pass_rate"):
        return 100.0 * sum(score >= threshold for score in scores) / len(scores)
    return quantile(sorted(scores), _QUANTILES[how])


def needs_series(gates: Iterable[Gate]) -> bool:
    """Return whether any gate needs more than the flat figures every run has."""
    return any(not isinstance(gate, GateSpec) or gate.per for gate in gates)


def _compared(gate: SimpleGate | WeightedGate, actual: float | None, profile: Profile) -> dict[str, JSON]:
    if actual is None and profile == "upstream":
        actual = 0.0
    if actual is None:
        return {"actual": None, "passed": gate.on_no_data == "pass", "outcome": "no_data"}
    passed = OPERATORS[gate.op][1](actual, gate.value)
    return {"actual": actual, "passed": passed, "outcome": "passed" if passed else "failed"}


def _percent(aggregation: str) -> str:
    return "%" if aggregation in ("accuracy", "pass_rate") else ""


def judge(gate: Gate, series: Series, headline: str, profile: Profile) -> dict[str, JSON]:
    """Return a gate's verdict over one set of series: ``text``, ``actual``, ``passed``, ``outcome`` and its rule.

    The accuracy of a flat gate is the share of the graded samples that pass; ``upstream``: of the recorded runs that
    did not fail, graded or not.

    An empty series is ``no_data``: failing unless ``on_no_data: pass``; ``upstream`` compares 0.0 instead.
    """
    if isinstance(gate, GateSpec):
        key = gate.metric_key or headline
        scores = series.get(key, [])
        counted, attempted = scores, len(scores)
        if profile == "upstream":
            counted, attempted = series.ran.get(key, []), series.runs
        passed = sum(gate.sample_passes(score) for score in counted)
        figures: dict[str, JSON] = {
            "avg_score": aggregate(scores, "avg_score", 1.0),
            "pass_rate": 100.0 * passed / attempted if attempted else None,
        }
        return evaluate(gate, key, figures, profile)
    sign = "" if isinstance(gate, LogicalGate) else OPERATORS[gate.op][0]
    if isinstance(gate, SimpleGate):
        actual = aggregate(series.get(gate.metric_key, []), gate.aggregation, gate.pass_threshold)
        how = "" if gate.aggregation == "avg_score" else f" {gate.aggregation}"
        text = f"{gate.metric_key}{how} {sign} {gate.value:g}{_percent(gate.aggregation)}"
        rule = {"kind": gate.kind, "metric_key": gate.metric_key, "metric": gate.aggregation}
        return {**rule, "op": gate.op, "value": gate.value, "text": text, **_compared(gate, actual, profile)}
    if isinstance(gate, WeightedGate):
        return _weighted(gate, series, sign, profile)
    parts = [judge(part, series, headline, profile) for part in gate.conditions]
    verdicts = [part["passed"] for part in parts]
    passed_all = all(verdicts) if gate.operator == "and" else any(verdicts)
    text = f" {gate.operator} ".join(f"({part['text']})" for part in parts)
    outcome = "passed" if passed_all else "failed"
    found = {"kind": "logical", "operator": gate.operator, "conditions": parts, "text": text, "actual": None}
    return {**found, "passed": passed_all, "outcome": outcome}


def _weighted(gate: WeightedGate, series: Series, sign: str, profile: Profile) -> dict[str, JSON]:
    figures = {key: aggregate(series.get(key, []), gate.aggregation, 1.0) for key in gate.weights}
    if profile == "upstream":
        figures = {key: 0.0 if figure is None else figure for key, figure in figures.items()}
    known = {key: figure for key, figure in figures.items() if figure is not None}
    actual = None
    if len(known) == len(figures):
        total = 0.0
        for weight in gate.weights.values():
            total += weight
        actual = 0.0
        for key, weight in gate.weights.items():
            actual += weight / total * known[key]
    names = " + ".join(f"{weight:g} {key}" for key, weight in gate.weights.items())
    how = "" if gate.aggregation == "avg_score" else f" {gate.aggregation}"
    text = f"weighted average of {names}{how} {sign} {gate.value:g}{_percent(gate.aggregation)}"
    rule = {"kind": gate.kind, "weights": gate.weights, "metric": gate.aggregation, "op": gate.op, "value": gate.value}
    return {**rule, "text": text, "figures": figures, **_compared(gate, actual, profile)}


def judge_groups(
    gate: Gate, groups: Callable[[str], Mapping[str, Series]], everything: Series, headline: str, profile: Profile
) -> dict[str, JSON]:
    """Return a gate's verdict; with ``per`` it must hold in every group, and each group's verdict is listed.

    Args:
        gate: The gate.
        groups: ``per`` -> group name -> series.
        everything: Series over all samples.
        headline: Grader a flat gate without ``metric_key`` is about.
        profile: See :func:`judge`.
    """
    if gate.per is None:
        return judge(gate, everything, headline, profile)
    verdicts = {name: judge(gate, series, headline, profile) for name, series in groups(gate.per).items()}
    passed = all(verdict["passed"] for verdict in verdicts.values()) if verdicts else gate.on_no_data == "pass"
    whole = judge(gate, everything, headline, profile)
    outcome = ("passed" if passed else "failed") if verdicts else "no_data"
    text = f"{whole['text']} per {gate.per}"
    return {**whole, "text": text, "passed": passed, "outcome": outcome, "per": gate.per, "groups": verdicts}

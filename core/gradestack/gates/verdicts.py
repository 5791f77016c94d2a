"""Verdicts: a gate's rule applied to figures, the same whatever its form and wherever the figures come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

import msgspec

from gradestack.api import Profile
from gradestack.estimates.interval import Interval, again
from gradestack.gates.paths import Aggregates, NoFigure, beside, figure_at
from gradestack.gates.rules import (
    OPERATORS,
    PERCENT,
    FigureGate,
    Gate,
    GateSpec,
    LogicalGate,
    Threshold,
    WeightedGate,
    over_total,
)
from gradestack.gates.scores import Figure, Scores
from gradestack.model import JSON


def verdict(
    gate: Gate,
    scores: Scores,
    profile: Profile,
    figures: Callable[[Sequence[int]], Aggregates] = lambda _rows: {},
) -> dict[str, JSON]:
    """Return a gate's verdict; with ``per`` it must hold in every group, and each group's verdict is listed.

    No data fails unless the gate says ``on_no_data: pass``; ``upstream`` compares 0.0 instead.

    Returns:
        The rule with its ``text``, ``actual``, ``passed`` and ``outcome``: ``passed``, ``failed``, ``undecided`` or
        ``no_data``; except in ``upstream`` also ``over``, ``counted`` and ``of``: how many of the samples count in
        ``actual``; its ``interval``, and whether the verdict is ``sure``.
    """
    whole = _verdict(gate, _Source(scores, figures), profile)
    if gate.per is None:
        return whole
    groups = scores.groups(gate.per).items()
    parts = {name: _verdict(gate, _Source(each, figures), profile) for name, each in groups}
    every = all(each["passed"] for each in parts.values())
    return {
        **whole,
        "text": f"{whole['text']} per {gate.per}",
        **(_outcome(passed=every) if parts else _no_data(gate)),
        **({"sure": _all_sure(parts.values())} if "sure" in whole else {}),
        "per": gate.per,
        "groups": parts,
    }


def _all_sure(parts: Iterable[Mapping[str, JSON]]) -> bool | None:
    """Return whether the verdicts of all groups are sure; None where that of one is not known."""
    known = [part.get("sure") for part in parts]
    return None if None in known else all(known)


class _Source(msgspec.Struct, frozen=True, dict=True):
    """Where figures and their intervals come from, of all samples or of one group."""

    scores: Scores
    figures: Callable[[Sequence[int]], Aggregates]

    @cached_property
    def aggregates(self) -> Aggregates:
        """What aggregators make of these samples."""
        return self.figures(self.scores.rows)


def _verdict(gate: Gate, source: _Source, profile: Profile) -> dict[str, JSON]:
    if isinstance(gate, LogicalGate):
        parts = [_verdict(part, source, profile) for part in gate.conditions]
        verdicts = [part["passed"] for part in parts]
        passed = all(verdicts) if gate.operator == "and" else any(verdicts)
        logic = {"kind": "logical", "operator": gate.operator, "conditions": parts, "text": gate.text}
        return {**logic, "actual": None, **_outcome(passed=passed)}
    if isinstance(gate, FigureGate):
        return _by_path(gate, source, profile)
    scores = source.scores
    rule: dict[str, JSON] = {"metric": gate.aggregation, "op": gate.op, "value": gate.value, "text": gate.text}
    over = "total" if over_total(gate) else "graded"
    if isinstance(gate, WeightedGate):
        known = {key: scores.figure(gate, key, profile) for key in gate.weights}
        shown = {key: _rounded(each.value, profile) for key, each in known.items()}
        rule |= {"kind": gate.kind, "weights": gate.weights, "figures": shown}
        extent: JSON = {key: each.counted for key, each in known.items()}, {key: each.of for key, each in known.items()}
        actual = _in_order(gate.weights, shown) if profile == "upstream" else _weighted(gate.weights, known)
    else:
        key = gate.metric_key or ""
        rule |= {"metric_key": key} if isinstance(gate, GateSpec) else {"kind": gate.kind, "metric_key": key}
        found = scores.figure(gate, key, profile)
        actual, extent = _rounded(found.value, profile), (found.counted, found.of)
    return {**rule, **_compared(gate, actual, over, extent, profile, source)}


def _by_path(gate: FigureGate, source: _Source, profile: Profile) -> dict[str, JSON]:
    rule: dict[str, JSON] = {"kind": "figure", "figure": gate.name, "metric_key": gate.path[0]}
    rule |= {"op": gate.op, "value": gate.value, "text": gate.text}
    extent = source.scores.extent(gate.path[0])
    try:
        actual = figure_at(source.aggregates, gate.path, gate.component)
    except NoFigure as error:  # whatever on_no_data says: a mistyped path is no figure that is not defined
        found = _compared(gate, None, "graded", extent, profile, source)
        return {**rule, **found, "passed": False, "reason": str(error)}
    return {**rule, **_compared(gate, actual, "graded", extent, profile, source)}


def _compared(
    gate: Threshold, actual: float | None, over: str, extent: JSON, profile: Profile, source: _Source
) -> dict[str, JSON]:
    """Return what a figure comes to beside its rule."""
    known: dict[str, JSON] = {"actual": actual}
    if profile != "upstream":
        known |= {"over": over, "counted": extent[0], "of": extent[1]}
    if actual is None:
        return {**known, **_no_data(gate)}
    holds = OPERATORS[gate.op][1](actual, gate.value)
    if profile == "upstream" or source.scores.bounds is None:
        return {**known, **_outcome(passed=holds)}
    scale = 1 if isinstance(gate, FigureGate) or gate.aggregation not in PERCENT else 100
    beside_it = beside(source.aggregates, gate.path, gate.component) if isinstance(gate, FigureGate) else None
    interval = source.scores.interval(gate, actual, beside_it)
    ends = _ends(interval, scale)
    known["interval"] = interval
    if gate.confidence is None or interval.get("reason") == "quantile":
        sure = None if ends is None or gate.op == "eq" else {OPERATORS[gate.op][1](end, gate.value) for end in ends}
        return {**known, "sure": None if sure is None else sure == {holds}, **_outcome(passed=holds)}
    # the one-sided bound at a confidence is an end of the two-sided interval at twice that less 1
    bounds = again(interval, actual / scale, 2 * gate.confidence - 1)
    sides = _ends(bounds, scale)
    verdicts = set() if sides is None else {OPERATORS[gate.op][1](end, gate.value) for end in sides}
    known |= {"confidence": gate.confidence, "on_undecided": gate.on_undecided}
    known |= {"bounds": None if sides is None else [end / scale for end in sides]}
    if len(verdicts) == 1:
        return {**known, "sure": True, **_outcome(passed=verdicts.pop())}
    return {**known, "sure": False, "passed": gate.on_undecided != "fail", "outcome": "undecided"}


def _ends(interval: Interval, scale: int) -> tuple[float, float] | None:
    return None if "reason" in interval else (scale * interval["low"], scale * interval["high"])


def _rounded(value: Fraction | float | None, profile: Profile) -> float | None:
    if value is None:
        return 0.0 if profile == "upstream" else None
    return float(value)


def _weighted(weights: Mapping[str, float], figures: Mapping[str, Figure]) -> float | None:
    """Return sum(weight x figure) / sum(weights), rounded once; None where a figure is."""
    total = mean = Fraction(0)
    for key, weight in weights.items():
        figure = figures[key].value
        if figure is None:
            return None
        total += Fraction(weight)
        mean += Fraction(weight) * Fraction(figure)
    return float(mean / total)


def _in_order(weights: Mapping[str, float], figures: Mapping[str, float | None]) -> float:
    """Return the same in the original program's order of operations, each of them rounded."""
    total, mean = 0.0, 0.0
    for weight in weights.values():
        total += weight
    for key, weight in weights.items():
        mean += weight / total * (figures[key] or 0.0)
    return mean


def _outcome(*, passed: bool) -> dict[str, JSON]:
    return {"passed": passed, "outcome": "passed" if passed else "failed"}


def _no_data(gate: Gate) -> dict[str, JSON]:
    return {"passed": gate.on_no_data == "pass", "outcome": "no_data"}

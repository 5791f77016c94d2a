"""Verdicts: a gate's rule applied to figures, the same whatever its form and wherever the figures come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Protocol

from gradestack.api import Profile
from gradestack.gates.paths import Aggregates, NoFigure, figure_at
from gradestack.gates.rules import (
    OPERATORS,
    AggregateGate,
    FigureGate,
    Gate,
    GateSpec,
    LogicalGate,
    Threshold,
    WeightedGate,
    over_total,
)
from gradestack.gates.scores import Figure
from gradestack.model import JSON


class Figures(Protocol):
    """Where the figures a gate compares come from."""

    def figure(self, gate: AggregateGate, key: str, profile: Profile) -> Figure:
        """Return one grader's figure, aggregated as the gate asks."""

    def extent(self, key: str) -> tuple[int, int]:
        """Return how many samples a grader has graded, and how many it applies to."""


def verdict(
    gate: Gate,
    figures: Figures,
    groups: Callable[[str], Mapping[str, Figures]],
    profile: Profile,
    aggregates: Aggregates | None = None,
) -> dict[str, JSON]:
    """Return a gate's verdict; with ``per`` it must hold in every group, and each group's verdict is listed.

    No data fails unless the gate says ``on_no_data: pass``; ``upstream`` compares 0.0 instead.

    Args:
        gate: The rule.
        figures: Figures over all samples.
        groups: ``per`` -> group name -> figures.
        profile: Which definition is followed.
        aggregates: What figures by path are taken from.

    Returns:
        The rule with its ``text``, ``actual``, ``passed`` and ``outcome``: ``passed``, ``failed`` or ``no_data``;
        except in ``upstream`` also ``over``, ``counted`` and ``of``: how many of the samples count in ``actual``.
    """
    found = aggregates or {}
    whole = _verdict(gate, figures, profile, found)
    if gate.per is None:
        return whole
    parts = {name: _verdict(gate, each, profile, found) for name, each in groups(gate.per).items()}
    every = all(each["passed"] for each in parts.values())
    return {
        **whole,
        "text": f"{whole['text']} per {gate.per}",
        **(_outcome(passed=every) if parts else _no_data(gate)),
        "per": gate.per,
        "groups": parts,
    }


def _verdict(gate: Gate, figures: Figures, profile: Profile, aggregates: Aggregates) -> dict[str, JSON]:
    if isinstance(gate, LogicalGate):
        parts = [_verdict(part, figures, profile, aggregates) for part in gate.conditions]
        verdicts = [part["passed"] for part in parts]
        passed = all(verdicts) if gate.operator == "and" else any(verdicts)
        logic = {"kind": "logical", "operator": gate.operator, "conditions": parts, "text": gate.text}
        return {**logic, "actual": None, **_outcome(passed=passed)}
    if isinstance(gate, FigureGate):
        return _by_path(gate, figures, profile, aggregates)
    rule: dict[str, JSON] = {"metric": gate.aggregation, "op": gate.op, "value": gate.value, "text": gate.text}
    over = "total" if over_total(gate) else "graded"
    if isinstance(gate, WeightedGate):
        known = {key: figures.figure(gate, key, profile) for key in gate.weights}
        shown = {key: _rounded(each.value, profile) for key, each in known.items()}
        rule |= {"kind": gate.kind, "weights": gate.weights, "figures": shown}
        extent: JSON = {key: each.counted for key, each in known.items()}, {key: each.of for key, each in known.items()}
        actual = _in_order(gate.weights, shown) if profile == "upstream" else _weighted(gate.weights, known)
    else:
        key = gate.metric_key or ""
        rule |= {"metric_key": key} if isinstance(gate, GateSpec) else {"kind": gate.kind, "metric_key": key}
        found = figures.figure(gate, key, profile)
        actual, extent = _rounded(found.value, profile), (found.counted, found.of)
    return {**rule, **_compared(gate, actual, over, extent, profile)}


def _by_path(gate: FigureGate, figures: Figures, profile: Profile, aggregates: Aggregates) -> dict[str, JSON]:
    rule: dict[str, JSON] = {"kind": "figure", "figure": gate.name, "metric_key": gate.path[0]}
    rule |= {"op": gate.op, "value": gate.value, "text": gate.text}
    extent = figures.extent(gate.path[0])
    try:
        actual = figure_at(aggregates, gate.path, gate.component)
    except NoFigure as error:  # whatever on_no_data says: a mistyped path is no figure that is not defined
        found = _compared(gate, None, "graded", extent, profile)
        return {**rule, **found, "passed": False, "reason": str(error)}
    return {**rule, **_compared(gate, actual, "graded", extent, profile)}


def _compared(gate: Threshold, actual: float | None, over: str, extent: JSON, profile: Profile) -> dict[str, JSON]:
    """Return what a figure comes to beside its rule."""
    known: dict[str, JSON] = {"actual": actual}
    if profile != "upstream":
        known |= {"over": over, "counted": extent[0], "of": extent[1]}
    if actual is None:
        return {**known, **_no_data(gate)}
    return {**known, **_outcome(passed=OPERATORS[gate.op][1](actual, gate.value))}


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

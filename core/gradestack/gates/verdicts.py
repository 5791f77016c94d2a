"""Verdicts: a gate's rule applied to figures, the same whatever its form and wherever the figures come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from gradestack.api import Profile
from gradestack.gates.rules import OPERATORS, Gate, GateSpec, LogicalGate, Threshold, WeightedGate
from gradestack.model import JSON


class Figures(Protocol):
    """Where the figures a gate compares come from."""

    def figure(self, gate: Threshold, key: str, profile: Profile) -> float | None:
        """Return one grader's figure, aggregated as the gate asks; None without data."""


def verdict(
    gate: Gate, figures: Figures, groups: Callable[[str], Mapping[str, Figures]], profile: Profile
) -> dict[str, JSON]:
    """Return a gate's verdict; with ``per`` it must hold in every group, and each group's verdict is listed.

    No data fails unless the gate says ``on_no_data: pass``; ``upstream`` compares 0.0 instead.

    Args:
        gate: The rule.
        figures: Figures over all samples.
        groups: ``per`` -> group name -> figures.
        profile: Which definition is followed.

    Returns:
        The rule with its ``text``, ``actual``, ``passed`` and ``outcome``: ``passed``, ``failed`` or ``no_data``.
    """
    whole = _verdict(gate, figures, profile)
    if gate.per is None:
        return whole
    found = {name: _verdict(gate, each, profile) for name, each in groups(gate.per).items()}
    every = all(each["passed"] for each in found.values())
    return {
        **whole,
        "text": f"{whole['text']} per {gate.per}",
        **(_outcome(passed=every) if found else _no_data(gate)),
        "per": gate.per,
        "groups": found,
    }


def _verdict(gate: Gate, figures: Figures, profile: Profile) -> dict[str, JSON]:
    if isinstance(gate, LogicalGate):
        parts = [_verdict(part, figures, profile) for part in gate.conditions]
        verdicts = [part["passed"] for part in parts]
        passed = all(verdicts) if gate.operator == "and" else any(verdicts)
        logic = {"kind": "logical", "operator": gate.operator, "conditions": parts, "text": gate.text}
        return {**logic, "actual": None, **_outcome(passed=passed)}
    rule: dict[str, JSON] = {"metric": gate.aggregation, "op": gate.op, "value": gate.value, "text": gate.text}
    if isinstance(gate, WeightedGate):
        known = {key: _figure(figures, gate, key, profile) for key in gate.weights}
        rule |= {"kind": gate.kind, "weights": gate.weights, "figures": known}
        actual = _weighted(gate.weights, known)
    else:
        key = gate.metric_key or ""
        rule |= {"metric_key": key} if isinstance(gate, GateSpec) else {"kind": gate.kind, "metric_key": key}
        actual = _figure(figures, gate, key, profile)
    if actual is None:
        return {**rule, "actual": None, **_no_data(gate)}
    return {**rule, "actual": actual, **_outcome(passed=OPERATORS[gate.op][1](actual, gate.value))}


def _figure(figures: Figures, gate: Threshold, key: str, profile: Profile) -> float | None:
    found = figures.figure(gate, key, profile)
    return 0.0 if found is None and profile == "upstream" else found


def _weighted(weights: Mapping[str, float], figures: Mapping[str, float | None]) -> float | None:
    """Return sum(weight x figure) / sum(weights), in the original program's order; None where a figure is."""
    total, mean = 0.0, 0.0
    for weight in weights.values():
        total += weight
    for key, weight in weights.items():
        figure = figures[key]
        if figure is None:
            return None
        mean += weight / total * figure
    return mean


def _outcome(*, passed: bool) -> dict[str, JSON]:
    return {"passed": passed, "outcome": "passed" if passed else "failed"}


def _no_data(gate: Gate) -> dict[str, JSON]:
    return {"passed": gate.on_no_data == "pass", "outcome": "no_data"}

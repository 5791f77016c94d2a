"""Verdicts: a gate's rule applied to figures, the same whatever its form and wherever the figures come from."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gradestack.api import Profile
from gradestack.estimates.interval import Interval, again
from gradestack.gates.paths import NoFigure, number_at
from gradestack.gates.rules import (
    OPERATORS,
    PERCENT,
    FigureGate,
    Gate,
    GateSpec,
    Limit,
    LogicalGate,
    Threshold,
    WeightedGate,
    compared,
    over_total,
)
from gradestack.gates.scores import Figure, Scores
from gradestack.grading.counts import Count
from gradestack.model import JSON, Outcome

SHARE = "failed_share"


def verdict(gate: Gate, scores: Scores, profile: Profile) -> dict[str, JSON]:
    """Return a gate's verdict; with ``per`` it must hold in every group, and each group's verdict is listed.

    No data fails unless the gate says ``on_no_data: pass``; ``upstream`` compares 0.0 instead.
    """
    whole = _verdict(gate, scores, profile)
    if gate.per is None:
        return whole
    parts = {name: _verdict(gate, each, profile) for name, each in scores.groups(gate.per).items()}
    sure = [part.get("sure") for part in parts.values()]
    return {
        **whole,
        "text": f"{whole['text']} per {gate.per}",
        **(_outcome(passed=all(each["passed"] for each in parts.values())) if parts else _no_data(gate)),
        **({"sure": None if None in sure else all(sure)} if "sure" in whole else {}),
        "per": gate.per,
        "groups": parts,
    }


def _verdict(gate: Gate, scores: Scores, profile: Profile) -> dict[str, JSON]:
    if isinstance(gate, LogicalGate):
        parts = [_verdict(part, scores, profile) for part in gate.conditions]
        verdicts = [part["passed"] for part in parts]
        passed = all(verdicts) if gate.operator == "and" else any(verdicts)
        logic = {"kind": "logical", "operator": gate.operator, "conditions": parts, "text": gate.text}
        return {**logic, "actual": None, **_outcome(passed=passed)}
    if isinstance(gate, FigureGate):
        return _by_path(gate, scores, profile)
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
    return {**rule, **_compared(gate, actual, over, extent, profile, scores)}


def _by_path(gate: FigureGate, scores: Scores, profile: Profile) -> dict[str, JSON]:
    grader, metric, rest, component = map(str, gate.figure)
    rule: dict[str, JSON] = {"kind": "figure", "figure": gate.name, "metric_key": grader}
    rule |= {"op": gate.op, "value": gate.value, "text": gate.text}
    actual = interval = None
    try:
        made = scores.aggregates[grader][metric]
        actual, interval = number_at(made, rest, (metric, component), f"{grader}.{metric}")
        wrong = {}
    except NoFigure as error:  # whatever on_no_data says: a mistyped path is no figure that is not defined
        wrong = {"passed": False, "reason": str(error)}
    return {**rule, **_compared(gate, actual, "graded", scores.extent(grader), profile, scores, interval), **wrong}


def _compared(
    gate: Threshold,
    actual: float | None,
    over: str,
    extent: JSON,
    profile: Profile,
    scores: Scores,
    beside: Interval | None = None,
) -> dict[str, JSON]:
    """Return what a figure comes to beside its rule."""
    known: dict[str, JSON] = {"actual": actual}
    if profile != "upstream":
        known |= {"over": over, "counted": extent[0], "of": extent[1]}
    if actual is None:
        return {**known, **_no_data(gate)}
    scale = 1 if isinstance(gate, FigureGate) or gate.aggregation not in PERCENT else 100

    def holds(number: float) -> bool:
        return OPERATORS[gate.op][1](number, gate.value)

    def at_ends(interval: Interval) -> set[bool]:
        """Return the verdicts at both ends, none where there is no interval."""
        return set() if "reason" in interval else {holds(scale * interval["low"]), holds(scale * interval["high"])}

    passed = holds(actual)
    if profile == "upstream" or scores.bounds is None:
        return {**known, **_outcome(passed=passed)}
    interval = known["interval"] = scores.interval(gate, actual, beside)
    if gate.confidence is None or interval.get("reason") == "quantile":
        verdicts = set() if gate.op == "eq" else at_ends(interval)
        return {**known, "sure": verdicts == {passed} if verdicts else None, **_outcome(passed=passed)}
    # the one-sided bound at a confidence is an end of the two-sided interval at twice that less 1
    bounds = again(interval, actual / scale, 2 * gate.confidence - 1)
    verdicts = at_ends(bounds)
    known |= {"confidence": gate.confidence, "on_undecided": gate.on_undecided}
    known["bounds"] = None if "reason" in bounds else [scale * bounds[end] / scale for end in ("low", "high")]
    if len(verdicts) == 1:
        return {**known, "sure": True, **_outcome(passed=verdicts.pop())}
    return {**known, "sure": False, "passed": gate.on_undecided != "fail", "outcome": "undecided"}


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


def limit_verdict(limit: Limit, counts: Mapping[str, Count]) -> dict[str, JSON]:
    """Return the verdict of the limit, in the form of a gate's.

    The grader decides that has lost most: failed and missing samples and unreadable records, or their share of all.
    """
    share = isinstance(limit, float)
    lost = {key: (count.lost, count.graded + count.lost) for key, count in counts.items()}
    key = max(lost, key=lambda key: Fraction(lost[key][0], lost[key][1] or 1) if share else lost[key][0])
    number, of = lost[key]
    actual: float | None = number if not share else number / of if of else None
    passed = actual is None or actual <= limit  # where no grader applies nothing has failed
    return {
        "kind": "max_failed",
        "metric": SHARE if share else "failed_samples",
        "op": "lte",
        "value": limit,
        "text": compared("failed or missing", "lte", as_percent(limit) if share else limit, "%" * share),
        "grader": key,
        "failed": counts[key].states[Outcome.FAILED],
        "missing": counts[key].states[Outcome.MISSING],
        "unreadable": counts[key].unreadable,
        "of": of,
        "actual": actual,
        **_outcome(passed=passed),
    }


def as_percent(share: float) -> float:
    """Return a share as a percentage, with the digits people write it with: 0.29 is 29, not 28.999999999999996."""
    return float(Fraction(repr(share)) * 100)

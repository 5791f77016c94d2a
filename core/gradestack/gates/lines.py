"""Gates as lines of text: the rule, the verdict, and the figure with enough digits to see why."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from gradestack.gates.rules import PERCENT
from gradestack.gates.verdicts import SHARE, as_percent
from gradestack.output.terminal import terminal_line
from gradestack.output.words import counted, distinguishing_decimals

_WORDS = {"passed": "PASSED", "failed": "FAILED", "no_data": "NO DATA", "undecided": "UNDECIDED"}
_LISTED = 3


def gate_lines(gate: Mapping[str, Any], *, apart: bool = False) -> tuple[str, ...]:
    """Return the line of one verdict, what was compared in it or ``apart``, as letta-evals' guide has it."""
    verdict = f"Gate ({gate['text']}): {_WORDS[gate['outcome']]}"
    notes = terminal_line("; ".join([f"actual: {_actual(gate)}{certainty(gate)}", *_notes(gate)]))
    return (verdict, f"  {notes}") if apart else (f"{verdict} ({notes})",)


def _actual(gate: Mapping[str, Any]) -> str:
    """Return the figure a gate compared; those of its conditions where it compares none itself."""
    parts = gate.get("conditions")
    if parts:
        shown = [f"({_actual(part)})" if "conditions" in part else _actual(part) for part in parts]
        return f" {gate['operator']} ".join(shown)
    actual, metric = gate["actual"], gate.get("metric")
    value = gate.get("value", actual)
    if actual is None:
        return "n/a"
    if gate.get("kind") == "baseline":
        return f"{actual:+.1f} points" if metric in PERCENT else f"{actual:+.2f}"
    if metric == SHARE:
        return f"{distinguishing_decimals(as_percent(actual), as_percent(value), 1)}%"
    return (
        f"{distinguishing_decimals(actual, value, 1)}%" if metric in PERCENT else distinguishing_decimals(actual, value)
    )


def certainty(gate: Mapping[str, Any]) -> str:
    """Return the interval of a gate's figure, or its deciding bounds, and whether the threshold lies within it."""
    interval = gate.get("interval") or {}
    if interval.get("low") is None or gate["actual"] is None:
        return ""
    percent, unit = gate.get("metric") in PERCENT, "" if gate.get("kind") == "baseline" else "%"
    ends = gate.get("bounds") or [interval["low"], interval["high"]]
    low, high = (f"{100 * end:.1f}{unit}" if percent else f"{end:.2f}" for end in ends)
    level = f"{100 * (gate.get('confidence') or interval.get('confidence') or 0.95):.6g}%"
    kind = f"{level} interval" if gate.get("confidence") is None else f"one-sided {level} bounds"
    shown = f", {kind} {low} to {high}"
    if gate["sure"] is False:
        unsure = f"{'passes' if gate['passed'] else 'fails'}, but the threshold lies within it"
        return f"{shown}: {'undecided' if gate['outcome'] == 'undecided' else unsure}"
    return shown


def _notes(gate: Mapping[str, Any]) -> Iterator[str]:
    """Yield what people should know of a figure: what it leaves out, which groups do not hold."""
    if "reason" in gate:
        yield gate["reason"]
    if "uncalibrated" in gate:
        yield f"uncalibrated: {gate['uncalibrated']}"
    if "flips" in gate:
        yield f"{counted(gate['flips']['fixed'], 'run')} fixed, {gate['flips']['broken']} broken"
    if gate.get("kind") == "max_failed":
        bad = gate.get("unreadable", 0)
        number = gate["failed"] + gate["missing"] + bad
        yield f"{number} of {gate['of']} for {gate['grader']}{f', {bad} of them unreadable' if bad else ''}"
    parts = [*left_out(gate)]
    for key, lost, of in parts:
        yield f"{lost} of {of} failed or missing{f' for {key}' if len(parts) > 1 or 'conditions' in gate else ''}"
    groups = gate.get("groups", {})
    losing = [f"{name} ({_actual(each)})" for name, each in groups.items() if not each["passed"]]
    if losing:
        more = f" and {len(losing) - _LISTED} more" if len(losing) > _LISTED else ""
        yield f"not in {', '.join(losing[:_LISTED])}{more}"


def mark_uncalibrated(gate: dict[str, Any], graders: Container[str]) -> None:
    """Note on a gate, and its conditions, that it compares scores of these graders, which nothing corrects."""
    parts: Any = gate.get("conditions", ())
    for part in parts:
        mark_uncalibrated(part, graders)
    if whys := dict.fromkeys(part["uncalibrated"] for part in parts if "uncalibrated" in part):
        gate["uncalibrated"] = "; ".join(whys)
    named: Any = gate.get("weights") or [gate.get("metric_key")]
    if gate.get("kind") not in ("figure", "baseline", "logical") and any(key in graders for key in named):
        gate["uncalibrated"] = "a model's score, not corrected by labels"


def left_out(gate: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Return grader key, number and total of the failed or missing samples that do not count in what a gate compares.

    Each grader is named once; groups are not looked at.
    """
    found: dict[str, tuple[int, int]] = {}
    for part in gate.get("conditions", ()):
        found |= {key: (lost, of) for key, lost, of in left_out(part)}
    counted: Any = gate.get("counted", {})
    of: Any = gate.get("of")
    if not isinstance(counted, Mapping):
        counted, of = {gate["metric_key"]: counted}, {gate["metric_key"]: of}
    for key, number in counted.items():
        found[key] = (of[key] - number, of[key])
    return [(key, lost, of) for key, (lost, of) in found.items() if lost]

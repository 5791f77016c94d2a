"""Sentences that say what a comparison comes to, and how it was tested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack.comparison.families import CERTAIN, all_rows, compared_rows
from gradestack.comparison.rows import PairRows
from gradestack.comparison.sides import Side
from gradestack.declared import with_unit
from gradestack.output import counted, distinguishing_decimals

_LARGE = 1e9  # from which on numbers are written with an exponent


def sentence(a: Side, b: Side, pair: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Say a difference in words; runs are identical only where every task is in every figure."""
    gap = row["difference"]
    label = row["label"]
    reason = row["interval"]["reason"]
    before, after = a.name, b.name
    if a.report is b.report and a.model and b.model:
        before, after = a.model, b.model
    only = _unmatched_tasks(a, b, row)
    tasks = _shared_tasks(a, b, row, with_values=bool(only and gap))
    if gap is None:
        return f"{label}: {after} cannot be compared with {before}: {reason}{only}"
    if not only and _is_identical(pair):
        return (
            f"{after} and {before} are identical: every figure is the same in every task ({tasks})"
        )
    if row["verdict"] == "same":
        return f"{label}: {after} and {before} are the same in every task ({tasks}){only}"
    if row["p"] is None:
        amount = _amount(gap, row, "+")
        return (
            f"{label}: {after} {amount} against {before}, without a test: {reason} ({tasks}){only}"
        )
    certain = row["verdict"] in CERTAIN
    claim = f"{after} and {before} have the same mean"
    if certain:
        amount = _amount(abs(gap), row)
        claim = f"{after} is {row['verdict']} than {before} by {amount}"
    elif gap:
        amount = _amount(gap, row, "+")
        claim = f"{after} {amount} against {before}, which may be chance"
    evidence = _evidence(row, certain=certain)
    caveats = _caveats(row, certain=certain)
    return f"{label}: {claim} ({evidence}; {tasks}){only}{caveats}"


def _is_identical(pair: Mapping[str, Any]) -> bool:
    rows = [*all_rows(pair), *pair.get("usage", {}).values()]
    return all(row["verdict"] == "same" for row in rows)


def _unmatched_tasks(a: Side, b: Side, row: Mapping[str, Any]) -> str:
    text = ""
    for count, name in ((row["only_a_count"], a.name), (row["only_b_count"], b.name)):
        if count:
            tasks = counted(count, "task")
            text += f"; {tasks} only in {name}"
    return text


def _shared_tasks(a: Side, b: Side, row: Mapping[str, Any], *, with_values: bool) -> str:
    """Say over how many tasks and trials a row is, ``with_values`` with each side's figure."""
    numbers_of_trials = set()
    for task in a.tasks.keys() & b.tasks.keys():
        numbers_of_trials.add(len(a.tasks[task]))
        numbers_of_trials.add(len(b.tasks[task]))
    trials = ""
    if len(numbers_of_trials) == 1:
        number = numbers_of_trials.pop()
        trials = f", {counted(number, 'trial')} each"
    if with_values:
        before, after = _value(row["a"], row), _value(row["b"], row)
        tasks = counted(row["tasks"], "shared task")
        return f"{before} to {after} over {tasks}{trials}"
    tasks = counted(row["tasks"], "task")
    return f"{tasks}{trials}"


def _evidence(row: Mapping[str, Any], *, certain: bool) -> str:
    """Return the interval, that of a loss as it is said, or p where there is none."""
    ends = row["interval"]["ends"]
    if ends is None:
        reason = row["interval"]["reason"]
        return f"{reason}, p {row['p_holm']:.2g}"
    low, high = ends
    if certain and row["difference"] < 0:
        low, high = -high, -low
    level = percent_of(1 - row["interval"]["confidence"], of_confidence=True)
    return f"{level}% interval: {_end(low, row)} to {_end(high, row)}"


def _end(value: float, row: Mapping[str, Any]) -> str:
    """Return an end of an interval, which shows on which side of 0 it is."""
    if row["share"]:
        return distinguishing_decimals(100 * value, 0, 1)
    return distinguishing_decimals(value, 0, 3) if abs(value) < _LARGE else f"{value:.3g}"


def _caveats(row: Mapping[str, Any], *, certain: bool) -> str:
    text = ""
    if not certain and row["mde80"] is not None:
        amount = _amount(row["mde80"], row)
        text += f"; a true difference of {amount} would be found in four of five such comparisons"
    elif not certain and row["stderr"]:
        text += "; so few tasks cannot show any difference"
    if "noise" in row:
        amount = _amount(row["noise"], row)
        within = "is within" if abs(row["difference"]) <= row["noise"] else "exceeds"
        text += f"; the judge alone, at one vote a sample, may make {amount}, which this {within}"
    return text


def _amount(value: float, row: Mapping[str, Any], sign: str = "") -> str:
    if row["share"]:
        return f"{100 * value:{sign}.1f} points"
    prefix = "-" if value < 0 else sign
    return f"{prefix}{with_unit(_number(abs(value)), row['unit'])}"


def _value(value: float, row: Mapping[str, Any]) -> str:
    return f"{100 * value:.1f}%" if row["share"] else with_unit(_number(value), row["unit"])


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < _LARGE else f"{value:.3g}"


def percent_of(level: float, *, of_confidence: bool = False) -> str:
    """Return a level as a percentage of two digits, or the confidence that it leaves.

    >>> percent_of(0.05), percent_of(0.05 / 3, of_confidence=True)
    ('5', '98.3')
    """
    percentage = float(f"{100 * level:.2g}")
    return f"{100 - percentage if of_confidence else percentage:.6g}"


def how_tested(pair: PairRows, pairs: int, alpha: float) -> str:
    """Say which figures were tested together, and at which level; empty where none was."""
    question = pair.question.fields
    label, at = question["label"], f"{percent_of(alpha)} %"
    has_question = pair.question.test.is_decided
    clauses = []
    if has_question:
        over = f" over all {pairs} pairs together" if pairs > 1 else ""
        clauses.append(f"{label} is tested at {at}{over}")
    others = f"the {pair.figures} other figures" if pair.figures > 1 else "the other figure"
    if pair.figures and has_question:
        together = " together" if pair.figures > 1 else ""
        clauses.append(f"{others}{together} at another {at}")
    elif pair.figures:
        clauses.append(f"{others}: tested at {at}")
    if not clauses:
        return ""
    text = ", ".join(clauses)
    if pair.figures > pair.tests or _has_shown_twin(pair):
        text += "; figures whose tasks differ alike are one test"
    return f"{text[:1].upper()}{text[1:]}.{_interval_levels(pair)}"


def _has_shown_twin(pair: PairRows) -> bool:
    """Return whether a figure beside the outcome's own mean is one test with the question."""
    rate = pair.data.get("outcome", {})
    own = pair.data["metrics"].get(rate.get("grader"))
    return any(row.fields is not own for row in pair.twins)


def _interval_levels(pair: PairRows) -> str:
    """Say at which levels the intervals are, and that each is of its own figure."""
    question = pair.question.fields
    levels: dict[str, list[str]] = {}
    for row in compared_rows(pair.data):
        interval = row["interval"]
        if interval["ends"] is not None:
            whose = question["label"] if row is question else "the others"
            level = percent_of(1 - interval["confidence"], of_confidence=True)
            levels.setdefault(level, []).append(whose)
    if not levels:
        return ""
    if len(levels) == 1:
        return f" Intervals are at {next(iter(levels))} %, each for its own figure."
    texts = []
    for level, names in levels.items():
        whose = " and ".join(dict.fromkeys(names))
        texts.append(f"at {level} % for {whose}")
    return f" Intervals are {', '.join(texts)}, each for its own figure."


_FAILED_COUNT = {
    "worst": "with the worst score in",
    "as defined": "as each is defined in",
    "left out": "not at all in",
}


def how_failed_count(pair: PairRows) -> str:
    """Say in which figures failed trials count how; empty where no trial failed or is missing."""
    if not pair.has_lost_trials:
        return ""
    labels: dict[str, list[str]] = {}
    for row in compared_rows(pair.data):
        labels.setdefault(row["failed"], []).append(row["label"])
    if [*labels] == ["left out"]:
        return "Failed and missing trials are left out."
    texts = [
        f"{text} {', '.join(labels[failed])}"
        for failed, text in _FAILED_COUNT.items()
        if failed in labels
    ]
    return f"Failed and missing trials count {'; '.join(texts)}."

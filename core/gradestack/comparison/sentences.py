"""Sentences that say what a comparison comes to, and how it was tested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack.comparison.families import CERTAIN, compared_rows
from gradestack.comparison.rows import PairRows
from gradestack.comparison.sides import Side
from gradestack.declared import with_unit
from gradestack.output import counted, distinguishing_decimals

_LARGE = 1e9  # from which on numbers are written with an exponent


def sentence(a: Side, b: Side, pair: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Say a difference in words; runs are identical only where every task is in every figure."""
    gap, verdict, reason = row["difference"], row["verdict"], row["interval"]["reason"]
    label, before, after = row["label"], a.name, b.name
    if a.report is b.report and a.model and b.model:
        before, after = a.model, b.model
    only = ""
    for count, name in ((row["only_a_count"], a.name), (row["only_b_count"], b.name)):
        if count:
            only += f"; {counted(count, 'task')} only in {name}"
    tasks = _shared_tasks(a, b, row, with_values=bool(only and gap))
    if gap is None:
        return f"{label}: {after} cannot be compared with {before}: {reason}{only}"
    if verdict == "same":
        rows = [*compared_rows(pair), *pair.get("usage", {}).values()]
        if not only and all(row["verdict"] == "same" for row in rows):
            every = "every figure is the same in every task"
            return f"{after} and {before} are identical: {every} ({tasks})"
        return f"{label}: {after} and {before} are the same in every task ({tasks}){only}"
    claim = f"{after} {_amount(gap, row, '+')} against {before}"
    if verdict == "no test":
        return f"{label}: {claim}, without a test: {reason} ({tasks}){only}"
    if verdict in CERTAIN:
        claim = f"{after} is {verdict} than {before} by {_amount(abs(gap), row)}"
    elif gap:
        claim += ", which may be chance"
    else:
        claim = f"{after} and {before} have the same mean"
    return f"{label}: {claim} ({_evidence(row)}; {tasks}){only}{_caveats(row)}"


def _shared_tasks(a: Side, b: Side, row: Mapping[str, Any], *, with_values: bool) -> str:
    """Say over how many tasks and trials a row is, ``with_values`` with each side's figure."""
    numbers = set()
    for task in a.tasks.keys() & b.tasks.keys():
        numbers |= {len(a.tasks[task]), len(b.tasks[task])}
    trials = f", {counted(max(numbers), 'trial')} each" if len(numbers) == 1 else ""
    if not with_values:
        return f"{counted(row['tasks'], 'task')}{trials}"
    values = f"{_value(row['a'], row)} to {_value(row['b'], row)}"
    return f"{values} over {counted(row['tasks'], 'shared task')}{trials}"


def _evidence(row: Mapping[str, Any]) -> str:
    """Return the interval, that of a loss as it is said, or p where there is none."""
    interval = row["interval"]
    if interval["ends"] is None:
        return f"{interval['reason']}, p {row['p_holm']:.2g}"
    low, high = interval["ends"]
    if row["verdict"] in CERTAIN and row["difference"] < 0:
        low, high = -high, -low
    level = _confidence_of(interval)
    return f"{level}% interval: {_end(low, row)} to {_end(high, row)}"


def _end(value: float, row: Mapping[str, Any]) -> str:
    """Return an end of an interval, which shows on which side of 0 it is."""
    if row["share"]:
        return distinguishing_decimals(100 * value, 0, 1)
    return distinguishing_decimals(value, 0, 3) if abs(value) < _LARGE else f"{value:.3g}"


def _caveats(row: Mapping[str, Any]) -> str:
    """Say what such a comparison can find, and what a judge alone may make."""
    text = ""
    if row["verdict"] not in CERTAIN and row["mde80"] is not None:
        amount = _amount(row["mde80"], row)
        text = f"; a true difference of {amount} would be found in four of five such comparisons"
    elif row["verdict"] not in CERTAIN and row["stderr"]:
        text = "; so few tasks cannot show any difference"
    if "noise" not in row:
        return text
    within = "is within" if abs(row["difference"]) <= row["noise"] else "exceeds"
    amount = _amount(row["noise"], row)
    return f"{text}; the judge alone, at one vote a sample, may make {amount}, which this {within}"


def _amount(value: float, row: Mapping[str, Any], sign: str = "") -> str:
    if row["share"]:
        return f"{100 * value:{sign}.1f} points"
    prefix = "-" if value < 0 else sign
    return f"{prefix}{_value(abs(value), row)}"


def _value(value: float, row: Mapping[str, Any]) -> str:
    if row["share"]:
        return f"{100 * value:.1f}%"
    number = f"{value:.3f}" if abs(value) < _LARGE else f"{value:.3g}"
    return with_unit(number, row["unit"])


def _percentage(level: float) -> float:
    """Return a level as a percentage of two digits."""
    return float(f"{100 * level:.2g}")


def _confidence_of(interval: Mapping[str, Any]) -> str:
    """Return the confidence of an interval as a percentage, its level with two digits.

    >>> _confidence_of({"confidence": 1 - 0.05 / 3})
    '98.3'
    """
    return f"{100 - _percentage(1 - interval['confidence']):.6g}"


def how_tested(pair: PairRows, pairs: int, alpha: float) -> str:
    """Say which figures were tested together, and at which level; empty where none was."""
    level, clauses = f"{_percentage(alpha):.6g} %", []
    others, together = "the other figure", ""
    if pair.figures > 1:
        others, together = f"the {pair.figures} other figures", " together"
    if pair.question.is_tested:
        over = f" over all {pairs} pairs together" if pairs > 1 else ""
        clauses.append(f"{pair.question.fields['label']} is tested at {level}{over}")
        others = f"{others}{together} at another {level}"
    elif pair.figures:
        others = f"{others}: tested at {level}"
    if pair.figures:
        clauses.append(others)
    if not clauses:
        return ""
    text = ", ".join(clauses)
    # the outcome's own mean is not shown
    own = pair.data["metrics"].get(pair.question.fields.get("grader"))
    if pair.figures > pair.tests or any(row.fields is not own for row in pair.twins):
        text += "; figures whose tasks differ alike are one test"
    return f"{text[0].upper()}{text[1:]}.{_interval_levels(pair)}"


def _interval_levels(pair: PairRows) -> str:
    """Say at which levels the intervals are, and that each is of its own figure."""
    question = pair.question.fields
    levels: dict[str, dict[str, None]] = {}
    for row in compared_rows(pair.data):
        if row["interval"]["ends"] is not None:
            whose = question["label"] if row is question else "the others"
            levels.setdefault(_confidence_of(row["interval"]), {})[whose] = None
    texts = [f"at {level} % for {' and '.join(names)}" for level, names in levels.items()]
    if len(levels) == 1:
        texts = [f"at {level} %" for level in levels]
    return f" Intervals are {', '.join(texts)}, each for its own figure." if texts else ""


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
    texts = []
    for failed, text in _FAILED_COUNT.items():
        if failed in labels:
            texts.append(f"{text} {', '.join(labels[failed])}")
    return f"Failed and missing trials count {'; '.join(texts)}."

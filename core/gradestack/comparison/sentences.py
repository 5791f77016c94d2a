"""Sentences that say what a comparison comes to, and how it was tested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack.comparison.families import CERTAIN, compared_rows
from gradestack.comparison.rows import PairRows
from gradestack.comparison.sides import Failed, Side
from gradestack.declared import with_unit
from gradestack.output import counted, distinguishing_decimals

Fields = Mapping[str, Any]
_LARGE = 1e9  # from which on numbers are written with an exponent


def sentence(a: Side, b: Side, pair: Fields, row: Fields) -> str:
    """Put a difference in words; runs are identical only where every task is in every figure."""
    gap, verdict, reason = row["difference"], row["verdict"], row["interval"]["reason"]
    label, before, after = row["label"], a.name, b.name
    if a.report is b.report and a.model and b.model:
        before, after = a.model, b.model
    only, tasks = _tasks(a, b, row)
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


def _tasks(a: Side, b: Side, row: Fields) -> tuple[str, str]:
    """Name the tasks that one side alone has, and the number of tasks and trials of a row."""
    only = ""
    for count, name in ((row["only_a_count"], a.name), (row["only_b_count"], b.name)):
        if count:
            only += f"; {counted(count, 'task')} only in {name}"
    tasks = counted(row["tasks"], "task")
    if only and row["difference"]:
        values = f"{_value(row['a'], row)} to {_value(row['b'], row)}"
        tasks = f"{values} over {counted(row['tasks'], 'shared task')}"
    shared = a.tasks.keys() & b.tasks.keys()
    numbers = {len(side.tasks[task]) for side in (a, b) for task in shared}
    if len(numbers) == 1:
        tasks += f", {counted(max(numbers), 'trial')} each"
    return only, tasks


def _evidence(row: Fields) -> str:
    """Return the interval, that of a loss as it is said, or p where there is none."""
    interval = row["interval"]
    if interval["ends"] is None:
        return f"{interval['reason']}, p {row['p_holm']:.2g}"
    low, high = interval["ends"]
    if row["verdict"] in CERTAIN and row["difference"] < 0:
        low, high = -high, -low
    confidence = _show_confidence(interval["confidence"])
    return f"{confidence}% interval: {_end(low, row)} to {_end(high, row)}"


def _end(value: float, row: Fields) -> str:
    """Return an end of an interval, which shows on which side of 0 it is."""
    if row["share"]:
        return distinguishing_decimals(100 * value, 0, 1)
    return distinguishing_decimals(value, 0, 3) if abs(value) < _LARGE else f"{value:.3g}"


def _caveats(row: Fields) -> str:
    """Name the difference that could be found, and the one that a judge alone may make."""
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


def _amount(value: float, row: Fields, sign: str = "") -> str:
    if row["share"]:
        return f"{100 * value:{sign}.1f} points"
    prefix = "-" if value < 0 else sign
    return f"{prefix}{_value(abs(value), row)}"


def _value(value: float, row: Fields) -> str:
    if row["share"]:
        return f"{100 * value:.1f}%"
    number = f"{value:.3f}" if abs(value) < _LARGE else f"{value:.3g}"
    return with_unit(number, row["unit"])


def _percentage(level: float) -> float:
    """Return a level as a percentage of two digits."""
    return float(f"{100 * level:.2g}")


def _show_confidence(confidence: float) -> str:
    """Return the confidence of an interval as a percentage, its level with two digits.

    >>> _show_confidence(1 - 0.05 / 3)
    '98.3'
    """
    return f"{100 - _percentage(1 - confidence):.6g}"


def how_tested(pair: PairRows, pairs: int, alpha: float) -> str:
    """Name the figures that were tested together, and their level; empty where none was."""
    question, label = pair.question, pair.question.fields["label"]
    level, clauses = f"{_percentage(alpha):.6g} %", []
    others, together = "the other figure", ""
    if pair.figures > 1:
        others, together = f"the {pair.figures} other figures", " together"
    if question.is_tested:
        over = f" over all {pairs} pairs together" if pairs > 1 else ""
        clauses.append(f"{label} is tested at {level}{over}")
        others = f"{others}{together} at another {level}"
    elif pair.figures:
        others = f"{others}: tested at {level}"
    if pair.figures:
        clauses.append(others)
    intervals = {}
    if question.ends is not None:
        intervals[_show_confidence(1 - question.level)] = label
    if pair.figures:
        intervals.setdefault(_show_confidence(1 - pair.level), "the others")
    texts = [f"at {confidence} % for {whose}" for confidence, whose in intervals.items()]
    if len(texts) == 1:
        texts = [f"at {confidence} %" for confidence in intervals]
    if clauses and pair.has_twins:
        clauses[-1] += "; figures whose tasks differ alike are one test"
    text = f"{', '.join(clauses)}." if clauses else ""
    text = f"{text[:1].upper()}{text[1:]}"
    return f"{text} Intervals are {', '.join(texts)}, each for its own figure." if texts else text


def how_failed_count(pair: PairRows, failed: Failed) -> str:
    """Name the figures that failed trials count in; empty where no trial failed or is missing."""
    if not pair.has_lost_trials:
        return ""
    if failed == "skip":
        return "Failed and missing trials are left out."
    rows = compared_rows(pair.data)
    texts = []
    for how, text in _FAILED_COUNT.items():
        labels = ", ".join(row["label"] for row in rows if row["failed"] == how)
        if labels:
            texts.append(f"{text} {labels}")
    return f"Failed and missing trials count {'; '.join(texts)}."


_FAILED_COUNT = {
    "worst": "with the worst score in",
    "as defined": "as each is defined in",
    "left out": "not at all in",
}

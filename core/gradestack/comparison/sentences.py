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
    gap = row["difference"]
    verdict = row["verdict"]
    label = row["label"]
    reason = row["interval"]["reason"]
    before, after = a.name, b.name
    if a.report is b.report and a.model and b.model:
        before, after = a.model, b.model
    only = _unmatched_tasks(a, b, row)
    tasks = _compared_tasks(a, b, row, has_unmatched=bool(only))
    if gap is None:
        return f"{label}: {after} cannot be compared with {before}: {reason}{only}"
    if verdict == "same" and not only and _are_identical(pair):
        every = "every figure is the same in every task"
        return f"{after} and {before} are identical: {every} ({tasks})"
    if verdict == "same":
        return f"{label}: {after} and {before} are the same in every task ({tasks}){only}"
    rise = _amount(gap, row, "+")
    if verdict == "no test":
        return f"{label}: {after} {rise} against {before}, without a test: {reason} ({tasks}){only}"
    claim = f"{after} {rise} against {before}, which may be chance"
    if verdict in CERTAIN:
        size = _amount(abs(gap), row)
        claim = f"{after} is {verdict} than {before} by {size}"
    elif not gap:
        claim = f"{after} and {before} have the same mean"
    evidence = _evidence(row)
    caveats = _caveats(row)
    return f"{label}: {claim} ({evidence}; {tasks}){only}{caveats}"


def _are_identical(pair: Fields) -> bool:
    rows = [*compared_rows(pair), *pair.get("usage", {}).values()]
    return all(row["verdict"] == "same" for row in rows)


def _unmatched_tasks(a: Side, b: Side, row: Fields) -> str:
    """Count the tasks that one side alone has; empty where there are none."""
    text = ""
    for count, name in ((row["only_a_count"], a.name), (row["only_b_count"], b.name)):
        if count:
            tasks = counted(count, "task")
            text += f"; {tasks} only in {name}"
    return text


def _compared_tasks(a: Side, b: Side, row: Fields, *, has_unmatched: bool) -> str:
    """Return the text with a row's numbers of tasks and trials.

    Where tasks have no partner on the other side, it gives the figures over the shared tasks.
    """
    tasks = counted(row["tasks"], "task")
    if has_unmatched and row["difference"]:
        before = _value(row["a"], row)
        after = _value(row["b"], row)
        shared_tasks = counted(row["tasks"], "shared task")
        tasks = f"{before} to {after} over {shared_tasks}"
    keys = a.tasks.keys()
    shared = keys & b.tasks.keys()
    numbers = {len(side.tasks[task]) for side in (a, b) for task in shared}
    if len(numbers) == 1:
        trials = counted(max(numbers), "trial")
        tasks += f", {trials} each"
    return tasks


def _evidence(row: Fields) -> str:
    """Write the interval of a difference, negated for a loss, or p without an interval."""
    interval = row["interval"]
    ends = interval["ends"]
    if ends is None:
        return f"{interval['reason']}, p {row['p_holm']:.2g}"
    low, high = ends
    if row["verdict"] in CERTAIN and row["difference"] < 0:
        low, high = -high, -low
    confidence = _show_confidence(interval["confidence"])
    return f"{confidence}% interval: {_end(low, row)} to {_end(high, row)}"


def _end(value: float, row: Fields) -> str:
    """Return an end of an interval, which shows on which side of 0 it is."""
    if row["share"]:
        return distinguishing_decimals(100 * value, 0, 1)
    if abs(value) >= _LARGE:
        return f"{value:.3g}"
    return distinguishing_decimals(value, 0, 3)


def _caveats(row: Fields) -> str:
    """Name the difference that could be found, and the one that a judge alone may make."""
    text = ""
    is_certain = row["verdict"] in CERTAIN
    if not is_certain and row["mde80"] is not None:
        amount = _amount(row["mde80"], row)
        text = f"; a true difference of {amount} would be found in four of five such comparisons"
    elif not is_certain and row["stderr"]:
        text = "; so few tasks cannot show any difference"
    noise = row.get("noise")
    if noise is None:
        return text
    size = abs(row["difference"])
    within = "is within" if size <= noise else "exceeds"
    amount = _amount(noise, row)
    return f"{text}; the judge alone, at one vote per run, may make {amount}, which this {within}"


def _amount(value: float, row: Fields, sign: str = "") -> str:
    if row["share"]:
        return f"{100 * value:{sign}.1f} points"
    prefix = "-" if value < 0 else sign
    size = _value(abs(value), row)
    return f"{prefix}{size}"


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
    tests = _name_tests(pair, pairs, alpha)
    if tests and pair.has_twins:
        tests += "; figures whose tasks differ alike are one test"
    text = f"{tests[0].upper()}{tests[1:]}." if tests else ""
    levels = _name_levels(pair)
    return f"{text} Intervals are {levels}, each for its own figure." if levels else text


def _name_tests(pair: PairRows, pairs: int, alpha: float) -> str:
    """Return a sentence that names the level at which each figure of a pair is tested."""
    level = f"{_percentage(alpha):.6g} %"
    others, together = "the other figure", ""
    if pair.figures > 1:
        others = f"the {pair.figures} other figures"
        together = " together"
    if not pair.question.is_tested:
        return f"{others}: tested at {level}" if pair.figures else ""
    label = pair.question.fields["label"]
    over = f" over all {pairs} pairs together" if pairs > 1 else ""
    text = f"{label} is tested at {level}{over}"
    return f"{text}, {others}{together} at another {level}" if pair.figures else text


def _name_levels(pair: PairRows) -> str:
    """Name the confidence of the question's interval, and of the others where it is another."""
    question = pair.question
    levels = {}
    if question.ends is not None:
        confidence = _show_confidence(1 - question.level)
        levels[confidence] = question.fields["label"]
    if pair.figures:
        levels.setdefault(_show_confidence(1 - pair.level), "the others")
    if len(levels) == 1:
        return f"at {min(levels)} %"
    return ", ".join(f"at {confidence} % for {whose}" for confidence, whose in levels.items())


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

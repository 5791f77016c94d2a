"""Answers to four questions about a comparison: ship it, how sure, what broke, what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradestack_plugins.pages.blocks import Answered, Link, Part, Text
from gradestack_plugins.pages.compare_text import (
    BY_CHANCE,
    is_certain,
    p_text,
    passed_text,
    points_text,
    question_of,
    smallest_found,
    trials_text,
    value_text,
)
from gradestack_plugins.pages.text import brief, capital, cause_text, counted, number

Fields = Mapping[str, Any]
_MOST_BROKEN, _MOST_CAUSES = 3, 3
_LONGEST_NAME = 60


def answers_of(data: Fields) -> list[Answered]:
    """Return the four questions of a comparison's first screen, each with its answer."""
    decision = Answered("Ship?", _decision(data))
    certainty = Answered("How sure?", _certainty(data))
    flips = data["flips"]
    broken = Answered("What broke?", [*_broken(flips), *_more_often(data["changed"])])
    cost = Answered("What does it cost?", _cost(data))
    return [decision, certainty, broken, cost]


def _names(data: Fields) -> list[str]:
    runs = data["runs"][:2]
    return [brief(run["name"], _LONGEST_NAME) for run in runs]


def _decision(data: Fields) -> Text:
    """Answer whether the question's figure speaks for the second side."""
    row = question_of(data)
    a, b = _names(data)
    label = row["label"]
    verdict = row["verdict"]
    if verdict == "better":
        return [
            Part("Yes", "strong"),
            f", as far as “{label}” goes: {b} is clearly better than {a}.",
        ]
    if verdict == "worse":
        return [Part("No", "strong"), f": {b} is clearly worse than {a} in “{label}”."]
    if verdict == "same":
        return f"No difference: {b} and {a} are the same in every task."
    if verdict in ("higher", "lower"):
        return f"“{label}” is {verdict} with {b}; it does not say whether higher is better."
    if verdict == "no test":
        return f"Not decided: “{label}” has no test."
    undecided = f": the difference between {b} and {a} may be chance."
    return [Part("Not decided", "strong"), undecided]


def _certainty(data: Fields) -> str:
    """Write the interval of the difference, and the difference that so many tasks can show."""
    row = question_of(data)
    tasks = counted(row["tasks"], "tasks")
    basis = " with ".join(filter(None, (tasks, trials_text(data))))
    ends = row["interval"]["ends"]
    if ends is None:
        reason = row["interval"]["reason"] or "no interval"
        return f"{capital(str(reason))}; {basis}."
    confidence = f"{100 * row['interval']['confidence']:.3g}%"
    within = _ends_around_zero(ends, row)
    text = f"{confidence} interval of the difference: {within} ({p_text(row)}), {basis}."
    if is_certain(row) or row.get("mde80") is None:
        return text
    return f"{text} {smallest_found(row)}"


def _ends_around_zero(ends: Sequence[float], row: Fields) -> str:
    """Return the ends of an interval; if both have one sign, the one nearer to 0 comes first."""
    low, high = ends
    if low < 0 < high or not low or not high:
        return f"{_side_of_zero(low, row)} to {_side_of_zero(high, row)}"
    near, far = sorted(ends, key=abs)
    return f"{points_text(abs(near), row).removesuffix(' points')} to {_side_of_zero(far, row)}"


def _side_of_zero(value: float, row: Fields) -> str:
    """Return an end of an interval as how much more or less."""
    if not value:
        return points_text(0.0, row)
    word = "more" if value > 0 else "less"
    return f"{points_text(abs(value), row)} {word}"


def _broken(flips: Fields) -> list[str | Part | Link]:
    """Name the tasks that got worse, and count those that got better."""
    worse = flips["worse"]
    better = flips["better"]
    rest = f"{counted(better['count'], 'tasks')} got better"
    unchanged = sum(flips["unchanged"].values())
    if unchanged:
        rest += f", {number(unchanged)} did not change"
    if not worse["count"]:
        return [f"No task got worse; {rest}."]
    text: list[str | Part | Link] = [
        Part(f"{counted(worse['count'], 'tasks')} got worse", "strong"),
        ": ",
    ]
    named = worse["tasks"][:_MOST_BROKEN]
    for task in named:
        name = brief(task["task"], _LONGEST_NAME)
        change = ": ".join(filter(None, (passed_text(task), _code_of(task["cause"]))))
        text += [Link(name, href="#worse"), f" ({change})", ", "]
    more = worse["count"] - len(named)
    if more:
        text[-1] = f" and {number(more)} more"
    else:
        text.pop()
    return [*text, f"; {BY_CHANCE}. {rest}."]


def _more_often(changed: Fields) -> Iterator[str | Part]:
    """Name the causes for which clearly more runs fail than before, with both numbers of runs."""
    reasons = changed["reasons"]
    rows = [row for row in reasons if row["verdict"] == "more often"]
    texts = []
    for row in rows[:_MOST_CAUSES]:
        before, after = row["trials"]
        runs = counted(after, "runs")
        texts.append(f"{cause_text(row['name'])} ({runs} instead of {number(before)})")
    if texts:
        yield " Clearly more often: "
        yield Part(", ".join(texts), "strong")
        yield "."


def _code_of(cause: str | None) -> str:
    """Return the code of a cause in words, without its tool."""
    return cause_text(cause or "").partition(":")[0]


def _cost(data: Fields) -> str:
    """Write cost, time and tokens of a run on both sides, as far as recorded."""
    usage = data.get("usage", {})
    cost, seconds, tokens = map(usage.get, ("cost_usd", "seconds", "tokens"))
    texts = []
    if cost is None:
        texts.append("Cost is not recorded.")
    else:
        texts.append(f"{_before_after(cost, ' per run')}{_relative(cost)}.")
        before_passed, after_passed = cost.get("per_passed") or (None, None)
        if before_passed is not None and after_passed is not None:
            per_passed = {**cost, "a": before_passed, "b": after_passed}
            texts.append(f"{_before_after(per_passed, ' per passed run')}.")
    if seconds is not None:
        texts.append(f"A run takes {_before_after(seconds)}{_relative(seconds)}.")
    if tokens is not None:
        texts.append(f"{capital(_before_after(tokens))}{_relative(tokens)}.")
    return " ".join(texts)


def _before_after(row: Fields, noun: str = "") -> str:
    """Return the second side's amount, and the first's where it is another."""
    before = value_text(row["a"], row)
    after = value_text(row["b"], row)
    if before == after:
        return f"{after}{noun}, as before"
    return f"{after}{noun} instead of {before}"


def _relative(row: Fields) -> str:
    """Write by how much an amount rises or falls, and whether that may be chance."""
    percent_exactly = 0.0
    if row["a"]:
        percent_exactly = 100 * (row["b"] / row["a"] - 1)
    if not math.isfinite(percent_exactly):
        return ""
    percent = round(percent_exactly)
    before = value_text(row["a"], row)
    after = value_text(row["b"], row)
    if not percent or before == after:
        return ""
    word = "more" if percent > 0 else "less"
    chance = "" if is_certain(row) else ", which may be chance"
    return f": {abs(percent)}% {word}{chance}"

"""The figures a run is summed up by, as rows with their intervals on one axis from 0 to 1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.reporters.estimates import interval
from gradestack_plugins.reporters.headline import Success, success_of
from gradestack_plugins.reporters.phrases import counted
from gradestack_plugins.reporters.reliability import Reliability
from gradestack_plugins.reporters.text import UNDEFINED, brief, capital, number

_NUMBERED = re.compile(r"(.*[\^@])k", re.IGNORECASE)
_MEANS = ("mean", "mean.mean", "classification.accuracy")
"""Figures that are the share of successes where every score is 1 or 0."""
_MOST_ROWS, _MOST_ENTRIES, _LONGEST_PATH = 16, 6, 20


@attrs.frozen
class EstimateRow:
    """One figure with its interval.

    Attributes:
        title: Its name.
        code: What it is called in the summary, where its name is a sentence; "" otherwise.
        note: What it counts, why it has no value, or why it has no interval.
        value: Its value; "n/a" without one.
        unit: ``%`` for shares of samples or tasks, else "".
        interval: The ends of its interval, "" without one.
        at: Its place in percent of the axis; None off the axis, like both ends.
        low: The lower end.
        high: The upper end.
    """

    title: str
    code: str
    note: str
    value: str
    unit: str = ""
    interval: str = ""
    at: float | None = None
    low: float | None = None
    high: float | None = None


def rows_of(
    summary: Mapping[str, Any], success: Success | None, words: Mapping[str, str], reliable: Reliability
) -> tuple[EstimateRow, ...]:
    """Return the rows of a summary: the share of successes, then the figures of the headline.

    A figure of the headline that is that share is not said twice.
    """
    rows = list(_figures(summary, success, words, reliable))
    share = success.passed / success.of if success is not None and success.of else None
    if success is not None and not success.many and not any(row.title == capital(words["passed"]) for row in rows):
        known = as_map(summary.get("outcome")).get("share_interval")
        rows.insert(0, _row(capital(words["passed"]), {"value": share, "interval": known}, _of(success, reliable), "%"))
    return tuple(rows[:_MOST_ROWS])


def scale_of(value: float | None) -> float | None:
    """Return a value as percent of the axis, None off the axis."""
    return round(100 * value, 2) if value is not None and 0 <= value <= 1 else None


def confidence_of(summary: Mapping[str, Any]) -> str:
    """Return the confidence all intervals of the headline have, and what they are clustered by, as a sentence."""
    success = success_of(summary)
    found = [held for entry in _entries(summary) for held in _intervals(entry)]
    if success is not None and _share_entry(summary, success) is None:
        found += _intervals({"interval": as_map(summary.get("outcome")).get("share_interval")})
    sure = {level for held in found if (level := as_number(held.get("confidence"))) is not None}
    if len(sure) != 1:
        return ""
    (level,) = sure
    clustered = all(as_number(held.get("clusters")) is not None for held in found)
    return f"Intervals are {100 * level:.6g}%{', clustered by task' if clustered else ''}."


def _entries(summary: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return map(as_map, as_list(as_map(summary.get("headline")).get("figures")))


def _intervals(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for each in (entry, *map(as_map, as_map(entry.get("models")).values())):
        held = as_map(each.get("interval"))
        yield from [held] if "low" in held else [found for found in map(as_map, held.values()) if "low" in found]


def _figures(
    summary: Mapping[str, Any], success: Success | None, words: Mapping[str, str], reliable: Reliability
) -> Iterator[EstimateRow]:
    said: set[str] = set()
    share = _share_entry(summary, success) if success is not None else None
    for place, entry in enumerate(_entries(summary)):
        models = as_map(entry.get("models"))
        if success is not None and place == share:
            title, path = capital(words["passed"]), _path(as_text(entry.get("figure")))
            yield _row(title, entry, _of(success, reliable), "%", path)
            continue
        for model, each in models.items() if models else [("", entry)]:
            for row in _entry(entry, as_map(each), words, reliable):
                named = attrs.evolve(row, code=brief(model, 40) or "(no name)") if models else row
                if success is None or f"{named.title}{named.code}" not in said:
                    yield named
                said.add(f"{named.title}{named.code}")


def _entry(
    entry: Mapping[str, Any], held: Mapping[str, Any], words: Mapping[str, str], reliable: Reliability
) -> Iterator[EstimateRow]:
    label, value = brief(as_text(entry.get("label")), 80), held.get("value")
    if not isinstance(value, Mapping):
        yield _row(label, held, code=_path(as_text(entry.get("figure"))))
        return
    numbered = _NUMBERED.fullmatch(label)
    intervals = as_map(held.get("interval"))
    if numbered is None or not all(key.isdecimal() for key in value):
        for key in list(value)[:_MOST_ENTRIES]:
            yield _row(f"{label} {brief(key, 40)}", {"value": value[key], "interval": intervals.get(key)})
        return
    last = max(value, key=int)
    name = f"{numbered[1]}{last}"
    row = _row(name, {"value": value[last], "interval": intervals.get(last)}, unit="%")
    tasks = reliable.counted(numbered[1][-1], int(last), as_number(value[last]))
    said = {"^": "every time", "@": "at least once"}[numbered[1][-1]]
    yield attrs.evolve(row, title=f"{capital(words['passed'])} {said}", code=name, note=tasks) if tasks else row


def _path(path: str) -> str:
    """Return the path of a figure, of a long one its last part."""
    return brief(path if len(path) <= _LONGEST_PATH else path.rpartition(".")[2], 60)


def _share_entry(summary: Mapping[str, Any], success: Success) -> int | None:
    """Return the place of the headline's figure that is the share of successes itself.

    It is the outcome grader's mean, or accuracy, with the value and the interval of that share. Any other figure may
    have both by chance, and is another one all the same.
    """
    outcome = as_map(summary.get("outcome"))
    names = [f"{success.grader}.{name}" for name in _MEANS]
    for place, entry in enumerate(_entries(summary)):
        if as_text(entry.get("figure")) in names and not as_map(entry.get("models")):
            alike = _ends(entry.get("interval")) == _ends(outcome.get("share_interval"))
            if alike and _rounded(entry.get("value")) == _rounded(outcome.get("share")) is not None:
                return place
    return None


def _ends(held: Any) -> tuple[float | None, ...]:
    return tuple([_rounded(as_map(held).get(end)) for end in ("low", "high")])


def _rounded(value: Any) -> float | None:
    known = as_number(value)
    return None if known is None else round(known, 9)


def _of(success: Success, reliable: Reliability) -> str:
    return f"{number(success.passed)} of {counted(success.of, reliable.noun)}"


def _row(title: str, held: Mapping[str, Any], note: str = "", unit: str = "", code: str = "") -> EstimateRow:
    value = as_number(held.get("value"))
    if value is None:
        return EstimateRow(title, code, brief(as_text(held.get("reason")), 160) or note, UNDEFINED)
    low, high = interval({"interval": held.get("interval")})
    ends = "" if low is None or high is None else f"{_end(low, unit)} – {_end(high, unit)}{unit}"
    why = brief(as_text(as_map(held.get("interval")).get("reason")), 160)
    unsure = f"no interval: {why}" if why else ""
    share = as_map(held.get("interval")).get("method") != "t"  # by which figures that are none have theirs
    return EstimateRow(
        title,
        code,
        "; ".join(filter(None, (note, unsure))),
        _short(value, unit),
        unit,
        ends,
        *(scale_of(each) if share else None for each in (value, low, high)),
    )


def _short(value: float, unit: str) -> str:
    return f"{100 * value:.1f}" if unit else number(value)


def _end(value: float, unit: str) -> str:
    """Return an end of an interval: on the axis with three decimals, however near to 0 it is."""
    return f"{value:.3f}" if not unit and 0 <= value <= 1 else _short(value, unit)

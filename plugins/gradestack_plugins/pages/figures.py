"""Figures of a run as pages show them, as they were declared: the headline, those of each grader, gates, tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Declarations, Report, Table, distinguishing_decimals, which_is_better, with_unit
from gradestack import Figure as Meaning
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.pages.draw import Shape, scale_of
from gradestack_plugins.pages.index import RowEntry, index_of
from gradestack_plugins.pages.tasks import Reliability, by_task
from gradestack_plugins.pages.text import UNDEFINED, brief, capital, counted, end, number

_WORDS = {"lost": "not passed", "error": "broken"} | {word: word for word in ("graded", "missing", "skipped", "passed")}
_LONGEST_WORD, _LONGEST_PATH = 40, 20
_MOST_ROWS, _MOST_ENTRIES, _ZOOMED = 16, 6, 60
_MEANS = ("mean", "mean.mean", "classification.accuracy")
"""Figures that are the share of successes where every score is 1 or 0."""
_PERCENT = ("accuracy", "pass_rate")
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "tasks": {
        **dict.fromkeys(("id", "model"), "text"),
        **dict.fromkeys(("trials", "passed", "not_passed", "ungraded"), "int"),
        "mean_score": "float",
    },
    "failures": {**dict.fromkeys(("grader", "code", "subject", "argument"), "text"), "samples": "int"},
}
"""Columns of tables beside those of figures and rows, in order, with their types."""
Line = tuple[Any, ...]


class Success(msgspec.Struct, frozen=True):
    """How many samples are a success."""

    passed: int
    of: int
    """Samples the outcome grader graded."""
    grader: str
    """Key of the outcome grader."""
    models: Mapping[str, tuple[int, int]]
    """Model -> samples that are a success, and that are not."""

    @property
    def many(self) -> bool:
        """Whether several models were run, whose successes are not counted together."""
        return len(self.models) > 1


def success_of(summary: Mapping[str, Any]) -> Success | None:
    """Return the successes of a summary; None where the run has no outcome."""
    outcome = as_map(summary.get("outcome"))
    if not outcome:
        return None
    passed = as_count(outcome.get("passed"))
    of = passed + as_count(outcome.get("failed"))
    models = map(as_map, as_list(outcome.get("per_model")))
    return Success(
        passed=passed,
        of=of,
        grader=as_text(outcome.get("grader")),
        models={
            as_text(each.get("model_name")): (as_count(each.get("passed")), as_count(each.get("failed")))
            for each in models
        },
    )


def words_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the words for what may become of a sample, those for success and its opposite as the outcome grader's."""
    own = as_map(as_map(summary.get("outcome")).get("words"))
    passed, failed = (brief(as_text(own.get(name)), _LONGEST_WORD) for name in ("passed", "failed"))
    return {**_WORDS, "passed": passed or _WORDS["passed"], "lost": failed or _WORDS["lost"]}


class FigureRow(msgspec.Struct, frozen=True):
    """One figure with its interval, as texts and in percent of an axis from 0 to 1; None off the axis."""

    title: str
    code: str
    """Its path, or of several models the model."""
    note: str
    """What it counts, which way is better, why it has no value, or why it has no interval."""
    value: str
    unit: str = ""
    """``%`` for the share of successes."""
    interval: str = ""
    axis: str = ""
    """The axis it is on: ``share``, ``score`` between 0 and 1; "": none."""
    at: float | None = None
    low: float | None = None
    high: float | None = None
    about: str = ""
    """Its formula."""
    better: str = ""


def ends_of(held: Any) -> tuple[float | None, float | None]:
    """Return both ends of an interval as summaries have them, (None, None) without one."""
    low, high = (as_number(as_map(held).get(name)) for name in ("low", "high"))
    return (None, None) if low is None or high is None else (low, high)


def rows_of(summary: Mapping[str, Any], declared: Declarations, reliable: Reliability) -> tuple[FigureRow, ...]:
    """Return the rows of a summary: the share of successes, then the figures of the headline.

    A figure of the headline that is that share is not shown twice.
    """
    success, title = success_of(summary), capital(words_of(summary)["passed"])
    share = None if success is None else _share_entry(summary, success)
    order = {} if success is None else {model: place for place, model in enumerate(success.models)}
    rows = [
        row for place, entry in enumerate(_entries(summary)) if place != share for row in _entry(entry, declared, order)
    ]
    if success is not None and success.many:
        for each in reversed(list(map(as_map, as_list(as_map(summary.get("outcome")).get("per_model"))))):
            name, ok, lost = as_text(each.get("model_name")), as_count(each.get("passed")), as_count(each.get("failed"))
            one = {"value": each.get("share"), "interval": each.get("share_interval")}
            note = f"{number(ok)} of {number(ok + lost)}"
            rows.insert(0, _row(title, one, None, note, "%", code=brief(name, 40) or "(no name)"))
    elif success is not None:
        value = success.passed / success.of if success.of else None
        held = {"value": value, "interval": as_map(summary.get("outcome")).get("share_interval")}
        path = "" if share is None else _path(as_text(_entries(summary)[share].get("figure")))
        note = f"{number(success.passed)} of {counted(success.of, reliable.noun)}" if success.of else "no result"
        rows.insert(0, _row(title, held, None, note, "%", path))
    return tuple(rows[:_MOST_ROWS])


def confidence_of(summary: Mapping[str, Any]) -> str:
    """Return the confidence all intervals of the headline have, and what they are clustered by, as a sentence."""
    found = [held for entry in _entries(summary) for held in _intervals(entry)]
    share = as_map(as_map(summary.get("outcome")).get("share_interval"))
    found += [share] if "low" in share else []
    sure = {level for held in found if (level := as_number(held.get("confidence"))) is not None}
    if len(sure) != 1:
        return ""
    clustered = all(as_number(held.get("clusters")) is not None for held in found)
    return f"Intervals are {100 * sure.pop():.6g}%{', clustered by task' if clustered else ''}."


def _entries(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(map(as_map, as_list(as_map(summary.get("headline")).get("figures"))))


def _intervals(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for each in (entry, *map(as_map, as_map(entry.get("models")).values())):
        held = as_map(each.get("interval"))
        yield from [held] if "low" in held else [found for found in map(as_map, held.values()) if "low" in found]


def axes_of(rows: Sequence[FigureRow]) -> list[Shape]:
    """Return rows by axis and figure. Of an axis only the tens around the data, where these take six tenths or less."""
    found = []
    for axis in dict.fromkeys(sorted((row.axis for row in rows), key=("share", "score", "").index)):
        own = [row for row in rows if row.axis == axis]
        known = [at for row in own for at in (row.at, row.low, row.high) if at is not None]
        low, high = (10 * math.floor(min(known) / 10), 10 * math.ceil(max(known) / 10)) if known else (0, 100)
        low, high = (low, high) if known and 0 < high - low <= _ZOOMED else (0, 100)
        steps = [low + part * (high - low) / 4 for part in range(5)] if axis else []
        found.append(
            Shape(
                name=axis,
                ticks=[f"{step:g}%" if axis == "share" else f"{step / 100:g}" for step in steps],
                figures=[
                    Shape(title=title, rows=[_zoomed(row, low, high) for row in own if row.title == title])
                    for title in dict.fromkeys(row.title for row in own)
                ],
            )
        )
    return found


def _zoomed(row: FigureRow, low: float, high: float) -> FigureRow:
    places = {name: getattr(row, name) for name in ("at", "low", "high")}
    scaled = {name: None if at is None else round(100 * (at - low) / (high - low), 2) for name, at in places.items()}
    return msgspec.structs.replace(row, **scaled)


def _entry(entry: Mapping[str, Any], declared: Declarations, order: Mapping[str, int]) -> Iterator[FigureRow]:
    """Yield the rows of a figure of the headline: one, or one for each model; of a figure over k that of the last k."""
    label, models, path = (
        brief(as_text(entry.get("label")), 80),
        as_map(entry.get("models")),
        as_text(entry.get("figure")),
    )
    for model, each in sorted(models.items(), key=lambda one: order.get(one[0], 0)) if models else [("", entry)]:
        held = as_map(each)
        code = (brief(model, 40) or "(no name)") if models else _path(path)
        value, intervals = held.get("value"), as_map(held.get("interval"))
        if not isinstance(value, Mapping):
            yield _row(label, held, declared.at(path), code=code)
            continue
        over_k = all(key.isdecimal() for key in value)
        for key in [max(value, key=int)] if over_k and value else list(value)[:_MOST_ENTRIES]:
            one = {"value": value[key], "interval": intervals.get(key)}
            title = f"{label}, k = {key}" if over_k else f"{label} {brief(key, 40)}"
            yield _row(title, one, declared.at(f"{path}.{key}"), code=code)


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

    def rounded(*values: Any) -> list[float | None]:
        return [None if (known := as_number(each)) is None else round(known, 9) for each in values]

    for place, entry in enumerate(_entries(summary)):
        if as_text(entry.get("figure")) in names and not as_map(entry.get("models")):
            own = rounded(entry.get("value"), *ends_of(entry.get("interval")))
            if own[0] is not None and own == rounded(outcome.get("share"), *ends_of(outcome.get("share_interval"))):
                return place
    return None


def _row(
    title: str, held: Mapping[str, Any], meaning: Meaning | None, note: str = "", unit: str = "", code: str = ""
) -> FigureRow:
    value, reason = as_number(held.get("value")), brief(as_text(held.get("reason")), 160)
    about = "" if meaning is None else meaning.about
    notes = [note, "" if meaning is None else which_is_better(meaning.better)]
    if value is None:
        told = "; ".join(filter(None, (reason or note, notes[1])))
        return FigureRow(title, code, told, UNDEFINED, about=about, better=notes[1])
    low, high = ends_of(held.get("interval"))
    ends = "" if low is None or high is None else f"{_end(low, unit)} – {_end(high, unit)}{unit}"
    why = brief(as_text(as_map(held.get("interval")).get("reason")), 160)
    axis = "share" if unit else _axis(meaning)
    at, left, right = (scale_of(each) if axis else None for each in (value, low, high))
    return FigureRow(
        title,
        code,
        "; ".join(filter(None, (*notes, f"no interval: {why}" if why else ""))),
        _short(value, unit) if meaning is None else with_unit(_short(value, unit), meaning.unit),
        unit,
        ends,
        axis,
        at,
        left,
        right,
        about,
        notes[1],
    )


def _axis(meaning: Meaning | None) -> str:
    """Return the axis from 0 to 1 that a figure is drawn on: shares, and scores that cannot lie beyond, apart."""
    within = meaning is not None and meaning.bounds[0] >= 0 and meaning.bounds[1] <= 1
    return meaning.unit if meaning is not None and within and meaning.unit in ("share", "score") else ""


def _short(value: float, unit: str) -> str:
    return f"{100 * value:.1f}" if unit else number(value)


def _end(value: float, unit: str) -> str:
    return _short(value, unit) if unit else end(value)


def lines_of(report: Report) -> list[Shape]:
    """Return the lines of the table ``figures`` as texts; a number that is not declared has no label."""
    found = []
    for held in report.table("figures").rows():
        ends = "" if held["low"] is None else f"{end(held['low'])} – {end(held['high'])}"
        notes = (which_is_better(held["better"]) if held["better"] else "", as_text(held["reason"]))
        found.append(
            Shape(
                grader=held["grader"],
                path=brief(".".join(filter(None, (held["aggregator"], held["figure"]))), 160),
                model=None if held["model"] is None else brief(held["model"], 80) or "(no name)",
                label=brief(held["label"] or "", 120),
                value=with_unit(number(held["value"]), held["unit"] or "") if held["value"] is not None else UNDEFINED,
                interval=ends,
                n="" if held["n"] is None else number(held["n"]),
                note=brief("; ".join(filter(None, notes)), 200),
            )
        )
    return found


def gate_of(gate: Mapping[str, Any]) -> Shape:
    """Return one gate of a summary: rule, verdict, and what it compares with its interval in percent of the scale.

    Its note says whether the verdict is not sure, what the actual value leaves out, or why there is none.
    """
    scale = 100.0 if gate.get("metric") in _PERCENT else 1.0
    actual, value = as_number(gate.get("actual")), as_number(gate.get("value"))
    passed, of_samples = gate.get("passed") is True, isinstance(gate.get("actual"), int)
    (low, high), unit = ends_of(gate.get("interval")), "%" if scale > 1 else ""
    unsure = "but the threshold lies within the interval" if gate.get("sure") is False else ""
    uncalibrated = brief(f"uncalibrated: {gate['uncalibrated']}", 200) if "uncalibrated" in gate else ""
    return Shape(
        text=brief(gate.get("text") or "gate", 200),
        outcome=as_text(gate.get("outcome")) or ("passed" if passed else "failed"),
        passed=passed,
        actual=_actual(gate),
        note=", ".join(filter(None, (unsure, _note(gate), uncalibrated))),
        at=None if of_samples else scale_of(actual, scale),
        threshold=None if of_samples else scale_of(value, scale),
        low=scale_of(low),
        high=scale_of(high),
        interval="" if low is None or high is None else f"interval {_end(low, unit)} – {_end(high, unit)}{unit}",
    )


def _actual(gate: Mapping[str, Any]) -> str:
    """Return the figure a gate compared with enough digits to see its verdict, or those of its conditions."""
    parts = [_actual(as_map(part)) for part in as_list(gate.get("conditions"))]
    if parts:
        return brief(f" {as_text(gate.get('operator'))} ".join(parts), 200)
    actual, value = as_number(gate.get("actual")), as_number(gate.get("value"))
    if actual is None or value is None or isinstance(gate.get("actual"), int):
        return number(gate.get("actual"))
    if gate.get("metric") == "failed_share":
        actual, value = 100 * actual, 100 * value
    elif gate.get("metric") not in _PERCENT:
        return distinguishing_decimals(actual, value, 3)
    return f"{distinguishing_decimals(actual, value, 1)}%"


def _note(gate: Mapping[str, Any]) -> str:
    compared, of = gate.get("counted"), gate.get("of")
    if gate.get("reason"):
        return brief(as_text(gate["reason"]), 300)
    if gate.get("kind") == "baseline" and gate.get("actual") is not None:
        flips = as_map(gate.get("flips"))
        return f"{as_count(flips.get('fixed'))} runs fixed, {as_count(flips.get('broken'))} broken"
    if gate.get("kind") == "max_failed":
        lost = as_count(gate.get("failed")) + as_count(gate.get("missing"))
        return brief(f"{lost} of {as_count(of)} for {as_text(gate.get('grader'))}", 200)
    if isinstance(compared, int) and isinstance(of, int) and compared < of:
        return f"{of - compared} of {of} failed or missing"
    return "nothing was graded" if gate.get("outcome") == "no_data" else ""


def counted_tables(report: Report, *names: str) -> Iterator[tuple[str, Table]]:
    """Yield those of the tables ``tasks`` and ``failures``, which are counted from the rows."""
    if report.has_rows:
        index = index_of(report)
        counted = zip(index.given.kinds, index.given.samples, strict=True)
        failures = ((*(part or None for part in kind), samples) for kind, samples in counted)
        lines: dict[str, Iterator[Line]] = {"tasks": task_lines(index.entries), "failures": failures}
        yield from ((name, Table.of(COLUMNS[name], lines[name])) for name in names)


def task_lines(entries: Sequence[RowEntry]) -> Iterator[Line]:
    """Yield the lines of the table ``tasks``: each task of each model."""
    for (model, task), own in by_task(entries).items():
        verdicts = [entry.passed for entry in own]
        scores = [entry.score for entry in own if entry.score is not None]
        ungraded = sum(entry.state != "graded" for entry in own)
        mean = math.fsum(scores) / len(scores) if scores else None
        yield task, model or None, len(own), verdicts.count(True), verdicts.count(False), ungraded, mean

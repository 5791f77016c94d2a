"""Figures of a run as pages show them, as they were declared.

The headline, those of each grader, gates, tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradestack import Declarations, Report, gate_texts, which_is_better, with_unit
from gradestack import Figure as Meaning
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.pages.draw import Shape, scale_of
from gradestack_plugins.pages.index import RowEntry
from gradestack_plugins.pages.tallies import sum_over
from gradestack_plugins.pages.tasks import Reliability, by_task
from gradestack_plugins.pages.text import UNDEFINED, brief, capital, counted, end, number
from gradestack_plugins.tables.figures import figure_tables

_WORDS = {"lost": "not passed", "error": "broken"} | {
    word: word for word in ("graded", "missing", "skipped", "passed")
}
_LONGEST_WORD, _LONGEST_PATH = 40, 20
_MOST_ROWS, _MOST_ENTRIES, _ZOOMED = 16, 6, 60
_MEANS = ("mean", "mean.mean", "classification.accuracy")
"""Figures that are the share of successes where every score is 1 or 0."""
_PERCENT = ("accuracy", "pass_rate")
Line = tuple[Any, ...]


def success_of(summary: Mapping[str, Any]) -> Shape | None:
    """Return how many samples are a success, ``of`` those the outcome grader graded.

    None where there is no outcome.

    ``models`` has for each model its samples that are a success, and that are not; of ``many`` they
    are not summed up. ``others`` counts the models that pages leave out.
    """
    outcome = as_map(summary.get("outcome"))
    if not outcome:
        return None
    passed, models = as_count(outcome.get("passed")), map(as_map, as_list(outcome.get("per_model")))
    counts = {
        as_text(each.get("model_name")): (each.get("passed"), each.get("failed")) for each in models
    }
    return Shape(
        passed=passed,
        of=passed + as_count(outcome.get("failed")),
        grader=as_text(outcome.get("grader")),
        models={name: (as_count(ok), as_count(lost)) for name, (ok, lost) in counts.items()},
        many=len(counts) > 1,
        others=as_count(summary.get("models_left_out")),
    )


def words_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the words for what may become of a sample, those for success and its opposite as the
    outcome grader's.
    """
    own = as_map(as_map(summary.get("outcome")).get("words"))
    passed, failed = (brief(as_text(own.get(name)), _LONGEST_WORD) for name in ("passed", "failed"))
    return {**_WORDS, "passed": passed or _WORDS["passed"], "lost": failed or _WORDS["lost"]}


def ends_of(held: Any) -> tuple[float | None, float | None]:
    """Return both ends of an interval as summaries have them, (None, None) without one."""
    low, high = (as_number(as_map(held).get(name)) for name in ("low", "high"))
    return (None, None) if low is None or high is None else (low, high)


def rows_of(
    summary: Mapping[str, Any], declared: Declarations, reliable: Reliability
) -> tuple[Shape, ...]:
    """Return the rows of a summary: the share of successes, then the figures of the headline.

    A figure of the headline that is that share is not shown twice. ``code`` is the path of a figure
    or, of several models, the model; ``axis`` the one it is on, ``share``, ``score`` between 0 and
    1 or "", with ``at``, ``low`` and ``high`` in percent of it, None off the axis.
    """
    success, outcome = success_of(summary), as_map(summary.get("outcome"))
    title, many = capital(words_of(summary)["passed"]), success is not None and success.many
    shares = {
        as_text(each.get("model_name")): {
            "value": each.get("share"),
            "interval": each.get("share_interval"),
        }
        for each in (map(as_map, as_list(outcome.get("per_model"))) if many else [outcome])
    }
    order = {} if success is None else {model: place for place, model in enumerate(success.models)}
    rows, path = list[Shape](), ""
    entries = headline(summary)
    for entry in entries:
        if "corrects" in entry:
            continue
        if success is not None and not path and _is_share(entry, shares, success.grader):
            path = _path(as_text(entry.get("figure")))
        else:
            rows += _entry(entry, declared, order)
    if success is not None and many:
        for place, (name, held) in enumerate(shares.items()):
            ok, lost = success.models[name]
            note = f"{number(ok)} of {number(ok + lost)}"
            rows.insert(
                place, _row(title, held, None, note, "%", code=brief(name, 40) or "(no name)")
            )
    elif success is not None:
        note = (
            f"{number(success.passed)} of {counted(success.of, reliable.noun)}"
            if success.of
            else "no result"
        )
        value = success.passed / success.of if success.of else None
        rows.insert(0, _row(title, {**shares[""], "value": value}, None, note, "%", path))
    corrected = [row for entry in entries for row in _corrected(entry, order)]
    return tuple([*corrected, *rows][:_MOST_ROWS])


def _corrected(entry: Mapping[str, Any], order: Mapping[str, int]) -> Iterator[Shape]:
    """Yield the rows of a figure that corrects the share of successes: one, or one a model."""
    if "corrects" not in entry:
        return
    label, path = brief(as_text(entry.get("label")), 80), _path(as_text(entry.get("figure")))
    models = as_map(entry.get("models"))
    if not models:
        yield _row(label, entry, None, unit="%", code=path)
    for model in sorted(models, key=lambda name: order.get(name, 0)):
        yield _row(
            label, as_map(models[model]), None, unit="%", code=brief(model, 40) or "(no name)"
        )


def confidence_of(summary: Mapping[str, Any]) -> str:
    """Return the confidence all intervals of the headline have, and what they are clustered by, as
    a sentence.
    """
    found = [as_map(as_map(summary.get("outcome")).get("share_interval"))]
    for entry in headline(summary):
        for each in (entry, *map(as_map, as_map(entry.get("models")).values())):
            held = as_map(each.get("interval"))
            found += [held, *map(as_map, held.values())]
    found = [held for held in found if "low" in held]
    sure = {level for held in found if (level := as_number(held.get("confidence"))) is not None}
    if len(sure) != 1:
        return ""
    clustered = all(as_number(held.get("clusters")) is not None for held in found)
    return f"Intervals are {100 * sure.pop():.6g}%{', clustered by task' if clustered else ''}."


def headline(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the figures of a summary's headline."""
    return list(map(as_map, as_list(as_map(summary.get("headline")).get("figures"))))


def axes_of(rows: Sequence[Shape]) -> list[Shape]:
    """Return rows by axis and figure.

    Of an axis only the tens around the data, where these take six tenths or less.
    """
    found = []
    for axis in dict.fromkeys(sorted((row.axis for row in rows), key=("share", "score", "").index)):
        own = [row for row in rows if row.axis == axis]
        known = [at for row in own for at in (row.at, row.low, row.high) if at is not None]
        low, high = (
            (10 * math.floor(min(known) / 10), 10 * math.ceil(max(known) / 10))
            if known
            else (0, 100)
        )
        low, high = (low, high) if 0 < high - low <= _ZOOMED else (0, 100)
        steps = [low + part * (high - low) / 4 for part in range(5)] if axis else []
        figures: dict[str, list[Shape]] = {}
        for row in own:
            ends = {name: scale_of(getattr(row, name), high, low) for name in ("at", "low", "high")}
            figures.setdefault(row.title, []).append(Shape(**{**vars(row), **ends}))
        found.append(
            Shape(
                name=axis,
                ticks=[f"{step:g}%" if axis == "share" else f"{step / 100:g}" for step in steps],
                figures=[Shape(title=title, rows=each) for title, each in figures.items()],
            )
        )
    return found


def _entry(
    entry: Mapping[str, Any], declared: Declarations, order: Mapping[str, int]
) -> Iterator[Shape]:
    """Yield the rows of a figure of the headline: one, or one for each model.

    Of a figure over k that of the last k.
    """
    label, path, models = (
        brief(as_text(entry.get("label")), 80),
        as_text(entry.get("figure")),
        as_map(entry.get("models")),
    )
    for model, each in sorted(models.items(), key=lambda one: order.get(one[0], 0)) or [
        ("", entry)
    ]:
        held, code = as_map(each), (brief(model, 40) or "(no name)") if models else _path(path)
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


def _is_share(
    entry: Mapping[str, Any], shares: Mapping[str, Mapping[str, Any]], grader: str
) -> bool:
    """Return whether a figure of the headline is the share of successes itself, of every model.

    Only the outcome grader's mean or accuracy can be; any other figure may have the same values by
    chance.
    """

    def rounded(held: Mapping[str, Any]) -> list[float | None]:
        known = (as_number(held.get("value")), *ends_of(held.get("interval")))
        return [None if each is None else round(each, 9) for each in known]

    known = as_text(entry.get("figure")) in {f"{grader}.{name}" for name in _MEANS}
    own = {
        name: rounded(as_map(each))
        for name, each in (as_map(entry.get("models")) or {"": entry}).items()
    }
    return known and own == {name: rounded(each) for name, each in shares.items()}


def _row(
    title: str,
    held: Mapping[str, Any],
    meaning: Meaning | None,
    note: str = "",
    unit: str = "",
    code: str = "",
) -> Shape:
    """Return one figure with its interval, and what it counts, or why it has no value or no
    interval.
    """
    value, ends = as_number(held.get("value")), ends_of(held.get("interval"))
    about, better = (
        ("", "") if meaning is None else (meaning.about, which_is_better(meaning.better))
    )
    axis = "" if value is None else "share" if unit else _axis(meaning)
    if value is None:
        notes, shown, unit, ends = (
            [brief(as_text(held.get("reason")), 160) or note, better],
            UNDEFINED,
            "",
            (None, None),
        )
    else:
        why = brief(as_text(as_map(held.get("interval")).get("reason")), 160)
        notes, shown = (
            [note, better, f"no interval: {why}" if why else ""],
            _shown(held, value, unit),
        )
        shown = shown if meaning is None else with_unit(shown, meaning.unit)
    at, low, high = (scale_of(each) if axis else None for each in (value, *ends))
    texts = {
        "title": title,
        "code": code,
        "note": "; ".join(filter(None, notes)),
        "value": shown,
        "unit": unit,
    }
    texts |= {"interval": _interval(ends, unit), "axis": axis, "about": about, "better": better}
    return Shape(**texts, at=at, low=low, high=high)


def _axis(meaning: Meaning | None) -> str:
    """Return the axis from 0 to 1 that a figure is drawn on.

    Shares, and scores that cannot lie beyond, apart.
    """
    within = meaning is not None and meaning.bounds[0] >= 0 and meaning.bounds[1] <= 1
    return (
        meaning.unit
        if meaning is not None and within and meaning.unit in ("share", "score")
        else ""
    )


def _short(value: float, unit: str) -> str:
    return f"{100 * value:.1f}" if unit else number(value)


def _shown(held: Mapping[str, Any], value: float, unit: str) -> str:
    """Return a figure's value; a count is shown as the whole number it is."""
    is_count = type(held.get("value")) is int and not unit
    return number(int(value)) if is_count else _short(value, unit)


def _interval(ends: tuple[float | None, float | None], unit: str) -> str:
    low, high = (
        each if each is None else _short(each, unit) if unit else end(each) for each in ends
    )
    return "" if low is None or high is None else f"{low} – {high}{unit}"


def lines_of(report: Report) -> list[Shape]:
    """Return the lines of the table ``figures`` as texts.

    A number that is not declared has no label.
    """
    found = []
    for held in figure_tables(report)["figures"].rows():
        notes = (which_is_better(held["better"]) if held["better"] else "", as_text(held["reason"]))
        found.append(
            Shape(
                grader=held["grader"],
                path=brief(".".join(filter(None, (held["aggregator"], held["figure"]))), 160),
                model=None if held["model"] is None else brief(held["model"], 80) or "(no name)",
                label=brief(held["label"] or "", 120),
                value=with_unit(number(held["value"]), held["unit"] or "")
                if held["value"] is not None
                else UNDEFINED,
                interval=_interval((held["low"], held["high"]), ""),
                n="" if held["n"] is None else number(held["n"]),
                note=brief("; ".join(filter(None, notes)), 200),
            )
        )
    return found


def gate_of(gate: Mapping[str, Any]) -> Shape:
    """Return one gate of a summary.

    Rule, verdict, and what it compares with its interval in percent of the scale.

    Its note says whether the verdict is not sure, what the actual value leaves out, or why there is
    none.
    """
    unit = "%" if gate.get("metric") in _PERCENT else ""
    scale = 100.0 if unit else 1.0
    on_axis = (
        not isinstance(gate.get("actual"), int) and gate.get("kind") != "baseline"
    )  # no count, no difference
    known = [as_number(gate.get(name)) if on_axis else None for name in ("actual", "value")]
    ends = ends_of(gate.get("interval"))
    passed, interval = gate.get("passed") is True, _interval(ends, unit)
    unsure = "but the threshold lies within the interval" if gate.get("sure") is False else ""
    (actual, notes), lost = (
        gate_texts(gate, 3),
        "" if gate.get("outcome") != "no_data" else "nothing was graded",
    )
    return Shape(
        text=brief(gate.get("text") or "gate", 200),
        outcome=as_text(gate.get("outcome")) or ("passed" if passed else "failed"),
        passed=passed,
        actual=brief(actual, 200),
        note=", ".join(filter(None, (unsure, *[brief(each, 300) for each in notes or [lost]]))),
        at=scale_of(known[0], scale),
        threshold=scale_of(known[1], scale),
        low=scale_of(ends[0]),
        high=scale_of(ends[1]),
        interval=f"interval {interval}" if interval else "",
    )


def task_lines(entries: Sequence[RowEntry]) -> Iterator[Line]:
    """Yield the lines of the table ``tasks``: each task of each model."""
    for (model, task), own in by_task(entries).items():
        verdicts = [entry.passed for entry in own]
        scores = [entry.score for entry in own if entry.score is not None]
        ungraded = sum(entry.state != "graded" for entry in own)
        mean = sum_over(scores, len(scores)) if scores else None
        yield (
            task,
            model or None,
            len(own),
            verdicts.count(True),
            verdicts.count(False),
            ungraded,
            mean,
        )

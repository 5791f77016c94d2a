"""Pages of a comparison, in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gradestack import compared_rows, with_unit
from gradestack.jsonio import as_count, as_map
from gradestack_plugins.pages.chunks import packed_rows
from gradestack_plugins.pages.environment import asset, environment, policy, rows_script
from gradestack_plugins.pages.index import name_of
from gradestack_plugins.pages.panel import Panels, Sheets, asked, folders
from gradestack_plugins.pages.prose import bar, code, prose
from gradestack_plugins.pages.sample import gist
from gradestack_plugins.pages.text import UNDEFINED, capital, number

_MOST_METRICS = 8
"""Graders in the table of the Markdown page; comparison.json has all."""
_MOST_CHANGES = 10
_KINDS = {"reasons": "Reasons", "tools": "Tools with errors", "arguments": "Arguments with errors"}
_LONGEST = 1000
"""Characters of one text in a drill-down."""


def markdown_page(data: Mapping[str, Any], panels: Panels) -> str:
    """Return comparison.md: a table of some thirty lines for a pull request, details folded."""
    env = environment()
    env.filters.update(md=prose, code=code, signed=signed, ends=ends, bar=bar)
    shown = compared_rows(data)[:_MOST_METRICS]
    found = asked(panels, ("compare",), data)
    filled = [each for each in found.filled if each.blocks]
    return env.get_template("comparison.md").render(**_context(data), shown=shown, panels=filled, rows=compared_rows)


def html_page(data: Mapping[str, Any], panels: Panels) -> str:
    """Return comparison.html, a file of its own."""
    env = environment(folders=folders(panels))
    env.filters.update(signed=signed, ends=ends)
    style, early = asset(env, "report.css"), asset(env, "theme.js")
    flipped, rows = _flipped(data)
    script = rows_script(env) if flipped else ""
    shown = {"style": style, "early": early, "script": script, "policy": policy([style], [early, script])}
    filled, left_out = Sheets(env, panels).rendered(asked(panels, ("compare",), data))
    found = {"panels": [html for _, html in filled], "left_out": left_out, "flipped": flipped}
    return env.get_template("comparison.html").render(
        **_context(data), **shown, **found, rows=packed_rows(rows), longest=_LONGEST
    )


def _flipped(data: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Return the first tasks that changed, with the first reason of both sides, and the rows of these."""
    found, rows = [], list[Mapping[str, Any]]()
    for each in map(as_map, data.get("flipped") or ()):
        sides = []
        for side in each["sides"]:
            row = as_map(side["row"])
            run = "" if row.get("run") is None else name_of(str(row["run"]))
            place = {"run": run, "line": as_count(side["position"]) + 1, "number": len(rows), "gist": gist(row)}
            sides.append({**side, **place})
            rows.append(row)
        found.append({**each, "sides": sides})
    return found, rows


class Difference(msgspec.Struct, frozen=True):
    """One difference on an axis around 0, whose ends all differences of a page share."""

    key: str
    label: str
    """What the figure is, in plain words."""
    a: str
    b: str
    text: str
    interval: str
    at: float | None
    """Percent of the axis, like both ends of the interval."""
    low: float | None
    high: float | None
    word: str
    """The verdict of the comparison: ``better``, ``worse``, ``no evidence``, …."""
    counts: str
    p: str
    visible: str


def differences(pair: Mapping[str, Any], widest: float) -> tuple[Difference, ...]:
    """Return the differences of one pair; those between shares have places on an axis from minus to plus ``widest``."""
    return tuple(_difference(each, widest) for each in compared_rows(pair))


def _difference(each: Mapping[str, Any], widest: float) -> Difference:
    held, found = each["difference"], each["interval"]["ends"]

    def place(value: float | None) -> float | None:
        return None if value is None or not each["share"] else round(50 + 50 * value / widest, 2)

    low, high = found if found is not None else (None, None)
    counts = f"{number(each['tasks'])} task{'' if each['tasks'] == 1 else 's'}"
    if each.get("better") is not None:
        counts = f"{each['better']} better, {each['worse']} worse, {each['same']} the same of {counts}"
    return Difference(
        str(each["path"]),
        str(each["label"]),
        with_unit(number(each["a"]), each["unit"]),
        with_unit(number(each["b"]), each["unit"]),
        with_unit(signed(held), each["unit"]),
        ends(found),
        place(held),
        place(low),
        place(high),
        str(each.get("verdict") or "no test"),
        counts,
        number(each["p_holm"]),
        number(each["mde80"]),
    )


def _widest(pairs: Iterable[Mapping[str, Any]]) -> float:
    """Return the largest distance from 0 of a difference between shares or an end of its interval, else 1."""
    found = [each for pair in pairs for each in compared_rows(pair) if each["share"]]
    values = [
        abs(value) for each in found for value in (each["difference"], *(each["interval"]["ends"] or ())) if value
    ]
    return 1.08 * max(values) if values else 1.0


def changed(data: Mapping[str, Any]) -> tuple[tuple[Mapping[str, Any], ...], tuple[Mapping[str, Any], ...]]:
    """Return the tasks listed as changed that lost trials, and those that gained some."""
    tasks = data["flips"]["tasks"]
    lost = tuple(each for each in tasks if _trials(each["b"]) < _trials(each["a"]))
    return lost, tuple(each for each in tasks if _trials(each["b"]) >= _trials(each["a"]))


def _trials(text: str) -> float:
    passed, _, of = text.partition("/")
    return int(passed) / int(of) if passed.isdecimal() and of.isdecimal() and int(of) else 0.0


def _context(data: Mapping[str, Any]) -> dict[str, Any]:
    first, second = data["runs"][:2]
    pairs = data.get("pairs") or [{**data, "a": first["name"], "b": second["name"]}]
    confidence = next(iter(data["metrics"].values()))["interval"]["confidence"]
    widest = _widest(pairs)
    return {
        "data": data,
        "sentence": capital(data["sentence"]),
        "drawn": [(pair, differences(pair, widest)) for pair in pairs],
        "changed": changed(data),
        "what": [(title, rows[:_MOST_CHANGES]) for kind, title in _KINDS.items() if (rows := data["changed"][kind])],
        "pairs": pairs,
        "by": data.get("by"),
        "groups": data.get("groups", []),
        "confidence": f"{100 * confidence:.6g} % interval",
    }


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return UNDEFINED if value is None else f"{'+' if value > 0 else ''}{number(value)}"


def ends(value: list[float] | None) -> str:
    """Return the ends of an interval."""
    return "none" if value is None else f"{number(value[0])} to {number(value[1])}"

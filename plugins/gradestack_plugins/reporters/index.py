"""The index of a run as pages show it: samples with their verdicts, worst first, and where points were lost."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack import Report, RowEntry, RowIndex
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.reporters.text import brief, number

TENTHS = tuple(step / 10 for step in range(11))
_SHADES = ("q0", *(f"q{step}" for step in range(11)))

_RANK = {"error": 0, "lost": 1, "graded": 2, "missing": 3, "skipped": 4, "passed": 5}
_VERDICTS = {"failed": "error", "missing": "missing"}
_LONGEST_NAME, _LONGEST_REASON = 200, 60


@attrs.frozen
class Entry:
    """What a drill-down shows of the index."""

    position: int
    """Zero-based row number in results.jsonl."""
    id: str
    run: str
    """"" when the format has no runs."""
    model: str
    verdict: str
    score: float | None
    """Score of the main grade; None unless graded."""
    shown: str
    shade: str

    @classmethod
    def of(cls, entry: RowEntry) -> Entry:
        """Return what is shown of a sample."""
        id_, run, model = (name_of(name) for name in (entry.id, entry.run, entry.model))
        return cls(entry.position, id_, run, model, verdict(entry), entry.score, shown_as(entry), shade_of(entry))

    @property
    def line(self) -> int:
        """One-based line in results.jsonl."""
        return self.position + 1


def shown_as(entry: RowEntry) -> str:
    """Return the score in short, or a sign for the state."""
    if entry.score is not None:
        return number(entry.score)
    return "–" if entry.state == "graded" else verdict(entry)


def shade_of(entry: RowEntry) -> str:
    """Return the CSS class of a cell: ``q0`` … ``q10`` by tenths of the score, or the verdict."""
    return verdict(entry) if entry.score is None else shade(entry.score)


def shade(fraction: float) -> str:
    """Return the CSS class of a fraction: ``q0`` below 0.1 … ``q9``, ``q10`` from 1.0 on."""
    return _SHADES[bisect_right(TENTHS, fraction)]


def verdict(entry: RowEntry) -> str:
    """Return what became of a sample, by the run's outcome.

    ``passed``, ``lost`` (graded, no success), ``graded`` (in a run without an outcome), ``error`` (something broke),
    ``skipped`` or ``missing``.
    """
    if entry.state == "graded":
        return "graded" if entry.passed is None else "passed" if entry.passed else "lost"
    return _VERDICTS.get(entry.state, "skipped")


def severity(entry: RowEntry) -> tuple[int, float, int]:
    """Return a sort key that puts failures first: broken, then by lost score, missing, skipped, success."""
    return (_RANK[verdict(entry)], entry.score if entry.score is not None else 0.0, entry.position)


def worst(entries: Iterable[RowEntry], most: int) -> list[RowEntry]:
    """Return the worst samples, worst first."""
    return heapq.nsmallest(most, entries, key=severity)


def outcome(grade: Mapping[str, Any]) -> str:
    """Return a grade's state; a grade without one is graded when it has a score."""
    state = as_text(grade.get("state"))
    return state or ("graded" if as_number(grade.get("score")) is not None else "skipped")


def score(grade: Mapping[str, Any]) -> float | None:
    """Return the score of a graded grade; the 0.0 that rows carry for other states is no score."""
    return as_number(grade.get("score")) if outcome(grade) == "graded" else None


def name_of(name: str) -> str:
    """Return the name of a sample, run or model on one line."""
    return brief(name, _LONGEST_NAME)


def names_of(names: Sequence[str]) -> list[str]:
    """Return names, each on one line; ids as they usually are take one look at all of them."""
    text = "".join(names)
    usual = text.isascii() and text.isprintable() and " " not in text
    if usual and max(map(len, names), default=0) <= _LONGEST_NAME:
        return list(names)
    return [name_of(name) for name in names]


@attrs.frozen
class Lost:
    """A reason for lost points, and in how many samples it was given."""

    code: str
    subject: str
    samples: int


def lost(index: RowIndex, grader: str, most: int) -> tuple[Lost, ...]:
    """Return the most frequent reasons of a grader, ties by name."""
    counts: Counter[tuple[str, str]] = Counter()
    for (key, code, subject), count in index.reasons.items():
        if key == grader:
            counts[brief(code, _LONGEST_REASON), brief(subject, _LONGEST_REASON)] += count
    found = [Lost(code, subject, count) for (code, subject), count in counts.items()]
    return tuple(sorted(found, key=lambda lost: (-lost.samples, lost.code, lost.subject))[:most])


def all_reasons(grade: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the reasons of a grade and of its items."""
    yield from map(as_map, as_list(grade.get("reasons")))
    for item in as_list(grade.get("items")):
        yield from map(as_map, as_list(as_map(item).get("reasons")))


def index_of(report: Report) -> RowIndex:
    """Return the index of a report; an empty one where no rows were kept."""
    return report.index if report.has_rows else RowIndex()

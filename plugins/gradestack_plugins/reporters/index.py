"""First reading of the rows: one small entry per sample, score distributions, and where points were lost."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from gradestack_plugins.reporters.lenient import as_list, as_map, as_number, as_text
from gradestack_plugins.reporters.protocol import ReportLike, kept_rows
from gradestack_plugins.reporters.text import brief, number

TENTHS = tuple(step / 10 for step in range(11))
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Lower edges of the score bins: five of width 0.2, and exactly 1.0."""

_MOST_REASONS = 2000
_RANK = {"error": 0, "lost": 1, "missing": 2, "skipped": 3, "passed": 4}


@attrs.frozen
class Entry:
    """What every page part knows of a sample."""

    position: int
    """Zero-based row number in results.jsonl."""
    id: str
    run: str
    """"" when the format has no runs."""
    model: str
    verdict: str
    """``passed``, ``lost`` (graded, not passed), ``error`` (sample or grader broken), ``skipped`` or ``missing``."""
    score: float | None
    """Headline score; None unless graded."""

    @property
    def line(self) -> int:
        """One-based line in results.jsonl."""
        return self.position + 1

    @property
    def shown(self) -> str:
        """The score in short, or a sign for the state."""
        if self.score is not None:
            return number(self.score)
        return {"error": "error", "missing": "missing", "skipped": "skipped"}.get(self.verdict, "–")

    @property
    def shade(self) -> str:
        """CSS class of a cell: ``q0`` … ``q10`` by tenths of the score, or the state."""
        return self.verdict if self.score is None else shade(self.score)


def shade(fraction: float) -> str:
    """Return the CSS class of a fraction: ``q0`` below 0.1 … ``q9``, ``q10`` from 1.0 on."""
    return f"q{min(10, max(0, bisect_right(TENTHS, fraction) - 1))}"


def severity(entry: Entry) -> tuple[int, float, int]:
    """Return a sort key that puts failures first: broken, then by lost score, missing, skipped, passed."""
    return (_RANK.get(entry.verdict, 1), entry.score if entry.score is not None else 0.0, entry.position)


def outcome(grade: Mapping[str, Any]) -> str:
    """Return a grade's state; a grade without one is graded when it has a score."""
    state = as_text(grade.get("state"))
    return state or ("graded" if as_number(grade.get("score")) is not None else "skipped")


def score(grade: Mapping[str, Any]) -> float | None:
    """Return the score of a graded grade; the 0.0 that rows carry for other states is no score."""
    return as_number(grade.get("score")) if outcome(grade) == "graded" else None


def entry_of(position: int, row: Mapping[str, Any]) -> Entry:
    """Return the entry of one row."""
    grade = as_map(row.get("grade"))
    state = as_text(row.get("state")) or outcome(grade)
    value = score(grade) if state == "graded" else None
    passed = row.get("passed")
    if state == "graded":
        good = passed if isinstance(passed, bool) else value is not None and value >= 1.0
        verdict = "passed" if good else "lost"
    else:
        verdict = {"failed": "error", "missing": "missing"}.get(state, "skipped")
    return Entry(
        position=position,
        id=name_of(as_map(row.get("sample")).get("id")),
        run=name_of(row.get("run")),
        model=name_of(row.get("model_name")),
        verdict=verdict,
        score=value,
    )


def name_of(value: Any) -> str:
    """Return an identifier as text, "" when there is none."""
    return "" if value is None else brief(value, 200)


@attrs.define
class Distribution:
    """Scores of one grader: counts per bin of :data:`EDGES`, and those outside [0, 1]."""

    bins: list[int] = attrs.field(factory=lambda: [0] * len(EDGES))
    below: int = 0
    above: int = 0
    fractional: int = 0
    """Scores that are neither 0 nor 1."""

    def add(self, value: float) -> None:
        """Count one score."""
        self.fractional += value not in {0.0, 1.0}
        if value < 0:
            self.below += 1
        elif value > 1:
            self.above += 1
        else:
            self.bins[bisect_right(EDGES, value) - 1] += 1


@attrs.frozen
class Lost:
    """A reason for lost points, and in how many samples it was given."""

    grader: str
    code: str
    subject: str
    samples: int


@attrs.define
class Index:
    """Everything the first reading finds."""

    entries: list[Entry] = attrs.field(factory=list)
    distributions: dict[str, Distribution] = attrs.field(factory=dict)
    reasons: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)
    other_reasons: int = 0
    headline: Counter[str] = attrs.field(factory=Counter)
    """How often each grader's grade is the row's headline grade."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in the next row."""
        self.entries.append(entry_of(len(self.entries), row))
        head = row.get("grade")
        for key, raw in as_map(row.get("grades")).items():
            grade = as_map(raw)
            self.headline[key] += raw == head
            value = score(grade)
            if value is not None:
                self.distributions.setdefault(key, Distribution()).add(value)
            for reason in {(key, code, subject) for code, subject in _codes(grade)}:
                if reason in self.reasons or len(self.reasons) < _MOST_REASONS:
                    self.reasons[reason] += 1
                else:
                    self.other_reasons += 1

    def lost(self, grader: str, most: int) -> tuple[Lost, ...]:
        """Return the most frequent reasons of a grader, ties by name."""
        own = [Lost(key, code, subject, count) for (key, code, subject), count in self.reasons.items() if key == grader]
        return tuple(sorted(own, key=lambda lost: (-lost.samples, lost.code, lost.subject))[:most])


def _codes(grade: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for reason in all_reasons(grade):
        code = as_text(reason.get("code"))
        if code:
            yield brief(code, 60), brief(as_text(reason.get("subject")), 60)
    fault = as_map(grade.get("fault"))
    if fault:
        yield brief(as_text(fault.get("code")) or "fault", 60), brief(as_text(fault.get("type")), 60)


def all_reasons(grade: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the reasons of a grade and of its items."""
    yield from map(as_map, as_list(grade.get("reasons")))
    for item in as_list(grade.get("items")):
        yield from map(as_map, as_list(as_map(item).get("reasons")))


def first_reading(report: ReportLike) -> Index:
    """Read all rows of a report once; where none were kept, the header tells which grader is the headline."""
    index = read(report.rows())
    if not kept_rows(report):
        components = map(as_map, as_list(report.header.get("components")))
        index.headline.update([as_text(each.get("key")) for each in components if each.get("kind") == "grader"][:1])
    return index


def read(rows: Iterable[Mapping[str, Any]]) -> Index:
    """Read all rows once."""
    index = Index()
    for row in rows:
        index.add(as_map(row))
    return index

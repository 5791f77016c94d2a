"""The index of a run's rows.

What pages show of all samples, from one pass that decodes a few keys of each row.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from hashlib import blake2b
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
from msgspec import Raw, Struct

from gradestack import CauseKind, DataError, Report, cause_kinds, declared_presets
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text, check_utf8, dumps
from gradestack_plugins.pages.bins import label_bins
from gradestack_plugins.pages.tallies import (
    GRADED,
    CallTally,
    FacetTally,
    Grade,
    IndexedRow,
    Numbers,
    Reason,
    ReasonTally,
    SearchTally,
    Usage,
    Verdicts,
    compared,
)
from gradestack_plugins.pages.text import brief, number

_BLOCK = 1 << 16
"""Bytes of rows taken up at once."""
_HELD = 1 << 14
"""Rows after which scores held back are counted."""
_LONGEST_NAME = 800
"""Characters kept of names at most."""


class RowEntry(Struct, frozen=True, gc=False):
    """One sample in the index of a run."""

    position: int
    id: str
    model: str
    run: str
    state: str
    passed: bool | None
    score: float | None


class ScoreBins(Struct):
    """Scores of one grader: counts per bin of ``edges``, and of those outside [0, 1].

    How many, and their sum.
    """

    edges: ClassVar[tuple[float, ...]] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """Lower edges: five bins of width 0.2, and exactly 1."""
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * len(ScoreBins.edges))
    below: int = 0
    above: int = 0
    fractional: int = 0
    count: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float | None:
        """Their mean; None over nothing."""
        return self.total / self.count if self.count else None

    def labelled(self) -> dict[str, int]:
        """Return the number of scores in each bin, by the bin's label."""
        groups = [(self.below, *self.counts, self.above)]
        bins = label_bins(self.edges, groups)
        return {label: counts[0] for label, _, counts in bins}

    def add(self, scores: Sequence[float]) -> None:
        """Count scores: many at a time, which takes a fraction of the time."""
        self.count += len(scores)
        self.total = reduce(float.__add__, scores, self.total)
        for score, times in Counter(scores).items():
            self.fractional += times if score not in {0, 1} else 0
            if score < 0:
                self.below += times
            elif score > 1:
                self.above += times
            else:
                self.counts[bisect_right(self.edges, score) - 1] += times


_decode = msgspec.json.Decoder(IndexedRow).decode


def _cut(name: str) -> str:
    """Shorten a long name.

    Its beginning, and a digest that tells it from others that begin so.
    """
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"{name[: _LONGEST_NAME - 17]}…{digest}"


class Names(dict[str | int | None, str]):
    """Names as texts, which samples of one name share; of a long one what ``_cut`` keeps."""

    def __missing__(self, name: str | int | None) -> str:
        text = "" if name is None else str(name)
        if len(text) > _LONGEST_NAME:
            return self[_cut(text)]
        self[name] = text = self.setdefault(text, text)
        return text


class RowIndex:
    """Facts about all runs of an evaluation, as pages show them."""

    def __init__(
        self, outcome: str | None = None, verdicts: Verdicts | None = None, count: int = 0
    ) -> None:
        self._outcome = outcome
        self.entries: list[RowEntry] = []
        self.tasks = array("q")
        self.scores: defaultdict[str, ScoreBins] = defaultdict(ScoreBins)
        self.by_outcome: defaultdict[tuple[str, bool], ScoreBins] = defaultdict(ScoreBins)
        self.calls = CallTally()
        self.without_calls = array("q")
        self.files: set[str | None] = set()
        self.reasons = ReasonTally()
        self.facets = FacetTally()
        self.usage: list[Usage | None] = []
        self.searched = SearchTally(count)
        self.verdicts = verdicts or Verdicts((), outcome)
        self.has_only_rows, self.short = True, False
        self._uncounted: defaultdict[str, tuple[list[float], ...]] = defaultdict(
            lambda: ([], [], [])
        )
        """Scores not counted yet: of samples that are no success, are one, and of others."""
        self._places = array("q")
        self._names, self._numbers = Names(), Numbers()
        self.names: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        lines: Iterable[tuple[int, int, bytes]],
        loads: Callable[[int, bytes], Any],
        outcome: str | None = None,
        compared: Collection[str] = (),
        where: str = "a row",
        count: int = 0,
        *,
        ordered: bool = False,
        short: bool = False,
    ) -> RowIndex:
        """Return the index of rows, ``ordered`` with those that have another order, ``short`` with
        entries alone.
        """
        verdicts = Verdicts(compared, outcome, ordered=ordered)
        index = cls(outcome, verdicts, count)
        index.short = short
        add = index._enter if short else index._add
        number = size = 0
        rows: list[IndexedRow] = []
        for number, first_byte, line in lines:
            try:
                check_utf8(line)  # what is left out below is not looked at
                row = _decode(line)
            except (ValueError, RecursionError):  # NaN, and numbers that msgspec does not know
                try:
                    row = _converted(loads(number, line))
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{where}:{number}: {error}") from error
            index._places.append(first_byte)
            rows.append(row)
            size += len(line)
            if size >= _BLOCK:
                add(rows)
                rows, size = [], 0
        add(rows)
        index._fold()
        index.searched.end()
        index.names = list(index._numbers)
        index._names, index._numbers = (
            Names(),
            Numbers(),
        )  # of very many tasks they take as much as the rest
        entry_count = len(index.entries)
        index.has_only_rows = number == entry_count
        return index

    def first_byte(self, position: int) -> int:
        """Return where the row of a position begins, in bytes."""
        return self._places[position]

    def _add(self, rows: Sequence[IndexedRow]) -> None:
        """Take up rows, part by part."""
        first = len(self.entries)
        passes = self._enter(rows)
        entries = self.entries[first:]
        grades = [row.grades for row in rows]
        facets = [bytes(row.facets) for row in rows]
        for position, (row, entry) in enumerate(zip(rows, entries, strict=True), first):
            if row.source is not None and entry.state == "graded":
                self.files.add(row.source.file)
            if row.expected is not None and row.expected.calls == []:
                self.without_calls.append(position)
            self.usage.append(row.usage)
        self.calls.add(grades)
        self.searched.add(rows, facets)
        self._lose(grades, passes)
        self.verdicts.add(first, grades)
        self.facets.add(facets, passes, map(attrgetter("model"), entries))
        if first // _HELD < len(self.entries) // _HELD:
            self._fold()

    def _enter(self, rows: Sequence[IndexedRow]) -> list[bool | None]:
        """Enter rows under their names, and return which are a success."""
        names = self._names
        numbers = self._numbers
        outcome = self._outcome
        clusters = self.verdicts.tasks if self.verdicts.by_grader else None
        passes = []
        for position, row in enumerate(rows, len(self.entries)):
            own_grade = row.grade
            if outcome is None:
                judged = None
            else:
                judged = row.grades.get(outcome)
            own_state = own_grade.state or own_grade.outcome()
            state = row.state or own_state
            score = None
            if state == own_state == "graded":
                score = own_grade.score
            if judged is not None:
                state = judged.state or judged.outcome()
            passed = row.passed if state == "graded" else None
            name = names[row.sample.id]
            task = numbers[name]
            model = names[row.model_name]
            run = names[row.run]
            row_entry = RowEntry(position, name, model, run, names[state], passed, score)
            self.entries.append(row_entry)
            self.tasks.append(task)
            if clusters is not None:
                clusters.append(task if row.cluster is None else numbers[names[row.cluster]])
            passes.append(passed)
        return passes

    def _lose(self, rows: Iterable[Mapping[str, Grade]], passes: Iterable[bool | None]) -> None:
        """Take up scores, and why points were lost."""
        scores, blamed = self._uncounted, self.reasons.blamed
        kinds_of_rows: list[tuple[CauseKind, ...]] = []
        for grades, passed in zip(rows, passes, strict=True):
            slot = 2 if passed is None else int(passed)
            kinds: list[CauseKind] = []
            for key, grade in grades.items():
                score = grade.score
                if score is not None and grade.state in GRADED:
                    scores[key][slot].append(score)
                reasons = grade.reasons
                of_items: tuple[Reason, ...] = ()
                for item in grade.items:
                    if item.reasons:
                        of_items += item.reasons
                if of_items != reasons:  # else it says the same as its items
                    reasons += of_items
                if reasons or grade.fault or grade.state == "missing":
                    swapped = grade.swapped()
                    more = cause_kinds(key, reasons, grade.fault, swapped, grade.state)
                    if grade.outcome() != "skipped":
                        blamed.update(more)
                    kinds += more
            kinds_of_rows.append(tuple(kinds))
        self.reasons.add(kinds_of_rows)

    def _fold(self) -> None:
        """Count the scores held back."""
        for key, sides in self._uncounted.items():
            for scores, success in zip(sides, (False, True, None), strict=True):
                if scores:
                    self.scores[key].add(scores)
                    if success is not None:
                        self.by_outcome[key, success].add(scores)
                    del scores[:]


def _converted(row: dict[str, Any]) -> IndexedRow:
    """Pick the fields of the index from a row that was decoded whole."""
    fields = {key: _readable(row[key]) for key in IndexedRow.__struct_fields__ if key in row}
    fields |= {
        key: Raw(dumps(row.get(key)).encode(errors="surrogatepass"))
        for key in ("facets", "submission")
    }
    if isinstance(sample := fields.get("sample"), dict):
        sample.pop("input", None)
    fields.pop("predicted", None)
    if isinstance(expected := row.get("expected"), dict):
        calls = expected.get("calls")
        names = [{"name": as_map(value).get("name")} for value in as_list(calls)]
        fields["expected"] = {"calls": None if calls is None else names}
    indexed = msgspec.convert(fields, IndexedRow)
    grades = indexed.grades.values()
    indexed.grades = dict(
        zip(row.get("grades", ()), grades, strict=False)
    )  # graders are found by name
    return indexed


def _readable(value: Any) -> Any:
    """Return a value with keys of valid Unicode, without which msgspec reads no object."""
    if isinstance(value, dict):
        return {
            key.encode(errors="replace").decode(): _readable(part) for key, part in value.items()
        }
    if isinstance(value, list):
        return list(map(_readable, value))
    return value


def outcome_of(report: Report) -> str | None:
    """Return the key of a run's outcome grader, None without one."""
    grader = as_text(as_map(report.summary.get("outcome")).get("grader"))
    return grader or None


def index_of(report: Report, *, short: bool = False) -> RowIndex:
    """Return the index of a run's rows, made when first asked for.

    An empty one of no rows, maybe a ``short`` one.
    """
    if not report.has_rows:
        return RowIndex()
    grader = outcome_of(report)
    cached = report.shared.get("index", (None, None, None, None))
    index: RowIndex | None = (
        cached[3]
        if cached[0] is report.row_buffer and cached[1:3] == (report.path, grader)
        else None
    )
    if index is None or (index.short and not short):
        metrics = as_map(report.summary.get("metrics"))
        many = as_count(metrics.get("total"))
        keys = compared(report.header)
        declared_preset_count = len(declared_presets(report.header))
        ordered = declared_preset_count > 1
        lines = report.lines()
        arguments = (
            lines,
            report.row,
            grader,
            () if short else keys,
            report.rows_name,
            many,
        )
        index = RowIndex.of(*arguments, ordered=ordered, short=short)
        report.shared["index"] = (report.row_buffer, report.path, grader, index)
    return index


_TENTHS = tuple(step / 10 for step in range(1, 11))

_RANK = {"error": 0, "lost": 1, "graded": 2, "missing": 3, "skipped": 4, "passed": 5}
_VERDICTS = {"failed": "error", "missing": "missing"}
_LONGEST_SHOWN = 200


def shown_entry(entry: RowEntry) -> SimpleNamespace:
    """Return the names and the outcome of a run for a list of runs, each as one line.

    ``shown`` is its score in short, or a sign for its state; ``line`` is that of results.jsonl,
    from 1.
    """
    id_, run, model = map(name_of, (entry.id, entry.run, entry.model))
    outcome_name = verdict(entry)
    if entry.score is not None:
        shown = number(entry.score)
    else:
        shown = "–" if entry.state == "graded" else outcome_name
    return SimpleNamespace(
        id=id_,
        run=run,
        model=model,
        verdict=outcome_name,
        score=entry.score,
        shown=shown,
        line=entry.position + 1,
    )


def shade(fraction: float) -> str:
    """Return the CSS class of a fraction: ``q0`` below 0.1 … ``q9``, ``q10`` from 1.0 on."""
    return f"q{bisect_right(_TENTHS, fraction)}"


def verdict(entry: RowEntry) -> str:
    """Return the state of a run, by the evaluation's outcome.

    ``passed``, ``lost`` (graded, no success), ``graded`` (in a run without an outcome), ``error``
    (something broke), ``skipped`` or ``missing``.
    """
    if entry.state == "graded":
        if entry.passed is None:
            return "graded"
        return "passed" if entry.passed else "lost"
    return _VERDICTS.get(entry.state, "skipped")


def severity(entry: RowEntry) -> tuple[int, float, int]:
    """Return a sort key that puts failures first.

    Broken, then by lost score, missing, skipped, success.
    """
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
    if outcome(grade) == "graded":
        return as_number(grade.get("score"))
    return None


def name_of(name: str) -> str:
    """Return the name of a sample, run or model on one line."""
    return brief(name, _LONGEST_SHOWN)


def names_of(names: Sequence[str]) -> list[str]:
    """Return names, each on one line; ids as they usually are take one look at all of them."""
    text = "".join(names)
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if is_plain and max(map(len, names), default=0) <= _LONGEST_SHOWN:
        return list(names)
    return [name_of(name) for name in names]


def all_reasons(grade: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the reasons of a grade and of its items."""
    reasons = grade.get("reasons")
    yield from map(as_map, as_list(reasons))
    for item in as_list(grade.get("items")):
        yield from map(as_map, as_list(as_map(item).get("reasons")))

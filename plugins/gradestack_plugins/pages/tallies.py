"""Counts over all rows that pages show, and what several graders say of the same samples."""

from __future__ import annotations

import math
import zlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress, count
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct

from gradestack import CauseKind, declared_presets, swapped_labels
from gradestack.jsonio import as_list, as_map, as_text, compact, loads

GRADED = ("graded", "", None)
"""States in which a score is one."""
NULL = Raw(b"null")


class Reason(Struct, frozen=True, gc=False):
    """The fields of a reason that the index reads."""

    code: str | None = None
    subject: str | None = None
    pointer: str | None = None
    error: str | None = None


class Answer(Struct, frozen=True, gc=False):
    """The fields of an item's metadata that the index reads.

    The call that answers an expected one, UNSET where it names none.
    """

    call: Any = msgspec.UNSET


class Item(Struct, frozen=True, gc=False):
    """The fields of an item that the index reads."""

    reasons: tuple[Reason, ...] = ()
    score: float | None = None
    label: str | None = None
    gold: str | None = None
    outcome: str | None = None
    metadata: Answer = Answer()


class Own(Struct, frozen=True, gc=False):
    """The fields that the index reads of a row's own grade, which its grades repeat."""

    score: float | None = None
    state: str | None = None
    label: Any = None
    gold: Any = None

    def outcome(self) -> str:
        """Return its state; a grade without one is graded when it has a score."""
        return self.state or ("skipped" if self.score is None else "graded")


class Grade(Own, frozen=True, gc=False):
    """The fields of a grade that the index reads."""

    fault: dict[str, Any] | None = None
    reasons: tuple[Reason, ...] = ()
    items: tuple[Item, ...] = ()
    passed: bool | None = None

    def swapped(self) -> str:
        """Return the expected and the given label; "" unless they differ."""
        return swapped_labels(self.gold, self.label)


_LONGEST_NAME = 240
MOST_VALUES, _MOST_FACETS, _MOST_HELD = 20, 100, 4096
"""Values of a facet by which samples are grouped; facets; different facets of samples held back."""


class CallCounts(Struct):
    """Counts of the calls of one tool."""

    expected: int = 0
    called: int = 0
    right: int = 0
    extra: int = 0
    """Calls made that none was expected for."""


class CallTally:
    """Counts of expected and made calls over all runs, by tool."""

    def __init__(self) -> None:
        self.grader = ""
        self.tools: dict[str, CallCounts] = {}

    def add(self, rows: Iterable[Mapping[str, Grade]]) -> None:
        """Count the items of some rows' grades."""
        for grades in rows:
            for key in (self.grader,) if self.grader else grades:
                grade = grades.get(key)
                if grade is not None and grade.items and self._count(grade.items):
                    self.grader = key
                    break

    def _count(self, items: Iterable[Item]) -> bool:
        """Count the items of one grade; False where they are not about expected calls."""
        known = False
        for item in items:
            call = item.metadata.call
            score = item.score
            if score is None or (call is not None and type(call) is not int):
                continue
            known = True
            if item.outcome is not None and item.outcome != "graded":
                continue
            tool = (item.gold or item.label or "")[:_LONGEST_NAME]
            counts = self.tools.get(tool)
            if counts is None:
                if not tool:
                    continue
                counts = self.tools[tool] = CallCounts()
            if item.gold is None:
                counts.extra += 1
                continue
            counts.expected += 1
            counts.right += score >= 1
            if call is not None:
                counts.called += 1
        return known


SEPARATOR = "›"
"""Between code, tool and argument of a reason, in addresses and in the search."""


class ReasonTally:
    """The reasons of each run."""

    def __init__(self) -> None:
        self.kinds: dict[CauseKind, int] = {}
        self.by_run: list[tuple[int, ...]] = []
        self.blamed: set[CauseKind] = set()
        self._known: dict[tuple[CauseKind, ...], tuple[int, ...]] = {}

    def add(self, kinds_of_rows: Iterable[tuple[CauseKind, ...]]) -> None:
        """Add the reasons of samples.

        Many samples have the same: looked up once.
        """
        numbers_of = self.kinds
        for kinds in kinds_of_rows:
            numbers = self._known.get(kinds)
            if numbers is None:
                if len(self._known) >= _MOST_HELD:
                    self._known.clear()
                places = [numbers_of.setdefault(kind, len(numbers_of)) for kind in kinds]
                numbers = self._known[kinds] = tuple(dict.fromkeys(places))
            self.by_run.append(numbers)

    @property
    def skipped(self) -> set[CauseKind]:
        """Kinds that only skipped grades have."""
        return self.kinds.keys() - self.blamed

    @property
    def samples(self) -> list[int]:
        """The number of runs of each kind of reason."""
        counts = [0] * len(self.kinds)
        for numbers, times in Counter(self.by_run).items():
            for number in numbers:
                counts[number] += times
        return counts


class Usage(Struct, frozen=True, gc=False):
    """The fields of a run's usage that the index reads; None is "not recorded"."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens in and out, where both are known."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


def sum_over(values: Sequence[float], divisor: float) -> float:
    """Return the sum of numbers divided by another, also where the sum is beyond any float."""
    try:
        return math.fsum(values) / divisor
    except OverflowError:
        return math.fsum(value / divisor for value in values)


LEVEL, RAW = 2, -zlib.MAX_WBITS
"""How pages pack data: a level that for rows, whose lines are alike, is faster than 1 and smaller.

No sum over all.
"""
_LINES = 1000
_NAME, _ARGUMENTS = attrgetter("name"), attrgetter("arguments")
_SHORTEST, _SEARCHED, _MOST_SEARCHED, _LONGEST_FACETS = 20, 200, 2_500_000, 1000
"""Characters of an input, an answer and arguments that are searched.

Most of one, and of all of a run; of facets.
"""


class Call(Struct, frozen=True, gc=False):
    """The fields of a call that the index reads."""

    name: str | None = None
    arguments: Raw = NULL


class Calls(Struct, frozen=True, gc=False):
    """The calls of a row that the index reads."""

    calls: list[Call] | None = None


class Task(Struct, frozen=True, gc=False):
    """The fields of a sample that the index reads."""

    id: str | int | None = None
    input: Raw = NULL


class Named(Struct, frozen=True, gc=False):
    """The name of an expected call."""

    name: str | None = None


class Expected(Struct, gc=False):
    """The expected calls of a row."""

    calls: list[Named] | None = None


class Source(Struct, frozen=True, gc=False):
    """The file that a run was read from."""

    file: str | None = None


class IndexedRow(Struct, gc=False):
    """The fields of a row that the index reads."""

    sample: Task = Task()
    run: str | int | None = None
    model_name: str | None = None
    cluster: str | None = None
    state: str | None = None
    passed: bool | None = None
    expected: Expected | None = None
    grade: Own = Own()
    grades: dict[str, Grade] = {}
    facets: Raw = Raw(b"{}")
    usage: Usage | None = None
    submission: Raw = NULL
    predicted: Calls | None = None
    source: Source | None = None


class Numbers(dict[str, int]):
    """Names and their numbers, in the order they are first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


class ToolSets(dict[tuple[str | None, ...], int]):
    """Names of calls as they were made -> the number of the set of their tools."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = Numbers()
        self.sets: dict[tuple[int, ...], int] = {}

    def __missing__(self, names: tuple[str | None, ...]) -> int:
        tools = dict.fromkeys([name or "" for name in names])
        numbers = tuple([self.tools[name] for name in tools])
        self[names] = number = self.sets.setdefault(numbers, len(self.sets))
        return number


class SearchTally:
    """The texts that the search reads beside names and reasons, a line a row, packed.

    And which tools each row called.
    """

    def __init__(self, count: int) -> None:
        self._longest = 1 + max(
            _SHORTEST, min(_SEARCHED, _MOST_SEARCHED // max(1, count))
        )  # with its quotation mark
        self._packer = zlib.compressobj(LEVEL, wbits=RAW)
        self.packed: list[bytes] = []
        self._lines: list[bytes] = []
        self.rows: list[int] = []
        """Number of the tools each row called, among the sets of them."""
        self.expected: list[int] = []
        """The same of the tools each row was expected to call; -1 where none are known."""
        self._numbers = ToolSets()
        self.tools, self.sets = self._numbers.tools, self._numbers.sets

    def add(self, rows: Sequence[IndexedRow], facets: Sequence[bytes]) -> None:
        """Add rows: calls and what else is searched, with their facets as they are written.

        Control characters tell labels and facets from other text.
        """
        end = self._longest
        numbers = self._numbers
        for row, row_facets in zip(rows, facets, strict=True):
            calls = () if row.predicted is None else row.predicted.calls or ()
            self.rows.append(numbers[tuple(map(_NAME, calls))])
            wanted = None if row.expected is None else row.expected.calls
            self.expected.append(-1 if wanted is None else numbers[tuple(map(_NAME, wanted))])
            values = [row.sample.input, row.submission, *map(_ARGUMENTS, calls)]
            parts = [bytes(value)[:end] for value in values]
            parts.append(row_facets[:_LONGEST_FACETS].replace(b'":', b'"\3'))
            text = b" ".join(parts)
            if not text.isascii():
                long_parts = [bytes(value)[: 4 * end] for value in values]
                texts = [part.decode(errors="ignore")[:end] for part in long_parts]
                text = b"%b %b" % (" ".join(texts).encode(), parts[-1])
            own_grade = row.grade
            if own_grade.gold and own_grade.label:
                label = f"\1{own_grade.gold}\2{own_grade.label}\1"
                text = label.replace("\n", " ").encode(errors="replace") + text
            self._lines.append(text)
        if len(self._lines) >= _LINES:  # one by one they take as long again
            self._lines.append(b"")
            self._pack()

    def end(self) -> None:
        """Pack the last lines, and let go of what only adding needs."""
        self._pack()
        self.packed.append(self._packer.flush())
        del self._packer, self._numbers

    def _pack(self) -> None:
        """Pack lines in lower case, without the signs of JSON that a reader does not see."""
        text = b"\n".join(self._lines).replace(b"\\n", b" ").replace(b'\\"', b'"')
        lines = text.split(b"\n")
        lowered = [line.lower() if line.isascii() else _lower(line) for line in lines]
        compressed = self._packer.compress(b"\n".join(lowered))
        self.packed.append(compressed)
        self._lines.clear()


def _lower(line: bytes) -> bytes:
    """Return UTF-8 in lower case, without what is none: a long text may end within a letter."""
    return line.decode(errors="ignore").lower().encode()


class FacetTally:
    """Samples by the values of their facets.

    A facet of many values, such as an id, groups nothing and is left out.
    """

    def __init__(self) -> None:
        self._uncounted: Counter[tuple[bytes, bool | None, str]] = Counter()
        """Facets as they are written, success and model -> runs not counted yet."""
        self._values: dict[str, dict[str, dict[str, Counter[bool | None]]]] = {}
        self._many: set[str] = set()

    def add(
        self, facets: Iterable[bytes], passes: Iterable[bool | None], models: Iterable[str]
    ) -> None:
        """Count runs."""
        self._uncounted.update(zip(facets, passes, models, strict=True))
        if len(self._uncounted) > _MOST_HELD:
            self._fold()

    def counts(self) -> dict[str, dict[str, Counter[bool | None]]]:
        """Return facet -> value -> samples by success, None where it is not known.

        Facets of two values at least.
        """
        sums: dict[str, dict[str, Counter[bool | None]]] = {}
        for name, values in self.by_model().items():
            sums[name] = {
                value: sum(models.values(), Counter()) for value, models in values.items()
            }
        return sums

    def by_model(self) -> dict[str, dict[str, dict[str, Counter[bool | None]]]]:
        """Return facet -> value -> model -> runs by success, as ``counts`` has them."""
        self._fold()
        return {name: values for name, values in self._values.items() if len(values) > 1}

    def _fold(self) -> None:
        for (facets, passed, model), times in self._uncounted.items():
            for name, value in as_map(loads(facets)).items():
                short = name[:_LONGEST_NAME]
                if short in self._many or (
                    short not in self._values
                    and len(self._values) + len(self._many) >= _MOST_FACETS
                ):
                    continue
                values = self._values.setdefault(short, {})
                words = isinstance(value, list) and all(isinstance(part, str) for part in value)
                if isinstance(value, str):
                    text = value
                else:
                    text = ", ".join(value) if words else compact(value)
                by_model = values.setdefault(text[:_LONGEST_NAME], {})
                by_model.setdefault(model, Counter())[passed] += times
                if len(values) > MOST_VALUES:
                    self._many.add(short)
                    del self._values[short]
        self._uncounted.clear()


Mark = tuple[str, str]
"""State and, of a failed or skipped grade, its code.

``passed``, ``part`` (passed with a score below 1) and ``lost`` stand for ``graded``.
"""
NONE: Mark = ("missing", "")
_PASSED, _PART, _LOST = ("passed", ""), ("part", ""), ("lost", "")
_MOST_GRADERS = 8
_MOST_MARKS, _LONGEST_CODE = 255, 60


def compared(header: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of the graders whose verdicts are kept side by side.

    Those that declare a preset, where there are several; else all whose scores are shares, where
    these are two to eight.
    """
    if len(presets := declared_presets(header)) > 1:
        return tuple(presets)
    components = header.get("components")
    graders = []
    for component in as_list(components):
        if as_map(component).get("kind") == "grader":
            graders.append(as_map(component))
    keys = [as_text(component.get("key")) for component in graders if "bounds" not in component]
    if 1 < len(keys) <= _MOST_GRADERS:
        return tuple(keys)
    return ()


class Verdicts:
    """Marks of the same samples by several graders, and those in which the outcome grader found
    another order.
    """

    def __init__(
        self, keys: Collection[str], outcome: str | None, *, ordered: bool = False
    ) -> None:
        self._outcome = outcome if ordered else None
        self.marks: list[Mark] = [NONE]
        self._places: dict[Mark, int] = {NONE: 0}
        keys = dict.fromkeys((*keys, outcome) if outcome and keys else keys)
        self.by_grader: dict[str, bytearray] = {key: bytearray() for key in keys}
        self.reordered = array("q")
        self.tasks = array("q")

    def add(self, first: int, rows: Sequence[Mapping[str, Grade]]) -> None:
        """Add samples, whose tasks are known."""
        columns = list(self.by_grader.items())
        places = self._places
        for grades in rows if columns else ():
            for key, marks in columns:
                grade = grades.get(key)
                mark = NONE if grade is None else mark_of(grade)
                number = places.get(mark)
                marks.append(self._number_of_mark(mark) if number is None else number)
        if self._outcome is not None:
            judged = [grades.get(self._outcome) for grades in rows]
            reordered = [
                grade is not None and len(grade.items) > 1 and _is_reordered(grade.items)
                for grade in judged
            ]
            compressed = compress(count(first), reordered)
            self.reordered.extend(compressed)

    def _number_of_mark(self, mark: Mark) -> int:
        number = self._places.get(mark)
        if number is None:
            mark_count = len(self.marks)
            if mark_count >= _MOST_MARKS and mark[1]:
                return self._number_of_mark((mark[0], ""))
            number = self._places[mark] = len(self.marks)
            self.marks.append(mark)
        return number


def mark_of(grade: Grade) -> Mark:
    """Return the mark of a grade.

    Its verdict is its own where it has one, else whether the score is 1.
    """
    score = grade.score
    if score is not None and grade.state in GRADED:
        if grade.passed if grade.passed is not None else score >= 1:
            return _PASSED if score >= 1 else _PART
        return _LOST
    fault = as_text(as_map(grade.fault).get("code"))
    code = fault or next((reason.code for reason in grade.reasons if reason.code), "")
    return (grade.outcome()[:_LONGEST_CODE], code[:_LONGEST_CODE])


def _is_reordered(items: Sequence[Item]) -> bool:
    """Return whether the calls that answer expected ones were made in another order
    than expected.
    """
    made = []
    for item in items:
        if item.gold is not None and type(item.metadata.call) is int:
            made.append(item.metadata.call)
    return made != sorted(made)

"""What is said of one sample: which calls answer the expected ones, and why its grades are what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text, compact
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.index import all_reasons, outcome, score
from gradestack_plugins.pages.jsonview import alike, same
from gradestack_plugins.pages.tallies import argument
from gradestack_plugins.pages.text import brief, number

_MOST_ARGUMENTS, _MOST_REASONS = 60, 100

Object = Mapping[str, Any]


def call_name(name: Any) -> str:
    """Return a tool name as shown."""
    return brief(name, 120) if name not in (None, "") else "(no name)"


class Argument(NamedTuple):
    """One argument of a pair of calls."""

    name: str
    status: str
    """``same``, ``differs``, ``missing`` (expected, not given) or ``extra`` (given, not expected)."""
    expected: Any = None
    actual: Any = None


class Pair(msgspec.Struct, frozen=True):
    """An expected call, the call that answers it best, and what a grader says of them."""

    expected: Object
    actual: Object | None
    number: int
    """Of the actual call, from 1, in the order calls were made."""
    item: Object

    @property
    def name(self) -> str:
        """Name of the expected call."""
        return call_name(self.expected.get("name"))

    @property
    def score(self) -> float | None:
        """The grader's score; None when it gave none."""
        return as_number(self.item.get("score")) if self.item.get("outcome", "graded") == "graded" else None

    @property
    def status(self) -> str:
        """``matched``, ``differs`` or ``absent``."""
        if self.actual is None:
            return "absent"
        if self.score is not None:
            return "matched" if self.score >= 1 else "differs"
        named = self.expected.get("name") == self.actual.get("name") and _given(self.actual) is not None
        return "matched" if named and all(each.status == "same" for each in self.arguments) else "differs"

    @property
    def arguments(self) -> list[Argument]:
        """The arguments side by side. Where a grader has spoken, those differ that it took points for, and no other."""
        wanted, given = as_map(self.expected.get("arguments")), _given(self.actual) or {}
        blamed = None if self.score is None else {argument(as_text(each.get("pointer"))) for each in self._reasons}

        def status(name: str) -> str:
            if name not in given:
                return "missing"
            right = alike(wanted[name], given[name]) if blamed is None else name not in blamed
            return "same" if right else "differs"

        found = [Argument(name, status(name), wanted[name], given.get(name)) for name in list(wanted)[:_MOST_ARGUMENTS]]
        extra = [name for name in given if name not in wanted][:_MOST_ARGUMENTS]
        return [*found, *(Argument(name, "extra", None, given[name]) for name in extra)]

    @property
    def reasons(self) -> list[str]:
        """What the grader says of it."""
        kept = [each for each in self._reasons if self.actual is not None or each.get("message")]
        return [reason_text(each, name=False) for each in kept]

    @property
    def _reasons(self) -> list[Object]:
        return list(map(as_map, as_list(self.item.get("reasons"))))


def _given(call: Object | None) -> Object | None:
    held = None if call is None else call.get("arguments")
    return held if isinstance(held, Mapping) else None


class Calls(msgspec.Struct, frozen=True):
    """All calls of a sample."""

    pairs: list[Pair]
    others: list[tuple[int, Object]]
    """Those that answer no expected one, with their numbers."""
    by_grader: bool
    """Whether a grader said which call answers which; otherwise calls are paired by name and arguments."""


def calls_of(row: Object) -> Calls:
    """Return the calls of a row, expected ones with those that answer them.

    A grader whose items name the call that answers each expected one (``metadata.call``) decides the pairs. Without
    one, each expected call takes the equal unused call, else the first unused one of its name; if then one expected and
    one actual call are left, they are a pair.
    """
    expected, actual = (
        list(map(as_map, as_list(as_map(row.get(side)).get("calls")))) for side in ("expected", "predicted")
    )
    items = _items(row, len(expected))
    answers = [_answer(item, len(actual)) for item in items] if items else _paired(expected, actual)
    pairs = [
        Pair(call, None if at is None else actual[at], 0 if at is None else at + 1, items[place] if items else {})
        for place, (call, at) in enumerate(zip(expected, answers, strict=True))
    ]
    return Calls(pairs, [(at + 1, call) for at, call in enumerate(actual) if at not in set(answers)], bool(items))


def _items(row: Object, count: int) -> Sequence[Object]:
    """Return the items, one per expected call, of the first grader that says which call answers which."""
    grades = as_map(row.get("grades"))
    for grade in (as_map(row.get("grade")), *(as_map(grades[key]) for key in sorted(grades))):
        items = [as_map(item) for item in as_list(grade.get("items"))]
        if count and len(items) == count and all("call" in as_map(item.get("metadata")) for item in items):
            return items
    return ()


def _answer(item: Object, count: int) -> int | None:
    at = as_map(item.get("metadata")).get("call")
    return at if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < count else None


def _paired(expected: Sequence[Object], actual: Sequence[Object]) -> list[int | None]:
    free, answers = list(range(len(actual))), [None] * len(expected)  # type: list[int], list[int | None]
    for exact in (True, False):
        for place, call in enumerate(expected):
            alike = (at for at in free if _alike(call, actual[at], exact=exact))
            if answers[place] is None and (found := next(alike, None)) is not None:
                answers[place] = found
                free.remove(found)
    if answers.count(None) == len(free) == 1:
        answers[answers.index(None)] = free[0]  # one call instead of another: most likely the wrong tool
    return answers


def _alike(expected: Object, actual: Object, *, exact: bool) -> bool:
    named = expected.get("name") == actual.get("name")
    return named and (not exact or same(expected.get("arguments"), actual.get("arguments")))


def went(call: Object) -> str:
    """Return how a call went, as far as that is recorded: who made it, what came of it and how long it took."""
    status, took = as_text(call.get("status")).replace("_", " "), as_number(call.get("seconds"))
    error = ": ".join(brief(text, 300) for key in ("error_type", "error") if (text := as_text(call.get(key))))
    state = "failed" if status in ("", "ok", "error") else brief(status, 20)
    parts = (
        f"by {brief(author, 60)}" if (author := as_text(call.get("author"))) else "",
        f"on {brief(server, 60)}" if (server := as_text(call.get("server"))) else "",
        f"{state}: {error}" if error else "" if status == "ok" else brief(status, 20),
        f"{number(took)} s" if took is not None else "",
    )
    return ", ".join(filter(None, parts))


def reason_text(reason: Object, *, name: bool = True, known: str = "") -> str:
    """Return a reason on one line: its code, place, the two values and its message."""
    subject = as_text(reason.get("subject")) if name else ""
    where = f"{subject} {as_text(reason.get('pointer'))}".strip()
    head = " ".join(part for part in (as_text(reason.get("code")), brief(where, 120)) if part)
    named = (("expected", "expected"), ("got", "actual"))
    values = [f"{word} {brief(compact(reason[key]), 100)}" for word, key in named if key in reason]
    text = f"{head}: {', '.join(values)}" if values and head else head or ", ".join(values)
    message = brief(as_text(reason.get("message")), 240)
    if message and text and message != brief(known, 240):
        return f"{text} – {message}"
    return text or message


def source_text(source: Object) -> str:
    """Return where a sample was read."""
    line = source.get("line")
    place = f"line {line}" if isinstance(line, int) else f"record {as_count(source.get('ordinal')) + 1}"
    return f"{brief(as_text(source.get('file')), 200)}, {place}" if source else ""


def fault_text(fault: Object) -> str:
    """Return a fault on one line: category, code, type and message."""
    kind = as_text(fault.get("type"))
    head = " ".join(brief(part, 80) for part in (as_text(fault.get("category")), as_text(fault.get("code"))) if part)
    text = f"{head} ({brief(kind, 80)})" if kind else head
    message = brief(as_text(fault.get("message")), 600)
    return f"{text}: {message}" if message and text else message or text or (brief(dict(fault), 300) if fault else "")


def gist(row: Object) -> str:
    """Return why the main grade is what it is: its fault, first reason, labels or rationale, else another's."""
    grade, grades = as_map(row.get("grade")), as_map(row.get("grades"))
    text = fault_text(as_map(grade.get("fault"))) or fault_text(as_map(row.get("error"))) or _why(grade)
    text = text or as_text(grade.get("rationale"))
    others = (f"{key}: {why}" for key in sorted(grades) if (why := _why(as_map(grades[key]))))
    return brief(text or next(others, ""), 180)


def _why(grade: Object) -> str:
    """Return the first reason of a grade and how many more there are; without one, its two labels if they differ."""
    reasons = list(dict.fromkeys(text for reason in all_reasons(grade) if (text := reason_text(reason))))
    if reasons:
        return reasons[0] if len(reasons) == 1 else f"{brief(reasons[0], 130)} (+{len(reasons) - 1})"
    label, gold = grade.get("label"), grade.get("gold")
    differ = label is not None and gold is not None and label != gold
    return f"predicted {brief(label, 60)}, expected {brief(gold, 60)}" if differ else ""


def grades_of(row: Object) -> list[Shape]:
    """Return what graders say, the main one first."""
    grades, head = as_map(row.get("grades")), row.get("grade")
    if not grades and isinstance(head, Mapping):
        return [grade_view("grade", head)]
    return [
        grade_view(brief(key, 80), as_map(grades[key]))
        for key in sorted(grades, key=lambda key: (grades[key] != head, key))
    ]


def grade_view(key: str, grade: Object) -> Shape:
    """Return what a grader says of a sample, or of an item in it, as texts; what its items say is not said twice.

    ``score`` is the state when there is none, ``rationale`` "" where the code of a reason says the same.
    """
    items, rationale = map(as_map, as_list(grade.get("items"))), as_text(grade.get("rationale"))
    inside = {reason_text(as_map(each)) for item in items for each in as_list(item.get("reasons"))}
    texts = [
        reason_text(each, known=rationale)
        for each in map(as_map, as_list(grade.get("reasons")))
        if reason_text(each) not in inside
    ]
    counts = {name: count for name, count in as_map(grade.get("counts")).items() if count}
    numbers, value = {**as_map(grade.get("parts")), **counts}, score(grade)
    label, gold = ("" if (name := grade.get(side)) is None else brief(name, 80) for side in ("label", "gold"))
    return Shape(
        key=key,
        score=number(value) if value is not None else outcome(grade),
        label=label,
        gold=gold,
        rationale="" if rationale in {as_text(each.get("code")) for each in all_reasons(grade)} else rationale,
        fault=fault_text(as_map(grade.get("fault"))),
        reasons=list(dict.fromkeys(filter(None, texts))),
        parts=[(str(name), number(numbers[name])) for name in sorted(numbers, key=str)],
        held=grade,
    )

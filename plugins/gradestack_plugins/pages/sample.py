"""What terminal and Markdown show of one sample: its calls against the expected ones, its grades with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text, compact
from gradestack_plugins.pages.index import Entry, all_reasons, outcome, score
from gradestack_plugins.pages.jsonview import Line, Path, differences, lines, pointer_path, same
from gradestack_plugins.pages.text import Cut, brief, cut, number


def content_text(content: Any) -> str:
    """Return message content as text: its text parts joined by line ends, any other part or value as JSON."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (as_map(part).get("text", part) for part in content)
        return "\n".join(part if isinstance(part, str) else compact(part) for part in parts)
    return content if isinstance(content, str) else compact(content)


def call_name(name: Any) -> str:
    """Return a tool name as shown."""
    return brief(name, 120) if name not in (None, "") else "(no name)"


_MOST_CALLS = 60
_MOST_ARGUMENTS = 60
_WENT = dict.fromkeys(("", "ok", "error"), "failed")


class Argument(msgspec.Struct, frozen=True):
    """One argument of a pair of calls."""

    name: str
    status: str
    """``same``, ``differs``, ``missing`` (expected, not given) or ``extra`` (given, not expected)."""
    expected: tuple[Line, ...] = ()
    actual: tuple[Line, ...] = ()


class Pair(msgspec.Struct, frozen=True):
    """An expected call and the actual call that answers it best."""

    name: str
    score: float | None
    """The grader's score of this expected call; None when it gave none."""
    arguments: tuple[Argument, ...]
    actual_name: str = ""
    """"" when no call answers it."""
    actual_number: int = 0
    """From 1, in the order calls were made."""
    unreadable: str = ""
    """Argument text of the actual call that is not an object."""
    went: str = ""
    """How the actual call went, where that is recorded."""
    reasons: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """``matched``, ``differs`` or ``absent``."""
        if not self.actual_name:
            return "absent"
        good = self.score >= 1.0 if self.score is not None else self._equal()
        return "matched" if good else "differs"

    def _equal(self) -> bool:
        plain = all(argument.status == "same" for argument in self.arguments)
        return self.name == self.actual_name and plain and not self.unreadable


class Made(msgspec.Struct, frozen=True):
    """A call that answers no expected one."""

    number: int
    name: str
    arguments: Cut
    went: str
    """How it went, where that is recorded."""


class Comparison(msgspec.Struct, frozen=True):
    """All calls of a sample."""

    known: bool
    """Whether there is a reference; an empty one says "call nothing"."""
    recorded: bool
    """Whether the calls made are recorded."""
    pairs: tuple[Pair, ...]
    others: tuple[Made, ...]
    expected: int
    actual: int
    by_grader: bool
    """Whether a grader said which call answers which; otherwise calls are paired here, by name and arguments."""
    left_out: int = 0


def compare(row: Mapping[str, Any], limit: int) -> Comparison:
    """Return the comparison of a row's calls.

    A grader whose items name the call that answers each expected one (``metadata.call``) decides the pairs and, by the
    pointers of its reasons, what is marked. Without one, each expected call takes the equal unused call, else the first
    unused one of its name; if then one expected and one actual call are left, they are a pair.
    """
    wanted, made = as_map(row.get("expected")).get("calls"), as_map(row.get("predicted")).get("calls")
    expected, actual = [as_map(call) for call in as_list(wanted)], [as_map(call) for call in as_list(made)]
    items = _items(row, len(expected))
    answers = [_answer(item, len(actual)) for item in items] if items else _paired(expected, actual)
    pairs = tuple(
        _pair(call, answer, actual, items[place] if items else {}, limit)
        for place, (call, answer) in enumerate(zip(expected, answers, strict=True))
        if place < _MOST_CALLS
    )
    rest = [place for place in range(len(actual)) if place not in set(answers)]
    others = tuple(_made(place, actual[place], limit) for place in rest[:_MOST_CALLS])
    left_out = max(0, len(expected) - _MOST_CALLS) + max(0, len(rest) - _MOST_CALLS)
    known, recorded = wanted is not None, made is not None
    return Comparison(known, recorded, pairs, others, len(expected), len(actual), bool(items), left_out)


def _items(row: Mapping[str, Any], count: int) -> Sequence[Mapping[str, Any]]:
    """Return the items, one per expected call, of the first grader that says which call answers which."""
    grades = as_map(row.get("grades"))
    for grade in (as_map(row.get("grade")), *(as_map(grades[key]) for key in sorted(grades))):
        items = [as_map(item) for item in as_list(grade.get("items"))]
        if count and len(items) == count and all("call" in as_map(item.get("metadata")) for item in items):
            return items
    return ()


def _answer(item: Mapping[str, Any], count: int) -> int | None:
    place = as_map(item.get("metadata")).get("call")
    known = isinstance(place, int) and not isinstance(place, bool) and 0 <= place < count
    return place if known else None


def _paired(expected: Sequence[Mapping[str, Any]], actual: Sequence[Mapping[str, Any]]) -> list[int | None]:
    free = list(range(len(actual)))
    answers: list[int | None] = [None] * len(expected)
    for exact in (True, False):
        for place, call in enumerate(expected):
            if answers[place] is None:
                found = next((index for index in free if _alike(call, actual[index], exact=exact)), None)
                answers[place] = found
                free = [index for index in free if index != found]
    unanswered = [place for place, found in enumerate(answers) if found is None]
    if len(unanswered) == len(free) == 1:
        answers[unanswered[0]] = free[0]  # one call instead of another: most likely the wrong tool
    return answers


def _alike(expected: Mapping[str, Any], actual: Mapping[str, Any], *, exact: bool) -> bool:
    named = expected.get("name") == actual.get("name")
    return named and (not exact or same(expected.get("arguments"), actual.get("arguments")))


def _pair(
    expected: Mapping[str, Any],
    answer: int | None,
    actual: Sequence[Mapping[str, Any]],
    item: Mapping[str, Any],
    limit: int,
) -> Pair:
    reasons = [as_map(reason) for reason in as_list(item.get("reasons"))]
    graded = item.get("outcome", "graded") == "graded"
    score = as_number(item.get("score")) if graded else None
    pointers = frozenset(pointer_path(as_text(reason.get("pointer"))) for reason in reasons)
    wanted = _arguments(expected)
    given: Mapping[str, Any] | None = None if answer is None else _arguments(actual[answer])
    text = "" if answer is None or given is not None else brief(actual[answer].get("raw_arguments") or "null", 300)
    marks = None if score is None else pointers
    return Pair(
        name=call_name(expected.get("name")),
        score=score,
        arguments=_compare_arguments(wanted or {}, given, marks, limit),
        actual_name="" if answer is None else call_name(actual[answer].get("name")),
        actual_number=0 if answer is None else answer + 1,
        unreadable=text,
        went="" if answer is None else went(actual[answer]),
        reasons=tuple(
            reason_text(reason, name=False) for reason in reasons if answer is not None or reason.get("message")
        ),
    )


def _arguments(call: Mapping[str, Any]) -> Mapping[str, Any] | None:
    arguments = call.get("arguments")
    return arguments if isinstance(arguments, Mapping) else None


def _compare_arguments(
    wanted: Mapping[str, Any], given: Mapping[str, Any] | None, marks: frozenset[Path] | None, limit: int
) -> tuple[Argument, ...]:
    """Return the arguments side by side.

    ``marks`` are the places a grader took points for. Where it took none an argument counts as the same, whatever a
    plain comparison would say; None means no grader has spoken.
    """
    found = []
    for key in list(wanted)[:_MOST_ARGUMENTS]:
        if given is None or key not in given:
            found.append(Argument(key, "missing", lines(wanted[key], [()] if given is not None else [], limit)))
            continue
        left, right = differences(wanted[key], given[key])
        if marks is not None:
            own = frozenset(mark[1:] for mark in marks if mark[:1] == (key,))
            left, right = own, (right if own else frozenset())
        status = "differs" if left else "same"
        found.append(Argument(key, status, lines(wanted[key], left, limit), lines(given[key], right, limit)))
    for key in [key for key in given or () if key not in wanted][:_MOST_ARGUMENTS]:
        blamed = [()] if marks and (key,) in marks else []
        found.append(Argument(key, "extra", (), lines((given or {})[key], blamed, limit)))
    return tuple(found)


def _made(place: int, call: Mapping[str, Any], limit: int) -> Made:
    arguments = call.get("arguments")
    text = compact(arguments) if isinstance(arguments, Mapping) else as_text(call.get("raw_arguments"))
    return Made(place + 1, call_name(call.get("name")), cut(text, min(limit, 400)), went(call))


def went(call: Mapping[str, Any]) -> str:
    """Return how a call went, as far as that is recorded: who made it, what came of it and how long it took."""
    status, took = as_text(call.get("status")).replace("_", " "), as_number(call.get("seconds"))
    error = ": ".join(brief(text, 300) for key in ("error_type", "error") if (text := as_text(call.get(key))))
    parts = (
        f"by {brief(author, 60)}" if (author := as_text(call.get("author"))) else "",
        f"on {brief(server, 60)}" if (server := as_text(call.get("server"))) else "",
        f"{_WENT.get(status, brief(status, 20))}: {error}" if error else "" if status == "ok" else brief(status, 20),
        f"{number(took)} s" if took is not None else "",
    )
    return ", ".join(filter(None, parts))


def reason_text(reason: Mapping[str, Any], *, name: bool = True, known: str = "") -> str:
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


_MOST_ITEMS = 200
_MOST_REASONS = 100


class ItemView(msgspec.Struct, frozen=True):
    """One graded thing inside a sample."""

    id: str
    score: str
    label: str
    gold: str
    parts: str
    reasons: tuple[str, ...]


class GradeView(msgspec.Struct, frozen=True):
    """What one grader says."""

    key: str
    score: str
    """In short; the state when there is no score."""
    passed: bool | None
    label: str
    gold: str
    rationale: Cut
    fault: str
    reasons: tuple[str, ...]
    more_reasons: int
    parts: tuple[tuple[str, str], ...]
    items: tuple[ItemView, ...]
    items_left_out: int


class SampleView(msgspec.Struct, frozen=True):
    """A sample beside its texts."""

    entry: Entry
    source: str
    """Where it was read."""
    error: str
    calls: Comparison
    grades: tuple[GradeView, ...]


def sample(entry: Entry, row: Mapping[str, Any], limit: int) -> SampleView:
    """Return the view of a row of results.jsonl."""
    error = _fault(as_map(row.get("error")))
    return SampleView(entry, _source(as_map(row.get("source"))), error, compare(row, limit), _grades(row, limit))


def _source(source: Mapping[str, Any]) -> str:
    if not source:
        return ""
    line = source.get("line")
    place = f"line {line}" if isinstance(line, int) else f"record {as_count(source.get('ordinal')) + 1}"
    return f"{brief(as_text(source.get('file')), 200)}, {place}"


def _fault(fault: Mapping[str, Any]) -> str:
    """Return a fault on one line: category, code, type and message."""
    if not fault:
        return ""
    kind = as_text(fault.get("type"))
    head = " ".join(brief(part, 80) for part in (as_text(fault.get("category")), as_text(fault.get("code"))) if part)
    text = f"{head} ({brief(kind, 80)})" if kind else head
    message = brief(as_text(fault.get("message")), 600)
    return f"{text}: {message}" if message and text else message or text or brief(dict(fault), 300)


def gist(row: Mapping[str, Any]) -> str:
    """Return why the main grade is what it is: its fault, first reason, labels or rationale, else another's."""
    grade, grades = as_map(row.get("grade")), as_map(row.get("grades"))
    text = _fault(as_map(grade.get("fault"))) or _fault(as_map(row.get("error"))) or _why(grade)
    text = text or as_text(grade.get("rationale"))
    others = (f"{key}: {why}" for key in sorted(grades) if (why := _why(as_map(grades[key]))))
    return brief(text or next(others, ""), 180)


def _why(grade: Mapping[str, Any]) -> str:
    """Return the first reason of a grade and how many more there are; without one, its two labels if they differ."""
    reasons = list(dict.fromkeys(text for reason in all_reasons(grade) if (text := reason_text(reason))))
    if reasons:
        return reasons[0] if len(reasons) == 1 else f"{brief(reasons[0], 130)} (+{len(reasons) - 1})"
    label, gold = grade.get("label"), grade.get("gold")
    differ = label is not None and gold is not None and label != gold
    return f"predicted {brief(label, 60)}, expected {brief(gold, 60)}" if differ else ""


def _grades(row: Mapping[str, Any], limit: int) -> tuple[GradeView, ...]:
    grades, head = as_map(row.get("grades")), row.get("grade")
    if not grades and isinstance(head, Mapping):
        return (_grade("grade", head, limit),)
    keys = sorted(grades, key=lambda key: (grades[key] != head, key))
    return tuple(_grade(brief(key, 80), as_map(grades[key]), limit) for key in keys)


def _grade(key: str, grade: Mapping[str, Any], limit: int) -> GradeView:
    value = score(grade)
    passed = grade.get("passed")
    items = [as_map(item) for item in as_list(grade.get("items"))]
    rationale = as_text(grade.get("rationale"))
    codes = {as_text(reason.get("code")) for reason in all_reasons(grade)}
    inside = {reason_text(as_map(reason)) for item in items for reason in as_list(item.get("reasons"))}
    reasons = [as_map(reason) for reason in as_list(grade.get("reasons"))]
    texts = [reason_text(reason, known=rationale) for reason in reasons if reason_text(reason) not in inside]
    own = [text for text in dict.fromkeys(texts) if text]
    counts = {name: count for name, count in as_map(grade.get("counts")).items() if count}
    numbers = {**as_map(grade.get("parts")), **counts}
    return GradeView(
        key=key,
        score=number(value) if value is not None else outcome(grade),
        passed=passed if isinstance(passed, bool) else None,
        label=_label(grade.get("label")),
        gold=_label(grade.get("gold")),
        rationale=cut("" if rationale in codes else rationale, limit),
        fault=_fault(as_map(grade.get("fault"))),
        reasons=tuple(own[:_MOST_REASONS]),
        more_reasons=max(0, len(own) - _MOST_REASONS),
        parts=tuple((str(name), number(numbers[name])) for name in sorted(numbers, key=str)),
        items=_item_views(items),
        items_left_out=max(0, len(items) - _MOST_ITEMS),
    )


def _item_views(items: Sequence[Mapping[str, Any]]) -> tuple[ItemView, ...]:
    return tuple(
        ItemView(
            id=brief(item.get("id"), 120),
            score=_item_score(item),
            label=_label(item.get("label")),
            gold=_label(item.get("gold")),
            parts=", ".join(f"{key!s} {number(value)}" for key, value in _numbers(item)),
            reasons=tuple(reason_text(as_map(reason)) for reason in as_list(item.get("reasons"))[:_MOST_REASONS])
            + ((fault,) if (fault := _fault(as_map(item.get("fault")))) else ()),
        )
        for item in items[:_MOST_ITEMS]
    )


def _item_score(item: Mapping[str, Any]) -> str:
    value = score({"state": item.get("outcome"), "score": item.get("score")})
    return number(value) if value is not None else outcome({**item, "state": item.get("outcome")})


def _numbers(item: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = {**as_map(item.get("parts")), **as_map(item.get("counts"))}
    return sorted(found.items())[:20]


def _label(value: Any) -> str:
    return "" if value is None else brief(value, 80)

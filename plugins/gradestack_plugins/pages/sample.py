"""What is said of one sample.

Which calls answer the expected ones, and why its grades are what they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gradestack import argument_at
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text, compact
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.index import all_reasons, outcome, score
from gradestack_plugins.pages.jsonview import alike, equality_key
from gradestack_plugins.pages.text import brief, number

MOST_CALLS = 60
"""Pairs of calls, and other calls, that are shown of one sample; the rest is counted."""
MOST_REASONS, MOST_PARTS = 100, 100
"""Reasons of a grade, or of a pair of calls, and parts of a grade that are shown."""
_MOST_ARGUMENTS = 60

Object = Mapping[str, Any]


def call_name(name: Any) -> str:
    """Return a tool name as shown."""
    return brief(name, 120) if name not in (None, "") else "(no name)"


class Argument(NamedTuple):
    """One argument of a pair of calls."""

    name: str
    status: str
    """``same``, ``differs``, ``missing`` (expected, not given) or ``extra`` (given, not
    expected).
    """
    expected: Any = None
    actual: Any = None


def _pair(expected: Object, actual: Object | None, number: int, item: Object) -> Shape:
    """Return an expected call, the call that answers it best, its number from 1, and what a grader
    says of them.

    ``status`` is ``matched``, ``differs`` or ``absent``, ``score`` None when the grader gave none.
    """
    score = as_number(item.get("score")) if item.get("outcome", "graded") == "graded" else None
    reasons, given = list(map(as_map, as_list(item.get("reasons")))), _given(actual)
    blamed = (
        None if score is None else {argument_at(as_text(each.get("pointer"))) for each in reasons}
    )
    arguments = list(_arguments(as_map(expected.get("arguments")), given or {}, blamed))
    right = given is not None and all(each.status == "same" for each in arguments)
    matched = (
        right and as_map(actual).get("name") == expected.get("name")
        if score is None
        else score >= 1
    )
    name = call_name(expected.get("name"))
    if actual is not None and not matched and call_name(actual.get("name")) != name:
        arguments.insert(0, Argument("tool", "differs", name, call_name(actual.get("name"))))
    return Shape(
        name=name,
        actual=actual,
        number=number,
        score=score,
        status="absent" if actual is None else "matched" if matched else "differs",
        arguments=arguments,
        reasons=_reason_texts(reasons, actual),
    )


def _reason_texts(reasons: Sequence[Object], actual: Object | None) -> list[str]:
    """Return the reasons of a pair of calls as texts, the last of many how many more there are."""
    shown = [each for each in reasons if actual is not None or each.get("message")]
    texts = [reason_text(each, name=False) for each in shown[:MOST_REASONS]]
    more = len(shown) - len(texts)
    return [*texts, f"{more:,} more reasons"] if more else texts


def _arguments(wanted: Object, given: Object, blamed: Collection[str] | None) -> Iterator[Argument]:
    """Yield arguments side by side.

    Where a grader has spoken, those differ that it took points for, and no other.
    """
    for name in list(wanted)[:_MOST_ARGUMENTS]:
        right = name in given and (
            alike(wanted[name], given[name]) if blamed is None else name not in blamed
        )
        yield Argument(
            name,
            "same" if right else "differs" if name in given else "missing",
            wanted[name],
            given.get(name),
        )
    for name in [name for name in given if name not in wanted][:_MOST_ARGUMENTS]:
        yield Argument(name, "extra", None, given[name])


def _given(call: Object | None) -> Object | None:
    held = None if call is None else call.get("arguments")
    return held if isinstance(held, Mapping) else None


def calls_of(row: Object) -> Shape:
    """Return the first calls of a row, ``MOST_CALLS`` of each kind.

    Expected ones with those that answer them (``pairs``), other ones with their numbers
    (``others``), and how many more calls there are (``more``). The time grows with the number of
    calls, not with its square.

    A grader whose items name the call that answers each expected one (``metadata.call``) decides
    the pairs. Without one, each expected call takes the equal unused call, else the first unused
    one of its name; if then one expected and one actual call are left, they are a pair.
    """
    expected, actual = (
        list(map(as_map, as_list(as_map(row.get(side)).get("calls"))))
        for side in ("expected", "predicted")
    )
    items = _items(row, len(expected))
    answers = (
        [_answer(item, len(actual)) for item in items] if items else _pair_calls(expected, actual)
    )
    pairs = []
    for position, call in enumerate(expected[:MOST_CALLS]):
        at = answers[position]
        answer = None if at is None else actual[at]
        item = items[position] if items else {}
        pairs.append(_pair(call, answer, 0 if at is None else at + 1, item))
    used = set(answers)
    others = [at for at in range(len(actual)) if at not in used]
    return Shape(
        pairs=pairs,
        others=[(at + 1, actual[at]) for at in others[:MOST_CALLS]],
        more=max(0, len(expected) - MOST_CALLS) + max(0, len(others) - MOST_CALLS),
        by_grader=bool(items),
    )


def _items(row: Object, count: int) -> Sequence[Object]:
    """Return the items, one per expected call, of the first grader that says which call answers
    which.
    """
    grades = as_map(row.get("grades"))
    for grade in (as_map(row.get("grade")), *(as_map(grades[key]) for key in sorted(grades))):
        items = [as_map(item) for item in as_list(grade.get("items"))]
        if (
            count
            and len(items) == count
            and all("call" in as_map(item.get("metadata")) for item in items)
        ):
            return items
    return ()


def _answer(item: Object, count: int) -> int | None:
    at = as_map(item.get("metadata")).get("call")
    return at if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < count else None


def _pair_calls(expected: Sequence[Object], actual: Sequence[Object]) -> list[int | None]:
    """Return the position of the call that answers each expected one; None where none does."""
    answers: list[int | None] = [None] * len(expected)
    used: set[int] = set()
    for key_of in (_call_key, _name_key):
        free: dict[Any, list[int]] = {}
        for at in reversed(range(len(actual))):
            if at not in used:
                free.setdefault(key_of(actual[at]), []).append(at)
        for position, call in enumerate(expected):
            if answers[position] is None and (places := free.get(key_of(call))):
                answers[position] = at = places.pop()
                used.add(at)
    if answers.count(None) == len(actual) - len(used) == 1:
        # one call instead of another: most likely the wrong tool
        (rest,) = set(range(len(actual))) - used
        answers[answers.index(None)] = rest
    return answers


def _call_key(call: Object) -> Any:
    return _name_key(call), equality_key(call.get("arguments"))


def _name_key(call: Object) -> Any:
    return equality_key(call.get("name"))


def went(call: Object) -> str:
    """Return how a call went, as far as that is recorded.

    Who made it, what came of it and how long it took.
    """
    status, took = as_text(call.get("status")).replace("_", " "), as_number(call.get("seconds"))
    error = ": ".join(
        brief(text, 300) for key in ("error_type", "error") if (text := as_text(call.get(key)))
    )
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
    place = (
        f"line {line}" if isinstance(line, int) else f"record {as_count(source.get('ordinal')) + 1}"
    )
    return f"{brief(as_text(source.get('file')), 200)}, {place}" if source else ""


def fault_text(fault: Object) -> str:
    """Return a fault on one line: category, code, type and message."""
    kind = as_text(fault.get("type"))
    head = " ".join(
        brief(part, 80)
        for part in (as_text(fault.get("category")), as_text(fault.get("code")))
        if part
    )
    text = f"{head} ({brief(kind, 80)})" if kind else head
    message = brief(as_text(fault.get("message")), 600)
    return (
        f"{text}: {message}"
        if message and text
        else message or text or (brief(dict(fault), 300) if fault else "")
    )


def gist(row: Object) -> str:
    """Return why the main grade is what it is.

    Its fault, first reason, labels or rationale, else another's.
    """
    grade, grades = as_map(row.get("grade")), as_map(row.get("grades"))
    text = (
        fault_text(as_map(grade.get("fault")))
        or fault_text(as_map(row.get("error")))
        or _why(grade)
    )
    text = text or as_text(grade.get("rationale"))
    others = (f"{key}: {why}" for key in sorted(grades) if (why := _why(as_map(grades[key]))))
    return brief(text or next(others, ""), 180)


def _why(grade: Object) -> str:
    """Return the first reason of a grade and how many more there are.

    Without one, its two labels if they differ.
    """
    reasons = list(
        dict.fromkeys(text for reason in all_reasons(grade) if (text := reason_text(reason)))
    )
    if reasons:
        return (
            reasons[0] if len(reasons) == 1 else f"{brief(reasons[0], 130)} (+{len(reasons) - 1})"
        )
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
    """Return what a grader says of a sample, or of an item in it, as texts.

    What its items say is not said twice.

    ``score`` is the state when there is none, ``rationale`` "" where the code of a reason, or the
    fault, says the same.
    """
    items, rationale = map(as_map, as_list(grade.get("items"))), as_text(grade.get("rationale"))
    said = {
        as_text(as_map(grade.get("fault")).get("message")),
        *(as_text(each.get("code")) for each in all_reasons(grade)),
    }
    inside = {reason_text(as_map(each)) for item in items for each in as_list(item.get("reasons"))}
    reasons: dict[str, Object] = {}
    for reason in map(as_map, as_list(grade.get("reasons"))):
        text = reason_text(reason)
        if text not in inside:
            reasons.setdefault(text, reason)
    texts = [reason_text(each, known=rationale) for each in [*reasons.values()][:MOST_REASONS]]
    counts = {name: count for name, count in as_map(grade.get("counts")).items() if count}
    numbers, value = {**as_map(grade.get("parts")), **counts}, score(grade)
    label, gold = (
        "" if (name := grade.get(side)) is None else brief(name, 80) for side in ("label", "gold")
    )
    return Shape(
        key=key,
        score=number(value) if value is not None else outcome(grade),
        label=label,
        gold=gold,
        rationale="" if rationale in said else rationale,
        fault=fault_text(as_map(grade.get("fault"))),
        reasons=list(dict.fromkeys(filter(None, texts))),
        more_reasons=len(reasons) - len(texts),
        parts=[
            (str(name), number(numbers[name])) for name in sorted(numbers, key=str)[:MOST_PARTS]
        ],
        held=grade,
    )

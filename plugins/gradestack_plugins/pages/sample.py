"""One sample: which calls answer the expected ones, and why its grades are what they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import argument_at
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text, compact
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.index import all_reasons, outcome, score
from gradestack_plugins.pages.jsonview import equal_in_any_order, equality_key
from gradestack_plugins.pages.text import brief, cause_text, number, state_word

MOST_CALLS = 60
"""Pairs of calls, and other calls, that are shown of one sample; the rest is counted."""
MOST_REASONS, MOST_PARTS = 100, 100
"""Reasons of a grade, or of a pair of calls, and parts of a grade that are shown."""
_MOST_ARGUMENTS = 60
_SUITES_OWN_ERRORS = "errors@"
"""Types of errors begin so that a table of forms tells; the text says enough then."""

Object = Mapping[str, Any]


def call_name(name: Any) -> str:
    """Return a tool name as shown."""
    return brief(name, 120) if name not in (None, "") else "(no name)"


class Argument(msgspec.Struct, frozen=True):
    """One argument of a pair of calls."""

    name: str
    status: str
    """``same``, ``differs``, ``missing`` (expected, not given) or ``extra`` (given, not
    expected).
    """
    expected: Any = None
    actual: Any = None


def _pair(expected: Object, actual: Object | None, number: int, item: Object) -> Shape:
    """Return an expected call, drawn beside the made call that answers it best.

    Args:
        expected: The expected call.
        actual: The call that answers it, None where none does.
        number: Its number from 1.
        item: The grader's judgement on the expected call; empty without one.
    """
    is_graded = item.get("outcome", "graded") == "graded"
    score = as_number(item.get("score")) if is_graded else None
    reasons = list(map(as_map, as_list(item.get("reasons"))))
    blamed = None
    if score is not None:
        blamed = {argument_at(as_text(reason.get("pointer"))) for reason in reasons}
    made = _arguments_of(actual)
    wanted = as_map(expected.get("arguments"))
    compare_arguments = _compare_arguments(wanted, made or {}, blamed)
    arguments = list(compare_arguments)
    name = call_name(expected.get("name"))
    made_name = call_name(as_map(actual).get("name"))
    is_equal = made is not None and all(argument.status == "same" for argument in arguments)
    matched = is_equal and made_name == name if score is None else score >= 1
    if actual is not None and not matched and made_name != name:
        arguments.insert(0, Argument("tool", "differs", name, made_name))
    status = "absent" if actual is None else "matched" if matched else "differs"
    reason_texts = _reason_texts(reasons, actual)
    return Shape(
        name=name,
        actual=actual,
        number=number,
        score=score,
        status=status,
        arguments=arguments,
        reasons=reason_texts,
    )


def _reason_texts(reasons: Sequence[Object], actual: Object | None) -> list[str]:
    """Return the first reasons of a pair of calls as texts, then the number of further reasons."""
    shown = [reason for reason in reasons if actual is not None or reason.get("message")]
    texts = [reason_text(reason, name=False) for reason in shown[:MOST_REASONS]]
    more = len(shown) - len(texts)
    return [*texts, f"{more:,} more reasons"] if more else texts


def _compare_arguments(
    wanted: Object, made: Object, blamed: Collection[str] | None
) -> Iterator[Argument]:
    """Yield arguments side by side.

    Where a grader has spoken, those differ that it took points for, and no other.
    """
    for name in list(wanted)[:_MOST_ARGUMENTS]:
        if name not in made:
            yield Argument(name, "missing", wanted[name])
            continue
        is_same = (
            equal_in_any_order(wanted[name], made[name]) if blamed is None else name not in blamed
        )
        yield Argument(name, "same" if is_same else "differs", wanted[name], made[name])
    extra = [name for name in made if name not in wanted]
    for name in extra[:_MOST_ARGUMENTS]:
        yield Argument(name, "extra", None, made[name])


def _arguments_of(call: Object | None) -> Object | None:
    arguments = None if call is None else call.get("arguments")
    return arguments if isinstance(arguments, Mapping) else None


def calls_of(row: Object) -> Shape:
    """Return the first calls of a row, ``MOST_CALLS`` of each kind.

    Expected ones with those that answer them (``pairs``), other ones with their numbers
    (``others``), and how many more calls there are (``more``). The time grows with the number of
    calls, not with its square.

    A grader whose items name the call that answers each expected one (``metadata.call``) decides
    the pairs. Without one, each expected call takes the equal unused call, else the first unused
    one of its name; if then one expected and one actual call are left, they are a pair.
    """
    expected, actual = (_calls_on(row, side) for side in ("expected", "predicted"))
    items = _items(row, len(expected))
    if items:
        answers = [_answering_call(item, len(actual)) for item in items]
    else:
        answers = _pair_calls(expected, actual)
    pairs = []
    for position, call in enumerate(expected[:MOST_CALLS]):
        at = answers[position]
        call_made = None if at is None else actual[at]
        item = items[position] if items else {}
        pairs.append(_pair(call, call_made, 0 if at is None else at + 1, item))
    used = set(answers)
    others = [at for at in range(len(actual)) if at not in used]
    unlisted = [len(calls) - MOST_CALLS for calls in (expected, others)]
    total = sum(max(0, count) for count in unlisted)
    return Shape(
        pairs=pairs,
        others=[(at + 1, actual[at]) for at in others[:MOST_CALLS]],
        more=total,
        by_grader=bool(items),
    )


def _calls_on(row: Object, side: str) -> list[Object]:
    calls = as_list(as_map(row.get(side)).get("calls"))
    return list(map(as_map, calls))


def _items(row: Object, count: int) -> Sequence[Object]:
    """Return the items, one per expected call, of the first grader that pairs calls; () if none."""
    if not count:
        return ()
    grades = as_map(row.get("grades"))
    sorted_grades = [as_map(grades[key]) for key in sorted(grades)]
    for grade in (as_map(row.get("grade")), *sorted_grades):
        items = [as_map(item) for item in as_list(grade.get("items"))]
        pairs_calls = all("call" in as_map(item.get("metadata")) for item in items)
        if len(items) == count and pairs_calls:
            return items
    return ()


def _answering_call(item: Object, count: int) -> int | None:
    metadata = item.get("metadata")
    at = as_map(metadata).get("call")
    if not isinstance(at, int) or isinstance(at, bool):
        return None
    return at if 0 <= at < count else None


def _pair_calls(expected: Sequence[Object], actual: Sequence[Object]) -> list[int | None]:
    """Return the position of the call that answers each expected one; None where none does."""
    answers: list[int | None] = [None] * len(expected)
    used: set[int] = set()
    for key_of in (_call_key, _name_key):
        free: dict[Any, list[int]] = {}
        for at in reversed(range(len(actual))):
            if at not in used:
                key = key_of(actual[at])
                free.setdefault(key, []).append(at)
        for position, call in enumerate(expected):
            places = free.get(key_of(call))
            if answers[position] is None and places:
                position_made = places.pop()
                answers[position] = position_made
                used.add(position_made)
    unanswered = answers.count(None)
    if unanswered == len(actual) - len(used) == 1:
        # one call instead of another: most likely the wrong tool
        (rest,) = set(range(len(actual))) - used
        answers[answers.index(None)] = rest
    return answers


def _call_key(call: Object) -> Any:
    name_key = _name_key(call)
    return name_key, equality_key(call.get("arguments"))


def _name_key(call: Object) -> Any:
    return equality_key(call.get("name"))


def went(call: Object) -> str:
    """Return the recorded author, server, status and seconds of a call."""
    status = as_text(call.get("status")).replace("_", " ")
    seconds = as_number(call.get("seconds"))
    author = as_text(call.get("author"))
    server = as_text(call.get("server"))
    parts = [
        f"by {brief(author, 60)}" if author else "",
        f"on {brief(server, 60)}" if server else "",
        _status_text(status, call),
        "" if seconds is None else f"{number(seconds)} s",
    ]
    return ", ".join(filter(None, parts))


def _status_text(status: str, call: Object) -> str:
    """Return how a call ended, as pages show it: "" if well, else its state and its error.

    A call with an error has failed, even where its status is "ok". The kind of an error that the
    suite's own table of error forms has found is left out: its message says enough.
    """
    kind = as_text(call.get("error_type"))
    message = as_text(call.get("error"))
    is_by_table = message and kind.startswith(_SUITES_OWN_ERRORS)
    errors = [message] if is_by_table else [kind, message]
    error = ": ".join(brief(text, 300) for text in errors if text)
    if error:
        state = "failed" if status in ("", "ok", "error") else brief(status, 20)
        return f"{state}: {error}"
    return "" if status == "ok" else brief(status, 20)


def reason_text(
    reason: Object, *, name: bool = True, known: str = "", in_words: bool = False
) -> str:
    """Return a reason on one line: its code, place, the two values and its message."""
    subject = as_text(reason.get("subject")) if name else ""
    where = f"{subject} {as_text(reason.get('pointer'))}".strip()
    code = as_text(reason.get("code"))
    if in_words:
        code = cause_text(code)
    head = " ".join(filter(None, (code, brief(where, 120))))
    values = []
    for word, key in (("expected", "expected"), ("got", "actual")):
        if key in reason:
            values.append(f"{word} {brief(compact(reason[key]), 100)}")
    text = ": ".join(filter(None, (head, ", ".join(values))))
    message = brief(as_text(reason.get("message")), 240)
    if message and text and message != brief(known, 240):
        return f"{text} – {message}"
    return text or message


def source_text(source: Object) -> str:
    """Return where a sample was read."""
    if not source:
        return ""
    line = source.get("line")
    file = brief(as_text(source.get("file")), 200)
    if isinstance(line, int):
        return f"{file}, line {line}"
    return f"{file}, record {as_count(source.get('ordinal')) + 1}"


def fault_text(fault: Object) -> str:
    """Return a fault on one line: category, code, type and message."""
    kind = as_text(fault.get("type"))
    names = [as_text(fault.get(key)) for key in ("category", "code")]
    head = " ".join(brief(name, 80) for name in names if name)
    text = f"{head} ({brief(kind, 80)})" if kind else head
    message = brief(as_text(fault.get("message")), 600)
    shown = ": ".join(filter(None, (text, message)))
    if shown:
        return shown
    return brief(dict(fault), 300) if fault else ""


def gist(row: Object) -> str:
    """Return why the main grade is what it is.

    Its fault, first reason, labels or rationale, else another's.
    """
    grade = as_map(row.get("grade"))
    grades = as_map(row.get("grades"))
    fault = grade.get("fault")
    fault_in_words = _fault_in_words(as_map(fault))
    error = row.get("error")
    texts = [
        fault_in_words,
        _fault_in_words(as_map(error)),
        _why(grade),
        as_text(grade.get("rationale")),
    ]
    for key in sorted(grades):
        why = _why(as_map(grades[key]))
        texts.append(f"{key}: {why}" if why else "")
    return brief(next(filter(None, texts), ""), 180)


def _fault_in_words(fault: Object) -> str:
    """Return a fault as text: its code in words, then its message."""
    code = as_text(fault.get("code"))
    message = as_text(fault.get("message"))
    if not code:
        return fault_text(fault)
    return ": ".join(filter(None, (cause_text(brief(code, 80)), brief(message, 600))))


def _why(grade: Object) -> str:
    """Explain a grade in one line: its first reason and the number of others.

    Without a reason: the expected and the given label, if they differ.
    """
    texts = [reason_text(reason, in_words=True) for reason in all_reasons(grade)]
    reasons = list(dict.fromkeys(filter(None, texts)))
    if len(reasons) > 1:
        return f"{brief(reasons[0], 130)} (+{len(reasons) - 1})"
    if reasons:
        return reasons[0]
    label = grade.get("label")
    gold = grade.get("gold")
    if label is None or gold is None or label == gold:
        return ""
    return f"predicted {brief(label, 60)}, expected {brief(gold, 60)}"


def grades_of(row: Object) -> list[Shape]:
    """Return the grades of a row, the main one first."""
    grades = as_map(row.get("grades"))
    head = row.get("grade")
    if not grades and isinstance(head, Mapping):
        return [grade_view("grade", head)]
    keys = sorted(grades, key=lambda key: (grades[key] != head, key))
    return [grade_view(brief(key, 80), as_map(grades[key])) for key in keys]


def grade_view(key: str, grade: Object) -> Shape:
    """Return a grade of a sample or of an item as texts.

    Texts of its items are not repeated. ``score`` is the state when there is none, ``rationale``
    "" where the code of a reason, or the fault, says the same.
    """
    rationale = as_text(grade.get("rationale"))
    reasons = _own_reasons(grade)
    texts = [reason_text(reason, known=rationale) for reason in reasons[:MOST_REASONS]]
    counts = {name: count for name, count in as_map(grade.get("counts")).items() if count}
    parts = grade.get("parts")
    numbers = {**as_map(parts), **counts}
    names = sorted(numbers, key=str)[:MOST_PARTS]
    value = score(grade)
    sides = (grade.get("label"), grade.get("gold"))
    label, gold = ("" if side is None else brief(side, 80) for side in sides)
    return Shape(
        key=key,
        score=state_word(outcome(grade)) if value is None else number(value),
        label=label,
        gold=gold,
        rationale="" if _is_repeated(rationale, grade) else rationale,
        fault=fault_text(as_map(grade.get("fault"))),
        reasons=list(dict.fromkeys(filter(None, texts))),
        more_reasons=len(reasons) - len(texts),
        parts=[(str(name), number(numbers[name])) for name in names],
        held=grade,
    )


def _own_reasons(grade: Object) -> list[Object]:
    """Return the reasons of a grade that none of its items gives, each once."""
    inside = set()
    for item in map(as_map, as_list(grade.get("items"))):
        inside |= {reason_text(as_map(reason)) for reason in as_list(item.get("reasons"))}
    reasons: dict[str, Object] = {}
    for reason in map(as_map, as_list(grade.get("reasons"))):
        text = reason_text(reason)
        if text not in inside:
            reasons.setdefault(text, reason)
    return list(reasons.values())


def _is_repeated(rationale: str, grade: Object) -> bool:
    """Return whether a rationale says what the code of a reason, or the fault, says."""
    fault = grade.get("fault")
    message = as_text(as_map(fault).get("message"))
    reasons = all_reasons(grade)
    codes = [as_text(reason.get("code")) for reason in reasons]
    return rationale in (message, *codes)

"""The drill-down of one sample: its calls against the expected ones, grades, reasons, conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text, compact
from gradestack_plugins.pages.index import Entry, all_reasons, outcome, score, shade
from gradestack_plugins.pages.jsonview import Line, Path, differences, lines, pointer_path, same, spread
from gradestack_plugins.pages.text import Cut, brief, cut, natural, number, token

_MOST_MESSAGES = 200
_SHARED_FROM = 600
"""Length from which a system message that occurs again is shown once for all samples."""
_MOST_SHARED = 50
_FOLDED_FROM = 900
_FOLDED_LINES = 12
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
_ROLES |= {"system": "system", "developer": "system"}


_NONE = Cut("")


@attrs.frozen
class Call:
    """A tool call inside a message."""

    name: str
    arguments: Cut


@attrs.frozen
class Shown:
    """One message."""

    role: str
    """Role as recorded."""
    style: str
    """CSS class: ``user``, ``assistant``, ``tool``, ``system`` or ``other``."""
    name: str
    body: Cut
    code: bool = False
    """Whether the body is JSON, spread over lines."""
    folded: bool = False
    """Whether the body is long enough to be folded."""
    preview: str = ""
    shared: int = 0
    """Number of the text in the list of shared texts, from 1; 0 when the body is shown here."""
    size: int = 0
    """Characters of the whole body."""
    calls: tuple[Call, ...] = ()
    reasoning: Cut = _NONE
    """What the model thought before."""


@attrs.frozen
class Turn:
    """The messages of one turn."""

    number: int
    """From 1; 0 when the sample has a single turn."""
    messages: tuple[Shown, ...]


@attrs.frozen
class Conversation:
    """All turns of a sample."""

    turns: tuple[Turn, ...]
    count: int
    """Messages in all."""
    left_out: int
    """Messages not shown, after those that are."""
    gone: str = ""
    """Why there is none, where the row did not keep it."""


@attrs.define
class SharedTexts:
    """Long system messages, each kept once for the whole page."""

    limit: int
    texts: list[Cut] = attrs.field(factory=list)
    numbers: dict[bytes, int] = attrs.field(factory=dict)

    def number(self, text: str) -> int:
        """Return the number of a text, from 1; 0 when it is to be shown in place."""
        if len(text) < _SHARED_FROM:
            return 0
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        if digest not in self.numbers and len(self.numbers) < _MOST_SHARED:
            self.texts.append(cut(text, self.limit))
            self.numbers[digest] = len(self.texts)
        return self.numbers.get(digest, 0)


def conversation(trajectory: Any, limit: int, shared: SharedTexts) -> Conversation:
    """Return the view of a row's ``trajectory``."""
    turns = [[as_map(message) for message in turn] for turn in _turns(as_list(trajectory))]
    count, room = sum(map(len, turns)), _MOST_MESSAGES
    shown: list[Turn] = []
    for place, turn in enumerate(turns, start=1):
        messages = tuple(_message(message, limit, shared) for message in turn[:room])
        room -= len(messages)
        if messages:
            shown.append(Turn(place if len(turns) > 1 else 0, messages))
    return Conversation(tuple(shown), count, max(0, count - _MOST_MESSAGES))


def _turns(trajectory: Iterable[Any]) -> Iterable[Iterable[Any]]:
    loose: list[Any] = []
    for entry in trajectory:
        if isinstance(entry, Mapping):
            loose.append(entry)
        else:
            yield as_list(entry)
    if loose:
        yield loose


def _message(message: Mapping[str, Any], limit: int, shared: SharedTexts) -> Shown:
    role = brief(as_text(message.get("role")), 40) or "unknown role"
    style = _ROLES.get(role.lower(), "other")
    text = content_text(message.get("content"))
    number = shared.number(text) if style == "system" else 0
    laid_out = spread(text) if not number and len(text) <= limit else None
    body = cut(laid_out if laid_out is not None else text, limit)
    folded = len(body.shown) > _FOLDED_FROM or (style == "tool" and body.shown.count("\n") > _FOLDED_LINES)
    return Shown(
        role=role,
        style=style,
        name=brief(as_text(message.get("name")), 80),
        body=Cut("") if number else body,
        code=laid_out is not None,
        folded=folded,
        preview=brief(text, 160) if folded else "",
        shared=number,
        size=len(text),
        calls=tuple(_call(call, limit) for call in as_list(message.get("tool_calls"))[:_MOST_MESSAGES]),
        reasoning=cut(content_text(message.get("reasoning")), limit),
    )


def content_text(content: Any) -> str:
    """Return message content as text: its text parts joined by line ends, any other part or value as JSON."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (as_map(part).get("text", part) for part in content)
        return "\n".join(part if isinstance(part, str) else compact(part) for part in parts)
    return content if isinstance(content, str) else compact(content)


def _call(raw: Any, limit: int) -> Call:
    function = as_map(as_map(raw).get("function")) or as_map(raw)
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else "" if arguments is None else compact(arguments)
    return Call(call_name(function.get("name")), cut(spread(text) or text if len(text) <= limit else text, limit))


def call_name(name: Any) -> str:
    """Return a tool name as shown."""
    return brief(name, 120) if name not in (None, "") else "(no name)"


_MOST_CALLS = 60
_MOST_ARGUMENTS = 60
_WENT = dict.fromkeys(("", "ok", "error"), "failed")


@attrs.frozen
class Argument:
    """One argument of a pair of calls."""

    name: str
    status: str
    """``same``, ``differs``, ``missing`` (expected, not given) or ``extra`` (given, not expected)."""
    expected: tuple[Line, ...] = ()
    actual: tuple[Line, ...] = ()


@attrs.frozen
class Pair:
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


@attrs.frozen
class Made:
    """A call that answers no expected one."""

    number: int
    name: str
    arguments: Cut
    went: str
    """How it went, where that is recorded."""


@attrs.frozen
class Comparison:
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


@attrs.frozen
class ItemView:
    """One graded thing inside a sample."""

    id: str
    outcome: str
    score: str
    label: str
    gold: str
    parts: str
    reasons: tuple[str, ...]


@attrs.frozen
class GradeView:
    """What one grader says."""

    key: str
    state: str
    score: str
    """In short; the state when there is no score."""
    fraction: float | None
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
    extra: tuple[Line, ...]
    """The grade's metadata."""

    @property
    def shade(self) -> str:
        """CSS class of its score or state."""
        return (
            shade(self.fraction)
            if self.fraction is not None
            else {"failed": "error"}.get(self.state, token(self.state))
        )


@attrs.frozen
class SampleView:
    """Everything shown of a sample."""

    entry: Entry
    gist: str
    """The first thing to know, on one line."""
    source: str
    facts: tuple[tuple[str, str], ...]
    prompts: tuple[Cut, ...]
    """What the user asked, one per turn."""
    truth: Cut
    submission: Cut
    error: str
    labels: tuple[tuple[str, str], ...]
    """Expected and predicted label, where the family has labels."""
    plans: tuple[tuple[str, tuple[Line, ...]], ...]
    calls: Comparison
    grades: tuple[GradeView, ...]
    conversation: Conversation


def sample(entry: Entry, row: Mapping[str, Any], limit: int, shared: SharedTexts) -> SampleView:
    """Return the view of a row of results.jsonl."""
    expected, predicted = as_map(row.get("expected")), as_map(row.get("predicted"))
    source, task = as_map(row.get("source")), as_map(row.get("sample"))
    labels = (("Expected", expected.get("label")), ("Predicted", predicted.get("label")))
    plans = (("Expected plan", expected.get("plan")), ("Predicted plan", predicted.get("plan")))
    truth = expected.get("text") or task.get("ground_truth")
    truth = None if truth == expected.get("label") else truth
    return SampleView(
        entry=entry,
        gist=gist(row),
        source=_source(source),
        facts=_facts(row),
        prompts=tuple(cut(_text(prompt), limit) for prompt in _prompts(task.get("input"))),
        truth=cut(_text(truth), limit),
        submission=cut(_text(row.get("submission")), limit),
        error=_fault(as_map(row.get("error"))),
        labels=tuple((name, brief(value, 80)) for name, value in labels if value is not None),
        plans=tuple((name, lines(value, (), limit)) for name, value in plans if value is not None),
        calls=compare(row, limit),
        grades=_grades(row, limit),
        conversation=attrs.evolve(
            conversation(row.get("trajectory"), limit, shared), gone=brief(as_text(row.get("trajectory_gone")), 600)
        ),
    )


def _prompts(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else () if value in (None, "") else (value,)


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return value if isinstance(value, str) else "" if value is None else compact(value)


def _source(source: Mapping[str, Any]) -> str:
    if not source:
        return ""
    line = source.get("line")
    place = f"line {line}" if isinstance(line, int) else f"record {as_count(source.get('ordinal')) + 1}"
    return f"{brief(as_text(source.get('file')), 200)}, {place}"


def _facts(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    recorded, facets = as_map(row.get("recorded")), as_map(row.get("facets"))
    found += [(f"{key} (recorded)", _value(recorded[key])) for key in sorted(map(str, recorded), key=natural)]
    found += [(key, _value(facets[key])) for key in sorted(map(str, facets), key=natural)]
    if row.get("agent_id") is not None:
        found.append(("Agent", _value(row["agent_id"])))
    if row.get("ended") is not None:
        found.append(("Ended", _value(row["ended"])))
    if usage := as_map(row.get("usage")):
        found.append(("Took", ", ".join(f"{key} {_value(usage[key])}" for key in sorted(usage, key=natural))))
    if row.get("agent_usage") is not None:
        found.append(("Usage", _value(row["agent_usage"])))
    tools = [brief(tool, 60) for tool in as_list(row.get("tools"))]
    if tools:
        more = f" and {len(tools) - 30} more" if len(tools) > 30 else ""
        found.append((f"Tools ({len(tools)})", ", ".join(tools[:30]) + more))
    return tuple(found)


def _value(value: Any) -> str:
    return number(value) if as_number(value) is not None or isinstance(value, bool) else brief(value, 300)


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
    state, value = outcome(grade), score(grade)
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
    metadata = as_map(grade.get("metadata"))
    return GradeView(
        key=key,
        state=state,
        score=number(value) if value is not None else state,
        fraction=value,
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
        extra=lines(dict(metadata), (), min(limit, 2000)) if metadata else (),
    )


def _item_views(items: Sequence[Mapping[str, Any]]) -> tuple[ItemView, ...]:
    return tuple(
        ItemView(
            id=brief(item.get("id"), 120),
            outcome=outcome({**item, "state": item.get("outcome")}),
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

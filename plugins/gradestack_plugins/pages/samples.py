"""The drill-down of one sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text, compact
from gradestack_plugins.pages.calls import Comparison, compare, reason_text
from gradestack_plugins.pages.conversation import Conversation, SharedTexts, conversation
from gradestack_plugins.pages.index import Entry, all_reasons, outcome, score, shade
from gradestack_plugins.pages.jsonview import Line, lines
from gradestack_plugins.pages.text import Cut, brief, cut, natural, number, token

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
        prompts=tuple(cut(_text(prompt), limit) for prompt in _turns(task.get("input"))),
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


def _turns(value: Any) -> Iterable[Any]:
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
        items=_items(items),
        items_left_out=max(0, len(items) - _MOST_ITEMS),
        extra=lines(dict(metadata), (), min(limit, 2000)) if metadata else (),
    )


def _items(items: Sequence[Mapping[str, Any]]) -> tuple[ItemView, ...]:
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

"""The sample that the spans of one trace, or of one session, are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import force_setattr

from gradestack import IMPOSSIBLE_AMOUNT, Fault, Sample, Source, Status, ToolCall, replace
from gradestack.jsonio import as_map, as_number, compact
from gradestack_plugins.otel.dialects import (
    Answer,
    Execution,
    answer_of,
    execution_of,
    first_of,
    kind_of,
    specs_of,
)
from gradestack_plugins.otel.spans import Event, Log, Span
from gradestack_plugins.readers.chat import parse_arguments
from gradestack_plugins.readers.chat.conversation import Conversation, finish, text_or_none
from gradestack_plugins.readers.chat.identity import Identity
from gradestack_plugins.readers.chat.logs import log_sample
from gradestack_plugins.readers.chat.results import error_form, plain
from gradestack_plugins.readers.chat.usage import added

Place = tuple[str, str]  # a trace, and the id of a span in it
EVALUATION: Final = "gen_ai.evaluation.result"
_VERDICTS: Final = {"pass": 1.0, "fail": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


def sample_of(name: str, records: Iterable[Span | Log], source: Source) -> Sample:  # noqa: C901
    """Return the sample of a trace or session.

    Its spans and log records, in the order of the files.
    """
    given, remarks = list(records), dict[str, int]()
    recorded_spans = [each for each in given if isinstance(each, Span)]
    once = {(each.trace, each.id or number): each for number, each in enumerate(recorded_spans)}
    spans = sorted(once.values(), key=lambda span: span.start)
    if len(spans) < len(recorded_spans):  # exported again, as after a failure
        remarks["repeated_span"] = len(recorded_spans) - len(spans)
    logs: dict[Place, list[Event]] = {}
    for each in given:
        if isinstance(each, Log):
            logs.setdefault((each.trace, each.span), []).append(each.event)
    known = {(span.trace, span.id): span for span in spans}
    roots = [span for span in spans if (span.trace, span.parent) not in known]
    if roots and all(span.parent for span in roots):
        remarks["trace_without_root"] = 1
    kinds = [kind_of(span.attributes) for span in spans]
    answers = _answers(
        [span for span, kind in zip(spans, kinds, strict=True) if kind == "answer"], known, logs
    )
    talk = Conversation()
    _read(talk, [answer for _, answer in answers], [_agent(span, known) for span, _ in answers])
    for _ in range(sum(answer.bare for _, answer in answers)):
        talk.remark("call_without_arguments")
    for span, kind in zip(spans, kinds, strict=True):
        if kind == "tool":
            _execute(talk, execution_of(span), span, _agent(span, known))
    events = [
        *(event for span in spans for event in span.events),
        *(e for many in logs.values() for e in many),
    ]
    recorded = recorded_of(events, talk.remark)
    session = next(
        (found for span in spans if (found := session_of(span.attributes)) is not None), None
    )
    trace = {"trace_id": spans[0].trace if spans else name}
    if roots:
        trace["span_id"] = roots[0].id
    if session is not None:
        trace["session_id"] = session
    facets = {"service": spans[0].service} if spans and spans[0].service is not None else {}
    if impossible := sum(span.impossible_times for span in spans):
        remarks[IMPOSSIBLE_AMOUNT] = impossible
    seconds = _seconds(spans)
    usage = added(answer.usage for _, answer in answers)
    more: dict[str, Any] = {
        "model": next((answer.model for _, answer in reversed(answers) if answer.model), None),
        "tools": next(
            (specs for _, answer in answers if (specs := specs_of(answer.tools)) is not None), None
        ),
        "usage": replace(usage, seconds=seconds)
        if usage is not None and seconds is not None
        else usage,
        "recorded": recorded,
    }
    called = {
        span.id for span, kind in zip(spans, kinds, strict=True) if kind == "tool" and span.parent
    }
    broken = next(
        (span for span in roots if span.error is not None and span.id not in called), None
    )
    if broken is not None:
        named = text_or_none(broken.attributes.get("error.type")) or ""
        message = broken.error or named or f"the span {broken.name!r} ended in an error"
        fault = Fault(category="target", code="target_error", message=message, type=named)
        more |= {"status": Status.FAILED, "error": fault, "ended": "error"}
    return log_sample(Identity(name, None, session, trace, facets, remarks), talk, source, **more)


def session_of(known: Mapping[str, Any]) -> str | None:
    """Return the id of the session that the attributes of a span name."""
    return text_or_none(first_of(known, "session"))


def _above(span: Span, known: Mapping[Place, Span]) -> Iterator[Span]:
    """Yield the spans above one, nearest first; a circle ends."""
    seen = {span.id}
    while (parent := known.get((span.trace, span.parent))) is not None and parent.id not in seen:
        seen.add(parent.id)
        yield parent
        span = parent


def _agent(span: Span, known: Mapping[Place, Span]) -> str | None:
    named = (
        text_or_none(each.attributes.get("gen_ai.agent.name"))
        for each in (span, *_above(span, known))
    )
    return next(filter(None, named), None)


def _answers(
    spans: Sequence[Span], known: Mapping[Place, Span], logs: Mapping[Place, Sequence[Event]]
) -> list[tuple[Span, Answer]]:
    found: dict[Place, tuple[Span, Answer]] = {}
    for span in spans:
        place = (span.trace, span.id)
        found[place] = (span, answer_of(span, logs.get(place, ())))
    for span, answer in list(found.values()):
        outer = next((each for each in _above(span, known) if (each.trace, each.id) in found), None)
        if outer is None:
            continue
        of_outer = found[outer.trace, outer.id][1]
        if not of_outer.said:
            of_outer.history, of_outer.said = answer.history or of_outer.history, answer.said
        of_outer.usage = answer.usage or of_outer.usage
        of_outer.tools = answer.tools if of_outer.tools is None else of_outer.tools
        of_outer.model = of_outer.model or answer.model
        del found[span.trace, span.id]
    return list(found.values())


def _read(talk: Conversation, answers: Sequence[Answer], agents: Sequence[str | None]) -> None:
    """Read what answers say, and of the messages that each was asked with those that are new.

    Calls count in an answer's own messages; in those it was asked with only where no answer is
    recorded.
    """
    several, anything = len(set(agents)) > 1, any(answer.said for answer in answers)
    read: list[str] = []
    for answer, agent in zip(answers, agents, strict=True):
        asked, same = [*map(_told, answer.history)], 0
        while same < min(len(read), len(asked)) and read[same] == asked[same]:
            same += 1
        new = [
            each
            for each in answer.history[same:]
            if not anything or as_map(each).get("role") != "assistant"
        ]
        if same < len(
            read
        ):  # another conversation, or one that was shortened: what was said before is known
            told = set(read)
            new = [each for each in new if _told(each) not in told]
        said = [
            {**each, "author": agent} if several and isinstance(each, dict) else each
            for each in answer.said
        ]
        talk.read([*new, *said])
        read = [
            *(asked if same == len(read) else [*read, *map(_told, new)]),
            *map(_told, answer.said),
        ]


def _told(message: Any) -> str:
    """Return what tells one message from another: role, text, calls and the call it answers."""
    known = as_map(message)
    content = plain(known.get("content"))
    calls = [
        [call.get("id"), as_map(call.get("function", call)).get("name")]
        for call in map(as_map, known.get("tool_calls") or ())
    ]
    return repr((known.get("role"), content or "", calls, known.get("tool_call_id")))


def _execute(talk: Conversation, made: Execution, span: Span, agent: str | None) -> None:
    """Hand the execution of a call to the call it is of.

    One that no answer made is a call of its own.
    """
    call = _call_of(talk, made)
    if call is None:
        talk.step = max(talk.step, 0)
        call = talk.made(
            "function", made.id, made.name, parse_arguments(made.arguments), author=agent
        )
        if made.arguments is None:
            talk.remark("call_without_arguments")
    if call.status is None:
        found = error_form(plain(made.result)) if made.error is None else None
        error = made.error if found is None else found.message
        result = made.result if made.result is not None else error
        finish(call, plain(result), error, made.error_type if found is None else found.type)
    elif made.error is not None and call.status != "denied":
        finish(call, call.result, call.error or made.error, made.error_type or call.error_type)
    if span.start and span.end >= span.start:
        force_setattr(call, "seconds", (span.end - span.start) / 1e9)
        force_setattr(call, "started", datetime.fromtimestamp(span.start / 1e9, UTC).isoformat())


def _call_of(talk: Conversation, made: Execution) -> ToolCall | None:
    """Return the call of its id, else the first of its name, that no execution has been
    found for.
    """
    free = [call for call in talk.calls if call.started is None]
    named = next((call for call in free if made.id is not None and call.id == made.id), None)
    if named is not None:
        return named
    known = made.id is not None and any(call.id is not None for call in free)
    return next(
        (call for call in free if call.name == made.name and (not known or call.id is None)), None
    )


def _seconds(spans: list[Span]) -> float | None:
    """Return how long a run took: from its first start to its last end.

    None where a span has no start, or a time that cannot be one.
    """
    if not spans or any(span.impossible_times or not span.start for span in spans):
        return None
    seconds = (max(span.end for span in spans) - spans[0].start) / 1e9
    return seconds if seconds > 0 else None


def recorded_of(
    events: Iterable[Event], remark: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Return the scores, or labels, that events say, by their names, with their explanations.

    The last of a name.
    """
    found, explained = dict[str, Any](), dict[str, Any]()
    for event in events:
        known = {**as_map(event.body), **event.attributes}
        name, given = (
            known.get("gen_ai.evaluation.name"),
            known.get("gen_ai.evaluation.score.value"),
        )
        if event.name != EVALUATION or not isinstance(name, str):
            continue
        label, said = (
            known.get("gen_ai.evaluation.score.label"),
            known.get("gen_ai.evaluation.explanation"),
        )
        score = as_number(given)
        if score is None:
            score = _VERDICTS.get(str(given if isinstance(given, bool) else label).lower())
        if score is None and label is None:
            if given is not None:
                remark("unreadable_score")
            continue
        if name in found:
            remark("repeated_score")
        found[name] = label if score is None else score
        if said:
            explained[name] = said if isinstance(said, str) else compact(said)
    return {**found, "explanations": explained} if explained else found

"""One BFCL result as a sample, joined with its question, its possible answer and its score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import attrs
import msgspec

from gradestack import (
    IMPOSSIBLE_AMOUNT,
    JSON,
    Expectation,
    Fault,
    Message,
    Sample,
    Source,
    Status,
    ToolCall,
    Usage,
    impossible_amounts,
    replace,
)
from gradestack.jsonio import as_amount, as_list, as_map, as_number
from gradestack_plugins.bfcl.side_files import (
    Question,
    SideFiles,
    find,
    id_today,
    parameter_names,
    spellings,
)
from gradestack_plugins.bfcl.texts import calls_of_text, is_not_decoded
from gradestack_plugins.readers.chat import parse_arguments, text_of
from gradestack_plugins.readers.chat.names import call_of
from gradestack_plugins.readers.chat.unread import NOT_DECODED, NOT_READ, not_read, unread_part
from gradestack_plugins.readers.declared import Items, convert_record

_FAILED = "Error during inference:"
"""How a result begins for which the model could not be asked."""
_FAILED_CALLS = ("Error during execution:", '{"error"', "{'error'")
"""How the answers of functions begin that went wrong."""
_MOST_SUMMED = 1_000_000


class BfclRun(msgspec.Struct, frozen=True):
    """What the grader of this family knows beside the general fields.

    The failure its score file lists.
    """

    failure: Mapping[str, JSON] | None = None


class Result(msgspec.Struct):
    """One result of a model, as far as it is read."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    result: str | list[Any]
    input_token_count: Any = None
    output_token_count: Any = None
    latency: Any = None
    reasoning_content: Any = None
    inference_log: Items = None


@attrs.define(eq=False)
class Reply:
    """What a model answered, step by step."""

    question: Question
    calls: list[ToolCall] = attrs.field(factory=list)
    text: str | None = None
    remarks: Counter[str] = attrs.field(factory=Counter)
    step: int = 0
    _names: Mapping[str, str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._names = spellings(self.question.tools)

    @property
    def is_read(self) -> bool:
        """Whether all calls were decoded."""
        return not any(self.remarks[kind] for kind in self.remarks if kind.startswith(NOT_READ))

    def take(
        self, answer: Any, turn: int, results: list[Any], reasoning: str | None = None
    ) -> list[Message]:
        """Take up one answer of the model and return its messages.

        Each call is given the result of its place.
        """
        made = list(self._made(answer, turn))
        answered = [_answered(call, result) for call, result in zip(made, results, strict=False)]
        made[: len(answered)] = answered
        if len(results) > len(made):
            self.remarks["result_without_call"] += len(results) - len(made)
        self.calls += made
        self.step += 1
        said = None if made else (answer if isinstance(answer, str) else text_of(answer)) or None
        self.text = said if said is not None else self.text
        spoken = Message(
            role="assistant", content=said, tool_calls=tuple(made), reasoning=reasoning
        )
        return [spoken, *(Message(role="tool", content=call.result) for call in answered)]

    def _made(self, answer: Any, turn: int) -> Iterator[ToolCall]:
        if isinstance(answer, str):
            yield from self._of_text(answer, turn)
            return
        for entry in as_list(answer):
            if not isinstance(entry, dict):
                self.remarks[not_read("entry of a result that is no object")] += bool(entry)
                continue
            yield from self._of_entry(entry, turn)

    def _of_text(self, answer: str, turn: int) -> Iterator[ToolCall]:
        """Yield the calls of a text, in any form that a handler of BFCL decodes."""
        names = parameter_names(self.question.tools)
        found = calls_of_text(answer, names)
        if found is None and is_not_decoded(answer, names):
            self.remarks[NOT_DECODED] += 1
        for call in found or ():
            if isinstance(call, dict):
                yield from self._of_entry(call, turn)
                continue
            raw = call.text if call.arguments is None else None
            self.remarks["arguments_not_literal"] += raw is not None
            yield self._call(call.name, call.arguments, raw, turn)

    def _of_entry(self, entry: dict[str, Any], turn: int) -> Iterator[ToolCall]:
        """Yield the calls of an object: ``{NAME: ARGUMENTS}``, or a name beside arguments."""
        found, _ = call_of(entry)
        if found is not entry and "arguments" in found and "name" not in entry.keys() - {"name"}:
            entry = {found["name"]: found["arguments"]}
        elif (kind := unread_part(entry)) is not None:
            self.remarks[not_read(kind)] += 1
            return
        for name, given in entry.items():
            arguments, raw = parse_arguments(given)
            self.remarks["arguments_undecodable"] += arguments is None
            yield self._call(name, arguments, raw, turn)

    def _call(
        self, name: str, arguments: dict[str, JSON] | None, raw: str | None, turn: int
    ) -> ToolCall:
        name = self._names.get(name, name)
        return ToolCall(
            name=name, arguments=arguments, raw_arguments=raw, turn=turn, step=self.step
        )


def _answered(call: ToolCall, result: Any) -> ToolCall:
    wrong = isinstance(result, str) and result.lstrip().startswith(_FAILED_CALLS)
    return replace(
        call, result=result, error=result if wrong else None, status="error" if wrong else "ok"
    )


def sample_of(
    record: Any,
    source: Source,
    side: SideFiles,
    *,
    model: str | None,
    category: str,
    scored: str,
) -> Sample:
    """Return the sample of one result.

    Raises:
        ValueError: It has no id by which it is joined with its question, or no result.
    """
    result, wrong = convert_record(record, Result)
    identifier, answer = result.id, result.result
    question = find(side.questions, identifier)
    reply = Reply(question or Question())
    reply.remarks.update(wrong)
    broken = answer if isinstance(answer, str) and answer.startswith(_FAILED) else None
    turns = () if broken else _turns(result, reply)
    expected, known = expected_of(side, identifier, category)
    reply.remarks["ground_truth_unusable"] += not known
    reply.remarks["question_missing"] += bool(side.questions) and question is None
    failure, recorded = _verdict(side, scored, identifier)
    status, error = Status.OK, None
    if broken is not None:
        status, error = (
            Status.FAILED,
            Fault(category="target", code="inference_error", message=broken),
        )
    amounts = [result.input_token_count, result.output_token_count, result.latency]
    reply.remarks[IMPOSSIBLE_AMOUNT] += impossible_amounts(amounts)
    return Sample(
        id=identifier,
        model=model,
        input=asked(question),
        turns=turns,
        calls=tuple(reply.calls) if broken is None and reply.is_read else None,
        text=reply.text,
        tools=question.tools if question else None,
        expected=expected,
        recorded=recorded,
        status=status,
        error=error,
        usage=_usage(result),
        facets={"category": category},
        remarks={kind: number for kind, number in reply.remarks.items() if number},
        source=source,
        native=BfclRun(failure),
    )


def expected_of(side: SideFiles, identifier: str, category: str) -> tuple[Expectation, bool]:
    """Return what is expected, and whether that could be read.

    Where nothing must be called, that is a reference.
    """
    found = find(side.answers, identifier)
    if found is not None:
        return found, True
    known = identifier not in side.answers
    return Expectation(calls=()) if "irrelevance" in category else Expectation(), known


def asked(question: Question | None) -> str | tuple[str, ...] | None:
    """Return what the user asked: a text, or one per turn."""
    if question is None:
        return None
    said = [
        "\n".join(text_of(each.get("content")) for each in turn if each.get("role") == "user")
        for turn in question.turns
    ]
    return said[0] if len(said) == 1 else tuple(said)


def _verdict(
    side: SideFiles, scored: str, identifier: str
) -> tuple[Mapping[str, JSON] | None, dict[str, JSON]]:
    """Return why an entry failed, and its verdict.

    Failures are listed, all others passed, if all were scored.
    """
    scores = side.scores.get(scored)
    if scores is None:
        return None, {}
    failure = scores.failures.get(id_today(identifier))
    if failure is not None:
        return failure, {"valid": False}
    return None, {"valid": True} if scores.complete else {}


def _turns(result: Result, reply: Reply) -> tuple[tuple[Message, ...], ...]:
    answer, reasoning = result.result, result.reasoning_content
    questions = [
        [Message(role=str(each.get("role", "")), content=each.get("content")) for each in turn]
        for turn in reply.question.turns
    ]
    if not (answer and isinstance(answer, list) and all(isinstance(each, list) for each in answer)):
        said = reply.take(answer, 0, [], reasoning if isinstance(reasoning, str) else None)
        return ((*(questions[0] if questions else ()), *said),)
    logged = _logged(result.inference_log or [])
    found = []
    for turn, steps in enumerate(answer):
        asked_now = questions[turn] if turn < len(questions) else []
        replies: list[Message] = []
        for step, each in enumerate(as_list(steps)):
            results = logged[turn][step] if turn < len(logged) and step < len(logged[turn]) else []
            replies += reply.take(each, turn, results, _nested(reasoning, turn, step))
        found.append((*asked_now, *replies))
    return tuple(found)


def _nested(value: Any, turn: int, step: int) -> str | None:
    turns = as_list(value)
    steps = as_list(turns[turn]) if turn < len(turns) else ()
    said = steps[step] if step < len(steps) else None
    return said if isinstance(said, str) and said else None


def _logged(log: list[Any]) -> list[list[list[Any]]]:
    """Return what the functions answered, by turn and step, as the log of the run has it."""
    found = []
    for turn in log:
        if isinstance(turn, dict) and "begin_of_turn_query" in turn:
            steps = [
                map(as_map, as_list(each)) for key, each in turn.items() if key.startswith("step_")
            ]
            found.append(
                [
                    [each.get("content") for each in step if each.get("role") == "tool"]
                    for step in steps
                ]
            )
    return found


def _usage(result: Result) -> Usage | None:
    tokens = [_sum(result.input_token_count), _sum(result.output_token_count)]
    seconds = _sum(result.latency)
    if seconds is None and tokens == [None, None]:
        return None
    amounts = map(as_amount, tokens)
    read, written = (None if amount is None else int(amount) for amount in amounts)
    return Usage(input_tokens=read, output_tokens=written, seconds=seconds)


def _sum(value: Any) -> float | None:
    if not isinstance(value, list):
        return as_number(value)
    waiting: list[Any] = [value]
    total, seen = None, 0
    while waiting and seen < _MOST_SUMMED:
        each = waiting.pop()
        seen += 1
        if isinstance(each, list):
            waiting += each
        elif (number := as_number(each)) is not None:
            total = number if total is None else total + number
    return total


def question_sample(identifier: str, source: Source, side: SideFiles, category: str) -> Sample:
    """Return the sample of a question that nothing has answered.

    A reference to be joined with runs.
    """
    question = find(side.questions, identifier)
    expected, known = expected_of(side, identifier, category)
    return Sample(
        id=identifier,
        input=asked(question),
        tools=question.tools if question else None,
        expected=expected,
        facets={"category": category},
        remarks={} if known else {"ground_truth_unusable": 1},
        source=source,
    )

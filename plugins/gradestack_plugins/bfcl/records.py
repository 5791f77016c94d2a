"""One BFCL result as a sample, joined with its question, its possible answer and its score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

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
from gradestack_plugins.readers.chat.calls import call_of
from gradestack_plugins.readers.chat.unread import NOT_DECODED, NOT_READ, not_read, unread_part
from gradestack_plugins.readers.declared import Items, convert_record

_FAILED = "Error during inference:"
"""The beginning of a result where the model could not be asked."""
_FAILED_CALLS = ("Error during execution:", '{"error"', "{'error'")
"""Beginnings of the results of functions that failed."""
_MOST_SUMMED = 1_000_000


class BfclRun(msgspec.Struct, frozen=True):
    """The failure in a score file, which the grader of this family knows beside the sample."""

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


class Reply:
    """Reads the answers of a model, step by step.

    Attributes:
        calls: The calls so far.
        text: The last answer that is no call.
        remarks: What was left out, by kind.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self.calls: list[ToolCall] = []
        self.text: str | None = None
        self.remarks: Counter[str] = Counter()
        self._step = 0
        self._names = spellings(question.tools)
        self._parameters = parameter_names(question.tools)

    @property
    def is_read(self) -> bool:
        """Whether all calls were decoded."""
        return not any(kind.startswith(NOT_READ) for kind in +self.remarks)

    def read_answer(
        self, output: Any, turn: int, results: list[Any], reasoning: str | None = None
    ) -> list[Message]:
        """Read one output of the model and return its messages.

        Args:
            output: A text, or objects of calls.
            turn: The turn of the question.
            results: The results of its calls, in order.
            reasoning: The reasoning before it.
        """
        calls = list(self._calls_of(output, turn))
        for index, result in enumerate(results[: len(calls)]):
            calls[index] = _with_result(calls[index], result)
        if len(results) > len(calls):
            self.remarks["result_without_call"] += len(results) - len(calls)
        self.calls += calls
        self._step += 1
        reply_text = None
        if not calls:
            reply_text = (output if isinstance(output, str) else text_of(output)) or None
        self.text = self.text if reply_text is None else reply_text
        reply = Message(
            role="assistant", content=reply_text, tool_calls=tuple(calls), reasoning=reasoning
        )
        answered = calls[: len(results)]
        return [reply, *(Message(role="tool", content=call.result) for call in answered)]

    def _calls_of(self, output: Any, turn: int) -> Iterator[ToolCall]:
        """Yield the calls of a recorded answer, a text or a list of objects; remark others."""
        if isinstance(output, str):
            yield from self._calls_of_text(output, turn)
            return
        for entry in as_list(output):
            if isinstance(entry, dict):
                yield from self._calls_of_entry(entry, turn)
            elif entry:
                self.remarks[not_read("entry of a result that is no object")] += 1

    def _calls_of_text(self, output: str, turn: int) -> Iterator[ToolCall]:
        """Yield the calls of a text, in any form that a handler of BFCL decodes."""
        written = calls_of_text(output, self._parameters)
        if written is None and is_not_decoded(output, self._parameters):
            self.remarks[NOT_DECODED] += 1
        for call in written or ():
            if isinstance(call, dict):
                yield from self._calls_of_entry(call, turn)
                continue
            raw = call.text if call.arguments is None else None
            self.remarks["arguments_not_literal"] += raw is not None
            yield self._call(call.name, call.arguments, raw, turn)

    def _calls_of_entry(self, entry: dict[str, Any], turn: int) -> Iterator[ToolCall]:
        """Yield the calls of an object: ``{NAME: ARGUMENTS}``, or a name beside arguments."""
        call, _ = call_of(entry)
        has_name = (
            call is not entry and "arguments" in call and "name" not in entry.keys() - {"name"}
        )
        if has_name:
            entry = {call["name"]: call["arguments"]}
        else:
            unread = unread_part(entry)
            if unread is not None:
                self.remarks[not_read(unread)] += 1
                return
        for name, recorded in entry.items():
            arguments, raw = parse_arguments(recorded)
            self.remarks["arguments_undecodable"] += arguments is None
            yield self._call(name, arguments, raw, turn)

    def _call(
        self, name: str, arguments: dict[str, JSON] | None, raw: str | None, turn: int
    ) -> ToolCall:
        call = ToolCall(name=self._names.get(name, name), arguments=arguments, raw_arguments=raw)
        return replace(call, turn=turn, step=self._step)


def _with_result(call: ToolCall, result: Any) -> ToolCall:
    has_failed = isinstance(result, str) and result.lstrip().startswith(_FAILED_CALLS)
    if has_failed:
        return replace(call, result=result, error=result, status="error")
    return replace(call, result=result, status="ok")


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

    Args:
        record: The result as recorded.
        source: Its place.
        side: Questions, possible answers and scores.
        model: The name of the model.
        category: The category of its file.
        scored: The path of its file, under which the scores are found.

    Raises:
        ValueError: The record has no id by which it is joined with its question, or no result.
    """
    result, field_remarks = convert_record(record, Result)
    identifier, output = result.id, result.result
    question = find(side.questions, identifier)
    reply = Reply(question or Question())
    reply.remarks.update(field_remarks)
    has_failed = isinstance(output, str) and output.startswith(_FAILED)
    turns = () if has_failed else _turns(result, reply)
    expected, truth_is_readable = expected_of(side, identifier, category)
    reply.remarks["ground_truth_unusable"] += not truth_is_readable
    reply.remarks["question_missing"] += bool(side.questions) and question is None
    amounts = [result.input_token_count, result.output_token_count, result.latency]
    reply.remarks[IMPOSSIBLE_AMOUNT] += impossible_amounts(amounts)
    failure, recorded = _verdict(side, scored, identifier)
    sample = Sample(
        id=identifier,
        model=model,
        input=user_question(question),
        turns=turns,
        calls=tuple(reply.calls) if reply.is_read and not has_failed else None,
        text=reply.text,
        tools=question.tools if question else None,
        expected=expected,
        recorded=recorded,
        usage=_usage(result),
        facets={"category": category},
        remarks=dict(+reply.remarks),
        source=source,
        native=BfclRun(failure),
    )
    if not has_failed:
        return sample
    fault = Fault(category="target", code="inference_error", message=str(output))
    return replace(sample, status=Status.FAILED, error=fault)


def expected_of(side: SideFiles, identifier: str, category: str) -> tuple[Expectation, bool]:
    """Return an entry's expectation, and False if its ground truth is there but unreadable.

    An entry of an irrelevance category without a ground truth expects that nothing is called.

    Returns:
        The expectation, empty where nothing is known; and whether the ground truth is usable.
    """
    expected = find(side.answers, identifier)
    if expected is not None:
        return expected, True
    truth_is_readable = identifier not in side.answers
    expects_no_call = "irrelevance" in category
    return Expectation(calls=()) if expects_no_call else Expectation(), truth_is_readable


def user_question(question: Question | None) -> str | tuple[str, ...] | None:
    """Return the user's question: a text, or one per turn."""
    if question is None:
        return None
    texts = []
    for turn in question.turns:
        user_messages = [message for message in turn if message.get("role") == "user"]
        texts.append("\n".join(text_of(message.get("content")) for message in user_messages))
    if len(texts) == 1:
        return texts[0]
    return tuple(texts)


def _verdict(
    side: SideFiles, scored: str, identifier: str
) -> tuple[Mapping[str, JSON] | None, dict[str, JSON]]:
    """Return why an entry failed, and its verdict.

    A score file lists failures only: if it scored all entries, the others passed.

    Returns:
        The failure in the score file, or None; and ``valid``, nothing where that is unknown.
    """
    scores = side.scores.get(scored)
    if scores is None:
        return None, {}
    failure = scores.failures.get(id_today(identifier))
    if failure is not None:
        return failure, {"valid": False}
    return None, {"valid": True} if scores.complete else {}


def _turns(result: Result, reply: Reply) -> tuple[tuple[Message, ...], ...]:
    """Return the messages of each turn, and read the outputs of the model into the reply."""
    output, reasoning = result.result, result.reasoning_content
    questions = list(map(_messages_of, reply.question.turns))
    is_multi_turn = bool(output) and all(isinstance(turn, list) for turn in output)
    if not is_multi_turn:
        thought = reasoning if isinstance(reasoning, str) else None
        messages = reply.read_answer(output, 0, [], thought)
        return ((*_at(questions, 0), *messages),)
    logged = _logged_results(result.inference_log or [])
    turns = []
    for turn, steps in enumerate(output):
        messages = list(_at(questions, turn))
        for step, step_output in enumerate(steps):
            results = _at(_at(logged, turn), step)
            thought = _at(_at(reasoning, turn), step)
            is_thought = isinstance(thought, str) and bool(thought)
            messages += reply.read_answer(
                step_output, turn, results, thought if is_thought else None
            )
        turns.append(tuple(messages))
    return tuple(turns)


def _messages_of(turn: Iterable[Mapping[str, Any]]) -> list[Message]:
    return [
        Message(role=str(message.get("role", "")), content=message.get("content"))
        for message in turn
    ]


def _at(listed: Any, index: int) -> Any:
    """Return an entry of a list; an empty list where there is none."""
    entries = as_list(listed)
    if index < len(entries):
        return entries[index]
    return []


def _logged_results(log: list[Any]) -> list[list[list[Any]]]:
    """Return the results of functions by turn and step, as the log of the run has them."""
    turns = []
    for turn in log:
        if isinstance(turn, dict) and "begin_of_turn_query" in turn:
            names = [name for name in turn if name.startswith("step_")]
            results = [_results_in(turn[name]) for name in names]
            turns.append(results)
    return turns


def _results_in(step: Any) -> list[Any]:
    messages = [as_map(message) for message in as_list(step)]
    return [message.get("content") for message in messages if message.get("role") == "tool"]


def _usage(result: Result) -> Usage | None:
    input_tokens = _count(result.input_token_count)
    output_tokens = _count(result.output_token_count)
    seconds = _sum(result.latency)
    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        seconds=seconds,
    )
    return None if usage == Usage() else usage


def _count(value: Any) -> int | None:
    amount = as_amount(_sum(value))
    return None if amount is None else int(amount)


def _sum(value: Any) -> float | None:
    """Return a number, or the sum of the numbers in lists of them; None without any."""
    if not isinstance(value, list):
        return as_number(value)
    waiting: list[Any] = [value]
    numbers: list[float] = []
    for _ in range(_MOST_SUMMED):
        if not waiting:
            break
        entry = waiting.pop()
        if isinstance(entry, list):
            waiting += entry
            continue
        number = as_number(entry)
        if number is not None:
            numbers.append(number)
    total = None
    for number in numbers:
        if total is None:
            total = number
        else:
            total = total + number
    return total


def question_sample(identifier: str, source: Source, side: SideFiles, category: str) -> Sample:
    """Return the sample of a question without an answer: a reference to be joined with runs."""
    question = find(side.questions, identifier)
    expected, truth_is_readable = expected_of(side, identifier, category)
    return Sample(
        id=identifier,
        input=user_question(question),
        tools=question.tools if question else None,
        expected=expected,
        facets={"category": category},
        remarks={} if truth_is_readable else {"ground_truth_unusable": 1},
        source=source,
    )

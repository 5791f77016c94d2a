"""Histories by library: the messages of a run, and what its library records beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from typing_extensions import override

from gradestack import JSON, Expectation, Input, Usage
from gradestack.jsonio import as_list, as_map, as_number, first_records
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.dialect import of_entries
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.declared import Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.96


class AutoGenState(RunReader):
    """Reads the states that AutoGen's agents and teams save, a JSON document each.

    The run of a team is the thread of its manager.
    """

    example_file = "team_state.json"
    version = "1"
    records_are_runs = True
    marks = (("type", "version", "llm_context"), ("type", "version", "agent_states"))

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        is_state = word(record, "type").endswith("State")
        return _SURE if is_state and _thread_of(record) else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for number, (state, source) in enumerate(records):
            identifier = f"{file.name}:{number}" if number else file.name
            thread = _thread_of(state)
            yield Run(id=identifier, entries=thread, source=source, first=state)


def _thread_of(state: Any) -> list[Any]:
    """Return the messages in a state of an agent, or of a team."""
    llm_context = as_map(as_map(state).get("llm_context"))
    messages = llm_context.get("messages")
    if isinstance(messages, list):
        return messages
    agent_states = as_map(as_map(state).get("agent_states"))
    for agent in agent_states.values():
        agent_state = as_map(as_map(agent).get("agent_state", agent))
        thread = agent_state.get("message_thread")
        if isinstance(thread, list) and thread:
            return thread
    return []


class LangGraph(RunReader):
    """Reads the streams of LangGraph's graphs: updates by node, values, and events.

    A file of updates is one run. A stream of values holds states of a graph. The last state of each
    conversation is a run; states that begin with the same message are of one conversation. The
    outermost run of events is a run with its last messages: those at its end, else those at the
    start of its last node.
    """

    example_file = "updates.jsonl"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        is_event = word(record, "event").startswith("on_") and "parent_ids" in as_map(record)
        is_state = isinstance(record, list) and bool(_state_of(record))
        is_update = _updates_of(record) is not None
        return _SURE if is_event or is_state or is_update else 0.0

    @classmethod
    @override
    def recognised(cls, path: Path, head: bytes) -> float | None:
        first = [_state_of(element.value) for element, _ in first_records(head, cls.sniffed)]
        states = first if all(first) else []
        if len(states) > 1 and all(_continues(*pair) for pair in pairwise(states)):
            return _SURE
        return super().recognised(path, head)

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        if record in _MODES or cls.looks_like(record) or _state_of(record):
            return True
        states = as_map(_chunk_of(record)).values()
        return bool(states) and not any("messages" in as_map(state) for state in states)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        updates = Run(id=file.name, entries=[])
        states: dict[str, Run] = {}
        events: dict[str, Run] = {}
        for value, source in records:
            state = _state_of(value)
            update = _updates_of(value)
            ended = _messages_in_event(value)
            if state:
                name = f"{file.name}:{len(states)}" if states else file.name
                message_id = _message_id(state)
                run = states.setdefault(message_id, Run(id=name, entries=[], source=source))
                run.first, run.entries = value, state
            elif update:
                updates.source = updates.source or source
                updates.first = updates.first or value
                updates.entries += update
            elif ended:
                name = _outermost(value)
                run = events.setdefault(name, Run(id=name, entries=[], trace={"trace_id": name}))
                run.entries = ended
        if updates.entries:
            yield updates
        yield from (*states.values(), *events.values())


_MODES: Final = ("values", "updates", "messages", "custom", "debug", "tasks", "checkpoints")
"""Modes that a line names before its chunk, where a graph streams several of them."""


def _chunk_of(record: Any) -> Any:
    """Return the chunk of a stream: of several modes, or of subgraphs, the last of a list."""
    return record[-1] if isinstance(record, list) and record else record


def _updates_of(record: Any) -> list[Any] | None:
    """Return the messages that nodes add in an update; None of another record."""
    chunk = as_map(_chunk_of(record))
    states = [state for state in chunk.values() if state is not None]
    if not chunk or not all(isinstance(as_map(state).get("messages"), list) for state in states):
        return None
    messages = [entry for state in states for entry in state["messages"]]
    entries = of_entries(messages)
    return messages if entries is not None else None


def _state_of(record: Any) -> list[Any]:
    """Return the messages of a graph's state; an empty list for another record.

    LangChain's messages, each with an id, are a state: lists of messages alone are anybody's.
    """
    chunk = as_map(_chunk_of(record))
    messages = as_list(chunk.get("messages"))
    return [*messages] if messages and _message_id(messages) else []


def _message_id(messages: Sequence[Any]) -> str:
    """Return the id of the first of LangChain's messages; "" of other messages."""
    first = messages[0]
    message = dict(as_map(as_map(first).get("kwargs", first)))
    return word(message, "id") if "type" in message and "content" in message else ""


def _continues(state: Sequence[Any], later: Sequence[Any]) -> bool:
    """Return whether a later state of a conversation continues an earlier one."""
    message_id = _message_id(state)
    return message_id == _message_id(later) and len(state) <= len(later)


def _outermost(event: Any) -> str:
    """Return the id of the outermost run that an event belongs to."""
    parent_ids = as_map(event).get("parent_ids")
    parents = as_list(parent_ids)
    return str(parents[0]) if parents else word(event, "run_id")


def _messages_in_event(event: Any) -> list[Any]:
    """Return the messages of a graph's state at its end, or at the start of a node."""
    kind = word(event, "event")
    data = as_map(as_map(event).get("data"))
    parent_ids = as_list(as_map(event).get("parent_ids"))
    is_inner = bool(parent_ids)
    state: Any = None
    if kind == "on_chain_end" and not is_inner:
        state = data.get("output")
    elif kind == "on_chain_start":
        state = data.get("input")
    messages = as_map(state).get("messages")
    return [*as_list(messages)]


class _Metrics(msgspec.Struct, frozen=True):
    """Usage and cost of an instance of OpenHands."""

    accumulated_cost: Any = None
    accumulated_token_usage: Object = None


class _Instance(msgspec.Struct):
    """A line of OpenHands' output."""

    instance_id: Any = None
    history: list[Any] = []
    metrics: _Metrics = _Metrics()
    metadata: Object = None
    test_result: Object = None
    error: Any = None


class OpenHands(RunReader):
    """Reads ``output.jsonl`` of OpenHands' evaluations: an instance with its history a line.

    The id is the instance's. The verdicts of the test (``report.resolved`` and the like) are
    recorded, and an error ends the run.
    """

    example_file = "output.jsonl"
    version = "1"
    records_are_runs = True
    keys: ClassVar = frozenset({"instance_id", "history", "test_result"})

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        keys = as_map(record).keys()
        return _SURE if cls.keys <= keys else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return "instance_id" in as_map(record)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for line, source in records:
            instance, remarks = convert_record(line, _Instance)
            fallback_id = f"{file.name}:{source.ordinal}"
            run = _run_of_instance(instance, fallback_id)
            run.source = source
            run.first = line
            run.remarks = remarks
            yield run


def _run_of_instance(instance: _Instance, fallback_id: str) -> Run:
    """Build the run of an OpenHands evaluation: history, verdicts of its report, usage, error."""
    recorded_id = instance.instance_id
    run = Run(id=fallback_id if recorded_id is None else str(recorded_id), entries=[])
    for event in instance.history:
        run.entries += event if isinstance(event, list) else [event]
    llm_config = as_map(instance.metadata).get("llm_config")
    run.model = word(llm_config, "model") or None
    run.error = instance.error or None
    test_result = as_map(instance.test_result)
    report = as_map(test_result.get("report"))
    run.recorded = {name: value for name, value in report.items() if isinstance(value, bool)}
    cost = as_number(instance.metrics.accumulated_cost)
    usage = usage_of(instance.metrics.accumulated_token_usage)
    if usage is not None:
        tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        run.usage = Usage(**tokens, cost_usd=cost)
    elif cost is not None:
        run.usage = Usage(cost_usd=cost)
    return run


class _Sample(msgspec.Struct, frozen=True):
    """Question, answer, model and usage of an output item."""

    input: list[Any] = []
    output: list[Any] = []
    model: Text = None
    usage: Any = None
    error: Any = None


class _Result(msgspec.Struct):
    """The result of one grader."""

    name: str = ""
    score: float | bool | None = None
    passed: bool | None = None


class _Item(msgspec.Struct):
    """An output item of the Evals API."""

    id: Any = None
    status: Text = None
    results: list[_Result] = []
    sample: _Sample = _Sample()


class OpenAIEvals(RunReader):
    """Reads output items of OpenAI's Evals API, and record logs of ``openai/evals``.

    The score of each grader is recorded by its name. Of a log the verdict ``correct`` is recorded,
    and the expected text is the reference.
    """

    example_file = "output_items.json"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if _items_of(record):
            return _SURE
        keys = as_map(record).keys()
        if keys >= {"sample_id", "type", "data", "run_id"}:
            return _SURE
        return 0.0 if keys.isdisjoint({"final_report", "spec"}) else None

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        events: dict[str, list[dict[str, Any]]] = {}
        model: str | None = None
        for value, source in records:
            for item in _items_of(value):
                run = _run_of_item(item)
                run.source, run.first = source, item
                yield run
            spec = as_map(value).get("spec")
            completion_fns = as_map(spec).get("completion_fns")
            names = as_list(completion_fns)
            model = str(names[0]) if names else model
            if word(value, "sample_id"):
                events.setdefault(value["sample_id"], []).append(value)
        for name, own_events in events.items():
            run = _run_of_log(name, own_events)
            run.model = model
            yield run


def _items_of(record: Any) -> list[dict[str, Any]]:
    """Return the output items that a page of them, or a record, holds."""
    listed = as_list(as_map(record).get("data")) or [record]
    return [item for item in listed if word(item, "object") == "eval.run.output_item"]


def _run_of_item(recorded: dict[str, Any]) -> Run:
    """Build the run of an item of OpenAI Evals: input and output, scores by name of the grader."""
    item, remarks = convert_record(recorded, _Item)
    sample = item.sample
    entries = [*sample.input, *sample.output]
    run = Run(id=str(item.id), entries=entries, remarks=remarks)
    run.model = sample.model
    run.error = sample.error
    run.usage = usage_of(sample.usage)
    scores: dict[str, JSON] = {}
    for result in item.results:
        score = result.passed if result.score is None else result.score
        if result.name and score is not None:
            scores[result.name] = score
    if item.status in {"pass", "fail"}:
        scores["passed"] = item.status == "pass"
    run.recorded = scores
    return run


def _run_of_log(name: str, events: list[dict[str, Any]]) -> Run:
    """Return the run of one sample's events in a record log."""
    run = Run(id=name, entries=[], first=events[0])
    recorded: dict[str, JSON] = {}
    for event in events:
        data = dict(as_map(event.get("data")))
        kind = event.get("type")
        if kind == "sampling":
            run.entries += _sampled(data)
        elif kind == "match":
            correct = data.get("correct")
            recorded["correct"] = correct is True
            expected = word(data, "expected")
            run.expected = Expectation(text=expected) if expected else run.expected
        elif kind == "metrics":
            numbers = {key: value for key, value in data.items() if as_number(value) is not None}
            recorded |= numbers
        elif kind == "error":
            run.error = data.get("message", data)
    run.recorded = recorded
    return run


def _sampled(data: dict[str, Any]) -> Iterator[Any]:
    """Yield the prompt of a sampling event, and its first answer."""
    prompt = data.get("prompt")
    sampled = data.get("sampled")
    yield from prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    answers = as_list(sampled) or [sampled]
    yield {"role": "assistant", "content": answers[0]}

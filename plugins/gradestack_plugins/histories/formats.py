"""Histories by library: where the messages of a run stand, and what is said beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import JSON, Expectation, Input, Source, Usage
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.dialect import of_entries
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.96


@attrs.frozen(kw_only=True)
class AutoGenState(RunReader):
    """Reads what ``save_state`` of AutoGen's agents and teams returns, a JSON document each.

    Of a team the thread of its manager is the run.
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
            thread = _thread_of(state) if isinstance(state, dict) else []
            if thread:
                yield Run(id=identifier, entries=thread, source=source, first=state)


def _thread_of(state: Any) -> list[Any]:
    """Return the messages in a state of an agent, or of a team."""
    messages = as_map(as_map(state).get("llm_context")).get("messages")
    if isinstance(messages, list):
        return messages
    for inner in as_map(as_map(state).get("agent_states")).values():
        thread = as_map(as_map(inner).get("agent_state", inner)).get("message_thread")
        if isinstance(thread, list) and thread:
            return thread
    return []


@attrs.frozen(kw_only=True)
class LangGraph(RunReader):
    """Reads what graphs of LangGraph stream: updates by node, and events.

    A file of updates is one run. Of events the outermost run is one, whose last messages count: those
    it ends with, else those that the last of its nodes began with.
    """

    example_file = "updates.jsonl"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        is_event = word(record, "event").startswith("on_") and "parent_ids" in as_map(record)
        return _SURE if is_event or _updates_of(record) is not None else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        if cls.looks_like(record):
            return True
        states = as_map(record[-1] if isinstance(record, list) and record else record).values()
        return bool(states) and not any("messages" in as_map(state) for state in states)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        updates: list[Any] = []
        ends: dict[str, list[Any]] = {}
        first: Record | None = None
        for record in records:
            first = first or record
            messages = _updates_of(record.value)
            updates += messages or []
            said = _messages_in_event(record.value)
            if said:
                ends[_outermost(record.value)] = said
        if first is not None and updates:
            yield Run(id=file.name, entries=updates, source=first.source, first=first.value)
        for name, said in ends.items():
            yield Run(id=name, entries=said, trace={"trace_id": name})


def _updates_of(record: Any) -> list[Any] | None:
    """Return the messages that nodes add in an update; None of what is none."""
    if isinstance(record, list) and record and isinstance(record[-1], dict):
        record = record[-1]
    if not isinstance(record, dict) or not record:
        return None
    states = [state for state in record.values() if state is not None]
    if not all(isinstance(as_map(state).get("messages"), list) for state in states):
        return None
    messages = [entry for state in states for entry in state["messages"]]
    return messages if messages and of_entries(messages) is not None else None


def _outermost(event: Any) -> str:
    """Return the id of the outermost run that an event belongs to."""
    parents = as_list(as_map(event).get("parent_ids"))
    return str(parents[0]) if parents else word(event, "run_id")


def _messages_in_event(event: Any) -> list[Any]:
    """Return the messages of a graph's state: what it ended with, or what a node began with."""
    kind, data = word(event, "event"), as_map(as_map(event).get("data"))
    is_inner = bool(as_list(as_map(event).get("parent_ids")))
    if kind == "on_chain_end" and not is_inner:
        return list(as_list(as_map(data.get("output")).get("messages")))
    if kind == "on_chain_start":
        return list(as_list(as_map(data.get("input")).get("messages")))
    return []


@attrs.frozen(kw_only=True)
class OpenHands(RunReader):
    """Reads ``output.jsonl`` of OpenHands' evaluations: an instance with its history a line.

    The id is the instance's. What the test says of it (``report.resolved`` and the like) is
    recorded, and an error ends the run.
    """

    example_file = "output.jsonl"
    version = "1"
    records_are_runs = True
    keys: ClassVar = frozenset({"instance_id", "history", "test_result"})

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        return _SURE if isinstance(record, dict) and cls.keys <= record.keys() else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return "instance_id" in as_map(record)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for line, source in records:
            yield _of_instance(line, source, f"{file.name}:{source.ordinal}")


def _of_instance(line: dict[str, Any], source: Source, made: str) -> Run:
    events: list[Any] = []
    for event in as_list(line.get("history")):
        events += event if isinstance(event, list) else [event]
    metrics = as_map(line.get("metrics"))
    model = as_map(as_map(line.get("metadata")).get("llm_config")).get("model")
    report = as_map(as_map(line.get("test_result")).get("report"))
    counted = usage_of(dict(as_map(metrics.get("accumulated_token_usage"))))
    cost = as_number(metrics.get("accumulated_cost"))
    usage = None if cost is None else Usage(cost_usd=cost)
    if counted is not None:
        usage = Usage(
            input_tokens=counted.input_tokens, output_tokens=counted.output_tokens, cost_usd=cost
        )
    return Run(
        id=word(line, "instance_id") or str(line.get("instance_id", made)),
        entries=events,
        source=source,
        first=line,
        model=model if isinstance(model, str) else None,
        usage=usage,
        recorded={name: value for name, value in report.items() if isinstance(value, bool)},
        error=line.get("error") or None,
    )


@attrs.frozen(kw_only=True)
class OpenAIEvals(RunReader):
    """Reads output items of OpenAI's Evals API, and record logs of ``openai/evals``.

    The score of each grader is recorded by its name; of a log the verdict ``correct``, and what
    was expected is the reference.
    """

    example_file = "output_items.json"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        items = _items_of(record)
        if items:
            return _SURE
        is_event = {"sample_id", "type", "data", "run_id"} <= as_map(record).keys()
        is_frame = "final_report" in as_map(record) or "spec" in as_map(record)
        return _SURE if is_event else None if is_frame else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        events: dict[str, list[dict[str, Any]]] = {}
        model: str | None = None
        for value, source in records:
            for item in _items_of(value):
                yield _of_item(item, source)
            completion = as_list(as_map(as_map(value).get("spec")).get("completion_fns"))
            model = str(completion[0]) if completion else model
            if isinstance(value, dict) and isinstance(value.get("sample_id"), str):
                events.setdefault(value["sample_id"], []).append(value)
        for name, own in events.items():
            yield _of_log(name, own, model)


def _items_of(record: Any) -> list[dict[str, Any]]:
    """Return the output items that a page of them, or a record, holds."""
    listed = as_list(as_map(record).get("data")) or [record]
    return [item for item in listed if word(item, "object") == "eval.run.output_item"]


def _of_item(item: dict[str, Any], source: Source) -> Run:
    sample = as_map(item.get("sample"))
    scores: dict[str, JSON] = {}
    for result in as_list(item.get("results")):
        score = as_map(result).get("score", as_map(result).get("passed"))
        if word(result, "name") and isinstance(score, bool | int | float):
            scores[word(result, "name")] = score
    if word(item, "status") in {"pass", "fail"}:
        scores["passed"] = item["status"] == "pass"
    return Run(
        id=str(item.get("id")),
        entries=[*as_list(sample.get("input")), *as_list(sample.get("output"))],
        source=source,
        first=item,
        model=word(dict(sample), "model") or None,
        usage=usage_of(sample.get("usage")),
        recorded=scores,
        error=sample.get("error"),
    )


def _of_log(name: str, events: list[dict[str, Any]], model: str | None) -> Run:
    """Return the run of one sample's events in a record log."""
    entries: list[Any] = []
    recorded: dict[str, JSON] = {}
    expected: str | None = None
    error: Any = None
    for event in events:
        data, kind = as_map(event.get("data")), event.get("type")
        if kind == "sampling":
            prompt, said = data.get("prompt"), as_list(data.get("sampled")) or [data.get("sampled")]
            entries += prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
            entries += [{"role": "assistant", "content": text} for text in said[:1]]
        elif kind == "match":
            recorded["correct"] = data.get("correct") is True
            expected = data["expected"] if isinstance(data.get("expected"), str) else expected
        elif kind == "metrics":
            numbers = {key: value for key, value in data.items() if as_number(value) is not None}
            recorded |= numbers
        elif kind == "error":
            error = data.get("message", data)
    return Run(
        id=name,
        entries=entries,
        first=events[0],
        model=model,
        recorded=recorded,
        expected=Expectation(text=expected),
        error=error,
    )

"""Reader ``tau_bench``: result files of tau-bench."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Input,
    Inputs,
    Message,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    Status,
    ToolCall,
    replace,
)
from gradestack.jsonio import Element, Layout, Range, compact
from gradestack_plugins.readers.chat import messages, text_of, tool_calls
from gradestack_plugins.tau_bench.recognition import begins_like, complaint, looks_like
from gradestack_plugins.tau_bench.records import ACTION_MARK, RESPOND, RESULT_MARK, TauRecord, react_action

_TOOL_ERROR = "Error: "
"""How the benchmark's environments begin the result of a call that went wrong."""
_EXCEPTION = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?::|$)")


@attrs.frozen(kw_only=True)
class TauBench(RecordReader):
    """Reads tau-bench result files: a JSON list with one object per task and trial, in order of completion.

    One sample per record: ``id`` is ``task_id`` as text, ``run`` is ``trial``. ``expected.calls`` are the actions of
    the task, in the file's order (a null list expects nothing, a missing one is no reference); ``calls`` are the tool
    calls of all messages with their results, or, in act/react runs, the actions taken in the assistant's texts
    (``respond`` is speech, not a call). ``input`` is the task's instruction, ``text`` the last thing the agent said. A
    record whose ``info`` holds an ``error`` becomes a failed sample. ``recorded`` holds ``reward`` as it stands in the
    file and, where given, ``r_actions``, ``r_outputs``, ``outputs`` and ``judged`` (false when ``reward_info`` is null:
    the conversation reached its step limit). The file is read range by range and never held in memory.

    Attributes:
        model: Model name given to all samples. When several files are read and it is unset, each file's name is used.
    """

    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            "run",
            "input",
            "turns",
            "calls",
            "text",
            "expected",
            "recorded",
            "status",
            "error",
            "agent_usage",
            "facets",
            "source",
        }
        | {"native"}
    )
    stack: ClassVar[str | None] = "tau-bench"
    layout: ClassVar[Layout] = "list"
    sniffed: ClassVar[int] = 5
    behind_others: ClassVar[float] = 1.0
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "keep"

    model: str | None = None

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)
    complaint = staticmethod(complaint)

    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        """Yield the inputs, with the model of each.

        Raises:
            DataError: A path is not a file.
        """
        for given in inputs.data:
            with suppress(OSError):  # opening it will say so
                if not given.path.is_file():
                    what = "is a directory" if given.path.is_dir() else "no such file"
                    raise DataError(f"{given.shown}: {what}; a tau-bench result file is expected")
            model = given.name if self.model is None and len(inputs.data) > 1 else self.model
            yield RecordFile(input=given, extra={"model": model})

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a range in order.

        Raises:
            DataError: The file cannot be opened, is empty or does not hold a list.
        """
        model = shard.extra["model"]
        return self.samples(shard, lambda record, source: (sample_of(record, source, model),))

    def elements(self, file: Input, part: Range) -> Iterator[Element]:
        """Yield the records of a range; the last one of a broken list says what that means for the others."""
        for found in super().elements(file, part):
            if found.fatal:
                yield attrs.evolve(found, problem=f"{found.problem}; the rest of the file could not be read")
            else:
                yield found


def sample_of(record: Any, source: Source, model: str | None = None) -> Sample | BadRecord:
    """Return the sample of one record, or a bad record when it is not an object or has no usable ``task_id``."""
    native = TauRecord(record)
    if not isinstance(record, dict):
        reason = f"expected an object, found {compact(record)[:60]}"
        return BadRecord(source=source, reason=reason, native=native)
    task_id = record.get("task_id")
    if isinstance(task_id, bool) or not isinstance(task_id, int | str):
        found = f"task_id is {compact(task_id)[:60]}" if "task_id" in record else "task_id is missing"
        return BadRecord(source=source, reason=f"{found}; an integer or a text is expected", native=native)
    info = record.get("info")
    info = info if isinstance(info, dict) else {}
    task = info.get("task")
    task = task if isinstance(task, dict) else {}
    error = _fault(info) if "error" in info else None
    conversation = messages(record.get("traj"))
    calls, text = _calls_and_text(conversation)
    recorded_calls = isinstance(record.get("traj"), list) and not (error is not None and not conversation)
    instruction = task.get("instruction")
    cost = info.get("user_cost")
    return Sample(
        id=str(task_id),
        model=model,
        run=_run(record.get("trial")),
        input=instruction if isinstance(instruction, str) else _first_user_text(conversation),
        turns=(conversation,) if conversation else (),
        calls=calls if recorded_calls else None,
        text=text,
        expected=Expectation(calls=_expected_calls(task)),
        recorded=_recorded(record, info),
        status=Status.OK if error is None else Status.FAILED,
        error=error,
        agent_usage=None if cost is None else {"user_cost": cost},
        facets=_facets(info, task),
        source=source if isinstance(task_id, str) else replace(source, id=task_id),
        native=native,
    )


def _run(trial: Any) -> int | str | None:
    """Return a trial as an identifier: integers as such (also 1.0 and True), other values as JSON text."""
    if trial is None or isinstance(trial, str):
        return trial
    if isinstance(trial, int) or (isinstance(trial, float) and trial.is_integer()):
        return int(trial)
    return compact(trial)


def _fault(info: dict[str, Any]) -> Fault:
    """Return the error a run ended in; its type is the exception named in the traceback's last line."""
    error, traceback = info["error"], info.get("traceback")
    lines = traceback.strip().splitlines() if isinstance(traceback, str) else []
    named = _EXCEPTION.match(lines[-1]) if lines else None
    message = error if isinstance(error, str) else compact(error)
    return Fault(category="target", code="run_error", message=message, type=named["name"] if named else "")


def _expected_calls(task: dict[str, Any]) -> tuple[ExpectedCall, ...] | None:
    if "actions" not in task:
        return None
    actions = task["actions"]
    if not actions:
        return ()
    if not isinstance(actions, list):
        return None
    calls = tool_calls(actions)
    return tuple(map(ExpectedCall.of, calls)) if len(calls) == len(actions) else None


def _recorded(record: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    recorded = {"reward": record["reward"]} if "reward" in record else {}
    if "reward_info" in info:
        reward_info = info["reward_info"]
        recorded["judged"] = reward_info is not None
        details = reward_info.get("info") if isinstance(reward_info, dict) else None
        if isinstance(details, dict):
            recorded |= {name: details[name] for name in ("r_actions", "r_outputs", "outputs") if name in details}
    return recorded


def _facets(info: dict[str, Any], task: dict[str, Any]) -> dict[str, str]:
    """Return the user of the task and how the run ended: "user" or the last tool's name, step_limit, error."""
    facets = {}
    if isinstance(task.get("user_id"), str):
        facets["user_id"] = task["user_id"]
    if "error" in info:
        facets["end"] = "error"
    elif "reward_info" in info and info["reward_info"] is None:
        facets["end"] = "step_limit"
    elif isinstance(info.get("source"), str):
        facets["end"] = info["source"]
    return facets


def _first_user_text(conversation: tuple[Message, ...]) -> str | None:
    return next((text_of(message.content) for message in conversation if message.role == "user"), None)


def _calls_and_text(conversation: tuple[Message, ...]) -> tuple[tuple[ToolCall, ...], str | None]:
    """Return the calls made, each with its result, and the last thing the agent said."""
    if any(message.tool_calls for message in conversation):
        said = (text_of(m.content) for m in reversed(conversation) if m.role == "assistant")
        return _called(conversation), next((text for text in said if text), None)
    return _acted(conversation)


def _called(conversation: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    """Return the tool calls of all messages, each with the next tool message that answers its id."""
    calls: list[ToolCall] = []
    waiting: dict[str | None, int] = {}
    for message in conversation:
        for call in message.tool_calls:
            waiting[call.id] = len(calls)
            calls.append(call)
        if message.role == "tool":
            place = waiting.pop(message.tool_call_id, None)
            if place is not None:
                calls[place] = _answered(calls[place], message.content)
    return tuple(calls)


def _answered(call: ToolCall, result: Any) -> ToolCall:
    failed = isinstance(result, str) and result.startswith(_TOOL_ERROR)
    return replace(call, result=result, error=result if failed else None)


def _acted(conversation: tuple[Message, ...]) -> tuple[tuple[ToolCall, ...], str | None]:
    """Return the calls and the last speech of an act/react run; of a run without any action, just the speech."""
    calls: list[ToolCall] = []
    plain: str | None = None
    spoken: str | None = None
    acting = called = False
    for message in conversation:
        content = text_of(message.content)
        if message.role == "user" and called and content.startswith(RESULT_MARK):
            calls[-1] = _answered(calls[-1], content.removeprefix(RESULT_MARK))
        called = False
        if message.role != "assistant":
            continue
        plain = content or plain
        action = react_action(message.content)
        acting = acting or action is not None
        if action is None:
            spoken = content.rpartition(ACTION_MARK)[2].strip() or spoken
        elif action.name == RESPOND:
            spoken = text_of(action.arguments.get("content")) or spoken
        else:
            calls.append(ToolCall(name=action.name, arguments=action.arguments))
            called = True
    return tuple(calls), spoken if acting else plain

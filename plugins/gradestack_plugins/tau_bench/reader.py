"""Reader ``tau_bench``: result files of tau-bench, and what a record says of calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
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
    compile_later,
    replace,
)
from gradestack.jsonio import (
    Element,
    JsonProblem,
    Range,
    as_list,
    as_map,
    as_text,
    compact,
    loads,
)
from gradestack_plugins.readers.chat import made_calls, messages, text_of, tool_calls
from gradestack_plugins.readers.chat.unread import count_unread
from gradestack_plugins.tau_bench.record import TauRecord

RESPOND = "respond"
"""Name of the pseudo-action that speaks to the user; not a tool call."""
ACTION_MARK = "Action:"
RESULT_MARK = "API output: "


class _Call(msgspec.Struct):
    function: dict[str, Any] = {}


class _Message(msgspec.Struct):
    tool_calls: list[_Call] | None = None


class _Task(msgspec.Struct, frozen=True):
    actions: list[dict[str, Any]] | None = None


class _Info(msgspec.Struct, frozen=True):
    task: _Task = _Task()


class _Run(msgspec.Struct):
    """The calls of a run that did not end in an error, as they are read."""

    info: _Info = _Info()
    traj: list[_Message] = []


def find_problem(record: Mapping[str, Any]) -> str | None:
    """Return why the calls of a record, made or expected, cannot be read; None where they can."""
    try:
        msgspec.convert(record, _Run)
    except msgspec.ValidationError as problem:
        return str(problem)
    return None


def react_action(content: Any) -> ToolCall | None:
    """Return the action an act/react message takes, ``respond`` like any other; else None."""
    text = ""
    if isinstance(content, str):
        text = content.rpartition(ACTION_MARK)[2].strip()
    if not text.startswith("{"):
        return None
    try:
        action = loads(text)  # an object, since it begins with a brace
    except JsonProblem:
        return None
    name = action.get("name")
    arguments = action.get("arguments")
    is_action = isinstance(name, str) and isinstance(arguments, dict)
    return ToolCall(name=name, arguments=arguments) if is_action else None


_TOOL_ERROR = "Error: "
"""How the benchmark's environments begin the result of a call that went wrong."""
_EXCEPTION = compile_later(r"(?P<name>[A-Za-z_][\w.]*)(?::|$)")
_NAMES = ("task_id", "reward", "info", "traj")
_FIELDS = (
    "run input turns calls text expected recorded status error agent_usage facets remarks source "
    "native"
)


@attrs.frozen(kw_only=True)
class TauBench(RecordReader):
    """Reads tau-bench result files.

    A JSON list with one object per task and trial, in order of completion.

    One sample per record: ``id`` is ``task_id`` as text, ``run`` is ``trial``. ``expected.calls``
    are the actions of the task, in the file's order: a null list expects nothing, a missing one is
    no reference. ``calls`` are the tool calls of all messages with their results. In act/react runs
    they are the actions taken in the assistant's texts (``respond`` is speech, not a call).
    ``input`` is the task's instruction, ``text`` the last thing the agent said. A record whose
    ``info`` holds an ``error`` becomes a failed sample. ``recorded`` holds the file's ``reward``
    and, where given, ``r_actions``, ``r_outputs``, ``outputs`` and ``judged`` (false when
    ``reward_info`` is null: the conversation reached its step limit). The file is read range by
    range and never held in memory.

    Attributes:
        model: Model name given to all samples. When several files are read and it is unset, each
            file's name is used.
    """

    example_file = "results/….json"
    version = "3"
    provides = frozenset(_FIELDS.split())
    stack = "tau-bench"
    layout = "list"
    sniffed = 5
    behind_others = 1.0
    simulated_users = True
    one_model = "--id task_id --set reader.model=NAME"

    model: str | None = None

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float:
        """Return 0.95 for an object with ``task_id``, ``reward`` and at least one of ``info`` and
        ``traj``.
        """
        if not isinstance(record, dict):
            return 0.0
        keys = record.keys()
        if {"task_id", "reward"} <= keys and keys & {"info", "traj"}:
            return 0.95
        return 0.0

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        """Return 0.95 where the same names stand, and 0.4 where a long conversation stands before
        the others.
        """
        named = {name: None for name in _NAMES if f'"{name}"'.encode() in text}
        return cls.looks_like(named) or (0.4 if "traj" in named else None)

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        """Return the names missing from an object that is nearly a record, else None."""
        missing = [name for name in _NAMES if name not in record]
        is_near = missing in (["task_id"], ["reward"], ["info", "traj"])
        return f"{' and '.join(missing)} missing" if is_near else None

    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        """Yield the inputs, with the model of each."""
        for source in inputs.data:
            model = source.name if self.model is None and len(inputs.data) > 1 else self.model
            yield RecordFile(input=source, extra={"model": model})

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        model = shard.extra["model"]
        return self.samples(shard, lambda record, source: (sample_of(record, source, model),))

    def elements(self, file: Input, part: Range) -> Iterator[Element]:
        """Yield the records of a range.

        The last one of a broken list says what that means for the others.
        """
        for element in super().elements(file, part):
            problem = f"{element.problem}; the rest of the file could not be read"
            is_fatal = element.fatal
            yield msgspec.structs.replace(element, problem=problem) if is_fatal else element


def sample_of(record: Any, source: Source, model: str | None = None) -> Sample:
    """Return the sample of one record.

    Raises:
        ValueError: It is no object, or has no usable ``task_id``.
    """
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, found {compact(record)[:60]}")
    if not is_result(record):
        shown = "missing"
        if "task_id" in record:
            shown = compact(record["task_id"])[:60]
        raise ValueError(f"task_id is {shown}; an integer or a text is expected")
    task_id = record["task_id"]
    info = as_map(record.get("info"))
    task = as_map(info.get("task"))
    error = _fault(info) if "error" in info else None
    traj = record.get("traj")
    conversation = messages(traj)
    acting = not any(message.tool_calls for message in conversation)
    calls, text = _acted(conversation) if acting else _called(conversation)
    unread = count_unread(as_list(traj), has_calls=bool(calls))
    problem = None if error else find_problem(record)
    is_list = isinstance(traj, list)
    is_recorded = is_list and (error is None or bool(conversation))
    instruction = task.get("instruction")
    if not isinstance(instruction, str):
        texts = (text_of(message.content) for message in conversation if message.role == "user")
        instruction = next(texts, None)
    cost = info.get("user_cost")
    expected = None if problem else _expected_calls(task)
    is_text = isinstance(task_id, str)
    trial = record.get("trial")
    run = trial_name(trial)
    turns = (conversation,) if conversation else ()
    expectation = Expectation(calls=expected)
    recorded = _recorded(record, info)
    status = Status.OK if error is None else Status.FAILED
    return Sample(
        id=str(task_id),
        model=model,
        run=run,
        input=instruction,
        turns=turns,
        calls=calls if is_recorded and not unread else None,
        text=text,
        expected=expectation,
        recorded=recorded,
        status=status,
        error=error,
        agent_usage=None if cost is None else {"user_cost": cost},
        facets=_facets(info, task),
        remarks=unread,
        source=source if is_text else replace(source, id=task_id),
        native=TauRecord(record, problem),
    )


def is_result(record: Any) -> bool:
    """Return whether a value is a record with a usable ``task_id``."""
    task_id = None
    if isinstance(record, dict):
        task_id = record.get("task_id")
    return isinstance(task_id, int | str) and not isinstance(task_id, bool)


def trial_name(trial: Any) -> int | str | None:
    """Return a recorded trial as the name of a run: 1.0 and true are 1, odd values JSON text."""
    if isinstance(trial, int) or (isinstance(trial, float) and trial.is_integer()):
        return int(trial)
    if trial is None or isinstance(trial, str):
        return trial
    return compact(trial)


def _fault(info: Mapping[str, Any]) -> Fault:
    """Return the error a run ended in.

    Its type is the exception named in the traceback's last line.
    """
    error = info["error"]
    traceback = info.get("traceback")
    lines = as_text(traceback).strip().splitlines()
    *_, last = "", *lines
    named = _EXCEPTION.match(last)
    message = error if isinstance(error, str) else compact(error)
    kind = named["name"] if named else ""
    return Fault(category="target", code="run_error", message=message, type=kind)


def _expected_calls(task: Mapping[str, Any]) -> tuple[ExpectedCall, ...] | None:
    if "actions" not in task:
        return None
    return tuple(map(ExpectedCall.of, tool_calls(task["actions"])))


def _recorded(record: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    if "reward" in record:
        recorded = {"reward": record["reward"]}
    else:
        recorded = {}
    if "reward_info" in info:
        recorded["judged"] = info["reward_info"] is not None
    reward_info = info.get("reward_info")
    details = as_map(as_map(reward_info).get("info"))
    names = ("r_actions", "r_outputs", "outputs")
    details_by_name = {name: details[name] for name in names if name in details}
    return recorded | details_by_name


def _facets(info: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, str]:
    user_id = task.get("user_id")
    source = info.get("source")
    facets = {"user_id": user_id, "end": source}
    if info.get("reward_info", "") is None:
        facets["end"] = "step_limit"
    if "error" in info:
        facets["end"] = "error"
    return {name: value for name, value in facets.items() if isinstance(value, str)}


def _called(conversation: tuple[Message, ...]) -> tuple[tuple[ToolCall, ...], str | None]:
    calls = made_calls(conversation, lambda call, message: _answered(call, message.content))
    text = None
    for message in conversation:
        if message.role == "assistant":
            text = text_of(message.content) or text
    return calls, text


def _answered(call: ToolCall, result: Any) -> ToolCall:
    failed = isinstance(result, str) and result.startswith(_TOOL_ERROR)
    error = result if failed else None
    return replace(call, result=result, error=error)


def _acted(conversation: tuple[Message, ...]) -> tuple[tuple[ToolCall, ...], str | None]:
    """Return the calls and the last speech of an act/react run.

    Of a run without any action, just the speech.
    """
    calls: list[ToolCall] = []
    plain = spoken = ""
    is_acting = is_call = False
    for message in conversation:
        content = text_of(message.content)
        if is_call and message.role == "user" and content.startswith(RESULT_MARK):
            result = content.removeprefix(RESULT_MARK)
            last_call = calls[-1]
            calls[-1] = _answered(last_call, result)
        is_call = False
        if message.role != "assistant":
            continue
        plain = content or plain
        action = react_action(message.content)
        if action is None:
            spoken = content.rpartition(ACTION_MARK)[2].strip() or spoken
            continue
        is_acting = True
        is_call = action.name != RESPOND
        if is_call:
            calls.append(action)
        else:
            arguments = as_map(action.arguments)
            text = text_of(arguments.get("content"))
            spoken = text or spoken
    return tuple(calls), (spoken if is_acting else plain) or None

"""Reader ``tau_bench``: result files of tau-bench, and what a record says of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

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
    Profile,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    Status,
    ToolCall,
    replace,
)
from gradestack.jsonio import Element, JsonProblem, Layout, Range, as_list, as_map, compact, loads
from gradestack_plugins.readers.chat import made_calls, messages, text_of, tool_calls
from gradestack_plugins.readers.chat.unread import count_unread

RESPOND = "respond"
"""Name of the pseudo-action that speaks to the user; not a tool call."""
ACTION_MARK = "Action:"
RESULT_MARK = "API output: "


class TauRecord(msgspec.Struct, frozen=True):
    """A record as read from the file, for the grader and the exporter of this family."""

    record: Any


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call made or expected.

    Values stand exactly as recorded: any JSON value may be in either place.
    """

    name: Any
    arguments: Any


class Malformed(Exception):
    """A record of a shape on which the original script stops with an exception.

    The message says what is wrong.
    """


class Content(msgspec.Struct, frozen=True):
    """What partial scoring needs of one record."""

    errored: bool
    """``info`` holds an ``error`` key; nothing else is looked at."""
    expected: tuple[Call, ...] | None = None
    """None when ``info``, ``info.task`` or ``info.task.actions`` is missing.

    ``()`` when nothing is expected.
    """
    made: tuple[Call, ...] = ()


def content_of(record: dict[str, Any], profile: Profile) -> Content:
    """Return what a record holds, in the order the original looks at it."""
    info = record.get("info", {})
    try:
        if "error" in info:
            return Content(errored=True)
        actions = record["info"]["task"]["actions"]
    except KeyError:
        return Content(errored=False)
    except TypeError as error:
        raise Malformed(
            f"{'info.task' if isinstance(info, dict) else 'info'} is not an object"
        ) from error
    made = _made(record, documented=profile == "documented")
    try:
        expected = tuple(
            Call(action.get("name", ""), action.get("kwargs", {})) for action in actions or ()
        )
    except (AttributeError, TypeError) as error:
        raise Malformed("info.task.actions is not a list of objects") from error
    return Content(errored=False, expected=expected, made=made)


def _made(record: dict[str, Any], *, documented: bool) -> tuple[Call, ...]:
    """Return the calls of a conversation: every truthy ``tool_calls`` of any role, in order."""
    if "traj" not in record:
        raise Malformed("traj is missing")
    calls: list[Call] = []
    at = -1
    try:
        for at, message in enumerate(record["traj"]):  # noqa: B007 - read by the handler below
            for entry in message.get("tool_calls") or ():
                function = entry.get("function", {})
                arguments = function.get("arguments", "{}")
                if isinstance(arguments, str):
                    try:
                        arguments = loads(arguments)
                    except JsonProblem:
                        arguments = {}
                elif not (documented and isinstance(arguments, dict)):
                    arguments = {}
                calls.append(Call(function.get("name", ""), arguments))
    except (AttributeError, TypeError) as error:
        what = (
            f"message {at} of traj, or one of its tool calls, is not an object"
            if at >= 0
            else "traj is not a list"
        )
        raise Malformed(what) from error
    if documented and not calls:
        said = [each.get("content") for each in record["traj"] if each.get("role") == "assistant"]
        return tuple(
            action
            for action in map(react_action, said)
            if action is not None and action.name != RESPOND
        )
    return tuple(calls)


def react_action(content: Any) -> Call | None:
    """Return the action an act/react message takes, ``respond`` like any other.

    None when it is none.
    """
    text = content.rpartition(ACTION_MARK)[2].strip() if isinstance(content, str) else ""
    if not text.startswith("{"):
        return None
    try:
        action = loads(text)  # an object, since it begins with a brace
    except JsonProblem:
        return None
    name, arguments = action.get("name"), action.get("arguments")
    return Call(name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


_TOOL_ERROR = "Error: "
"""How the benchmark's environments begin the result of a call that went wrong."""
_EXCEPTION = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?::|$)")
_FIELDS = "run input turns calls text expected recorded status error agent_usage facets remarks source native"


@attrs.frozen(kw_only=True)
class TauBench(RecordReader):
    """Reads tau-bench result files.

    A JSON list with one object per task and trial, in order of completion.

    One sample per record: ``id`` is ``task_id`` as text, ``run`` is ``trial``. ``expected.calls``
    are the actions of the task, in the file's order (a null list expects nothing, a missing one is
    no reference); ``calls`` are the tool calls of all messages with their results, or, in act/react
    runs, the actions taken in the assistant's texts (``respond`` is speech, not a call). ``input``
    is the task's instruction, ``text`` the last thing the agent said. A record whose ``info`` holds
    an ``error`` becomes a failed sample. ``recorded`` holds ``reward`` as it stands in the file
    and, where given, ``r_actions``, ``r_outputs``, ``outputs`` and ``judged`` (false when
    ``reward_info`` is null: the conversation reached its step limit). The file is read range by
    range and never held in memory.

    Attributes:
        model: Model name given to all samples. When several files are read and it is unset, each
            file's name is used.
    """

    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(_FIELDS.split())
    stack: ClassVar[str | None] = "tau-bench"
    layout: ClassVar[Layout] = "list"
    sniffed: ClassVar[int] = 5
    behind_others: ClassVar[float] = 1.0
    simulated_users: ClassVar[bool] = True
    one_model: ClassVar[str] = "--id task_id --set reader.model=NAME"

    model: str | None = None

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float:
        """Return 0.95 for an object with ``task_id``, ``reward`` and at least one of ``info`` and
        ``traj``.
        """
        keys = record.keys() if isinstance(record, dict) else set()
        return 0.95 if {"task_id", "reward"} <= keys and keys & {"info", "traj"} else 0.0

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        """Return 0.95 where the same names stand, and 0.4 where a long conversation stands before
        the others.
        """
        named = {
            name: None
            for name in ("task_id", "reward", "info", "traj")
            if f'"{name}"'.encode() in text
        }
        return cls.looks_like(named) or (0.4 if "traj" in named else None)

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        """Return which of the names are missing from an object that has two of those that make it a
        record.
        """
        missing = [name for name in ("task_id", "reward") if name not in record]
        sides = {"info", "traj"} & record.keys()
        if not missing and not sides:
            return "info and traj missing"
        return f"{missing[0]} missing" if len(missing) == 1 and len(sides) == 2 else None

    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        """Yield the inputs, with the model of each."""
        for each in inputs.data:
            model = each.name if self.model is None and len(inputs.data) > 1 else self.model
            yield RecordFile(input=each, extra={"model": model})

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        model = shard.extra["model"]
        return self.samples(shard, lambda record, source: (sample_of(record, source, model),))

    def elements(self, file: Input, part: Range) -> Iterator[Element]:
        """Yield the records of a range.

        The last one of a broken list says what that means for the others.
        """
        for each in super().elements(file, part):
            lost = f"{each.problem}; the rest of the file could not be read"
            yield msgspec.structs.replace(each, problem=lost) if each.fatal else each


def sample_of(record: Any, source: Source, model: str | None = None) -> Sample | BadRecord:
    """Return the sample of one record, or a bad record when it is not an object or has no usable
    ``task_id``.
    """
    native = TauRecord(record)
    if not isinstance(record, dict):
        reason = f"expected an object, found {compact(record)[:60]}"
        return BadRecord(source=source, reason=reason, native=native)
    task_id = record.get("task_id")
    if isinstance(task_id, bool) or not isinstance(task_id, int | str):
        problem = (
            f"task_id is {compact(task_id)[:60]}" if "task_id" in record else "task_id is missing"
        )
        return BadRecord(
            source=source, reason=f"{problem}; an integer or a text is expected", native=native
        )
    info = as_map(record.get("info"))
    task = as_map(info.get("task"))
    error = _fault(info) if "error" in info else None
    conversation = messages(record.get("traj"))
    acting = not any(message.tool_calls for message in conversation)
    calls, text = _acted(conversation) if acting else _called(conversation)
    unread = count_unread(as_list(record.get("traj")), has_calls=bool(calls))
    is_recorded = isinstance(record.get("traj"), list) and (error is None or bool(conversation))
    instruction, trial, cost = task.get("instruction"), record.get("trial"), info.get("user_cost")
    if not isinstance(instruction, str):
        instruction = next(
            (text_of(message.content) for message in conversation if message.role == "user"), None
        )
    if isinstance(trial, int) or (isinstance(trial, float) and trial.is_integer()):
        trial = int(trial)  # also 1.0 and True
    elif trial is not None and not isinstance(trial, str):
        trial = compact(trial)
    return Sample(
        id=str(task_id),
        model=model,
        run=trial,
        input=instruction,
        turns=(conversation,) if conversation else (),
        calls=calls if is_recorded and not unread else None,
        text=text,
        expected=Expectation(calls=_expected_calls(task)),
        recorded=_recorded(record, info),
        status=Status.OK if error is None else Status.FAILED,
        error=error,
        agent_usage=None if cost is None else {"user_cost": cost},
        facets=_facets(info, task),
        remarks=unread,
        source=source if isinstance(task_id, str) else replace(source, id=task_id),
        native=native,
    )


def _fault(info: Mapping[str, Any]) -> Fault:
    """Return the error a run ended in.

    Its type is the exception named in the traceback's last line.
    """
    error, traceback = info["error"], info.get("traceback")
    lines = traceback.strip().splitlines() if isinstance(traceback, str) else []
    named = _EXCEPTION.match(lines[-1]) if lines else None
    message = error if isinstance(error, str) else compact(error)
    return Fault(
        category="target", code="run_error", message=message, type=named["name"] if named else ""
    )


def _expected_calls(task: Mapping[str, Any]) -> tuple[ExpectedCall, ...] | None:
    actions = task.get("actions", "missing")
    if not actions:
        return ()
    calls = tool_calls(actions) if isinstance(actions, list) else ()
    return tuple(map(ExpectedCall.of, calls)) if calls and len(calls) == len(actions) else None


def _recorded(record: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    recorded = {"reward": record["reward"]} if "reward" in record else {}
    if "reward_info" in info:
        recorded["judged"] = info["reward_info"] is not None
        details = as_map(as_map(info["reward_info"]).get("info"))
        recorded |= {
            name: details[name] for name in ("r_actions", "r_outputs", "outputs") if name in details
        }
    return recorded


def _facets(info: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, str]:
    facets = {"user_id": task["user_id"]} if isinstance(task.get("user_id"), str) else {}
    if "error" in info:
        facets["end"] = "error"
    elif "reward_info" in info and info["reward_info"] is None:
        facets["end"] = "step_limit"
    elif isinstance(info.get("source"), str):
        facets["end"] = info["source"]
    return facets


def _called(conversation: tuple[Message, ...]) -> tuple[tuple[ToolCall, ...], str | None]:
    calls = made_calls(conversation, lambda call, message: _answered(call, message.content))
    said = [text_of(message.content) for message in conversation if message.role == "assistant"]
    return calls, next(filter(None, reversed(said)), None)


def _answered(call: ToolCall, result: Any) -> ToolCall:
    failed = isinstance(result, str) and result.startswith(_TOOL_ERROR)
    return replace(call, result=result, error=result if failed else None)


def _acted(conversation: tuple[Message, ...]) -> tuple[tuple[ToolCall, ...], str | None]:
    """Return the calls and the last speech of an act/react run.

    Of a run without any action, just the speech.
    """
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

"""Reader ``atif``: trajectories in the Agent Trajectory Interchange Format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
from msgspec.structs import force_setattr
from typing_extensions import override

from gradestack import (
    BadRecord,
    Inputs,
    Message,
    RecordFile,
    Sample,
    Source,
    ToolCall,
    Usage,
    replace,
)
from gradestack.jsonio import (
    as_list,
    as_map,
    as_number,
    is_number,
    loads,
    read_regular,
)
from gradestack_plugins.archives.documents import DocumentReader, named
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, text_or_none
from gradestack_plugins.readers.chat.logs import log_sample
from gradestack_plugins.readers.chat.unread import unread_keys
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.declared import Items, Text, convert_record
from gradestack_plugins.readers.jsonl import JsonLines

_VERSION: Final = re.compile(r"(?:ATIF-v)?1\.[0-8]")
_REFERENCE: Final = re.compile(
    rb'"(?:continued_trajectory_ref|trajectory_path)"\s*:\s*"((?:[^"\\]|\\.)*)"'
)
_TRIAL: Final = ("trial_name", "task_name", "verifier_result")
"""Keys of Harbor's result of one trial."""
_READ: Final = frozenset({"tool_calls", "observation", "message", "extra", "metrics", "source"})
"""Keys of a step that are read, or hold no calls."""
_ROLES: Final = {"agent": "assistant", "user": "user", "system": "system"}


class _Extra(msgspec.Struct, frozen=True):
    """What ATIF has no place for: ``gradestack convert`` keeps it in a key of its own."""

    gradestack: dict[str, Any] = {}
    is_error: Any = None


class _Agent(msgspec.Struct, frozen=True):
    """The agent of a trajectory."""

    name: Text = None
    version: Text = None
    model_name: Text = None
    tool_definitions: Items = None


class _Call(msgspec.Struct):
    """A call of a step."""

    tool_call_id: Any = None
    function_name: Any = None
    arguments: Any = None
    extra: _Extra = _Extra()


class _Result(msgspec.Struct):
    """What came of a call, or of none."""

    source_call_id: Text = None
    content: Any = None
    subagent_trajectory_ref: list[Any] = []
    extra: _Extra = _Extra()


class _Observation(msgspec.Struct, frozen=True):
    """What came of a step."""

    results: list[_Result] = []


class _Step(msgspec.Struct):
    """A step of a trajectory."""

    source: Text = None
    message: Any = None
    reasoning_content: Any = None
    model_name: Any = None
    metrics: Any = None
    is_copied_context: Any = None
    tool_calls: list[_Call] = []
    observation: _Observation = _Observation()
    extra: _Extra = _Extra()


class _Trajectory(msgspec.Struct):
    """A trajectory."""

    steps: list[dict[str, Any]]
    agent: _Agent = _Agent()
    trajectory_id: Any = None
    session_id: Text = None
    continued_trajectory_ref: Any = None
    subagent_trajectories: list[dict[str, Any]] = []
    final_metrics: Any = None
    extra: _Extra = _Extra()


@attrs.frozen(kw_only=True)
class Atif(DocumentReader):
    """Reads ATIF 1.0 to 1.8: a trajectory as a document, a list of them, or one a line.

    The id is ``trajectory_id``, else ``session_id``. A user step begins a turn; results are handed
    to their calls by ``source_call_id``, others are messages that belong to no call. Steps of
    copied context are messages whose calls, questions and tokens do not count. Usage is
    ``final_metrics``, else the sum over steps; where both are recorded and differ, that is counted.
    Sub-agents are samples, children of the first, in its cluster, with ids below its own.
    Continuations and sub-agents in files below the folder of a document are read with it, and not
    by themselves; other references are counted. Of a trial of Harbor the id is the task's, the run
    its name, rewards are recorded. A trial that ended in an exception without a reward is a failed
    run with reward 0, as Harbor's mean takes it, also where its ``result.json`` has no trajectory
    beside it.
    """

    example_file = "agent/trajectory.json"
    version = "2"
    marks = (("schema_version", "steps", "agent"), _TRIAL)

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        return _is_trajectory(value) or is_trial(value)

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        names = (
            {each.path.resolve(): {*_named(each.path)} for each in inputs.data}
            if len(inputs.data) > 1
            else {}
        )
        reached, waiting = set[Path](), [*(names.keys() - set[Path]().union(*names.values()))]
        while waiting:
            more = names.get(waiting.pop(), set()) - reached
            reached |= more
            waiting += more
        reached |= {result for path in names if (result := _result_of(path)) is not None}
        own = tuple(each for each in inputs.data if each.path.resolve() not in reached)
        return super().files(replace(inputs, data=own), index)

    @override
    def joined(self, value: Any, path: Path) -> Any:
        if not isinstance(value, dict) or not _is_trajectory(value):
            return value
        found, trial = _joined(value, path, set()), _trial(path)
        own = as_map(found.get("extra")).get("gradestack")
        return {
            **found,
            "extra": {"gradestack": {**trial, **own} if isinstance(own, dict) else own or trial},
        }

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, made: str
    ) -> Iterator[Sample]:
        if is_trial(record):
            for sample in _samples(_without_steps(record), source, made, None):
                yield replace(sample, remarks={"trial_without_trajectory": 1})
        elif _is_trajectory(record):
            yield from _samples(record, source, made, None)
        else:
            raise ValueError("expected schema_version ATIF-v1.0 to ATIF-v1.8, and a list of steps")


def _is_trajectory(value: Mapping[str, Any]) -> bool:
    version = value.get("schema_version")
    has_version = isinstance(version, str) and bool(_VERSION.fullmatch(version))
    return has_version and isinstance(value.get("steps"), list)


def is_trial(value: Mapping[str, Any]) -> bool:
    """Return whether an object is Harbor's result of one trial."""
    return all(name in value for name in _TRIAL)


def _result_of(path: Path) -> Path | None:
    """Return where Harbor writes the result of the trial that a trajectory belongs to."""
    return path.parent.parent / "result.json" if path.parent.name == "agent" else None


def _without_steps(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trajectory of no steps that says what is known of a trial without one."""
    info = as_map(trial.get("agent_info"))
    agent = {
        "name": info.get("name"),
        "version": info.get("version"),
        "model_name": as_map(info.get("model_info")).get("name"),
    }
    return {
        "trajectory_id": trial.get("trial_name"),
        "agent": agent,
        "steps": [],
        "extra": {"gradestack": _known_of(trial)},
    }


def _named(path: Path) -> Iterator[Path]:
    with suppress(OSError, ValueError):
        for name in _REFERENCE.findall(
            read_regular(path) if path.stat().st_size < 1 << 26 else b""
        ):
            yield (path.parent / loads(b'"%b"' % name)).resolve()


def _other(name: Any, path: Path, seen: set[Path]) -> dict[str, Any] | None:
    if not isinstance(name, str):
        return None
    found: Any = None
    with suppress(OSError, ValueError):
        place, folder = (path.parent / name).resolve(), path.parent.resolve()
        seen.add(path.resolve())
        found = (
            loads(read_regular(place))
            if place not in seen and place.is_relative_to(folder)
            else None
        )
        seen.add(place)
    return found if isinstance(found, dict) and Atif.is_record(found) else None


def _joined(record: dict[str, Any], path: Path, seen: set[Path]) -> dict[str, Any]:
    """Return a trajectory with the steps of its continuations, and with sub-agents that stand in
    other files.
    """
    last, steps = record, list(record["steps"])
    while (more := _other(last.get("continued_trajectory_ref"), path, seen)) is not None:
        last, steps = more, [*steps, *more["steps"]]
    inner = list(as_list(record.get("subagent_trajectories")))
    results = [
        each
        for step in steps
        for each in as_list(as_map(as_map(step).get("observation")).get("results"))
    ]
    for ref in [
        ref for each in map(as_map, results) for ref in as_list(each.get("subagent_trajectory_ref"))
    ]:
        if (found := _other(as_map(ref).get("trajectory_path"), path, seen)) is not None:
            del ref["trajectory_path"]
            inner.append(_joined(found, path, seen))
    whole = {"final_metrics": record.get("final_metrics") if last is record else None}
    whole["continued_trajectory_ref"] = last.get("continued_trajectory_ref")
    return {**record, **whole, "steps": steps, "subagent_trajectories": inner}


def _trial(path: Path) -> dict[str, Any]:
    """Return what a job of Harbor says of the trial a trajectory belongs to.

    ``TRIAL/result.json``.
    """
    place, result = _result_of(path), None
    if place is not None:
        with suppress(OSError, ValueError):
            result = loads(read_regular(place))
    return _known_of(as_map(result))


def _known_of(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Harbor's result of a trial says, in the jsonl form.

    Harbor's mean takes a missing reward as 0; so does this where an exception says why there is
    none. How an exception beside a reward ended the run is said, and the reward counts.
    """
    rewards = as_map(as_map(trial.get("verifier_result")).get("rewards"))
    exception = as_map(trial.get("exception_info"))
    known: dict[str, Any] = {
        "id": trial.get("task_name"),
        "run": trial.get("trial_name"),
        "recorded": rewards,
    }
    kind = text_or_none(exception.get("exception_type")) or ""
    if exception:
        known["ended"] = "limit:time" if "Timeout" in kind else "error"
    if exception and not any(is_number(each) for each in rewards.values()):
        message = text_or_none(exception.get("exception_message")) or kind or "the trial failed"
        known["recorded"] = {**rewards, "reward": 0.0}
        known["error"] = {"category": "target", "code": "run_error", "message": message}
        known["error"] |= {"type": kind} if kind else {}
    return {name: each for name, each in known.items() if each}


def _samples(
    record: dict[str, Any], source: Source, made: str, parent: Sample | None
) -> Iterator[Sample]:
    """Yield the sample of a trajectory, and behind it those of its sub-agents."""
    trajectory, wrong = convert_record(record, _Trajectory)
    talk, agent, session = Conversation(), trajectory.agent, trajectory.session_id
    talk.remarks |= wrong
    for step in trajectory.steps:
        _take(step, talk)
    facets = {"agent_name": agent.name, "agent_version": agent.version}
    facets["subagent_of"] = None if parent is None else parent.id
    known = named(
        trajectory.trajectory_id or session,
        made,
        cluster=None if parent is None else parent.cluster or parent.id,
        trace={"session_id": session} if session is not None else {},
        facets={key: each for key, each in facets.items() if each is not None},
    )
    if trajectory.continued_trajectory_ref:
        talk.remark("continued_trajectory_ref")
    held = [
        {**each, "trajectory_id": f"{known.id}/{text_or_none(each.get('trajectory_id')) or number}"}
        for number, each in enumerate(trajectory.subagent_trajectories)
    ]
    offered = agent.tool_definitions
    sample = log_sample(
        known,
        talk,
        source,
        model=agent.model_name,
        tools=None if offered is None else tuple(filter(None, map(tool_spec, offered))),
        usage=_total(trajectory.final_metrics, talk),
        agent_usage=trajectory.final_metrics or talk.usages or None,
        children=tuple(str(each["trajectory_id"]) for each in held),
    )
    own = trajectory.extra.gradestack
    sample = _completed(sample, own) if own else sample
    yield sample
    for each in held:
        yield from _samples(each, source, made, sample)


def _completed(sample: Sample, own: Mapping[str, Any]) -> Sample:
    found = JsonLines().record({"id": sample.id, **own}, file="", ordinal=0)
    if isinstance(found, BadRecord):
        # what makes a bad record
        raise ValueError(f"extra.gradestack: {found.reason}")
    more = {
        "usage": ("agent_usage",),
        "error": ("status",),
        "predicted": tuple(as_map(own.get("predicted"))),
    }
    names = {name for key in own for name in (key, *more.get(key, ()))} & set(
        Sample.__struct_fields__
    )
    changes = {name: getattr(found, name) for name in names}
    if "id" in own and found.source is not None and sample.source is not None:
        changes["source"] = replace(sample.source, id=found.source.id)
    return replace(sample, **changes)


def _complete(call: ToolCall, own: Mapping[str, Any]) -> None:
    try:
        found = msgspec.convert({"name": call.name, **own}, ToolCall)
    except ValueError as problem:
        raise ValueError(f"extra.gradestack of the call {call.name}: {problem}") from None
    for name in own.keys() & set(ToolCall.__struct_fields__):
        force_setattr(call, name, getattr(found, name))


def _take(entry: dict[str, Any], talk: Conversation) -> None:
    """Read one step, with the results of its calls."""
    step, wrong = convert_record(entry, _Step)
    talk.remarks |= {f"steps.{remark}": 1 for remark in wrong}
    role, results = _ROLES.get(step.source or ""), step.observation.results
    if role is None:
        talk.remark("step_without_source")
        return
    if step.is_copied_context is True:
        talk.remark("copied_step")
        talk.add(Message(role=role, content=step.message))
        for result in results:
            talk.add(Message(role="tool", content=result.content))
        return
    before, calls = len(talk.calls), step.tool_calls
    said = step.message or None if calls else step.message
    usual = {"role": role, "content": said, "usage": step.metrics, **step.extra.gradestack}
    if role == "assistant":
        _remark_unread(entry, talk)
        usual["tool_calls"] = list(map(_usual_call, calls))
        usual["reasoning_content"] = step.reasoning_content
        usual["model"] = step.model_name
    talk.read([usual])
    made = talk.calls[before:]
    for result in results:
        _take_result(result, talk)
    for call, recorded in zip(made, calls, strict=False):
        if recorded.extra.gradestack:
            _complete(call, recorded.extra.gradestack)


def _usual_call(call: _Call) -> dict[str, Any]:
    function = {"name": call.function_name, "arguments": call.arguments}
    return {"id": call.tool_call_id, "function": function}


def _take_result(result: _Result, talk: Conversation) -> None:
    """Read a result; one that names no call is a message."""
    own, refs = result.extra.gradestack, result.subagent_trajectory_ref
    content, name = own.get("content", result.content), text_or_none(own.get("name"))
    for ref in refs:
        if as_map(ref).get("trajectory_path"):
            talk.remark("trajectory_path")
    if result.source_call_id is None:
        talk.add(Message(role="tool", content=content, name=name))
        return
    entry = {
        "role": "tool",
        "tool_call_id": result.source_call_id,
        "content": refs or None if content is None else content,
        "name": name,
    }
    if result.extra.is_error is True:
        entry["status"] = "error"
    talk.read([entry])


def _remark_unread(step: Mapping[str, Any], talk: Conversation) -> None:
    """Count what holds calls in a step of the agent that ATIF has no such place for."""
    for key in unread_keys(step, _READ):
        talk.remark_unread(f"key `{key}`")
    for entry in as_list(step.get("tool_calls")):
        if entry and not isinstance(entry, dict):
            talk.remark_unread("entry of `tool_calls`")


def _usage(metrics: Any, prefix: str = "") -> Usage | None:
    if not metrics:
        return None
    held = {
        key.removeprefix(prefix): each
        for key, each in as_map(metrics).items()
        if key.startswith(prefix)
    }
    found, cost = usage_of(held), as_number(held.get("cost_usd"))
    if cost is None:
        return found
    return replace(found or Usage(), cost_usd=cost)


def _total(final: Any, talk: Conversation) -> Usage | None:
    whole, steps = _usage(final, "total_"), added(map(_usage, talk.usages))
    if whole is None or steps is None:
        return steps if whole is None else replace(whole, requests=None)
    if (whole.input_tokens, whole.output_tokens) != (steps.input_tokens, steps.output_tokens):
        talk.remark("final_metrics_differ_from_steps")
    return replace(whole, requests=steps.requests)

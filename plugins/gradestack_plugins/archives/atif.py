"""Reader ``atif``: trajectories in the Agent Trajectory Interchange Format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

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
    compile_later,
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
from gradestack_plugins.readers.chat import text_or_none, tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation
from gradestack_plugins.readers.chat.samples import log_sample
from gradestack_plugins.readers.chat.unread import unread_keys
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.declared import Items, Text, convert_record
from gradestack_plugins.readers.jsonl import JsonLines

_VERSION: Final = compile_later(r"(?:ATIF-v)?1\.[0-8]")
_REFERENCE: Final = compile_later(
    rb'"(?:continued_trajectory_ref|trajectory_path)"\s*:\s*"((?:[^"\\]|\\.)*)"'
)
_TRIAL: Final = ("trial_name", "task_name", "verifier_result")
"""Keys of Harbor's result of one trial."""
_READ: Final = frozenset({"tool_calls", "observation", "message", "extra", "metrics", "source"})
"""Keys of a step that are read, or hold no calls."""
_ROLES: Final = {"agent": "assistant", "user": "user", "system": "system"}


class _Extra(msgspec.Struct, frozen=True):
    """The key in which ``gradestack convert`` keeps what ATIF has no place for."""

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
    """The result of a call, or of none."""

    source_call_id: Text = None
    content: Any = None
    subagent_trajectory_ref: list[Any] = []
    extra: _Extra = _Extra()


class _Observation(msgspec.Struct, frozen=True):
    """The results of a step."""

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
    run with reward 0, as Harbor's mean takes it. That holds without a trajectory beside its
    ``result.json``, too.
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
        paths = {input_file.path.resolve() for input_file in inputs.data}
        if len(paths) > 1:
            parts = _parts_of_others(paths)
        else:
            parts = set()
        parts |= {result for path in paths if (result := _result_of(path)) is not None}
        input_files = [
            input_file for input_file in inputs.data if input_file.path.resolve() not in parts
        ]
        main_files = tuple(input_files)
        return super().files(replace(inputs, data=main_files), index)

    @override
    def joined(self, value: Any, path: Path) -> Any:
        if not isinstance(value, dict) or not _is_trajectory(value):
            return value
        joined_document = _joined(value, path, set())
        trial = _result_beside(path)
        known = _trial_facts(trial) if isinstance(trial, dict) else {}
        extra = joined_document.get("extra")
        extension = as_map(extra).get("gradestack")
        if isinstance(extension, dict):
            extension = known | extension
        elif extension is None:
            extension = known
        return {**joined_document, "extra": {"gradestack": extension}}

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, fallback_id: str
    ) -> Iterator[Sample]:
        if is_trial(record):
            without_steps = _without_steps(record)
            for sample in _samples(without_steps, source, fallback_id, None):
                yield replace(sample, remarks={"trial_without_trajectory": 1})
        elif _is_trajectory(record):
            yield from _samples(record, source, fallback_id, None)
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
    """Return the place of Harbor's result of the trial that a trajectory belongs to."""
    if path.parent.name == "agent":
        return path.parent.parent / "result.json"
    return None


def _without_steps(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trajectory of no steps for a trial without one."""
    about = as_map(trial.get("agent_info"))
    model_info = about.get("model_info")
    model = as_map(model_info).get("name")
    version = about.get("version")
    agent = {"name": about.get("name"), "version": version, "model_name": model}
    extra = {"gradestack": _trial_facts(trial)}
    trial_name = trial.get("trial_name")
    return {"trajectory_id": trial_name, "agent": agent, "steps": [], "extra": extra}


def _parts_of_others(paths: set[Path]) -> set[Path]:
    """Return the files that are continuations or sub-agents of other files."""
    names = {path: {*_named_files(path)} for path in paths}
    named_by_any = set[Path]().union(*names.values())
    waiting = list(paths - named_by_any)
    parts: set[Path] = set()
    while waiting:
        new = names.get(waiting.pop(), set()) - parts
        parts |= new
        waiting += new
    return parts


def _named_files(path: Path) -> Iterator[Path]:
    """Yield the files that a trajectory names; a large or unreadable file names none."""
    with suppress(OSError, ValueError):
        content = b""
        if path.stat().st_size < _LARGEST:
            content = read_regular(path)
        for name in _REFERENCE.findall(content):
            text = b'"%b"' % name
            document = loads(text)
            yield (path.parent / document).resolve()


_LARGEST: Final = 1 << 26


def _other(name: Any, path: Path, visited: set[Path]) -> dict[str, Any] | None:
    """Return the trajectory in a file below the folder of another, None for any other file."""
    if not isinstance(name, str):
        return None
    other: Any = None
    with suppress(OSError, ValueError):
        other_path = (path.parent / name).resolve()
        folder = path.parent.resolve()
        visited.add(path.resolve())
        if other_path not in visited and other_path.is_relative_to(folder):
            other = loads(read_regular(other_path))
        visited.add(other_path)
    if isinstance(other, dict) and Atif.is_record(other):
        return other
    return None


def _joined(record: dict[str, Any], path: Path, visited: set[Path]) -> dict[str, Any]:
    """Return a trajectory with the steps of its continuations, and sub-agents in other files."""
    last = record
    steps = list(record["steps"])
    while (more := _other(last.get("continued_trajectory_ref"), path, visited)) is not None:
        last = more
        steps = [*steps, *more["steps"]]
    subagent_trajectories = record.get("subagent_trajectories")
    agents = list(as_list(subagent_trajectories))
    for reference in _agent_references(steps):
        trajectory_path = as_map(reference).get("trajectory_path")
        other = _other(trajectory_path, path, visited)
        if other is not None:
            del reference["trajectory_path"]
            agents.append(_joined(other, path, visited))
    final_metrics = None
    if last is record:
        final_metrics = record.get("final_metrics")
    continued_trajectory_ref = last.get("continued_trajectory_ref")
    return {
        **record,
        "final_metrics": final_metrics,
        "continued_trajectory_ref": continued_trajectory_ref,
        "steps": steps,
        "subagent_trajectories": agents,
    }


def _agent_references(steps: list[Any]) -> list[Any]:
    """Return the references to sub-agents in the results of steps."""
    references: list[Any] = []
    for step in map(as_map, steps):
        observation = step.get("observation")
        results = as_map(observation).get("results")
        for result in as_list(results):
            subagent_trajectory_ref = as_map(result).get("subagent_trajectory_ref")
            references += as_list(subagent_trajectory_ref)
    return references


def _result_beside(path: Path) -> Any:
    """Return Harbor's result of the trial that a trajectory belongs to: ``TRIAL/result.json``."""
    result_path = _result_of(path)
    if result_path is not None:
        with suppress(OSError, ValueError):
            return loads(read_regular(result_path))
    return None


def _trial_facts(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the jsonl form in Harbor's result of a trial.

    Harbor's mean takes a missing reward as 0; so does this where an exception says why there is
    none. An exception beside a reward says how the run ended, and the reward counts.
    """
    verifier_result = trial.get("verifier_result")
    rewards = as_map(as_map(verifier_result).get("rewards"))
    exception = as_map(trial.get("exception_info"))
    exception_type = exception.get("exception_type")
    kind = text_or_none(exception_type) or ""
    task_name = trial.get("task_name")
    trial_name = trial.get("trial_name")
    facts: dict[str, Any] = {"id": task_name, "run": trial_name}
    facts["recorded"] = rewards
    if exception:
        facts["ended"] = "limit:time" if "Timeout" in kind else "error"
    if exception and not any(map(is_number, rewards.values())):
        exception_message = exception.get("exception_message")
        message = text_or_none(exception_message) or kind or "the trial failed"
        error = {"category": "target", "code": "run_error", "message": message}
        facts["error"] = {**error, "type": kind} if kind else error
        facts["recorded"] = {**rewards, "reward": 0.0}
    return {name: value for name, value in facts.items() if value}


def _samples(
    record: dict[str, Any], source: Source, fallback_id: str, parent: Sample | None
) -> Iterator[Sample]:
    """Yield the sample of a trajectory, and behind it those of its sub-agents."""
    trajectory, field_remarks = convert_record(record, _Trajectory)
    talk = Conversation()
    agent = trajectory.agent
    session = trajectory.session_id
    talk.remarks |= field_remarks
    for step in trajectory.steps:
        _read_step(step, talk)
    if parent is None:
        cluster = None
    else:
        cluster = parent.cluster or parent.id
    facets = {"agent_name": agent.name, "agent_version": agent.version}
    facets["subagent_of"] = None if parent is None else parent.id
    values_by_name = {name: value for name, value in facets.items() if value is not None}
    trace = {} if session is None else {"session_id": session}
    identifier = trajectory.trajectory_id or session
    identity = named(
        identifier,
        fallback_id,
        cluster,
        trace,
        values_by_name,
    )
    if trajectory.continued_trajectory_ref:
        talk.remark("continued_trajectory_ref")
    agents = []
    for number, inner in enumerate(trajectory.subagent_trajectories):
        trajectory_id = inner.get("trajectory_id")
        name = text_or_none(trajectory_id) or number
        agents.append({**inner, "trajectory_id": f"{identity.id}/{name}"})
    specs = map(tool_spec, agent.tool_definitions or ())
    tools = tuple([spec for spec in specs if spec is not None])
    total_usage = _total_usage(trajectory.final_metrics, talk)
    trajectory_ids = [str(inner["trajectory_id"]) for inner in agents]
    children = tuple(trajectory_ids)
    agent_usage = trajectory.final_metrics or talk.usages or None
    sample = log_sample(
        identity,
        talk,
        source,
        model=agent.model_name,
        tools=None if agent.tool_definitions is None else tools,
        usage=total_usage,
        agent_usage=agent_usage,
        children=children,
    )
    extension = trajectory.extra.gradestack
    sample = _completed(sample, extension) if extension else sample
    yield sample
    for inner in agents:
        yield from _samples(inner, source, fallback_id, sample)


def _completed(sample: Sample, extension: Mapping[str, Any]) -> Sample:
    """Return a sample completed with the fields under ``extra.gradestack``."""
    form = JsonLines().record({"id": sample.id, **extension}, file="", ordinal=0)
    if isinstance(form, BadRecord):
        raise ValueError(f"extra.gradestack: {form.reason}")
    names = set(extension)
    predicted = extension.get("predicted")
    names.update(as_map(predicted))
    names.update(["agent_usage"] if "usage" in extension else [])
    names.update(["status"] if "error" in extension else [])
    struct_fields = set(Sample.__struct_fields__)
    changes = {name: getattr(form, name) for name in names & struct_fields}
    if "id" in extension and form.source is not None and sample.source is not None:
        changes["source"] = replace(sample.source, id=form.source.id)
    return replace(sample, **changes)


def _complete_call(call: ToolCall, extension: Mapping[str, Any]) -> None:
    """Set the fields of a call under its ``extra.gradestack``."""
    try:
        form = msgspec.convert({"name": call.name, **extension}, ToolCall)
    except ValueError as problem:
        raise ValueError(f"extra.gradestack of the call {call.name}: {problem}") from None
    struct_fields = set(ToolCall.__struct_fields__)
    for name in extension.keys() & struct_fields:
        force_setattr(call, name, getattr(form, name))


def _read_step(recorded: dict[str, Any], talk: Conversation) -> None:
    """Read one step, with the results of its calls."""
    step, field_remarks = convert_record(recorded, _Step)
    talk.remarks |= {f"steps.{remark}": 1 for remark in field_remarks}
    role = _ROLES.get(step.source or "")
    results = step.observation.results
    if role is None:
        talk.remark("step_without_source")
        return
    if step.is_copied_context is True:
        talk.remark("copied_step")
        talk.add(Message(role=role, content=step.message))
        for result in results:
            talk.add(Message(role="tool", content=result.content))
        return
    calls = step.tool_calls
    count = len(talk.calls)
    content = step.message or None if calls else step.message
    message = {"role": role, "content": content, "usage": step.metrics, **step.extra.gradestack}
    if role == "assistant":
        _remark_unread(recorded, talk)
        message["tool_calls"] = list(map(_chat_call, calls))
        message["reasoning_content"] = step.reasoning_content
        message["model"] = step.model_name
    talk.read([message])
    new_calls = talk.calls[count:]
    for result in results:
        _read_result(result, talk)
    for call, written in zip(new_calls, calls, strict=False):
        if written.extra.gradestack:
            _complete_call(call, written.extra.gradestack)


def _chat_call(call: _Call) -> dict[str, Any]:
    function = {"name": call.function_name, "arguments": call.arguments}
    return {"id": call.tool_call_id, "function": function}


def _read_result(result: _Result, talk: Conversation) -> None:
    """Read a result; a result that names no call is a message."""
    extension = result.extra.gradestack
    references = result.subagent_trajectory_ref
    content = extension.get("content", result.content)
    name = text_or_none(extension.get("name"))
    for reference in references:
        if as_map(reference).get("trajectory_path"):
            talk.remark("trajectory_path")
    if result.source_call_id is None:
        message = Message(role="tool", content=content, name=name)
        talk.add(message)
        return
    if content is None:
        content = references or None
    entry = {
        "role": "tool",
        "tool_call_id": result.source_call_id,
        "content": content,
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
    """Return the usage in metrics, whose keys may begin with a prefix."""
    named = as_map(metrics).items()
    amounts = {key.removeprefix(prefix): value for key, value in named if key.startswith(prefix)}
    usage = usage_of(amounts)
    cost = as_number(amounts.get("cost_usd"))
    if cost is None:
        return usage
    return replace(usage or Usage(), cost_usd=cost)


def _total_usage(final: Any, talk: Conversation) -> Usage | None:
    """Return the final metrics, else the sum over steps, and count a remark if they differ."""
    total = _usage(final, "total_")
    steps = added(map(_usage, talk.usages))
    if total is None or steps is None:
        if total is None:
            return steps
        return replace(total, requests=None)
    if (total.input_tokens, total.output_tokens) != (steps.input_tokens, steps.output_tokens):
        talk.remark("final_metrics_differ_from_steps")
    return replace(total, requests=steps.requests)

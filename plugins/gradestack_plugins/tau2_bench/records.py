"""Simulations as samples: messages, calls, expected actions and recorded rewards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import force_setattr
from typing_extensions import override

from gradestack import (
    IMPOSSIBLE_AMOUNT,
    JSON,
    Expectation,
    ExpectedCall,
    Fault,
    Message,
    Rule,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    Usage,
    impossible_amounts,
    replace,
)
from gradestack.jsonio import as_amount, as_list, as_text
from gradestack_plugins.readers.chat import parse_arguments, schema_of, text_of, text_or_none
from gradestack_plugins.readers.chat.conversation import Conversation, finish, kind_of
from gradestack_plugins.readers.chat.unread import unread_in
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.declared import convert_record
from gradestack_plugins.tau2_bench.forms import (
    Action,
    Check,
    Checks,
    Info,
    RewardInfo,
    Simulation,
    Task,
    Tick,
    Tool,
    Trouble,
)

ASSISTANT = "assistant"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run that all its simulations share."""

    model: str | None = None
    domain: str | None = None
    tools: tuple[ToolSpec, ...] | None = None
    tasks: Mapping[str, Expectation] = msgspec.field(default_factory=dict)
    """Id of a task -> its expectation."""
    has_tasks: bool = False
    num_trials: int | None = None
    """Planned trials of each task."""
    remarks: tuple[str, ...] = ()
    """Keys that were left out, as they are of another type."""


def setting_of(info: JSON, tasks: JSON) -> Setting:
    """Read the setting of a results file: model, domain, tools, tasks and planned trials.

    Args:
        info: Its ``info``.
        tasks: Its ``tasks``; None where there are none.
    """
    record = info if isinstance(info, dict) else {}
    about, field_remarks = convert_record(record, Info)
    remarks = {f"info.{remark}": 1 for remark in field_remarks}
    expected = {}
    for entry in as_list(tasks):
        try:
            task, field_remarks = convert_record(entry, Task)
        except ValueError as problem:
            remarks[f"tasks: {problem}"] = 1
            continue
        expected[str(task.id)] = Expectation() if field_remarks else expectation(task)
        remarks |= {f"tasks: {remark}": 1 for remark in field_remarks}
    model = about.agent_info.llm or about.audio_native_config.model or None
    tools = _tools(about.environment_info.tool_defs)
    has_tasks = isinstance(tasks, list)
    domain = about.environment_info.domain_name
    return Setting(
        model=model,
        domain=domain,
        tools=tools,
        tasks=expected,
        has_tasks=has_tasks,
        num_trials=about.num_trials,
        remarks=tuple(remarks),
    )


def _tools(definitions: Mapping[str, Tool] | None) -> tuple[ToolSpec, ...] | None:
    """Convert the tool definitions of an environment into specifications, if there are any."""
    if definitions is None:
        return None
    return tuple(
        ToolSpec(
            name=tool.name or name,
            description=tool.doc or "",
            parameters=schema_of(tool.params),
        )
        for name, tool in definitions.items()
    )


def expectation(task: Task) -> Expectation:
    """Return the expectation of a task; without a list of actions it has none of calls."""
    actions = task.evaluation_criteria.actions
    if actions is None:
        return Expectation()
    calls = tuple(map(expected_call, actions))
    return Expectation(calls=calls)


def expected_call(action: Action) -> ExpectedCall:
    """Return one expected action.

    With ``compare_args`` it has rules, for arguments not compared or not expected.
    """
    arguments, raw = parse_arguments(action.arguments)
    compared, rules = action.compare_args, None
    if compared is not None:
        names = arguments or {}
        rules = {key: Rule(ignore=True, optional=True) for key in names if key not in compared}
        rules |= {key: Rule(optional=True) for key in compared if key not in names}
    raw_arguments = raw if arguments is None else None
    return ExpectedCall(
        name=action.name,
        arguments=arguments,
        raw_arguments=raw_arguments,
        rules=rules,
        requestor=action.requestor,
    )


class Talk(Conversation):
    """The conversation of one simulation: calls of the agent and of the user, with results."""

    @override
    def _read_message(self, entry: dict[str, Any], role: str) -> None:
        if role == "tool":
            grouped = entry.get("tool_messages")
            for result in grouped if isinstance(grouped, list) else (entry,):
                if isinstance(result, dict):
                    self._read_tool_message(result)
                else:
                    self.remark("message:other")
            return
        text = text_of(entry.get("content"))
        if role == "user" and text:
            if self.questions:
                self.turns.append([])
            self.questions.append(text)
        elif role == ASSISTANT:
            self.step += 1
            self.text = text or self.text
            self.usages.append(entry.get("usage"))
            for kind in unread_in(entry, ("tool_calls",)):
                self.remark_unread(kind)
            self._keep_tags(text)
        elif role not in {"system", "user"}:
            self.remark(kind_of("role", role))
        tool_calls = entry.get("tool_calls")
        calls = tuple(self._calls_by(role, tool_calls))
        message = Message(role=role, content=entry.get("content"), tool_calls=calls)
        self.add(message)

    def _calls_by(self, role: str, recorded: Any) -> Iterator[ToolCall]:
        """Add the calls of a message, and yield them."""
        if recorded and not isinstance(recorded, list):
            self.remark_unread("key `tool_calls`")
        for raw in as_list(recorded):
            if isinstance(raw, dict):
                yield self._call_by(role, raw)
            elif raw is not None:
                self.remark_unread("entry of `tool_calls`")

    def _call_by(self, role: str, raw: dict[str, Any]) -> ToolCall:
        """Add a recorded call by the agent or the user, whose calls have no step."""
        arguments = parse_arguments(raw.get("arguments"))
        identifier = as_text(raw.get("id")) or None
        call = self.add_call(None, identifier, raw.get("name"), arguments)
        requestor = text_or_none(raw.get("requestor"))
        force_setattr(call, "requestor", role if requestor is None else requestor)
        if role != ASSISTANT:
            force_setattr(call, "step", None)
        return call

    def _read_tool_message(self, entry: dict[str, Any]) -> None:
        """Give a result to the call of its id, or else to the oldest open one of its requestor."""
        requestor = text_or_none(entry.get("requestor")) or ASSISTANT
        identifier = as_text(entry.get("id")) or None
        content = entry.get("content")
        message = Message(role="tool", content=content, tool_call_id=identifier)
        self.add(message)
        calls = [call for call in self.calls if call.requestor == requestor]
        if identifier is not None:
            calls = [call for call in calls if call.id == identifier]
        call = next((call for call in calls if call.status is None), None)
        if call is None:
            self.remark("second_result" if calls else "result_without_call")
        else:
            error = entry.get("error")
            finish(call, content, text_of(content) if error is True else None)


def talk_of(simulation: Simulation) -> Talk | None:
    """Return the conversation of a simulation's messages, or of its ticks; None without both."""
    entries: Iterable[Any] | None = simulation.messages
    if entries is None and simulation.ticks is not None:
        entries = _joined(message for tick in simulation.ticks for message in _of_tick(tick))
    if entries is None:
        return None
    talk = Talk()
    talk.read(entries)
    return talk


def _of_tick(tick: Tick) -> Iterator[Any]:
    """Yield the messages of one tick: those of the agent with its results, then the user's."""
    agent = (ASSISTANT, tick.agent_chunk, tick.agent_tool_calls, tick.agent_tool_results)
    user = ("user", tick.user_chunk, tick.user_tool_calls, tick.user_tool_results)
    for role, chunk, calls, results in (agent, user):
        if chunk is not None or calls:
            yield {**(chunk or {}), "role": role, "tool_calls": calls}
        for result in results or ():
            yield {**result, "role": "tool"} if isinstance(result, dict) else result


def _joined(messages: Iterator[Any]) -> Iterator[Any]:
    """Yield messages, the words of one side without a break as one; silence is left out."""
    last: dict[str, Any] | None = None
    for message in messages:
        speaks = _speaks(message)
        if speaks and not message.get("content"):
            continue
        if speaks and last is not None and last["role"] == message["role"]:
            text = f"{last['content']}{_space_between(last, message)}{message['content']}"
            last = {**message, "content": text}
            continue
        if last is not None:
            yield last
        last = message if speaks else None
        if not speaks:
            yield message
    if last is not None:
        yield last


def _speaks(message: Any) -> bool:
    """Return whether a message is one of words alone."""
    if not isinstance(message, dict) or message.get("role") == "tool":
        return False
    return not message.get("tool_calls")


def _space_between(last: dict[str, Any], following: dict[str, Any]) -> str:
    """Return a space between the words of two utterances, nothing within one."""
    utterance_ids = last.get("utterance_ids")
    before = set(map(str, as_list(utterance_ids)))
    after = set(map(str, as_list(following.get("utterance_ids"))))
    if before and after and before.isdisjoint(after):
        return " "
    return ""


ENDED = {
    "user_stop": "completed",
    "agent_stop": "completed",
    "max_steps": "limit:steps",
    "timeout": "limit:time",
    "too_many_errors": "limit:errors",
    "context_window_exceeded": "limit:context",
    "agent_error": "error",
    "user_error": "error",
    "infrastructure_error": "error",
    "unexpected_error": "error",
}
"""``termination_reason`` -> ``Sample.ended``."""
INFRASTRUCTURE = "infrastructure_error"
"""The end of a simulation that the benchmark leaves out of every figure."""
BROKEN = frozenset({INFRASTRUCTURE, "unexpected_error"})
"""Reasons that are the benchmark's own trouble, not the agent's or the user's."""


class Tau2Run(msgspec.Struct, frozen=True):
    """The data of the grader of this family beside the general fields."""

    reward_info: RewardInfo
    termination: str | None
    num_trials: int | None = None
    """Planned trials of its task."""


def sample_of(record: JSON, source: Source, setting: Setting) -> Sample:
    """Return the sample of one simulation.

    Raises:
        ValueError: It is no object, or names no task.
    """
    simulation, remarks = convert_record(record, Simulation)
    task_id, reason = simulation.task_id, simulation.termination_reason
    expected = setting.tasks.get(str(task_id))
    reward_info = simulation.reward_info or RewardInfo()
    is_broken = reason in BROKEN
    talk = talk_of(simulation)
    if talk is None:
        remarks["conversation_missing"] = 1
    if reason == INFRASTRUCTURE:
        remarks["ended_by_infrastructure_error_and_apart_from_the_rates"] = 1
    if setting.has_tasks and expected is None:
        remarks["task_missing"] = 1
    if impossible := impossible_amounts(simulation.duration):
        remarks[IMPOSSIBLE_AMOUNT] = impossible
    fields = _fields_of(talk)
    usages = talk.usages if talk is not None else []
    talk_remarks = talk.remarks if talk is not None else {}
    return Sample(
        id=str(task_id),
        model=setting.model,
        run=simulation.trial,
        **fields,
        tools=setting.tools,
        expected=expected or Expectation(),
        recorded=recorded_of(reward_info),
        status=Status.FAILED if is_broken else Status.OK,
        error=_fault(simulation, reason) if is_broken and reason else None,
        ended=None if reason is None else ENDED.get(reason),
        trace={"trace_id": simulation.id} if simulation.id else {},
        usage=_usage(simulation, added(map(usage_of, usages))),
        agent_usage=_costs(simulation) or None,
        facets=_facets(simulation, setting),
        remarks={**talk_remarks, **remarks},
        source=source if isinstance(task_id, str) else replace(source, id=task_id),
        native=Tau2Run(reward_info, reason, setting.num_trials),
    )


def _fields_of(talk: Talk | None) -> dict[str, Any]:
    """Return the fields of a sample that its conversation fills; its messages are one turn."""
    if talk is None:
        return {"input": None, "turns": (), "calls": None, "text": None}
    fields = talk.finished()
    messages = tuple(message for turn in talk.turns for message in turn)
    calls = None if talk.has_unread_calls else tuple(talk.calls)
    question = next(iter(talk.questions), None)
    turns = (messages,) if messages else ()
    return {
        **fields,
        "turns": turns,
        "input": question,
        "calls": calls,
    }


def _costs(simulation: Simulation) -> dict[str, Any]:
    """Return the costs and the usage that a simulation records."""
    costs = {
        "agent_cost": simulation.agent_cost,
        "user_cost": simulation.user_cost,
        "agent_usage": simulation.agent_usage,
    }
    return {key: value for key, value in costs.items() if value is not None}


def _usage(simulation: Simulation, spent: Usage | None) -> Usage | None:
    cost = as_amount(simulation.agent_cost)
    seconds = as_amount(simulation.duration)
    usage = replace(spent or Usage(), cost_usd=cost, seconds=seconds)
    return usage if usage != Usage() else None


def _fault(simulation: Simulation, reason: str) -> Fault:
    trouble = simulation.info or Trouble()
    message = text_or_none(trouble.error or trouble.error_message)
    if message is None:
        shown = f"the simulation ended by {reason}"
    else:
        shown = message
    return Fault(category="target", code=reason, message=shown)


def recorded_of(about: RewardInfo) -> dict[str, Any]:
    """Return the recorded reward, whether the database matched, and the shares of checks met."""
    if about.db_check is None:
        match = None
    else:
        match = about.db_check.db_match
    share_met = _share_met(about.action_checks)
    env_assertions = _share_met(about.env_assertions)
    recorded = {
        "reward": about.reward,
        "db_match": match,
        "actions": share_met,
        "env_assertions": env_assertions,
        "communicate": _share_met(about.communicate_checks),
        "nl_assertions": _share_met(about.nl_assertions),
    }
    return {name: value for name, value in recorded.items() if value is not None}


def _share_met(checks: Checks) -> float | None:
    if checks:
        total_mets = sum(map(is_met, checks))
        return total_mets / len(checks)
    return None


def is_met(check: Check) -> bool:
    """Return whether a check says that it is met."""
    return check.action_match is True or check.met is True


def _facets(simulation: Simulation, setting: Setting) -> dict[str, JSON]:
    mode = None if simulation.mode == "half_duplex" else simulation.mode
    facets = {
        "domain": setting.domain,
        "termination_reason": simulation.termination_reason,
        "mode": mode,
    }
    return {key: value for key, value in facets.items() if value is not None}

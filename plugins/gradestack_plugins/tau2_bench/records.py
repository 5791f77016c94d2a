"""Simulations as samples.

What was said and done, what was expected, what the benchmark recorded.
"""

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
from gradestack_plugins.readers.chat import parse_arguments, schema_of, text_of
from gradestack_plugins.readers.chat.conversation import Conversation, finish, kind_of, text_or_none
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
    """What holds for every simulation of a run."""

    model: str | None = None
    domain: str | None = None
    tools: tuple[ToolSpec, ...] | None = None
    tasks: Mapping[str, Expectation] = msgspec.field(
        default_factory=dict
    )  # task id -> what it expects
    has_tasks: bool = False
    num_trials: int | None = None
    """Planned trials of each task."""
    remarks: tuple[str, ...] = ()
    """Keys that were left out, as they are of another type."""


def setting_of(info: JSON, tasks: JSON) -> Setting:
    """Return what ``info`` and ``tasks`` of a results file say.

    ``tasks`` is None where there are none.
    """
    about, wrong = convert_record(info if isinstance(info, dict) else {}, Info)
    remarks = {f"info.{remark}": 1 for remark in wrong}
    expected = {}
    for entry in as_list(tasks):
        try:
            task, wrong = convert_record(entry, Task)
        except ValueError as problem:
            remarks[f"tasks: {problem}"] = 1
            continue
        expected[str(task.id)] = Expectation() if wrong else expectation(task)
        remarks |= {f"tasks: {remark}": 1 for remark in wrong}
    return Setting(
        model=about.agent_info.llm or about.audio_native_config.model or None,
        domain=about.environment_info.domain_name,
        tools=_tools(about.environment_info.tool_defs),
        tasks=expected,
        has_tasks=isinstance(tasks, list),
        num_trials=about.num_trials,
        remarks=tuple(remarks),
    )


def _tools(definitions: Mapping[str, Tool] | None) -> tuple[ToolSpec, ...] | None:
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
    """Return what a task expects of a run.

    Without a list of actions there is no reference for calls.
    """
    actions = task.evaluation_criteria.actions
    return (
        Expectation() if actions is None else Expectation(calls=tuple(map(expected_call, actions)))
    )


def expected_call(action: Action) -> ExpectedCall:
    """Return one expected action.

    With ``compare_args`` it has rules, for arguments not compared or not expected.
    """
    arguments, raw = parse_arguments(action.arguments)
    compared, rules = action.compare_args, None
    if compared is not None:
        given = arguments or {}
        rules = {key: Rule(ignore=True, optional=True) for key in given if key not in compared}
        rules |= {key: Rule(optional=True) for key in compared if key not in given}
    return ExpectedCall(
        name=action.name,
        arguments=arguments,
        raw_arguments=raw if arguments is None else None,
        rules=rules,
        requestor=action.requestor,
    )


class Talk(Conversation):
    """What the messages of one simulation come to.

    Calls of the agent and of the user, each with its result.
    """

    @override
    def _message(self, entry: dict[str, Any], role: str) -> None:
        if role == "tool":
            grouped = entry.get("tool_messages")
            for each in grouped if isinstance(grouped, list) else (entry,):
                if isinstance(each, dict):
                    self._answered(each)
                else:
                    self.remark("message:other")
            return
        content, said = entry.get("content"), text_of(entry.get("content"))
        if role == "user" and said:
            self.turns += [[]] if self.asked else []
            self.asked.append(said)
        elif role == ASSISTANT:
            self.step += 1
            self.text = said or self.text
            self.usages.append(entry.get("usage"))
            self._remark_unread_parts(entry)
            self._keep_tags(said)
        elif role not in {"system", "user"}:
            self.remark(kind_of("role", role))
        made = entry.get("tool_calls")
        if made and not isinstance(made, list):
            self.remark_unread("key `tool_calls`")
        calls = [self._made_by(role, each) for each in as_list(made) if self._is_call(each)]
        self.add(Message(role=role, content=content, tool_calls=tuple(calls)))

    def _remark_unread_parts(self, entry: dict[str, Any]) -> None:
        """Count what holds calls nobody has decoded in a message of the agent."""
        for kind in unread_in(entry, ("tool_calls",)):
            self.remark_unread(kind)

    def _is_call(self, raw: Any) -> bool:
        if raw is not None and not isinstance(raw, dict):
            self.remark_unread("entry of `tool_calls`")
        return isinstance(raw, dict)

    def _made_by(self, role: str, raw: dict[str, Any]) -> ToolCall:
        given, by = parse_arguments(raw.get("arguments")), text_or_none(raw.get("requestor"))
        call = self.made(None, as_text(raw.get("id")) or None, raw.get("name"), given)
        force_setattr(call, "requestor", role if by is None else by)
        if role != ASSISTANT:
            force_setattr(call, "step", None)
        return call

    def _answered(self, entry: dict[str, Any]) -> None:
        """Give a result to its call.

        The one of its id, or without an id the oldest of its requestor that has none.
        """
        by, identifier = text_or_none(entry.get("requestor")), as_text(entry.get("id")) or None
        content = entry.get("content")
        self.add(Message(role="tool", content=content, tool_call_id=identifier))
        its = [
            each
            for each in self.calls
            if each.requestor == (by or ASSISTANT) and identifier in (None, each.id)
        ]
        call = next((each for each in its if each.status is None), None)
        if call is None:
            self.remark("second_result" if its else "result_without_call")
        else:
            finish(call, content, text_of(content) if entry.get("error") is True else None)


def talk_of(simulation: Simulation) -> Talk | None:
    """Return what a simulation's messages, or without any its ticks, come to.

    None where it has neither.
    """
    entries: Iterable[Any] | None = simulation.messages
    if entries is None and simulation.ticks is not None:
        entries = _joined(message for tick in simulation.ticks for message in _of_tick(tick))
    if entries is None:
        return None
    talk = Talk()
    talk.read(entries)
    return talk


def _of_tick(tick: Tick) -> Iterator[Any]:
    """Yield what happened in one tick.

    The agent's words and calls, its results, then those of the user.
    """
    agent = (ASSISTANT, tick.agent_chunk, tick.agent_tool_calls, tick.agent_tool_results)
    user = ("user", tick.user_chunk, tick.user_tool_calls, tick.user_tool_results)
    for role, chunk, calls, results in (agent, user):
        if chunk is not None or calls:
            yield {**(chunk or {}), "role": role, "tool_calls": calls}
        for result in results or ():
            yield {**result, "role": "tool"} if isinstance(result, dict) else result


def _joined(messages: Iterator[Any]) -> Iterator[Any]:
    """Yield messages, what one side says without a break as one; silence between is left out."""
    last: dict[str, Any] | None = None
    for message in messages:
        speaks = (
            isinstance(message, dict)
            and message.get("role") != "tool"
            and not message.get("tool_calls")
        )
        if speaks and not message.get("content"):
            continue
        if speaks and last is not None and last["role"] == message["role"]:
            last = {
                **message,
                "content": f"{last['content']}{_between(last, message)}{message['content']}",
            }
            continue
        if last is not None:
            yield last
        last = message if speaks else None
        if not speaks:
            yield message
    if last is not None:
        yield last


def _between(last: dict[str, Any], following: dict[str, Any]) -> str:
    before, after = (
        set(map(str, as_list(each.get("utterance_ids")))) for each in (last, following)
    )
    return " " if before and after and before.isdisjoint(after) else ""


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
"""How a simulation ended that the benchmark leaves out of every figure."""
BROKEN = frozenset({INFRASTRUCTURE, "unexpected_error"})
"""Reasons that are the benchmark's own trouble, not the agent's or the user's."""


class Tau2Run(msgspec.Struct, frozen=True):
    """What the grader of this family knows beside the general fields."""

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
    talk, expected = talk_of(simulation), setting.tasks.get(str(task_id))
    said = talk or Talk()
    messages = [message for turn in said.turns for message in turn]
    told = {
        **said.finished(),
        "turns": (tuple(messages),) if messages else (),
        "input": next(iter(said.asked), None),
    }
    told["calls"] = tuple(said.calls) if talk and not said.has_unread_calls else None
    if talk is None:
        remarks["conversation_missing"] = 1
    if reason == INFRASTRUCTURE:
        remarks["ended_by_infrastructure_error_and_apart_from_the_rates"] = 1
    if setting.has_tasks and expected is None:
        remarks["task_missing"] = 1
    if impossible := impossible_amounts(simulation.duration):
        remarks[IMPOSSIBLE_AMOUNT] = impossible
    costs = {
        "agent_cost": simulation.agent_cost,
        "user_cost": simulation.user_cost,
        "agent_usage": simulation.agent_usage,
    }
    agent_usage = {key: each for key, each in costs.items() if each is not None}
    reward_info, broken = simulation.reward_info or RewardInfo(), reason in BROKEN
    return Sample(
        id=str(task_id),
        model=setting.model,
        run=simulation.trial,
        **told,
        tools=setting.tools,
        expected=expected or Expectation(),
        recorded=recorded_of(reward_info),
        status=Status.FAILED if broken else Status.OK,
        error=_fault(simulation, reason) if broken and reason else None,
        ended=None if reason is None else ENDED.get(reason),
        trace={"trace_id": simulation.id} if simulation.id else {},
        usage=_usage(simulation, added(map(usage_of, said.usages))),
        agent_usage=agent_usage or None,
        facets=_facets(simulation, setting),
        remarks={**said.remarks, **remarks},
        source=source if isinstance(task_id, str) else replace(source, id=task_id),
        native=Tau2Run(reward_info, reason, setting.num_trials),
    )


def _usage(simulation: Simulation, spent: Usage | None) -> Usage | None:
    cost, seconds = as_amount(simulation.agent_cost), as_amount(simulation.duration)
    usage = replace(spent or Usage(), cost_usd=cost, seconds=seconds)
    return usage if usage != Usage() else None


def _fault(simulation: Simulation, reason: str) -> Fault:
    trouble = simulation.info or Trouble()
    message = text_or_none(trouble.error or trouble.error_message)
    shown = f"the simulation ended by {reason}" if message is None else message
    return Fault(category="target", code=reason, message=shown)


def recorded_of(about: RewardInfo) -> dict[str, Any]:
    """Return the recorded reward, whether the database matched, and of each list of checks the
    share that is met.
    """
    match = None if about.db_check is None else about.db_check.db_match
    found = {
        "reward": about.reward,
        "db_match": match,
        "actions": _share_met(about.action_checks),
        "env_assertions": _share_met(about.env_assertions),
        "communicate": _share_met(about.communicate_checks),
        "nl_assertions": _share_met(about.nl_assertions),
    }
    return {name: value for name, value in found.items() if value is not None}


def _share_met(checks: Checks) -> float | None:
    return sum(map(is_met, checks)) / len(checks) if checks else None


def is_met(check: Check) -> bool:
    """Return whether a check says that it is met."""
    return check.action_match is True or check.met is True


def _facets(simulation: Simulation, setting: Setting) -> dict[str, JSON]:
    mode = None if simulation.mode == "half_duplex" else simulation.mode
    found = {
        "domain": setting.domain,
        "termination_reason": simulation.termination_reason,
        "mode": mode,
    }
    return {key: value for key, value in found.items() if value is not None}

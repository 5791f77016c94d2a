"""Simulations as samples.

What was said and done, what was expected, what the benchmark recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from gradestack.jsonio import as_amount, as_list, as_map, as_text, compact
from gradestack_plugins.readers.chat import parse_arguments, schema_of, text_of
from gradestack_plugins.readers.chat.conversation import Conversation, finish, kind_of, text_or_none
from gradestack_plugins.readers.chat.unread import unread_in
from gradestack_plugins.readers.chat.usage import added, usage_of

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


def setting_of(info: JSON, tasks: JSON) -> Setting:
    """Return what ``info`` and ``tasks`` of a results file say.

    ``tasks`` is None where there are none.
    """
    about = as_map(info)
    agent, environment = as_map(about.get("agent_info")), as_map(about.get("environment_info"))
    voice = as_map(about.get("audio_native_config"))
    return Setting(
        model=as_text(agent.get("llm")) or as_text(voice.get("model")) or None,
        domain=text_or_none(environment.get("domain_name")),
        tools=_tools(environment.get("tool_defs")),
        tasks={
            str(task["id"]): expectation(task)
            for task in as_list(tasks)
            if isinstance(task, Mapping) and "id" in task
        },
        has_tasks=isinstance(tasks, list),
        num_trials=planned_trials(about.get("num_trials")),
    )


def _tools(definitions: Any) -> tuple[ToolSpec, ...] | None:
    if not isinstance(definitions, Mapping):
        return None
    named = [(name, as_map(tool)) for name, tool in definitions.items()]
    return tuple(
        ToolSpec(
            name=as_text(tool.get("name")) or name,
            description=as_text(tool.get("doc")),
            parameters=schema_of(tool.get("params")),
        )
        for name, tool in named
    )


def expectation(task: Mapping[str, Any]) -> Expectation:
    """Return what a task expects of a run.

    Without a list of actions there is no reference for calls.
    """
    actions = as_map(task.get("evaluation_criteria")).get("actions")
    if not isinstance(actions, list) or not all(isinstance(each, Mapping) for each in actions):
        return Expectation()
    return Expectation(calls=tuple(expected_call(each) for each in actions))


def expected_call(action: Mapping[str, Any]) -> ExpectedCall:
    """Return one expected action.

    With ``compare_args`` it has rules, for arguments not compared or not expected.
    """
    requestor, compared = action.get("requestor"), action.get("compare_args")
    arguments, raw = parse_arguments(action.get("arguments"))
    rules = None
    if isinstance(compared, list):
        given = arguments or {}
        rules = {key: Rule(ignore=True, optional=True) for key in given if key not in compared}
        rules |= {
            key: Rule(optional=True)
            for key in compared
            if isinstance(key, str) and key not in given
        }
    return ExpectedCall(
        name=as_text(action.get("name")),
        arguments=arguments,
        raw_arguments=raw if arguments is None else None,
        rules=rules,
        requestor=requestor if isinstance(requestor, str) else ASSISTANT,
    )


class Simulation(Conversation):
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
        calls = [
            self._made_by(role, each)
            for each in as_list(entry.get("tool_calls"))
            if self._is_call(each)
        ]
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


def simulation_of(simulation: Mapping[str, Any]) -> Simulation | None:
    """Return what a simulation's messages, or without any its ticks, come to.

    None where it has neither.
    """
    entries, ticks = simulation.get("messages"), simulation.get("ticks")
    if not isinstance(entries, list):
        if not isinstance(ticks, list):
            return None
        entries = _joined(message for tick in ticks for message in _of_tick(tick))
    found = Simulation()
    found.read(entries)
    return found


def _of_tick(tick: Any) -> Iterator[Any]:
    """Yield what happened in one tick.

    The agent's words and calls, its results, then those of the user.
    """
    if not isinstance(tick, dict):
        yield tick
        return
    for role, side in ((ASSISTANT, "agent"), ("user", "user")):
        chunk, calls = tick.get(f"{side}_chunk"), tick.get(f"{side}_tool_calls")
        if isinstance(chunk, dict) or calls:
            yield {**(chunk if isinstance(chunk, dict) else {}), "role": role, "tool_calls": calls}
        for result in as_list(tick.get(f"{side}_tool_results")):
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
BROKEN = frozenset({"infrastructure_error", "unexpected_error"})
"""Reasons that are the benchmark's own trouble, not the agent's or the user's."""
_CHECKS = {
    "action_checks": ("action_match", "actions"),
    "env_assertions": ("met", "env_assertions"),
    "communicate_checks": ("met", "communicate"),
    "nl_assertions": ("met", "nl_assertions"),
}
"""List of checks -> what says that one is met, and the name the share of met ones is
recorded by.
"""


class Tau2Run(msgspec.Struct, frozen=True):
    """What the grader of this family knows beside the general fields."""

    reward_info: Mapping[str, JSON] | None
    termination: str | None
    num_trials: int | None = None
    """Planned trials of its task."""


MOST_TRIALS = 1_000_000
"""Planned trials that are believed at most."""


def planned_trials(number: JSON) -> int | None:
    """Return how many trials of each task ``info.num_trials`` plans; None where it says nothing."""
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return number if 1 <= number <= MOST_TRIALS else None


def sample_of(simulation: Mapping[str, Any], source: Source, setting: Setting) -> Sample:
    """Return the sample of one simulation."""
    task_id = simulation.get("task_id")
    if isinstance(task_id, bool) or not isinstance(task_id, int | str) or task_id == "":
        found = (
            f"task_id is {compact(task_id)[:60]}"
            if "task_id" in simulation
            else "task_id is missing"
        )
        raise ValueError(f"{found}; a text is expected")
    trial, reason = simulation.get("trial"), text_or_none(simulation.get("termination_reason"))
    if trial is not None and (isinstance(trial, bool) or not isinstance(trial, int | str)):
        trial = compact(trial)
    talk, expected = simulation_of(simulation), setting.tasks.get(str(task_id))
    said = talk or Simulation()
    messages = [message for turn in said.turns for message in turn]
    told = {
        **said.finished(),
        "turns": (tuple(messages),) if messages else (),
        "input": next(iter(said.asked), None),
    }
    told["calls"] = tuple(said.calls) if talk and not said.has_unread_calls else None
    missing = {
        "conversation_missing": not talk,
        "task_missing": setting.has_tasks and expected is None,
    }
    costs = {
        key: simulation[key]
        for key in ("agent_cost", "user_cost", "agent_usage")
        if key in simulation
    }
    agent_usage = {key: each for key, each in costs.items() if each is not None}
    reward_info = simulation.get("reward_info")
    lacking = {kind: 1 for kind, lacks in missing.items() if lacks}
    if impossible := impossible_amounts(simulation.get("duration")):
        lacking[IMPOSSIBLE_AMOUNT] = impossible
    broken, identifier = reason in BROKEN, as_text(simulation.get("id"))
    return Sample(
        id=str(task_id),
        model=setting.model,
        run=trial,
        **told,
        tools=setting.tools,
        expected=expected or Expectation(),
        recorded=recorded_of(reward_info),
        status=Status.FAILED if broken else Status.OK,
        error=_fault(simulation, reason) if broken and reason else None,
        ended=None if reason is None else ENDED.get(reason),
        trace={"trace_id": identifier} if identifier else {},
        usage=_usage(simulation, added(map(usage_of, said.usages))),
        agent_usage=agent_usage or None,
        facets=_facets(simulation, setting),
        remarks={**said.remarks, **lacking},
        source=source if isinstance(task_id, str) else replace(source, id=task_id),
        native=Tau2Run(
            reward_info if isinstance(reward_info, dict) else None, reason, setting.num_trials
        ),
    )


def _usage(simulation: Mapping[str, Any], spent: Usage | None) -> Usage | None:
    found: list[Any] = [simulation.get(key) for key in ("agent_cost", "duration")]
    cost, seconds = map(as_amount, found)
    usage = replace(spent or Usage(), cost_usd=cost, seconds=seconds)
    return usage if usage != Usage() else None


def _fault(simulation: Mapping[str, Any], reason: str) -> Fault:
    about = as_map(simulation.get("info"))
    message = text_or_none(about.get("error") or about.get("error_message"))
    shown = f"the simulation ended by {reason}" if message is None else message
    return Fault(category="target", code=reason, message=shown)


def recorded_of(reward_info: Any) -> dict[str, Any]:
    """Return the recorded reward, whether the database matched, and of each list of checks the
    share that is met.
    """
    about = as_map(reward_info)
    found: dict[str, Any] = {"reward": about["reward"]} if about.get("reward") is not None else {}
    match = as_map(about.get("db_check")).get("db_match")
    if isinstance(match, bool):
        found["db_match"] = match
    for key, (_, name) in _CHECKS.items():
        met, number = checks(about, key)
        if number:
            found[name] = met / number
    return found


def checks(
    reward_info: Mapping[str, Any], key: str, tool_type: str | None = None
) -> tuple[int, int]:
    """Return how many checks of a list are met, and how many there are.

    Of one type of tools where it is given.
    """
    mark = _CHECKS[key][0]
    found = [each for each in as_list(reward_info.get(key)) if isinstance(each, Mapping)]
    if tool_type is not None:
        found = [each for each in found if each.get("tool_type") == tool_type]
    return sum(each.get(mark) is True for each in found), len(found)


def _facets(simulation: Mapping[str, Any], setting: Setting) -> dict[str, JSON]:
    found = {"domain": setting.domain} | {
        key: simulation.get(key) for key in ("termination_reason", "mode")
    }
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, str) and value != "half_duplex"
    }

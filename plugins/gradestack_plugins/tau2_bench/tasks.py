"""What a results file says of all its simulations: the agent, the domain, and what each task expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack import JSON, Expectation, ExpectedCall, Rule, ToolSpec
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import parse_arguments, schema_of

ASSISTANT = "assistant"


@attrs.frozen(kw_only=True)
class Setting:
    """What holds for every simulation of a run."""

    model: str | None = None
    domain: str | None = None
    tools: tuple[ToolSpec, ...] | None = None
    tasks: Mapping[str, Expectation] = attrs.field(factory=dict)
    """Task id -> what it expects."""
    has_tasks: bool = False


def setting_of(info: JSON, tasks: JSON) -> Setting:
    """Return what ``info`` and ``tasks`` of a results file say; ``tasks`` is None where there are none."""
    about = as_map(info)
    agent, environment = as_map(about.get("agent_info")), as_map(about.get("environment_info"))
    voice = as_map(about.get("audio_native_config"))
    domain = environment.get("domain_name")
    return Setting(
        model=_text(agent.get("llm")) or _text(voice.get("model")),
        domain=domain if isinstance(domain, str) else None,
        tools=_tools(environment.get("tool_defs")),
        tasks={
            str(task["id"]): expectation(task) for task in as_list(tasks) if isinstance(task, Mapping) and "id" in task
        },
        has_tasks=isinstance(tasks, list),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _tools(definitions: Any) -> tuple[ToolSpec, ...] | None:
    """Return the agent's tools; they are kept by name, each with ``doc`` and ``params``, a JSON Schema."""
    if not isinstance(definitions, Mapping):
        return None
    specs = []
    for name, tool in definitions.items():
        about = as_map(tool)
        said, parameters = about.get("doc"), about.get("params")
        specs.append(
            ToolSpec(
                name=_text(about.get("name")) or name,
                description=said if isinstance(said, str) else "",
                parameters=schema_of(parameters),
            )
        )
    return tuple(specs)


def expectation(task: Mapping[str, Any]) -> Expectation:
    """Return what a task expects of a run; without a list of actions there is no reference for calls."""
    actions = as_map(task.get("evaluation_criteria")).get("actions")
    if not isinstance(actions, list) or not all(isinstance(each, Mapping) for each in actions):
        return Expectation()
    return Expectation(calls=tuple(expected_call(each) for each in actions))


def expected_call(action: Mapping[str, Any]) -> ExpectedCall:
    """Return one expected action: arguments that ``compare_args`` does not name may be anything, or absent."""
    name, requestor, compared = action.get("name"), action.get("requestor"), action.get("compare_args")
    arguments, raw = parse_arguments(action.get("arguments"))
    rules = None
    if isinstance(compared, list) and arguments:
        rules = {key: Rule(ignore=True, optional=True) for key in arguments if key not in compared} or None
    return ExpectedCall(
        name=name if isinstance(name, str) else "",
        arguments=arguments,
        raw_arguments=raw if arguments is None else None,
        rules=rules,
        requestor=requestor if isinstance(requestor, str) else ASSISTANT,
    )

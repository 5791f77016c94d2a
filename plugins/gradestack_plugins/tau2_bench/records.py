"""One simulation as a sample: what was done, what was expected, what the benchmark recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack import JSON, Expectation, Fault, Sample, Source, Status, replace
from gradestack.jsonio import as_list, as_map, compact, is_number
from gradestack_plugins.tau2_bench.conversation import Conversation, conversation_of
from gradestack_plugins.tau2_bench.tasks import Setting

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
"""List of checks -> what says that one is met, and the name the share of met ones is recorded by."""


@attrs.frozen
class Tau2Run:
    """What the grader of this family knows beside the general fields."""

    reward_info: Mapping[str, JSON] | None
    termination: str | None


def sample_of(simulation: Mapping[str, Any], source: Source, setting: Setting) -> Sample:
    """Return the sample of one simulation.

    Raises:
        ValueError: It has no usable ``task_id``.
    """
    task_id = simulation.get("task_id")
    if isinstance(task_id, bool) or not isinstance(task_id, int | str) or task_id == "":
        found = f"task_id is {compact(task_id)[:60]}" if "task_id" in simulation else "task_id is missing"
        raise ValueError(f"{found}; a text is expected")
    reason = _text(simulation.get("termination_reason"))
    reward_info = simulation.get("reward_info")
    said = conversation_of(simulation)
    expected = setting.tasks.get(str(task_id))
    sample = Sample(
        id=str(task_id),
        model=setting.model,
        run=_run(simulation.get("trial")),
        input=said.asked if said else None,
        turns=(tuple(said.messages),) if said and said.messages else (),
        calls=tuple(said.calls) if said else None,
        text=said.text if said else None,
        tools=setting.tools,
        expected=expected or Expectation(),
        recorded=recorded_of(reward_info),
        usage=_usage(said, simulation),
        ended=None if reason is None else ENDED.get(reason),
        facets=_facets(simulation, setting),
        source=source if isinstance(task_id, str) else replace(source, id=task_id),
        native=Tau2Run(reward_info if isinstance(reward_info, dict) else None, reason),
    )
    rare = _rare(simulation, reason)
    if remarks := _remarks(said, lost=setting.has_tasks and expected is None):
        rare["remarks"] = remarks
    return replace(sample, **rare)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _run(trial: Any) -> int | str | None:
    """Return a trial as an identifier; what is neither text nor a whole number, as JSON text."""
    if trial is None or isinstance(trial, str) or (isinstance(trial, int) and not isinstance(trial, bool)):
        return trial
    return compact(trial)


def _rare(simulation: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    """Return the fields that many simulations do not fill."""
    found: dict[str, Any] = {}
    identifier = _text(simulation.get("id"))
    if reason is not None and reason in BROKEN:
        found["status"] = Status.FAILED
        found["error"] = Fault(category="target", code=reason, message=_trouble(simulation, reason))
    if identifier:
        found["trace"] = {"trace_id": identifier}
    spent = {
        key: simulation[key] for key in ("agent_cost", "user_cost", "agent_usage") if simulation.get(key) is not None
    }
    if spent:
        found["agent_usage"] = spent
    return found


def _trouble(simulation: Mapping[str, Any], reason: str) -> str:
    about = as_map(simulation.get("info"))
    said = about.get("error") or about.get("error_message")
    return said if isinstance(said, str) else f"the simulation ended by {reason}"


def recorded_of(reward_info: Any) -> dict[str, Any]:
    """Return the recorded reward, whether the database matched, and of each list of checks the share that is met."""
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


def checks(reward_info: Mapping[str, Any], key: str, tool_type: str | None = None) -> tuple[int, int]:
    """Return how many checks of a list are met, and how many there are; of one type of tools where it is given."""
    mark = _CHECKS[key][0]
    found = [each for each in as_list(reward_info.get(key)) if isinstance(each, Mapping)]
    if tool_type is not None:
        found = [each for each in found if each.get("tool_type") == tool_type]
    return sum(each.get(mark) is True for each in found), len(found)


def _usage(said: Conversation | None, simulation: Mapping[str, Any]) -> Any:
    cost, seconds = (_number(simulation.get(key)) for key in ("agent_cost", "duration"))
    return (said or Conversation()).usage(cost, seconds)


def _number(value: Any) -> float | None:
    return float(value) if is_number(value) else None


def _facets(simulation: Mapping[str, Any], setting: Setting) -> dict[str, JSON]:
    """Return the domain, how the simulation ended, and its mode where that is not the usual one."""
    facets: dict[str, JSON] = {}
    if setting.domain is not None:
        facets["domain"] = setting.domain
    for key in ("termination_reason", "mode"):
        value = simulation.get(key)
        if isinstance(value, str) and value != "half_duplex":
            facets[key] = value
    return facets


def _remarks(said: Conversation | None, *, lost: bool) -> dict[str, int]:
    """Return what could not be used of a simulation, by kind; ``lost``: its task is not among the file's."""
    remarks = dict(said.remarks) if said else {"conversation_missing": 1}
    return {**remarks, "task_missing": 1} if lost else remarks

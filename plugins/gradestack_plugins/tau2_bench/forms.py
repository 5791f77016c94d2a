"""Records of tau2-bench: the keys that are read. Other keys are ignored."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from gradestack_plugins.readers.declared import Flag, Items, Object, Text


class Tool(Struct):
    """A tool of the environment."""

    name: Text = None
    doc: Text = None
    params: Any = None


class Environment(Struct, frozen=True):
    """The domain of a run and the tools of its agent."""

    domain_name: Text = None
    tool_defs: dict[str, Tool] | None = None


class Agent(Struct, frozen=True):
    """The model of an agent; one that speaks has it under ``model``."""

    llm: Text = None
    model: Text = None


class Info(Struct):
    """The run of a results file."""

    agent_info: Agent = Agent()
    environment_info: Environment = Environment()
    audio_native_config: Agent = Agent()
    num_trials: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class Action(Struct):
    """An action that a task expects."""

    name: str
    arguments: Any = None
    requestor: str = "assistant"
    compare_args: list[str] | None = None


class Criteria(Struct, frozen=True):
    """The actions that a task expects."""

    actions: list[Action] | None = None


class Task(Struct):
    """A task of a results file."""

    id: str | int
    evaluation_criteria: Criteria = Criteria()


class DatabaseCheck(Struct):
    """The check that the database is as the expected actions leave it."""

    db_match: Flag = None


class Check(Struct):
    """One of the checks behind a reward: a call that matches an action, or a statement that holds.

    Each kind of check has a key of its own for its action or statement.
    """

    action: Action | None = None
    action_match: Flag = None
    tool_type: Text = None
    met: Flag = None
    env_assertion: Any = None
    info: Any = None
    nl_assertion: Any = None


Checks = list[Check] | None


class RewardInfo(Struct):
    """The reward of a simulation, its parts, and the checks behind it."""

    reward: Any = None
    reward_breakdown: Object = None
    db_check: DatabaseCheck | None = None
    action_checks: Checks = None
    env_assertions: Checks = None
    communicate_checks: Checks = None
    nl_assertions: Checks = None


class Trouble(Struct):
    """The error that ended a simulation."""

    error: Any = None
    error_message: Any = None


class Tick(Struct):
    """Words and calls of both sides in one tick of a spoken conversation."""

    agent_chunk: Object = None
    agent_tool_calls: Any = None
    agent_tool_results: Items = None
    user_chunk: Object = None
    user_tool_calls: Any = None
    user_tool_results: Items = None


class Simulation(Struct):
    """One run of a task."""

    task_id: Annotated[str, Meta(min_length=1)] | int
    id: Text = None
    trial: int | str | None = None
    mode: Text = None
    termination_reason: Text = None
    reward_info: RewardInfo | None = None
    messages: Items = None
    ticks: list[Tick] | None = None
    agent_cost: Any = None
    user_cost: Any = None
    agent_usage: Any = None
    duration: Any = None
    info: Trouble | None = None

"""The default stack of recordings without a reference."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gradestack import Grader
from gradestack_plugins.trajectory.repeats import CallRepeats
from gradestack_plugins.trajectory.tool_policy import ToolPolicy
from gradestack_plugins.trajectory.tool_schema import ToolSchema
from gradestack_plugins.trajectory.tool_success import ToolSuccess
from gradestack_plugins.trajectory.usage import RunUsage

_GRADERS: dict[str, type[Grader]] = {
    "tool_success": ToolSuccess,
    "tool_schema": ToolSchema,
    "tool_policy": ToolPolicy,
    "repeats": CallRepeats,
    "usage": RunUsage,
}
_POLICY = {"repeats": {"in_a_row": 3}, "after_final": False}
"""What is no good anywhere; everything else is for users to say."""


def trajectory(provides: Collection[str] | None = None) -> dict[str, Any]:
    """Return the stack: how tool calls went, whether they keep schemas and a mild policy, loops and usage."""
    possible = [name for name, grader in _GRADERS.items() if provides is None or grader.requires <= set(provides)]
    more: dict[str, dict[str, Any]] = {"tool_policy": _POLICY}
    return {
        "graders": {name: {"kind": name, **more.get(name, {})} for name in possible},
        "outcome": "tool_success" if "tool_success" in possible else "none",
        "headline": {
            "figures": {
                "Successful calls": "tool_success.tool_outcomes.success_rate",
                "Calls that keep their schema": "tool_schema.call_validity.valid_share",
                "Runs that keep the policy": "tool_policy.policy_checks.kept_rate",
                "Runs in a loop": "repeats.loops.loop_rate",
                "Steps a run": "usage.mean",
            },
        },
    }

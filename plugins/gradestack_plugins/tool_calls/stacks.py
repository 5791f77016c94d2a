"""Stacks of tool calls: our own rule, and every published one side by side."""

from __future__ import annotations

from typing import Any

from gradestack_plugins.tool_calls.presets import DOCUMENTED, PRESETS


def tool_calls() -> dict[str, Any]:
    """Return the stack that answers "did it make these calls?"."""
    return {
        "graders": {"calls": {"kind": "tool_calls"}},
        "outcome": "calls",
        "headline": {
            "figures": {
                "F1 over calls": "calls.call_figures.f1",
                "Precision": "calls.call_figures.precision",
                "Recall": "calls.call_figures.recall",
                "F1 over arguments": "calls.call_figures.argument_f1",
            },
        },
    }


def key_of(preset: str) -> str:
    """Return the key of a preset's grader in the stack ``peers``."""
    return preset.replace("trajectory:", "").replace("/", "_").replace("-", "_")


def peers() -> dict[str, Any]:
    """Return the stack of every preset, our own first."""
    names = [DOCUMENTED, *(name for name in PRESETS if name != DOCUMENTED)]
    return {
        "graders": {key_of(name): {"kind": "tool_calls", "preset": name} for name in names},
        "outcome": key_of(DOCUMENTED),
        "headline": {
            "figures": {
                "F1 over calls": f"{key_of(DOCUMENTED)}.call_figures.f1",
                "ADK, any order": f"{key_of('adk/any_order')}.mean",
                "ragas F1": f"{key_of('ragas/tool_call_f1')}.mean",
                "tau2 actions": f"{key_of('tau2/action')}.mean",
            },
        },
    }

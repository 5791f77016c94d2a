"""Agent cards and the evaluation config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gradestack import ConfigError, DataError, ToolSpec, yaml_data
from gradestack.jsonio import JsonProblem, compact, loads, read_regular
from gradestack_plugins.orchestrationbench.graphs.ged_problem import Weights
from gradestack_plugins.orchestrationbench.recorded.trial import Setting
from gradestack_plugins.readers.chat import tool_spec


def read_cards(path: Path) -> tuple[ToolSpec, ...]:
    """Return the tools of all agent cards in a directory (or of one card), by file name; a later equal name wins.

    Raises:
        DataError: There is no card, or one is not an object with a list of tools; every such file is listed.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    tools: dict[str, ToolSpec] = {}
    problems = [] if files else ["no *.json file in it"]
    for file in files:
        try:
            card = loads(read_regular(file))
        except (OSError, JsonProblem) as error:
            problems.append(f"{file.name}: {error}")
            continue
        listed = card.get("tools") if isinstance(card, Mapping) else None
        if not isinstance(listed, list):
            problems.append(f"{file.name}: expected an object with a list of tools")
            continue
        tools.update({spec.name: spec for entry in listed if (spec := tool_spec(entry)) is not None})
    if problems:
        msg = f"agent cards {path} cannot be used"
        raise DataError(msg, *problems)
    return tuple(tools.values())


def read_config(path: Path) -> Setting:
    """Return what the benchmark's evaluation YAML says about weights and judge.

    Raises:
        ConfigError: The file cannot be read or is no mapping, or a weight is not a number from 0 to 2.
    """
    try:
        data = yaml_data(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError, yaml.YAMLError) as error:
        msg = f"evaluation config {path}: {error}"
        raise ConfigError(msg) from error
    if data is not None and not isinstance(data, Mapping):
        msg = f"evaluation config {path}: expected a mapping, found {compact(data)[:60]}"
        raise ConfigError(msg)
    config: Mapping[Any, Any] = data or {}
    params = config.get("evaluation_params")
    judge = config.get("judge")
    problems: list[str] = []
    agent, status = (_weight(params, name, problems) for name in ("agent_change_weight", "status_change_weight"))
    if problems:
        msg = f"evaluation config {path}"
        raise ConfigError(msg, *problems)
    section = isinstance(judge, Mapping) and "model" in judge and "generation_params" in judge
    return Setting(agent_weight=agent, status_weight=status, judge_section=section)


def _weight(params: Any, name: str, problems: list[str]) -> float | None:
    value = params.get(name) if isinstance(params, Mapping) else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        problems.append(f"evaluation_params.{name}: expected a number, found {value!r}")
        return None
    try:
        Weights(float(value), 0.0)
    except (OverflowError, ValueError):
        problems.append(f"evaluation_params.{name}: expected a number from 0 to 2, found {value!r}")
        return None
    return float(value)

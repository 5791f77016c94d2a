"""The two graphs of a plan: which workflow waits for which, and which agent acts after which.

*Structural*: one node per workflow, one edge dependency -> workflow. *Component*: one node per distinct (agent,
status) of all steps, an edge from each step to the next of its workflow unless both are the same node, and an edge
from the last step of a dependency to the first step of the workflow that waits for it, which may be a self-loop.

``upstream`` builds them as the original does and fails where it fails. ``documented`` never fails: what is not an
object where one belongs counts as empty, and dependencies are read the same way for both graphs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from gradestack import Profile
from gradestack_plugins.orchestrationbench.graphs.graph import Builder, Graph, Label
from gradestack_plugins.orchestrationbench.plans.plantext import Workflows

UNKNOWN = "UNK"
"""Status of a step that names none."""


def graphs(workflows: Workflows, profile: Profile) -> tuple[Graph, Graph]:
    """Return (structural, component) graph of a plan.

    Keys that do not contain ``workflow`` are left out. Differences between the profiles:

    * the structural graph reads only ``depends_on`` in ``upstream``, and a text there is taken character by character;
      ``documented`` reads ``depends_on``, else ``depend_on``, and a text is one name;
    * ``upstream`` raises where a key is no text, a workflow or step no object, a name or status not hashable.

    Args:
        workflows: A parsed plan.
        profile: Whose rules to follow.

    Raises:
        Exception: In ``upstream`` only: whatever the original stumbles over.
    """
    if profile == "upstream":
        kept = {key: value for key, value in workflows.items() if "workflow" in key}
        return _structural_upstream(kept), _component_upstream(kept)
    kept = {
        key: value if isinstance(value, Mapping) else {}
        for key, value in workflows.items()
        if isinstance(key, str) and "workflow" in key
    }
    return _structural(kept), _component(kept)


def outline(workflows: Workflows) -> dict[str, dict[str, list[str]]]:
    """Return a plan in short, for people: per workflow its steps as ``agent|status`` and what it depends on."""
    short = {}
    for key, value in workflows.items():
        if isinstance(key, str) and "workflow" in key:
            fields = value if isinstance(value, Mapping) else {}
            short[key] = {
                "steps": [f"{agent}|{status}" for agent, status in _steps(fields)],
                "depends_on": [str(name) for name in _dependencies(fields)],
            }
    return short


# --- documented -------------------------------------------------------------------------------------------------------


def _structural(workflows: Mapping[str, Mapping[Any, Any]]) -> Graph:
    builder = Builder()
    for name, fields in workflows.items():
        builder.node(name)
        for dependency in _dependencies(fields):
            builder.edge(dependency, name)
    return builder.named()


def _component(workflows: Mapping[str, Mapping[Any, Any]]) -> Graph:
    builder = Builder()
    steps = {name: _steps(fields) for name, fields in workflows.items()}
    for sequence in steps.values():
        for step in sequence:
            builder.node(step)
    for sequence in steps.values():
        for step, following in pairwise(sequence):
            if step != following:
                builder.edge(step, following)
    for name, fields in workflows.items():
        for dependency in _dependencies(fields):
            before = steps.get(dependency) if isinstance(dependency, str) else None
            if before and steps[name]:
                builder.edge(before[-1], steps[name][0])
    return builder.labelled()


def _dependencies(fields: Mapping[Any, Any]) -> list[Hashable]:
    value = fields.get("depends_on") or fields.get("depend_on")
    if not value:
        return []
    names = value if isinstance(value, list | tuple | Mapping) else [value]
    return [_scalar(name) for name in names]


def _steps(fields: Mapping[Any, Any]) -> list[Label]:
    steps = fields.get("steps")
    found: list[Label] = []
    for step in steps if isinstance(steps, list | tuple) else ():
        agent = (step.get("agent_id") or step.get("name")) if isinstance(step, Mapping) else None
        if agent:
            found.append((_scalar(agent), _scalar(step.get("status", UNKNOWN))))
    return found


def _scalar(value: Any) -> Hashable:
    """Return a scalar as it is and a container by its kind, which is enough to be different from every name."""
    return f"<{type(value).__name__}>" if isinstance(value, list | tuple | Mapping | set) else value


# --- upstream ---------------------------------------------------------------------------------------------------------


def _structural_upstream(workflows: Mapping[Any, Any]) -> Graph:
    builder = Builder()
    for name, fields in workflows.items():
        builder.node(name)
        for dependency in fields.get("depends_on", []) or []:
            builder.edge(_node(dependency), name)
    return builder.named()


def _component_upstream(workflows: Mapping[Any, Any]) -> Graph:
    builder = Builder()
    steps = {name: _steps_upstream(fields.get("steps")) for name, fields in workflows.items()}
    for sequence in steps.values():
        for step in sequence:
            builder.node(step)
    for sequence in steps.values():
        for step, following in pairwise(sequence):
            if step != following:
                builder.edge(step, following)
    for name, fields in workflows.items():
        if not steps[name]:
            continue
        for dependency in _dependencies_upstream(fields):
            before = _steps_upstream((workflows.get(dependency) or {}).get("steps", []))
            if before:
                builder.edge(before[-1], steps[name][0])
    return builder.labelled()


def _dependencies_upstream(fields: Any) -> Iterable[Any]:
    names = fields.get("depends_on", []) or []
    if not names:
        single = fields.get("depend_on")
        names = ([single] if isinstance(single, str) else single) if single else []
    return names


def _steps_upstream(steps: Any) -> list[Label]:
    found = []
    for step in steps or []:
        agent, status = step.get("agent_id") or step.get("name"), step.get("status", UNKNOWN)
        if agent:
            hash((agent, status))
            found.append((agent, status))
    return found


def _node(name: Any) -> Hashable:
    if name is None:
        msg = "None cannot be a node"
        raise ValueError(msg)
    found: Hashable = name  # hashing an unhashable name raises, as it did
    return found

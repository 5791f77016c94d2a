"""Stacks: the named suite mapping that lies under a suite's own entries."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradestack.api import Input, Inputs
from gradestack.grading.plan import Stage
from gradestack.model import Sample
from gradestack.suites.components import Resolver, Target, samples_of, stack_for
from gradestack.suites.spec import StackHeadline

_DONE = frozenset({"calls", "turns", "label", "text", "plan", "state", "recorded", "native"})
"""Fields of a sample that say what an agent did."""


def lay_stack(resolver: Resolver, target: Target) -> None:
    """Put a stack under the suite's own entries: the named one, or the format's default one where
    the suite has no graders.
    """
    data, reader = resolver.document.data, target.reader
    resolver.command_options = _command_options(data)
    has_stack = data.get("stack") is not None
    if not has_stack and data.get("graders") in ({}, []):
        why = "no entry is given; name one, or leave graders out for the usual ones"
        resolver.add_problem(("graders",), why)
    has_graders = bool(data.get("graders"))
    if reader is not None and not has_stack and not has_graders:
        data["stack"] = reader.component.stack
        if data["stack"] is None:
            why = _without_stack(resolver, reader, target.inputs.data)
            resolver.add_problem(("stack",), why)
    name = data.get("stack")
    if not isinstance(name, str):
        return
    provides = None if reader is None else reader.component.provides
    with resolver.refusals(("stack",)):
        inputs = Inputs(data=target.inputs.data)
        stack = stack_for(resolver.registry, name, inputs, provides, lambda: _expecting(target))
        data["stack"] = stack.get("stack", name)
        resolver.stacks[data["stack"]] = stack
        headline = stack.get("headline") or {}
        resolver.structure(headline, StackHeadline, ("stack", "headline"))
        resolver.has_recorded_gates = not _has_gates(data)
        _merge(data, stack)
        resolver.warnings += stack.get("warnings", ())
        resolver.notes += stack.get("notes", ())


def _command_options(data: Mapping[str, Any]) -> str:
    """Return the options of a command line that asks for the stack, or the graders, of a suite."""
    stack = data.get("stack")
    graders = data.get("graders")
    if isinstance(stack, str):
        return f" --stack {stack}"
    kinds = []
    for entry in graders.values() if isinstance(graders, Mapping) else ():
        kind = entry.get("kind") if isinstance(entry, Mapping) else entry
        kinds.append(kind)
    return "".join(f" --grader {kind}" for kind in kinds)


def _expecting(target: Target) -> Iterator[Sample]:
    """Yield the samples by which a stack is chosen: the dataset's, and the first of each input."""
    reader, dataset = target.reader, target.inputs.dataset
    if reader is None or not target.inputs.data:
        return
    if dataset is not None and target.dataset_reader is not None:
        component = target.dataset_reader.component
        inputs = Inputs(data=(dataset,))
        yield from samples_of(component, inputs, None)
    yield from samples_of(reader.component, target.inputs)


def _without_stack(resolver: Resolver, reader: Stage, inputs: Sequence[Input]) -> str:
    """Return a message about a format without a stack, with advice."""
    whose = ""
    if inputs:
        whose = f"{inputs[0].path}: "
    provides = reader.component.provides
    if provides and not _DONE & provides:
        lacks = f"no column for the agent's answer (read as {reader.name})"
        advice = "map one (--map text=COLUMN), or grade the file of its runs with this one as"
        return f"{whose}{lacks}: {advice} --dataset"
    names = resolver.registry.names("stack")
    known = ", ".join(names) or "none"
    lacks = f"the format {reader.name!r} has no default stack"
    return f"{whose}{lacks}; name graders or a stack ({known})"


def _has_gates(data: Mapping[str, Any]) -> bool:
    return "gate" in data or "gates" in data


def _merge(data: dict[str, Any], stack: Mapping[str, Any]) -> None:
    """Add a stack's entries to a suite; the suite's own entries win.

    Options merge per entry unless the entry names its own kind.
    """
    for section in ("graders", "metrics"):
        written = data.get(section) or {}
        merged: dict[str, Any] = copy.deepcopy(dict(stack.get(section) or {}))
        if isinstance(written, Mapping):  # else it is refused with its location later
            for key, entry in written.items():
                base = merged.get(key)
                merged[key] = _over(base, entry)
            if merged:
                data[section] = merged
    names = ("name", "reports") if _has_gates(data) else ("name", "reports", "gate", "gates")
    for name in names:
        if name in stack:
            data.setdefault(name, copy.deepcopy(stack[name]))


def _over(base: Any, entry: Any) -> Any:
    is_extension = isinstance(entry, Mapping) and "kind" not in entry
    if is_extension and isinstance(base, Mapping):
        return {**base, **entry}
    return entry

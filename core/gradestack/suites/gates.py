"""Gates of a suite: from what is written to resolved rules, every mistake reported with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.errors import suggest
from gradestack.gates.rules import PERCENT, Gate, GateSpec, LogicalGate, LogicalSpec, SimpleGate, WeightedGate, keys_of
from gradestack.grading.plan import Stage
from gradestack.suites.document import Place
from gradestack.suites.references import Resolver
from gradestack.suites.spec import SuiteSpec


def _gate(resolver: Resolver, written: Mapping[str, Any], place: Place) -> Gate | None:
    """Return one gate of any form; without ``kind`` it is the flat form."""
    kind = written.get("kind")
    forms: dict[object, type] = {"simple": SimpleGate, "weighted_average": WeightedGate, "logical": LogicalSpec}
    if kind is not None and (not isinstance(kind, str) or kind not in forms):
        resolver.say(
            (*place, "kind"),
            f"unknown gate {kind!r}{suggest(kind, map(str, forms))}; there are: {', '.join(map(str, forms))}",
        )
        return None
    found: Any = resolver.structure(written, forms.get(kind, GateSpec), place)
    if not isinstance(found, LogicalSpec):
        return found  # type: ignore[no-any-return]
    parts = []
    for position, condition in enumerate(found.conditions):
        implied = "logical" if "operator" in condition else "simple"
        filled = {"kind": implied, "on_no_data": found.on_no_data, **condition}
        part = _gate(resolver, filled, (*place, "conditions", position))
        if isinstance(part, WeightedGate):
            resolver.say((*place, "conditions", position), "a condition is a simple or a logical gate")
        elif part is not None and part.per is not None:
            below = (*place, "conditions", position, "per")
            resolver.say(below, "stands beside `conditions`, for the gate as a whole")
        elif part is not None:
            parts.append(part)
    return LogicalGate(operator=found.operator, conditions=tuple(parts), on_no_data=found.on_no_data, per=found.per)


def resolve_gates(resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage]) -> tuple[tuple[Gate, ...], str]:
    """Return the gates and the key of the main grader: the first gate's, else the first grader."""
    written: list[tuple[Place, Any]] = [(("gates", n), each) for n, each in enumerate(spec.gates)]
    if spec.gate is not None:
        written.insert(0, (("gate",), spec.gate))
    found: list[Gate] = []
    for place, each in written:
        gate = _gate(resolver, each, place)
        names = keys_of(gate) if gate is not None else [(("metric_key",), each.get("metric_key"))]
        for below, key in names:
            if isinstance(key, str) and key not in spec.graders:
                hint = suggest(key, spec.graders) or f"; there are: {', '.join(spec.graders)}"
                resolver.say((*place, *below), f"no grader has the key {key!r}{hint}")
        if gate is None:
            continue
        found.append(gate)
        if not isinstance(gate, LogicalGate) and gate.aggregation in PERCENT and 0 < gate.value <= 1:
            said = f"{gate.value:g} is a percentage here: {gate.value:g}% of the samples"
            resolver.warnings.append(f"{resolver.document.where((*place, 'value'))}: {said}")
    first = found[0] if found else None
    named = first.metric_key if isinstance(first, GateSpec | SimpleGate) else None
    main = named or next(iter(graders), next(iter(spec.graders), ""))
    return tuple(_about(gate, main) for gate in found), main


def _about(gate: Gate, main: str) -> Gate:
    """Return a gate that names its grader: a flat one without ``metric_key`` is about the main one."""
    if isinstance(gate, GateSpec) and not gate.metric_key:
        return attrs.evolve(gate, metric_key=main)
    return gate

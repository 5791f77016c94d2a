"""JSON Schema of suites, for editors and for `gradestack schema suite`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack.gates.rules import (
    PERCENT_TEXT,
    THRESHOLDS,
    BaselineGate,
    FigureGate,
    GateSpec,
    LogicalSpec,
    SimpleGate,
    TaskGate,
    WeightedGate,
)
from gradestack.hooks import Kind
from gradestack.registry import Registry
from gradestack.suites.options import class_schema
from gradestack.suites.spec import SuiteSpec

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _component(
    registry: Registry, kind: Kind, more: Mapping[str, Any] | None = None, *others: dict[str, Any]
) -> dict[str, Any]:
    """Return the schema of a component in a suite: its name, or its kind with its options."""
    names = registry.names(kind)
    choices: list[dict[str, Any]] = [{"enum": names}, _IN_FILE, _OF_FILE, *others]
    for name, component in registry.sound(kind).items():
        schema = class_schema(component, "kind")
        schema["properties"] = {"kind": {"const": name}, **(more or {}), **schema["properties"]}
        choices.append(schema)
    return {"anyOf": choices}


_IN_FILE: dict[str, Any] = {
    "type": "string",
    "pattern": r"(\.py:\w+|^[A-Za-z0-9][A-Za-z0-9._-]*:[a-z0-9_-]+)$",
}
"""``FILE.py:NAME``, or ``DISTRIBUTION:NAME``."""
_OF_FILE: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": _IN_FILE},
    "required": ["kind"],
}
_PERCENTAGE = {"type": "string", "pattern": f"^{PERCENT_TEXT}$"}
_LIMIT: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 0},
    {"type": "number", "minimum": 0, "maximum": 1},
    _PERCENTAGE,
    {"type": "null"},
]
_TEXT_GRADER: dict[str, Any] = {
    "extractor": {"description": "for graders that judge one text: where it comes from"},
    "extractor_config": {"type": ["object", "null"]},
    "display_name": {"type": ["string", "null"]},
    "filter": {"type": ["string", "null"], "description": "only runs it is true of are graded"},
}
_EXTENDS_STACK = {
    "type": "object",
    "not": {"required": ["kind"]},
    "description": "options for the stack's entry",
}


def gate_schema(kind: type, *more: str) -> dict[str, Any]:
    """Return the JSON Schema of a form of gates: thresholds may also be percentages as text."""
    schema = class_schema(kind, *more)
    for name in THRESHOLDS:
        if name in schema["properties"]:
            number = schema["properties"][name]
            schema["properties"][name] = {"anyOf": [number, _PERCENTAGE]}
    return schema


def suite_schema(registry: Registry) -> dict[str, Any]:
    """Return the JSON Schema of a suite file, with the options of every installed component."""
    schema = class_schema(SuiteSpec)
    properties = schema["properties"]
    target = properties["target"]["properties"]
    graders = _component(registry, "grader", _TEXT_GRADER, _EXTENDS_STACK)
    properties["graders"] = {"type": "object", "additionalProperties": graders}
    of = {"of": {"type": "string", "description": "grader key"}}
    metrics = _component(registry, "aggregator", of, _EXTENDS_STACK)
    properties["metrics"] = {"type": "object", "additionalProperties": metrics}
    gates = [gate_schema(gate) for gate in (GateSpec, FigureGate, BaselineGate, TaskGate)]
    gates += [gate_schema(gate, "kind") for gate in (SimpleGate, WeightedGate, LogicalSpec)]
    any_of = [{"type": "null"}, *gates]
    properties["gate"] = {"anyOf": any_of}
    properties["gates"] = {"type": "array", "items": {"anyOf": gates}}
    properties["max_failed"] = {"anyOf": _LIMIT}
    limit = _LIMIT[1:3]
    properties["min_graded"] = {"anyOf": limit}
    reader = {"$ref": "#/properties/reader"}
    named = {"path": {"type": "string"}, "reader": reader}
    with_reader = {
        "type": "object",
        "properties": named,
        "required": ["path"],
        "additionalProperties": False,
    }
    paths = [{"type": "string"}, with_reader]
    target["paths"] = {"anyOf": [*paths, {"type": "array", "items": {"anyOf": paths}}]}
    options_alone = {"type": "object", "not": {"required": ["kind"]}}  # the format is recognised
    properties["reader"] = _component(registry, "reader")
    properties["reader"]["anyOf"].append(options_alone)
    target["reader"] = reader
    component = _component(registry, "reporter")
    properties["reports"] = {"type": "array", "items": component}
    properties["exporters"] = {"type": "array", "items": _component(registry, "exporter")}
    properties["engine"] = _component(registry, "engine")
    names = registry.names("stack")
    properties["stack"] = {"enum": names}
    return {"$schema": DRAFT, "title": "gradestack suite", **schema}

"""Descriptions of installed components: a list, as lines or as JSON, and each in full."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from gradestack import ConfigError, Kind, Registry, class_schema, suggest

KINDS: tuple[Any, ...] = get_args(Kind)
_SHOWN = {
    "reader": ("provides", "stack", "duplicates"),
    "grader": ("needs", "compares", "metrics"),
    "aggregator": ("keeps",),
    "exporter": ("reader", "graders"),
}
_ENTRIES = {
    "grader": "graders: {{KEY: {}}}",
    "aggregator": "metrics: {{KEY: {}}}",
    "exporter": "exporters: [{}]",
    "reporter": "reports: [{}]",
    "extractor": "graders: {{KEY: {{kind: exact_match, extractor: {}}}}}",
    **{kind: f"{kind}: {{}}" for kind in ("reader", "engine", "stack")},
}
"""How a suite names a component of a kind."""


def component_data(registry: Registry, kind: str | None = None) -> dict[str, list[Any]]:
    """List all components as JSON data, with broken plugins and names that are offered twice."""
    if kind is not None and kind not in KINDS:
        hint = suggest(kind, KINDS)
        known = ", ".join(KINDS)
        raise ConfigError(f"unknown kind {kind!r}{hint}; there are: {known}")
    components = []
    for component, plugin in registry.components():
        if kind in (None, component.kind):
            components.append({**component._asdict(), **_owner(plugin)})
    broken = [{**_owner(plugin), "error": plugin.error} for plugin in registry.broken]
    return {"components": components, "broken": broken, "conflicts": registry.conflicts}


def _owner(plugin: Any) -> dict[str, str]:
    names = {"plugin": plugin.name, "distribution": plugin.distribution}
    return {**names, "version": plugin.version}


_COMPONENT = "{kind:<11} {name:<26} {summary}  [{distribution} {version}]"
_BROKEN = "broken      {plugin:<26} {error}  [{distribution} {version}]"


def component_lines(registry: Registry, kind: str | None = None) -> Iterator[str]:
    """Yield the same as lines."""
    listed = component_data(registry, kind)
    yield from [_COMPONENT.format(**component) for component in listed["components"]]
    yield from [_BROKEN.format(**plugin) for plugin in listed["broken"]]
    yield from [f"conflict    {conflict}" for conflict in listed["conflicts"]]


def _type_name(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(map(_type_name, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("type", "any"))


def _option_lines(schema: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield a line for each option: name, type, default; those nested in it are indented below."""
    for option, of_option in schema["properties"].items():
        default = f"default {json.dumps(of_option.get('default'))}"
        if option in schema.get("required", ()):
            default = "required"
        yield f"{indent}{option}: {_type_name(of_option)} ({default})"
        items = of_option.get("items")
        values = of_option.get("additionalProperties")
        any_of = of_option.get("anyOf", ())
        for nested in (of_option, items, values, *any_of):
            if isinstance(nested, Mapping) and "properties" in nested:
                yield from _option_lines(nested, f"{indent}  ")


def _entry(kind: str, name: str, schema: Mapping[str, Any]) -> str:
    """Return the entry of a component in a suite."""
    options = {"of": "GRADER"} if kind == "aggregator" else {}
    for key, of_option in schema["properties"].items():
        options[key] = json.dumps(of_option.get("default"))
    required = schema.get("required", ())
    options |= dict.fromkeys(required, "...")
    if not options or kind == "extractor":
        return _ENTRIES[kind].format(name)
    cells = [f"{key}: {value}" for key, value in {"kind": name, **options}.items()]
    entry = _ENTRIES[kind]
    return entry.format(f"{{{', '.join(cells)}}}")


def _shown_value(attribute: str, value: Any) -> str:
    """Return a class variable of a component as it is shown."""
    if attribute == "compares" and not isinstance(value, frozenset):
        return "anything" if value is None else "by its options"
    if isinstance(value, frozenset | tuple):
        shown = ", ".join(sorted(value))
    else:
        shown = value
    return str(shown or "none")


def describe_lines(registry: Registry, name: str) -> Iterator[str]:
    """Yield the description of every component of a name."""
    offers = [(kind, *offer[:3]) for kind in KINDS for offer in registry.offers(kind, name)]
    if not offers:
        components = registry.components()
        known = [component.name for component, _ in components]
        hint = suggest(name, known)
        raise ConfigError(f"no component is called {name!r}{hint}; see `gradestack plugins list`")
    for number, (kind, component, plugin, called) in enumerate(offers):
        if number:
            yield ""
        target = registry.loaded(component, plugin)
        yield f"{kind} {called}: {component.summary}"
        yield f"  from {plugin.release}, plugin {plugin.name}, {component.target}"
        yield from _target_lines(kind, target)
        schema = class_schema(target) if isinstance(target, type) else {"properties": {}}
        if schema["properties"]:
            option_lines = _option_lines(schema, "    ")
            yield from ("", "  options:", *option_lines)
        if kind in _ENTRIES:
            yield from ("", "  in a suite:", f"    {_entry(kind, called, schema)}")


def _target_lines(kind: str, target: Any) -> Iterator[str]:
    """Yield version, class variables, figures and docstring of a component."""
    if hasattr(target, "version"):
        yield f"  version {target.version}"
    for attribute in _SHOWN.get(kind, ()):
        yield f"  {attribute}: {_shown_value(attribute, getattr(target, attribute))}"
    for figure in getattr(target, "figures", ()) if kind == "aggregator" else ():
        yield f"  figure {figure.name}: {figure.label} ({figure.unit}; better: {figure.better})"
    documentation = inspect.getdoc(target)
    if documentation:
        yield ""
        lines = documentation.splitlines()
        yield from [f"  {line}".rstrip() for line in lines]

"""Texts of `gradestack plugins list` and `gradestack plugins describe`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from gradestack.errors import ConfigError, suggest
from gradestack.hooks import KINDS, Kind
from gradestack.registry import Registry

_SHOWN = {
    "reader": ("provides", "stack", "duplicates"),
    "grader": ("needs", "requires", "aggregators"),
    "aggregator": ("needs", "keeps"),
    "exporter": ("reader", "graders"),
}


def component_lines(registry: Registry, kind: str | None = None) -> Iterator[str]:
    """Yield one line per component, then broken plugins and conflicts."""
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"unknown kind {kind!r}{suggest(kind, KINDS)}; there are: {', '.join(KINDS)}")
    for component, plugin in registry.components():
        if kind in (None, component.kind):
            yield f"{component.kind:<11} {component.name:<26} {component.summary}  [{plugin.release}]"
    for plugin in registry.broken:
        yield f"broken      {plugin.name:<26} {plugin.error}  [{plugin.release}]"
    for conflict in registry.conflicts:
        yield f"conflict    {conflict}"


def _type_name(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(map(_type_name, schema["anyOf"]))
    return " | ".join(map(str, schema["enum"])) if "enum" in schema else str(schema.get("type", "any"))


def describe_lines(registry: Registry, name: str) -> Iterator[str]:
    """Yield the description of every component of a name."""
    import attrs  # noqa: PLC0415 - not needed to list names

    from gradestack.suites.schema import options  # noqa: PLC0415

    kinds: list[Kind] = [kind for kind in KINDS if name in registry.names(kind)]
    if not kinds:
        known = [component.name for component, _ in registry.components()]
        raise ConfigError(f"no component is called {name!r}{suggest(name, known)}; see `gradestack plugins list`")
    for number, kind in enumerate(kinds):
        if number:
            yield ""
        component, plugin = registry.find(kind, name)
        target = registry.load(kind, name)
        yield f"{kind} {name}: {component.summary}"
        yield f"  from {plugin.release}, plugin {plugin.name}, {component.target}"
        if kind not in ("stack", "command"):
            yield f"  version {target.version}"
        for attribute in _SHOWN.get(kind, ()):
            value = getattr(target, attribute)
            shown = ", ".join(sorted(value)) if isinstance(value, frozenset | tuple) else value
            yield f"  {attribute}: {shown or 'none'}"
        for figure in getattr(target, "figures", ()) if kind == "aggregator" else ():
            yield f"  figure {figure.name}: {figure.label} ({figure.unit}; better: {figure.better})"
        if documentation := inspect.getdoc(target):
            yield ""
            yield from (f"  {line}".rstrip() for line in documentation.splitlines())
        found = options(target)
        if found:
            yield ""
            yield "  options:"
        for option in found:
            required = option.default is attrs.NOTHING
            shown = "required" if required else f"default {json.dumps(option.default, default=str)}"
            yield f"    {option.name}: {_type_name(option.schema)} ({shown})"

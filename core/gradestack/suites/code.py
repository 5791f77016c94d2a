"""Code of the user's own: what a suite or the command line takes from Python files, once that is allowed."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from gradestack.api import Component, Contract, Kind
from gradestack.errors import ConfigError, suggest
from gradestack.panel import Panel
from gradestack.registry import Plugin, Registry, discover, flaw
from gradestack.suites.in_file import InFile, snake
from gradestack.suites.local_files import load_file
from gradestack.suites.paths import path_of

FUNCTIONS = "python_function"
"""Grader that functions are graded with."""


class FromFile(NamedTuple):
    """A component found in a file: a plugin that has it alone, and the options that find it again."""

    plugin: Plugin
    options: dict[str, str]


def from_file(reference: InFile, kind: Kind, path: Path, registry: Registry) -> FromFile:
    """Return the component a reference names."""
    module = load_file(path)
    found = getattr(module, reference.name, None)
    options: dict[str, str] = {}
    target = f"{module.__name__}:{reference.name}"
    if kind == "grader" and callable(found) and not isinstance(found, type):
        options = {"file": reference.file, "name": reference.name}
        target = registry.find("grader", FUNCTIONS)[0].target
    elif found is None:
        known = [name for name, value in vars(module).items() if _fits(value, kind, module.__name__)]
        there = f"; there are: {', '.join(known)}" if known else f"; it has no {kind}"
        if not reference.name:
            raise ConfigError(f"no {kind} of {path.name} is named; write {reference.file}:NAME{there}")
        raise ConfigError(f"{path.name} has no {reference.name!r}{suggest(reference.name, known) or there}")
    elif problem := flaw(found, kind):
        also = ", nor a function" if kind == "grader" and problem.endswith(".Grader") else ""
        raise ConfigError(f"{reference.name}{_line(found, path)} {problem}{also}")
    return FromFile(_plugin(path, Component(kind=kind, name=reference.shown, target=target, summary="")), options)


def file_plugin(path: Path) -> Plugin:
    """Return what a file offers, as if it were installed: by its hooks, components else as classes."""
    module = load_file(path)
    panels: tuple[Panel, ...] = ()
    if hasattr(module, "gradestack_components") or hasattr(module, "gradestack_panels"):
        plugin = discover([(path.name, module)], limit="").plugins[-1]
        if plugin.error:
            raise ConfigError(f"{path.name}: {plugin.error}")
        if hasattr(module, "gradestack_components"):
            return plugin
        panels = plugin.panels
    components = [
        Component(kind=value.contract, name=snake(name), target=f"{module.__name__}:{name}", summary="")
        for name, value in vars(module).items()
        if _is_component(value, module.__name__) and not name.startswith("_")
    ]
    if not components and not panels:
        raise ConfigError(f"{path.name} has no component: no class derived from gradestack.Grader or another contract")
    return attrs.evolve(_plugin(path, *components), panels=panels)


def with_files(registry: Registry, files: Iterable[str], *, allow_code: bool) -> Registry:
    """Return a registry with what Python files offer."""
    for file in files:
        if not allow_code:
            raise ConfigError(f"{file} is Python code; pass --allow-code if you trust it")
        registry = registry.extended(file_plugin(path_of(file)))
    registry.require_sound()
    return registry


def _plugin(path: Path, *components: Component) -> Plugin:
    return Plugin(name=path.name, distribution="local", version="0", components=components)


def _is_component(value: Any, module: str) -> bool:
    """Return whether something is a component class that was defined in a module, not imported into it."""
    own = isinstance(value, type) and issubclass(value, Contract) and value.__module__ == module
    return own and hasattr(value, "contract") and not inspect.isabstract(value)


def _fits(value: Any, kind: Kind, module: str) -> bool:
    if kind == "grader" and inspect.isfunction(value):
        return value.__module__ == module
    return _is_component(value, module) and value.contract == kind


def _line(value: Any, path: Path) -> str:
    """Return `` (shout.py:7)``, where a class or function is defined; "" for anything else."""
    try:
        return f" ({path.name}:{inspect.getsourcelines(value)[1]})"
    except (OSError, TypeError):
        return ""

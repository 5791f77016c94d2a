"""The exporters of a run: those that are named, and those that come with its reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gradestack.errors import ConfigError, GradestackError
from gradestack.grading.plan import Stage
from gradestack.plugin_errors import error_text
from gradestack.registry import Plugin, Registry
from gradestack.suites.paths import Place
from gradestack.suites.references import Resolver


class Exporters(NamedTuple):
    """What writes native files, and what should and cannot."""

    stages: tuple[Stage, ...] = ()
    broken: Mapping[str, str] = {}
    """``exporter NAME (DISTRIBUTION)`` -> what is wrong, of those that were named."""
    warnings: tuple[str, ...] = ()
    """The same of those that come with the reader."""


NO_EXPORTERS = Exporters()


def name_of_broken(name: str, distribution: str) -> str:
    """Return what a broken exporter is called in messages."""
    return f"exporter {name} ({distribution})"


def exporters_of(
    resolver: Resolver, named: Iterable[str | Mapping[str, Any]], reader: Stage, graders: Iterable[Stage]
) -> Exporters:
    """Return the named exporters, and those of the reader's own plugin whose reader and graders are all in use.

    Others run only when they are named: one that is merely installed has no say in the runs of other formats. One that
    cannot be made is left out.
    """
    used = {stage.name for stage in graders}
    stages: dict[str, Stage] = {}
    broken: dict[str, str] = {}
    for number, reference in enumerate(named):
        place: Place = ("exporters", number)
        try:
            stage = _named(resolver, reference, place)
        except _BrokenError as error:
            broken[error.name] = str(error)
            continue
        if stage is not None and _fits(resolver, stage, reader, used, place):
            stages[stage.name] = stage
    warnings: list[str] = []
    for name, plugin in _beside(resolver.registry, reader):
        if name in stages or name_of_broken(name, _distribution(plugin)) in broken:
            continue
        try:
            stage = _made(resolver.registry, name, plugin, reader, used)
        except _BrokenError as error:
            warnings.append(f"{error.name} is broken and left out: {error}")
            continue
        if stage is not None:
            stages[name] = stage
    return Exporters(tuple(stages[name] for name in sorted(stages)), broken, tuple(warnings))


class _BrokenError(Exception):
    """An exporter that cannot be made."""

    def __init__(self, name: str, plugin: Plugin, error: BaseException) -> None:
        self.name = name_of_broken(name, _distribution(plugin))
        super().__init__(str(error) if isinstance(error, GradestackError) else error_text(error))


def _distribution(plugin: Plugin) -> str:
    return f"{plugin.distribution} {plugin.version}"


def _named(resolver: Resolver, reference: str | Mapping[str, Any], place: Place) -> Stage | None:
    """Return a named exporter; None where the suite is wrong about it, which is recorded."""
    name = reference if isinstance(reference, str) else reference.get("kind")
    known = isinstance(name, str) and name in resolver.registry.names("exporter")
    if known and isinstance(name, str):
        try:
            resolver.registry.load("exporter", name)
        except GradestackError as error:
            raise _BrokenError(name, resolver.registry.find("exporter", name)[1], error) from error
    return resolver.stage("exporter", str(name), reference, place)


def _fits(resolver: Resolver, stage: Stage, reader: Stage, used: set[str], place: Place) -> bool:
    """Return whether a named exporter can write this run; what it lacks is recorded."""
    component = stage.component
    lacking = sorted(set(component.graders) - used)
    if component.reader != reader.name:
        resolver.say(
            place, f"{stage.name} writes what the reader {component.reader!r} reads, and this is {reader.name!r}"
        )
    elif lacking:
        resolver.say(place, f"{stage.name} writes the grades of {', '.join(lacking)}, which is no grader of this suite")
    return component.reader == reader.name and not lacking


def _beside(registry: Registry, reader: Stage) -> Iterable[tuple[str, Plugin]]:
    """Yield the exporters of the plugin the reader comes from."""
    try:
        own = registry.find("reader", reader.name)[1]
    except ConfigError:  # an object of the caller's
        return
    for name in registry.names("exporter"):
        plugin = registry.find("exporter", name)[1]
        if plugin == own:
            yield name, plugin


def _made(registry: Registry, name: str, plugin: Plugin, reader: Stage, used: set[str]) -> Stage | None:
    try:
        target = registry.load("exporter", name)
        if target.reader != reader.name or not set(target.graders) <= used:
            return None
        component = target()
    except (Exception, SystemExit) as error:
        raise _BrokenError(name, plugin, error) from error
    return Stage(
        kind="exporter",
        key=name,
        name=name,
        component=component,
        options={},
        version=target.version,
        distribution=_distribution(plugin),
    )

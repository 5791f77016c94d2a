"""From references in a configuration to components, every problem collected with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import attrs

from gradestack.api import Kind, Profile
from gradestack.errors import ConfigError, PluginError
from gradestack.grading.plan import Stage
from gradestack.plugin_errors import guarded
from gradestack.registry import Registry
from gradestack.suites.document import Document, Place
from gradestack.suites.strict import Problems, structure

T = TypeVar("T")


class Resolver:
    """Resolves component references, collecting problems instead of stopping at the first."""

    def __init__(self, document: Document, registry: Registry, base: Path | None) -> None:
        self.document, self.registry, self.base = document, registry, base
        self.problems: list[str] = []
        self.broken: list[str] = []
        self.warnings: list[str] = []
        self.profile: Profile = "documented"
        self.allow_code = False

    def say(self, place: Place, message: str) -> None:
        """Record one problem."""
        self.problems.append(f"{self.document.where(place)}: {message}")

    def told(self) -> list[str]:
        """Return the warnings for summary.json, which must not depend on where the suite lies."""
        return [text.replace(self.document.origin, Path(self.document.origin).name, 1) for text in self.warnings]

    def structure(self, data: Any, kind: type[T], place: Place) -> T | None:
        """Return the data as an instance of a class, or None with its problems recorded."""
        try:
            return structure(data, kind, self.base)
        except Problems as problems:
            for below, message in problems.found:
                self.say((*place, *below), message)
        return None

    def sections(self, kind: type[T]) -> T:
        """Return the document as a class, leaving out sections with problems, so that the others are checked too."""
        data = dict(self.document.data)
        while True:
            try:
                return structure(data, kind, self.base)
            except Problems as problems:
                for place, message in problems.found:
                    self.say(place, message)
                bad = {place for place, _ in problems.found if place}
                entries = {place[:2] for place in bad if place[0] in ("graders", "metrics") and len(place) > 1}
                for section, entry in entries:
                    data[str(section)] = {key: each for key, each in data[str(section)].items() if str(key) != entry}
                whole = {place[0] for place in bad if place[:2] not in entries}
                if not entries and not whole & set(data):
                    self.finish()
                data = {key: value for key, value in data.items() if key not in whole}

    def stage(
        self, kind: Kind, key: str, reference: str | Mapping[str, Any], place: Place, reserved: tuple[str, ...] = ()
    ) -> Stage | None:
        """Return one component from ``"name"`` or ``{kind: name, option: value, ...}``."""
        options = {} if isinstance(reference, str) else {k: v for k, v in reference.items() if k != "kind"}
        name = reference if isinstance(reference, str) else reference.get("kind")
        if not isinstance(name, str):
            problem = "kind is missing" if name is None else f"kind must be text, got {name!r}"
            self.say(place, f"{problem}; there are: {', '.join(self.registry.names(kind))}")
            return None
        try:
            target = self.registry.load(kind, name)
            _, plugin = self.registry.find(kind, name)
        except PluginError as error:
            self.broken.append(f"{self.document.where(place)}: {error}")
            return None
        except ConfigError as error:
            self.say((*place, "kind") if isinstance(reference, Mapping) else place, str(error))
            return None
        if getattr(target, "runs_code", False) and not self.allow_code:
            self.say(place, f"{name} imports Python code the suite names; pass --allow-code if you trust this suite")
            return None
        options = {option: value for option, value in options.items() if option not in reserved}
        if "profile" not in options and any(field.name == "profile" for field in attrs.fields(target)):
            options["profile"] = self.profile
        component = self.structure(options, target, place)
        if component is None:
            return None
        return Stage(
            kind=kind,
            key=key,
            name=name,
            component=component,
            options=options,
            version=target.version,
            distribution=f"{plugin.distribution} {plugin.version}",
            profile=_profile(component, self.profile),
        )

    def finish(self) -> None:
        """Raise what was collected."""
        if self.problems:
            count = len(self.problems)
            msg = f"{self.document.origin}: {count} problem{'s' if count > 1 else ''} in the configuration"
            raise ConfigError(msg, *self.problems, *self.broken)
        if self.broken:
            msg = f"{self.document.origin}: a plugin it uses is broken"
            raise PluginError(msg, *self.broken)


def engine_stage(resolver: Resolver, reference: str | Mapping[str, Any], workers: int | None) -> Stage | None:
    """Return the engine, with the number of workers asked for beside the suite; not every engine has workers.

    Options without a kind are those of the default engine.
    """
    if not isinstance(reference, str) and reference and "kind" not in reference:
        reference = {"kind": "auto", **reference}
    if workers is not None:
        options = {"kind": reference} if isinstance(reference, str) else dict(reference)
        able = [name for name in resolver.registry.names("engine") if _has_workers(resolver.registry, name)]
        if options.get("kind") in resolver.registry.names("engine") and options["kind"] not in able:
            told = f"the engine {options['kind']!r} has no workers to set; engines that have: {', '.join(able)}"
            resolver.problems.append(f"workers: {told}")
        else:
            reference = {**options, "workers": workers}
    return resolver.stage("engine", "engine", reference, ("engine",))


def _has_workers(registry: Registry, name: str) -> bool:
    try:
        target = registry.load("engine", name)
    except PluginError:
        return False
    return any(field.name == "workers" for field in attrs.fields(target))


def _profile(component: Any, inherited: Profile) -> Profile:
    """Return the profile a component is given, which may be another than the suite's."""
    own: Any = getattr(component, "profile", None)
    found: Profile = own if own in get_args(Profile) else inherited
    return found


def made_stage(kind: Kind, key: str, component: Any, profile: Profile = "documented") -> Stage:
    """Return the stage of a component object made by the caller."""
    options = {
        field.name: getattr(component, field.name)
        for field in (attrs.fields(type(component)) if attrs.has(type(component)) else ())
        if field.repr
    }
    return Stage(
        kind=kind,
        key=key,
        name=type(component).__name__,
        component=component,
        options=options,
        version=component.version,
        distribution="local",
        profile=_profile(component, profile),
    )


def exporters_for(registry: Registry, reader: Stage, graders: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return the exporters whose reader and graders are all in use."""
    used = {stage.name for stage in graders}
    found: list[Stage] = []
    for name in registry.names("exporter"):
        _, plugin = registry.find("exporter", name)
        try:
            target = registry.load("exporter", name)
        except PluginError:  # matters only to a suite that would use it, which cannot be known
            continue
        if target.reader == reader.name and set(target.graders) <= used:
            with guarded(f"exporter {name}"):
                exporter = target()
            found.append(
                Stage(
                    kind="exporter",
                    key=name,
                    name=name,
                    component=exporter,
                    options={},
                    version=target.version,
                    distribution=f"{plugin.distribution} {plugin.version}",
                )
            )
    return tuple(found)

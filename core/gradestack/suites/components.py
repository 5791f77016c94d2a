"""The components of a suite: graders with their extractors, metrics, the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.api import Grader, Kind, Profile
from gradestack.errors import PluginError, suggest
from gradestack.grading.plan import Metric, Stage
from gradestack.registry import Registry
from gradestack.suites.code import FUNCTIONS
from gradestack.suites.paths import Place
from gradestack.suites.references import Resolver, profile_of
from gradestack.suites.spec import SuiteSpec

_TEXT_KEYS = ("extractor", "extractor_config", "display_name")


def grader_stages(resolver: Resolver, spec: SuiteSpec, made: Mapping[str, Grader]) -> dict[str, Stage]:
    """Return a suite's graders by key; those ``made`` by the caller are taken as they are."""
    found: dict[str, Stage] = {}
    for key, reference in spec.graders.items():
        if key in made:
            stage: Stage | None = made_stage("grader", key, made[key], spec.profile)
        else:
            stage = resolver.stage("grader", key, _code_reference(reference), ("graders", key), reserved=_TEXT_KEYS)
        if stage is not None:
            found[key] = _with_extractor(resolver, stage, reference if isinstance(reference, Mapping) else {})
    return found


def _code_reference(reference: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """Return ``{kind: tool, function: "file.py:name"}`` as the grader that imports code; anything else unchanged."""
    function = reference.get("function") if isinstance(reference, Mapping) else None
    if not isinstance(reference, Mapping) or reference.get("kind") != "tool" or not isinstance(function, str):
        return reference
    place, colon, name = function.rpartition(":")
    if not colon:
        return reference
    rest = {key: value for key, value in reference.items() if key not in ("kind", "function")}
    return {"kind": FUNCTIONS, "file" if place.endswith(".py") else "module": place, "name": name, **rest}


def _with_extractor(resolver: Resolver, stage: Stage, reference: Mapping[str, Any]) -> Stage:
    """Give a text grader its extractor; refuse one on a grader that judges no text."""
    place: Place = ("graders", stage.key)
    named, config = reference.get("extractor"), reference.get("extractor_config")
    if not stage.component.submission:
        for option in ("extractor", "extractor_config"):
            if option in reference:
                resolver.say((*place, option), f"{stage.name} judges the whole sample; it takes no {option}")
        return stage
    if config is not None and not isinstance(config, Mapping):
        resolver.say((*place, "extractor_config"), "expected a mapping of the extractor's options")
        return stage
    options = dict(config or {})
    wanted = (
        {**options, "kind": "last_assistant" if named is None else named} if not isinstance(named, Mapping) else named
    )
    extractor = resolver.stage("extractor", stage.key, wanted, (*place, "extractor"))
    return attrs.evolve(stage, extractor=extractor)


def metric_stages(resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage]) -> list[Metric]:
    """Return the default aggregators of every grader and the suite's own; an own one replaces a default of its name."""
    own: dict[tuple[str, str], Metric] = {}
    for key, reference in spec.metrics.items():
        place: Place = ("metrics", key)
        entry: dict[str, Any] = {"kind": reference} if isinstance(reference, str) else dict(reference)
        if "kind" not in entry and key in resolver.registry.names("aggregator"):
            entry["kind"] = key
        of = entry.get("of")
        if of is None:
            by_default = [name for name, stage in graders.items() if entry.get("kind") in stage.component.aggregators]
            of = next(iter([*by_default, *graders, *spec.graders]), "")
        elif not isinstance(of, str) or of not in spec.graders:
            resolver.say((*place, "of"), f"no grader has the key {of!r}{suggest(of, spec.graders)}")
            of = ""
        bounded = _bounded(resolver, entry, graders.get(of))
        stage = resolver.stage("aggregator", key, bounded, place, reserved=("of",))
        for rater in getattr(stage.component, "raters", ()) if stage is not None else ():
            if rater not in spec.graders:
                resolver.say((*place, "raters"), f"no grader has the key {rater!r}{suggest(rater, spec.graders)}")
        if stage is not None:
            own[of, key] = Metric(of=of, stage=stage)
    found: list[Metric] = []
    for key, grader in graders.items():
        for name in grader.component.aggregators:
            if (key, name) in own:
                found.append(own.pop((key, name)))
            elif stage := resolver.stage("aggregator", name, _bounded(resolver, name, grader), ("graders", key)):
                found.append(Metric(of=key, stage=stage))
    return [*found, *own.values()]


def _bounded(resolver: Resolver, entry: str | Mapping[str, Any], grader: Stage | None) -> str | Mapping[str, Any]:
    """Return an aggregator's entry; with what it takes of the bounds of a grader whose scores are no shares.

    That is ``share: false``, and as ``least`` the lower bound.
    """
    low, high = (0.0, 1.0) if grader is None else grader.component.bounds
    data = {"kind": entry} if isinstance(entry, str) else entry
    if (low >= 0 and high <= 1) or "share" in data or data.get("kind") not in resolver.registry.names("aggregator"):
        return entry
    try:
        target = resolver.registry.load("aggregator", str(data["kind"]))
    except PluginError:  # said where it is loaded next
        return entry
    taken = {field.name for field in attrs.fields(target)} - data.keys()
    known = {"share": False} | ({} if math.isinf(low) else {"least": low})
    more = {name: value for name, value in known.items() if name in taken}
    return {**data, **more} if more else entry


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
            resolver.problems[f"workers: {told}"] = ("engine", "workers")
        else:
            reference = {**options, "workers": workers}
    return resolver.stage("engine", "engine", reference, ("engine",))


def _has_workers(registry: Registry, name: str) -> bool:
    try:
        target = registry.load("engine", name)
    except PluginError:
        return False
    return any(field.name == "workers" for field in attrs.fields(target))


def made_stage(kind: Kind, key: str, component: Any, profile: Profile) -> Stage:
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
        profile=profile_of(component, profile),
    )

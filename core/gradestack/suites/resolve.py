"""Suites: from a YAML document to components ready to run, every problem reported at once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Grader, Input, Inputs, Reader
from gradestack.errors import ConfigError, GradestackError, suggest
from gradestack.grading.plan import Metric, Stage
from gradestack.registry import Registry
from gradestack.suites.document import Document, Place, apply_override
from gradestack.suites.gates import resolve_gates
from gradestack.suites.inputs import Recognised, expand, name_inputs, recognise
from gradestack.suites.published import jsonable, published
from gradestack.suites.references import Resolver, engine_stage, exporters_for, made_stage
from gradestack.suites.spec import Suite, SuiteSpec


def _merge_stack(data: dict[str, Any], stack: Mapping[str, Any]) -> None:
    """Lay a suite's own entries over a stack's: options merge per entry unless the entry names its own kind."""
    for section in ("graders", "metrics"):
        merged: dict[str, Any] = copy.deepcopy(dict(stack.get(section) or {}))
        own = data.get(section) or {}
        if not isinstance(own, Mapping):  # refused with its place later
            continue
        for key, entry in own.items():
            base = merged.get(key)
            extends = isinstance(base, Mapping) and isinstance(entry, Mapping) and "kind" not in entry
            merged[key] = {**base, **entry} if extends else entry  # type: ignore[dict-item]
        if merged:
            data[section] = merged
    for name in ("gate", "reports"):
        if name in stack and name not in data:
            data[name] = copy.deepcopy(stack[name])


def _reader_reference(data: Mapping[str, Any]) -> tuple[Any, Place]:
    target = data.get("target")
    inner, outer = target.get("reader") if isinstance(target, Mapping) else None, data.get("reader")
    if inner is None:
        return outer, ("reader",)
    if isinstance(outer, Mapping) and "kind" not in outer:  # options set beside it, say on the command line
        return {**(inner if isinstance(inner, Mapping) else {"kind": inner}), **outer}, ("target", "reader")
    return inner, ("target", "reader")


_EARLY = ("reader", "target", "stack", "profile", "dataset", "name")


def resolve(
    document: Document,
    registry: Registry,
    *,
    base: Path | None = None,
    overrides: Iterable[str] = (),
    allow_code: bool = False,
    workers: int | None = None,
) -> Suite:
    """Return the suite a document describes.

    Args:
        document: Parsed configuration; changed in place by overrides and stack.
        registry: Where components come from.
        base: Directory that relative paths are taken from.
        overrides: ``PATH=VALUE`` assignments.
        allow_code: Let graders import Python code that the suite names.
        workers: Number of workers for the engine, whatever the document says.

    Raises:
        ConfigError: Everything that is wrong with the configuration, each with its place.
        DataError: An input does not exist or is not recognised.
        PluginError: A plugin the suite uses is broken.
    """
    registry.require_sound()
    assignments = list(overrides)
    _override(document, assignments, early=True)
    resolver = Resolver(document, registry, base)
    resolver.allow_code = allow_code
    _refuse_live_target(resolver)
    reference, reader_place = _reader_reference(document.data)
    chosen = reference.get("kind") if isinstance(reference, Mapping) else reference
    sniffed, late = _recognised(resolver, chosen)
    chosen = sniffed.reader if sniffed is not None else chosen
    _lay_stack(resolver, chosen)
    _override(document, assignments, early=False)
    spec = resolver.sections(SuiteSpec)
    resolver.profile = spec.profile
    if not spec.target.paths and not any(problem for problem in resolver.problems if "target" in problem):
        resolver.say(("target",), "paths is missing: name the result files to grade")
    reader_options = dict(reference) if isinstance(reference, Mapping) else {}
    reader_named = {**reader_options, "kind": chosen} if chosen is not None else None
    reader = resolver.stage("reader", "reader", reader_named, reader_place) if reader_named else None
    graders = _graders(resolver, spec)
    metrics = _metrics(resolver, spec, graders)
    gates, headline = resolve_gates(resolver, spec, graders)
    _check_numbers(resolver, spec)
    reports = [
        resolver.stage("reporter", str(place), entry, ("reports", place)) for place, entry in enumerate(spec.reports)
    ]
    engine = engine_stage(resolver, spec.engine, workers)
    dataset, dataset_reader = _dataset(resolver, spec, reader, base)
    _check_needs(resolver, reader, graders, dataset_reader, joined=dataset is not None)
    resolver.finish()
    if late is not None:
        raise late
    if reader is None or engine is None or sniffed is None:
        raise AssertionError  # every way to get here has said its problem
    inputs = Inputs(data=name_inputs(sniffed.paths), dataset=dataset)
    ignored = [f"{path}: not recognised, left out" for path in sniffed.ignored]
    return Suite(
        name=spec.name or Path(document.origin).stem,
        description=spec.description,
        profile=spec.profile,
        inputs=inputs,
        reader=reader,
        dataset_reader=dataset_reader,
        graders=tuple(graders.values()),
        metrics=tuple(metrics),
        exporters=exporters_for(registry, reader, graders.values()),
        gates=gates,
        rule=gates[0] if gates else None,
        num_runs=spec.num_runs,
        runs_must_pass=spec.runs_must_pass or ("any" if spec.profile == "upstream" else "all"),
        max_samples=spec.max_samples or 0,
        sample_tags=frozenset(spec.sample_tags),
        headline=headline,
        reports=tuple(report for report in reports if report is not None),
        engine=engine,
        duplicates=spec.duplicates or reader.component.duplicates,
        config=published(document.data, inputs, reader, graders, metrics),
        warnings=(*ignored, *resolver.told()),
    )


def _override(document: Document, assignments: Iterable[str], *, early: bool) -> None:
    """Apply the assignments that decide on reader and stack (early), or all others, once the stack is laid."""
    for assignment in assignments:
        if (assignment.split(".")[0].split("=")[0].strip() in _EARLY) == early:
            apply_override(document, assignment)


def _recognised(resolver: Resolver, chosen: object) -> tuple[Recognised | None, GradestackError | None]:
    """Return what the target's paths hold, or why they hold nothing: mistakes in the suite itself are told first."""
    data, registry = resolver.document.data, resolver.registry
    target = data.get("target")
    if isinstance(target, dict) and isinstance(target.get("paths"), str):
        target["paths"] = [target["paths"]]
    given = target.get("paths") if isinstance(target, Mapping) else None
    known = isinstance(chosen, str) and chosen in registry.names("reader")
    if not isinstance(given, list) or not given or not all(isinstance(path, str) for path in given):
        return None, None
    if chosen is not None and not known:
        return None, None
    try:
        return recognise(expand(given, resolver.base), registry, str(chosen) if known else None), None
    except GradestackError as error:
        if not data.get("graders"):
            raise
        return None, error


def resolve_samples(
    document: Document,
    registry: Registry,
    samples: Reader,
    graders: Mapping[str, Grader | str | Mapping[str, Any]],
) -> Suite:
    """Return a suite over samples in memory.

    Args:
        document: ``name``, ``profile``, ``metrics``, ``gate``, ``reports``; no target.
        registry: Where named components come from.
        samples: A reader that yields the samples.
        graders: Grader objects, names, or ``{kind: name, option: value}`` mappings, by key.

    Raises:
        ConfigError: Everything that is wrong, each with its place.
        PluginError: A plugin in use is broken.
    """
    registry.require_sound()
    resolver = Resolver(document, registry, None)
    ready = {
        key: made_stage("grader", key, each, document.data.get("profile", "documented"))
        for key, each in graders.items()
        if isinstance(each, Grader)
    }
    named = {key: each for key, each in graders.items() if not isinstance(each, Grader)}
    document.data.setdefault("engine", "serial")
    document.data["graders"] = {key: dict(each) if isinstance(each, Mapping) else each for key, each in named.items()}
    spec = resolver.sections(SuiteSpec)
    resolver.profile = spec.profile
    found = {
        key: resolver.stage("grader", key, each, ("graders", key), reserved=_TEXT_KEYS)
        for key, each in spec.graders.items()
    }
    chosen = {key: stage for key in graders if (stage := ready.get(key) or found.get(key)) is not None}
    written = {key: each if isinstance(each, Mapping) else {} for key, each in graders.items()}
    stages = {key: _with_extractor(resolver, stage, written[key]) for key, stage in chosen.items()}
    full = attrs.evolve(spec, graders={key: {} for key in graders})
    metrics = _metrics(resolver, full, stages)
    gates, headline = resolve_gates(resolver, full, stages)
    _check_numbers(resolver, spec)
    reports = [resolver.stage("reporter", str(n), each, ("reports", n)) for n, each in enumerate(spec.reports)]
    engine = resolver.stage("engine", "engine", spec.engine, ("engine",))
    if not graders:
        resolver.say(("graders",), "at least one grader is needed")
    resolver.finish()
    if engine is None:
        raise AssertionError
    config = {key: value for key, value in document.data.items() if key != "engine"}
    config["graders"] = {key: {**stage.options, "kind": stage.name} for key, stage in stages.items()}
    return Suite(
        name=spec.name or "samples",
        description=spec.description,
        profile=spec.profile,
        inputs=Inputs(data=()),
        reader=made_stage("reader", "reader", samples),
        dataset_reader=None,
        graders=tuple(stages.values()),
        metrics=tuple(metrics),
        exporters=(),
        gates=gates,
        rule=gates[0] if gates else None,
        num_runs=spec.num_runs,
        runs_must_pass=spec.runs_must_pass or ("any" if spec.profile == "upstream" else "all"),
        max_samples=spec.max_samples or 0,
        sample_tags=frozenset(spec.sample_tags),
        headline=headline,
        reports=tuple(report for report in reports if report is not None),
        engine=engine,
        duplicates=spec.duplicates or "keep",
        config=jsonable(config),
        warnings=tuple(resolver.told()),
    )


def _lay_stack(resolver: Resolver, reader: object) -> None:
    """Put the named stack, or without graders the format's default one, under the suite's own entries."""
    data, registry = resolver.document.data, resolver.registry
    if data.get("stack") is None and not data.get("graders") and isinstance(reader, str):
        if reader not in registry.names("reader"):
            return  # said where the reader is resolved
        data["stack"] = registry.load("reader", reader).stack
        if data["stack"] is None:
            known = ", ".join(registry.names("stack")) or "none"
            resolver.say(("stack",), f"the format {reader!r} has no default stack; name graders or a stack ({known})")
    if isinstance(data.get("stack"), str):
        try:
            _merge_stack(data, registry.stack(data["stack"]))
        except ConfigError as error:
            resolver.say(("stack",), str(error))


_TEXT_KEYS = ("extractor", "extractor_config", "display_name")


def _graders(resolver: Resolver, spec: SuiteSpec) -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    for key, reference in spec.graders.items():
        stage = resolver.stage("grader", key, _code_reference(reference), ("graders", key), reserved=_TEXT_KEYS)
        if stage is not None:
            found[key] = _with_extractor(resolver, stage, reference if isinstance(reference, Mapping) else {})
    if not spec.graders and not resolver.document.data.get("graders"):
        resolver.say(("graders",), "at least one grader is needed, or a stack")
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
    return {"kind": "python_function", "file" if place.endswith(".py") else "module": place, "name": name, **rest}


def _refuse_live_target(resolver: Resolver) -> None:
    """Say that a letta-evals suite's live target cannot be honoured, and what to do instead."""
    target = resolver.document.data.get("target")
    kind = target.get("kind") if isinstance(target, Mapping) else None
    if isinstance(kind, str) and kind != "recorded":
        advice = "name recordings with `kind: recorded` and `paths`, or re-grade a recorded run with --cached DIR"
        resolver.say(("target", "kind"), f"{kind!r} is a live target, gradestack grades recordings; {advice}")
        resolver.document.data["target"] = {}


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


def _metrics(resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage]) -> list[Metric]:
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
        stage = resolver.stage("aggregator", key, entry, place, reserved=("of",))
        if stage is not None:
            own[of, key] = Metric(of=of, stage=stage)
    found: list[Metric] = []
    for key, grader in graders.items():
        for name in grader.component.aggregators:
            if (key, name) in own:
                found.append(own.pop((key, name)))
            elif stage := resolver.stage("aggregator", name, name, ("graders", key)):
                found.append(Metric(of=key, stage=stage))
    return [*found, *own.values()]


def _check_numbers(resolver: Resolver, spec: SuiteSpec) -> None:
    for name, least in (("num_runs", 1), ("max_samples", 0), ("runs_must_pass", 1)):
        value = getattr(spec, name)
        if isinstance(value, int) and value < least:
            resolver.say((name,), f"expected at least {least}, got {value}")
    if isinstance(spec.runs_must_pass, int) and spec.runs_must_pass > (spec.num_runs or 1):
        runs = spec.num_runs or 1
        resolver.say(("runs_must_pass",), f"{spec.runs_must_pass} of {runs} run(s) can never pass; see num_runs")
    for name in ("max_concurrent", "setup_script"):
        if getattr(spec, name) is not None:
            resolver.warnings.append(f"{resolver.document.where((name,))}: has no effect on recorded results")


def _dataset(
    resolver: Resolver, spec: SuiteSpec, reader: Stage | None, base: Path | None
) -> tuple[Input | None, Stage | None]:
    """Return the dataset and, when the reader does not join it itself, the reader it is read with."""
    if spec.dataset is None:
        return None, None
    (path,) = expand([spec.dataset], base)[:1]
    dataset = name_inputs([path])[0]
    if reader is None or reader.component.takes_dataset:
        return dataset, None
    found = recognise([path], resolver.registry, None)
    return dataset, resolver.stage("reader", "dataset", found.reader, ("dataset",))


def _check_needs(
    resolver: Resolver, reader: Stage | None, graders: Mapping[str, Stage], dataset: Stage | None, *, joined: bool
) -> None:
    if reader is None:
        return
    provides = set(reader.component.provides)
    if dataset is not None:
        provides |= {"expected", "tools", "input"} & set(dataset.component.provides)
    for key, stage in graders.items():
        lacking = sorted(stage.component.requires - provides)
        if lacking:
            advice = "" if joined else "; a --dataset that has it may help" if "expected" in lacking else ""
            resolver.say(
                ("graders", key),
                f"{stage.name} needs {', '.join(lacking)}; the format {reader.name!r} provides "
                f"{', '.join(sorted(provides)) or 'only ids'}{advice}",
            )

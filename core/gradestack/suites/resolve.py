"""Suites: from a configuration, or samples in memory, to components ready to run, every problem
reported at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gradestack.api import Grader, Inputs, Reader
from gradestack.copies.files import Folder, local_path_of
from gradestack.gates.rules import AnyGate, BaselineGate, Limit, TaskGate, as_limit, as_share
from gradestack.grading.plan import Duplicates, Metric, Stage, Success
from gradestack.grading.subset import Subset
from gradestack.interpreter import Limits, limited
from gradestack.jsonio.paths import path_steps
from gradestack.suites.code import LocalFiles
from gradestack.suites.components import (
    Resolver,
    Target,
    exporters_of,
    grader_stages,
    graders_for,
    made_stage,
    metric_stages,
    programs_of,
)
from gradestack.suites.document import Document, apply_override
from gradestack.suites.gating import FigurePaths, GateReader
from gradestack.suites.headlines import HeadlineReader
from gradestack.suites.options import Location, jsonable
from gradestack.suites.snapshot import config_snapshot
from gradestack.suites.spec import Headline, LimitsSpec, RunOptions, Suite, SuiteSpec
from gradestack.suites.stacks import lay_stack

_TIME: Location = ("limits", "seconds_per_grade")
_LONGEST_GRADE = 3600
"""Seconds a suite may allow for a grade by itself, as its patterns end by them."""
_EARLY = ("reader", "target", "stack", "profile", "dataset", "name", "plugins", "limits")
"""Keys that decide on reader and stack."""
NO_FACETS = (None, "model", "task")
"""Values of ``per`` that name no facet."""


def resolve(
    document: Document,
    options: RunOptions,
    base: Folder | None = None,
    samples: Reader | None = None,
) -> Suite:
    """Return the suite a document describes, which options and stack change.

    Callers in Python may put objects for graders, and have ``samples``, a reader of what is in
    memory, for a target.
    """
    path_steps.cache_clear()  # a path that took too long in an earlier run is tried again
    data = document.data
    _set_engine(document, options.engine)
    deferred: list[str] = []
    for override in options.overrides:
        if _key_of(override) in _EARLY:
            apply_override(document, override)
        else:
            deferred.append(override)
    resolver = Resolver(document, options.registry, base, options.allow_code, options.allow_remote)
    resolver.load_plugins(data.get("plugins"))
    grader_objects = _take_objects(data)
    limits = _limits(resolver)
    with limited(limits):
        if samples is None:
            from gradestack.suites.recognition import target_of  # noqa: PLC0415 - reads files

            target = target_of(resolver)
            lay_stack(resolver, target)
        else:
            data.setdefault("engine", "serial")
            reader = made_stage("reader", "reader", samples)
            target = Target(Inputs(data=()), reader)
        apply_late_overrides(resolver, deferred)
        return _resolve(
            resolver, options, grader_objects, target, limits, in_memory=samples is not None
        )


def _set_engine(document: Document, name: str | None) -> None:
    """Replace the suite's engine by that of the command line, unless they are the same."""
    written = document.data.get("engine")
    known = written.get("kind") if isinstance(written, Mapping) else written
    if name is not None and name != known:
        document.data["engine"] = {"kind": name}
        document.overrides.add(("engine",))


def _key_of(override: str) -> str:
    path, _, _ = override.partition("=")
    key, _, _ = path.partition(".")
    return key.strip()


def _take_objects(data: dict[str, Any]) -> dict[str, Grader]:
    """Return the graders that are objects; names alone stay in the data."""
    graders = data.get("graders")
    if not isinstance(graders, Mapping):
        return {}
    grader_objects = {key: grader for key, grader in graders.items() if isinstance(grader, Grader)}
    names: dict[str, Any] = {key: {} for key in grader_objects}
    data["graders"] = {**graders, **names}
    return grader_objects


def apply_late_overrides(resolver: Resolver, overrides: Sequence[str]) -> None:
    """Apply the overrides of a command line that a stack must not cover."""
    for override in overrides:
        apply_override(resolver.document, override)
        if override.startswith("gate"):
            resolver.has_recorded_gates = False


def _limits(resolver: Resolver) -> Limits:
    """Return the limits of a suite; a suite file may not let its patterns go on for long."""
    spec = LimitsSpec()
    with suppress(msgspec.ValidationError):  # said with the other problems
        spec = msgspec.convert(resolver.document.data.get("limits", {}), LimitsSpec)
    values = [None if value == "none" else value for value in msgspec.structs.astuple(spec)]
    limits = Limits(*values)
    base = resolver.base
    is_anywhere = base is None or base.is_open
    is_trusted = is_anywhere or resolver.document.is_set(_TIME)
    most = limits.seconds_per_grade
    is_long = most is None or most > _LONGEST_GRADE
    if is_long and not is_trusted:
        why = f"a suite may allow {_LONGEST_GRADE:,} seconds at most; for more, or none, pass"
        resolver.add_problem(_TIME, f"{why} --set limits.seconds_per_grade=...")
    return limits


class _Judgement(msgspec.Struct, frozen=True):
    """The rules a run is judged by."""

    main: str
    gates: tuple[AnyGate, ...]
    success: Success | None
    headline: Headline
    max_failed: Limit | None
    min_graded: float


def _resolve(
    resolver: Resolver,
    options: RunOptions,
    grader_objects: Mapping[str, Grader],
    target: Target,
    limits: Limits,
    *,
    in_memory: bool,
) -> Suite:
    """Turn a suite's document and target into a Suite; raise its problems all together."""
    document, reader = resolver.document, target.reader
    spec = resolver.structure(document.data, SuiteSpec, ()) or SuiteSpec()
    resolver.num_runs = spec.num_runs
    graders = grader_stages(resolver, spec, grader_objects)
    _check_there_is_work(resolver, spec, target, in_memory=in_memory)
    metrics = metric_stages(resolver, spec, graders)
    format_reader = None if in_memory else reader
    judgement = _judge(resolver, spec, graders, metrics, format_reader)
    subset = _samples_and_runs(resolver, spec)
    reports = _reporters(resolver, spec)
    engine = _engine(resolver, spec, options.workers)
    programs, exporters = _writers(resolver, spec, options, format_reader, graders)
    if format_reader is not None:
        _check_needs(resolver, format_reader, graders, target)
    resolver.finish()
    if target.error is not None:
        raise target.error
    if reader is None or engine is None:
        raise AssertionError  # every way to get here has said its problem
    resolver.warnings += target.remarks
    graders, remarks = graders_for(resolver, graders, reader, target.inputs)
    resolver.warnings += remarks
    config: Mapping[str, Any]
    default_name = document.default_name
    if in_memory:
        config = _config_in_memory(document.data, graders)
        default_name = default_name or "samples"
    else:
        config = config_snapshot(document.data, target.inputs, reader, graders, metrics)
    duplicates, keeps_copies = _copies_of_runs(spec, reader)
    gates = judgement.gates
    files = LocalFiles.load(resolver.code) if resolver.code else LocalFiles()
    rule = gates[0] if gates else None
    return Suite(
        name=spec.name or default_name or Path(document.origin).stem,
        profile=spec.profile,
        files=files,
        registry=resolver.registry,
        inputs=target.inputs,
        reader=reader,
        dataset_reader=target.dataset_reader,
        graders=tuple(graders.values()),
        metrics=tuple(metrics),
        main=judgement.main,
        gates=gates,
        rule=rule,
        facets=_facets(gates),
        success=judgement.success,
        headline=judgement.headline,
        max_failed=judgement.max_failed,
        min_graded=judgement.min_graded,
        allow_all_failed=spec.allow_all_failed,
        num_runs=spec.num_runs,
        runs_must_pass=spec.runs_must_pass or "all",
        max_samples=spec.max_samples or 0,
        subset=subset,
        sample_tags=frozenset(spec.sample_tags),
        unused=_unused(graders.values(), format_reader),
        limits=limits,
        duplicates=duplicates,
        keeps_copies=keeps_copies,
        rows=options.rows or spec.rows,
        reports=reports,
        exporters=exporters,
        programs=programs,
        engine=engine,
        config=jsonable(config),
        warnings=(*target.ignored, *_warnings_without_folder(resolver)),
        notes=tuple(resolver.notes),
    )


def _writers(
    resolver: Resolver,
    spec: SuiteSpec,
    options: RunOptions,
    reader: Stage | None,
    graders: Mapping[str, Stage],
) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    """Return the original programs and the exporters; none for samples in memory (no reader)."""
    programs: tuple[Stage, ...] = ()
    is_upstream = spec.profile == "upstream"
    if is_upstream and reader is not None:
        programs = programs_of(resolver, reader)
    if is_upstream and not programs:
        _refuse_profile(resolver, reader)
    if reader is None:
        return programs, ()
    named = [*spec.exporters, *options.exporters]
    with_own = not programs
    exporters = exporters_of(resolver, named, reader, graders.values(), with_own=with_own)
    return programs, exporters


def _warnings_without_folder(resolver: Resolver) -> Iterator[str]:
    """Yield warnings with the suite's name alone: no result depends on where the suite lies."""
    origin = resolver.document.origin
    name = Path(origin).name
    for text in resolver.warnings:
        yield text.replace(origin, name, 1)


def _config_in_memory(data: Mapping[str, Any], graders: Mapping[str, Stage]) -> dict[str, Any]:
    """Return the configuration for summary.json of samples in memory."""
    config = {key: value for key, value in data.items() if key != "engine"}
    entries = config["graders"] = {}
    for key, stage in graders.items():
        entries[key] = {**stage.options, "kind": stage.name}
    return config


def _copies_of_runs(spec: SuiteSpec, reader: Stage) -> tuple[Duplicates, bool]:
    """Return the policy for records of one (id, model, run), and whether all copies are kept.

    By ids of the caller's own, records of one id are runs, whatever the format. A format names its
    runs by its own ids: under others the same name may stand for several runs.
    """
    component = reader.component
    has_own_ids = getattr(component, "ids", None) is not None
    has_foreign_runs = has_own_ids and component.stack != "auto"
    habit: Duplicates = "keep" if has_own_ids else component.duplicates
    return spec.duplicates or habit, has_foreign_runs or component.keeps_copies


def _refuse_profile(resolver: Resolver, reader: Stage | None) -> None:
    """Refuse the profile ``upstream`` of a format without an original program."""
    name = "" if reader is None else reader.name
    whose = "samples in memory have"
    if name:
        whose = f"{name!r} has"
    names = resolver.registry.names("program")
    known = ", ".join(names) or "none"
    why = f"the format {whose} no original program; leave the profile out (programs: {known})"
    resolver.add_problem(("profile",), why)


def _check_there_is_work(
    resolver: Resolver, spec: SuiteSpec, target: Target, *, in_memory: bool
) -> None:
    """Refuse a suite without files to grade, or without graders."""
    has_paths = in_memory or bool(spec.target.paths)
    if not has_paths and not resolver.has_problem(("target",)):
        resolver.add_problem(("target",), "paths is missing: name the result files to grade")
    has_problem = resolver.has_problem(("stack",))
    has_problem |= resolver.has_problem(("graders",))
    if spec.graders or target.reader is None or has_problem:
        return
    also = "" if in_memory else ", or a stack"
    resolver.add_problem(("graders",), f"at least one grader is needed{also}")


def _judge(
    resolver: Resolver,
    spec: SuiteSpec,
    graders: Mapping[str, Stage],
    metrics: Iterable[Metric],
    reader: Stage | None,
) -> _Judgement:
    """Return the rules a run is judged by, among the graders and metrics of a suite."""
    by_grader: dict[str, dict[str, Stage]] = {}
    for metric in metrics:
        stage = metric.stage
        by_grader.setdefault(metric.of, {})[stage.key] = stage
    paths = FigurePaths(resolver, spec.graders, graders, by_grader)
    gate_reader = GateReader(paths)
    gates, main = gate_reader.read_all(spec)
    max_failed = None
    if spec.max_failed is not None:
        with resolver.refusals(("max_failed",)):
            max_failed = as_limit(spec.max_failed)
    min_graded = 0.0
    with resolver.refusals(("min_graded",)):
        min_graded = as_share(spec.min_graded)
    headline_reader = HeadlineReader(paths, spec)
    success, headline = headline_reader.read(gates, reader)
    outcome = main if success is None else success.grader
    gates = tuple(_with_outcome(gate, outcome) for gate in gates)
    return _Judgement(main, gates, success, headline, max_failed, min_graded)


def _with_outcome(gate: AnyGate, key: str) -> AnyGate:
    """Return a gate per task with a grader: the outcome grader where it names none."""
    names_one = bool(gate.graders) or gate.figure is not None
    if names_one or not isinstance(gate, TaskGate | BaselineGate):
        return gate
    return msgspec.structs.replace(gate, metric_key=key)


def _facets(gates: Iterable[AnyGate]) -> tuple[str, ...]:
    """Return the facets by which gates group samples, each once."""
    groups = dict.fromkeys(gate.per for gate in gates)
    return tuple(name for name in groups if name and name not in NO_FACETS)


def _reporters(resolver: Resolver, spec: SuiteSpec) -> tuple[Stage, ...]:
    """Return the reporters of pages and of tables."""
    stages = []
    for position, written in enumerate(spec.reports):
        location = ("reports", position)
        stage = resolver.stage("reporter", str(position), written, location)
        stages.append(stage)
    names = {stage.name for stage in stages if stage is not None}
    formats = (spec.tables,) if isinstance(spec.tables, str) else spec.tables
    for name in formats:
        if name not in names:
            stages.append(resolver.stage("reporter", name, name, ("tables",)))
    return tuple(stage for stage in stages if stage is not None)


def _engine(resolver: Resolver, spec: SuiteSpec, workers: int | None) -> Stage | None:
    """Return the engine; options without a kind are the default one's."""
    written = spec.engine
    if isinstance(written, Mapping):
        written = {"kind": "auto", **written}
    if workers is not None:
        named = {"kind": written} if isinstance(written, str) else written
        written = {**named, "workers": workers}
    return resolver.stage("engine", "engine", written, ("engine",))


def _samples_and_runs(resolver: Resolver, spec: SuiteSpec) -> Subset:
    """Return the samples that count, and check how many runs must pass."""
    must_pass = spec.runs_must_pass
    runs = spec.num_runs or 1
    if isinstance(must_pass, int) and must_pass > runs:
        why = f"{must_pass} of {runs} run(s) can never pass; see num_runs"
        resolver.add_problem(("runs_must_pass",), why)
    for name in ("max_concurrent", "setup_script"):
        if getattr(spec, name) is not None:
            resolver.warn((name,), "has no effect on recorded results")
    tasks = None
    if spec.filter is not None or spec.tasks is not None:
        with resolver.refusals(("filter" if spec.tasks is None else "tasks",)):
            if spec.tasks is not None:
                tasks = local_path_of(spec.tasks, resolver.base)
            return Subset.read(spec.filter, tasks, None)
    return Subset()


_GRADERS = {
    "calls": "tool_calls",
    "text": "exact_match",
    "label": "label",
}  # by kind of expectation


def _unused(graders: Iterable[Stage], reader: Stage | None) -> dict[str, str]:
    """Return the kinds of expectations that no grader compares, each with a grader that would.

    Expectations of a benchmark are compared by its own stack: all are returned, or none.
    """
    components = [stage.component for stage in graders]
    compared = set[str]()
    every_kind = _GRADERS.keys()
    for component in components:
        kinds = component.compares
        compared |= every_kind if kinds is None else kinds & every_kind
    if compared & {"text", "label"}:  # one word is both
        compared |= {"text", "label"}
    is_benchmark = reader is not None and reader.component.stack != "auto"
    needs_recorded = any("recorded" in component.needs for component in components)
    if is_benchmark and (compared or needs_recorded):
        return {}
    return {kind: name for kind, name in _GRADERS.items() if kind not in compared}


def _check_needs(
    resolver: Resolver, reader: Stage, graders: Mapping[str, Stage], target: Target
) -> None:
    """Refuse graders that need fields which the format does not have."""
    provides = set(reader.component.provides)
    if target.dataset_reader is not None:
        joined = {"expected", "tools", "input"}
        provides |= joined & target.dataset_reader.component.provides
    fields = ", ".join(sorted(provides)) or "only ids"
    for key, stage in graders.items():
        lacking = ", ".join(sorted(stage.component.needs - provides))
        if lacking:
            may_help = target.inputs.dataset is None and "expected" in lacking
            advice = "; a --dataset that has it may help" if may_help else ""
            why = f"{stage.name} needs {lacking}; the format {reader.name!r} provides"
            resolver.add_problem(("graders", key), f"{why} {fields}{advice}")

"""Suites: from a YAML document to components ready to run, every problem reported at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gradestack.api import Grader, Inputs
from gradestack.copies.addresses import path_of
from gradestack.grading.plan import Stage
from gradestack.grading.subset import Subset
from gradestack.interpreter import Limits, limited
from gradestack.model import Sample
from gradestack.registry import Registry
from gradestack.suites.code import LocalFiles
from gradestack.suites.components import (
    Exporters,
    Resolver,
    engine_stage,
    exporters_of,
    grader_stages,
    graders_for,
    metric_stages,
    samples_of,
    stack_for,
)
from gradestack.suites.document import Document, apply_override
from gradestack.suites.gates import Verdicts
from gradestack.suites.spec import LimitsSpec, RunOptions, Suite, SuiteSpec, config_snapshot
from gradestack.suites.strict import Place

if TYPE_CHECKING:
    from gradestack.suites.recognition import Recognised

_DONE = frozenset({"calls", "turns", "label", "text", "plan", "state", "recorded", "native"})
"""Fields of a sample that say what an agent did."""
_LEAST_LIMITS = {"seconds_per_grade": 0.1, "record_bytes": 1024 * 1024, "scheduler_seconds": 1, "seconds_per_step": 1}
_EARLY = ("reader", "target", "stack", "profile", "dataset", "name", "plugins", "limits")
"""What decides on reader and stack."""


def resolve(
    document: Document, options: RunOptions, base: Path | None = None, made: Mapping[str, Grader] | None = None
) -> Suite:
    """Return the suite a document describes, which options and stack change; ``made`` are grader objects by key."""
    resolver = resolver_of(document, options, base)
    limits = LimitsSpec()
    with suppress(msgspec.ValidationError):  # said with the other problems
        limits = msgspec.convert(document.data.get("limits", {}), LimitsSpec)
    with limited(_limits(limits)):
        return _resolve(resolver, options, made or {})


def _resolve(resolver: Resolver, options: RunOptions, made: Mapping[str, Grader]) -> Suite:
    from gradestack.suites import recognition as files  # noqa: PLC0415 - reads them

    document = resolver.document
    _refuse_live_target(resolver)
    reference, reader_place = _reader_reference(document.data)
    named = reference.get("kind") if isinstance(reference, Mapping) else reference
    if document.data.get("profile") == "upstream":  # readers of single paths are made at once
        resolver.profile = "upstream"
    sniffed, late = files.recognised(resolver, reference, reader_place)
    kind = sniffed.reader if sniffed is not None else named
    mixed = files.mixed_stage(sniffed, resolver.profile) if sniffed is not None and sniffed.parts else None
    _lay_stack(resolver, mixed or kind, sniffed, partial(_expecting, resolver, reference, mixed or kind, sniffed))
    _override(document, options.overrides, early=False)
    spec = resolver.sections(SuiteSpec)
    resolver.profile = spec.profile
    misspelt = any("did you mean 'target'" in problem for problem in resolver.problems)
    if not spec.target.paths and not misspelt and not resolver.has_problem(("target",)):
        resolver.add_problem(("target",), "paths is missing: name the result files to grade")
    reader = mixed
    if named is not None:
        kind = named
    if kind is not None and reader is None:
        written = reference if isinstance(reference, Mapping) else {}
        reader = resolver.stage("reader", "reader", {**written, "kind": kind}, reader_place)
    graders = grader_stages(resolver, spec, made)
    # whatever graders these would have brought
    unlaid = any(map(resolver.has_problem, (("stack",), reader_place, ("target", "paths"))))
    if not spec.graders and not document.data.get("graders") and not unlaid:
        resolver.add_problem(("graders",), "at least one grader is needed, or a stack")
    parts = parts_of(resolver, spec, graders, options, reader)
    dataset, dataset_reader = files.dataset_of(resolver, spec.dataset, reader)
    exporters = Exporters()
    if reader is not None:
        _check_needs(resolver, reader, graders, dataset_reader, joined=dataset is not None)
        exporters = exporters_of(resolver, [*spec.exporters, *options.exporters], reader, graders.values())
    resolver.finish()
    if late is not None:
        raise late
    if reader is None or sniffed is None:
        raise AssertionError  # every way to get here has said its problem
    inputs = Inputs(data=sniffed.inputs, dataset=dataset)
    resolver.warnings += [*files.input_remarks(inputs.data, sniffed), *exporters.warnings]
    graders, remarks = graders_for(resolver, graders, reader.component, inputs)
    resolver.warnings += remarks
    own_ids = getattr(reader.component, "ids", None) is not None  # then records of one id are runs, whatever the format
    ignored = tuple(f"{path}: not recognised, left out" for path in sniffed.ignored)
    return Suite(
        **parts,
        name=spec.name or Path(document.origin).stem,
        files=LocalFiles.load(resolver.code),
        registry=resolver.registry,
        inputs=inputs,
        reader=reader,
        dataset_reader=dataset_reader,
        graders=tuple(graders.values()),
        exporters=exporters.stages,
        broken=exporters.broken,
        rows=options.rows or spec.rows,
        duplicates=spec.duplicates or ("keep" if own_ids else reader.component.duplicates),
        config=config_snapshot(document.data, inputs, reader, graders, parts["metrics"]),
        warnings=(*ignored, *resolver.portable_warnings()),
        notes=tuple(resolver.notes),
    )


def resolver_of(document: Document, options: RunOptions, base: Path | None) -> Resolver:
    """Return the resolver of a document, with the engine, early assignments and plugins asked for."""
    written = document.data.get("engine")
    engine = written.get("kind") if isinstance(written, Mapping) else written
    other = options.engine if options.engine != engine else None
    if other is not None:  # options of the same one stay
        document.data["engine"] = {"kind": other}
    _override(document, options.overrides, early=True)
    resolver = Resolver(
        document, options.registry, base, allow_code=options.allow_code, allow_remote=options.allow_remote
    )
    resolver.load_plugins()
    if other is not None:
        resolver.registry.find("engine", other)
    return resolver


def _override(document: Document, assignments: Iterable[str], *, early: bool) -> None:
    """Apply the assignments that decide on reader and stack (early), or all others, once the stack is laid."""
    for assignment in assignments:
        if (assignment.split(".")[0].split("=")[0].strip() in _EARLY) == early:
            apply_override(document, assignment)


def _refuse_live_target(resolver: Resolver) -> None:
    target = resolver.document.data.get("target")
    kind = target.get("kind") if isinstance(target, Mapping) else None
    if isinstance(kind, str) and kind != "recorded":
        advice = "name recordings with `kind: recorded` and `paths`, or re-grade a recorded run with --cached DIR"
        resolver.add_problem(("target", "kind"), f"{kind!r} is a live target, gradestack grades recordings; {advice}")
        resolver.document.data["target"] = {}


def _reader_reference(data: Mapping[str, Any]) -> tuple[Any, Place]:
    target, outer = data.get("target"), data.get("reader")
    inner = target.get("reader") if isinstance(target, Mapping) else None
    if inner is None:
        return outer, ("reader",)
    if isinstance(outer, Mapping) and "kind" not in outer:  # options set beside it, say on the command line
        inner = {**(inner if isinstance(inner, Mapping) else {"kind": inner}), **outer}
    return inner, ("target", "reader")


def _expecting(resolver: Resolver, reference: Any, kind: object, files: Recognised | None) -> Iterator[Sample]:
    """Yield the samples by which a stack is chosen: those of the dataset, and the first of each input."""
    from gradestack.suites.recognition import dataset_of  # noqa: PLC0415 - reads files

    named = {**(reference if isinstance(reference, Mapping) else {}), "kind": kind}
    place = _reader_reference(resolver.document.data)[1]
    reader = kind if isinstance(kind, Stage) else resolver.stage("reader", "reader", named, place)
    dataset, its_reader = dataset_of(resolver, resolver.document.data.get("dataset"), reader)
    if reader is None or files is None or resolver.problems:
        return
    if dataset is not None and its_reader is not None:
        yield from samples_of(its_reader.component, Inputs(data=(dataset,)), None)
    yield from samples_of(reader.component, Inputs(data=files.inputs, dataset=dataset))


def _lay_stack(
    resolver: Resolver, reader: object, files: Recognised | None, samples: Callable[[], Iterable[Sample]]
) -> None:
    """Put the named stack, or without graders the format's default one, under the suite's own entries."""
    data, registry = resolver.document.data, resolver.registry
    named = reader.name if isinstance(reader, Stage) else reader
    of: Any = reader.component if isinstance(reader, Stage) else None
    if isinstance(reader, str) and registry.owners("reader", reader):
        of = registry.load("reader", reader)
    if isinstance(data.get("stack"), str):
        resolver.asked = f" --stack {data['stack']}"
    elif isinstance(graders := data.get("graders"), Mapping):
        kinds = [each.get("kind") if isinstance(each, Mapping) else each for each in graders.values()]
        resolver.asked = "".join(f" --grader {each}" for each in kinds)
    if data.get("stack") is None and not data.get("graders") and isinstance(named, str):
        if of is None:
            return  # said where the reader is resolved
        data["stack"] = of.stack
        if data["stack"] is None:
            resolver.add_problem(("stack",), _without_stack(named, of.provides, registry, files))
    if isinstance(data.get("stack"), str):
        inputs = Inputs(data=files.inputs if files is not None else ())
        with resolver.refusals(("stack",)):
            stack = stack_for(registry, data["stack"], inputs, of and of.provides, samples)
            data["stack"] = stack.get("stack", data["stack"])
            resolver.stacks[data["stack"]] = stack
            _merge_stack(data, stack)
            resolver.warnings += stack.get("warnings", ())
            resolver.notes += stack.get("notes", ())


def _without_stack(reader: str, provides: frozenset[str], registry: Registry, files: Recognised | None) -> str:
    whose = f"{files.paths[0]}: " if files is not None else ""
    if provides and not _DONE & provides:
        lacks = f"no column for the agent's answer (read as {reader})"
        return f"{whose}{lacks}: map one (--map text=COLUMN), or grade the file of its runs with this one as --dataset"
    known = ", ".join(registry.names("stack")) or "none"
    return f"{whose}the format {reader!r} has no default stack; name graders or a stack ({known})"


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
    gated = "gate" in data or "gates" in data
    for name in ("gate", "gates", "reports"):
        if name in stack and name not in data and not (gated and name != "reports"):
            data[name] = copy.deepcopy(stack[name])


def parts_of(
    resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage], options: RunOptions, reader: Stage | None = None
) -> dict[str, Any]:
    """Return the arguments of a suite that do not depend on where its samples come from."""
    metrics = metric_stages(resolver, spec, graders)
    verdicts = Verdicts(resolver, spec, graders, metrics)
    gates, main = verdicts.gates()
    limit = verdicts.limit()
    success, headline = verdicts.headline(gates, reader)
    _check_numbers(resolver, spec)
    subset = Subset()
    with resolver.refusals(("filter" if spec.tasks is None else "tasks",)):
        tasks = None if spec.tasks is None else path_of(spec.tasks, resolver.base)
        subset = Subset.read(spec.filter, tasks, None)
    reports = [resolver.stage("reporter", str(n), each, ("reports", n)) for n, each in enumerate(spec.reports)]
    formats = (spec.tables,) if isinstance(spec.tables, str) else spec.tables
    there = {stage.name for stage in reports if stage is not None}
    reports += [resolver.stage("reporter", each, each, ("tables",)) for each in formats if each not in there]
    return {
        **{name: getattr(spec, name) for name in ("description", "profile", "allow_all_failed", "num_runs")},
        "metrics": tuple(metrics),
        "gates": gates,
        "rule": gates[0] if gates else None,
        "facets": tuple(dict.fromkeys(gate.per for gate in gates if gate.per not in (None, "model"))),
        "max_failed": limit,
        "main": main,
        "unused": _unused(
            [getattr(stage.component, "compares", stage.component.needs) for stage in graders.values()], reader
        ),
        "success": success,
        "headline": headline,
        "runs_must_pass": spec.runs_must_pass or ("any" if spec.profile == "upstream" else "all"),
        "max_samples": spec.max_samples or 0,
        "subset": subset,
        "sample_tags": frozenset(spec.sample_tags),
        "limits": _limits(spec.limits),
        "reports": tuple(stage for stage in reports if stage is not None),
        "engine": engine_stage(resolver, spec.engine, options.workers),
    }


_GRADERS = {"calls": "tool_calls", "text": "exact_match", "label": "label"}  # by kind of expectation


def _unused(needs: Sequence[frozenset[str]], reader: Stage | None) -> dict[str, str]:
    """Return the kinds of expectations that no grader compares; of a benchmark's, whose own stack may, all or none."""
    compared = set[str]()
    for each in needs:  # who declares no field may read any
        compared |= (each & _GRADERS.keys() or _GRADERS.keys()) if "expected" in each or not each else set()
    if compared & {"text", "label"}:  # one word is both
        compared |= {"text", "label"}
    own = reader is not None and reader.component.stack != "auto"
    known = own and (compared or any("recorded" in each for each in needs))
    return {} if known else {kind: each for kind, each in _GRADERS.items() if kind not in compared}


def _limits(spec: LimitsSpec) -> Limits:
    return Limits(**{name: None if (value := getattr(spec, name)) == "none" else value for name in _LEAST_LIMITS})


def _check_numbers(resolver: Resolver, spec: SuiteSpec) -> None:
    for name, least in (("num_runs", 1), ("max_samples", 0), ("runs_must_pass", 1)):
        value = getattr(spec, name)
        if isinstance(value, int) and value < least:
            resolver.add_problem((name,), f"expected at least {least}, got {value}")
    if isinstance(spec.runs_must_pass, int) and spec.runs_must_pass > (spec.num_runs or 1):
        why = f"{spec.runs_must_pass} of {spec.num_runs or 1} run(s) can never pass; see num_runs"
        resolver.add_problem(("runs_must_pass",), why)
    for name, lowest in _LEAST_LIMITS.items():
        given = getattr(spec.limits, name)
        if isinstance(given, int | float) and given < lowest:
            resolver.add_problem(("limits", name), f"expected at least {lowest}, or none for no limit; got {given:g}")
    for name in ("max_concurrent", "setup_script"):
        if getattr(spec, name) is not None:
            resolver.warn((name,), "has no effect on recorded results")


def _check_needs(
    resolver: Resolver, reader: Stage, graders: Mapping[str, Stage], dataset: Stage | None, *, joined: bool
) -> None:
    provides = set(reader.component.provides)
    if dataset is not None:
        provides |= {"expected", "tools", "input"} & set(dataset.component.provides)
    for key, stage in graders.items():
        if lacking := sorted(stage.component.requires - provides):
            advice = "" if joined or "expected" not in lacking else "; a --dataset that has it may help"
            why = f"{stage.name} needs {', '.join(lacking)}; the format {reader.name!r} provides "
            resolver.add_problem(("graders", key), f"{why}{', '.join(sorted(provides)) or 'only ids'}{advice}")

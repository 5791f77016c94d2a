"""Suites: from a YAML document, or samples in memory, to components ready to run, every problem reported at once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gradestack.api import Grader, Input, Inputs, Reader
from gradestack.copies.addresses import path_of
from gradestack.grading.plan import Stage
from gradestack.grading.subset import Subset
from gradestack.interpreter import limited
from gradestack.model import Sample
from gradestack.suites.code import LocalFiles
from gradestack.suites.components import (
    Exporters,
    Resolver,
    Target,
    engine_stage,
    exporters_of,
    grader_stages,
    graders_for,
    made_stage,
    metric_stages,
    samples_of,
    stack_for,
)
from gradestack.suites.document import Document, apply_override
from gradestack.suites.gates import Verdicts
from gradestack.suites.spec import LimitsSpec, RunOptions, Suite, SuiteSpec, config_snapshot, jsonable

_DONE = frozenset({"calls", "turns", "label", "text", "plan", "state", "recorded", "native"})
"""Fields of a sample that say what an agent did."""
_EARLY = ("reader", "target", "stack", "profile", "dataset", "name", "plugins", "limits")
"""What decides on reader and stack."""


def resolve(document: Document, options: RunOptions, base: Path | None = None, samples: Reader | None = None) -> Suite:
    """Return the suite a document describes, which options and stack change.

    Callers in Python may put objects for graders, and have ``samples``, a reader of what is in memory, for a target.
    """
    data, written = document.data, document.data.get("engine")
    same = options.engine == (written.get("kind") if isinstance(written, Mapping) else written)
    if not same and options.engine is not None:  # options of the same one stay
        data["engine"] = {"kind": options.engine}
    _override(document, options.overrides, early=True)
    resolver = Resolver(
        document, options.registry, base, allow_code=options.allow_code, allow_remote=options.allow_remote
    )
    resolver.load_plugins()
    if not same and options.engine is not None:
        resolver.registry.find("engine", options.engine)
    made = dict[str, Grader]()
    if isinstance(graders := data.get("graders"), Mapping):
        made = {key: each for key, each in graders.items() if isinstance(each, Grader)}
        data["graders"] = {key: {} if key in made else each for key, each in graders.items()}
    if data.get("profile") == "upstream":  # readers are made at once
        resolver.profile = "upstream"
    limits = LimitsSpec()
    with suppress(msgspec.ValidationError):  # said with the other problems
        limits = msgspec.convert(data.get("limits", {}), LimitsSpec)
    with limited(limits.known):
        if samples is None:
            from gradestack.suites.recognition import target_of  # noqa: PLC0415 - reads files

            target = target_of(resolver)
            _lay_stack(resolver, target)
        else:
            data.setdefault("engine", "serial")
            target = Target(Inputs(data=()), made_stage("reader", "reader", samples, resolver.profile))
        _override(document, options.overrides, early=False)
        return _resolve(resolver, options, made, target, samples)


def _override(document: Document, assignments: Iterable[str], *, early: bool) -> None:
    """Apply the assignments that decide on reader and stack (early), or all others, once the stack is laid."""
    for assignment in assignments:
        if (assignment.split(".")[0].split("=")[0].strip() in _EARLY) == early:
            apply_override(document, assignment)


def _resolve(
    resolver: Resolver, options: RunOptions, made: Mapping[str, Grader], target: Target, samples: Reader | None
) -> Suite:
    document, reader = resolver.document, target.reader
    spec = resolver.suite()
    resolver.profile = spec.profile
    if samples is None and not spec.target.paths and not resolver.has_problem(("target",)):
        resolver.add_problem(("target",), "paths is missing: name the result files to grade")
    graders = grader_stages(resolver, spec, made)
    if not spec.graders and reader is not None and not any(map(resolver.has_problem, (("stack",), ("graders",)))):
        resolver.add_problem(("graders",), f"at least one grader is needed{'' if samples else ', or a stack'}")
    metrics = metric_stages(resolver, spec, graders)
    verdicts, format_reader = Verdicts(resolver, spec, graders, metrics), None if samples else reader
    gates, main = verdicts.gates()
    limit = verdicts.limit()
    success, headline = verdicts.headline(gates, format_reader)
    _check_runs(resolver, spec)
    subset = Subset()
    with resolver.refusals(("filter" if spec.tasks is None else "tasks",)):
        tasks = None if spec.tasks is None else path_of(spec.tasks, resolver.base)
        subset = Subset.read(spec.filter, tasks, None)
    formats = (spec.tables,) if isinstance(spec.tables, str) else spec.tables
    reports = [resolver.stage("reporter", str(n), each, ("reports", n)) for n, each in enumerate(spec.reports)]
    there = {stage.name for stage in reports if stage is not None}
    reports += [resolver.stage("reporter", each, each, ("tables",)) for each in formats if each not in there]
    engine = engine_stage(resolver, spec.engine, options.workers)
    exporters = Exporters()
    if format_reader is not None:
        _check_needs(resolver, format_reader, graders, target)
        exporters = exporters_of(resolver, [*spec.exporters, *options.exporters], format_reader, graders.values())
    resolver.finish()
    if target.late is not None:
        raise target.late
    if reader is None or engine is None:
        raise AssertionError  # every way to get here has said its problem
    resolver.warnings += [*target.remarks, *exporters.warnings]
    graders, remarks = graders_for(resolver, graders, reader.component, target.inputs)
    resolver.warnings += remarks
    if samples is None:
        config = config_snapshot(document.data, target.inputs, reader, graders, metrics)
    else:
        config = {key: value for key, value in document.data.items() if key != "engine"}
        config["graders"] = {key: {**stage.options, "kind": stage.name} for key, stage in graders.items()}
    needs = [getattr(stage.component, "compares", stage.component.needs) for stage in graders.values()]
    own_ids = getattr(reader.component, "ids", None) is not None  # then records of one id are runs, whatever the format
    return Suite(
        name=spec.name or ("samples" if samples else Path(document.origin).stem),
        description=spec.description,
        profile=spec.profile,
        files=LocalFiles.load(resolver.code),
        registry=resolver.registry,
        inputs=target.inputs,
        reader=reader,
        dataset_reader=target.dataset_reader,
        graders=tuple(graders.values()),
        metrics=tuple(metrics),
        main=main,
        gates=gates,
        rule=gates[0] if gates else None,
        facets=tuple(dict.fromkeys(gate.per for gate in gates if gate.per not in (None, "model"))),
        success=success,
        headline=headline,
        max_failed=limit,
        allow_all_failed=spec.allow_all_failed,
        num_runs=spec.num_runs,
        runs_must_pass=spec.runs_must_pass or ("any" if spec.profile == "upstream" else "all"),
        max_samples=spec.max_samples or 0,
        subset=subset,
        sample_tags=frozenset(spec.sample_tags),
        unused=_unused(needs, format_reader),
        limits=spec.limits.known,
        duplicates=spec.duplicates or ("keep" if own_ids else reader.component.duplicates),
        rows=options.rows or spec.rows,
        reports=tuple(stage for stage in reports if stage is not None),
        exporters=exporters.stages,
        broken=exporters.broken,
        engine=engine,
        config=jsonable(config),
        warnings=(*target.ignored, *resolver.portable_warnings()),
        notes=tuple(resolver.notes),
    )


def _expecting(target: Target) -> Iterator[Sample]:
    """Yield the samples by which a stack is chosen: those of the dataset, and the first of each input."""
    if target.reader is None or not target.inputs.data:
        return
    if target.inputs.dataset is not None and target.dataset_reader is not None:
        yield from samples_of(target.dataset_reader.component, Inputs(data=(target.inputs.dataset,)), None)
    yield from samples_of(target.reader.component, target.inputs)


def _lay_stack(resolver: Resolver, target: Target) -> None:
    """Put the named stack, or without graders the format's default one, under the suite's own entries."""
    data, reader = resolver.document.data, target.reader
    if isinstance(data.get("stack"), str):
        resolver.asked = f" --stack {data['stack']}"
    elif isinstance(graders := data.get("graders"), Mapping):
        kinds = [each.get("kind") if isinstance(each, Mapping) else each for each in graders.values()]
        resolver.asked = "".join(f" --grader {each}" for each in kinds)
    if data.get("stack") is None and not data.get("graders") and reader is not None:
        data["stack"] = reader.component.stack
        if data["stack"] is None:
            resolver.add_problem(("stack",), _without_stack(resolver, reader, target.inputs.data))
    if isinstance(data.get("stack"), str):
        provides = None if reader is None else reader.component.provides
        with resolver.refusals(("stack",)):
            inputs = Inputs(data=target.inputs.data)
            stack = stack_for(resolver.registry, data["stack"], inputs, provides, lambda: _expecting(target))
            data["stack"] = stack.get("stack", data["stack"])
            resolver.stacks[data["stack"]] = stack
            _merge_stack(data, stack)
            resolver.warnings += stack.get("warnings", ())
            resolver.notes += stack.get("notes", ())


def _without_stack(resolver: Resolver, reader: Stage, inputs: Sequence[Input]) -> str:
    whose, provides = f"{inputs[0].path}: " if inputs else "", reader.component.provides
    if provides and not _DONE & provides:
        lacks = f"no column for the agent's answer (read as {reader.name})"
        return f"{whose}{lacks}: map one (--map text=COLUMN), or grade the file of its runs with this one as --dataset"
    known = ", ".join(resolver.registry.names("stack")) or "none"
    return f"{whose}the format {reader.name!r} has no default stack; name graders or a stack ({known})"


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


def _check_runs(resolver: Resolver, spec: SuiteSpec) -> None:
    if isinstance(spec.runs_must_pass, int) and spec.runs_must_pass > (spec.num_runs or 1):
        why = f"{spec.runs_must_pass} of {spec.num_runs or 1} run(s) can never pass; see num_runs"
        resolver.add_problem(("runs_must_pass",), why)
    for name in ("max_concurrent", "setup_script"):
        if getattr(spec, name) is not None:
            resolver.warn((name,), "has no effect on recorded results")


def _check_needs(resolver: Resolver, reader: Stage, graders: Mapping[str, Stage], target: Target) -> None:
    provides = set(reader.component.provides)
    if target.dataset_reader is not None:
        provides |= {"expected", "tools", "input"} & set(target.dataset_reader.component.provides)
    for key, stage in graders.items():
        if lacking := sorted(stage.component.requires - provides):
            joined = target.inputs.dataset is not None
            advice = "" if joined or "expected" not in lacking else "; a --dataset that has it may help"
            why = f"{stage.name} needs {', '.join(lacking)}; the format {reader.name!r} provides "
            resolver.add_problem(("graders", key), f"{why}{', '.join(sorted(provides)) or 'only ids'}{advice}")

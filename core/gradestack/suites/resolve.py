"""Suites: from a configuration, or samples in memory, to components ready to run, every problem
reported at once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import msgspec

from gradestack.api import Figure as DeclaredFigure
from gradestack.api import Grader, Input, Inputs, Reader, declared_figure, direction_of
from gradestack.copies.files import Folder, local_path_of
from gradestack.errors import GradestackError, suggest
from gradestack.gates.rules import (
    PERCENT,
    SHARE_OF_RUNS,
    THRESHOLDS,
    AnyGate,
    BaselineGate,
    FigureGate,
    GateSpec,
    Limit,
    LogicalGate,
    LogicalSpec,
    SimpleGate,
    TaskGate,
    WeightedGate,
    as_limit,
    as_percent,
    doubtful_percentage,
    keys_of,
    read_threshold,
    split_path,
)
from gradestack.grading.plan import Metric, Stage, Success
from gradestack.grading.subset import Subset
from gradestack.interpreter import Limits, limited
from gradestack.jsonio.paths import path_steps
from gradestack.model import Sample
from gradestack.suites.code import InFile, LocalFiles
from gradestack.suites.components import (
    Exporters,
    Resolver,
    Target,
    exporters_of,
    grader_stages,
    graders_for,
    made_stage,
    metric_stages,
    samples_of,
    stack_for,
)
from gradestack.suites.document import Document, apply_override
from gradestack.suites.options import Place, Problems, jsonable, structure
from gradestack.suites.spec import (
    AVERAGE,
    Figure,
    Headline,
    HeadlineSpec,
    LimitsSpec,
    RunOptions,
    Suite,
    SuiteSpec,
)

_DONE = frozenset({"calls", "turns", "label", "text", "plan", "state", "recorded", "native"})
"""Fields of a sample that say what an agent did."""
_TIME: Place = ("limits", "seconds_per_grade")
_LONGEST_GRADE = 3600
"""Seconds a suite may allow for a grade by itself, as its patterns end by them."""
_EARLY = ("reader", "target", "stack", "profile", "dataset", "name", "plugins", "limits")
"""What decides on reader and stack."""


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
    data, written = document.data, document.data.get("engine")
    engine = options.engine
    if engine == (written.get("kind") if isinstance(written, Mapping) else written):
        engine = None  # options of the same one stay
    elif engine is not None:
        data["engine"] = {"kind": engine}
    late = list[str]()
    for each in options.overrides:
        if each.split(".")[0].split("=")[0].strip() in _EARLY:
            apply_override(document, each)
        else:
            late.append(each)
    resolver = Resolver(document, options.registry, base, options.allow_code, options.allow_remote)
    if "plugins" in data:
        resolver.load_plugins(data["plugins"])
    if engine is not None:
        resolver.registry.find("engine", engine)
    made = dict[str, Grader]()
    if isinstance(graders := data.get("graders"), Mapping):
        made = {key: each for key, each in graders.items() if isinstance(each, Grader)}
        data["graders"] = {key: {} if key in made else each for key, each in graders.items()}
    if data.get("profile") == "upstream":  # readers are made at once
        resolver.profile = "upstream"
    wanted = LimitsSpec()
    with suppress(msgspec.ValidationError):  # said with the other problems
        wanted = msgspec.convert(data.get("limits", {}), LimitsSpec)
    _check_time(resolver, wanted)
    limits = Limits(*(None if each == "none" else each for each in msgspec.structs.astuple(wanted)))
    with limited(limits):
        if samples is None:
            from gradestack.suites.recognition import target_of  # noqa: PLC0415 - reads files

            target = target_of(resolver)
            _lay_stack(resolver, target)
        else:
            data.setdefault("engine", "serial")
            target = Target(
                Inputs(data=()), made_stage("reader", "reader", samples, resolver.profile)
            )
        apply_late_overrides(resolver, late)
        _refuse_slim_rows(resolver)
        return _resolve(resolver, options, made, target, samples, limits)


def apply_late_overrides(resolver: Resolver, overrides: Sequence[str]) -> None:
    """Apply the overrides of a command line that a stack must not cover."""
    for override in overrides:
        apply_override(resolver.document, override)
        if override.startswith("gate"):
            resolver.has_recorded_gates = False


def _refuse_slim_rows(resolver: Resolver) -> None:
    """Name what has replaced them."""
    if resolver.document.data.get("rows") == "slim":
        del resolver.document.data["rows"]
        resolver.add_problem(
            ("rows",),
            "slim rows are gone; `compressed` keeps whole rows in a small file, results.jsonl.zst",
        )


def _check_time(resolver: Resolver, wanted: LimitsSpec) -> None:
    """Refuse a suite file that lets its own patterns go on for longer than an hour."""
    most, base = wanted.seconds_per_grade, resolver.base
    is_trusted = base is None or base.is_open or resolver.document.is_set(_TIME)
    is_bounded = isinstance(most, int | float) and most <= _LONGEST_GRADE
    if not is_trusted and not is_bounded:
        resolver.add_problem(
            _TIME,
            f"a suite may allow {_LONGEST_GRADE:,} seconds at most; for more, or none, pass "
            "--set limits.seconds_per_grade=...",
        )


def _resolve(
    resolver: Resolver,
    options: RunOptions,
    made: Mapping[str, Grader],
    target: Target,
    samples: Reader | None,
    limits: Limits,
) -> Suite:
    document, reader = resolver.document, target.reader
    spec = resolver.structure(document.data, SuiteSpec, ()) or SuiteSpec()
    resolver.profile, resolver.num_runs = spec.profile, spec.num_runs
    if samples is None and not spec.target.paths and not resolver.has_problem(("target",)):
        resolver.add_problem(("target",), "paths is missing: name the result files to grade")
    graders = grader_stages(resolver, spec, made)
    if (
        not spec.graders
        and reader is not None
        and not any(map(resolver.has_problem, (("stack",), ("graders",))))
    ):
        resolver.add_problem(
            ("graders",), f"at least one grader is needed{'' if samples else ', or a stack'}"
        )
    metrics = metric_stages(resolver, spec, graders)
    by_grader: dict[str, dict[str, Stage]] = {}
    for metric in metrics:
        by_grader.setdefault(metric.of, {})[metric.stage.key] = metric.stage
    verdicts, format_reader = (
        Verdicts(resolver, spec, graders, by_grader),
        None if samples else reader,
    )
    gates, main = verdicts.gates()
    limit = None if spec.max_failed is None else verdicts.limit(spec.max_failed)
    min_graded = verdicts.min_graded(spec.min_graded)
    success, headline = verdicts.headline(gates, format_reader)
    gates = name_task_graders(gates, main if success is None else success.grader)
    subset = _samples_and_runs(resolver, spec)
    formats = (spec.tables,) if isinstance(spec.tables, str) else spec.tables
    reports = [
        resolver.stage("reporter", str(n), each, ("reports", n))
        for n, each in enumerate(spec.reports)
    ]
    there = {stage.name for stage in reports if stage is not None}
    reports += [
        resolver.stage("reporter", each, each, ("tables",)) for each in formats if each not in there
    ]
    wanted = spec.engine
    if (
        not isinstance(wanted, str) and wanted and "kind" not in wanted
    ):  # options without a kind are the default one's
        wanted = {"kind": "auto", **wanted}
    if options.workers is not None:
        wanted = {
            **({"kind": wanted} if isinstance(wanted, str) else wanted),
            "workers": options.workers,
        }
    engine = resolver.stage("engine", "engine", wanted, ("engine",))
    exporters = Exporters()
    if format_reader is not None:
        _check_needs(resolver, format_reader, graders, target)
        exporters = exporters_of(
            resolver, [*spec.exporters, *options.exporters], format_reader, graders.values()
        )
    resolver.finish()
    if target.late is not None:
        raise target.late
    if reader is None or engine is None:
        raise AssertionError  # every way to get here has said its problem
    resolver.warnings += [*target.remarks, *exporters.warnings]
    graders, remarks = graders_for(resolver, graders, reader, target.inputs)
    resolver.warnings += remarks
    if samples is None:
        config = config_snapshot(document.data, target.inputs, reader, graders, metrics)
    else:
        config = {key: value for key, value in document.data.items() if key != "engine"}
        config["graders"] = {
            key: {**stage.options, "kind": stage.name} for key, stage in graders.items()
        }
    needs = [
        getattr(stage.component, "compares", stage.component.needs) for stage in graders.values()
    ]
    own_ids = (
        getattr(reader.component, "ids", None) is not None
    )  # then records of one id are runs, whatever the format
    # a format names its runs by its own ids: under others the same name may stand for several runs
    has_foreign_runs = own_ids and reader.component.stack != "auto"
    origin = Path(document.origin)  # nothing in summary.json depends on where the suite lies
    return Suite(
        name=spec.name or document.default_name or ("samples" if samples else origin.stem),
        description=spec.description,
        profile=spec.profile,
        files=LocalFiles.load(resolver.code) if resolver.code else LocalFiles(),
        registry=resolver.registry,
        inputs=target.inputs,
        reader=reader,
        dataset_reader=target.dataset_reader,
        graders=tuple(graders.values()),
        metrics=tuple(metrics),
        main=main,
        gates=gates,
        rule=gates[0] if gates else None,
        facets=tuple(dict.fromkeys(gate.per for gate in gates if gate.per not in NO_FACETS)),
        success=success,
        headline=headline,
        max_failed=limit,
        min_graded=min_graded,
        doubtful_gates=verdicts.doubtful,
        allow_all_failed=spec.allow_all_failed,
        num_runs=spec.num_runs,
        runs_must_pass=spec.runs_must_pass or ("any" if spec.profile == "upstream" else "all"),
        max_samples=spec.max_samples or 0,
        subset=subset,
        sample_tags=frozenset(spec.sample_tags),
        unused=_unused(needs, format_reader),
        limits=limits,
        duplicates=spec.duplicates or ("keep" if own_ids else reader.component.duplicates),
        keeps_copies=spec.profile == "upstream"
        or has_foreign_runs
        or reader.component.keeps_copies,
        rows=options.rows or spec.rows,
        reports=tuple(stage for stage in reports if stage is not None),
        exporters=exporters.stages,
        broken=exporters.broken,
        engine=engine,
        config=jsonable(config),
        warnings=(
            *target.ignored,
            *(each.replace(document.origin, origin.name, 1) for each in resolver.warnings),
        ),
        notes=tuple(resolver.notes),
    )


def name_task_graders(gates: Sequence[AnyGate], key: str) -> tuple[AnyGate, ...]:
    """Return gates of which those per task have a grader, by default this one."""
    return tuple(
        msgspec.structs.replace(gate, metric_key=key)
        if isinstance(gate, TaskGate) and gate.metric_key is None
        else gate
        for gate in gates
    )


def _samples_and_runs(resolver: Resolver, spec: SuiteSpec) -> Subset:
    """Return which samples count, and check what is said of runs."""
    if isinstance(spec.runs_must_pass, int) and spec.runs_must_pass > (spec.num_runs or 1):
        why = f"{spec.runs_must_pass} of {spec.num_runs or 1} run(s) can never pass; see num_runs"
        resolver.add_problem(("runs_must_pass",), why)
    for name in ("max_concurrent", "setup_script"):
        if getattr(spec, name) is not None:
            resolver.warn((name,), "has no effect on recorded results")
    if spec.filter is not None or spec.tasks is not None:
        with resolver.refusals(("filter" if spec.tasks is None else "tasks",)):
            tasks = None if spec.tasks is None else local_path_of(spec.tasks, resolver.base)
            return Subset.read(spec.filter, tasks, None)
    return Subset()


def _lay_stack(resolver: Resolver, target: Target) -> None:
    """Put the named stack, or without graders the format's default one, under the suite's own
    entries.
    """
    data, reader = resolver.document.data, target.reader
    if isinstance(data.get("stack"), str):
        resolver.asked = f" --stack {data['stack']}"
    elif isinstance(graders := data.get("graders"), Mapping):
        kinds = [
            each.get("kind") if isinstance(each, Mapping) else each for each in graders.values()
        ]
        resolver.asked = "".join(f" --grader {each}" for each in kinds)
    if data.get("stack") is None and not data.get("graders") and reader is not None:
        data["stack"] = reader.component.stack
        if data["stack"] is None:
            resolver.add_problem(("stack",), _without_stack(resolver, reader, target.inputs.data))
    if isinstance(data.get("stack"), str):
        provides = None if reader is None else reader.component.provides
        with resolver.refusals(("stack",)):
            inputs = Inputs(data=target.inputs.data)
            stack = stack_for(
                resolver.registry, data["stack"], inputs, provides, lambda: _expecting(target)
            )
            data["stack"] = stack.get("stack", data["stack"])
            own_keys = set(data)
            resolver.stacks[data["stack"]] = stack
            _merge_stack(data, stack)
            resolver.has_recorded_gates = "gate" not in own_keys and "gates" not in own_keys
            resolver.warnings += stack.get("warnings", ())
            resolver.notes += stack.get("notes", ())


def _expecting(target: Target) -> Iterator[Sample]:
    """Yield the samples by which a stack is chosen.

    Those of the dataset, and the first of each input.
    """
    if target.reader is None or not target.inputs.data:
        return
    if target.inputs.dataset is not None and target.dataset_reader is not None:
        yield from samples_of(
            target.dataset_reader.component, Inputs(data=(target.inputs.dataset,)), None
        )
    yield from samples_of(target.reader.component, target.inputs)


def _without_stack(resolver: Resolver, reader: Stage, inputs: Sequence[Input]) -> str:
    whose, provides = f"{inputs[0].path}: " if inputs else "", reader.component.provides
    if provides and not _DONE & provides:
        lacks = f"no column for the agent's answer (read as {reader.name})"
        return (
            f"{whose}{lacks}: map one (--map text=COLUMN), or grade the file of its runs with "
            "this one as --dataset"
        )
    known = ", ".join(resolver.registry.names("stack")) or "none"
    return (
        f"{whose}the format {reader.name!r} has no default stack; name graders or a stack ({known})"
    )


def _merge_stack(data: dict[str, Any], stack: Mapping[str, Any]) -> None:
    """Lay a suite's own entries over a stack's.

    Options merge per entry unless the entry names its own kind.
    """
    for section in ("graders", "metrics"):
        merged: dict[str, Any] = copy.deepcopy(dict(stack.get(section) or {}))
        own = data.get(section) or {}
        if not isinstance(own, Mapping):  # refused with its place later
            continue
        for key, entry in own.items():
            base = merged.get(key)
            extends = (
                isinstance(base, Mapping) and isinstance(entry, Mapping) and "kind" not in entry
            )
            merged[key] = {**base, **entry} if extends else entry  # type: ignore[dict-item]
        if merged:
            data[section] = merged
    if "name" in stack:
        data.setdefault("name", stack["name"])
    gated = "gate" in data or "gates" in data
    for name in ("gate", "gates", "reports"):
        if name in stack and name not in data and not (gated and name != "reports"):
            data[name] = copy.deepcopy(stack[name])


_GRADERS = {
    "calls": "tool_calls",
    "text": "exact_match",
    "label": "label",
}  # by kind of expectation


def _unused(needs: Sequence[frozenset[str]], reader: Stage | None) -> dict[str, str]:
    """Return the kinds of expectations that no grader compares.

    Of a benchmark's, whose own stack may, all or none.
    """
    compared = set[str]()
    for each in needs:  # who declares no field may read any
        compared |= (
            (each & _GRADERS.keys() or _GRADERS.keys()) if "expected" in each or not each else set()
        )
    if compared & {"text", "label"}:  # one word is both
        compared |= {"text", "label"}
    own = reader is not None and reader.component.stack != "auto"
    known = own and (compared or any("recorded" in each for each in needs))
    return {} if known else {kind: each for kind, each in _GRADERS.items() if kind not in compared}


def _check_needs(
    resolver: Resolver, reader: Stage, graders: Mapping[str, Stage], target: Target
) -> None:
    provides = set(reader.component.provides)
    if target.dataset_reader is not None:
        provides |= {"expected", "tools", "input"} & set(target.dataset_reader.component.provides)
    for key, stage in graders.items():
        if lacking := sorted(stage.component.requires - provides):
            joined = target.inputs.dataset is not None
            advice = (
                "" if joined or "expected" not in lacking else "; a --dataset that has it may help"
            )
            why = f"{stage.name} needs {', '.join(lacking)}; the format {reader.name!r} provides "
            resolver.add_problem(
                ("graders", key), f"{why}{', '.join(sorted(provides)) or 'only ids'}{advice}"
            )


def config_snapshot(
    data: Mapping[str, Any],
    inputs: Inputs,
    reader: Stage,
    graders: Mapping[str, Stage],
    metrics: Iterable[Metric],
) -> dict[str, Any]:
    """Return the configuration for summary.json.

    Input paths by their short names, others cut to their last part.
    """
    config = {
        key: each for key, each in data.items() if key not in ("engine", "rows")
    }  # no results depend on these
    target = {
        key: value for key, value in dict(config.get("target") or {}).items() if key != "reader"
    }
    inherited = ("profile", data.get("profile", "documented"))
    paths: list[Any] = []
    for stage, own in reader.shares(inputs):
        options = {key: value for key, value in stage.options.items() if (key, value) != inherited}
        entry = _entry({**options, "kind": stage.name}, stage)
        if reader.parts:
            config.pop("reader", None)
            paths += [{"path": each.shown, "reader": entry} for each in own.data]
        else:
            config["reader"], paths = entry, [each.shown for each in own.data]
    config["target"] = {**target, "paths": paths}
    named: dict[str, Mapping[str, Stage]] = {
        "graders": graders,
        "metrics": {e.stage.key: e.stage for e in metrics},
    }
    for section, stages in named.items():
        if isinstance(written := config.get(section), Mapping):
            config[section] = {
                str(key): _entry(entry, stages.get(str(key))) for key, entry in written.items()
            }
    if inputs.dataset is not None:
        config["dataset"] = inputs.dataset.shown
    for section in ("reports", "exporters"):
        if isinstance(written := config.get(section), list):
            config[section] = [_entry(each) for each in written]
    if isinstance(config.get("tasks"), str):
        config["tasks"] = Path(config["tasks"]).name
    if "plugins" in config:
        config["plugins"] = [Path(each).name for each in config["plugins"]]
    return config


def _entry(written: Any, stage: Stage | None = None) -> Any:
    """Return a component reference with files and path options cut to their last part."""
    if not isinstance(written, Mapping):
        in_file = InFile.parse(written) if isinstance(written, str) and ".py:" in written else None
        return written if in_file is None else in_file.shown
    entry = {
        key: _entry(each) if key in ("kind", "extractor", "function") else each
        for key, each in written.items()
    }
    for name in entry if stage is not None else ():
        value = getattr(stage and stage.component, name, None)
        if isinstance(value, Path) or (
            isinstance(value, tuple) and any(isinstance(each, Path) for each in value)
        ):
            entry[name] = jsonable(value)
    return entry


_FORMS: Mapping[str, type] = {
    "simple": SimpleGate,
    "weighted_average": WeightedGate,
    "logical": LogicalSpec,
    "figure": FigureGate,
    "baseline": BaselineGate,
    "tasks": TaskGate,
}
_KIND_OF = {"baseline": "baseline", "figure": "figure", "at_least": "tasks"}
"""Key of a gate -> the kind it implies where ``kind`` is left out."""
NO_FACETS = (None, "model", "task")
"""Values of ``per`` that name no facet."""
NONE = "none"
"""What is written for "no outcome", where no grader has that key."""


def _hint(name: object, known: Iterable[str]) -> str:
    return suggest(name, known) or f"; there are: {', '.join(known) or 'none'}"


_NO_DIRECTION = "has no direction in which it is better; compare a figure with op and value"


def of_scores_of_neither(gate: AnyGate, key: str, graders: Mapping[str, Stage]) -> bool:
    """Return whether a baseline gate compares scores of which neither direction is better."""
    if not isinstance(gate, BaselineGate) or gate.figure is not None or key not in graders:
        return False
    compares_scores = gate.metric not in PERCENT and (
        gate.not_worse_than is not None or gate.require is not None
    )
    return compares_scores and graders[key].component.better == "neither"


@attrs.define
class Verdicts:
    """Resolves what a run is judged by, among the graders and metrics that a suite has."""

    resolver: Resolver
    spec: SuiteSpec
    graders: Mapping[str, Stage]
    metrics: Mapping[str, Mapping[str, Stage]]
    """Aggregators by their key, by that of their grader."""
    _doubts: dict[Place, str] = attrs.field(factory=dict, init=False)
    doubtful: dict[int, str] = attrs.field(factory=dict, init=False)
    """Position of a recorded gate -> the warning that its percentage may be a share."""

    def _without_effect(self, place: Place) -> bool:
        """Warn of what the original program does not have, and return whether the suite
        follows it.
        """
        upstream = self.resolver.profile == "upstream"
        if upstream:
            self.resolver.warn(place, "has no effect in the profile upstream")
        return upstream

    def limit(self, written: float | str) -> Limit | None:
        """Return the most samples that may have failed or be missing; None without a limit."""
        ignored = self._without_effect(("max_failed",))
        try:
            limit = as_limit(written)
        except ValueError as error:
            self.resolver.add_problem(("max_failed",), str(error))
            return None
        return None if ignored else limit

    def gates(self) -> tuple[tuple[AnyGate, ...], str]:
        """Return the gates and the key of the main grader.

        The first gate's, else the first grader.
        """
        written: list[tuple[Place, Any]] = [
            (("gates", n), each) for n, each in enumerate(self.spec.gates)
        ]
        if self.spec.gate is not None:
            written.insert(0, (("gate",), self.spec.gate))
        gates = list[AnyGate]()
        places = list[Place]()
        for place, each in written:
            gate = self._gate(each, place)
            self._check_graders(gate, each, place)
            if gate is None:
                continue
            if place in self._doubts:
                self.doubtful[len(gates)] = self._doubts[place]
            gates.append(gate)
            places.append(place)
        named = next(
            (key for gate in gates[:1] for place, key in keys_of(gate) if len(place) == 1), None
        )
        main = named or next(iter(self.graders), next(iter(self.spec.graders), ""))
        gates = [self._of_main(gate, main, n) for n, gate in enumerate(gates)]
        if self.resolver.profile != "upstream" and not self.resolver.has_recorded_gates:
            for place, gate in zip(places, gates, strict=True):
                self._check_range(gate, place)
        return tuple(gates), main

    def _check_graders(self, gate: AnyGate | None, written: Any, place: Place) -> None:
        """Refuse a gate of a grader that the suite does not have."""
        if gate is None:
            names: Any = [(("metric_key",), written.get("metric_key"))]
        else:
            names = keys_of(gate)
        for below, key in names:
            if isinstance(key, str) and key not in self.spec.graders:
                why = f"no grader has the key {key!r}{_hint(key, self.spec.graders)}"
                self.resolver.add_problem((*place, *below), why)

    def _of_main(self, gate: AnyGate, main: str, position: int) -> AnyGate:
        """Return a gate that names its grader: the main one where it names none."""
        key, is_of_scores = "", False
        if isinstance(gate, BaselineGate):
            key = gate.grader or main
            is_of_scores = not gate.grader and gate.metric not in PERCENT
        if of_scores_of_neither(gate, key, self.graders):
            at = ("gate",) if self.spec.gate is not None else ("gates", position)
            self.resolver.add_problem((*at, "metric_key"), f"{key} {_NO_DIRECTION}")
        if isinstance(gate, GateSpec) or (isinstance(gate, BaselineGate) and is_of_scores):
            return msgspec.structs.replace(gate, metric_key=gate.metric_key or main)
        return gate

    def _gate(self, written: Mapping[str, Any], place: Place) -> AnyGate | None:  # noqa: C901
        """Return one gate of any form, None when it cannot be.

        Without ``kind`` it is the flat form.
        """
        implied = next((_KIND_OF[name] for name in _KIND_OF if name in written), None)
        kind = written.get("kind", implied)
        if kind is not None and (not isinstance(kind, str) or kind not in _FORMS):
            why = f"unknown gate {kind!r}{suggest(kind, _FORMS)}; there are: {', '.join(_FORMS)}"
            self.resolver.add_problem((*place, "kind"), why)
            return None
        written = self._read_thresholds(written, place)
        if written.get("per") in ("task", "id") and kind != "tasks":
            why = "a gate per task says how many runs of each must pass: at_least: 3 of 4"
            self.resolver.add_problem((*place, "per"), why)
            return None
        gate: Any = self.resolver.structure(
            written, GateSpec if kind is None else _FORMS[kind], place
        )
        if isinstance(gate, TaskGate):
            return gate
        if isinstance(gate, LogicalSpec):
            return self._logical(gate, place)
        if isinstance(gate, BaselineGate):
            return self._baseline(gate, place)
        if isinstance(gate, FigureGate):
            gate = self._figure(gate, place)
        if gate is None:
            return None
        at = (*place, "confidence")
        if gate.confidence is not None and not self._without_effect(at) and gate.op == "eq":
            self.resolver.add_problem(
                at, "nothing is surely equal to a value; compare with gt, gte, lt or lte"
            )
        if (over := getattr(gate, "over", None)) is not None:
            at = (*place, "over")
            if over == "total" and gate.aggregation not in PERCENT:
                why = (
                    f"{gate.aggregation} is over graded samples; total is for "
                    f"{' and '.join(PERCENT)}"
                )
                self.resolver.add_problem(at, why)
            self._without_effect(at)
        return gate  # type: ignore[no-any-return]

    def _read_thresholds(self, written: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Return a gate as written, with every threshold as a number of its unit.

        A share becomes a percentage. A number that may be meant as either is refused; in a recorded
        gate, and in the profile upstream, it is a warning.
        """
        name = "aggregation" if "aggregation" in written else "metric"
        metric = written.get(name)
        read = dict(written)
        if metric == SHARE_OF_RUNS:
            read[name] = "accuracy"
        for key in THRESHOLDS:
            if key not in written:
                continue
            of_runs = metric in (SHARE_OF_RUNS, *PERCENT) and key in ("value", "not_worse_than")
            try:
                number = read_threshold(written[key], in_percent=of_runs)
            except ValueError as error:
                self.resolver.add_problem((*place, key), str(error))
                read[key] = 0.0
                continue
            is_number = isinstance(written[key], int | float)
            if metric == SHARE_OF_RUNS and of_runs and is_number:
                number = self._share(number, (*place, key))
            elif of_runs and is_number:
                self._check_percentage(number, place, key)
            read[key] = number
        return read

    def _share(self, share: float, place: Place) -> float:
        """Return a share of the runs as a percentage; outside of 0 to 1 it is a problem."""
        if not 0 <= share <= 1:
            why = f'a share is from 0 to 1, got {share:g}; write "{share:g}%", or metric: accuracy'
            self.resolver.add_problem(place, why)
        return as_percent(share)

    def _check_percentage(self, value: float, place: Place, key: str) -> None:
        """Refuse a percentage that may be a share, or warn where it was recorded."""
        at = (*place, key)
        text = f"{value:g} is a percentage here: {value:g}% of the samples"
        is_recorded = self.resolver.has_recorded_gates
        if not 0 <= value <= 100:
            if is_recorded:
                self.resolver.warnings.append(f"the recorded gate's {key}: {text}")
            else:
                self.resolver.warn(at, text)
        advice = doubtful_percentage(value)
        if advice is None:
            return
        if self.resolver.profile != "upstream" and not is_recorded:
            self.resolver.add_problem(at, advice)
            return
        if not is_recorded:  # the line of the gate says it
            self.resolver.warn(at, text)
        self._doubts[place[:2] if place[0] == "gates" else place[:1]] = f"{key} {text}"

    def _check_range(self, gate: AnyGate, place: Place) -> None:
        """Refuse thresholds beyond every value that the compared figure can have."""
        if isinstance(gate, LogicalGate):
            for position, part in enumerate(gate.conditions):
                self._check_range(part, (*place, "conditions", position))
            return
        name, ends = self._range_of(gate)
        self._check_within(gate, "value", name, ends, place)
        if ends is not None:
            width = (0.0, ends[1] - ends[0])
            self._check_within(gate, "not_worse_than", f"a difference of {name}", width, place)
        if isinstance(gate, GateSpec | SimpleGate):
            key = gate.metric_key or ""
            scores = self._score_range(key)
            for rule in ("pass_value", "pass_threshold"):
                self._check_within(gate, rule, f"the score of {key}", scores, place)

    def _check_within(
        self, gate: AnyGate, key: str, name: str, ends: tuple[float, float] | None, place: Place
    ) -> None:
        value = getattr(gate, key, None)
        if value is None or ends is None or ends[0] <= value <= ends[1]:
            return
        why = f"{name} is from {ends[0]:g} to {ends[1]:g}, got {value:g}"
        if ends == (0.0, 1.0) and 0 < value <= 100:
            why += f'; write "{value:g}%" or {value / 100:g}'
        self.resolver.add_problem((*place, key), why)

    def _range_of(self, gate: AnyGate) -> tuple[str, tuple[float, float] | None]:
        """Return the name of the figure a gate compares, and between which values it lies.

        None where it is a percentage, or where only the data say.
        """
        if isinstance(gate, FigureGate | BaselineGate) and gate.figure is not None:
            grader, metric, rest = map(str, gate.figure[:3])
            name = ".".join(filter(None, (grader, metric, rest)))
            used = self.metrics.get(grader, {}).get(metric)
            declared = None if used is None else self._find_declaration(used, metric, rest)
            if declared is not None and declared.unit == "share":
                return name, declared.bounds
            is_mean = used is not None and used.name == "mean" and rest in ("", "mean")
            return name, self._score_range(grader) if is_mean else None
        if isinstance(gate, TaskGate | LogicalGate | FigureGate):
            return "", None
        metric = gate.metric if isinstance(gate, BaselineGate) else gate.aggregation
        if metric in PERCENT:
            return "", None
        keys = [key for _, key in keys_of(gate)]
        ranges = [self._score_range(key) for key in keys]
        known = [ends for ends in ranges if ends is not None]
        name = f"the score of {' and '.join(keys)}"
        if not known or len(known) < len(ranges):
            return name, None
        return name, (min(low for low, _ in known), max(high for _, high in known))

    def _score_range(self, key: str) -> tuple[float, float] | None:
        return self.graders[key].component.score_range if key in self.graders else None

    def min_graded(self, written: float | str) -> float:
        """Return the least share of a gate's runs that must be graded; none in upstream."""
        try:
            share = read_threshold(written, in_percent=False)
            if isinstance(share, bool) or not 0 <= share <= 1:
                raise ValueError(f"expected a share such as 50% or 0.5, got {written!r}")  # noqa: TRY301
        except (TypeError, ValueError) as error:
            self.resolver.add_problem(("min_graded",), str(error))
            return 0.0
        return 0.0 if self.resolver.profile == "upstream" else float(share)

    def _logical(self, spec: LogicalSpec, place: Place) -> LogicalGate:
        over = spec.over
        if over is not None and self._without_effect((*place, "over")):
            over = None
        parts = []
        for position, condition in enumerate(spec.conditions):
            below, implied = (
                (*place, "conditions", position),
                dict[str, Any](),
            )  # what it takes over from its gate
            if "baseline" not in condition:
                implied["on_no_data"] = spec.on_no_data
            if "baseline" not in condition and "figure" not in condition:
                implied["kind"] = "logical" if "operator" in condition else "simple"
                if over is not None and (
                    "operator" in condition or condition.get("aggregation") in PERCENT
                ):
                    implied["over"] = over
            part = self._gate({**implied, **condition}, below)
            if isinstance(part, WeightedGate | BaselineGate | TaskGate):
                self.resolver.add_problem(
                    below, "a condition is a simple or a logical gate, or one on a figure"
                )
            elif part is not None and part.per is not None:
                self.resolver.add_problem(
                    (*below, "per"), "stands beside `conditions`, for the gate as a whole"
                )
            elif part is not None:
                parts.append(part)
        return LogicalGate(
            operator=spec.operator,
            conditions=tuple(parts),
            on_no_data=spec.on_no_data,
            per=spec.per,
        )

    def _baseline(self, gate: BaselineGate, place: Place) -> BaselineGate | None:
        """Return a gate on an earlier run, its figure as grader key, metric key, and the path below
        it.
        """
        why = "the profile upstream compares no runs" if self.resolver.profile == "upstream" else ""
        why = why or (
            "" if gate.baseline.strip() else "expected a run directory, latest or latest_any"
        )
        if why:
            self.resolver.add_problem((*place, "baseline"), why)
            return None
        with self.resolver.refusals((*place, "baseline")):
            local_path_of(gate.baseline, self.resolver.base)
        if gate.figure is None:
            return gate
        if (path := self._path(gate.figure, (*place, "figure"))) is None:
            return None
        meant = self._declared_figure(path, (*place, "figure"))
        if meant is not None:
            grader, metric, _ = path
            aggregator = self.metrics[grader][metric].name
            better = direction_of(meant, aggregator, self.graders[grader].component.better)
            if better == "neither":
                name = ".".join(filter(None, path))
                self.resolver.add_problem((*place, "figure"), f"{name} {_NO_DIRECTION}")
        return msgspec.structs.replace(gate, figure=path)

    def _figure(self, gate: FigureGate, place: Place) -> FigureGate | None:
        if (path := self._path(gate.figure, (*place, "figure"))) is None:
            return None
        used = self.metrics.get(path[0], {}).get(path[1])
        self._declared_figure(path, (*place, "figure"))
        return msgspec.structs.replace(gate, figure=(*path, "" if used is None else used.name))

    def _declared_figure(self, path: tuple[str, str, str], place: Place) -> DeclaredFigure | None:
        """Return the declaration of a figure; one that no aggregator declares is a problem."""
        grader, metric, rest = path
        used = self.metrics.get(grader, {}).get(metric)
        if used is None:
            return None
        meant = self._find_declaration(used, metric, rest)
        if meant is None:
            names = [figure.name for figure in used.component.figures]
            hint = suggest(rest, names) or f"; there are: {', '.join(names) or 'none'}"
            self.resolver.add_problem(place, f"{grader}.{metric} declares no figure {rest!r}{hint}")
        return meant

    @staticmethod
    def _find_declaration(used: Stage, metric: str, path: str) -> DeclaredFigure | None:
        """Return what an aggregator declares of a path below it, that of a single model too."""
        names = [path]
        if path.startswith("models."):
            steps = path.split(".")
            names += [".".join(steps[start:]) for start in range(2, len(steps))]
        for name in names:
            declared = declared_figure(used.component.figures, metric, name, used.name)
            if declared is not None:
                return declared
        return None

    def _path(self, figure: str | Sequence[str | int], place: Place) -> tuple[str, str, str] | None:
        """Return grader key, metric key and the path below it.

        Of a grader that is unknown, its key alone.
        """
        steps = figure.split(".") if isinstance(figure, str) else [*map(str, figure)]
        if len(steps) < 2:
            why = f"expected GRADER.METRIC or a figure below it, got {figure!r}"
            self.resolver.add_problem(place, why)
            return None
        grader, metric, rest = split_path(
            ".".join(steps), {each: self.metrics.get(each, {}) for each in self.spec.graders}
        )
        if metric:
            return grader, metric, rest
        if not grader:
            return steps[0], "", ""  # said where keys are looked at
        key = ".".join(steps)[len(grader) + 1 :].partition(".")[0]
        sound = key not in self.spec.metrics or any(key in each for each in self.metrics.values())
        if grader in self.graders and sound:  # else what is wrong with them is a problem already
            why = f"{grader} has no metric {key!r}{_hint(key, self.metrics.get(grader, ()))}"
            self.resolver.add_problem(place, why)
        return None

    def headline(
        self, gates: Sequence[AnyGate], reader: Stage | None = None
    ) -> tuple[Success | None, Headline]:
        """Return what makes a sample a success, and what the run is summed up by."""
        spec, graders = self.spec, self.graders
        names = dict.fromkeys((spec.stack, reader.component.stack if reader is not None else None))
        applying = [each for name in names if name and (each := self._declared(name)) is not None]
        declared = applying[0] if applying else _Declared()
        letta = declared.letta or any(
            isinstance(each, Mapping) and each.get("kind") == "tool"
            for each in spec.graders.values()
        )
        gate = gates[0] if letta and spec.gate is not None and gates else None
        key, judging = (
            spec.outcome,
            [each for each in graders if graders[each].component.better != "neither"],
        )
        if key is None and isinstance(gate, GateSpec):
            success: Success | None = Success(gate.metric_key or "", gate)
        else:
            if key is None:
                declared_there = (each.outcome for each in applying if each.outcome is not None)
                key = next(declared_there, next(iter(judging), NONE))
            elif key not in {*graders, *spec.graders, NONE}:
                hint = (
                    suggest(key, graders)
                    or f"; there are: {', '.join(graders)}, and {NONE} for no outcome"
                )
                self.resolver.add_problem(("outcome",), f"no grader has the key {key!r}{hint}")
            success = Success(key, better=graders[key].component.better) if key in graders else None
        brought = self.resolver.stacks.get(spec.stack or "", {}).get("graders") or ()
        first = next((each for each in judging if each not in brought), key)
        if success is not None and success.rule is None and spec.outcome is None and first != key:
            self.resolver.notes.append(
                f"Outcome: as grader {key!r} says, although {first!r} is named first; for {first!r}: "
                f"--set outcome={first}"
            )
        main = success.grader if success is not None else next(iter(graders), "")
        mean = next(
            (key for key, each in self.metrics.get(main, {}).items() if each.name == "mean"), ""
        )
        average = Figure(
            label="Avg score", grader=main, metric=mean, name="mean" if mean else AVERAGE
        )
        # about the grader's own verdict, which a gate's rule is not; an option of that name says
        # nothing of it
        own_verdict = success is not None and success.rule is None and main in graders
        words = getattr(type(graders[main].component), "words", None) if own_verdict else ()
        passed, failed = words if words and isinstance(words, tuple) else Grader.words
        own = spec.headline
        figures = declared.figures if own.figures is None else self._own_figures(own.figures)
        return success, Headline(
            figures=self._with_corrected(main if own_verdict else "", figures or (average,)),
            passed=own.passed or passed,
            failed=own.failed or failed,
            letta=own.letta or letta,
        )

    def _declared(self, name: str) -> _Declared | None:
        """Return what a stack declares of the graders in use.

        None where none is, or the stack is broken.
        """
        resolver, asked, headline = self.resolver, name == self.spec.stack, HeadlineSpec()
        try:
            fragment = resolver.stacks.get(name) or stack_for(resolver.registry, name)
            headline = structure(fragment.get("headline") or {}, HeadlineSpec)
        except GradestackError:
            return None
        except Problems as problems:
            for place, text in problems.found if asked else ():
                resolver.add_problem(
                    ("stack",), f"{name}: headline{''.join(f'.{each}' for each in place)}: {text}"
                )
            return None
        if asked and (headline.passed or headline.failed):
            why = "words for a verdict are the grader's (words of its class)"
            resolver.add_problem(("stack",), f"{name}: headline: {why}")
        keys: dict[str, str | None] = {}
        for key, entry in (fragment.get("graders") or {}).items():
            kind = entry.get("kind") if isinstance(entry, Mapping) else entry
            same = [own for own, stage in self.graders.items() if stage.name == kind]
            keys[key] = (
                key if key in same or (asked and key in self.graders) else next(iter(same), None)
            )
        if not any(keys.values()):
            return None
        figures, known = [], {key: self.metrics.get(used or "", ()) for key, used in keys.items()}
        for label, path in (headline.figures or {}).items():
            grader, metric, rest = split_path(path, known)
            if (used := keys.get(grader)) is not None and metric:
                there, own = fragment["graders"][grader], self.spec.graders.get(used)
                as_there = there in (own, {"kind": own}) or own == {"kind": there}
                shown = label if as_there else self._label(used, metric, rest) or label
                figures.append(Figure(label=shown, grader=used, metric=metric, name=rest))
        outcome = fragment.get("outcome")
        return _Declared(
            outcome if outcome == NONE else keys.get(str(outcome)), headline.letta, tuple(figures)
        )

    def _with_corrected(self, main: str, figures: tuple[Figure, ...]) -> tuple[Figure, ...]:
        """Return figures of a headline, before them that which corrects the outcome's share."""
        if main not in self.graders:  # a suite whose graders are refused has metrics all the same
            return figures
        known = self.metrics.get(main, {})
        corrected = getattr(type(self.graders[main].component), "corrected", None)
        if corrected is None:
            return figures
        path, label, share = corrected
        metric, _, name = path.partition(".")
        key = next((key for key, each in known.items() if each.name == metric), "")
        if not key:
            return figures
        first = Figure(label=label, grader=main, metric=key, name=name, corrects=share)
        return (first, *(each for each in figures if each.path != first.path))

    def _label(self, grader: str, metric: str, name: str) -> str:
        """Return what an aggregator itself calls its figure, for a grader with other options than
        the stack's.
        """
        if metric == "mean":
            return str(self.graders[grader].component.label)
        figures = self.metrics[grader][metric].component.figures
        return next((each.label for each in figures if each.covers(name or metric)), "")

    def _own_figures(self, written: Mapping[str, str]) -> tuple[Figure, ...]:
        figures = []
        for label, path in written.items():
            place: Place = ("headline", "figures", label)
            grader, metric, rest = self._path(path, place) or ("", "", "")
            if metric:
                figures.append(Figure(label=label, grader=grader, metric=metric, name=rest))
            elif grader:
                self.resolver.add_problem(
                    place, f"no grader has the key {grader!r}{_hint(grader, self.graders)}"
                )
        return tuple(figures)


class _Declared(NamedTuple):
    outcome: str | None = None
    """Key of the outcome grader; ``none``: the stack has no outcome.

    None: it declares none that is in use.
    """
    letta: bool = False
    figures: tuple[Figure, ...] = ()

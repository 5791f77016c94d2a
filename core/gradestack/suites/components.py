"""From references in a configuration to its components, every problem collected with its place."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import attrs
import msgspec

from gradestack.api import Grader, Inputs, Profile, Reader
from gradestack.copies.files import (
    Folder,
    local_files,
    local_path_of,
    protocol_of,
    shown_address,
)
from gradestack.errors import (
    LOCAL_CODE,
    ConfigError,
    GradestackError,
    PluginError,
    error_text,
    guarded,
    suggest,
)
from gradestack.grading.plan import Metric, Stage
from gradestack.grading.reading import name_of, records_of, shards_of
from gradestack.hooks import Kind
from gradestack.model import Sample
from gradestack.registry import Registry
from gradestack.suites.code import FUNCTIONS, InFile, code_of_component, file_plugin, from_file
from gradestack.suites.document import Document, show_place
from gradestack.suites.spec import SuiteSpec
from gradestack.suites.strict import Place, Problems, structure

T = TypeVar("T")


@attrs.define
class Resolver:
    """Resolves component references, collecting problems instead of stopping at the first."""

    document: Document
    registry: Registry
    base: Folder | None = None
    allow_code: bool = False
    allow_remote: bool = False
    profile: Profile = "documented"
    num_runs: int | None = None
    problems: dict[str, Place] = attrs.field(init=False, factory=dict)
    broken: list[str] = attrs.field(init=False, factory=list)
    warnings: list[str] = attrs.field(init=False, factory=list)
    notes: list[str] = attrs.field(init=False, factory=list)
    """What was decided by the data."""
    asked: str = attrs.field(init=False, default="")
    """Options for the stack or graders that were asked for, on a command line."""
    code: dict[Path, None] = attrs.field(init=False, factory=dict)
    """Files of the user's own that are in use, in the order they were met."""
    stacks: dict[str, Mapping[str, Any]] = attrs.field(init=False, factory=dict)
    """Stacks that were laid under the suite, as they were made for its inputs."""
    has_recorded_gates: bool = attrs.field(init=False, default=False)
    """Whether the gates come from a recording or a stack, not from the suite or command line."""
    _local: dict[tuple[Kind, str], tuple[Path, Mapping[str, str]]] = attrs.field(
        init=False, factory=dict
    )
    _cause: Exception | None = attrs.field(init=False, default=None)

    def add_problem(self, place: Place, message: str | Exception) -> None:
        """Record one problem."""
        said = message.line if isinstance(message, GradestackError) else message
        self.problems[f"{self.document.where(place)}: {said}"] = place
        if isinstance(message, Exception):
            self._cause = self._cause or message

    def warn(self, place: Place, text: str) -> None:
        """Add a warning of something that is not wrong."""
        self.warnings.append(f"{self.document.where(place)}: {text}")

    @contextmanager
    def refusals(self, place: Place) -> Iterator[None]:
        """Record a ConfigError raised inside as a problem, and go on behind."""
        try:
            yield
        except ConfigError as error:
            self.add_problem(place, error)

    def has_problem(self, place: Place) -> bool:
        """Return whether there is a problem of this place, or of one below it."""
        return any(each[: len(place)] == place for each in self.problems.values())

    def finish(self) -> None:
        """Raise what was collected."""
        if self.problems:
            count = len(self.problems)
            what = (
                f"{self.document.origin}: {count} problem{'s' if count > 1 else ''} in the "
                "configuration"
            )
            raise ConfigError(what, *self.problems, *self.broken) from self._cause
        if self.broken:
            raise PluginError(f"{self.document.origin}: a plugin it uses is broken", *self.broken)

    def structure(self, data: Any, kind: type[T], place: Place) -> T | None:
        """Return the data as an instance of a class.

        Of a suite what has no problems, of anything else then None.
        """
        try:
            return structure(data, kind, self.base)
        except Problems as problems:
            for below, message in problems.found:
                self.add_problem((*place, *below), message)
            return kind(**problems.sound) if kind is SuiteSpec else None

    def load_plugins(self, files: Any) -> None:
        """Add what the files under ``plugins`` offer; where that fails nothing else can be told."""
        for number, file in enumerate(files if isinstance(files, list) else []):
            place = ("plugins", number)
            if isinstance(file, str) and self._allowed(f"{file} is Python code", place):
                with self.refusals(place):
                    path = local_path_of(file, self.base)
                    self.code[path.resolve()] = None
                    self.registry = self.registry.extended(file_plugin(path))
        if self.problems:
            self.finish()

    def _allowed(self, why: str, place: Place) -> bool:
        if not self.allow_code:
            self.add_problem(place, f"{why}; pass --allow-code if you trust it")
        return self.allow_code

    def may_read(self, text: str, place: Place) -> bool:
        """Return whether an address may be opened.

        One that only the suite names is a problem, and is recorded.
        """
        if local_files(text, self.base):
            return True
        protocol_of(text)
        allowed = self.allow_remote or self.document.is_set(place)
        if not allowed:
            why = (
                f"{shown_address(text)} is a remote file; pass --allow-remote if you trust this "
                "suite"
            )
            self.add_problem(place, why)
        return allowed

    def _in_file(self, kind: Kind, name: str, place: Place) -> str | None:
        """Return the registered name of what ``FILE.py:NAME`` names, put there first.

        None with a problem.
        """
        reference = InFile.parse(name) or InFile.parse(f"{name}:")
        if reference is None:
            return name
        unnamed = (
            "" if reference.name else f", and no {kind} of it is named ({reference.file}:NAME)"
        )
        if not self._allowed(f"{name} is Python code{unnamed}", place):
            return None
        shown = reference.shown
        with self.refusals(place):
            path = local_path_of(reference.file, self.base)
            self.code[path.resolve()] = None
            if (kind, shown) not in self._local:
                plugin, options = from_file(reference, kind, path, self.registry)
                self.registry = self.registry.extended(plugin)
                self._local[kind, shown] = path.resolve(), options
            if (known := self._local[kind, shown][0]) == path.resolve():
                return shown
            self.add_problem(
                place,
                f"{shown} is the name of another file's, too ({known}); rename one of the files",
            )
        return None

    def _untrusted(self, names: Iterable[str], place: Place) -> bool:
        """Return whether options that can have code run are written in the suite alone, a problem
        each.
        """
        refused = [at for name in names if not self.document.is_set(at := (*place, name))]
        for at in refused:
            remedy = (
                f"name it on the command line, --set {show_place(at)}=..., or pass --allow-code"
            )
            self.add_problem(
                at,
                f"what is named here can run code on this machine; {remedy} if you trust this "
                "suite",
            )
        return bool(refused)

    def stage(  # noqa: C901
        self,
        kind: Kind,
        key: str,
        reference: str | Mapping[str, Any],
        place: Place,
        reserved: tuple[str, ...] = (),
    ) -> Stage | None:
        """Return one component from ``"name"`` or ``{kind: name, option: value, ...}``.

        None with a problem.
        """
        options: dict[str, Any] = (
            {"kind": reference} if isinstance(reference, str) else dict(reference)
        )
        name = options.pop("kind", None)
        if not isinstance(name, str):
            problem = "kind is missing" if name is None else f"kind must be text, got {name!r}"
            self.add_problem(place, f"{problem}; there are: {', '.join(self.registry.names(kind))}")
            return None
        at = place if isinstance(reference, str) else (*place, "kind")
        if ".py" in name and (name := self._in_file(kind, name, at)) is None:
            return None
        try:
            found, plugin, shortest, conflict = self.registry.find(kind, name)
            target = self.registry.loaded(found, plugin)
        except ConfigError as error:
            self.add_problem(at, error)
            return None
        except PluginError as error:
            self.broken.append(f"{self.document.where(place)}: {error.line}")
            return None
        if conflict is not None and name == found.name:
            self.warn(at, f"{conflict}: the first is used")
        name = shortest
        code = getattr(target, "runs_code", False)
        if code and not self._allowed(f"{name} imports Python code the suite names", place):
            return None
        wary = () if self.allow_code else sorted(getattr(target, "trusted_options", ()))
        if (wary := [each for each in wary if options.get(each) is not None]) and self._untrusted(
            wary, place
        ):
            return None
        options = {option: value for option, value in options.items() if option not in reserved}
        path, function = self._local.get((kind, name), (None, {}))
        if function and options:
            self.add_problem(
                (*place, next(iter(options))), "unknown key; a function has no options"
            )
            return None
        fields = {field.name for field in attrs.fields(target)}
        if "profile" in fields:
            options.setdefault("profile", self.profile)
        if "num_runs" in fields and self.num_runs is not None:
            options.setdefault("num_runs", self.num_runs)
        component: Any = self.structure({**options, **function}, target, place)
        if component is None:
            return None
        if code and isinstance(file := getattr(component, "file", None), Path):
            path = file.resolve()
            self.code[path] = None
        # a text that the component completes, such as a preset with its version, is kept as that
        own = {
            option: getattr(component, option, None)
            for option, written in options.items()
            if type(written) is str
        }
        return Stage(
            kind=kind,
            key=key,
            name=name,
            component=component,
            options={
                **options,
                **{option: each for option, each in own.items() if type(each) is str},
            },
            version=component.version,
            distribution=plugin.release,
            profile=self.profile,
            code=code_of_component(component, path) if LOCAL_CODE else {},
        )


_TEXT_KEYS = ("extractor", "extractor_config", "display_name")


def grader_stages(
    resolver: Resolver, spec: SuiteSpec, made: Mapping[str, Grader]
) -> dict[str, Stage]:
    """Return a suite's graders by key; those ``made`` by the caller are taken as they are."""
    stages: dict[str, Stage] = {}
    for key, written in spec.graders.items():
        reference = {"kind": written} if isinstance(written, str) else written
        stage: Stage | None
        if key in made:
            stage = made_stage("grader", key, made[key], spec.profile)
        else:
            named = _code_reference(reference) if reference.get("kind") == "tool" else written
            stage = resolver.stage("grader", key, named, ("graders", key), reserved=_TEXT_KEYS)
        if stage is not None and (
            stage.component.submission or not reference.keys().isdisjoint(_TEXT_KEYS)
        ):
            stage = _with_extractor(resolver, stage, reference)
        if stage is not None:
            stages[key] = stage
    for key, stage in stages.items():
        for part in stage.combines:
            of, place = stages.get(part), ("graders", key, "of")
            if part not in spec.graders:
                resolver.add_problem(
                    place, f"no grader has the key {part!r}{suggest(part, spec.graders)}"
                )
            elif of is not None and (of.combines or of.component.better != "higher"):
                what = (
                    "combines others itself"
                    if of.combines
                    else "is no score of which more is better"
                )
                resolver.add_problem(place, f"{part!r} {what}")
    return stages


def _code_reference(reference: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``{kind: tool, function: "file.py:name"}`` as the grader that imports code.

    Another one unchanged.
    """
    function = reference.get("function")
    place, colon, name = function.rpartition(":") if isinstance(function, str) else ("", "", "")
    if not colon:
        return reference
    rest = {key: value for key, value in reference.items() if key not in ("kind", "function")}
    return {
        "kind": FUNCTIONS,
        "file" if place.endswith(".py") else "module": place,
        "name": name,
        **rest,
    }


def _with_extractor(resolver: Resolver, stage: Stage, reference: Mapping[str, Any]) -> Stage:
    place: Place = ("graders", stage.key)
    if not stage.component.submission:
        for option in ("extractor", "extractor_config"):
            if option in reference:
                resolver.add_problem(
                    (*place, option), f"{stage.name} judges the whole sample; it takes no {option}"
                )
        return stage
    named, config = reference.get("extractor"), reference.get("extractor_config")
    if not isinstance(config, Mapping | None):
        resolver.add_problem(
            (*place, "extractor_config"), "expected a mapping of the extractor's options"
        )
        return stage
    if not isinstance(named, Mapping):
        named = {**(config or {}), "kind": "last_assistant" if named is None else named}
    extractor = resolver.stage("extractor", stage.key, named, (*place, "extractor"))
    return msgspec.structs.replace(stage, extractor=extractor)


def metric_stages(
    resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage]
) -> list[Metric]:
    """Return the default aggregators of every grader and the suite's own.

    An own one replaces a default of its name.
    """
    own: dict[tuple[str, str], Metric | None] = {}
    for key, written in spec.metrics.items():
        place: Place = ("metrics", key)
        entry: dict[str, Any] = {"kind": written} if isinstance(written, str) else dict(written)
        if "kind" not in entry and key in resolver.registry.names("aggregator"):
            entry["kind"] = key
        of = entry.get("of")
        if of is None:
            by_default = [
                name
                for name, stage in graders.items()
                if entry.get("kind") in stage.component.aggregators
            ]
            of = next(iter([*by_default, *graders, *spec.graders]), "")
        elif not isinstance(of, str) or of not in spec.graders:
            resolver.add_problem(
                (*place, "of"), f"no grader has the key {of!r}{suggest(of, spec.graders)}"
            )
            of = ""
        if (metric := _metric(resolver, of, graders.get(of), key, entry, place)) is None:
            continue
        own[of, key] = metric
        for rater in getattr(metric.stage.component, "raters", ()):
            if rater not in spec.graders:
                problem = f"no grader has the key {rater!r}{suggest(rater, spec.graders)}"
                resolver.add_problem((*place, "raters"), problem)
    metrics: list[Metric | None] = []
    for key, grader in graders.items():
        for name in grader.component.aggregators:
            known = own.pop((key, name), None)
            metrics.append(known or _metric(resolver, key, grader, name, name, ("graders", key)))
    return [each for each in (*metrics, *own.values()) if each is not None]


def _metric(
    resolver: Resolver,
    of: str,
    grader: Stage | None,
    key: str,
    entry: str | Mapping[str, Any],
    place: Place,
) -> Metric | None:
    """Return an aggregator.

    Where scores are no shares with ``share: false``, their ``least`` and ``most``.

    Its labels are what its grader's options say; those of its own come first.
    """
    data = {"kind": entry} if isinstance(entry, str) else entry
    low, high = (0.0, 1.0) if grader is None else grader.component.bounds
    if (low < 0 or high > 1) and "share" not in data and isinstance(name := data.get("kind"), str):
        with suppress(GradestackError):  # of one that is unknown or broken, a problem of its stage
            options = {
                field.name for field in attrs.fields(resolver.registry.load("aggregator", name))
            }
            ends = {
                option: end
                for option, end in (("least", low), ("most", high))
                if math.isfinite(end)
            }
            known: dict[str, Any] = {"share": False, **ends}
            entry = {
                **{option: each for option, each in known.items() if option in options},
                **data,
            }
    stage = resolver.stage("aggregator", key, entry, place, reserved=("of",))
    if (
        stage is not None
        and (fit := getattr(grader and grader.component, "for_metric", None)) is not None
    ):
        stage = msgspec.structs.replace(stage, component=fit(stage.component))
    return None if stage is None else Metric(of=of, stage=stage)


def made_stage(kind: Kind, key: str, component: Any, profile: Profile, name: str = "") -> Stage:
    """Return the stage of a component object made by the caller."""
    fields = attrs.fields(type(component)) if attrs.has(type(component)) else ()
    return Stage(
        kind=kind,
        key=key,
        name=name or type(component).__name__,
        component=component,
        options={field.name: getattr(component, field.name) for field in fields if field.repr},
        version=component.version,
        distribution="local",
        profile=profile,
    )


class Exporters(NamedTuple):
    """What writes native files, and what should and cannot."""

    stages: tuple[Stage, ...] = ()
    broken: Mapping[str, str] = {}
    """``exporter NAME (DISTRIBUTION)`` -> what is wrong, of those that were named."""
    warnings: tuple[str, ...] = ()
    """The same of those that come with the reader."""


def exporters_of(  # noqa: C901
    resolver: Resolver,
    named: Iterable[str | Mapping[str, Any]],
    reader: Stage,
    graders: Iterable[Stage],
) -> Exporters:
    """Return the named exporters, and those of the reader's own plugin whose reader and graders are
    all in use.
    """
    registry = resolver.registry
    used = {each for stage in graders for each in (stage.name, stage.name.rpartition(":")[2])}
    stages, broken, warnings = dict[str, Stage](), dict[str, str](), list[str]()
    readers = ("", reader.name, reader.name.rpartition(":")[2])
    for number, reference in enumerate(named):
        name = str(reference if isinstance(reference, str) else reference.get("kind"))
        if offers := registry.offers("exporter", name):
            name = offers[0].name
            try:
                registry.load("exporter", name)
            except GradestackError as error:
                broken[f"exporter {name} ({offers[0].plugin.release})"] = error.line
                continue
        stage = resolver.stage("exporter", name, reference, ("exporters", number))
        if stage is None:
            continue
        if (of := stage.component.reader) not in readers:
            why = f"writes what the reader {of!r} reads, and this is {reader.name!r}"
            resolver.add_problem(("exporters", number), f"{stage.name} {why}")
        elif lacking := sorted(set(stage.component.graders) - used):
            why = f"writes the grades of {', '.join(lacking)}, which is no grader of this suite"
            resolver.add_problem(("exporters", number), f"{stage.name} {why}")
        else:
            stages[stage.name] = stage
    plugins = [offer.plugin for offer in registry.offers("reader", reader.name)[:1]]
    pairs = [
        (each, plugin)
        for plugin in plugins
        for each in plugin.components
        if each.kind == "exporter"
    ]
    for component, plugin in pairs:
        name = next(
            each.name
            for each in registry.offers("exporter", component.name)
            if each.plugin is plugin
        )
        shown = f"exporter {name} ({plugin.release})"
        if name in stages or shown in broken:
            continue
        try:
            target = registry.loaded(component, plugin)
            if target.reader in readers and used.issuperset(target.graders):
                stages[name] = Stage(
                    kind="exporter",
                    key=name,
                    name=name,
                    component=target(),
                    options={},
                    version=target.version,
                    distribution=plugin.release,
                )
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever keeps it from being made
            text = error.line if isinstance(error, GradestackError) else error_text(error)
            warnings.append(f"{shown} is broken and left out: {text}")
    return Exporters(tuple(stages[name] for name in sorted(stages)), broken, tuple(warnings))


class Target(NamedTuple):
    """What is graded: the inputs and what reads them."""

    inputs: Inputs
    reader: Stage | None = None
    """None with a problem, or where ``late`` says why there is none."""
    dataset_reader: Stage | None = None
    """Reads the dataset where the reader does not join it itself."""
    ignored: Sequence[str] = ()
    remarks: Sequence[str] = ()
    late: GradestackError | None = None
    """Why an input cannot be used: said after what is wrong with the suite itself."""


FIRST = 1000
"""Records of each input that are looked at."""
_MOST_INPUTS = 1000
"""Inputs that are looked into, spread evenly over all there are."""


def stack_for(
    registry: Registry,
    name: str,
    inputs: Inputs | None = None,
    provides: Any = None,
    samples: Any = tuple,
) -> Mapping[str, Any]:
    """Return the suite mapping of a named stack, made for inputs or samples.

    Of another one that it names, that.
    """
    found, plugin, *_ = registry.find("stack", name)
    make = registry.loaded(found, plugin)
    try:
        takes, about = (
            set(inspect.signature(make).parameters),
            {"provides": provides, "samples": samples},
        )
        known: dict[str, Any] = {key: each for key, each in about.items() if key in takes}
        fragment = (
            make(inputs, **known) if inputs is not None and takes - known.keys() else make(**known)
        )
    except GradestackError:
        raise  # of what reads the samples
    except Exception as error:
        raise PluginError(
            f"stack {name!r} of plugin {plugin} raised {error_text(error)}"
        ) from error
    if not isinstance(fragment, Mapping):
        raise PluginError(
            f"stack {name!r} of plugin {plugin} is {type(fragment).__name__}, not a mapping"
        )
    other = fragment.get("stack", name)
    return (
        fragment
        if other == name
        else {**stack_for(registry, other, inputs, provides, samples), **fragment}
    )


def samples_of(reader: Reader, inputs: Inputs, most: int | None = FIRST) -> Iterator[Sample]:
    """Yield the samples among the first records of each input (None: all).

    Nothing is read before one is asked for. Of very many inputs some stand for all.
    """
    step = -(-len(inputs.data) // _MOST_INPUTS)
    some = msgspec.structs.replace(inputs, data=inputs.data[:: max(1, step)])
    shards, index = shards_of(reader, some)
    for _, own in groupby(shards, key=lambda shard: shard.input.name):
        records = chain.from_iterable(records_of(reader, shard, index) for shard in own)
        yield from (each for each in islice(records, most) if isinstance(each, Sample))


def graders_for(
    resolver: Resolver, graders: Mapping[str, Stage], used: Stage, inputs: Inputs
) -> tuple[dict[str, Stage], list[str]]:
    """Return the graders as the recording asks for, and what the reader remarks.

    Refusals are problems.
    """
    reader, stages, remarks = used.component, dict(graders), list[str]()
    for key, stage in graders.items():
        if (
            reader.empty_answers
            and stage.extractor is not None
            and "expected" in stage.component.needs
        ):
            stages[key] = stage = msgspec.structs.replace(stage, grades_empty=True)  # noqa: PLW2901
        component = stage.component
        if (decide := getattr(component, "for_recording", None)) is None:
            continue
        with resolver.refusals(("graders", key)), guarded(f"grader {key!r} ({stage.signature})"):
            component = decide(key, reader, inputs, samples_of(reader, inputs))
        chosen = {
            field.name: getattr(component, field.name) for field in attrs.fields(type(component))
        }
        changed = {
            name: each for name, each in chosen.items() if each != getattr(stage.component, name)
        }
        stages[key] = msgspec.structs.replace(
            stage, component=component, options={**stage.options, **changed}
        )
    for part, own in used.shares(inputs):
        one = part.component
        if (remarks_on := getattr(one, "remarks", None)) is not None:
            with resolver.refusals(("reader",)), guarded(name_of(one)):
                remarks += remarks_on(own)
        if (recognise := getattr(one, "recognised_columns", None)) is not None:
            with guarded(name_of(one)):
                notes, doubts = recognise(own)
            remarks += doubts
            resolver.notes += [
                f"{each}{resolver.asked}" if each.startswith("The same as: ") else each
                for each in notes
            ]
    resolver.finish()
    return stages, remarks

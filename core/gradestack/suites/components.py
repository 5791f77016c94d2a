"""From references in a configuration to its components, every problem collected with its place."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import attrs
import msgspec

from gradestack.api import Grader, Inputs, Profile, Reader
from gradestack.copies.addresses import is_remote, local_path_of, protocol_of, shown_address
from gradestack.errors import ConfigError, GradestackError, PluginError, error_text, guarded, suggest
from gradestack.grading.plan import Metric, Stage
from gradestack.grading.reading import name_of, parts_of, records_of, shards_of
from gradestack.hooks import Kind
from gradestack.model import Sample
from gradestack.registry import Registry, bare, qualified
from gradestack.suites.code import FUNCTIONS, InFile, code_of_component, file_plugin, from_file
from gradestack.suites.document import Document, show_place
from gradestack.suites.spec import SuiteSpec
from gradestack.suites.strict import Place, Problems, structure

T = TypeVar("T")


def profile_of(component: Any, inherited: Profile) -> Profile:
    """Return the profile a component is given, which may be another than the suite's."""
    own: Any = getattr(component, "profile", None)
    return own if own in get_args(Profile) else inherited


class Resolver:
    """Resolves component references, collecting problems instead of stopping at the first."""

    def __init__(
        self,
        document: Document,
        registry: Registry,
        base: Path | None,
        *,
        allow_code: bool = False,
        allow_remote: bool = False,
    ) -> None:
        self.document, self.registry, self.base = document, registry, base
        self.allow_code, self.allow_remote = allow_code, allow_remote
        self.problems: dict[str, Place] = {}
        self.broken: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []  # what was decided by the data
        self.asked = ""  # options for the stack or graders that were asked for, on a command line
        self.profile: Profile = "documented"
        self.code: dict[Path, None] = {}
        """Files of the user's own that are in use, in the order they were met."""
        self.stacks: dict[str, Mapping[str, Any]] = {}
        """Stacks that were laid under the suite, as they were made for its inputs."""
        self._local: dict[tuple[Kind, str], tuple[Path, Mapping[str, str]]] = {}
        self._cause: Exception | None = None

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
            what = f"{self.document.origin}: {count} problem{'s' if count > 1 else ''} in the configuration"
            raise ConfigError(what, *self.problems, *self.broken) from self._cause
        if self.broken:
            raise PluginError(f"{self.document.origin}: a plugin it uses is broken", *self.broken)

    def portable_warnings(self) -> list[str]:
        """Return the warnings for summary.json, which must not depend on where the suite lies."""
        return [text.replace(self.document.origin, Path(self.document.origin).name, 1) for text in self.warnings]

    def structure(self, data: Any, kind: type[T], place: Place) -> T | None:
        """Return the data as an instance of a class, or None with its problems recorded."""
        try:
            return structure(data, kind, self.base)
        except Problems as problems:
            for below, message in problems.found:
                self.add_problem((*place, *below), message)
        return None

    def suite(self) -> SuiteSpec:
        """Return the document as a suite, without what has problems, so that the rest is checked too."""
        try:
            return structure(self.document.data, SuiteSpec, self.base)
        except Problems as problems:
            for place, message in problems.found:
                self.add_problem(place, message)
            return SuiteSpec(**problems.sound)

    def load_plugins(self) -> None:
        """Add what the files under ``plugins`` offer; where that fails nothing else can be told."""
        written = self.document.data.get("plugins")
        for number, file in enumerate(written if isinstance(written, list) else []):
            place = ("plugins", number)
            if isinstance(file, str) and self._allowed(f"{file} is Python code", place):
                with self.refusals(place):
                    self.registry = self.registry.extended(file_plugin(self._path(file)))
        if self.problems:
            self.finish()

    def _path(self, file: str) -> Path:
        try:
            path = local_path_of(file, self.base)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        self.code[path.resolve()] = None
        return path

    def _allowed(self, why: str, place: Place) -> bool:
        if not self.allow_code:
            self.add_problem(place, f"{why}; pass --allow-code if you trust it")
        return self.allow_code

    def may_read(self, text: str, place: Place) -> bool:
        """Return whether an input may be opened; an address that only the suite names is a problem, and is recorded."""
        if not is_remote(text, self.base):
            return True
        protocol_of(text)
        allowed = self.allow_remote or self.document.is_set(place)
        if not allowed:
            why = f"{shown_address(text)} is a remote file; pass --allow-remote if you trust this suite"
            self.add_problem(place, why)
        return allowed

    def registered(self, kind: Kind, name: str, place: Place) -> str | None:
        """Return a component's name in the registry, where ``FILE.py:NAME`` is put first; None with a problem."""
        reference = InFile.parse(name) or InFile.parse(f"{name}:")
        if reference is None:
            return name
        unnamed = "" if reference.name else f", and no {kind} of it is named ({reference.file}:NAME)"
        if not self._allowed(f"{name} is Python code{unnamed}", place):
            return None
        shown = reference.shown
        try:
            path = self._path(reference.file)
            if (kind, shown) not in self._local:
                plugin, options = from_file(reference, kind, path, self.registry)
                self.registry = self.registry.extended(plugin)
                self._local[kind, shown] = path.resolve(), options
        except ConfigError as error:
            self.add_problem(place, error)
            return None
        if (known := self._local[kind, shown][0]) != path.resolve():
            self.add_problem(place, f"{shown} is the name of another file's, too ({known}); rename one of the files")
            return None
        return shown

    def _trusted(self, target: Any, options: Mapping[str, Any], place: Place) -> bool:
        """Return whether options that can have code run are set on the command line, or allowed; say so if not."""
        wary = () if self.allow_code else getattr(target, "trusted_options", ())
        places = [(*place, option) for option in sorted(wary) if options.get(option) is not None]
        refused = [at for at in places if not self.document.is_set(at)]
        for at in refused:
            remedy = f"name it on the command line, --set {show_place(at)}=..., or pass --allow-code"
            self.add_problem(at, f"what is named here can run code on this machine; {remedy} if you trust this suite")
        return not refused

    def stage(
        self, kind: Kind, key: str, reference: str | Mapping[str, Any], place: Place, reserved: tuple[str, ...] = ()
    ) -> Stage | None:
        """Return one component from ``"name"`` or ``{kind: name, option: value, ...}``; None with a problem."""
        options = {"kind": reference} if isinstance(reference, str) else dict(reference)
        name, target = options.pop("kind", None), None
        if not isinstance(name, str):
            problem = "kind is missing" if name is None else f"kind must be text, got {name!r}"
            self.add_problem(place, f"{problem}; there are: {', '.join(self.registry.names(kind))}")
            return None
        at = place if isinstance(reference, str) else (*place, "kind")
        if (name := self.registered(kind, name, at)) is None:
            return None
        if conflict := self.registry.conflict(kind, name):  # where it is none of ours, loading it refuses it
            self.warn(at, f"{conflict}: the first is used")
        name = self.registry.spelled(kind, name)
        with self.refusals(at):
            try:
                target = self.registry.load(kind, name)
            except PluginError as error:
                self.broken.append(f"{self.document.where(place)}: {error.line}")
        code = getattr(target, "runs_code", False)
        if target is None or (code and not self._allowed(f"{name} imports Python code the suite names", place)):
            return None
        if not self._trusted(target, options, place):
            return None
        options = {option: value for option, value in options.items() if option not in reserved}
        path, function = self._local.get((kind, name), (None, {}))
        if function and options:
            self.add_problem((*place, next(iter(options))), "unknown key; a function has no options")
            return None
        if "profile" not in options and any(field.name == "profile" for field in attrs.fields(target)):
            options["profile"] = self.profile
        component: Any = self.structure({**options, **function}, target, place)
        if component is None:
            return None
        if code and isinstance(file := getattr(component, "file", None), Path):
            path = file.resolve()
            self.code[path] = None
        # a text that the component completes, such as a preset with its version, is kept as that
        own = {option: getattr(component, option, None) for option, written in options.items() if type(written) is str}
        return Stage(
            kind=kind,
            key=key,
            name=name,
            component=component,
            options={**options, **{option: each for option, each in own.items() if type(each) is str}},
            version=component.version,
            distribution=self.registry.find(kind, name)[1].release,
            profile=profile_of(component, self.profile),
            code=code_of_component(component, path),
        )


_TEXT_KEYS = ("extractor", "extractor_config", "display_name")


def grader_stages(resolver: Resolver, spec: SuiteSpec, made: Mapping[str, Grader]) -> dict[str, Stage]:
    """Return a suite's graders by key; those ``made`` by the caller are taken as they are."""
    stages: dict[str, Stage] = {}
    for key, reference in spec.graders.items():
        if key in made:
            stage: Stage | None = made_stage("grader", key, made[key], spec.profile)
        else:
            stage = resolver.stage("grader", key, _code_reference(reference), ("graders", key), reserved=_TEXT_KEYS)
        if stage is not None:
            stages[key] = _with_extractor(resolver, stage, reference if isinstance(reference, Mapping) else {})
    for key, stage in stages.items():
        for part in stage.combines:
            of = stages.get(part)
            if part not in spec.graders:
                resolver.add_problem(
                    ("graders", key, "of"), f"no grader has the key {part!r}{suggest(part, spec.graders)}"
                )
            elif of is not None and (of.combines or of.component.better != "higher"):
                what = "combines others itself" if of.combines else "is no score of which more is better"
                resolver.add_problem(("graders", key, "of"), f"{part!r} {what}")
    return stages


def _code_reference(reference: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """Return ``{kind: tool, function: "file.py:name"}`` as the grader that imports code; anything else unchanged."""
    if not isinstance(reference, Mapping) or reference.get("kind") != "tool":
        return reference
    function = reference.get("function")
    place, colon, name = function.rpartition(":") if isinstance(function, str) else ("", "", "")
    if not colon:
        return reference
    rest = {key: value for key, value in reference.items() if key not in ("kind", "function")}
    return {"kind": FUNCTIONS, "file" if place.endswith(".py") else "module": place, "name": name, **rest}


def _with_extractor(resolver: Resolver, stage: Stage, reference: Mapping[str, Any]) -> Stage:
    place: Place = ("graders", stage.key)
    if not stage.component.submission:
        for option in ("extractor", "extractor_config"):
            if option in reference:
                resolver.add_problem((*place, option), f"{stage.name} judges the whole sample; it takes no {option}")
        return stage
    named, config = reference.get("extractor"), reference.get("extractor_config")
    if not isinstance(config, Mapping | None):
        resolver.add_problem((*place, "extractor_config"), "expected a mapping of the extractor's options")
        return stage
    if not isinstance(named, Mapping):
        named = {**(config or {}), "kind": "last_assistant" if named is None else named}
    return msgspec.structs.replace(
        stage, extractor=resolver.stage("extractor", stage.key, named, (*place, "extractor"))
    )


def metric_stages(resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage]) -> list[Metric]:
    """Return the default aggregators of every grader and the suite's own; an own one replaces a default of its name."""
    own: dict[tuple[str, str], Metric] = {}

    def refuse_key(at: Place, key: object) -> None:
        resolver.add_problem(at, f"no grader has the key {key!r}{suggest(key, spec.graders)}")

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
            refuse_key((*place, "of"), of)
            of = ""
        stage = resolver.stage("aggregator", key, _bounded(resolver, entry, graders.get(of)), place, reserved=("of",))
        if stage is None:
            continue
        own[of, key] = Metric(of=of, stage=stage)
        for rater in getattr(stage.component, "raters", ()):
            if rater not in spec.graders:
                refuse_key((*place, "raters"), rater)
    metrics: list[Metric] = []
    for key, grader in graders.items():
        for name in grader.component.aggregators:
            if (key, name) in own:
                metrics.append(own.pop((key, name)))
            elif stage := resolver.stage("aggregator", name, _bounded(resolver, name, grader), ("graders", key)):
                metrics.append(Metric(of=key, stage=stage))
    return [_fitted(metric, graders.get(metric.of)) for metric in [*metrics, *own.values()]]


def _fitted(metric: Metric, grader: Stage | None) -> Metric:
    """Return a metric with what its grader's options say of it, labels say; those of its own come first."""
    fit: Any = getattr(grader and grader.component, "for_metric", lambda component: component)
    stage = msgspec.structs.replace(metric.stage, component=fit(metric.stage.component))
    return msgspec.structs.replace(metric, stage=stage)


def _bounded(resolver: Resolver, entry: str | Mapping[str, Any], grader: Stage | None) -> str | Mapping[str, Any]:
    """Return an aggregator's entry; where scores are no shares with ``share: false``, their ``least`` and ``most``."""
    low, high = (0.0, 1.0) if grader is None else grader.component.bounds
    data = {"kind": entry} if isinstance(entry, str) else entry
    if (low < 0 or high > 1) and "share" not in data and isinstance(name := data.get("kind"), str):
        with suppress(GradestackError):  # of one that is unknown or broken, a problem of its stage
            options = {field.name for field in attrs.fields(resolver.registry.load("aggregator", name))}
            ends = {option: end for option, end in (("least", low), ("most", high)) if math.isfinite(end)}
            known: dict[str, Any] = {"share": False, **ends}
            return {**{option: each for option, each in known.items() if option in options}, **data}
    return entry


def engine_stage(resolver: Resolver, reference: str | Mapping[str, Any], workers: int | None) -> Stage | None:
    """Return the engine, with the workers asked for beside the suite; options without a kind are the default one's."""
    if not isinstance(reference, str) and reference and "kind" not in reference:
        reference = {"kind": "auto", **reference}
    if workers is not None:
        reference = {**({"kind": reference} if isinstance(reference, str) else reference), "workers": workers}
    return resolver.stage("engine", "engine", reference, ("engine",))


def made_stage(kind: Kind, key: str, component: Any, profile: Profile) -> Stage:
    """Return the stage of a component object made by the caller."""
    fields = attrs.fields(type(component)) if attrs.has(type(component)) else ()
    return Stage(
        kind=kind,
        key=key,
        name=type(component).__name__,
        component=component,
        options={field.name: getattr(component, field.name) for field in fields if field.repr},
        version=component.version,
        distribution="local",
        profile=profile_of(component, profile),
    )


class Exporters(NamedTuple):
    """What writes native files, and what should and cannot."""

    stages: tuple[Stage, ...] = ()
    broken: Mapping[str, str] = {}
    """``exporter NAME (DISTRIBUTION)`` -> what is wrong, of those that were named."""
    warnings: tuple[str, ...] = ()
    """The same of those that come with the reader."""


def name_of_broken(name: str, distribution: str) -> str:
    """Return what a broken exporter is called in messages."""
    return f"exporter {name} ({distribution})"


def exporters_of(
    resolver: Resolver, named: Iterable[str | Mapping[str, Any]], reader: Stage, graders: Iterable[Stage]
) -> Exporters:
    """Return the named exporters, and those of the reader's own plugin whose reader and graders are all in use."""
    used, registry = {each for stage in graders for each in (stage.name, bare(stage.name))}, resolver.registry
    stages, broken, warnings = dict[str, Stage](), dict[str, str](), list[str]()

    def misfit(exporter: Any) -> str | None:
        """Return what an exporter writes that this run has not."""
        if exporter.reader not in ("", reader.name, bare(reader.name)):
            return f"what the reader {exporter.reader!r} reads, and this is {reader.name!r}"
        lacking = sorted(set(exporter.graders) - used)
        return f"the grades of {', '.join(lacking)}, which is no grader of this suite" if lacking else None

    for number, reference in enumerate(named):
        name = registry.spelled("exporter", str(reference if isinstance(reference, str) else reference.get("kind")))
        if registry.owners("exporter", name):
            try:
                registry.load("exporter", name)
            except GradestackError as error:
                broken[name_of_broken(name, registry.owners("exporter", name)[0][1].release)] = error.line
                continue
        stage = resolver.stage("exporter", name, reference, ("exporters", number))
        if stage is not None and (why := misfit(stage.component)):
            resolver.add_problem(("exporters", number), f"{stage.name} writes {why}")
        elif stage is not None:
            stages[stage.name] = stage
    plugins = [plugin for _, plugin in registry.owners("reader", reader.name)[:1]]
    for component, own in ((each, plugin) for plugin in plugins for each in plugin.components):
        if component.kind != "exporter":
            continue
        name = registry.spelled("exporter", qualified(component, own))
        shown = name_of_broken(name, own.release)
        if name in stages or shown in broken:
            continue
        try:
            target = registry.load("exporter", name)
            if not misfit(target):
                stage = made_stage("exporter", name, target(), "documented")
                stages[name] = msgspec.structs.replace(stage, name=name, options={}, distribution=own.release)
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


def stack_for(
    registry: Registry, name: str, inputs: Inputs | None = None, provides: Any = None, samples: Any = tuple
) -> Mapping[str, Any]:
    """Return the suite mapping of a named stack, made for inputs or samples; of another one that it names, that."""
    make, whose = registry.load("stack", name), f"stack {name!r} of plugin {registry.find('stack', name)[1]}"
    try:
        takes, about = set(inspect.signature(make).parameters), {"provides": provides, "samples": samples}
        known: dict[str, Any] = {key: each for key, each in about.items() if key in takes}
        fragment = make(inputs, **known) if inputs is not None and takes - known.keys() else make(**known)
    except GradestackError:
        raise  # of what reads the samples
    except Exception as error:
        raise PluginError(f"{whose} raised {error_text(error)}") from error
    if not isinstance(fragment, Mapping):
        raise PluginError(f"{whose} is {type(fragment).__name__}, not a mapping")
    other = fragment.get("stack", name)
    return fragment if other == name else {**stack_for(registry, other, inputs, provides, samples), **fragment}


def samples_of(reader: Reader, inputs: Inputs, most: int | None = FIRST) -> Iterator[Sample]:
    """Yield the samples among the first records of each input (None: all); nothing is read before one is asked for."""
    shards, index = shards_of(reader, inputs)
    for _, own in groupby(shards, key=lambda shard: shard.input.name):
        records = chain.from_iterable(records_of(reader, shard, index) for shard in own)
        yield from (each for each in islice(records, most) if isinstance(each, Sample))


def graders_for(
    resolver: Resolver, graders: Mapping[str, Stage], reader: Reader, inputs: Inputs
) -> tuple[dict[str, Stage], list[str]]:
    """Return the graders as the recording asks for, and what the reader remarks; refusals are problems."""
    stages, remarks = dict(graders), list[str]()
    for key, stage in graders.items():
        if reader.empty_answers and stage.extractor is not None and "expected" in stage.component.needs:
            stages[key] = stage = msgspec.structs.replace(stage, grades_empty=True)  # noqa: PLW2901
        component = stage.component
        if (decide := getattr(component, "for_recording", None)) is None:
            continue
        with resolver.refusals(("graders", key)), guarded(f"grader {key!r} ({stage.signature})"):
            component = decide(key, reader, inputs, samples_of(reader, inputs))
        chosen = {field.name: getattr(component, field.name) for field in attrs.fields(type(component))}
        changed = {name: each for name, each in chosen.items() if each != getattr(stage.component, name)}
        stages[key] = msgspec.structs.replace(stage, component=component, options={**stage.options, **changed})
    for one, own in parts_of(reader, inputs):
        if (remarks_on := getattr(one, "remarks", None)) is not None:
            with resolver.refusals(("reader",)), guarded(name_of(one)):
                remarks += remarks_on(own)
        if (recognise := getattr(one, "recognised_columns", None)) is not None:
            with guarded(name_of(one)):
                notes, doubts = recognise(own)
            remarks += doubts
            resolver.notes += [
                f"{each}{resolver.asked}" if each.startswith("The same as: ") else each for each in notes
            ]
    resolver.finish()
    return stages, remarks

"""From references in a configuration to its components, every problem with its location."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import attrs
import msgspec

from gradestack.api import Grader, Inputs, Reader
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
    hint_of,
)
from gradestack.grading.filters import parse_expression
from gradestack.grading.plan import Metric, Stage, may_compare
from gradestack.grading.reading import name_of, records_of, shards_of
from gradestack.hooks import Kind
from gradestack.model import Sample
from gradestack.output import counted
from gradestack.registry import Offer, Registry
from gradestack.suites.code import FUNCTIONS, InFile, code_of_component, file_plugin, from_file
from gradestack.suites.document import Document
from gradestack.suites.options import Location, Problems, show_location, structure
from gradestack.suites.spec import SuiteSpec

T = TypeVar("T")


class Reference(msgspec.Struct, frozen=True):
    """A component as a suite names it."""

    kind: Kind
    name: str
    options: dict[str, Any]
    location: Location
    """Where it stands."""
    at: Location
    """Where its name stands."""


class Resolver(msgspec.Struct):
    """Resolves component references, collecting problems instead of stopping at the first."""

    document: Document
    registry: Registry
    base: Folder | None = None
    allow_code: bool = False
    allow_remote: bool = False
    num_runs: int | None = None
    problems: dict[str, Location] = msgspec.field(default_factory=dict)
    broken: list[str] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    """What was decided by the data."""
    command_options: str = ""
    """Options of a command line that name the suite's stack or graders."""
    code: dict[Path, None] = msgspec.field(default_factory=dict)
    """Files of the user's own that are in use, in the order they were met."""
    stacks: dict[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """Stacks that were laid under the suite, as they were made for its inputs."""
    has_recorded_gates: bool = False
    """Whether the gates come from a recording or a stack, not from the suite or command line."""
    _local: dict[tuple[Kind, str], tuple[Path, Mapping[str, str]]] = msgspec.field(
        default_factory=dict
    )
    """Components in files: the file, and for a function the options that find it."""
    _cause: Exception | None = None

    def add_problem(self, location: Location, message: str | Exception) -> None:
        """Record one problem."""
        text = message.line if isinstance(message, GradestackError) else message
        where = self.document.where(location)
        self.problems[f"{where}: {text}"] = location
        if isinstance(message, Exception):
            self._cause = self._cause or message

    def require_grader(self, key: Any, known: Iterable[str], location: Location) -> bool:
        """Return whether a suite has the grader named at a location; else it is a problem."""
        if isinstance(key, str) and key in known:
            return True
        hint = hint_of(key, known)
        self.add_problem(location, f"no grader has the key {key!r}{hint}")
        return False

    def warn(self, location: Location, text: str) -> None:
        """Add a warning of something that is not wrong."""
        where = self.document.where(location)
        self.warnings.append(f"{where}: {text}")

    @contextmanager
    def refusals(self, location: Location) -> Iterator[None]:
        """Record a ConfigError raised inside as a problem, and go on behind."""
        try:
            yield
        except ConfigError as error:
            self.add_problem(location, error)

    def has_problem(self, location: Location) -> bool:
        """Return whether there is a problem of this location, or of one below it."""
        end = len(location)
        problems = self.problems.values()
        starts = [known[:end] for known in problems]
        return location in starts

    def finish(self) -> None:
        """Raise the collected problems of the suite and of its plugins as one error."""
        origin = self.document.origin
        count = len(self.problems)
        if count:
            problems = counted(count, "problem")
            what = f"{origin}: {problems} in the configuration"
            raise ConfigError(what, *self.problems, *self.broken) from self._cause
        if self.broken:
            raise PluginError(f"{origin}: a plugin it uses is broken", *self.broken)

    def structure(self, data: Any, kind: type[T], location: Location) -> T | None:
        """Return the data as an instance of a class.

        Of a suite what has no problems, of anything else then None.
        """
        try:
            return structure(data, kind, self.base)
        except Problems as problems:
            for below, message in problems.listed:
                self.add_problem((*location, *below), message)
            if kind is SuiteSpec:
                return kind(**problems.sound)
            return None

    def load_plugins(self, files: Any) -> None:
        """Add what the files under ``plugins`` offer; where that fails nothing else can be told."""
        for number, file in enumerate(files if isinstance(files, list) else []):
            location = ("plugins", number)
            if isinstance(file, str) and self._may_run(f"{file} is Python code", location):
                with self.refusals(location):
                    plugin = file_plugin(self._use_file(file))
                    self.registry = self.registry.extended(plugin)
        if self.problems:
            self.finish()

    def _use_file(self, text: str) -> Path:
        path = local_path_of(text, self.base)
        self.code[path.resolve()] = None
        return path

    def _may_run(self, what: str, location: Location) -> bool:
        """Return whether Python code may run; without ``--allow-code`` it is a problem."""
        if not self.allow_code:
            self.add_problem(location, f"{what}; pass --allow-code if you trust it")
        return self.allow_code

    def _may_have_options(self, reference: Reference, trusted: Iterable[str]) -> bool:
        """Return whether no option that can have code run is written in the suite alone."""
        if self.allow_code:
            return True
        options = reference.options
        is_allowed = True
        for name in sorted(trusted):
            location = (*reference.location, name)
            is_written = options.get(name) is not None
            if is_written and not self.document.is_set(location):
                why = "what is named here can run code on this machine"
                command = f"name it on the command line, --set {show_location(location)}=..."
                trust = "or pass --allow-code if you trust this suite"
                self.add_problem(location, f"{why}; {command}, {trust}")
                is_allowed = False
        return is_allowed

    def may_read(self, text: str, location: Location) -> bool:
        """Return whether an address may be opened; if it may not, record the problem.

        Local files may, and remote ones with ``--allow-remote``, or where the address was given on
        the command line and not by the suite alone.

        Raises:
            ConfigError: It is no address that any component opens.
        """
        if local_files(text, self.base):
            return True
        protocol_of(text, self.registry)  # refuses what no component opens
        is_allowed = self.allow_remote or self.document.is_set(location)
        if not is_allowed:
            remedy = "pass --allow-remote if you trust this suite"
            self.add_problem(location, f"{shown_address(text)} is a remote file; {remedy}")
        return is_allowed

    def _reference(self, kind: Kind, written: Any, location: Location) -> Reference | None:
        """Return the component that ``"name"`` or ``{kind: name, option: value, ...}`` names."""
        if isinstance(written, str):
            return Reference(kind, written, {}, location, location)
        if not isinstance(written, Mapping):
            named: Any = str | dict[str, Any]
            self.structure(written, named, location)
            return None
        options = dict(written)
        name = options.pop("kind", None)
        if isinstance(name, str):
            return Reference(kind, name, options, location, (*location, "kind"))
        problem = "kind is missing" if name is None else f"kind must be text, got {name!r}"
        names = ", ".join(self.registry.names(kind))
        self.add_problem(location, f"{problem}; there are: {names}")
        return None

    def _add_file(self, reference: Reference) -> str | None:
        """Register the component that ``FILE.py:NAME`` names; return its name, or None."""
        kind = reference.kind
        name = reference.name
        at = reference.at
        in_file = InFile.parse(name)
        if in_file is None:
            return name
        what = f"{name} is Python code"
        if not in_file.name:
            what += f", and no {kind} of it is named ({in_file.file}:NAME)"
        if not self._may_run(what, at):
            return None
        shown = in_file.shown
        with self.refusals(at):
            path = self._use_file(in_file.file)
            if (kind, shown) not in self._local:
                plugin, options = from_file(in_file, kind, path, self.registry)
                self.registry = self.registry.extended(plugin)
                self._local[kind, shown] = path.resolve(), options
            known = self._local[kind, shown][0]
            if known == path.resolve():
                return shown
            why = f"the name of another file's, too ({known}); rename one of the files"
            self.add_problem(at, f"{shown} is {why}")
        return None

    def _load(self, reference: Reference) -> tuple[Offer, Any] | None:
        """Return the offer a reference means and the class it stands for; None with a problem."""
        name = self._add_file(reference)
        if name is None:
            return None
        try:
            offer = self.registry.find(reference.kind, name)
            target = self.registry.loaded(offer.component, offer.plugin)
        except ConfigError as error:
            self.add_problem(reference.at, error)
            return None
        except PluginError as error:
            where = self.document.where(reference.location)
            text = error.line
            self.broken.append(f"{where}: {text}")
            return None
        if offer.conflict is not None and name == offer.component.name:
            self.warn(reference.at, f"{offer.conflict}: the first is used")
        what = f"{offer.name} imports Python code the suite names"
        runs_code = getattr(target, "runs_code", False)
        if runs_code and not self._may_run(what, reference.location):
            return None
        trusted = getattr(target, "trusted_options", ())
        if not self._may_have_options(reference, trusted):
            return None
        return offer, target

    def stage(
        self,
        kind: Kind,
        key: str,
        written: Any,
        location: Location,
        *,
        reserved: Iterable[str] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> Stage | None:
        """Return one component from ``"name"`` or ``{kind: name, option: value, ...}``.

        Args:
            kind: Its kind.
            key: What it is called in the suite.
            written: The reference.
            location: Where it stands.
            reserved: Keys that are no options of it.
            defaults: Options for what has them and was not given them.

        Returns:
            The component; None with a problem.
        """
        reference = self._reference(kind, written, location)
        loaded = None if reference is None else self._load(reference)
        if reference is None or loaded is None:
            return None
        offer, target = loaded
        path, function = self._local.get((kind, offer.name), (None, {}))
        written_options = reference.options.items()
        options = {name: value for name, value in written_options if name not in reserved}
        if function and options:
            option = next(iter(options))
            self.add_problem((*location, option), "unknown key; a function has no options")
            return None
        fields = attrs.fields_dict(target)
        if "profile" in options and "profile" not in fields:
            del options["profile"]
            self._refuse_profile(location)
        inherited = {"num_runs": self.num_runs, **(defaults or {})}
        for name, value in inherited.items():
            if name in fields and value is not None:
                options.setdefault(name, value)
        component: Any = self.structure({**options, **function}, target, location)
        if component is None:
            return None
        if getattr(target, "runs_code", False) and isinstance(component.file, Path):
            path = component.file.resolve()
            self.code[path] = None
        code = code_of_component(component, path) if LOCAL_CODE else {}
        completed = _completed(options, component)
        return Stage(
            kind=kind,
            key=key,
            name=offer.name,
            component=component,
            options=completed,
            version=component.version,
            distribution=offer.plugin.release,
            code=code,
        )

    def _refuse_profile(self, location: Location) -> None:
        """Refuse the option ``profile`` of a component, and say that it belongs to the suite."""
        program = "`profile: upstream` runs the original program of the format"
        component = "a component computes what the family's document defines"
        why = f"belongs at the top of a suite: {program}; {component}"
        self.add_problem((*location, "profile"), why)


def _completed(options: Mapping[str, Any], component: Any) -> dict[str, Any]:
    """Return options, texts as the component completes them: a preset has a version."""
    completed = dict(options)
    for name, written in options.items():
        value = getattr(component, name, None)
        if type(written) is str and type(value) is str:
            completed[name] = value
    return completed


_TEXT_KEYS = ("extractor", "extractor_config", "display_name")
_KEYS_OF_GRADERS = (*_TEXT_KEYS, "filter")


def grader_stages(
    resolver: Resolver, spec: SuiteSpec, made: Mapping[str, Grader]
) -> dict[str, Stage]:
    """Return a suite's graders by key; those ``made`` by the caller are taken as they are."""
    stages: dict[str, Stage] = {}
    for key, written in spec.graders.items():
        location = ("graders", key)
        if not key.strip():
            resolver.add_problem(location, "the key of a grader is empty; give it a name")
        stage: Stage | None
        if key in made:
            stage = made_stage("grader", key, made[key])
        else:
            named = _code_reference(written)
            stage = resolver.stage("grader", key, named, location, reserved=_KEYS_OF_GRADERS)
        if stage is not None:
            options = written if isinstance(written, Mapping) else {}
            stage = _with_extractor(resolver, stage, options, location)
            stage = _with_filter(resolver, stage, options, location)
        if stage is not None:
            stages[key] = stage
    for key, stage in stages.items():
        for part in stage.combines:
            _check_part(resolver, spec, stages.get(part), part, ("graders", key, "of"))
    return stages


def _check_part(
    resolver: Resolver, spec: SuiteSpec, stage: Stage | None, key: str, location: Location
) -> None:
    """Refuse a part of a combined grade that cannot be one."""
    is_there = resolver.require_grader(key, spec.graders, location)
    if not is_there or stage is None:
        return
    if stage.combines:
        resolver.add_problem(location, f"{key!r} combines others itself")
    elif stage.component.better != "higher":
        resolver.add_problem(location, f"{key!r} is no score of which more is better")


def _code_reference(written: Any) -> Any:
    """Return ``{kind: tool, function: "file.py:name"}`` as the grader that imports code.

    Another reference unchanged.
    """
    is_tool = isinstance(written, Mapping) and written.get("kind") == "tool"
    if not is_tool:
        return written
    options = dict(written)
    function = options.pop("function", None)
    if not isinstance(function, str) or ":" not in function:
        return written
    module, _, name = function.rpartition(":")
    where = "module"
    if module.endswith(".py"):
        where = "file"
    return {**options, "kind": FUNCTIONS, where: module, "name": name}


def _with_extractor(
    resolver: Resolver, stage: Stage, written: Mapping[str, Any], location: Location
) -> Stage | None:
    """Add the extractor of the judged text to a grader; one of whole samples takes none."""
    if not stage.component.takes_text:
        for option in ("extractor", "extractor_config"):
            if option in written:
                why = f"{stage.name} judges the whole sample; it takes no {option}"
                resolver.add_problem((*location, option), why)
        return stage
    named = written.get("extractor") or "last_assistant"
    config = written.get("extractor_config") or {}
    if not isinstance(config, Mapping):
        why = "expected a mapping of the extractor's options"
        resolver.add_problem((*location, "extractor_config"), why)
        return stage
    if not isinstance(named, Mapping):
        named = {**config, "kind": named}
    extractor = resolver.stage("extractor", stage.key, named, (*location, "extractor"))
    return msgspec.structs.replace(stage, extractor=extractor)


def _with_filter(
    resolver: Resolver, stage: Stage | None, written: Mapping[str, Any], location: Location
) -> Stage | None:
    """Return a grader that grades only runs its filter is true of."""
    text = written.get("filter")
    if stage is None or text is None:
        return stage
    if not isinstance(text, str):
        resolver.add_problem((*location, "filter"), f"expected an expression, got {text!r}")
        return None
    with resolver.refusals((*location, "filter")):
        parse_expression(text)
    return msgspec.structs.replace(stage, filter=text)


def metric_stages(
    resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage]
) -> list[Metric]:
    """Return the default aggregators of every grader and the suite's own.

    An own one replaces a default of its name.
    """
    named = dict[tuple[str, str], Metric]()
    for key, written in spec.metrics.items():
        metric = _own_metric(resolver, spec, graders, key, written)
        if metric is not None:
            named[metric.of, key] = metric
    metrics = []
    for key, grader in graders.items():
        for name in grader.component.metrics:
            metric = named.pop((key, name), None)
            if metric is None:
                metric = _metric(resolver, key, grader, name, name, ("graders", key))
            if metric is not None:
                metrics.append(metric)
    return [*metrics, *named.values()]


def _own_metric(
    resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage], key: str, written: Any
) -> Metric | None:
    """Return an aggregator that the suite names, by default of a grader that has it anyway."""
    location: Location = ("metrics", key)
    if isinstance(written, Mapping) and "kind" not in written:
        names = resolver.registry.names("aggregator")
        is_known = key in names
        written = {**written, "kind": key} if is_known else written
    named = written if isinstance(written, Mapping) else {"kind": written}
    of = named.get("of")
    if of is None:
        kind = named.get("kind")
        having = [name for name in graders if kind in graders[name].component.metrics]
        of = next(iter([*having, *graders, *spec.graders]), "")
    elif not resolver.require_grader(of, spec.graders, (*location, "of")):
        of = ""
    grader = graders.get(of)
    metric = _metric(resolver, of, grader, key, written, location)
    if metric is not None:
        for rater in getattr(metric.stage.component, "raters", ()):
            resolver.require_grader(rater, spec.graders, (*location, "raters"))
    return metric


def _metric(
    resolver: Resolver, of: str, grader: Stage | None, key: str, written: Any, location: Location
) -> Metric | None:
    """Return an aggregator, with the labels that its grader's options name."""
    defaults = {} if grader is None else _score_ends(grader, written)
    stage = resolver.stage(
        "aggregator", key, written, location, reserved=("of",), defaults=defaults
    )
    if stage is None:
        return None
    fit = None
    if grader is not None:
        fit = getattr(grader.component, "for_metric", None)
    if fit is not None:
        component = fit(stage.component)
        stage = msgspec.structs.replace(stage, component=component)
    return Metric(of=of, stage=stage)


def _score_ends(grader: Stage, written: Any) -> dict[str, Any]:
    """Return options of aggregators for scores that are no shares: least and most score."""
    low, high = grader.component.bounds
    is_share = low >= 0 and high <= 1
    is_set = isinstance(written, Mapping) and "share" in written
    if is_share or is_set:
        return {}
    ends = {"least": low, "most": high}
    finite = {name: end for name, end in ends.items() if math.isfinite(end)}
    return {"share": False, **finite}


def made_stage(kind: Kind, key: str, component: Any, name: str = "") -> Stage:
    """Return the stage of a component object made by the caller."""
    target = type(component)
    options = {}
    for field in attrs.fields(target) if attrs.has(target) else ():
        if field.repr:
            options[field.name] = getattr(component, field.name)
    return Stage(
        kind=kind,
        key=key,
        name=name or target.__name__,
        component=component,
        options=options,
        version=component.version,
        distribution="local",
    )


def programs_of(resolver: Resolver, reader: Stage) -> tuple[Stage, ...]:
    """Return the original programs of the formats that are read, of each format's own plugin."""
    stages: dict[str, Stage] = {}
    for part in reader.parts or (reader,):
        stages |= _made_beside(resolver, "program", part, frozenset())
    return tuple(stages[name] for name in sorted(stages))


def exporters_of(
    resolver: Resolver,
    named: Iterable[Any],
    reader: Stage,
    graders: Iterable[Stage],
    *,
    with_own: bool = True,
) -> tuple[Stage, ...]:
    """Return the exporters that are named and, ``with_own``, those of the reader's plugin.

    Of the latter only those whose reader and graders are all in use.
    """
    used = _names_of(*graders)
    stages = dict[str, Stage]()
    for number, reference in enumerate(named):
        location = ("exporters", number)
        stage = resolver.stage("exporter", "", reference, location)
        if stage is None:
            continue
        unfit = _unfit(stage.component, reader, used)
        if unfit:
            resolver.add_problem(location, f"{stage.name} {unfit}")
        stages[stage.name] = msgspec.structs.replace(stage, key=stage.name)
    if with_own:
        stages = {**_made_beside(resolver, "exporter", reader, used), **stages}
    return tuple(stages[name] for name in sorted(stages))


def _made_beside(
    resolver: Resolver, kind: Kind, reader: Stage, graders: AbstractSet[str]
) -> dict[str, Stage]:
    """Return the components of a reader's own plugin that fit a suite, by name, without options."""
    stages: dict[str, Stage] = {}
    for offer in _offers_beside(resolver.registry, kind, reader):
        name, release = offer.name, offer.plugin.release
        try:
            target = resolver.registry.loaded(offer.component, offer.plugin)
            if not _unfit(target, reader, graders):
                stage = made_stage(kind, name, target(), name)
                stages[name] = msgspec.structs.replace(stage, options={}, distribution=release)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever keeps it from being made
            text = error.line if isinstance(error, GradestackError) else error_text(error)
            shown = f"{kind} {name} ({release})"
            resolver.warnings.append(f"{shown} is broken and left out: {text}")
    return stages


def _names_of(*stages: Stage) -> set[str]:
    """Return the names of components, with and without their distributions."""
    names = {stage.name for stage in stages}
    return names | {name.rpartition(":")[2] for name in names}


def _unfit(writer: Any, reader: Stage, graders: AbstractSet[str]) -> str:
    """Return why an exporter or program cannot write what a suite grades; "" where it can."""
    if writer.reader and writer.reader not in _names_of(reader):
        return f"writes what the reader {writer.reader!r} reads, and this is {reader.name!r}"
    lacking = sorted(set(getattr(writer, "graders", ())) - graders)
    if lacking:
        return f"writes the grades of {', '.join(lacking)}, which is no grader of this suite"
    return ""


def _offers_beside(registry: Registry, kind: Kind, reader: Stage) -> Iterator[Offer]:
    """Yield the components of a kind in a reader's own plugin."""
    for of_reader in registry.offers("reader", reader.name)[:1]:
        for component in of_reader.plugin.components:
            if component.kind == kind:
                offers = registry.offers(kind, component.name)
                yield next(offer for offer in offers if offer.plugin is of_reader.plugin)


class Target(msgspec.Struct, frozen=True):
    """The inputs and what reads them."""

    inputs: Inputs
    reader: Stage | None = None
    """None with a problem, or where ``error`` says why there is none."""
    dataset_reader: Stage | None = None
    """Reads the dataset where the reader does not join it itself."""
    ignored: Sequence[str] = ()
    remarks: Sequence[str] = ()
    error: GradestackError | None = None
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

    Where it names another stack and has no graders, that one's entries lie under its own.
    """
    offer = registry.find("stack", name)
    make = registry.loaded(offer.component, offer.plugin)
    what = f"stack {name!r} of plugin {offer.plugin}"
    try:
        parameters = set(inspect.signature(make).parameters)
        arguments = {"provides": provides, "samples": samples}
        accepted = {key: arguments[key] for key in arguments if key in parameters}
        takes_inputs = inputs is not None and parameters - accepted.keys()
        fragment = make(inputs, **accepted) if takes_inputs else make(**accepted)
    except GradestackError:
        raise  # of what reads the samples
    except Exception as error:
        raise PluginError(f"{what} raised {error_text(error)}") from error
    if not isinstance(fragment, Mapping):
        raise PluginError(f"{what} is {type(fragment).__name__}, not a mapping")
    base_name = fragment.get("stack", name)
    if base_name == name or "graders" in fragment:
        return fragment
    return {**stack_for(registry, base_name, inputs, provides, samples), **fragment}


def samples_of(reader: Reader, inputs: Inputs, most: int | None = FIRST) -> Iterator[Sample]:
    """Yield the samples among the first records of each input (None: all).

    Nothing is read before one is asked for. Of very many inputs some stand for all.
    """
    shards, index = shards_of(reader, inputs)
    input_count = len(inputs.data)
    step = math.ceil(input_count / _MOST_INPUTS) or 1
    by_input = groupby(shards, key=lambda shard: shard.input.name)
    for number, (_, shards_of_input) in enumerate(by_input):
        if number % step:
            continue
        records = chain.from_iterable(records_of(reader, shard, index) for shard in shards_of_input)
        for record in islice(records, most):
            if isinstance(record, Sample):
                yield record


def graders_for(
    resolver: Resolver, graders: Mapping[str, Stage], used: Stage, inputs: Inputs
) -> tuple[dict[str, Stage], list[str]]:
    """Return the graders adapted to the recording, and the remarks of the reader.

    A grader that refuses the recording becomes a problem of the suite.
    """
    stages = {}
    for key, stage in graders.items():
        fitted = stage
        has_text = stage.extractor is not None and used.component.empty_answers
        if has_text and may_compare(stage.component):
            fitted = msgspec.structs.replace(stage, grades_empty=True)
        what = f"grader {key!r} ({stage.signature})"
        with resolver.refusals(("graders", key)), guarded(what):
            fitted = _for_recording(fitted, used.component, inputs)
        stages[key] = fitted
    remarks: list[str] = []
    for part, share in used.shares(inputs):
        remarks += _remarks(resolver, part.component, share)
    resolver.finish()
    return stages, remarks


def _for_recording(stage: Stage, reader: Reader, inputs: Inputs) -> Stage:
    """Let a grader choose its options by the recorded samples; return it with these."""
    before = stage.component
    decide = getattr(before, "for_recording", None)
    if decide is None:
        return stage
    samples = samples_of(reader, inputs)
    component = decide(stage.key, reader, inputs, samples)
    options = dict(stage.options)
    for field in attrs.fields(type(component)):
        chosen = getattr(component, field.name)
        if chosen != getattr(before, field.name):
            options[field.name] = chosen
    return msgspec.structs.replace(stage, component=component, options=options)


def _remarks(resolver: Resolver, reader: Any, inputs: Inputs) -> list[str]:
    """Return the remarks of a reader on its inputs; how it reads columns is a note."""
    remarks: list[str] = []
    remark = getattr(reader, "remarks", None)
    if remark is not None:
        with resolver.refusals(("reader",)), guarded(name_of(reader)):
            remarks += remark(inputs)
    recognise = getattr(reader, "recognised_columns", None)
    if recognise is None:
        return remarks
    with guarded(name_of(reader)):
        notes, doubts = recognise(inputs)
    for note in notes:
        is_command = note.startswith("The same as: ")
        options = ""
        if is_command:
            options = resolver.command_options
        resolver.notes.append(f"{note}{options}")
    return [*remarks, *doubts]

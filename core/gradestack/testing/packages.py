"""Checks of everything that a distribution or a Python file offers."""

from __future__ import annotations

import contextlib
import decimal
import importlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import attrs

from gradestack.aggregator import Aggregator
from gradestack.api import Extractor, Grader
from gradestack.errors import ConfigError, GradestackError, PluginError, suggest
from gradestack.hooks import FUNCTIONS, Component
from gradestack.interpreter import ticking
from gradestack.model import Key, Sample
from gradestack.python_api import run
from gradestack.registry import BUILT_IN, Plugin, Registry, discover, normal, qualified
from gradestack.suites.code import with_files
from gradestack.suites.components import samples_of, stack_for
from gradestack.suites.options import Problems, class_schema, show_location, structure
from gradestack.testing.components import (
    check_aggregator,
    check_component,
    check_extractor,
    check_grader,
    check_hash_seeds,
    check_reader,
    explained_grade,
    inputs_of,
    problem_text,
)
from gradestack.testing.lines import with_line
from gradestack.testing.samples import nasty_samples

SECONDS = 60.0  # how long one check may take; more than it needs beside much else on the machine
_FIRST = 200  # samples of each file that graders are checked over

Steps = Callable[[Path], object]
"""The steps of a check; they may write into the directory they are given."""


class NeedsExample(ConfigError):
    """A component cannot be checked without one made with its required options."""


@attrs.frozen(eq=False)
class Check:
    """One check of one component: called, it raises AssertionError with what is wrong.

    As text it says which it is.
    """

    name: str
    steps: Steps = attrs.field(repr=False)
    known: str | None = None  # why it is known to fail: then it may, and has to
    target: Any = attrs.field(default=None, repr=False)  # class or function of the component

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Check, and raise AssertionError, also where nothing is wrong although that is known."""
        try:
            with tempfile.TemporaryDirectory(prefix="gradestack-check-") as folder, _undisturbed():
                self.steps(Path(folder))
        except (KeyboardInterrupt, NeedsExample):
            raise
        except BaseException as error:
            if self.known is None:
                is_of_work = self.name.endswith((": rules", ": same under any hash seed"))
                problem = with_line(problem_text(error), self.target, of_work=is_of_work)
                raise AssertionError(f"{self.name}: {problem}") from error
        else:
            advice = f"take it out of `known` ({self.known})"
            assert self.known is None, f"{self.name}: nothing is wrong any more; {advice}"


def _raise_too_long(*_: object) -> None:
    advice = "use less data, or search for what never ends"
    raise AssertionError(f"took longer than {SECONDS:g} s; {advice}")


def _process_settings() -> dict[str, Any]:
    shown = repr(decimal.getcontext().copy())
    context, _, _ = shown.partition(", flags=")
    return {
        "working directory": Path.cwd(),
        "environment": dict(os.environ),
        "decimal context": context,
    }


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Fail if the ``with`` block prints, takes too long or changes settings of the process."""
    before = _process_settings()
    printed = io.StringIO()
    process = os.getpid()
    try:
        with (
            ticking(SECONDS, _raise_too_long),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            yield
    finally:
        if os.getpid() != process:  # the child of a fork: it must not go on with the tests
            os._exit(1)
    settings = _process_settings().items()
    names = [f"the {name}" for name, setting in settings if setting != before[name]]
    changed = " and ".join(names)
    assert not names, f"it changes {changed}, which everything else in the process sees"
    text = printed.getvalue()
    assert not text, f"it prints {text[:80]!r}; say it in a reason, a remark or a warning"


def checks(
    package: str | Path,
    *,
    reads: Mapping[str, str | Path] | None = None,
    examples: Mapping[str, Sequence[Any]] | None = None,
    known: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the checks of everything a distribution or a Python file offers, for one parametrised
    test.

    Args:
        package: Name of an installed distribution, or a Python file.
        reads: Reader name -> a sound file of its format, with two records at least. Graders are
            checked over its samples, too, and the package is run on it, serially and in two
            processes.
        examples: Component name, or kind and name (``grader strict``) -> components made with
            options, in place of the one without; needed where an option is required. Of several
            components of a name each is given those of its kind.
        known: Name of a check -> why it fails: it may, and says when it does not any more.

    Raises:
        ConfigError: There is nothing to check, or a name is unknown; by its check, where a
            component needs an example.
        PluginError: It cannot be loaded.
    """
    examples = examples or {}
    known = known or {}
    file = Path(package).resolve() if str(package).endswith(".py") else None
    registry, plugins = _find_plugins(package, file)
    files = {}
    for name, path in (reads or {}).items():
        reader = registry.find("reader", name).name
        files[reader] = Path(path).resolve()
    parts = []
    for plugin in plugins:
        parts += [_make_part(component, plugin, examples) for component in plugin.components]
    context = _Context(registry, plugins, file, files, parts)
    checks_by_name: dict[str, Check] = {}
    for part in parts:
        for law, steps in context.checks_of(part):
            name = f"{part.title}{law}"
            checks_by_name[name] = Check(name, steps, known.get(name), part.target)
    for reader, path in files.items():
        name = f"run on {path.name}: same bytes on every engine"
        steps = partial(context.run_on, reader, path, str(package))
        checks_by_name[name] = Check(name, steps, known.get(name))
    used = set[str]()
    for part in parts:
        if part.examples:
            used |= {part.component.name, part.title}
    unknown = sorted([*(examples.keys() - used), *(known.keys() - checks_by_name.keys())])
    if unknown:
        what = f"nothing that is called {', '.join(unknown)}: there is nothing to check"
        raise ConfigError(f"{package} offers {what}")
    if not checks_by_name:
        raise _nothing_offered(package, registry, plugins)
    return [*checks_by_name.values()]


def _nothing_offered(
    package: str | Path, registry: Registry, plugins: Sequence[Plugin]
) -> ConfigError:
    """Return that a package offers nothing, or that there is no such package."""
    distributions = {plugin.distribution for plugin in registry.plugins}
    hint = suggest(str(package), distributions)
    what = f"no plugin is installed from a distribution of this name{hint}"
    if plugins:
        what = f"it offers nothing{hint}"
    advice = "name an installed distribution, or a file: FILE.py"
    return ConfigError(f"{package}: {what}; {advice}")


def _find_plugins(package: str | Path, file: Path | None) -> tuple[Registry, list[Plugin]]:
    """Return the registry of all installed plugins, and the plugins of a package or a file.

    Raises:
        PluginError: One of the package's cannot be loaded.
    """
    registry = with_files(discover(), [str(package)] if file else [], allow_code=True)
    name = normal(str(package))
    plugins = [plugin for plugin in registry.plugins if normal(plugin.distribution) == name]
    if file is not None:
        plugins = [registry.plugins[-1]]
    broken = [f"plugin {plugin}: {plugin.error}" for plugin in plugins if plugin.error]
    if broken:
        raise PluginError("; ".join(broken))
    return registry, plugins


@attrs.frozen
class _Part:
    """One component of a package, and the objects that its checks use."""

    component: Component
    plugin: Plugin
    target: Any
    examples: Sequence[Any] = ()
    """The author's own."""
    made: Sequence[Any] = ()
    """The examples, else the component without options, else with made-up ones."""
    lacks: str = ""
    """Why options are made up."""

    @property
    def title(self) -> str:
        return f"{self.component.kind} {self.component.name}"

    @property
    def name(self) -> str:
        return qualified(self.component, self.plugin)


def _make_part(
    component: Component, plugin: Plugin, examples: Mapping[str, Sequence[Any]]
) -> _Part:
    """Return a component with its examples, else as it is without options."""
    module, _, names = component.target.partition(":")
    target = None
    with suppress(Exception, SystemExit):  # said by the check of the component
        target = attrgetter(names)(importlib.import_module(module))
    part = _Part(component, plugin, target)
    of_name = examples.get(component.name, ())
    of_kind = [
        example for example in of_name if getattr(example, "contract", None) == component.kind
    ]
    own_examples = [*examples.get(part.title, ()), *of_kind]
    if own_examples:
        return attrs.evolve(part, examples=own_examples, made=own_examples)
    if component.kind in FUNCTIONS:
        return part
    try:
        loaded = Registry.loaded(component, plugin)
        instance = structure({}, loaded)
    except Problems as problems:
        texts = []
        for location, text in problems.listed:
            texts.append(f"{show_location(location)} {text}")
        return attrs.evolve(part, made=_make_up(target), lacks="; ".join(texts))
    except (Exception, SystemExit):  # noqa: BLE001 - said by the check of the component
        return part
    return attrs.evolve(part, made=[instance])


_MADE_UP = {"string": "x", "integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}


def _make_up(target: Any) -> list[Any]:
    """Return a component whose required options are made up by their types; none where it fails."""
    schema = class_schema(target)
    options = {}
    for name in schema.get("required", ()):
        of_option = schema["properties"][name]
        made_up = _MADE_UP.get(of_option.get("type", ""))
        options[name] = (of_option.get("enum") or [made_up])[0]
    with suppress(Exception):
        return [structure(options, target)]
    return []


class _Context:
    """The package whose components are checked, and what they are checked on."""

    def __init__(
        self,
        registry: Registry,
        plugins: Sequence[Plugin],
        file: Path | None,
        files: Mapping[str, Path],
        parts: Sequence[_Part],
    ) -> None:
        """Read the samples of the files by which the parts of a package are checked."""
        self.registry = registry
        self.plugins = plugins
        self.file = file
        self.files = files
        """Reader name -> a file of its format."""
        self.parts = parts
        self.samples: list[Sample] = []
        for name, path in files.items():
            self.samples += _samples(registry, name, path)

    def checks_of(self, part: _Part) -> Iterator[tuple[str, Steps]]:
        """Yield the checks of one component."""
        yield ": metadata", lambda _: check_component(part.component)
        if part.lacks:
            yield ": has an example", partial(_raise_needs_example, part)
        for number, component in enumerate(part.made):
            for law, steps in self._laws(part, component):
                checked = partial(_check_made_up, steps) if part.lacks else steps
                position = ""
                if number:
                    position = f"[{number}]"
                yield f"{position}: {law}", checked
        if part.component.kind == "stack":
            yield ": resolves", partial(self._check_stack, part.name)

    def _laws(self, part: _Part, component: Any) -> Iterator[tuple[str, Steps]]:
        """Yield name and check of each law that applies to the kind of a component."""
        path = None
        if part.component.kind == "reader":
            reader = self.registry.find("reader", part.component.name)
            path = self.files.get(reader.name)
        if isinstance(component, Grader):
            yield "rules", lambda _: check_grader(component, self.samples)
            yield "aggregators exist", lambda _: _check_metrics(component, self.registry)
        elif isinstance(component, Aggregator):
            yield "rules", lambda _: self._check_aggregator(component, part)
        elif isinstance(component, Extractor):
            yield "rules", lambda _: check_extractor(component, self.samples)
        elif path is not None:
            reader_path = path
            yield "rules", lambda scratch: check_reader(component, reader_path, scratch=scratch)
        if isinstance(component, Grader | Aggregator) or path is not None:
            yield "same under any hash seed", lambda _: check_hash_seeds(component, path, self.file)

    def _check_aggregator(self, aggregator: Aggregator, part: _Part) -> None:
        """Check an aggregator over random grades, and over those of the graders that it runs on."""
        check_aggregator(aggregator)
        names = {part.component.name, part.name}
        for grader in (component for other in self.parts for component in other.made):
            if isinstance(grader, Grader) and names.intersection(grader.metrics):
                check_aggregator(aggregator, _grade_all(grader, self.samples))

    def _check_stack(self, name: str, scratch: Path) -> None:
        stack_for(self.registry, name)
        files = self.files.items()
        for reader, path in [*files][:1]:
            paths = [str(path)]
            target = {"paths": paths, "reader": reader}
            suite = {"name": "check", "target": target, "stack": name}
            output = scratch / "out"
            run(suite, output=output, registry=self.registry)

    def run_on(self, reader: str, path: Path, package: str, scratch: Path) -> None:
        """Run what a package offers on a file, on two engines.

        Nothing of it is broken, and all bytes are the same.
        """
        suite = self._suite_of(reader, path)
        registry = _without_panels(self.registry, self.plugins)
        if self.file is not None:
            suite["plugins"] = [package]
            registry = Registry(registry.plugins[:-1])
        out = scratch / "out"
        written = []
        for engine in ("serial", {"kind": "processes", "workers": 2}, *self._names("engine")):
            variant = {**suite, "engine": engine}
            report = run(variant, output=out, registry=registry, allow_code=True, strict=True)
            errors = report.summary.get("broken", {})
            broken = [f"{name} is broken: {text}" for name, text in errors.items()]
            assert not broken, "; ".join(broken)
            contents = {}
            for file in out.rglob("*"):
                if file.is_file() and file.name != "header.json":
                    contents[str(file.relative_to(scratch))] = file.read_bytes()
            written.append(contents)
        differing = set[str]()
        serial_contents, *other_contents = written
        for engine_contents in other_contents:
            differing |= {
                name
                for name in serial_contents
                if serial_contents[name] != engine_contents.get(name)
            }
        names = ", ".join(sorted(differing))
        assert not differing, f"serial and processes write other bytes: {names}"

    def _made(self, kind: str) -> dict[str, Any]:
        """Return the components of a kind that can be made without options."""
        instances = {}
        for part in self.parts:
            if part.component.kind == kind and part.made and not part.examples:
                instances[part.name] = part.made[0]
        return instances

    def _names(self, kind: str) -> list[str]:
        lacking = {part.name for part in self.parts if part.lacks}
        names = self._made(kind)
        return [name for name in names if name not in lacking]

    def _suite_of(self, reader: str, path: Path) -> dict[str, Any]:
        """Return a suite that runs everything of the package that fits a file."""
        component = self.registry.load("reader", reader)
        own_graders = self._made("grader")
        own_exporters = self._made("exporter")
        names = self._names("grader")
        graders = [name for name in names if own_graders[name].needs <= component.provides]
        bare_name = reader.rpartition(":")[2]
        bare_graders = {name.rpartition(":")[2] for name in graders}
        exporters, exported = [], set[str]()
        for name in self._names("exporter"):
            exporter = own_exporters[name]
            is_plain = all(map(self._is_made_plainly, exporter.graders))
            if exporter.reader == bare_name and is_plain:
                exporters.append(name)
                exported.update(exporter.graders)
        graders += sorted(exported - bare_graders)
        paths = [str(path)]
        target = {"paths": paths, "reader": reader}
        reports = ["html", "markdown", *self._names("reporter")]
        stack = None if graders else component.stack or "auto"
        return {
            "name": "check",
            "target": target,
            "reports": reports,
            "exporters": exporters,
            "stack": stack,
            "graders": {f"g{number}": name for number, name in enumerate(graders)},
        }

    def _is_made_plainly(self, grader: str) -> bool:
        """Return whether all options of a grader have defaults."""
        with suppress(Problems):
            structure({}, self.registry.load("grader", grader))
            return True
        return False


def _raise_needs_example(part: _Part, _: Path) -> None:
    raise NeedsExample(f"{part.lacks} (examples={{{part.title!r}: [...]}} of testing.checks)")


def _check_made_up(steps: Steps, scratch: Path) -> None:
    """Check a component whose options are made up: what it raises may be their fault."""
    try:
        steps(scratch)
    except Exception as error:
        if isinstance(error.__cause__ or error, AssertionError):  # the component's own
            raise
        raise NeedsExample(f"{problem_text(error)} (with options made up)") from error


def _without_panels(registry: Registry, plugins: Sequence[Plugin]) -> Registry:
    """Return a registry without the panels of other packages: what these break is not ours."""
    without = []
    for plugin in registry.plugins:
        if plugin not in plugins and plugin.distribution != BUILT_IN:
            others = [part for part in plugin.components if part.kind != "panel"]
            plugin = plugin._replace(components=tuple(others))  # noqa: PLW2901
        without.append(plugin)
    return Registry(without, registry.unknown)


def _samples(registry: Registry, name: str, path: Path) -> list[Sample]:
    # what goes wrong is said by the check of the reader
    with suppress(Exception), ticking(SECONDS, _raise_too_long):
        return list(samples_of(registry.load("reader", name)(), inputs_of(path), _FIRST))
    return []


def _check_metrics(grader: Grader, registry: Registry) -> None:
    for name in grader.metrics:
        try:
            registry.find("aggregator", name)
        except GradestackError as error:
            raise AssertionError(f"its `metrics` name one that is not there: {error}") from error


def _grade_all(grader: Grader, samples: Iterable[Sample]) -> list[tuple[Key, Any]]:
    graded = []
    for ordinal, sample in enumerate([*samples, *nasty_samples()]):
        with suppress(Exception):  # said by the check of the grader
            grade = explained_grade(grader, sample)
            key = Key(id=sample.id, model=sample.model, ordinal=ordinal, facets=sample.facets)
            graded.append((key, grade))
    return graded

"""All checks of a distribution's components, or of those of one Python file, as a list for parametrised tests."""

from __future__ import annotations

import contextlib
import decimal
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Aggregator, Extractor, Grader, Input, Inputs
from gradestack.errors import ConfigError, PluginError, suggest
from gradestack.hooks import Component
from gradestack.interpreter import ticking
from gradestack.model import Sample
from gradestack.python_api import run
from gradestack.registry import Plugin, Registry, bare, discover, normal
from gradestack.suites.code import with_files
from gradestack.suites.components import samples_of, stack_for
from gradestack.suites.strict import Problems, structure
from gradestack.testing.checks import (
    check_aggregator,
    check_component,
    check_extractor,
    check_grader,
    check_hash_seeds,
    check_reader,
    what_is_wrong,
)

SECONDS = 10.0
"""How long one check may take."""
_FIRST = 200
"""Samples of each file that graders are checked over."""
_BROKEN = ("is broken", "left out", "changes samples", "two grades", "order of tasks")
"""What warnings say of components that are not sound."""


@attrs.frozen(eq=False)
class Check:
    """One check of one component: called, it raises AssertionError with what is wrong; as text it says which it is."""

    name: str
    steps: Callable[[Path], object] = attrs.field(repr=False)
    known: str | None = None
    """Why it is known to fail: then it may, and has to."""

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Check, and raise AssertionError, also where nothing is wrong although that is known."""
        try:
            with tempfile.TemporaryDirectory(prefix="gradestack-check-") as place, _undisturbed():
                self.steps(Path(place))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if self.known is None:
                raise AssertionError(f"{self.name}: {what_is_wrong(error)}") from error
        else:
            assert self.known is None, f"{self.name}: nothing is wrong any more; take it out of `known` ({self.known})"


def _too_long(*_: object) -> None:
    raise AssertionError(f"took longer than {SECONDS:g} s; use less data, or search for what never ends")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Refuse what a component may not change of the process it runs in."""

    def settings() -> dict[str, Any]:
        return {
            "the working directory": Path.cwd(),
            "the environment": dict(os.environ),
            "the decimal context": repr(decimal.getcontext().copy()).partition(", flags=")[0],
        }

    before, printed, process = settings(), io.StringIO(), os.getpid()
    try:
        with ticking(SECONDS, _too_long), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            yield
    finally:
        if os.getpid() != process:  # it forked
            os._exit(1)
    changed = [what for what, each in settings().items() if each != before[what]]
    assert not changed, f"it changes {' and '.join(changed)}, which everything else in the process sees"
    text = printed.getvalue()
    assert not text, f"it prints {text[:80]!r}; say it in a reason, a remark or a warning"


def checks(
    package: str | Path,
    *,
    reads: Mapping[str, str | Path] | None = None,
    examples: Mapping[str, Sequence[Any]] | None = None,
    known: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the checks of everything a distribution or a Python file offers, for one parametrised test.

        @pytest.mark.parametrize("check", testing.checks("gradestack-acme", reads={"acme": FILE}), ids=str)
        def test_it_keeps_the_contract(check):
            check()

    Args:
        package: Name of an installed distribution, or a Python file.
        reads: Reader name -> a sound file of its format, with two records at least. Graders are checked over its
            samples, too, and the package is run on it, serially and in two processes.
        examples: Component name -> components made with options, in place of the one without; needed where an option
            is required.
        known: Name of a check -> why it fails: it may, and says when it does not any more.

    Raises:
        ConfigError: There is nothing to check, a component has required options and no example, or a name is unknown.
        PluginError: It cannot be loaded.
    """
    file = Path(package).resolve() if str(package).endswith(".py") else None
    registry = with_files(discover(), [str(package)] if file else [], allow_code=True)
    owned = (each for each in registry.plugins if normal(each.distribution) == normal(str(package)))
    plugins = [registry.plugins[-1]] if file else list(owned)
    given = dict(examples or {})
    files = {registry.spelled("reader", name): Path(path).resolve() for name, path in (reads or {}).items()}
    if broken := [f"plugin {each}: {each.error}" for each in plugins if each.error]:
        raise PluginError("; ".join(broken))
    found: dict[str, Callable[[Path], object]] = {}
    own: dict[tuple[str, str], Any] = {}
    samples = [each for name, path in files.items() for each in _samples(registry, name, path)]
    for component, plugin in [(component, each) for each in plugins for component in each.components]:
        what, name = f"{component.kind} {component.name}", f"{normal(plugin.distribution)}:{component.name}"
        found[f"{what}: is what it says"] = lambda _, component=component: check_component(component)  # type: ignore[misc]
        for number, made in enumerate(_made(component, plugin, given.pop(component.name, None))):
            own |= {} if examples and component.name in examples else {(component.kind, name): made}
            path = files.get(registry.spelled("reader", name)) if component.kind == "reader" else None
            for law, steps in _laws(made, registry, samples, path, file).items():
                found[f"{what}{f'[{number}]' if number else ''}: {law}"] = steps
        if component.kind == "stack":
            found[f"{what}: resolves"] = partial(_stack, registry, name, next(iter(files.items()), None))
    for name, path in files.items():
        found[f"run on {path.name}: same bytes on every engine"] = partial(
            _run, registry, own, name, path, str(package) if file else None
        )
    if wrong := ", ".join([*given, *(set(known or ()) - found.keys())]):
        raise ConfigError(f"{package} offers nothing that is called {wrong}: there is nothing to check")
    if not found:
        what = "it offers nothing" if plugins else "no plugin is installed from a distribution of this name"
        hint = suggest(str(package), {each.distribution for each in registry.plugins})
        raise ConfigError(f"{package}: {what}{hint}; name an installed distribution, or a file: FILE.py")
    return [Check(name, steps, (known or {}).get(name)) for name, steps in found.items()]


def _made(component: Component, plugin: Plugin, examples: Sequence[Any] | None) -> list[Any]:
    if component.kind in ("stack", "command", "panel"):
        return []
    if examples:
        return list(examples)
    try:
        return [structure({}, Registry.loaded(component, plugin))]
    except Problems as problems:
        told = "; ".join(f"{'.'.join(map(str, place))} {text}" for place, text in problems.found)
        why = f"{told} (examples={{{component.name!r}: [...]}} of testing.checks)"
        raise ConfigError(f"{component.kind} {component.name} needs an example: {why}") from problems
    except (Exception, SystemExit):  # noqa: BLE001 - said by the check of the component
        return []


def _samples(registry: Registry, name: str, path: Path) -> list[Sample]:
    inputs = Inputs(data=(Input(path=path, name=path.stem, shown=path.name),))
    with contextlib.suppress(Exception), ticking(SECONDS, _too_long):  # said by the check of the reader
        return list(samples_of(registry.load("reader", name)(), inputs, _FIRST))
    return []


def _laws(
    made: Any, registry: Registry, samples: Sequence[Sample], path: Path | None, file: Path | None
) -> dict[str, Callable[[Path], object]]:
    """Return the checks of one component by the law they are of."""
    found: dict[str, Callable[[Path], object]] = {}
    if isinstance(made, Grader):
        found["laws"] = lambda _: check_grader(made, samples)
        found["aggregators are there"] = lambda _: [registry.find("aggregator", name) for name in made.aggregators]
    elif isinstance(made, Aggregator):
        found["laws"] = lambda _: check_aggregator(made)
    elif isinstance(made, Extractor):
        found["laws"] = lambda _: check_extractor(made, samples)
    elif path is not None:
        found["laws"] = lambda scratch: check_reader(made, path, scratch=scratch)
    if isinstance(made, Grader | Aggregator) or path is not None:
        found["hash seeds"] = lambda _: check_hash_seeds(made, path, file)
    return found


def _stack(registry: Registry, name: str, read: tuple[str, Path] | None, scratch: Path) -> None:
    stack_for(registry, name)
    if read is not None:
        target = {"paths": [str(read[1])], "reader": read[0]}
        run({"name": "check", "target": target, "stack": name}, output=scratch / "out", registry=registry)


def _run(
    registry: Registry, own: Mapping[tuple[str, str], Any], reader: str, path: Path, file: str | None, scratch: Path
) -> None:
    """Run what a package offers on a file, on two engines: nothing of it is broken, and all bytes are the same."""
    its = registry.load("reader", reader)
    used = {kind: [name for each, name in own if each == kind] for kind in ("reporter", "engine")}
    graders = [name for (kind, name), each in own.items() if kind == "grader" and each.requires <= its.provides]
    exporters = [name for (kind, name), each in own.items() if kind == "exporter" and each.reader == bare(reader)]
    wanted = {name for each in exporters for name in own["exporter", each].graders} - set(map(bare, graders))
    suite: dict[str, Any] = {
        "name": "check",
        "target": {"paths": [str(path)], "reader": reader},
        "reports": ["html", "markdown", *used["reporter"]],
        "exporters": exporters,
        "stack": None if graders or wanted else its.stack or "auto",
        "graders": {f"g{number}": name for number, name in enumerate([*graders, *sorted(wanted)])},
        "plugins": [file] if file else [],
    }
    registry = Registry(registry.plugins[:-1]) if file else registry  # the suite names the file
    written = []
    for engine in ("serial", {"kind": "processes", "workers": 2}, *used["engine"]):
        report = run({**suite, "engine": engine}, output=scratch / "out", registry=registry, allow_code=True)
        told = [text for text in report.summary["warnings"] if any(law in text for law in _BROKEN)]
        assert not told, "; ".join(told)
        pages = (each for each in (scratch / "out").rglob("*") if each.is_file() and each.name != "header.json")
        written.append({each.relative_to(scratch): each.read_bytes() for each in pages})
    differ = {str(name) for files in written[1:] for name in written[0] if written[0][name] != files.get(name)}
    assert not differ, f"serial and processes write other bytes: {', '.join(sorted(differ))}"

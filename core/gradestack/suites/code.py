"""Code of the user's own.

What a suite or the command line takes from Python files, once that is allowed.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from gradestack.api import Contract, Grader
from gradestack.copies.files import path_of
from gradestack.errors import LOCAL_CODE, ConfigError, error_text, suggest
from gradestack.hooks import NAME, Component, Kind
from gradestack.model import Sample
from gradestack.patterns import compile_later
from gradestack.registry import Plugin, Registry, discover, flaw
from gradestack.regular_files import checksum

FUNCTIONS, RECORDS = "python_function", "records"
"""The grader that functions are graded with.

The reader of data frames, and of mappings of any form.
"""
Samples = Iterable[Sample | Mapping[str, Any]]
Graders = str | Grader | type[Grader] | Callable[..., Any]
"""What callers in Python may give."""
_IN_FILE = compile_later(r"(.+\.py)(?::(.*))?")


class InFile(msgspec.Struct, frozen=True):
    """``FILE.py:NAME``, a reference to something in a Python file."""

    file: str
    name: str

    @classmethod
    def parse(cls, reference: Any) -> InFile | None:
        """Split ``FILE.py:NAME`` into file and name; None for an installed component's name."""
        match = None
        if isinstance(reference, str):
            match = _IN_FILE.fullmatch(reference)
        if match:
            return cls(match[1], match[2] or "")
        return None

    @property
    def shown(self) -> str:
        """The reference without the folder.

        The component's name in results, which do not depend on locations.
        """
        return f"{Path(self.file).name}:{self.name}"


def key_of(reference: str) -> str:
    """Return the grader key of a reference that was given without one.

    Its name in snake case, of a file alone its.
    """
    file, _, name = reference.rpartition(":")
    name = name or file
    return snake(Path(name).stem if name.endswith(".py") else name)


def by_key(graders: Iterable[tuple[str, Any]], advice: str) -> dict[str, Any]:
    """Return graders by key."""
    keyed: dict[str, Any] = {}
    for key, grader in graders:
        if key in keyed:
            raise ConfigError(f"two graders are called {key!r}; {advice}")
        keyed[key] = grader
    return keyed


def snake(name: str) -> str:
    """Return a class's name as components are called: ``FewCalls`` is ``few_calls``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


_IMPORTED: set[str] = set()
"""Modules that files of the user's own have imported from their folders."""


def _sha256(file: str) -> str:
    path = Path(file)
    return checksum(path) if path.is_file() else ""


def _code_of(path: Path) -> dict[str, str]:
    """Map the module of a loaded file, and those imported from its folder, to their files."""
    text = str(path)
    digest = hashlib.blake2b(text.encode(), digest_size=6)
    files = {f"gradestack_user_code_{path.stem}_{digest.hexdigest()}": text}
    folder = str(path.parent)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        stem = os.path.join(folder, *name.split("."))  # noqa: PTH118
        package = os.path.join(stem, "__init__.py")  # noqa: PTH118
        if file in (f"{stem}.py", package):
            files[name] = file
    return files


def _is_loaded(file: str) -> bool:
    return LOCAL_CODE.get(file) == _sha256(file)


def load_file(path: Path) -> ModuleType:
    """Return the module of a Python file of the user's own.

    It runs again only where code it consists of has changed.

    While it runs its folder is on ``sys.path``, as a script's is.
    """
    shown, path = path, path.resolve()
    modules = _code_of(path)
    name = next(iter(modules))
    same = {known for known, file in modules.items() if _is_loaded(file)}
    if name in sys.modules and same == modules.keys():
        return sys.modules[name]
    if not path.is_file():
        raise ConfigError(f"{shown}: no such Python file")
    for other in _IMPORTED - same:  # in another folder the same name is another module
        _IMPORTED.discard(other)
        sys.modules.pop(other, None)
    for file in path.parent.glob("*.py"):  # errors name lines of what is imported
        LOCAL_CODE.setdefault(str(file), "")
    before = set(sys.modules)
    module = ModuleType(name)
    module.__file__, sys.modules[name] = str(path), module
    try:
        with _script_folder(path.parent):
            code = compile(path.read_bytes(), path, "exec", dont_inherit=True)
            exec(code, vars(module))  # noqa: S102 - only called under --allow-code
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        raise ConfigError(f"{shown}: cannot be imported: {error_text(error)}") from error
    finally:
        modules = _code_of(path)
        _IMPORTED.update(modules.keys() - before - {name})
        LOCAL_CODE.update({known: _sha256(known) for known in modules.values()})
    return module


@contextmanager
def _script_folder(folder: Path) -> Iterator[None]:
    """Put a folder first on ``sys.path`` and write no bytecode while the ``with`` block runs.

    Python puts the folder of a script there, too. Bytecode files would hide changes of the code
    that happen within one second.
    """
    wrote_no_bytecode = sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = wrote_no_bytecode


def code_of_component(component: Any, path: Path | None) -> dict[str, str]:
    """Return the user's own files that a component consists of, by their name in its folder ->
    SHA-256.
    """
    module = sys.modules.get(type(component).__module__)
    file = path or getattr(module, "__file__", None)
    if file is None or str(file) not in LOCAL_CODE:
        return {}
    from modulefinder import ModuleFinder  # noqa: PLC0415 - takes its time

    folder = Path(file).parent
    finder = ModuleFinder([str(folder)])
    finder.run_script(str(file))
    modules: Iterable[Any] = finder.modules.values()
    files = {module.__file__ for module in modules if module.__file__}
    code = {}
    for name in sorted(files):
        below = Path(name).relative_to(folder)
        digest = LOCAL_CODE.get(name) or _sha256(name)
        code[below.as_posix()] = digest
    return code


class LocalFiles(msgspec.Struct, frozen=True):
    """Files of the user's own that a run uses.

    Unpickled, it loads them: what is of their classes follows it.
    """

    paths: tuple[Path, ...] = ()
    digests: Mapping[str, str] = msgspec.field(default_factory=dict)
    """SHA-256 of every file and of the modules of its folder that it imports, by full path."""

    @classmethod
    def load(cls, paths: Iterable[Path]) -> LocalFiles:
        """Load files; see ``load_file``."""
        loaded, files = [], set[str]()
        for path in paths:
            module = load_file(path)
            file = Path(str(module.__file__))
            loaded.append(file)
            files.update(_code_of(file).values())
        digests = {file: LOCAL_CODE[file] for file in sorted(files)}
        return cls(tuple(loaded), digests)

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_again, (self.paths, self.digests)


def _load_again(paths: tuple[Path, ...], digests: Mapping[str, str]) -> LocalFiles:
    changed = [file for file, digest in digests.items() if _sha256(file) != digest]
    if changed:
        raise ConfigError("code of a run is not what it was when the run was begun", *changed)
    for path in paths:
        load_file(path)
    return LocalFiles(paths, digests)


def from_file(
    reference: InFile, kind: Kind, path: Path, registry: Registry
) -> tuple[Plugin, dict[str, str]]:
    """Return a plugin that has the component a reference names alone, and the options that find it
    again.
    """
    module = load_file(path)
    component = getattr(module, reference.name, None)
    target = f"{module.__name__}:{reference.name}"
    options = dict[str, str]()
    is_function = callable(component) and not isinstance(component, type)
    is_function = is_function and kind == "grader"
    if component is None:
        raise ConfigError(_lacks(reference, kind, path.name, module))
    problem = None if is_function else flaw(component, kind)
    if problem is not None:
        also = ""
        if problem.endswith(".Grader"):
            also = ", nor a function"
        shown = f"{reference.name}{_line_of(component, path)}"
        raise ConfigError(f"{shown} {problem}{also}")
    if is_function:
        options = {"file": reference.file, "name": reference.name}
        target = registry.find("grader", FUNCTIONS).component.target
    named = Component(kind=kind, name=reference.shown, target=target, summary="")
    return _plugin(path, named), options


def _line_of(component: Any, path: Path) -> str:
    with suppress(OSError, TypeError):  # it is no class
        _, line = inspect.getsourcelines(component)
        return f" ({path.name}:{line})"
    return ""


def _lacks(reference: InFile, kind: Kind, file: str, module: ModuleType) -> str:
    """Write that a file lacks the component that a reference names, and list the ones it has."""
    known = []
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", "") == module.__name__
        is_meant = _is_component(value) and value.contract == kind
        if kind == "grader" and inspect.isfunction(value):
            is_meant = True
        if is_own and is_meant:
            known.append(name)
    names = ", ".join(known)
    has = f"; there are: {names}" if known else f"; it has no {kind}"
    if not reference.name:
        return f"no {kind} of {file} is named; write {reference.file}:NAME{has}"
    hint = suggest(reference.name, known) or has
    return f"{file} has no {reference.name!r}{hint}"


def file_plugin(path: Path) -> Plugin:
    """Return the components of a file as a plugin, as if it were installed.

    By its hooks, components else as classes.
    """
    module = load_file(path)
    has_hooks = hasattr(module, "gradestack_components")
    attributes = vars(module).values()
    has_hooks |= any(hasattr(value, f"{NAME}_impl") for value in attributes)
    if has_hooks:
        extra = [(path.name, module)]
        plugin = discover(extra, limit="").plugins[-1]
        if plugin.error:
            raise ConfigError(f"{path.name}: {plugin.error}")
        return plugin
    components, flaws = [], []
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", "") == module.__name__
        if not is_own or not _is_contract(value) or name.startswith("_"):
            continue
        target = f"{module.__name__}:{name}"
        if inspect.isabstract(value):
            problem = flaw(value, value.contract)
            flaws.append(f"{name} {problem}")
        else:
            components.append(Component(value.contract, snake(name), target, name))
    if not components:
        none = "no class derived from gradestack.Grader or another contract"
        why = "; ".join(flaws) or none
        raise ConfigError(f"{path.name} has no component: {why}")
    return _plugin(path, *components)


def with_files(registry: Registry, files: Iterable[str], *, allow_code: bool) -> Registry:
    """Return a registry with what Python files offer."""
    for file in files:
        if not allow_code:
            raise ConfigError(f"{file} is Python code; pass --allow-code if you trust it")
        plugin = file_plugin(path_of(file))
        registry = registry.extended(plugin)
    return registry


def _plugin(path: Path, *components: Component) -> Plugin:
    return Plugin(name=path.name, distribution="local", version="0", components=components)


def _is_contract(value: Any) -> bool:
    if inspect.isfunction(value):
        return hasattr(value, "contract")
    return isinstance(value, type) and issubclass(value, Contract) and hasattr(value, "contract")


def _is_component(value: Any) -> bool:
    return _is_contract(value) and not inspect.isabstract(value)

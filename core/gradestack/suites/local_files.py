"""Python files of the user's own: loaded as modules, told apart by their content, loaded again in other processes."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from gradestack.errors import ConfigError
from gradestack.plugin_errors import LOCAL_CODE, error_text

_BESIDE: set[str] = set()
"""Modules that files of the user's own imported from their folders."""


def _sha256(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if Path(file).is_file() else ""


def _code_of(path: Path) -> dict[str, str]:
    """Return the module a file is loaded as, and those imported from its folder as a script's are: name -> file."""
    digest = hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()
    found = {f"gradestack_user_code_{path.stem}_{digest}": str(path)}
    for name, module in list(sys.modules.items()):
        file, stem = getattr(module, "__file__", None), os.path.join(path.parent, *name.split("."))  # noqa: PTH118
        if file in (f"{stem}.py", f"{stem}{os.sep}__init__.py"):
            found[name] = file
    return found


def load_file(path: Path) -> ModuleType:
    """Return the module of a Python file of the user's own; it runs again only where code it consists of has changed.

    While it runs its folder stands on ``sys.path``, as a script's does.

    Raises:
        ConfigError: There is no such file, or it raises; with its line.
    """
    shown, path = path, path.resolve()
    modules = _code_of(path)
    name, same = next(iter(modules)), {each for each, file in modules.items() if LOCAL_CODE.get(file) == _sha256(file)}
    if name in sys.modules and same == modules.keys():
        return sys.modules[name]
    if not path.is_file():
        raise ConfigError(f"{shown}: no such Python file")
    for other in _BESIDE - same:  # in another folder the same name is another module
        _BESIDE.discard(other)
        sys.modules.pop(other, None)
    LOCAL_CODE.update({str(file): "" for file in path.parent.glob("*.py")} | LOCAL_CODE)
    before, bytecode, module = set(sys.modules), sys.dont_write_bytecode, ModuleType(name)
    module.__file__, sys.modules[name] = str(path), module
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True  # bytecode is told from newer code by the second only
    importlib.invalidate_caches()
    try:
        code = compile(path.read_bytes(), path, "exec", dont_inherit=True)  # of this file's future
        exec(code, vars(module))  # noqa: S102 - only called under --allow-code
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        raise ConfigError(f"{shown}: cannot be imported: {error_text(error)}") from error
    finally:
        sys.path.remove(str(path.parent))
        sys.dont_write_bytecode = bytecode
        modules = _code_of(path)
        _BESIDE.update(modules.keys() - before - {name})
        LOCAL_CODE.update((file, _sha256(file)) for file in modules.values())
    return module


def code_of_component(component: Any, path: Path | None) -> dict[str, str]:
    """Return the user's own code that a component consists of, files by their name in its folder -> SHA-256.

    That is the file that it was taken from and whatever this imports from its folder; nothing for installed components.
    """
    file = path or getattr(sys.modules.get(type(component).__module__), "__file__", None)
    if file is None or str(file) not in LOCAL_CODE:
        return {}
    folder, beside = Path(file).parent, _code_of(Path(file))
    found, waiting = {str(file)}, [str(file)]
    while waiting:
        imported = _imported(waiting.pop())
        new = {each for name, each in beside.items() if name.partition(".")[0] in imported} - found
        found |= new
        waiting += new
    return {Path(each).relative_to(folder).as_posix(): LOCAL_CODE[each] or _sha256(each) for each in sorted(found)}


def _imported(file: str) -> set[str]:
    """Return the first parts of the names of modules that a file imports; those of its own package it came with."""
    nodes = list(ast.walk(ast.parse(Path(file).read_bytes())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


@attrs.frozen
class LocalFiles:
    """Files of the user's own that a run uses. Unpickled, it loads them: what is of their classes follows it."""

    paths: tuple[Path, ...] = ()
    digests: Mapping[str, str] = attrs.field(factory=dict)
    """SHA-256 of every file and of the modules of its folder that it imports, by full path."""

    @classmethod
    def load(cls, paths: Iterable[Path]) -> LocalFiles:
        """Load files; see :func:`load_file`."""
        loaded = [Path(str(load_file(path).__file__)) for path in paths]
        files = sorted({file for path in loaded for file in _code_of(path).values()})
        return cls(tuple(loaded), {file: LOCAL_CODE[file] for file in files})

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_again, (self.paths, self.digests)


def _load_again(paths: tuple[Path, ...], digests: Mapping[str, str]) -> LocalFiles:
    changed = [file for file, digest in digests.items() if _sha256(file) != digest]
    if changed:
        raise ConfigError("code of a run is not what it was when the run was begun", *changed)
    for path in paths:
        load_file(path)
    return LocalFiles(paths, digests)

"""Python files of the user's own: loaded as modules, told apart by their content, loaded again in other processes."""

from __future__ import annotations

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
    code = _code_of(path)
    name, same = next(iter(code)), {each for each, file in code.items() if LOCAL_CODE.get(file) == _sha256(file)}
    if name in sys.modules and same == code.keys():
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
        exec(compile(path.read_bytes(), path, "exec"), vars(module))  # noqa: S102 - only called under --allow-code
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"{shown}: cannot be imported: {error_text(error)}") from error
    finally:
        sys.path.remove(str(path.parent))
        sys.dont_write_bytecode = bytecode
        code = _code_of(path)
        _BESIDE.update(code.keys() - before - {name})
        LOCAL_CODE.update((file, _sha256(file)) for file in code.values())
    return module


@attrs.frozen
class LocalFiles:
    """Files of the user's own that a run uses. Unpickled, it loads them: what is of their classes follows it."""

    paths: tuple[Path, ...] = ()
    digests: Mapping[str, str] = attrs.field(factory=dict)
    """SHA-256 of every file and of the modules of its folder that it imports, by full path."""

    @classmethod
    def load(cls, paths: Iterable[Path], known: Mapping[str, str] | None = None) -> LocalFiles:
        """Load files, which must be as they were ``known`` to be when the run was begun."""
        loaded = [Path(str(load_file(path).__file__)) for path in paths]
        files = sorted({file for path in loaded for file in _code_of(path).values()})
        found = cls(tuple(loaded), {file: LOCAL_CODE[file] for file in files})
        if known is not None and found.digests != known:
            raise ConfigError("code of a run has changed since it was begun", *known)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFiles.load, (self.paths, self.digests)

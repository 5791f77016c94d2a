"""What copies of inputs are copies of, and where they lie."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from gradestack.errors import GradestackError

STANDARD_INPUT: Final = "-"

_given: dict[Path, str] = {}
"""Copy -> what it is a copy of, as an absolute path, an address or ``-``."""
_spelled: dict[Path, str] = {}
"""Copy -> how what it is a copy of was written last."""
_folders: list[Path] = []
_owner: list[int] = []
"""The process that has made the folder, and removes it."""


def new_folder() -> Path:
    """Return a new directory for copies, below one that this process removes when it ends."""
    if not _folders:
        _folders.append(Path(tempfile.mkdtemp(prefix="gradestack-")).resolve())
        _owner.append(os.getpid())
        atexit.register(remove_copies)
    return Path(tempfile.mkdtemp(dir=_folders[0]))


def remove_copies() -> None:
    """Remove all copies, as is done anyway when the interpreter comes to its end."""
    if os.getpid() in _owner:  # no forked worker
        for folder in _folders:
            shutil.rmtree(folder, ignore_errors=True)


def note(copy: Path, path: Path) -> None:
    """Remember the local file or directory that a copy is of, or what that one is a copy of."""
    _given[copy] = _name(path) or str(path.absolute())
    _spelled[copy] = _spelled.get(path, str(path))


def note_address(copy: Path, address: str) -> Path:
    """Remember the address that a copy is of, as it may be shown, or ``-`` for standard input; return the copy."""
    _given[copy] = _spelled[copy] = address
    return copy


def original(path: Path) -> Path:
    """Return the local file or directory a path is a copy of; of anything else the path itself."""
    name = _name(path)
    return Path(name) if name is not None and Path(name).is_absolute() else path


def name_of(path: Path) -> str:
    """Return what people call an input: its absolute path, its address, or ``-`` for standard input."""
    return _name(path) or str(path.resolve())


def shown_path(path: Path) -> Path:
    """Return the path whose last parts stand for an input in messages and rows: ``stdin`` for standard input."""
    name = _name(path)
    return path if name is None else Path("stdin" if name == STANDARD_INPUT else name)


def is_copy(path: Path) -> bool:
    """Return whether a path lies in the directory of copies, or is it."""
    return bool(_folders) and path.is_relative_to(_folders[0])


def is_fetched(path: Path) -> bool:
    """Return whether a path is a copy of what cannot be read again: standard input, or a remote file."""
    name = _name(path)
    return name is not None and not Path(name).is_absolute()


def _name(path: Path) -> str | None:
    """Return what a path is a copy of, also one below a directory that was copied."""
    if not _given:
        return None
    if (name := _given.get(path)) is not None:
        return name
    for parent in path.parents:
        if (name := _given.get(parent)) is not None:
            return f"{name}/{path.relative_to(parent).as_posix()}"
    return None


@contextmanager
def named_as_given() -> Iterator[None]:
    """Raise errors with the names of inputs in place of those of their copies."""
    try:
        yield
    except GradestackError as error:
        error.args = tuple(_renamed(each) for each in error.args)
        error.problems = tuple(_renamed(each) for each in error.problems)
        raise


def _renamed(text: Any) -> Any:
    if isinstance(text, str) and _folders and str(_folders[0]) in text:
        for copy, name in sorted(_spelled.items(), key=lambda each: -len(str(each[0]))):
            text = text.replace(str(copy), name)
    return text

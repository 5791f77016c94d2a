"""Paths as they are written: local files, patterns, and addresses that stand for neither."""

from __future__ import annotations

import glob
import os
from contextlib import suppress
from pathlib import Path

from gradestack.copies.addresses import is_address, shown_address
from gradestack.errors import DataError

MAGIC = frozenset("*?[")
"""Characters of a pattern."""


def path_of(text: str, base: Path | None = None) -> Path:
    """Return a path, ``~`` expanded, a relative one taken from ``base``."""
    if "\0" in text:
        raise ValueError("a path holds no NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ValueError(f"{text!r} is no path: it holds half of a surrogate pair") from error
    path = Path(text)
    with suppress(RuntimeError):  # no such user: a file may be called ~x
        path = path.expanduser()
    return path if base is None else base / path


class AddressGivenError(ValueError):
    """An address stands where a local file is wanted."""


def local_path_of(text: str, base: Path | None = None) -> Path:
    """Return a path as ``path_of`` does, of a file that is never fetched from elsewhere."""
    path = path_of(text, base)
    if is_address(text):
        with suppress(OSError):  # a name too long
            if path.exists():
                return path
        raise AddressGivenError(
            f"{shown_address(text)} is an address; here a local file is wanted; only inputs and datasets may be remote"
        )
    return path


def is_remote(text: str, base: Path | None = None) -> bool:
    """Return whether a text is taken for an address: one like it that no local file is called."""
    return is_address(text) and not local_files(text, base)


def local_files(text: str, base: Path | None) -> list[Path]:
    """Return the local files and directories that a text means: the one it names, or those its pattern matches."""
    try:
        path = path_of(text, base)
        there = path.exists()
    except (OSError, ValueError) as error:  # a name too long, a directory that may not be entered, a NUL character
        if is_address(text):
            return []
        why = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else error
        raise DataError(f"{text if base is None else base / text}: {why}") from error
    if not there:
        # As shells do it: * leaves hidden files alone, which Path.glob does not.
        return sorted(map(Path, glob.glob(str(path), recursive=True))) if MAGIC & set(text) else []  # noqa: PTH207
    if not path.is_file() and not path.is_dir():  # a pipe would be used up by looking at its head
        raise DataError(f"{path}: neither a file nor a directory; write it to a file first, or pipe it to -")
    return [path]

"""Paths as people write them, and places in a document."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gradestack.copies.addresses import is_address, shown_address

Place = tuple[str | int, ...]
"""Path of a value: mapping keys and list positions from the root."""


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
    """Return a path as :func:`path_of` does, of a file that is never fetched from elsewhere."""
    path = path_of(text, base)
    if is_address(text):
        with suppress(OSError):  # a name too long
            if path.exists():
                return path
        raise AddressGivenError(
            f"{shown_address(text)} is an address; here a local file is wanted; only inputs and datasets may be remote"
        )
    return path

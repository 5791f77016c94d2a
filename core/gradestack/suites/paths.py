"""Paths as people write them, and places in a document."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gradestack.copies.addresses import is_address, shown_address

Place = tuple[str | int, ...]
"""Path of a value: mapping keys and list positions from the root."""


def path_of(text: str, base: Path | None = None) -> Path:
    """Return a path, ``~`` expanded, a relative one taken from ``base``.

    Raises:
        ValueError: It holds a NUL character, or half of a surrogate pair, which no path does.
    """
    if "\0" in text:
        msg = "a path holds no NUL character"
        raise ValueError(msg)
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        msg = f"{text!r} is no path: it holds half of a surrogate pair"
        raise ValueError(msg) from error
    path = Path(text)
    with suppress(RuntimeError):  # no such user: a file may be called ~x
        path = path.expanduser()
    return path if base is None else base / path


class AddressGivenError(ValueError):
    """An address stands where a local file is wanted."""


def local_path_of(text: str, base: Path | None = None) -> Path:
    """Return a path as :func:`path_of` does, of a file that is never fetched from elsewhere.

    Raises:
        AddressGivenError: It is an address.
        ValueError: It is no path.
    """
    path = path_of(text, base)
    if is_address(text):
        with suppress(OSError):  # a name too long
            if path.exists():
                return path
        msg = (
            f"{shown_address(text)} is an address; here a local file is wanted; only inputs and datasets may be remote"
        )
        raise AddressGivenError(msg)
    return path

"""Paths as people write them, and places in a document."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

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

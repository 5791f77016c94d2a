"""Looks at the beginning of a file, taken once as long as the file stays as it is.

A run asks for the same several times: to recognise columns, to choose a stack, to plan, to put
steps together. In a folder of thousands of files that is most of the time of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from gradestack import Input

_MOST: Final = 1 << 14
"""Number of looks that are remembered."""

ReaderT = TypeVar("ReaderT")
LookT = TypeVar("LookT")


def once_per_file(look: Callable[[ReaderT, Input], LookT]) -> Callable[[ReaderT, Input], LookT]:
    """Have a reader's method of one input look once at a file that stays the same.

    What it returns has to be small, and to depend on the reader's options and the file alone.
    """
    looks: dict[Any, LookT] = {}

    @wraps(look)
    def look_once(reader: ReaderT, file: Input) -> LookT:
        """Return the remembered look at a file, or look again if the file has changed."""
        try:
            status = file.path.stat()
        except OSError:  # looking says so
            return look(reader, file)
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        key = (type(reader), repr(reader), file, state)
        if key not in looks:
            new = look(reader, file)
            if len(looks) >= _MOST:
                del looks[next(iter(looks))]
            looks[key] = new
        return looks[key]

    return look_once

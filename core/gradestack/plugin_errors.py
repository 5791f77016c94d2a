"""Errors of plugins: what a component raises becomes an error that names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

from gradestack.errors import GradestackError, PluginError, TimedOut

LOCAL_CODE: dict[str, str] = {}
"""Python files of the user's own, by full path: errors name the line in them. SHA-256 of those that were loaded."""


def place_in_code(error: BaseException) -> str:
    """Return ``shout.py:7``, the innermost line of the user's own code that raised an error or called what did."""
    steps = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    return next((f"{Path(file).name}:{line}" for file, line in reversed(steps) if file in LOCAL_CODE), "")


def stable_text(error: BaseException) -> str:
    """Return an error's text without what differs from run to run (object addresses), at most 500 characters.

    Behind it stands the line of the user's own code; not of errors that have no place of their own.
    """
    text = re.sub(" at 0x[0-9a-fA-F]*", "", str(error))
    where = "" if isinstance(error, MemoryError | RecursionError | TimedOut) else place_in_code(error)
    return f"{text[:500]} ({where})".lstrip() if where else text[:500]


def error_text(error: BaseException) -> str:
    """Return an error's type and stable text, on one line."""
    return " ".join(map(str.strip, f"{type(error).__name__}: {stable_text(error)}".split("\n")))


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turn whatever a component raises into a PluginError; errors of ours and of the file system pass."""
    try:
        yield
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{what} raised {error_text(error)}") from error

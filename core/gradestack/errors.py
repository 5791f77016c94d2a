"""Errors people may cause, each with the exit code it ends the command with.

What a component raises names it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_LONGEST, _MOST = 2_000, 100
"""Characters of a message, and problems of an error; what comes from files may be of any size."""

_LONGEST_TEXT = 500
"""Characters of a component's error."""


def shortened(text: str) -> str:
    """Return a text as it is, or the beginning and the end of one too long to be read."""
    half = _LONGEST // 2
    if len(text) <= _LONGEST:
        return text
    return f"{text[:half]} … {text[-half:]}"


class GradestackError(Exception):
    """Base of every error that is reported without a traceback.

    Attributes:
        exit_code: What the command line exits with: 2 usage or configuration, 3 unusable input, 4
            broken plugin.
        problems: One line each: what is wrong, where, and what to try; of very many, the first and
            how many more. Empty where the message says everything.
    """

    exit_code: int = 2

    def __init__(self, message: str, *problems: str) -> None:
        rest = problems[_MOST:]
        if len(rest) > 1:
            rest = (f"and {len(rest)} more",)
        self.problems: tuple[str, ...] = (*map(shortened, problems[:_MOST]), *rest)
        super().__init__(shortened(message))

    def __str__(self) -> str:
        message = str(self.args[0])
        lines = [f"  - {problem}" for problem in self.problems]
        return "\n".join([message, *lines])

    @property
    def line(self) -> str:
        """All of it on one line, for use inside another message."""
        message = str(self.args[0])
        if self.problems:
            return f"{message}: {'; '.join(self.problems)}"
        return message

    def __reduce__(self) -> tuple[type[GradestackError], tuple[str, ...]]:
        message = str(self.args[0])
        return (type(self), (message, *self.problems))


class ConfigError(GradestackError):
    """A suite, option or command line that is wrong (exit code 2)."""

    exit_code = 2


class LostEngineError(ConfigError):
    """The machines a run is spread over are gone.

    What they had finished counts, and the run can be continued.
    """


def missing_library(name: str, extra: str = "") -> ConfigError:
    """Return that a library is not installed, and how it is.

    One of an extra from a copy of the repository.
    """
    package, _, _ = name.partition(".")
    of_extra = ""
    if extra:
        of_extra = f" (extra {extra!r})"
    return ConfigError(f"{package} is not installed: pip install {package}{of_extra}")


def library(name: str, *, extra: str = "") -> Any:
    """Return a library that is imported where it is needed, and that need not be installed."""
    import importlib  # noqa: PLC0415 - not needed to say errors

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise missing_library(name, extra) from error


class DataError(GradestackError):
    """An input file that cannot be used (exit code 3)."""

    exit_code = 3


@contextmanager
def reading(shown: object) -> Iterator[None]:
    """Raise DataError for whatever keeps a file, by the name it is shown with, from being read."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise DataError(f"{shown}: cannot be read: {why}") from error


@contextmanager
def writing(shown: object) -> Iterator[None]:
    """Raise DataError where the disk keeps something from being written there, ConfigError where
    the place does.
    """
    try:
        yield
    except OSError as error:
        kind = DataError if storage_failed(error) else ConfigError
        name = error.filename or shown
        why = error.strerror or error
        advice = "; choose another place"
        if kind is DataError:
            advice = ""
        raise kind(f"{name}: cannot be written: {why}{advice}") from error


class PluginError(GradestackError):
    """A plugin that is broken, missing or in conflict with another (exit code 4)."""

    exit_code = 4


class TimedOut(BaseException):
    """Raised in a grade that takes longer than it may.

    No Exception, which a grader might take for one of its own.
    """


EXIT_OK, EXIT_GATE_FAILED, EXIT_INTERRUPTED = 0, 1, 130


def storage_failed(error: BaseException) -> bool:
    """Return whether an error is the disk's: full, over its quota, broken or read-only."""
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
    return isinstance(error, OSError) and error.errno in codes


def first_of(names: Sequence[str], most: int) -> str:
    """Return names for a message, and … where there are more."""
    shown = ", ".join(names[:most])
    if len(names) > most:
        return f"{shown}, …"
    return shown


def suggest(word: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return " (did you mean 'x'?)" for the closest known word, or ""."""
    import difflib  # noqa: PLC0415 - only where something is wrong

    text = str(word)[:_LONGEST]
    words = list(known)
    close = difflib.get_close_matches(text, words, n=1, cutoff=cutoff)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return ""


def hint_of(word: object, known: Iterable[str]) -> str:
    """Return the closest known word for a message, or else all that are known."""
    names = list(known)
    return suggest(word, names) or f"; there are: {', '.join(names) or 'none'}"


LOCAL = "local 0"  # distribution and version of what a user's own file offers: it has none
LOCAL_CODE: dict[str, str] = {}
"""Python files of the user's own, by full path: errors name the line in them.

SHA-256 of those that were loaded.
"""
AUTHORED: set[str] = set()
"""Packages of others whose components or functions are in use.

Errors name the line in them, too.
"""


def place_in_code(error: BaseException) -> str:
    """Return ``shout.py:7``, the innermost line of an author's code that raised an error or called
    what did.
    """
    from pathlib import Path  # noqa: PLC0415 - not needed to say errors
    from traceback import walk_tb  # noqa: PLC0415

    for frame, line in reversed([*walk_tb(error.__traceback__)]):
        file = frame.f_code.co_filename
        module = str(frame.f_globals.get("__name__"))
        package, _, _ = module.partition(".")
        if file in LOCAL_CODE or package in AUTHORED:
            return f"{Path(file).name}:{line}"
    return ""


def written_text(value: object) -> str:
    """Return a value as text, or that it cannot be written where its own code raises."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - code of a stranger, in the middle of an error
        return f"(its text cannot be written: __str__ of {type(value).__name__} raises)"


def message_of(error: BaseException) -> str:
    """Return an error's text without what differs from run to run: object addresses."""
    text = re.sub(" at 0x[0-9a-fA-F]*", "", written_text(error))
    if text == "Extra positional arguments provided":
        text += "; name each field: Grade(score=1.0)"
    return text


def stable_text(error: BaseException) -> str:
    """Return the same, at most 500 characters, and the line of the user's own code that an error
    has its place in.
    """
    text = message_of(error)[:_LONGEST_TEXT]
    is_anywhere = isinstance(error, MemoryError | RecursionError | TimedOut)
    where = "" if is_anywhere else place_in_code(error)
    if where:
        return f"{text} ({where})".lstrip()
    return text


def error_text(error: BaseException) -> str:
    """Return an error's type and stable text, on one line."""
    kind = type(error).__name__
    lines = f"{kind}: {stable_text(error)}".split("\n")
    return " ".join(map(str.strip, lines))


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turn whatever a component raises into a PluginError.

    Errors of ours and of the file system pass.
    """
    try:
        yield
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{what} raised {error_text(error)}") from error

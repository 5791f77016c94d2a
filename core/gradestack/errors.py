"""Errors people may cause, each with the exit code it ends the command with."""

from __future__ import annotations

import errno
from collections.abc import Iterable


def printable(text: str) -> str:
    """Return text of other people's files as a terminal can show it: control characters and the like are escaped."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text
    )


class GradestackError(Exception):
    """Base of every error that is reported without a traceback.

    Attributes:
        exit_code: What the command line exits with: 2 usage or configuration, 3 unusable input, 4 broken plugin.
        problems: One line each: what is wrong, where, and what to try.
    """

    exit_code: int = 2

    def __init__(self, message: str, *problems: str) -> None:
        self.problems: tuple[str, ...] = problems
        super().__init__(message)

    def __str__(self) -> str:
        head = str(self.args[0])
        return "\n".join([head, *(f"  - {problem}" for problem in self.problems)])

    def __reduce__(self) -> tuple[type[GradestackError], tuple[str, ...]]:
        return (type(self), (str(self.args[0]), *self.problems))


class ConfigError(GradestackError):
    """A suite, option or command line that cannot be honoured (exit code 2)."""

    exit_code = 2


class LostEngineError(ConfigError):
    """The machines a run is spread over are gone; what they had finished counts, and the run can be continued."""


class DataError(GradestackError):
    """An input file that cannot be used (exit code 3)."""

    exit_code = 3


class PluginError(GradestackError):
    """A plugin that is broken, missing or in conflict with another (exit code 4)."""

    exit_code = 4


class TimedOut(BaseException):
    """Raised in a grade that takes longer than it may; no Exception, which a grader might take for one of its own."""


EXIT_OK = 0
EXIT_GATE_FAILED = 1
EXIT_INTERRUPTED = 130


def storage_failed(error: BaseException) -> bool:
    """Return whether an error is the disk's: full, over its quota, broken or read-only."""
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
    return isinstance(error, OSError) and error.errno in codes


def suggest(word: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return " (did you mean 'x'?)" for the closest known word, or ""."""
    import difflib  # noqa: PLC0415 - only where something is wrong

    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=cutoff)
    return f" (did you mean {close[0]!r}?)" if close else ""

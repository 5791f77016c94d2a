"""Errors of plugins: what a component raises becomes an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradestack.errors import GradestackError, PluginError


def stable_text(error: BaseException) -> str:
    """Return an error's text without what differs from run to run (object addresses), at most 500 characters."""
    text = str(error)
    while (start := text.find(" at 0x")) >= 0:
        end = start + 6
        while end < len(text) and text[end] in "0123456789abcdefABCDEF":
            end += 1
        text = text[:start] + text[end:]
    return text[:500]


def error_text(error: BaseException) -> str:
    """Return an error's type and stable text."""
    return f"{type(error).__name__}: {stable_text(error)}"


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turn whatever a component raises into a PluginError; errors of ours and of the file system pass.

    Args:
        what: The component, for the message.

    Raises:
        PluginError: The component raised something it should not.
    """
    try:
        yield
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        msg = f"{what} raised {error_text(error)}"
        raise PluginError(msg) from error

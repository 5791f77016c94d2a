"""Plugin code at arm's length: what a component raises becomes an error that names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gradestack.api import Reader, Shard
from gradestack.errors import GradestackError, PluginError
from gradestack.model import BadRecord, Sample


def stable_text(error: BaseException) -> str:
    """Return an error's text without what differs from run to run (object addresses), at most 500 characters."""
    text = str(error)
    while (start := text.find(" at 0x")) >= 0:
        end = start + 6
        while end < len(text) and text[end] in "0123456789abcdefABCDEF":
            end += 1
        text = text[:start] + text[end:]
    return text[:500]


def said(error: BaseException) -> str:
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
    except Exception as error:
        msg = f"{what} raised {said(error)}"
        raise PluginError(msg) from error


def name_of(reader: Reader) -> str:
    """Return how messages call a reader object."""
    return f"reader {type(reader).__name__} (version {reader.version})"


def shards_of(reader: Reader, inputs: Any) -> tuple[list[Shard], Any]:
    """Return a reader's shards and index.

    Raises:
        DataError: The reader refuses the input.
        PluginError: The reader is broken.
    """
    with guarded(name_of(reader)):
        index = reader.index(inputs)
        return list(reader.plan(inputs, index)), index


def _checked(record: Any, reader: Reader) -> Sample | BadRecord:
    if isinstance(record, Sample | BadRecord):
        return record
    msg = f"{name_of(reader)} yields {type(record).__name__}, expected Sample or BadRecord"
    raise PluginError(msg)


def records_of(reader: Reader, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
    """Yield the records of one shard.

    Raises:
        DataError: The reader cannot read the shard at all.
        PluginError: The reader raised something else, or yields what is neither a sample nor a bad record.
    """
    try:
        found: Iterable[Any] = reader.read(shard, index)
        for record in found:
            yield _checked(record, reader)
    except (GradestackError, OSError):
        raise
    except Exception as error:
        msg = f"{name_of(reader)} raised {said(error)} in {shard.input.shown}"
        raise PluginError(msg) from error

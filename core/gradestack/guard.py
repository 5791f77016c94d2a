"""Plugin code at arm's length: what a component raises becomes an error that names it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

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
    except (Exception, SystemExit) as error:
        msg = f"{what} raised {said(error)}"
        raise PluginError(msg) from error


class Interruption:
    """Holds back Ctrl-C until the sample at hand is done, so that its row and its figures stay together.

    The first signal sets ``requested``; a second one interrupts at once, unless ``patient``, or inside :meth:`held`:
    what is being finished then is short and must be finished. Does nothing outside the main thread, or where the caller
    handles the signal itself.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self.requested = False
        self._patient = patient
        self._installed = self._held = self._late = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._held:
            self._late |= self.requested
        elif self.requested and not self._patient:
            signal.default_int_handler(number, frame)
        self.requested = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold back a second signal, too, until the code inside is done.

        Raises:
            KeyboardInterrupt: There was one.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._late and not self._patient:
            self._late = False
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        own = threading.current_thread() is threading.main_thread()
        if own and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


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


_RECORDS = (Sample, BadRecord)


def _checked(record: Any, reader: Reader) -> Sample | BadRecord:
    if isinstance(record, _RECORDS):
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
            yield record if type(record) is Sample else _checked(record, reader)
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        msg = f"{name_of(reader)} raised {said(error)} in {shard.input.shown}"
        raise PluginError(msg) from error

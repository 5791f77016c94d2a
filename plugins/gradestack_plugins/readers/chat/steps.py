"""Steps put together: single model calls, each logged with its history, into the conversations they belong to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from gradestack import Message
from gradestack.jsonio import compact, dumps
from gradestack_plugins.readers.chat.results import plain

_UNSAID: Final = frozenset({"system", "developer"})
"""Roles of messages that are not compared: prompts change while a conversation goes on."""
_START: Final = b""


class Step(NamedTuple):
    """One model call, as far as it tells which others it continues."""

    starts: tuple[bytes, ...]
    """A digest of every beginning of its history, the shortest first."""
    end: bytes | None
    """That of its history and answer; None where there is no answer."""
    group: str | None = None
    """Id of the conversation or trace within which it is put together; None: with all others that have none."""


class Run(NamedTuple):
    """One conversation: a step that no other continues, and those before it."""

    steps: tuple[int, ...]
    """Positions of its steps, first to last; the last one's history and answer are the whole conversation."""
    shared: int
    """How many of the first ones an earlier run has too: their usage counts there."""


def step(history: Iterable[Message], answer: Iterable[Message], group: str | None = None) -> Step:
    """Return the step of a model call: the messages it was asked with, and those it answered.

    Messages are compared by role, text (none is ""), ids, names and arguments of calls, and the id of the call that a
    result answers. System messages are left out.
    """
    starts, end = [_START], None
    for message in history:
        if message.role not in _UNSAID:
            starts.append(_digest(starts[-1], message))
    for message in answer:
        if message.role not in _UNSAID:
            end = _digest(end or starts[-1], message)
    return Step(tuple(starts[1:]), end, group)


def _digest(before: bytes, message: Message) -> bytes:
    calls = [
        (each.id, each.name, each.raw_arguments if each.arguments is None else each.arguments)
        for each in message.tool_calls
    ]
    said = (message.role, _text(message.content), message.tool_call_id, calls)
    return blake2b(before + dumps(said).encode(errors="surrogatepass"), digest_size=16).digest()


def _text(content: Any) -> str:
    found = plain(content)
    return found if isinstance(found, str) else compact(found) if found else ""


def joined(steps: Sequence[Step]) -> list[Run]:
    """Return the runs that steps make, in the order of their last steps.

    A step continues the one whose history and answer are the longest beginning of its own history, within its group.
    Each of several equal steps is continued once, in order, before one is continued again: then the runs branch, as
    where an answer was asked for anew. Every step that none continues ends a run.
    """
    ends: dict[tuple[str | None, bytes], deque[int]] = {}
    for position, each in enumerate(steps):
        if each.end is not None:
            ends.setdefault((each.group, each.end), deque()).append(position)
    before: list[int | None] = []
    continued: set[int] = set()
    for each in steps:
        places = (ends.get((each.group, start)) for start in reversed(each.starts))
        equal = next(filter(None, places), None)
        before.append(None if equal is None else equal[0])
        if equal is not None:
            continued.add(equal[0])
            equal.rotate(-1)
    runs, counted = [], set[int]()
    for last in range(len(steps)):
        if last not in continued:
            chain, at = deque[int](), before[last]
            chain.append(last)
            while at is not None:
                chain.appendleft(at)
                at = before[at]
            runs.append(Run(tuple(chain), sum(each in counted for each in chain)))
            counted.update(chain)
    return runs

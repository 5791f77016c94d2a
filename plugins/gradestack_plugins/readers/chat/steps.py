"""Steps put together.

Single model calls, each logged with its history, into the conversations they belong to.
"""

from __future__ import annotations

import abc
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import attrs

from gradestack import BadRecord, Input, Inputs, Message, RecordReader, Sample, Usage, replace
from gradestack.jsonio import compact, dumps
from gradestack_plugins.readers.chat.results import plain
from gradestack_plugins.readers.chat.usage import added

_UNSAID: Final = frozenset({"system", "developer"})
"""Roles of messages that are not compared: prompts change while a conversation goes on."""
_START: Final = b""


class Step(NamedTuple):
    """One model call, as far as it tells which others it continues."""

    starts: tuple[bytes, ...]  # a digest of every beginning of its history, the shortest first
    end: bytes | None  # that of its history and answer; None where there is no answer
    group: str | None = None
    """Id of the conversation or trace within which it is put together.

    None: with all others that have none.
    """


class Run(NamedTuple):
    """One conversation: a step that no other continues, and those before it."""

    steps: tuple[int, ...]
    """Positions of its steps, first to last.

    The last one's history and answer are the whole conversation.
    """
    shared: int  # how many of the first ones an earlier run has too: their usage counts there


def step(history: Iterable[Message], answer: Iterable[Message], group: str | None = None) -> Step:
    """Return the step of a model call: the messages it was asked with, and those it answered.

    Messages are compared by role, text (none is ""), ids, names and arguments of calls, and the id
    of the call that a result answers. System messages are left out.
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

    A step continues the one whose history and answer are the longest beginning of its own history,
    within its group. Each of several equal steps is continued once, in order, before one is
    continued again: then the runs branch, as where an answer was asked for anew. Every step that
    none continues ends a run.
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


class Joined(NamedTuple):
    """What becomes of samples that are single model calls."""

    changes: Mapping[int, Mapping[str, Any] | None]
    """By ordinal: the fields of a run that change, None for a sample that is a part of one."""
    note: str  # how many they are and what they make; "" where none continues another


def put_together(samples: Iterable[Sample]) -> Joined:
    """Return what becomes of single model calls, each with its history.

    Runs, with the usage of all their steps.

    They are put together within an id that was recorded, of a task, a conversation or a trace;
    those without any, all.
    """
    steps: list[Step] = []
    kept: list[tuple[int, str, Usage | None, int]] = []
    for sample in samples:
        said = [message for turn in sample.turns for message in turn]
        asked = _asked(said)
        group = (
            sample.cluster or sample.trace.get("session_id")
            if "id_made" in sample.remarks
            else sample.id
        )
        steps.append(step(said[:asked], said[asked:], group))
        ordinal = sample.source.ordinal if sample.source is not None else len(kept)
        kept.append((ordinal, sample.id, sample.usage, len(sample.calls or ())))
    runs = joined(steps)
    if len(runs) == len(steps):
        return Joined({}, "")
    changes: dict[int, dict[str, Any] | None] = dict.fromkeys(each[0] for each in kept)
    of_id, number, calls = Counter(kept[run.steps[-1]][1] for run in runs), Counter[str](), 0
    for run in runs:
        ordinal, name, _, made = kept[run.steps[-1]]
        found: dict[str, Any] = {"usage": added(kept[each][2] for each in run.steps[run.shared :])}
        if of_id[name] > 1:
            found["run"] = number[name]
            number[name] += 1
        changes[ordinal] = found
        calls += made - (kept[run.steps[run.shared - 1]][3] if run.shared else 0)
    what = f"{len(steps):,} model calls put together into {_several(len(runs), 'conversation')}"
    return Joined(
        changes, f"{what} with {_several(calls, 'tool call')}; to grade each by itself: --no-merge"
    )


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _asked(said: Sequence[Message]) -> int:
    """Return how many messages stand before the answer.

    The last one of the assistant, with what a server's tools say.

    Where another message follows it, nothing was answered.
    """
    last = next(
        (at for at in range(len(said) - 1, -1, -1) if said[at].role == "assistant"), len(said)
    )
    own = (
        {call.id for call in said[last].tool_calls if call.kind != "function"}
        if last < len(said)
        else set()
    )
    answered = all(each.role == "tool" and each.tool_call_id in own for each in said[last + 1 :])
    return last if answered else len(said)


STEPS: Final = (
    "steps"  # in place of an index: what is read are the records that are single model calls
)


@attrs.frozen(kw_only=True)
class StepReader(RecordReader):
    """Base of readers of records that may be single model calls, which ``read`` yields alone for
    ``STEPS``.
    """

    merge: bool = True
    """Whether single model calls, each logged with its history, are put together into
    conversations.
    """

    def index(self, inputs: Inputs) -> Any:
        """Return by input what becomes of its model calls."""
        return {
            each.shown: self._joined(each).changes
            for each in inputs.data
            if self.merge and self.holds_steps(each)
        }

    def notes_on_steps(self, inputs: Inputs) -> list[str]:
        """Return what the model calls of each input are put together into, in words."""
        found = (
            self._joined(each).note for each in inputs.data if self.merge and self.holds_steps(each)
        )
        return list(filter(None, found))

    @abc.abstractmethod
    def holds_steps(self, given: Input) -> bool:
        """Return whether an input begins with model calls; any other is not read for them."""

    def _joined(self, given: Input) -> Joined:
        shards = self.plan(Inputs(data=(given,)), None)
        found = (each for shard in shards for each in self.read(shard, STEPS))
        return put_together(each for each in found if isinstance(each, Sample) and each.run is None)

    def merged(
        self,
        samples: Iterator[Sample | BadRecord],
        changes: Mapping[int, Mapping[str, Any] | None] | None,
    ) -> Iterator[Sample | BadRecord]:
        """Return the samples of an input with its model calls put together."""
        return (
            samples if not changes else filter(None, (_changed(each, changes) for each in samples))
        )


def _changed(
    sample: Sample | BadRecord, changes: Mapping[int, Mapping[str, Any] | None]
) -> Sample | BadRecord | None:
    """Return a sample as the run it ends, None where it is a part of one."""
    if isinstance(sample, BadRecord) or sample.source is None:
        return sample
    change = changes.get(sample.source.ordinal, {})
    return None if change is None else replace(sample, **change) if change else sample

"""Steps put together.

Single model calls, each logged with its history, into the conversations they belong to.
"""

from __future__ import annotations

import abc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
        changes, f"{what} with {_several(calls, 'tool call')}; to grade each separately: --no-merge"
    )


SessionKey = Callable[[Sample], str | None]
"""What gives the id of the conversation, thread or trace of a sample."""


def latest_states(samples: Iterable[Sample], session_of: SessionKey) -> Joined:
    """Return what becomes of samples that are states of one conversation, as checkpoints are.

    Of the samples of one session each that others continue is left out: its messages are a
    beginning of theirs, or the same.
    """
    groups: dict[str, list[tuple[int, tuple[bytes, ...]]]] = {}
    for sample in samples:
        group = session_of(sample)
        if group is None or sample.run is not None or sample.source is None:
            continue
        said = [message for turn in sample.turns for message in turn]
        state = (sample.source.ordinal, step(said, ()).starts)
        groups.setdefault(group, []).append(state)
    changes: dict[int, Mapping[str, Any] | None] = {}
    for states in groups.values():
        changes |= dict.fromkeys(_earlier_states(states))
    if not changes:
        return Joined({}, "")
    several = [states for states in groups.values() if len(states) > 1]
    number = sum(map(len, several))
    what = f"{number:,} states of {_several(len(several), 'conversation')}"
    return Joined(changes, f"{what}: the last of each is graded; to grade each: --no-merge")


def _earlier_states(states: Sequence[tuple[int, tuple[bytes, ...]]]) -> Iterator[int]:
    """Yield the ordinals of states that another continues, or repeats."""
    if len(states) < 2:
        return
    begun = {_START, *(start for _, starts in states for start in starts[:-1])}
    ends = set[bytes]()
    for ordinal, starts in states:
        end = starts[-1] if starts else _START
        if end in begun or end in ends:
            yield ordinal
        ends.add(end)


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
        """Return by input what becomes of its model calls, or of its states of conversations."""
        return {each.shown: self._put_together(each).changes for each in inputs.data}

    def notes_on_steps(self, inputs: Inputs) -> list[str]:
        """Return what the records of each input are put together into, in words."""
        notes = [self._put_together(each).note for each in inputs.data]
        return [note for note in notes if note]

    def _put_together(self, given: Input) -> Joined:
        if not self.merge:
            return Joined({}, "")
        if self.holds_steps(given):
            return self._joined(given)
        session_of = self.session_key(given)
        if session_of is None:
            return Joined({}, "")
        return latest_states(self._samples_of_input(given, {}), session_of)

    def session_key(self, given: Input) -> SessionKey | None:
        """Return what gives the session of a sample, whose states the records may be.

        None where no conversation, thread or trace has several of the first records.
        """
        return None

    @abc.abstractmethod
    def holds_steps(self, given: Input) -> bool:
        """Return whether an input begins with model calls; any other is not read for them."""

    def _joined(self, given: Input) -> Joined:
        found = self._samples_of_input(given, STEPS)
        return put_together(each for each in found if each.run is None)

    def _samples_of_input(self, given: Input, index: Any) -> Iterator[Sample]:
        for shard in self.plan(Inputs(data=(given,)), None):
            for sample in self.read(shard, index):
                if isinstance(sample, Sample):
                    yield sample

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

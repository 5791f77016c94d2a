"""Steps put together: model calls, each logged with its history, as conversations."""

from __future__ import annotations

import abc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import attrs
import msgspec

from gradestack import BadRecord, Input, Inputs, Message, RecordReader, Sample, Usage, replace
from gradestack.jsonio import compact, dumps
from gradestack_plugins.readers.chat.results import plain
from gradestack_plugins.readers.chat.usage import added

_UNCOMPARED: Final = frozenset({"system", "developer"})
"""Roles of messages that are not compared: prompts change while a conversation goes on."""
_START: Final = b""
STEPS: Final = "steps"
"""In place of an index: only records that are single model calls are read."""


class Step(msgspec.Struct, frozen=True):
    """One model call, as far as it tells which others it continues."""

    starts: tuple[bytes, ...]
    """A digest of every beginning of its history, the shortest first."""
    end: bytes | None
    """The digest of its history and answer; None without an answer."""
    group: str | None = None
    """Id of the conversation or trace within which it is put together.

    None: with all others that have none.
    """


class Run(msgspec.Struct, frozen=True):
    """One conversation: a step that no other continues, and those before it."""

    steps: tuple[int, ...]
    """Positions of its steps; history and answer of the last one are the conversation."""
    shared: int
    """Number of its first steps that an earlier run has, too: their usage counts there."""


def step(history: Iterable[Message], reply: Iterable[Message], group: str | None = None) -> Step:
    """Return the step of a model call: the messages of its request, and those of its answer.

    Messages are compared by role, text (none is ""), ids, names and arguments of calls, and the id
    of the call that a result answers. System messages are left out.
    """
    starts = [_START]
    end = None
    for message in history:
        if message.role not in _UNCOMPARED:
            last_start = starts[-1]
            digest = _digest(last_start, message)
            starts.append(digest)
    for message in reply:
        if message.role not in _UNCOMPARED:
            before = end or starts[-1]
            end = _digest(before, message)
    return Step(tuple(starts[1:]), end, group)


def _digest(before: bytes, message: Message) -> bytes:
    calls = [
        (call.id, call.name, call.raw_arguments if call.arguments is None else call.arguments)
        for call in message.tool_calls
    ]
    compared = (message.role, _text(message.content), message.tool_call_id, calls)
    text = dumps(compared).encode(errors="surrogatepass")
    return blake2b(before + text, digest_size=16).digest()


def _text(content: Any) -> str:
    value = plain(content)
    if isinstance(value, str):
        return value
    return compact(value) if value else ""


def joined(steps: Sequence[Step]) -> list[Run]:
    """Return the runs that steps make, in the order of their last steps.

    A step continues the one whose history and answer are the longest beginning of its own history,
    within its group. Each of several equal steps is continued once, in order, before one is
    continued again: then the runs branch, as where an answer was requested twice. Every step that
    none continues ends a run.
    """
    before = _earlier_steps(steps)
    continued = set(before)
    runs: list[Run] = []
    counted = set[int]()
    for last in range(len(steps)):
        if last in continued:
            continue
        chain = deque[int]()
        position: int | None = last
        while position is not None:
            chain.appendleft(position)
            position = before[position]
        shared = sum(index in counted for index in chain)
        runs.append(Run(tuple(chain), shared))
        counted.update(chain)
    return runs


def _earlier_steps(steps: Sequence[Step]) -> list[int | None]:
    """Return the position of the step that each step continues; None for a first one."""
    ends: dict[tuple[str | None, bytes], deque[int]] = {}
    for position, call in enumerate(steps):
        if call.end is not None:
            ends.setdefault((call.group, call.end), deque()).append(position)
    before: list[int | None] = []
    for call in steps:
        equal = (ends.get((call.group, start)) for start in reversed(call.starts))
        longest = next(filter(None, equal), None)
        before.append(None if longest is None else longest[0])
        if longest is not None:
            longest.rotate(-1)
    return before


class Joined(msgspec.Struct, frozen=True):
    """The runs that samples of single model calls, or of states of a conversation, make."""

    changes: Mapping[int, Mapping[str, Any] | None]
    """Ordinal -> the fields of a run that change, None for a sample that is a part of one."""
    note: str
    """How many they are, and the number of runs; "" where none continues another."""


_UNCHANGED: Final = Joined({}, "")


class _Call(msgspec.Struct, frozen=True):
    """A sample that is a single model call."""

    ordinal: int
    id: str
    usage: Usage | None
    n_calls: int


def put_together(samples: Iterable[Sample]) -> Joined:
    """Return the runs of single model calls, each with its history, with the usage of all steps.

    They are put together within an id that was recorded, of a task, a conversation or a trace;
    those without any, all.
    """
    steps: list[Step] = []
    calls: list[_Call] = []
    for sample in samples:
        steps.append(_step_of(sample))
        if sample.source is not None:
            ordinal = sample.source.ordinal
        else:
            ordinal = len(calls)
        calls.append(_Call(ordinal, sample.id, sample.usage, len(sample.calls or ())))
    runs = joined(steps)
    if len(runs) == len(steps):
        return _UNCHANGED
    changes: dict[int, dict[str, Any] | None] = dict.fromkeys(call.ordinal for call in calls)
    runs_by_id = Counter(calls[run.steps[-1]].id for run in runs)
    numbers = Counter[str]()
    n_calls = 0
    for run in runs:
        last_step = run.steps[-1]
        last = calls[last_step]
        own_steps = run.steps[run.shared :]
        usage = added(calls[index].usage for index in own_steps)
        change: dict[str, Any] = {"usage": usage}
        if runs_by_id[last.id] > 1:
            change["run"] = numbers[last.id]
            numbers[last.id] += 1
        changes[last.ordinal] = change
        n_shared = 0
        if run.shared:
            n_shared = calls[run.steps[run.shared - 1]].n_calls
        n_calls += last.n_calls - n_shared
    conversations = _several(len(runs), "conversation")
    what = f"{len(steps):,} model calls put together into {conversations}"
    with_calls = f"with {_several(n_calls, 'tool call')}"
    return Joined(changes, f"{what} {with_calls}; to grade each separately: --no-merge")


def _step_of(sample: Sample) -> Step:
    messages = [message for turn in sample.turns for message in turn]
    is_made = "id_made" in sample.remarks
    if is_made:
        group = sample.cluster or sample.trace.get("session_id")
    else:
        group = sample.id
    before = _messages_before_answer(messages)
    history = messages[:before]
    return step(history, messages[before:], group)


SessionKey = Callable[[Sample], str | None]
"""Returns the id of the conversation, thread or trace of a sample."""


def latest_states(samples: Iterable[Sample], session_of: SessionKey) -> Joined:
    """Return the last ones of samples that are states of one conversation, as checkpoints are.

    A sample of a session is left out if another one continues it: its messages are a beginning of
    the other's, or the same.
    """
    sessions: dict[str, list[tuple[int, tuple[bytes, ...]]]] = {}
    for sample in samples:
        session = session_of(sample)
        if session is None or sample.run is not None or sample.source is None:
            continue
        messages = [message for turn in sample.turns for message in turn]
        state = (sample.source.ordinal, step(messages, ()).starts)
        sessions.setdefault(session, []).append(state)
    changes: dict[int, Mapping[str, Any] | None] = {}
    for states in sessions.values():
        changes |= dict.fromkeys(_earlier_states(states))
    if not changes:
        return _UNCHANGED
    several = [states for states in sessions.values() if len(states) > 1]
    number = sum(map(len, several))
    what = f"{number:,} states of {_several(len(several), 'conversation')}"
    return Joined(changes, f"{what}: the last of each is graded; to grade each: --no-merge")


def _earlier_states(states: Sequence[tuple[int, tuple[bytes, ...]]]) -> Iterator[int]:
    """Yield the ordinals of states that another continues, or repeats."""
    if len(states) < 2:
        return
    continued = {_START, *(start for _, starts in states for start in starts[:-1])}
    for ordinal, starts in states:
        end = starts[-1] if starts else _START
        if end in continued:
            yield ordinal
        continued.add(end)


def _several(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _messages_before_answer(messages: Sequence[Message]) -> int:
    """Return the number of messages before the answer.

    The answer is the last message of the assistant, with the results of a server's tools. Where
    another message follows it, nothing was answered.
    """
    positions = range(len(messages) - 1, -1, -1)
    last = next((at for at in positions if messages[at].role == "assistant"), None)
    if last is None:
        return len(messages)
    calls = messages[last].tool_calls
    own_calls = {call.id for call in calls if call.kind != "function"}
    later = messages[last + 1 :]
    is_last = all(x.role == "tool" and x.tool_call_id in own_calls for x in later)
    return last if is_last else len(messages)


@attrs.frozen(kw_only=True)
class StepReader(RecordReader):
    """Base of readers of records that may be single model calls.

    For ``STEPS`` as its index ``read`` yields these alone.
    """

    merge: bool = True
    """Whether single model calls, each logged with its history, are put together into
    conversations.
    """

    def index(self, inputs: Inputs) -> Any:
        """Return by input the runs that its model calls, or its states of conversations, make."""
        return {file.shown: self._joined(file).changes for file in inputs.data}

    def notes_on_steps(self, inputs: Inputs) -> list[str]:
        """Return notes on how the records of each input are put together."""
        notes = [self._joined(file).note for file in inputs.data]
        return [note for note in notes if note]

    def _joined(self, file: Input) -> Joined:
        """Join the samples of a file: steps into runs, or states of a session into the latest."""
        if not self.merge:
            return _UNCHANGED
        if self.holds_steps(file):
            samples = self._samples_of_input(file, STEPS)
            return put_together(sample for sample in samples if sample.run is None)
        session_of = self.session_key(file)
        if session_of is None:
            return _UNCHANGED
        return latest_states(self._samples_of_input(file, {}), session_of)

    def session_key(self, file: Input) -> SessionKey | None:
        """Return the function of a sample's session, whose states the records may be.

        None where no conversation, thread or trace has several of the first records.
        """
        return None

    @abc.abstractmethod
    def holds_steps(self, file: Input) -> bool:
        """Return whether an input begins with model calls; any other is not read for them."""

    def _samples_of_input(self, file: Input, index: Any) -> Iterator[Sample]:
        inputs = Inputs(data=(file,))
        for shard in self.plan(inputs, None):
            for sample in self.read(shard, index):
                if isinstance(sample, Sample):
                    yield sample

    def merged(
        self,
        samples: Iterator[Sample | BadRecord],
        changes: Mapping[int, Mapping[str, Any] | None] | None,
    ) -> Iterator[Sample | BadRecord]:
        """Return the samples of an input with its model calls put together."""
        if not changes:
            return samples
        return filter(None, (_changed(sample, changes) for sample in samples))


def _changed(
    sample: Sample | BadRecord, changes: Mapping[int, Mapping[str, Any] | None]
) -> Sample | BadRecord | None:
    """Return a sample as the run it ends, None where it is a part of one."""
    if isinstance(sample, BadRecord) or sample.source is None:
        return sample
    change = changes.get(sample.source.ordinal, {})
    if change is None:
        return None
    return replace(sample, **change) if change else sample

"""RunReader: base of readers of files that hold whole runs, which a format cuts out of records."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
from msgspec.structs import force_setattr
from typing_extensions import override

from gradestack import (
    JSON,
    BadRecord,
    Expectation,
    GradestackError,
    Input,
    Inputs,
    RecordFile,
    Sample,
    Shard,
    Source,
    ToolCall,
    Usage,
    read_document,
    replace,
)
from gradestack.jsonio import Range
from gradestack_plugins.readers.chat.conversation import Conversation, finish
from gradestack_plugins.readers.chat.identity import Identity
from gradestack_plugins.readers.chat.samples import PROVIDES, broken, log_sample, tools_of
from gradestack_plugins.readers.whole import WholeDocuments


class Record(NamedTuple):
    """One record of a file, with its source."""

    value: Any
    source: Source


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a call that stands beside the conversation."""

    name: str
    arguments: Any
    result: Any
    error: str | None


class Run(msgspec.Struct, kw_only=True):
    """One run, as its format has it: a conversation, and the fields beside it."""

    id: str
    entries: list[Any]
    """Messages and items, each in the form of one of the APIs or of a library that is known."""
    is_in_api_form: bool = False
    """Whether all entries are in the forms of the APIs."""
    results: list[ToolResult] = []
    """Results beside the conversation, in order; each goes to the first call of its name that has
    none of them yet.
    """
    executed: bool = True
    """Whether calls were executed; of others no result is missing."""
    source: Source | None = None
    first: Any = None
    """The record in which the option ``ids`` looks for the id of the task."""
    trial: int | str | None = None
    cluster: str | None = None
    model: str | None = None
    """Where answers name none."""
    tools: list[Any] | None = None
    """Tools on offer, as recorded."""
    usage: Usage | None = None
    """Amounts of the whole run; the others are those of its answers, added up."""
    agent_usage: JSON = None
    expected: Expectation = Expectation()
    recorded: dict[str, JSON] = {}
    ended: str | None = None
    error: Any = None
    """The error that ended the run, in any form; None without one."""
    trace: dict[str, str] = {}
    children: tuple[str, ...] = ()
    facets: dict[str, JSON] = {}
    remarks: dict[str, int] = {}


def sample_of_run(run: Run) -> Sample:
    """Return the sample of a run.

    Raises:
        ValueError: Nothing in it can be read.
    """
    talk = Conversation()
    talk.results = run.executed
    entries = iter(run.entries)
    run.entries = []  # what has been read of a long run is not held
    talk.read(entries, is_in_api_form=run.is_in_api_form)
    _hand_results(talk, run.results)
    known = Identity(run.id, run.trial, run.cluster, run.trace, run.facets, run.remarks)
    tools = tools_of(talk, {"tools": run.tools})
    more: dict[str, Any] = {
        "model": run.model,
        "tools": tools,
        "ended": run.ended,
        "expected": run.expected,
        "recorded": run.recorded,
        "children": run.children,
        "agent_usage": run.agent_usage,
    }
    if run.error is not None:
        more |= broken(run.error, "the run ended in an error")
    source = run.source or Source(file="", ordinal=0)
    sample = log_sample(known, talk, source, **more)
    if run.usage is not None:
        amounts = _with_amounts(sample.usage, run.usage)
        force_setattr(sample, "usage", amounts)
    return sample


def _hand_results(talk: Conversation, results: Iterable[ToolResult]) -> None:
    """Give calls the results that stand beside the conversation.

    A call that has a result already takes over an error only.
    """
    waiting: dict[str, list[ToolCall]] = {}
    for call in talk.calls:
        waiting.setdefault(call.name, []).append(call)
    for result in results:
        calls = waiting.get(result.name, [])
        if not calls:
            continue
        same = [call for call in calls if call.arguments == result.arguments]
        call = (same or calls)[0]
        calls.remove(call)
        if call.status is None:
            finish(call, result.result, result.error)
        elif result.error is not None and call.status == "ok":
            finish(call, call.result, result.error)


def _with_amounts(usage: Usage | None, total: Usage) -> Usage:
    """Return the usage of a run's answers, with the amounts that are known of the whole run."""
    if usage is None:
        return total
    amounts = {name: getattr(total, name) for name in Usage.__struct_fields__}
    values_by_name = {name: value for name, value in amounts.items() if value is not None}
    return replace(usage, **values_by_name)


class RunReader(WholeDocuments):
    """Base of readers whose files hold whole runs.

    A format writes ``runs_of`` and ``looks_like``. Every file is read by itself, from its first
    record to its last; a record that is no JSON is bad, and the others are read. Records of another
    form are counted. A run without messages, calls and verdicts is a bad record, and so is a file
    without runs.

    A file that is one JSON document has it as its only record.

    Attributes:
        needs_words: Whether a run without messages, calls and verdicts is a bad record.
    """

    needs_words: ClassVar[bool] = True
    provides = PROVIDES | {"children"}
    stack = "auto"
    empty_answers = True
    sniffed = 100
    behind_others = 0.95
    records_are_runs: ClassVar[bool] = False
    """Whether each record is a run: then one that cannot be read is a run that is lost."""

    @classmethod
    def is_own(cls, record: Any) -> bool:
        """Return whether a record belongs to the format; others are not handed to ``runs_of``."""
        return cls.looks_like(record) != 0.0

    @abc.abstractmethod
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterable[Run]:
        """Build the runs that the records of a file hold, and yield them.

        Args:
            records: The file's records that are of the format, in order.
            file: The file.
            index: The return value of ``index`` for all files.

        Raises:
            ValueError: The file holds no run; the message becomes the reason of a bad record.
        """

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for origin in inputs.data:
            yield RecordFile(input=origin, ranges=(Range(),))

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        bad: list[BadRecord] = []
        strangers: list[Source] = []
        records = self._records(shard.input, bad, strangers)
        start = Source(file=shard.input.shown, ordinal=0)
        runs = self.runs_of(records, shard.input, index)
        is_empty = True
        for sample in self._samples(runs, start):
            is_empty = False
            yield sample
        is_part = not (self.records_are_runs or is_empty)
        yield from (replace(record, is_part=is_part) for record in bad)
        if strangers:
            number = len(strangers)
            if number == 1:
                what = "it is"
            else:
                what = f"it is the first of {number} records that are"
            reason = f"{what} of another form, and not read"
            yield BadRecord(source=strangers[0], reason=reason, is_part=is_part)
        elif is_empty and not bad and self.needs_words:
            yield BadRecord(source=start, reason=_SILENT)

    def _records(
        self, file: Input, bad: list[BadRecord], strangers: list[Source]
    ) -> Iterator[Record]:
        """Yield the records of the format that a file holds.

        Elements that are no JSON are added to ``bad``, records of other formats to ``strangers``.
        """
        is_document = self.is_whole_file(file.path)
        for element in read_document(file) if is_document else self.elements(file, Range()):
            line = None if is_document else element.line
            source = Source(file=file.shown, ordinal=element.ordinal, line=line)
            if element.problem is not None:
                bad_record = BadRecord(source=source, reason=element.problem)
                bad.append(bad_record)
            elif self.is_own(element.value):
                yield Record(element.value, source)
            else:
                strangers.append(source)

    def _samples(self, runs: Iterable[Run], start: Source) -> Iterator[Sample | BadRecord]:
        """Yield the sample of each run; one that cannot be read does not end the others."""
        remaining = iter(runs)
        while True:
            try:
                run = next(remaining, None)
            except (GradestackError, OSError, NotImplementedError):
                raise
            except Exception as error:  # noqa: BLE001 - what a format did not think of ends no file
                yield self._bad_record(error, None, start)
                return
            if run is None:
                return
            yield from self.guarded(partial(self._sample_in, run), run.first, run.source or start)

    def _sample_in(self, run: Run, _record: Any, source: Source) -> list[Sample | BadRecord]:
        """Return the sample of a run, or a bad record for a run that holds nothing."""
        sample = sample_of_run(run)
        known = sample.turns or sample.calls or run.recorded or run.error or run.children
        if known or not self.needs_words:
            return [sample]
        return [BadRecord(source=source, reason=_SILENT)]


_SILENT: Final = "there is no message in it, and no call"

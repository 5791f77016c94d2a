"""Reader ``letta``: recorded letta-evals results, and gradestack's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    DataError,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    read_records,
)
from gradestack.jsonio import as_map, open_regular
from gradestack_plugins.letta.files import SUITE, ResultFile, result_files, suite_tasks, unwrapped
from gradestack_plugins.letta.records import Context, Key, Result, Task, key_of, sample_of
from gradestack_plugins.readers.declared import convert_record
from gradestack_plugins.readers.own_rows import begins_like_own_row, check_run, is_own_row

_PROVIDED = """
model run input turns calls label text plan tools expected recorded status error agent_id
agent_usage facets remarks source
"""
_HEAD = 64 * 1024
_BY_NAME = 0.5
"""How sure the names of the files of a directory are, where its lines tell nothing."""
_PERHAPS = 0.05
_PARTS = frozenset({"trajectory", "grade", "grades", "submission"})
_SIGNS = frozenset({"trajectory", "grades", "submissions", "reward", "submission", "error"})


def directory_certainty(path: Path) -> float:
    """Return the certainty that a directory is an output of letta-evals or gradestack."""
    files = result_files(path)
    for file in files:
        head = _head_of(file.path)
        certainty = Letta.recognised(file.path, head)
        if certainty is not None:
            return certainty
    is_named = (path / SUITE).is_file() or (path / "header.json").is_file()
    return _BY_NAME if files and is_named else 0.0


def _head_of(file: Path) -> bytes:
    try:
        with open_regular(file) as opened:
            return opened.read(_HEAD)
    except OSError:  # reading it will say so
        return b""


class LettaIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that are known before the results are read."""

    tasks: dict[str, dict[str, Task]]
    """Input name -> tasks by id, for results that only name theirs."""
    repeated: bool = False
    """Whether two inputs hold results of the same task, model and run."""


@attrs.frozen(kw_only=True)
class Letta(RecordReader):
    """Reads letta-evals output directories (or their ``results.jsonl``), one sample per result
    line.

    Directories: ``results.jsonl``; ``run_N/results.jsonl`` (runs in numeric order); and, of later
    versions, ``suite.json`` with ``MODEL.jsonl`` or ``MODEL/run_N.jsonl``. Header and summary are
    not needed. A line is a bare result or ``{"type": "result", "result": ...}``; lines of other
    types are passed over.

    ``id`` is the sample's id as text, ``model`` the recorded model name (None when none is named),
    ``run`` the number of the run's folder, else 1. When several inputs are source and repeat each
    other's runs, the input's name is put before it.
    ``turns`` are the trajectory's: letta messages by their ``message_type``, or chat messages;
    calls are paired with their returns. ``ground_truth`` becomes ``expected.text``, and
    ``expected.label`` where it is one text.

    A result is a failed run when it has an ``error`` record, a null ``agent_id`` or an empty
    trajectory. A judge's or extractor's error does not fail the run, whose conversation is whole,
    and neither does an empty trajectory beside a submission. Recorded grades, submissions, costs
    and times are kept in ``recorded``, also of failed runs.

    gradestack's own report directories are read without loss of what rows hold: predictions,
    references, runs, facets, states. Tools come back by name only. A row that was changed into
    another form is a bad record.

    Attributes:
        model: Model of results that name none.
    """

    example_file = "results.jsonl"
    version = "3"
    provides = frozenset(_PROVIDED.split())
    stack = "letta"
    layout = "lines"
    sniffed = 100
    duplicates = "last"

    model: str | None = None

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir():
            return directory_certainty(path)
        return super().sniff(path, head)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        """Return the certainty of a line; None of one of another type or without content."""
        result = unwrapped(record)
        if not result or not isinstance(result, dict):
            return None
        sample = result.get("sample")
        if "id" in as_map(sample):
            return 0.0 if _PARTS.isdisjoint(result) else 0.95
        if "sample_id" not in result:
            return 0.0
        # null is left out there: of a run that failed, little but its id may be left
        keys = result.keys()
        if len(_SIGNS & keys) > 1:
            return 0.9
        return None

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        if not text.startswith(b"{"):
            return 0.0
        is_named = b'"sample"' in text or b'"sample_id"' in text
        has_parts = b'"trajectory"' in text or b'"submission"' in text
        if (is_named and has_parts) or begins_like_own_row(text):
            return 0.7
        return _PERHAPS if is_named else None

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        sample = as_map(as_map(unwrapped(record)).get("sample"))
        lacks = "none of trajectory, grade, grades and submission is there"
        return lacks if "id" in sample else None

    @override
    def index(self, inputs: Inputs) -> LettaIndex:
        tasks = {source.name: suite_tasks(source.path) for source in inputs.data}
        known: set[Key] = set()
        has_several = len(inputs.data) > 1
        for source in inputs.data if has_several else ():
            keys = set(self._keys(source))
            if known & keys:
                return LettaIndex(tasks=tasks, repeated=True)
            known |= keys
        return LettaIndex(tasks=tasks)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield no remark; a report directory that is not whole is refused."""
        for source in inputs.data:
            check_run(source.path)
        return iter(())

    def _keys(self, source: Input) -> Iterator[Key]:
        """Yield the keys of all records of an input that have an id."""
        for file in _files(source):
            context = Context(run=file.run, model=file.model, unnamed=self.model)
            for element in read_records(source.below(file.relative), layout=self.layout):
                record = unwrapped(element.value)
                if isinstance(record, dict):
                    result, _ = convert_record(record, Result)
                    is_own = is_own_row(record)
                    key = key_of(result, context, is_own=is_own)
                    if key.id is not None:
                        yield key

    def files(self, inputs: Inputs, index: LettaIndex) -> Iterator[RecordFile]:
        """Yield each file of results, by the number of its run."""
        for source in inputs.data:
            for file in _files(source):
                extra = [file.relative, file.run, file.model]
                yield RecordFile(input=source, file=source.below(file.relative), extra=extra)

    @override
    def read(self, shard: Shard, index: LettaIndex) -> Iterator[Sample | BadRecord]:
        source = shard.input
        relative, run, model = shard.extra
        input_name = source.name if index.repeated else None
        tasks = index.tasks[source.name]
        context = Context(
            run=run,
            model=model,
            unnamed=self.model,
            input_name=input_name,
            tasks=tasks,
        )
        samples_of = partial(_samples_of_line, context)
        return self.samples(shard, samples_of, source.below(relative))


def _samples_of_line(context: Context, line: Any, source: Source) -> Iterator[Sample | BadRecord]:
    record = unwrapped(line)
    if record is not ABSENT:
        yield sample_of(record, source, context)


def _files(source: Input) -> list[ResultFile]:
    files = result_files(source.path)
    if not files:
        raise DataError(f"{source.path}: holds neither results.jsonl nor run_N/results.jsonl")
    return files

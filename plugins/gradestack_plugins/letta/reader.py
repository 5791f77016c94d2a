"""Reader ``letta``: recorded letta-evals results, and gradestack's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

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
from gradestack.jsonio import Layout, open_regular
from gradestack_plugins.letta.files import (
    SUITE,
    ResultFile,
    check_rows,
    result_files,
    suite_samples,
    unwrapped,
)
from gradestack_plugins.letta.recording import read_object
from gradestack_plugins.letta.records import Context, identity, model_of, run_of, sample_of

_HEAD = 64 * 1024
_BEHIND_OTHERS = 0.3
_PERHAPS = 0.05
_SIGNS = frozenset({"trajectory", "grades", "submissions", "reward", "submission", "error"})
_OWN_START = b'{"grade":{'
"""How gradestack's own rows begin: with what graders say."""
_NAMED = (b'"sample"', b'"sample_id"')


def directory_certainty(path: Path, recognised: Callable[[Path, bytes], float | None]) -> float:
    """Return how sure it is that a directory is one of letta-evals' (or gradestack's) outputs."""
    files = result_files(path)
    best, undecided, named = 0.0, True, False
    for file in files:
        try:
            with open_regular(file.path) as opened:
                head = opened.read(_HEAD)
        except OSError:  # reading it will say so
            continue
        found = recognised(file.path, head)
        undecided = undecided and found is None
        named = named or any(name in head for name in _NAMED)
        best = max(best, found or 0.0)
        if best > _BEHIND_OTHERS:
            return best
    if files and isinstance(read_object(path / SUITE).get("samples"), list | Mapping):
        return 0.9
    if files and undecided and ((path / "header.json").is_file() or (path / SUITE).is_file()):
        return 0.5
    return best or (_PERHAPS if undecided and named else 0.0)


def looks_like(record: Any) -> float | None:
    """Return how much a line looks like a result.

    None for one of another type, and for what holds nothing.
    """
    result = unwrapped(record)
    if not result or not isinstance(result, Mapping):
        return None
    sample, error = result.get("sample"), result.get("error")
    if isinstance(sample, Mapping) and ("id" in sample or "sample_id" in result):
        return 0.95 if {"trajectory", "grade", "grades", "submission"} & set(result) else 0.0
    if "sample_id" not in result:
        return 0.0
    if len(_SIGNS & set(result)) > 1:
        return 0.9
    # Null fields are dropped: of a run that failed, little but the error may be left.
    return (
        0.8 if isinstance(error, Mapping) and {"category", "exception_type"} & set(error) else 0.0
    )


def complaint(record: dict[str, Any]) -> str | None:
    """Return what is missing from a result that names its sample."""
    result = unwrapped(record)
    sample = result.get("sample") if isinstance(result, Mapping) else None
    named = isinstance(sample, Mapping) and "id" in sample
    return (
        "none of trajectory, grade, grades and submission is there"
        if named and not looks_like(record)
        else None
    )


def begins_like(text: bytes) -> float | None:
    """Return how much a line that breaks off looks like a result; 0.0 where it is no object."""
    if not text.startswith(b"{"):
        return 0.0
    named = any(name in text for name in _NAMED)
    signs = named and (b'"trajectory"' in text or b'"submission"' in text)
    own = text.startswith(_OWN_START) and b'"rationale":' in text
    return 0.7 if signs or own else None


class LettaIndex(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before the results are read."""

    samples: dict[str, dict[str, Mapping[str, Any]]] = msgspec.field(default_factory=dict)
    """Input name -> samples by id, for results that only name theirs."""
    apart: bool = False
    """Whether two inputs hold results of the same sample, model and run."""


@attrs.frozen(kw_only=True)
class Letta(RecordReader):
    """Reads letta-evals output directories (or their ``results.jsonl``), one sample per result
    line.

    Directories: ``results.jsonl``; ``run_N/results.jsonl`` (runs in numeric order); and, of later
    versions, ``suite.json`` with ``MODEL.jsonl`` or ``MODEL/run_N.jsonl``. Header and summary are
    not needed. A line is a bare result or ``{"type": "result", "result": ...}``; lines of other
    types are passed over.

    ``id`` is the sample's id as text, ``model`` the recorded model name (None when none is named),
    ``run`` the number of the run's folder, else 1. When several inputs are given and repeat each
    other's runs, the input's name is put before it.
    ``turns`` are the trajectory's: letta messages by their ``message_type``, or chat messages;
    calls are paired with their returns. ``ground_truth`` becomes ``expected.text``, and
    ``expected.label`` where it is one text.

    A result is a failed run when it has an ``error`` record, a null ``agent_id`` or an empty
    trajectory. A judge's or extractor's error does not fail the run, whose conversation is whole,
    and neither does an empty trajectory beside a submission. Recorded grades, submissions, costs
    and times are kept in ``recorded``, also of failed runs.

    gradestack's own run directories are read without loss of what rows hold: predictions,
    references, runs, facets, states. Tools come back by name only. A row that was changed into
    another form is a bad record.

    Attributes:
        model: Model of results that name none.
    """

    version: ClassVar[str] = "3"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            "model",
            "run",
            "input",
            "turns",
            "calls",
            "label",
            "text",
            "plan",
            "tools",
            "expected",
            "recorded",
            "status",
        }
        | {"error", "agent_id", "agent_usage", "facets", "remarks", "source"}
    )
    stack: ClassVar[str | None] = "letta"
    layout: ClassVar[Layout] = "lines"
    sniffed: ClassVar[int] = 100
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "last"

    model: str | None = None

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)
    complaint = staticmethod(complaint)

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        return (
            directory_certainty(path, cls.recognised)
            if path.is_dir()
            else super().sniff(path, head)
        )

    @override
    def index(self, inputs: Inputs) -> LettaIndex:
        samples = {given.name: suite_samples(given.path) for given in inputs.data}
        return LettaIndex(samples=samples, apart=self._repeats(inputs))

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield no remark; a run directory that is not whole is refused."""
        for given in inputs.data:
            check_rows(given.path)
        return iter(())

    def _repeats(self, inputs: Inputs) -> bool:
        """Return whether inputs hold results of the same sample, model and run."""
        seen: set[int] = set()
        for given in inputs.data if len(inputs.data) > 1 else ():
            keys = set(map(hash, self._keys(given)))
            if seen & keys:
                return True
            seen |= keys
        return False

    def _keys(self, given: Input) -> Iterator[tuple[str, str | None, int | str | None]]:
        for file in _files(given):
            context = Context(run=file.run, model=file.model, unnamed=self.model)
            for record in read_records(given.below(file.relative), layout=self.layout):
                result = unwrapped(record.value)
                if (known := identity(result)) is not None:
                    yield str(known), model_of(result, context), run_of(result, context)

    def files(self, inputs: Inputs, index: LettaIndex) -> Iterator[RecordFile]:
        """Yield every file of results, runs in numeric order."""
        for given in inputs.data:
            for file in _files(given):
                extra = {"relative": file.relative, "run": file.run, "model": file.model}
                yield RecordFile(input=given, file=given.below(file.relative), extra=extra)

    @override
    def read(self, shard: Shard, index: LettaIndex) -> Iterator[Sample | BadRecord]:
        given, extra = shard.input, shard.extra
        apart, samples = given.name if index.apart else None, index.samples.get(given.name, {})
        context = Context(
            run=extra["run"],
            model=extra["model"],
            unnamed=self.model,
            apart=apart,
            samples=samples,
        )

        def samples_of(record: Any, source: Source) -> Iterator[Sample | BadRecord]:
            result = unwrapped(record)
            if result is not ABSENT:
                yield sample_of(result, source, context)

        return self.samples(shard, samples_of, given.below(extra["relative"]))


def _files(given: Input) -> list[ResultFile]:
    found = result_files(given.path)
    if not found:
        raise DataError(f"{given.path}: holds neither results.jsonl nor run_N/results.jsonl")
    return found

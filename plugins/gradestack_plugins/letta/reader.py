"""Reader ``letta``: recorded letta-evals results, and gradestack's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import msgspec
from msgspec import Raw
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    ConfigError,
    DataError,
    Input,
    Inputs,
    Profile,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    read_records,
)
from gradestack.jsonio import JsonProblem, Layout, check_depth, loads, open_regular, read_regular
from gradestack_plugins.letta.recordings import (
    SUITE,
    ResultFile,
    check_rows,
    place_of,
    result_files,
    suite_samples,
    unwrapped,
)
from gradestack_plugins.letta.records import Context, identity, is_own, model_of, run_of, sample_of

_NOTHING = Raw(b"")
_SEVERAL = 2


class _Task(msgspec.Struct, gc=False):
    id: str | int | None = None


class _Result(msgspec.Struct, gc=False):
    """What of a result says whose it is; the rest is passed over, which is many times faster than decoding it."""

    sample: _Task | None = None
    sample_id: str | int | None = None
    model_name: str | None = None
    model_handle: str | None = None
    predicted: Raw = _NOTHING
    expected: Raw = _NOTHING


class _Line(_Result, gc=False):
    type: str | None = None
    result: _Result | None = None


_line = msgspec.json.Decoder(_Line).decode


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """What the results of one recording say of their models."""

    named: tuple[str, ...] = ()
    """At most two: more are told apart no further."""
    unnamed: int = 0
    """Results that name none."""
    first: str = ""
    """Where the first of these stands."""


def _brief(line: bytes) -> Any:
    try:
        found = _line(line)
        check_depth(line)
    except (ValueError, RecursionError):  # of another type than usual, or no JSON
        return loads(line)
    return found


def _model(record: Any) -> str | None:
    """Return the model a line's result names, "" for one that names none; None for what is no such result."""
    if not isinstance(record, _Line):
        result = unwrapped(record)
        if identity(result) is None or is_own(result):
            return None
        return model_of(result, Context()) or ""
    found = record if record.type is None else record.result if record.type == "result" else None
    if found is None or (_is_object(found.predicted) and _is_object(found.expected)):
        return None
    if found.sample_id is None and (found.sample is None or found.sample.id is None):
        return None
    return found.model_name or found.model_handle or ""


def _is_object(value: Raw) -> bool:
    return bytes(memoryview(value)[:1]) == b"{"


def only_model(given: Input) -> str | None:
    """Return the model of a recording's results that name none: the only one the others name; None where none does."""
    found = models_of(given)
    if not found.unnamed or not found.named:
        return None
    if len(found.named) > 1:
        names = " and ".join(map(repr, found.named))
        raise ConfigError(
            f"{found.first}: the result names no model, and others name several, such as {names}",
            "say whose such results are with --set reader.model=NAME, or name it in the file",
        )
    return found.named[0]


def models_of(given: Input) -> Models:
    """Return what a recording says of its models; none of a layout whose files are named by model."""
    if given.path.is_dir() and (given.path / SUITE).is_file():
        return Models()
    files = tuple(file for file in result_files(given.path) if file.model is None)
    return _models_in(given, files, tuple(map(_stamp, files)))


def _stamp(file: ResultFile) -> tuple[int, ...]:
    try:
        stat = file.path.stat()
    except OSError:  # reading it says so
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=256)
def _models_in(given: Input, files: tuple[ResultFile, ...], stamps: tuple[tuple[int, ...], ...]) -> Models:  # noqa: ARG001
    """Return what files say; asked for before grading and again by the reader, they are read once."""
    named: dict[str, None] = {}
    unnamed, first = 0, ""
    for file in files:
        place = place_of(given, file.relative)
        for each in read_records(place, layout="lines", decode=_brief):
            model = None if each.problem is not None else _model(each.value)
            if model == "":
                unnamed, first = unnamed + 1, first or f"{place.shown}:{each.line}"
            elif model is not None and len(named) < _SEVERAL:
                named[model] = None
    return Models(named=tuple(named), unnamed=unnamed, first=first)


_HEAD = 64 * 1024
_BEHIND_OTHERS = 0.3
_PERHAPS = 0.05
_SIGNS = frozenset({"trajectory", "grades", "submissions", "reward", "submission", "error"})
_OWN_START = b'{"grade":{'
"""How gradestack's own rows begin: with what graders say."""
_NAMED = (b'"sample"', b'"sample_id"')


def directory_certainty(path: Path, recognised: Callable[[Path, bytes], float | None]) -> float:
    """Return how sure it is that a directory is one of letta-evals' (or gradestack's) outputs.

    It is when any of its result files is one: a run that is empty or begins with a damaged line is part of it. Without
    one, ``suite.json`` with its samples speaks for it, or, where no line can be read, a header.
    """
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
    if files and _has_samples(path / SUITE):
        return 0.9
    if files and undecided and ((path / "header.json").is_file() or (path / SUITE).is_file()):
        return 0.5
    return best or (_PERHAPS if undecided and named else 0.0)


def _has_samples(suite: Path) -> bool:
    try:
        content = loads(read_regular(suite))
    except (OSError, JsonProblem):
        return False
    return isinstance(content, Mapping) and isinstance(content.get("samples"), list | Mapping)


def looks_like(record: Any) -> float | None:
    """Return how much a line looks like a result; None for one of another type, and for what holds nothing."""
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
    return 0.8 if isinstance(error, Mapping) and {"category", "exception_type"} & set(error) else 0.0


def complaint(record: dict[str, Any]) -> str | None:
    """Return what is missing from a result that names its sample."""
    result = unwrapped(record)
    sample = result.get("sample") if isinstance(result, Mapping) else None
    named = isinstance(sample, Mapping) and "id" in sample
    return "none of trajectory, grade, grades and submission is there" if named and not looks_like(record) else None


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
    models: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Input name -> model of its results that name none."""
    apart: bool = False
    """Whether two inputs hold results of the same sample, model and run."""


@attrs.frozen(kw_only=True)
class Letta(RecordReader):
    """Reads letta-evals output directories (or their ``results.jsonl``), one sample per result line.

    Directories: ``results.jsonl``; ``run_N/results.jsonl`` (runs in numeric order); and, of later versions,
    ``suite.json`` with ``MODEL.jsonl`` or ``MODEL/run_N.jsonl``. Header and summary are not needed. A line is a bare
    result or ``{"type": "result", "result": ...}``; lines of other types are passed over.

    ``id`` is the sample's id as text, ``model`` the recorded model name (None when none is named), ``run`` the number
    of the run's folder, else 1. Results that name no model beside others that do are those of the only one named; where
    several are, ``model`` must say whose they are. When several inputs are given and repeat each other's runs, the
    input's name is put before it. ``turns`` are the trajectory's: letta messages by their ``message_type``, or chat
    messages; calls are paired with their returns. ``ground_truth`` becomes ``expected.text``, and ``expected.label``
    where it is one text.

    A result is a failed run when it has an ``error`` record, a null ``agent_id`` or an empty trajectory. In
    ``documented`` a judge's or extractor's error does not fail the run, whose conversation is whole, and neither does
    an empty trajectory beside a submission; ``upstream`` takes any of them as failed, and a result that leaves
    ``agent_id`` out, but not a trajectory that holds an empty turn. Recorded grades, submissions, costs and times are
    kept in ``recorded``, also of failed runs.

    gradestack's own run directories are read without loss of what rows hold: predictions, references, runs, facets,
    states. Tools come back by name only.

    Attributes:
        profile: ``documented`` or ``upstream``.
        model: Model of results that name none.
    """

    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(
        {"model", "run", "input", "turns", "calls", "label", "text", "plan", "tools", "expected", "recorded", "status"}
        | {"error", "agent_id", "agent_usage", "facets", "source"}
    )
    stack: ClassVar[str | None] = "letta"
    layout: ClassVar[Layout] = "lines"
    sniffed: ClassVar[int] = 100
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "last"

    profile: Profile = "documented"
    model: str | None = None

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)
    complaint = staticmethod(complaint)

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        return directory_certainty(path, cls.recognised) if path.is_dir() else super().sniff(path, head)

    @override
    def index(self, inputs: Inputs) -> LettaIndex:
        samples = {each.name: suite_samples(each.path) for each in inputs.data}
        models = {each.name: self.model or only_model(each) for each in inputs.data}
        apart = len(inputs.data) > 1 and self._repeats(inputs, models)
        return LettaIndex(samples=samples, models=models, apart=apart)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield a warning for each input some of whose results name no model and are taken as the only one's."""
        for given in inputs.data:
            check_rows(given.path)
        for given in inputs.data if self.model is None else ():
            if (model := only_model(given)) is not None:
                count = models_of(given).unnamed
                whose = f"{count} result(s) name no model, the first at {models_of(given).first}"
                yield f"{given.shown}: {whose}; they are taken as those of {model!r}, the only one named"

    def _repeats(self, inputs: Inputs, models: Mapping[str, str | None]) -> bool:
        seen: set[int] = set()
        for given in inputs.data:
            own: set[int] = set()
            for file in _files(given):
                context = Context(run=file.run, model=file.model, unnamed=models[given.name])
                for found in read_records(place_of(given, file.relative), layout=self.layout):
                    result = unwrapped(found.value)
                    if identity(result) is not None:
                        own.add(hash((str(identity(result)), model_of(result, context), run_of(result, context))))
            if seen & own:
                return True
            seen |= own
        return False

    def files(self, inputs: Inputs, index: LettaIndex) -> Iterator[RecordFile]:
        """Yield every file of results, runs in numeric order."""
        for given in inputs.data:
            for file in _files(given):
                extra = {"relative": file.relative, "run": file.run, "model": file.model}
                yield RecordFile(input=given, file=place_of(given, file.relative), extra=extra)

    @override
    def read(self, shard: Shard, index: LettaIndex) -> Iterator[Sample | BadRecord]:
        given, extra = shard.input, shard.extra
        context = Context(
            run=extra["run"],
            apart=given.name if index.apart else None,
            model=extra["model"],
            unnamed=index.models.get(given.name),
            samples=index.samples.get(given.name, {}),
            profile=self.profile,
        )

        def samples_of(record: Any, source: Source) -> Iterator[Sample | BadRecord]:
            result = unwrapped(record)
            if result is not ABSENT:
                yield sample_of(result, source, context)

        return self.samples(shard, samples_of, place_of(given, extra["relative"]))


def _files(given: Input) -> list[ResultFile]:
    found = result_files(given.path)
    if not found:
        raise DataError(f"{given.path}: holds neither results.jsonl nor run_N/results.jsonl")
    return found

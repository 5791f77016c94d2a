"""Reader ``tau2``: results of tau2-bench."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    compile_later,
    first_of,
    read_document,
    reading,
)
from gradestack.jsonio import (
    SHARD_BYTES,
    Element,
    JsonProblem,
    Layout,
    Range,
    as_list,
    iter_members,
    loads,
    open_regular,
)
from gradestack_plugins.tau2_bench.records import Setting, sample_of, setting_of

RESULTS = "results.json"
SIMULATIONS = "simulations"
_NAMED = 3
"""Number of names that a message shows."""
_INFO = (b'"environment_info"', b'"agent_info"')
_RUN = (b'"task_id"', b'"termination_reason"')
_OPENING = compile_later(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(\w+)"\s*:')
_FIRST_KEYS = frozenset(b"timestamp info tasks simulations simulation_index format_version".split())
"""Keys that a results file begins with."""
_HEAD = 64 * 1024
_DECODED = 1024 * 1024
"""Bytes that are read of a file with a long policy or long tools at its beginning."""


def confidence(path: Path, head: bytes) -> float:
    """Return the confidence that a path holds results of tau2-bench, or one simulation of them."""
    if path.is_dir():
        return 0.95 if _is_run(path) else 0.0
    if is_results(path, head):
        return 0.95
    return 0.9 if is_simulation(head) else 0.0


def is_results(path: Path, head: bytes) -> bool:
    """Return whether a file begins as an object with the benchmark's keys of a run."""
    opening = _OPENING.match(head)
    if opening is None or opening[1] not in _FIRST_KEYS:
        return False
    if _names_a_run(head):
        return True
    if len(head) < _HEAD:
        return False
    with suppress(OSError), open_regular(path) as file:  # reading it will say so
        return _names_a_run(file.read(_DECODED))
    return False


def is_simulation(head: bytes) -> bool:
    """Return whether a file begins as one simulation: a file of the directory form."""
    opening = _OPENING.match(head)
    if opening is None or opening[1] not in {b"id", b"task_id"}:
        return False
    return all(key in head for key in _RUN)


def _names_a_run(text: bytes) -> bool:
    """Return whether a text has the keys of a run, or those of its simulations."""
    if all(key in text for key in _INFO):
        return True
    return b'"simulations"' in text and all(key in text for key in _RUN)


def _is_run(directory: Path) -> bool:
    """Return whether a directory holds results.json of the benchmark."""
    results = directory / RESULTS
    with suppress(OSError), open_regular(results) as file:
        return is_results(results, file.read(_HEAD))
    return False


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One input: the setting and the positions of its simulations."""

    setting: Setting = msgspec.field(default_factory=Setting)
    ranges: tuple[Range, ...] | None = None
    """Ranges of the simulations in the file itself; None in the directory form."""
    files: tuple[str, ...] = ()
    """Files of the directory form, below the directory of the results file."""
    missing: tuple[str, ...] = ()
    """Ids that ``simulation_index`` names and no file has."""
    extra: tuple[str, ...] = ()
    """Ids that files have and ``simulation_index`` does not name."""


class Tau2(RecordReader):
    """Reads results of tau2-bench.

    A file with ``tasks`` and ``simulations``, or a directory of one file each.

    One sample per simulation: ``id`` is ``task_id`` as text, ``run`` is ``trial``, ``model`` the
    agent's model. ``calls`` are the tool calls of all messages, those of the user's simulator with
    ``requestor: user``, each with its result. ``expected.calls`` are the actions of the task;
    arguments that ``compare_args`` leaves out may be anything. ``recorded`` holds ``reward``,
    ``db_match`` and, of each list of checks, the share that is met; ``ended`` and the facet
    ``termination_reason`` say how it ended. A simulation that ended by ``infrastructure_error`` or
    ``unexpected_error`` is a failed sample.

    A file that has simulations of its own is read alone; one without is read with the folder
    ``simulations`` beside it. A single file of that folder is read with the results file above it,
    where there is one.
    """

    example_file = "data/simulations/….json"
    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(
        """
        model run input turns calls text tools expected recorded status error ended usage
        agent_usage trace facets remarks source native
        """.split()  # noqa: SIM905
    )
    stack: ClassVar[str | None] = "tau2"
    layout: ClassVar[Layout] = "list"
    takes_directories: ClassVar[bool] = True
    simulated_users: ClassVar[bool] = True

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        return confidence(path, head)

    @override
    def index(self, inputs: Inputs) -> dict[str, Recording]:
        """Return the recording of each input, by its name."""
        paths = {origin.path.resolve() for origin in inputs.data}
        recordings = {}
        for origin in inputs.data:
            with reading(origin.path):
                recordings[origin.name] = _recording(origin, paths)
        return recordings

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield remarks on the inputs as a whole."""
        for origin, recording in zip(inputs.data, self.index(inputs).values(), strict=True):
            yield from (f"{origin.shown}: {remark}" for remark in recording.setting.remarks)
            if recording.extra:
                number = len(recording.extra)
                names = first_of(recording.extra, _NAMED)
                what = f"{number} simulation(s) not in simulation_index, read all the same"
                yield f"{origin.shown}: {what}: {names}"

    def files(self, inputs: Inputs, index: dict[str, Recording]) -> Iterator[RecordFile]:
        """Yield the file of each input, or the files of its directory, and its missing ids."""
        for origin in inputs.data:
            recording = index[origin.name]
            if recording.ranges is not None:
                results = _results(origin)
                yield RecordFile(input=origin, file=results, ranges=recording.ranges)
            for relative in recording.files:
                file = origin.below(relative)
                yield RecordFile(input=origin, file=file, ranges=(Range(),), extra=relative)
            if recording.missing:
                missing: list[Any] = list(recording.missing)
                file = _results(origin)
                yield RecordFile(input=origin, file=file, ranges=(Range(),), extra=missing)

    @override
    def read(self, shard: Shard, index: dict[str, Recording]) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a range, or of one file, in order."""
        origin = shard.input
        setting = index[shard.input.name].setting
        if isinstance(shard.extra, list):
            for ordinal, identifier in enumerate(shard.extra):
                results = _results(origin)
                source = Source(file=results.shown, ordinal=ordinal)
                file_name = f"{SIMULATIONS}/{identifier}.json"
                reason = f"simulation_index names {identifier}, but there is no {file_name}"
                yield BadRecord(source=source, reason=reason)
            return
        if shard.extra:
            file = origin.below(shard.extra)
        else:
            file = _results(origin)
        read = lambda record, source: (sample_of(record, source, setting),)  # noqa: E731
        yield from self.samples(shard, read, file)

    @override
    def elements(self, file: Input, part: Range) -> Iterator[Element]:
        """Yield the simulations of a range; one whole file is one simulation."""
        if part.start:
            return super().elements(file, part)
        return read_document(file)


_EXPECTED = "results of tau2-bench are expected"


def _recording(origin: Input, inputs: set[Path]) -> Recording:
    """Open a recording of tau2-bench: a results file, a simulation, or a directory of both."""
    results = _results(origin).path
    if not results.is_file():
        problem = "no such file"
        if origin.path.is_dir():
            problem = f"no {RESULTS} in this directory"
        raise DataError(f"{origin.path}: {problem}; {_EXPECTED}")
    with open_regular(results) as file:
        head = file.read(_HEAD)
    if is_simulation(head) and not is_results(results, head):
        return _alone(results, inputs)
    values, ranges = _members(results)
    if "info" not in values and "tasks" not in values and ranges is None:
        raise DataError(f"{origin.path}: neither info, tasks nor simulations; {_EXPECTED}")
    tasks = values.get("tasks")
    setting = setting_of(values.get("info"), tasks)
    folder = results.parent / SIMULATIONS
    if ranges is not None or not folder.is_dir():
        return Recording(setting=setting, ranges=ranges or ())
    return _directory(setting, folder, values.get("simulation_index"))


def _alone(file: Path, inputs: set[Path]) -> Recording:
    """Return the recording of one file of a folder; empty where the folder is an input, too."""
    results = file.parent.parent / RESULTS
    path = results.resolve()
    if {path, results.parent.resolve()} & inputs:
        return Recording()
    values: dict[str, Any] = {}
    if file.parent.name == SIMULATIONS and results.is_file():
        values, _ = _members(results)
    tasks = values.get("tasks")
    setting = setting_of(values.get("info"), tasks)
    return Recording(setting=setting, files=("",))


def _members(results: Path) -> tuple[dict[str, Any], tuple[Range, ...] | None]:
    """Return the members of a results file, and the ranges of its simulations; None without any."""
    values: dict[str, Any] = {}
    ranges = None
    for member in iter_members(results, SHARD_BYTES):
        if member.key == SIMULATIONS:
            if member.ranges is None and member.read(results).strip() != b"null":
                raise DataError(f"{results}:{member.line}: {SIMULATIONS}: expected a list")
            ranges = member.ranges or None
            continue
        try:
            text = member.read(results)
            values[member.key] = loads(text)
        except JsonProblem as problem:
            raise DataError(f"{results}:{member.line}: {member.key}: {problem}") from problem
    return values, ranges


def _directory(setting: Setting, folder: Path, index: Any) -> Recording:
    """Return the recording of a folder of simulations, checked against the index, if any."""
    paths = [path for path in folder.iterdir() if path.suffix == ".json"]
    names = sorted(path.stem for path in paths if not path.name.startswith("."))
    entries = [entry for entry in as_list(index) if isinstance(entry, dict) and "id" in entry]
    indexed = dict.fromkeys(str(entry["id"]) for entry in entries)
    if isinstance(index, list):
        extra = [name for name in names if name not in indexed]
    else:
        extra = []
    missing = tuple(name for name in indexed if name not in set(names))
    return Recording(
        setting=setting,
        files=tuple(f"{SIMULATIONS}/{name}.json" for name in names),
        missing=missing,
        extra=tuple(extra),
    )


def _results(origin: Input) -> Input:
    return origin.below(RESULTS) if origin.path.is_dir() else origin

"""Reader ``letta_dataset``: what agents were asked and what is right, as JSON Lines or CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs

from gradestack.api import Inputs, Profile, Reader, Shard
from gradestack.errors import DataError
from gradestack.jsontext import JsonProblem, loads
from gradestack.model import BadRecord, Sample, Source
from gradestack_plugins.letta.dataset_rows import KEYS, RESULT_KEYS, csv_record, row_sample

_INPUTS = ("input", "prompt")


@attrs.frozen(kw_only=True)
class LettaDataset(Reader):
    """Reads letta-evals datasets: ``.csv``, or JSON Lines whatever the ending.

    ``input`` (or ``prompt``) is required: a text, or a list of texts, one per user turn. ``ground_truth`` is a text or
    a list of texts, one per turn; ``documented`` also takes any other JSON value as its JSON text, ``upstream`` refuses
    it, and refuses a list for an input that is none. ``agent_args``, ``rubric_vars`` and ``extra_vars`` must be
    objects; nothing is graded by them. ``metadata`` and ``tags`` become facets.

    The id is the row's number, counted from 0; ``documented`` prefers ``sample_id`` or ``id`` where a row has one
    (letta-evals does from 0.17 on).

    JSON Lines: one object per line, a blank line is an error. CSV: column ``input`` is required; a cell of it that is a
    JSON list of texts is a list of turns, and then ``ground_truth`` may be one too; cells of the other columns hold
    JSON objects; an empty cell is no value. A file without any row is refused.

    Attributes:
        profile: ``documented`` or ``upstream``.
    """

    version: ClassVar[str] = "1"
    provides: ClassVar[frozenset[str]] = frozenset({"input", "expected", "facets", "source"})
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "error"

    profile: Profile = "documented"

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Recognise a CSV file by its column ``input``, JSON Lines by the keys of the first row."""
        if path.is_dir():
            return 0.0
        first = next((line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()), b"")
        if path.suffix.lower() == ".csv":
            names = next(csv.reader([first.decode("utf-8", errors="replace")]), [])
            return 0.8 if set(_INPUTS) & set(names) else 0.0
        return _certainty(first)

    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        """Give one shard per file.

        Raises:
            DataError: A file is empty, cannot be read, or is a CSV without column ``input``.
        """
        position = 0
        for ordinal, given in enumerate(inputs.data):
            try:
                if given.path.is_dir():
                    raise DataError(f"{given.path}: is a directory; a dataset file is expected")
                size = given.path.stat().st_size
                if not size:
                    raise DataError(f"{given.path}: the dataset is empty")
                if _is_csv(given.path):
                    _check_columns(given.path)
            except OSError as error:
                raise DataError(f"{given.path}: cannot be read: {error.strerror or error}") from error
            yield Shard(ordinal=ordinal, input=given, position=position)
            position += size + 1

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield one sample per row.

        Raises:
            DataError: The file cannot be read.
        """
        path, shown = shard.input.path, shard.input.shown
        lines: dict[str, int] = {}
        rows = _csv_rows(path) if _is_csv(path) else _json_rows(path)
        try:
            for ordinal, (line, record) in enumerate(rows):
                yield self._row(record, Source(file=shown, ordinal=ordinal, line=line), lines)
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error

    def _row(self, record: Any, source: Source, lines: dict[str, int]) -> Sample | BadRecord:
        """Return the sample of a row, or what is wrong with it; ``lines`` holds where each id was seen."""
        if isinstance(record, ValueError):
            return BadRecord(source=source, reason=str(record))
        try:
            sample = row_sample(record, source, self.profile)
        except ValueError as problem:
            return BadRecord(source=source, reason=str(problem), native=record)
        if sample.id in lines:
            reason = f"id {sample.id!r} stands on line {lines[sample.id]} already"
            return BadRecord(source=source, reason=reason, native=record)
        lines[sample.id] = source.line or 0
        return sample


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _certainty(line: bytes) -> float:
    try:
        record = loads(line)
    except JsonProblem:
        cut = len(line) >= 60_000 and line.lstrip().startswith((b'{"input"', b'{"prompt"'))
        return 0.4 if cut else 0.0
    if not isinstance(record, Mapping) or RESULT_KEYS & set(record):
        return 0.0
    given = next((record[name] for name in _INPUTS if name in record), None)
    asked = isinstance(given, str) or (isinstance(given, list) and all(isinstance(turn, str) for turn in given))
    if not asked:
        return 0.0
    if set(record) <= KEYS:
        return 0.6 if "ground_truth" in record else 0.4
    return 0.5 if "ground_truth" in record else 0.0


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            line = data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data
            if not line.strip():
                yield number, ValueError("a blank line; every line holds one row")
                continue
            try:
                yield number, loads(line)
            except JsonProblem as problem:
                yield number, problem


def _check_columns(path: Path) -> None:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV: {error}") from error
    if not set(_INPUTS) & set(names):
        raise DataError(f"{path}: a column 'input' is needed; there are: {', '.join(names) or 'none'}")


def _csv_rows(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        while True:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield line, ValueError(f"not CSV: {error}; the rest of the file could not be read")
                return
            try:
                yield line, csv_record(row)
            except ValueError as problem:
                yield line, problem

"""Reader ``letta_dataset``: what agents were asked and what is right, as JSON Lines or CSV."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    BadRecord,
    DataError,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    reading,
    replace,
)
from gradestack.jsonio import (
    CsvProblem,
    JsonProblem,
    Layout,
    Range,
    as_map,
    compact,
    csv_rows,
    loads,
    open_regular,
    whole_line,
)
from gradestack_plugins.letta.records import VARIABLES, expectation, facets_of, input_of, truth_of

_INPUTS = ("input", "prompt")
_OBJECTS = (*VARIABLES, "metadata")
_OWN = {"ground_truth", *VARIABLES}
"""Names that speak for a dataset although the input is missing."""
KEYS = frozenset(
    [
        "input",
        "prompt",
        "ground_truth",
        "id",
        "sample_id",
        "rubric",
        "rubric_path",
        "metadata",
        "tags",
    ]
) | {*VARIABLES}
RESULT_KEYS = frozenset(
    [
        "expected",
        "predicted",
        "messages",
        "turns",
        "trajectory",
        "sample",
        "grade",
        "grades",
        "submission",
        "uuid",
        "calls",
        "tool_calls",
        "actual_tool_calls",
        "predicted_calls",
        "tools_called",
    ]
)
"""Keys of recorded results in other forms: a row with one of them is no dataset row."""
_LITTLE = 0.02
_LINES = 20
"""Rows looked at for a sound one behind a damaged first row."""


def _is_texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _refuse(name: str, what: str, value: JSON) -> NoReturn:
    raise ValueError(f"{name} must be {what}, got {compact(value)[:60]}")


def row_sample(record: Any, source: Source) -> Sample:
    """Return the sample of a row.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"expected a row (an object), found {compact(record)[:60]}")
    name = next((name for name in _INPUTS if name in record), None)
    if name is None:
        raise ValueError("input is missing")
    given, truth = record[name], record.get("ground_truth")
    has_turns = isinstance(given, list)
    if not isinstance(given, str) and not (given and _is_texts(given)):
        _refuse(name, "a text or a list of texts", given)
    for key in _OBJECTS:
        if not isinstance(record.get(key), Mapping | None):
            _refuse(key, "an object", record[key])
    if has_turns and isinstance(truth, list) and len(truth) != len(given):
        raise ValueError(f"ground_truth has {len(truth)} text(s) for {len(given)} user turn(s)")
    named = [key for key in ("sample_id", "id") if record.get(key) is not None]
    identifier = record[named[0]] if named else source.ordinal
    if isinstance(identifier, bool) or not isinstance(identifier, int | str):
        _refuse(named[0], "a text or a whole number", identifier)
    placed = source if isinstance(identifier, str) else replace(source, id=identifier)
    expected = expectation(truth_of(truth, turns=has_turns))
    sample = Sample(id=str(identifier), input=input_of(given), expected=expected, source=placed)
    return replace(sample, facets=facets_of(record))


def csv_record(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the row a CSV line stands for, cells decoded and empty ones left out.

    Raises:
        ValueError: A cell holds no object where one belongs, or there are too many.
    """
    if row.get(None):
        raise ValueError(f"more cells than columns: {compact(row[None])[:60]}")
    cells = {name: cell for name, cell in row.items() if name in _INPUTS or cell}
    cells |= {name: _list_cell(cells[name]) for name in _INPUTS if name in cells}
    has_turns = any(isinstance(cells.get(name), list) for name in _INPUTS)
    if has_turns and "ground_truth" in cells:
        cells["ground_truth"] = _list_cell(cells["ground_truth"])
    cells |= {name: _object_cell(name, cells[name]) for name in _OBJECTS if name in cells}
    if "tags" in cells:
        tags = _list_cell(cells["tags"])
        several = [tag.strip() for tag in cells["tags"].split(",")]
        cells["tags"] = tags if isinstance(tags, list) else list(filter(None, several))
    return cells


def _list_cell(cell: str) -> str | list[str]:
    """Return a cell that is a JSON list of texts as that list, any other as it is."""
    try:
        found = loads(cell)
    except JsonProblem:
        return cell
    return found if found and _is_texts(found) else cell


def _object_cell(name: str, cell: str) -> dict[str, Any]:
    try:
        found = loads(cell)
    except JsonProblem as problem:
        raise ValueError(f"{name} must hold a JSON object: {problem}") from problem
    if not isinstance(found, dict):
        raise ValueError(f"{name} must hold a JSON object, got {cell[:60]}")
    return found


@attrs.frozen(kw_only=True)
class LettaDataset(RecordReader):
    """Reads letta-evals datasets: ``.csv``, or JSON Lines whatever the ending.

    ``input`` (or ``prompt``) is required: a text, or a list of texts, one per user turn.
    ``ground_truth`` is a text or a list of texts, one per turn; any other JSON value is taken as
    its JSON text. ``agent_args``, ``rubric_vars`` and ``extra_vars`` must be objects. ``metadata``, ``tags``
    and ``rubric_vars``, which only a model judge's prompt takes, become facets.

    The id is ``sample_id`` or ``id``, else the row's number, counted from 0.

    JSON Lines: one object per line, a blank line is an error. CSV: column ``input`` is required; a
    cell of it that is a JSON list of texts is a list of turns, and then ``ground_truth`` may be one
    too; cells of the other columns hold JSON objects; an empty cell is no value. Quotes that do not
    match end the file. A file without any row is refused.
    """

    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset({"input", "expected", "facets", "source"})
    layout: ClassVar[Layout] = "lines"
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "error"

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        """Recognise a CSV file by its column ``input``, JSON Lines by the keys of the first row."""
        text = head.decode("utf-8-sig", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        if path.is_dir() or not lines:
            return 0.0
        if _is_csv(path):
            names = set(_header(lines[:1]))
            return 0.8 if names.intersection(_INPUTS) else _LITTLE if _OWN & names else 0.0
        sure = _certainty(lines[0])
        is_result = not _names(lines[0]).isdisjoint(RESULT_KEYS)
        if sure or is_result or path.suffix.lower() != ".jsonl":
            return sure
        return _LITTLE if any(map(_resembles, lines[:_LINES])) else 0.0

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for given in inputs.data:
            with reading(given.path):
                if given.path.is_dir():
                    raise DataError(f"{given.path}: is a directory; a dataset file is expected")
                if not given.path.stat().st_size:
                    raise DataError(f"{given.path}: the dataset is empty")
            yield RecordFile(input=given, ranges=(Range(),))

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        path, shown = shard.input.path, shard.input.shown
        lines: dict[str, int] = {}
        rows = _csv_rows(path) if _is_csv(path) else _json_rows(path)
        try:
            for ordinal, (line, record) in enumerate(rows):
                yield self._row(record, Source(file=shown, ordinal=ordinal, line=line), lines)
        except (OSError, UnicodeDecodeError, CsvProblem) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error

    def _row(self, record: Any, source: Source, lines: dict[str, int]) -> Sample | BadRecord:
        if isinstance(record, ValueError):
            return BadRecord(source=source, reason=str(record))
        try:
            (sample,) = self.identified((row_sample(record, source),), record)
        except ValueError as problem:
            return BadRecord(source=source, reason=str(problem), native=record)
        if (
            isinstance(sample, BadRecord) or self.ids is not None
        ):  # rows of one id are then runs of one task
            return sample
        if sample.id in lines:
            reason = f"id {sample.id!r} stands on line {lines[sample.id]} already"
            return BadRecord(source=source, reason=reason, native=record)
        lines[sample.id] = source.line or 0
        return sample


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _certainty(line: str) -> float:
    try:
        record = loads(line)
    except JsonProblem:
        cut = len(line) >= 60_000 and line.lstrip().startswith(('{"input"', '{"prompt"'))
        return 0.4 if cut else 0.0
    if not isinstance(record, Mapping) or RESULT_KEYS & set(record):
        return 0.0
    given = next((record[name] for name in _INPUTS if name in record), None)
    if not isinstance(given, str) and not _is_texts(given):
        return 0.0
    with_truth, without = (0.6, 0.4) if set(record) <= KEYS else (0.5, 0.0)
    return with_truth if "ground_truth" in record else without


def _names(line: str) -> frozenset[str]:
    try:
        return frozenset(as_map(loads(line)))
    except JsonProblem:
        known = {*_INPUTS, "ground_truth", *RESULT_KEYS}
        return frozenset(name for name in known if f'"{name}"' in line)


def _resembles(line: str) -> bool:
    names = _names(line)
    is_row = line.lstrip().startswith("{") and names.isdisjoint(RESULT_KEYS)
    is_plain = names <= KEYS and not names.isdisjoint(_INPUTS)
    return is_row and (is_plain or bool(names & _OWN))


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    with open_regular(path) as file:
        for number, data in enumerate(iter(partial(whole_line, file), b""), 1):
            line = data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data
            if not line.strip():
                yield number, ValueError("a blank line; every line holds one row")
                continue
            try:
                yield number, loads(line)
            except JsonProblem as problem:
                yield number, problem


def _open_text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="")


def _csv_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield every row with the line it begins on, which ``csv.DictReader`` does not tell."""
    with _open_text(path) as file:
        rows = csv_rows(file, strict=True)
        names = next(rows, (1, []))[1]
        if not set(_INPUTS) & set(names):
            known = ", ".join(names) or "none"
            raise DataError(f"{path}: a column 'input' is needed; there are: {known}")
        try:
            for line, cells in rows:
                row: dict[str | None, Any] = dict(zip(names, cells, strict=False))
                if len(cells) > len(names):
                    row[None] = cells[len(names) :]
                if cells:
                    yield line, _read(row)
        except CsvProblem as error:
            yield (
                error.line,
                ValueError(f"not CSV: {error}; the rest of the file could not be read"),
            )


def _header(lines: Iterable[str]) -> list[str]:
    return next(csv_rows(lines, strict=False), (1, []))[1]


def _read(row: Mapping[Any, Any]) -> dict[str, Any] | ValueError:
    try:
        return csv_record(row)
    except ValueError as problem:
        return problem

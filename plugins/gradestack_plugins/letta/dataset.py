"""Reader ``letta_dataset``: what agents were asked and what is right, as JSON Lines or CSV."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

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
    compact,
    csv_rows,
    loads,
    open_regular,
    whole_line,
)
from gradestack_plugins.letta.records import VARIABLES, expectation, facets_of, input_of, truth_of

KEYS = frozenset(
    {
        "input",
        "prompt",
        "ground_truth",
        "id",
        "sample_id",
        "rubric",
        "rubric_path",
        "metadata",
        "tags",
        *VARIABLES,
    }
)
RESULT_KEYS = frozenset(
    {
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
    }
)
"""Keys of recorded results in other forms: a row with one of them is no dataset row."""
_OBJECTS = (*VARIABLES, "metadata")


def _texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def row_sample(record: Any, source: Source) -> Sample:
    """Return the sample of a row."""
    if not isinstance(record, Mapping):
        raise ValueError(f"expected a row (an object), found {compact(record)[:60]}")
    name = "input" if "input" in record else "prompt"
    if name not in record:
        raise ValueError("input is missing")
    given = record[name]
    if not isinstance(given, str) and not (_texts(given) and given):
        raise ValueError(f"{name} must be a text or a list of texts, got {compact(given)[:60]}")
    for key in _OBJECTS:
        if record.get(key) is not None and not isinstance(record[key], Mapping):
            raise ValueError(f"{key} must be an object, got {compact(record[key])[:60]}")
    identifier = _identifier(record, source.ordinal)
    return Sample(
        id=str(identifier),
        input=input_of(given),
        expected=expectation(_truth(record.get("ground_truth"), given)),
        facets=facets_of(record),
        source=source if isinstance(identifier, str) else replace(source, id=identifier),
    )


def _identifier(record: Mapping[str, Any], ordinal: int) -> str | int:
    for name in ("sample_id", "id"):
        value = record.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"{name} must be a text or a whole number, got {compact(value)[:60]}")
        return value
    return ordinal


def _truth(value: JSON, given: JSON) -> str | tuple[str, ...] | None:
    turns = isinstance(given, list)
    if isinstance(value, list) and turns and len(value) != len(given):
        raise ValueError(f"ground_truth has {len(value)} text(s) for {len(given)} user turn(s)")
    return truth_of(value, turns=turns)


def csv_record(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the row a CSV line stands for, cells decoded and empty ones left out."""
    if row.get(None):
        raise ValueError(f"more cells than columns: {compact(row[None])[:60]}")
    cells = {
        name: cell
        for name, cell in row.items()
        if cell or (name in {"input", "prompt"} and cell is not None)
    }
    cells.pop(None, None)
    for name in ("input", "prompt"):
        if name in cells:
            cells[name] = _list_cell(cells[name])
    if (
        any(isinstance(cells.get(name), list) for name in ("input", "prompt"))
        and "ground_truth" in cells
    ):
        cells["ground_truth"] = _list_cell(cells["ground_truth"])
    for name in _OBJECTS:
        if name in cells:
            cells[name] = _object_cell(name, cells[name])
    if isinstance(cells.get("tags"), str):
        tags = _list_cell(cells["tags"])
        cells["tags"] = (
            tags
            if isinstance(tags, list)
            else [tag.strip() for tag in tags.split(",") if tag.strip()]
        )
    return cells


def _list_cell(cell: str) -> str | list[str]:
    """Return a cell that is a JSON list of texts as that list, any other as it is."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return cell
    try:
        found = loads(text)
    except JsonProblem:
        return cell
    return found if found and _texts(found) else cell


def _object_cell(name: str, cell: str) -> dict[str, Any]:
    try:
        found = loads(cell)
    except JsonProblem as problem:
        raise ValueError(f"{name} must hold a JSON object: {problem}") from problem
    if not isinstance(found, dict):
        raise ValueError(f"{name} must hold a JSON object, got {cell[:60]}")
    return found


_INPUTS = ("input", "prompt")
_OWN = {"ground_truth", *VARIABLES}
"""Names that speak for a dataset although the input is missing."""
_LITTLE = 0.02
_LINES = 20
"""Rows looked at for a sound one behind a damaged first row."""


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
        if path.is_dir():
            return 0.0
        lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
        if path.suffix.lower() == ".csv":
            names = set(_header(line.decode("utf-8", errors="replace") for line in lines[:1]))
            return 0.8 if set(_INPUTS) & names else _LITTLE if _OWN & names else 0.0
        sure = _certainty(lines[0]) if lines else 0.0
        if not sure and path.suffix.lower() == ".jsonl" and any(map(_resembles, lines[:_LINES])):
            return 0.0 if _names(lines[0]) & RESULT_KEYS else _LITTLE
        return sure

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for given in inputs.data:
            with reading(given.path):
                if given.path.is_dir():
                    raise DataError(f"{given.path}: is a directory; a dataset file is expected")
                if not given.path.stat().st_size:
                    raise DataError(f"{given.path}: the dataset is empty")
                if _is_csv(given.path):
                    _check_columns(given.path)
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


def _certainty(line: bytes) -> float:
    try:
        record = loads(line)
    except JsonProblem:
        cut = len(line) >= 60_000 and line.lstrip().startswith((b'{"input"', b'{"prompt"'))
        return 0.4 if cut else 0.0
    if not isinstance(record, Mapping) or RESULT_KEYS & set(record):
        return 0.0
    given = next((record[name] for name in _INPUTS if name in record), None)
    if not isinstance(given, str) and not _texts(given):
        return 0.0
    with_truth, without = (0.6, 0.4) if set(record) <= KEYS else (0.5, 0.0)
    return with_truth if "ground_truth" in record else without


def _names(line: bytes) -> frozenset[str]:
    try:
        record = loads(line)
    except JsonProblem:
        known = {*_INPUTS, "ground_truth", *RESULT_KEYS}
        return frozenset(name for name in known if f'"{name}"'.encode() in line)
    return frozenset(record) if isinstance(record, Mapping) else frozenset()


def _resembles(line: bytes) -> bool:
    names = _names(line)
    if names & RESULT_KEYS or not line.lstrip().startswith(b"{"):
        return False
    return bool(names & _OWN) or (names <= KEYS and not names.isdisjoint(_INPUTS))


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


def _check_columns(path: Path) -> None:
    try:
        with _open_text(path) as file:
            names = _header(file)
    except (UnicodeDecodeError, CsvProblem) as error:
        raise DataError(f"{path}: cannot be read as CSV: {error}") from error
    if not set(_INPUTS) & set(names):
        raise DataError(
            f"{path}: a column 'input' is needed; there are: {', '.join(names) or 'none'}"
        )


def _csv_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield every row with the line it begins on, which ``csv.DictReader`` does not tell."""
    with _open_text(path) as file:
        rows = csv_rows(file, strict=True)
        names = next(rows, (1, []))[1]
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

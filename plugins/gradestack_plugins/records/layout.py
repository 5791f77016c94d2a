"""Layouts of files: where the records of a table, of JSON Lines or of a JSON document stand."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from gradestack import DataError, Input, first_of, read_records
from gradestack.jsonio import (
    Element,
    JsonProblem,
    Range,
    as_list,
    loads,
    open_regular,
    path_steps,
    path_value,
    read_regular,
)
from gradestack_plugins.readers import tables
from gradestack_plugins.readers.chat import dialect
from gradestack_plugins.readers.chat.cells import reader_of
from gradestack_plugins.readers.chat.layout import form_of, together
from gradestack_plugins.readers.chat.names import FIRST, guess, usual_record
from gradestack_plugins.readers.chat.parts import parts_of_runs

Form = Literal["csv", "parquet", "records", "document", "lists", "entries"]
Rows = list[dict[str, Any]]

MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""
TABLES: Final = frozenset({".csv", ".tsv"})
"""Suffixes of tables."""
_ROWS: Final = {"csv": tables.csv_table, "parquet": tables.parquet_table}
_COLUMNS: Final = {"csv": tables.csv_columns, "parquet": tables.parquet_columns}
_SHOWN_FORMS: Final = {
    "csv": "a table",
    "parquet": "a table",
    "records": "JSON Lines or a JSON list",
    "lists": "JSON Lines of conversations",
    "entries": "one conversation",
}
"""Words for the layouts that are no JSON document."""
_HEAD: Final = 64 * 1024
_LARGEST_DOCUMENT: Final = 64 * 1024 * 1024
_LONGEST_PATH: Final = 100
"""Characters of a path that a message shows."""
_LEVELS: Final = 3
"""Levels of a JSON document at which its list of records is looked for."""
_SHOWN: Final = 12


def form_of_file(path: Path, location: str | None) -> Form:
    """Return the layout of a file; one that does not begin as JSON is CSV.

    One JSON object is a document where a path in it is named, or it holds a list of records.
    """
    with open_regular(path) as file:
        head = file.read(_HEAD)
        if head.startswith(tables.PARQUET):
            return "parquet"
        text = head.removeprefix(MARK).lstrip()
        if text[:1] not in {b"{", b"["} or path.suffix.lower() in TABLES:
            return "csv"
        form = form_of(head)
        if form == "lists":
            return "lists"
        if form == "entries":
            return "entries"
        if text.startswith(b"["):
            return "records"
        line, _, rest = text.partition(b"\n")
        try:
            value = loads(line)
        except JsonProblem:
            text = head + file.read(_LARGEST_DOCUMENT)
            return "document" if _is_json(text) else "records"
    is_alone = not rest.strip()
    if is_alone and (location or _is_document(value)):
        return "document"
    return "records"


def _is_json(text: bytes) -> bool:
    with suppress(JsonProblem):
        loads(text.removeprefix(MARK))
        return True
    return False


def _is_document(value: Any) -> bool:
    """Return whether an object holds records, and is no record itself."""
    return holds_records(value) and not _is_run(value)


def _is_run(document: Any) -> bool:
    return guess([document], reader_of, fitting=True).shows_a_run


def columns_of_table(file: Input, form: Form) -> list[str] | None:
    """Return the names of the columns of a table; None for a file of JSON."""
    if form in _COLUMNS:
        return _COLUMNS[form](file)
    return None


def is_table(form: Form) -> bool:
    """Return whether a layout is that of a table."""
    return form in _ROWS


def elements_of(
    file: Input, form: Form, location: str | None, part: Range | None = None
) -> Iterator[Element]:
    """Yield the records of an input, or of a part of it.

    Raises:
        DataError: A list in a JSON document is asked for, and the input is none.
    """
    if location not in (None, "$") and form != "document":
        raise _no_document(str(location), file, form)
    if form in _ROWS:
        return _ROWS[form](file)
    if form == "document":
        document = read_document(file)
        records = enumerate(records_in(document, location, file))
        return (Element(ordinal, 1, record) for ordinal, record in records)
    elements = read_records(file, part, "lines" if form == "lists" else "either")
    return together(elements) if form == "entries" else elements


def read_document(file: Input) -> Any:
    """Return the one JSON document that an input is."""
    return loads(read_regular(file.path).removeprefix(MARK))


def records_in(document: Any, location: str | None, file: Input) -> list[Any]:
    """Return the records of a JSON document.

    Raises:
        DataError: Nobody can tell which list holds them.
    """
    if location is not None:
        value = value_at(document, location, file)
        if isinstance(value, list):
            return value
        return rows_by_id(value) or [value]
    if rows := rows_of_frame(document):
        return rows
    lists = lists_of(document)
    if len(lists) > 1:
        counted = [f"{path} ({len(records)} records)" for path, records in lists]
        first_list = lists[0]
        command = shlex.join(["gradestack", "grade", str(file.path), "--records", first_list[0]])
        what = f"{file.shown}: one JSON document with {len(lists)} lists of records"
        raise DataError(what, f"lists: {listed(counted)}", f"try: {command}")
    return lists[0][1] if lists else [document]


def value_at(document: Any, location: str, file: Input) -> list[Any] | dict[str, Any]:
    """Return the list or the object at a path of a document.

    Raises:
        DataError: Neither is there.
    """
    try:
        if location == "$":
            value = document
        else:
            value = path_value(document, path_steps(location))
    except RecursionError:
        what = f"{file.shown}: nested too deeply for {location[:_LONGEST_PATH]}"
        raise DataError(what) from None
    except ValueError as error:
        raise DataError(f"{file.shown}: {error}") from error
    if not isinstance(value, list | dict):
        raise _no_list(location, document, file)
    return value


def _no_document(location: str, file: Input, form: Form) -> DataError:
    """Return the error of a path in a file that is no JSON document."""
    elements = elements_of(file, form, None)
    first = next(elements, None)
    if first is not None and isinstance(first.value, dict):
        keys = list(first.value)
    else:
        keys = []
    what = f"{file.shown}: there is no list of records at {location[:_LONGEST_PATH]}"
    why = f"--records is a path in one JSON document, and this file is {_SHOWN_FORMS[form]}"
    return DataError(what, why, f"keys of its first record: {listed(keys)}")


def _no_list(location: str, document: Any, file: Input) -> DataError:
    """Return the error of a path of a document that leads to no list of records."""
    what = f"{file.shown}: there is no list of records at {location[:_LONGEST_PATH]}"
    lists = [path for path, _ in lists_of(document)]
    keys = list(document) if isinstance(document, dict) else []
    return DataError(what, f"lists: {listed(lists)}" if lists else f"keys: {listed(keys)}")


def rows_of_frame(document: Any) -> Rows:
    """Return the records of a document that holds them by column, by row or by id, as frames do.

    None for any other document.
    """
    if not isinstance(document, dict) or not document or _is_run(document):
        return []
    for rows in _frames(document):
        first = list(islice(rows, FIRST))
        if guess(first, reader_of, fitting=True).holds_answers:
            return [*first, *rows]
    return []


def _frames(document: dict[str, Any]) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the rows of a document for each form of a frame that it may be."""
    values = list(document.values())
    first = values[0]
    if document.keys() == {"columns", "index", "data"}:
        columns = as_list(document["columns"])
        names = list(map(str, columns))
        data = as_list(document["data"])
        yield (dict(zip(names, as_list(row), strict=False)) for row in data)
    if all(isinstance(column, list) for column in values) and len(set(map(len, values))) == 1:
        yield (dict(zip(document, row, strict=True)) for row in zip(*values, strict=True))
    if all(isinstance(column, dict) and column.keys() == first.keys() for column in values):
        yield ({name: column[key] for name, column in document.items()} for key in first)
    if all(isinstance(row, dict) or dialect.of_entries(row) is not None for row in values):
        yield ({"id": key, **usual_record(row)} for key, row in document.items())


def rows_by_id(records: dict[str, Any]) -> Rows:
    """Return the records of an object whose keys are their ids; [] where it is itself a record."""
    are_objects = all(isinstance(record, dict) for record in records.values())
    if not are_objects or _is_run(records):
        return []
    return [{**record, "id": key} for key, record in records.items()]


def holds_records(document: Any) -> bool:
    """Return whether a document holds a list of records, or is a frame of them."""
    return bool(rows_of_frame(document)) or bool(lists_of(document))


def lists_of(document: Any) -> list[tuple[str, list[Any]]]:
    """Return the lists of a document whose objects say what an agent did, with their paths.

    Where none does, those whose objects say how a run went. A document that is a conversation
    itself has none.
    """
    if "messages" in guess(objects_in([document]), reader_of, fitting=True).columns:
        return []
    lists = [
        (path, records, guess(objects))
        for path, records, objects in object_lists(document)
        if parts_of_runs(objects) is None
    ]
    answers = [(path, records) for path, records, columns in lists if columns.holds_answers]
    return answers or [(path, records) for path, records, names in lists if names.holds_verdicts]


def object_lists(
    document: Any, path: str = "$", depth: int = 0
) -> Iterator[tuple[str, list[Any], Rows]]:
    """Yield the lists of objects in a document, without conversations.

    Yields:
        Path of the list, the list, its first objects.
    """
    for key, value in document.items() if isinstance(document, dict) and depth < _LEVELS else ():
        if key.isidentifier():
            name = f".{key}"
        else:
            name = f"[{key!r}]"
        objects = objects_in(as_list(value)[:FIRST])
        if objects and dialect.of_entries(value) is None:
            yield f"{path}{name}", value, objects
        elif isinstance(value, dict):
            yield from object_lists(value, f"{path}{name}", depth + 1)


def objects_in(values: Sequence[Any]) -> Rows:
    """Return the objects among values."""
    return [value for value in values if isinstance(value, dict)]


def first_rows_of_parquet(path: Path, most: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a Parquet file; none where nothing can read it."""
    if tables.reads_parquet():
        parquet_table = tables.parquet_table(_input(path))
        return _first_rows(parquet_table, most)
    return []


def first_rows_of_csv(path: Path, head: bytes, most: int, least: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a table with a header of at least ``least`` names.

    Where no row can be read, one of texts.
    """
    names = tables.names_in_header(head)
    if len(names) < least or not all(names[1:]):
        return []
    largest_name = max(map(len, names))
    if largest_name >= _LONGEST_PATH:
        return []
    csv_table = tables.csv_table(_input(path))
    first_rows = _first_rows(csv_table, most)
    return first_rows or [dict.fromkeys(names, "?")]


def _input(path: Path) -> Input:
    return Input(path=path, name=path.stem, shown=path.name)


def _first_rows(elements: Iterable[Element], most: int) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    with suppress(DataError, OSError):  # reading the file says so
        first = islice(elements, most)
        rows.extend(element.value for element in first if element.problem is None)
    return rows


def listed(names: Sequence[str]) -> str:
    """Return the first of some names in words."""
    return first_of(names, _SHOWN) or "none"

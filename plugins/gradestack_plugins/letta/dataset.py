"""Reader ``letta_dataset``: what agents were asked and what is right, as JSON Lines or CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from gradestack import (
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Source,
    replace,
)
from gradestack.jsonio import Element, JsonProblem, Range, csv_rows, loads
from gradestack_plugins.letta.records import Task
from gradestack_plugins.readers.declared import convert_record
from gradestack_plugins.readers.tables import csv_table

_LITTLE: Final = 0.02
"""So that it is said what a row lacks, where no other format has the file."""
_INPUTS: Final = ("input", "prompt")
_OBJECTS: Final = ("agent_args", "rubric_vars", "extra_vars", "metadata")
_LISTS: Final = (*_INPUTS, "ground_truth", "tags")
_KEYS: Final = frozenset((*Task.__struct_fields__, "rubric", "rubric_path"))
_RESULT_WORDS: Final = """
expected predicted messages turns trajectory sample grade grades submission uuid calls tool_calls
actual_tool_calls predicted_calls tools_called
"""
_RESULT_KEYS: Final = frozenset(_RESULT_WORDS.split())
"""Keys of recorded results in other forms: a row with one of them is no dataset row."""


class LettaDataset(RecordReader):
    """Reads letta-evals datasets: ``.csv``, or JSON Lines whatever the ending.

    ``input`` (or ``prompt``) is required: a text, or a list of texts, one per user turn.
    ``ground_truth`` is a text or a list of texts, one per turn; any other JSON value is taken as
    its JSON text. ``agent_args``, ``rubric_vars`` and ``extra_vars`` must be objects. ``metadata``,
    ``tags`` and ``rubric_vars``, which only a model judge's prompt takes, become facets.

    The id is ``sample_id`` or ``id``, else the row's number, counted from 0.

    CSV: a cell of ``input`` that is a JSON list of texts is a list of turns, and then
    ``ground_truth`` may be one too. Cells of the other columns hold JSON objects; an empty cell is
    no value. Quotes that do not match end the run.
    """

    example_file = "dataset.csv"
    version = "3"
    provides = frozenset({"input", "expected", "facets", "source"})
    layout = "lines"
    behind_others = 0.0
    duplicates = "error"

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        """Recognise a CSV file by its column ``input``, JSON Lines by the keys of the first row."""
        if not _is_csv(path):
            if path.is_dir():
                return 0.0
            return super().sniff(path, head)
        lines = head.decode("utf-8-sig", errors="replace").splitlines()
        _, columns = next(csv_rows(lines[:1], strict=False), (1, []))
        if not set(_INPUTS).isdisjoint(columns):
            return 0.8
        return _LITTLE if "ground_truth" in columns else 0.0

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict) or _RESULT_KEYS & record.keys():
            return 0.0
        prompt = record.get("prompt")
        question = record.get("input", prompt)
        is_plain = record.keys() <= _KEYS
        if not isinstance(question, str) and not _is_texts(question):
            truth = record.get("ground_truth")
            is_named = "input" in record or isinstance(truth, str) or _is_texts(truth)
            return _LITTLE if is_plain and is_named else 0.0
        if "ground_truth" in record:
            return 0.6 if is_plain else 0.5
        return 0.4 if is_plain else 0.0

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        return 0.4 if text.startswith((b'{"input"', b'{"prompt"')) else None

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterable[RecordFile]:
        """Return the files whole: rows without an id are numbered from the first one on."""
        return [RecordFile(input=source, ranges=(Range(),)) for source in inputs.data]

    @override
    def elements(self, file: Input, part: Range) -> Iterator[Element]:
        if _is_csv(file.path):
            return csv_table(file)
        return super().elements(file, part)

    @override
    def sample_of(self, record: Any, source: Source) -> Sample:
        if _is_csv(Path(source.file)):
            row = _row_of_cells(record)
        else:
            row = record
        task, problems = convert_record(row, Task)
        if problems:
            raise ValueError(next(iter(problems)))
        if task.question is None:
            raise ValueError("input is missing")
        turns, truth = task.question, task.ground_truth
        has_both = isinstance(turns, tuple) and isinstance(truth, list)
        if has_both and len(truth) != len(turns):
            raise ValueError(f"ground_truth has {len(truth)} text(s) for {len(turns)} user turn(s)")
        if task.sample_id is None:
            identifier = task.id
        else:
            identifier = task.sample_id
        if identifier is None:
            identifier = source.ordinal
        if isinstance(identifier, int):
            source = replace(source, id=identifier)
        return Sample(
            id=str(identifier),
            input=task.question,
            expected=task.expected,
            facets=task.facets,
            source=source,
        )


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _row_of_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of a data set that cells of CSV stand for; empty cells are left out.

    Cells of objects hold JSON. Cells of texts may hold a JSON list of them, one for each turn; a
    ``ground_truth`` is such a list only if the input is one.

    Raises:
        ValueError: A cell of an object does not hold JSON.
    """
    row: dict[str, Any] = {name: cell for name, cell in cells.items() if cell}
    for name in row.keys() & _OBJECTS:
        try:
            row[name] = loads(row[name])
        except JsonProblem as problem:
            raise ValueError(f"{name} must hold a JSON object: {problem}") from problem
    names = row.keys() & _LISTS
    lists = {name: texts for name in names if (texts := _texts_in(row[name]))}
    if lists.keys().isdisjoint(_INPUTS):
        lists.pop("ground_truth", None)
    if "tags" in row:
        tags = [tag.strip() for tag in row["tags"].split(",")]
        row["tags"] = list(filter(None, tags))
    return row | lists


def _texts_in(cell: str) -> list[str] | None:
    """Return the texts of a cell that is a JSON list of them; None of any other."""
    try:
        texts = loads(cell)
    except JsonProblem:
        return None
    return texts if _is_texts(texts) else None

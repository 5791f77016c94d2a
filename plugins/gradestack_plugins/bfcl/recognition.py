"""Recognising files of BFCL by their records: questions, possible answers, results and scores."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from gradestack.jsonio import first_records

Form = Literal["question", "answer", "result", "score"]

NAME = re.compile(r"BFCL_v\d+_(?P<category>\w+?)(?:_result|_score)?\.json")
"""A file's name; categories are words joined by underscores."""
_ID = re.compile(r"(?:[a-z]+_)+\d+(?:[-:_][\w:.-]*)?", re.IGNORECASE)
_SCORE = frozenset({"accuracy", "correct_count", "total_count"})
_COUNTS = frozenset({"input_token_count", "output_token_count", "latency", "inference_log"})
_RUNS = frozenset({"input", "messages", "question", "predicted", "expected"})
"""Keys of other formats that may keep a ground truth, too."""
_SNIFFED = 5
_MOST_ENTRIES = 5_000
"""Files and folders looked at before a directory is taken not to be of this format."""


def form_of(record: Any) -> Form | None:
    """Return which of the four forms a record has; None of another format."""
    if not isinstance(record, dict):
        return None
    if record.keys() >= _SCORE and "id" not in record:
        return "score"
    identifier = record.get("id")
    if not isinstance(identifier, str) or not _ID.fullmatch(identifier):
        return None
    if "valid" in record and ("model_name" in record or "test_category" in record):
        return "score"
    if _is_question(record):
        return "question"
    if isinstance(record.get("ground_truth"), list) and not record.keys() & _RUNS:
        return "answer"
    if isinstance(record.get("result"), str | list) and (record.keys() & _COUNTS or record.keys() <= {"id", "result"}):
        return "result"
    return "result" if isinstance(record.get("result"), str) and "traceback" in record else None


def _is_question(record: dict[str, Any]) -> bool:
    turns = record.get("question")
    return isinstance(turns, list) and all(isinstance(turn, list) for turn in turns) and bool(turns)


def form_at(head: bytes) -> Form | None:
    """Return the form of a file by its first records; the first that has one says it."""
    for element, _ in first_records(head, _SNIFFED):
        if (found := form_of(element.value)) is not None:
            return found
    return None


def confidence(path: Path, head: bytes) -> float:
    """Return how sure it is that a path is of this format: a file of one of the forms, or a directory of them."""
    if path.is_dir():
        return 0.95 if _holds_results(path) or any(map(_is_named, _entries(path))) else 0.0
    named = _is_named(path)
    if form_at(head) is not None:
        return 0.95 if named else 0.8
    return 0.7 if named and b'"id"' in head else 0.0


def _is_named(path: Path) -> bool:
    return NAME.fullmatch(path.name) is not None


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _holds_results(directory: Path) -> bool:
    """Return whether ``result/MODEL/…/BFCL_…_result.json`` stands below a directory."""
    found = islice((directory / "result").rglob("*.json"), _MOST_ENTRIES)
    return any(map(_is_named, found))

"""A line that is written twice counts once, wherever a line says which one it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradestack import Sample, replace, testing
from tests.plugins import chat_files

CASES = [
    case
    for folder in ("sessions", "traces")
    for case in testing.cases(Path(__file__).parents[1] / "cases" / folder)
    if not case.file.startswith("damaged") and isinstance(case.data["files"].get("log.jsonl"), list)
]
IDENTITIES = ("uuid", "timestamp", "part", "id", "span_id", "request_id", "requestId")
"""Keys of which a line that can be told from others has one."""


def samples(reader, folder, lines):
    """Return the samples of lines, without their places and remarks."""
    records = chat_files.read(reader, chat_files.written(folder, lines))
    return [
        replace(record, source=None, remarks={}) for record in records if isinstance(record, Sample)
    ]


def has_identity(line, reader):
    if reader == "gemini_cli" and "id" not in line:
        return False  # pieces of a text may be equal
    return isinstance(line, dict) and any(line.get(key) for key in IDENTITIES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_repeated_line_counts_once(case, tmp_path):
    """Neither calls nor usage grow: agents that resume a session write lines again."""
    name = case.data["reader"]
    files = case.data["files"]
    lines = files["log.jsonl"]
    doubled = []
    for line in lines:
        doubled += [line, line] if has_identity(line, name) else [line]
    assert samples(name, tmp_path, doubled) == samples(name, tmp_path, lines)

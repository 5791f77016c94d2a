"""Every value of a session, trace or history replaced by one of another type: nothing raises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradestack import BadRecord, Input, Inputs, discover, testing

REGISTRY = discover()
FOLDERS = ("sessions", "traces", "histories")
OTHERS = (None, 1, "x", [], {})
CASE_FILES = Path(__file__).parents[1] / "cases"
CASES = [
    case
    for folder in FOLDERS
    for case in testing.cases(CASE_FILES / folder)
    if not case.file.startswith("damaged")
    and len(case.data["files"]) == 1
    and len(json.dumps(case.data["files"])) < 12_000
]


def places(value, path=()):
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from places(inner, (*path, key))


def changed(value, path, other):
    if not path:
        return other
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], other)
    return copy


def bad_records(reader, file):
    inputs = Inputs(data=(Input(path=file, name=file.stem, shown=file.name),))
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    read = [record for shard in shards for record in reader.read(shard, index)]
    return [read_record.reason for read_record in read if isinstance(read_record, BadRecord)]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_value_of_another_type_raises_nothing(case, tmp_path):
    """Neither the look at a record, nor the reading of the file: what is wrong is said in words."""
    reader = case.data["reader"]
    kind = REGISTRY.load("reader", reader)
    files = case.data["files"]
    ((name, content),) = files.items()
    for path in list(places(content))[1:]:
        for other in OTHERS:
            damaged = changed(content, path, other)
            lines = damaged if name.endswith(".jsonl") else [damaged]
            for line in lines if case.data["reader"] != "records" else ():
                kind.looks_like(line)
            file = tmp_path / name
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            if case.data["reader"] != "records" or len(path) > 2:
                reasons = [reason for reason in bad_records(kind(), file) if "raised" in reason]
                assert not reasons, path

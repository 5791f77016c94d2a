"""Reading records of the jsonl form in tests."""

import json

import pytest

from gradestack import Input, Inputs
from gradestack_plugins.readers.jsonl import JsonLines


@pytest.fixture
def parse():
    """Return a function that makes a sample (or bad record) of one record."""
    return lambda **record: JsonLines().record(record, file="f.jsonl", ordinal=0)


@pytest.fixture
def read_all(tmp_path):
    def read(*files):
        inputs_given = []
        for number, lines in enumerate(files):
            path = tmp_path / f"runs{number}.jsonl"
            if isinstance(lines, bytes):
                path.write_bytes(lines)
            else:
                texts = []
                for line in lines:
                    texts.append(line if isinstance(line, str) else json.dumps(line))
                path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
            inputs_given.append(Input(path=path, name=path.stem, shown=path.name))
        reader = JsonLines()
        inputs = Inputs(data=tuple(inputs_given))
        index = reader.index(inputs)
        shards = list(reader.plan(inputs, index))
        contents = [list(reader.read(shard, index)) for shard in shards]
        return shards, contents

    return read

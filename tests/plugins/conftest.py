"""Fixtures that tests of several families share.

Records written to a file, and read with a dataset beside them.
"""

import json

import pytest

from gradestack import Input, Inputs


@pytest.fixture
def write(tmp_path):
    """Write records (or lines as they are) to a file, one a line or as an indented list."""

    def _write(name, records, *, as_list=False):
        path = tmp_path / name
        if as_list:
            text = json.dumps(records, indent=2)
            path.write_text(text)
        else:
            lines = []
            for record in records:
                lines.append(record if isinstance(record, str) else json.dumps(record))
            path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return _write


@pytest.fixture
def read_joined(write):
    """Read records (a path, or a list) joined with a dataset (the same), and return samples and bad
    records.
    """

    def _read(reader, records, dataset=None, name="runs.jsonl"):
        inputs_given = []
        for file, content in ((name, records), ("dataset.jsonl", dataset)):
            if isinstance(content, list):
                path = write(file, content)
            else:
                path = content
            inputs_given.append(
                None if path is None else Input(path=path, name=path.stem, shown=path.name)
            )
        inputs = Inputs(data=(inputs_given[0],), dataset=inputs_given[1])
        index = reader.index(inputs)
        shards = list(reader.plan(inputs, index))
        expected = list(range(len(shards)))
        ordinals = [shard.ordinal for shard in shards]
        assert ordinals == expected
        return [record for shard in shards for record in reader.read(shard, index)]

    return _read

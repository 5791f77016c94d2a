"""Shards to map something over."""

from pathlib import Path

import pytest

from gradestack import Input, Shard


@pytest.fixture
def shards(tmp_path):
    """Return a function that makes shards, one byte each of a file that is there."""
    path = tmp_path / "data"
    path.write_bytes(bytes(100))
    input_file = Input(path=Path(path), name="data", shown="data")

    def make(count):
        return [
            Shard(ordinal=n, input=input_file, start=n, end=n + 1, first_row=n)
            for n in range(count)
        ]

    return make

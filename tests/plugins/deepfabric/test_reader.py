"""Reading joined lines, and joining replies of a second file."""

import pickle

import pytest

from gradestack import BadRecord, DataError, Input, Inputs, Status, testing
from gradestack.jsonio import iter_records
from gradestack_plugins.deepfabric.reader import DeepFabricReader


@pytest.fixture
def rows(df):
    """Ten records with an id in their metadata, and the replies to them; row n asks for f(n)."""
    tools = [df.tool("f", ["n"], n="integer")]
    records = []
    for n in range(10):
        metadata = {"id": f"r{n}"}
        record = df.record(("f", {"n": n + 1}), tools, metadata=metadata)
        records.append(record)
    replies = [df.reply(("f", {"n": n + 1}), content=f"reply {n}") for n in range(10)]
    return records, replies


def briefly(records):
    """Summarise records: (id, text or state) of a sample, the reason of a bad record."""
    summaries = []
    for record in records:
        if isinstance(record, BadRecord):
            summaries.append((record.source.line, record.reason))
        else:
            summaries.append(
                (record.id, record.text if record.status is Status.OK else str(record.status))
            )
    return summaries


def test_files_that_cannot_be_used(df, rows, tmp_path):
    """A missing file or a directory ends the run with its name; an empty file has no samples."""
    empty_path = tmp_path / "empty.jsonl"
    empty = df.write(empty_path)
    good_path = tmp_path / "good.jsonl"
    good = df.write(good_path, *rows[0])
    assert df.read(DeepFabricReader(), empty) == []
    with pytest.raises(DataError, match=r"gone\.jsonl: cannot be read: No such file"):
        df.read(DeepFabricReader(), tmp_path / "gone.jsonl")
    with pytest.raises(DataError, match="Is a directory"):
        df.read(DeepFabricReader(), good, dataset=tmp_path)
    records = df.read(DeepFabricReader(), empty, dataset=good)
    assert briefly(records)[0] == ("r0", "missing")
    assert df.read(DeepFabricReader(), empty, dataset=empty) == []


def test_replies_are_not_kept_in_memory(df, rows, tmp_path):
    """The index holds places, not replies: it stays small however long the replies are."""
    records, replies = rows
    d_path = tmp_path / "d.jsonl"
    dataset = df.write(d_path, *records)
    r_path = tmp_path / "r.jsonl"
    path = df.write(
        r_path,
        *[{"id": f"r{n}", **replies[n], "content": "x" * 50_000} for n in range(10)],
    )
    for join in ("id", "line"):
        inputs = Inputs(
            data=(Input(path=path, name="r", shown="r"),),
            dataset=Input(path=dataset, name="d", shown="d"),
        )
        deep_fabric_reader = DeepFabricReader(join=join)
        index = deep_fabric_reader.index(inputs)
        assert index.by == join
        text = pickle.dumps(index)
        assert len(text) < 5000
    iter_record_count = len(list(iter_records(path)))
    assert iter_record_count == 10


def test_contract(df, rows, tmp_path):
    joined_path = tmp_path / "joined.jsonl"
    pairs = zip(*rows, strict=True)
    path = df.write(joined_path, *[{**r, "recorded": q} for r, q in pairs])
    testing.check_reader(DeepFabricReader(), path, scratch=tmp_path)

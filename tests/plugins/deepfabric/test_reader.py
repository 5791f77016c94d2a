"""Reading joined lines, and joining replies of a second file."""

import itertools
import json
import pickle

import pytest

from gradestack import BadRecord, DataError, Input, Inputs, Status, testing
from gradestack.jsonio import iter_lines
from gradestack_plugins.deepfabric.reader import DeepFabricReader

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


@pytest.fixture
def rows(df):
    """Ten records with an id in their metadata, and the replies to them; row n asks for f(n)."""
    tools = [df.tool("f", ["n"], n="integer")]
    records = [df.record(("f", {"n": n + 1}), tools, metadata={"id": f"r{n}"}) for n in range(10)]
    replies = [df.reply(("f", {"n": n + 1}), content=f"reply {n}") for n in range(10)]
    return records, replies


def briefly(found):
    """Return what a reader yielded: (id, text or state) or the reason of a bad record."""
    said = []
    for record in found:
        if isinstance(record, BadRecord):
            said.append((record.source.line, record.reason))
        else:
            said.append(
                (record.id, record.text if record.status is Status.OK else str(record.status))
            )
    return said


@PROFILES
def test_joined_lines(df, rows, tmp_path, profile):
    """A line holds record and reply in one of three shapes.

    Ids come from the line, the record or its metadata.
    """
    (first, second, third, *_), (reply, *_) = rows
    path = df.write(
        tmp_path / "joined.jsonl",
        {"id": "own", "sample": first, "recorded": reply, "model": "m", "run": 2},
        {**second, "recorded": reply},
        {"id": 7, **third, "response": reply},
        {"sample": {**first, "metadata": None}, "response": reply},
    )
    found = df.read(DeepFabricReader(profile=profile), path)
    assert [sample.id for sample in found] == ["own", "r1", "7", "3"]
    assert [sample.native.row for sample in found] == [0, 1, 2, 3]
    assert {sample.status for sample in found} == {Status.OK}
    assert (found[0].model, found[0].run, found[1].model) == ("m", 2, None)
    assert str(found[1].source) == "joined.jsonl:2"
    assert found[0].tools[0] is found[1].tools[0]


def test_lines_that_are_no_samples(df, rows, tmp_path):
    """Text that is not JSON, bare replies and other objects are bad records.

    A record without reply is missing.
    """
    (record, *_), (reply, *_) = rows
    lines = [
        "{bad",
        reply,
        {"a": 1},
        "null",
        "",
        record,
        {**record, "recorded": None},
        json.dumps("said"),
    ]
    path = df.write(tmp_path / "x.jsonl", *lines)
    found = df.read(DeepFabricReader(), path)
    assert briefly(found) == [
        (1, "not JSON: Expecting property name enclosed in double quotes at character 1"),
        (2, "a reply without its dataset record: name the dataset with --dataset"),
        (3, "neither a dataset record nor a joined line"),
        (4, "neither a dataset record nor a joined line"),
        ("r0", "missing"),
        ("r0", "missing"),
        (8, "a reply without its dataset record: name the dataset with --dataset"),
    ]
    assert found[4].error.message == "no recorded reply"
    assert found[4].expected.calls[0].name == "f"
    assert found[4].native.row == 5


def test_join_by_line(df, rows, tmp_path):
    """Line n of the replies answers line n of the dataset.

    A blank line is a missing reply, a surplus one an orphan.
    """
    records, replies = rows
    dataset = df.write(
        tmp_path / "dataset.jsonl", *[{**record, "metadata": None} for record in records[:4]]
    )
    path = df.write(
        tmp_path / "replies.jsonl", replies[0], "", {"recorded": replies[2]}, "{bad", replies[4]
    )
    found = df.read(DeepFabricReader(), path, dataset=dataset)
    assert briefly(found) == [
        ("0", "reply 0"),
        ("1", "missing"),
        ("2", "reply 2"),
        ("3", "failed"),
        (5, "the dataset has no row at this line"),
    ]
    assert found[3].error.message.startswith("the recorded reply is not JSON")
    assert (str(found[0].source), str(found[1].source)) == ("replies.jsonl:1", "dataset.jsonl:2")


def test_join_by_id(df, rows, tmp_path):
    """Replies find their row by id in any order.

    Samples come in the dataset's order, orphans last.
    """
    records, replies = rows
    dataset = df.write(tmp_path / "dataset.jsonl", *records[:3])
    path = df.write(
        tmp_path / "replies.jsonl",
        {"id": "r2", **replies[2]},
        {"id": "elsewhere", **replies[5]},
        {"id": "r0", "recorded": replies[0], "run": "a"},
        {"id": "r0", "response": replies[9], "run": "b"},
        replies[1],
        "{bad",
        {"id": True, **replies[1]},
    )
    found = df.read(DeepFabricReader(), path, dataset=dataset)
    assert briefly(found)[:4] == [
        ("r0", "reply 0"),
        ("r0", "reply 9"),
        ("r1", "missing"),
        ("r2", "reply 2"),
    ]
    assert [sample.run for sample in found[:2]] == ["a", "b"]
    assert [sample.native.row for sample in found[:4]] == [0, 0, 1, 2]
    reasons = dict(briefly(found)[4:])
    assert reasons[2] == "the dataset has no row with id 'elsewhere'"
    assert reasons[5] == reasons[7] == "the reply has no id to join by (text or a whole number)"
    assert reasons[6].startswith("not JSON")


def test_auto_join_needs_ids_on_both_sides(df, rows, tmp_path):
    """Auto joins by line as soon as one side's first line has no id.

    A numeric id equals its text.
    """
    records, replies = rows
    plain = [{**record, "metadata": None} for record in records[:2]]
    numbered = [{"id": n, "sample": record} for n, record in enumerate(plain)]
    with_ids = [{"id": str(1 - n), **replies[n]} for n in range(2)]
    cases = [
        ("a", numbered, with_ids, "auto", [("0", "reply 1"), ("1", "reply 0")]),
        ("b", plain, with_ids, "auto", [("0", "reply 0"), ("1", "reply 1")]),
        ("c", numbered, replies[:2], "auto", [("0", "reply 0"), ("1", "reply 1")]),
        ("d", numbered, with_ids, "line", [("0", "reply 0"), ("1", "reply 1")]),
        ("e", plain, with_ids, "id", [("0", "missing"), ("1", "missing")]),
    ]
    for name, dataset_lines, reply_lines, join, expected in cases:
        dataset = df.write(tmp_path / f"{name}-dataset.jsonl", *dataset_lines)
        path = df.write(tmp_path / f"{name}.jsonl", *reply_lines)
        found = df.read(DeepFabricReader(join=join), path, dataset=dataset)
        assert [entry for entry in briefly(found) if isinstance(entry[0], str)] == expected, name


def test_repeated_ids_in_a_dataset(df, rows, tmp_path):
    """The second row of an id cannot be joined by it, and is reported."""
    records, replies = rows
    dataset = df.write(tmp_path / "dataset.jsonl", records[0], records[0], "{bad", records[1])
    path = df.write(
        tmp_path / "replies.jsonl", {"id": "r0", **replies[0]}, {"id": "r1", **replies[1]}
    )
    found = briefly(df.read(DeepFabricReader(), path, dataset=dataset))
    assert found[0] == ("r0", "reply 0")
    assert found[1] == (
        2,
        "id 'r0' is taken by an earlier row of the dataset (join by line, or make ids unique)",
    )
    assert found[2][1].startswith("not JSON")
    assert found[3] == ("r1", "reply 1")


def test_several_files_of_replies(df, rows, tmp_path):
    records, replies = rows
    dataset = df.write(tmp_path / "dataset.jsonl", *records[:2])
    paths = [
        df.write(tmp_path / f"{name}.jsonl", *[{"id": f"r{n}", **replies[n]} for n in numbers])
        for name, numbers in (("one", (0, 1)), ("two", (1,)))
    ]
    found = df.read(DeepFabricReader(), *paths, dataset=dataset)
    assert [
        (sample.model, *brief) for sample, brief in zip(found, briefly(found), strict=True)
    ] == [
        ("one", "r0", "reply 0"),
        ("one", "r1", "reply 1"),
        ("two", "r0", "missing"),
        ("two", "r1", "reply 1"),
    ]


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("size", [1, 700, 10_000_000])
def test_shards_do_not_matter(df, rows, tmp_path, monkeypatch, joined, size):
    """Whatever the size of the shards, the samples are the same, in order, and positions leave room
    for all of them.
    """
    records, replies = rows
    if joined:
        path = df.write(
            tmp_path / "j.jsonl",
            *[{"sample": r, "recorded": q} for r, q in zip(records, replies, strict=True)],
        )
        inputs = Inputs(data=(Input(path=path, name="j", shown="j"),))
    else:
        dataset = df.write(tmp_path / "d.jsonl", *records)
        lines = [{"id": f"r{n % 10}", **replies[n % 10], "run": n} for n in range(60)]
        path = df.write(tmp_path / "r.jsonl", *lines, {"id": "orphan", **replies[0]})
        inputs = Inputs(
            data=(Input(path=path, name="r", shown="r"),),
            dataset=Input(path=dataset, name="d", shown="d"),
        )
    reader = DeepFabricReader()
    whole = df.read(reader, path, dataset=inputs.dataset.path if inputs.dataset else None)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", size)
    index = pickle.loads(pickle.dumps(reader.index(inputs)))  # noqa: S301  our own bytes
    shards = list(reader.plan(inputs, index))
    assert [shard.ordinal for shard in shards] == list(range(len(shards)))
    assert (len(shards) > 3) is (size < 10_000)
    parts = [list(reader.read(pickle.loads(pickle.dumps(shard)), index)) for shard in shards]  # noqa: S301
    assert briefly(itertools.chain.from_iterable(parts)) == briefly(whole)
    for shard, later, part in zip(shards, shards[1:], parts, strict=False):
        assert shard.position + len(part) <= later.position


def test_files_that_cannot_be_used(df, rows, tmp_path):
    """A missing file or a directory ends the run with its name; an empty file has no samples."""
    empty = df.write(tmp_path / "empty.jsonl")
    good = df.write(tmp_path / "good.jsonl", *rows[0])
    assert df.read(DeepFabricReader(), empty) == []
    with pytest.raises(DataError, match=r"gone\.jsonl: cannot be read: No such file"):
        df.read(DeepFabricReader(), tmp_path / "gone.jsonl")
    with pytest.raises(DataError, match="Is a directory"):
        df.read(DeepFabricReader(), good, dataset=tmp_path)
    assert briefly(df.read(DeepFabricReader(), empty, dataset=good))[0] == ("r0", "missing")
    assert df.read(DeepFabricReader(), empty, dataset=empty) == []


def test_replies_are_not_kept_in_memory(df, rows, tmp_path):
    """The index holds places, not replies: it stays small however long the replies are."""
    records, replies = rows
    dataset = df.write(tmp_path / "d.jsonl", *records)
    path = df.write(
        tmp_path / "r.jsonl",
        *[{"id": f"r{n}", **replies[n], "content": "x" * 50_000} for n in range(10)],
    )
    for join in ("id", "line"):
        inputs = Inputs(
            data=(Input(path=path, name="r", shown="r"),),
            dataset=Input(path=dataset, name="d", shown="d"),
        )
        index = DeepFabricReader(join=join).index(inputs)
        assert index.by == join
        assert len(pickle.dumps(index)) < 5000
    assert len(list(iter_lines(path))) == 10


@PROFILES
def test_contract(df, rows, tmp_path, profile):
    path = df.write(
        tmp_path / "joined.jsonl", *[{**r, "recorded": q} for r, q in zip(*rows, strict=True)]
    )
    testing.check_reader(DeepFabricReader(profile=profile), path, scratch=tmp_path)

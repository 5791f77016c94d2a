"""Reader ``inspect``.

What of a log is in its samples, and what is said of logs that are damaged.
"""

import json
import zipfile

import pytest

import gradestack
from gradestack.cli import main
from tests.plugins.inspect_logs.conftest import archive, log, sample


def read(path, name="inspect"):
    reader = gradestack.discover(limit="").load("reader", name)()
    inputs = gradestack.Inputs(data=(gradestack.Input(path=path, name=path.stem, shown=path.name),))
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    return [record for shard in shards for record in reader.read(shard, index)]


@pytest.fixture
def grade(capsys):
    """Return a function that runs ``gradestack grade``: exit code, and what it says."""

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["grade", *map(str, words), "--set", "reports=[]"])
        printed = capsys.readouterr()
        return ended.value.code, printed.out + printed.err

    return run


def one(tmp_path, **more):
    path = tmp_path / "log.json"
    path.write_bytes(log(sample(**more)))
    (only_sample,) = read(path)
    return only_sample


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93])
def test_an_archive_gives_its_samples(tmp_path, members, method):
    """Samples of one member and in pieces, however they are compressed."""
    path = tmp_path / "log.eval"
    first, second = read(archive(path, members, method))
    assert [(sample.id, sample.run, sample.model) for sample in (first, second)] == [
        ("a", 1, "rail-1"),
        ("b", 2, "rail-1"),
    ]
    for read_sample in (first, second):
        assert [(call.name, call.arguments, call.result) for call in read_sample.calls] == [
            ("find", {"to": "Ghent"}, "IC 5")
        ]
        assert read_sample.text == "Take IC 5."
        assert read_sample.recorded == {"match": 1.0}
        assert read_sample.ended == "completed"
        names = [tool.name for tool in read_sample.tools]
        assert names == ["find"]
    assert first.input == "To Ghent?"
    assert first.expected.text == "IC 5"
    assert first.usage.requests == 1
    assert second.input == "To Ghent, a long way?"
    assert second.expected.text is None
    assert second.usage.requests == 2
    assert second.facets == {"task": "desk", "domain": "rail"}


def test_recorded_scores_are_the_default_stack(tmp_path, members, grade):
    log_path = tmp_path / "log.eval"
    path = archive(log_path, members, 93)
    out_folder = tmp_path / "out"
    code, output = grade(path, "-o", out_folder)
    assert code == 0
    assert "Passed as recorded: 1.000" in output
    bare = {}
    for name, member in members.items():
        bare[name] = (
            {**member, "scores": {}} if "samples/" in name and "scores" in member else member
        )
    bare_path = tmp_path / "bare.eval"
    _, output = grade(archive(bare_path, bare), "-o", tmp_path / "bare")
    assert "Exact matches" in output


def test_an_unfinished_log_says_so(tmp_path, members, grade):
    del members["header.json"]
    path = tmp_path / "log.eval"
    code, output = grade(archive(path, members), "-o", tmp_path / "out")
    assert code == 0
    assert "log.eval: the log has no header: the task had not ended when it was written" in output


DAMAGED = {
    "no samples": (
        lambda members: {"header.json": members["header.json"]},
        "the log holds no samples",
    ),
    "no JSON": (
        lambda members: {**members, "samples/a_epoch_1.json": b"{"},
        "samples/a_epoch_1.json: not JSON",
    ),
    "no messages": (
        lambda members: {**members, "samples/a_epoch_1.json": {"id": 1}},
        "messages is missing",
    ),
    "no object": (
        lambda members: {**members, "samples/a_epoch_1.json": [1]},
        "record: expected an object, found a list",
    ),
    "no piece": (
        lambda members: {**members, "samples/b_epoch_2/messages/3.json": b"nul"},
        "samples/b_epoch_2/messages/3.json: not JSON",
    ),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_members_are_bad_records(tmp_path, members, kind):
    change, reason = DAMAGED[kind]
    path = tmp_path / "log.eval"
    records = read(archive(path, change(members)))
    assert [
        reason in sample.reason for sample in records if isinstance(sample, gradestack.BadRecord)
    ] == [True]


def test_damaged_archives_are_refused(tmp_path, members, grade):
    path = tmp_path / "log.eval"
    archive_bytes = archive(path, members, 93).read_bytes()
    short = tmp_path / "short.eval"
    short.write_bytes(archive_bytes[: len(archive_bytes) // 2])
    out_folder = tmp_path / "out"
    code, output = grade(short, "-o", out_folder)
    assert code == 3
    assert "short.eval: the archive is damaged or cut short" in output


def test_a_member_that_holds_more_than_it_says_is_no_sample(tmp_path, members, grade):
    """Nor is one above ``limits.record_bytes``: neither is unpacked."""
    state = "x" * 3_000_000
    members["samples/a_epoch_1.json"] = sample(state=state)
    log_path = tmp_path / "log.eval"
    path = archive(log_path, members, 93)
    out_folder = tmp_path / "out"
    code, output = grade(path, "-o", out_folder, "--set", "limits.record_bytes=1048576", "--strict")
    assert code == 3
    assert "samples/a_epoch_1.json: 3,000," in output
    text = json.dumps(members["samples/a_epoch_1.json"])
    size = len(text)
    path.write_bytes(
        path.read_bytes().replace(size.to_bytes(4, "little"), (size - 1).to_bytes(4, "little"))
    )
    records = read(path)
    (bad,) = [record.reason for record in records if isinstance(record, gradestack.BadRecord)]
    assert bad.startswith("samples/a_epoch_1.json: ")


def test_shards_hold_whole_samples(tmp_path, monkeypatch):
    """Every sample once, in the order in which they were written."""
    monkeypatch.setattr("gradestack_plugins.inspect_logs.reader.SHARD_BYTES", 600)
    members = {}
    for at in range(9):
        members[f"samples/{at}_epoch_1.json"] = sample(at)
    path = tmp_path / "log.eval"
    records = read(archive(path, members))
    expected = [(str(at), at, at) for at in range(9)]
    assert [
        (read_sample.id, read_sample.source.ordinal, read_sample.source.id)
        for read_sample in records
    ] == expected

"""Several formats in one run: each path of the suite is read by its own reader."""

import pytest

import gradestack
from gradestack import ConfigError, load_suite
from gradestack.rundir import journal
from tests.core.outcomes import files_but_headers, write_records

READERS = {"lines.jsonl": "jsonl", "chats.jsonl": "openai", "table.csv": "records"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Three files of three formats, of several ranges each, and what grades them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 900)
    monkeypatch.setattr(journal, "SECONDS_BETWEEN_WRITES", -1.0)
    many = range(30)
    reply = {"role": "assistant", "content": "ok"}
    lines = [{"id": f"a{number}", "messages": [reply], "expected": "ok"} for number in many]
    chats = []
    for number in many:
        messages = [{"role": "user", "content": f"Question {number}?"}, reply]
        chats.append({"messages": messages})
    for name, records in (("lines.jsonl", lines), ("chats.jsonl", [*chats, {"messages": 3}])):
        path = tmp_path / name
        write_records(path, records)
    table_path = tmp_path / "table.csv"
    table_path.write_text("id,answer,expected\n" + "".join(f"c{number},no,ok\n" for number in many))

    def call(output, paths=None, **options):
        paths = paths or [{"path": name, "reader": reader} for name, reader in READERS.items()]
        suite = {"name": "x", "target": {"paths": paths}, "graders": {"g": "exact_match"}}
        return gradestack.run(suite, output=output, **{"engine": "serial", **options})

    return call


@pytest.mark.slow
def test_every_path_is_read_by_its_own_reader(run, tmp_path):
    """Whatever the engine, and after a stop, in the order of the suite.

    What a reader does not fill is skipped.
    """
    report = run("one")
    metrics = report.summary["metrics"]
    states = metrics["states"]["g"]
    assert states["graded"] == 60
    assert states["skipped"] == 30
    bad_records = report.summary["bad_records"]
    assert bad_records["count"] == 1
    config = report.summary["config"]
    paths = config["target"]["paths"]
    expected = [{"path": name, "reader": {"kind": reader}} for name, reader in READERS.items()]
    assert paths == expected
    components = report.header["components"]
    readers = [component for component in components if component["kind"] == "reader"]
    names = [reader["name"] for reader in readers]
    assert names == list(READERS.values())
    rows = report.rows()
    files = [row["source"]["file"] for row in rows]
    assert list(dict.fromkeys(files)) == list(READERS)
    run("other", engine="processes", workers=2)
    folder = tmp_path / "one"
    assert files_but_headers(folder) == files_but_headers(tmp_path / "other")


def test_a_run_that_was_stopped_is_continued(run, full_disk, tmp_path):
    full_disk(6, lambda: run("out"))
    report = run("out", resume=True)
    assert report.header["resumed"] > 0
    run("whole")
    folder = tmp_path / "out"
    assert files_but_headers(folder) == files_but_headers(tmp_path / "whole")
    full_disk(6, lambda: run("out"))
    with pytest.raises(ConfigError) as caught:
        run("out", [{"path": name, "reader": "records"} for name in READERS], resume=True)
    problems = set(caught.value.problems)
    assert {"reader 1: changed", "reader 2: changed"} < problems


def test_a_path_without_a_reader_is_recognised(run):
    """A text, or one whose reader has options alone.

    `reader` of the suite stands for those that have none.
    """
    result = run(
        "out",
        ["lines.jsonl", {"path": "chats.jsonl", "reader": {"ids": "$.no"}}, {"path": "*.csv"}],
    )
    kinds = []
    config = result.summary["config"]
    for path in config["target"]["paths"]:
        kind = path["reader"]["kind"]
        kinds.append(kind)
    assert kinds == ["jsonl", "openai", "records"]
    paths = [{"path": "lines.jsonl"}, {"path": "table.csv", "reader": "records"}]
    suite = {"target": {"paths": paths}, "reader": "jsonl", "graders": {"g": "exact_match"}}
    assert load_suite(suite).reader.name == "jsonl + records"

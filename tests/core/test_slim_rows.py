"""Slim rows: everything but the conversation, which pages read again from the input."""

import json

import pytest

import gradestack
from gradestack import load_report
from gradestack.outcome.pages import rewrite_pages
from tests.core.outcomes import data, files_but_headers, read_json
from tests.placed import carried, without_rows

DATA = data(__file__, "slim_rows.yaml")

ASKED = "What is asked of record number"


def line(number, **more):
    messages = [
        {"role": "user", "content": f"{ASKED} {number}?"},
        {"role": "assistant", "content": f"{number}."},
    ]
    return json.dumps(
        {
            "id": f"t{number}",
            "run": 0,
            "messages": messages,
            "recorded": {"score": number / 40},
            **more,
        }
    )


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with two files of forty records, cut into many ranges."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 900)
    for name, first in (("one", 0), ("two", 40)):
        lines = [line(number % 40, id=f"t{number}") for number in range(first, first + 40)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def run(place, registry):
    def call(output, suite=(), **options):
        told = []
        content = DATA["run"]
        options = {"engine": "serial", "say": told.append} | options
        report = gradestack.run(
            {**content, **dict(suite)}, output=output, registry=registry, **options
        )
        call.told = told
        return report

    return call


def rows_of(path):
    return [json.loads(each) for each in (path / "results.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "engine",
    [{"engine": "serial"}, {"engine": "processes", "workers": 2}],
    ids=["serial", "processes"],
)
def test_all_but_the_conversation_is_the_same(run, place, engine):
    run("full")
    report = run("slim", rows="slim", **engine)
    assert rows_of(place / "slim") == [
        {key: each for key, each in row.items() if key != "trajectory"}
        for row in rows_of(place / "full")
    ]
    full, slim = files_but_headers(place / "full"), files_but_headers(place / "slim")
    assert {name for name in full if full[name] != slim.get(name)} == {
        "results.jsonl",
        "report.html",
    }
    pages = [(place / name / "report.html").read_text() for name in ("full", "slim")]
    assert without_rows(pages[0]) == without_rows(pages[1])
    assert full.keys() == slim.keys()
    assert (report.header["rows"], report.has_rows, report.has_trajectories) == (
        "slim",
        True,
        False,
    )
    assert run.told == []


@pytest.mark.parametrize("what", ["gone", "changed"])
def test_an_input_that_is_gone_or_changed_is_said(run, place, registry, what):
    run("slim", rows="slim")
    file = place / "one.jsonl"
    file.unlink() if what == "gone" else file.write_text(file.read_text().replace("asked", "ASKED"))
    told = []
    rewrite_pages(load_report(place / "slim"), registry, (), place / "again", told.append)
    why = "one.jsonl is gone" if what == "gone" else "one.jsonl has changed since"
    assert told == [f"warning: rows are slim, and conversations cannot be read again: {why}"]
    rows = carried((place / "again/report.html").read_text())
    sentence = (
        "The conversation was not kept with the results (rows: slim) and cannot be read "
        f"again: {why}."
    )
    assert (rows.count(sentence), rows.count(ASKED)) == (40, 200)
    assert "ASKED" not in rows


def test_a_folder_that_holds_more_than_was_graded_is_not_read(run, place, registry):
    """Else a run directory from somebody else could have any folder read."""
    folder = place / "runs"
    folder.mkdir()
    (place / "one.jsonl").rename(folder / "one.jsonl")
    gradestack.run(
        {**DATA["run"], "target": {"paths": ["runs"]}},
        output="slim",
        registry=registry,
        rows="slim",
    )
    header = place / "slim/header.json"
    content = read_json(header)
    content["recording"]["inputs"][0]["path"] = str(place)
    header.write_text(json.dumps(content))
    told = []
    rewrite_pages(load_report(place / "slim"), registry, (), place / "again", told.append)
    assert len(told) == 1
    assert "holds files that were not graded" in told[0]

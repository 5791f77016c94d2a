"""Adding graders to a finished run."""

import shutil
from pathlib import Path

import pytest

import gradestack
from tests.core.outcomes import read_json, write_records

EXAMPLES = sorted(Path("examples").glob("*/suite.yaml"), key=str)
FILES = ("results.jsonl", "summary.json", "report.md")
CALL = [{"name": "pay", "arguments": {"sum": 1}}]


def files_of(run):
    return {name: (run / name).read_bytes() for name in FILES}


@pytest.fixture
def records(tmp_path, monkeypatch):
    """Write a file of six tasks with two runs each, and return its path."""
    monkeypatch.chdir(tmp_path)
    samples = []
    for task in range(6):
        for run in range(2):
            samples.append({"id": f"t{task}", "run": run, "expected": CALL, "predicted": CALL})
    path = tmp_path / "runs.jsonl"
    write_records(path, samples)
    return tmp_path / "runs.jsonl"


@pytest.mark.parametrize("suite", EXAMPLES, ids=lambda path: path.parent.name)
def test_a_grader_added_later_gives_the_bytes_of_grading_with_all_at_once(tmp_path, suite):
    has_calls = suite.parent.name not in {"stability", "when2call"}
    kind = "repeats" if has_calls else "ascii_printable_only"
    output = tmp_path / "later"
    gradestack.run(suite, output=output, allow_code=True)
    more = (f"graders.more={kind}",)
    at_once_folder = tmp_path / "at_once"
    gradestack.run(suite, output=at_once_folder, overrides=more, allow_code=True)
    run = tmp_path / "later"
    gradestack.add_graders(run, {"more": kind}, allow_code=True)
    later_folder = tmp_path / "later"
    files = files_of(later_folder)
    expected = files_of(tmp_path / "at_once")
    assert files == expected


def test_the_command_adds_to_the_run_in_its_place(records, command, tmp_path):
    command("grade", "runs.jsonl", "--grader", "tool_calls", "-o", "later", "--quiet")
    both = ("--grader", "tool_calls", "--grader", "repeats")
    command("grade", "runs.jsonl", *both, "-o", "at_once", "--quiet")
    assert command("grade", "later", "--add-grader", "repeats", "--quiet").code == 0
    run = tmp_path / "later"
    files = files_of(run)
    at_once_folder = tmp_path / "at_once"
    assert files == files_of(at_once_folder)


def test_a_filter_chooses_the_runs_that_are_graded_and_the_others_are_skipped(records, tmp_path):
    gradestack.grade_files("runs.jsonl", graders=["tool_calls"], output="out")
    rows = gradestack.load_report("out").rows()
    before = [row["grades"] for row in rows]
    report = gradestack.add_graders("out", "repeats", filter='id == "t1"')
    repeats = report.states["repeats"]
    assert repeats == {"graded": 2, "skipped": 10, "failed": 0, "missing": 0}
    tool_calls = report.states["tool_calls"]
    assert tool_calls["graded"] == 12
    for row, kept_row in zip(report.rows(), before, strict=True):
        assert row["grades"]["tool_calls"] == kept_row["tool_calls"]
        added = row["grades"]["repeats"]
        is_chosen = row["sample"]["id"] == "t1"
        assert added["state"] == ("graded" if is_chosen else "skipped")
        if not is_chosen:
            assert added["rationale"] == 'not chosen by filter: id == "t1"'
    graded_again = gradestack.grade_files(
        "runs.jsonl",
        graders=["tool_calls"],
        overrides=['graders.repeats={kind: repeats, filter: "id == \\"t1\\""}'],
        output="at_once",
    )
    files = files_of(report.path)
    assert files == files_of(graded_again.path)


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("{}\n")])
def test_rows_are_graded_again_where_the_files_are_gone_or_changed(records, change, tmp_path):
    gradestack.grade_files("runs.jsonl", graders=["tool_calls"], output="out")
    at_once = gradestack.grade_files("runs.jsonl", graders=["tool_calls", "repeats"], output="all")
    change(records)
    messages = []
    with pytest.raises(gradestack.ConfigError, match="would replace; name another place"):
        gradestack.add_graders("out", "repeats")
    report = gradestack.add_graders("out", "repeats", output="more", echo=messages.append)
    assert "the rows of out are graded again" in messages[0]
    by_metric = report.metrics["by_metric"]
    assert by_metric == at_once.metrics["by_metric"]
    assert report.aggregates == at_once.aggregates
    rows = at_once.rows()
    grades = [row["grades"] for row in rows]
    assert [row["grades"] for row in report.rows()] == grades


def test_what_cannot_be_added_is_refused(records, command, tmp_path):
    command("grade", "runs.jsonl", "--grader", "tool_calls", "-o", "out", "--quiet")
    shutil.copytree("out", "before")
    wrong = {
        ("--add-grader", "tool_calls"): "the run has a grader 'tool_calls' already",
        ("--add-grader", "repeets"): "repeets",
        ("--add-grader", "repeats", "--limit", "2"): "leave out limit",
        ("--add-grader", "repeats", "--stack", "tau-bench"): "leave out stack",
        ("--add-grader", "repeats", "--filter", "id =="): "cannot be read",
        ("other", "--add-grader", "repeats"): "for one finished run",
    }
    for words, text in wrong.items():
        refused = command("grade", "out", *words)
        assert (refused.code, text in refused.err) == (2, True), (words, refused)
    assert command("grade", "runs.jsonl", "--add-grader", "repeats").code == 2
    run = tmp_path / "out"
    files = files_of(run)
    before_folder = tmp_path / "before"
    assert files == files_of(before_folder)
    path = tmp_path / "out/header.json"
    assert read_json(path)["rows"]

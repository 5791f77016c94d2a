"""Ids that stand for other tasks in other files, and files that hold several runs of the same
tasks.
"""

import pytest

import gradestack
from gradestack import Registry, discover, load_report
from tests.core.outcomes import data, ids

CASES = data(__file__, "separate_tasks.yaml")
GRADE = ("grade", "--reader", "jsonl", "--grader", "exact_match", "--set", "reports=[]")


@pytest.fixture
def grade(tmp_path, monkeypatch, command, write_lines):
    """Return a function that grades files of records and returns what was printed and
    the report.
    """
    monkeypatch.chdir(tmp_path)
    plugins = [plugin for plugin in discover(limit="").plugins if not plugin.error]
    registry = Registry(plugins)
    command.use(registry)

    def run(files, *options, output="out"):
        for name, records in files.items():
            if not (
                tmp_path / f"{name}.jsonl"
            ).exists():  # a file that is written again is another one
                write_lines(records, f"{name}.jsonl")
        result = command(*GRADE, *(f"{name}.jsonl" for name in files), "-o", output, *options)
        assert result.code == 0, result
        return result, load_report(output)

    return run


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_tasks(grade, write_lines, case):
    """Said once on the console, and in header.json."""
    options = case.get("options", [])
    if "dataset" in case:
        lines = write_lines(case["dataset"], "gold.jsonl")
        options = [*options, "--dataset", lines]
    result, report = grade(case["files"], *options)
    assert ids(report) == case["ids"]
    if "note" in case:
        expected = [case["note"]]
    else:
        expected = []
    notes = report.header.get("notes", [])
    assert notes == expected
    assert result.out.count("tasks of their own") == ("note" in case)
    note = case.get("note", "")
    assert note in result.out


COLLIDING = {
    name: [
        {
            "id": f"t{n // 3}",
            "input": f"{n // 3} {name * (n > 8)}",
            "expected": "x",
            "predicted": "xy"[n % 2],
        }
        for n in range(30)
    ]
    for name in "ab"
}


def test_a_run_that_is_continued_tells_them_apart(grade, small_shards, full_disk):
    small_shards(300)
    _, uninterrupted = grade(COLLIDING, output="whole")
    options = {
        "reader": "jsonl",
        "graders": ["exact_match"],
        "output": "out",
        "overrides": ["reports=[]"],
    }
    full_disk(5, lambda: gradestack.grade_files(["a.jsonl", "b.jsonl"], **options))
    _, report = grade(COLLIDING, "--resume")
    assert report.header["resumed"] == 5
    notes = report.header["notes"]
    assert notes == uninterrupted.header["notes"]
    for name in ("results.jsonl", "summary.json"):
        expected = (uninterrupted.path / name).read_bytes()
        assert (report.path / name).read_bytes() == expected

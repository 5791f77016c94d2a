"""A run compared with the one before of its suite."""

import pytest

import gradestack
from gradestack import DataError, compare
from tests.core.outcomes import read_json, write_records

TIMES = iter(f"2031-01-01T00:00:{second:02}+00:00" for second in range(60))


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Return a function that grades so many right answers of four, at a later time each."""
    monkeypatch.chdir(tmp_path)

    def grade(path, right, suite="s", gate=None):
        records = []
        for task in range(4):
            predicted = "x" if task < right else "y"
            records.append({"id": str(task), "expected": "x", "predicted": predicted})
        answers_path = tmp_path / "answers.jsonl"
        write_records(answers_path, records)
        content = {"name": suite, "target": {"paths": ["answers.jsonl"]}, "reports": []}
        content |= {"graders": {"g": "exact_match"}}
        if gate is not None:
            content["gate"] = {"metric_key": "g", "op": "gte", "value": gate}
        output = tmp_path / path
        gradestack.run(content, output=output)
        header_path = tmp_path / path / "header.json"
        header = read_json(header_path)
        text = gradestack.jsonio.dumps({**header, "timestamp": next(TIMES)})
        (tmp_path / path / "header.json").write_text(text)
        return tmp_path / path

    return grade


def names_of(comparison):
    return [side.name for side in comparison.sides]


def test_the_newest_run_is_compared_with_the_one_before_whose_gates_passed(runs, tmp_path):
    runs("all/a", 4, gate=0.5)
    runs("all/deep/b", 3, gate=0.5)
    runs("all/other", 4, suite="another")
    runs("all/failed", 0, gate=0.5)
    runs("all/c", 2, gate=0.5)
    all_folder = tmp_path / "all"
    names = names_of(compare(all_folder, previous=True))
    assert names == ["b", "c"]
    failed_folder = tmp_path / "all/failed"
    assert names_of(compare(failed_folder, previous=True)) == ["b", "failed"]
    comparison = compare(tmp_path / "all", previous=True).data
    difference = comparison["outcome"]["difference"]
    assert difference == -0.25


def test_what_has_no_run_before_is_refused(runs, tmp_path):
    a = runs("all/a", 4)
    runs("all/b", 4, suite="another")
    all_folder = tmp_path / "all"
    for path in (a, all_folder):
        with pytest.raises(DataError, match=r"no earlier complete run of .* whose gates passed"):
            compare(path, previous=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no finished run in it or below"):
        compare(tmp_path / "empty", previous=True)
    with pytest.raises(gradestack.ConfigError, match="name it alone"):
        compare(a, a, previous=True)


def test_one_command_grades_and_compares(tmp_path, command, monkeypatch):
    """Without a run before it says so, and the exit code stays the gates'."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "r.jsonl"
    write_records(path, [{"id": "1", "expected": "x", "predicted": "x"}])
    words = ("grade", "r.jsonl", "--grader", "exact_match", "--compare-previous", "--quiet")
    first = command(*words, "-o", "all/a")
    assert first.code == 0
    assert first.err.startswith("not compared: ") is True
    header = tmp_path / "all/a/header.json"
    document = read_json(header)
    old = {**document, "timestamp": "2001-01-01T00:00:00+00:00"}
    text = gradestack.jsonio.dumps(old)
    header.write_text(text)
    url = "https://example.org/comparison.html"
    second = command(*words, "-o", "all/b", "--report-url", url)
    assert "b and a are identical" in second.out
    comparison_path = tmp_path / "all/b/comparison/comparison.md"
    assert url in comparison_path.read_text()
    again = command(*words, "-o", "all/b")  # the comparison in it is gradestack's own
    assert again.code == 0
    refused = command("grade", "r.jsonl", "--report-url", url)
    assert refused.code == 2
    assert "goes with --compare-previous" in refused.err

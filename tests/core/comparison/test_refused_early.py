"""Runs that cannot be compared or written are refused before files are graded."""

import json

import pytest

import gradestack
from gradestack import ConfigError, DataError, compare, python_compare
from tests.core.outcomes import data, read_json

DATA = data(__file__, "refused_early.yaml")

SCORES = {"1": [1], "2": [0]}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a file of records; grading it is a mistake."""

    def grade(*_):
        pytest.fail("it was graded")

    path = tmp_path / "runs.jsonl"
    text = json.dumps({"id": "1", "expected": "x", "predicted": "x"})
    path.write_text(text + "\n", encoding="utf-8")
    monkeypatch.setattr(python_compare, "grade_suite", grade)
    return path


@pytest.mark.parametrize(
    ("output", "message"), DATA["where_nothing_can_be_written_is_refused_before_files_are_graded"]
)
def test_where_nothing_can_be_written_is_refused_before_files_are_graded(
    file, tmp_path, output, message
):
    for name, page in (
        ("foreign", "comparison.json"),
        ("page", "comparison.html"),
        ("notes", "comparison.md"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / page).write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        compare(file, file, output=tmp_path / output)


@pytest.mark.parametrize("model", ["", "::m"])
def test_a_run_without_rows_is_refused_before_files_are_graded(file, made, tmp_path, model):
    run = made("run", SCORES)
    path = run / "header.json"
    header = read_json(path)
    rows = header | {"rows": False}
    text = json.dumps(header if model else rows)
    header_path = run / "header.json"
    header_path.write_text(text, encoding="utf-8")
    with pytest.raises(
        (DataError, ConfigError), match=r"run: (the run kept no rows|it has no model 'm')"
    ):
        compare(file, f"{run}{model}")
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        compare(file, tmp_path / "gone.jsonl")


def test_a_baseline_without_rows_is_refused_before_samples_are_graded(made):
    run = made("run", SCORES)
    path = run / "header.json"
    header = read_json(path)
    text = json.dumps(header | {"rows": False})
    header_path = run / "header.json"
    header_path.write_text(text, encoding="utf-8")
    collected = []
    gate = {"metric_key": "append", "baseline": str(run), "max_flips": 0}
    with pytest.raises(DataError, match=r"baseline cannot be used: .*the run keeps no rows"):
        gradestack.grade(
            [{"id": "1"}], {"append": lambda sample: collected.append(sample) or 1.0}, gate=gate
        )
    assert not collected

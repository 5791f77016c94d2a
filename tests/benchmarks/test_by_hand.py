"""The script by hand and the third party's grader say what the built-in graders say of the same
recording.
"""

import json
import sys
from types import SimpleNamespace

import pytest

import gradestack
from gradestack import load_report

pytestmark = pytest.mark.proof
RECORDS = 330
TASKS = 20


@pytest.fixture
def by_hand(bench, monkeypatch):
    """The script, which decodes with the standard library.

    The reference parser need not be installed.
    """
    monkeypatch.setitem(
        sys.modules,
        "orjson",
        SimpleNamespace(loads=json.loads, dumps=lambda row: json.dumps(row).encode()),
    )
    return bench("by_hand")


@pytest.fixture(
    params=[(35, TASKS), (80, TASKS), (35, 0)], ids=["usual", "80 % wrong", "tasks of one run"]
)
def recording(request, workload, tmp_path):
    wrong, tasks = request.param
    path = tmp_path / "recording.jsonl"
    workload.write(path, RECORDS, tasks=tasks, wrong=wrong)
    return path


def graded(bench, path, out, graders=None):
    """Grade a recording with the suite that is measured and return the report directory."""
    jobs = bench("jobs")
    suite = jobs.suite(path, {"graders": graders or jobs.GRADERS, "metrics": jobs.RELIABLE})
    gradestack.run(suite, output=out, allow_code=True)
    return out


def rows_of(path):
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    return [json.loads(line) for line in lines]


def test_the_script_has_the_figures_of_the_suite(bench, by_hand, recording, tmp_path):
    """Counts are equal, means, standard errors and pass^k to twelve digits, with rows
    and without.
    """
    figures = by_hand.grade(recording)
    assert figures["partial"]["n"] == RECORDS
    assert 0 < figures["successes"] < RECORDS
    rows_path = tmp_path / "rows.jsonl"
    assert by_hand.grade(recording, rows_path) == figures
    run_folder = tmp_path / "run"
    path = graded(bench, recording, run_folder)
    report = load_report(path)
    unequal = by_hand.unequal(figures, by_hand.figures_of(report))
    assert unequal == []


def test_the_script_scores_every_record_to_the_last_digit(bench, by_hand, recording, tmp_path):
    """Its rows are in the order of the file.

    A reason stands wherever the partial score is below 1, only there.
    """
    rows_path = tmp_path / "rows.jsonl"
    by_hand.grade(recording, rows_path)
    ours = rows_of(tmp_path / "rows.jsonl")
    run_folder = tmp_path / "run"
    path = graded(bench, recording, run_folder) / "results.jsonl"
    theirs = rows_of(path)
    ids = [row["sample"]["id"] for row in theirs]
    assert [row["id"] for row in ours] == ids
    for name in ("partial", "deepfabric"):
        scores = [row["grades"][name]["score"] for row in theirs]
        grades = [row["grades"][name] for row in ours]
        assert grades == scores
    assert all(bool(row["reasons"]) == (row["grades"]["partial"] < 1) for row in ours)


def test_the_third_party_does_the_work_of_the_built_in_grader(bench, recording, tmp_path):
    """Scores, counts, items and the places of all reasons are equal."""
    authors = bench("authors")
    ours, theirs = (
        rows_of(graded(bench, recording, tmp_path / f"run-{at}", graders) / "results.jsonl")
        for at, graders in enumerate(authors.GRADERS.values())
    )

    def essence(row):
        grade = row["grade"]
        items = []
        for item in grade["items"]:
            items.append(
                {
                    name: item.get(name)
                    for name in ("id", "score", "gold", "label", "parts", "metadata")
                }
            )
        reasons = []
        for reason in grade.get("reasons", ()):
            pointer = reason.get("pointer", "")
            reasons.append((reason["subject"], reason["code"], pointer))
        return grade["score"], grade["counts"], items, reasons

    essences = [essence(row) for row in theirs]
    expected = [essence(row) for row in ours]
    assert essences == expected
    assert any(row["grade"].get("reasons") for row in ours)

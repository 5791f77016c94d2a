"""Gates that compare a run with an earlier one, through the command line."""

import json

import pytest
import yaml

from gradestack.cli.commands import main

TASKS = 24


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that grades a file of right and wrong answers and returns exit code, output and gate."""
    monkeypatch.chdir(tmp_path)

    def call(right, out, gate=None, suite="suite", **fields):
        lines = [
            {"id": f"t{task}", "expected": "x", "predicted": "x" if right(task) else "y"} | fields
            for task in range(TASKS)
        ]
        (tmp_path / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        content = {
            "name": suite,
            "target": {"paths": ["runs.jsonl"]},
            "graders": {"exact": "exact_match"},
            "reports": [],
            **({"gate": gate} if gate else {}),
        }
        (tmp_path / "suite.yaml").write_text(yaml.safe_dump(content))
        capsys.readouterr()
        try:
            main(["run", "suite.yaml", "-o", out])
            code = 0
        except SystemExit as done:
            code = done.code
        said = capsys.readouterr()
        found = tmp_path / out / "summary.json"
        gates = json.loads(found.read_text())["gates"] if code in (0, 1) else None
        return code or 0, said.out + said.err, gates and gates[0]

    return call


def two_in_three(task):
    return task % 3 > 0


GATE = {"metric_key": "exact", "baseline": "before", "not_worse_than": 0.15}


@pytest.mark.parametrize(
    ("right", "code", "outcome", "word"),
    [
        (two_in_three, 0, "passed", "PASSED"),
        (lambda task: task % 3 > 1, 1, "failed", "FAILED"),
        (lambda task: two_in_three(task) != (task in (0, 1, 2, 4, 7)), 1, "undecided", "UNDECIDED"),
    ],
    ids=["passed", "failed", "undecided"],
)
def test_a_baseline_gate_in_each_of_its_outcomes(run, right, code, outcome, word):
    """By the one-sided bounds of the paired difference; the line has difference, bounds and flips."""
    assert run(two_in_three, "before")[0] == 0
    found, said, gate = run(right, "after", GATE)
    assert (found, gate["outcome"], gate["tasks"]) == (code, outcome, TASKS)
    assert f"Gate (exact not worse than before by 0.15): {word} (actual: {gate['actual']:+.2f}, " in said
    assert "with 95% confidence each" in said
    fixed, broken = gate["flips"]["fixed"], gate["flips"]["broken"]
    assert f"{fixed} run{'' if fixed == 1 else 's'} fixed, {broken} broken" in said
    low, high = gate["bounds"]
    assert (low > -0.15, high < -0.15) == (outcome == "passed", outcome == "failed")
    assert ("tasks would be needed" in said) == (outcome == "undecided")


def test_an_improvement_is_required_and_flips_are_limited(run):
    """Nothing better is undecided; a run that broke too many is failed whatever the mean says."""
    run(two_in_three, "before")
    better = GATE | {"require": "improvement", "not_worse_than": None}
    assert run(lambda task: True, "a", better)[2]["outcome"] == "passed"
    assert run(two_in_three, "b", better | {"on_undecided": "warn"})[0] == 0
    gate = {"metric_key": "exact", "baseline": "before", "max_flips": 1}
    code, said, found = run(lambda task: task not in (1, 2), "c", gate)
    assert (code, found["flips"]) == (1, {"fixed": 8, "broken": 2})
    assert "Gate (exact runs broken since before <= 1): FAILED" in said


def test_the_latest_is_the_newest_complete_run_of_the_suite_beside_this_one(run, tmp_path):
    """None yet passes with a warning; runs of other suites are none; its digest is in the header."""
    gate = GATE | {"baseline": "latest"}
    code, said, _ = run(two_in_three, "first", gate)
    assert code == 0
    assert "Warning: gate exact not worse than latest by 0.15: no earlier complete run of suite to compare with" in said
    run(lambda task: True, "other", suite="other")
    assert run(two_in_three, "second", gate)[2]["actual"] == 0.0
    header = json.loads((tmp_path / "second/header.json").read_text())
    assert [entry["path"] for entry in header["baselines"]] == [str(tmp_path / "first")]
    assert len(header["baselines"][0]["sha256"]) == 64


@pytest.mark.parametrize("break_it", ["gone", "incomplete", "rows", "version", "expected"])
def test_a_baseline_that_cannot_be_compared_with_ends_the_run(run, tmp_path, break_it):
    run(two_in_three, "before", **({"expected": "z"} if break_it == "expected" else {}))
    before = tmp_path / "before"
    if break_it == "gone":
        before.rename(tmp_path / "moved")
    elif break_it in ("incomplete", "rows"):
        name, more = (
            ("summary", {"incomplete": "it was interrupted"})
            if break_it == "incomplete"
            else ("header", {"rows": False})
        )
        path = before / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | more))
    elif break_it == "version":
        path = before / "header.json"
        path.write_text(path.read_text().replace('"version": "', '"version": "0'))
    code, said, _ = run(two_in_three, "after", GATE)
    assert code == 3
    assert "baseline" in said
    assert "Traceback" not in said
    assert not (tmp_path / "after").exists()

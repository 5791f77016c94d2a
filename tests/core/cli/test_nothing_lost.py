"""What people do to a command line, and what must survive it."""

import json
import sys
from pathlib import Path

import pytest

import gradestack
from gradestack import ConfigError
from gradestack.outcome.pages import rewrite_pages
from gradestack.registry import discover
from tests.core.outcomes import clean

CALL = [{"name": "f", "arguments": {"a": 1}}]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Four graded samples, scores 1, 1, 0.4 and 0, in a directory of their own."""
    monkeypatch.chdir(tmp_path)
    half = [{"name": "f", "arguments": {"a": 2}}]
    rows = [("a", CALL), ("b", CALL), ("c", half), ("d", [])]
    lines = (json.dumps({"id": name, "expected": CALL, "predicted": made}) for name, made in rows)
    (tmp_path / "runs.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def _suite(**more):
    return {"name": "x", "target": {"paths": ["runs.jsonl"]}, "graders": {"q": "tau_partial"}, "reports": [], **more}


def test_an_output_that_holds_an_input_is_refused(runs):
    """A rerun replaces its directory whole, so nothing that is read may lie in it."""
    gradestack.grade_files(["runs.jsonl"], output="out", overrides=["reports=[]"])
    (runs / "out/mine.jsonl").write_text((runs / "runs.jsonl").read_text())
    (runs / "out/suite.yaml").write_text("target: {paths: [../runs.jsonl]}\ngraders: {q: tau_partial}\nreports: []\n")
    with pytest.raises(ConfigError, match=r"mine\.jsonl, which this run reads"):
        gradestack.grade_files(["out/mine.jsonl"], output="out")
    with pytest.raises(ConfigError, match=r"suite\.yaml, which this run reads"):
        gradestack.run("out/suite.yaml", output="out")
    with pytest.raises(ConfigError, match="which this run reads"):
        gradestack.grade_files(["out"], output="out", stack="tool_calls")
    assert (runs / "out/mine.jsonl").exists()
    assert (runs / "out/suite.yaml").exists()


@pytest.mark.parametrize("name", ["notes.txt", "run_2/notes.txt", "theirs/header.json"])
def test_a_file_of_others_in_an_earlier_run_is_not_deleted(runs, command, name):
    """What runs, reports and comparisons wrote is replaced."""
    lines = [{"id": "a", "expected": CALL, "predicted": CALL, "run": each} for each in (1, 2)]
    (runs / "runs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    (runs / "suite.yaml").write_text(json.dumps(_suite(num_runs=2)))
    again = ("run", "suite.yaml", "-o", "out")
    for words in (again, again, ("report", "out/run_1"), ("compare", "out", "out", "-o", "out"), again):
        assert command(*words).code == 0, words
    (runs / "out/.DS_Store").touch()
    assert command(*again).code == 0
    (runs / "out" / name).parent.mkdir(exist_ok=True)
    (runs / "out" / name).write_text("theirs")
    clean(command(*again), 2, f"out: holds {name}, which gradestack did not write; name another with -o")
    assert (runs / "out" / name).read_text() == "theirs"


def written(place, *, comparison):
    if comparison:
        gradestack.compare("a", "b", output=place)
    else:
        rewrite_pages(gradestack.load_report("a"), discover(), ("html", "markdown"), place)


@pytest.mark.usefixtures("runs")
def test_pages_of_others_are_not_replaced():
    gradestack.grade_files(["runs.jsonl"], output="a")
    gradestack.grade_files(["runs.jsonl"], output="b")
    for name in ("comparison.json", "comparison.html", "report.html", "report.md"):
        place = Path(name.replace(".", "-"))
        place.mkdir()
        (place / name).write_text('{"my": "data"}')
        with pytest.raises(ConfigError, match=rf"{name}: is there already and was not written by gradestack"):
            written(place, comparison="comparison" in name)
        assert [each.name for each in place.iterdir()] == [name]
        assert (place / name).read_text() == '{"my": "data"}'
    for _ in range(2):  # what is ours is written anew
        written(Path("c"), comparison=True)
        written(Path("d"), comparison=False)
        written(Path("a"), comparison=False)


def test_every_gate_has_its_own_rule_for_samples(runs):
    """Accuracy gates after the first do not borrow its per-sample rule: 2 of 4 are right, 3 of 4 are above 0.3."""
    gates = [
        {"op": "gte", "value": 0.1},
        {"metric": "accuracy", "op": "gte", "value": 50},
        {"metric": "accuracy", "op": "gte", "value": 50, "pass_value": 0.3},
    ]
    report = gradestack.run(_suite(gates=gates), output="out")
    assert [gate["actual"] for gate in report.gates] == [0.6, 50.0, 75.0]


def test_a_gate_per_an_unknown_facet_has_no_data(runs):
    """A mistyped facet is no group of everything."""
    report = gradestack.run(_suite(gate={"op": "gte", "value": 0.1, "per": "nofacet"}), output="out")
    assert (report.gates[0]["outcome"], report.passed) == ("no_data", False)


def test_a_grader_that_exits_is_a_failed_grade(runs):
    """sys.exit in somebody's function cannot end the run with exit code 0."""
    (runs / "mine.py").write_text("import sys\ndef leave(sample, submission):\n    sys.exit(0)\n")
    (runs / "runs.jsonl").write_text('{"id": "a", "expected": "x", "predicted": "x"}\n')
    graders = {"q": {"kind": "tool", "function": "mine.py:leave"}}
    (runs / "suite.yaml").write_text(json.dumps(_suite(graders=graders, gate={"op": "gte", "value": 1})))
    report = gradestack.run("suite.yaml", output="out", allow_code=True)
    assert (report.states["q"]["failed"], report.exit_code) == (1, 3)
    assert next(report.rows())["grade"]["fault"]["type"] == "SystemExit"


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_an_absent_turn_scores_nothing(runs, profile):
    """Even a grader that would accept an empty answer gives nothing for a turn that is not there."""
    row = {"id": "a", "input": ["one", "two", "three"], "expected": {"text": ["hello", ".*", "^$"]}}
    row["turns"] = [[{"role": "assistant", "content": "hello"}]]
    (runs / "runs.jsonl").write_text(json.dumps(row) + "\n")
    report = gradestack.run(_suite(graders={"q": "regex_match"}, profile=profile), output="out")
    grade = next(report.rows())["grade"]
    assert (grade["state"], grade["score"]) == ("graded", 1 / 3)


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_workers_leave_with_their_parent(held, until):
    process = held.start("-o", "out", "--engine", "processes", "--workers", 2)
    held.stand_still(process, "out", workers=2)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(workers) >= 2
    process.kill()
    process.communicate()
    until(lambda: not any(Path("/proc", worker).exists() for worker in workers))
    assert not (held.place / "out").exists()


def test_models_a_regraded_suite_names_are_not_silently_ignored(runs):
    """With --cached every recorded model is graded, and the suite's own list is told to be unused."""
    row = {"sample": {"id": 0, "input": "q", "ground_truth": "x"}, "submission": "x", "model_name": "m"}
    row |= {"trajectory": [[{"role": "assistant", "content": "x"}]], "agent_id": "a", "grade": {"score": 1.0}}
    (runs / "recorded").mkdir()
    (runs / "recorded/results.jsonl").write_text(json.dumps(row) + "\n")
    target = {"kind": "agent", "agent_file": "a.af", "model_handles": ["other"]}
    suite = {"name": "x", "target": target, "graders": {"q": "exact_match"}, "reports": []}
    (runs / "suite.yaml").write_text(json.dumps(suite))
    report = gradestack.run("suite.yaml", cached="recorded", output="out")
    assert report.metrics["total"] == 1
    assert any("target.model_handles is not used with --cached" in text for text in report.summary["warnings"])

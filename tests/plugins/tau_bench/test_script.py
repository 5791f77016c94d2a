"""The script ``python -m gradestack_plugins.tau_bench``."""

import json
import subprocess
import sys

import pytest

from gradestack_plugins.tau_bench.__main__ import main
from tests.core.outcomes import data

DATA = data(__file__, "script.yaml")


@pytest.fixture
def results(tau, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(
        json.dumps([tau.record([("a", {"x": 1})], [tau.call("a", {"x": 1})], reward=1.0)])
    )
    return path


def test_prints_the_block_and_writes_the_file(results, capsys):
    assert main([str(results)]) == 0
    out = capsys.readouterr().out
    target = results.with_name("run_partial.json")
    assert out.startswith(
        f"Processing: {results}\n\n=== SCORING STATISTICS ===\nTotal tasks: 1\n\n"
    )
    assert out.endswith(f"\nInteresting Cases:\n\nEnhanced results saved to: {target}\n")
    record = json.loads(results.read_text())[0] | {"partial_score": 1.0}
    assert target.read_text() == json.dumps([record], indent=2)
    assert sorted(path.name for path in results.parent.iterdir()) == [
        "run.json",
        "run_partial.json",
    ]


def test_options(results, tmp_path, capsys):
    """``-o`` names the output, ``--no-stats`` leaves the statistics out."""
    target = tmp_path / "out.json"
    assert main([str(results), "-o", str(target), "--no-stats"]) == 0
    assert (
        capsys.readouterr().out == f"Processing: {results}\n\nEnhanced results saved to: {target}\n"
    )
    assert json.loads(target.read_text())[0]["partial_score"] == 1.0


def test_profile(tau, tmp_path):
    """``--profile upstream`` reads object arguments as the original does."""
    message = {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "a", "arguments": {"x": 1}}}],
    }
    path, target = tmp_path / "r.json", tmp_path / "r_partial.json"
    path.write_text(json.dumps([tau.record([("a", {"x": 1})], [message])]))
    for profile, score in (("documented", 1.0), ("upstream", 0.4)):
        assert main([str(path), "--profile", profile]) == 0
        assert json.loads(target.read_text())[0]["partial_score"] == score


@pytest.mark.parametrize(("text", "problem"), DATA["errors_are_printed_and_leave_nothing_behind"])
def test_errors_are_printed_and_leave_nothing_behind(tmp_path, capsys, text, problem):
    """Unusable input: one line on standard output, exit code 1, no output file."""
    path = tmp_path / "r.json"
    if text is not None:
        path.write_text(text)
    assert main([str(path)]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == f"Processing: {path}"
    assert said.out.splitlines()[1].startswith("Error: ")
    assert problem in said.out
    assert said.err == ""
    assert [left.name for left in tmp_path.iterdir()] == ([] if text is None else ["r.json"])


def test_existing_output_survives_an_error(results, capsys):
    target = results.with_name("run_partial.json")
    target.write_text("old")
    results.write_text("[nope]")
    assert main([str(results)]) == 1
    assert target.read_text() == "old"


def test_output_that_cannot_be_written(results, tmp_path, capsys):
    assert main([str(results), "-o", str(tmp_path / "no" / "out.json")]) == 1
    assert "Error: " in capsys.readouterr().out


def test_a_name_without_json_needs_an_output(results, tmp_path, capsys):
    """The input is never overwritten for want of a name."""
    other = results.rename(tmp_path / "run.txt")
    assert main([str(other)]) == 1
    assert "say with -o where to write" in capsys.readouterr().out
    assert main([str(other), "-o", str(tmp_path / "out.json")]) == 0


def test_input_may_be_the_output(results):
    """Writing over the input works, since the output takes its place only when complete."""
    assert main([str(results), "-o", str(results)]) == 0
    assert json.loads(results.read_text())[0]["partial_score"] == 1.0


def test_records_that_cannot_be_scored_are_kept_and_told(tau, tmp_path, capsys):
    """Records the original stops at, and records that are none, stay in the file.

    A warning counts them.
    """
    path = tmp_path / "r.json"
    records = [tau.record(info=None), {"no": "task"}, tau.record([], [])]
    path.write_text(json.dumps(records))
    assert main([str(path)]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("Warning: 2 records could not be scored")
    assert "Total tasks: 1\nNot scored: 1\n" in said.out
    written = json.loads((tmp_path / "r_partial.json").read_text())
    assert [record.get("partial_score", "absent") for record in written] == [None, "absent", 1.0]


def test_names_from_data_stay_on_their_lines(tau, tmp_path, capsys):
    """Neither the name of a file nor a task's id makes a line of its own or gives a log
    a command.
    """
    forged = "x\n::error::y\x1b[31m"
    path = tmp_path / f"{forged}.json"
    path.write_text(json.dumps([tau.record([], [], reward=1.0, task_id=forged)]))
    for target in (tmp_path / f"{forged}.out", tmp_path / "no" / f"{forged}.out"):
        main([str(path), "-o", str(target)])
    said = capsys.readouterr().out
    assert "x\\n::error::y\\x1b[31m.json" in said
    assert not [
        line for line in said.split("\n") if line.startswith("::") or not line.isprintable()
    ]


@pytest.mark.slow
def test_runs_as_a_module(results):
    """The module runs as a program; a wrong command line exits 2."""
    command = [sys.executable, "-m", "gradestack_plugins.tau_bench"]
    done = subprocess.run([*command, str(results)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Processing: ")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2

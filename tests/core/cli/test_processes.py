"""The real command in processes of its own: exit codes, odd terminals, closed pipes, Ctrl-C."""

import os
import subprocess
import sys

import pytest

import gradestack


def test_exit_codes_of_the_real_command(here, spawn, write_lines):
    runs = write_lines([{"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}])
    common = ["grade", runs, "-o", "out", "--quiet", "--set", "reports=[]", "--set"]
    assert spawn(*common, "gate={op: gte, value: 1}") == type(spawn("--version"))(
        0, "✓ PASSED\n", ""
    )
    failed = spawn(*common, "gate={op: gt, value: 1}")
    assert failed.code == 1
    assert failed.out == "✗ FAILED\n"
    assert failed.err == ""
    for code, arguments in [
        (2, ["grade", runs, "-o", runs]),
        (2, ["run", "gone.yaml"]),
        (2, ["nonsense"]),
        (3, ["grade", "gone.jsonl"]),
        (3, ["report", "gone"]),
    ]:
        result = spawn(*arguments)
        assert result.code == code, result
        assert result.out == ""
        assert result.err
        assert "Traceback" not in result.err


def test_a_terminal_that_cannot_show_a_mark_is_no_crash(here, spawn, write_lines):
    runs = write_lines(
        [{"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}], "läufe.jsonl"
    )
    options = ["-o", "out", "--set", "reports=[]", "--set", "gate={op: gte, value: 1}"]
    result = spawn("grade", runs, *options, PYTHONIOENCODING="latin-1")
    assert result.code == 0
    assert result.err == ""
    assert "\\u2713 PASSED" in result.out
    odd = os.fsdecode(b"n\xff.jsonl")
    missing = spawn("grade", odd, PYTHONUTF8="1")
    assert missing.code == 3
    assert missing.err == "error: n\\udcff.jsonl: no such file or directory\n"
    runs.rename(here / odd)
    utf8_result = spawn("grade", odd, *options, PYTHONUTF8="1")
    assert utf8_result.code == 0
    assert utf8_result.err == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "finishes"),
    [
        ("schema suite", False),
        ("grade runs.jsonl -o out --allow-all-failed --set reports=[] --set gate=null", True),
    ],
    ids=["head -1", "true"],
)
def test_a_reader_that_closes_the_pipe_is_no_traceback_and_ends_no_run(here, arguments, finishes):
    """`| head -1`, `| true`: results and exit code of a run are as without them."""
    line = '{"id": "%s", "expected": "x", "predicted": "x"}\n'
    runs_path = here / "runs.jsonl"
    runs_path.write_text(line % "a" + line % "b")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "gradestack.cli", *arguments.split()]
    variables = os.environ | ({} if finishes else {"PYTHONUNBUFFERED": "1"})
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, env=variables, check=False
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 0
    if finishes:
        path = here / "out"
        report = gradestack.load_report(path)
        total = report.metrics["total"]
        assert total == 2

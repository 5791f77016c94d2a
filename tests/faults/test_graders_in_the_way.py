"""Graders that print, change the directory, or leave processes behind cost nobody but
themselves.
"""

import os
import signal
import subprocess
import sys

import pytest

import gradestack
from tests.core.outcomes import data, some_of

DATA = data(__file__, "graders_in_the_way.yaml")


ENGINES = ["serial", "processes"]
COUNT = 12
AGGREGATOR = DATA["aggregator"]


@pytest.fixture
def command(tmp_path):
    """Return a function that grades twelve samples in four files by a grader of its own, and gives
    what was printed.
    """
    for file in range(4):
        rows = []
        for number in range(3):
            rows.append(f'{{"id": "t{3 * file + number}", "predicted": "x"}}\n')
        (tmp_path / f"{file}.jsonl").write_text("".join(rows))

    def run(grader, engine, *options, output="out", **variables):
        own_path = tmp_path / "own.py"
        own_path.write_text(grader)
        files = [f"{file}.jsonl" for file in range(4)]
        options = [
            "--allow-code",
            "--grader",
            "own.py:grade",
            "--engine",
            engine,
            "-o",
            output,
            *options,
        ]
        command = [
            sys.executable,
            "-m",
            "gradestack.cli",
            "grade",
            *files,
            *options,
            "--set",
            "reports=[]",
        ]
        stdout_folder = tmp_path / "stdout"
        stderr_folder = tmp_path / "stderr"
        out, err = (
            stdout_folder,
            stderr_folder,
        )  # no pipes, which what is left behind would keep open
        for path in (out, err):
            path.write_text("")
        values_by_name = {
            name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"
        }
        environment = values_by_name | variables
        with (
            out.open("a") as first,
            err.open("a") as second,
        ):  # where several write, none over another
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, stdout=first, stderr=second, check=False
            )
        text = out.read_text()
        return subprocess.CompletedProcess(command, done.returncode, text, err.read_text())

    return run


QUIET = """
def grade(sample):
    return 1.0
"""
PRINTS = DATA["prints"]


@pytest.mark.parametrize("unbuffered", some_of(["", "1"], 2))
@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_grader_prints_is_kept_from_the_results(command, engine, unbuffered):
    """It goes to standard error, however it is printed; standard output is what it is without."""
    quiet_run = command(QUIET, engine)
    noisy = command(PRINTS, engine, PYTHONUNBUFFERED=unbuffered)
    assert noisy.returncode == 0
    assert noisy.stdout == quiet_run.stdout
    lines = noisy.stderr.splitlines()
    for printed_text in ("loaded", "loaded by another name"):
        assert lines.count(printed_text) == 1
    for printed_text in ("printed", "by another name", "by its number", "by a child"):
        assert lines.count(printed_text) == COUNT, noisy.stderr


DIES = DATA["dies"]


def test_what_a_worker_printed_before_it_was_killed_is_there(command):
    """Every line it had finished, and what earlier samples left without an end of line."""
    done = command(DIES, "processes", "--workers", "2")
    assert done.returncode == 0
    assert "last words\n" in done.stderr
    for number in range(COUNT):
        assert f"part of a line of t{number}" in done.stderr


SAYS = """
def grade(sample):
    print("a line of", sample.id, "in one piece")
    return 1.0
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="pipes that keep what is written apart are Linux's"
)
@pytest.mark.parametrize("unbuffered", some_of(["1", ""], 2))
def test_no_line_of_a_worker_is_torn_by_another(command, tmp_path, unbuffered):
    """Each is written by itself and at once, also where Python is to write everything
    as it comes.
    """
    command(SAYS, "serial")
    reading, writing = os.pipe2(os.O_DIRECT)
    files = [f"{file}.jsonl" for file in range(4)]
    options = [
        "--allow-code",
        "--grader",
        "own.py:grade",
        "--engine",
        "processes",
        "--workers",
        "2",
        "-q",
    ]
    env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    run = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gradestack.cli",
            "grade",
            *files,
            *options,
            "-o",
            "out",
            "--set",
            "reports=[]",
        ],
        cwd=tmp_path,
        env=env,
        stderr=writing,
    )
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        written = list(iter(lambda: pipe.read(4096), b""))
    exit_code = run.wait()
    assert exit_code == 0
    expected = sorted(f"a line of t{number} in one piece\n".encode() for number in range(COUNT))
    assert sorted(written) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_grader_that_changes_the_directory(command, tmp_path, engine):
    """A relative output is where it was meant, and relative inputs are found."""
    (tmp_path / "elsewhere").mkdir()
    done = command(
        f"import os\n\ndef grade(sample):\n    os.chdir({str(tmp_path / 'elsewhere')!r})\n    "
        "return 1.0\n",
        engine,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    elsewhere_folder = tmp_path / "elsewhere"
    paths = list(elsewhere_folder.iterdir())
    assert paths == []
    path = tmp_path / "out"
    report = gradestack.load_report(path)
    total = report.metrics["total"]
    assert total == COUNT


LEAVES = DATA["leaves"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_worker_that_dies_with_a_child_left_is_known_to_be_dead(command, tmp_path):
    """Though the child holds its end of the line; the shard is done again by another."""
    try:
        done = command(LEAVES, "processes", "--workers", "2")
    finally:
        once_folder = tmp_path / "once"
        text = once_folder.read_text()
        number = int(text)
        os.kill(number, signal.SIGKILL)
    assert done.returncode == 0
    assert done.stderr == ""
    path = tmp_path / "out"
    report = gradestack.load_report(path)
    avg_score_total = report.metrics["avg_score_total"]
    assert avg_score_total == 1.0


def test_a_metric_whose_numbers_cannot_leave_their_process(command, tmp_path):
    """It alone is lost, with its name and whose it is, in the same bytes on every engine."""
    metric = "metrics={m: {kind: 'own.py:Unwritable', of: grade}}"
    figures = {}
    for engine in ENGINES:
        workers = ["--workers", "2"] if engine == "processes" else ["-q"]
        done = command(AGGREGATOR, engine, "--set", metric, *workers, output=engine)
        assert done.returncode == 0, done.stderr
        path = tmp_path / engine
        report = gradestack.load_report(path)
        avg_score_total = report.metrics["avg_score_total"]
        assert avg_score_total == 1.0
        (warning,) = report.summary["warnings"]
        assert warning.startswith("grade/m (own.py:Unwritable) is broken and left out: TypeError: ")
        summary_path = tmp_path / engine / "summary.json"
        figures[engine] = summary_path.read_bytes()
    assert figures["serial"] == figures["processes"]

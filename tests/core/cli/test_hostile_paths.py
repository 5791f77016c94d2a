"""Files that a suite of somebody else names: regular ones below its folder, and no other.

Whatever it names, nothing waits, nothing fills the memory, and nothing of a file is printed.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from gradestack.cli.commands import main
from tests.core.outcomes import data, read_json, some_of, write_records

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are none")
DATA = data(__file__, "hostile_paths.yaml")
CONTENT = "the-secret-of-the-house"
RUN = {"id": "t", "expected": "a", "predicted": "a"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A suite's folder with links that lead out of it, a pipe, a socket, and a file of holes."""
    above = tmp_path_factory.mktemp("above")
    here = above / "suite"
    down_folder = here / "down"
    down_folder.mkdir(parents=True)
    (here / "folder").mkdir()
    secret_path = above / "secret.txt"
    secret_path.write_text(f"{CONTENT}: x\n" * 3)
    runs_path = here / "runs.jsonl"
    text = json.dumps(RUN)
    runs_path.write_text(text + "\n")
    r_path = here / "R.yaml"
    r_path.write_text("criteria: {a: is it good?}\njudge: {model: m}\n")
    j_path = here / "J.jsonl"
    j_path.write_text("")
    link_path = here / "link.txt"
    link_path.symlink_to("../secret.txt")
    linked_folder = here / "linked"
    linked_folder.symlink_to("..")
    loop_path = here / "loop.txt"
    loop_path.symlink_to("loop.txt")
    report_path = here / "folder/report.html"
    report_path.symlink_to("../../secret.txt")
    pipe_path = here / "pipe.jsonl"
    os.mkfifo(pipe_path)
    huge_path = here / "huge.txt"
    with (huge_path).open("wb") as file:
        file.truncate(1 << 40)
    zeros_path = here / "zeros.jsonl"
    with (zeros_path).open("wb") as file:
        file.truncate(1 << 30)
    before = Path.cwd()
    os.chdir(here)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket.jsonl")
    os.chdir(before)
    deep = here / "deep"
    for one in range(5):
        for two in range(5):
            (deep / f"a{one}/a{two}/a/a/a/a/a/a").mkdir(parents=True)
    return here


@pytest.fixture
def command(capsys):
    """Return a function that runs a command in limited time, and returns its code and output."""

    def run(*options):
        signal.alarm(100)  # interrupts what waits
        try:
            main(list(map(str, options)))
        except SystemExit as ended:
            code = ended.code
        else:
            code = 0
        finally:
            signal.alarm(0)
        output = capsys.readouterr()
        return code, output.out + output.err

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield run
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def suite_of(folder, option, named_path):
    parent = str(folder.parent)
    options = DATA["options"]
    text = options[option].replace("PLACE", named_path.replace("ABOVE", parent))
    file = folder / "suite.yaml"
    file.write_text(f"reports: []\n{text}" if "reports:" not in text else text)
    return file


def check(code, output):
    assert code in {2, 3}, output
    assert CONTENT not in output
    assert "Traceback" not in output
    assert "this is a bug" not in output


OUTSIDE = [(option, named_path) for option in DATA["options"] for named_path in DATA["outside"]]
WITHIN = [(option, named_path) for option in DATA["options"] for named_path in DATA["within"]]


@pytest.mark.parametrize(("option", "named_path"), some_of(OUTSIDE, 40))
def test_a_suite_names_nothing_outside_its_folder(folder, command, monkeypatch, option, named_path):
    parent = str(folder.parent)
    monkeypatch.setenv("HOME", parent)
    suite = suite_of(folder, option, named_path)
    code, output = command("validate", suite)
    check(code, output)
    says = "leads out of the suite's folder; pass --allow-outside if you trust this suite"
    assert code == 2, output
    assert says in output


@pytest.mark.parametrize(("option", "named_path"), some_of(WITHIN, 30))
def test_what_a_suite_names_is_a_regular_file(folder, command, tmp_path, option, named_path):
    suite = suite_of(folder, option, named_path)
    out_folder = tmp_path / "out"
    check(*command("run", suite, "-o", out_folder, "-q"))


@pytest.mark.parametrize("named_path", DATA["patterns"])
def test_a_pattern_of_names_ends(folder, command, named_path):
    suite = suite_of(folder, "inputs", named_path)
    code, output = command("validate", suite)
    check(code, output)
    assert "the pattern matches no file" in output or "took longer than" in output


OF_A_RUN = {"theme.yaml": "accent: red", "labels.jsonl": '{"id": "t", "label": "pass"}'}
OPTIONS = (
    "reports=[{kind: html, theme: theme.yaml}]",
    "metrics={m: {kind: agreement, labels: labels.jsonl}}",
)


def test_a_run_directory_names_nothing_outside_the_working_directory(folder, command, monkeypatch):
    """Neither in its header nor in the suite that its summary holds."""
    monkeypatch.chdir(folder)
    for name, content in OF_A_RUN.items():
        name_path = Path(name)
        name_path.write_text(content)
    words = ["grade", "runs.jsonl", "--grader", "exact_match", "-q", "--set", OPTIONS[0]]
    for out in ("one", "other"):
        assert command(*words, "--set", OPTIONS[1], "-o", out)[0] == 0
    for name in OF_A_RUN:
        Path(name).unlink()
        Path(name).symlink_to("../secret.txt")
    figure = "compare one other --figure exact_match.m.kappa"
    for call in ("report one", "report one --limit 1 -o again", figure):
        code, output = command(*call.split())
        check(code, output)
        assert "leads out of the working directory, and a report directory names it" in output


@pytest.mark.parametrize("how", ["--allow-outside", "--allow-code", "--set"])
def test_the_command_line_allows_it(folder, command, tmp_path, how):
    text = json.dumps(RUN)
    runs_path = folder.parent / "runs.jsonl"
    runs_path.write_text(text + "\n")
    file = suite_of(folder, "inputs", "../runs.jsonl")
    more = [how, 'target.paths=["../runs.jsonl"]'] if how == "--set" else [how]
    out_folder = tmp_path / "out"
    code, output = command("run", file, "-o", out_folder, "-q", *more)
    assert code == 0, output


def test_a_recording_named_on_the_command_line_may_lie_anywhere(folder, command, tmp_path):
    for name in ("suite.json", "summary.json"):
        (tmp_path / name).unlink(missing_ok=True)
    results_path = tmp_path / "results.jsonl"
    text = json.dumps(RUN)
    results_path.write_text(text + "\n")
    (tmp_path / "tasks.txt").write_text("t\n")
    file = suite_of(folder, "inputs", "runs.jsonl")
    out_folder = tmp_path / "out"
    tasks_path = tmp_path / "tasks.txt"
    code, output = command("run", file, "-o", out_folder, "-q", "--tasks", tasks_path)
    assert code == 0, output


@pytest.mark.parametrize("most", ["none", "1.0e+300", "3601"])
def test_a_suite_may_not_lift_the_limit_of_its_patterns(folder, command, tmp_path, most):
    file = suite_of(folder, "inputs", "runs.jsonl")
    file.write_text(f"{file.read_text()}limits: {{seconds_per_grade: {most}}}\n")
    code, output = command("validate", file)
    check(code, output)
    assert "limits.seconds_per_grade: a suite may allow 3,600 seconds at most" in output
    expected_text = f"limits.seconds_per_grade={most}"
    assert command("validate", file, "--set", expected_text)[0] == 0


@pytest.mark.slow
def test_a_file_of_records_that_take_too_long_ends(folder, command, tmp_path, monkeypatch):
    """The others in it are read."""
    monkeypatch.setattr("gradestack.jsonio.paths.PATH_SECONDS", 0.2)
    slow = [{"m": "a" * 40 + "b"}]
    good = [{"m": "aa"}]
    rows = []
    for n in range(40):
        log = good if n == 30 else slow
        rows.append({"id": f"t{n}", "log": log})
    slow_path = folder / "slow.jsonl"
    write_records(slow_path, rows)
    path = """$.log[?search(@.m, "^(a+)+$")].m"""
    mapped = {"kind": "records", "columns": {"id": "id", "text": path, "expected.text": "id"}}
    suite = {"target": {"paths": ["slow.jsonl"]}, "reader": mapped, "reports": []}
    suite["graders"] = {"g": "exact_match"}
    suite_path = folder / "suite.yaml"
    text = json.dumps(suite)
    suite_path.write_text(text)
    out = tmp_path / "out"
    code, output = command("run", folder / "suite.yaml", "-o", out, "--engine", "serial")
    assert code == 0, output
    assert "Exact match: 0 of 1 " in output
    summary_path = out / "summary.json"
    document = read_json(summary_path)
    bad = document["bad_records"]
    expected = len(rows) - 1
    assert bad["count"] == expected
    bad_records = bad["listed"]
    assert all("took longer than" in bad_record["reason"] for bad_record in bad_records)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pipe", "cannot be read: "),
        ("/dev/zero", "cannot be read: "),
        ("socket", "cannot be read: "),
        ("folder", "not a suite; to grade a directory: gradestack grade "),
    ],
)
def test_a_suite_is_a_regular_file(folder, command, name, says):
    if name[0] == "/":
        suite_file = name
    else:
        paths = folder.glob(f"{name}*")
        suite_file = next(paths)
    code, output = command("validate", suite_file)
    check(code, output)
    assert says in output

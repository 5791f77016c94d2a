"""FIFOs, devices and sockets where a report directory or a directory of inputs has files.

Never opened for ever.
"""

import json
import os
import shutil
import signal
import socket
import sys

import pytest

import gradestack
from gradestack.cli.commands import main
from tests.core.outcomes import data

DATA = data(__file__, "no_regular_files.yaml")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are none")
FILES = ("header.json", "summary.json", "results.jsonl")
COMMANDS = DATA["commands"]
READS = {
    "header.json": {"report", "show", "compare"},
    "summary.json": {"report", "show", "compare"},
    "results.jsonl": {"report", "show", "compare", "grade", "grade as letta", "convert"},
}
"""The commands that cannot do without a file."""


@pytest.fixture
def command(capsys):
    """Return a function that runs a command in limited time, and returns its code and errors."""

    def run(*options):
        signal.alarm(60)  # interrupts what opens a FIFO
        try:
            main(list(options))
        except SystemExit as ended:
            return ended.code, capsys.readouterr().err
        finally:
            signal.alarm(0)
        return 0, capsys.readouterr().err

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield run
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    log_path = folder / "log.jsonl"
    text = json.dumps({"id": "a", "predicted": "x", "expected": "x"})
    log_path.write_text(text + "\n")
    for name in ("run", "other"):
        paths = folder / "log.jsonl"
        output = folder / name
        gradestack.grade_files(paths, output=output)
    return folder


def fifo(path):
    os.mkfifo(path)


def device(path):
    """Put a link to a device that never ends in the place of a file."""
    path.symlink_to("/dev/zero")


def listening(path):
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(path))


@pytest.mark.parametrize("put", [fifo, device, listening])
@pytest.mark.parametrize("name", FILES)
def test_no_command_waits_for_what_is_no_file_of_a_run(
    command, runs, tmp_path, monkeypatch, name, put
):
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    run_folder = tmp_path / "run"
    (run_folder / name).unlink()
    put(tmp_path / "run" / name)
    for key, options in COMMANDS.items():
        code, printed = command(*options)
        assert code in {0, 3}, (key, printed)
        if key in READS[name]:
            assert code == 3, (key, printed)
            assert name in printed, (key, printed)


@pytest.mark.slow
def test_a_directory_of_inputs_may_hold_what_is_no_file(command, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log_path = runs / "log.jsonl"
    shutil.copy(log_path, tmp_path / "log.jsonl")
    for name in ("pipe.jsonl", "suite.json", "results.json", "header.json"):
        fifo(tmp_path / name)
    assert command("grade", ".", "--output", "out", "--quiet") == (0, "")
    results_path = tmp_path / "out/results.jsonl"
    text = results_path.read_text()
    lines = text.splitlines()
    line_count = len(lines)
    assert line_count == 1
    for reader in ("letta", "tau2"):
        code, printed = command("grade", ".", "--reader", reader, "--output", f"../{reader}")
        assert code in {0, 3}, printed
    code, printed = command("grade", "*.jsonl", "--output", "again")
    assert code == 3
    assert "pipe.jsonl: neither a file nor a directory" in printed

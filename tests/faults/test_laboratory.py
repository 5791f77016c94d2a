"""The fault laboratory.

Runs that are signalled at random, out of room, or not allowed, and then continued.

Whatever happens to a run, what was on record counts, ``--resume`` ends in the bytes of a run that
nothing happened to, and no process or file is left behind. A few cases run with every
``make test``, all of them with ``make faults``.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.conftest import ON_RECORD, until
from tests.core.outcomes import files_but_headers as files_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
GRADER = """
import time


def grade(sample, submission):
    time.sleep(0.004)
    return float(submission)
"""
FILES, RECORDS = 10, 15
ENGINES = {
    "serial": ["--engine", "serial"],
    "processes": ["--engine", "processes", "--workers", "2"],
    "dask": ["--engine", "dask", "--workers", "2"],
}
ASKED = 130
CASES = 100


class Laboratory:
    """A recording of ten ranges, and runs over it that put each on record at once."""

    def __init__(self, folder):
        self.folder = folder
        grader_path = folder / "grader.py"
        grader_path.write_text(GRADER)
        for file in range(FILES):
            rows = []
            for n in range(RECORDS):
                predicted = str(n % 5 / 4)
                rows.append({"id": f"t{file}-{n}", "predicted": predicted, "facets": {"n": n}})
            (folder / f"{file:02}.jsonl").write_text(
                "".join(f"{json.dumps(row)}\n" for row in rows)
            )
        suite = {
            "name": "laboratory",
            "target": {"paths": ["*.jsonl"]},
            "graders": {"g": {"kind": "python_function", "file": "grader.py", "name": "grade"}},
            "reports": ["markdown"],
        }
        suite_path = folder / "suite.yaml"
        suite_path.write_text(yaml.safe_dump(suite))

    def start(self, output, engine, *options, before="", **more):
        """Start the run in a process group of its own, its progress put on record at once."""
        command = [
            sys.executable,
            "-c",
            before + ON_RECORD,
            "run",
            "suite.yaml",
            "--allow-code",
            "--quiet",
        ]
        command += ["-o", str(output), *ENGINES[engine], *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, start_new_session=True, **pipes, **more)

    def run(self, output, engine, *options, **more):
        process = self.start(output, engine, *options, **more)
        out, err = process.communicate()
        return subprocess.CompletedProcess([], process.returncode, out, err)

    def on_record(self, output="out"):
        try:
            return (self.folder / f".{output}.unfinished/journal.jsonl").read_bytes().count(
                b"\n"
            ) - 1
        except OSError:
            return 0


@pytest.fixture
def laboratory(tmp_path, scratch):
    folder = tmp_path / "laboratory"
    folder.mkdir()
    return Laboratory(folder)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    done = Laboratory(folder).run("out", "serial")
    assert done.returncode == 0
    assert done.stderr == ""
    return files_of(folder / "out")


def send(number, processes):
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


@pytest.mark.parametrize(
    "case", [pytest.param(n, marks=pytest.mark.faults if n > 1 else ()) for n in range(CASES)]
)
def test_a_signal_at_a_random_moment_changes_nothing(laboratory, expected, scratch, marked, case):
    """To the run, a worker or both.

    The same bytes after --resume, and neither processes nor files left behind.
    """
    choose = random.Random(case)  # noqa: S311 - a seed is wanted
    engine = ("processes", "serial", "dask")[case % 3]
    number = choose.choice([signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
    victims = choose.choice(["parent"] if engine == "serial" else ["parent", "worker", "both"])
    after = choose.randint(1, FILES - 2)
    pause = choose.uniform(0, 0.03)
    run = laboratory.start("out", engine)
    until(lambda: laboratory.on_record() >= after or run.poll() is not None)
    time.sleep(pause)
    workers = [pid for pid in marked() if pid != run.pid]
    worker = workers[:1]
    parent = [run.pid]
    hit = {"parent": parent, "worker": worker, "both": [run.pid, *workers]}[victims]
    send(number, hit)
    out, err = run.communicate()
    what = (
        f"{engine}: {number.name} to {victims} after {after} ranges: exit {run.returncode}, {err!r}"
    )
    assert "Traceback" not in err, what
    assert out == "", what
    if victims == "worker":
        allowed = {0}
    else:
        allowed = {0, -signal.SIGKILL if number == signal.SIGKILL else ASKED}
    assert run.returncode in allowed, what
    until(lambda: marked() == [])  # workers of a run that was killed follow it
    if run.returncode != 0:
        assert laboratory.on_record() >= after or files_of(laboratory.folder / "out") == expected, (
            what
        )
        done = laboratory.run("out", engine, "--resume")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), what
    out_folder = laboratory.folder / "out"
    files = files_of(out_folder)
    assert files == expected, what
    paths = laboratory.folder.iterdir()
    names = [path.name for path in paths if path.name.startswith(".out")]
    assert names == []
    assert marked() == []
    assert list(scratch.iterdir()) == [], what


# room


@pytest.fixture
def small_disk(tmp_path):
    """Return a function that gives a directory on a file system of its own a size, or makes it
    read-only.
    """
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options):
        result = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
            capture_output=True,
            check=False,
        )
        if result.returncode:
            pytest.skip("no file system may be mounted here")
        return folder

    yield mount
    subprocess.run(["umount", folder], capture_output=True, check=False)


@pytest.mark.parametrize(
    "kib", [16, *(pytest.param(kib, marks=pytest.mark.faults) for kib in (4, 40))]
)
def test_a_full_disk_under_a_comparison(laboratory, small_disk, kib):
    """One message and exit 3, whether the pages or the data lack room.

    No page is left half written.
    """
    out_folder = laboratory.folder / "out"
    assert laboratory.run(out_folder, "serial").returncode == 0
    folder = small_disk(f"size={kib}k")
    compared_folder = folder / "compared"
    command = [
        sys.executable,
        "-m",
        "gradestack.cli",
        "compare",
        "out",
        "out",
        "-o",
        str(compared_folder),
    ]
    env = {**os.environ}
    done = subprocess.run(
        command,
        cwd=laboratory.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=env,
    )
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    paths = folder.glob("compared/*")
    assert not list(paths)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_an_error_that_cannot_be_written_either(tmp_path):
    """Standard error on a full disk: the exit code is not that of a failed gate."""
    command = [sys.executable, "-m", "gradestack.cli", "compare", "none", "none"]
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=full, check=False)
    assert done.returncode == 3


# permissions

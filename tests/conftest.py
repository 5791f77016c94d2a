"""Fixtures of every test.

Runs that stand still at a record, so that tests of interruptions need no clock.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.core.outcomes")

THOROUGH = bool(os.environ.get("GRADESTACK_THOROUGH"))
"""Whether property tests draw all their examples, as in `make proofs`, or an eighth of them."""


SLOW_FOLDERS = {"benchmarks", "browser", "docs", "faults", "fuzz", "packaging"}
"""Folders of tests that take over half a second each."""


def examples(number):
    """Return the number of examples that a property test draws, all or an eighth."""
    if THOROUGH:
        return number
    return max(number // 8, 10)


steady = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
}  # the machine may have much to do
settings.register_profile("steady", max_examples=examples(100), **steady)
settings.load_profile("steady")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests that start the command line as a program, a browser, or examples of the docs."""
    for item in items:
        starts_program = {"spawn", "held", "bounded"} & set(getattr(item, "fixturenames", ()))
        if starts_program or item.path.parent.name in SLOW_FOLDERS:
            item.add_marker("slow")


def pytest_configure():
    """Ctrl-C interrupts, also where the tests were started in the background of a shell, which has
    it ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


GRADER = '''
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


def grade(sample, submission):
    """Score what the sample says, once the way is open."""
    if sample.facets["held"]:
        (HERE / f"held-{os.getpid()}").touch()
        while not (HERE / "open").exists():
            time.sleep(0.01)
    return float(submission)
'''


ON_RECORD = """
import sys
from gradestack.rundir import journal
from gradestack.cli.commands import main
journal.SECONDS_BETWEEN_WRITES = -1.0
main()
"""
"""The command, which puts everything on record at once."""


class Held:
    """Files of records, each a range of its own, and a suite that stands still at those of the last
    files.

    Attributes:
        free: Records before the first that is held.
        count: All of them.
    """

    def __init__(self, folder, *, files=12, records=20, free=8):
        self.folder = folder
        self.free = free * records
        self.count = files * records
        self._running = []
        grader_path = folder / "grader.py"
        grader_path.write_text(GRADER)
        for file in range(files):
            numbers = range(file * records, (file + 1) * records)
            facets = {"held": file >= free}
            rows = []
            for n in numbers:
                predicted = str((n % 5) / 4)
                rows.append({"id": f"t{n}", "predicted": predicted, "facets": facets})
            (folder / f"{file:02}.jsonl").write_text(
                "".join(json.dumps(row) + "\n" for row in rows)
            )
        grader = {"kind": "python_function", "file": "grader.py", "name": "grade"}
        suite = {
            "name": "held",
            "target": {"paths": ["*.jsonl"]},
            "graders": {"g": grader},
            "reports": [],
        }
        suite_path = folder / "suite.yaml"
        suite_path.write_text(yaml.safe_dump(suite))

    def open(self):
        """Let runs through, those that stand still and those to come."""
        (self.folder / "open").touch()

    def shut(self):
        paths = self.folder.glob("held-*")
        open_folder = self.folder / "open"
        for path in (*paths, open_folder):
            path.unlink(missing_ok=True)

    def start(self, *options, program=("-m", "gradestack.cli")):
        """Start the run of the suite in a process group of its own."""
        command = [
            sys.executable,
            *program,
            "run",
            "suite.yaml",
            "--allow-code",
            "--quiet",
            *map(str, options),
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        run = subprocess.Popen(command, cwd=self.folder, start_new_session=True, text=True, **pipes)
        self._running.append(run)
        return run

    def stand_still(self, run, out, workers=1, least=None):
        """Wait until so many workers stand still and the rows before them are on record."""
        rows = self.folder / f".{out}.unfinished/run/results.jsonl"

        def true():
            paths = list(self.folder.glob("held-*"))
            path_count = len(paths)
            still = path_count >= workers
            return run.poll() is not None or (
                still and rows.read_bytes().count(b"\n") >= (least or self.free)
            )

        until(true)
        assert run.poll() is None, run.communicate()

    def end(self):
        for run in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.communicate()


def until(true, seconds=300.0):
    """Wait for something to come true; the limit is there for what never does."""
    now = time.monotonic()
    end = now + seconds
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


@pytest.fixture(name="until")
def _until():
    """Return the function that waits for something to come true."""
    return until


MEASURED = """
import resource, subprocess, sys
command = [sys.executable, "-m", "gradestack.cli", *sys.argv[1:]]
ended = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=120)
unit = 1024 if sys.platform == "linux" else 1 << 20
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // unit)
sys.exit(ended.returncode)
"""
SECONDS, MEGABYTES = 20, 500
"""What a run on a hostile input may take, of processor time and of memory."""


@pytest.fixture
def bounded(tmp_path):
    """Return a function that runs the command in a directory, and fails where it takes too much
    time or memory.
    """

    def run(*options):
        before = os.times()
        command = [sys.executable, "-c", MEASURED, *map(str, options)]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False
        )
        after = os.times()
        *lines, most = done.stdout.splitlines()
        took = (
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
        assert took < SECONDS, done.stderr
        assert int(most) < MEGABYTES, done.stderr
        done.stdout = "\n".join(lines)
        return done

    return run


@pytest.fixture
def stalled_run(tmp_path):
    """A run that stands still at the ninth of twelve ranges."""
    folder = tmp_path / "held"
    folder.mkdir()
    run = Held(folder)
    yield run
    run.end()


@pytest.fixture(scope="session")
def fake():
    from tests.plugins.pages import fake_report

    return fake_report


@pytest.fixture(autouse=True)
def _authors_of_this_test_only():
    """Modules of other tests are nobody's whose lines errors name."""
    from gradestack.errors import AUTHORED

    AUTHORED.clear()

"""Runs of the command line on mutated files, in this process, and what has to hold of every one of
them.
"""

import contextlib
import faulthandler
import io
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import gradestack
from gradestack.cli import commands

SECONDS = float(os.environ.get("GRADESTACK_FUZZ_SECONDS", "0"))
"""How long all of it may take; 0 for the small share that is the same every time."""
LONGEST = 20.0
"""Seconds of this process a command may take, whatever else the machine does."""
SHARE = 2
"""Examples of each test in the small share."""
BATCH = 20
KEPT = 20
"""Kinds of failures that are kept of a test."""
BUILD = Path(__file__).parents[2] / "build/fuzz"
NOISE = re.compile(r"^Traceback|^Exception ignored|^\S+:\d+: \w*Warning: ", re.MULTILINE)
"""What no command may leave on standard error: Python's own words."""
LATER = re.compile(r"(\d+) record\(s\) repeat an .*; the last is kept")
"""The warning on records left out because a later one of the same run counts."""
NO_NAME = dict.fromkeys(map(ord, "/ []"), "-")


class Ended(NamedTuple):
    """The exit code, text and processor time of a command that ended."""

    code: int
    text: str
    seconds: float
    out: Path

    @property
    def records(self) -> int | None:
        """Samples and bad records of the run; None when it wrote none."""
        summary_path = self.out / "summary.json"
        if not summary_path.exists():
            return None
        summary = json.loads((self.out / "summary.json").read_text())
        report = gradestack.load_report(self.out)
        lines = report.lines()
        rows = sum(1 for _ in lines)
        warnings = summary["warnings"]
        superseded = sum(int(match[1]) for text in warnings if (match := LATER.match(text)))
        count = summary["bad_records"]["count"]
        return rows + count + superseded


@pytest.fixture(scope="session")
def installed():
    """The built-in plugins, discovered once."""
    return gradestack.discover(limit="")


@pytest.fixture
def ended(tmp_path, monkeypatch, installed):
    """Return a function that runs a command and checks what has to hold whatever it is given."""
    monkeypatch.setattr("gradestack.registry.discover", lambda *_, **__: installed)
    monkeypatch.setattr("gradestack.python_api.discover", lambda *_, **__: installed)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"

    def command(*arguments):
        shutil.rmtree(out, ignore_errors=True)
        output = io.StringIO()
        code = 0
        begun = time.process_time()
        faulthandler.dump_traceback_later(
            30 * LONGEST, exit=True
        )  # what never comes back cannot be asked
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                commands.main([str(argument) for argument in arguments])
        except SystemExit as done:
            code = done.code or 0
        finally:
            faulthandler.cancel_dump_traceback_later()
        return Ended(code, output.getvalue(), time.process_time() - begun, out)

    def run(*arguments):
        result = command(*arguments)
        if result.code not in (0, 1, 2, 3) or "this is a bug" in result.text:
            raise AssertionError(command("--debug", *arguments).text)
        match = NOISE.search(result.text)
        assert not match, result.text
        assert result.seconds < LONGEST, result.text
        assert result.code in (0, 1) or result.text.count("error: ") >= 1
        return result

    return run


@pytest.fixture
def fuzz(request, record_property, tmp_path):
    """Return a function that runs a test on inputs of a strategy.

    A few that are always the same, or for a time.

    What fails is kept, one input of each kind of failure, and the others are tried all the same.
    """
    tests = sum(item.path.parent == request.node.path.parent for item in request.session.items)

    def run(strategy, test):
        number, failed = 0, {}

        def counted(choices):
            nonlocal number
            number += 1
            try:
                test(choices)
            except AssertionError as error:
                last = re.sub(r"[\d']+", "", str(error).strip().rpartition("\n")[2])[:60]
                if last not in failed and len(failed) < KEPT:
                    failed[last] = f"{error}\nof {choices!r:.20000}\n"
                    failed_folder = BUILD / request.node.name.translate(NO_NAME) / str(len(failed))
                    shutil.rmtree(failed_folder, ignore_errors=True)
                    shutil.copytree(tmp_path, failed_folder, symlinks=True)

        def batch(size, **more):
            phases = [Phase.generate]
            wanted = settings(
                max_examples=size,
                database=None,
                deadline=None,
                phases=phases,  # making a failing input smaller would take the time of the others
                suppress_health_check=list(HealthCheck),
                **more,
            )
            return wanted(given(strategy)(counted))

        if not SECONDS:
            batch(SHARE, derandomize=True)()
        now = time.monotonic()
        until = now + SECONDS / tests
        at = int.from_bytes(os.urandom(4))
        while SECONDS and time.monotonic() < until:
            seed(at)(batch(BATCH))()
            at += 1
        record_property("inputs", number)
        assert not failed, f"kept below {BUILD}:\n" + "\n".join(failed.values())

    return run


def pytest_terminal_summary(terminalreporter):
    """Print the number of inputs that were fuzzed."""
    reports = [
        report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])
    ]
    inputs = sum(
        value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "inputs"
    )
    if inputs and SECONDS:
        terminalreporter.write_line(f"fuzzing: {inputs:,} inputs")

"""Every signal in every phase of a run over a list: exit code 130, and --resume gives the bytes of
a run that nothing happened to.
"""

import itertools
import json
import subprocess
import sys

import pytest

from tests.core.outcomes import data
from tests.core.outcomes import files_but_headers as files_of

DATA = data(__file__, "every_phase.yaml")
RECORDS = 60
ENGINES = {
    "serial": ["--engine", "serial"],
    "processes": ["--engine", "processes", "--workers", "2"],
    "dask": ["--engine", "dask", "--workers", "2"],
}
QUICK = {("processes", "before the first range", "SIGINT"), ("serial", "native files", "SIGHUP")}
"""Cases that every run of the tests has; `make faults` runs all of them."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals of POSIX")


def tau_record(number):
    """Return a tau-bench record with one call, its reward by its number."""
    call = {"name": "book", "kwargs": {"a": number}}
    text = json.dumps({"a": number})
    function = {"name": "book", "arguments": text}
    made = [{"id": "c", "type": "function", "function": function}]
    reward = float(number % 3 > 0)
    task_id = number // 2
    trial = number % 2
    return {
        "task_id": task_id,
        "trial": trial,
        "reward": reward,
        "info": {"task": {"user_id": "u", "actions": [call], "instruction": "Book", "outputs": []}},
        "traj": [
            {"role": "user", "content": "Please book."},
            {"role": "assistant", "content": None, "tool_calls": made},
        ],
    }


def start(folder, output, engine, *options, program):
    command = [sys.executable, "-c", program, "grade", "tau.json", "--quiet", "-o", output]
    command += ["--set", "reports=[markdown]", "--export", "tau_bench"]
    command += [*ENGINES[engine], *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A list of some ranges, and the files of a run over it."""
    folder = tmp_path_factory.mktemp("list")
    tau_records = [tau_record(n) for n in range(RECORDS)]
    tau_path = folder / "tau.json"
    text = json.dumps(tau_records, indent=1)
    tau_path.write_text(text)
    ended = start(folder, "whole", "serial", program=DATA["program"])
    assert ended.returncode == 0
    assert ended.stderr == ""
    return folder, files_of(folder / "whole")


SIGNALS = ("SIGINT", "SIGHUP", "SIGTERM")
CASES = [
    pytest.param(*case, marks=() if case in QUICK else (pytest.mark.faults,))
    for case in itertools.product(ENGINES, DATA["phases"], SIGNALS)
]


@pytest.mark.parametrize(("engine", "phase", "number"), CASES)
def test_a_signal_in_any_phase_ends_with_130_and_loses_nothing(recording, engine, phase, number):
    folder, expected = recording
    output = f"{engine}-{phase}-{number}".replace(" ", "-")
    module, name = DATA["phases"][phase]
    signalled = DATA["signalled"].format(module=module, name=name, number=number)
    program = signalled + DATA["program"]
    ended = start(folder, output, engine, program=program)
    assert ended.returncode == 130, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert "broken" not in ended.stderr
    resumed = start(folder, output, engine, "--resume", program=DATA["program"])
    assert resumed.returncode == 0, resumed.stderr
    files = files_of(folder / output)
    assert files == expected
    assert not (folder / f".{output}.unfinished").exists()

"""Runs that are killed, interrupted or stopped by the system are continued by the real command."""

import functools
import json
import random
import signal
import subprocess
import sys

import pytest

import gradestack
from tests.conftest import ON_RECORD
from tests.core.outcomes import files_but_headers as files_of

SCRIPT = """
import signal, sys, time
from gradestack import run
from gradestack.rundir import journal
from gradestack.cli.commands import main
from gradestack.jsonio import records
from gradestack_plugins.readers import jsonl
records.SHARD_BYTES = 13_000
journal.PAUSE = -1.0
begun = time.process_time()
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))
try:
    main(sys.argv[2:])
finally:
    print(time.process_time() - begun)
"""
"""The command, which the system kills when it has used as many seconds of its processor as the first argument says."""
ENGINES = {"serial": ("--engine", "serial"), "processes": ("--engine", "processes", "--workers", "2")}


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Some forty ranges, what they come to undisturbed, and the seconds of its processor each engine takes."""
    here = tmp_path_factory.mktemp("killed")
    choose = random.Random(5)  # noqa: S311 - a seed is wanted
    with (here / "runs.jsonl").open("w") as file:
        for number in range(5_000):
            call = [{"name": "f", "arguments": {"a": number}}]
            other = call if choose.random() < 0.7 else []
            file.write(json.dumps({"id": f"t{number // 2}", "expected": call, "predicted": other}) + "\n")
    seconds = {name: float(_run(here, "whole", *engine).stdout) for name, engine in ENGINES.items()}
    return here, files_of(here / "whole"), seconds


def _run(here, output, *more, seconds=0.0, script=SCRIPT):
    arguments = ["grade", "runs.jsonl", "-o", output, "--set", "reports=[markdown]", "--quiet", *more]
    return subprocess.run(
        [sys.executable, "-c", script, str(seconds), *arguments], cwd=here, capture_output=True, text=True, check=False
    )


@pytest.mark.faults
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_any_time_and_continued(recording, seed):
    """The parent killed again and again, until a run is finished: its bytes are those of the undisturbed one."""
    here, expected, seconds = recording
    choose = random.Random(seed)  # noqa: S311 - a seed is wanted
    engine = "serial" if seed % 2 else "processes"
    output, taken_up = f"out{seed}", 0
    for attempt in range(12):
        most = choose.uniform(0.3, 1.1) * seconds[engine] / (1 + attempt % 2) if attempt < 6 else 0.0
        done = _run(here, output, "--resume", *ENGINES[engine], seconds=most)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGPROF, done.stderr
        journal = here / f".{output}.unfinished/journal.jsonl"
        lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
        complete = (here / output).exists() and files_of(here / output) == expected  # killed while tidying up
        assert lines >= taken_up or complete  # nothing on record is ever lost
        taken_up = lines
    assert done.returncode == 0
    assert files_of(here / output) == expected
    assert not list(here.glob(f".{output}*"))


FINISHING = "interrupted: what is being graded is finished first; Ctrl-C once more ends the run now"


@pytest.mark.parametrize(
    ("engine", "number"),
    [("serial", signal.SIGINT), ("serial", signal.SIGHUP), ("processes", signal.SIGINT), ("processes", signal.SIGTERM)],
)
def test_partial_results_can_be_completed(held, number, engine):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the tests were started with this signal ignored (nohup), and so is what they start")
    run = functools.partial(held.start, *ENGINES[engine], "--set", "reports=[markdown]", program=("-c", ON_RECORD))
    process = run("-o", "out")
    held.stand_still(process, "out", workers=len(ENGINES[engine]) // 2)
    process.send_signal(number)
    if engine == "serial":
        held.open()  # the sample at hand is finished
    waits = engine == "serial" and number == signal.SIGINT
    said = [FINISHING] * waits + ["interrupted: partial results were kept; --resume grades the rest"]
    assert process.communicate() == ("", "".join(f"{line}\n" for line in said))
    assert process.returncode == 130
    partial = gradestack.load_report(held.place / "out")
    assert "incomplete" in partial.summary
    assert partial.metrics["total"] == sum(1 for _ in partial.rows()) == held.free + (engine == "serial")
    held.open()
    for options in (("-o", "out", "--resume"), ("-o", "whole")):
        process = run(*options)
        assert process.communicate() == ("", "")
        assert process.returncode == 0
    assert files_of(held.place / "out") == files_of(held.place / "whole")
    assert not list(held.place.glob(".out*"))


@pytest.mark.faults
def test_a_limit_on_file_sizes(recording):
    here, expected, _ = recording
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1_300_000, resource.RLIM_INFINITY))\n"
    done = _run(here, "limited", *ENGINES["serial"], script=limit + SCRIPT)
    assert done.returncode == 3
    head, advice = done.stderr.splitlines()
    assert head.startswith("error: ")
    assert "File too large" in head
    assert advice == "  - what was graded so far is kept: continue with --resume"
    assert _run(here, "limited", "--resume").stderr == ""
    assert files_of(here / "limited") == expected

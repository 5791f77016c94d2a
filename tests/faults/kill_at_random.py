"""Run the same recording on processes, one of which is killed at a random moment, once per seed given.

    python kill_at_random.py GRADER FILES OUT SEED...

Prints one line of JSON per seed: whether the results are those of the serial engine, and how many were killed. A script
of its own, because processes are forked only where there is a single thread.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import gradestack

GRADER, FILES, OUT = sys.argv[1:4]


def run(engine):
    grader = {"kind": "python_function", "file": GRADER, "name": "grade"}
    suite = {"name": "x", "target": {"paths": [FILES]}, "graders": {"g": grader}, "reports": [], "engine": engine}
    gradestack.run(suite, output=OUT, allow_code=True)
    found = {name: (Path(OUT) / name).read_bytes() for name in ("results.jsonl", "summary.json")}
    shutil.rmtree(OUT)
    return found


def kill_one(parent, chance):
    """Kill one of the workers, unless there is none."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    workers = [int(each) for each in children if int(each) != os.getpid()]
    if not workers:
        return 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(workers), signal.SIGKILL)
        return 1
    return 0


def killer(chance, seconds):
    """Fork a process that kills one or two workers, and tells by its exit code how many it met."""
    parent = os.getpid()
    if child := os.fork():
        return child
    killed = 0
    for _ in range(chance.randint(1, 2)):
        time.sleep(chance.uniform(0, seconds))
        killed += kill_one(parent, chance)
    os._exit(killed)


def main():
    expected = run("serial")
    begun = time.monotonic()
    assert run({"kind": "processes", "workers": 2}) == expected
    seconds = time.monotonic() - begun
    for seed in map(int, sys.argv[4:]):
        chance = random.Random(seed)  # noqa: S311 - test data
        child = killer(chance, seconds)
        same = run({"kind": "processes", "workers": chance.randint(1, 4)}) == expected
        _, status = os.waitpid(child, 0)
        print(json.dumps({"seed": seed, "same": same, "killed": os.waitstatus_to_exitcode(status)}))  # noqa: T201 - the test reads it


main()

"""Run the same recording on processes, some of which are killed at random ranges, once per seed given.

    python kill_at_random.py GRADER FILES OUT SEED...

Prints one line of JSON per seed: whether the results are those of the serial engine, and how many were killed. A script
of its own, because processes are forked only where there is a single thread.
"""

import json
import multiprocessing
import random
import shutil
import sys
from pathlib import Path

import gradestack

GRADER, FILES, OUT = sys.argv[1:4]
RANGES = 10


def run(engine, progress=None):
    grader = {"kind": "python_function", "file": GRADER, "name": "grade"}
    suite = {"name": "x", "target": {"paths": [FILES]}, "graders": {"g": grader}, "reports": [], "engine": engine}
    gradestack.run(suite, output=OUT, allow_code=True, progress=progress)
    found = {name: (Path(OUT) / name).read_bytes() for name in ("results.jsonl", "summary.json")}
    shutil.rmtree(OUT)
    return found


class Killer:
    """Kills a worker when the results of one range or two have come; the others are somewhere in theirs by then."""

    def __init__(self, chance):
        self.chance, self.ranges, self.killed = chance, 0, 0
        self.at = set(chance.sample(range(1, RANGES), chance.randint(1, 2)))

    def __call__(self, progress):
        if progress.phase == "grading":
            self.ranges += 1
            if self.ranges in self.at:
                self.chance.choice(multiprocessing.active_children()).kill()
                self.killed += 1


def main():
    expected = run("serial")
    for seed in map(int, sys.argv[4:]):
        killer = Killer(random.Random(seed))  # noqa: S311 - test data
        workers = killer.chance.randint(1, 4)
        same = run({"kind": "processes", "workers": workers}, killer) == expected
        print(json.dumps({"seed": seed, "same": same, "killed": killer.killed}))  # noqa: T201 - the test reads it


main()

"""How long does the command line take to start?

    python benchmarks/startup.py [--rounds N]

CPU time of fresh processes in turns, the least of all rounds: bytecode is compiled, files are in
the page cache. A run of two records with a named reader and grader has no page, a grade of twenty
has pages. Both are also held against another version, if ``GRADESTACK_BENCH_BEFORE`` names the
directory of its programs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from frame import (
    ChildFailed,
    Options,
    Runs,
    Table,
    cell,
    failures,
    main,
    reached,
    scratch,
    take_turns,
)

HERE = Path(sys.executable).parent
BEFORE = os.environ.get("GRADESTACK_BENCH_BEFORE")
"""Directory of the programs of the version that start-up is compared with."""
RUN = "gradestack run, two records, no pages"
PAGES = "gradestack grade, 20 records, with pages"
SUITE = (
    "name: two\ntarget: {paths: [two.jsonl], reader: jsonl}\ngraders: {partial: "
    "tau_partial}\nreports: []\n"
)


def commands(programs: Path) -> dict[str, list[str]]:
    """Return what is started, by name."""
    ours = str(programs / "gradestack")
    return {
        'python -c "pass"': [str(programs / "python"), "-c", "pass"],
        'python -c "import click"': [str(programs / "python"), "-c", "import click"],
        "gradestack --version": [ours, "--version"],
        "gradestack --help": [ours, "--help"],
        "gradestack plugins list": [ours, "plugins", "list"],
        RUN: [ours, "run", "suite.yaml", "-o", "out"],
        PAGES: [ours, "grade", "twenty.jsonl", "-o", "out"],
    }


def start(command: list[str], options: Options) -> dict[str, Any]:
    """Run a command in a directory of its own and return its CPU seconds.

    Raises:
        ChildFailed: It failed.
    """
    settings = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    with scratch(options.place) as folder:
        lines = options.recording(40).read_bytes().splitlines(keepends=True)
        (folder / "two.jsonl").write_bytes(b"".join(lines[:2]))
        (folder / "twenty.jsonl").write_bytes(b"".join(lines[:20]))
        (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, check=False)  # noqa: S603 - our own
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise ChildFailed(f"exit code {done.returncode}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": used}


def least(runs: Runs) -> float | None:
    """Return the CPU seconds of the best round, None for a command that failed."""
    return None if runs.failed else min(float(each["cpu"]) for each in runs.rounds)


def over(above: Runs | None, below: Runs | None) -> float | None:
    """Return how many times as much CPU time one takes as the other."""
    one, other = (None if each is None else least(each) for each in (above, below))
    return one / other if one is not None and other else None


def measure(options: Options) -> Table:
    """Return the table."""
    now = {name: partial(start, command, options) for name, command in commands(HERE).items()}
    old = (
        {name: partial(start, command, options) for name, command in commands(Path(BEFORE)).items()}
        if BEFORE
        else {}
    )
    items = {**now, **{f"before: {name}": item for name, item in old.items()}}
    take_turns(items, 1)  # compiled and in the page cache
    found = take_turns(items, options.rounds)
    click = found['python -c "import click"']
    rows = []
    for name in now:
        seconds = least(found[name])
        shown = cell(seconds and seconds * 1e3, ".0f")
        against = cell(over(found[name], found.get(f"before: {name}")))
        rows.append([name, shown, cell(over(found[name], click)), against])
    version = found["gradestack --version"]
    reach = [
        reached(
            "`gradestack --version` against python importing click",
            1.6,
            1.3,
            over(version, click),
            lower=True,
        )
    ]
    for name, must, aim in ((RUN, 100.0, 80.0), (PAGES, 250.0, 200.0)):
        seconds = least(found[name])
        milliseconds = None if seconds is None else 1e3 * seconds
        what = f"{name}, CPU milliseconds"
        reach.append(reached(what, must, aim, milliseconds, found[name], lower=True))
    for name, must, aim in ((RUN, 0.45, 0.3), (PAGES, 0.6, 0.4)) if BEFORE else ():
        reach.append(
            reached(
                f"{name}, against before",
                must,
                aim,
                over(found[name], found[f"before: {name}"]),
                lower=True,
            )
        )
    return Table(
        title="Start of the command line",
        columns=["command", "CPU ms", "against click", "against before"],
        rows=rows,
        notes=[
            f"{options.rounds} rounds in turns, CPU time of a fresh process; the least.",
            *failures(found),
        ],
        reach=reach,
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, rounds=15))

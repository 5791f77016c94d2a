"""How long does the command line take to start?

    python benchmarks/startup.py [--rounds N]

The installed console script ``gradestack --version`` against a bare interpreter and one that imports click, in fresh
processes, in turns. The last line is what every run costs however small its input is, in a process that has run before.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from frame import ChildFailed, Options, Runs, Table, cell, failures, main, ours, ratio, reached, take_turns

SCRIPT = Path(sys.executable).parent / "gradestack"
FEW = 40
SMALL = f"gradestack.run, {FEW} records, imports done"
COMMANDS = {
    'python -c "pass"': [sys.executable, "-c", "pass"],
    'python -c "import click"': [sys.executable, "-c", "import click"],
    "gradestack --version": [str(SCRIPT), "--version"],
    "gradestack --help": [str(SCRIPT), "--help"],
}


def start(command: list[str]) -> dict[str, Any]:
    """Run a command and return its wall seconds.

    Raises:
        ChildFailed: It failed.
    """
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own
    except OSError as error:
        raise ChildFailed(str(error)) from error
    wall = time.perf_counter() - started
    if done.returncode != 0:
        raise ChildFailed(f"exit code {done.returncode}")
    return {"wall": wall}


def beside(name: str, runs: Runs, click: Runs) -> float | None:
    """Return how many times as long as importing click a command takes; a run in a warm process is no command."""
    return None if name == SMALL else ratio(runs, click)


def measure(options: Options) -> Table:
    """Return the table."""
    items = {name: partial(start, command) for name, command in COMMANDS.items()}
    take_turns(items, 2)  # compiled and in the page cache
    found = take_turns(items, options.rounds)
    found |= take_turns(
        {SMALL: lambda: ours(options.recording(FEW), options.place, rows=False)}, min(options.rounds, 5)
    )
    click, version = found['python -c "import click"'], found["gradestack --version"]
    return Table(
        title="Start of the command line",
        columns=["command", "ms", "against click"],
        rows=[
            [name, cell((wall := runs.median("wall")) and wall * 1e3, ".1f"), cell(beside(name, runs, click))]
            for name, runs in found.items()
        ],
        notes=[f"{options.rounds} rounds in turns, wall time of a fresh process; the median.", *failures(found)],
        reach=[
            reached(
                "`gradestack --version` against bare interpreter plus click import",
                2,
                1.3,
                ratio(version, click),
                version,
                click,
                lower=True,
            )
        ],
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, rounds=40))

"""One million records: time, memory and size of what is written.

Metrics, and a million distinct tasks.

    python benchmarks/million.py [--records N]

Every way runs once (``--rounds`` for more) in a fresh process that may use all cores. The last rows
are the default stack of tau-bench over a recording whose records are all tasks of their own.
Without metrics a run has the table of grades, states and averages, and no figure of an aggregator.
Recordings are deleted afterwards, unless ``--place`` keeps them.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import workload
from frame import (
    Options,
    Runs,
    Table,
    cell,
    cores,
    failures,
    main,
    ours,
    ratio,
    reached,
    take_turns,
)

SERIAL, PROCESSES = {"kind": "serial"}, {"kind": "processes", "workers": 2}
WAYS = {"serial": SERIAL, "processes, 2 workers": PROCESSES}
TAU = "tau-bench, distinct tasks"
MOST_MEMORY, MOST_TIME = 400, {"serial, no rows": 1.05, f"{TAU}, serial": 1.15}
"""MB at a million distinct tasks; CPU time with metrics to that without."""


def trials(options: Options) -> Path:
    """Return the recording of distinct tasks, written when it is first asked for."""
    path = options.place / f"trials-{options.records}.json"
    if not path.exists():
        workload.write_trials(path, options.records)
    return path


def measure(options: Options) -> Table:
    """Return the table."""
    path = options.recording()
    items = {
        f"{name}, {said}": partial(ours, path, options.place, engine=engine, rows=rows, digest=True)
        for name, engine in WAYS.items()
        for rows, said in ((False, "no rows"), (True, "results.jsonl"))
    }
    few = partial(ours, path, options.place, engine=SERIAL, rows=False)
    items["serial, no rows, no metrics"] = partial(few, aggregate=False)
    tau = partial(ours, trials(options), options.place, stack="tau-bench", rows=False)
    items |= {f"{TAU}, {name}": partial(tau, engine=engine) for name, engine in WAYS.items()}
    items[f"{TAU}, serial, no metrics"] = partial(tau, engine=SERIAL, aggregate=False)
    found = take_turns(items, options.rounds)
    table = [_row(name, runs, options.records) for name, runs in found.items()]
    reach = [
        reached(
            f"CPU time with metrics to that without, {name}",
            MOST_TIME[name],
            MOST_TIME[name],
            ratio(found[name], found[f"{name}, no metrics"], "cpu"),
            found[name],
            found[f"{name}, no metrics"],
            lower=True,
        )
        for name in ("serial, no rows", f"{TAU}, serial")
    ]
    for name in WAYS:
        runs = found[f"{TAU}, {name}"]
        what = f"peak MB of the largest process, {TAU}, {name}"
        most = None if runs.failed else max(runs.highest("peak") or 0, _workers(name, runs) or 0)
        reach.append(reached(what, MOST_MEMORY, MOST_MEMORY, most, runs, lower=True))
    sizes = [f"{each.stat().st_size / 1e9:.2f} GB" for each in (path, trials(options))]
    return Table(
        title=f"{options.records:,} records",
        columns=["run", "wall s", "CPU s", "1000 records/s", "peak MB", "worker MB", "written MB"],
        rows=table,
        notes=[
            f"{sizes[0]}, {len(cores())} cores, two graders; distinct tasks: {sizes[1]}.",
            *failures(found),
        ],
        reach=reach,
    )


def _row(name: str, runs: Runs, records: int) -> list[str]:
    wall = runs.median("wall")
    return [
        name,
        cell(wall, ".1f"),
        cell(runs.median("cpu"), ".1f"),
        cell(wall and records / wall / 1000, ".1f"),
        cell(runs.highest("peak"), ".0f"),
        cell(_workers(name, runs), ".0f"),
        cell(runs.median("written"), ".1f"),
    ]


def _workers(name: str, runs: Runs) -> float | None:
    return runs.highest("children") if "processes" in name else None


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, records=1_000_000, rounds=1))

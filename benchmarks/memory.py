"""Does memory grow with the number of records?

    python benchmarks/memory.py [--records N] [--rounds N]

Peak resident memory of a run in a fresh process: of a tenth of the records and of all, with runs of
a fixed number of tasks and with every record a task of its own, without and with rows.
"""

from __future__ import annotations

import sys
from functools import partial

import workload
from frame import Options, Runs, Table, cell, failures, main, ours, ratio, reached, take_turns

TASKS = {workload.TASKS: f"{workload.TASKS} tasks", 0: "every record a task"}
BOUNDS = {workload.TASKS: (1.3, 1.1), 0: (1.6, 1.2)}
"""How much more is allowed at ten times the records, and aimed at.

Error bars by task keep something per task.
"""


def measure(options: Options) -> Table:
    """Return the table."""
    few = max(1, options.records // 10)
    items = {
        f"{size} records, {said}, {shown}": partial(
            ours, options.recording(size, tasks=tasks), options.place, rows=rows, cores=None
        )
        for tasks, said in TASKS.items()
        for rows, shown in ((False, "no rows"), (True, "results.jsonl"))
        for size in (few, options.records)
    }
    found = take_turns(items, options.rounds)
    rows, reach = [], []
    for tasks, said in TASKS.items():
        for shown in ("no rows", "results.jsonl"):
            small, large = (
                found[f"{size} records, {said}, {shown}"] for size in (few, options.records)
            )
            growth = ratio(large, small, "peak")
            rows.append(
                [f"{said}, {shown}", *(_peak(runs) for runs in (small, large)), cell(growth)]
            )
            what = f"peak memory at {options.records:,} against {few:,} records, {said}, {shown}"
            reach.append(reached(what, *BOUNDS[tasks], growth, small, large, lower=True))
    return Table(
        title="Memory against size",
        columns=["run", f"peak MB at {few}", f"peak MB at {options.records}", "ratio"],
        rows=rows,
        notes=[
            f"{options.rounds} rounds in turns, a fresh process each, engine serial; the median.",
            "The interpreter and all imports are included.",
            *failures(found),
        ],
        reach=reach,
    )


def _peak(runs: Runs) -> str:
    return cell(runs.median("peak"), ".1f")


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))

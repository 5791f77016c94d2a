"""One million records: time, memory and size of what is written.

    python benchmarks/million.py [--records N]

Every way runs once (``--rounds`` for more) in a fresh process that may use all cores. The recording is deleted
afterwards, unless ``--place`` keeps it.
"""

from __future__ import annotations

import sys
from functools import partial

from frame import Options, Table, cell, cores, failures, main, ours, take_turns

WAYS = {
    "serial": {"kind": "serial"},
    "processes, 2 workers": {"kind": "processes", "workers": 2},
}


def measure(options: Options) -> Table:
    """Return the table."""
    path = options.recording()
    items = {
        f"{name}, {said}": partial(ours, path, options.place, engine=engine, rows=rows, digest=True)
        for name, engine in WAYS.items()
        for rows, said in ((False, "no rows"), (True, "results.jsonl"))
    }
    found = take_turns(items, options.rounds)
    rows = [
        [
            name,
            cell(wall := runs.median("wall"), ".1f"),
            cell(runs.median("cpu"), ".1f"),
            cell(wall and options.records / wall / 1000, ".1f"),
            cell(runs.highest("peak"), ".0f"),
            cell(None if name.startswith("serial") else runs.highest("children"), ".0f"),
            cell(runs.median("written"), ".1f"),
        ]
        for name, runs in found.items()
    ]
    return Table(
        title=f"{options.records:,} records",
        columns=["run", "wall s", "CPU s", "1000 records/s", "peak MB", "worker MB", "written MB"],
        rows=rows,
        notes=[f"{path.stat().st_size / 1e9:.2f} GB, {len(cores())} cores, two graders.", *failures(found)],
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, records=1_000_000, rounds=1))

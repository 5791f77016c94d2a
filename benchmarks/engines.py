"""What do more workers bring?

    python benchmarks/engines.py [--records N] [--rounds N]

The same suite with every engine, in turns, each run in a fresh process that may use all cores.
Results of all engines must be equal to the last byte; the table says so. dask is measured when the
extra is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from typing import Any

from frame import (
    Item,
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

WORKERS = 2


def engines() -> dict[str, dict[str, Any]]:
    """Return the engines' configurations by name."""
    found: dict[str, dict[str, Any]] = {
        "serial": {"kind": "serial"},
        "processes, 1 worker": {"kind": "processes", "workers": 1},
        f"processes, {WORKERS} workers": {"kind": "processes", "workers": WORKERS},
    }
    if importlib.util.find_spec("distributed") is not None:
        found[f"dask, {WORKERS} local workers"] = {"kind": "dask", "workers": WORKERS}
    return found


def items(options: Options) -> dict[str, Item]:
    """Return what is measured, by name: every engine without and with rows."""
    path = options.recording()
    return {
        f"{name}, {said}": partial(ours, path, options.place, engine=engine, rows=rows, digest=True)
        for name, engine in engines().items()
        for rows, said in ((False, "no rows"), (True, "results.jsonl"))
    }


def measure(options: Options) -> Table:
    """Return the table."""
    found = take_turns(items(options), options.rounds)
    first = {said: found[f"serial, {said}"] for said in ("no rows", "results.jsonl")}
    rows = []
    for name, runs in found.items():
        serial = first[name.rpartition(", ")[2]]
        rows.append(_row(name, runs, serial))
    two = {said: found[f"processes, {WORKERS} workers, {said}"] for said in first}
    return Table(
        title="Engines",
        columns=[
            "engine",
            "wall s",
            "CPU s",
            "1000 records/s",
            "speed-up",
            "peak MB",
            "worker MB",
            "same bytes",
        ],
        rows=rows,
        notes=[
            f"{options.records} records, {options.rounds} rounds in turns, {len(cores())} cores.",
            (
                "Speed-up: wall seconds of serial over those of the row, in the same round; the "
                "median."
            ),
            (
                "Worker MB: peak of the largest worker process. Starting workers (and dask's cluster) "
                "is part of the time."
            ),
            *failures(found),
        ],
        reach=[
            reached(
                f"two workers against our own serial, {said}",
                1.7,
                1.9,
                ratio(first[said], two[said]),
                first[said],
                two[said],
            )
            for said in first
        ],
    )


def _row(name: str, runs: Runs, serial: Runs) -> list[str]:
    wall, digest = runs.median("wall"), runs.same("digest")
    return [
        name,
        cell(wall),
        cell(runs.median("cpu")),
        cell(wall and runs.rounds[0]["n"] / wall / 1000, ".1f"),
        cell(ratio(serial, runs)),
        cell(runs.median("peak"), ".0f"),
        cell(None if name.startswith("serial") else runs.median("children"), ".0f"),
        "–"
        if runs.failed
        else "yes"
        if digest is not None and digest == serial.same("digest")
        else "NO",
    ]


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))

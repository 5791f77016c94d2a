"""What do the report pages cost?

    python benchmarks/reports.py [--records N] [--rounds N]

A whole run without and with its default pages, and ``gradestack report``, which writes the pages of
a finished run (its start is part of its time). In turns, each in a fresh process pinned to one
core.
"""

from __future__ import annotations

import sys
from functools import partial

from frame import (
    Item,
    Options,
    Runs,
    Table,
    cell,
    failures,
    main,
    one_core,
    ours,
    ratio,
    reached,
    take_turns,
)

RECORDS = 60_000
WITHOUT, WITH = "run without pages", "run with its default pages"
AGAIN = "gradestack report"


def each(runs: Runs, records: int) -> float | None:
    """Return microseconds of CPU time per sample."""
    cpu = runs.median("cpu")
    return None if cpu is None else cpu / records * 1e6


def measure(options: Options) -> Table:
    """Return the table."""
    path, place, pinned = options.recording(), options.place, {"cores": one_core()}
    items: dict[str, Item] = {
        WITHOUT: partial(ours, path, place, **pinned),
        WITH: partial(ours, path, place, reports=None, **pinned),
        AGAIN: partial(ours, path, place, job="report", **pinned),
    }
    found = take_turns(items, options.rounds)
    bare, full, again = (found[name] for name in items)
    rows = [
        [
            name,
            cell(runs.median("wall"), ".2f"),
            cell(runs.median("cpu"), ".2f"),
            cell(each(runs, options.records), ".1f"),
            cell(ratio(runs, bare)),
            cell(ratio(runs, bare, "cpu")),
            cell(None if runs is again else runs.median("peak"), ".0f"),
            cell(runs.median("written"), ".1f"),
        ]
        for name, runs in found.items()
    ]
    alone, times = each(again, options.records), ratio(full, bare)
    return Table(
        title="Report pages",
        columns=[
            "work",
            "wall s",
            "CPU s",
            "CPU us a sample",
            "wall ratio",
            "CPU ratio",
            "peak MB",
            "written MB",
        ],
        rows=rows,
        notes=[
            f"{options.records} records, {options.rounds} rounds in turns, one core.",
            (
                "Ratio: wall seconds of the row over those of the run without pages, in the same "
                "round; the median."
            ),
            *failures(found),
        ],
        reach=[
            reached(
                f"report of {options.records:,} samples, CPU microseconds each",
                30,
                20,
                alone,
                again,
                lower=True,
            ),
            reached(
                "a run with default pages against one without",
                1.8,
                1.3,
                times,
                full,
                bare,
                lower=True,
            ),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, records=RECORDS))

"""How close is a whole run on one core to merely parsing the same file?

    python benchmarks/throughput.py [--records N] [--rounds N]

Every item runs in a fresh process pinned to one core, in turns. The references decode every line of the file and drop
what they got; gradestack reads, grades with two graders, aggregates, and writes a run directory without pages, with and
without results.jsonl. Ratios are orjson's seconds over gradestack's, within a round; the table has their median.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from frame import Item, Options, Runs, Table, cell, child, failures, main, one_core, ours, ratio, reached, take_turns

PLAIN, ALONE = "orjson.loads per line", "orjson.loads per line, tasks of one run"
NO_ROWS, ROWS = "gradestack, no rows", "gradestack, results.jsonl written"
NO_ROWS_ALONE, ROWS_ALONE = f"{NO_ROWS}, tasks of one run", f"{ROWS}, tasks of one run"
REFERENCE = {NO_ROWS_ALONE: ALONE, ROWS_ALONE: ALONE, ALONE: ALONE}


def items(many: Path, alone: Path, place: Path) -> dict[str, Item]:
    """Return what is measured, by name."""
    pinned = {"cores": one_core()}

    def floor(name: str, path: Path) -> Item:
        return lambda: child({"job": name, "path": path, **pinned})

    return {
        PLAIN: floor("orjson", many),
        "msgspec.json.decode per line": floor("msgspec", many),
        "json.loads per line": floor("json", many),
        NO_ROWS: partial(ours, many, place, rows=False, **pinned),
        ROWS: partial(ours, many, place, rows=True, **pinned),
        ALONE: floor("orjson", alone),
        NO_ROWS_ALONE: partial(ours, alone, place, rows=False, **pinned),
        ROWS_ALONE: partial(ours, alone, place, rows=True, **pinned),
    }


def row(name: str, runs: Runs, reference: Runs, size: int) -> list[str]:
    """Return a row of the table."""
    wall = runs.median("wall")
    return [
        name,
        cell(wall, ".3f"),
        cell(runs.median("cpu"), ".3f"),
        cell(wall and runs.rounds[0]["n"] / wall / 1000, ".1f"),
        cell(wall and size / wall / 1e6, ".0f"),
        cell(ratio(reference, runs)),
        cell(ratio(reference, runs, "cpu")),
        cell(runs.median("peak"), ".0f"),
    ]


def measure(options: Options) -> Table:
    """Return the table."""
    many, alone = options.recording(), options.recording(tasks=0)
    size = many.stat().st_size
    found = take_turns(items(many, alone, options.place), options.rounds)
    plain, bare, full = found[PLAIN], found[NO_ROWS], found[ROWS]
    two = "two graders and aggregates, one core, "
    return Table(
        title="One core against the parse floor",
        columns=["work", "wall s", "CPU s", "1000 records/s", "MB/s", "wall ratio", "CPU ratio", "peak MB"],
        rows=[row(name, runs, found[REFERENCE.get(name, PLAIN)], size) for name, runs in found.items()],
        notes=[
            f"{options.records} records of {size / options.records:.0f} B, {options.rounds} rounds in turns, one core.",
            "Ratio: seconds of orjson on the same file over seconds of the row, in the same round; the median.",
            *failures(found),
        ],
        reach=[
            reached(f"{two}no rows, against orjson", 0.4, 0.6, ratio(plain, bare), plain, bare),
            reached(f"{two}results.jsonl written, against orjson", 0.3, 0.45, ratio(plain, full), plain, full),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, rounds=5))

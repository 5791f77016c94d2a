"""How close is a whole run on one core to a script written for its file, and to merely parsing it?

    python benchmarks/throughput.py [--records N] [--rounds N]

Every item runs in a fresh process pinned to one core, in turns. The references decode every line of
the file and drop what they got. The script (``by_hand.py``) does what the suite asks for: two
graders, their means with error bars, and pass^k; its figures must equal gradestack's, else there is
no table. gradestack reads, grades, aggregates, and writes a run directory without pages, with and
without results.jsonl; the script writes rows of its own. So also with 80 % wrong samples, the
recording of a weak model, and, without the script, with tasks of one run each. Ratios are seconds
of the reference over those of the row, within a round; the table has their median. What is to be
reached is CPU time.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jobs
from by_hand import unequal
from frame import (
    Item,
    Options,
    Reach,
    Runs,
    Table,
    by_hand,
    cell,
    child,
    failures,
    main,
    one_core,
    ours,
    ratio,
    reached,
    take_turns,
)

WEAK = 80
FLOOR = "orjson.loads per line"
SCRIPT, SCRIPT_ROWS = "by hand, no rows", "by hand, rows written"
NO_ROWS, ROWS = "gradestack, no rows", "gradestack, results.jsonl written"
WRONG, ALONE = f", {WEAK} % wrong", ", tasks of one run"


def items(path: Path, place: Path, said: str = "", *, script: bool = True) -> dict[str, Item]:
    """Return what is measured on a recording, by name."""
    pinned = {"cores": one_core()}
    suite = {"metrics": jobs.RELIABLE, "figures": True, **pinned}
    found: dict[str, Item] = {
        FLOOR + said: lambda: child({"job": "orjson", "path": path, **pinned})
    }
    if script:
        found[SCRIPT + said] = partial(by_hand, path, place, rows=False, **pinned)
        found[SCRIPT_ROWS + said] = partial(by_hand, path, place, rows=True, **pinned)
    found[NO_ROWS + said] = partial(ours, path, place, rows=False, **suite)
    found[ROWS + said] = partial(ours, path, place, rows=True, **suite)
    return found


def parsers(path: Path) -> dict[str, Item]:
    """Return the other parsers, by name."""
    pinned = {"cores": one_core()}
    return {
        f"{name} per line": partial(child, {"job": module, "path": path, **pinned})
        for name, module in (("msgspec.json.decode", "msgspec"), ("json.loads", "json"))
    }


def require_same_figures(found: Mapping[str, Runs], said: str = "") -> None:
    """Compare the figures of all that grade a recording.

    Raises:
        ValueError: They differ.
    """
    sides = {name: found[name + said] for name in (SCRIPT, SCRIPT_ROWS, NO_ROWS, ROWS)}
    measured = {name: each for name, runs in sides.items() for each in runs.rounds}
    first: dict[str, Any] = next(iter(measured.values()), {})
    for name, each in measured.items():
        differing = unequal(first["figures"], each["figures"])
        if differing:
            raise ValueError(f"{name}{said}: other figures: {'; '.join(differing)}")


def row(name: str, found: Mapping[str, Runs], sizes: Mapping[str, int]) -> list[str]:
    """Return a row of the table; ``sizes`` are those of the recordings."""
    said = next((each for each in (WRONG, ALONE) if name.endswith(each)), "")
    runs = found[name]
    wall, size = runs.median("wall"), sizes[said]
    graded = name.startswith((SCRIPT, SCRIPT_ROWS, NO_ROWS, ROWS))
    script = found.get((SCRIPT_ROWS if name.startswith((ROWS, SCRIPT_ROWS)) else SCRIPT) + said)
    against = {
        key: ratio(script, runs, key) if graded and script else None for key in ("wall", "cpu")
    }
    return [
        name,
        cell(wall, ".3f"),
        cell(runs.median("cpu"), ".3f"),
        cell(wall and runs.rounds[0]["n"] / wall / 1000, ".1f"),
        cell(wall and size / wall / 1e6, ".0f"),
        cell(ratio(found[FLOOR + said], runs)),
        cell(ratio(found[FLOOR + said], runs, "cpu")),
        cell(against["wall"]),
        cell(against["cpu"]),
        cell(runs.median("peak"), ".0f"),
    ]


def bounds(found: Mapping[str, Runs]) -> list[Reach]:
    """Return what is to be reached."""

    def against(reference: str, ours: str, must: float, aim: float, what: str) -> Reach:
        one, other = found[reference], found[ours]
        return reached(
            f"two graders and aggregates, one core, {what}",
            must,
            aim,
            ratio(one, other, "cpu"),
            one,
            other,
        )

    return [
        against(SCRIPT, NO_ROWS, 0.44, 0.55, "no rows, against the script by hand"),
        against(
            SCRIPT_ROWS,
            ROWS,
            0.36,
            0.42,
            "results.jsonl written, against the script by hand with its rows",
        ),
        against(FLOOR, NO_ROWS, 0.40, 0.5, "no rows, against orjson"),
        against(FLOOR, ROWS, 0.23, 0.3, "results.jsonl written, against orjson"),
        against(
            SCRIPT + WRONG,
            NO_ROWS + WRONG,
            0.38,
            0.5,
            f"no rows{WRONG}, against the script by hand",
        ),
        against(
            SCRIPT_ROWS + WRONG,
            ROWS + WRONG,
            0.32,
            0.4,
            f"results.jsonl written{WRONG}, against the script by hand with its rows",
        ),
    ]


def measure(options: Options) -> Table:
    """Return the table."""
    many, weak, alone = (
        options.recording(),
        options.recording(wrong=WEAK),
        options.recording(tasks=0),
    )
    sizes = {"": many.stat().st_size, WRONG: weak.stat().st_size, ALONE: alone.stat().st_size}
    found = take_turns(
        items(many, options.place)
        | parsers(many)
        | items(weak, options.place, WRONG)
        | items(alone, options.place, ALONE, script=False),
        options.rounds,
    )
    require_same_figures(found)
    require_same_figures(found, WRONG)
    head = [
        "work",
        "wall s",
        "CPU s",
        "1000 records/s",
        "MB/s",
        "against orjson",
        "in CPU time",
        "against the script",
    ]
    return Table(
        title="One core against a script and the parse floor",
        columns=[*head, "in CPU time", "peak MB"],
        rows=[row(name, found, sizes) for name in found],
        notes=[
            (
                f"{options.records} records of {sizes[''] / options.records:.0f} B, {options.rounds} "
                "rounds, one core."
            ),
            (
                "Against: seconds of the reference on the same file over those of the row, in the "
                "same round; the median."
            ),
            (
                "The script, with and without rows of its own, and gradestack gave the same figures "
                "on the same file."
            ),
            *failures(found),
        ],
        reach=bounds(found),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, rounds=5))

"""What does matching every call cost, beside partial credit for the calls expected?

    python benchmarks/matcher.py [--records N] [--rounds N]

Whole runs with one grader each, ``tool_calls`` and ``tau_partial``: without rows, with
results.jsonl, and with pages, too. In turns, each in a fresh process pinned to one core, on the
usual recording. And one sample whose calls all have one name, none of them equal: the matching at
its worst.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from functools import partial
from typing import Any

from frame import (
    Item,
    Options,
    Reach,
    Table,
    cell,
    failures,
    main,
    one_core,
    ours,
    ratio,
    take_turns,
)

from gradestack import Expectation, ExpectedCall, Sample, ToolCall
from gradestack_plugins.tool_calls.grader import ToolCalls

GRADERS = {name: {"calls": {"kind": name}} for name in ("tau_partial", "tool_calls")}
RUNS: dict[str, dict[str, Any]] = {
    "no rows": {"rows": False},
    "results.jsonl": {"rows": True},
    "results.jsonl and pages": {"rows": True, "reports": None},
}
CROWDS = {40: (25, 10), 200: (2_000, 1_000)}
"""Calls on each side -> the milliseconds a sample of such may take: must and aim."""
LEAVES = 10


def crowd(size: int) -> Sample:
    """Return a sample of so many expected calls, and as many made, of one name and with other
    arguments.
    """
    draw = random.Random(size)

    def arguments(side: int) -> dict[str, int]:
        return {
            "side": side,
            **{f"key {number}": draw.randrange(4) for number in range(LEAVES - 1)},
        }

    wanted = tuple(ExpectedCall(name="find", arguments=arguments(0)) for _ in range(size))
    made = tuple(ToolCall(name="find", arguments=arguments(1)) for _ in range(size))
    return Sample(id=f"{size} calls", expected=Expectation(calls=wanted), calls=made)


def milliseconds(sample: Sample) -> float:
    """Return how long the grade of a sample takes."""
    started = time.process_time()
    ToolCalls().grade(sample)
    return 1_000 * (time.process_time() - started)


def measure(options: Options) -> Table:
    """Return the table."""
    path = options.recording()
    shared: dict[str, Any] = {"place": options.place, "cores": one_core()}
    items: dict[str, Item] = {
        f"{name}, {kind}": partial(ours, path=path, graders=graders, **job, **shared)
        for kind, job in RUNS.items()
        for name, graders in GRADERS.items()
    }
    found = take_turns(items, options.rounds)
    rows, reach = [], list[Reach]()
    for kind in RUNS:
        credit, calls = (found[f"{name}, {kind}"] for name in GRADERS)
        times = ratio(calls, credit, "cpu")
        rows.append(
            [kind, *(cell(runs.median("cpu"), ".3f") for runs in (credit, calls)), cell(times)]
        )
    for size, (must, aim) in CROWDS.items():
        taken = statistics.median(milliseconds(crowd(size)) for _ in range(options.rounds))
        rows.append([f"{size} x {size} calls of one name", "–", f"{taken / 1_000:.3f}", "–"])
        what = f"a sample of {size} x {size} calls of one name, none equal, ms"
        reach.append(Reach(what=what, must=must, aim=aim, measured=taken, lower=True))
    return Table(
        title="Matching calls",
        columns=["what", "tau_partial, CPU s", "tool_calls, CPU s", "times"],
        rows=rows,
        notes=[
            f"{options.records} records, {options.rounds} rounds in turns, one core, whole runs.",
            (
                "Times: CPU time with tool_calls over that with tau_partial, in the same round; the "
                "median."
            ),
            (
                f"Calls of one name: one sample, {LEAVES} arguments each, graded in the script's own "
                "process."
            ),
            *failures(found),
        ],
        reach=reach,
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, records=100_000, rounds=3))

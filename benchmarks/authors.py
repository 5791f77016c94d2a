"""What does a grader cost that was written without a thought for speed?

    python benchmarks/authors.py [--records N] [--rounds N]

Whole runs with one grader, without and with results.jsonl: the built-in ``tau_partial``, and a
grader in a file of its own that does the same work, written as the documentation shows one
(``third_party/partial_credit.py``). In turns, each in a fresh process pinned to one core, on the
usual recording and on one with 80 % wrong samples, where reasons count.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from frame import (
    HERE,
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

WEAK = 80
BUILT_IN = {"partial": {"kind": "tau_partial"}}
FROM_FILE = {"partial": {"kind": f"{HERE / 'third_party' / 'partial_credit.py'}:PartialCredit"}}
GRADERS = {"built-in": BUILT_IN, "third party": FROM_FILE}


def kinds(options: Options) -> dict[str, dict[str, Any]]:
    """Return what is graded and kept, by name."""
    usual, weak = options.recording(), options.recording(wrong=WEAK)
    return {
        "no rows": {"path": usual, "rows": False},
        "results.jsonl": {"path": usual, "rows": True},
        f"no rows, {WEAK} % wrong": {"path": weak, "rows": False},
        f"results.jsonl, {WEAK} % wrong": {"path": weak, "rows": True},
    }


def pair_of(found: dict[str, Runs], kind: str) -> tuple[Runs, Runs]:
    """Return the built-in and the third party's runs of a kind.

    Raises:
        ValueError: Their scores differ, so that their times say nothing.
    """
    built_in, third_party = (found[f"{who}, {kind}"] for who in GRADERS)
    for figure in ("score", "passed"):
        if built_in.same(figure) != third_party.same(figure) and not (
            built_in.failed or third_party.failed
        ):
            raise ValueError(
                f"{kind}: {figure} {built_in.same(figure)} and {third_party.same(figure)}"
            )
    return built_in, third_party


def measure(options: Options) -> Table:
    """Return the table."""
    shared: dict[str, Any] = {"place": options.place, "allow_code": True, "cores": one_core()}
    items: dict[str, Item] = {
        f"{who}, {kind}": partial(ours, graders=graders, **job, **shared)
        for kind, job in kinds(options).items()
        for who, graders in GRADERS.items()
    }
    found = take_turns(items, options.rounds)
    rows, reach = [], []
    for kind in kinds(options):
        built_in, third_party = pair_of(found, kind)
        times = ratio(third_party, built_in)
        walls = [cell(runs.median("wall"), ".3f") for runs in (built_in, third_party)]
        cpu = ratio(third_party, built_in, "cpu")
        rows.append([kind, *walls, cell(times), cell(cpu), cell(built_in.median("score"), ".4f")])
        what = f"a third party's grader against the built-in one, {kind}"
        reach.append(reached(what, 1.2, 1.05, times, built_in, third_party, lower=True))
    return Table(
        title="A grader in a file of its own",
        columns=[
            "one grader",
            "built-in, s",
            "third party, s",
            "times",
            "in CPU time",
            "average score",
        ],
        rows=rows,
        notes=[
            f"{options.records} records, {options.rounds} rounds in turns, one core, whole runs.",
            (
                "Times: wall seconds of the third party's over those of the built-in one, in the same "
                "round; the median."
            ),
            *failures(found),
        ],
        reach=reach,
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, records=60_000, rounds=5))

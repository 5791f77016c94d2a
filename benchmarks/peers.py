"""How fast are others at asking whether the calls made are the calls expected?

    python benchmarks/peers.py [--records N] [--rounds N] [--cache DIRECTORY]

Peers are installed from the package index, each into a virtual environment of its own under the
cache. Everyone gets the same recording, in turns, each in a fresh process pinned to one core. End
to end: reading, decoding, building the objects and grading; imports are left out, and so is a first
go over a few records. A peer that cannot be installed or does not run has no figure, but the
reason.

gradestack grades with ``tau_partial``, which also tells how much of a call is right and why it is
not more; its figure "right" is the share of full scores. It forgives calls and arguments beyond the
expected ones, so the recording leaves out these two kinds of mistakes, and all sides must agree on
every figure.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from frame import (
    ChildFailed,
    Item,
    Options,
    Runs,
    Table,
    cell,
    child,
    failures,
    main,
    one_core,
    ours,
    ratio,
    reached,
    take_turns,
    without_places,
)

RECORDS = 5_000
FORGIVEN = ("extra_argument", "extra_call")
NO_ROWS, ROWS = "gradestack tau_partial, no rows", "gradestack tau_partial, results.jsonl"
INSTALL_TIMEOUT = 600


@dataclasses.dataclass(frozen=True)
class Peer:
    """A peer: what to install, and the script that runs in its environment."""

    requirement: str
    script: str
    job: Mapping[str, Any] = dataclasses.field(default_factory=dict)


PEERS = {
    "inspect_ai score()": Peer("inspect_ai==0.3.285", "side_inspect.py"),
    "inspect_ai score(copy=False)": Peer("inspect_ai==0.3.285", "side_inspect.py", {"copy": False}),
    "deepeval ToolCorrectnessMetric.measure": Peer("deepeval==4.3.1", "side_deepeval.py"),
    "letta-evals ToolGrader exact_match": Peer("letta-evals==0.26.0", "side_letta.py"),
}


def _quietly(command: list[str]) -> None:
    """Run a command of the installation.

    Raises:
        ChildFailed: It failed.
    """
    try:
        done = subprocess.run(  # noqa: S603 - our own
            command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ChildFailed(f"not installed after {INSTALL_TIMEOUT} s") from error
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ChildFailed(f"not installed: {without_places((errors or ['pip failed'])[-1])}")


def installed(requirement: str, cache: Path) -> Path:
    """Return the interpreter of a virtual environment that has the requirement, made when it is
    first asked for.

    Raises:
        ChildFailed: It cannot be installed.
    """
    place = cache / requirement.replace("==", "-")
    python, done = place / "bin" / "python", place / "installed"
    if not done.exists():
        _quietly([sys.executable, "-m", "venv", "--clear", str(place)])
        _quietly(
            [
                str(python),
                "-m",
                "pip",
                "--disable-pip-version-check",
                "install",
                "--quiet",
                "orjson",
                requirement,
            ]
        )
        done.touch()
    return python


def item(peer: Peer, path: Path, options: Options) -> Item:
    """Return how a peer is measured."""
    job = {"path": path, "records": options.records, "cores": one_core(), **peer.job}
    return lambda: child(
        job, script=f"peer_side/{peer.script}", python=installed(peer.requirement, options.cache)
    )


def row(name: str, runs: Runs, bare: Runs, full: Runs) -> list[str]:
    """Return a row of the table."""
    wall = runs.median("wall")
    first = runs.rounds[0] if runs.rounds else {}
    right = (
        first.get("mean", first.get("passed", 0) / max(1, first.get("n", 1)))
        if not runs.failed
        else None
    )
    own = runs is bare or runs is full
    return [
        name,
        "–" if runs.failed else first.get("version", "this one"),
        cell(wall, ".3f"),
        cell(wall and first["n"] / wall, ",.0f"),
        cell(None if own else ratio(runs, bare), ".1f"),
        cell(None if own else ratio(runs, full), ".1f"),
        cell(runs.median("peak"), ".0f"),
        cell(right, ".4f"),
    ]


def measure(options: Options) -> Table:
    """Return the table."""
    path = options.recording(leave_out=FORGIVEN)
    graders = {"partial": {"kind": "tau_partial"}}
    items: dict[str, Item] = {
        name: partial(ours, path, options.place, rows=rows, graders=graders, cores=one_core())
        for name, rows in ((NO_ROWS, False), (ROWS, True))
    }
    found = take_turns(
        items | {name: item(peer, path, options) for name, peer in PEERS.items()}, options.rounds
    )
    bare, full = found[NO_ROWS], found[ROWS]
    score, measured, streamed = (found[name] for name in PEERS if "copy" not in name)
    return Table(
        title="Peers: are the calls made the calls expected?",
        columns=[
            "who",
            "version",
            "wall s",
            "records/s",
            "no rows faster by",
            "rows faster by",
            "peak MB",
            "right",
        ],
        rows=[row(name, runs, bare, full) for name, runs in found.items()],
        notes=[
            (
                f"{options.records} records, {options.rounds} rounds in turns, one core, end to end "
                "without imports."
            ),
            (
                "Faster by: wall seconds of the row over those of gradestack, in the same round; the "
                "median."
            ),
            *failures(found),
        ],
        reach=[
            reached(
                f"end to end against inspect_ai score() on {options.records:,}",
                40,
                70,
                ratio(score, full),
                score,
                full,
            ),
            reached(
                "against deepeval ToolCorrectness.measure, streamed",
                5,
                8,
                ratio(measured, bare),
                measured,
                bare,
            ),
            reached(
                "against the bare letta-evals grader, streamed",
                1.2,
                2,
                ratio(streamed, bare),
                streamed,
                bare,
            ),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, records=RECORDS))

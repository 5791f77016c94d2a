"""Where does the time of a serial run go?

    python benchmarks/profile_run.py [--records N]

A statistical profile: the signal of a CPU timer notes the Python function at work, up to a thousand
times a second. What a function spends in C code it calls counts as its own. In contrast to a
tracing profile, functions that are called often are not made slower than others.
"""

from __future__ import annotations

import collections
import functools
import json
import signal
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import jobs
from frame import Options, Table, cell, child, failures, main, one_core, scratch, take_turns

INTERVAL = 0.001
TOP = 25


class Sampler:
    """Counts the functions found at work."""

    def __init__(self) -> None:
        self.own: collections.Counter[str] = collections.Counter()
        self.within: collections.Counter[str] = collections.Counter()
        """How often a function was somewhere on the stack."""
        self.samples = 0

    def take(self, _signal: int, frame: FrameType | None) -> None:
        """Note one moment."""
        self.samples += 1
        stack = set()
        if frame is not None:
            self.own[name_of(frame.f_code)] += 1
        while frame is not None:
            stack.add(name_of(frame.f_code))
            frame = frame.f_back
        self.within.update(stack)
        self.wait()

    def wait(self) -> None:
        """Set the timer for the next moment.

        Only once this one is noted, so that noting it is not measured.
        """
        signal.setitimer(signal.ITIMER_PROF, INTERVAL)

    def __enter__(self) -> Self:
        signal.signal(signal.SIGPROF, self.take)
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)


@functools.cache
def name_of(code: CodeType) -> str:
    """Return module and function; where a file lies is left out."""
    path = Path(code.co_filename).with_suffix("")
    for root in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")):
        if path.is_relative_to(root):
            return f"{path.relative_to(root).as_posix()}: {code.co_qualname}"
    return f"{'/'.join(path.parts[-2:])}: {code.co_qualname}"


def sampled(job: dict[str, Any]) -> dict[str, Any]:
    """Return a run's profile: the run of ``jobs.py`` with the sampler around the timed work."""
    jobs.pin(job.get("cores"))
    sampler, timed = Sampler(), jobs.timed

    def watched(work: Any) -> dict[str, Any]:
        with sampler:
            return timed(work)

    jobs.timed = watched
    found = jobs.gradestack(job)
    own = [[name, count, sampler.within[name]] for name, count in sampler.own.most_common(TOP)]
    return {**found, "samples": sampler.samples, "own": own}


def measure(options: Options) -> Table:
    """Return the table."""
    path = options.recording()

    def run(rows: bool) -> dict[str, Any]:
        with scratch(options.place) as out:
            job = {
                "path": path,
                "output": out / "run",
                "rows": rows,
                "metrics": jobs.RELIABLE,
                "cores": one_core(),
            }
            return child(job, script="profile_run.py")

    name = {False: "no rows", True: "results.jsonl"}
    found = take_turns({said: functools.partial(run, rows) for rows, said in name.items()}, 1)
    rows = []
    for said, runs in found.items():
        total = 0.0
        for place, (function, own, within) in enumerate(
            runs.rounds[0]["own"] if runs.rounds else (), 1
        ):
            samples = runs.rounds[0]["samples"]
            total += own / samples
            cells = [cell(own / samples, ".1%"), cell(total, ".1%"), cell(within / samples, ".1%")]
            rows.append([f"{said}: {place}", *cells, function])
    return Table(
        title="Where the time goes",
        columns=["run", "own", "so far", "with callees", "function"],
        rows=rows,
        notes=[
            (
                f"{options.records} records, engine serial, one core; the {TOP} functions with most "
                "own CPU time."
            ),
            "Own: the function's and that of the C code it calls.",
            *failures(found),
        ],
    )


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(sampled(json.loads(sys.argv[1]))))
        sys.exit(0)
    sys.exit(main(measure, __doc__, rounds=1))

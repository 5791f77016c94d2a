"""What does the kernel add to six graders?

    python benchmarks/dispatch.py [--records N] [--rounds N]

The kernel's own way of grading samples (in blocks, with statuses, exceptions, checked numbers, and
time per grader) against a plain list of the six bound ``grade`` methods, over the same samples in
memory, in turns in one process on one core.
First with built-in graders, then with six that return a constant, where nothing but the kernel's
part is left.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import jobs
from frame import (
    Options,
    Runs,
    Table,
    cell,
    child,
    failures,
    main,
    one_core,
    ratio,
    reached,
    take_turns,
)

from gradestack import Grade, Grader, Sample
from gradestack.grading.graders import Graders
from gradestack.grading.worker import LARGEST_BLOCK
from gradestack.suites.components import made_stage
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.tau_bench.grader import TauPartial

SAMPLES = 2_000
REPEATS = 5
BUILT_IN = (
    TauPartial(),
    TauPartial(name_weight=0.5, argument_weight=0.5),
    TauPartial(no_expected="skip"),
    DeepFabric(),
    DeepFabric(unknown_arguments="wrong"),
    DeepFabric(multi_turn=True),
)
_GRADE = Grade(score=1.0)


@attrs.frozen(kw_only=True)
class Constant(Grader):
    """Returns the same grade for every sample."""

    def grade(self, sample: Sample) -> Grade:
        """Return it."""
        return _GRADE


CONSTANT = tuple(Constant() for _ in BUILT_IN)
Pass = Callable[[], None]


def samples_of(path: Path, number: int) -> list[Sample]:
    """Return the first samples of a recording."""
    reader = JsonLines()
    with path.open("rb") as file:
        lines = list(itertools.islice(file, number))
    found = (
        reader.record(json.loads(line), file=path.name, ordinal=at) for at, line in enumerate(lines)
    )
    return [sample for sample in found if isinstance(sample, Sample)]


def ways(graders: Sequence[Grader], samples: list[Sample]) -> tuple[Pass, Pass]:
    """Return the plain list and the kernel, each over all samples once."""
    methods = [grader.grade for grader in graders]
    stages = tuple(
        made_stage("grader", f"grader {at}", grader, "documented")
        for at, grader in enumerate(graders)
    )
    block = Graders(stages, {stage.key: () for stage in stages}, explain=False, strict=False)

    def plain() -> None:
        for sample in samples:
            for grade in methods:
                grade(sample)

    def kernel() -> None:
        for start in range(0, len(samples), LARGEST_BLOCK):
            block.grade(samples[start : start + LARGEST_BLOCK])

    return plain, kernel


def compared(job: dict[str, Any]) -> dict[str, Any]:
    """Return microseconds of CPU time per sample: [plain, kernel] per round."""
    jobs.pin(job["cores"])
    samples = samples_of(Path(job["path"]), job["samples"])
    both = ways(CONSTANT if job["constant"] else BUILT_IN, samples)
    for each in both:
        each()
    rounds = []
    for number in range(job["rounds"]):
        taken = [0.0, 0.0]
        for repeat in range(REPEATS):
            for side in (0, 1) if (number + repeat) % 2 == 0 else (1, 0):
                started = time.process_time()
                both[side]()
                taken[side] += time.process_time() - started
        rounds.append([seconds / REPEATS / len(samples) * 1e6 for seconds in taken])
    return {"rounds": rounds}


def measure(options: Options) -> Table:
    """Return the table."""
    number = min(options.records, SAMPLES)
    path = options.recording(number)
    shared = {"path": path, "samples": number, "rounds": options.rounds, "cores": one_core()}
    kinds = {"six built-in graders": False, "six graders returning a constant": True}
    found = take_turns(
        {
            name: partial(child, {**shared, "constant": kind}, script="dispatch.py")
            for name, kind in kinds.items()
        },
        1,
    )
    rows, reach = [], []
    for name, runs in found.items():
        pairs = runs.rounds[0]["rounds"] if runs.rounds else []
        plain, kernel = (
            Runs([{"us": pair[side]} for pair in pairs], runs.failed) for side in (0, 1)
        )
        times = ratio(kernel, plain, "us")
        rows.append([name, cell(plain.median("us")), cell(kernel.median("us")), cell(times)])
        reach.append(
            reached(
                f"{name} against a list of six bound methods", 1.5, 1.1, times, runs, lower=True
            )
        )
    return Table(
        title="Six graders through the kernel",
        columns=["graders", "list, us", "kernel, us", "ratio"],
        rows=rows,
        notes=[
            f"{number} samples, {options.rounds} rounds of {REPEATS} passes; CPU time a sample.",
            *failures(found),
        ],
        reach=reach,
    )


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(compared(json.loads(sys.argv[1]))))
        sys.exit(0)
    sys.exit(main(measure, __doc__, rounds=7))

"""What the measured processes of all peers share: reading the recording, and the clock.

These files run in a peer's own virtual environment, which has orjson besides the peer. Records are
decoded with orjson, faster than most peers' own readers; the time counts reading, decoding,
building the peer's objects and grading, but no import.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Calls(NamedTuple):
    """A record as the peers get it.

    Calls are (name, arguments), with None for arguments that are not JSON.
    """

    number: int
    input: str
    answer: str
    expected: list[tuple[str, dict[str, Any]]]
    made: list[tuple[str, dict[str, Any] | None]]


def records(path: Path, limit: int) -> Iterator[Calls]:
    """Yield the records of a recording."""
    loads = importlib.import_module("orjson").loads

    def arguments(text: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = loads(text)
        except ValueError:
            return None
        return found

    with path.open("rb") as file:
        for number, line in enumerate(file):
            if number == limit:
                return
            record = loads(line)
            expected = [(call["name"], call["arguments"]) for call in record["expected"]["calls"]]
            functions = [call["function"] for call in record["predicted"]["calls"]]
            made = [(function["name"], arguments(function["arguments"])) for function in functions]
            yield Calls(number, record["input"], record["predicted"]["text"], expected, made)


def peak() -> float:
    """Return this process's peak resident memory in MB, 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = (
        status.read_text(encoding="ascii", errors="replace").splitlines() if status.exists() else []
    )
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def run(distribution: str, grade: Callable[[Path, int, dict[str, Any]], float]) -> int:
    """Time ``grade(path, limit, job)``, which returns the mean score, after a first go over a few
    records.
    """
    job = json.loads(sys.argv[1])
    if job.get("cores") and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cores"])
    path, number = Path(job["path"]), int(job["records"])
    grade(path, min(40, number), job)
    cpu, started = time.process_time(), time.perf_counter()
    mean = grade(path, number, job)
    wall, spent = time.perf_counter() - started, time.process_time() - cpu
    version = importlib.metadata.version(distribution)
    print(
        json.dumps(
            {
                "n": number,
                "wall": wall,
                "cpu": spent,
                "peak": peak(),
                "mean": mean,
                "version": version,
            }
        )
    )
    return 0

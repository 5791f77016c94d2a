"""Recognising results of tau2-bench: whole files, directories, and single simulations."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from gradestack.jsonio import open_regular

RESULTS = "results.json"
SIMULATIONS = "simulations"

_INFO = (b'"environment_info"', b'"agent_info"')
_RUN = (b'"task_id"', b'"termination_reason"')
_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(\w+)"\s*:')
_FIRST_KEYS = frozenset({b"timestamp", b"info", b"tasks", b"simulations", b"simulation_index", b"format_version"})
_HEAD = 64 * 1024
_DECODED = 1024 * 1024
"""What is read of a file whose first members are longer than its head: a policy, or tools, stand there."""


def confidence(path: Path, head: bytes) -> float:
    """Return how sure it is that a path holds results of tau2-bench, or one simulation of them."""
    if path.is_dir():
        return 0.95 if _is_run(path) else 0.0
    if is_results(path, head):
        return 0.95
    return 0.9 if is_simulation(head) else 0.0


def is_results(path: Path, head: bytes) -> bool:
    """Return whether a file begins as an object with what the benchmark says of a run, or with simulations."""
    opening = _OPENING.match(head)
    if opening is None or opening[1] not in _FIRST_KEYS:
        return False
    if _speaks_of_a_run(head):
        return True
    if len(head) < _HEAD:
        return False
    with suppress(OSError), path.open("rb") as file:  # reading it will say so
        return _speaks_of_a_run(file.read(_DECODED))
    return False


def is_simulation(head: bytes) -> bool:
    """Return whether a file begins as one simulation: a file of the directory form."""
    opening = _OPENING.match(head)
    return opening is not None and opening[1] in {b"id", b"task_id"} and all(key in head for key in _RUN)


def _speaks_of_a_run(text: bytes) -> bool:
    info = all(key in text for key in _INFO)
    return info or (b'"simulations"' in text and all(key in text for key in _RUN))


def _is_run(directory: Path) -> bool:
    """Return whether a directory holds results.json of the benchmark, with its simulations beside it or in it."""
    results = directory / RESULTS
    with suppress(OSError), open_regular(results) as file:
        return is_results(results, file.read(_HEAD))
    return False

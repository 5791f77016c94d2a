"""Earlier runs of a suite: which can be compared with, and which is the one before."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradestack.errors import DataError
from gradestack.report import Report, header_of, is_run, load_report


def flaw_of(report: Report) -> str:
    """Return why nothing can be compared with a run; "" where it can."""
    incomplete = report.summary.get("incomplete")
    why = incomplete or report.all_failed
    if why:
        return str(why)
    return "" if report.has_rows else "the run keeps no rows (rows: none)"


def is_baseline(report: Report, suite: object, *, also_failed: bool) -> bool:
    """Return whether a run is of a suite, can be compared with, and its gates passed."""
    is_wanted = also_failed or report.passed is not False
    suite_name = report.header.get("suite_name")
    is_of_suite = suite_name == suite
    return is_wanted and is_of_suite and not flaw_of(report)


def age_of(header: Mapping[str, Any], path: Path) -> tuple[str, str]:
    """Return the key that sorts runs from the oldest to the newest."""
    timestamp = header.get("timestamp")
    return str(timestamp), path.name


def find_previous(path: Path) -> tuple[Path, Path]:
    """Return the run before the newest one, and the newest one at or below a directory.

    The run before is of the same suite, and its gates passed. Beside a run's own directory it is
    looked for in the folder of that.

    Raises:
        DataError: There is no run, or none before.
    """
    folder = path.absolute().parent if is_run(path) else path
    headers = {run: header_of(run) for run in _runs_below(folder)}
    newest_first = sorted(headers, key=lambda run: age_of(headers[run], run), reverse=True)
    if not newest_first:
        raise DataError(f"{path}: no finished run in it or below")
    latest = path.absolute() if is_run(path) else newest_first[0]
    suite = headers[latest].get("suite_name")
    position = newest_first.index(latest)
    for run in newest_first[position + 1 :]:
        if headers[run].get("suite_name") != suite:
            continue
        with suppress(DataError):  # damaged: no run to compare with
            if is_baseline(load_report(run), suite, also_failed=False):
                return run, latest
    what = no_earlier_run(str(suite), has_passed=True)
    raise DataError(f"{latest}: {what} in {folder}; name both runs: compare BEFORE AFTER")


def no_earlier_run(suite: str, *, has_passed: bool) -> str:
    """Return the message for a suite without an earlier run.

    ``has_passed``: only runs whose gates passed were looked for.
    """
    run = f"no earlier complete run of the suite {suite!r}"
    if has_passed:
        return f"{run} whose gates passed"
    return run


def _runs_below(folder: Path) -> Iterator[Path]:
    """Yield the finished runs in a folder and below; what is inside a run is part of it."""
    for directory, folders, _ in os.walk(folder):
        path = Path(directory)
        if is_run(path):
            folders.clear()
            yield path
        folders[:] = [name for name in folders if not name.startswith(".")]

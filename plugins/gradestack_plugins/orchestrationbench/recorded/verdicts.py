"""Verdicts of a judge on argument values, read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from gradestack import JSON, DataError
from gradestack.jsonio import JsonProblem, compact, loads

RUN_PREFIX = "run #"


@attrs.frozen
class Verdict:
    """A judge's counts for the leftover values of one argument."""

    tp: int
    fp: int
    fn: int


Verdicts = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Verdict]]]]
"""file -> trial -> step -> argument -> verdict."""


def read_verdicts(path: Path) -> Verdicts:
    """Return the verdicts of a JSON file.

    Form: ``{FILE: {TRIAL: {STEP: {ARGUMENT: {"tp_count": 1, "fp_count": 0, "fn_count": 0}}}}}``. FILE is the path
    relative to the input directory or the bare file name, TRIAL the run's name (``run #2``) or its number. A count
    left out is 0; without any count the argument stays undecided, as an answer of a judge that says nothing.

    Raises:
        DataError: The file cannot be read, or something in it is not of this form; every such place is listed.
    """
    try:
        data = loads(path.read_bytes())
    except (OSError, JsonProblem) as error:
        msg = f"verdicts {path}: {error}"
        raise DataError(msg) from error
    problems: list[str] = []
    verdicts = _level(data, "", 3, problems)
    if problems:
        msg = f"verdicts {path}: expected file -> trial -> step -> argument -> counts"
        raise DataError(msg, *problems)
    return verdicts  # type: ignore[no-any-return] # checked level by level


def _level(data: JSON, where: str, below: int, problems: list[str]) -> JSON:
    if not isinstance(data, Mapping):
        problems.append(f"{where or '/'}: expected an object, found {compact(data)[:60]}")
        return {}
    if below:
        return {key: _level(value, f"{where}/{key}", below - 1, problems) for key, value in data.items()}
    found = {}
    for argument, counts in data.items():
        if counts == {}:
            continue
        verdict = _verdict(counts)
        if verdict is None:
            problems.append(f"{where}/{argument}: expected an object of tp_count, fp_count and fn_count, none negative")
        else:
            found[argument] = verdict
    return found


def _verdict(counts: JSON) -> Verdict | None:
    if not isinstance(counts, Mapping):
        return None
    numbers = [counts.get(name, 0) for name in ("tp_count", "fp_count", "fn_count")]
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in numbers):
        return None
    return Verdict(*numbers)


def verdicts_for(verdicts: Verdicts, relative: str, trial: str) -> Mapping[str, Mapping[str, Verdict]]:
    """Return what was recorded for one trial, by relative path or bare file name, by run name or number."""
    trials = verdicts.get(relative) or verdicts.get(relative.rpartition("/")[2]) or {}
    return trials.get(trial) or trials.get(trial.removeprefix(RUN_PREFIX)) or {}

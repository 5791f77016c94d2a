"""Runs that gates compare with: found before anything is graded, compared when it is."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from gradestack.errors import ConfigError, DataError
from gradestack.estimates.interval import t_quantile
from gradestack.gates.rules import BaselineGate, OnUndecided
from gradestack.jsonio.files import open_regular
from gradestack.jsonio.values import dumps, loads
from gradestack.model import JSON
from gradestack.report import Report, load_report
from gradestack.run_files import ROWS, is_run
from gradestack.rundir.header import component_entry
from gradestack.suites.paths import local_path_of
from gradestack.suites.spec import Suite

if TYPE_CHECKING:
    from gradestack.comparison.paired import Difference
    from gradestack.comparison.sides import Side

LATEST, LATEST_ANY = "latest", "latest_any"
_APART = "the run cannot be compared with its baseline"


class Baselines(msgspec.Struct):
    """The runs that gates compare with, by what gates call them; None where there is no earlier one."""

    reports: dict[str, Report | None] = msgspec.field(default_factory=dict)
    _sides: dict[str, list[Side]] = msgspec.field(default_factory=dict)

    def sides(self, name: str) -> list[Side]:
        """Return the models of a baseline; its rows are read once."""
        from gradestack.comparison.sides import sides_of  # noqa: PLC0415 - for gates with a baseline alone

        report = self.reports[name]
        if name not in self._sides and report is not None:
            self._sides[name] = sides_of(report, name)
        return self._sides[name]


def find_baselines(suite: Suite, place: Path | None) -> Baselines:
    """Return the runs a suite's gates compare with."""
    found: dict[str, Report | None] = {}
    for gate in suite.gates:
        if isinstance(gate, BaselineGate) and gate.baseline not in found:
            latest = gate.baseline in (LATEST, LATEST_ANY)
            found[gate.baseline] = _latest(gate.baseline, suite, place) if latest else _named(gate.baseline, suite)
    return Baselines(found)


def _unusable(report: Report) -> str | None:
    """Return why a run is no baseline."""
    why = next((str(text) for key in ("incomplete", "all_failed") if (text := report.summary.get(key))), None)
    return why if why or report.has_rows else "the run keeps no rows (rows: none)"


def _named(baseline: str, suite: Suite) -> Report:
    base = suite.origin.parent if suite.origin is not None else None
    advice = "name another run directory, or latest"
    try:
        report = load_report(local_path_of(baseline, base))
    except ValueError as error:
        raise ConfigError(f"the baseline cannot be used: {error}", advice) from error
    except DataError as error:
        raise DataError(f"the baseline cannot be used: {error.args[0]}", advice) from error
    if why := _unusable(report):
        raise DataError(f"the baseline cannot be used: {baseline}: {why}")
    return report


def _latest(baseline: str, suite: Suite, place: Path | None) -> Report | None:
    """Return the newest complete run of the suite here or beside this one; ``latest``: one whose gates passed."""
    runs = []
    folder = None if place is None else place.absolute().parent
    for path in sorted(folder.iterdir()) if folder is not None and folder.is_dir() else ():
        if path.is_symlink() or path.name.startswith(".") or not is_run(path):
            continue
        with suppress(DataError):  # damaged, or being removed: no run to compare with
            report = load_report(path)
            wanted = baseline == LATEST_ANY or report.summary.get("gates_passed") is not False
            if wanted and report.header.get("suite_name") == suite.name and not _unusable(report):
                runs.append((str(report.header.get("timestamp")), path.name, report))
    return max(runs, key=lambda run: run[:2])[2] if runs else None


def digests(baselines: Baselines) -> dict[str, Any]:
    """Return what header.json says of the runs that were compared with."""
    found = []
    for name, report in baselines.reports.items():
        if report is None or report.path is None:
            found.append({"baseline": name, "path": None, "sha256": None})
            continue
        with open_regular(report.path / ROWS) as rows:
            checksum = hashlib.file_digest(rows, "sha256").hexdigest()
        found.append({"baseline": name, "path": str(report.path), "sha256": checksum})
    return {"baselines": found} if found else {}


def this_run(suite: Suite, recorded: Report) -> list[Side]:
    """Return the models of a run that is not finished yet."""
    from gradestack.comparison.sides import sides_of  # noqa: PLC0415

    graders = loads(dumps([component_entry(stage) for stage in suite.graders]))
    return sides_of(attrs.evolve(recorded, header={"components": graders}), "this run")


def baseline_verdict(
    gate: BaselineGate, suite: Suite, now: Callable[[], list[Side]], baselines: Baselines
) -> dict[str, JSON]:
    """Return the verdict of a gate that compares with an earlier run; of several models all must hold."""
    names = ("metric_key", "baseline", "not_worse_than", "require", "max_flips", "confidence", "on_undecided")
    rule = {"kind": gate.kind, "text": gate.text, **{name: getattr(gate, name) for name in names}}
    if baselines.reports.get(gate.baseline) is None:
        whose = " whose gates passed" if gate.baseline == LATEST else ""
        why = f"no earlier complete run of {suite.name}{whose} to compare with"
        return {**rule, "actual": None, "passed": True, "outcome": "no_data", "reason": why}
    try:
        pairs = _pairs(baselines.sides(gate.baseline), now())
    except DataError as error:  # gates match by id alone: without what the command compare advises
        raise DataError(_APART, str(error.args[0])) from error
    found = {b.model or "none": _compared(gate, a, b) for a, b in pairs}
    if len(found) == 1:
        return {**rule, **next(iter(found.values()))}
    worst = min(found.values(), key=lambda each: (each["passed"], each["sure"], each["actual"] or 0))
    return {**rule, **worst, "per": "model", "groups": {name: {**rule, **each} for name, each in found.items()}}


def _pairs(before: list[Side], now: list[Side]) -> list[tuple[Side, Side]]:
    """Return which models are compared: the only ones, else those of one name."""
    if len(before) == len(now) == 1:
        return [(before[0], now[0])]
    known = {side.model: side for side in before}
    lacking = [side.model or "(unnamed)" for side in now if side.model not in known]
    if lacking:
        raise DataError(f"the run cannot be compared with its baseline, which has no model {', '.join(lacking)}")
    return [(known[side.model], side) for side in now]


def _compared(gate: BaselineGate, before: Side, now: Side) -> dict[str, Any]:
    from gradestack.comparison.compared import flips  # noqa: PLC0415
    from gradestack.comparison.paired import difference, tasks_needed  # noqa: PLC0415
    from gradestack.comparison.sides import Matched, bounded, differing  # noqa: PLC0415

    key = gate.metric_key or ""
    problems = differing(before, now, only=key)
    if key not in before.graders:
        problems.append(f"{before.name} has no grader {key!r}")
    if problems:
        raise DataError(_APART, *problems)
    matched, share = Matched.scores(before, now, key, "zero"), bounded(before, now, key, "zero")
    known = difference(matched.differences, bounded=share)
    bounds = _bounds(known, gate.confidence, share=share)
    flipped = flips(before, now, key, "zero")
    better = now.declared(key)["better_is"]
    sign = -1.0 if better == "lower" else 1.0
    gains = sorted(sign * end for end in bounds or (-math.inf, math.inf))
    gain = None if known.difference is None else sign * known.difference
    same = known.tasks > 0 and not matched.only_a and not any(matched.differences)
    judged = better != "neither" or any(passed is not None for passed in now.passes(key, "skip"))
    verdicts = list(_conditions(gate, gains, gain, flipped["broken"] if judged else None, same=same))
    outcome = min((word for word, _ in verdicts), key=("failed", "undecided", "passed").index)
    on_undecided = gate.on_undecided or ("fail" if ("undecided", "fail") in verdicts else "warn")
    margin = known.difference if gate.not_worse_than is None else gate.not_worse_than
    spread = None if known.stderr is None else known.stderr * math.sqrt(known.tasks)
    needed = tasks_needed(spread or 0.0, margin or 0.0) if outcome == "undecided" else None
    reason = known.reason or (f"{needed} tasks would be needed" if needed else "")
    if not judged and gate.max_flips is not None:
        reason = f"{key} says neither which runs pass nor which scores are better"
    return {
        "actual": known.difference,
        "interval": _interval(known),
        "bounds": bounds,
        "tasks": known.tasks,
        "only_baseline": len(matched.only_a),
        "only_this": len(matched.only_b),
        "flips": {"fixed": flipped["fixed"], "broken": flipped["broken"]},
        "tasks_needed": needed,
        "sure": outcome != "undecided",
        "passed": outcome == "passed" or (outcome == "undecided" and on_undecided != "fail"),
        "on_undecided": on_undecided,
        "outcome": outcome,
        **({"reason": reason} if reason and outcome == "undecided" else {}),
    }


def _interval(known: Difference) -> dict[str, JSON]:
    if known.low is None or known.high is None:
        return {"reason": known.reason}
    ends = {"low": known.low, "high": known.high, "confidence": 0.95}
    return {**ends, "n": known.tasks, "clusters": known.tasks, "method": "paired_t"}


def _bounds(known: Difference, confidence: float, *, share: bool) -> list[float] | None:
    """Return the one-sided bounds of a difference, of shares within [-1, 1]; None where it has no standard error."""
    if known.difference is None or known.stderr is None or known.low is None:
        return None
    q = t_quantile(confidence, known.tasks - 1)
    half = q * known.stderr if known.better or known.worse else q * q / (known.tasks + q * q)
    low, high = known.difference - half, known.difference + half
    return [max(-1.0, low), min(1.0, high)] if share else [low, high]


def _conditions(
    gate: BaselineGate, gains: list[float], gain: float | None, broken: int | None, *, same: bool
) -> Iterator[tuple[str, OnUndecided]]:
    """Yield the outcome of each rule, and what it does by default where it is undecided.

    A loss that lies within the margin, though its bound does not, is a warning: an unchanged agent must not fail.
    """
    low, high = gains
    if (margin := gate.not_worse_than) is not None:
        word = "passed" if same or low > -margin else "failed" if high < -margin else "undecided"
        yield word, "fail" if gain is None or round(gain, 12) < -margin else "warn"
    if gate.require is not None:
        yield "passed" if low > 0 else "failed" if high < 0 else "undecided", "fail"
    if gate.max_flips is not None:
        yield "undecided" if broken is None else "passed" if broken <= gate.max_flips else "failed", "fail"

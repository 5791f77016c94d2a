"""Runs that gates compare with: found before anything is graded, compared when it is."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from gradestack.copies.files import Folder, local_path_of
from gradestack.errors import ConfigError, DataError
from gradestack.gates.rules import PERCENT, BaselineGate, NoFigure, OnUndecided
from gradestack.jsonio.values import dumps, loads
from gradestack.model import replace
from gradestack.regular_files import open_regular
from gradestack.report import Report, is_run, load_report
from gradestack.rows.packed import rows_file
from gradestack.rundir.header import component_entry
from gradestack.suites.spec import Suite

if TYPE_CHECKING:
    from gradestack.comparison.sides import Side

LATEST, LATEST_ANY = "latest", "latest_any"
_APART = "the run cannot be compared with its baseline"


class Baselines:
    """The runs that the gates of a suite compare with, by what gates call them.

    None where there is no earlier one.
    """

    def __init__(self, suite: Suite, place: Path | None) -> None:
        gates = [gate for gate in suite.gates if isinstance(gate, BaselineGate)]
        self._reports = {
            name: _baseline(name, suite, place)
            for name in dict.fromkeys(each.baseline for each in gates)
        }
        figures = [gate.figure[:2] for gate in gates if gate.figure is not None]
        self._metrics = [each for each in suite.metrics if (each.of, each.stage.key) in figures]
        self._sides: dict[str, list[Side]] = {}  # rows are read once

    def _sides_of(self, report: Report, name: str) -> list[Side]:
        # for gates with a baseline alone
        from gradestack.comparison.figures import with_labels  # noqa: PLC0415
        from gradestack.comparison.sides import sides_of  # noqa: PLC0415

        metrics = [with_labels(each, report.aggregates.get(each.of, {})) for each in self._metrics]
        return sides_of(report, name, metrics=metrics)

    def this_run(self, suite: Suite, recorded: Report, aggregates: Mapping[str, Any]) -> list[Side]:
        """Return the models of a run that is not finished yet."""
        stages = [(stage, None) for stage in suite.graders] + [
            (each.stage, each.of) for each in self._metrics
        ]
        components = loads(dumps([component_entry(*each) for each in stages]))
        outcome = {"grader": suite.success.grader if suite.success is not None else None}
        summary = {"outcome": outcome, "metrics": {"aggregates": aggregates}}
        now = attrs.evolve(recorded, header={"components": components}, summary=summary)
        return self._sides_of(now, "this run")

    def digests(self) -> dict[str, Any]:
        """Return what header.json says of the runs that were compared with."""
        found = []
        for name, report in self._reports.items():
            path = checksum = None
            if report is not None and report.path is not None:
                path = str(report.path)
                with open_regular(rows_file(report.path)) as rows:
                    checksum = hashlib.file_digest(rows, "sha256").hexdigest()
            found.append({"baseline": name, "path": path, "sha256": checksum})
        return {"baselines": found} if found else {}

    def verdict(
        self, gate: BaselineGate, suite: Suite, now: Callable[[], list[Side]]
    ) -> dict[str, Any]:
        """Return the verdict of a gate that compares with an earlier run.

        Of several models all must hold.
        """
        if gate.figure is None and gate.metric_key is None:  # the rate of the outcome
            key = suite.main if suite.success is None else suite.success.grader
            gate = replace(gate, metric_key=key)
        what = {"metric": gate.metric} if gate.figure is None else {"figure": gate.name}
        rule: dict[str, Any] = {
            "kind": gate.kind,
            "text": gate.text,
            "metric_key": gate.grader,
            **what,
        }
        names = ("baseline", "not_worse_than", "require", "max_flips", "confidence", "on_undecided")
        rule |= {name: getattr(gate, name) for name in names}
        if (before := self._reports[gate.baseline]) is None:
            whose = " whose gates passed" if gate.baseline == LATEST else ""
            why = f"no earlier complete run of {suite.name}{whose} to compare with"
            return {**rule, "actual": None, "passed": True, "outcome": "no_data", "reason": why}
        try:
            if gate.baseline not in self._sides:
                self._sides[gate.baseline] = self._sides_of(before, gate.baseline)
            pairs = _pairs(self._sides[gate.baseline], now())
        except (
            DataError
        ) as error:  # gates match by id alone: without what the command compare advises
            raise DataError(_APART, str(error.args[0])) from error
        found = {b.model or "none": _verdict(gate, a, b) for a, b in pairs}
        worst = min(
            found.values(), key=lambda each: (each["passed"], each["sure"], each["actual"] or 0)
        )
        groups = {
            "per": "model",
            "groups": {name: {**rule, **each} for name, each in found.items()},
        }
        return {**rule, **worst, **(groups if len(found) > 1 else {})}


def _baseline(name: str, suite: Suite, place: Path | None) -> Report | None:
    """Return the run a gate calls so, or for ``latest`` the newest one beside this one whose gates
    passed, if any.
    """
    if name in (LATEST, LATEST_ANY):
        return _latest(suite, place, also_failed=name == LATEST_ANY)
    advice = "name another run directory, or latest"
    try:
        # where it may lie was decided when the suite was read
        folder = None if suite.origin is None else Folder(suite.origin.parent, is_open=True)
        report = load_report(local_path_of(name, folder))
    except ConfigError as error:
        raise ConfigError(f"the baseline cannot be used: {error}", advice) from error
    except DataError as error:
        raise DataError(f"the baseline cannot be used: {error.args[0]}", advice) from error
    if why := _unusable(report):
        raise DataError(f"the baseline cannot be used: {name}: {why}")
    return report


def _latest(suite: Suite, place: Path | None, *, also_failed: bool) -> Report | None:
    runs = []
    folder = None if place is None else place.absolute().parent
    for path in sorted(folder.iterdir()) if folder is not None and folder.is_dir() else ():
        if path.is_symlink() or path.name.startswith(".") or not is_run(path):
            continue
        with suppress(DataError):  # damaged, or being removed: no run to compare with
            report = load_report(path)
            wanted = also_failed or report.summary.get("gates_passed") is not False
            if wanted and report.header.get("suite_name") == suite.name and not _unusable(report):
                runs.append((str(report.header.get("timestamp")), path.name, report))
    return max(runs, key=lambda run: run[:2])[2] if runs else None


def _unusable(report: Report) -> str | None:
    why = next(
        (str(text) for key in ("incomplete", "all_failed") if (text := report.summary.get(key))),
        None,
    )
    return why if why or report.has_rows else "the run keeps no rows (rows: none)"


def _pairs(before: list[Side], now: list[Side]) -> list[tuple[Side, Side]]:
    """Return which models are compared: the only ones, else those of one name."""
    if len(before) == len(now) == 1:
        return [(before[0], now[0])]
    known = {side.model: side for side in before}
    if lacking := [side.model or "(unnamed)" for side in now if side.model not in known]:
        raise DataError(f"{_APART}, which has no model {', '.join(lacking)}")
    return [(known[side.model], side) for side in now]


def _verdict(gate: BaselineGate, before: Side, now: Side) -> dict[str, Any]:
    from gradestack.comparison.changes import flips  # noqa: PLC0415
    from gradestack.comparison.figures import Aggregators, figure_of  # noqa: PLC0415
    from gradestack.comparison.paired import bounds_of_no_change, tasks_needed  # noqa: PLC0415
    from gradestack.comparison.rows import (  # noqa: PLC0415
        Rules,
        figure_rows,
        mean_row,
        write_decision,
    )
    from gradestack.comparison.sides import differing  # noqa: PLC0415

    key, percent = gate.grader, gate.metric in PERCENT
    problems = [each.text for each in differing(before, now, only=key) if each.refuses]
    problems += [] if key in before.graders else [f"{before.name} has no grader {key!r}"]
    if problems:
        raise DataError(_APART, *problems)
    # a one-sided bound at a confidence is an end of the two-sided interval at twice that less 1
    rules = Rules(confidence=2 * gate.confidence - 1)
    try:
        if gate.figure is None:
            tested = mean_row(before, now, key, rules, rate=percent)
        else:
            figure = figure_of(gate.name, [now, before], Aggregators(now.report.registry))
            rules = replace(rules, figures=[figure])
            tested = figure_rows(before, now, rules)[figure.path]
    except NoFigure as error:  # as other gates on a path that leads to no number
        return {
            "actual": None,
            "passed": False,
            "sure": True,
            "outcome": "no_data",
            "reason": str(error),
        }
    except ConfigError as error:
        raise DataError(_APART, str(error)) from error
    row = write_decision(tested, rules.alpha)
    if row["verdict"] == "same":
        row["interval"]["ends"] = bounds_of_no_change(row["tasks"], rules.confidence)
        row["ci95"] = bounds_of_no_change(row["tasks"], 0.95)
    scale, sign = 100.0 if percent else 1.0, -1.0 if row["better_is"] == "lower" else 1.0
    difference, bounds, flipped = (
        row["difference"],
        row["interval"]["ends"],
        flips(before, now, key, "zero"),
    )
    margin = None if gate.not_worse_than is None else gate.not_worse_than / scale
    gains = sorted(sign * end for end in bounds or (-math.inf, math.inf))
    gain = None if difference is None else sign * difference
    same = row["verdict"] == "same" and not row["only_a_count"]
    judged = now.declared(key)["better_is"] != "neither" or any(
        each is not None for each in now.passes(key, "skip")
    )
    verdicts = list(
        _conditions(gate, margin, gains, gain, flipped["broken"] if judged else None, same=same)
    )
    outcome = min((word for word, _ in verdicts), key=("failed", "undecided", "passed").index)
    on_undecided = gate.on_undecided or ("fail" if ("undecided", "fail") in verdicts else "warn")
    needed, n, ends = None, row["tasks"], row["ci95"]
    if outcome == "undecided":
        # Tasks that show the margin; where so many were compared, how far it was from lost or met
        spread = (row["stderr"] or 0.0) * math.sqrt(n)
        needed = tasks_needed(spread, margin or 0.0)
        if needed is None or needed <= n:
            needed = tasks_needed(spread, (margin or 0.0) + (gain or 0.0))
    known = {"confidence": 0.95, "n": n, "clusters": n, "method": "paired_t"}
    why = row["interval"]["reason"]
    reason = why or (f"{needed:,} tasks would be needed" if needed else "")
    if not judged and gate.max_flips is not None:
        reason = f"{key} says neither which runs pass nor which scores are better"
    return {
        "actual": None if difference is None else scale * difference,
        "interval": {"reason": why} if ends is None else {"low": ends[0], "high": ends[1], **known},
        "bounds": bounds,
        "tasks": row["tasks"],
        "only_baseline": row["only_a_count"],
        "only_this": row["only_b_count"],
        "flips": {"fixed": flipped["fixed"], "broken": flipped["broken"]},
        "tasks_needed": needed,
        "sure": outcome != "undecided",
        "passed": outcome == "passed" or (outcome == "undecided" and on_undecided != "fail"),
        "on_undecided": on_undecided,
        "outcome": outcome,
        **({"reason": reason} if reason and outcome == "undecided" else {}),
    }


def _conditions(
    gate: BaselineGate,
    margin: float | None,
    gains: list[float],
    gain: float | None,
    broken: int | None,
    *,
    same: bool,
) -> Iterator[tuple[str, OnUndecided]]:
    """Yield each rule's outcome, and what it does where undecided.

    A loss within the margin is a warning.
    """
    low, high = gains
    if margin is not None:
        word = "passed" if same or low > -margin else "failed" if high < -margin else "undecided"
        yield word, "fail" if gain is None or round(gain, 12) < -margin else "warn"
    if gate.require is not None:
        yield "passed" if low > 0 else "failed" if high < 0 else "undecided", "fail"
    if gate.max_flips is not None:
        yield (
            "undecided" if broken is None else "passed" if broken <= gate.max_flips else "failed",
            "fail",
        )

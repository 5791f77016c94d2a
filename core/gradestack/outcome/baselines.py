"""Runs that gates compare with: found before anything is graded, compared when it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from gradestack.copies.files import Folder, local_path_of
from gradestack.errors import ConfigError, DataError
from gradestack.gates.paths import NoFigure
from gradestack.gates.rules import BaselineGate, OnUndecided
from gradestack.gates.verdicts import Decision, Flips, Verdict, begin_verdict
from gradestack.jsonio.values import dumps, loads
from gradestack.model import replace
from gradestack.outcome.earlier import age_of, flaw_of, is_baseline, no_earlier_run
from gradestack.regular_files import checksum
from gradestack.report import Report, is_run, load_report
from gradestack.rows.packed import rows_file
from gradestack.rundir.header import component_entry
from gradestack.suites.spec import Suite

if TYPE_CHECKING:
    from gradestack.comparison.families import Row
    from gradestack.comparison.sides import Side

LATEST, LATEST_ANY = "latest", "latest_any"
_UNLIKE = "the run cannot be compared with its baseline"
_WORST_FIRST: tuple[Decision, ...] = ("failed", "undecided", "passed")


class Baselines:
    """The runs that the gates of a suite compare with, by what gates call them.

    None where there is no earlier one.
    """

    def __init__(self, suite: Suite, out: Path | None) -> None:
        """Find the reports that baseline gates name and the metrics that they compare."""
        self._reports: dict[str, Report | None] = {}
        figures = set()
        for gate in suite.gates:
            if not isinstance(gate, BaselineGate):
                continue
            name = gate.baseline
            if name not in self._reports:
                self._reports[name] = _find_baseline(name, suite, out)
            if gate.figure is not None:
                figures.add(gate.figure[:2])
        self._metrics = [
            metric for metric in suite.metrics if (metric.of, metric.stage.key) in figures
        ]
        self._sides: dict[str, list[Side]] = {}  # rows are read once

    def _sides_of(self, report: Report, name: str) -> list[Side]:
        # for gates with a baseline alone
        from gradestack.comparison.figures import with_labels  # noqa: PLC0415
        from gradestack.comparison.sides import sides_of  # noqa: PLC0415

        computed = report.aggregates
        metrics = [with_labels(metric, computed.get(metric.of, {})) for metric in self._metrics]
        return sides_of(report, name, metrics=metrics)

    def this_run(self, suite: Suite, recorded: Report, aggregates: Mapping[str, Any]) -> list[Side]:
        """Return the models of a run that is not finished yet."""
        entries = [component_entry(stage, None) for stage in suite.graders]
        for metric in self._metrics:
            entries.append(component_entry(metric.stage, metric.of))
        grader = None if suite.success is None else suite.success.grader
        outcome = {"grader": grader}
        summary = {"outcome": outcome, "metrics": {"aggregates": aggregates}}
        header = {"components": loads(dumps(entries))}
        now = attrs.evolve(recorded, header=header, summary=summary)
        return self._sides_of(now, "this run")

    def digests(self) -> dict[str, Any]:
        """Return the entry of header.json about the runs that were compared with."""
        entries = []
        for name, report in self._reports.items():
            path = digest = None
            if report is not None and report.path is not None:
                path = str(report.path)
                digest = checksum(rows_file(report.path))
            entries.append({"baseline": name, "path": path, "sha256": digest})
        return {"baselines": entries} if entries else {}

    def verdict(
        self, gate: BaselineGate, suite: Suite, read_sides: Callable[[], list[Side]]
    ) -> Verdict:
        """Return the verdict of a gate that compares with an earlier run.

        It must hold for each of several models.

        Args:
            gate: The gate.
            suite: What is evaluated.
            read_sides: Returns the models of this run.
        """
        report = self._reports[gate.baseline]
        if report is None:
            run = no_earlier_run(suite.name, has_passed=gate.baseline == LATEST)
            verdict = begin_verdict(gate, metric_key=gate.grader)
            verdict.conclude_without_data("pass", f"{run} to compare with")
            return verdict
        try:
            name = gate.baseline
            if name not in self._sides:
                self._sides[name] = self._sides_of(report, name)
            side = self._sides[name]
            pairs = _pair_models(side, read_sides())
        except DataError as error:  # gates match by id alone: without the advice of compare
            message = str(error.args[0])
            raise DataError(_UNLIKE, message) from error
        verdicts = {now.model or "none": _judge(gate, before, now) for before, now in pairs}
        worst = min(verdicts.values(), key=_rank)
        if len(verdicts) == 1:
            return worst
        return replace(worst, per="model", groups=verdicts)


def _rank(verdict: Verdict) -> tuple[bool, bool]:
    """Return a key that sorts the worst verdict first."""
    return verdict.passed, verdict.sure is True


def _find_baseline(name: str, suite: Suite, out: Path | None) -> Report | None:
    """Load the report that a gate names as its baseline.

    For ``latest`` it is the newest run beside this one whose gates passed, if there is any.
    """
    if name in (LATEST, LATEST_ANY):
        return _find_latest(suite, out, also_failed=name == LATEST_ANY)
    advice = "name another report directory, or latest"
    try:
        # where it may lie was decided when the suite was read
        folder = None
        if suite.origin is not None:
            folder = Folder(suite.origin.parent, is_open=True)
        report = load_report(local_path_of(name, folder))
    except (ConfigError, DataError) as error:
        problem = f"the baseline cannot be used: {error.args[0]}"
        raise type(error)(problem, advice) from error
    why = flaw_of(report)
    if why:
        raise DataError(f"the baseline cannot be used: {name}: {why}")
    return report


def _find_latest(suite: Suite, out: Path | None, *, also_failed: bool) -> Report | None:
    """Return the newest run of the suite in the folder of this one, if any."""
    folder = None if out is None else out.absolute().parent
    if folder is None or not folder.is_dir():
        return None
    runs = {}
    for path in folder.iterdir():
        is_hidden = path.is_symlink() or path.name.startswith(".")
        if is_hidden or not is_run(path):
            continue
        with suppress(DataError):  # damaged, or being removed: no run to compare with
            report = load_report(path)
            if is_baseline(report, suite.name, also_failed=also_failed):
                runs[age_of(report.header, path)] = report
    if runs:
        return runs[max(runs)]
    return None


def _pair_models(before: list[Side], now: list[Side]) -> list[tuple[Side, Side]]:
    """Pair the models of two runs by name; a single model on each side needs no common name."""
    if len(before) == len(now) == 1:
        return [(before[0], now[0])]
    known = {side.model: side for side in before}
    lacking = [side.model or "unnamed" for side in now if side.model not in known]
    if lacking:
        raise DataError(f"{_UNLIKE}, which has no model {', '.join(lacking)}")
    return [(known[side.model], side) for side in now]


def _judge(gate: BaselineGate, before: Side, now: Side) -> Verdict:
    """Return the verdict of a baseline gate on one model: its runs now against those before.

    The gate has up to three conditions; the worst of them is the verdict.
    """
    from gradestack.comparison.changes import flips  # noqa: PLC0415

    key = gate.grader
    verdict = begin_verdict(gate, metric_key=key)
    try:
        row = _compare(gate, before, now)
    except NoFigure as error:  # the gate's path leads to no number here
        verdict.conclude_without_data("fail", str(error))
        return verdict
    gap_test = row.difference
    changed = flips(before, now, key, "zero")
    fixed, broken = changed["fixed"], changed["broken"]
    verdict.flips = Flips(fixed, broken)
    verdict.tasks = gap_test.tasks
    verdict.only_baseline = row.fields["only_a_count"]
    verdict.only_this = row.fields["only_b_count"]
    if gap_test.difference is not None:
        verdict.actual = _scale_of(gate) * gap_test.difference
    verdict.interval = _write_interval(row)
    # a one-sided bound at a confidence is an end of the two-sided interval at twice that less 1
    two_sided = 2 * gate.confidence - 1
    verdict.bounds = _ends_at(row, two_sided)
    says_which_pass = _says_which_runs_pass(now, key)
    # each a decision, and whether the gate fails or warns where it is undecided
    conditions = [*_judge_difference(gate, row, verdict.bounds or ())]
    if gate.max_flips is not None:
        flips_decision: Decision = "failed"
        if not says_which_pass:
            flips_decision = "undecided"
        elif broken <= gate.max_flips:
            flips_decision = "passed"
        conditions.append((flips_decision, "fail"))
    decisions = [decision for decision, _ in conditions]
    outcome = min(decisions, key=_WORST_FIRST.index)
    is_strict = ("undecided", "fail") in conditions
    verdict.on_undecided = gate.on_undecided or ("fail" if is_strict else "warn")
    verdict.conclude(outcome, verdict.on_undecided)
    verdict.sure = outcome != "undecided"
    verdict.tasks_needed = None
    if outcome == "undecided":
        more_tasks = verdict.tasks_needed = _count_tasks_needed(gate, row)
        verdict.reason = gap_test.reason
        if more_tasks and not gap_test.reason:
            verdict.reason = f"{more_tasks:,} tasks would be needed"
        if gate.max_flips is not None and not says_which_pass:
            verdict.reason = f"{key} says neither which runs pass nor which scores are better"
    return verdict


def _compare(gate: BaselineGate, before: Side, now: Side) -> Row:
    """Compare a gate's figure of two runs of a model.

    Raises:
        DataError: The runs are not alike.
        NoFigure: There is none at the gate's path.
    """
    from gradestack.comparison.figures import Aggregators, figure_of  # noqa: PLC0415
    from gradestack.comparison.problems import find_problems  # noqa: PLC0415
    from gradestack.comparison.rows import Rules, figure_rows, mean_row  # noqa: PLC0415

    key = gate.grader
    parts = find_problems(before, now, only=key)
    problems = [part.text for part in parts if part.refuses]
    if key not in before.graders:
        problems.append(f"{before.name} has no grader {key!r}")
    if problems:
        raise DataError(_UNLIKE, *problems)
    try:
        if gate.figure is None:
            return mean_row(before, now, key, Rules(), rate=gate.is_percent)
        aggregators = Aggregators(now.report.registry)
        figure = figure_of(gate.name, [now, before], aggregators)
        rules = Rules(figures=[figure])
        rows = figure_rows(before, now, rules)
        return rows[figure.path]
    except NoFigure:
        raise
    except ConfigError as error:
        raise DataError(_UNLIKE, str(error)) from error


def _ends_at(row: Row, confidence: float) -> list[float] | None:
    """Return both ends of a difference's interval; where no task differs those of a 0."""
    from gradestack.comparison.paired import bounds_of_no_change  # noqa: PLC0415

    if row.verdict == "same":
        return bounds_of_no_change(row.difference.tasks, confidence)
    return row.difference.interval(1 - confidence, row.p)


def _write_interval(row: Row) -> dict[str, Any]:
    """Return the 95 % interval of a difference, or the reason for having none."""
    ends = _ends_at(row, 0.95)
    if ends is None:
        return {"reason": row.difference.reason or None}
    n = row.difference.tasks
    known = {"confidence": 0.95, "n": n, "clusters": n, "method": "paired_t"}
    low, high = ends
    return {"low": low, "high": high, **known}


def _says_which_runs_pass(side: Side, key: str) -> bool:
    """Return whether a grader has a better direction, or a verdict on some run."""
    declared = side.declared(key)
    if declared["better_is"] != "neither":
        return True
    passes = side.passes(key, "skip")
    return any(passed is not None for passed in passes)


def _judge_difference(
    gate: BaselineGate, row: Row, bounds: Iterable[float]
) -> Iterator[tuple[Decision, OnUndecided]]:
    """Yield the outcome of each rule about the difference, and what it does where undecided.

    A loss within the margin is a warning.
    """
    gains = sorted(_gain(row, end) for end in bounds)
    if gate.not_worse_than is not None:
        margin = gate.not_worse_than / _scale_of(gate)
        difference = row.difference.difference
        is_within = difference is not None and round(_gain(row, difference), 12) >= -margin
        decision = _decide_beyond(-margin, gains)
        if row.verdict == "same" and not row.fields["only_a_count"]:
            decision = "passed"
        yield decision, "warn" if is_within else "fail"
    if gate.require is not None:
        yield _decide_beyond(0.0, gains), "fail"


def _decide_beyond(limit: float, gains: Sequence[float]) -> Decision:
    """Decide whether a gain is above a limit, by its bounds; undecided without any."""
    if not gains:
        return "undecided"
    if gains[0] > limit:
        return "passed"
    if gains[-1] < limit:
        return "failed"
    return "undecided"


def _gain(row: Row, difference: float) -> float:
    """Return by how much a figure is better."""
    if row.better_is == "lower":
        return -difference
    return difference


def _scale_of(gate: BaselineGate) -> float:
    return 100.0 if gate.is_percent else 1.0


def _count_tasks_needed(gate: BaselineGate, row: Row) -> int | None:
    """Count the tasks that would show on which side of the margin a difference like this is."""
    from gradestack.comparison.paired import tasks_needed  # noqa: PLC0415

    tested = row.difference
    error = tested.stderr or 0.0
    difference = tested.difference or 0.0
    allowed = gate.not_worse_than or 0.0
    spread = error * math.sqrt(tested.tasks)
    margin = allowed / _scale_of(gate)
    gain = _gain(row, difference)
    return tasks_needed(spread, margin + gain)

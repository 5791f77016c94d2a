"""Verdicts: what gates decide on the figures they compare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from gradestack.gates.coverage import Coverage
from gradestack.gates.measures import (
    Measure,
    Scores,
    measure_figure,
    measure_number,
    measure_scores,
    passed_by_task,
)
from gradestack.gates.rules import (
    AnyGate,
    FigureGate,
    Gate,
    Limit,
    LogicalGate,
    NativeGate,
    OnNoData,
    ScoreGate,
    TaskGate,
    Threshold,
    as_percent,
    compare_text,
)
from gradestack.intervals import change_confidence
from gradestack.metrics.counts import Count
from gradestack.model import JSON, Outcome
from gradestack.output import counted

Decision = Literal["passed", "failed", "undecided", "no_data"]
FAILED_SHARE, FAILED_SAMPLES = "failed_share", "failed_samples"
"""What ``max_failed`` compares: a share of the samples, or their number."""


MaybeText = str | None
MaybeCount = int | None
MaybeNumber = int | float | None
"""Of keys that a gate may have or not: None where it has none such."""


class FailingTask(msgspec.Struct):
    """A task that too few runs of have passed."""

    task: str
    passed: int
    runs: int


class Flips(msgspec.Struct):
    """Runs whose verdict differs from the baseline's."""

    fixed: int
    broken: int


class Verdict(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The decision of a gate, as an entry of ``gates`` in summary.json.

    A key is left out where the gate has none such: None, or UNSET where null means something.
    """

    text: str
    """The rule as people read it."""
    actual: MaybeNumber
    passed: bool
    outcome: Decision
    reason: MaybeText = None
    """Why it is undecided or has no data, or whose number it is."""
    kind: MaybeText = None
    metric: MaybeText = None
    metric_key: MaybeText = None
    figure: MaybeText = None
    op: MaybeText = None
    value: MaybeNumber = None
    over: MaybeText = None
    weights: JSON = None
    figures: JSON = None
    """Of a weighted gate: grader key -> its figure."""
    at_least: JSON = None
    tasks: MaybeCount = None
    failing: list[FailingTask] | None = None
    operator: MaybeText = None
    conditions: list[Verdict] = []
    per: MaybeText = None
    groups: dict[str, Verdict] | None = None
    interval: dict[str, Any] = {}
    sure: JSON = UNSET
    """Whether the interval holds no threshold; null where there is none."""
    confidence: MaybeNumber = None
    bounds: JSON = UNSET
    """The one-sided bounds that decide, as fractions."""
    on_undecided: MaybeText = None
    coverage: dict[str, Coverage] = {}
    """Grader key -> how many runs it graded, where that is not every one."""
    uncalibrated: MaybeText = None
    on_uncalibrated: MaybeText = None
    baseline: MaybeText = None
    not_worse_than: JSON = UNSET
    require: JSON = UNSET
    max_flips: JSON = UNSET
    only_baseline: MaybeCount = None
    only_this: MaybeCount = None
    flips: Flips | None = None
    tasks_needed: JSON = UNSET
    grader: MaybeText = None
    failed: MaybeCount = None
    missing: MaybeCount = None
    unreadable: MaybeCount = None
    of: MaybeCount = None

    def conclude(self, outcome: Decision, on_undecided: str | None = "fail") -> None:
        """Set the outcome, and whether the gate passes by it."""
        self.outcome = outcome
        is_let_pass = outcome == "undecided" and on_undecided != "fail"
        self.passed = outcome in ("passed", "no_data") or is_let_pass

    def conclude_without_data(self, on_no_data: OnNoData, reason: str) -> None:
        """Set the outcome of a gate without a figure: undecided, unless it says that it passes."""
        self.reason = reason
        self.conclude("no_data" if on_no_data == "pass" else "undecided")

    def as_json(self) -> dict[str, JSON]:
        """Return the entry of summary.json."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]

    def all_coverage(self) -> dict[str, Coverage]:
        """Return the coverage of the gate and of its conditions, by grader key."""
        coverage = dict(self.coverage)
        for part in self.conditions:
            coverage |= part.all_coverage()
        return coverage


def begin_verdict(gate: AnyGate, actual: float | None = None, **fields: Any) -> Verdict:
    """Return the verdict of a gate before it is decided, with what the gate says of itself."""
    fields = {name: getattr(gate, name, None) for name in gate.fields} | fields
    if gate.figure is not None:
        fields |= {"figure": gate.name, "metric": None}
    return Verdict(text=gate.text, actual=actual, passed=False, outcome="failed", **fields)


def decide(gate: ScoreGate | FigureGate | NativeGate, measure: Measure) -> Verdict:
    """Return the verdict on a figure: of its value, or with ``confidence`` of its interval."""
    verdict = begin_verdict(gate, measure.value, **measure.fields)
    if measure.value is None:
        verdict.conclude_without_data(gate.on_no_data, measure.reason)
        return verdict
    outcome: Decision = "passed" if gate.holds(measure.value) else "failed"
    interval = measure.interval or {}
    verdict.interval = dict(interval)
    verdict.sure = None
    if gate.confidence is None or interval.get("reason") == "quantile":
        if gate.op != "eq" and "low" in interval:
            ends = measure.ends_of(interval)
            verdict.sure = decide_within(gate, ends) == outcome
    else:
        # the one-sided bound at a confidence is an end of the two-sided interval at twice that
        # less 1
        confidence = 2 * gate.confidence - 1
        bounds = change_confidence(interval, measure.value / measure.scale, confidence)
        outcome = decide_within(gate, measure.ends_of(bounds))
        verdict.sure = outcome != "undecided"
        verdict.bounds = [bounds["low"], bounds["high"]] if "low" in bounds else None
        verdict.confidence = gate.confidence
        verdict.on_undecided = gate.on_undecided
    verdict.conclude(outcome, gate.on_undecided)
    return verdict


def decide_within(gate: Threshold, ends: Iterable[float]) -> Decision:
    """Return the outcome that all ends of an interval have; undecided where they differ."""
    outcomes = {gate.holds(end) for end in ends}
    if len(outcomes) != 1:
        return "undecided"
    return "passed" if True in outcomes else "failed"


def judge(gate: Gate, scores: Scores) -> Verdict:
    """Return a gate's verdict.

    With ``per`` it must hold in every group, and each group's verdict is listed.

    No data fails unless the gate says ``on_no_data: pass``.
    """
    verdict = judge_runs(gate, scores)
    if gate.per is None or isinstance(gate, TaskGate):
        return verdict
    groups = {name: judge_runs(gate, group) for name, group in scores.groups(gate.per).items()}
    verdict.text = f"{verdict.text} per {gate.per}"
    verdict.per = gate.per
    verdict.groups = groups
    if groups:
        verdict.conclude(combine(groups.values()))
    else:
        verdict.conclude_without_data(gate.on_no_data, f"no run has a facet {gate.per!r}")
    if any(group.sure is False for group in groups.values()):
        verdict.sure = False
    return verdict


def combine(parts: Collection[Verdict], *, needs_all: bool = True) -> Decision:
    """Return the outcome of several verdicts of which all must pass, or one."""
    passed = [part.passed for part in parts]
    if all(passed) if needs_all else any(passed):
        return "passed"
    outcomes = {part.outcome for part in parts}
    is_open = "undecided" in outcomes and not (needs_all and "failed" in outcomes)
    return "undecided" if is_open else "failed"


def judge_runs(gate: Gate, scores: Scores) -> Verdict:
    """Return a gate's verdict on some runs, in one group."""
    if isinstance(gate, LogicalGate):
        return judge_conditions(gate, scores)
    if isinstance(gate, TaskGate):
        judged = judge_tasks(gate, scores)
    elif isinstance(gate, NativeGate):
        number = measure_number(gate, scores.native)
        judged = decide(gate, number)
    elif isinstance(gate, FigureGate):
        judged = decide(gate, measure_figure(gate, scores))
    else:
        judged = decide(gate, measure_scores(gate, scores))
    if judged.on_uncalibrated == "fail":
        judged.sure = True
        judged.conclude("failed")
    graders = gate.graders.values()
    judges = [key for key in graders if getattr(scores.graders.get(key), "judgements", None)]
    if judges and not isinstance(gate, FigureGate):
        judged.uncalibrated = "a model's score, not corrected by labels"
    require_graded(judged, graders, scores)
    return judged


def require_graded(verdict: Verdict, graders: Iterable[str], scores: Scores) -> None:
    """Add how many runs each grader graded, where not all; on too few a gate is undecided."""
    coverage = {key: scores.coverage(key) for key in graders}
    verdict.coverage = {key: of for key, of in coverage.items() if of.graded < of.runs}
    # without an earlier run a gate passes, but not on too few runs of its own
    if verdict.outcome == "no_data" and verdict.baseline is None:
        return
    for key in verdict.coverage:
        if coverage[key].is_below(scores.min_graded):
            share = f"{as_percent(scores.min_graded):g}%"
            runs = counted(coverage[key].required, "run")
            verdict.reason = f"fewer than {share} of {runs} graded (min_graded)"
            verdict.sure = None
            verdict.conclude("undecided")


def judge_conditions(gate: LogicalGate, scores: Scores) -> Verdict:
    """Judge each condition of a gate and combine their verdicts with the gate's "and" or "or".

    The combined verdict names the reason of the first undecided condition, and in ``uncalibrated``
    every text that says why a condition's score is not calibrated.
    """
    verdicts = [judge_runs(condition, scores) for condition in gate.conditions]
    combined = begin_verdict(gate, conditions=verdicts)
    combined.conclude(combine(verdicts, needs_all=gate.operator == "and"))
    if combined.outcome == "undecided":
        reasons = [verdict.reason for verdict in verdicts if verdict.outcome == "undecided"]
        combined.reason = next(filter(None, reasons), None)
    texts = dict.fromkeys(verdict.uncalibrated for verdict in verdicts)
    combined.uncalibrated = "; ".join(filter(None, texts)) or None
    return combined


def judge_tasks(gate: TaskGate, scores: Scores) -> Verdict:
    """Return the verdict of a gate on each task: which tasks pass too few of their runs."""
    key = gate.metric_key or ""
    by_task = passed_by_task(scores, key)
    failing = [
        FailingTask(task, passed, runs)
        for task, (passed, runs) in by_task.items()
        if not gate.is_met(passed, runs)
    ]
    verdict = begin_verdict(gate, tasks=len(by_task), failing=failing)
    if not by_task:
        verdict.conclude_without_data(gate.on_no_data, "no run was graded")
        return verdict
    verdict.actual = len(by_task) - len(failing)
    verdict.conclude("failed" if failing else "passed")
    return verdict


def limit_verdict(limit: Limit, counts: Mapping[str, Count]) -> Verdict:
    """Judge ``max_failed`` by the grader that has lost most samples, by number or by share."""
    is_share = isinstance(limit, float)
    sizes: dict[str, float] = {}
    for key, count in counts.items():
        required = count.graded + count.lost
        sizes[key] = count.lost / (required or 1) if is_share else count.lost
    key = max(sizes, key=sizes.__getitem__)
    count = counts[key]
    actual = sizes[key]
    required = count.graded + count.lost
    shown, unit = (as_percent(limit), "%") if is_share else (limit, "")
    metric = FAILED_SHARE if is_share else FAILED_SAMPLES
    text = compare_text("failed or missing", "lte", shown, unit)
    failed = count.states[Outcome.FAILED]
    verdict = Verdict(
        kind="max_failed",
        metric=metric,
        op="lte",
        value=limit,
        text=text,
        grader=key,
        failed=failed,
        missing=count.states[Outcome.MISSING],
        unreadable=count.unreadable,
        of=required,
        actual=actual if required or not is_share else None,
        passed=False,
        outcome="failed",
    )
    verdict.conclude("passed" if actual <= limit else "failed")
    return verdict

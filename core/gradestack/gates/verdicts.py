"""Verdicts: figures of scores with their intervals, a gate's rule applied to them, and the lines
that say so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec

from gradestack.api import Direction
from gradestack.estimates import Cell, Grades, Interval, again, interval, jackknife, ratio_interval
from gradestack.gates.coverage import UNREADABLE, Coverage, measure_coverage
from gradestack.gates.native import NativeFiles
from gradestack.gates.rules import (
    OPERATORS,
    PERCENT,
    AggregateGate,
    Aggregates,
    FigureGate,
    Gate,
    GateSpec,
    Limit,
    LogicalGate,
    NativeGate,
    NoFigure,
    SimpleGate,
    TaskGate,
    Threshold,
    WeightedGate,
    as_percent,
    compared,
    figure_at,
    keys_of,
    number_at,
    over_total,
)
from gradestack.grading.metrics import Count, counts_by_model, in_all
from gradestack.grading.plan import SampleRule, Success
from gradestack.jsonio.values import as_count, as_list, as_map, as_number, as_text, compact
from gradestack.model import JSON, Outcome
from gradestack.output import counted, distinguishing_decimals, terminal_line
from gradestack.table import Numbers, Table

_CELL = ("", "sum", "beyond")
"""What a task adds of a grader: how many grades count, their sum, and how many are no share."""
_QUANTILES: dict[str, float] = {
    "min": 0.0,
    "median": 0.5,
    "p50": 0.5,
    "p95": 0.95,
    "p99": 0.99,
    "max": 1.0,
}


class Scores(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Scores by grader key, in a ``part`` of the rows of the table, default all."""

    table: Table
    part: Sequence[int] | None = None
    bounds: Mapping[str, tuple[float, float]] | None = None
    figures: Callable[[Sequence[int] | None], Aggregates] = lambda _rows: {}
    unreadable: int = 0
    min_graded: float = 0.0
    """The least share of a gate's runs that must be graded."""
    better: Mapping[str, Direction] = {}
    """Grader key -> which scores are better."""
    native: NativeFiles = NativeFiles()

    @property
    def rows(self) -> Sequence[int]:
        """Numbers of the rows."""
        return range(len(self.table)) if self.part is None else self.part

    @cached_property
    def aggregates(self) -> Aggregates:
        """What aggregators make of these samples."""
        return self.figures(self.part)

    def figure(self, gate: AggregateGate, key: str) -> Fraction | float | None:
        """Return one figure of a grader's scores; accuracy as a percentage.

        Means and shares are not rounded. None without data.
        """
        count = in_all(counts_by_model(self.table, key, gate, self.rows).values())
        if over_total(gate):
            count = count.with_unreadable(self.unreadable)
        graded = count.graded
        if gate.aggregation == "avg_score" and graded:
            return count.sum / graded
        if gate.aggregation not in PERCENT:
            return (
                quantile(self._sorted_scores(key), _QUANTILES[gate.aggregation]) if graded else None
            )
        passed, among = count.passed, graded
        if over_total(gate):
            among += count.lost
            passed += count.lost if gate.op in ("lt", "lte") else 0
        return Fraction(100 * passed, among) if among else None

    def _sorted_scores(self, key: str) -> list[float]:
        grades, codes = self.table.grades(key), self.table.verdicts[key].codes
        scores = [grades[codes[row]].score for row in self.rows]
        return sorted(score for score in scores if score is not None)

    def coverage(self, key: str) -> Coverage:
        """Return how many of these runs a grader graded."""
        return measure_coverage(self.table, key, self.rows, self.unreadable)

    def interval(
        self, gate: Threshold, actual: float | None, beside: Interval | None = None
    ) -> Interval:
        """Return the 95 % interval of a gate's figure, as a fraction where that is in percent.

        Or why there is none.
        """
        if actual is None:
            return {"reason": "undefined"}
        if isinstance(gate, FigureGate):
            return (
                {"reason": "the figure has no interval"}
                if beside is None
                else again(beside, actual, 0.95)
            )
        if gate.aggregation not in ("avg_score", *PERCENT):
            return {"reason": "quantile"}
        weights = {key: weight for key, weight in _weights(gate).items() if weight}
        tasks, total = self._joint(gate, list(weights)), math.fsum(weights.values())

        def formula(*sums: float) -> dict[str, float | None]:
            parts = [
                (weight, *sums[len(_CELL) * at :][:2]) for at, weight in enumerate(weights.values())
            ]
            if not all(counted for _, counted, _ in parts):
                return {"figure": None}
            return {
                "figure": math.fsum(weight * found / counted for weight, counted, found in parts)
                / total
            }

        width = len(_CELL) * len(weights)
        counted = [
            sum(int(cell[at]) * times for cell, times in tasks.items())
            for at in range(0, width, len(_CELL))
        ]
        outside = any(cell[at] for cell in tasks for at in range(2, width, len(_CELL)))
        estimate, n = jackknife(formula, tasks, width)["figure"], max(counted, default=0)
        bounds = [(self.bounds or {}).get(key, (0.0, 1.0)) for key in weights]
        shares = [low >= 0 and high <= 1 for low, high in bounds]
        if gate.aggregation in PERCENT or (not outside and all(shares)):
            return interval(estimate, n)
        if outside and any(shares):
            bounds = [(-math.inf, math.inf)]
        of = [*zip(weights.values(), bounds, strict=False)]
        least, most = (
            math.fsum(weight * bound[at] for weight, bound in of) / total for at in (0, 1)
        )
        return interval(
            estimate, n, share=False, least=least, most=most, amount=least >= 0 and math.isinf(most)
        )

    def _joint(self, gate: AggregateGate, keys: Sequence[str]) -> Counter[Cell]:
        """Return what tasks add for all graders together, and how many tasks add that."""
        table, by_task = self.table, dict[str, list[Mapping[str, float]]]()
        for at, key in enumerate(keys):
            added = [_added(gate, grade.outcome, grade.score) for grade in table.grades(key)]
            grades = Grades(table, key, self.part, (added, table.verdicts[key].codes))
            for task, numbers in grades.numbers_by_task().items():
                by_task.setdefault(task, [{} for _ in keys])[at] = dict(numbers)
        found = Counter(
            tuple([of.get(name, 0) for of in each for name in _CELL]) for each in by_task.values()
        )
        if self.unreadable and over_total(gate):
            lost = {"": 1, **(_added(gate, Outcome.FAILED, None) or {})}
            found[tuple([lost.get(name, 0) for _ in keys for name in _CELL])] += self.unreadable
        return found

    def groups(self, per: str) -> dict[str, Scores]:
        """Return group name -> scores, by model or by a facet, in order of first appearance."""
        column = self.table.keys["model" if per == "model" else "facets"]
        values: list[Any] = [each or None for each in column.values]
        if per != "model":
            values = [facets.get(per) for facets in self.table.facets()]
        names, found = _names(values), dict[str, list[int]]()
        for row in self.rows:
            found.setdefault(names[column.codes[row]], []).append(row)
        if per != "model" and all(values[column.codes[row]] is None for row in self.rows):
            return {}
        return {
            name: msgspec.structs.replace(self, part=rows, unreadable=0)
            for name, rows in found.items()
        }


def _weights(gate: AggregateGate) -> Mapping[str, float]:
    return gate.weights if isinstance(gate, WeightedGate) else {gate.metric_key or "": 1.0}


def _added(gate: AggregateGate, outcome: Outcome, score: float | None) -> Numbers | None:
    """Return what a grade adds to the figure a gate compares.

    What has no score may count against the gate.
    """
    if score is not None:
        value = int(gate.sample_passes(score)) if gate.aggregation in PERCENT else score
        return {"sum": value, "beyond": int(not 0 <= value <= 1)}
    lost = over_total(gate) and outcome in (Outcome.FAILED, Outcome.MISSING)
    return {"sum": int(gate.op in ("lt", "lte"))} if lost else None


def _names(values: Sequence[Any]) -> list[str]:
    """Return a name for each value, the same for equal ones only.

    A model called ``none`` is not one without a name.
    """
    known: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        text = compact(value)
        if text not in known:
            name = "none" if value is None else str(value)
            known[text] = f"{name} ({text})" if name in taken else name
            taken.add(known[text])
    return [known[compact(value)] for value in values]


def quantile(ordered: list[float], q: float) -> float:
    """Return the q-quantile of sorted values by linear interpolation (position q x (n - 1), as
    numpy's default).
    """
    position = (len(ordered) - 1) * q
    low = int(position)
    share = position - low
    if not share:
        return ordered[low]
    below, above = ordered[low], ordered[low + 1]
    return (
        above - (above - below) * (1 - share) if share >= 0.5 else below + (above - below) * share
    )


def grader_figures(count: Count) -> dict[str, JSON]:
    """Return one grader's figures.

    Attempted means graded, and skipped samples are in ``total`` alone.
    """
    total, graded = sum(count.states.values()), count.graded
    counted = graded + count.lost - count.unreadable
    mean = float(count.sum / graded) if graded else None
    over_all = float(count.sum / counted) if counted else None
    return {
        "total": total,
        "total_attempted": graded,
        "avg_score_attempted": mean,
        "avg_score_total": over_all,
        "passed_attempts": count.passed,
        "failed_attempts": graded - count.passed,
        "pass_rate": 100.0 * count.passed / graded if graded else None,
    }


def successes(table: Table, success: Success, rows: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how many samples the outcome grader's verdict calls a success, the interval of their
    share, by model, too.

    ``own_verdicts`` is how many samples have a verdict of the grader's own.
    """
    verdicts = [success.passed(grade) for grade in table.grades(success.grader)]
    values = [None if passed is None else {"passed": int(passed)} for passed in verdicts]
    grades = Grades(table, success.grader, rows, (values, table.verdicts[success.grader].codes))
    every, models = grades.sums("", "passed")
    own = sum(
        times
        for grade, times in grades.counted
        if grade.score is not None and grade.passed is not None
    )
    return {
        **_counts(every),
        "own_verdicts": own,
        "models": {name: _counts(cells) for name, cells in models.items()},
    }


def _counts(tasks: Mapping[Cell, int]) -> dict[str, JSON]:
    of, passed = (sum(int(cell[at]) * times for cell, times in tasks.items()) for at in (0, 1))
    share = passed / of if of else None
    return {
        "passed": passed,
        "failed": of - passed,
        "share": share,
        "share_interval": {**ratio_interval(tasks)},
    }


def rule_text(grader: str, rule: SampleRule | None, better: Direction = "higher") -> str:
    """Return a rule for one score as people read it: ``quality score >= 0.75``."""
    sign, threshold = ("<=", 0.0) if better == "lower" else (">=", 1.0)
    if isinstance(rule, SimpleGate):
        threshold = rule.pass_threshold
    elif isinstance(rule, GateSpec) and not (rule.metric == "accuracy" and rule.pass_value is None):
        sign = OPERATORS[rule.pass_op or rule.op][0]
        threshold = rule.value if rule.pass_value is None else rule.pass_value
    return f"{grader} score {sign} {threshold:.15g}"


def verdict_text(success: Success, graded: int, own: int) -> str:
    """Return what decided on success, as people read it."""
    score = rule_text(success.grader, success.rule, success.better)
    verdict = f"passed by grader {success.grader}"
    if success.rule is None and (own == graded > 0 or success.better == "neither"):
        return verdict
    return score if success.rule is not None or not own else f"{verdict}, without a verdict {score}"


SHARE = "failed_share"


def verdict(gate: Gate, scores: Scores) -> dict[str, JSON]:
    """Return a gate's verdict.

    With ``per`` it must hold in every group, and each group's verdict is listed.

    No data fails unless the gate says ``on_no_data: pass``.
    """
    whole = _verdict(gate, scores)
    if gate.per is None or isinstance(gate, TaskGate):
        return whole
    parts = {name: _verdict(gate, each) for name, each in scores.groups(gate.per).items()}
    sure = [part.get("sure") for part in parts.values()]
    none = _no_data(gate, f"no run has a facet {gate.per!r}")
    return {
        **whole,
        "text": f"{whole['text']} per {gate.per}",
        **(_outcome_of_groups(parts) if parts else none),
        **({"sure": None if None in sure else all(sure)} if "sure" in whole else {}),
        "per": gate.per,
        "groups": parts,
    }


def _outcome_of_groups(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, JSON]:
    """Return the outcome of a gate that must hold in every group."""
    if all(group["passed"] for group in groups.values()):
        return _outcome(passed=True)
    losing = {group["outcome"] for group in groups.values() if not group["passed"]}
    return {"passed": False, "outcome": "failed" if "failed" in losing else "undecided"}


def _verdict(gate: Gate, scores: Scores) -> dict[str, JSON]:
    if isinstance(gate, LogicalGate):
        return _logical_verdict(gate, scores)
    if isinstance(gate, NativeGate):
        return _native_verdict(gate, scores.native)
    if isinstance(gate, TaskGate):
        found = _task_verdict(gate, scores)
    elif isinstance(gate, FigureGate):
        found = _by_path(gate, scores)
    else:
        found = _aggregate_verdict(gate, scores)
    keys = dict.fromkeys(key for _, key in keys_of(gate))
    return require_graded(found, keys, scores)


def require_graded(gate: dict[str, Any], keys: Iterable[str], scores: Scores) -> dict[str, Any]:
    """Return a verdict with how many runs it stands on; on too few it is undecided.

    Adds ``coverage`` by grader key, where a run was not graded.
    """
    coverages = {key: scores.coverage(key) for key in keys}
    partial = {key: each for key, each in coverages.items() if each.graded < each.runs}
    counts = {key: coverage.as_json() for key, coverage in partial.items()}
    found = {**gate, "coverage": counts} if counts else gate
    lacking = [each for each in partial.values() if each.is_below(scores.min_graded)]
    if not lacking or gate.get("outcome") == "no_data":
        return found
    least = min(lacking, key=lambda each: each.graded / each.required)
    share = f"{as_percent(scores.min_graded):g}%"
    reason = f"fewer than {share} of {counted(least.required, 'run')} graded (min_graded)"
    return {**found, "passed": False, "outcome": "undecided", "sure": None, "reason": reason}


def _logical_verdict(gate: LogicalGate, scores: Scores) -> dict[str, JSON]:
    parts = [_verdict(part, scores) for part in gate.conditions]
    verdicts = [part["passed"] for part in parts]
    passed = all(verdicts) if gate.operator == "and" else any(verdicts)
    found = {
        "kind": "logical",
        "operator": gate.operator,
        "conditions": parts,
        "text": gate.text,
        "actual": None,
        **_outcome(passed=passed),
    }
    outcomes = [part["outcome"] for part in parts]
    is_open = "undecided" in outcomes and (gate.operator == "or" or "failed" not in outcomes)
    if passed or not is_open:
        return found
    reasons = [
        part["reason"] for part in parts if part["outcome"] == "undecided" and "reason" in part
    ]
    return {**found, "outcome": "undecided", **({"reason": reasons[0]} if reasons else {})}


def _task_verdict(gate: TaskGate, scores: Scores) -> dict[str, JSON]:
    """Return the verdict of a gate on each task: which tasks pass too few of their runs."""
    key = gate.metric_key or ""
    passed_and_runs = _runs_by_task(scores, key)
    failing = [
        {"task": task, "passed": passed, "runs": runs}
        for task, (passed, runs) in passed_and_runs.items()
        if not gate.is_met(passed, runs)
    ]
    tasks = len(passed_and_runs)
    found: dict[str, JSON] = {
        "kind": gate.kind,
        "metric_key": key,
        "at_least": gate.at_least,
        "per": gate.per,
        "text": gate.text,
        "actual": tasks - len(failing) if tasks else None,
        "tasks": tasks,
        "failing": failing,
    }
    return {
        **found,
        **(_outcome(passed=not failing) if tasks else _no_data(gate, "no run was graded")),
    }


def _runs_by_task(scores: Scores, key: str) -> dict[str, tuple[int, int]]:
    """Count passed runs and runs by task, in order; a run that could not be graded did not pass.

    A task of several models is a task of each; its name then has the model.
    """
    table = scores.table
    success = Success(key, better=scores.better.get(key, "higher"))
    grades, codes = table.grades(key), table.verdicts[key].codes
    ids, models = table.keys["id"], table.keys["model"]
    has_models = len({models.codes[row] for row in scores.rows}) > 1
    counts: dict[str, tuple[int, int]] = {}
    for row in scores.rows:
        grade = grades[codes[row]]
        if grade.outcome == Outcome.SKIPPED:
            continue
        task = str(ids.values[ids.codes[row]])
        if has_models:
            task = f"{models.values[models.codes[row]] or 'no model'}: {task}"
        passed, runs = counts.get(task, (0, 0))
        counts[task] = passed + bool(success.passed(grade)), runs + 1
    return counts


def _aggregate_verdict(gate: AggregateGate, scores: Scores) -> dict[str, JSON]:
    rule: dict[str, JSON] = {
        "metric": gate.aggregation,
        "op": gate.op,
        "value": gate.value,
        "text": gate.text,
    }
    weights = _weights(gate)
    figures = {key: scores.figure(gate, key) for key in weights}
    shown = {key: None if value is None else float(value) for key, value in figures.items()}
    actual = _weighted(weights, figures)
    if isinstance(gate, WeightedGate):
        rule |= {"kind": gate.kind, "weights": gate.weights, "figures": shown}
    else:
        rule["metric_key"] = gate.metric_key
    if isinstance(gate, SimpleGate):
        rule["kind"] = gate.kind
    over = "total" if over_total(gate) else "graded"
    return {**rule, **_compared(gate, actual, over, scores)}


def _by_path(gate: FigureGate, scores: Scores) -> dict[str, JSON]:
    grader, metric, rest, component = map(str, gate.figure)
    rule: dict[str, JSON] = {"kind": "figure", "figure": gate.name, "metric_key": grader}
    rule |= {"op": gate.op, "value": gate.value, "text": gate.text}
    actual, interval, reason = _figure_value(gate, scores)
    found = {**rule, **_compared(gate, actual, "graded", scores, interval, reason)}
    made = (
        as_map(as_map(scores.aggregates.get(grader)).get(metric)) if component == CALIBRATED else {}
    )
    never = bool(made) and rest == "raw"  # whatever labels there are
    if why := "raw is not corrected by labels" if never else as_text(made.get("uncalibrated")):
        found |= {"uncalibrated": why, "on_uncalibrated": "fail" if never else gate.on_uncalibrated}
        found |= (
            {**_outcome(passed=False), "sure": True} if found["on_uncalibrated"] == "fail" else {}
        )
    return found


def _native_verdict(gate: NativeGate, native: NativeFiles) -> dict[str, JSON]:
    """Return the verdict on a number of a native file, which has no interval."""
    number, program = native.number_at(gate.path)
    return {
        "kind": gate.kind,
        "figure": gate.name,
        "op": gate.op,
        "value": gate.value,
        "text": gate.text,
        "actual": number,
        "reason": f"as {program} computes it, no interval",
        "sure": None,
        **_outcome(passed=OPERATORS[gate.op][1](number, gate.value)),
    }


def _figure_value(gate: FigureGate, scores: Scores) -> tuple[float | None, Any, str]:
    """Return the value of a gate's figure, its interval, and why there is no value."""
    grader, metric, rest, component = map(str, gate.figure)
    at, names = f"{grader}.{metric}", (metric, component)
    try:
        made = scores.aggregates[grader][metric]
        actual, interval = number_at(made, rest, names, at)
        reason = as_text(figure_at(made, rest, names, at).reason)
    except NoFigure as error:
        return None, None, str(error)
    return actual, interval, reason or "the figure has no value in these runs"


# the aggregator of models' verdicts, corrected by labels of people as far as it says
CALIBRATED = "calibrated"


def _compared(
    gate: Threshold,
    actual: float | None,
    over: str,
    scores: Scores,
    beside: Interval | None = None,
    reason: str = "no run was graded",
) -> dict[str, JSON]:
    known: dict[str, JSON] = {"actual": actual, "over": over}
    if actual is None:
        return {**known, **_no_data(gate, reason)}
    scale = 1 if isinstance(gate, FigureGate) or gate.aggregation not in PERCENT else 100

    def holds(number: float) -> bool:
        return OPERATORS[gate.op][1](number, gate.value)

    def at_ends(interval: Interval) -> set[bool]:
        return (
            set()
            if "reason" in interval
            else {holds(scale * interval["low"]), holds(scale * interval["high"])}
        )

    passed = holds(actual)
    if scores.bounds is None:
        return {**known, **_outcome(passed=passed)}
    interval = known["interval"] = scores.interval(gate, actual, beside)
    if gate.confidence is None or interval.get("reason") == "quantile":
        verdicts = set() if gate.op == "eq" else at_ends(interval)
        return {
            **known,
            "sure": verdicts == {passed} if verdicts else None,
            **_outcome(passed=passed),
        }
    # the one-sided bound at a confidence is an end of the two-sided interval at twice that less 1
    bounds = again(interval, actual / scale, 2 * gate.confidence - 1)
    verdicts = at_ends(bounds)
    known |= {"confidence": gate.confidence, "on_undecided": gate.on_undecided}
    known["bounds"] = (
        None if "reason" in bounds else [scale * bounds[end] / scale for end in ("low", "high")]
    )
    if len(verdicts) == 1:
        return {**known, "sure": True, **_outcome(passed=verdicts.pop())}
    return {**known, "sure": False, "passed": gate.on_undecided != "fail", "outcome": "undecided"}


def _weighted(
    weights: Mapping[str, float], figures: Mapping[str, Fraction | float | None]
) -> float | None:
    total = mean = Fraction(0)
    for key, weight in weights.items():
        figure = figures[key]
        if figure is None:
            return None
        total += Fraction(weight)
        mean += Fraction(weight) * Fraction(figure)
    return float(mean / total)


def _outcome(*, passed: bool) -> dict[str, JSON]:
    return {"passed": passed, "outcome": "passed" if passed else "failed"}


def _no_data(gate: Gate, reason: str) -> dict[str, JSON]:
    """Return the outcome of a gate without a figure: undecided, unless it says that it passes."""
    if gate.on_no_data == "pass":
        return {"passed": True, "outcome": "no_data", "reason": reason}
    return {"passed": False, "outcome": "undecided", "reason": reason}


def limit_verdict(limit: Limit, counts: Mapping[str, Count]) -> dict[str, JSON]:
    """Return the verdict of the limit, in a gate's form, on the grader that has lost most.

    By number or by share.
    """
    share = isinstance(limit, float)
    lost = {key: (count.lost, count.graded + count.lost) for key, count in counts.items()}
    key = max(
        lost, key=lambda key: Fraction(lost[key][0], lost[key][1] or 1) if share else lost[key][0]
    )
    number, of = lost[key]
    actual: float | None = number if not share else number / of if of else None
    passed = actual is None or actual <= limit  # where no grader applies nothing has failed
    return {
        "kind": "max_failed",
        "metric": SHARE if share else "failed_samples",
        "op": "lte",
        "value": limit,
        "text": compared(
            "failed or missing", "lte", as_percent(limit) if share else limit, "%" * share
        ),
        "grader": key,
        "failed": counts[key].states[Outcome.FAILED],
        "missing": counts[key].states[Outcome.MISSING],
        "unreadable": counts[key].unreadable,
        "of": of,
        "actual": actual,
        **_outcome(passed=passed),
    }


_WORDS = {"passed": "PASSED", "failed": "FAILED", "no_data": "NO DATA", "undecided": "UNDECIDED"}
_LISTED = 3
_LOST = (str(Outcome.FAILED), str(Outcome.MISSING), UNREADABLE)


def gate_lines(
    gate: Mapping[str, Any], *, apart: bool = False, over_runs: bool = False
) -> tuple[str, ...]:
    """Return the line of one verdict, what was compared in it or ``apart``, as letta-evals' guide
    has it.

    ``over_runs`` says that it is about all runs together.
    """
    verdict, (actual, more) = f"Gate ({gate['text']}): {_WORDS[gate['outcome']]}", gate_texts(gate)
    more += ["all runs together"] if over_runs else []
    notes = terminal_line("; ".join([f"actual: {actual}{certainty(gate)}", *more]))
    return (verdict, f"  {notes}") if apart else (f"{verdict} ({notes})",)


def gate_texts(gate: Mapping[str, Any], decimals: int = 2) -> tuple[str, list[str]]:
    """Return the figure a gate of a summary compared, and what people should know of it.

    Args:
        gate: The gate, by whomever the summary was written.
        decimals: The fewest a figure has; it has as many as show its verdict.
    """
    return _actual(gate, decimals), [*_notes(gate, decimals)]


def _actual(gate: Mapping[str, Any], decimals: int) -> str:
    """Return the figure a gate compared; those of its conditions where it compares none itself."""
    if parts := [*map(as_map, as_list(gate.get("conditions")))]:
        shown = [_actual(part, decimals) for part in parts]
        shown = [
            f"({text})" if "conditions" in part else text
            for part, text in zip(parts, shown, strict=True)
        ]
        return f" {as_text(gate.get('operator'))} ".join(shown)
    actual, value, metric = (gate.get(name) for name in ("actual", "value", "metric"))
    if gate.get("kind") == "tasks" and actual is not None:
        return f"{as_count(actual)} of {as_count(gate.get('tasks'))} tasks"
    if actual is None or as_number(actual) is None:
        return "n/a"
    value = actual if value is None or as_number(value) is None else value
    if gate.get("kind") == "baseline":
        return f"{actual:+.1f} points" if metric in PERCENT else f"{actual:+.{decimals}f}"
    if metric == SHARE:
        actual, value = as_percent(actual), as_percent(value)
    percent = metric in (SHARE, *PERCENT)
    return f"{distinguishing_decimals(actual, value, 1 if percent else decimals)}{'%' * percent}"


def certainty(gate: Mapping[str, Any]) -> str:
    """Return the interval of a gate's figure, or its deciding bounds, and whether the threshold
    lies within it.
    """
    interval = gate.get("interval") or {}
    if interval.get("low") is None or gate["actual"] is None:
        return ""
    percent, unit = gate.get("metric") in PERCENT, "" if gate.get("kind") == "baseline" else "%"
    ends = gate.get("bounds") or [interval["low"], interval["high"]]
    low, high = (f"{100 * end:.1f}{unit}" if percent else f"{end:.2f}" for end in ends)
    level = f"{100 * (gate.get('confidence') or interval.get('confidence') or 0.95):.6g}%"
    kind = f"{level} interval" if gate.get("confidence") is None else f"one-sided {level} bounds"
    shown = f", {kind} {low} to {high}"
    if gate.get("sure") is False:
        unsure = f"{'passes' if gate['passed'] else 'fails'}, but the threshold lies within it"
        return f"{shown}: {'undecided' if gate['outcome'] == 'undecided' else unsure}"
    return shown


def _notes(gate: Mapping[str, Any], decimals: int) -> Iterator[str]:
    """Yield what people should know of a figure: what it leaves out, which groups do not hold."""
    if reason := as_text(gate.get("reason")):
        yield reason
    if "uncalibrated" in gate:
        yield f"uncalibrated: {gate['uncalibrated']}"
    if flips := as_map(gate.get("flips")):
        yield (
            f"{counted(as_count(flips.get('fixed')), 'run')} fixed, "
            f"{as_count(flips.get('broken'))} broken"
        )
    if gate.get("kind") == "max_failed":
        failed, missing, bad = (
            as_count(gate.get(name)) for name in ("failed", "missing", "unreadable")
        )
        unreadable = f", {bad} of them unreadable" if bad else ""
        yield (
            f"{failed + missing + bad} of {as_count(gate.get('of'))} for "
            f"{gate.get('grader')}{unreadable}"
        )
    failing = [*map(as_map, as_list(gate.get("failing")))]
    if failing:
        names = [
            f"{as_text(task.get('task'))} ({as_count(task.get('passed'))} of "
            f"{as_count(task.get('runs'))})"
            for task in failing
        ]
        yield f"not in {shorten_list(names)}"
    yield from coverage_texts(gate)
    groups = {name: as_map(each) for name, each in as_map(gate.get("groups")).items()}
    losing = [
        f"{name} ({_actual(each, decimals)})"
        for name, each in groups.items()
        if not each.get("passed")
    ]
    if losing:
        yield f"not in {shorten_list(losing)}"


def shorten_list(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"


def coverage_texts(gate: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``n of N graded`` for each grader of a gate that did not grade every run.

    With how many are another grader's, and of the rest the most frequent state and reason.
    """
    coverage = coverage_of(gate)
    for key, counts in coverage.items():
        text = f"{as_count(counts.get('graded'))} of {as_count(counts.get('runs'))} graded"
        if len(coverage) > 1:
            text += f" by {key}"
        for grader, number in as_map(counts.get("elsewhere")).items():
            text += f", {as_count(number)} are for {grader}"
        states = {name: as_count(number) for name, number in as_map(counts.get("states")).items()}
        if states:
            state = max(states, key=lambda name: states[name])
            text += f": {states[state]} {state}"
        reason = as_text(counts.get("reason"))
        yield f"{text}, {reason}" if reason else text


def coverage_of(gate: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the coverage of a gate of a summary and of its conditions, by grader key."""
    found: dict[str, Any] = dict(as_map(gate.get("coverage")))
    for part in as_list(gate.get("conditions")):
        found |= coverage_of(as_map(part))
    return found


def mark_uncalibrated(gate: dict[str, Any], graders: Container[str]) -> None:
    """Note on a gate, and its conditions, that it compares scores of these graders, which nothing
    corrects.
    """
    parts: Any = gate.get("conditions", ())
    for part in parts:
        mark_uncalibrated(part, graders)
    if whys := dict.fromkeys(part["uncalibrated"] for part in parts if "uncalibrated" in part):
        gate["uncalibrated"] = "; ".join(whys)
    named: Any = gate.get("weights") or [gate.get("metric_key")]
    if gate.get("kind") not in ("figure", "baseline", "logical") and any(
        key in graders for key in named
    ):
        gate["uncalibrated"] = "a model's score, not corrected by labels"


def count_lost(counts: Mapping[str, Any]) -> int:
    """Count the runs of a gate's coverage that failed, are missing or could not be read."""
    states = as_map(counts.get("states"))
    return sum(as_count(states.get(name)) for name in _LOST)


def is_many(lost: int, runs: int) -> bool:
    """Return whether so many runs are lost that it has to be known: more than 5 %."""
    return 20 * lost > runs


def share_text(lost: int, runs: int) -> str:
    """Return ``3 of 20 samples (15.0%)``."""
    return f"{lost} of {runs} samples ({100 * lost / runs:.1f}%)"


def gate_warnings(gate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings about a gate of a summary that its line does not show."""
    name = f"gate {as_text(gate.get('text'))}"
    for group, entry in as_map(gate.get("groups")).items():
        for key, counts in coverage_of(as_map(entry)).items():
            lost, runs = count_lost(counts), as_count(counts.get("runs"))
            if is_many(lost, runs):
                share = f"{terminal_line(group)}, {share_text(lost, runs)}"
                yield f"{name}: of {share} failed or missing for {key!r} do not count"
    if gate.get("kind") == "baseline" and gate.get("outcome") == "no_data":
        yield f"{name}: {as_text(gate.get('reason'))}"
    for part in (gate, *map(as_map, as_list(gate.get("conditions")))):
        if part.get("outcome") == "undecided" and part.get("on_undecided") == "warn":
            yield f"gate {as_text(part.get('text'))}: undecided"
    if gate.get("on_uncalibrated") == "warn":
        yield f"{name}: uncalibrated: {as_text(gate.get('uncalibrated'))}"


def quiet_warnings(gate: Mapping[str, Any]) -> Iterator[str]:
    """Yield everything that must be said of a gate where its line is not printed."""
    name = f"gate {as_text(gate.get('text'))}"
    yield from gate_warnings(gate)
    if gate.get("outcome") == "undecided":
        yield f"{name}: undecided: {as_text(gate.get('reason')) or 'the threshold lies within its interval'}"
    for text in coverage_texts(gate):
        yield f"{name}: {text}"

"""Rows of a comparison: one figure of two sides each, with its test and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot, isfinite, sqrt
from statistics import NormalDist
from typing import Any

import msgspec

from gradestack.comparison.families import Row, decide_groups, decide_together
from gradestack.comparison.figures import (
    Figure,
    Pair,
    figure_pairs,
    headline_label,
    mean_pair,
    pair_means,
    word_for_passed,
)
from gradestack.comparison.paired import detectable, tasks_needed
from gradestack.comparison.sides import Failed, Side
from gradestack.gates.measures import CALIBRATED
from gradestack.jsonio.values import as_map, is_number

_SAME_SHARE = 1e-9  # how far shares may be apart that are the same
_LISTED = 100  # tasks of a list in comparison.json
_USAGE: Mapping[str, Mapping[str, Any]] = {
    "cost_usd": {"label": "Cost of a run", "unit": "usd", "better_is": "lower"},
    "tokens": {"label": "Tokens of a run", "unit": "tokens", "better_is": "lower"},
    "seconds": {"label": "Seconds of a run", "unit": "seconds", "better_is": "lower"},
}
"""Parts of what a run took that are compared, where both sides record them."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by which runs are compared.

    Attributes:
        headline: Grader whose mean score is the question. Default: the rate of the outcome, else
            the first figure of the headline.
        failed: How failed and missing trials count: with the worst score, or not at all.
        confidence: Of the intervals.
        force: Whether to compare what differs in graders, expectations or inputs.
        by: Facet to compare within its values.
        figures: Figures that are no means of scores, compared beside the graders' means.
        are_figures_asked: Whether the figures were named; else they are the headline's.
        left_out: Path of a figure that cannot be compared -> why.
        report_url: Address at which the page will stand.
    """

    headline: str | None = None
    failed: Failed = "zero"
    confidence: float = 0.95
    force: bool = False
    by: str | None = None
    figures: Sequence[Figure] = ()
    are_figures_asked: bool = False
    left_out: Mapping[str, str] = {}
    report_url: str | None = None

    @property
    def alpha(self) -> float:
        """Level at which the question, and each family, is tested."""
        return 1 - self.confidence


def mean_row(a: Side, b: Side, key: str, rules: Rules, *, rate: bool = False) -> Row:
    """Compare a grader's mean score, or the ``rate`` of passing, over shared tasks."""
    pair = mean_pair(a, b, key, rules.failed, rate=rate)
    fields = a.declared(key)
    fields["path"] = key
    # a score without bounds has no worst one
    has_worst = rate or None not in (a.worst_score(key), b.worst_score(key))
    fields["failed"] = "worst" if rules.failed == "zero" and has_worst else "left out"
    if rate:
        label = word_for_passed(a.report)
        fields |= {"label": label, "unit": "share", "better_is": "higher"}
        judge_noise = _judge_noise(a, b, key)
        fields |= {"grader": key, **judge_noise}
    else:
        fields["label"] = headline_label(a.report, f"{key}.mean") or fields["label"]
    up = sum(gap > 0 for gap in pair.gaps)
    down = sum(gap < 0 for gap in pair.gaps)
    task_count = len(pair.tasks)
    fields["same"] = task_count - up - down
    by_direction = {"higher": (up, down), "lower": (down, up), "neither": (None, None)}
    direction = fields["better_is"]
    fields["better"], fields["worse"] = by_direction[direction]
    return _make_row(pair, rules, fields)


def figure_rows(a: Side, b: Side, rules: Rules) -> dict[str, Row]:
    """Compare figures that are no means, by their paths."""
    pairs = figure_pairs(rules.figures, a, b, rules.failed)
    rows = {}
    for figure in rules.figures:
        failed = "left out" if rules.failed == "skip" else "as defined"
        fields = {**figure.declared, "failed": failed}
        rows[figure.path] = _make_row(pairs[figure.path], rules, fields)
    return rows


def _usage_rows(a: Side, b: Side, rules: Rules) -> dict[str, Row]:
    """Compare what a run costs and takes, of tasks of which both sides record it."""
    rows = {}
    for name, declared in _USAGE.items():
        before = a.amounts(name)
        after = b.amounts(name)
        pair = pair_means(before, after, is_share=False)
        if pair.tasks:
            row = _make_row(pair, rules, declared)
            row.fields["medians"] = [side.median_amount(name, pair.tasks) for side in (a, b)]
            if name == "cost_usd":
                row.fields["per_passed"] = [side.cost_per_passed(pair.tasks) for side in (a, b)]
            rows[name] = row
    return rows


def _make_row(pair: Pair, rules: Rules, declared: Mapping[str, Any]) -> Row:
    """Return a row that is not decided yet."""
    tested = pair.difference()
    fields = {**declared, "a": pair.a, "b": pair.b, "share": pair.is_share}
    fields["ci95"] = tested.interval(1 - 0.95, tested.p)
    for name in ("tasks", "difference", "stderr", "p_exact"):
        fields[name] = getattr(tested, name)
    for name, tasks in zip(("only_a", "only_b"), pair.only, strict=True):
        fields[name] = tasks[:_LISTED]
        fields[f"{name}_count"] = len(tasks)
    better_is, alpha = declared["better_is"], rules.alpha
    return Row(fields=fields, difference=tested, tasks=pair.tasks, better_is=better_is, level=alpha)


def write_decision(row: Row, level: float) -> dict[str, Any]:
    """Write interval, verdict, and how much a test at a level could see; return the fields."""
    tested = row.difference
    stderr = tested.stderr or 0.0
    spread = stderr * sqrt(tested.tasks)
    shows = needed = None
    if isfinite(spread):
        shows = detectable(spread, tested.tasks, level)
        effect = tested.difference or 0.0
        needed = tasks_needed(spread, effect, level)
    confidence = 1 - row.level
    reason = tested.reason or None
    interval = {"ends": row.ends, "confidence": confidence, "reason": reason}
    row.fields |= row.describe()
    row.fields["interval"] = interval
    row.fields["mde80"] = None if shows is None or shows > tested.limit else shows
    row.fields["tasks_needed"] = needed
    return row.fields


def _judge_noise(a: Side, b: Side, key: str) -> dict[str, float]:
    """Return by how much a judge alone may make two rates differ, where its votes say it."""
    noises = []
    for side in (a, b):
        aggregate = side.report.aggregates[key]
        calibrated = as_map(aggregate.get(CALIBRATED))
        noise: Any = calibrated.get("noise")
        if not side.is_whole_run or not is_number(noise):
            return {}
        noises.append(noise)
    return {"noise": NormalDist().inv_cdf(0.975) * hypot(*noises)}


class PairRows(msgspec.Struct, frozen=True, eq=False):
    """The rows of two sides; the question's are decided with those of all other pairs.

    Attributes:
        data: What comparison.json says of them.
        question: The row that is tested alone.
        twins: Rows that are one test with it.
        figures: Number of other rows with a test.
        has_twins: Whether some figures that are shown are one test.
        level: α of their intervals.
        has_lost_trials: Whether trials of tasks of both sides have failed or are missing.
    """

    data: dict[str, Any]
    question: Row
    twins: Sequence[Row]
    figures: int
    has_twins: bool
    level: float
    has_lost_trials: bool


def has_rate(a: Side, b: Side, shared: Sequence[str], rules: Rules) -> bool:
    """Return whether two sides have an outcome in common, and tasks with one."""
    key = a.outcome
    if key is None or key not in shared or key != b.outcome:
        return False
    return bool(mean_pair(a, b, key, rules.failed, rate=True).tasks)


def compare_pair(
    a: Side, b: Side, shared: Sequence[str], rules: Rules, paths: Sequence[str], *, by_rate: bool
) -> PairRows:
    """Compare two sides: the question alone, the other rows together, usage together.

    Args:
        a: The first side.
        b: The second side.
        shared: Keys of the graders that all sides have.
        rules: How they are compared.
        paths: Figures of the headline; the first that there is is the question.
        by_rate: Whether the question is the rate of the outcome.
    """
    means = {key: mean_row(a, b, key, rules) for key in shared}
    figures = figure_rows(a, b, rules)
    usage = _usage_rows(a, b, rules)
    data: dict[str, Any] = {"a": a.name, "b": b.name}
    rate = None
    if a.outcome and has_rate(a, b, shared, rules):
        rate = mean_row(a, b, a.outcome, rules, rate=True)
        data["outcome"] = rate.fields
        if not rules.are_figures_asked:
            figures = {path: row for path, row in figures.items() if not _repeats(rate, path, row)}
    for name, of_kind in (("metrics", means), ("figures", figures), ("usage", usage)):
        if of_kind:
            data[name] = {key: row.fields for key, row in of_kind.items()}
    question = means[rules.headline or shared[0]]
    if by_rate and rate is not None:
        question = rate
    elif rules.headline is None:
        by_path = {f"{key}.mean": row for key, row in means.items()} | means | figures
        in_headline = [by_path[path] for path in paths if path in by_path]
        question = in_headline[0] if in_headline else question
    question.fields["question"] = True
    rows = [*means.values(), *figures.values()]
    if rate is not None:
        rows.insert(0, rate)
    others = [row for row in rows if row is not question]
    twins = [row for row in others if row.is_tested and row.is_one_with(question)]
    others = [row for row in others if row not in twins]
    level = decide_together(others, rules.alpha)
    decide_together([*usage.values()], rules.alpha)
    for row in (*others, *usage.values()):
        write_decision(row, rules.alpha)
    for row in (question, *twins):
        row.forget_tasks()
    tested = [row for row in others if row.is_tested]
    # the outcome's own mean is not shown
    grader = question.fields.get("grader", "")
    hidden = means.get(grader)
    has_twins = any(row is not hidden for row in twins)
    has_twins = has_twins or any(row.tests < len(tested) for row in tested)
    has_lost = _have_lost_trials(a, b, shared)
    return PairRows(data, question, twins, len(tested), has_twins, level, has_lost)


def _repeats(rate: Row, path: str, row: Row) -> bool:
    """Return whether a figure by k at k = 1 is the rate of the outcome."""
    if not path.endswith(".1"):
        return False
    for side in "ab":
        field = row.fields[side]
        gap = (field or 0.0) - rate.fields[side]
        if abs(gap) >= _SAME_SHARE:
            return False
    return True


def _have_lost_trials(a: Side, b: Side, shared: Sequence[str]) -> bool:
    """Return whether trials of tasks that both sides have failed, or are missing."""
    tasks = [task for task in a.tasks if task in b.tasks]
    return any(side.has_lost_trials(key, tasks) for side in (a, b) for key in shared)


def decide_question(pairs: Sequence[PairRows], alpha: float) -> None:
    """Decide the question: of one pair alone, of several by Holm's rule over all of them."""
    groups = [(pair.question, *pair.twins) for pair in pairs]
    decide_groups([rows for rows in groups if rows[0].p is not None], alpha)
    for rows in groups:
        for row in rows:
            write_decision(row, row.level)

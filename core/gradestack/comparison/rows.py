"""Rows of a comparison: one figure of two sides each, with its test and its verdict."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import msgspec

from gradestack.comparison.families import (
    Decision,
    Test,
    decide_alone,
    decide_p_values,
    decide_together,
    make_test,
    name_verdict,
    share_decision,
)
from gradestack.comparison.figures import (
    Figure,
    Pair,
    figure_pairs,
    headline_labels,
    headline_paths,
    mean_pair,
    pair_means,
)
from gradestack.comparison.paired import detectable, tasks_needed, up_and_down
from gradestack.comparison.sides import Failed, Side
from gradestack.gates.verdicts import CALIBRATED
from gradestack.jsonio.values import as_map, as_text, is_number

_LISTED = 100  # tasks of a list in comparison.json
_OUTCOME, _FIGURES, _METRICS = "outcome", "figures", "metrics"
_USAGE: Mapping[str, Mapping[str, Any]] = {
    "cost_usd": {"label": "Cost of a run", "unit": "usd", "better_is": "lower"},
    "tokens": {"label": "Tokens of a run", "unit": "tokens", "better_is": "lower"},
    "seconds": {"label": "Seconds of a run", "unit": "seconds", "better_is": "lower"},
}
"""Parts of what a run took that are compared, where both sides record them."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are compared."""

    headline: str | None = None
    """Grader whose mean score is the question.

    Default: the rate of the outcome, else the first figure of the headline.
    """
    failed: Failed = "zero"
    """How failed and missing trials count: with the worst score, or not at all."""
    confidence: float = 0.95
    force: bool = False
    """Whether to compare what differs in graders, expectations or inputs."""
    by: str | None = None
    """Facet to compare within its values."""
    figures: Sequence[Figure] = ()
    """Figures that are no means of scores, compared beside the graders' means."""
    are_figures_asked: bool = False
    """Whether the figures were named; else they are the headline's."""
    left_out: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Path of a figure that cannot be compared -> why."""

    @property
    def alpha(self) -> float:
        """Level at which the question, and each family, is tested."""
        return 1 - self.confidence


class Row(msgspec.Struct, frozen=True, eq=False):
    """What comparison.json says of a figure, and its test."""

    fields: dict[str, Any]
    test: Test

    def decide_alone(self, alpha: float) -> dict[str, Any]:
        """Decide it at a level of its own, and return what is said of it."""
        self.write(decide_alone(self.test, alpha), alpha)
        return self.fields

    def write(self, decision: Decision, level: float) -> None:
        """Write p, interval, verdict, and how much a test of the figure at a level could see."""
        fields, tested = self.fields, decision.difference
        fields["p"] = decision.p
        fields["p_holm"] = decision.p_holm
        fields["tests"] = decision.tests
        fields["interval"] = {
            "confidence": 1 - decision.level,
            "ends": decision.ends,
            "reason": tested.reason or None,
        }
        fields["verdict"] = name_verdict(decision, fields["better_is"])
        spread = (tested.stderr or 0.0) * math.sqrt(tested.tasks)
        needed = None
        shows = None
        if spread and math.isfinite(spread):
            shows = detectable(spread, tested.tasks, level=level)
            needed = tasks_needed(spread, tested.difference or 0.0, level=level)
        most = 1.0 if fields["share"] else sys.float_info.max
        fields["mde80"] = None if shows is None or shows > most else shows
        fields["tasks_needed"] = needed


def mean_row(a: Side, b: Side, key: str, rules: Rules, *, rate: bool = False) -> Row:
    """Compare a grader's mean score, or the ``rate`` of passing, over shared tasks."""
    pair = mean_pair(a, b, key, rules.failed, rate=rate)
    declared = a.declared(key)
    declared["failed"] = _how_failed_count(a, b, key, rules, rate=rate)
    more: dict[str, Any] = {}
    if rate:
        outcome = as_map(a.report.summary.get("outcome"))
        word = as_text(as_map(outcome.get("words")).get("passed")) or "passed"
        declared |= {"label": word.capitalize(), "unit": "share", "better_is": "higher"}
        declared["grader"] = key
        declared["path"] = key
        more = _noise(a, b, key)
    up, down = up_and_down(pair.gaps)
    better = worse = None
    if declared["better_is"] == "higher":
        better, worse = up, down
    elif declared["better_is"] == "lower":
        better, worse = down, up
    counts = {"better": better, "worse": worse, "same": len(pair.tasks) - up - down}
    return _make_row(pair, rules, {**more, **counts, **declared})


def figure_rows(a: Side, b: Side, figures: Sequence[Figure], rules: Rules) -> dict[str, Row]:
    """Compare figures that are no means, by their paths."""
    pairs = figure_pairs(figures, a, b, rules.failed)
    rows = {}
    for figure in figures:
        pair = pairs[figure.path]
        failed = "left out" if rules.failed == "skip" else "as defined"
        more = {"moved": pair.moved, "failed": failed}
        rows[figure.path] = _make_row(pair, rules, {**more, **figure.declared})
    return rows


def _how_failed_count(a: Side, b: Side, key: str, rules: Rules, *, rate: bool) -> str:
    """Return how trials that failed or are missing count in a mean, or in the ``rate`` of passing.

    A score without bounds has no worst one.
    """
    has_worst = rate or None not in (a.worst_score(key), b.worst_score(key))
    return "worst" if rules.failed == "zero" and has_worst else "left out"


def usage_rows(a: Side, b: Side, rules: Rules) -> dict[str, Row]:
    """Compare what a run costs and takes, of tasks of which both sides record it."""
    rows = {}
    for name, declared in _USAGE.items():
        pair = pair_means(a.amounts(name), b.amounts(name), share=False)
        if pair.tasks:
            rows[name] = _make_row(pair, rules, dict(declared))
    _decide([*rows.values()], rules.alpha)
    return rows


def _make_row(pair: Pair, rules: Rules, declared: dict[str, Any]) -> Row:
    """Return a row that is not decided yet."""
    tested = pair.difference(rules.confidence)
    fields: dict[str, Any] = {
        "a": pair.a,
        "b": pair.b,
        "difference": tested.difference,
        "stderr": tested.stderr,
        "ci95": pair.difference(0.95).ends,
        "p_exact": tested.p_exact,
        "tasks": len(pair.tasks),
        "share": pair.share,
    }
    for name, tasks in zip(("only_a", "only_b"), pair.only, strict=True):
        fields[name] = tasks[:_LISTED]
        fields[f"{name}_count"] = len(tasks)
    fields.update(declared)
    return Row(fields, make_test(tested, pair.tasks, pair.gaps))


def _noise(a: Side, b: Side, key: str) -> dict[str, float]:
    """Return by how much a judge alone may make two rates differ, where its votes say it."""
    noises = []
    for side in (a, b):
        has_all_models = sum(map(len, side.tasks.values())) == len(side.samples.places)
        noise: Any = as_map(side.report.aggregates[key].get(CALIBRATED)).get("noise")
        if has_all_models and is_number(noise):
            noises.append(noise)
    return {"noise": NormalDist().inv_cdf(0.975) * math.hypot(*noises)} if len(noises) == 2 else {}


def moved(row: Mapping[str, Any]) -> int:
    """Return how many tasks changed."""
    tasks: int = row["moved"] if "moved" in row else row["tasks"] - row["same"]
    return tasks


class PairRows(msgspec.Struct, frozen=True, eq=False):
    """The rows of two sides; the question's are decided with those of all other pairs."""

    data: dict[str, Any]
    question: Row
    twins: Sequence[Row]
    """Rows that are one test with the question's."""
    figures: int
    """Number of other rows with a test."""
    tests: int
    """Number of tests that these are."""
    has_lost_trials: bool
    """Whether trials of tasks of both sides have failed or are missing."""


Place = tuple[str, str]
"""Where a row stands in a pair: its kind, and its key or path among them."""


def find_question(
    pairs: Sequence[tuple[Side, Side]], shared: Sequence[str], rules: Rules
) -> list[Place]:
    """Return the places of the row that is tested alone, the first that there is counts."""
    if rules.headline is not None:
        return [(_METRICS, rules.headline)]
    places: list[Place] = []
    if all(_has_rate(a, b, shared, rules) for a, b in pairs):
        places.append((_OUTCOME, ""))
    for path in headline_paths(pairs[0][0].report):
        places.append((_FIGURES, path))
        places.append((_METRICS, path.removesuffix(".mean")))
    return [*places, (_METRICS, shared[0])]


def _has_rate(a: Side, b: Side, shared: Sequence[str], rules: Rules) -> bool:
    """Return whether two sides have an outcome in common, and tasks with one."""
    if a.outcome not in shared or a.outcome != b.outcome:
        return False
    key = str(a.outcome)
    before, after = (side.means(key, rules.failed, rate=True) for side in (a, b))
    return any(task in after for task in before)


def compare_pair(  # noqa: C901
    a: Side, b: Side, shared: Sequence[str], places: Sequence[Place], rules: Rules
) -> PairRows:
    """Compare two sides: the question alone, the other rows together, usage together."""
    rows: dict[Place, Row] = {}
    if _has_rate(a, b, shared, rules):
        rows[_OUTCOME, ""] = mean_row(a, b, str(a.outcome), rules, rate=True)
    for key in shared:
        rows[_METRICS, key] = mean_row(a, b, key, rules)
    for path, row in figure_rows(a, b, rules.figures, rules).items():
        if rules.are_figures_asked or not _is_rate_again(path, row, rows.get((_OUTCOME, ""))):
            rows[_FIGURES, path] = row
    _label_rows(rows, headline_labels(a.report))
    question = next(rows[place] for place in places if place in rows)
    question.fields["question"] = True
    twins, others = [], []
    for row in rows.values():
        if row is question:
            continue
        if row.test.is_decided and row.test.is_one_with(question.test):
            twins.append(_without_vector(row))
        else:
            others.append(row)
    tests = _decide(others, rules.alpha)
    usage = usage_rows(a, b, rules)
    data: dict[str, Any] = {"a": a.name, "b": b.name, _METRICS: {}}
    for (kind, key), row in rows.items():
        if kind == _OUTCOME:
            data[kind] = row.fields
        else:
            data.setdefault(kind, {})[key] = row.fields
    if usage:
        data["usage"] = {name: row.fields for name, row in usage.items()}
    figures = sum(row.test.is_decided for row in others)
    has_lost = _have_lost_trials(a, b, shared)
    return PairRows(data, _without_vector(question), twins, figures, tests, has_lost)


def _have_lost_trials(a: Side, b: Side, shared: Sequence[str]) -> bool:
    """Return whether trials of tasks that both sides have failed, or are missing."""
    tasks = [task for task in a.tasks if task in b.tasks]
    return any(side.has_lost_trials(key, tasks) for side in (a, b) for key in shared)


def _without_vector(row: Row) -> Row:
    """Return a row that holds no number for each task, as there may be thousands of pairs."""
    return Row(row.fields, msgspec.structs.replace(row.test, tasks=(), vector=()))


def _is_rate_again(path: str, row: Row, rate: Row | None) -> bool:
    """Return whether a figure by k at k = 1 is the rate of the outcome, which stands already."""
    if rate is None or not path.endswith(".1"):
        return False
    same_values = all(
        math.isclose(row.fields[side] or 0.0, rate.fields[side], rel_tol=1e-9, abs_tol=1e-12)
        for side in "ab"
    )
    return same_values and (not row.test.vector or row.test.is_one_with(rate.test))


def _label_rows(rows: Mapping[Place, Row], labels: Mapping[str, str]) -> None:
    """Write the path and label of every figure and mean into its row."""
    for (kind, path), row in rows.items():
        if kind == _FIGURES:
            row.fields["path"] = path
            row.fields["label"] = _label(path, row.fields, labels)
        elif kind == _METRICS:
            row.fields["path"] = path
            row.fields["label"] = _label(f"{path}.mean", row.fields, labels)


def _label(path: str, row: Mapping[str, Any], labels: Mapping[str, str]) -> Any:
    label = labels.get(path)
    if label:
        return label
    family, _, name = path.rpartition(".")
    if family in labels:
        return f"{labels[family]} {name}"
    return row["label"]


def _decide(rows: Sequence[Row], alpha: float) -> int:
    """Decide rows together, and return how many tests they are."""
    decisions = decide_together([row.test for row in rows], alpha)
    for row, decision in zip(rows, decisions, strict=True):
        row.write(decision, alpha)
    decided = [
        decision.tests for row, decision in zip(rows, decisions, strict=True) if row.test.is_decided
    ]
    return max(decided, default=0)


def decide_question(pairs: Sequence[PairRows], alpha: float) -> None:
    """Decide the question: of one pair alone, of several by Holm's rule over all of them."""
    tested, p_values = [], []
    for pair in pairs:
        p = pair.question.test.difference.p
        if p is None:
            pair.question.decide_alone(alpha)
        else:
            tested.append(pair)
            p_values.append(p)
    adjusted, level = decide_p_values(p_values, alpha)
    for pair, p, p_holm in zip(tested, p_values, adjusted, strict=True):
        for row in (pair.question, *pair.twins):
            tests = len(tested)
            decision = share_decision(row.test, p=p, p_holm=p_holm, tests=tests, level=level)
            row.write(decision, level)

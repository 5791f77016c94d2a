"""Runs compared task by task: what comparison.json holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import msgspec

from gradestack.comparison.changes import changes, compare_by_facet, flips
from gradestack.comparison.figures import figure_over, headline_paths
from gradestack.comparison.leaderboard import leaderboard
from gradestack.comparison.paired import mean_of
from gradestack.comparison.problems import Problem, find_problems
from gradestack.comparison.rows import (
    PairRows,
    Rules,
    compare_pair,
    decide_question,
    has_rate,
)
from gradestack.comparison.sentences import how_failed_count, how_tested, sentence
from gradestack.comparison.sides import Failed, Side
from gradestack.errors import ConfigError, DataError, suggest
from gradestack.grading.notices import TO_COMPARE
from gradestack.jsonio.values import as_count, as_list, as_map
from gradestack.model import JSON
from gradestack.output import counted

Pairs = Sequence[tuple[Side, Side]]
_DETAILED = 10  # pairs up to which each has its own tasks and causes that changed
_SIDES = 100  # runs and models of runs that are compared with each other at once
_REFUSED = "the runs cannot be compared"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two or more runs, compared task by task.

    Attributes:
        sides: What was compared; the first is the baseline.
        data: Content of comparison.json.
    """

    sides: tuple[Side, ...]
    data: Mapping[str, JSON]

    @property
    def sentence(self) -> str:
        """The result for the headline in words."""
        return str(self.data["sentence"])


def compare_sides(sides: Sequence[Side], rules: Rules, pairs: Pairs | None = None) -> Comparison:
    """Compare sides pair by pair; the first side is the baseline.

    Args:
        sides: Two or more runs, or models of runs.
        rules: How they are compared.
        pairs: Pairs to compare. Default: every pair of sides.

    Raises:
        ConfigError: There are too many sides, or no grader has the headline's name.
        DataError: The sides differ in what they measure, or share no grader.
    """
    if pairs is None:
        _check_number(sides)
    compared_pairs = [*combinations(sides, 2)] if pairs is None else [*pairs]
    shared = _shared_graders(sides)
    _check_graded(sides, shared, rules.failed)
    problems = _find_problems(compared_pairs)
    refused = [problem for problem in problems if problem.refuses]
    if refused and not rules.force:
        raise _refuse(refused)
    _check_common_scores(compared_pairs, shared, rules.failed)
    headline = _headline_grader(sides[0], shared, rules)
    by_rate = rules.headline is None and _have_rates(compared_pairs, shared, rules)
    rows = _compare_pairs(compared_pairs, shared, rules, by_rate=by_rate)
    detailed = compared_pairs if len(rows) <= _DETAILED else compared_pairs[:1]
    for (a, b), pair in zip(detailed, rows, strict=False):
        pair.data["changed"] = changes(a, b, headline, rules)
        pair.data["flips"] = flips(a, b, headline, rules.failed)
        pair.data["sentence"] = sentence(a, b, pair.data, pair.question.fields)
    a, b = compared_pairs[0]
    data = {**rows[0].data, "headline": headline, "failed": rules.failed}
    del data["a"], data["b"]
    data["question"] = rows[0].question.fields["label"]
    data["baseline"] = sides[0].name
    data["runs"] = [_describe_side(side) for side in sides]
    data["only"] = {side.name: sorted(side.graders.keys() - set(shared)) for side in sides}
    data["incomparable"] = [problem.text for problem in refused]
    warnings = [problem.text for problem in problems if not problem.refuses]
    warnings += _limits_of_all(sides)
    if warnings:
        data["warnings"] = warnings
    if rules.report_url is not None:
        data["report_url"] = rules.report_url
    if rules.left_out:
        data["not_compared"] = dict(rules.left_out)
    if rules.by is not None:
        groups = compare_by_facet(a, b, headline, rules.by, rules, rate=by_rate)
        data["by"] = {"facet": rules.by, "groups": groups}
    if len(sides) > 2:
        data["pairs"] = [pair.data for pair in rows]
    if len(sides) > 2 and pairs is None:
        values = _values_over_common_tasks(sides, rows[0], rules, by_rate=by_rate)
        questions = [pair.question.fields for pair in rows]
        data["groups"] = leaderboard(values, data["pairs"], questions)
    return Comparison(sides=tuple(sides), data=data)


def _check_number(sides: Sequence[Side]) -> None:
    if len(sides) > _SIDES:
        many = f"{len(sides)} models are {comb(len(sides), 2):,} pairs"
        advice = f"name some of them: gradestack compare {sides[0].name} {sides[1].name}"
        raise ConfigError(f"{many}; at most {_SIDES} are compared at once", advice)


def _find_problems(pairs: Pairs) -> list[Problem]:
    problems: dict[Problem, None] = {}
    for a, b in pairs:
        problems |= dict.fromkeys(find_problems(a, b))
    return [*problems]


def _have_rates(pairs: Pairs, shared: Sequence[str], rules: Rules) -> bool:
    return all(has_rate(a, b, shared, rules) for a, b in pairs)


def _compare_pairs(
    pairs: Pairs, shared: Sequence[str], rules: Rules, *, by_rate: bool
) -> list[PairRows]:
    """Compare every pair, and decide the question over all of them."""
    baseline = pairs[0][0]
    paths = headline_paths(baseline.report)
    rows = [compare_pair(a, b, shared, rules, paths, by_rate=by_rate) for a, b in pairs]
    decide_question(rows, rules.alpha)
    for pair in rows:
        pair.data["tested"] = how_tested(pair, len(rows), rules.alpha)
        pair.data["failed_count"] = how_failed_count(pair, rules.failed)
    return rows


def _refuse(problems: Sequence[Problem]) -> DataError:
    lines = [f"{problem.text}{problem.fix}" for problem in problems]
    if any(problem.has_common_tasks for problem in problems):
        lines.append("--force compares them all the same, and says so in its first line")
    return DataError(_REFUSED, *lines)


def _limits_of_all(sides: Sequence[Side]) -> list[str]:
    return [f"{side.name}: {limit}" for side in sides for limit in _limits_of(side)]


def _limits_of(side: Side) -> Iterator[str]:
    """Yield the limits of a run's figures: a subset of its tasks, expectations nobody reads."""
    subset = as_map(side.report.header.get("subset"))
    yield from map(str, as_list(subset.get("said")))
    remarks = as_map(side.report.summary.get("remarks"))
    for kind, remark in remarks.items():
        if TO_COMPARE in kind:
            count = as_count(as_map(remark).get("count"))
            yield f"not used: {kind} ({counted(count, 'time')})"


def _shared_graders(sides: Sequence[Side]) -> list[str]:
    """Return the keys of graders that every side has, in the baseline's order."""
    keys = sides[0].graders
    shared = [key for key in keys if all(key in side.graders for side in sides)]
    if not shared:
        lines = [f"{side.name} has {', '.join(side.graders) or 'none'}" for side in sides]
        raise DataError(f"{_REFUSED}: they have no grader in common", *lines)
    return shared


def _check_graded(sides: Sequence[Side], shared: Sequence[str], failed: Failed) -> None:
    """Raise where a side has no score to compare."""
    advice = ["--failed zero counts failed and missing trials with the worst score"]
    for side in sides:
        all_means = _all_means(side, shared, failed)
        if not any(all_means):
            why = f"{side.name} has no score to compare: nothing was graded"
            raise DataError(why, *(advice if failed == "skip" else ()))


def _check_common_scores(pairs: Pairs, shared: Sequence[str], failed: Failed) -> None:
    """Raise where two sides have no score of the same task by the same grader."""
    for a, b in pairs:
        all_means = _all_means(a, shared, failed)
        means = zip(all_means, _all_means(b, shared, failed), strict=True)
        if all(before.keys().isdisjoint(after) for before, after in means):
            why = f"no task has a score in both {a.name} and {b.name}"
            raise DataError(f"{_REFUSED}: {why}")


def _all_means(side: Side, shared: Sequence[str], failed: Failed) -> Iterator[dict[str, float]]:
    """Yield the scores and the rates of a side by task, grader after grader."""
    for key in shared:
        yield side.means(key, failed)
        yield side.means(key, failed, rate=True)


def _headline_grader(baseline: Side, shared: Sequence[str], rules: Rules) -> str:
    """Return the key of the grader whose causes and verdicts are compared."""
    if rules.headline is None:
        return str(baseline.outcome) if baseline.outcome in shared else shared[0]
    if rules.headline not in shared:
        hint = suggest(rules.headline, shared)
        known = ", ".join(shared)
        raise ConfigError(f"no grader {rules.headline!r} is in all runs{hint}; there are: {known}")
    return rules.headline


def _describe_side(side: Side) -> dict[str, Any]:
    tasks = len(side.tasks)
    model = side.model or None
    trials = max(map(len, side.tasks.values()), default=0)
    return {"name": side.name, "model": model, "tasks": tasks, "trials": trials}


def _values_over_common_tasks(
    sides: Sequence[Side], pair: PairRows, rules: Rules, *, by_rate: bool
) -> dict[str, float]:
    """Return the question's figure of each side over the tasks that all have."""
    path = pair.question.fields["path"]
    by_path = {figure.path: figure for figure in rules.figures}
    figure = by_path.get(path)
    key = path if figure is None else figure.grader
    means = [side.means(key, rules.failed, rate=by_rate) for side in sides]
    common = [task for task in means[0] if all(task in of_side for of_side in means)]
    values = {}
    for side, of_side in zip(sides, means, strict=True):
        value: float | None = None
        if figure is not None:
            value = figure_over(figure, side, common, rules.failed)
        elif common:
            value = mean_of([of_side[task] for task in common])
        if value is not None:
            values[side.name] = value
    return values

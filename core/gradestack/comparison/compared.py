"""Runs compared task by task: what comparison.json holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from gradestack.comparison.changes import changes, compare_by_facet, flips
from gradestack.comparison.figures import figure_over
from gradestack.comparison.leaderboard import leaderboard
from gradestack.comparison.paired import mean_of
from gradestack.comparison.rows import (
    PairRows,
    Rules,
    compare_pair,
    decide_question,
    find_question,
)
from gradestack.comparison.sentences import how_failed_count, how_tested, sentence
from gradestack.comparison.sides import UNMATCHED, Failed, Problem, Side, differing
from gradestack.errors import ConfigError, DataError, suggest
from gradestack.grading.plan import TO_COMPARE
from gradestack.jsonio.values import as_count, as_list, as_map
from gradestack.model import JSON
from gradestack.output import counted

_SIDES = 100  # runs and models of runs that are compared with each other at once


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
        """What it comes to, on the headline."""
        return str(self.data["sentence"])


def compared(  # noqa: C901
    sides: Sequence[Side], rules: Rules, pairs: Sequence[tuple[Side, Side]] | None = None
) -> Comparison:
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
        _check_number_of_sides(sides)
    compared_pairs = [*combinations(sides, 2)] if pairs is None else [*pairs]
    shared = _shared_graders(sides)
    _check_graded(sides, shared, rules.failed)
    problems, notices = _split_differences(compared_pairs)
    if problems and not rules.force:
        raise _incomparable(problems)
    warnings = _warnings(sides, notices)
    _check_common_scores(compared_pairs, shared, rules.failed)
    headline = _headline_grader(sides[0], shared, rules)
    places = find_question(compared_pairs, shared, rules)
    pair_rows = [compare_pair(a, b, shared, places, rules) for a, b in compared_pairs]
    decide_question(pair_rows, rules.alpha)
    for pair in pair_rows:
        pair.data["tested"] = how_tested(pair, len(pair_rows), rules.alpha)
        pair.data["failed_count"] = how_failed_count(pair)
    a, b = compared_pairs[0]
    first = pair_rows[0]
    is_rate = "outcome" in first.data and first.question.fields is first.data["outcome"]
    data: dict[str, Any] = {"baseline": sides[0].name}
    data["runs"] = [_describe_side(side) for side in sides]
    data["incomparable"] = [problem.text for problem in problems]
    data["headline"] = headline
    data["question"] = first.question.fields["label"]
    data["failed"] = rules.failed
    for name in ("outcome", "metrics", "figures", "usage", "tested", "failed_count"):
        if name in first.data:
            data[name] = first.data[name]
    data["only"] = {side.name: sorted(side.graders.keys() - set(shared)) for side in sides}
    data["changed"] = changes(a, b, headline, rules)
    data["flips"] = flips(a, b, headline, rules.failed)
    data["sentence"] = sentence(a, b, first.data, first.question.fields)
    if warnings:
        data["warnings"] = warnings
    if rules.left_out:
        data["not_compared"] = dict(rules.left_out)
    if rules.by is not None:
        groups = compare_by_facet(a, b, headline, rules.by, rules, rate=is_rate)
        data["by"] = {"facet": rules.by, "groups": groups}
    if len(sides) > 2:
        data["pairs"] = [pair.data for pair in pair_rows]
    if len(sides) > 2 and pairs is None:
        values = _values_over_common_tasks(sides, first, headline, rules)
        rows = [pair.question.fields for pair in pair_rows]
        data["groups"] = leaderboard(values, data["pairs"], rows)
    return Comparison(sides=tuple(sides), data=data)


def _check_number_of_sides(sides: Sequence[Side]) -> None:
    if len(sides) <= _SIDES:
        return
    pairs = math.comb(len(sides), 2)
    problem = f"{len(sides)} models are {pairs:,} pairs; at most {_SIDES} are compared at once"
    first, second = sides[0].name, sides[1].name
    raise ConfigError(problem, f"name some of them: gradestack compare {first} {second}")


def _split_differences(
    pairs: Sequence[tuple[Side, Side]],
) -> tuple[list[Problem], list[Problem]]:
    """Return what keeps pairs from being compared, and what is only worth a warning."""
    differences: dict[Problem, None] = {}
    for a, b in pairs:
        differences.update(dict.fromkeys(differing(a, b)))
    problems, notices = [], []
    for problem in differences:
        if problem.refuses:
            problems.append(problem)
        else:
            notices.append(problem)
    return problems, notices


def _incomparable(problems: Sequence[Problem]) -> DataError:
    lines = [f"{problem.text}{problem.fix}" for problem in problems]
    if any(problem.fix != UNMATCHED for problem in problems):
        lines.append("--force compares them all the same, and says so in its first line")
    return DataError("the runs cannot be compared", *lines)


def _warnings(sides: Sequence[Side], notices: Sequence[Problem]) -> list[str]:
    warnings = [notice.text for notice in notices]
    for side in sides:
        for limit in _limits_of(side):
            warnings.append(f"{side.name}: {limit}")
    return warnings


def _limits_of(side: Side) -> Iterator[str]:
    """Yield what limits a run's figures: a subset of its tasks, expectations nobody reads."""
    subset = as_map(side.report.header.get("subset"))
    for limit in as_list(subset.get("said")):
        yield str(limit)
    remarks = as_map(side.report.summary.get("remarks"))
    for kind, remark in remarks.items():
        if TO_COMPARE in kind:
            count = as_count(as_map(remark).get("count"))
            times = counted(count, "time")
            yield f"not used: {kind} ({times})"


def _shared_graders(sides: Sequence[Side]) -> list[str]:
    """Return the keys of graders that every side has, in the baseline's order."""
    baseline = sides[0]
    shared = [key for key in baseline.graders if all(key in side.graders for side in sides)]
    if shared:
        return shared
    lines = []
    for side in sides:
        graders = ", ".join(side.graders) or "none"
        lines.append(f"{side.name} has {graders}")
    raise DataError("the runs cannot be compared: they have no grader in common", *lines)


def _check_graded(sides: Sequence[Side], shared: Sequence[str], failed: Failed) -> None:
    """Raise where a side has no score to compare."""
    for side in sides:
        if not _tasks_with_score(side, shared, failed):
            raise _nothing_graded(side, shared, failed)


def _check_common_scores(
    pairs: Sequence[tuple[Side, Side]], shared: Sequence[str], failed: Failed
) -> None:
    """Raise where two sides have no score of the same task by the same grader."""
    for a, b in pairs:
        tasks = _tasks_with_score(a, shared, failed)
        if tasks.isdisjoint(_tasks_with_score(b, shared, failed)):
            raise DataError(
                f"the runs cannot be compared: no task has a score in both {a.name} and {b.name}"
            )


def _tasks_with_score(side: Side, shared: Sequence[str], failed: Failed) -> set[tuple[str, str]]:
    """Return the tasks of a side with a score or a verdict, with the grader that gave it."""
    tasks: set[tuple[str, str]] = set()
    for key in shared:
        for rate in (False, True):
            tasks.update((key, task) for task in side.means(key, failed, rate=rate))
    return tasks


def _nothing_graded(side: Side, shared: Sequence[str], failed: Failed) -> DataError:
    states = []
    for key in shared:
        counts = side.states(key).most_common()
        by_state = ", ".join(f"{number} {state}" for state, number in counts)
        states.append(f"{key}: {by_state}")
    lines = []
    if failed == "skip":
        lines.append("--failed zero counts failed and missing trials with the worst score")
    why = "; ".join(states)
    return DataError(f"{side.name} has no score to compare: nothing was graded ({why})", *lines)


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
    model = side.model or None
    tasks = len(side.tasks)
    return {"name": side.name, "model": model, "tasks": tasks, "trials": side.trials}


def _values_over_common_tasks(
    sides: Sequence[Side], first: PairRows, headline: str, rules: Rules
) -> dict[str, float]:
    """Return the question's figure of each side over the tasks that all have."""
    question = first.question.fields
    figures = {figure.path: figure for figure in rules.figures}
    figure = figures.get(question["path"]) if "moved" in question else None
    is_rate = question is first.data.get("outcome")
    key = headline if figure is None else figure.grader
    if figure is None and not is_rate:
        key = question["path"]
    means = {side.name: side.means(key, rules.failed, rate=is_rate) for side in sides}
    common = [task for task in means[sides[0].name] if all(task in of for of in means.values())]
    values = {}
    for side in sides:
        if figure is not None:
            value = figure_over(figure, side, common, rules.failed)
        else:
            tasks = [means[side.name][task] for task in common]
            value = mean_of(tasks) if tasks else None
        if value is not None:
            values[side.name] = value
    return values

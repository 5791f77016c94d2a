"""Changes between two sides: causes, trials, and the groups of a facet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from math import fsum
from typing import Any

from gradestack.comparison.families import Row, decide_together
from gradestack.comparison.figures import mean_pair
from gradestack.comparison.paired import Difference, difference
from gradestack.comparison.rows import Rules
from gradestack.comparison.sides import Cause, Failed, Side, Trial
from gradestack.errors import ConfigError, suggest
from gradestack.model import replace

_LISTED = 100  # tasks of a list in comparison.json
_CAUSES = 50  # reasons, tools and arguments whose change is tested: the most frequent of each kind

Verdicts = Mapping[Trial, bool]


def changes(a: Side, b: Side, key: str, rules: Rules) -> dict[str, list[dict[str, Any]]]:
    """Compare how often graders gave each reason, and for which tools and arguments.

    They are one family, decided by Holm's rule.
    """
    shared = [task for task in a.tasks if task in b.tasks]
    trials_a, causes_a = a.causes_by_task(key, shared, rules.failed)
    trials_b, causes_b = b.causes_by_task(key, shared, rules.failed)
    tasks = [task for task in trials_a if task in trials_b]
    positions = {task: position for position, task in enumerate(tasks)}
    changed: dict[str, list[Row]] = {"reasons": [], "tools": [], "arguments": []}
    for cause in _most_frequent_first(causes_a, causes_b):
        kind, name = cause
        if not tasks or len(changed[kind]) == _CAUSES:
            continue
        before = causes_a.get(cause, {})
        after = causes_b.get(cause, {})
        shares_a = _shares_of_trials(before, trials_a, positions)
        shares_b = _shares_of_trials(after, trials_b, positions)
        gaps = _subtract_shares(shares_a, shares_b, positions)
        unchanged = len(tasks) - len(gaps)
        tested = difference([*gaps.values()], unchanged=unchanged)
        row = _make_row(tested, [*gaps], "cause", rules)
        row.fields["name"] = name
        row.fields["a"] = fsum(shares_a.values()) / len(tasks)
        row.fields["b"] = fsum(shares_b.values()) / len(tasks)
        total_before = sum(before.values())
        total_after = sum(after.values())
        row.fields["trials"] = [total_before, total_after]
        changed[kind].append(row)
    _decide([row for rows in changed.values() for row in rows], rules)
    fields: dict[str, list[dict[str, Any]]] = {}
    for kind_of_cause, rows in changed.items():
        fields[kind_of_cause] = [row.fields for row in rows]
        fields[kind_of_cause].sort(key=_surest_first)
    return fields


def _shares_of_trials(
    times: Mapping[str, int], trials: Mapping[str, int], tasks: Container[str]
) -> dict[str, float]:
    """Return the share of trials with a cause, of the tasks that have any."""
    return {task: number / trials[task] for task, number in times.items() if task in tasks}


def _subtract_shares(
    before: Mapping[str, float], after: Mapping[str, float], positions: Mapping[str, int]
) -> dict[str, float]:
    """Return the rise of each task's share, of the tasks whose share is another, in their order."""
    gaps = {}
    for task in sorted({*before, *after}, key=positions.__getitem__):
        gap = after.get(task, 0.0) - before.get(task, 0.0)
        if gap:
            gaps[task] = gap
    return gaps


def _most_frequent_first(*sides: Mapping[Cause, Mapping[str, int]]) -> list[Cause]:
    """Return the causes of all sides, those given in most trials first."""
    totals = Counter[Cause]()
    for causes in sides:
        for cause, times in causes.items():
            totals[cause] += sum(times.values())
    return [cause for cause, _ in totals.most_common() if cause[0] != "details"]


def _make_row(tested: Difference, tasks: Sequence[str], better_is: str, rules: Rules) -> Row:
    fields = {"difference": tested.difference}
    alpha = rules.alpha
    return Row(fields=fields, difference=tested, tasks=tasks, better_is=better_is, level=alpha)


def _decide(rows: Sequence[Row], rules: Rules) -> None:
    """Decide rows together, and write what is decided."""
    decide_together(rows, rules.alpha)
    for row in rows:
        row.fields |= row.describe()
        row.fields["confidence"] = 1 - row.level
        row.fields["ends"] = row.ends


def _surest_first(row: Mapping[str, Any]) -> tuple[float, float]:
    p = 1.0 if row["p_holm"] is None else row["p_holm"]
    gap = row["difference"] or 0.0
    return p, -abs(gap)


def flips(a: Side, b: Side, key: str, failed: Failed) -> dict[str, Any]:
    """Count trials that passed on one side only, and list the tasks that changed.

    Returns:
        ``fixed`` and ``broken``, numbers of trials; ``tasks``, the largest change first, and their
        ``count``; ``worse`` and ``better``, those that pass in a smaller or larger share of trials,
        with the new cause of a worse one; ``unchanged``, numbers of the tasks that never, sometimes
        and always pass.
    """
    verdicts_b = b.trial_verdicts(key, failed)
    fixed = broken = 0
    changed = []
    unchanged = {"never": 0, "sometimes": 0, "always": 0}
    for task, before in a.trial_verdicts(key, failed).items():
        after = verdicts_b.get(task, {})
        if not before or not after:
            continue
        pairs = _pair_trials(before, after)
        fixed += sum(is_passed > was_passed for was_passed, is_passed in pairs)
        broken += sum(is_passed < was_passed for was_passed, is_passed in pairs)
        passed_a = sum(before.values())
        passed_b = sum(after.values())
        rise = passed_b * len(before) - passed_a * len(after)
        gap = rise / len(before) / len(after)
        if not rise:
            unchanged[_how_often(passed_a, len(before))] += 1
        text_a = f"{passed_a}/{len(before)}"
        text_b = f"{passed_b}/{len(after)}"
        if text_a != text_b:
            changed.append((-abs(gap), gap, {"task": task, "a": text_a, "b": text_b}))
    changed.sort(key=lambda change: (*change[:2], change[2]["task"]))
    tasks = [task for *_, task in changed]
    worse = [task for _, gap, task in changed if gap < 0]
    better = [task for _, gap, task in changed if gap > 0]
    find_cause = _NewCauses(a, b, key, failed)
    worse_listed = _list_tasks(worse)
    worse_listed["tasks"] = [
        {**task, "cause": find_cause(task["task"])} for task in worse_listed["tasks"]
    ]
    counts = {"fixed": fixed, "broken": broken, "count": len(changed), "unchanged": unchanged}
    better_listed = _list_tasks(better)
    return {**counts, "tasks": tasks[:_LISTED], "worse": worse_listed, "better": better_listed}


def _how_often(passed: int, trials: int) -> str:
    if not passed:
        return "never"
    return "always" if passed == trials else "sometimes"


def _list_tasks(tasks: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    return {"count": len(tasks), "tasks": tasks[:_LISTED]}


class _NewCauses:
    """Finds why a task that passed more often before fails now."""

    def __init__(self, a: Side, b: Side, key: str, failed: Failed) -> None:
        self._passes = [(side, side.passes(key, failed)) for side in (a, b)]

    def __call__(self, task: str) -> str | None:
        """Return the most frequent cause of B's failed trials that no failed trial of A has."""
        before, after = (_causes_of_failed(side, passes, task) for side, passes in self._passes)
        new = {cause: times for cause, times in after.items() if cause not in before}
        return max(new, key=new.__getitem__) if new else None


def _causes_of_failed(side: Side, passes: Sequence[bool | None], task: str) -> Counter[str]:
    """Count the failed trials of a task by the reasons that graders gave."""
    facts = side.samples.facts
    causes = Counter[str]()
    for row in side.tasks[task]:
        if passes[row] is False:
            causes.update(name for kind, name in facts[row].causes if kind == "details")
    return causes


def _pair_trials(before: Verdicts, after: Verdicts) -> list[tuple[bool, bool]]:
    """Pair the verdicts (before, after) of trials of one name; without common names, by order."""
    pairs = [(before[trial], after[trial]) for trial in before if trial in after]
    return pairs or [*zip(before.values(), after.values(), strict=False)]


def compare_by_facet(
    a: Side, b: Side, key: str, facet: str, rules: Rules, *, rate: bool
) -> list[dict[str, Any]]:
    """Compare within each value of a facet, the largest loss first; the values are one family."""
    _check_facet(a, facet)
    pair = mean_pair(a, b, key, rules.failed, rate=rate)
    groups: dict[str, dict[str, float]] = {}
    for task, gap in zip(pair.tasks, pair.gaps, strict=True):
        value = str(a.facet(facet, task))
        gaps = groups.setdefault(value, {})
        gaps[task] = gap
    better_is = "higher" if rate else a.declared(key)["better_is"]
    rows = []
    for group, gaps in groups.items():
        tasks = [*gaps]
        of_group = replace(pair, tasks=tasks, gaps=[*gaps.values()])
        row = _make_row(of_group.difference(), tasks, better_is, rules)
        row.fields |= {"group": group, "tasks": len(gaps)}
        rows.append(row)
    _decide(rows, rules)
    sign = -1 if better_is == "lower" else 1
    fields = [row.fields for row in rows]
    fields.sort(key=lambda row: (sign * (row["difference"] or 0.0), row["group"]))
    return fields


def _check_facet(side: Side, facet: str) -> None:
    known = side.samples.facets
    if facet not in known:
        names = ", ".join(known) or "none"
        hint = suggest(facet, known) or f"; there are: {names}"
        raise ConfigError(f"no task of {side.name} has a facet {facet!r}{hint}")

"""Changes between two sides: causes, trials, and the groups of a facet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import sub
from typing import Any

from gradestack.comparison.families import Row, decide_together
from gradestack.comparison.figures import mean_pair
from gradestack.comparison.paired import Difference, difference, mean_of
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
    changed: dict[str, list[Row]] = {"reasons": [], "tools": [], "arguments": []}
    for cause in _most_frequent_first(causes_a, causes_b):
        kind, name = cause
        if not tasks or len(changed[kind]) == _CAUSES:
            continue
        before, after = causes_a.get(cause, {}), causes_b.get(cause, {})
        shares_a = [before.get(task, 0) / trials_a[task] for task in tasks]
        shares_b = [after.get(task, 0) / trials_b[task] for task in tasks]
        gaps = [*map(sub, shares_b, shares_a)]
        row = _make_row(difference(gaps), tasks, "cause", rules)
        row.fields |= {"name": name, "a": mean_of(shares_a), "b": mean_of(shares_b)}
        row.fields["trials"] = [sum(before.values()), sum(after.values())]
        changed[kind].append(row)
    _decide([row for rows in changed.values() for row in rows], rules)
    fields: dict[str, list[dict[str, Any]]] = {}
    for kind_of_cause, rows in changed.items():
        fields[kind_of_cause] = [row.fields for row in rows]
        fields[kind_of_cause].sort(key=_surest_first)
    return fields


def _most_frequent_first(*sides: Mapping[Cause, Mapping[str, int]]) -> list[Cause]:
    """Return the causes of all sides, those given in most trials first."""
    totals = Counter[Cause]()
    for causes in sides:
        for cause, times in causes.items():
            totals[cause] += sum(times.values())
    return [cause for cause, _ in totals.most_common()]


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
    """Count trials that passed on one side only, and list tasks, the largest difference first."""
    verdicts_b = b.trial_verdicts(key, failed)
    fixed = broken = 0
    changed = []
    for task, before in a.trial_verdicts(key, failed).items():
        after = verdicts_b.get(task, {})
        if not before or not after:
            continue
        pairs = _pair_trials(before, after)
        fixed += sum(is_passed > was_passed for was_passed, is_passed in pairs)
        broken += sum(is_passed < was_passed for was_passed, is_passed in pairs)
        passed_a, passed_b = sum(before.values()), sum(after.values())
        rise = passed_b * len(before) - passed_a * len(after)
        gap = rise / len(before) / len(after)
        text_a, text_b = f"{passed_a}/{len(before)}", f"{passed_b}/{len(after)}"
        if text_a != text_b:
            changed.append((-abs(gap), gap, task, text_a, text_b))
    listed = sorted(changed)[:_LISTED]
    tasks = [{"task": task, "a": text_a, "b": text_b} for _, _, task, text_a, text_b in listed]
    return {"fixed": fixed, "broken": broken, "tasks": tasks, "count": len(changed)}


def _pair_trials(before: Verdicts, after: Verdicts) -> list[tuple[bool, bool]]:
    """Pair trials of one name; where no name is on both sides, in their order."""
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

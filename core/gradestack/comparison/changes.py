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
from gradestack.comparison.sides import Cause, Failed, Side
from gradestack.errors import ConfigError, suggest
from gradestack.model import replace

_LISTED = 100  # tasks of a list in comparison.json
_CAUSES = 50  # reasons, tools and arguments whose change is tested: the most frequent of each kind


def changes(a: Side, b: Side, key: str, rules: Rules) -> dict[str, list[dict[str, Any]]]:
    """Compare how often graders gave each reason, and for which tools and arguments.

    They are one family, decided by Holm's rule.
    """
    shared = [task for task in a.tasks if task in b.tasks]
    trials_a, causes_a = a.causes_by_task(key, shared, rules.failed)
    trials_b, causes_b = b.causes_by_task(key, shared, rules.failed)
    tasks = [task for task in trials_a if task in trials_b]
    totals = Counter[Cause]()
    for causes in (causes_a, causes_b):
        for cause, times in causes.items():
            totals[cause] += sum(times.values())
    changed: dict[str, list[Row]] = {"reasons": [], "tools": [], "arguments": []}
    for cause, _ in totals.most_common():
        kind, name = cause
        if not tasks or len(changed[kind]) == _CAUSES:
            continue
        before, after = causes_a.get(cause, {}), causes_b.get(cause, {})
        shares_a = [before.get(task, 0) / trials_a[task] for task in tasks]
        shares_b = [after.get(task, 0) / trials_b[task] for task in tasks]
        row = _make_row(difference([*map(sub, shares_b, shares_a)]), tasks, "cause", rules)
        row.fields |= {"name": name, "a": mean_of(shares_a), "b": mean_of(shares_b)}
        row.fields["trials"] = [sum(before.values()), sum(after.values())]
        changed[kind].append(row)
    _decide([row for rows in changed.values() for row in rows], rules)
    return {
        kind: sorted([row.fields for row in rows], key=_surest_first)
        for kind, rows in changed.items()
    }


def _make_row(tested: Difference, tasks: Sequence[str], better_is: str, rules: Rules) -> Row:
    fields = {"difference": tested.difference}
    return Row(
        fields=fields, difference=tested, tasks=tasks, better_is=better_is, level=rules.alpha
    )


def _decide(rows: Sequence[Row], rules: Rules) -> None:
    """Decide rows together, and write what is decided."""
    decide_together(rows, rules.alpha)
    for row in rows:
        row.fields |= row.describe() | {"confidence": 1 - row.level, "ends": row.ends}


def _surest_first(row: Mapping[str, Any]) -> tuple[float, float]:
    p = row["p_holm"]
    return (1.0 if p is None else p, -abs(row["difference"] or 0.0))


def flips(a: Side, b: Side, key: str, failed: Failed) -> dict[str, Any]:
    """Count trials that passed on one side only, and list tasks, the largest difference first."""
    verdicts_b = b.trial_verdicts(key, failed)
    fixed = broken = 0
    changed = []
    for task, before in a.trial_verdicts(key, failed).items():
        after = verdicts_b.get(task, {})
        if not before or not after:
            continue
        # trials of one name; where no name is on both sides, in their order
        pairs = [(before[trial], after[trial]) for trial in before if trial in after]
        pairs = pairs or [*zip(before.values(), after.values(), strict=False)]
        fixed += sum(is_passed > was_passed for was_passed, is_passed in pairs)
        broken += sum(is_passed < was_passed for was_passed, is_passed in pairs)
        passed_a, passed_b = sum(before.values()), sum(after.values())
        apart = passed_b * len(before) - passed_a * len(after)
        gap = apart / len(before) / len(after)
        text_a, text_b = f"{passed_a}/{len(before)}", f"{passed_b}/{len(after)}"
        if text_a != text_b:
            changed.append((-abs(gap), gap, task, text_a, text_b))
    listed = sorted(changed)[:_LISTED]
    tasks = [{"task": task, "a": text_a, "b": text_b} for _, _, task, text_a, text_b in listed]
    return {"fixed": fixed, "broken": broken, "tasks": tasks, "count": len(changed)}


def compare_by_facet(
    a: Side, b: Side, key: str, facet: str, rules: Rules, *, rate: bool
) -> list[dict[str, Any]]:
    """Compare within each value of a facet, the largest loss first; the values are one family."""
    known = a.samples.facets
    if facet not in known:
        names = ", ".join(known) or "none"
        hint = suggest(facet, known) or f"; there are: {names}"
        raise ConfigError(f"no task of {a.name} has a facet {facet!r}{hint}")
    pair = mean_pair(a, b, key, rules.failed, rate=rate)
    groups: dict[str, dict[str, float]] = {}
    for task, gap in zip(pair.tasks, pair.gaps, strict=True):
        groups.setdefault(str(a.facet(facet, task)), {})[task] = gap
    better_is = "higher" if rate else a.declared(key)["better_is"]
    rows = []
    for group, gaps in groups.items():
        tested = replace(pair, tasks=[*gaps], gaps=[*gaps.values()]).difference()
        row = _make_row(tested, [*gaps], better_is, rules)
        row.fields |= {"group": group, "tasks": len(gaps)}
        rows.append(row)
    _decide(rows, rules)
    sign = -1 if better_is == "lower" else 1
    fields = [row.fields for row in rows]
    fields.sort(key=lambda row: (sign * (row["difference"] or 0.0), row["group"]))
    return fields

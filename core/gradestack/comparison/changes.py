"""What changed between two sides: causes, trials, and the groups of a facet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gradestack.comparison.families import Decision, decide_together, make_test, name_verdict
from gradestack.comparison.figures import mean_pair
from gradestack.comparison.paired import difference, mcnemar
from gradestack.comparison.rows import Rules
from gradestack.comparison.sides import Cause, Failed, Side, Times
from gradestack.errors import ConfigError, suggest
from gradestack.model import JSON

_LISTED = 100  # tasks of a list in comparison.json
_CAUSES = 50  # reasons, tools and arguments whose change is tested: the most frequent of each kind


def changes(a: Side, b: Side, key: str, rules: Rules) -> dict[str, Any]:
    """Compare how often graders gave each reason, and for which tools and arguments.

    They are one family, decided by Holm's rule.
    """
    shared = [task for task in a.tasks if task in b.tasks]
    trials_a, causes_a = a.causes_by_task(key, shared, rules.failed)
    trials_b, causes_b = b.causes_by_task(key, shared, rules.failed)
    tasks = [task for task in trials_a if task in trials_b]
    changed: dict[str, Any] = {"reasons": [], "tools": [], "arguments": []}
    rows, tests = [], []
    for cause in _most_frequent(changed, causes_a, causes_b) if tasks else ():
        kind, name = cause
        before, after = causes_a.get(cause, {}), causes_b.get(cause, {})
        shares_a = [before.get(task, 0) / trials_a[task] for task in tasks]
        shares_b = [after.get(task, 0) / trials_b[task] for task in tasks]
        gaps = [right - left for left, right in zip(shares_a, shares_b, strict=True)]
        tested = difference(gaps, confidence=rules.confidence)
        row: dict[str, Any] = {"name": name}
        row["a"] = sum(shares_a) / len(tasks)
        row["b"] = sum(shares_b) / len(tasks)
        row["trials"] = [sum(before.values()), sum(after.values())]
        row["difference"] = tested.difference
        changed[kind].append(row)
        rows.append(row)
        tests.append(make_test(tested, tasks, gaps))
    for row, decision in zip(rows, decide_together(tests, rules.alpha), strict=True):
        row["verdict"] = _name_change(decision)
        row.update(_describe(decision))
    for kind_rows in changed.values():
        kind_rows.sort(key=_surest_first)
    return changed


def _most_frequent(kinds: Iterable[str], *sides: Mapping[Cause, Times]) -> list[Cause]:
    """Return the causes that most trials of both sides have, of each kind."""
    totals = Counter[Cause]()
    for causes in sides:
        for cause, times in causes.items():
            totals[cause] += sum(times.values())
    chosen = []
    for kind in kinds:
        of_kind = [cause for cause, _ in totals.most_common() if cause[0] == kind]
        chosen += of_kind[:_CAUSES]
    return chosen


def _name_change(decision: Decision) -> str:
    known = decision.difference
    if known.tasks and not known.size:
        return "same"
    if not decision.is_certain or not known.difference:
        return "no evidence"
    return "more often" if known.difference > 0 else "less often"


def _describe(decision: Decision) -> dict[str, Any]:
    return {
        "p": decision.p,
        "p_holm": decision.p_holm,
        "tests": decision.tests,
        "confidence": 1 - decision.level,
        "ends": decision.ends,
    }


def _surest_first(row: Mapping[str, Any]) -> tuple[float, float]:
    p = row["p_holm"]
    return (1.0 if p is None else p, -abs(row["difference"] or 0.0))


def _sign(side: Side, key: str) -> int:
    return -1 if side.declared(key)["better_is"] == "lower" else 1


def flips(a: Side, b: Side, key: str, failed: Failed) -> dict[str, Any]:
    """Count trials that passed on one side only, and list tasks, the largest difference first."""
    pair = mean_pair(a, b, key, failed)
    gaps = dict(zip(pair.tasks, pair.gaps, strict=True))
    sign = _sign(a, key)
    verdicts_b = b.trial_verdicts(key, failed)
    fixed = broken = single = 0
    changed = []
    for task, before in a.trial_verdicts(key, failed).items():
        after = verdicts_b.get(task, {})
        single += len(before) == len(after) == 1
        for passed_before, passed_after in _pair_trials(before, after):
            fixed += passed_after and not passed_before
            broken += passed_before and not passed_after
        if not before or not after:
            continue
        passed_a, passed_b = sum(before.values()), sum(after.values())
        if (passed_a, len(before)) != (passed_b, len(after)):
            gap = sign * gaps.get(task, 0.0)
            text_a = f"{passed_a}/{len(before)}"
            text_b = f"{passed_b}/{len(after)}"
            changed.append((-abs(gap), gap, task, text_a, text_b))
    changed.sort(key=lambda row: row[:3])
    listed = []
    for _, _, task, text_a, text_b in changed[:_LISTED]:
        listed.append({"task": task, "a": text_a, "b": text_b})
    flipped: dict[str, Any] = {"fixed": fixed, "broken": broken}
    flipped["mcnemar_p"] = mcnemar(fixed, broken) if single == len(pair.tasks) else None
    flipped["tasks"] = listed
    flipped["count"] = len(changed)
    return flipped


def _pair_trials(before: Mapping[Any, bool], after: Mapping[Any, bool]) -> list[tuple[bool, bool]]:
    """Pair the verdicts of trials of one name; where no name is on both sides, in their order."""
    same_names = [(before[trial], after[trial]) for trial in before if trial in after]
    if same_names:
        return same_names
    return list(zip(before.values(), after.values(), strict=False))


def compare_by_facet(
    a: Side, b: Side, key: str, facet: str, rules: Rules, *, rate: bool
) -> list[dict[str, JSON]]:
    """Compare within each value of a facet, the largest loss first; the values are one family."""
    known = a.samples.facets
    if facet not in known:
        names = ", ".join(known) or "none"
        hint = suggest(facet, known) or f"; there are: {names}"
        raise ConfigError(f"no task of {a.name} has a facet {facet!r}{hint}")
    pair = mean_pair(a, b, key, rules.failed, rate=rate)
    gaps_by_group: dict[str, dict[str, float]] = {}
    for task, gap in zip(pair.tasks, pair.gaps, strict=True):
        gaps_by_group.setdefault(str(a.facet(facet, task)), {})[task] = gap
    tests = []
    for gaps in gaps_by_group.values():
        values = [*gaps.values()]
        tested = difference(values, confidence=rules.confidence, bounded=pair.share)
        tests.append(make_test(tested, [*gaps], values))
    better_is = "higher" if rate else a.declared(key)["better_is"]
    rows = []
    for group, decision in zip(gaps_by_group, decide_together(tests, rules.alpha), strict=True):
        row: dict[str, Any] = {"group": group, "tasks": decision.difference.tasks}
        row["difference"] = decision.difference.difference
        row["verdict"] = name_verdict(decision, better_is)
        row.update(_describe(decision))
        rows.append(row)
    sign = -1 if better_is == "lower" else 1
    rows.sort(key=lambda row: (sign * (row["difference"] or 0.0), row["group"]))
    return rows

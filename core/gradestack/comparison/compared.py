"""Runs compared: differences per metric, flips, a leaderboard, and a sentence that says what they come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from gradestack.comparison.figures import Figure, Pair, figure_pairs
from gradestack.comparison.paired import Difference, detectable, difference, holm, mcnemar, tasks_needed
from gradestack.comparison.sides import UNMATCHED, Failed, Matched, Side, asked_otherwise, bounded, differing
from gradestack.errors import ConfigError, DataError, suggest
from gradestack.jsonio.values import as_map, as_text
from gradestack.model import JSON
from gradestack.output.words import counted

_LISTED = 100
"""Tasks of a list in comparison.json."""
_SIGNIFICANT = 0.05


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
        """What it comes to, on the headline metric."""
        return str(self.data["sentence"])


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are compared."""

    headline: str | None = None
    """Metric of the sentence; default: the baseline's outcome grader, else the first that all have."""
    failed: Failed = "zero"
    """What failed and missing trials count as: a score of 0, or not at all."""
    confidence: float = 0.95
    force: bool = False
    """Compare what differs in graders, expectations or inputs all the same."""
    by: str | None = None
    """Facet to compare within its values."""
    figures: Sequence[Figure] = ()
    """Figures that are no means of scores, compared beside the graders' means."""
    left_out: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Path of a figure that cannot be compared -> why."""


def compared(sides: Sequence[Side], rules: Rules, pairs: Sequence[tuple[Side, Side]] | None = None) -> Comparison:
    """Return the comparison of sides, the first being the baseline."""
    chosen = list(combinations(sides, 2)) if pairs is None else pairs
    problems = list(dict.fromkeys(problem for a, b in chosen for problem in differing(a, b)))
    asked = [each for a, b in chosen if (each := asked_otherwise(a, b)) is not None]
    otherwise = {each.text for each in asked}
    if problems and not rules.force:
        msg = "the runs cannot be compared"
        apart = [problem for problem in problems if problem.endswith(UNMATCHED)]
        told = [f"{problem}; try --match input or ordinal" if problem in apart else problem for problem in problems]
        told = [f"{problem}; try --match input" if problem in otherwise else problem for problem in told]
        force = ["--force compares them all the same, and says so in its first line"] if len(apart) < len(told) else []
        raise DataError(msg, *told, *force)
    remarks = [each.text for each in asked if not each.apart]
    shared = [key for key in sides[0].graders if all(key in side.graders for side in sides)]
    if not shared:
        raise DataError("the runs cannot be compared: they have no grader in common")
    headline = _headline(sides[0], shared, rules.headline)
    found = [_pair(a, b, shared, rules) for a, b in chosen]
    if len(found) > 1:  # several models: over all pairs of the headline's metric
        decisive = [pair["metrics"][headline] for pair in found]
        for metric, p in zip(decisive, holm(list(map(_p_of, decisive))), strict=True):
            metric["p_holm"] = p
            metric["verdict"] = _verdict(metric, 1 - rules.confidence)
    data: dict[str, Any] = {
        "baseline": sides[0].name,
        "runs": [_described(side) for side in sides],
        "incomparable": problems,
        **({"warnings": remarks} if remarks else {}),
        "headline": headline,
        "failed": rules.failed,
        **{name: found[0][name] for name in ("outcome", "metrics", "figures") if name in found[0]},
        "only": {side.name: sorted(side.graders.keys() - set(shared)) for side in sides},
        **({"not_compared": dict(rules.left_out)} if rules.left_out else {}),
        "flips": flips(*chosen[0], headline, rules.failed),
    }
    if rules.by is not None:
        data["by"] = {"facet": rules.by, "groups": _facets(*chosen[0], headline, rules)}
    if len(sides) > 2:
        data["pairs"] = found
    if len(sides) > 2 and pairs is None:
        data["groups"] = leaderboard(sides, found, headline, rules.failed)
    data["sentence"] = sentence(*chosen[0], headline, found[0]["metrics"][headline], rules.confidence)
    return Comparison(sides=tuple(sides), data=data)


def _headline(baseline: Side, shared: Sequence[str], asked: str | None) -> str:
    """Return the grader asked for, else that of the baseline's outcome, else the first."""
    if asked is not None and asked not in shared:
        raise ConfigError(f"no grader {asked!r} is in all runs{suggest(asked, shared)}; there are: {', '.join(shared)}")
    outcome = as_text(as_map(baseline.report.summary.get("outcome")).get("grader"))
    return asked or (outcome if outcome in shared else shared[0])


def _described(side: Side) -> dict[str, JSON]:
    return {"name": side.name, "model": side.model or None, "tasks": len(side.tasks), "trials": side.trials}


def _pair(a: Side, b: Side, shared: Sequence[str], rules: Rules) -> dict[str, Any]:
    metrics = {key: _metric(a, b, key, rules) for key in shared}
    pairs = figure_pairs(rules.figures, a, b, rules.failed)
    figures = {figure.path: _figure(a, b, figure, pairs[figure.path], rules) for figure in rules.figures}
    for rows in (metrics, figures):
        for row, p in zip(rows.values(), holm(list(map(_p_of, rows.values()))), strict=True):
            row["p_holm"] = p
            row["verdict"] = _verdict(row, 1 - rules.confidence)
    rate = {} if a.outcome is None or a.outcome != b.outcome else {"outcome": _outcome(a, b, a.outcome, rules)}
    return {"a": a.name, "b": b.name, **rate, "metrics": metrics, **({"figures": figures} if figures else {})}


def _outcome(a: Side, b: Side, key: str, rules: Rules) -> dict[str, Any]:
    """Return the share of trials that passed by the runs' verdict, paired by task; its p is adjusted for nothing."""
    matched = Matched.of(a.pass_rates(key, rules.failed), b.pass_rates(key, rules.failed))
    word = as_text(as_map(as_map(a.report.summary.get("outcome")).get("words")).get("passed")) or "passed"
    row = _mean_row(matched, {"label": word.capitalize(), "unit": "share", "better_is": "higher"}, rules, share=True)
    row |= {"grader": key, "p_holm": _p_of(row)}
    return {**row, "verdict": _verdict(row, 1 - rules.confidence)}


def _metric(a: Side, b: Side, key: str, rules: Rules) -> dict[str, Any]:
    matched, share = Matched.scores(a, b, key, rules.failed), bounded(a, b, key, rules.failed)
    return _mean_row(matched, a.declared(key), rules, share=share)


def _mean_row(matched: Matched, declared: Mapping[str, Any], rules: Rules, *, share: bool) -> dict[str, Any]:
    """Return how far means over tasks are apart, and how many tasks are better, worse and the same.

    Better and worse are not known without a direction.
    """
    asked, usual = (
        difference(matched.differences, confidence=each, bounded=share) for each in (rules.confidence, 0.95)
    )
    better: int | None = asked.better
    worse: int | None = asked.worse
    if declared["better_is"] == "lower":
        better, worse = worse, better
    elif declared["better_is"] == "neither":
        better = worse = None
    row = _row(matched.means, asked, usual, rules, share=share)
    return {**row, "better": better, "worse": worse, "same": asked.same, **declared, **_only(matched)}


def _figure(a: Side, b: Side, figure: Figure, pair: Pair, rules: Rules) -> dict[str, Any]:
    matched = Matched.scores(a, b, figure.grader, rules.failed)
    asked, usual = pair.difference(rules.confidence), pair.difference(0.95)
    row = _row((pair.a.value, pair.b.value), asked, usual, rules, share=pair.share)
    return {**row, "moved": asked.better + asked.worse, **figure.declared, **_only(matched)}


def _row(
    values: Sequence[float | None], asked: Difference, usual: Difference, rules: Rules, *, share: bool
) -> dict[str, Any]:
    spread = None if asked.stderr is None else asked.stderr * math.sqrt(asked.tasks)
    shows = None if not spread else detectable(spread, asked.tasks)
    return {
        "a": values[0],
        "b": values[1],
        "difference": asked.difference,
        "stderr": asked.stderr,
        "ci95": _ends(usual),
        "interval": {"confidence": rules.confidence, "ends": _ends(asked), "reason": asked.reason or None},
        "p": asked.p,
        "p_exact": asked.p_exact,
        "p_holm": None,
        "mde80": None if shows is not None and share and shows > 1 else shows,
        "tasks_needed": tasks_needed(spread or 0.0, asked.difference or 0.0),
        "tasks": asked.tasks,
    }


def _only(matched: Matched) -> dict[str, Any]:
    only = {"only_a": matched.only_a, "only_b": matched.only_b}
    return {name: tasks[:_LISTED] for name, tasks in only.items()} | {
        f"{name}_count": len(tasks) for name, tasks in only.items()
    }


def _ends(of: Difference) -> list[float] | None:
    return None if of.low is None or of.high is None else [of.low, of.high]


_WORDS = {"higher": ("better", "worse"), "lower": ("worse", "better"), "neither": ("higher", "lower")}


def _verdict(row: Mapping[str, Any], level: float) -> str:
    """Return what a difference comes to: the one word that console, pages and comparison.json have for it.

    ``better`` and ``worse`` by the declared direction, ``higher`` and ``lower`` where it has none, each only where the
    Holm-adjusted p is below the level; ``same`` where every task is; else ``no evidence``, and ``no test`` without a p.
    """
    gap = row["difference"]
    moved = row["moved"] if "moved" in row else row["tasks"] - row["same"]
    if row["tasks"] and gap == 0 and not moved:
        return "same"
    if row["p_holm"] is None:
        return "no test"
    if row["p_holm"] >= level or not gap:
        return "no evidence"
    up, down = _WORDS[row["better_is"]]
    return up if gap > 0 else down


def _p_of(metric: Mapping[str, Any]) -> float | None:
    """Return the p of the t test; of the exact one where every task differs by the same, which has no t."""
    found: float | None = metric["p_exact"] if metric["p"] is None else metric["p"]
    return found


def flips(a: Side, b: Side, key: str, failed: Failed) -> dict[str, Any]:
    """Return which trials passed on one side only, and per task how many passed.

    Tasks whose score differs most come first, of these those that lost. Trials without a verdict have no part.
    """
    matched = Matched.scores(a, b, key, failed)
    gaps = dict(zip(matched.tasks, matched.differences, strict=True))
    sign = -1 if a.declared(key)["better_is"] == "lower" else 1
    verdicts_a, verdicts_b = a.trial_verdicts(key, failed), b.trial_verdicts(key, failed)
    fixed = broken = single = 0
    tasks = []
    for name, left in verdicts_a.items():
        before = {trial: passed for trial, (passed, _) in left.items()}
        after = {trial: passed for trial, (passed, _) in verdicts_b.get(name, {}).items()}
        single += len(before) == len(after) == 1
        both = [(before[trial], after[trial]) for trial in before if trial in after]
        both = both or list(zip(before.values(), after.values(), strict=False))  # numbered on: in order
        fixed += sum(now and not then for then, now in both)
        broken += sum(then and not now for then, now in both)
        counts = [sum(before.values()), len(before), sum(after.values()), len(after)]
        if counts[:2] != counts[2:] and counts[1] and counts[3]:
            tasks.append((sign * gaps.get(name, 0.0), name, f"{counts[0]}/{counts[1]}", f"{counts[2]}/{counts[3]}"))
    tasks.sort(key=lambda each: (-abs(each[0]), each[0], each[1]))
    return {
        "fixed": fixed,
        "broken": broken,
        "mcnemar_p": mcnemar(fixed, broken) if single == len(matched.tasks) else None,
        "tasks": [{"task": name, "a": left, "b": right} for _, name, left, right in tasks[:_LISTED]],
        "count": len(tasks),
    }


def _facets(a: Side, b: Side, key: str, rules: Rules) -> list[dict[str, JSON]]:
    """Return the difference within every value of a facet, the worst first."""
    name, known = str(rules.by), a.samples.facets
    if name not in known:
        hint = suggest(name, known) or f"; there are: {', '.join(known) or 'none'}"
        raise ConfigError(f"no task of {a.name} has a facet {name!r}{hint}")
    share, matched = bounded(a, b, key, rules.failed), Matched.scores(a, b, key, rules.failed)
    groups: dict[str, list[float]] = {}
    for task, value in zip(matched.tasks, matched.differences, strict=True):
        groups.setdefault(str(a.facet(name, task)), []).append(value)
    sign = -1 if a.declared(key)["better_is"] == "lower" else 1
    listed = []
    for group, values in groups.items():
        each = difference(values, confidence=rules.confidence, bounded=share)
        listed.append((sign * (each.difference or 0.0), group, each))
    return [
        {"group": group, "tasks": each.tasks, "difference": each.difference, "ends": _ends(each), "p": each.p}
        for _, group, each in sorted(listed, key=lambda item: item[:2])
    ]


def leaderboard(
    sides: Sequence[Side], pairs: Sequence[Mapping[str, Any]], key: str, failed: Failed
) -> list[dict[str, JSON]]:
    """Return the sides by their mean over common tasks, the best first, each with the ranks it may have and its groups.

    The ranks of a side: from 1 + the number that are significantly better to M - the number significantly worse, by
    Holm over all pairs. A group is a run of neighbours no two of which differ; its letter.
    """
    means = {side.name: side.means(key, failed) for side in sides}
    common = set.intersection(*(set(each) for each in means.values()))
    score = {name: math.fsum(each[task] for task in common) / len(common) for name, each in means.items() if common}
    adjusted = holm([_p_of(pair["metrics"][key]) for pair in pairs])
    lower = sides[0].declared(key)["better_is"] == "lower"
    ahead: set[tuple[str, str]] = set()
    for pair, p in zip(pairs, adjusted, strict=True):
        gap = pair["metrics"][key]["difference"]
        if p is not None and p < _SIGNIFICANT and gap:
            ahead.add((pair["b"], pair["a"]) if (gap < 0) == lower else (pair["a"], pair["b"]))
    order = sorted(score, key=lambda name: score[name] if lower else -score[name])
    letters = _letters(order, ahead)
    return [
        {
            "name": name,
            "mean": score[name],
            "ranks": [
                1 + sum((other, name) in ahead for other in order),
                len(order) - sum((name, other) in ahead for other in order),
            ],
            "groups": letters[name],
        }
        for name in order
    ]


def _letters(order: Sequence[str], ahead: set[tuple[str, str]]) -> dict[str, str]:
    """Return the letters of maximal runs of neighbours that do not differ."""
    spans: list[tuple[int, int]] = []
    for first in range(len(order)):
        last = first
        while last + 1 < len(order) and not any((order[at], order[last + 1]) in ahead for at in range(first, last + 1)):
            last += 1
        if not spans or last > spans[-1][1]:
            spans.append((first, last))
    return {
        name: "".join(_letter(number) for number, (first, last) in enumerate(spans) if first <= at <= last)
        for at, name in enumerate(order)
    }


def _unmatched(a: Side, b: Side, metric: Mapping[str, Any]) -> str:
    """Return how many tasks have a score on one side only, which no difference is of."""
    only = [(metric[f"only_{at}_count"], side.name) for at, side in (("a", a), ("b", b))]
    return "".join(f"; {counted(count, 'task')} only in {name}" for count, name in only if count)


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"


def sentence(a: Side, b: Side, key: str, metric: Mapping[str, Any], confidence: float) -> str:
    """Return what a difference comes to, in words; never that two runs are equal."""
    gap, ends = metric["difference"], metric["interval"]["ends"]
    runs = {len(side.tasks[task]) for task in a.tasks.keys() & b.tasks.keys() for side in (a, b)}
    tasks = counted(metric["tasks"], "task") + (f" x {runs.pop()}" if len(runs) == 1 else "")
    only, reason = _unmatched(a, b, metric), metric["interval"]["reason"]
    if gap is None:
        return f"{b.name} cannot be compared with {a.name} on {key}: {reason}{only}"
    word, certain = metric["verdict"], metric["verdict"] in {"better", "worse", "higher", "lower"}
    if ends is None and certain:
        why = f"{reason}: exact p {metric['p_holm']:.2g}"
        return f"{b.name} is {word} than {a.name} on {key} by {abs(gap):.3f} ({why}, {tasks}){only}"
    if ends is None:
        return f"no test of {b.name} against {a.name} on {key} ({gap:+.3f}, {tasks}): {reason}{only}"
    share = f"{100 * confidence:.6g} % interval"
    if certain:
        low, high = ends if gap > 0 else (-ends[1], -ends[0])
        text = f"{b.name} is {word} than {a.name} on {key} by {abs(gap):.3f} ({share} {low:.3f} to {high:.3f}, {tasks})"
    else:
        can = "" if not metric["stderr"] else f"; {tasks} are too few to show any"
        can = can if metric["mde80"] is None else f"; {tasks} can show {metric['mde80']:.2f} or more"
        text = f"no evidence of a difference on {key} ({gap:.3f}, {ends[0]:.3f} to {ends[1]:.3f}){can}"
    text += only
    exact = metric["p_exact"]
    if exact is not None and metric["p"] is not None and (exact < _SIGNIFICANT) != (metric["p"] < _SIGNIFICANT):
        text += f"; borderline: the exact test disagrees (p {exact:.3f})"
    return text


_MOST = 5
"""Tasks whose rows are read."""


def flipped(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the first tasks that changed, each with a trial that passed on one side and one that did not on the other.

    Each has its ``task``, how many trials passed (``a`` and ``b``), and two ``sides`` with ``name``, ``passed``,
    ``position`` and ``row``, without its trajectory. Trials of one number are preferred.
    """
    key, failed = comparison.data["headline"], comparison.data["failed"]
    sides = comparison.sides[:2]
    left, right = (side.trial_verdicts(key, failed) for side in sides)
    found = []
    for each in comparison.data["flips"]["tasks"][:_MOST]:
        before, after = left[each["task"]], right[each["task"]]
        apart = ((one, other) for one in before for other in after if before[one][0] != after[other][0])
        trials = min(apart, key=lambda pair: pair[0] != pair[1], default=None)
        if trials is not None:
            shown = [_shown(sides[0], *before[trials[0]]), _shown(sides[1], *after[trials[1]])]
            found.append({**each, "sides": shown})
    return found


def _shown(side: Side, passed: bool, position: int) -> dict[str, Any]:
    ((number, _, line),) = side.report.lines([(position, side.samples.places[position])])
    row = side.report.row(number, line)
    row.pop("trajectory", None)
    return {"name": side.name, "passed": passed, "position": position, "row": row}

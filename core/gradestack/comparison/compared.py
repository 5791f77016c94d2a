"""Runs compared: differences per figure, what changed, flips, a leaderboard, and a sentence that sums them up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from string import ascii_lowercase
from typing import Any

import msgspec

from gradestack.comparison.figures import Figure, figure_pairs, headline_labels
from gradestack.comparison.paired import (
    Difference,
    all_rows,
    detectable,
    difference,
    holm,
    mcnemar,
    numbers,
    tasks_needed,
)
from gradestack.comparison.sides import UNMATCHED, Failed, Matched, Side, asked_otherwise, bounded, differing
from gradestack.declared import with_unit
from gradestack.errors import ConfigError, DataError, suggest
from gradestack.gates.verdicts import CALIBRATED
from gradestack.jsonio.values import as_list, as_map, as_text, is_number
from gradestack.model import JSON
from gradestack.output import counted

_SIDES = 100
"""Runs and models of runs that are compared with each other at once."""
_LISTED = 100
"""Tasks of a list in comparison.json."""
_SIGNIFICANT = 0.05
_CAUSES = 50
"""Reasons, tools and arguments whose change is tested: the most frequent of each kind."""


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


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are compared."""

    headline: str | None = None
    """Grader whose mean score the sentence is about; default: the rate of the outcome, else the first grader's mean."""
    failed: Failed = "zero"
    """What failed and missing trials count as: the least score, or not at all."""
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
    if pairs is None and len(sides) > _SIDES:
        pairs_of = f"{len(sides)} models are {math.comb(len(sides), 2):,} pairs"
        raise ConfigError(
            f"{pairs_of}; at most {_SIDES} are compared at once",
            f"name some of them: gradestack compare {sides[0].name} {sides[1].name}",
        )
    chosen = list(combinations(sides, 2)) if pairs is None else pairs
    problems = list(dict.fromkeys(problem for a, b in chosen for problem in differing(a, b)))
    asked = [each for a, b in chosen if (each := asked_otherwise(a, b)) is not None]
    if problems and not rules.force:
        _refuse(problems, {each.text for each in asked})
    remarks = [each.text for each in asked if not each.apart]
    for side in sides:
        remarks += [f"{side.name}: {each}" for each in as_map(side.report.header.get("subset")).get("said", ())]
        lost = [each for each in as_list(side.report.summary.get("warnings")) if "to compare: --" in as_text(each)]
        remarks += [f"{side.name}: {each}" for each in lost]
    shared = [key for key in sides[0].graders if all(key in side.graders for side in sides)]
    if not shared:
        there = [f"{side.name} has {', '.join(side.graders) or 'none'}" for side in sides]
        raise DataError("the runs cannot be compared: they have no grader in common", *there)
    headline = _headline(sides[0], shared, rules.headline)
    found = [_pair(a, b, shared, rules) for a, b in chosen]
    by_rate = rules.headline is None and all("outcome" in pair for pair in found)
    decisive = [pair["outcome"] if by_rate else pair["metrics"][headline] for pair in found]
    if len(found) > 1:  # several models: over all pairs of the headline's figure
        judged = zip(found, map(numbers, decisive), strict=True)
        alike = [[row for row in all_rows(pair) if numbers(row) == figures] for pair, figures in judged]
        _judge(alike, rules)
    data: dict[str, Any] = {
        "baseline": sides[0].name,
        "runs": [
            {"name": side.name, "model": side.model or None, "tasks": len(side.tasks), "trials": side.trials}
            for side in sides
        ],
        "incomparable": problems,
        **({"warnings": remarks} if remarks else {}),
        "headline": headline,
        "failed": rules.failed,
        **{name: found[0][name] for name in ("outcome", "metrics", "figures") if name in found[0]},
        "only": {side.name: sorted(side.graders.keys() - set(shared)) for side in sides},
        **({"not_compared": dict(rules.left_out)} if rules.left_out else {}),
        "changed": changes(*chosen[0], headline, rules),
        "flips": flips(*chosen[0], headline, rules.failed),
    }
    if rules.by is not None:
        data["by"] = {"facet": rules.by, "groups": _facets(*chosen[0], headline, rules)}
    if len(sides) > 2:
        data["pairs"] = found
    if len(sides) > 2 and pairs is None:
        means_of = Side.pass_rates if by_rate else Side.means
        values = {side.name: means_of(side, headline, rules.failed) for side in sides}
        data["groups"] = leaderboard(values, found, decisive)
    data["sentence"] = sentence(*chosen[0], found[0], decisive[0])
    return Comparison(sides=tuple(sides), data=data)


def _refuse(problems: Sequence[str], otherwise: set[str]) -> None:
    apart = [problem for problem in problems if problem.endswith(UNMATCHED)]
    advice = dict.fromkeys(apart, "; try --match input or ordinal") | dict.fromkeys(otherwise, "; try --match input")
    force = ["--force compares them all the same, and says so in its first line"] if len(apart) < len(problems) else []
    raise DataError(
        "the runs cannot be compared", *(f"{problem}{advice.get(problem, '')}" for problem in problems), *force
    )


def _headline(baseline: Side, shared: Sequence[str], asked: str | None) -> str:
    if asked is not None and asked not in shared:
        raise ConfigError(f"no grader {asked!r} is in all runs{suggest(asked, shared)}; there are: {', '.join(shared)}")
    return asked or next((key for key in shared if key == baseline.outcome), shared[0])


def _pair(a: Side, b: Side, shared: Sequence[str], rules: Rules) -> dict[str, Any]:
    """Return what is compared of two sides: the outcome's rate, the headline's figures, and graders' means.

    All of it is one list to Holm's adjustment, in which equal rows (the mean of verdicts is their rate) count once.
    """
    found: dict[str, Any] = {"a": a.name, "b": b.name}
    if a.outcome is not None and a.outcome in shared and a.outcome == b.outcome:
        rate = _outcome(a, b, a.outcome, rules)
        found |= {"outcome": rate} if rate["tasks"] else {}
    pairs = figure_pairs(rules.figures, a, b, rules.failed)
    figures = {figure.path: _figure(a, b, figure, pairs[figure.path], rules) for figure in rules.figures}
    found |= {"metrics": {key: _metric(a, b, key, rules) for key in shared}}
    found |= {"figures": figures} if figures else {}
    headline = headline_labels(a.report)
    for path, row in (*figures.items(), *((f"{key}.mean", row) for key, row in found["metrics"].items())):
        family, _, name = path.rpartition(".")
        row["path"] = path.removesuffix(".mean") if path not in figures else path
        row["label"] = headline.get(path) or (f"{headline[family]} {name}" if family in headline else row["label"])
    tests: dict[Any, list[dict[str, Any]]] = {}
    for row in all_rows(found):
        tests.setdefault(numbers(row), []).append(row)
    _judge(list(tests.values()), rules)
    return found


def _judge(tests: Sequence[Sequence[dict[str, Any]]], rules: Rules) -> None:
    """Write the adjusted p and the verdict into the rows of several tests; equal rows are one test.

    It is that of the t test; of the exact one where every task differs by the same, which has no t.
    """
    found = [row["p_exact"] if row["p"] is None else row["p"] for row, *_ in tests]
    for rows, p in zip(tests, holm(found), strict=True):
        for row in rows:
            row |= {"p_holm": p}
            row["verdict"] = _verdict(row, 1 - rules.confidence)


def _outcome(a: Side, b: Side, key: str, rules: Rules) -> dict[str, Any]:
    matched = Matched.of(a.pass_rates(key, rules.failed), b.pass_rates(key, rules.failed))
    word = as_text(as_map(as_map(a.report.summary.get("outcome")).get("words")).get("passed")) or "passed"
    declared = {"label": word.capitalize(), "unit": "share", "better_is": "higher", "grader": key, "path": key}
    return _mean_row(matched, declared, rules, share=True) | _noise(a, b, key)


def _noise(a: Side, b: Side, key: str) -> dict[str, float]:
    """Return by how much a judge alone may make two rates differ, as its votes say; nothing where they do not."""
    whole = [side for side in (a, b) if sum(map(len, side.tasks.values())) == len(side.samples)]  # not one of models
    found: list[Any] = [as_map(side.report.aggregates[key].get(CALIBRATED)).get("noise") for side in whole]
    noises = [each for each in found if is_number(each)]
    return {"noise": NormalDist().inv_cdf(0.975) * math.hypot(*noises)} if len(noises) == 2 else {}


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
    directions = {"higher": (asked.better, asked.worse), "lower": (asked.worse, asked.better), "neither": (None, None)}
    better, worse = directions[declared["better_is"]]
    row = _row(matched.means, asked, usual, rules, share=share)
    return {**row, "better": better, "worse": worse, "same": asked.same, **declared, **_only(matched)}


def _figure(a: Side, b: Side, figure: Figure, pair: Any, rules: Rules) -> dict[str, Any]:
    matched = Matched.scores(a, b, figure.grader, rules.failed)
    asked, usual = pair.difference(rules.confidence), pair.difference(0.95)
    row = _row((pair.a.value, pair.b.value), asked, usual, rules, share=pair.share)
    return {**row, "moved": asked.better + asked.worse, **figure.declared, **_only(matched)}


def compared_row(a: Side, b: Side, what: str | Figure, rules: Rules, *, rate: bool = False) -> dict[str, Any]:
    """Return how far one figure, or a grader's mean score or ``rate`` of passing, is apart."""
    if isinstance(what, Figure):
        return _figure(a, b, what, figure_pairs([what], a, b, rules.failed)[what.path], rules)
    return (_outcome if rate else _metric)(a, b, what, rules)


def moved(row: Mapping[str, Any]) -> int:
    """Return how many tasks changed."""
    found: int = row["moved"] if "moved" in row else row["tasks"] - row["same"]
    return found


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
        "share": share,
    }


def _only(matched: Matched) -> dict[str, Any]:
    only = {"only_a": matched.only_a, "only_b": matched.only_b}
    counts = {f"{name}_count": len(tasks) for name, tasks in only.items()}
    return {name: tasks[:_LISTED] for name, tasks in only.items()} | counts


def _ends(of: Difference) -> list[float] | None:
    return None if of.low is None or of.high is None else [of.low, of.high]


CERTAIN = frozenset({"better", "worse", "higher", "lower"})
"""Verdicts that say that there is a difference."""
_AHEAD = frozenset({"better", "higher"})
_WORDS = {"higher": ("better", "worse"), "lower": ("worse", "better"), "neither": ("higher", "lower")}


def _verdict(row: Mapping[str, Any], level: float) -> str:
    gap = row["difference"]
    if row["tasks"] and gap == 0 and not moved(row):
        return "same"
    if row["p_holm"] is None:
        return "no test"
    if row["p_holm"] >= level or not gap:
        return "no evidence"
    up, down = _WORDS[row["better_is"]]
    return up if gap > 0 else down


def changes(a: Side, b: Side, key: str, rules: Rules) -> dict[str, Any]:
    """Return which reasons graders gave more or less often, and for which tools and arguments."""
    tasks = [task for task in a.tasks if task in b.tasks]
    counts = [(side, *side.causes_by_task(key, tasks, rules.failed)) for side in (a, b)]
    single = all(number == 1 for _, trials, _ in counts for number in trials.values())
    found: dict[str, Any] = {}
    for kind in ("reasons", "tools", "arguments"):
        total = Counter[str]()
        for _, _, causes in counts:
            total.update({name: sum(by.values()) for (of, name), by in causes.items() if of == kind})
        rows = [_change(name, kind, counts, rules, single=single) for name, _ in total.most_common(_CAUSES)]
        for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
            certain = p is not None and p < 1 - rules.confidence and row["difference"]
            word = ("more often" if row["difference"] > 0 else "less often") if certain else "no evidence"
            row |= {"p_holm": p, "verdict": word}
        rows.sort(key=lambda row: (1.0 if row["p_holm"] is None else row["p_holm"], -abs(row["difference"] or 0)))
        found[kind] = rows
    return found


def _change(name: str, kind: str, counts: Sequence[Any], rules: Rules, *, single: bool) -> dict[str, Any]:
    (_, of_a, causes_a), (_, of_b, causes_b) = counts
    own_a, own_b = causes_a.get((kind, name), {}), causes_b.get((kind, name), {})
    tasks = [task for task in of_a if task in of_b]
    values = [own_b.get(task, 0) / of_b[task] - own_a.get(task, 0) / of_a[task] for task in tasks]
    known = difference(values, confidence=rules.confidence)
    p = known.p if known.p_exact is None else known.p_exact
    if single and known.p_exact is None:
        p = mcnemar(known.better, known.worse)
    shares = [sum(own.get(task, 0) / of[task] for task in tasks) for own, of in ((own_a, of_a), (own_b, of_b))]
    return {
        "name": name,
        "a": shares[0] / len(tasks),
        "b": shares[1] / len(tasks),
        "trials": [sum(own_a.values()), sum(own_b.values())],
        "difference": known.difference,
        "ends": _ends(known),
        "p": p,
    }


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
    for name, before in verdicts_a.items():
        after = verdicts_b.get(name, {})
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
    values: Mapping[str, Mapping[str, float]], pairs: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, JSON]]:
    """Return the sides by their mean over common tasks, the best first, each with its possible ranks and groups."""
    common = set.intersection(*(set(each) for each in values.values()))
    score = {name: math.fsum(each[task] for task in common) / len(common) for name, each in values.items() if common}
    ahead = {
        (pair["b"], pair["a"]) if row["verdict"] in _AHEAD else (pair["a"], pair["b"])
        for pair, row in zip(pairs, rows, strict=True)
        if row["verdict"] in CERTAIN
    }
    order = sorted(score, key=lambda name: score[name] if rows[0]["better_is"] == "lower" else -score[name])
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
    letters = [*ascii_lowercase, *(f"({number})" for number in range(len(ascii_lowercase) + 1, len(spans) + 1))]
    groups = list(zip(letters, spans, strict=False))
    return {
        name: "".join(letter for letter, (first, last) in groups if first <= at <= last)
        for at, name in enumerate(order)
    }


def _unmatched(a: Side, b: Side, row: Mapping[str, Any]) -> str:
    only = [(row[f"only_{at}_count"], side.name) for at, side in (("a", a), ("b", b))]
    return "".join(f"; {counted(count, 'task')} only in {name}" for count, name in only if count)


def sentence(a: Side, b: Side, pair: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return what a difference comes to, in words; that runs are identical only where every task is in every figure."""
    gap, ends, label = row["difference"], row["interval"]["ends"], row["label"]
    one_run = a.report is b.report and a.model and b.model
    before, after = (a.model, b.model) if one_run else (a.name, b.name)
    runs = {len(side.tasks[task]) for task in a.tasks.keys() & b.tasks.keys() for side in (a, b)}
    trials = f", {counted(runs.pop(), 'trial')} each" if len(runs) == 1 else ""
    tasks, only, reason = f"{counted(row['tasks'], 'task')}{trials}", _unmatched(a, b, row), row["interval"]["reason"]
    if only and gap:  # each side's own figure is of other tasks, too
        shared = counted(row["tasks"], "shared task")
        tasks = f"{_value(row['a'], row)} to {_value(row['b'], row)} over {shared}{trials}"
    if gap is None:
        return f"{label}: {after} cannot be compared with {before}: {reason}{only}"
    if not only and all(each["verdict"] == "same" for each in all_rows(pair)):
        return f"{after} and {before} are identical: every figure is the same in every task ({tasks})"
    if row["verdict"] in CERTAIN:
        bounds = reason and f"{reason}; exact p {row['p_holm']:.2g}"
        if ends is not None:
            low, high = ends if gap > 0 else (-ends[1], -ends[0])
            bounds = _between(low, high, row)
        text = (
            f"{label}: {after} is {row['verdict']} than {before} by {_amount(abs(gap), row)} ({bounds}; {tasks}){only}"
        )
    elif ends is None:
        return f"{label}: {after} {_amount(gap, row, '+')} against {before}, without a test: {reason} ({tasks}){only}"
    else:
        known = f"({_between(ends[0], ends[1], row)}; {tasks})"
        text = f"{label}: {after} and {before} have the same mean {known}{only}"
        if gap:
            text = f"{label}: {after} {_amount(gap, row, '+')} against {before}, which may be chance {known}{only}"
        if row["mde80"] is not None:
            text += f"; smallest detectable difference: {_amount(row['mde80'], row)}"
        elif row["stderr"]:
            text += "; so few tasks cannot show any difference"
    if "noise" in row:
        within = "is within" if abs(gap) <= row["noise"] else "exceeds"
        text += f"; the judge alone, at one vote a sample, may make {_amount(row['noise'], row)}, which this {within}"
    exact = row["p_exact"]
    if exact is not None and row["p"] is not None and (exact < _SIGNIFICANT) != (row["p"] < _SIGNIFICANT):
        text += f"; borderline: the exact test disagrees (p {exact:.3f})"
    return text


def _amount(value: float, row: Mapping[str, Any], sign: str = "") -> str:
    if row["share"]:
        return f"{100 * value:{sign}.1f} points"
    return with_unit(f"{value:{sign}.3f}", row["unit"])


def _value(value: float, row: Mapping[str, Any]) -> str:
    return f"{100 * value:.1f}%" if row["share"] else with_unit(f"{value:.3f}", row["unit"])


def _between(low: float, high: float, row: Mapping[str, Any]) -> str:
    share = f"{100 * row['interval']['confidence']:.6g}% interval"
    return f"{share}: {100 * low:.1f} to {100 * high:.1f}" if row["share"] else f"{share}: {low:.3f} to {high:.3f}"

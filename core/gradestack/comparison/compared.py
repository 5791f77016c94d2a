"""Runs compared: differences per figure, what changed, flips, a leaderboard, and a sentence that
sums them up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from string import ascii_lowercase
from typing import Any

import msgspec

from gradestack.comparison.figures import Figure, Pair, figure_pairs, headline_labels, mean_pair
from gradestack.comparison.paired import (
    all_rows,
    detectable,
    difference,
    holm,
    mcnemar,
    numbers,
    tasks_needed,
    up_and_down,
)
from gradestack.comparison.sides import UNMATCHED, Failed, Side, differing
from gradestack.declared import with_unit
from gradestack.errors import ConfigError, DataError, suggest
from gradestack.gates.verdicts import CALIBRATED
from gradestack.grading.plan import TO_COMPARE
from gradestack.jsonio.values import as_count, as_list, as_map, as_text, is_number
from gradestack.model import JSON
from gradestack.output import counted

_SIDES = 100  # runs and models of runs that are compared with each other at once
_LISTED = 100  # tasks of a list in comparison.json
_SIGNIFICANT = 0.05
_CAUSES = 50  # reasons, tools and arguments whose change is tested: the most frequent of each kind


Maps = Sequence[Mapping[str, Any]]


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
    """Grader whose mean score the sentence is about.

    Default: the rate of the outcome, else the first grader's mean.
    """
    failed: Failed = (
        "zero"  # what failed and missing trials count as: the least score, or not at all
    )
    confidence: float = 0.95
    force: bool = False  # compare what differs in graders, expectations or inputs all the same
    by: str | None = None  # facet to compare within its values
    figures: Sequence[
        Figure
    ] = ()  # figures that are no means of scores, compared beside the graders' means
    left_out: Mapping[str, str] = msgspec.field(
        default_factory=dict
    )  # path of a figure that cannot be compared -> why


def compared(
    sides: Sequence[Side], rules: Rules, pairs: Sequence[tuple[Side, Side]] | None = None
) -> Comparison:
    """Return the comparison of sides, the first being the baseline."""
    if pairs is None and len(sides) > _SIDES:
        many = (
            f"{len(sides)} models are {math.comb(len(sides), 2):,} pairs; at most {_SIDES} are "
            "compared at once"
        )
        raise ConfigError(
            many, f"name some of them: gradestack compare {sides[0].name} {sides[1].name}"
        )
    chosen = list(combinations(sides, 2)) if pairs is None else pairs
    found = dict.fromkeys(each for a, b in chosen for each in differing(a, b))
    problems = [each for each in found if each.refuses]
    if problems and not rules.force:
        force = "--force compares them all the same, and says so in its first line"
        more = [] if all(each.fix == UNMATCHED for each in problems) else [force]
        raise DataError(
            "the runs cannot be compared", *[f"{each.text}{each.fix}" for each in problems], *more
        )
    warnings = [each.text for each in found if not each.refuses]
    warnings += [f"{side.name}: {each}" for side in sides for each in _limits_of(side)]
    shared = [key for key in sides[0].graders if all(key in side.graders for side in sides)]
    if not shared:
        there = [f"{side.name} has {', '.join(side.graders) or 'none'}" for side in sides]
        raise DataError("the runs cannot be compared: they have no grader in common", *there)
    outcome = sides[0].outcome
    usual = outcome if outcome in shared else shared[0]
    headline = usual if rules.headline is None else rules.headline
    if headline not in shared:
        hint = suggest(headline, shared)
        raise ConfigError(
            f"no grader {headline!r} is in all runs{hint}; there are: {', '.join(shared)}"
        )
    pairs_of = [_pair(a, b, shared, rules) for a, b in chosen]
    by_rate = rules.headline is None and all("outcome" in pair for pair in pairs_of)
    decisive = [pair["outcome"] if by_rate else pair["metrics"][headline] for pair in pairs_of]
    if len(pairs_of) > 1:  # several models: over all pairs of the headline's figure
        judged = zip(pairs_of, map(numbers, decisive), strict=True)
        _judge(
            [
                [row for row in all_rows(pair) if numbers(row) == figures]
                for pair, figures in judged
            ],
            rules,
        )
    first = chosen[0]
    data: dict[str, Any] = {
        "baseline": sides[0].name,
        "runs": [
            {
                "name": side.name,
                "model": side.model or None,
                "tasks": len(side.tasks),
                "trials": side.trials,
            }
            for side in sides
        ],
        "incomparable": [each.text for each in problems],
        "headline": headline,
        "failed": rules.failed,
        **{
            name: pairs_of[0][name]
            for name in ("outcome", "metrics", "figures")
            if name in pairs_of[0]
        },
        "only": {side.name: sorted(side.graders.keys() - set(shared)) for side in sides},
        "changed": changes(*first, headline, rules),
        "flips": flips(*first, headline, rules.failed),
        "sentence": sentence(*first, pairs_of[0], decisive[0]),
    }
    data |= {"warnings": warnings} if warnings else {}
    data |= {"not_compared": dict(rules.left_out)} if rules.left_out else {}
    if rules.by is not None:
        data["by"] = {"facet": rules.by, "groups": _facets(*first, headline, rules.by, rules)}
    if len(sides) > 2:
        data["pairs"] = pairs_of
        if pairs is None:
            values = {side.name: side.means(headline, rules.failed, rate=by_rate) for side in sides}
            data["groups"] = leaderboard(values, pairs_of, decisive)
    return Comparison(sides=tuple(sides), data=data)


def _limits_of(side: Side) -> Iterator[str]:
    """Yield what one has to know of a run before its figures are compared.

    A subset, expectations nobody reads.
    """
    yield from map(str, as_list(as_map(side.report.header.get("subset")).get("said")))
    for kind, each in as_map(side.report.summary.get("remarks")).items():
        if TO_COMPARE in kind:
            yield f"not used: {kind} ({counted(as_count(as_map(each).get('count')), 'time')})"


def _pair(a: Side, b: Side, shared: Sequence[str], rules: Rules) -> dict[str, Any]:
    """Return the outcome's rate, the headline's figures and graders' means of two sides.

    One list to Holm.
    """
    found: dict[str, Any] = {"a": a.name, "b": b.name}
    if a.outcome in shared and a.outcome == b.outcome:
        rate = mean_row(a, b, str(a.outcome), rules, rate=True)
        found |= {"outcome": rate} if rate["tasks"] else {}
    found["metrics"] = {key: mean_row(a, b, key, rules) for key in shared}
    if rules.figures:
        found["figures"] = figure_rows(a, b, rules.figures, rules)
    rows = [(path, path, row) for path, row in found.get("figures", {}).items()]
    rows += [(f"{key}.mean", key, row) for key, row in found["metrics"].items()]
    headline = headline_labels(a.report)
    for path, shown, row in rows:
        family, _, name = path.rpartition(".")
        row["path"] = shown
        row["label"] = headline.get(path) or (
            f"{headline[family]} {name}" if family in headline else row["label"]
        )
    tests: dict[Any, list[dict[str, Any]]] = {}
    for row in all_rows(found):
        tests.setdefault(numbers(row), []).append(row)
    _judge(list(tests.values()), rules)
    return found


def _judge(tests: Sequence[Sequence[dict[str, Any]]], rules: Rules) -> None:
    """Write adjusted p (of t, else of the exact test) and verdict into rows.

    Equal rows are one test.
    """
    found = [row["p_exact"] if row["p"] is None else row["p"] for row, *_ in tests]
    for rows, p in zip(tests, holm(found), strict=True):
        for row in rows:
            row |= {"p_holm": p}
            row["verdict"] = _verdict(row, 1 - rules.confidence)


def mean_row(a: Side, b: Side, key: str, rules: Rules, *, rate: bool = False) -> dict[str, Any]:
    """Return how far a grader's mean score, or the ``rate`` of passing, is apart over
    shared tasks.
    """
    pair, declared = mean_pair(a, b, key, rules.failed, rate=rate), a.declared(key)
    row = _row(pair, rules)
    if rate:
        word = (
            as_text(as_map(as_map(a.report.summary.get("outcome")).get("words")).get("passed"))
            or "passed"
        )
        declared = {
            "label": word.capitalize(),
            "unit": "share",
            "better_is": "higher",
            "grader": key,
            "path": key,
        }
        row |= _noise(a, b, key)
    up, down = up_and_down(pair.gaps)
    better, worse = {"higher": (up, down), "lower": (down, up)}.get(
        declared["better_is"], (None, None)
    )
    return row | {"better": better, "worse": worse, "same": len(pair.tasks) - up - down, **declared}


def figure_rows(
    a: Side, b: Side, figures: Sequence[Figure], rules: Rules
) -> dict[str, dict[str, Any]]:
    """Return the same of figures by their paths.

    In place of better and worse, how many tasks moved.
    """
    pairs = figure_pairs(figures, a, b, rules.failed)
    return {
        each.path: _row(pairs[each.path], rules)
        | {"moved": pairs[each.path].moved, **each.declared}
        for each in figures
    }


def _row(pair: Pair, rules: Rules) -> dict[str, Any]:
    """Return what every row says."""
    asked, tasks = pair.difference(rules.confidence), len(pair.tasks)
    spread = None if asked.stderr is None else asked.stderr * math.sqrt(tasks)
    shows = None if not spread else detectable(spread, tasks)
    row: dict[str, Any] = {
        "a": pair.a,
        "b": pair.b,
        "difference": asked.difference,
        "stderr": asked.stderr,
        "ci95": pair.difference(0.95).ends,
        "interval": {
            "confidence": rules.confidence,
            "ends": asked.ends,
            "reason": asked.reason or None,
        },
        "p": asked.p,
        "p_exact": asked.p_exact,
        "p_holm": None,
        "mde80": None if shows is not None and pair.share and shows > 1 else shows,
        "tasks_needed": tasks_needed(spread or 0.0, asked.difference or 0.0),
        "tasks": tasks,
        "share": pair.share,
    }
    for name, only in zip(("only_a", "only_b"), pair.only, strict=True):
        row |= {name: only[:_LISTED], f"{name}_count": len(only)}
    return row


def _noise(a: Side, b: Side, key: str) -> dict[str, float]:
    """Return by how much a judge alone may make two rates differ, as its votes say.

    Nothing where they do not.
    """
    whole = [
        side for side in (a, b) if sum(map(len, side.tasks.values())) == len(side.samples.places)
    ]  # all models
    found: list[Any] = [
        as_map(side.report.aggregates[key].get(CALIBRATED)).get("noise") for side in whole
    ]
    noises = [each for each in found if is_number(each)]
    return {"noise": NormalDist().inv_cdf(0.975) * math.hypot(*noises)} if len(noises) == 2 else {}


def moved(row: Mapping[str, Any]) -> int:
    """Return how many tasks changed."""
    found: int = row["moved"] if "moved" in row else row["tasks"] - row["same"]
    return found


CERTAIN = frozenset(
    {"better", "worse", "higher", "lower"}
)  # verdicts that say that there is a difference
_AHEAD = frozenset({"better", "higher"})
_WORDS = {
    "higher": ("better", "worse"),
    "lower": ("worse", "better"),
    "neither": ("higher", "lower"),
}


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
    (of_a, causes_a), (of_b, causes_b) = (
        side.causes_by_task(key, tasks, rules.failed) for side in (a, b)
    )
    single = all(number == 1 for trials in (of_a, of_b) for number in trials.values())
    tasks = [task for task in of_a if task in of_b]

    def change(kind: Any, name: str) -> dict[str, Any]:
        own_a, own_b = causes_a.get((kind, name), {}), causes_b.get((kind, name), {})
        shares = [
            [own.get(task, 0) / of[task] for task in tasks]
            for own, of in ((own_a, of_a), (own_b, of_b))
        ]
        gaps = [after - before for before, after in zip(*shares, strict=True)]
        known = difference(gaps, confidence=rules.confidence)
        p = known.p_exact
        if p is None:
            p = mcnemar(*up_and_down(gaps)) if single else known.p
        return {
            "name": name,
            "a": sum(shares[0]) / len(tasks),
            "b": sum(shares[1]) / len(tasks),
            "trials": [sum(own_a.values()), sum(own_b.values())],
            "difference": known.difference,
            "ends": known.ends,
            "p": p,
        }

    found: dict[str, Any] = {}
    for kind in ("reasons", "tools", "arguments"):
        total = Counter[str]()
        for causes in (causes_a, causes_b):
            total.update(
                {name: sum(by.values()) for (of, name), by in causes.items() if of == kind}
            )
        rows = [change(kind, name) for name, _ in total.most_common(_CAUSES)]
        for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
            certain = p is not None and p < 1 - rules.confidence and row["difference"]
            word = (
                ("more often" if row["difference"] > 0 else "less often")
                if certain
                else "no evidence"
            )
            row |= {"p_holm": p, "verdict": word}
        rows.sort(
            key=lambda row: (
                1.0 if row["p_holm"] is None else row["p_holm"],
                -abs(row["difference"] or 0),
            )
        )
        found[kind] = rows
    return found


def _sign(side: Side, key: str) -> int:
    return -1 if side.declared(key)["better_is"] == "lower" else 1


def flips(a: Side, b: Side, key: str, failed: Failed) -> dict[str, Any]:
    """Return which trials passed on one side only, and how many of a task, whose score differs most
    first.
    """
    pair = mean_pair(a, b, key, failed)
    gaps = dict(zip(pair.tasks, pair.gaps, strict=True))
    sign, verdicts_b = _sign(a, key), b.trial_verdicts(key, failed)
    fixed = broken = single = 0
    tasks = []
    for name, before in a.trial_verdicts(key, failed).items():
        after = verdicts_b.get(name, {})
        single += len(before) == len(after) == 1
        both = [(before[trial], after[trial]) for trial in before if trial in after]
        both = both or list(
            zip(before.values(), after.values(), strict=False)
        )  # numbered on: in order
        fixed += sum(now and not then for then, now in both)
        broken += sum(then and not now for then, now in both)
        left, right = (sum(before.values()), len(before)), (sum(after.values()), len(after))
        if left != right and before and after:
            tasks.append(
                (sign * gaps.get(name, 0.0), name, "{}/{}".format(*left), "{}/{}".format(*right))
            )
    tasks.sort(key=lambda each: (-abs(each[0]), each[0], each[1]))
    return {
        "fixed": fixed,
        "broken": broken,
        "mcnemar_p": mcnemar(fixed, broken) if single == len(pair.tasks) else None,
        "tasks": [
            {"task": name, "a": left, "b": right} for _, name, left, right in tasks[:_LISTED]
        ],
        "count": len(tasks),
    }


def _facets(a: Side, b: Side, key: str, name: str, rules: Rules) -> list[dict[str, JSON]]:
    if name not in (known := a.samples.facets):
        hint = suggest(name, known) or f"; there are: {', '.join(known) or 'none'}"
        raise ConfigError(f"no task of {a.name} has a facet {name!r}{hint}")
    pair, groups = mean_pair(a, b, key, rules.failed), dict[str, list[float]]()
    for task, gap in zip(pair.tasks, pair.gaps, strict=True):
        groups.setdefault(str(a.facet(name, task)), []).append(gap)
    of = {
        group: difference(gaps, confidence=rules.confidence, bounded=pair.share)
        for group, gaps in groups.items()
    }
    return [
        {
            "group": group,
            "tasks": len(groups[group]),
            "difference": each.difference,
            "ends": each.ends,
            "p": each.p,
        }
        for group, each in sorted(
            of.items(), key=lambda item: (_sign(a, key) * (item[1].difference or 0.0), item[0])
        )
    ]


def leaderboard(
    values: Mapping[str, Mapping[str, float]], pairs: Maps, rows: Maps
) -> list[dict[str, JSON]]:
    """Return the sides by their mean over common tasks, the best first, each with its possible
    ranks and groups.
    """
    common = set.intersection(*(set(each) for each in values.values()))
    score = {
        name: math.fsum(each[task] for task in common) / len(common)
        for name, each in values.items()
        if common
    }
    ahead = {
        (pair["b"], pair["a"]) if row["verdict"] in _AHEAD else (pair["a"], pair["b"])
        for pair, row in zip(pairs, rows, strict=True)
        if row["verdict"] in CERTAIN
    }
    order = sorted(
        score, key=lambda name: score[name] if rows[0]["better_is"] == "lower" else -score[name]
    )
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
        while last + 1 < len(order) and not any(
            (order[at], order[last + 1]) in ahead for at in range(first, last + 1)
        ):
            last += 1
        if not spans or last > spans[-1][1]:
            spans.append((first, last))
    letters = [
        *ascii_lowercase,
        *(f"({number})" for number in range(len(ascii_lowercase) + 1, len(spans) + 1)),
    ]
    groups = list(zip(letters, spans, strict=False))
    return {
        name: "".join(letter for letter, (first, last) in groups if first <= at <= last)
        for at, name in enumerate(order)
    }


def sentence(a: Side, b: Side, pair: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return what a difference comes to, in words.

    That runs are identical only where every task is in every figure.
    """
    gap, ends, label, reason = (
        row["difference"],
        row["interval"]["ends"],
        row["label"],
        row["interval"]["reason"],
    )
    one_run = a.report is b.report and a.model and b.model
    before, after = (a.model, b.model) if one_run else (a.name, b.name)
    runs = {len(side.tasks[task]) for task in a.tasks.keys() & b.tasks.keys() for side in (a, b)}
    trials = f", {counted(runs.pop(), 'trial')} each" if len(runs) == 1 else ""
    tasks = f"{counted(row['tasks'], 'task')}{trials}"
    unmatched = [(row["only_a_count"], a.name), (row["only_b_count"], b.name)]
    only = "".join(
        f"; {counted(count, 'task')} only in {name}" for count, name in unmatched if count
    )
    if only and gap:  # each side's own figure is of other tasks, too
        shared = counted(row["tasks"], "shared task")
        tasks = f"{_value(row['a'], row)} to {_value(row['b'], row)} over {shared}{trials}"
    if gap is None:
        return f"{label}: {after} cannot be compared with {before}: {reason}{only}"
    if not only and all(each["verdict"] == "same" for each in all_rows(pair)):
        return (
            f"{after} and {before} are identical: every figure is the same in every task ({tasks})"
        )
    certain = row["verdict"] in CERTAIN
    if ends is None and not certain:
        return (
            f"{label}: {after} {_amount(gap, row, '+')} against {before}, without a test: "
            f"{reason} ({tasks}){only}"
        )
    if ends is None:
        known = f"{reason}; exact p {row['p_holm']:.2g}"
    else:
        low, high = (-ends[1], -ends[0]) if certain and gap < 0 else ends
        known = _between(low, high, row)
    what = f"{after} and {before} have the same mean"
    if certain:
        what = f"{after} is {row['verdict']} than {before} by {_amount(abs(gap), row)}"
    elif gap:
        what = f"{after} {_amount(gap, row, '+')} against {before}, which may be chance"
    text = f"{label}: {what} ({known}; {tasks}){only}"
    if not certain and row["mde80"] is not None:
        text += f"; smallest detectable difference: {_amount(row['mde80'], row)}"
    elif not certain and row["stderr"]:
        text += "; so few tasks cannot show any difference"
    if "noise" in row:
        within = "is within" if abs(gap) <= row["noise"] else "exceeds"
        text += (
            f"; the judge alone, at one vote a sample, may make {_amount(row['noise'], row)}, "
            f"which this {within}"
        )
    exact = row["p_exact"]
    if (
        exact is not None
        and row["p"] is not None
        and (exact < _SIGNIFICANT) != (row["p"] < _SIGNIFICANT)
    ):
        text += f"; borderline: the exact test disagrees (p {exact:.3f})"
    return text


def _amount(value: float, row: Mapping[str, Any], sign: str = "") -> str:
    return (
        f"{100 * value:{sign}.1f} points"
        if row["share"]
        else with_unit(f"{value:{sign}.3f}", row["unit"])
    )


def _value(value: float, row: Mapping[str, Any]) -> str:
    return f"{100 * value:.1f}%" if row["share"] else with_unit(f"{value:.3f}", row["unit"])


def _between(low: float, high: float, row: Mapping[str, Any]) -> str:
    share = f"{100 * row['interval']['confidence']:.6g}% interval"
    return (
        f"{share}: {100 * low:.1f} to {100 * high:.1f}"
        if row["share"]
        else f"{share}: {low:.3f} to {high:.3f}"
    )

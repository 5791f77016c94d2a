"""Aggregator ``calibrated``: the share a judge passes, corrected by labels of people, and what the judge is worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    ConfigError,
    Figure,
    Grade,
    Grades,
    Outcome,
    interval,
    jackknife,
    ratio,
    valid_confidence,
)
from gradestack.jsonio import JsonProblem, as_map, loads
from gradestack_plugins.judges.labels import Labels, read_verdicts
from gradestack_plugins.statistics.agreement import ac1, kappa, percent_agreement

CELLS = ("both_pass", "judge_alone", "people_alone", "both_fail")
"""Of the table of judge and people: who passes."""
_EMPTY = "people labelled no sample that the judge passes, or none that it fails"
_ONE_VOTE = "one vote a sample"
_RATE = "p n11 / (n11 + n10) + (1 - p) n01 / (n01 + n00)"
_NOISE = "sqrt(sum c (k - c) / (k (k - 1))) / N"
_ONE_CLASS = "people passed no labelled sample, or failed none"


def _by_people(known: Mapping[str, int]) -> tuple[int, int]:
    """Return how many samples people pass, and fail."""
    return known["both_pass"] + known["people_alone"], known["judge_alone"] + known["both_fail"]


@attrs.frozen(kw_only=True)
class Floor:
    """What must be labelled, passed and failed each, and the least lower end of ``youden``, to be calibrated."""

    labels: int = 50
    each: int = 10
    youden: float = 0.3


def table_figures(known: Mapping[str, float]) -> dict[str, float | None]:
    """Return sensitivity, specificity, youden, agreement, kappa and AC1 of a table."""
    both, judge, people, none = (known[name] for name in CELLS)
    pairs = {("pass", "pass"): both, ("pass", "fail"): judge, ("fail", "pass"): people, ("fail", "fail"): none}
    table: Any = {pair: number for pair, number in pairs.items() if number}
    sensitivity, specificity = ratio(both, both + people), ratio(none, none + judge)
    known_both = sensitivity is not None and specificity is not None
    return {
        "sensitivity": sensitivity,
        "specificity": specificity,
        "youden": (sensitivity or 0.0) + (specificity or 0.0) - 1 if known_both else None,
        "percent_agreement": percent_agreement(table),
        "kappa": kappa(table),
        "ac1": ac1(table),
    }


def _score(name: str, label: str, about: str, undefined: str) -> Figure:
    return Figure(name, label, "higher", "score", about, "labelled", least=-1.0, most=1.0, undefined=undefined)


@attrs.frozen(kw_only=True)
class Calibrated(Aggregator):
    """The share of samples a judge passes, corrected by the labels of people, and how far the judge can be trusted.

    Of the labelled samples n11 are passed by judge and people, n10 by the judge alone, n01 by people alone, n00 by
    neither; p is the judge's share of passes over all it graded.

    - ``rate`` corrects p by labels of this run; for a judge that says pass or fail this is
      prediction-powered inference with the best weight. Right also where samples were picked for labelling by verdict
    - ``rogan_gladen`` by Se and Sp, cut to [0, 1], also from another run (``calibration``); null where Se + Sp <= 1;
      interval of Lang and Reiczigel
    - ``raw`` = p, which nothing corrects; Se = n11 / (n11 + n01), Sp = n00 / (n00 + n10), agreement with people
    - of k votes on a sample, of which c pass it, ``self_consistency`` is the mean share of pairs that agree, ``noise``
      the standard deviation that the share of passes has at one vote a sample

    ``uncalibrated`` says why figures do not count, where labels are below the floor: gates on them then fail.
    """

    figures: ClassVar = (
        Figure("rate", "Pass rate, corrected", about=_RATE, divisor="judged", undefined=_EMPTY),
        Figure("rogan_gladen", "Pass rate, Rogan–Gladen", about="(p + Sp - 1) / (Se + Sp - 1)", divisor="judged"),
        Figure("raw", "Pass rate by the judge, not corrected", about="passed by the judge / graded", divisor="judged"),
        Figure("sensitivity", "Sensitivity", about="n11 / (n11 + n01)", divisor="people_pass", undefined=_ONE_CLASS),
        Figure("specificity", "Specificity", about="n00 / (n00 + n10)", divisor="people_fail", undefined=_ONE_CLASS),
        Figure("percent_agreement", "Agreement with people", about="equal verdicts / labelled", divisor="labelled"),
        _score("youden", "Youden's J", "Se + Sp - 1", _ONE_CLASS),
        _score("kappa", "Cohen's kappa", "(p_o - p_e) / (1 - p_e)", "undefined where both know one class only"),
        _score("ac1", "Gwet's AC1", "(p_o - p_e) / (1 - p_e)", "no label of people"),
        Figure("self_consistency", "Votes that agree", about="of all pairs", divisor="repeated", undefined=_ONE_VOTE),
        Figure("noise", "Noise of the pass rate", "lower", "score", _NOISE, "repeated", least=0.0, undefined=_ONE_VOTE),
    )

    labels: Path | None = None
    """Labels of this run; default: the grader's."""
    calibration: Path | None = None
    """``summary.json`` of another run of this judge, with labels; default: the grader's."""
    floor: Floor = Floor()
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""
    people: Labels = attrs.field(init=False, eq=False, repr=False)
    other: Mapping[str, Any] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "people", read_verdicts(self.labels))
        object.__setattr__(self, "other", read_calibration(self.calibration))

    @override
    def numbers(self, grade: Grade) -> Mapping[str, float] | None:
        if grade.outcome is not Outcome.GRADED:
            return None
        passed = bool((grade.score or 0) >= 1 if grade.passed is None else grade.passed)
        found: dict[str, float] = {"judged": 1, "passed": passed}
        if grade.gold is not None:
            people = grade.gold == "pass"
            cell = CELLS[2 * (not passed) + (not people)]
            found |= {cell: 1, "labelled": 1, "people_pass" if people else "people_fail": 1}
        k, c = grade.counts.get("votes", 1), grade.counts.get("votes_passed", 0)
        if k > 1:
            unlike = c * (k - c) / (k * (k - 1))
            found |= {"repeated": 1, "agreeing": 1 - 2 * unlike, "unlike": unlike}
        return found

    @override
    def estimate(self, **sums: float) -> Mapping[str, Any]:
        known = {name: sums.get(name, 0) for name in (*CELLS, "judged", "passed", "repeated", "agreeing", "unlike")}
        p = ratio(known["passed"], known["judged"])
        both, judge, people, none = (known[name] for name in CELLS)
        above, below = ratio(both, both + judge), ratio(people, people + none)
        corrected = None if None in (p, above, below) else (p or 0) * (above or 0) + (1 - (p or 0)) * (below or 0)
        repeated = known["repeated"]
        return {
            "rate": corrected,
            "raw": p,
            **table_figures(known),
            "self_consistency": ratio(known["agreeing"], repeated),
            "noise": math.sqrt(max(0.0, known["unlike"])) / repeated if repeated else None,
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        tasks, labelled, totals = 0, Counter[tuple[float, ...]](), [0] * (2 + len(CELLS))
        for cell, times in grades.sums("judged", "passed", *CELLS).rounded[0].items():
            totals = [total + int(number) * times for total, number in zip(totals, cell, strict=True)]
            tasks += times * bool(cell[0])
            labelled[cell[2:]] += times * any(cell[2:])
        known: Mapping[str, int] = dict(zip(CELLS, totals[2:], strict=True))
        youden, other = self._youden(+labelled), dict[str, Any]()
        if self.other and not labelled.total():
            known, youden = self.other["table"], as_map(self.other.get("youden_interval"))
            other = {"labels_of": "another run", **table_figures(known)}
        found: dict[str, JSON] = {"labels": sum(known.values()), "table": dict(known), "youden_interval": {**youden}}
        found |= {**other, **self._rogan_gladen(totals[1], totals[0], known, tasks)}
        warnings = list[str]()
        if why := self._below_the_floor(known, youden):
            found["uncalibrated"] = why
            warnings.append(f"uncalibrated: {why}")
        unknown = sorted({place[0] for place in self.people} - {key.id for key, _ in grades}) if self.people else []
        if unknown and self.labels is not None:
            what = f"{len(unknown)} labelled {'ids are' if len(unknown) > 1 else 'id is'} that of no sample"
            warnings.append(f"{self.labels.name}: {what}, the first: {unknown[0][:80]!r}")
        return {**found, "warnings": warnings} if warnings else found

    def _youden(self, tasks: Counter[tuple[float, ...]]) -> Mapping[str, Any]:
        """Return the interval of youden: that of (youden + 1) / 2, which is a share."""

        def scaled(*counts: float) -> dict[str, float | None]:
            youden = table_figures(dict(zip(CELLS, counts, strict=True)))["youden"]
            return {"share": None if youden is None else (youden + 1) / 2}

        n = sum(int(sum(cell)) * times for cell, times in tasks.items())
        share = interval(jackknife(scaled, tasks, len(CELLS))["share"], n, confidence=self.confidence)
        if "reason" in share:
            return {"reason": _ONE_CLASS if share["reason"] == "undefined" else share["reason"]}
        ends = {end: 2 * share[end] - 1 for end in ("low", "high")}
        return {**share, **ends, "method": f"scaled_{share['method']}"}

    def _rogan_gladen(self, passed: int, n: int, known: Mapping[str, int], tasks: int) -> dict[str, JSON]:
        specificity, youden = (table_figures(known)[name] for name in ("specificity", "youden"))
        if not n or youden is None or specificity is None or youden <= 0:
            why = "nothing was graded" if not n else _ONE_CLASS if youden is None else "Se + Sp <= 1"
            return {"rogan_gladen": None, "rogan_gladen_interval": {"reason": why}}
        low, high = lang_reiczigel(passed, n, known, self.confidence)
        ends: dict[str, JSON] = {"low": low, "high": high, "confidence": self.confidence, "n": n, "clusters": tasks}
        rate = min(1.0, max(0.0, (passed / n + specificity - 1) / youden))
        return {"rogan_gladen": rate, "rogan_gladen_interval": {**ends, "method": "lang_reiczigel"}}

    def _below_the_floor(self, known: Mapping[str, int], youden: Mapping[str, Any]) -> str | None:
        """Return what is below the floor, None for nothing."""
        floor, number = self.floor, sum(known.values())
        passes, fails = _by_people(known)
        if number < floor.labels:
            return f"{number or 'no'} label{'' if number == 1 else 's'}, floor {floor.labels}"
        if min(passes, fails) < floor.each:
            return f"{passes} labelled pass, {fails} fail, floor {floor.each}"
        if "reason" in youden or youden["low"] < floor.youden:
            shown = youden.get("reason") or f"{youden['low']:.2f}–{youden['high']:.2f}"
            return f"youden {shown}, floor {floor.youden:.2f}"
        return None


def lang_reiczigel(passed: int, n: int, known: Mapping[str, int], confidence: float = 0.95) -> tuple[float, float]:
    """Return the ends of the interval of Rogan and Gladen's rate, by Lang and Reiczigel (2014), cut to [0, 1]."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    a, b = _by_people(known)
    p = (passed + z * z / 2) / (n + z * z)
    sensitivity, specificity = (known["both_pass"] + 1) / (a + 2), (known["both_fail"] + 1) / (b + 2)
    over = sensitivity + specificity - 1
    if over <= 0:
        return 0.0, 1.0
    rate = (p + specificity - 1) / over
    of_passes = sensitivity * (1 - sensitivity) / (a + 2)
    of_fails = specificity * (1 - specificity) / (b + 2)
    shift = 2 * z * z * (rate * of_passes - (1 - rate) * of_fails)
    spread = math.sqrt(p * (1 - p) / (n + z * z) + rate**2 * of_passes + (1 - rate) ** 2 * of_fails) / over
    low, high = (min(1.0, max(0.0, rate + shift + sign * z * spread)) for sign in (-1, 1))
    return low, high


def read_calibration(path: Path | None) -> Mapping[str, Any]:
    """Return the figures of a judge in the summary.json of a run with labels; none of no run."""
    if path is None:
        return {}
    try:
        summary = as_map(loads(path.read_bytes()))
    except (OSError, JsonProblem) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path.name}: cannot be read: {why}") from error
    for of in as_map(as_map(summary.get("metrics")).get("aggregates")).values():
        found = as_map(as_map(of).get("calibrated"))
        table = as_map(found.get("table"))
        if all(type(table.get(name)) is int for name in CELLS) and any(table.values()) and "labels_of" not in found:
            return found
    raise ConfigError(f"{path.name}: no summary.json of a run of this judge with labels")

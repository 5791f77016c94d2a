"""Aggregator ``calibrated``.

The share a judge passes, corrected by labels of people, and what the judge is worth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    ConfigError,
    Figure,
    Grade,
    Grades,
    Outcome,
    Sample,
    interval,
    jackknife,
    ratio,
)
from gradestack.jsonio import JsonProblem, as_map, loads, read_bounded
from gradestack_plugins.statistics.coefficients import ac1, kappa, percent_agreement
from gradestack_plugins.statistics.labels import label_rows
from gradestack_plugins.statistics.mean import IntervalAggregator

Labels = Mapping[tuple[Any, ...], str]
"""By id, model, run and criterion; None is any model and run, and the whole sample."""

CELLS = ("both_pass", "judge_alone", "people_alone", "both_fail")
"""Of the table of judge and people: who passes."""
_VERDICT_PAIRS = tuple(product((True, False), repeat=2))  # of the judge, of people
_CELL_OF = dict(zip(_VERDICT_PAIRS, CELLS, strict=True))
_OTHER_COUNTS = ("labelled", "people_pass", "people_fail", "repeated", "agreeing", "unlike")
_NO_COUNTS = dict.fromkeys((*CELLS, *_OTHER_COUNTS), 0)
_EMPTY = "people labelled no sample that the judge passes, or none that it fails"
_ONE_VOTE = "one vote a sample"
_RATE = "p n11 / (n11 + n10) + (1 - p) n01 / (n01 + n00)"
_NOISE = "sqrt(sum c (k - c) / (k (k - 1))) / N"
_ONE_CLASS = "people passed no labelled sample, or failed none"


def read_verdicts(path: Path | None, criteria: Collection[str] | None = None) -> Labels:
    """Return the labels of a file, none of none.

    Refused is any other word, and a criterion that is not known.
    """
    labels: dict[tuple[Any, ...], str] = {}
    if path is None:
        return labels
    for at, key, label in label_rows(path, "model", "run", "criterion"):
        if label not in ("pass", "fail"):
            raise ConfigError(f"{at}: a label is pass or fail, found {label[:60]!r}")
        criterion = key[-1]
        if criteria is not None and criterion not in (None, *criteria):
            known = ", ".join(criteria)
            problem = f"the rubric has no criterion {criterion[:60]!r}"
            raise ConfigError(f"{at}: {problem}; it has {known}")
        labels[key] = label
    return labels


def verdict_of_people(labels: Labels, sample: Sample, criterion: str | None = None) -> str | None:
    """Return the label of a sample, or of a criterion of it.

    The one that names model and run before any other.
    """
    if not labels:
        return None
    if sample.run is None:
        run = None
    else:
        run = str(sample.run)
    for model_and_run in product((sample.model, None), (run, None)):
        label = labels.get((sample.id, *model_and_run, criterion))
        if label:
            return label
    return None


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The least labels of a calibrated judge: all, passes and fails each, and ``youden``'s lower
    end.
    """

    labels: int = 50
    each: int = 10
    youden: float = 0.3


def table_figures(both: float, judge: float, people: float, none: float) -> dict[str, float | None]:
    """Return sensitivity, specificity, youden, agreement, kappa and AC1 of a table."""
    pairs = product(("pass", "fail"), repeat=2)
    numbers = zip(pairs, (both, judge, people, none), strict=True)
    table: Any = {pair: number for pair, number in numbers if number}
    sensitivity = ratio(both, both + people)
    specificity = ratio(none, none + judge)
    youden = None
    if sensitivity is not None and specificity is not None:
        youden = sensitivity + specificity - 1
    figures = {"sensitivity": sensitivity, "specificity": specificity, "youden": youden}
    figures["percent_agreement"] = percent_agreement(table)
    figures["kappa"] = kappa(table)
    figures["ac1"] = ac1(table)
    return figures


def _score(name: str, label: str, about: str, undefined: str) -> Figure:
    return Figure(
        name, label, "higher", "score", about, "labelled", least=-1.0, most=1.0, undefined=undefined
    )


@attrs.frozen(kw_only=True)
class Calibrated(IntervalAggregator):
    """The share of samples a judge passes, corrected by the labels of people, and how far the judge
    can be trusted.

    Of the labelled samples n11 are passed by judge and people, n10 by the judge alone, n01 by
    people alone, n00 by neither. p is the judge's share of passes over all it graded.

    - ``rate`` corrects p by labels of this run; for a judge that says pass or fail this is
      prediction-powered inference with the best weight. Right also where samples were picked for
      labelling by verdict
    - ``rogan_gladen`` by Se and Sp, cut to [0, 1], also from another run (``calibration``); null
      where Se + Sp <= 1; interval of Lang and Reiczigel
    - ``raw`` = p, which nothing corrects; Se = n11 / (n11 + n01), Sp = n00 / (n00 + n10), agreement
      with people
    - ``self_consistency``: of k votes on a sample c pass it; the mean share of pairs of votes that
      agree. ``noise``: the standard deviation of the share of passes at one vote a sample

    ``uncalibrated`` says why figures do not count, where labels are below the floor: gates on them
    then fail.
    """

    figures = (
        Figure("rate", "Pass rate, corrected", about=_RATE, divisor="judged", undefined=_EMPTY),
        Figure(
            "rogan_gladen",
            "Pass rate, Rogan–Gladen",
            about="(p + Sp - 1) / (Se + Sp - 1)",
            divisor="judged",
        ),
        Figure(
            "raw",
            "Pass rate by the judge, not corrected",
            about="passed by the judge / graded",
            divisor="judged",
        ),
        Figure(
            "sensitivity",
            "Sensitivity",
            about="n11 / (n11 + n01)",
            divisor="people_pass",
            undefined=_ONE_CLASS,
        ),
        Figure(
            "specificity",
            "Specificity",
            about="n00 / (n00 + n10)",
            divisor="people_fail",
            undefined=_ONE_CLASS,
        ),
        Figure(
            "percent_agreement",
            "Agreement with people",
            about="equal verdicts / labelled",
            divisor="labelled",
        ),
        _score("youden", "Youden's J", "Se + Sp - 1", _ONE_CLASS),
        _score(
            "kappa",
            "Cohen's kappa",
            "(p_o - p_e) / (1 - p_e)",
            "undefined where both know one class only",
        ),
        _score("ac1", "Gwet's AC1", "(p_o - p_e) / (1 - p_e)", "no label of people"),
        Figure(
            "self_consistency",
            "Votes that agree",
            about="of all pairs",
            divisor="repeated",
            undefined=_ONE_VOTE,
        ),
        Figure(
            "noise",
            "Noise of the pass rate",
            "lower",
            "score",
            _NOISE,
            "repeated",
            least=0.0,
            undefined=_ONE_VOTE,
        ),
    )

    labels: Path | None = None
    """Labels of this run; default: the grader's."""
    calibration: Path | None = None
    """``summary.json`` of another run of this judge, with labels; default: the grader's."""
    floor: Floor = attrs.field(factory=Floor)
    people: Labels = attrs.field(init=False, eq=False, repr=False)
    other: Mapping[str, Any] = attrs.field(init=False, eq=False, repr=False)

    @people.default
    def _people(self) -> Labels:
        return read_verdicts(self.labels)

    @other.default
    def _other(self) -> Mapping[str, Any]:
        return read_calibration(self.calibration)

    @override
    def contribution(self, grade: Grade) -> Mapping[str, float] | None:
        if grade.outcome is not Outcome.GRADED:
            return None
        passed = grade.passed
        if passed is None:
            passed = (grade.score or 0) >= 1
        numbers: dict[str, float] = {**_NO_COUNTS, "judged": 1, "passed": bool(passed)}
        if grade.gold is not None:
            by_people = grade.gold == "pass"
            cell = _CELL_OF[passed, by_people]
            numbers[cell] = 1
            numbers["labelled"] = 1
            numbers["people_pass" if by_people else "people_fail"] = 1
        votes = grade.counts.get("votes", 1)
        passes = grade.counts.get("votes_passed", 0)
        if votes > 1:
            ordered_pairs = votes * (votes - 1)
            unlike = passes * (votes - passes) / ordered_pairs
            numbers["repeated"] = 1
            numbers["agreeing"] = 1 - 2 * unlike
            numbers["unlike"] = unlike
        return numbers

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        both, judge, people, none = (totals[name] for name in CELLS)
        raw = ratio(totals["passed"], totals["judged"])
        of_passes = ratio(both, both + judge)
        of_fails = ratio(people, people + none)
        rate = None
        if raw is not None and of_passes is not None and of_fails is not None:
            rate = raw * of_passes + (1 - raw) * of_fails
        figures = {"rate": rate, "raw": raw, **table_figures(both, judge, people, none)}
        repeated = totals["repeated"]
        figures["self_consistency"] = ratio(totals["agreeing"], repeated)
        unlike = max(0.0, totals["unlike"])
        figures["noise"] = ratio(math.sqrt(unlike), repeated)
        return figures

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        sums = grades.sums("judged", "passed", *CELLS)[0]  # of a task -> how many tasks
        totals = [0] * (2 + len(CELLS))
        labelled = Counter[tuple[float, ...]]()
        tasks = 0
        for numbers, times in sums.items():
            totals = [total + int(n) * times for total, n in zip(totals, numbers, strict=True)]
            if numbers[0]:
                tasks += times
            cells_of_task = numbers[2:]
            if any(cells_of_task):
                labelled[cells_of_task] += times
        judged, passed, *cells = totals
        youden = self._youden(labelled)
        elsewhere: dict[str, JSON] = {}
        if self.other and not any(cells):
            cells = [self.other["table"][name] for name in CELLS]
            youden = as_map(self.other.get("youden_interval"))
            elsewhere = {"labels_of": "another run", **table_figures(*cells)}
        table = dict(zip(CELLS, cells, strict=True))
        figures: dict[str, JSON] = {"labels": sum(cells), "table": table}
        figures["youden_interval"] = {**youden}
        figures |= elsewhere
        rate, interval_of = rogan_gladen(passed, judged, tasks, cells, self.confidence)
        figures["rogan_gladen"], figures["rogan_gladen_interval"] = rate, interval_of
        warnings = self._unknown_ids(grades)
        problem = self._below_the_floor(cells, youden)
        if problem is not None:
            figures["uncalibrated"] = problem
            warnings.insert(0, f"uncalibrated: {problem}")
        return {**figures, "warnings": [*warnings]} if warnings else figures

    def _unknown_ids(self, grades: Grades) -> list[str]:
        """Return a warning of labelled ids that no sample has."""
        if self.labels is None or not self.people:
            return []
        labelled = {key[0] for key in self.people}
        recorded = {key.id for key, _ in grades}
        unknown = sorted(labelled - recorded)
        if not unknown:
            return []
        ids = "ids are" if len(unknown) > 1 else "id is"
        problem = f"{len(unknown)} labelled {ids} that of no sample"
        first_id = unknown[0][:80]
        return [f"{self.labels.name}: {problem}, the first: {first_id!r}"]

    def _youden(self, tasks: Counter[tuple[float, ...]]) -> Mapping[str, Any]:
        """Return the interval of youden: that of (youden + 1) / 2, which is a share."""

        def scaled(*cells: float) -> dict[str, float | None]:
            youden = table_figures(*cells)["youden"]
            if youden is None:
                return {"share": None}
            return {"share": (youden + 1) / 2}

        labels = 0
        for cells, times in tasks.items():
            number = int(sum(cells))
            labels += number * times
        of_share = jackknife(scaled, tasks, len(CELLS))["share"]
        share = interval(of_share, labels, confidence=self.confidence)
        if "reason" in share:
            reason = share["reason"]
            return {"reason": _ONE_CLASS if reason == "undefined" else reason}
        low = 2 * share["low"] - 1
        high = 2 * share["high"] - 1
        method = f"scaled_{share['method']}"
        return {**share, "low": low, "high": high, "method": method}

    def _below_the_floor(self, cells: Sequence[int], youden: Mapping[str, Any]) -> str | None:
        """Return the number of labels that are missing, or the floor that youden is below."""
        floor = self.floor
        number = sum(cells)
        passes = cells[0] + cells[2]
        fails = number - passes
        if number < floor.labels:
            plural = "" if number == 1 else "s"
            labels = f"{number or 'no'} label{plural}"
            missing = floor.labels - number
            return f"{labels}, floor {floor.labels}: {missing} missing"
        lacking = []
        for verdict, count in (("pass", passes), ("fail", fails)):
            if count < floor.each:
                lacking.append(f"{floor.each - count} {verdict}")
        if lacking:
            labels = f"{passes} labelled pass, {fails} fail, floor {floor.each}"
            return f"{labels}: {' and '.join(lacking)} missing"
        if "reason" in youden or youden["low"] < floor.youden:
            shown = youden.get("reason")
            if not shown:
                low = youden["low"]
                high = youden["high"]
                shown = f"{low:.2f}–{high:.2f}"
            return f"youden {shown}, floor {floor.youden:.2f}"
        return None


def rogan_gladen(
    passed: int, n: int, tasks: int, cells: Sequence[int], confidence: float
) -> tuple[float | None, dict[str, JSON]]:
    """Compute the rate corrected by sensitivity and specificity, cut to [0, 1].

    Returns:
        The rate; Lang and Reiczigel's interval (2014), or the reason why there is none.
    """
    figures = table_figures(*cells)
    if not n:
        return None, {"reason": "nothing was graded"}
    if figures["youden"] is None:
        return None, {"reason": _ONE_CLASS}
    if figures["youden"] <= 0:
        return None, {"reason": "Se + Sp <= 1"}
    specificity = figures["specificity"] or 0.0
    youden = figures["youden"]
    corrected = (passed / n + specificity - 1) / youden
    low, high = _lang_reiczigel(passed, n, cells, confidence)
    interval_of: dict[str, JSON] = {"low": low, "high": high, "confidence": confidence}
    interval_of |= {"n": n, "clusters": tasks, "method": "lang_reiczigel"}
    return _share(corrected), interval_of


def _lang_reiczigel(
    passed: int, n: int, cells: Sequence[int], confidence: float
) -> tuple[float, float]:
    """Compute Lang and Reiczigel's interval of a rate that is measured by an imperfect judge.

    Args:
        passed: Runs that the judge passes.
        n: Runs that the judge has seen.
        cells: Labelled runs: passed by both, by the judge alone, by people alone, by neither.
        confidence: Confidence level, as 0.95.
    """
    both, judge, people, none = cells
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    weight = z * z
    rate = (passed + weight / 2) / (n + weight)
    passes = both + people + 2
    fails = judge + none + 2
    sensitivity = (both + 1) / passes
    specificity = (none + 1) / fails
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return 0.0, 1.0
    rate_variance = rate * (1 - rate) / (n + weight)
    sensitivity_variance = sensitivity * (1 - sensitivity) / passes
    specificity_variance = specificity * (1 - specificity) / fails
    rate = (rate + specificity - 1) / youden
    by_passes = rate * sensitivity_variance
    by_fails = (1 - rate) * specificity_variance
    middle = rate + 2 * z * z * (by_passes - by_fails)
    variance = rate_variance + rate**2 * sensitivity_variance
    variance += (1 - rate) ** 2 * specificity_variance
    spread = math.sqrt(variance) / youden
    share = _share(middle - z * spread)
    return share, _share(middle + z * spread)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def read_calibration(path: Path | None) -> Mapping[str, Any]:
    """Return the figures of a judge in the summary.json of a run with labels; none of no run."""
    if path is None:
        return {}
    try:
        summary = as_map(loads(read_bounded(path)))
    except (OSError, JsonProblem) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path.name}: cannot be read: {why}") from error
    metrics = summary.get("metrics")
    aggregates = as_map(as_map(metrics).get("aggregates"))
    for aggregate in aggregates.values():
        calibrated = as_map(aggregate).get("calibrated")
        figures = as_map(calibrated)
        table = as_map(figures.get("table"))
        is_table = all(type(table.get(name)) is int for name in CELLS)
        if is_table and any(table.values()) and "labels_of" not in figures:
            return figures
    raise ConfigError(f"{path.name}: no summary.json of a run of this judge with labels")

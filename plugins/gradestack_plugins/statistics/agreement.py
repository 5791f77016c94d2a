"""Aggregator ``agreement``: how often raters give a sample the same label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    ConfigError,
    Figure,
    Grade,
    Grades,
    Key,
    Outcome,
    estimate,
    interval,
    ratio,
    ratio_interval,
    replace,
)
from gradestack_plugins.statistics.coefficients import ac1, alpha, kappa, percent_agreement
from gradestack_plugins.statistics.labels import read_labels
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals

PEOPLE, GOLD, GRADER = "labels", "gold", "grader"
_PASS, _FAIL = "pass", "fail"
Pair = tuple[str, str]
"""Two raters, or their labels of one sample."""
Tasks = Mapping[str, Counter[Any]]
"""Task -> labels of its samples, or other units -> number of samples."""

_share = partial(Figure, least=0.0, most=1.0, optional=True)
_coefficient = partial(Figure, unit="score", least=-1.0, most=1.0, optional=True)
_PAIR = (
    _share("percent_agreement", "Agreement", about="equal labels / samples both have labelled"),
    _coefficient("kappa", "Cohen's kappa", about="(p_o - p_e) / (1 - p_e)"),
    _coefficient("ac1", "Gwet's AC1", about="(p_o - p_e) / (1 - p_e)"),
    _coefficient("alpha", "Krippendorff's alpha", about="1 - D_o / D_e"),
    _share(
        "false_pass_rate",
        "False passes",
        better="lower",
        about="passes of the second / fails of the first",
    ),
    _share(
        "false_fail_rate",
        "False fails",
        better="lower",
        about="fails of the second / passes of the first",
    ),
)
_ALPHA = "1 - D_o / D_e over all raters"


class _Ratings(msgspec.Struct):
    """The labels and scores of all samples, counted by task."""

    raters: Counter[str] = msgspec.field(default_factory=Counter)
    pairs: dict[Pair, dict[str, Counter[Pair]]] = msgspec.field(default_factory=dict)
    """Two raters -> task -> their labels."""
    labels: defaultdict[str, Counter[Any]] = msgspec.field(
        default_factory=lambda: defaultdict(Counter)
    )
    scores: defaultdict[str, Counter[Any]] = msgspec.field(
        default_factory=lambda: defaultdict(Counter)
    )
    is_same: defaultdict[str, list[bool]] = msgspec.field(default_factory=lambda: defaultdict(list))
    """Task -> whether the verdict on a sample is the same every time."""

    def add(self, task: str, labels: Mapping[str, str], scores: Iterable[float]) -> None:
        """Add the ratings of a sample."""
        self.raters.update(labels.keys())
        for (left_rater, left_label), (right_rater, right_label) in combinations(labels.items(), 2):
            tasks = self.pairs.setdefault((left_rater, right_rater), {})
            tasks.setdefault(task, Counter())[left_label, right_label] += 1
        self.labels[task][tuple(sorted(labels.values()))] += 1
        self.scores[task][tuple(sorted(scores))] += 1


@attrs.frozen(kw_only=True)
class Agreement(IntervalAggregator):
    """Agreement of raters on the labels of samples, and how much of it is more than chance.

    Raters are the grader and those of ``raters`` (each one's label is ``pass`` or ``fail``, by its
    own verdict, else a score of 1 or more); with ``labels`` people, too. Without either they are
    gold label and label of the grades. For each pair, over the samples both have labelled, with
    intervals that leave out one task at a time:

    - ``percent_agreement``
    - ``kappa`` = (p_o - p_e) / (1 - p_e), p_e = sum of both shares by class (Cohen); null with one
      class on both sides
    - ``ac1``: the same with p_e = sum of pi (1 - pi) / (q - 1), pi the mean share of each of q
      classes (Gwet); it stays sensible where nearly all labels are alike
    - ``alpha`` = 1 - D_o / D_e over pairable values (Krippendorff, nominal); null with one value
      only
    - ``table``: labels of the first in rows, of the second in columns; with ``pass`` and ``fail``
      also ``false_pass_rate`` (the second says pass, of those the first fails) and
      ``false_fail_rate``

    ``alpha_nominal``, ``alpha_ordinal`` and ``alpha_interval`` are over all raters, the latter two
    of their scores. The ``alpha`` of a single pair is ``alpha_nominal``, whose interval is
    ``alpha_nominal_interval``.

    Raters named in ``again`` are the grader itself, asked once more: a judge whose verdicts were
    recorded twice. They are not compared with the others; ``noise_floor`` is the share of samples
    whose verdict is the same every time, with its interval. No rater can be expected to agree with
    a judge more often than the judge with itself.
    """

    version = "2"
    figures = (
        *_PAIR,
        *(replace(figure, name=f"pairs.{{pair}}.{figure.name}") for figure in _PAIR),
        Figure("alpha_nominal", "Krippendorff's alpha, nominal", unit="score", about=_ALPHA),
        Figure("alpha_ordinal", "Krippendorff's alpha, ordinal", unit="score", about=_ALPHA),
        Figure("alpha_interval", "Krippendorff's alpha, interval", unit="score", about=_ALPHA),
        Figure(
            "noise_floor",
            "Verdicts that stay the same",
            about="samples whose verdict is the same every time / samples judged again",
            optional=True,
        ),
    )

    raters: tuple[str, ...] = ()
    """Keys of further graders."""
    again: tuple[str, ...] = ()
    """Those of them that are the grader itself over the same samples, once more."""
    labels: Path | None = None
    """Labels of people by id: JSON Lines of ``id`` and ``label``, or CSV with these columns."""
    people: Mapping[str, str] = attrs.field(init=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        if unknown := sorted(set(self.again) - set(self.raters)):
            raise ValueError(f"again names graders that are not in raters: {', '.join(unknown)}")
        if self.labels is not None:
            try:
                labels = read_labels(self.labels)
                object.__setattr__(self, "people", labels)
            except ConfigError as error:
                raise ValueError(str(error)) from error

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        ratings = self._collect(grades)
        raters = ratings.raters
        tables = dict[Pair, Counter[Pair]]()
        figures: dict[str, dict[str, JSON]] = {}
        for pair in sorted(ratings.pairs):
            tasks = ratings.pairs[pair]
            tables[pair] = sum(tasks.values(), Counter[Pair]())
            table = tables[pair]
            figures[", ".join(pair)] = self._pair(table, tasks)
        metrics: dict[str, JSON] = {"raters": dict(sorted(raters.items()))}
        metrics |= next(iter(figures.values())) if len(figures) == 1 else {"pairs": {**figures}}
        metrics |= self._estimated("alpha_nominal", ratings.labels, _NOMINAL)
        metrics |= self._estimated("alpha_ordinal", ratings.scores, _ORDINAL)
        metrics |= self._estimated("alpha_interval", ratings.scores, _INTERVAL)
        if self.again:
            is_same = ratings.is_same.values()
            metrics |= self._noise(is_same)
        warning = self._warning(tables, raters) if raters else None
        return metrics if warning is None else {**metrics, "warnings": [warning]}

    def _collect(self, grades: Grades) -> _Ratings:
        """Count labels and scores of all samples by task and rater."""
        names, columns = [GRADER], [grades]
        if self.raters:
            names = [grades.key, *(name for name in self.raters if name != grades.key)]
            columns = list(map(grades.of, names))
        ratings = _Ratings()
        for row in zip(*columns, strict=True):
            key = row[0][0]
            if key.cluster is None:
                task = key.id
            else:
                task = key.cluster
            labels, scores = self._rate(key, zip(names, [grade for _, grade in row], strict=True))
            repeated = {labels.pop(name) for name in self.again if name in labels}
            if repeated and grades.key in labels:
                label = labels[grades.key]
                ratings.is_same[task].append(repeated == {label})
            ratings.add(task, labels, scores)
        return ratings

    def _rate(
        self, key: Key, rated: Iterable[tuple[str, Grade]]
    ) -> tuple[dict[str, str], list[float]]:
        """Return the labels a sample has by rater, people and gold label first, and its scores."""
        labels = dict[str, str]()
        scores = list[float]()
        reference = dict[str, str]()
        if key.id in self.people:
            reference = {PEOPLE: self.people[key.id]}
        has_gold = not self.raters and self.labels is None
        for name, grade in rated:
            if self.raters or grade.label is None:
                label = _verdict(grade)
            else:
                label = grade.label
            if grade.outcome is not Outcome.GRADED or label is None:
                continue
            labels[name] = label
            if grade.score is not None and name not in self.again:
                scores.append(float(grade.score))
            if has_gold and grade.gold is not None:
                reference = {GOLD: grade.gold}
        return reference | labels, scores

    def _warning(
        self, tables: Mapping[Pair, Mapping[Pair, int]], raters: Collection[str]
    ) -> str | None:
        """Return that the labels of people can agree with nothing, where they cannot."""
        if self.labels is None:
            return None
        name = self.labels.name
        first_id = next(iter(self.people))
        if PEOPLE not in raters:
            problem = f"none of its {len(self.people)} ids is that of a sample"
            return f"{name}: {problem}, the first: {first_id[:80]!r}"
        ours = {
            label for (rater, _), table in tables.items() if rater == PEOPLE for _, label in table
        }
        theirs = set(self.people.values())
        verdicts = {_PASS, _FAIL}
        if ours & verdicts:
            possible = ours | verdicts
        else:
            possible = ours
        if not ours or possible & theirs:
            return None
        shown, other = (", ".join(sorted(labels)[:3])[:80] for labels in (theirs, possible))
        return f"{name}: people say {shown} where graders say {other}: no label can be equal"

    def _noise(self, tasks: Collection[list[bool]]) -> dict[str, JSON]:
        cells = Counter[tuple[float, ...]]((len(same), sum(same)) for same in tasks)
        interval_of: JSON = {"reason": "nothing judged again"}
        if tasks:
            interval_of = {**ratio_interval(cells, confidence=self.confidence)}
        total_sums = sum(map(sum, tasks))
        total_tasks = sum(map(len, tasks))
        floor = ratio(total_sums, total_tasks)
        return {"noise_floor": floor, "noise_floor_interval": interval_of}

    def _estimated(
        self, name: str, tasks: Tasks, coefficient: Callable[[Mapping[Any, int]], float | None]
    ) -> dict[str, JSON]:
        """Return a coefficient over all samples, and its interval by a jackknife over tasks.

        The jackknife computes the coefficient once more without each task, for tasks with equal
        counts only once. With more distinct labels than ``_MOST_DISTINCT`` there is no interval.
        """
        all_counts = sum(tasks.values(), Counter[Any]())
        value = coefficient(all_counts)
        distinct_labels = {label for labels in all_counts for label in labels}
        if len(distinct_labels) > _MOST_DISTINCT:
            reason = f"more than {_MOST_DISTINCT} distinct values"
            return {name: value, **no_intervals({name: reason})}
        equal_tasks = Counter(frozenset(counts.items()) for counts in tasks.values())
        leave_one_out = [
            (coefficient(all_counts - Counter(dict(counts))), number_of_tasks)
            for counts, number_of_tasks in equal_tasks.items()
        ]
        of_value = interval(
            estimate(value, leave_one_out, len(tasks)),
            all_counts.total(),
            confidence=self.confidence,
            share=False,
            least=-1.0,
            most=1.0,
        )
        return {name: value, f"{name}_interval": {**of_value}}

    def _share_interval(
        self, tasks: Tasks, above: Collection[Pair], below: Collection[Pair]
    ) -> dict[str, JSON]:
        """Return the interval of the share of some cells of the table among others."""
        sums = Counter[tuple[float, ...]]()
        for cells in tasks.values():
            counts = [sum(cells[cell] for cell in some) for some in (below, above)]
            sums[tuple(counts)] += 1
        return {**ratio_interval(sums, confidence=self.confidence)}

    def _pair(self, table: Mapping[Pair, int], tasks: Tasks) -> dict[str, JSON]:
        """Return the figures of two raters."""
        equal = [cell for cell in table if cell[0] == cell[1]]
        total_table = sum(table.values())
        figures: dict[str, JSON] = {
            "n": total_table,
            "percent_agreement": percent_agreement(table),
            "percent_agreement_interval": self._share_interval(tasks, equal, table),
        }
        for name, coefficient in _COEFFICIENTS.items():
            figures |= self._estimated(name, tasks, coefficient)
        labels = sorted({label for cell in table for label in cell})
        if set(labels) <= {_PASS, _FAIL}:
            figures |= self._error_rate("false_pass_rate", _FAIL, _PASS, table, tasks)
            figures |= self._error_rate("false_fail_rate", _PASS, _FAIL, table, tasks)
        figures["table"] = {
            left: {right: table.get((left, right), 0) for right in labels} for left in labels
        }
        return figures

    def _error_rate(
        self, name: str, truth: str, verdict: str, table: Mapping[Pair, int], tasks: Tasks
    ) -> dict[str, JSON]:
        """Return the share of a verdict of the second rater where the first gives another."""
        below = [cell for cell in table if cell[0] == truth]
        total = sum(table[cell] for cell in below)
        rate = ratio(table.get((truth, verdict), 0), total)
        if not below:
            reasons = {name: f"no {truth}"}
            return {name: rate, **no_intervals(reasons)}
        of_rate = self._share_interval(tasks, [(truth, verdict)], below)
        return {name: rate, f"{name}_interval": of_rate}


_NOMINAL: Final = partial(alpha, level="nominal")
_ORDINAL: Final = partial(alpha, level="ordinal")
_INTERVAL: Final = partial(alpha, level="interval")
_COEFFICIENTS: Final[Mapping[str, Callable[[Mapping[Any, int]], float | None]]] = {
    "kappa": kappa,
    "ac1": ac1,
    "alpha": _NOMINAL,
}
_MOST_DISTINCT: Final = 32
"""Distinct values beyond which no coefficient is computed once more without each task."""


def _verdict(grade: Grade) -> str | None:
    """Return a grade's verdict; without its own, a score of 1 or more passes."""
    passed = grade.passed
    if passed is None and grade.score is not None:
        passed = grade.score >= 1
    if passed is None:
        return None
    return _PASS if passed else _FAIL

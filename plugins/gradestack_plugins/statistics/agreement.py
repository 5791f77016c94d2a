"""Aggregator ``agreement``: which graders, or people, tell the same story."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypedDict

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    CellsState,
    ConfigError,
    CountsState,
    Grade,
    Item,
    Key,
    Outcome,
    TaskCells,
    TaskCounts,
    TaskNumbers,
    counts_interval,
    ratio_interval,
    replace,
    valid_confidence,
)
from gradestack_plugins.statistics.labels import read_labels
from gradestack_plugins.statistics.raters import Level, ac1, alpha, kappa, percent_agreement

PEOPLE, GOLD, GRADER = "labels", "gold", "grader"
_CELLS = TaskCounts()
_NOISE = TaskCells("samples", "unchanged")
_PASS, _FAIL = "pass", "fail"


class AgreementState(TypedDict):
    """JSON state: pairs of labels by task, and what all raters said of a sample."""

    raters: dict[str, int]
    """Rater -> samples with a label."""
    pairs: CountsState
    units: dict[str, int]
    """Labels of a sample, as JSON -> number of samples."""
    scores: dict[str, int]
    """The same of scores."""
    noise: CellsState
    """Samples that were judged once more, and how many of their verdicts are the same."""


@lru_cache(maxsize=4096)
def _named(first: str, second: str, left: str, right: str) -> str:
    return json.dumps([first, second, left, right])


@attrs.frozen(kw_only=True)
class Agreement(Aggregator[AgreementState]):
    """How often raters give a sample the same label, and how much of that is more than chance.

    Raters are the grader and those of ``raters`` (each one's label is ``pass`` or ``fail``, by its own verdict, else a
    score of 1 or more); with ``labels`` people, too. Without either they are gold label and label of the grades.
    For each pair, over the samples both have labelled:

    - ``percent_agreement`` with its interval, clustered by task
    - ``kappa`` = (p_o - p_e) / (1 - p_e), p_e = sum of both shares by class (Cohen); null with one class on both sides
    - ``ac1``: the same with p_e = sum of pi (1 - pi) / (q - 1), pi the mean share of each of q classes (Gwet); it stays
      sensible where nearly all labels are alike
    - ``alpha`` = 1 - D_o / D_e over pairable values (Krippendorff, nominal); null with one value only
    - ``table``: labels of the first in rows, of the second in columns; with ``pass`` and ``fail`` also
      ``false_pass_rate`` (the second says pass, of those the first fails) and ``false_fail_rate``, with intervals

    ``alpha_nominal``, ``alpha_ordinal`` and ``alpha_interval`` are over all raters, the latter two of their scores.

    Raters named in ``again`` are the grader itself, asked once more: a judge whose verdicts were recorded twice. They
    are not compared with the others; ``noise_floor`` is the share of samples whose verdict is the same every time, with
    its interval. No rater can be expected to agree with a judge more often than the judge with itself.
    """

    version = "2"
    memory = "per_sample"

    raters: tuple[str, ...] = ()
    """Keys of further graders."""
    again: tuple[str, ...] = ()
    """Those of them that are the grader itself over the same samples, once more."""
    labels: Path | None = None
    """Labels of people by id: JSON Lines of ``id`` and ``label``, or CSV with these columns."""
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""
    people: Mapping[str, str] = attrs.field(init=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        if unknown := sorted(set(self.again) - set(self.raters)):
            raise ValueError(f"again names graders that are not in raters: {', '.join(unknown)}")
        if self.labels is not None:
            try:
                object.__setattr__(self, "people", read_labels(self.labels))
            except ConfigError as error:
                raise ValueError(str(error)) from error

    @override
    def start(self) -> AgreementState:
        return {"raters": {}, "pairs": _CELLS.start(), "units": {}, "scores": {}, "noise": _NOISE.start()}

    @override
    def add(self, state: AgreementState, key: Key, grade: Grade) -> AgreementState:
        labels, scores = self._ratings(key, grade)
        first = next(iter(grade.items), None)
        repeated = [labels.pop(name) for name in self.again if name in labels]
        if repeated and first is not None and first.id in labels:
            _NOISE.add(state["noise"], key, [1, int(all(label == labels[first.id] for label in repeated))])
        for rater in labels:
            state["raters"][rater] = state["raters"].get(rater, 0) + 1
        cell: dict[str, Any] = {
            _named(first, second, left, right): 1 for (first, left), (second, right) in combinations(labels.items(), 2)
        }
        if cell:
            _CELLS.add(state["pairs"], key, cell)
        for kind, values in (("units", list(labels.values())), ("scores", scores)):
            if len(values) > 1:
                name = json.dumps(sorted(values))
                counts = state[kind]  # type: ignore[literal-required] # one of two fields of a kind
                counts[name] = counts.get(name, 0) + 1
        return state

    @override
    def together(self, of: str, columns: Mapping[str, Sequence[Grade]]) -> Sequence[Grade]:
        """Return the grades of ``of`` with those of all raters as items, their labels ``pass`` or ``fail``.

        Args:
            of: The grader this reads.
            columns: Grader key -> its grades of the same samples.
        """
        if not self.raters:
            return columns[of]
        keys = (of, *(key for key in self.raters if key != of))
        rows = zip(*(columns[key] for key in keys), strict=True)
        return [replace(row[0], items=tuple(map(_item, keys, row))) for row in rows]

    def _ratings(self, key: Key, grade: Grade) -> tuple[dict[str, str], list[float]]:
        """Return labels by rater, and the scores that were given."""
        if self.raters:
            rated: list[tuple[str, Grade | Item]] = [(item.id, item) for item in grade.items]
        else:
            rated = [(GRADER, grade)]
        labels, scores = {}, []
        for name, each in rated:
            if each.outcome is Outcome.GRADED and (label := _label(each)) is not None:
                labels[name] = label
                scores += [] if each.score is None or name in self.again else [float(each.score)]
        if not self.raters and self.labels is None and GRADER in labels and grade.gold is not None:
            labels = {GOLD: grade.gold, **labels}
        if self.labels is not None and (label := self.people.get(key.id)) is not None:
            labels = {PEOPLE: label, **labels}
        return labels, scores

    @override
    def merge(self, left: AgreementState, right: AgreementState) -> AgreementState:
        for name in ("raters", "units", "scores"):
            counts = left[name]
            for each, number in right[name].items():
                counts[each] = counts.get(each, 0) + number
        _CELLS.merge(left["pairs"], right["pairs"])
        _NOISE.merge(left["noise"], right["noise"])
        return left

    @override
    def finish(self, state: AgreementState) -> Mapping[str, JSON]:
        tasks, _ = _CELLS.tasks(state["pairs"])
        tables: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
        for numbers, times in tasks.items():
            for name, number in numbers:
                first, second, left, right = json.loads(name)
                tables.setdefault((first, second), Counter())[left, right] += int(number) * times
        pairs = {
            f"{first}, {second}": self._pair((first, second), tables[first, second], tasks)
            for first, second in sorted(tables)
        }
        labels = {tuple(json.loads(name)): number for name, number in state["units"].items()}
        scores = {tuple(map(float, json.loads(name))): number for name, number in state["scores"].items()}
        levels: tuple[Level, Level] = ("ordinal", "interval")
        return {
            "raters": dict(sorted(state["raters"].items())),
            **(next(iter(pairs.values())) if len(pairs) == 1 else {"pairs": pairs}),
            "alpha_nominal": alpha(labels, "nominal"),
            **{f"alpha_{level}": alpha(scores, level) for level in levels},
            **(self._noise(state["noise"]) if self.again else {}),
            **self._unlike(state["raters"], tables),
        }

    def _unlike(
        self, raters: Mapping[str, int], tables: Mapping[tuple[str, str], Mapping[Any, int]]
    ) -> dict[str, JSON]:
        """Return a warning where the labels of people are those of no sample, or other words than the graders'."""
        if self.labels is None or not raters:
            return {}
        name, number = self.labels.name, len(self.people)
        if PEOPLE not in raters:
            return {
                "warnings": [
                    f"{name}: none of its {number} ids is that of a sample, the first: {next(iter(self.people))[:80]!r}"
                ]
            }
        said = {
            label
            for of, cells in tables.items()
            if PEOPLE in of
            for pair in cells
            for rater, label in zip(of, pair, strict=True)
            if rater != PEOPLE
        }
        ours, theirs = said | ({_PASS, _FAIL} if said & {_PASS, _FAIL} else set()), set(self.people.values())
        if said and not ours & theirs:
            shown, other = (", ".join(sorted(each)[:3])[:80] for each in (theirs, ours))
            return {"warnings": [f"{name}: people say {shown} where graders say {other}: no label can be equal"]}
        return {}

    def _noise(self, state: CellsState) -> dict[str, JSON]:
        cells = _NOISE.rounded(state)[0]
        n, same = (sum(int(cell[at]) * times for cell, times in cells.items()) for at in (0, 1))
        sure: JSON = {**ratio_interval(cells, confidence=self.confidence)} if n else {"reason": "nothing judged again"}
        return {"noise_floor": same / n if n else None, "noise_floor_interval": sure}

    def _pair(
        self, raters: tuple[str, str], table: Mapping[tuple[str, str], int], tasks: Mapping[TaskNumbers, int]
    ) -> dict[str, JSON]:
        def rate(above: list[tuple[str, str]], below: list[tuple[str, str]]) -> dict[str, JSON]:
            names = [[_named(*raters, *cell) for cell in cells] for cells in (above, below)]
            sums: Counter[TaskNumbers] = Counter()
            for numbers, times in tasks.items():
                known = dict(numbers)
                kept = [sum(known.get(name, 0) for name in each) for each in names]
                sums[("above", kept[0]), ("below", kept[1])] += times
            return {**counts_interval(sums, "above", ("below",), confidence=self.confidence)}

        cells = list(table)
        same = [cell for cell in cells if cell[0] == cell[1]]
        found: dict[str, JSON] = {
            "n": sum(table.values()),
            "percent_agreement": percent_agreement(table),
            "percent_agreement_interval": rate(same, cells),
            "kappa": kappa(table),
            "ac1": ac1(table),
            "alpha": alpha(dict(table.items()), "nominal"),
        }
        if {label for cell in cells for label in cell} <= {_PASS, _FAIL}:
            for name, (truth, said) in {"false_pass_rate": (_FAIL, _PASS), "false_fail_rate": (_PASS, _FAIL)}.items():
                of = [cell for cell in cells if cell[0] == truth]
                total, wrong = sum(table[cell] for cell in of), table.get((truth, said), 0)
                found[name] = wrong / total if total else None
                found[f"{name}_interval"] = rate([(truth, said)], of) if total else {"reason": f"no {truth}"}
        labels = sorted({label for cell in cells for label in cell})
        found["table"] = {left: {right: table.get((left, right), 0) for right in labels} for left in labels}
        return found


def _item(key: str, grade: Grade) -> Item:
    return Item(id=key, outcome=grade.outcome, score=grade.score, label=_label(replace(grade, label=None)))


def _label(graded: Grade | Item) -> str | None:
    if graded.label is not None:
        return graded.label
    verdict = graded.passed if isinstance(graded, Grade) else None
    if verdict is None and graded.score is None:
        return None
    passed = (graded.score or 0) >= 1 if verdict is None else verdict
    return _PASS if passed else _FAIL

"""Agreement of raters: Cohen's kappa, Gwet's AC1, Krippendorff's alpha."""

from __future__ import annotations

import io
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate, combinations, product
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
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
from gradestack.jsonio import CsvProblem, JsonProblem, compact, csv_rows, loads, read_text
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals

Table = Mapping[tuple[str, str], int]
"""Label of one rater and of the other -> number of samples."""
Level = Literal["nominal", "ordinal", "interval"]


def percent_agreement(table: Table) -> float | None:
    """Return the share of samples with equal labels; None for none."""
    n = sum(table.values())
    return sum(times for (a, b), times in table.items() if a == b) / n if n else None


def kappa(table: Table) -> float | None:
    """Return Cohen's kappa, ``(p_o - p_e) / (1 - p_e)`` with ``p_e`` = sum over classes of both
    raters' shares.
    """
    n, observed, (left, right) = sum(table.values()), percent_agreement(table), _margins(table)
    chance = math.fsum(left[label] * right[label] for label in left) / n**2 if n else 1
    return None if observed is None or chance == 1 else (observed - chance) / (1 - chance)


def ac1(table: Table) -> float | None:
    """Return Gwet's AC1, whose ``p_e`` is the sum of pi (1 - pi) over q - 1, pi the mean share of
    each of q classes.
    """
    n, observed, (left, right) = sum(table.values()), percent_agreement(table), _margins(table)
    labels = left.keys() | right.keys()
    if observed is None or len(labels) == 1:
        return None if observed is None else 1.0
    shares = [(left[label] + right[label]) / (2 * n) for label in labels]
    chance = math.fsum(share * (1 - share) for share in shares) / (len(labels) - 1)
    return (observed - chance) / (1 - chance)


def _margins(table: Table) -> tuple[Counter[str], Counter[str]]:
    left, right = Counter[str](), Counter[str]()
    for (a, b), times in table.items():
        left[a] += times
        right[b] += times
    return left, right


def alpha(units: Mapping[Any, int], level: Level) -> float | None:
    """Return Krippendorff's alpha, ``1 - D_o / D_e`` over pairable values.

    None for none, and for one value only.
    """
    pairable = {values: times for values, times in units.items() if len(values) > 1}
    totals: Counter[Any] = Counter()
    for values, times in pairable.items():
        for value in values:
            totals[value] += times
    if len(totals) < 2:
        return None
    place: dict[Any, Any] = {value: value for value in totals}
    if level == "ordinal":  # its mean rank
        ends = accumulate(totals[value] for value in sorted(totals))
        place = {
            value: end - totals[value] / 2 for value, end in zip(sorted(totals), ends, strict=True)
        }

    def apart(counts: Mapping[Any, int]) -> float:
        pairs = product(counts.items(), repeat=2)
        if level == "nominal":
            return math.fsum(a * b for (x, a), (y, b) in pairs if x != y)
        return math.fsum(a * b * (place[x] - place[y]) ** 2 for (x, a), (y, b) in pairs)

    observed = [
        times * apart(Counter(values)) / (len(values) - 1) for values, times in pairable.items()
    ]
    return 1 - math.fsum(observed) / (apart(totals) / (totals.total() - 1))


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


@attrs.frozen(kw_only=True)
class Agreement(IntervalAggregator):
    """How often raters give a sample the same label, and how much of that is more than chance.

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
    figures: ClassVar = (
        *_PAIR,
        *(replace(each, name=f"pairs.{{pair}}.{each.name}") for each in _PAIR),
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
                object.__setattr__(self, "people", read_labels(self.labels))
            except ConfigError as error:
                raise ValueError(str(error)) from error

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        pairs = defaultdict[Pair, defaultdict[str, Counter[Pair]]](lambda: defaultdict(Counter))
        units, scored = (defaultdict[str, Counter[Any]](Counter) for _ in range(2))
        raters, noise = Counter[str](), defaultdict[str, list[bool]](list)
        others = [name for name in self.raters if name != grades.key]
        names, columns = [GRADER], [grades]
        if self.raters:
            names, columns = (
                [grades.key, *others],
                [grades.of(name) for name in (grades.key, *others)],
            )
        for row in zip(*columns, strict=True):
            key, task = row[0][0], row[0][0].id if row[0][0].cluster is None else row[0][0].cluster
            labels, scores = self._ratings(
                key, zip(names, [grade for _, grade in row], strict=True)
            )
            repeated = [labels.pop(name) for name in self.again if name in labels]
            if repeated and grades.key in labels:
                noise[task].append(set(repeated) == {labels[grades.key]})
            raters.update(labels.keys())
            for (first, left), (second, right) in combinations(labels.items(), 2):
                pairs[first, second][task][left, right] += 1
            units[task][tuple(sorted(labels.values()))] += 1
            scored[task][tuple(sorted(scores))] += 1
        tables = {pair: sum(tasks.values(), Counter[Pair]()) for pair, tasks in pairs.items()}
        found = {", ".join(pair): self._pair(tables[pair], pairs[pair]) for pair in sorted(pairs)}
        return {
            "raters": dict(sorted(raters.items())),
            **(next(iter(found.values())) if len(found) == 1 else {"pairs": found}),
            **self._estimated("alpha_nominal", units, partial(alpha, level="nominal")),
            **self._estimated("alpha_ordinal", scored, partial(alpha, level="ordinal")),
            **self._estimated("alpha_interval", scored, partial(alpha, level="interval")),
            **(self._noise(noise.values()) if self.again else {}),
            **({"warnings": [said]} if raters and (said := self._unlike(tables, raters)) else {}),
        }

    def _ratings(
        self, key: Key, rated: Iterable[tuple[str, Grade]]
    ) -> tuple[dict[str, str], list[float]]:
        """Return the labels a sample has by rater, people and gold label first, and its scores."""
        labels, scores, before = dict[str, str](), list[float](), dict[str, str]()
        if (label := self.people.get(key.id)) is not None:
            before = {PEOPLE: label}
        for name, grade in rated:
            label = _verdict(grade) if self.raters or grade.label is None else grade.label
            if grade.outcome is Outcome.GRADED and label is not None:
                labels[name] = label
                scores += [] if grade.score is None or name in self.again else [float(grade.score)]
                if not self.raters and self.labels is None and grade.gold is not None:
                    before = {GOLD: grade.gold}
        return before | labels, scores

    def _unlike(
        self, tables: Mapping[Pair, Mapping[Pair, int]], raters: Collection[str]
    ) -> str | None:
        """Return that the labels of people can agree with nothing, where they cannot."""
        if self.labels is None:
            return None
        name, first = self.labels.name, next(iter(self.people))
        if PEOPLE not in raters:
            return (
                f"{name}: none of its {len(self.people)} ids is that of a sample, the first: "
                f"{first[:80]!r}"
            )
        said = {
            label for (people, _), cells in tables.items() if people == PEOPLE for _, label in cells
        }
        ours, theirs = (
            said | ({_PASS, _FAIL} if said & {_PASS, _FAIL} else set()),
            set(self.people.values()),
        )
        if not said or ours & theirs:
            return None
        shown, other = (", ".join(sorted(each)[:3])[:80] for each in (theirs, ours))
        return f"{name}: people say {shown} where graders say {other}: no label can be equal"

    def _noise(self, tasks: Collection[list[bool]]) -> dict[str, JSON]:
        cells = Counter[tuple[float, ...]]((len(same), sum(same)) for same in tasks)
        sure = (
            ratio_interval(cells, confidence=self.confidence)
            if tasks
            else {"reason": "nothing judged again"}
        )
        floor = ratio(sum(map(sum, tasks)), sum(map(len, tasks)))
        return {"noise_floor": floor, "noise_floor_interval": {**sure}}

    def _estimated(
        self, name: str, tasks: Tasks, coefficient: Callable[[Mapping[Any, int]], float | None]
    ) -> dict[str, JSON]:
        """Return a coefficient of all units and its interval, which leaves out one task
        at a time.
        """
        units = sum(tasks.values(), Counter[Any]())
        value = coefficient(units)
        if len({value for unit in units for value in unit}) > _MANY:
            return {name: value, **no_intervals({name: f"more than {_MANY} distinct values"})}
        alike = Counter(frozenset(cells.items()) for cells in tasks.values())
        left = [
            (coefficient(units - Counter(dict(cells))), times) for cells, times in alike.items()
        ]
        of = estimate(value, left, len(tasks))
        sure = interval(
            of, units.total(), confidence=self.confidence, share=False, least=-1.0, most=1.0
        )
        return {name: value, f"{name}_interval": {**sure}}

    def _pair(self, table: Mapping[Pair, int], tasks: Tasks) -> dict[str, JSON]:
        def rate(above: Collection[Pair], below: Collection[Pair]) -> JSON:
            sums = Counter[tuple[float, ...]](
                tuple([sum(cells[cell] for cell in some) for some in (below, above)])
                for cells in tasks.values()
            )
            return {**ratio_interval(sums, confidence=self.confidence)}

        found: dict[str, JSON] = {
            "n": sum(table.values()),
            "percent_agreement": percent_agreement(table),
            "percent_agreement_interval": rate(
                [cell for cell in table if cell[0] == cell[1]], table
            ),
        }
        for name, coefficient in _COEFFICIENTS.items():
            found |= self._estimated(name, tasks, coefficient)
        labels = sorted({label for cell in table for label in cell})
        if set(labels) <= {_PASS, _FAIL}:
            for name, (truth, said) in {
                "false_pass_rate": (_FAIL, _PASS),
                "false_fail_rate": (_PASS, _FAIL),
            }.items():
                below = [cell for cell in table if cell[0] == truth]
                found[name] = ratio(table.get((truth, said), 0), sum(table[cell] for cell in below))
                found[f"{name}_interval"] = (
                    rate([(truth, said)], below) if below else {"reason": f"no {truth}"}
                )
        found["table"] = {
            left: {right: table.get((left, right), 0) for right in labels} for left in labels
        }
        return found


_COEFFICIENTS: Mapping[str, Callable[[Mapping[Any, int]], float | None]] = {
    "kappa": kappa,
    "ac1": ac1,
    "alpha": partial(alpha, level="nominal"),
}
_MANY = 32
"""Distinct values beyond which no coefficient is computed once more without each task."""


def _verdict(grade: Grade) -> str | None:
    if grade.passed is None and grade.score is None:
        return None
    passed = (grade.score or 0) >= 1 if grade.passed is None else grade.passed
    return _PASS if passed else _FAIL


def read_labels(path: Path) -> dict[str, str]:
    """Return labels by id: JSON Lines of ``id`` and ``label``, or CSV with these columns."""
    return {place[0]: label for _, place, label in label_rows(path)}


def label_rows(path: Path, *more: str) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """Yield file and line of each label, what it is of (its id, and ``more``, None where empty),
    and the label.
    """
    places = set[tuple[Any, ...]]()
    line = 0
    try:
        text = read_text(path)
        for line, row in _table(text) if path.suffix.lower() == ".csv" else _lines(text):
            named = [None if row.get(name) in (None, "") else str(row[name]) for name in more]
            key, label = _text(row, "id"), _text(row, "label")
            if (place := (key, *named)) in places:
                # named by its line below
                raise _Wrong(f"the id {key[:80]!r} has a label already")  # noqa: TRY301
            places.add(place)
            yield f"{path.name}:{line}", place, label
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path.name}: byte {error.object[error.start]:#04x} is not UTF-8"
        ) from error
    except _Wrong as error:
        raise ConfigError(f"{path.name}:{error.line or line}: {error}") from error
    if not places:
        raise ConfigError(f"{path.name}: holds no label; expected lines of id and label")


class _Wrong(ValueError):
    """What is wrong with a row, and its line where that is not the one met last."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.line = line


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if type(value) is int:
        return str(value)
    if not isinstance(value, str) or not value:
        what = f"found {compact(value)[:60]}" if name in row else "it is missing"
        raise _Wrong(f"expected id and label: {name} is to be a text, {what}")
    return value


def _lines(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = loads(line.encode())
            except JsonProblem as error:
                raise _Wrong(str(error), number) from error
            if not isinstance(row, dict):
                raise _Wrong(
                    f"expected an object with id and label, found {compact(row)[:60]}", number
                )
            yield number, row


def _table(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = csv_rows(io.StringIO(text, newline=""), skipinitialspace=True)
    try:
        names = [name.strip() for name in next(rows, (1, []))[1]]
        if names.count("id") != 1 or names.count("label") != 1:
            shown = ", ".join(names)[:60] or "none"
            raise _Wrong(f"expected the columns id and label once each, found: {shown}", 1)
        for line, cells in rows:
            if cells and len(cells) != len(names):
                raise _Wrong(f"{len(cells)} cells where the table has {len(names)} columns", line)
            row = dict(zip(names, cells, strict=False))
            if row.get("label", "").strip():
                yield line, row
    except CsvProblem as error:
        raise _Wrong(str(error), error.line) from error

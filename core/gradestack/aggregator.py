"""The contract of metrics: what figures mean, and how they are made of grades."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
from msgspec.structs import force_setattr

from gradestack.api import Contract, Direction, Unit
from gradestack.hooks import Kind
from gradestack.model import JSON, Grade, Outcome

if TYPE_CHECKING:
    from fractions import Fraction

    from gradestack.grades import Grades
    from gradestack.table import Numbers

_AMOUNTS = ("count", "seconds", "tokens", "usd")


class Figure(msgspec.Struct, frozen=True):
    """The meaning of a figure, declared once.

    Read by console, pages, comparison, gates and tables alike.
    """

    name: str
    """Its path below the aggregator.

    ``pass_hat_k.{k}`` (a number) and ``per_class.{class}.f1`` are families.
    """
    label: str
    """Plain words, sentence case: "Expected calls made"."""
    better: Direction = "higher"
    unit: Unit = "share"
    about: str = ""
    """The formula, in one line."""
    divisor: str = ""
    """The number it is divided by: its ``n``, and only tasks that add to it are its clusters.

    Default: all samples. That of a family may have its ``{k}``.
    """
    samples: str = ""
    """The number of its samples, where that is not the divisor: the ``n`` of its interval."""
    least: float | None = None
    most: float | None = None
    """What it cannot be below and above, and no interval is.

    Default: a share lies between 0 and 1, what is no score is not below 0.
    """
    undefined: str = "undefined"
    """Why it has no value, where it has none."""
    optional: bool = False
    """Whether it may be missing.

    Figures of each of several raters or models, say, that are not made of one.
    """
    course: Literal["falls", "rises"] | None = None
    """How a family ``NAME.{k}`` goes with k: so do both ends of its intervals."""
    pooled: bool = True
    """Whether it is also made over several models, beside that of each."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value there can be; infinite where nothing is known."""
        least = -math.inf if self.unit == "score" else 0.0
        most = 1.0 if self.unit == "share" else math.inf
        return least if self.least is None else self.least, most if self.most is None else self.most

    @property
    def amount(self) -> bool:
        """Whether it is an amount, of which a few tasks often have most.

        Tokens, seconds, dollars or a count.
        """
        return self.unit in _AMOUNTS and self.bounds[0] >= 0

    def covers(self, path: str) -> bool:
        """Return whether it declares the figure at a path."""
        return declared_at((self,), path) is not None

    def divisor_of(self, path: str) -> str:
        """Return the name of the number that the figure at a path is divided by."""
        match = None
        if "{" in self.divisor:
            match = _pattern(self.name).fullmatch(path)
        if match is None:
            return self.divisor
        return self.divisor.format(**match.groupdict())


class Ratio(Figure, frozen=True, kw_only=True):
    """A rate: the sum of one count of the grades over the sum of another.

    ``Ratio("args_right", "Arguments right", right="right", of="wanted")`` needs no method: its
    aggregator adds up ``counts["right"]`` and ``counts["wanted"]`` of the graded samples.
    """

    right: str
    """Name of the count above."""
    of: str
    """Name of the count below, its divisor."""

    def __post_init__(self) -> None:
        """Set the divisor and the formula."""
        force_setattr(self, "divisor", self.of)
        force_setattr(self, "about", self.about or f"{self.right} / {self.of}")


def declared_at(figures: Iterable[Figure], path: str) -> Figure | None:
    """Return the figure that is declared at a path; None where none is."""
    for figure in figures:
        name = figure.name
        if name == path or ("{" in name and _pattern(name).fullmatch(path)):
            return figure
    return None


def declared_figure(
    figures: Iterable[Figure], aggregator: str, path: str, component: str = ""
) -> Figure | None:
    """Return the declared figure of an aggregator at a path below it.

    None where it declares none such.
    """
    prefixes = [prefix for prefix in (aggregator, component) if prefix]
    names = [path, *(f"{prefix}.{path}" if path else prefix for prefix in prefixes)]
    declared = (declared_at(figures, name) for name in names)
    return next(filter(None, declared), None)


def direction_of(figure: Figure, component: str, grader: Direction) -> Direction:
    """Return the direction of a figure: the grader's for a mean score, else the declared one.

    Args:
        figure: The declaration.
        component: Name of the aggregator it is of.
        grader: Which scores of the grader are better.
    """
    if component == "mean":
        return grader
    return figure.better


@lru_cache(maxsize=1024)
def _pattern(name: str) -> re.Pattern[str]:
    """Turn a figure name with placeholders such as ``pass_{k}`` into a regular expression."""
    parts = re.split(r"(\{\w+\})", name)
    some = {
        part: f"(?P<{part[1:-1]}>{r'[0-9]+' if part == '{k}' else '(?s:.*)'})"
        for part in parts[1::2]
    }
    return re.compile("".join(some.get(part) or re.escape(part) for part in parts))


def valid_confidence(_component: object, _field: object, confidence: float) -> None:
    """Validate an option ``confidence``, as
    ``attrs.field(default=0.95, validator=valid_confidence)``.

    Raises:
        ValueError: It does not lie between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")


class Aggregator(Contract):
    """Makes figures of one grader's grades.

    Knows keys and grades only, so figures follow from results.jsonl alone.

    Two small pure functions make a figure with an interval. ``contribution`` says what one grade
    adds to sums, which the kernel adds up by task. ``figures_of`` makes figures of the sums over
    tasks. The kernel calls it for all tasks and for all but each one, per model too. A rate of
    counts needs neither: declare a ``Ratio``. ``task_contribution`` may make something else of a
    task's sums first (pass^k). What is no function of sums (quantiles, lists, agreement) is
    ``compute``, instead or beside. Two of its keys are read by console and pages: ``warnings``, and
    ``statements``, sentences that are printed below the headline.

    Attributes:
        figures: What its figures mean; one that is not declared has no direction and no interval.
        keeps: Parts of a grade that ``compute`` reads beyond the verdict: ``fault``, ``metadata``
            or ``metadata:NAME``.
        of_scores: Whether its figures average scores, which data may have on any scale: then they
            are not held to their bounds. Of any other a figure beyond them is an error.
    """

    contract: ClassVar[Kind] = "aggregator"
    figures: ClassVar[tuple[Figure, ...]] = ()
    keeps: ClassVar[frozenset[str]] = frozenset()
    of_scores: ClassVar[bool] = False

    @property
    def facets(self) -> tuple[str, ...]:
        """Facets it groups by: ``key.facets`` holds these."""
        return ()

    def contribution(self, grade: Grade) -> Numbers | None:
        """Return the numbers that a grade adds to sums, by name; None: it is not counted.

        Asked once for grades that are equal in all that it reads.
        """
        names = {name for ratio in self._ratios for name in (ratio.right, ratio.of)}
        if not names or grade.outcome is not Outcome.GRADED:
            return None
        return {name: grade.counts[name] for name in sorted(names) if name in grade.counts}

    @property
    def _ratios(self) -> list[Ratio]:
        return [figure for figure in self.figures if isinstance(figure, Ratio)]

    def model_totals(self, grades: Grades) -> Numbers:
        """Return totals over all grades of a model, for ``task_contribution``.

        It finds it among a task's sums.
        """
        return {}

    def task_contribution(self, sums: Mapping[str, float]) -> Mapping[str, float | Fraction] | None:
        """Return the numbers that a task of a model adds, made of the sums of its samples.

        None: it is not counted. Fractions are summed exactly.
        """
        return sums

    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        """Return figures of sums over tasks, None where undefined; maps of figures nest.

        Reading a sum that no grade contributed is an error; where no grade counts, all are 0.
        """
        values: dict[str, float | None] = {}
        for ratio in self._ratios:
            right = totals[ratio.right]
            of = totals[ratio.of]
            values[ratio.name] = right / of if of else None
        return values

    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        """Return figures of all grades: JSON values, None where undefined."""
        return {}

    @property
    def has_sums(self) -> bool:
        """Whether it makes figures of sums: of what each grade contributes."""
        has_ratio = any(isinstance(figure, Ratio) for figure in self.figures)
        return has_ratio or type(self).contribution is not Aggregator.contribution

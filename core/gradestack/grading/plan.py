"""The plan: what is graded, by what, and by which rules, as data that travels to workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from gradestack.api import Direction, Inputs
from gradestack.errors import AUTHORED, LOCAL
from gradestack.grading.subset import Subset
from gradestack.hooks import Kind
from gradestack.interpreter import Limits
from gradestack.model import Grade
from gradestack.table import Contribution, Wanted

if TYPE_CHECKING:
    from gradestack.aggregator import Aggregator
    from gradestack.exporter import Exporter


class Success(msgspec.Struct, frozen=True):
    """The rule by which a sample is a success."""

    grader: str
    """Key of the outcome grader."""
    rule: SampleRule | None = None
    """A letta-evals gate's rule for one score; None: the grader's own verdict, else the score."""
    better: Direction = "higher"
    """Which scores are better: without rule and verdict 1 and more is a success, or 0 and less.

    Of neither none is.
    """

    def passed(self, grade: Grade) -> bool | None:
        """Return whether a sample with this grade of the outcome grader is a success.

        None when it was not graded.
        """
        return None if grade.score is None else self.verdict(grade.score, grade.passed)

    def verdict(self, score: float, passed: bool | None) -> bool | None:
        """Return whether a score is a success, given the grader's own verdict, if it has one."""
        if self.rule is not None:
            return self.rule.sample_passes(score)
        if passed is not None or self.better == "neither":
            return passed
        return score <= 0 if self.better == "lower" else score >= 1


Duplicates = Literal["keep", "last", "error"]
_OURS = frozenset({"gradestack", "gradestack_plugins"})


def is_foreign(component: Any) -> bool:
    """Return whether a component is code of somebody else, or calls such code."""
    package = type(component).__module__.partition(".")[0]
    return package not in _OURS or getattr(component, "runs_code", False)


def may_compare(grader: Any) -> bool:
    """Return whether a grader may compare with what is expected."""
    return grader.compares is None or bool(grader.compares)


class SampleRule(Protocol):
    """A rule that decides whether one score passes."""

    def sample_passes(self, score: float) -> bool: ...  # noqa: D102


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One configured component."""

    kind: Kind
    key: str
    name: str
    component: Any
    options: Mapping[str, Any]
    """As written, plus what it takes over from the suite."""
    version: str
    distribution: str
    code: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Files of the user's own that it consists of, by name -> SHA-256."""
    parts: tuple[Stage, ...] = ()
    """For a reader of several formats: those of each."""
    extractor: Stage | None = None
    """For graders that judge one text: where it comes from."""
    filter: str = ""
    """Expression that is true of the runs a grader grades; it skips the others."""
    grades_empty: bool = False
    """Whether it grades an empty text, where a text is expected.

    Else that is a failed grade.
    """
    foreign: bool = False
    """Whether its code is not ours.

    Then its scores have to lie within its bounds.
    """

    def __post_init__(self) -> None:
        """Note whose code it is, and have errors name the lines of others'."""
        foreign = is_foreign(self.component) or (
            self.extractor is not None and self.extractor.foreign
        )
        msgspec.structs.force_setattr(self, "foreign", foreign)
        for code in (getattr(self.component, "function", None), type(self.component)):
            module = getattr(code, "__module__", None)  # of `tool` the function is a name
            if module is not None:
                AUTHORED.update({module.partition(".")[0]} - _OURS)

    def shares(self, inputs: Inputs) -> list[tuple[Stage, Inputs]]:
        """Return a reader with its inputs.

        One of several formats as those of each, with their own.
        """
        if not self.parts:
            return [(self, inputs)]
        shares = [own for _, own in self.component.parts(inputs)]
        return list(zip(self.parts, shares, strict=True))

    @property
    def combines(self) -> tuple[str, ...]:
        """Keys of the graders whose grades it combines.

        None where that raises, as it will where it grades.
        """
        try:
            return tuple(self.component.combines)
        except Exception:  # noqa: BLE001 - of a grader of others
            return ()

    @property
    def origin(self) -> str:
        """Name and what it comes from: a distribution, or the user's own files."""
        owner = ", ".join(self.code) if self.distribution == LOCAL else self.distribution
        return f"{self.name} of {owner}" if owner and ".py:" not in self.name else self.name

    @property
    def signature(self) -> str:
        """Name and version: what failures are signed with."""
        return f"{self.name} {self.version}"


def named_graders(exporter: Exporter, graders: Iterable[Stage]) -> dict[str, Stage]:
    """Return graders as an exporter names them.

    By component, the first of each, or by key if it takes any reader.
    """
    named: dict[str, Stage] = {}
    for stage in graders:
        named.setdefault(stage.name if exporter.reader else stage.key, stage)
    return named


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One configured aggregator and the key of the grader it reads."""

    of: str
    stage: Stage

    @property
    def name(self) -> str:
        """``grader/metric``: how states and failures are filed."""
        return f"{self.of}/{self.stage.key}"

    @property
    def label(self) -> str:
        """The same with the component: how messages name it."""
        return f"{self.name} ({self.stage.origin})"


def needs_of_figures(
    graders: Iterable[str], metrics: Sequence[Metric], facets: Iterable[str] = ()
) -> Wanted:
    """Collect what the figures of some metrics need of grades."""
    parts: dict[str, dict[str, None]] = {key: {} for key in graders}
    contributions: dict[str, tuple[str, Contribution]] = {}
    names = dict.fromkeys(facets)
    for metric in metrics:
        aggregator: Aggregator = metric.stage.component
        parts[metric.of] |= dict.fromkeys(sorted(aggregator.keeps))
        names |= dict.fromkeys(aggregator.facets)
        if aggregator.has_sums:
            contributions[metric.name] = (metric.of, aggregator.contribution)
    sorted_parts = {key: tuple(names_kept) for key, names_kept in parts.items()}
    return Wanted(parts=sorted_parts, contributions=contributions, facets=tuple(names))


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that grading needs to know."""

    files: object = None
    """The user's own code.

    First, so that it is loaded before what is of its classes is unpickled.
    """
    name: str
    inputs: Inputs
    reader: Stage
    dataset_reader: Stage | None = None
    """Reads the dataset when the reader does not join it itself."""
    graders: tuple[Stage, ...]
    metrics: tuple[Metric, ...] = ()
    exporters: tuple[Stage, ...] = ()
    main: str
    """Key of the grader whose state and score stand for the sample."""
    rule: SampleRule | None = None
    """What decides whether one score passes; None: score >= 1.0."""
    duplicates: Duplicates = "keep"
    keeps_copies: bool = False
    """Whether every record of a run recorded twice under one name counts, as programs have it."""
    num_runs: int | None = None
    max_samples: int = 0
    subset: Subset = Subset()
    """What callers take of the samples beside the first tasks and tags."""
    sample_tags: frozenset[str] = frozenset()
    limits: Limits = Limits()
    """What records and graders may take."""
    facets: tuple[str, ...] = ()
    """Facets that gates group by."""
    table: bool = True
    """Whether the grades become columns; a caller who takes them one by one wants none."""
    unused: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Kind of expectation (``calls``, ``text``, ``label``) that no grader compares -> the one that
    would.
    """
    same_inputs: bool = False
    """Refuse a recorded sample whose input differs from the dataset's (a re-graded recording)."""

    @property
    def taken(self) -> Subset:
        """The samples that count, in words that name the first tasks and tags, too."""
        tags = f"tags {', '.join(sorted(self.sample_tags))}" if self.sample_tags else ""
        return msgspec.structs.replace(self.subset, limit=self.max_samples, tags=tags)

    @property
    def reads_verdicts(self) -> bool:
        """Whether a grader reads what was recorded of a run's success."""
        return any("recorded" in stage.component.needs for stage in self.graders)

    def bare(self) -> Plan:
        """Return the plan alone, without what a subclass adds: workers need no more."""
        return Plan(**{name: getattr(self, name) for name in Plan.__struct_fields__})

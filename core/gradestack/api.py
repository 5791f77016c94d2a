"""The contracts between the kernel and its plugins.

A component is a frozen attrs class that derives from one of the bases below. **Its fields are its
options**: the suite's YAML is structured into them strictly, unknown keys are refused. Class
variables say what the kernel needs to know before any data is read.
"""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec.structs import force_setattr, replace

from gradestack.hooks import Kind
from gradestack.model import JSON, BadRecord, Grade, Outcome, Reason, Sample, Status, skipped

if TYPE_CHECKING:
    from fractions import Fraction

    from gradestack.grades import Grades
    from gradestack.table import Numbers

Profile = Literal["documented", "upstream"]
"""What a suite computes: its own figures, or beside them what the original program computes."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One path the user gave."""

    path: Path
    name: str
    """Unique short name (the stem), used for artefacts and default model names when several inputs
    are given.
    """
    shown: str
    """The path as the user wrote it, for messages and result rows; never made absolute."""

    def below(self, relative: str) -> Input:
        """Return a file in the directory it is, or beside the file it is.

        Itself for "", an absolute path as it is.
        """
        if not relative:
            return self
        is_folder = self.path.is_dir()
        path = (self.path if is_folder else self.path.parent) / relative
        shown = (
            f"{self.shown.rstrip('/')}/" if is_folder else self.shown[: self.shown.rfind("/") + 1]
        )
        return Input(
            path=path,
            name=self.name,
            shown=relative if Path(relative).is_absolute() else shown + relative,
        )


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """All paths of one run, by role."""

    data: tuple[Input, ...]
    dataset: Input | None = None

    @property
    def files(self) -> tuple[Input, ...]:
        """The data, and the dataset if there is one."""
        return self.data if self.dataset is None else (*self.data, self.dataset)


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """A picklable piece of the input, of a size that does not depend on the number of workers."""

    ordinal: int
    """Position among all shards; results are merged in this order."""
    input: Input
    """The input this shard belongs to; native artefacts are grouped by it."""
    start: int = 0
    """First byte."""
    end: int | None = None
    """One past the last byte; None means the end of the file."""
    first_line: int = 1
    """Line number (one-based) of the first byte, for messages."""
    first_row: int = 0
    """Ordinal (zero-based) of the first record within its file."""
    position: int = 0
    """Lower bound for the ordinals of this shard's samples over the whole run.

    Grows by more than the number of records from shard to shard (bytes before this shard will do, a
    record being at least one byte).
    """
    extra: JSON = None
    """Whatever else the reader wants to know."""

    def size(self) -> int:
        """Return the size in bytes, at least 1; 1 for what is no range of a file."""
        try:
            end = self.input.path.stat().st_size if self.end is None else self.end
        except OSError:
            return 1
        return max(1, end - self.start)

    def absolute(self) -> Shard:
        """Return the shard with the absolute path of its input, for another working directory."""
        source = self.input
        return replace(self, input=replace(source, path=source.path.absolute()))


class Contract(abc.ABC):
    """Base of the contracts: what a component's class derives from.

    Attributes:
        contract: The kind of component that keeps it.
        version: Bumped whenever the same input can give another output; written to header.json and
            into failures.
    """

    contract: ClassVar[Kind]
    version: ClassVar[str] = "1"


class Reader(Contract):
    """Turns result files of one format into samples. Lazy: holds one record at a time.

    Attributes:
        provides: Fields of ``Sample`` the format fills (beyond ``id``).
        stack: Name of the metric stack used when the user names none.
        duplicates: The format's habit for two records of the same (id, model, run). With ``keep``
            the last counts of those that name their run, and all others do.
        keeps_copies: True when facets tell runs of one name apart (several sweeps or files): then
            ``keep`` counts all of them.
        takes_dataset: True when the reader joins ``inputs.dataset`` itself; otherwise the kernel
            joins by id.
        takes_directories: True when it looks for its files in a directory itself: named by the
            user, it is given the directory whole, whatever is in it.
        empty_answers: True when an empty answer is graded where a text is expected; otherwise it is
            a failed grade.
        one_model: Options under which files are trials of one agent, where it takes each file for a
            model by its name.
        example_file: What a file of the format is called, as `gradestack formats` shows it.
        simulated_users: True when ``input`` is what a simulated user said, which does not tell
            tasks apart.
    """

    contract: ClassVar[Kind] = "reader"
    provides: ClassVar[frozenset[str]] = frozenset()
    stack: ClassVar[str | None] = None
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "keep"
    keeps_copies: ClassVar[bool] = False
    takes_dataset: ClassVar[bool] = False
    takes_directories: ClassVar[bool] = False
    empty_answers: ClassVar[bool] = False
    simulated_users: ClassVar[bool] = False
    one_model: ClassVar[str] = ""
    example_file: ClassVar[str] = ""

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Return the confidence that ``path`` is of this format: 0.0 no, 1.0 certain.

        Args:
            path: A file or a directory.
            head: The first 64 KiB of the file; empty for a directory.
        """
        return 0.0

    def index(self, inputs: Inputs) -> Any:
        """Read side files once, before sharding.

        The result is picklable and passed to every ``read``.
        """
        return None

    @abc.abstractmethod
    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        """Cut the inputs into shards, in input order.

        Formats that cannot be cut safely give one shard per file.

        Raises:
            DataError: A file cannot be used at all.
        """

    @abc.abstractmethod
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of one shard in file order.

        A broken record is yielded as ``BadRecord``.
        """

    def blocks(self, shard: Shard, index: Any) -> Iterator[list[Sample | BadRecord]]:
        """Yield the records of ``read`` in lists of any length.

        A format read faster in blocks overrides this.
        """
        for record in self.read(shard, index):
            yield [record]


Direction = Literal["higher", "lower", "neither"]
Unit = Literal["share", "score", "count", "seconds", "tokens", "usd", "bits"]


class Grader(Contract):
    """Judges one sample at a time.

    Pure: no I/O, clock or randomness, mutates nothing, reads only what it needs.

    Attributes:
        needs: Fields of ``Sample`` without which it cannot work at all: a reader that does not
            provide one is refused before any data is read.
        compares: Kinds of expectation it compares with, fields of ``Expectation`` such as ``calls``
            and ``text``; empty for none, None where it is not said. A failed or missing run that
            expects other kinds alone is another grader's: the kernel skips it.
        graded_statuses: Sample states it wants to judge itself. For the others the kernel writes a
            failed or missing grade.
        metrics: Names of the aggregators that run on its grades by default.
        runs_code: True when its options name Python code to import; refused without
            ``--allow-code``.
        bounds: Least and greatest score there can be; intervals of averages beyond [0, 1] are those
            of no share.
        label: What its mean score is, in plain words; default: its key.
        better: Whether a higher or a lower score is better, or neither.
        score_unit: Unit of its score.
        verdict_labels: What a sample that passes is called, and one that does not.
        corrected: Figure of an aggregator that corrects the share of its successes, what that is
            called, and what the share itself is: ``("calibrated.rate", "People would pass", "the
            judge passes")``. None where nothing does.
        native: Class of the ``Sample.native`` it reads by ``gradestack.native_of``; rows then hold
            it.
    """

    contract: ClassVar[Kind] = "grader"
    needs: ClassVar[frozenset[str]] = frozenset()
    compares: ClassVar[frozenset[str] | None] = None
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK})
    metrics: ClassVar[tuple[str, ...]] = ()
    runs_code: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    label: ClassVar[str] = ""
    better: ClassVar[Direction] = "higher"
    score_unit: ClassVar[Unit] = "score"
    verdict_labels: ClassVar[tuple[str, str]] = ("passed", "not passed")
    corrected: ClassVar[tuple[str, str, str] | None] = None
    native: ClassVar[type[Any] | None] = None

    @property
    def tool_schemas(self) -> bool:
        """Whether it reads more of the run's tools than their names.

        Rows then hold their schemas, to grade again.
        """
        return False

    @property
    def takes_text(self) -> bool:
        """Whether it judges one text that an extractor takes out of the run."""
        return False

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Least and greatest score that data can have; None where only the data say."""
        return self.bounds

    @property
    def combines(self) -> tuple[str, ...]:
        """Keys of the suite's graders whose grades it is handed.

        ``combine`` then grades in place of ``grade``.
        """
        return ()

    def combine(self, grades: Mapping[str, Grade]) -> Grade | float:
        """Return the grade that those of the graders it ``combines``, by their keys, come to."""
        raise NotImplementedError

    @abc.abstractmethod
    def grade(self, sample: Sample) -> Grade | float:
        """Return the grade of one sample.

        A number is a score, True and False are 1.0 and 0.0 and the verdict.

        Never raises on odd data of a valid type; if it raises all the same, the kernel records a
        failed grade.
        """


class TextGrader(Grader):
    """Judges one text, which it finds as ``Sample.text``.

    The suite's ``extractor`` (default ``last_assistant``) takes it out of the trajectory. One that
    compares it with a reference writes ``compare``, any other ``grade``.

    Attributes:
        alternatives: True when a list of reference texts holds accepted alternatives; otherwise it
            holds one per turn, and every turn is graded by itself.
    """

    compares: ClassVar[frozenset[str] | None] = frozenset({"text", "label"})
    metrics: ClassVar[tuple[str, ...]] = ("mean",)
    alternatives: ClassVar[bool] = False

    @property
    def takes_text(self) -> bool:
        """It judges one text."""
        return True

    def compare(self, text: str, reference: str) -> Grade | float:
        """Return the grade of a text by a reference, which is not empty."""
        raise NotImplementedError

    def grade(self, sample: Sample) -> Grade | float:
        """Return the grade of the text by its reference: the expected text, else the label.

        Without a text, or a reference, it is skipped; an empty reference is 0.0.
        """
        reference = sample.expected.text
        if reference is None:
            reference = sample.expected.label
        if sample.text is None:
            return skipped("no_submission", "no answer text was recorded")
        if reference is None:
            return skipped("no_ground_truth", "the sample has no ground truth")
        if not isinstance(reference, str):
            why = "the reference is a list of texts, one per turn; this grader takes one"
            return skipped("reference_per_turn", why)
        if not reference:
            why = "the ground truth is empty"
            reason = Reason(code="empty_ground_truth", message=why)
            return Grade(score=0.0, reasons=(reason,), rationale=why)
        return self.compare(sample.text, reference)


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
        least, most = (
            (-math.inf if self.unit == "score" else 0.0),
            (1.0 if self.unit == "share" else math.inf),
        )
        return least if self.least is None else self.least, most if self.most is None else self.most

    @property
    def amount(self) -> bool:
        """Whether it is an amount, of which a few tasks often have most.

        Tokens, seconds, dollars or a count.
        """
        return self.unit in _AMOUNTS and self.bounds[0] >= 0

    def covers(self, path: str) -> bool:
        """Return whether it declares the figure at a path."""
        return path == self.name or (
            "{" in self.name and re.fullmatch(_pattern(self.name), path) is not None
        )

    def divisor_of(self, path: str) -> str:
        """Return the name of the number that the figure at a path is divided by."""
        match = re.fullmatch(_pattern(self.name), path) if "{" in self.divisor else None
        return self.divisor if match is None else self.divisor.format(**match.groupdict())


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
    return next((figure for figure in figures if figure.covers(path)), None)


def declared_figure(
    figures: Iterable[Figure], aggregator: str, path: str, component: str = ""
) -> Figure | None:
    """Return the declared figure of an aggregator at a path below it.

    None where it declares none such.
    """
    names = (
        path,
        *(f"{prefix}.{path}" if path else prefix for prefix in (aggregator, component) if prefix),
    )
    return next((figure for name in names for figure in figures if figure.covers(name)), None)


def direction_of(figure: Figure, component: str, grader: Direction) -> Direction:
    """Return the direction of a figure: the grader's for a mean score, else the declared one.

    Args:
        figure: The declaration.
        component: Name of the aggregator it is of.
        grader: Which scores of the grader are better.
    """
    return grader if component == "mean" else figure.better


@lru_cache(maxsize=1024)
def _pattern(name: str) -> str:
    """Turn a figure name with placeholders such as ``pass_{k}`` into a regular expression."""
    parts = re.split(r"(\{\w+\})", name)
    some = {
        part: f"(?P<{part[1:-1]}>{r'[0-9]+' if part == '{k}' else '(?s:.*)'})"
        for part in parts[1::2]
    }
    return "".join(some.get(part) or re.escape(part) for part in parts)


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

    A figure with an interval is made by two small pure functions: ``contribution`` says what one
    grade adds to sums, the kernel adds them up by task, ``figures_of`` makes figures of the sums
    over tasks. The kernel calls it for all tasks and for all but each one, per model too. A rate of
    counts needs neither: declare a ``Ratio``. ``task_contribution`` may make something else of a
    task's sums first (pass^k). What is no function of sums (quantiles, lists, agreement) is
    ``compute``, instead or beside. Two of its keys are read by console and pages: ``warnings``, and
    ``statements``, sentences that stand below the headline.

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
        names = {name for each in self._ratios for name in (each.right, each.of)}
        if not names or grade.outcome is not Outcome.GRADED:
            return None
        return {name: grade.counts[name] for name in sorted(names) if name in grade.counts}

    @property
    def _ratios(self) -> list[Ratio]:
        return [each for each in self.figures if isinstance(each, Ratio)]

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
            right, of = totals[ratio.right], totals[ratio.of]
            values[ratio.name] = right / of if of else None
        return values

    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        """Return figures of all grades: JSON values, None where undefined."""
        return {}


def has_sums(aggregator: Aggregator) -> bool:
    """Check whether a metric makes figures of sums: of what each grade contributes."""
    has_ratio = any(isinstance(figure, Ratio) for figure in aggregator.figures)
    return has_ratio or type(aggregator).contribution is not Aggregator.contribution


class Exporter(Contract):
    """Writes a family's results in the original tool's own format, under ``native/``.

    Runs once per input, when its reader and all its graders are in use and it comes from the
    reader's plugin or is named. Graders are named by component (``tau_partial``), not by key; of
    two of one component the first counts.

    Attributes:
        reader: Component name of the reader whose records it understands. "" for the samples of any
            reader: then the graders are named by key, all of them, in the suite's order.
        graders: Component names of the graders whose grades it writes.
        separator: Text between two chunks of the same artefact.
    """

    contract: ClassVar[Kind] = "exporter"
    reader: ClassVar[str] = ""
    graders: ClassVar[tuple[str, ...]] = ()
    separator: ClassVar[str] = ""

    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterable[tuple[str, str]]:
        """Yield (artefact file name, text) chunks for one record.

        ``grades`` is empty for a bad record.
        """
        return ()

    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        """Return the text before the first and after the last chunk of an artefact."""
        return ("", "")

    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        """Return further artefacts of this input, whole: file name -> text."""
        return {}


class GraderSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One grader's share of an ``ExportSummary``."""

    key: str
    """Its key in the suite."""
    grader: Grader
    states: Mapping[str, int]
    """Outcome -> number of samples."""
    aggregates: Mapping[str, Mapping[str, JSON]]
    """Aggregator name -> finished metrics, over this input alone.

    A default aggregator is named as its component.
    """


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a finished input, as an exporter is given them."""

    input: Input
    reader: Reader
    graders: Mapping[str, GraderSummary]
    """Grader component name -> figures."""
    dataset: Input | None = None
    """The suite's dataset."""
    max_samples: int | None = None
    """The suite's limit; None without one."""


class ProgramFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of an original program, to stand beside ours on a page."""

    label: str
    """What the program calls it."""
    value: JSON
    """What the program computes; None where it says nothing."""
    figure: str = ""
    """Path of our figure beside it, ``GRADER.AGGREGATOR.FIGURE``; "" where we have none."""
    why: str = ""
    """Why the two may differ: one sentence; "" where both have one definition."""


class ProgramRun(msgspec.Struct, frozen=True, kw_only=True):
    """The output of an original program for one input."""

    files: Mapping[str, str]
    """Its own result files: path below ``native/`` -> text."""
    console: str = ""
    """What it prints at its end."""
    exit_code: int | None = None
    """What it ends with where it has gates of its own; None: the gates of the suite decide."""
    figures: tuple[ProgramFigure, ...] = ()


class ProgramInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an original program: the files as they are, and what the suite says of them."""

    input: Input
    reader: Reader
    dataset: Input | None = None
    """The suite's dataset."""
    max_samples: int | None = None
    """The suite's limit; None without one."""
    config: Mapping[str, JSON] = {}
    """The suite as it was resolved: graders, gates, and the rest of its keys."""
    graders: Mapping[str, Grader] = {}
    """Grader key -> grader, in the suite's order."""
    rows: Callable[[], Iterator[Mapping[str, Any]]] = lambda: iter(())
    """Reads the rows of this input anew, in its order, as they are in ``results.jsonl``."""


class Program(Contract):
    """The original program of a family, ported as it computes (its options are its fields).

    Runs under ``--profile upstream``, once per input, on the records that the reader reads. Its
    files, console block and exit code are the program's; rows, figures and pages stay those of the
    family's document, with a section that shows the program's figures beside them.

    Attributes:
        reader: Component name of the reader whose records it understands.
        title: Whose program it is, as a page says it: ``When2Call's evaluation suite``.
        needs_rows: Whether it reads the rows of the graded samples; without them it is refused.
    """

    contract: ClassVar[Kind] = "program"
    reader: ClassVar[str] = ""
    title: ClassVar[str] = ""
    needs_rows: ClassVar[bool] = False

    @abc.abstractmethod
    def run(self, given: ProgramInput) -> ProgramRun:
        """Return the program's files, console block and figures."""


class Extractor(Contract):
    """Takes one text out of a recorded trajectory (its options are its fields)."""

    contract: ClassVar[Kind] = "extractor"

    @abc.abstractmethod
    def extract(self, sample: Sample) -> str | None:
        """Return the text, empty when there is none; None when none is recorded."""


ResultT = TypeVar("ResultT")


class Engine(Contract):
    """Maps a function over shards. Knows nothing of samples.

    Attributes:
        trusted_options: Options by which a suite could have code run here, such as the address of a
            cluster, which sends pickles: refused in a suite without ``--allow-code``, taken from
            the command line.
    """

    contract: ClassVar[Kind] = "engine"
    trusted_options: ClassVar[frozenset[str]] = frozenset()

    @abc.abstractmethod
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` in shard order, whatever the order they finish in."""

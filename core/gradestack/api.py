"""The contracts between the kernel and its plugins.

A component is a frozen attrs class that derives from one of the bases below. **Its fields are its
options**: the suite's YAML is structured into them strictly, unknown keys are refused. Class
variables say what the kernel needs to know before any data is read.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from gradestack.hooks import Kind
from gradestack.model import JSON, BadRecord, Grade, Reason, Sample, Status, skipped

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
        if self.dataset is None:
            return self.data
        return (*self.data, self.dataset)


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
        path = source.path.absolute()
        return replace(self, input=replace(source, path=path))


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


class Extractor(Contract):
    """Takes one text out of a recorded trajectory (its options are its fields)."""

    contract: ClassVar[Kind] = "extractor"

    @abc.abstractmethod
    def extract(self, sample: Sample) -> str:
        """Return the text, empty when there is none."""


ResultT = TypeVar("ResultT")


class Engine(Contract):
    """Maps a function over shards. Knows nothing of samples.

    Attributes:
        trusted_options: Options by which a suite could have code run here, such as the address of a
            cluster, which sends pickles. They are refused in a suite without ``--allow-code``, and
            taken from the command line.
    """

    contract: ClassVar[Kind] = "engine"
    trusted_options: ClassVar[frozenset[str]] = frozenset()

    @abc.abstractmethod
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` in shard order, whatever the order they finish in."""

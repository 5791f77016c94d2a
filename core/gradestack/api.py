"""The contracts between the kernel and its plugins.

A component is a frozen attrs class that derives from one of the bases below. **Its fields are its options**: the
suite's YAML is structured into them strictly, unknown keys are refused. A field named ``profile`` inherits the suite's
profile (``documented`` or ``upstream``). Class variables say what the kernel needs to know before any data is read.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import attrs

from gradestack.model import JSON, BadRecord, Grade, Key, Sample, Status

Profile = Literal["documented", "upstream"]
Kind = Literal["reader", "grader", "aggregator", "exporter", "extractor", "engine", "reporter", "stack"]
KINDS: tuple[Kind, ...] = ("reader", "grader", "aggregator", "exporter", "extractor", "engine", "reporter", "stack")


@attrs.frozen(kw_only=True)
class Component:
    """What a plugin hands the kernel: a name for a class that is not imported yet."""

    kind: Kind
    name: str
    """Lower case, digits and underscores (stacks may use hyphens); unique per kind over all plugins."""
    target: str
    """``package.module:Class``; for a stack ``package.module:FUNCTION`` returning a suite mapping."""
    summary: str
    """One line for listings."""


@attrs.frozen(kw_only=True)
class Input:
    """One path the user gave."""

    path: Path
    name: str
    """Unique short name (the stem), used for artefacts and default model names when several inputs are given."""
    shown: str
    """The path as the user wrote it, for messages and result rows; never made absolute."""


@attrs.frozen(kw_only=True)
class Inputs:
    """All paths of one run, by role."""

    data: tuple[Input, ...]
    dataset: Input | None = None


@attrs.frozen(kw_only=True)
class Shard:
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
    """Lower bound for the ordinals of this shard's samples over the whole run: grows by more than the number of records
    from shard to shard (bytes before this shard will do, a record being at least one byte)."""
    extra: JSON = None
    """Whatever else the reader wants to know."""

    def size(self) -> int:
        """Return how many bytes it is of, at least 1; 1 for what is no range of a file."""
        try:
            end = self.input.path.stat().st_size if self.end is None else self.end
        except OSError:
            return 1
        return max(1, end - self.start)


class Contract(abc.ABC):
    """Base of the contracts: what a component's class derives from.

    Attributes:
        contract: The kind of component that keeps it.
        version: Bumped whenever the same input can give another output; written to header.json and into failures.
    """

    contract: ClassVar[Kind]
    version: ClassVar[str] = "1"


class Reader(Contract):
    """Turns result files of one format into samples. Lazy: holds one record at a time.

    Attributes:
        provides: Fields of :class:`Sample` the format fills (beyond ``id``).
        stack: Name of the metric stack used when the user names none.
        duplicates: The format's habit for two records of the same (id, model, run).
        takes_dataset: True when the reader joins ``inputs.dataset`` itself; otherwise the kernel joins by id.
        takes_directories: True when it looks for its files in a directory itself: named by the user, it is given the
            directory whole, whatever is in it.
    """

    contract: ClassVar[Kind] = "reader"
    provides: ClassVar[frozenset[str]] = frozenset()
    stack: ClassVar[str | None] = None
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "keep"
    takes_dataset: ClassVar[bool] = False
    takes_directories: ClassVar[bool] = False

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Return how sure it is that ``path`` is of this format: 0.0 no, 1.0 certain.

        Args:
            path: A file or a directory.
            head: The first 64 KiB of the file; empty for a directory.
        """
        return 0.0

    def index(self, inputs: Inputs) -> Any:
        """Read side files once, before sharding; the result is picklable and passed to every :meth:`read`."""
        return None

    @abc.abstractmethod
    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        """Cut the inputs into shards, in input order. Formats that cannot be cut safely give one shard per file.

        Raises:
            DataError: A file cannot be used at all.
        """

    @abc.abstractmethod
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of one shard in file order; a broken record is yielded as :class:`BadRecord`."""


class Grader(Contract):
    """Judges one sample at a time. Pure: no I/O, clock or randomness, mutates nothing, reads only what it needs.

    Attributes:
        needs: Fields of :class:`Sample` it reads (``id``, ``status`` and ``error`` are always allowed).
        requires: Those of them without which it cannot work at all: a reader that does not provide one is refused
            before any data is read.
        handles: Sample states it wants to judge itself. For the others the kernel writes a failed or missing grade.
        aggregators: Names of the aggregators that run on its grades by default.
        submission: True when it judges one text: the suite's ``extractor`` (default ``last_assistant``) takes it out of
            the trajectory, and it is handed over as ``Sample.text``.
        alternatives: True when a list of reference texts holds accepted alternatives; otherwise it holds one per turn.
        runs_code: True when its options name Python code to import; refused without ``--allow-code``.
        bounds: Least and greatest score there can be; intervals of averages beyond [0, 1] are those of no share.
    """

    contract: ClassVar[Kind] = "grader"
    needs: ClassVar[frozenset[str]] = frozenset()
    requires: ClassVar[frozenset[str]] = frozenset()
    handles: ClassVar[frozenset[Status]] = frozenset({Status.OK})
    aggregators: ClassVar[tuple[str, ...]] = ()
    submission: ClassVar[bool] = False
    alternatives: ClassVar[bool] = False
    runs_code: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @abc.abstractmethod
    def grade(self, sample: Sample) -> Grade:
        """Return the grade of one sample.

        Never raises on odd data of a valid type; if it raises all the same, the kernel records a failed grade.
        """


StateT = TypeVar("StateT")
Memory = Literal["constant", "per_key", "per_sample"]


class Aggregator(Contract, Generic[StateT]):
    """Folds grades into metrics. Knows only keys and grades, so metrics can be recomputed from results.jsonl alone.

    States consist of JSON values (dicts with text keys, lists, numbers, text, None). ``merge`` is associative with
    ``start()`` as identity, and ``fold(xs + ys)`` equals ``merge(fold(xs), fold(ys))`` after ``finish``, exactly.

    Attributes:
        memory: How the state grows: ``constant``, ``per_key`` (tasks, labels) or ``per_sample``.
    """

    contract: ClassVar[Kind] = "aggregator"
    memory: ClassVar[Memory] = "constant"

    def __init_subclass__(cls) -> None:
        """Keep a class that adds anew from inheriting the way by blocks of what it replaces."""
        if "add" in cls.__dict__ and "add_many" not in cls.__dict__:
            cls.add_many = Aggregator.add_many  # type: ignore[method-assign]

    @abc.abstractmethod
    def start(self) -> StateT:
        """Return the state of nothing seen."""

    @abc.abstractmethod
    def add(self, state: StateT, key: Key, grade: Grade) -> StateT:
        """Return the state with one grade more; may change ``state`` in place. Sees every outcome, not only graded."""

    def add_many(self, state: StateT, keys: Sequence[Key], grades: Sequence[Grade]) -> StateT:
        """Return the state with a block of grades more, what :meth:`add` makes of one after the other.

        Worth overriding where a block can be added faster than its grades one by one.
        """
        for key, grade in zip(keys, grades, strict=True):
            state = self.add(state, key, grade)
        return state

    def together(self, of: str, columns: Mapping[str, Sequence[Grade]]) -> Sequence[Grade]:
        """Return the grades to add: those of the grader this one reads, ``of``, out of those of all graders by key.

        Overridden by a metric of several graders, whose keys are its option ``raters``.
        """
        return columns[of]

    @abc.abstractmethod
    def merge(self, left: StateT, right: StateT) -> StateT:
        """Return the state of ``left`` followed by ``right``; may change ``left`` in place, never ``right``."""

    @abc.abstractmethod
    def finish(self, state: StateT) -> Mapping[str, JSON]:
        """Return the metrics: JSON values, None where undefined. Must not change the state."""


class Exporter(Contract):
    """Writes a family's results in the original tool's own format, under ``native/``.

    Runs once per input, when its reader and all its graders are in use and it comes from the reader's plugin or is
    named. Graders are named by component (``tau_partial``), not by key; of two of one component the first counts.

    Attributes:
        reader: Component name of the reader whose records it understands.
        graders: Component names of the graders whose grades it writes.
        separator: Text between two chunks of the same artefact.
    """

    contract: ClassVar[Kind] = "exporter"
    reader: ClassVar[str] = ""
    graders: ClassVar[tuple[str, ...]] = ()
    separator: ClassVar[str] = ""

    def row(self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard) -> Iterable[tuple[str, str]]:
        """Yield (artefact file name, text) chunks for one record; ``grades`` is empty for a bad record."""
        return ()

    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        """Return what is written before the first and after the last chunk of an artefact."""
        return ("", "")

    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        """Return further artefacts of this input, whole: file name -> text."""
        return {}


@attrs.frozen(kw_only=True)
class GraderSummary:
    """One grader's share of an :class:`ExportSummary`."""

    key: str
    """Its key in the suite."""
    grader: Grader
    states: Mapping[str, int]
    """Outcome -> number of samples."""
    aggregates: Mapping[str, Mapping[str, JSON]]
    """Aggregator name -> finished metrics, over this input alone. A default aggregator is named as its component."""


@attrs.frozen(kw_only=True)
class ExportSummary:
    """What an exporter may know once an input is finished."""

    input: Input
    reader: Reader
    profile: Profile
    graders: Mapping[str, GraderSummary]
    """Grader component name -> figures."""
    dataset: Input | None = None
    """The suite's dataset."""
    max_samples: int | None = None
    """The suite's limit; None without one."""


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
        trusted_options: Options by which a suite could have code run here, such as the address of a cluster, which
            sends pickles: refused in a suite without ``--allow-code``, taken from the command line.
    """

    contract: ClassVar[Kind] = "engine"
    trusted_options: ClassVar[frozenset[str]] = frozenset()

    @abc.abstractmethod
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` in shard order, whatever the order they finish in."""

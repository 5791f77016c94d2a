"""The contracts of what writes files of other programs: exporters, and original programs."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from gradestack.api import Contract, Grader, Input, Reader, Shard
from gradestack.hooks import Kind
from gradestack.model import JSON, BadRecord, Grade, Sample


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
    """One figure of an original program, which a page shows beside ours."""

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
    def run(self, program_input: ProgramInput) -> ProgramRun:
        """Return the program's files, console block and figures."""

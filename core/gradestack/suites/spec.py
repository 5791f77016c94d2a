"""The keys of a suite file, what they resolve to, and what callers say beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from gradestack.api import Profile
from gradestack.gates.rules import AnyGate, Limit
from gradestack.grading.plan import Duplicates, Plan, Stage, Success
from gradestack.registry import Registry
from gradestack.suites.code import LocalFiles

if TYPE_CHECKING:
    from gradestack.grading.progress import ProgressCallback

Rows = Literal["full", "compressed", "none"]
"""What is kept of samples: rows, rows in a file packed with Zstandard, or none."""
TableFormat = Literal["parquet", "csv", "json"]
RECORDED: Mapping[Rows, bool | str] = {"full": True, "compressed": "compressed", "none": False}
"""How header.json says it."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``gradestack.run``, which describes them, and one of the command
    line alone.
    """

    registry: Registry
    overrides: Sequence[str] = ()
    allow_code: bool = False
    allow_remote: bool = False
    allow_outside: bool = False
    engine: str | None = None
    workers: int | None = None
    output: Path | None = None
    strict: bool = False
    exporters: Sequence[str] = ()
    rows: Rows | None = None
    resume: bool = False
    progress: ProgressCallback | None = None
    echo: Callable[[str], None] = lambda _: None
    debug: bool = False
    """Say the traceback of the first error every grader raised."""


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded result files that are graded."""

    kind: Literal["recorded"] = "recorded"
    paths: Any = ()
    """Files, directories or glob patterns, relative to the suite file."""
    reader: str | dict[str, Any] | None = None
    """Format of the files, with its options; sniffed when absent."""


class StackHeadline(msgspec.Struct, frozen=True, kw_only=True):
    """A few figures of a stack that a run is summed up by."""

    figures: dict[str, str] | None = None
    """Label -> path of a figure: ``GRADER.AGGREGATOR[.FIGURE]``; default: the stack's."""
    letta: bool = False
    """Print the results block of letta-evals' guide instead of the share of successes."""


class HeadlineSpec(StackHeadline, frozen=True, kw_only=True):
    """The same of a suite, which may have words of its own for success."""

    passed: str | None = None
    """Word for a sample that is a success; default: the outcome grader's."""
    failed: str | None = None
    """Word for one that is not; default: the outcome grader's."""


AVERAGE = "avg_score_attempted"
"""The one figure every grader has, whatever its aggregators."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a headline: where it stands among what the aggregators found."""

    label: str
    grader: str
    metric: str = ""
    """Key of the aggregator; "" for a figure every grader has."""
    name: str = ""
    """Its dotted path below the aggregator; "" for the aggregator's main figure."""
    corrects: str = ""
    """What the share of successes is that it corrects, in words; "" where it corrects none."""

    @property
    def path(self) -> str:
        """The whole path, dotted."""
        return ".".join(filter(None, (self.grader, self.metric, self.name)))


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The figures and words that a run is summed up by, resolved."""

    figures: tuple[Figure, ...] = ()
    passed: str = "passed"
    failed: str = "not passed"
    letta: bool = False


class LimitsSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of time and memory."""

    seconds_per_grade: Annotated[float, msgspec.Meta(ge=0.1)] | Literal["none"] | None = 60.0
    """How long a grader may take for a sample, at least 0.1; after that the grade is failed.

    ``none``: any time.
    """
    record_bytes: Annotated[int, msgspec.Meta(ge=1024 * 1024)] | Literal["none"] | None = (
        64 * 1024 * 1024
    )
    """Largest size of a line, or of an element of a JSON list, at least 1048576.

    A larger one is a bad record.
    """
    scheduler_seconds: Annotated[float, msgspec.Meta(ge=1)] | Literal["none"] | None = 30.0
    """How long the scheduler of a dask cluster may not answer, at least 1.

    After that the run ends.
    """


class SuiteSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a suite file."""

    name: str = ""
    """Default: the file's stem."""
    description: str = ""
    profile: Profile = "documented"
    """Inherited by reader, graders and aggregators; each may override it."""
    stack: str | None = None
    """Named metric stack to start from; the suite's own entries add to it or override it."""
    dataset: str | dict[str, Any] | None = None
    """File with expectations, joined by id.

    Its path, or ``path`` and the ``reader`` it is read with.
    """
    plugins: tuple[str, ...] = ()
    """Python files whose components are used as if they were installed.

    Only with ``--allow-code``.
    """
    target: TargetSpec = msgspec.field(default_factory=TargetSpec)
    reader: str | dict[str, Any] | None = None
    """The same as ``target.reader``."""
    graders: dict[str, Any] = msgspec.field(default_factory=dict)
    """Grader key -> kind, or kind with options."""
    metrics: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further aggregators: metric key -> kind, ``of`` (a grader key) and options."""
    gate: dict[str, Any] | None = None
    gates: tuple[dict[str, Any], ...] = ()
    """Several gates: all must pass."""
    max_failed: Any = None
    """How many samples may have failed or be missing for any grader.

    A number, or a share such as ``5%`` or 0.05.
    """
    min_graded: Any = 0.5
    """The least share of the runs a gate is about that must be graded, such as ``50%`` or 0.5.

    Below it the gate is undecided and fails. Runs that another grader grades instead are left out.
    """
    allow_all_failed: bool = False
    """Whether a run of which every grade failed is judged by its gates alone, instead of ending
    with exit code 3.
    """
    outcome: str | None = None
    """Key of the grader whose verdict says whether a sample is a success.

    ``none``: no grader's does.
    """
    headline: HeadlineSpec = msgspec.field(default_factory=HeadlineSpec)
    num_runs: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Number of recorded runs (trials) to find.

    More than one writes ``run_N/`` and ``aggregate_stats.json``.
    """
    runs_must_pass: (
        Literal["any", "all", "majority"] | Annotated[int, msgspec.Meta(ge=1)] | None
    ) = None
    """How many runs' gates must pass; default ``all``."""
    filter: str | None = None
    """Only samples this is true of: ``facet.category == "refund" and model in ["a", "b"]``."""
    tasks: str | None = None
    """Only tasks whose ids this file lists, one a line."""
    max_samples: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Only the first n tasks of these; without it, all."""
    sample_tags: tuple[str, ...] = ()
    """Only samples with one of these tags (facet ``tags``)."""
    max_concurrent: int | None = None
    """Accepted from letta-evals suites; without a live target there is nothing to limit."""
    setup_script: str | None = None
    """Accepted from letta-evals suites; a live target's setup is not run."""
    reports: tuple[Any, ...] = ("html", "markdown")
    tables: TableFormat | tuple[TableFormat, ...] = ()
    """Formats in which samples, grades, items, reasons, calls and figures are written as tables."""
    exporters: tuple[Any, ...] = ()
    """Writers of native files, besides those that come with the format's own plugin."""
    engine: str | dict[str, Any] = "auto"
    limits: LimitsSpec = msgspec.field(default_factory=LimitsSpec)
    rows: Rows = "full"
    """Rows that are kept: ``full``, results.jsonl; ``compressed``, results.jsonl.zst; ``none``."""
    duplicates: Duplicates | None = None
    """What to do with records of the same (id, model, run); default: the format's habit."""


class Suite(Plan, frozen=True, kw_only=True):
    """Everything a run needs, resolved."""

    files: LocalFiles = msgspec.field(default_factory=LocalFiles)
    profile: Profile = "documented"
    gates: tuple[AnyGate, ...] = ()
    """The per-sample rule of the first decides which samples count as passed in letta-evals'
    figures.
    """
    max_failed: Limit | None = None
    min_graded: float = 0.5
    allow_all_failed: bool = False
    success: Success | None = None
    """What makes a sample a success; None: nothing does."""
    headline: Headline = msgspec.field(default_factory=Headline)
    rows: Rows = "full"
    programs: tuple[Stage, ...] = ()
    """Original programs of the formats, which run under ``profile: upstream``."""
    reports: tuple[Stage, ...] = ()
    registry: Registry | None = None
    """Where its components come from, and what plugins show on its pages."""
    engine: Stage
    # nothing secret about it
    runs_must_pass: Literal["any", "all", "majority"] | int = "all"  # noqa: S105
    config: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The suite as written, overrides and stack included, input paths by their short names."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was decided by the data, and the option that changes it."""
    origin: Path | None = None
    """The suite file, when there is one."""

"""The keys of a suite file, and what they resolve to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from gradestack.api import Profile
from gradestack.gates.rules import Gate
from gradestack.grading.plan import Duplicates, Plan, Stage
from gradestack.suites.local_files import LocalFiles
from gradestack.suites.options import Rows


@attrs.frozen(kw_only=True)
class TargetSpec:
    """What is graded: recorded result files."""

    kind: Literal["recorded"] = "recorded"
    paths: tuple[str, ...] = ()
    """Files, directories or glob patterns, relative to the suite file."""
    reader: str | dict[str, Any] | None = None
    """Format of the files, with its options; sniffed when absent."""


@attrs.frozen(kw_only=True)
class LimitsSpec:
    """What a run may take of the machine."""

    seconds_per_grade: float | Literal["none"] | None = 60.0
    """How long a grader may take for a sample, at least 0.1; after that the grade is failed. ``none``: any time."""


@attrs.frozen(kw_only=True)
class SuiteSpec:
    """The keys of a suite file."""

    name: str = ""
    """Default: the file's stem."""
    description: str = ""
    profile: Profile = "documented"
    """Inherited by reader, graders and aggregators; each may override it."""
    stack: str | None = None
    """Named metric stack to start from; the suite's own entries add to it or override it."""
    dataset: str | None = None
    """File with expectations, joined by id."""
    plugins: tuple[str, ...] = ()
    """Python files whose components are used as if they were installed; only with ``--allow-code``."""
    target: TargetSpec = attrs.field(factory=TargetSpec)
    reader: str | dict[str, Any] | None = None
    """The same as ``target.reader``."""
    graders: dict[str, str | dict[str, Any]] = attrs.field(factory=dict)
    """Grader key -> kind, or kind with options."""
    metrics: dict[str, str | dict[str, Any]] = attrs.field(factory=dict)
    """Further aggregators: metric key -> kind, ``of`` (a grader key) and options."""
    gate: dict[str, Any] | None = None
    gates: tuple[dict[str, Any], ...] = ()
    """Several gates: all must pass."""
    num_runs: int | None = None
    """Number of recorded runs (trials) to find; more than one writes ``run_N/`` and ``aggregate_stats.json``."""
    runs_must_pass: Literal["any", "all", "majority"] | int | None = None
    """How many runs' gates must pass; default ``all``, in the upstream profile ``any``."""
    max_samples: int | None = None
    """Only the first n tasks; 0 means no limit."""
    sample_tags: tuple[str, ...] = ()
    """Only samples with one of these tags (facet ``tags``)."""
    max_concurrent: int | None = None
    """Accepted from letta-evals suites; without a live target there is nothing to limit."""
    setup_script: str | None = None
    """Accepted from letta-evals suites; a live target's setup is not run."""
    reports: tuple[str | dict[str, Any], ...] = ("html", "markdown")
    engine: str | dict[str, Any] = "auto"
    limits: LimitsSpec = attrs.field(factory=LimitsSpec)
    rows: Rows = "full"
    """What is kept of samples in results.jsonl: ``slim`` leaves the trajectory out, ``none`` writes no such file."""
    duplicates: Duplicates | None = None
    """What to do with records of the same (id, model, run); default: the format's habit."""


@attrs.frozen(kw_only=True)
class Suite(Plan):
    """Everything a run needs, resolved."""

    files: LocalFiles = attrs.field(factory=LocalFiles)
    description: str = ""
    profile: Profile = "documented"
    gates: tuple[Gate, ...] = ()
    """The per-sample rule of the first decides which samples pass."""
    rows: Rows = "full"
    reports: tuple[Stage, ...] = ()
    engine: Stage
    runs_must_pass: Literal["any", "all", "majority"] | int = "all"  # noqa: S105 - nothing secret about it
    config: Mapping[str, Any] = attrs.field(factory=dict)
    """The suite as written, overrides and stack included, input paths by their short names."""
    warnings: tuple[str, ...] = ()
    origin: Path | None = None
    """The suite file, when there is one."""

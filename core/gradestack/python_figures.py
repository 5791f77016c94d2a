"""Figures of grades at hand, by the aggregators of their kinds: without files, readers and graders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack.api import Profile
from gradestack.errors import ConfigError
from gradestack.grading.metrics import figures_of, grades_of, wanted
from gradestack.grading.plan import Metric
from gradestack.model import JSON, Grade, Key
from gradestack.registry import Registry, discover
from gradestack.suites.document import Document
from gradestack.suites.references import Resolver
from gradestack.table import Table

_OF = "grader"
_COLUMNS = ("task", "run", "model", "grade")

GradedRow = tuple[str | int, str | int | None, str | None, Grade | float] | Mapping[str, Any]
"""Task, run, model and grade (or score): a tuple, or a mapping with these keys."""


def figures(
    metrics: Mapping[str, str | Mapping[str, Any]],
    rows: Iterable[GradedRow],
    *,
    profile: Profile = "documented",
    registry: Registry | None = None,
) -> dict[str, Mapping[str, JSON]]:
    """Return the figures of aggregators over grades at hand.

    Args:
        metrics: Aggregators by key: ``{"mean": {}}``, ``{"k": {"kind": "pass_hat_k", "trials": "task"}}``; without a
            kind the key is one.
        rows: Task, run, model and :class:`~gradestack.Grade` (or a score) of every sample, as tuples or as mappings
            with the keys ``task``, ``run``, ``model``, ``grade``, and ``cluster`` where that is not the task, and
            ``facets``; run and model may be None.
        profile: Inherited by the aggregators.
        registry: Plugins to use; default: all installed ones.

    Returns:
        Key of the metric -> its figures.

    Raises:
        ConfigError: An unknown aggregator or option, or a row that is none.

    Example:
        >>> from gradestack import figures
        >>> rows = [("a", 0, None, 1.0), ("b", 0, None, 0.0)]
        >>> figures({"mean": {}}, rows)["mean"]["mean"]
        0.5
    """
    data = {key: {"kind": each} if isinstance(each, str) else {"kind": key, **each} for key, each in metrics.items()}
    resolver = Resolver(Document(data={}, origin="figures()"), registry or discover(), None)
    resolver.profile = profile
    stages = {key: resolver.stage("aggregator", key, each, ("metrics", key)) for key, each in data.items()}
    if resolver.problems:
        resolver.finish()
    graded = [_graded(row, ordinal) for ordinal, row in enumerate(rows)]
    chosen = [Metric(of=_OF, stage=stage) for stage in stages.values() if stage is not None]
    table = Table.of(wanted([_OF], chosen), [key for key, _ in graded], {_OF: [grade for _, grade in graded]})
    return {
        each.stage.key: figures_of(each.stage.component, grades_of(each.stage.component, table, _OF, each.name))
        for each in chosen
    }


def _graded(row: GradedRow, ordinal: int) -> tuple[Key, Grade]:
    fields: Mapping[str, Any] = row if isinstance(row, Mapping) else dict(zip(_COLUMNS, row, strict=False))
    grade = fields.get("grade")
    if isinstance(grade, int | float):
        grade = Grade(score=float(grade))
    if not isinstance(grade, Grade) or fields.get("task") is None:
        raise ConfigError(f"row {ordinal}: expected task, run, model and a grade or score, got {row!r:.200}")
    cluster = fields.get("cluster")
    key = Key(
        id=str(fields["task"]),
        cluster=None if cluster is None else str(cluster),
        run=fields.get("run"),
        model=fields.get("model"),
        ordinal=ordinal,
        facets=fields.get("facets") or {},
    )
    return key, grade

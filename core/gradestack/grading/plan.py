"""What is applied to every shard: data that travels to workers."""

from __future__ import annotations

from typing import Any

import attrs

from gradestack.api import Aggregator, Extractor, Grader, Profile


@attrs.frozen(kw_only=True)
class GraderSlot:
    """A grader, its key in the suite, and the name and version failures are signed with."""

    key: str
    component: str
    grader: Grader
    extractor: Extractor | None = None
    """Where its submission comes from; None for graders that judge the sample itself."""
    profile: Profile = "documented"
    """The grader's own, or the suite's."""

    @property
    def signature(self) -> str:
        """Name and version."""
        return f"{self.component} {self.grader.version}"


@attrs.frozen(kw_only=True)
class MetricSlot:
    """An aggregator, its key, and the key of the grader it reads."""

    key: str
    of: str
    aggregator: Aggregator[Any]

"""Success of a sample: the one interpretation a run has, by the verdict of its outcome grader."""

from __future__ import annotations

import attrs

from gradestack.grading.counts import SampleRule, passes
from gradestack.model import Grade


@attrs.frozen
class Success:
    """What makes a sample a success."""

    grader: str
    """Key of the outcome grader."""
    rule: SampleRule | None = None
    """A letta-evals gate's rule for one score; None: the grader's own verdict, else score >= 1."""

    def passed(self, grade: Grade) -> bool | None:
        """Return whether a sample with this grade of the outcome grader is a success; None when it was not graded."""
        return None if grade.score is None else self.verdict(grade.score, grade.passed)

    def verdict(self, score: float, own: bool | None) -> bool:
        """Return whether a score is a success, given the grader's own verdict on it, if it has one."""
        return own if self.rule is None and own is not None else passes(self.rule, score)

"""Success of a sample: the one interpretation a run has, by the verdict of its outcome grader."""

from __future__ import annotations

import msgspec

from gradestack.api import Direction
from gradestack.grading.plan import SampleRule
from gradestack.model import Grade


class Success(msgspec.Struct, frozen=True):
    """What makes a sample a success."""

    grader: str
    """Key of the outcome grader."""
    rule: SampleRule | None = None
    """A letta-evals gate's rule for one score; None: the grader's own verdict, else the score."""
    better: Direction = "higher"
    """Which scores are better: without rule and verdict 1 and more is a success, or 0 and less; of neither none is."""

    def passed(self, grade: Grade) -> bool | None:
        """Return whether a sample with this grade of the outcome grader is a success; None when it was not graded."""
        return None if grade.score is None else self.verdict(grade.score, grade.passed)

    def verdict(self, score: float, own: bool | None) -> bool | None:
        """Return whether a score is a success, given the grader's own verdict on it, if it has one."""
        if self.rule is not None:
            return self.rule.sample_passes(score)
        if own is not None or self.better == "neither":
            return own
        return score <= 0 if self.better == "lower" else score >= 1

"""The headline of a run: how many samples are a success, in the words of its stack, and the figures it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.jsonio import as_count, as_list, as_map, as_text
from gradestack_plugins.reporters.text import brief, percent

_WORDS = {
    "lost": "not passed",
    "graded": "graded",
    "error": "broken",
    "missing": "missing",
    "skipped": "skipped",
    "passed": "passed",
}
_LONGEST_WORD = 40


@attrs.frozen
class Success:
    """How many samples are a success."""

    passed: int
    of: int
    """Samples the outcome grader graded."""
    share: str
    rule: str
    """What decided."""
    grader: str
    """Key of the outcome grader."""
    models: Mapping[str, tuple[int, int]]
    """Model -> samples that are a success, and that are not."""

    @property
    def many(self) -> bool:
        """Whether several models were run, whose successes are not counted together."""
        return len(self.models) > 1


def success_of(summary: Mapping[str, Any]) -> Success | None:
    """Return the successes of a summary; None where the run has no outcome."""
    outcome = as_map(summary.get("outcome"))
    if not outcome:
        return None
    passed = as_count(outcome.get("passed"))
    of = passed + as_count(outcome.get("failed"))
    models = map(as_map, as_list(outcome.get("per_model")))
    return Success(
        passed=passed,
        of=of,
        share=percent(passed, of) if of else "",
        rule=brief(as_text(outcome.get("rule")), 200),
        grader=as_text(outcome.get("grader")),
        models={
            as_text(each.get("model_name")): (as_count(each.get("passed")), as_count(each.get("failed")))
            for each in models
        },
    )


def words_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the words for what may become of a sample, those for success and its opposite as the run has them."""
    own = as_map(as_map(summary.get("outcome")).get("words"))
    passed, failed = (brief(as_text(own.get(name)), _LONGEST_WORD) for name in ("passed", "failed"))
    return {**_WORDS, "passed": passed or _WORDS["passed"], "lost": failed or _WORDS["lost"]}

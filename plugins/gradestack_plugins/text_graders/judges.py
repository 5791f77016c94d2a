"""Model judges of letta-evals suites: understood, and refused with what to do instead."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import Grade, Grader, Sample
from gradestack_plugins.text_graders.texts import no_submission

MESSAGE = (
    "a model judge cannot be asked again here: grading never calls a model. To use the grades the recording holds, "
    "write `kind: recorded` with `metric: KEY`, the grader's key in the recorded suite"
)


_OPTIONS = (
    "prompt prompt_path model temperature provider max_retries timeout rubric_vars system_prompt agent_file "
    "judge_tool_name base_url api_key"
)


@attrs.frozen(kw_only=True, these={name: attrs.field(default=None, type=Any) for name in _OPTIONS.split()})
class Rubric(Grader):
    """A grader that asks a language model to judge by a rubric; recorded runs are graded without one, so it is refused.

    The message says what to write instead: ``kind: recorded``, which takes the judge's grades from the recording. All
    options of letta-evals are accepted, so that this is the only thing said.
    """

    version: ClassVar[str] = "1"
    submission: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        raise ValueError(MESSAGE)

    @override
    def grade(self, sample: Sample) -> Grade:
        return no_submission()


@attrs.frozen(kw_only=True, these={})
class ModelJudge(Rubric):
    """The name of ``rubric`` in letta-evals from 0.5 on; refused in the same way."""

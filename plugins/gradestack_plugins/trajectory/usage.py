"""Grader ``usage``: what a run took."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import LARGEST_SCORE, Grade, Grader, Sample, skipped

Figure = Literal["steps", "calls", "turns", "requests", "input_tokens", "output_tokens", "seconds"]
_RECORDED = (
    "requests",
    "input_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_usd",
    "seconds",
    "first_token_seconds",
)


@attrs.frozen(kw_only=True)
class RunUsage(Grader):
    """What a run took: a figure, not a verdict, so that more is neither better nor worse.

    ``parts`` has ``steps`` (answers of the model in the conversation), ``turns`` (of the user), ``calls``, and what was
    recorded of ``requests``, ``input_tokens`` (cached ones included), ``cached_input_tokens``, ``cache_write_tokens``,
    ``output_tokens`` (reasoning included), ``reasoning_tokens``, ``cost_usd``, ``seconds`` and ``first_token_seconds``.
    What was not recorded is None, never 0. Nothing is estimated: no price is known here. Both profiles are the same.

    Attributes:
        score: The figure that is the score; a run that does not record it is skipped.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"turns", "calls", "usage"})
    aggregators: ClassVar[tuple[str, ...]] = ("usage_totals", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    score: Figure = "steps"

    @override
    def grade(self, sample: Sample) -> Grade:
        usage, turns, calls = sample.usage, sample.turns, sample.calls
        steps = sum([message.role == "assistant" for turn in turns for message in turn]) if turns else None
        parts: dict[str, float | None] = {
            "steps": steps or None,
            "turns": len(turns) if steps else None,
            "calls": None if calls is None else len(calls),
        }
        parts |= {name: None if usage is None else _sound(getattr(usage, name)) for name in _RECORDED}
        found = parts[self.score]
        if found is None:
            return skipped("usage_not_recorded", f"the recording does not say how many {self.score} the run took")
        return Grade(score=float(found), parts=parts)


def _sound(value: float | None) -> float | None:
    """Return a figure that a grade can hold, None for NaN and what is beyond all measure."""
    return value if value is not None and -LARGEST_SCORE < value < LARGEST_SCORE else None

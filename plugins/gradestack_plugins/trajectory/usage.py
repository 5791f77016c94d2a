"""Grader ``usage``: what a run took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, Literal

import attrs
from typing_extensions import override

from gradestack import LARGEST_SCORE, Grade, Grader, Reason, Sample, skipped
from gradestack_plugins.trajectory.calls import judged
from gradestack_plugins.trajectory.prices import Price, read_prices

Figure = Literal["steps", "calls", "turns", "requests", "input_tokens", "output_tokens", "seconds", "cost_usd"]
_RECORDED: Final = (
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
_BY_TURN: Final = ("steps", "calls", "input_tokens", "output_tokens", "seconds")


@attrs.frozen(kw_only=True)
class RunUsage(Grader):
    """What a run took: a figure, not a verdict, so that more is neither better nor worse.

    ``parts`` has ``steps`` (answers of the model in the conversation), ``turns`` (of the user), ``calls`` that were
    made and ``executed_calls``, and what was recorded of ``requests``, ``input_tokens`` (cached ones included),
    ``cached_input_tokens``, ``cache_write_tokens``, ``output_tokens`` (reasoning included), ``reasoning_tokens``,
    ``cost_usd``, ``seconds`` and ``first_token_seconds``; ``NAME_per_turn`` of steps, calls, tokens and seconds, which
    is the mean over the turns; and ``step_ratio``, calls made / calls expected, optional ones left out, where any are.

    What was not recorded is None, never 0, and nothing is estimated. With ``prices`` the cost is worked out from the
    recorded tokens, whatever cost was recorded; no price is known without. Both profiles are the same.

    Attributes:
        score: The figure that is the score; a run that does not record it is skipped.
        prices: YAML or JSON file of dollars for a million tokens: ``models: {NAME: {input, output, cached_input,
            cache_write}}``.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str]] = frozenset({"turns", "calls", "usage", "model", "expected"})
    aggregators: ClassVar[tuple[str, ...]] = ("usage_totals", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    score: Figure = "steps"
    prices: Path | None = None
    by_model: Mapping[str, Price] = attrs.field(init=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        """Read the prices.

        Raises:
            ValueError: The file cannot be read, or is not of its form.
        """
        if self.prices is not None:
            object.__setattr__(self, "by_model", read_prices(self.prices))

    @override
    def grade(self, sample: Sample) -> Grade:
        usage, turns, calls = sample.usage, sample.turns, sample.calls
        steps = sum([message.role == "assistant" for turn in turns for message in turn]) if turns else None
        parts: dict[str, float | None] = {
            "steps": steps or None,
            "turns": len(turns) if steps else None,
            "calls": None if calls is None else len(calls),
            "executed_calls": _executed(sample),
        }
        parts |= {name: None if usage is None else _sound(getattr(usage, name)) for name in _RECORDED}
        reasons: tuple[Reason, ...] = ()
        if self.prices is not None:
            price = self.by_model.get(sample.model or "")
            parts["cost_usd"] = None if price is None or usage is None else _sound(price.cost(usage))
            if price is None:
                message = "the price file does not name the model"
                reasons = (Reason(code="no_price", subject=sample.model or "", message=message),)
        number = parts["turns"]
        for name in _BY_TURN:
            total = parts[name]
            parts[f"{name}_per_turn"] = None if total is None or not number else total / number
        parts["step_ratio"] = _ratio(sample)
        found = parts[self.score]
        if found is None:
            told = skipped("usage_not_recorded", f"the recording does not say how many {self.score} the run took")
            return Grade(outcome=told.outcome, reasons=(*told.reasons, *reasons), rationale=told.rationale)
        return Grade(score=float(found), parts=parts, reasons=reasons)


def _executed(sample: Sample) -> int | None:
    """Return how many calls were executed; None where that is not known of each."""
    found = judged(sample, "executed", None)
    return None if isinstance(found, Grade) else len(found)


def _ratio(sample: Sample) -> float | None:
    """Return calls made / calls expected; None where none are, or nobody knows."""
    wanted = [call for call in sample.expected.calls or () if not call.optional]
    return None if sample.calls is None or not wanted else len(sample.calls) / len(wanted)


def _sound(value: float | None) -> float | None:
    """Return a figure that a grade can hold, None for NaN and what is beyond all measure."""
    return value if value is not None and -LARGEST_SCORE < value < LARGEST_SCORE else None

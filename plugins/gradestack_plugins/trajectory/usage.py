"""Grader ``usage``, what a run took, with prices from a file, and aggregator ``usage_totals``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    LARGEST_SCORE,
    Aggregator,
    Figure,
    Grade,
    Grader,
    Grades,
    Numbers,
    Reason,
    Sample,
    Usage,
    ratio,
    skipped,
    valid_confidence,
    yaml_data,
)
from gradestack_plugins.trajectory.calls import judged

Taken = Literal["steps", "calls", "turns", "requests", "input_tokens", "output_tokens", "seconds", "cost_usd"]
_RECORDED: Final = Usage.__struct_fields__
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

    version: ClassVar[str] = "3"
    needs: ClassVar[frozenset[str]] = frozenset({"turns", "calls", "usage", "model", "expected"})
    compares: ClassVar[frozenset[str]] = frozenset({"calls"})
    """What is expected is no reference for it: it counts the steps that would do."""
    aggregators: ClassVar[tuple[str, ...]] = ("usage_totals", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    better = "neither"

    score: Taken = "steps"
    prices: Path | None = None
    by_model: Mapping[str, Price] = attrs.field(init=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.prices is not None:
            object.__setattr__(self, "by_model", read_prices(self.prices))

    @property
    def label(self) -> str:  # type: ignore[override]
        """The label of the figure that is the score."""
        return self._meaning.label

    @property
    def score_unit(self) -> Any:  # type: ignore[override]
        """Its unit."""
        return self._meaning.unit

    @property
    def _meaning(self) -> Figure:
        return next(each for each in UsageTotals.figures if each.name == f"{self.score}.mean")

    @override
    def grade(self, sample: Sample) -> Grade:
        usage, turns, calls = sample.usage, sample.turns, sample.calls
        steps = sum([message.role == "assistant" for turn in turns for message in turn]) if turns else None
        asked = sum([message.role == "user" for message in turns[0]]) if len(turns) == 1 else 0  # not cut into turns
        parts: dict[str, float | None] = {
            "steps": steps or None,
            "turns": max(len(turns), asked) if steps else None,
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
            told = skipped("usage_not_recorded", f"{self.score} not recorded")
            return Grade(outcome=told.outcome, reasons=(*told.reasons, *reasons), rationale=told.rationale)
        return Grade(score=float(found), parts=parts, reasons=reasons)


def _executed(sample: Sample) -> int | None:
    found = judged(sample, "executed", None)
    return None if isinstance(found, Grade) else len(found)


def _ratio(sample: Sample) -> float | None:
    wanted = [call for call in sample.expected.calls or () if not call.optional]
    return None if sample.calls is None or not wanted else len(sample.calls) / len(wanted)


def _sound(value: float | None) -> float | None:
    """Return a figure that a grade can hold, None for NaN and what is beyond all measure."""
    return value if value is not None and -LARGEST_SCORE < value < LARGEST_SCORE else None


Dollars = Annotated[float, msgspec.Meta(ge=0, le=LARGEST_SCORE)]
_MILLION: Final = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for a million tokens; cached and written ones cost what other input costs where nothing else is said."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return what a run cost in dollars; None where its tokens are not recorded, or cannot be what was used.

            cost = sum of tokens * price, over cached, written and other input, and output

        Exact, rounded once. Cached and written tokens that are not recorded are taken for other input.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
        others = usage.input_tokens - cached - written
        if min(others, cached, written, usage.output_tokens) < 0:
            return None
        total = others * Fraction(self.input) + usage.output_tokens * Fraction(self.output)
        total += cached * Fraction(self.input if self.cached_input is None else self.cached_input)
        total += written * Fraction(self.input if self.cache_write is None else self.cache_write)
        try:
            return float(total / _MILLION)
        except OverflowError:
            return None


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices of a YAML or JSON file, by model; a ValueError says where it is not of the form."""
    try:
        data = yaml_data(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: neither YAML nor JSON: {error}") from error
    except Exception as error:
        raise ValueError(f"{path}: neither YAML nor JSON: {' '.join(str(error).split())}") from error
    try:
        return msgspec.convert(data, _Prices).models
    except msgspec.ValidationError as error:
        form = "models: {NAME: {input: 2.5, output: 10}}"
        what = f"{path}: expected prices in dollars for a million tokens, as {form}"
        raise ValueError(f"{what}: {error}") from error


class _Prices(msgspec.Struct, forbid_unknown_fields=True):
    models: Annotated[dict[str, Price], msgspec.Meta(min_length=1)]


_RUNS, _SUM = "runs ", "sum "


def _mean(name: str, label: str, unit: Any, better: Any = "neither") -> Figure:
    about, by = "total / runs that record it", f"{_RUNS}{name}"
    return Figure(f"{name}.mean", label, better=better, unit=unit, about=about, divisor=by, least=0.0, optional=True)


@attrs.frozen(kw_only=True)
class UsageTotals(Aggregator):
    """Of every part of a grade: ``total``, ``mean`` over the ``n`` runs that record it, ``min`` and ``max``.

    The mean's interval is that of an amount, clustered by task; of a part this family does not know the mean -+ t se.
    """

    version: ClassVar[str] = "2"
    figures: ClassVar = (
        _mean("steps", "Steps a run", "count"),
        _mean("turns", "Turns a run", "count"),
        _mean("calls", "Calls a run", "count"),
        _mean("executed_calls", "Executed calls a run", "count"),
        _mean("requests", "Requests a run", "count"),
        _mean("input_tokens", "Input tokens a run", "tokens", "lower"),
        _mean("cached_input_tokens", "Cached input tokens a run", "tokens"),
        _mean("cache_write_tokens", "Cache write tokens a run", "tokens"),
        _mean("output_tokens", "Output tokens a run", "tokens", "lower"),
        _mean("reasoning_tokens", "Reasoning tokens a run", "tokens"),
        _mean("cost_usd", "Cost of a run", "usd", "lower"),
        _mean("seconds", "Seconds a run", "seconds", "lower"),
        _mean("first_token_seconds", "Seconds to the first token", "seconds", "lower"),
        _mean("steps_per_turn", "Steps a turn", "count"),
        _mean("calls_per_turn", "Calls a turn", "count"),
        _mean("input_tokens_per_turn", "Input tokens a turn", "tokens"),
        _mean("output_tokens_per_turn", "Output tokens a turn", "tokens"),
        _mean("seconds_per_turn", "Seconds a turn", "seconds"),
        _mean("step_ratio", "Calls made for each expected one", "count"),
        Figure("{part}.mean", "Mean of a part", better="neither", unit="score", divisor="runs {part}"),
    )

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        known = {name: float(value) for name, value in grade.parts.items() if value is not None}
        return {f"{_RUNS}{name}": 1 for name in known} | {f"{_SUM}{name}": value for name, value in known.items()}

    @override
    def estimate(self, **sums: float) -> Mapping[str, Mapping[str, float | None]]:
        names = [name.removeprefix(_RUNS) for name in sums if name.startswith(_RUNS)]
        return {name: {"mean": ratio(sums.get(f"{_SUM}{name}", 0), sums[f"{_RUNS}{name}"])} for name in names}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, ends = 0, dict[str, tuple[float, float]]()
        for grade, times in grades.counted:
            if grade.score is None:
                continue
            runs += times
            for name, value in grade.parts.items():
                if value is not None:
                    low, high = ends.get(name, (value, value))
                    ends[name] = (min(low, value), max(high, value))
        found: dict[str, JSON] = {"runs": runs}
        for name, (low, high) in sorted(ends.items()):
            found[name] = {
                "total": float(grades.totals[f"{_SUM}{name}"]),
                "min": float(low),
                "min_interval": {"reason": "quantile"},
                "max": float(high),
                "max_interval": {"reason": "quantile"},
                "n": int(grades.totals[f"{_RUNS}{name}"]),
            }
        return found

"""The family's eight figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grades,
    Numbers,
    Outcome,
    Profile,
    ratio,
)
from gradestack_plugins.deepfabric.samples import RUN_STOPS
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals, unbounded_intervals

RATES: Final = {
    "tool_selection_accuracy": "tool_selection",
    "parameter_accuracy": "parameter_accuracy",
    "execution_success_rate": "execution_success",
}
"""Figure -> the count it is the share of."""
_PARTS: Final = {**RATES, "response_quality": "response_quality", "overall_score": "overall_score"}
FIGURES: Final = tuple(_PARTS)
_NOTHING: Final = dict.fromkeys(
    ("processed", "undefined", "errors", "stopped", *_PARTS.values()), 0
)
"""What a missing reply adds."""
_UNBOUNDED: Final = {
    "overall_score": ("applicable", "overall_score"),
    "overall_score_attempted": ("processed", "overall_score"),
}
"""Means of scores that weights can take out of [0, 1]: divisor and dividend."""
LABELS: Final = {
    "tool_selection_accuracy": "Tool selection accuracy",
    "parameter_accuracy": "Parameter accuracy",
    "execution_success_rate": "Execution success rate",
    "response_quality": "Response quality",
    "overall_score": "Overall score",
}
# fault code of a sample that was graded, but whose weights give no usable score
NO_SCORE: Final = "score_not_finite"
BANDS: Final = ((0.90, "excellent"), (0.75, "good"), (0.50, "fair"), (0.0, "poor"))
"""Score bands of the document; the lower bound belongs to the band."""
_CONSTANT: Final[Mapping[str, JSON]] = no_intervals(
    dict.fromkeys(
        ("response_quality", "response_quality_attempted"),
        "0 for every reply: DeepFabric measures it under multi_turn alone",
    )
)
_ALL_MISSING: Final = "every sample is missing: there is no reply to judge"
_LOW: Final = 0.75
_LONGEST: Final = 300  # characters of an error that a warning shows
_ADVICE: Final = {
    "tool_selection_accuracy": (
        "The model often calls another tool, or none. Make the tools' names and descriptions "
        "easier to tell apart, "
        "and add training samples for the tools that are confused."
    ),
    "parameter_accuracy": (
        "Arguments often miss required names or have the wrong type. State types and required "
        "parameters in the tool "
        "schemas, and add samples with complete, correctly typed arguments."
    ),
    "execution_success_rate": (
        "Few calls would run as made. See whether the tool or its arguments fail more often, and "
        "work on that first; "
        "check that the output format of the calls is the one the model was trained on."
    ),
    "processing_errors": (
        "Some records or replies could not be processed and count as wrong. See the first error, "
        "whether replies are "
        "cut off (a limit of tokens) or in another format than calls are read from, and whether "
        "the inference failed."
    ),
}


@attrs.frozen(kw_only=True)
class DeepFabricMetrics(IntervalAggregator):
    """DeepFabric's metrics over all samples, and over those that could be processed.

    With N the samples that were not skipped (failed and missing ones included, which can only
    lose):

    - ``tool_selection_accuracy``, ``parameter_accuracy``, ``execution_success_rate`` = right / N
    - ``response_quality`` = sum of the part / N
    - ``overall_score`` = sum of the sample scores / N, which is the weighted sum of the four
      figures
    - ``samples_evaluated`` = N, ``samples_processed`` = samples without an error,
      ``processing_errors`` = the rest of N (missing replies among them: ``samples_missing`` of
      them)

    Figures ending in ``_attempted`` divide by ``samples_processed`` instead. Nothing to divide by,
    or nothing but missing samples: ``documented`` gives None and says so under ``undefined``,
    ``upstream`` gives 0.0. ``interpretation`` names the document's band of the overall score (from
    90 %, from 75 %, from 50 %, below) and what may help a figure below 75 % or processing errors;
    nothing is computed from it. ``warnings`` says how many records are processing errors, and the
    first of them. Every figure has its interval but ``response_quality`` where it is 0 for every
    reply, as it is without ``multi_turn``; of several models ``models`` has the figures of each.
    """

    profile: Profile = "documented"

    version: ClassVar[str] = "4"
    figures: ClassVar = tuple(
        Figure(f"{name}{ending}", f"{LABELS[name]}{of}", about=f"{part} / {by}", divisor=divisor)
        for ending, of, by, divisor in (
            ("", "", "samples", "applicable"),
            ("_attempted", ", of processed samples", "processed samples", "processed"),
        )
        for name, part in _PARTS.items()
    )
    keeps: ClassVar = frozenset({"fault"})

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.outcome is Outcome.SKIPPED:
            return None
        if grade.outcome is Outcome.MISSING:
            return {**_NOTHING, "applicable": 1, "missing": 1}
        counts, fault = grade.counts, grade.fault
        error = bool(counts.get("errors") and fault is not None)
        return {
            "applicable": 1,
            "missing": 0,
            "processed": counts.get(
                "processed", int(grade.outcome is Outcome.GRADED and fault is None)
            ),
            **{name: counts.get(name, 0) for name in RATES.values()},
            "response_quality": grade.parts.get("response_quality") or 0.0,
            "overall_score": grade.score or 0.0,
            "undefined": int(not grade.score and fault is not None and fault.code == NO_SCORE),
            "errors": int(error),
            "stopped": int(error and fault is not None and fault.code == RUN_STOPS),
        }

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        applicable = totals["applicable"]
        processed = totals["processed"]
        undefined = totals["undefined"]
        return {
            f"{name}{ending}": None
            if undefined and name == "overall_score"
            else ratio(totals[part], divisor)
            for ending, divisor in (("", applicable), ("_attempted", processed))
            for name, part in _PARTS.items()
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        sums: Mapping[str, int | Fraction] = defaultdict(int, grades.totals)
        total, processed, missing = (
            int(sums[name]) for name in ("applicable", "processed", "missing")
        )
        replies = total > missing
        metrics = self._figures(sums, total if replies or self.profile == "upstream" else 0)
        why = _ALL_MISSING if total else "there is no sample to divide by"
        undefined = {name: why for name, value in metrics.items() if value is None}
        attempted = self._figures(sums, processed)
        if sums["undefined"]:
            metrics["overall_score"] = attempted["overall_score"] = None
            undefined["overall_score"] = "the weights give scores that are not finite"
        metrics |= {f"{name}_attempted": value for name, value in attempted.items()}
        constant = {} if sums["response_quality"] or not processed else _CONSTANT
        metrics |= {**constant, **no_intervals(undefined)}
        metrics |= {f"{name}_correct": int(sums[name]) for name in RATES.values()}
        metrics |= {
            "samples_evaluated": total,
            "samples_processed": processed,
            "processing_errors": total - processed,
            "samples_missing": missing,
            "samples_skipped": len(grades) - total,
        }
        if not sums["undefined"] and any(
            not 0 <= (grade.score or 0) <= 1 for grade, _ in grades.counted
        ):
            metrics |= unbounded_intervals(grades, _UNBOUNDED, self.confidence)
        metrics["interpretation"] = interpretation(metrics, errors=int(sums["errors"]))
        if statement := _band_statement(metrics["overall_score"] if total else None):
            metrics["statements"] = [statement]
        metrics["undefined"] = undefined
        if sums["errors"]:
            metrics["warnings"] = _warnings(
                grades, int(sums["errors"]), total, stopped=int(sums["stopped"])
            )
        models = grades.sums("applicable", "missing")[1]
        if len(models) > 1:
            known: dict[str, Any] = metrics.get("models", {})
            metrics["models"] = {model: {**known.get(model, {}), **constant} for model in models}
        if len(models) > 1 and self.profile == "documented":
            gone = [
                model
                for model, cells in models.items()
                if all(cell[0] == cell[1] for cell in cells)
            ]
            names = dict.fromkeys([each.name for each in self.figures])
            reasons = no_intervals(dict.fromkeys(names, _ALL_MISSING))
            metrics["models"] |= {model: {**names, **reasons} for model in gone}
        return metrics

    def _figures(self, sums: Mapping[str, float | Fraction], divisor: int) -> dict[str, Any]:
        if not divisor:
            return dict.fromkeys(FIGURES, 0.0 if self.profile == "upstream" else None)
        return {name: float(sums[part] / divisor) for name, part in _PARTS.items()}


def _warnings(grades: Grades, errors: int, total: int, *, stopped: int) -> list[JSON]:
    key, fault = next(
        (key, grade.fault) for key, grade in grades if grade.counts.get("errors") and grade.fault
    )
    first = f"{key.id}: {fault.message[:_LONGEST]}"
    more: list[JSON] = [
        f"on {stopped} of these records the original ends and writes no result at all"
    ]
    return [
        f"{errors} of {total} records are processing errors, first: {first}",
        *(more if stopped else ()),
    ]


def band(score: float | None) -> str | None:
    """Return the document's band of a score.

    Excellent from 0.90, good from 0.75, fair from 0.50, poor below.
    """
    if score is None:
        return None
    return next((name for bound, name in BANDS if score >= bound), BANDS[-1][1])


_WORDS: Final = {
    "excellent": "90% and above",
    "good": "75% to 90%",
    "fair": "50% to 75%",
    "poor": "below 50%",
}


def _band_statement(score: float | None) -> str | None:
    """Return the band of a score in words."""
    name = band(score)
    if name is None or score is None:
        return None
    return f"Band: {name} ({_WORDS[name]}), overall score {100 * score:.1f}%"


def interpretation(metrics: Mapping[str, Any], errors: int = 0) -> dict[str, JSON]:
    """Return the band of the overall score, the bands, and advice for each rate below 0.75 and
    processing errors.
    """
    low = [
        name
        for name in RATES
        if metrics[name] is not None and metrics["samples_evaluated"] and metrics[name] < _LOW
    ]
    low += ["processing_errors"] if errors else []
    score = metrics["overall_score"] if metrics["samples_evaluated"] else None
    return {
        "band": band(score),
        "bands": [{"band": name, "from": bound} for bound, name in BANDS],
        "advice": [
            {"metric": name, "value": metrics[name], "advice": _ADVICE[name]} for name in low
        ],
    }

"""The family's eight figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grades,
    Numbers,
    Outcome,
    ratio,
)
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals

RATES: Final = {
    "tool_selection_accuracy": "tool_selection",
    "parameter_accuracy": "parameter_accuracy",
    "execution_success_rate": "execution_success",
}
"""Figure -> the count it is the share of."""
_PARTS: Final = {**RATES, "response_quality": "response_quality", "overall_score": "overall_score"}
FIGURES: Final = tuple(_PARTS)
_NOTHING: Final = dict.fromkeys(("processed", "errors", *_PARTS.values()), 0)
"""Numbers of a missing reply."""
BANDS: Final = (
    (0.90, "excellent", "90% and above"),
    (0.75, "good", "75% to 90%"),
    (0.50, "fair", "50% to 75%"),
    (0.0, "poor", "below 50%"),
)
"""Score bands of the document; the lower bound belongs to the band."""
CONSTANT: Final[Mapping[str, JSON]] = no_intervals(
    dict.fromkeys(
        ("response_quality", "response_quality_attempted"),
        "0 for every reply: DeepFabric measures it under multi_turn alone",
    )
)
NOTHING_JUDGED: Final = "no sample has a reply to judge"
UNPROCESSED: Final = "no sample could be processed"
LOW: Final = 0.75
LONGEST: Final = 300  # characters of an error that a warning shows
ADVICE: Final = {
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
        "work on that first. "
        "Check that the output format of the calls is the one the model was trained on."
    ),
    "processing_errors": (
        "Some records or replies could not be processed and count as wrong. See the first error, "
        "whether replies are "
        "cut off (a limit of tokens) or in another format than calls are read from, and whether "
        "the inference failed."
    ),
}


def label_of(name: str) -> str:
    """Return the words of a figure's name."""
    return name.replace("_", " ").capitalize()


def _declare_figures(ending: str, unit: str, divisor: str, undefined: str) -> Iterator[Figure]:
    """Yield the figures with an ending of their names; the unit is in the label of such figures."""
    for name, part in _PARTS.items():
        label = label_of(name)
        if ending:
            label += f", of {unit}"
        about = f"{part} / {unit}"
        yield Figure(f"{name}{ending}", label, about=about, divisor=divisor, undefined=undefined)


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

    Figures ending in ``_attempted`` divide by ``samples_processed`` instead. With nothing to divide
    by, or nothing but missing samples, they are None. ``interpretation``
    names the document's band of the overall score: from 90 %, from 75 %, from 50 %, below. It says
    what may help a figure below 75 % or processing errors; nothing is computed from it.
    ``warnings`` says how many records are processing errors, and the first of them. Figures
    that are no counts have an interval. ``response_quality`` has none where it is 0 for every
    reply, as it is without ``multi_turn``. Of several models ``models`` has the figures of each.
    """

    version = "4"
    figures = (
        *_declare_figures("", "samples", "applicable", NOTHING_JUDGED),
        *_declare_figures("_attempted", "processed samples", "processed", UNPROCESSED),
    )
    keeps = frozenset({"fault"})

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.outcome is Outcome.SKIPPED:
            return None
        if grade.outcome is Outcome.MISSING:
            return {**_NOTHING, "applicable": 1, "missing": 1}
        counts = grade.counts
        rates = RATES.values()
        right = {name: counts.get(name, 0) for name in rates}
        processed = counts.get("processed", 0)
        errors = int(_is_processing_error(grade))
        response_quality = grade.parts.get("response_quality") or 0.0
        overall_score = grade.score or 0.0
        return {
            "applicable": 1,
            "missing": 0,
            "processed": processed,
            "errors": errors,
            **right,
            "response_quality": response_quality,
            "overall_score": overall_score,
        }

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        applicable = totals["applicable"]
        processed = totals["processed"]
        judged = applicable if applicable > totals["missing"] else 0
        shares: dict[str, Any] = {}
        for ending, divisor in (("", judged), ("_attempted", processed)):
            for name, part in _PARTS.items():
                total = totals[part]
                shares[f"{name}{ending}"] = ratio(total, divisor)
        return shares

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        sums = defaultdict[str, Any](int, grades.totals)
        rates = RATES.values()
        counts = ("applicable", "processed", "errors", "missing", *rates)
        total, processed, errors, missing, *right = [int(sums[name]) for name in counts]
        metrics: dict[str, Any] = {}
        for name, value in self.figures_of(sums).items():
            metrics[name] = None if value is None else float(value)
        for name, count in zip(RATES.values(), right, strict=True):
            metrics[f"{name}_correct"] = count
        processing_errors = total - processed
        samples_skipped = len(grades) - total
        metrics |= {
            "samples_evaluated": total,
            "samples_processed": processed,
            "processing_errors": processing_errors,
            "samples_missing": missing,
            "samples_skipped": samples_skipped,
        }
        metrics["interpretation"] = interpretation(metrics, errors)
        score = metrics["overall_score"]
        if score is not None:
            _, name, words = band(score)
            percent = f"{100 * score:.1f}%"
            metrics["statements"] = [f"Band: {name} ({words}), overall score {percent}"]
        if errors:
            first = _first_error(grades)
            warning = f"{errors} of {total} records are processing errors, first: {first}"
            metrics["warnings"] = [warning]
        if processed and not sums["response_quality"]:
            metrics |= CONSTANT
            models = grades.sums("processed")[1]
            if len(models) > 1:
                replied = [name for name, tasks in models.items() if any(map(any, tasks))]
                metrics["models"] = dict.fromkeys(replied, CONSTANT)
        return metrics


def _is_processing_error(grade: Grade) -> bool:
    errors = grade.counts.get("errors")
    return bool(errors) and grade.fault is not None


def _first_error(grades: Grades) -> str:
    key, grade = next(pair for pair in grades if _is_processing_error(pair[1]))
    if grade.fault is None:
        message = ""
    else:
        message = grade.fault.message
    return f"{key.id}: {message[:LONGEST]}"


def band(score: float) -> tuple[float, str, str]:
    """Return the document's band of a score; the lowest reaches down to any."""
    last_band = BANDS[-1]
    return next((entry for entry in BANDS if score >= entry[0]), last_band)


def interpretation(metrics: Mapping[str, Any], errors: int) -> dict[str, JSON]:
    """Return the band of the overall score, all bands, and advice.

    There is advice for each rate below 0.75 and for processing errors.
    """
    low = [name for name in RATES if metrics[name] is not None and metrics[name] < LOW]
    if errors:
        low.append("processing_errors")
    advice: list[JSON] = []
    for name in low:
        metric = metrics[name]
        advice.append({"metric": name, "value": metric, "advice": ADVICE[name]})
    bands: list[JSON] = [{"band": name, "from": bound} for bound, name, _ in BANDS]
    score = metrics["overall_score"]
    if score is None:
        own_band = None
    else:
        own_band = band(score)[1]
    return {"band": own_band, "bands": bands, "advice": advice}

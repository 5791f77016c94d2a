"""The family's eight figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, TypedDict

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    CellsState,
    TaskSums,
    Grade,
    Key,
    Memory,
    Outcome,
    Profile,
    TaskCells,
    valid_confidence,
)
from gradestack_plugins.deepfabric.upstream import RUN_STOPS

RATES: Final = {
    "tool_selection_accuracy": "tool_selection",
    "parameter_accuracy": "parameter_accuracy",
    "execution_success_rate": "execution_success",
}
"""Figure -> the count it is the share of."""
FIGURES: Final = (*RATES, "response_quality", "overall_score")
NO_SCORE: Final = "score_not_finite"
"""Fault code of a sample that was graded, but whose weights give no usable score."""
BANDS: Final = ((0.90, "excellent"), (0.75, "good"), (0.50, "fair"), (0.0, "poor"))
"""Score bands of the document; the lower bound belongs to the band."""
_CELLS: Final = TaskCells("applicable", "processed", *RATES.values(), "response_quality", "overall_score", "missing")
_PARTS: Final = {**RATES, "response_quality": "response_quality", "overall_score": "overall_score"}
_RATIOS: Final = {
    **{name: (part, "applicable") for name, part in _PARTS.items()},
    **{f"{name}_attempted": (part, "processed") for name, part in _PARTS.items()},
}
_GRADED: Final = Outcome.GRADED  # looked up once: members are properties of the class
_ALL_MISSING: Final = "every sample is missing: there is no reply to judge"
_LOW: Final = 0.75
_LONGEST: Final = 300
"""Characters of an error that a warning shows."""
_ADVICE: Final = {
    "tool_selection_accuracy": (
        "The model often calls another tool, or none. Make the tools' names and descriptions easier to tell apart, "
        "and add training samples for the tools that are confused."
    ),
    "parameter_accuracy": (
        "Arguments often miss required names or have the wrong type. State types and required parameters in the tool "
        "schemas, and add samples with complete, correctly typed arguments."
    ),
    "execution_success_rate": (
        "Few calls would run as made. See whether the tool or its arguments fail more often, and work on that first; "
        "check that the output format of the calls is the one the model was trained on."
    ),
    "processing_errors": (
        "Some records or replies could not be processed and count as wrong. See the first error, whether replies are "
        "cut off (a limit of tokens) or in another format than calls are read from, and whether the inference failed."
    ),
}


class State(TypedDict):
    """JSON state of :class:`DeepFabricMetrics`."""

    graded: int
    failed: int
    missing: int
    skipped: int
    undefined: int
    errors: int
    stopped: int
    first_error: list[int | str]
    """Ordinal, id and words of the first processing error; empty without one."""
    outside: int
    """Sample scores beyond [0, 1], which weights can give."""
    cells: CellsState


@attrs.frozen(kw_only=True)
class DeepFabricMetrics(Aggregator[State]):
    """DeepFabric's metrics over all samples, and over those that could be processed.

    With N the samples that were not skipped (failed and missing ones included, which can only lose):

    - ``tool_selection_accuracy``, ``parameter_accuracy``, ``execution_success_rate`` = right / N
    - ``response_quality`` = sum of the part / N
    - ``overall_score`` = sum of the sample scores / N, which is the weighted sum of the four figures
    - ``samples_evaluated`` = N, ``samples_processed`` = samples without an error, ``processing_errors`` = the rest of N
      (missing replies among them: ``samples_missing`` of them)

    Figures ending in ``_attempted`` divide by ``samples_processed`` instead. Nothing to divide by, or nothing but
    missing samples: ``documented`` gives None and says so under ``undefined``, ``upstream`` gives 0.0.
    ``interpretation`` names the document's band of the overall score (from 90 %, from 75 %, from 50 %, below) and what
    may help a figure below 75 % or processing errors; nothing is computed from it. ``warnings`` says how many records
    are processing errors, and the first of them. Every figure has its interval; of several models ``models`` has the
    figures of each.
    """

    profile: Profile = "documented"
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    version: ClassVar[str] = "4"
    memory: ClassVar[Memory] = "per_key"

    @override
    def start(self) -> State:
        return {
            "graded": 0,
            "failed": 0,
            "missing": 0,
            "skipped": 0,
            "undefined": 0,
            "errors": 0,
            "stopped": 0,
            "first_error": [],
            "outside": 0,
            "cells": _CELLS.start(),
        }

    @override
    def add(self, state: State, key: Key, grade: Grade) -> State:
        outcome = grade.outcome
        if outcome is _GRADED:
            state["graded"] += 1
        elif outcome is Outcome.FAILED:
            state["failed"] += 1
        elif outcome is Outcome.MISSING:
            state["missing"] += 1
            _CELLS.add(state["cells"], key, [1, 0, 0, 0, 0, 0, 0, 1])
            return state
        else:
            state["skipped"] += 1
            return state
        counts, fault = grade.counts, grade.fault
        if counts.get("errors") and fault is not None:
            state["errors"] += 1
            state["stopped"] += fault.code == RUN_STOPS
            state["first_error"] = _first(state["first_error"], [key.ordinal, key.id, fault.message])
        processed = counts.get("processed")
        processed = int(outcome is _GRADED and fault is None) if processed is None else processed
        if not grade.score and fault is not None and fault.code == NO_SCORE:
            state["undefined"] += 1
        state["outside"] += 0 if 0 <= (grade.score or 0) <= 1 else 1
        _CELLS.add(state["cells"], key, _cell(grade, processed))
        return state

    @override
    def add_many(self, state: State, keys: Sequence[Key], grades: Sequence[Grade]) -> State:
        usual = [each for each in grades if _usual(each)]
        if len(usual) < len(grades):
            others = [pair for pair in zip(keys, grades, strict=True) if not _usual(pair[1])]
            keys = [key for key, grade in zip(keys, grades, strict=True) if _usual(grade)]
            for key, grade in others:
                self.add(state, key, grade)
        state["graded"] += len(usual)
        state["outside"] += sum([not 0 <= (each.score or 0) <= 1 for each in usual])
        _CELLS.add_many(state["cells"], keys, [_cell(each, each.counts.get("processed", 1)) for each in usual])
        return state

    @override
    def merge(self, left: State, right: State) -> State:
        left["graded"] += right["graded"]
        left["failed"] += right["failed"]
        left["missing"] += right["missing"]
        left["skipped"] += right["skipped"]
        left["undefined"] += right["undefined"]
        left["errors"] += right["errors"]
        left["stopped"] += right["stopped"]
        left["first_error"] = _first(left["first_error"], right["first_error"])
        left["outside"] += right["outside"]
        _CELLS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: State) -> Mapping[str, JSON]:
        cells = _CELLS.together(state["cells"])
        total = state["graded"] + state["failed"] + state["missing"]
        sums = cells.totals()
        processed = int(sums["processed"])
        metrics = self._figures(sums, total if state["graded"] + state["failed"] or self.profile == "upstream" else 0)
        why = _ALL_MISSING if total else "there is no sample to divide by"
        undefined = {name: why for name, value in metrics.items() if value is None}
        if state["undefined"]:
            metrics["overall_score"] = None
            undefined["overall_score"] = "the weights give scores that are not finite"
        metrics |= {
            "samples_evaluated": total,
            "samples_processed": processed,
            "processing_errors": total - processed,
            "samples_missing": state["missing"],
            "samples_skipped": state["skipped"],
        }
        attempted = self._figures(sums, processed)
        if state["undefined"]:
            attempted["overall_score"] = None
        metrics |= {f"{name}_attempted": value for name, value in attempted.items()}
        metrics |= {f"{name}_correct": int(sums[name]) for name in RATES.values()}
        metrics |= self._intervals(state, cells, metrics, undefined)
        metrics["interpretation"] = interpretation(metrics, errors=state["errors"])
        metrics["undefined"] = undefined
        if said := _warnings(state, total):
            metrics["warnings"] = said
        return metrics

    def _intervals(
        self, state: State, cells: TaskSums, metrics: Mapping[str, JSON], undefined: Mapping[str, str]
    ) -> dict[str, JSON]:
        beyond = ("overall_score", "overall_score_attempted") if state["outside"] else ()
        known = {name: parts for name, parts in _RATIOS.items() if metrics[name] is not None}
        found = cells.ratios(known, confidence=self.confidence, unbounded=beyond)
        why = {
            f"{name}_interval": {"reason": undefined.get(name, "undefined")} for name in _RATIOS if name not in known
        }
        models = cells.model_ratios(known, confidence=self.confidence, unbounded=beyond)
        if models and self.profile == "documented":
            _without_replies(cells, models["models"])
        return {**found, **why, **models}

    def _figures(self, sums: Mapping[str, Fraction], divisor: int) -> dict[str, Any]:
        if not divisor:
            return dict.fromkeys(FIGURES, 0.0 if self.profile == "upstream" else None)
        return {name: float(sums[part] / divisor) for name, part in _PARTS.items()}


def _usual(grade: Grade) -> bool:
    return grade.outcome is _GRADED and grade.fault is None


def _cell(grade: Grade, processed: int) -> list[float]:
    """Return what a sample adds to its task: one applicable sample, and its part of every figure."""
    count = grade.counts.get
    right = count("tool_selection", 0), count("parameter_accuracy", 0), count("execution_success", 0)
    return _numbers(processed, *right, grade.parts.get("response_quality") or 0.0, grade.score or 0.0)


@lru_cache(maxsize=1024, typed=True)
def _numbers(*numbers: float) -> list[float]:
    """Return a cell of a sample that is not missing; equal ones are one object, as thousands are kept."""
    return [1, *numbers, 0]


def _without_replies(cells: TaskSums, models: Any) -> None:
    """Make the figures of models undefined all of whose samples are missing, in place."""
    for model, counted in cells.rounded[1].items():
        if all(cell[0] == cell[-1] for cell in counted):
            models[model] |= {name: None for name in _RATIOS if name in models[model]}
            models[model] |= {f"{name}_interval": {"reason": _ALL_MISSING} for name in _RATIOS if name in models[model]}


def _first(left: list[int | str], right: list[int | str]) -> list[int | str]:
    """Return the earlier of two errors."""
    return min(left, right, key=lambda error: error[0]) if left and right else left or right


def _warnings(state: State, total: int) -> list[JSON]:
    """Return what must not be overlooked: summary.json and the console say it too."""
    if not state["first_error"]:
        return []
    _, where, why = state["first_error"]
    first = f"{where}: {str(why)[:_LONGEST]}"
    said: list[JSON] = [f"{state['errors']} of {total} records are processing errors, first: {first}"]
    if state["stopped"]:
        said.append(f"on {state['stopped']} of these records the original ends and writes no result at all")
    return said


def band(score: float | None) -> str | None:
    """Return the document's band of a score: excellent from 0.90, good from 0.75, fair from 0.50, poor below."""
    if score is None:
        return None
    return next((name for bound, name in BANDS if score >= bound), BANDS[-1][1])


def interpretation(metrics: Mapping[str, Any], errors: int = 0) -> dict[str, JSON]:
    """Return the band of the overall score, the bands, and advice for each rate below 0.75 and processing errors."""
    low = [
        name for name in RATES if metrics[name] is not None and metrics["samples_evaluated"] and metrics[name] < _LOW
    ]
    low += ["processing_errors"] if errors else []
    score = metrics["overall_score"] if metrics["samples_evaluated"] else None
    return {
        "band": band(score),
        "bands": [{"band": name, "from": bound} for bound, name in BANDS],
        "advice": [{"metric": name, "value": metrics[name], "advice": _ADVICE[name]} for name in low],
    }

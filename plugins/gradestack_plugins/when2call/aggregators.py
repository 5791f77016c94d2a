"""Hallucination rates, and what prediction files say about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, CellsState, Grade, Item, Key, Outcome, TaskCells, valid_confidence
from gradestack.exact import count_into

RATES = ("tool", "answer", "parameter")

Counts = dict[str, int]


_CELLS = TaskCells("of_answer", "answer", "of_tool", "tool", "of_parameter", "parameter")
_RATIOS = {f"{rate}_hallucination_rate": (rate, f"of_{rate}") for rate in RATES}


class SetState(TypedDict):
    """One prediction set."""

    counts: Counts
    cells: CellsState


class HallucinationState(TypedDict):
    """JSON state of :class:`Hallucination`."""

    main: SetState
    sets: dict[str, SetState]


def _new_set() -> SetState:
    return {"counts": {}, "cells": _CELLS.start()}


def _tally(state: SetState, key: Key, graded: Grade | Item, no_tools: int | None) -> None:
    """Add one graded label to numerators (``tool``) and denominators (``of_tool``)."""
    gold, label = graded.gold, graded.label
    if graded.outcome is not Outcome.GRADED or gold is None:
        return
    called = label == "tool_call"
    found = {"of_answer": 1, "answer": int(label == "direct" and gold != "direct")}
    if gold == "request_for_info":
        found |= {"of_parameter": 1, "parameter": int(called)}
    if gold == "cannot_answer":
        found |= {"tools_unknown": 1} if no_tools is None else {"of_tool": no_tools, "tool": int(no_tools and called)}
    count_into(state["counts"], found)
    get = found.get
    cell: list[float] = [
        1,
        get("answer", 0),
        get("of_tool", 0),
        get("tool", 0),
        get("of_parameter", 0),
        get("parameter", 0),
    ]
    _CELLS.add(state["cells"], key, cell)


@attrs.frozen(kw_only=True)
class Hallucination(Aggregator[HallucinationState]):
    """Hallucination rates of behaviour labels; null (never 0) where the denominator is 0, in both profiles.

    - ``tool_hallucination_rate`` = #(gold cannot_answer, no tools, predicted tool_call)
      / #(gold cannot_answer, no tools)
    - ``answer_hallucination_rate`` = #(predicted direct, gold not direct) / #(all graded)
    - ``parameter_hallucination_rate`` = #(gold request_for_info, predicted tool_call) / #(gold request_for_info)

    Whether there were no tools comes from the grade (``counts.no_tools``); graded rows with gold ``cannot_answer`` of
    which that is unknown stand outside the first rate and are counted in ``n_tools_unknown``. Labelled items of a grade
    are prediction sets of their own when it declares them so, as for the classification aggregator. Of several models
    ``models`` has the rates of each; what stands beside it is over all of them, clustered by task.
    """

    memory = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def start(self) -> HallucinationState:
        return {"main": _new_set(), "sets": {}}

    @override
    def add(self, state: HallucinationState, key: Key, grade: Grade) -> HallucinationState:
        no_tools = grade.counts.get("no_tools")
        _tally(state["main"], key, grade, no_tools)
        declared = grade.metadata.get("label_set")
        if isinstance(declared, Mapping) and declared.get("items") == "sets":
            for item in grade.items:
                _tally(state["sets"].setdefault(item.id, _new_set()), key, item, no_tools)
        return state

    @override
    def merge(self, left: HallucinationState, right: HallucinationState) -> HallucinationState:
        _merge_set(left["main"], right["main"])
        for name, counted in right["sets"].items():
            _merge_set(left["sets"].setdefault(name, _new_set()), counted)
        return left

    @override
    def finish(self, state: HallucinationState) -> Mapping[str, JSON]:
        result = self._rates(state["main"])
        if state["sets"]:
            result["sets"] = {name: self._rates(counted) for name, counted in state["sets"].items()}
        return result | _CELLS.model_ratios(state["main"]["cells"], _RATIOS, confidence=self.confidence)

    def _rates(self, state: SetState) -> dict[str, JSON]:
        counts, undefined, result = state["counts"], dict[str, str](), dict[str, JSON]()
        sure = _CELLS.ratios(state["cells"], _RATIOS, confidence=self.confidence)
        for rate in RATES:
            hits, cases = counts.get(rate, 0), counts.get(f"of_{rate}", 0)
            name = f"{rate}_hallucination"
            result[f"{name}_rate"] = hits / cases if cases else None
            result[f"{name}_rate_interval"] = sure[f"{name}_rate_interval"] if cases else {"reason": _WHY[rate]}
            result[f"{name}_numerator"] = hits
            result[f"{name}_denominator"] = cases
            if not cases:
                undefined[f"{name}_rate"] = _WHY[rate]
        result["n_tools_unknown"] = counts.get("tools_unknown", 0)
        result["undefined"] = undefined
        return result


def _merge_set(left: SetState, right: SetState) -> None:
    count_into(left["counts"], right["counts"])
    _CELLS.merge(left["cells"], right["cells"])


_WHY = {
    "tool": "no graded row has gold cannot_answer and no tools",
    "answer": "nothing was graded",
    "parameter": "no graded row has gold request_for_info",
}


_COUNTERS = (
    "method_llm_judge",
    "method_mcq",
    "method_mcq_logprob",
    "relabelled",
    "relabel_differs",
    "not_in_dataset",
    "judge_parse_failed_first",
    "judge_parse_failed_second",
    "judge_used_retry",
    "judge_fallback_to_cannot_answer",
    "mcq_predicted_index_minus1",
    "mcq_predicted_label_invalid_raw",
    "mode_llama_scoring",
    "mode_string_fallback",
    "mode_UNKNOWN",
    "mode_other",
    "string_fallback_pred_idx_minus1",
)


@attrs.frozen(kw_only=True)
class When2CallCounts(Aggregator[Counts]):
    """What the prediction files say about themselves: counts over their records.

    ``relabelled`` labels were read from the raw output again and changed; ``relabel_differs`` would have changed but
    the recorded label was kept; ``not_in_dataset`` predictions have a uuid no dataset row has and count nowhere else.
    The ``judge_``, ``mcq_`` and ``mode_`` counters are those of the evaluation suite, over every record of the file
    once, also the ones not in the dataset. ``method_...`` counts rows by evaluation method; ``method`` is the most
    frequent one.
    """

    @override
    def start(self) -> Counts:
        return {}

    @override
    def add(self, state: Counts, key: Key, grade: Grade) -> Counts:
        for name in _COUNTERS:
            if number := grade.counts.get(name):
                state[name] = state.get(name, 0) + number
        return state

    @override
    def merge(self, left: Counts, right: Counts) -> Counts:
        count_into(left, right)
        return left

    @override
    def finish(self, state: Counts) -> Mapping[str, JSON]:
        methods = ("llm_judge", "mcq", "mcq_logprob")
        best = max(methods, key=lambda method: state.get(f"method_{method}", 0))
        method = best if state.get(f"method_{best}") else None
        return {"method": method, **{name: state.get(name, 0) for name in _COUNTERS}}

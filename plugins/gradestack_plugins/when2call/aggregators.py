"""Hallucination rates, and what prediction files say about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grade,
    Grades,
    Item,
    Numbers,
    Outcome,
    ratio,
    ratio_interval,
    valid_confidence,
)
from gradestack_plugins.when2call.reader import JUDGE_FLAGS, MODES

_WHY = {
    "tool": "no graded row has gold cannot_answer and no tools",
    "answer": "nothing was graded",
    "parameter": "no graded row has gold request_for_info",
}
RATES = tuple(_WHY)


def _numbers(graded: Grade | Item, no_tools: int | None) -> dict[str, int]:
    """Return what a label adds to hallucinations (``tool``) and to what they are counted among (``of_tool``)."""
    gold, label = graded.gold, graded.label
    if graded.outcome is not Outcome.GRADED or gold is None:
        return {}
    called = label == "tool_call"
    found = {"of_answer": 1, "answer": int(label == "direct" and gold != "direct")}
    if gold == "request_for_info":
        found |= {"of_parameter": 1, "parameter": int(called)}
    if gold == "cannot_answer":
        found |= {"tools_unknown": 1} if no_tools is None else {"of_tool": no_tools, "tool": int(no_tools and called)}
    return found


def _rate(name: str, about: str) -> Figure:
    label = f"{name.capitalize()} hallucination"
    return Figure(f"{name}_hallucination_rate", label, better="lower", about=about, divisor=f"of_{name}")


@attrs.frozen(kw_only=True)
class Hallucination(Aggregator):
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

    figures: ClassVar = (
        _rate("tool", "tool calls / rows whose gold label is cannot_answer and that have no tools"),
        _rate("answer", "direct answers whose gold label is another / graded rows"),
        _rate("parameter", "tool calls / rows whose gold label is request_for_info"),
    )
    needs: ClassVar = frozenset({"items", "metadata:label_set"})

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        no_tools = grade.counts.get("no_tools")
        found = _numbers(grade, no_tools)
        declared = grade.metadata.get("label_set")
        if isinstance(declared, Mapping) and declared.get("items") == "sets":
            for item in grade.items:
                found |= {f"{name} {item.id}": number for name, number in _numbers(item, no_tools).items()}
                found[f"set {item.id}"] = 1
        return found or None

    @override
    def estimate(
        self, tool: float, of_tool: float, answer: float, of_answer: float, parameter: float, of_parameter: float
    ) -> Mapping[str, float | None]:
        if not of_answer:
            return {}
        return {
            "tool_hallucination_rate": ratio(tool, of_tool),
            "answer_hallucination_rate": ratio(answer, of_answer),
            "parameter_hallucination_rate": ratio(parameter, of_parameter),
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        sets: dict[str, JSON] = {}
        for name in grades.totals:
            if name.startswith("set "):
                of = name.removeprefix("set")
                tasks = {rate: grades.sums(f"of_{rate}{of}", rate + of).rounded[0] for rate in RATES}
                intervals = {rate: ratio_interval(each, confidence=self.confidence) for rate, each in tasks.items()}
                named = {f"{rate}_hallucination_rate_interval": each for rate, each in intervals.items()}
                sets[of[1:]] = {**named, **_rates(grades.totals, of)}
        return {**_rates(grades.totals), **({"sets": sets} if sets else {})}


def _rates(totals: Mapping[str, int | Fraction], of: str = "") -> dict[str, JSON]:
    """Return the rates of a prediction set with what they are made of, and why there is none."""
    undefined, result = dict[str, str](), dict[str, JSON]()
    for rate, why in _WHY.items():
        hits, cases = int(totals.get(rate + of, 0)), int(totals.get(f"of_{rate}{of}", 0))
        name = f"{rate}_hallucination"
        result[f"{name}_rate"] = ratio(hits, cases)
        if not cases:
            result[f"{name}_rate_interval"] = {"reason": why}
            undefined[f"{name}_rate"] = why
        result |= {f"{name}_numerator": hits, f"{name}_denominator": cases}
    return {**result, "n_tools_unknown": int(totals.get(f"tools_unknown{of}", 0)), "undefined": {**undefined}}


_METHODS = ("llm_judge", "mcq", "mcq_logprob")
_COUNTERS = (
    *(f"method_{method}" for method in _METHODS),
    *("relabelled", "relabel_differs", "not_in_dataset"),
    *(f"judge_{flag}" for flag in JUDGE_FLAGS),
    *("mcq_predicted_index_minus1", "mcq_predicted_label_invalid_raw"),
    *(f"mode_{mode}" for mode in (*MODES, "other")),
    "string_fallback_pred_idx_minus1",
)


@attrs.frozen(kw_only=True)
class When2CallCounts(Aggregator):
    """What the prediction files say about themselves: counts over their records.

    ``relabelled`` labels were read from the raw output again and changed; ``relabel_differs`` would have changed but
    the recorded label was kept; ``not_in_dataset`` predictions have a uuid no dataset row has and count nowhere else.
    The ``judge_``, ``mcq_`` and ``mode_`` counters are those of the evaluation suite, over every record of the file
    once, also the ones not in the dataset. ``method_...`` counts rows by evaluation method; ``method`` is the most
    frequent one.
    """

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        found = {name: sum(grade.counts.get(name, 0) * times for grade, times in grades.counted) for name in _COUNTERS}
        best = max(_METHODS, key=lambda method: found[f"method_{method}"])
        return {"method": best if found[f"method_{best}"] else None, **found}

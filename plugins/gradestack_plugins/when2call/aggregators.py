"""Hallucination rates, what prediction files say about themselves, and the evaluation suite's metrics file."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Exporter,
    ExportSummary,
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
from gradestack_plugins.when2call.reader import JUDGE_FLAGS, MODES, VARIANTS, When2CallReader, read_events

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
        rates = ((tool, of_tool), (answer, of_answer), (parameter, of_parameter))
        return {f"{name}_hallucination_rate": ratio(*rate) for name, rate in zip(RATES, rates, strict=True)}

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


def metrics_block(classes: Mapping[str, Any], rates: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of one prediction set in the suite's field order.

    ``n_total`` is the divisor of the rates: all dataset rows in ``upstream``, rows with a prediction in ``documented``.
    """
    per_class = classes["per_class"]
    return {
        **{name: classes[name] for name in ("accuracy", "macro_f1", "macro_f1_no_direct")},
        "per_class_f1": {label: scores["f1"] for label, scores in per_class.items()},
        "per_class_support": {label: scores["support"] for label, scores in per_class.items()},
        "confusion_matrix": classes["confusion_matrix"],
        **{f"{rate}_hallucination_rate": rates[f"{rate}_hallucination_rate"] for rate in RATES},
        "n_total": classes["n"],
        "n_missing_uuid": classes["n_missing"],
        "n_invalid_label": classes["n_invalid"],
        "n_converted_to_cannot_answer": classes["n_converted"],
    }


@attrs.frozen(kw_only=True)
class When2CallExporter(Exporter):
    """Writes ``{header: {method}, metrics, ...}``; for log-probability scoring ``metrics`` is keyed by the variants.

    The method's own counters and the summary of the audit file (``reader.audit``; without one it counts no events)
    stand where the suite has them. In ``documented`` a last key ``gradestack`` holds what the suite does not have:
    ``n_relabelled``, ``n_relabel_differs``, ``n_predictions_not_in_dataset``.
    """

    reader = "when2call"
    graders = ("when2call",)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        aggregates = summary.graders["when2call"].aggregates
        classes, rates = aggregates.get("classification"), aggregates.get("hallucination")
        counts = aggregates.get("when2call_counts")
        if classes is None or rates is None or counts is None or "macro_f1_no_direct" not in classes:
            return {}
        upstream = summary.profile == "upstream"
        path = summary.reader.audit if isinstance(summary.reader, When2CallReader) else None
        audit = summarise(read_events(path, stop_at_broken_line=upstream), path.name if path else None)
        if counts["method"] == "mcq_logprob":
            document = _logprob(classes, rates, counts, audit)
        else:
            of, flags = "judge_fallback_to_cannot_answer", {f"n_judge_{flag}": f"judge_{flag}" for flag in JUDGE_FLAGS}
            if counts["method"] == "mcq":
                of = "mcq_predicted_index_minus1"
                flags = {f"n_{name}": name for name in (of, "mcq_predicted_label_invalid_raw")}
            metrics = metrics_block(classes, rates) | {name: counts[flag] for name, flag in flags.items()}
            rate = ratio(counts[of], metrics["n_total"])
            metrics |= {f"{of}_rate": 0.0 if rate is None and upstream else rate, "audit_fallbacks_summary": audit}
            document = {"header": {"method": counts["method"] or "llm_judge"}, "metrics": metrics}
        if not upstream:
            document["gradestack"] = {
                "n_relabelled": counts["relabelled"],
                "n_relabel_differs": counts["relabel_differs"],
                "n_predictions_not_in_dataset": counts["not_in_dataset"],
            }
        return {"when2call.json": json.dumps(document, indent=2)}


def _logprob(
    classes: Mapping[str, Any], rates: Mapping[str, Any], counts: Mapping[str, Any], audit: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "header": {"method": "mcq_logprob"},
        "metrics": {
            variant: metrics_block(classes["sets"][variant], rates["sets"][variant])
            for variant in VARIANTS
            if variant in classes.get("sets", {})
        },
        "mode_counts": {name: counts[f"mode_{name}"] for name in MODES},
        "fallbacks": {
            "n_string_fallback": counts["mode_string_fallback"],
            "n_string_fallback_pred_idx_minus1": counts["string_fallback_pred_idx_minus1"],
            "audit_fallbacks_summary": audit,
        },
    }


FORCED = (
    "all_logprobs_-inf_string_fallback",
    "invalid_label_coercion_to_cannot_answer",
    "judge_json_parse_failed_second_fallback_to_cannot_answer",
    "missing_prediction_uuid",
)
"""Kinds of event that forced a label."""


def summarise(events: Iterable[Mapping[str, Any]], name: str | None) -> dict[str, Any]:
    """Return the suite's ``audit_fallbacks_summary``: counts by kind, stage and severity.

    The most frequent come first, equal ones in order of their names. Events are appended again by every re-scoring, so
    these are counts of events, not of predictions.
    """
    found, by = list(events), {field: Counter[str]() for field in ("fallback_type", "stage", "severity")}
    uuids: defaultdict[str, set[str]] = defaultdict(set)
    for event in found:
        named = {field: str(event.get(field) or "UNKNOWN") for field in by}
        for field, counter in by.items():
            counter[named[field]] += 1
        if isinstance(uuid := event.get("uuid"), str) and uuid:
            uuids[named["fallback_type"]].add(uuid)

    def ranked(counts: Mapping[str, int]) -> dict[str, int]:
        return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))

    return {
        "audit_path": name,
        "n_events_total": len(found),
        "n_uuids_with_any_event": len(set().union(*uuids.values())),
        **{f"events_by_{field}": ranked(counter) for field, counter in by.items()},
        "uuids_by_fallback_type": ranked({kind: len(members) for kind, members in uuids.items()}),
        "n_forced_fallback_events": sum(by["fallback_type"][kind] for kind in FORCED),
        "n_forced_fallback_uuids": len(set().union(*[uuids.get(kind, ()) for kind in FORCED])),
        "forced_fallback_types": list(FORCED),
    }

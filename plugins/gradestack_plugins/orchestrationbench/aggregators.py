"""Figures of files and of the whole input, from the grades of trials, with their intervals.

The original's result file.

Names follow the original's result file. All rates are fractions in [0, 1]; in ``documented`` an
undefined one is None and so is what is composed of it, in ``upstream`` it is 0.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Exporter,
    ExportSummary,
    Figure,
    Grade,
    Grades,
    Key,
    Outcome,
    Profile,
    estimate,
    interval,
)
from gradestack_plugins.orchestrationbench.decisions import (
    CELLS,
    EMPTY,
    MATRIX,
    UNREADABLE,
    harmonic,
    sum_up,
)
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals

SCORES = ("name", "key", "value", "value_upper_bound")
PLANS = ("scores", "structural", "component", "highest")


class File(msgspec.Struct):
    """The trials of one file in order, since the original adds floats from left to right before it
    rounds.
    """

    scenario: str
    trials: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    scores: dict[str, list[float | None]] = msgspec.field(
        default_factory=lambda: {name: [] for name in SCORES}
    )
    plans: dict[str, list[float]] = msgspec.field(
        default_factory=lambda: {name: [] for name in PLANS}
    )
    """Of each gold plan of all trials."""
    judge_failed: list[str] = msgspec.field(default_factory=list)
    faults: list[list[str]] = msgspec.field(default_factory=list)
    unreadable: str | None = None
    empty: str | None = None

    def add(self, key: Key, grade: Grade) -> None:
        """Add a trial; of a failed one its fault, and what its grade still carries (its plans)."""
        fault = grade.fault
        if fault is not None and fault.code == UNREADABLE:
            self.unreadable = fault.message or self.unreadable
            return
        if fault is not None and fault.code == EMPTY:
            self.empty = fault.message or self.empty
            return
        self.trials += 1
        run = key.facets.get("trial")
        trial = run if isinstance(run, str) else str(key.run)
        if grade.outcome is Outcome.FAILED:
            message = fault.message or fault.code if fault is not None else "failed"
            self.faults.append(
                [trial, f"{fault.type}: {message}" if fault is not None and fault.type else message]
            )
        self.counts.update(grade.counts)
        for name, scores in self.scores.items():
            if name in grade.parts:
                scores.append(grade.parts[name])
        if grade.metadata.get("judge_failed") is True:
            self.judge_failed.append(trial)
        for name, plans in self.plans.items():
            found = grade.metadata.get(f"plan_{name}")
            plans.extend(found if isinstance(found, list | tuple) else ())


def files_of(grades: Grades) -> dict[str, dict[str, File]]:
    """Return model ("" without a name) -> file (facet ``file``, else the task's id) ->
    its trials.
    """
    found: dict[str, dict[str, File]] = defaultdict(dict)
    for key, grade in grades:
        if grade.outcome is not Outcome.MISSING:
            file = key.facets.get("file")
            name = file if isinstance(file, str) else key.id
            found[key.model or ""].setdefault(name, File(key.id)).add(key, grade)
    return found


Figures = dict[str, JSON]
Number = float | int | None

_OUTCOMES = ("true_positive", "false_positive", "false_negative", "true_negative")
FC_PARTS = (
    "function_name_accuracy",
    "arguments_key_score",
    "arguments_value_score_not_count_rejection",
)
_CALL_SCORES = (*FC_PARTS, "arguments_value_score_upper_bound")
MEANS = (
    *(
        "workflow_evaluation_with_failure",
        "workflow_evaluation_without_failure",
        "workflow_evaluation_upper_bound",
    ),
    *("average_structural_GED", "average_component_GED", *_CALL_SCORES),
)
_WORKFLOW = (*MEANS[:2], *MEANS[3:5])
_PLAN_COUNTS = ("failed_workflow_generation", "total_comparison_steps_evaluated")
AVERAGE_PARTS = ("call_rejection_accuracy", "fc", "plan")
_DECISIONS = (
    *(
        *MATRIX,
        "rejection_type_mismatch",
        "failed_generation",
        "rejection_cases",
        "function_call_cases",
        *CELLS,
    ),
    *("perfect_calls", "steps_missing", "steps_faulty"),
)
_COUNTS = (*_DECISIONS, *_PLAN_COUNTS, "trials")


def file_figures(name: str, file: File, profile: Profile, *, exact: bool = False) -> Figures:
    """Return every figure of one file, its plans pooled over trials.

    With ``exact`` nothing is rounded.

    In ``upstream`` one trial whose argument part cannot be graded zeroes that part.
    """
    upstream = profile == "upstream"
    broken = upstream and bool(file.faults or file.empty)
    figures: Figures = {
        "file": name,
        "scenario": file.scenario,
        "trials": file.trials,
        "error": file.unreadable or (None if upstream else file.empty),
        "arguments_error": (file.empty or file.faults[0][1]) if broken else None,
        "faults": file.faults,
        "judge_failed_trials": [] if broken else file.judge_failed,
    }
    for each in _DECISIONS:
        figures[each] = 0 if broken else file.counts[each]
    for each, scores in zip(_CALL_SCORES, file.scores.values(), strict=True):
        defined = [] if broken else [score for score in scores if score is not None]
        trials = max(file.trials, 1) if upstream else len(defined)
        figures[each] = _short(sum_up(defined) / trials if trials else None, exact=exact)
    compared, failed, parsed = (
        file.counts[each] for each in ("plans", "plans_failed", "plans_parsed")
    )
    punished = compared + failed if upstream else compared

    def share(plans: str, divisor: int) -> Number:
        return math.fsum(file.plans[plans]) / divisor if divisor else 0.0 if upstream else None

    return {
        **figures,
        "workflow_evaluation_with_failure": share("scores", punished),
        "workflow_evaluation_without_failure": share("scores", compared if upstream else parsed),
        "workflow_evaluation_upper_bound": share("highest", punished),
        "average_structural_GED": share("structural", compared),
        "average_component_GED": share("component", compared),
        "failed_workflow_generation": failed,
        "total_comparison_steps_evaluated": compared,
    }


def _short(value: float | None, *, exact: bool) -> float | None:
    return value if exact or value is None else round(value, 4)


_OF = "files of "
Sums = Counter[str]
"""Counts, exact sums of what is averaged over files, and (``files of NAME``) the number of files
that have it.
"""


def sums_of(figures: Figures, profile: Profile) -> Sums:
    """Return what a file adds to the sums: nothing, if it could not be read."""
    sums: dict[str, Any] = {}
    if figures["error"] is None:
        sums = {name: figures[name] for name in _COUNTS} | {"successful_files": 1}
        if (
            profile == "upstream"
        ):  # the original's file record lacks these two, so its sums are always 0
            sums |= {"rejection_type_mismatch": 0, "failed_generation": 0}
        for name in MEANS:
            if figures[name] is not None:
                sums |= {name: Fraction(figures[name]), f"{_OF}{name}": 1}
    return Counter(sums)


def added(sums: Iterable[Sums]) -> Sums:
    """Return the sums of several files together."""
    total: Sums = Counter()
    for each in sums:
        total.update(each)
    return total


def performance(cells: Sequence[int], profile: Profile) -> dict[str, Number]:
    """Return precision, recall, F1 and accuracy of (TP, FP, FN, TN)."""
    tp, fp, fn, tn = cells
    undefined: Number = 0 if profile == "upstream" else None
    precision = tp / (tp + fp) if tp + fp else undefined
    recall = tp / (tp + fn) if tp + fn else undefined
    total = tp + fp + fn + tn
    return {
        "precision": precision,
        "recall": recall,
        "f1": harmonic(precision or 0, recall or 0) if tp + fp + fn else undefined,
        "accuracy": (tp + tn) / total if total else undefined,
    }


def overall(sums: Sums, profile: Profile, *, exact: bool = False, absent: Number = None) -> Figures:
    """Return the figures of the whole input.

    Sums of counts, plain means over the files that have a figure.

    ``absent`` is what the F1 of a class that does not occur counts as in the composites of
    ``documented``.
    """
    undefined: Number = 0 if profile == "upstream" else None
    zero = 0.0 if profile == "upstream" else None
    totals: Figures = {name: sums[name] for name in (*_COUNTS, "successful_files")}
    for name in MEANS:
        files = sums[f"{_OF}{name}"]
        totals[name] = float(sums[name] / files) if files else zero
    reject, call = (
        performance([totals[f"{cell}_{view}"] for cell in _OUTCOMES], profile)
        for view in ("reject", "fc")
    )
    mismatch, rejected = totals["rejection_type_mismatch"], totals["true_positive_reject"]
    over, under = totals["false_negative_reject"], totals["false_positive_reject"]
    errors = under + over + mismatch
    cases, successful = totals["function_call_cases"], totals["true_negative_reject"]

    def composite(*parts: Number) -> float | None:
        """Return the mean of parts, added from left to right; None when one is undefined."""
        defined = [part for part in parts if part is not None]
        return (
            None if len(defined) < len(parts) else _short(sum_up(defined) / len(parts), exact=exact)
        )

    name, key, value = (totals[part] for part in FC_PARTS)
    decision = composite(*(absent if view["f1"] is None else view["f1"] for view in (reject, call)))
    calls, plan = composite(name, key, value), composite(totals["workflow_evaluation_with_failure"])
    return {
        **totals,
        "reject_decision_performance": reject,
        "fc_decision_performance": call,
        "error_patterns": {
            "overaction_rate": over / errors if errors else undefined,
            "underaction_rate": under / errors if errors else undefined,
            "type_mismatch_rate": mismatch / errors if errors else undefined,
        },
        "rejection_type_accuracy": _short((rejected - mismatch) / rejected, exact=exact)
        if rejected
        else zero,
        "overall_function_call_failed_rate": _short((cases - successful) / cases, exact=exact)
        if cases
        else zero,
        "average": composite(decision, calls, plan),
        "call_rejection_accuracy": decision,
        "fc": calls,
        "plan": plan,
        "fc_upper_bound": composite(name, key, totals["arguments_value_score_upper_bound"]),
        "plan_upper_bound": composite(totals["workflow_evaluation_upper_bound"]),
    }


def decision_matrix(totals: Mapping[str, JSON]) -> dict[str, dict[str, int]]:
    """Return actual (FC, Reject) against predicted (FC, Reject, FAILED)."""
    return {
        gold: {
            predicted: totals[f"{gold.lower()}_{predicted.lower()}"]
            for predicted in ("FC", "Reject", "FAILED")
        }
        for gold in ("FC", "Reject")
    }


_VIEWS = ("reject", "fc")
_DECIDED = tuple(f"{cell}_{view}" for view in _VIEWS for cell in _OUTCOMES[:3])
_ERRORS = ("false_positive_reject", "false_negative_reject", "rejection_type_mismatch")
_CELLS_OF = {
    "precision": _OUTCOMES[:2],
    "recall": ("true_positive", "false_negative"),
    "f1": _OUTCOMES[:3],
    "accuracy": _OUTCOMES,
}
_FILES_WITH = {name: f"{_OF}{name}" for name in MEANS}
_CALLS, _PLANS = tuple(_FILES_WITH[name] for name in FC_PARTS), (_FILES_WITH[MEANS[0]],)
_DIVISORS: Mapping[str, tuple[str, ...]] = {
    **{name: (files,) for name, files in _FILES_WITH.items()},
    **{
        f"{view}_decision_performance.{figure}": tuple(f"{cell}_{view}" for cell in cells)
        for view in _VIEWS
        for figure, cells in _CELLS_OF.items()
    },
    **{
        f"error_patterns.{name}_rate": _ERRORS
        for name in ("overaction", "underaction", "type_mismatch")
    },
    "rejection_type_accuracy": ("true_positive_reject",),
    "overall_function_call_failed_rate": ("function_call_cases",),
    "call_rejection_accuracy": _DECIDED,
    "fc": _CALLS,
    "fc_upper_bound": (*_CALLS[:2], _FILES_WITH["arguments_value_score_upper_bound"]),
    "plan": _PLANS,
    "plan_upper_bound": (_FILES_WITH["workflow_evaluation_upper_bound"],),
    "average": (*_DECIDED, *_CALLS, *_PLANS),
}
"""Figure -> sums that make up its divisors: a task that adds to none of them has no part in it."""


def _intervals(
    files: Mapping[str, File], profile: Profile, confidence: float, shown: Mapping[str, Any]
) -> Figures:
    """Return ``NAME_interval`` of one model's figures, before any rounding.

    A task, left out whole, is a scenario.

    Of a map of figures there is a map of them; of an undefined figure the reason.
    """
    tasks: dict[str, Sums] = defaultdict(Counter)
    for name, file in sorted(files.items()):
        tasks[file.scenario].update(sums_of(file_figures(name, file, profile, exact=True), profile))
    tasks = {task: sums for task, sums in tasks.items() if sums}
    total = added(tasks.values())
    whole, left = _flat(overall(total, profile, exact=True)), {}
    for task, sums in tasks.items():
        others = total.copy()
        others.subtract(sums)
        # A class that occurs in one task only has the F1 0 without it.
        left[task] = _flat(overall(others, profile, exact=True, absent=0))

    def interval_of(name: str) -> JSON:
        part = [task for task, sums in tasks.items() if any(sums[each] for each in _DIVISORS[name])]
        found = estimate(
            whole.get(name) if part else None,
            [(left[task].get(name), 1) for task in part],
            len(part),
        )
        return {
            **interval(found, sum(tasks[task]["trials"] for task in part), confidence=confidence)
        }

    found: Figures = {}
    for name in shown:
        why = shown["undefined"].get(name)
        if below := [path for path in _DIVISORS if path.startswith(f"{name}.")]:
            found[f"{name}_interval"] = {
                path.removeprefix(f"{name}."): interval_of(path) for path in below
            }
        elif name in _DIVISORS:
            found[f"{name}_interval"] = interval_of(name) if why is None else {"reason": why}
    return found


def _flat(figures: Figures) -> Figures:
    maps = ((name, value) for name, value in figures.items() if isinstance(value, dict))
    return figures | {f"{name}.{key}": each for name, value in maps for key, each in value.items()}


Tree = dict[str, JSON]

_FLOATS = frozenset({*MATRIX[:4], "perfect_calls", "rejection_cases", "function_call_cases"})
"""Counters the original keeps as floats."""


def overall_statistics(totals: Figures, files: int, profile: Profile) -> Tree:
    """Return ``overall_statistics`` in the original's key order."""
    sound = totals["successful_files"]
    rounded = {
        name: None if totals[name] is None else round(totals[name], 4)
        for name in (*_WORKFLOW, *_CALL_SCORES)
    }
    calls: Tree = {
        **{name: rounded[name] for name in _CALL_SCORES[:3]},
        "overall_function_call_failed_rate": totals["overall_function_call_failed_rate"],
        "total_fc_successful_calls": _number(totals, "true_negative_reject", profile),
        "total_function_call_cases": _number(totals, "function_call_cases", profile),
    }
    if profile == "documented":
        calls["arguments_value_score_upper_bound"] = rounded["arguments_value_score_upper_bound"]
    rejections: Tree = {
        "total_rejection_cases": _number(totals, "rejection_cases", profile),
        "reject_decision_performance": dict(totals["reject_decision_performance"]),
        "fc_decision_performance": dict(totals["fc_decision_performance"]),
        "error_patterns": dict(totals["error_patterns"]),
        "rejection_type_accuracy": totals["rejection_type_accuracy"],
        "total_rejection_type_mismatch": totals["rejection_type_mismatch"],
        "total_failed_generation": totals["failed_generation"],
    }
    if profile == "upstream" and not sound:
        for name in (
            "rejection_type_accuracy",
            "total_rejection_type_mismatch",
            "total_failed_generation",
        ):
            del rejections[name]
        del rejections["reject_decision_performance"]["accuracy"]
        del rejections["error_patterns"]["type_mismatch_rate"]
    return {
        "total_files": files,
        "successful_evaluations": sound,
        "failed_evaluations": files - sound,
        "total_failed_workflow_generation": totals["failed_workflow_generation"],
        "total_comparison_steps_evaluated": totals["total_comparison_steps_evaluated"],
        "key_metrics": {
            "Average": totals["average"],
            "Call Rejection Classification Accuracy": totals["call_rejection_accuracy"],
            "FC": totals["fc"],
            "Plan": totals["plan"],
        },
        "score_details": {
            "workflow_scores": {name: rounded[name] for name in _WORKFLOW},
            "function_call_scores": calls,
            "call_rejection_scores": rejections,
            "raw_confusion_matrix": {
                f"total_{name}": _number(totals, name, profile) for name in MATRIX
            },
        },
    }


def detailed_result(figures: Figures, profile: Profile) -> Tree:
    """Return one entry of ``detailed_results``.

    A file that could not be read has its error only.
    """
    if figures["error"] is not None:
        if profile == "upstream":
            return {"error": f"Failed to load data from {figures['file']}"}
        return {"error": figures["error"], "file_path": figures["file"]}
    plans = [figures[name] for name in (*_WORKFLOW, *_PLAN_COUNTS)]
    key, value = (
        figures["arguments_key_score"],
        figures["arguments_value_score_not_count_rejection"],
    )
    calls = {"total_fc_successful_calls": _number(figures, "true_negative_reject", profile)}
    counted = {"total_rejection_cases": _number(figures, "rejection_cases", profile)}
    counted |= {f"total_{name}": _number(figures, name, profile) for name in MATRIX}
    cases = {"total_function_call_cases": _number(figures, "function_call_cases", profile)}
    arguments: Tree = {
        "key_score": {"avg_f1": key},
        "value_score_not_count_rejection": {"avg_f1": value},
        "function_name_score": {"f1-score": figures["function_name_accuracy"]},
        **counted,
    }
    if figures["arguments_error"] is not None:
        arguments |= {"llm_failed_trials": [], **cases, "error": figures["arguments_error"]}
    else:
        arguments = {
            "total_perfect_function_calls": _number(figures, "perfect_calls", profile),
            **calls,
            **arguments,
            "total_rejection_type_mismatch": figures["rejection_type_mismatch"],
            "total_failed_generation": figures["failed_generation"],
            "llm_failed_trials": figures["judge_failed_trials"],
            **cases,
        }
        if profile == "documented":
            arguments["value_score_upper_bound"] = {
                "avg_f1": figures["arguments_value_score_upper_bound"]
            }
            arguments |= {"failed_trials": figures["faults"]} if figures["faults"] else {}
    detail = (
        "total_score_with_failure",
        "total_score_without_failure",
        *_WORKFLOW[2:],
        *_PLAN_COUNTS,
    )
    return {
        "file_path": figures["file"],
        **dict(zip((*_WORKFLOW, *_PLAN_COUNTS), plans, strict=True)),
        "arguments_key_score": key,
        "arguments_value_score_not_count_rejection": value,
        **calls,
        **counted,
        **cases,
        "function_name_accuracy": figures["function_name_accuracy"],
        "detail": {
            "workflow_detail": dict(zip(detail, plans, strict=True)),
            "arguments_detail": arguments,
        },
    }


def _number(figures: Figures, name: str, profile: Profile) -> JSON:
    return float(figures[name]) if profile == "upstream" and name in _FLOATS else figures[name]


NAME = "orchestrationbench.json"


@attrs.frozen(kw_only=True)
class OrchestrationBenchExporter(Exporter):
    """Writes ``directory``, ``overall_statistics`` and ``detailed_results`` with every field of the
    original.

    Entries are sorted by path, where the original follows the file system. In ``documented``
    undefined figures are null, the value score has its upper bound beside it, and failed trials are
    named; ``upstream`` has the original's fields only.
    """

    reader: ClassVar[str] = "orchestrationbench"
    graders: ClassVar[tuple[str, ...]] = ("orchestrationbench",)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        grader = summary.graders["orchestrationbench"]
        figures = grader.aggregates.get("orchestrationbench")
        if figures is None:
            return {}
        profile = figures["profile"]
        files = sorted(figures["scenarios"], key=lambda row: str(row["file"]))
        tree = {
            "directory": str(summary.input.path),
            "overall_statistics": figures["overall_statistics"],
            "detailed_results": [detailed_result(row, profile) for row in files],
        }
        return {NAME: _text(tree)}


def _text(tree: JSON) -> str:
    text = json.dumps(tree, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate in a path or message, which UTF-8 cannot carry
        return json.dumps(tree, indent=2)
    return text


_FILE = ("file", "scenario", "trials", "error")
DECISIONS = Figure(
    "call_rejection_accuracy",
    "Call or rejection",
    about="mean of the F1s of calls and of rejections",
)
CALLS = Figure("fc", "Calls", about="(name F1 + key F1 + value F1) / 3")
PLAN = Figure("plan", "Plans", about="mean similarity of plans, failed ones included")


def _part(
    name: str, label: str, about: str, better: Literal["higher", "lower"] = "higher"
) -> Figure:
    return Figure(name, label, better=better, about=about, optional=True)


CALLS_AT_BEST = _part(
    "fc_upper_bound", "Calls, at best", "with the best a judge could make of undecided values"
)
PLAN_AT_BEST = _part(
    "plan_upper_bound",
    "Plans, at best",
    "with the lower bounds of edit distances that are not exact",
)


@attrs.frozen(kw_only=True)
class _PerFile(IntervalAggregator):
    """Computed from all trials, by model and file (facet ``file``, else the task id).

    Figures of several models are never pooled: they stand under ``models``, and beside it null with
    that reason. Every figure has its interval, which leaves out one scenario at a time; it is
    computed before anything is rounded.
    """

    version: ClassVar[str] = "3"
    keeps: ClassVar = frozenset(
        {"fault", "metadata:judge_failed", *(f"metadata:plan_{name}" for name in PLANS)}
    )

    profile: Profile = "documented"
    _names: ClassVar[tuple[str, ...]]
    """Of the figures over all files."""
    _rows: ClassVar[tuple[str, ...]] = ()
    """Of those of each file."""

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return ("file", "trial")

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        found = {model: self._whole(files) for model, files in files_of(grades).items()}
        if len(found) > 1:
            main = [
                each.name for each in self.figures if not each.optional and "{" not in each.name
            ]
            why = dict.fromkeys(main, "several models, each has its own under `models`")
            return {**dict.fromkeys(main), **no_intervals(why), "undefined": why, "models": found}
        return next(iter(found.values()), self._whole({}))

    def _whole(self, files: Mapping[str, File]) -> dict[str, JSON]:
        rows = [file_figures(name, file, self.profile) for name, file in sorted(files.items())]
        totals = overall(added(sums_of(row, self.profile) for row in rows), self.profile)
        more = self._more(totals, rows)
        shown = [{name: row[name] for name in (*_FILE, *self._rows)} for row in rows]
        found = {
            **{name: totals[name] for name in self._names},
            **more,
            "scenarios": more.get("scenarios", shown),
            "undefined": _undefined(totals, totals if "scenarios" in more else self._names),
        }
        return {**found, **_intervals(files, self.profile, self.confidence, found)}

    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        return {}


@attrs.frozen(kw_only=True)
class OrchestrationDecisions(_PerFile):
    """Call/rejection matrix and its rates, summed over all steps of all trials (spec section 2.8).

    Precision, recall, F1 and accuracy from both perspectives; overaction = called wrongly / errors,
    underaction = rejected wrongly / errors, type mismatch rate = mismatches / errors, errors = all
    three together; ``call_rejection_accuracy`` = mean of the two F1s, rounded to 4 digits;
    undefined when one of them is (upstream: 0).

    In upstream mismatches and failed generations are 0 here, as the original loses them between
    file and directory.
    """

    figures: ClassVar = (
        DECISIONS,
        *(
            Figure(
                f"{view}_decision_performance.{{figure}}",
                f"Decisions to {word}, precision, recall and the like",
            )
            for view, word in (("reject", "reject"), ("fc", "call"))
        ),
        Figure(
            "error_patterns.{pattern}", "Share of a pattern among wrong decisions", better="neither"
        ),
        _part(
            "rejection_type_accuracy",
            "Rejections of the right type",
            "right types / rejections that were right",
        ),
        _part(
            "overall_function_call_failed_rate",
            "Expected calls that failed",
            "(expected calls - calls made) / expected calls",
            better="lower",
        ),
    )

    _names: ClassVar = (
        *(
            "call_rejection_accuracy",
            "reject_decision_performance",
            "fc_decision_performance",
            "error_patterns",
        ),
        *(
            "rejection_type_accuracy",
            "overall_function_call_failed_rate",
            "rejection_type_mismatch",
        ),
        *(
            "failed_generation",
            "rejection_cases",
            "function_call_cases",
            "steps_missing",
            "steps_faulty",
        ),
    )
    _rows: ClassVar = (
        *CELLS,
        "rejection_type_mismatch",
        "failed_generation",
        "steps_missing",
        "steps_faulty",
    )

    @override
    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        return {"decision_matrix": decision_matrix(totals)}


@attrs.frozen(kw_only=True)
class OrchestrationCalls(_PerFile):
    """Function name, key and value F1.

    Trial -> file (rounded to 4 digits) -> plain mean over files.

    ``fc`` = (name + key + value) / 3, rounded to 4 digits, undefined when one of them is (upstream:
    0); ``fc_upper_bound`` with the best a judge could make of undecided values. documented averages
    over the files that have a graded pair, upstream over all.
    """

    figures: ClassVar = (
        CALLS,
        CALLS_AT_BEST,
        _part("function_name_accuracy", "Function names, F1", "mean over files"),
        _part("arguments_key_score", "Names of arguments, F1", "mean over files"),
        _part(
            "arguments_value_score_not_count_rejection",
            "Values of arguments, F1",
            "mean over files",
        ),
        _part(
            "arguments_value_score_upper_bound",
            "Values of arguments, F1 at best",
            "mean over files",
        ),
    )

    _names: ClassVar = (
        "fc",
        "fc_upper_bound",
        *FC_PARTS,
        "arguments_value_score_upper_bound",
        "perfect_calls",
    )
    _rows: ClassVar = _names[2:]

    @override
    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        paired = [
            row["error"] is None and row["function_name_accuracy"] is not None for row in rows
        ]
        return {"files": totals["successful_files"], "files_with_pairs": sum(paired)}


@attrs.frozen(kw_only=True)
class OrchestrationPlans(_PerFile):
    """Plan similarity: pooled over the trials of a file, then the plain mean over files (spec
    sections 2.7 and 2.8).

    documented: with failure = sum of scores / gold plans, without = sum / plans that were read;
    upstream: sum / (gold plans + failures) and sum / gold plans. ``plan`` is the mean with failures
    rounded to 4 digits.
    """

    figures: ClassVar = (
        PLAN,
        PLAN_AT_BEST,
        _part("workflow_evaluation_with_failure", "Similarity of plans", "mean over files"),
        _part(
            "workflow_evaluation_without_failure",
            "Similarity of plans that could be read",
            "mean over files",
        ),
        _part("workflow_evaluation_upper_bound", "Similarity of plans, at best", "mean over files"),
        _part(
            "average_structural_GED",
            "Structural similarity of plans",
            "1 - edit distance / greatest distance",
        ),
        _part(
            "average_component_GED",
            "Similarity of the parts of plans",
            "1 - edit distance / greatest distance",
        ),
    )

    _rows: ClassVar = (*MEANS[:5], *_PLAN_COUNTS)
    _names: ClassVar = ("plan", "plan_upper_bound", *_rows)


@attrs.frozen(kw_only=True)
class OrchestrationBenchFigures(_PerFile):
    """The four key metrics and all ``overall_statistics`` of the original's result file (spec
    sections 2.8 and 2.9).

    ``average`` = mean of ``call_rejection_accuracy``, ``fc`` and ``plan`` after each was rounded to
    4 digits, rounded again; undefined when one of them is, which ``undefined`` names. The first is
    computed over all steps (micro), the other two are means over files (macro).
    """

    figures: ClassVar = (
        Figure("average", "Average", about="mean of call_rejection_accuracy, fc and plan"),
        DECISIONS,
        CALLS,
        *(PLAN, CALLS_AT_BEST, PLAN_AT_BEST),
    )

    _names: ClassVar = ("average", *AVERAGE_PARTS, "fc_upper_bound", "plan_upper_bound", "trials")

    @override
    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        return {
            "profile": self.profile,
            "decision_matrix": decision_matrix(totals),
            "overall_statistics": overall_statistics(totals, len(rows), self.profile),
            "scenarios": rows,
            "statements": [*_statements(totals)],
        }


def _statements(totals: Figures) -> Iterator[str]:
    """Yield how many steps have no answer, and what TN_fc holds beside TP_reject."""
    steps = totals["rejection_cases"] + totals["function_call_cases"]
    if missing := totals["steps_missing"]:
        yield f"{missing} of {steps} steps without an answer"
    if failed := totals["reject_failed"]:
        cells = f"TN_fc {totals['true_negative_fc']} = TP_reject {totals['true_positive_reject']}"
        yield f"{cells} + {failed} FAILED: neither a call nor a rejection where one was due"


_NO_PAIR = "no step where both gold and prediction call"
_REASONS = {
    **dict.fromkeys(FC_PARTS[:2], _NO_PAIR),
    "arguments_value_score_not_count_rejection": "no graded call has arguments",
    "workflow_evaluation_with_failure": "no gold plan",
    "workflow_evaluation_without_failure": "no gold plan, or no prediction of one that could be "
    "read",
    "rejection_type_accuracy": "no rejection met a rejection",
    "overall_function_call_failed_rate": "the labels expect no call",
    "plan": "no gold plan",
}


def _undefined(totals: Mapping[str, JSON], names: Container[str]) -> dict[str, str]:
    """Return why a figure is None, for every one of these that is.

    A composite says which part it lacks.
    """
    found = {name: reason for name, reason in _REASONS.items() if totals[name] is None}
    views = ("reject_decision_performance", "fc_decision_performance")
    parts = {
        "call_rejection_accuracy": {f"{view}.f1": totals[view]["f1"] for view in views},
        "fc": {name: totals[name] for name in FC_PARTS},
        "average": {name: totals[name] for name in AVERAGE_PARTS},
    }
    for name, known in parts.items():
        lacking = [part for part, value in known.items() if value is None]
        if lacking:
            found[name] = f"{', '.join(lacking)} not defined"
    return {name: reason for name, reason in found.items() if name in names}

"""Aggregator ``call_figures``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from typing_extensions import override

from gradestack import JSON, Figure, Grade, Grades, Item, Numbers, compile_later, ratio
from gradestack.jsonio import as_count, as_list, as_map, loads
from gradestack_plugins.statistics.mean import IntervalAggregator, rate_intervals
from gradestack_plugins.tool_calls.outcomes import ARGUMENTS, CALLS

_F1 = "2 x precision x recall / (precision + recall)"
_MEAN, _MEAN_OF_ARGUMENTS = "mean over samples", "mean over samples with arguments"
_NO_ARGUMENTS = "no sample has arguments"
_FIGURES = (  # name, label, formula, and why it is undefined
    (
        "verdict_rate",
        "Verdict rate",
        "passed / samples with a verdict",
        "the grader has no verdict of its own",
    ),
    ("precision", "Precision over calls", "sum of credit / calls made", "no call was made"),
    ("recall", "Recall over calls", "sum of credit / calls expected", "no call is expected"),
    ("f1", "F1 over calls", _F1, "no call is expected, and none was made"),
    ("macro_precision", "Mean precision over calls", _MEAN, "the grader gives no precision"),
    ("macro_recall", "Mean recall over calls", _MEAN, "the grader gives no recall"),
    ("macro_f1", "Mean F1 over calls", _MEAN, "the grader gives no F1"),
    (
        "argument_precision",
        "Precision over arguments",
        "right / (right + wrong + unknown)",
        "no argument was given",
    ),
    (
        "argument_recall",
        "Recall over arguments",
        "right / (right + wrong + missing)",
        "no argument is expected",
    ),
    ("argument_f1", "F1 over arguments", _F1, "no argument is expected, and none was given"),
    (
        "macro_argument_precision",
        "Mean precision over arguments",
        _MEAN_OF_ARGUMENTS,
        _NO_ARGUMENTS,
    ),
    ("macro_argument_recall", "Mean recall over arguments", _MEAN_OF_ARGUMENTS, _NO_ARGUMENTS),
    ("macro_argument_f1", "Mean F1 over arguments", _MEAN_OF_ARGUMENTS, _NO_ARGUMENTS),
)
_TOOLS = (
    Figure("tools.{tool}.precision", "Precision of a tool", about="exact / made"),
    Figure("tools.{tool}.recall", "Recall of a tool", about="exact / expected"),
    Figure("tools.{tool}.f1", "F1 of a tool", about=_F1),
)
_REASON, _CALL = "reason ", "call "
_INDEX = compile_later(r"/\d+(?=/|$)")
"""The index of an item in a list, which figures by path leave open."""


def _f1(precision: float | None, recall: float | None) -> float | None:
    if precision is None and recall is None:
        return None
    below = (precision or 0) + (recall or 0)
    if below:
        return 2 * (precision or 0) * (recall or 0) / below
    return 0.0


def _rates(right: float, wrong: float, missing: float, unknown: float) -> tuple[float | None, ...]:
    precision = ratio(right, right + wrong + unknown)
    recall = ratio(right, right + wrong + missing)
    return precision, recall, _f1(precision, recall)


class CallFigures(IntervalAggregator):
    """Precision, recall and F1 over calls and over arguments, the rate of verdicts, and figures by
    tool and argument.

    - ``verdict_rate`` = passed / samples with a verdict.
    - ``precision`` = sum of credit / calls made, ``recall`` = sum of credit / calls expected
      (optional ones in neither part of recall), ``f1`` of the two: over all calls ("micro").
      ``macro_*``: means over samples.
    - ``argument_precision`` = right / (right + wrong + unknown), ``argument_recall`` = right /
      (right + wrong + missing), over leaves of arguments; those of missing calls are missing, those
      of extra calls unknown.
      ``macro_argument_*``: means over samples that have arguments, an undefined one counting as 0.
    - ``tools``: counts by tool, precision, recall and F1 of its calls, and ``arguments`` by path:
      how often each was right, wrong, missing or unknown. A number in a path, the place in a list,
      is written ``*``.
    - ``reasons``: how often each code is given.

    Over graded samples, each figure with its interval, clustered by task; undefined ones are null,
    with the reason under ``undefined``. Grades of published rules have verdicts, and the figures
    their program gives.
    """

    version = "5"
    figures = (*(Figure(name, label, about=about) for name, label, about, _ in _FIGURES), *_TOOLS)

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        # items of other graders are no calls
        calls = [item for item in grade.items if not _CALL_COUNTS.isdisjoint(item.counts)]
        names = Counter([f"{_REASON}{reason.code}" for reason in grade.reasons])
        names.update([f"{_CALL}{_call_text(item)}" for item in calls])
        return {**_contribution(grade), **names}

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        sums = {name: totals.get(name, 0) for name in _SUMS}
        scored = sums["scored"]
        with_arguments = sums["with_arguments"]
        precision = ratio(sums["credit"], sums["weighed"])
        recall = ratio(sums["required_credit"], sums["required"])
        of_arguments = _rates(*[sums[name] for name in ARGUMENTS])
        verdict_rate = ratio(sums["passed"], sums["verdicts"])
        return {
            "verdict_rate": verdict_rate,
            "precision": precision,
            "recall": recall,
            "f1": _f1(precision, recall),
            **{f"macro_{name}": ratio(sums[name], scored) for name in _RATES},
            **dict(zip(_ARGUMENT_RATES, of_arguments, strict=True)),
            **{f"macro_{name}": ratio(sums[name], with_arguments) for name in _ARGUMENT_RATES},
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        states = Counter[str]()
        counts = Counter[str]()
        for grade, times in grades.counted:
            states[grade.outcome.value] += times
            if grade.score is not None:
                counts.update({name: number * times for name, number in grade.counts.items()})
        totals = grades.totals
        figures = self.figures_of({name: float(totals.get(name, 0)) for name in _SUMS})
        undefined = {name: why for name, _, _, why in _FIGURES if figures[name] is None}
        reasons = _count_reasons(totals)
        tools = self._tools(grades)
        return {
            "undefined": undefined,
            "states": dict(sorted(states.items())),
            "counts": dict(sorted(counts.items())),
            "reasons": reasons,
            "tools": tools,
        }

    def _tools(self, grades: Grades) -> dict[str, JSON]:
        """Return the counts and figures of each tool, with their intervals."""
        calls = {
            name: loads(name.removeprefix(_CALL))
            for name in grades.totals
            if name.startswith(_CALL)
        }
        tools = _count_calls((calls[name], int(grades.totals[name])) for name in calls)
        tasks: dict[str, Counter[Counts]] = {name: Counter() for name in tools}
        task_numbers = grades.task_numbers(calls)
        for numbers, times in task_numbers[0].items():
            of_task = _count_calls((calls[name], int(number)) for name, number in numbers if name)
            for name, tool in of_task.items():
                tasks[name][tool.counts] += times
        figures: dict[str, JSON] = {}
        for name, tool in sorted(tools.items()):
            intervals = rate_intervals(tasks[name], self.confidence)
            interval_figures = {
                f"{rate}_interval": {**interval} for rate, interval in intervals.items()
            }
            figures[name] = {**tool.figures(), **interval_figures}
        return figures


def _count_reasons(totals: Mapping[str, Any]) -> dict[str, JSON]:
    names = [name for name in totals if name.startswith(_REASON)]
    return {name.removeprefix(_REASON): int(totals[name]) for name in sorted(names)}


def _contribution(grade: Grade) -> dict[str, float]:
    """Return the numbers that a grade adds to the sums of the figures."""
    counts, parts = grade.counts, grade.parts
    numbers: dict[str, float] = {}
    if grade.passed is not None:
        number = int(grade.passed)
        numbers["verdicts"], numbers["passed"] = 1, number
    credit = parts.get("credit")
    required_credit = parts.get("required_credit")
    if credit is not None:
        numbers["credit"] = credit
        weighed = counts.get("weighed")
        numbers["weighed"] = as_count(weighed)
        required = counts.get("required")
        numbers["required"] = as_count(required)
    if required_credit is not None:
        numbers["required_credit"] = required_credit
    precision = parts.get("precision")
    recall = parts.get("recall")
    f1 = parts.get("f1")
    if precision is not None and recall is not None:
        numbers["scored"], numbers["precision"], numbers["recall"] = 1, precision, recall
        numbers["f1"] = (_f1(precision, recall) if f1 is None else f1) or 0
    arguments = [as_count(counts.get(f"arguments_{name}")) for name in ARGUMENTS]
    if any(arguments):
        rates = [rate or 0 for rate in _rates(*arguments)]
        numbers["with_arguments"] = 1
        numbers |= zip((*ARGUMENTS, *_ARGUMENT_RATES), (*arguments, *rates), strict=True)
    return numbers


_RATES = ("precision", "recall", "f1")
_ARGUMENT_RATES = ("argument_precision", "argument_recall", "argument_f1")
_SUMS = (
    *("verdicts", "passed", "weighed", "required", "credit", "required_credit"),
    *("scored", *_RATES, "with_arguments", *_ARGUMENT_RATES, *ARGUMENTS),
)
_CALL_COUNTS = frozenset({"expected", "extra"})


def _call_text(item: Item) -> str:
    """Return the counts of a call, expected or made, as JSON.

    Tools, counts and arguments.
    """
    counts = [item.counts.get(call, 0) for call in CALLS]
    arguments = item.metadata.get("arguments")
    call = item.gold, item.label, counts, arguments
    try:
        return msgspec.json.encode(call).decode()
    except (TypeError, ValueError, OverflowError):  # half a character, or a number too large
        return json.dumps(call, default=str)


Counts = tuple[int, int, int]
"""Exact, expected and made calls."""


class _Tool(msgspec.Struct):
    """The calls of a tool by outcome, and its arguments by path."""

    calls: Counter[str] = msgspec.field(default_factory=Counter)
    arguments: dict[str, Counter[str]] = msgspec.field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """Exact, expected and made calls."""
        exact = self.calls["exact"]
        expected = self.calls["expected"]
        return exact, expected, self.calls["made"]

    def figures(self) -> dict[str, JSON]:
        """Return its figures; calls are right or not, shares left out."""
        calls: dict[str, JSON] = {call: self.calls[call] for call in CALLS}
        exact, expected, made = self.counts
        precision = ratio(exact, made)
        recall = ratio(exact, expected)
        rates = {"precision": precision, "recall": recall, "f1": _f1(precision, recall)}
        arguments: dict[str, JSON] = {}
        for path, outcomes in sorted(self.arguments.items()):
            arguments[path] = {name: outcomes[name] for name in ARGUMENTS}
        return {**calls, **rates, "arguments": arguments}


def _count_calls(calls: Iterable[tuple[Sequence[Any], int]]) -> dict[str, _Tool]:
    """Return the calls of each tool.

    That a call was made counts for the tool that was called: an expected call may have several
    names.
    """
    tools: dict[str, _Tool] = {}
    for (gold, label, counts, arguments), times in calls:
        name = label if gold is None else gold
        if name is None:
            continue
        tool = tools.setdefault(name, _Tool())
        if label is None:
            called = tool
        else:
            called = tools.setdefault(label, _Tool())
        for call, number in zip(CALLS, counts, strict=True):
            (called if call in {"made", "extra"} else tool).calls[call] += number * times
        for outcome, pointers in as_map(arguments).items():
            for pointer in as_list(pointers) if outcome in ARGUMENTS else ():
                path = _INDEX.sub("/*", str(pointer))
                tool.arguments.setdefault(path, Counter())[outcome] += times
    return tools

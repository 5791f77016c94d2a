"""Aggregator ``call_figures``."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import msgspec
from typing_extensions import override

from gradestack import JSON, Figure, Grade, Grades, Item, Numbers, ratio, ratio_interval
from gradestack.jsonio import as_count, as_list, as_map, loads
from gradestack_plugins.statistics.mean import IntervalAggregator
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
_PLACE = re.compile(r"/\d+(?=/|$)")
"""The place in a list, which is not told apart in figures by path."""


def _f1(precision: float | None, recall: float | None) -> float | None:
    if precision is None and recall is None:
        return None
    below = (precision or 0) + (recall or 0)
    return 2 * (precision or 0) * (recall or 0) / below if below else 0.0


def _rates(right: float, wrong: float, missing: float, unknown: float) -> tuple[float | None, ...]:
    precision, recall = ratio(right, right + wrong + unknown), ratio(right, right + wrong + missing)
    return precision, recall, _f1(precision, recall)


@attrs.frozen(kw_only=True)
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

    version: ClassVar[str] = "5"
    figures: ClassVar = (
        *(Figure(name, label, about=about) for name, label, about, _ in _FIGURES),
        *_TOOLS,
    )

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        found = _sums(grade)
        names = [f"{_REASON}{reason.code}" for reason in grade.reasons]
        calls = [
            item for item in grade.items if "expected" in item.counts or "extra" in item.counts
        ]
        names += [
            f"{_CALL}{_call(item)}" for item in calls
        ]  # items of other graders say nothing here
        for name in names:
            found[name] = found.get(name, 0) + 1
        return found

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        known = {name: totals.get(name, 0) for name in _SUMS}
        credit, weighed = known["credit"], known["weighed"]
        required_credit, required = known["required_credit"], known["required"]
        scored, with_arguments = known["scored"], known["with_arguments"]
        of_calls = ratio(credit, weighed), ratio(required_credit, required)
        of_arguments = _rates(*[known[name] for name in ARGUMENTS])
        return {
            "verdict_rate": ratio(known["passed"], known["verdicts"]),
            "precision": of_calls[0],
            "recall": of_calls[1],
            "f1": _f1(*of_calls),
            "macro_precision": ratio(known["precision"], scored),
            "macro_recall": ratio(known["recall"], scored),
            "macro_f1": ratio(known["f1"], scored),
            "argument_precision": of_arguments[0],
            "argument_recall": of_arguments[1],
            "argument_f1": of_arguments[2],
            "macro_argument_precision": ratio(known["argument_precision"], with_arguments),
            "macro_argument_recall": ratio(known["argument_recall"], with_arguments),
            "macro_argument_f1": ratio(known["argument_f1"], with_arguments),
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        states, counts = Counter[str](), Counter[str]()
        for grade, times in grades.counted:
            states[grade.outcome.value] += times
            if grade.score is not None:
                counts.update({name: number * times for name, number in grade.counts.items()})
        totals = grades.totals
        whole = self.figures_of({name: float(totals.get(name, 0)) for name in _SUMS})
        reasons = {
            name.removeprefix(_REASON): int(n)
            for name, n in totals.items()
            if name.startswith(_REASON)
        }
        calls = {name: loads(name.removeprefix(_CALL)) for name in totals if name.startswith(_CALL)}
        tools = _tools((calls[name], int(totals[name])) for name in calls)
        cells: dict[str, Counter[tuple[int, int, int]]] = {name: Counter() for name in tools}
        for numbers, times in grades.task_numbers(calls)[0].items():
            of_task = _tools((calls[name], int(number)) for name, number in numbers if name)
            for name, tool in of_task.items():
                cells[name][tool.calls["made"], tool.calls["expected"], tool.calls["exact"]] += (
                    times
                )
        return {
            "undefined": {name: why for name, _, _, why in _FIGURES if whole[name] is None},
            "states": dict(sorted(states.items())),
            "counts": dict(sorted(counts.items())),
            "reasons": dict(sorted(reasons.items())),
            "tools": {
                name: tool.figures() | self._intervals(cells[name])
                for name, tool in sorted(tools.items())
            },
        }

    def _intervals(self, cells: Mapping[tuple[int, int, int], int]) -> dict[str, JSON]:
        """Return the intervals of a tool's figures, from how many tasks have so many made, expected
        and exact calls.
        """
        found = {name: Counter[tuple[float, ...]]() for name in ("precision", "recall", "f1")}
        for (made, expected, exact), times in cells.items():
            found["precision"][made, exact] += times
            found["recall"][expected, exact] += times
            found["f1"][made + expected, 2 * exact] += times
        return {
            f"{name}_interval": {**ratio_interval(x, confidence=self.confidence)}
            for name, x in found.items()
        }


def _sums(grade: Grade) -> dict[str, float]:
    counts, parts = grade.counts, grade.parts
    found: dict[str, float] = {}
    if grade.passed is not None:
        found["verdicts"], found["passed"] = 1, int(grade.passed)
    if (credit := parts.get("credit")) is not None:
        found["credit"] = credit
        found["weighed"], found["required"] = (
            as_count(counts.get("weighed")),
            as_count(counts.get("required")),
        )
    if (recalled := parts.get("required_credit")) is not None:
        found["required_credit"] = recalled
    precision, recall, f1 = parts.get("precision"), parts.get("recall"), parts.get("f1")
    if precision is not None and recall is not None:
        found["scored"], found["precision"], found["recall"] = 1, precision, recall
        found["f1"] = (_f1(precision, recall) if f1 is None else f1) or 0
    fates = [as_count(counts.get(name)) for name in _COUNTED]
    if any(fates):
        found |= zip(ARGUMENTS, fates, strict=True)
        found["with_arguments"] = 1
        found |= zip(_OF_ARGUMENTS, [each or 0 for each in _rates(*fates)], strict=True)
    return found


_COUNTED = tuple(f"arguments_{fate}" for fate in ARGUMENTS)
_OF_ARGUMENTS = ("argument_precision", "argument_recall", "argument_f1")
_SUMS = (
    *("verdicts", "passed", "weighed", "required", "credit", "required_credit"),
    *("scored", "precision", "recall", "f1"),
    *("with_arguments", *_OF_ARGUMENTS, *ARGUMENTS),
)


def _call(item: Item) -> str:
    """Return what is counted of a call, expected or made, as JSON.

    Tools, what it counts as, and its arguments.
    """
    counts, arguments = item.counts, item.metadata.get("arguments")
    found = (item.gold, item.label, [counts.get(call, 0) for call in CALLS], arguments)
    try:
        return msgspec.json.encode(found).decode()
    except (
        TypeError,
        ValueError,
        OverflowError,
    ):  # a lone surrogate, or a number that is too large
        return json.dumps(found, default=str)


@attrs.define
class _Tool:
    calls: Counter[str] = attrs.field(factory=Counter)
    arguments: dict[str, Counter[str]] = attrs.field(factory=dict)

    def figures(self) -> dict[str, JSON]:
        """Return its figures; calls are right or not, shares left out."""
        calls: dict[str, JSON] = {call: self.calls[call] for call in CALLS}
        exact = self.calls["exact"]
        precision, recall = ratio(exact, self.calls["made"]), ratio(exact, self.calls["expected"])
        arguments = {
            path: {fate: fares[fate] for fate in ARGUMENTS}
            for path, fares in sorted(self.arguments.items())
        }
        rates = {"precision": precision, "recall": recall, "f1": _f1(precision, recall)}
        return {**calls, **rates, "arguments": {**arguments}}


def _tools(calls: Iterable[tuple[Sequence[Any], int]]) -> dict[str, _Tool]:
    tools: dict[str, _Tool] = {}
    for call, times in calls:
        _add_call(tools, *call, times=times)
    return tools


def _add_call(
    tools: dict[str, _Tool],
    gold: str | None,
    label: str | None,
    called: list[int],
    arguments: Any,
    *,
    times: int,
) -> None:
    """Add calls to their tool.

    That one was made to the tool called, for an expected call may have several names.
    """
    name = label if gold is None else gold
    if name is None:
        return
    tool = tools.setdefault(name, _Tool())
    made = tool if label is None else tools.setdefault(label, _Tool())
    for call, number in zip(CALLS, called, strict=True):
        (made if call in {"made", "extra"} else tool).calls[call] += number * times
    for fate, pointers in as_map(arguments).items():
        if fate in ARGUMENTS:
            for pointer in as_list(pointers):
                path = _PLACE.sub("/*", str(pointer))
                tool.arguments.setdefault(path, Counter())[fate] += times

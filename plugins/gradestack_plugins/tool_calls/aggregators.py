"""Aggregator ``call_figures``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, ClassVar, TypedDict

import attrs
import msgspec
from typing_extensions import override

from gradestack import JSON, Aggregator, CellsState, Grade, Item, Key, Memory, Outcome, TaskCells, valid_confidence
from gradestack.exact import count_each, count_into
from gradestack.jsonio import as_count, as_list, as_map, loads
from gradestack_plugins.tool_calls.account import COUNTS
from gradestack_plugins.tool_calls.fates import ARGUMENTS, CALLS, kept_fate, text_of
from gradestack_plugins.tool_calls.grades import kept_sums

_OF_THE_CALL_MADE = ("made", "extra")
_MACRO = ("precision", "recall", "f1")
_CELLS = TaskCells(
    "samples",
    "verdicts",
    "passed",
    "weighed",
    "required",
    "credit",
    "required_credit",
    "scored",
    *_MACRO,
    "with_arguments",
    *(f"argument_{each}" for each in _MACRO),
    *ARGUMENTS,
)
_COUNTED = ("weighed", "required", *(f"arguments_{fate}" for fate in ARGUMENTS))
_PARTED = ("credit", "required_credit", *_MACRO)
_COUNTS, _PARTS = itemgetter(*_COUNTED), itemgetter(*_PARTED)
_ITEM = re.compile(r"/\d+(?=/|$)")
"""The place in a list, which is not told apart in figures by path."""
_ALIKE = 16_384
"""Items of different text that are counted before they are counted by tool and path."""
_MOST_KNOWN = 4096
_GRADED = Outcome.GRADED.value
_OF_ITEM = "\n"
"""Stands in no JSON of one line: between an item's tools, and what it counts as and its arguments."""
_LETTERS = 2048
"""Of what is counted of items, up to which it is kept for the next time the same grade is given."""
_UNDEFINED = {
    "verdict_rate": "the grader has no verdict of its own",
    "precision": "no call was made",
    "recall": "no call is expected",
    "f1": "no call is expected, and none was made",
    "macro_precision": "the grader gives no precision",
    "macro_recall": "the grader gives no recall",
    "macro_f1": "the grader gives no F1",
    "argument_precision": "no argument was given",
    "argument_recall": "no argument is expected",
    "argument_f1": "no argument is expected, and none was given",
    "macro_argument_precision": "no sample has arguments",
    "macro_argument_recall": "no sample has arguments",
    "macro_argument_f1": "no sample has arguments",
}


class FiguresState(TypedDict):
    """State of :class:`CallFigures`."""

    states: dict[str, int]
    counts: dict[str, int]
    reasons: dict[str, int]
    alike: dict[str, int]
    """JSON text -> how often; most are like thousands of others.

    Of a sample its counts; of an item both tools, a line end, and what it counts as with its arguments.
    """
    tools: dict[str, dict[str, int]]
    """Tool -> one of :data:`CALLS`, or how an argument fared, a space and its path -> how often, of other items."""
    cells: CellsState


def _f1(precision: float | None, recall: float | None) -> float | None:
    if precision is None and recall is None:
        return None
    below = (precision or 0) + (recall or 0)
    return 2 * (precision or 0) * (recall or 0) / below if below else 0.0


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def _rates(right: float, wrong: float, missing: float, unknown: float) -> tuple[float | None, ...]:
    precision, recall = _ratio(right, right + wrong + unknown), _ratio(right, right + wrong + missing)
    return precision, recall, _f1(precision, recall)


def _figures(*sums: float) -> dict[str, float | None]:
    _, verdicts, passed, weighed, required, credit, recalled, scored, p, r, f1, with_arguments, *of_arguments = sums
    argument_p, argument_r, argument_f1, *fates = of_arguments
    precision, recall = _ratio(credit, weighed), _ratio(recalled, required)
    of_all = _rates(*fates)
    return {
        "verdict_rate": passed / verdicts if verdicts else None,  # so often asked that calls cost time
        "precision": precision,
        "recall": recall,
        "f1": _f1(precision, recall),
        "macro_precision": p / scored if scored else None,
        "macro_recall": r / scored if scored else None,
        "macro_f1": f1 / scored if scored else None,
        "argument_precision": of_all[0],
        "argument_recall": of_all[1],
        "argument_f1": of_all[2],
        "macro_argument_precision": argument_p / with_arguments if with_arguments else None,
        "macro_argument_recall": argument_r / with_arguments if with_arguments else None,
        "macro_argument_f1": argument_f1 / with_arguments if with_arguments else None,
    }


def _cell_of(grade: Grade) -> list[float]:
    """Return what a grade adds to its task."""
    counts, parts = grade.counts, grade.parts
    try:
        numbers = (*_COUNTS(counts), *_PARTS(parts))
    except KeyError:  # of a published rule, or of another grader
        numbers = (*[counts.get(name, 0) for name in _COUNTED], *[parts.get(name) for name in _PARTED])
    return _cell(grade.passed, *numbers)


@lru_cache(maxsize=4096, typed=True)
def _cell(passed: bool | None, *numbers: Any) -> list[float]:
    """Return a cell: most grades say what others have said. Not to be changed."""
    weighed, required, *of_arguments = numbers[: len(_COUNTED)]
    credit, recalled, precision, recall, f1 = numbers[len(_COUNTED) :]
    if f1 is None and precision is not None and recall is not None:
        f1 = _f1(precision, recall)
    scored = precision is not None and recall is not None and f1 is not None
    fates = list(map(as_count, of_arguments))
    return [
        1,
        int(passed is not None),
        int(passed is True),
        as_count(weighed) if credit is not None else 0,
        as_count(required) if credit is not None else 0,
        _short(credit),
        _short(recalled),
        int(scored),
        *((_short(precision), _short(recall), _short(f1)) if scored else (0, 0, 0)),
        int(any(fates)),
        *map(_short, _rates(*fates)),
        *fates,
    ]


@attrs.frozen(kw_only=True)
class CallFigures(Aggregator[FiguresState]):
    """Precision, recall and F1 over calls and over arguments, the rate of verdicts, and figures by tool and argument.

    - ``verdict_rate`` = passed / samples with a verdict.
    - ``precision`` = sum of credit / calls made, ``recall`` = sum of credit / calls expected (optional ones in neither
      part of recall), ``f1`` of the two: over all calls ("micro"). ``macro_*``: means over samples.
    - ``argument_precision`` = right / (right + wrong + unknown), ``argument_recall`` = right / (right + wrong +
      missing), over leaves of arguments; those of missing calls are missing, those of extra calls unknown.
      ``macro_argument_*``: means over samples that have arguments, an undefined one counting as 0.
    - ``tools``: counts by tool, precision, recall and F1 of its calls, and ``arguments`` by path: how often each was
      right, wrong, missing or unknown. A number in a path, the place in a list, is written ``*``.
    - ``reasons``: how often each code is given.

    Over graded samples, each figure with its interval, clustered by task; undefined ones are null, with the reason
    under ``undefined``. Grades of published rules have verdicts, and the figures their program gives.
    """

    version: ClassVar[str] = "5"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def start(self) -> FiguresState:
        return {"states": {}, "counts": {}, "reasons": {}, "alike": {}, "tools": {}, "cells": _CELLS.start()}

    @override
    def add(self, state: FiguresState, key: Key, grade: Grade) -> FiguresState:
        return CallFigures.add_many(self, state, (key,), (grade,))

    @override
    def add_many(self, state: FiguresState, keys: Sequence[Key], grades: Sequence[Grade]) -> FiguresState:
        states = state["states"]
        scored = [grade for grade in grades if grade.score is not None]
        if len(scored) < len(grades):
            keys = [key for key, grade in zip(keys, grades, strict=True) if grade.score is not None]
            count_each(states, [grade.outcome.value for grade in grades if grade.score is None])
        if scored:
            states[_GRADED] = states.get(_GRADED, 0) + len(scored)
        known = _known.get
        found = [known(id(grade)) or _said(grade) for grade in scored]
        _CELLS.add_many(state["cells"], keys, [cell for cell, _, _ in found])
        count_each(state["reasons"], [reason.code for grade in scored if grade.reasons for reason in grade.reasons])
        count_each(state["alike"], [text for _, texts, _ in found for text in texts])
        _keep_few(state)
        return state

    @override
    def merge(self, left: FiguresState, right: FiguresState) -> FiguresState:
        for part in ("states", "counts", "reasons", "alike"):
            count_into(left[part], right[part])
        for name, counts in right["tools"].items():
            count_into(left["tools"].setdefault(name, {}), counts)
        _keep_few(left)
        _CELLS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: FiguresState) -> dict[str, JSON]:
        found: dict[str, JSON] = _CELLS.finish(state["cells"], _figures, confidence=self.confidence)
        found["undefined"] = {name: why for name, why in _UNDEFINED.items() if found.get(name) is None}
        found["states"] = dict(sorted(state["states"].items()))
        counts = dict(state["counts"])
        tools = {name: dict(of_tool) for name, of_tool in state["tools"].items()}
        _add_up(counts, tools, state["alike"])
        found["counts"] = dict(sorted(counts.items()))
        found["reasons"] = dict(sorted(state["reasons"].items()))
        found["tools"] = {name: _tool(counts) for name, counts in sorted(tools.items())}
        return found


def _short(value: float | None) -> float:
    """Return a number as a whole one where it is; sums of those need no care."""
    if value is None:
        return 0
    number = float(value)
    whole = int(number)
    return whole if whole == number else number


Said = tuple[list[float], list[str], Grade]
"""What is counted of a grade: its cell, and texts of its counts and items."""
_known: dict[int, Said] = {}
"""By the identity of a grade, which is held as long as it stands here."""


def _said(grade: Grade) -> Said:
    """Return what is counted of a grade, kept for the next time it is given if it is right."""
    cell, text = _counted(grade)
    texts = [text]
    _add_texts(texts, grade.items)
    found = cell, texts, grade
    plain = grade.passed and not (grade.reasons or grade.rationale) and grade.metadata.keys() <= {"preset"}
    if plain and grade.items and sum(map(len, texts)) <= _LETTERS:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[id(grade)] = found
    return found


def _counted(grade: Grade) -> tuple[list[float], str]:
    """Return a grade's cell, and its counts as JSON."""
    sums = kept_sums.of_part(id(grade.counts))
    if sums is None or sums.parts is not grade.parts or sums.passed is not grade.passed:
        return _cell_of(grade), _text(grade.counts)
    if sums.counted is None:
        sums.counted = _cell_of(grade), _text(grade.counts)
    return sums.counted


def _text(counts: Mapping[str, int]) -> str:
    told = list(counts.values()) if tuple(counts) == COUNTS else counts
    try:
        return msgspec.json.encode(told).decode()
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, or a number that is too large
        return json.dumps(told, default=str)


@lru_cache(maxsize=4096)
def _named(gold: str | None, label: str | None) -> str:
    """Return the tools of an item as JSON: the one expected, and the one called."""
    return msgspec.json.encode((gold, label)).decode()


def _add_texts(said: list[str], items: Sequence[Item]) -> None:
    """Add what is counted of items, each as one text; items of other graders say nothing here."""
    for item in items:
        counts, arguments = item.counts, item.metadata.get("arguments")
        fate = kept_fate(id(arguments))
        if fate is not None and fate.counts is counts:
            text = fate.text
        elif "expected" in counts or "extra" in counts:
            fate, text = None, ""
        else:
            continue
        try:
            if not text:
                text = text_of(counts, arguments)
                if fate is not None:
                    fate.text = text
            said.append(f"{_named(item.gold, item.label)}{_OF_ITEM}{text}")
        except (TypeError, ValueError, OverflowError):  # a lone surrogate, or a number that is too large
            told = ((item.gold, item.label), ([counts.get(name, 0) for name in CALLS], arguments))
            said.append(_OF_ITEM.join([json.dumps(each, default=str) for each in told]))


def _keep_few(state: FiguresState) -> None:
    """Add up what is told apart where that is too much."""
    if len(state["alike"]) > _ALIKE:
        _add_up(state["counts"], state["tools"], state["alike"])
        state["alike"].clear()


def _add_up(counts: dict[str, int], tools: dict[str, dict[str, int]], alike: Mapping[str, int]) -> None:
    """Add counts of samples, expected calls and those that were made for none, as texts with how often there are such.

    Args:
        counts: By name.
        tools: By tool, and name or path.
        alike: The texts.
    """
    held_of: dict[str, _Tools] = {}
    fares: dict[str, _Fares] = {}
    for text, times in alike.items():
        named, of_item, fared = text.partition(_OF_ITEM)
        if not of_item:
            numbers = loads(text)
            named_numbers = numbers.items() if type(numbers) is dict else zip(COUNTS, numbers, strict=True)
            count_into(counts, {name: number * times for name, number in named_numbers})
            continue
        both = held_of.get(named)
        if both is None:
            both = held_of[named] = _tools_of(tools, *loads(named))
        entries = fares.get(fared)
        if entries is None:
            entries = fares[fared] = _fares(*loads(fared))
        for held, several in zip(both, entries, strict=True):
            for name, number in several:
                held[name] = held.get(name, 0) + number * times


_Tools = tuple[dict[str, int], dict[str, int]]
"""What is counted of the tool that is expected, and of the one that was called: another if a call has several names."""
_Fares = tuple[list[tuple[str, int]], list[tuple[str, int]]]
"""What is to be counted of both."""


def _tools_of(tools: dict[str, dict[str, int]], gold: str | None, label: str | None) -> _Tools:
    name = label if gold is None else gold
    if name is None:
        return {}, {}
    held = tools.setdefault(name, {})
    return held, held if label is None or label == name else tools.setdefault(label, {})


def _fares(called: Sequence[int], arguments: Any) -> _Fares:
    """Return what is to be counted of items, from what they count as and their arguments by how they fare."""
    held, made = list[tuple[str, int]](), list[tuple[str, int]]()
    for call, number in zip(CALLS, called, strict=True):
        if number:
            (made if call in _OF_THE_CALL_MADE else held).append((call, int(number)))
    for fate, pointers in as_map(arguments).items():
        if fate in ARGUMENTS:
            held += [(f"{fate} {_path(str(pointer))}", 1) for pointer in as_list(pointers)]
    return held, made


@lru_cache(maxsize=4096)
def _path(pointer: str) -> str:
    """Return the name under which an argument is counted."""
    return _ITEM.sub("/*", pointer)


def _tool(counts: Mapping[str, int]) -> dict[str, JSON]:
    """Return what is said of one tool; its calls are right or not, shares left out."""
    paths = sorted({counted.partition(" ")[2] for counted in counts.keys() - CALLS})
    calls = {call: counts.get(call, 0) for call in CALLS}
    precision, recall = _ratio(calls["exact"], calls["made"]), _ratio(calls["exact"], calls["expected"])
    return {
        **calls,
        "precision": precision,
        "recall": recall,
        "f1": _f1(precision, recall),
        "arguments": {path: {fate: counts.get(f"{fate} {path}", 0) for fate in ARGUMENTS} for path in paths},
    }

"""What is told of each call of a run, or of one turn: items, reasons and counts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import attrs

from gradestack import Item, Reason
from gradestack_plugins.tool_calls.comparison import Differences, Given, Wanted, pointers, reasons_of
from gradestack_plugins.tool_calls.matching import Matching, Pair

Figure = Literal["f1", "precision", "recall"]
ARGUMENTS = ("right", "wrong", "missing", "unknown")
"""How an argument may fare."""
_COUNTED = tuple((fate, f"arguments_{fate}") for fate in ARGUMENTS)
_MATCHED = {"expected": 1, "made": 1, "matched": 1}
_EXACT = {**_MATCHED, "exact": 1}
_MISSING = {"expected": 1, "missing": 1}
_MISTAKEN = {**_MISSING, "made": 1, "extra": 1}
COUNTS = (
    "expected",
    "made",
    "matched",
    "exact",
    "missing",
    "extra",
    "out_of_order",
    "hallucinated_tool",
    "required",
    "weighed",
    *(counted for _, counted in _COUNTED),
)


@attrs.frozen(kw_only=True)
class Weighing:
    """What extra and missing calls cost."""

    extra: Literal["allow", "forbid", "penalise"]
    missing: Literal["forbid", "penalise"]
    order: Literal["strict", "in_order", "any"]
    verdict_only: bool
    """Whether the score is the verdict, 1 or 0."""
    figure: Figure


class Account:
    """What is told of each call: items, reasons and counts."""

    def __init__(
        self,
        matching: Matching,
        wanted: Sequence[Wanted],
        given: Sequence[Given],
        pairs: Sequence[Pair],
        tools: frozenset[str] | None,
        weighing: Weighing,
        turn: int | None,
    ) -> None:
        self._matching, self._pairs, self._tools, self._weighing = matching, pairs, tools, weighing
        self._message = "" if turn is None else f"turn {turn}"
        self._about: dict[str, Any] = {} if turn is None else {"turn": turn}
        self._wanted, self._given = wanted, given
        self._arguments = dict.fromkeys(ARGUMENTS, 0)
        self.items: list[Item] = []
        self.reasons: list[Reason] = []
        found = {pair.wanted.index: pair for pair in pairs}
        self.missing: list[Wanted] = []
        self.extra: list[Given] = []
        if len(pairs) < len(wanted):
            self.missing = [call for call in wanted if call.index not in found and not call.optional]
        if len(pairs) < len(given):
            used = {pair.given.index for pair in pairs}
            self.extra = [made for made in given if made.index not in used]
        shown = self._shown() if self.missing and self.extra else {}
        for call in wanted:
            if call.index in found:
                self._pair(found[call.index])
            elif call.index in shown:
                self._mistaken(call, shown[call.index])
            elif not call.optional:
                self._missing(call)
        if self.extra:
            told = {made.index for made in shown.values()}
            for made in self.extra:
                self._extra(made, told=made.index in told)

    def counts(self, required: int, weighed: int) -> dict[str, int]:
        """Return the counts of the grade.

        Args:
            required: Expected calls that recall is over.
            weighed: Calls made that precision is over.
        """
        pairs, tools, arguments = self._pairs, self._tools, self._arguments
        return {
            "expected": len(self._wanted),
            "made": len(self._given),
            "matched": len(pairs),
            "exact": sum([pair.exact for pair in pairs]),
            "missing": len(self.missing),
            "extra": len(self.extra),
            "out_of_order": len(pairs) - _longest_rise([pair.given.index for pair in pairs]),
            "hallucinated_tool": 0 if tools is None else sum([made.name not in tools for made in self._given]),
            "required": required,
            "weighed": weighed,
            "arguments_right": arguments["right"],
            "arguments_wrong": arguments["wrong"],
            "arguments_missing": arguments["missing"],
            "arguments_unknown": arguments["unknown"],
        }

    def _shown(self) -> dict[int, Given]:
        """Return missing calls, by index, with an extra one of the same tool: more telling than either alone."""
        waiting: dict[str, list[Given]] = {}
        for made in reversed(self.extra):
            waiting.setdefault(made.name, []).append(made)
        found = {}
        for call in self.missing:
            for name in call.names:
                if waiting.get(name):
                    found[call.index] = waiting[name].pop()
                    break
        return found

    def _pair(self, pair: Pair) -> None:
        wanted, made, (right, of) = pair
        found = self._matching.differences(wanted, made)
        if right == of:
            self._tell(wanted, made, 1.0, [], _by_fate(found))
        else:
            self._tell(wanted, made, right / of, reasons_of(found, made.name, self._message), _by_fate(found))

    def _mistaken(self, call: Wanted, made: Given) -> None:
        """Tell of a call that was made, of which nothing is right, or which came at the wrong place."""
        if call.raw is not None or made.raw is not None:
            reasons = [self._reason("undecodable_arguments", made.name, actual=made.raw)]
            by_fate: list[list[str]] = [[], [], pointers(call.arguments), []]
        elif self._weighing.order != "any" and self._matching.share(call, made)[0]:
            reasons = [self._reason("wrong_order", made.name)]
            by_fate = [[], [], pointers(call.arguments), []]
        else:
            found = self._matching.differences(call, made)
            reasons = reasons_of(found, made.name, self._message) or [self._reason("missing_call", call.name)]
            by_fate = _by_fate(found)
        self._tell(call, made, 0.0, reasons, by_fate)

    def _missing(self, call: Wanted) -> None:
        reasons = [self._reason("missing_call", call.name, expected=call.arguments)]
        self._tell(call, None, 0.0, reasons, [[], [], pointers(call.arguments), []])

    def _extra(self, made: Given, *, told: bool) -> None:
        """Tell of a call that was made for no expected one; of those shown beside one, only the tool is looked at."""
        reasons = []
        if self._tools is not None and made.name not in self._tools:
            reasons.append(self._reason("unknown_tool", made.name))
        if told:
            self.reasons += reasons
            return
        if self._weighing.extra != "allow":
            if made.raw is not None:
                reasons.append(self._reason("undecodable_arguments", made.name, actual=made.raw))
            code = "extra_call" if self._wanted else "unexpected_call"
            reasons.append(self._reason(code, made.name, actual=made.arguments))
        unknown = pointers(made.arguments)
        self._arguments["unknown"] += len(unknown)
        self.reasons += reasons
        self.items.append(
            Item(
                id=f"+{made.index}",
                score=0.0,
                label=made.name,
                counts={"made": 1, "extra": 1, "arguments_unknown": len(unknown)},
                reasons=tuple(reasons),
                metadata={"call": made.index, "arguments": {"unknown": unknown} if unknown else {}, **self._about},
            )
        )

    def _tell(
        self, call: Wanted, made: Given | None, score: float, reasons: list[Reason], by_fate: Sequence[list[str]]
    ) -> None:
        if score:
            counts = dict(_EXACT if score == 1 else _MATCHED)
        elif made is not None:
            counts = dict(_MISTAKEN)
        else:
            counts = dict(_MISSING)
        arguments = {}
        for (fate, counted), found in zip(_COUNTED, by_fate, strict=True):
            if found:
                arguments[fate] = found
                counts[counted] = number = len(found)
                self._arguments[fate] += number
        if reasons:
            self.reasons += reasons
        self.items.append(
            Item(
                id=str(call.index),
                score=score,
                gold=call.name,
                label=None if made is None else made.name,
                counts=counts,
                reasons=tuple(reasons),
                metadata={"call": None if made is None else made.index, "arguments": arguments, **self._about},
            )
        )

    def _reason(self, code: str, subject: str, **values: Any) -> Reason:
        return Reason(code=code, subject=subject, message=self._message, **values)


def _by_fate(found: Differences) -> list[list[str]]:
    """Return pointers of arguments that are right, wrong, missing and unknown."""
    right, *others = found
    return [right, *[[each[0] for each in pointed] if pointed else [] for pointed in others]]


def _longest_rise(numbers: Sequence[int]) -> int:
    """Return the length of the longest rising subsequence."""
    if len(numbers) < 2 or all(a < b for a, b in pairwise(numbers)):
        return len(numbers)
    ends: list[int] = []
    for number in numbers:
        place = bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return len(ends)

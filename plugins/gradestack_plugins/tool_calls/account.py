"""What is told of each call of a run, or of one turn: items, reasons and counts."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Literal

import attrs

from gradestack import Item, Reason
from gradestack_plugins.tool_calls.calls import Arguments
from gradestack_plugins.tool_calls.comparison import Differences, Share, pointers, reasons_of

Figure = Literal["f1", "precision", "recall"]
ARGUMENTS = ("right", "wrong", "missing", "unknown")
"""How an argument may fare."""
_COUNTED = {fate: f"arguments_{fate}" for fate in ARGUMENTS}
UNDECODABLE = "undecodable_arguments"
ByFate = dict[str, list[str]]
"""Pointers of arguments by how they fare; where none fares so, it is left out."""
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
    *_COUNTED.values(),
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


def right_call(index: int, name: str, at: int, label: str, places: list[str], **about: Any) -> Item:
    """Return the item of an expected call that was made, with nothing wrong in it.

    Args:
        index: Of the expected call.
        name: Its tool.
        at: Index of the call that was made.
        label: Its tool.
        places: Pointers of its arguments.
        about: What else stands in its metadata.
    """
    counts = {"expected": 1, "made": 1, "matched": 1, "exact": 1}
    arguments = {}
    if places:
        counts["arguments_right"] = len(places)
        arguments["right"] = places
    metadata = {"call": at, "arguments": arguments, **about}
    return Item(id=str(index), score=1.0, gold=name, label=label, counts=counts, metadata=metadata)


class Account:
    """What is told of each call: items, reasons and counts of arguments.

    Args:
        weighing: What extra and missing calls cost.
        tools: Names of the tools the run had; None where that is not known.
        turn: The turn the calls belong to, for reasons.
    """

    __slots__ = ("_about", "_message", "_tools", "_weighing", "arguments", "items", "reasons")

    def __init__(self, weighing: Weighing, tools: AbstractSet[str] | None, turn: int | None = None) -> None:
        self._weighing, self._tools = weighing, tools
        self._message = "" if turn is None else f"turn {turn}"
        self._about: dict[str, Any] = {} if turn is None else {"turn": turn}
        self.arguments = dict.fromkeys(_COUNTED.values(), 0)
        self.items: list[Item] = []
        self.reasons: list[Reason] = []

    def pair(self, index: int, name: str, at: int, label: str, right: Share, found: Differences) -> None:
        """Tell of an expected call and the call that was made for it.

        Args:
            index: Of the expected call.
            name: Its tool.
            at: Index of the call that was made.
            label: Its tool.
            right: How much of it is right; more than nothing.
            found: How each argument fares.
        """
        agree, of = right
        if agree == of:
            self.arguments["arguments_right"] += len(found[0])
            self.items.append(right_call(index, name, at, label, found[0], **self._about))
            return
        reasons = reasons_of(found, label, self._message)
        counts = {"expected": 1, "made": 1, "matched": 1}
        self._tell(str(index), name, at, label, agree / of, counts, reasons, _by_fate(found))

    def mistaken(self, index: int, name: str, at: int, label: str, found: Differences) -> None:
        """Tell of a call that was made, of which nothing is right."""
        reasons = reasons_of(found, label, self._message) or [self._reason("missing_call", name)]
        self._tell(str(index), name, at, label, 0.0, _mistaken(), reasons, _by_fate(found))

    def misplaced(
        self, index: int, name: str, at: int, label: str, *, code: str, arguments: Arguments, **values: Any
    ) -> None:
        """Tell of a call that was made at the wrong place, or with arguments that are none."""
        reasons = [self._reason(code, label, **values)]
        self._tell(str(index), name, at, label, 0.0, _mistaken(), reasons, _all_of("missing", arguments))

    def missing(self, index: int, name: str, arguments: Arguments) -> None:
        """Tell of an expected call that was not made."""
        reasons = [self._reason("missing_call", name, expected=arguments)]
        counts = {"expected": 1, "missing": 1}
        self._tell(str(index), name, None, None, 0.0, counts, reasons, _all_of("missing", arguments))

    def unknown(self, label: str) -> list[Reason]:
        """Return the reason, if any, that there is no tool of that name."""
        if self._tools is None or label in self._tools:
            return []
        return [self._reason("unknown_tool", label)]

    def unasked(self, at: int, label: str, arguments: Arguments, raw: str | None, *, code: str) -> None:
        """Tell of a call that was made for no expected one."""
        reasons = self.unknown(label)
        if self._weighing.extra != "allow":
            if raw is not None:
                reasons.append(self._reason(UNDECODABLE, label, actual=raw))
            reasons.append(self._reason(code, label, actual=arguments))
        counts = {"made": 1, "extra": 1, "arguments_unknown": 0}
        self._tell(f"+{at}", None, at, label, 0.0, counts, reasons, _all_of("unknown", arguments))

    def _tell(
        self,
        name: str,
        gold: str | None,
        at: int | None,
        label: str | None,
        score: float,
        counts: dict[str, int],
        reasons: list[Reason],
        arguments: ByFate,
    ) -> None:
        for fate, places in arguments.items():
            counted = _COUNTED[fate]
            counts[counted] = number = len(places)
            self.arguments[counted] += number
        self.reasons += reasons
        self.items.append(
            Item(
                id=name,
                score=score,
                gold=gold,
                label=label,
                counts=counts,
                reasons=tuple(reasons),
                metadata={"call": at, "arguments": arguments, **self._about},
            )
        )

    def _reason(self, code: str, subject: str, **values: Any) -> Reason:
        return Reason(code=code, subject=subject, message=self._message, **values)


def _mistaken() -> dict[str, int]:
    """Return what a call counts as that was made, of which nothing is right."""
    return {"expected": 1, "missing": 1, "made": 1, "extra": 1}


def _by_fate(found: Differences) -> ByFate:
    """Return pointers of arguments that are right, wrong, missing and unknown."""
    right, wrong, missing, unknown = found
    by_fate = {"right": right} if right else {}
    if wrong:
        by_fate["wrong"] = [each[0] for each in wrong]
    if missing:
        by_fate["missing"] = [each[0] for each in missing]
    if unknown:
        by_fate["unknown"] = [each[0] for each in unknown]
    return by_fate


def _all_of(fate: str, arguments: Arguments) -> ByFate:
    """Return pointers of arguments that all fare alike."""
    places = pointers(arguments)
    return {fate: places} if places else {}

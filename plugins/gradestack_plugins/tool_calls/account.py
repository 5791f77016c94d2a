"""What is told of each call of a run, or of one turn: items, reasons and counts."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal

import attrs

from gradestack import ABSENT, JSON, Item, Reason
from gradestack_plugins.tool_calls.calls import Arguments
from gradestack_plugins.tool_calls.fates import ARGUMENTS, Fate, Values, places_of

Figure = Literal["f1", "precision", "recall"]
UNDECODABLE = "undecodable_arguments"
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
    *(f"arguments_{fate}" for fate in ARGUMENTS),
)


@attrs.frozen(kw_only=True, eq=False)
class Weighing:
    """What extra and missing calls cost."""

    extra: Literal["allow", "forbid", "penalise"]
    missing: Literal["forbid", "penalise"]
    order: Literal["strict", "in_order", "any"]
    verdict_only: bool
    """Whether the score is the verdict, 1 or 0."""
    figure: Figure


def right_call(index: int, name: str, arguments: Arguments) -> Item:
    """Return the item of an expected call that was made at its place, with nothing wrong in it.

    Args:
        index: Of both calls.
        name: Their tool.
        arguments: Of them.
    """
    fate = places_of(arguments).fate("right")
    metadata = {"call": index, "arguments": fate.arguments}
    return Item(id=str(index), score=1.0, gold=name, label=name, counts=fate.counts, metadata=metadata)


class Account:
    """What is told of each call: items, reasons and counts of arguments.

    Args:
        weighing: What extra and missing calls cost.
        tools: Names of the tools the run had; None where that is not known.
        turn: The turn the calls belong to.

    Attributes:
        items: One for each call that is expected, and for each that is not.
        reasons: Theirs.
        right: How many arguments are right.
        wrong: How many have another value.
        absent: How many are missing.
        surplus: How many are unknown.
    """

    __slots__ = ("_extra", "_message", "_tools", "_turn", "absent", "items", "reasons", "right", "surplus", "wrong")

    def __init__(self, weighing: Weighing, tools: AbstractSet[str] | None, turn: int | None = None) -> None:
        self._extra, self._tools, self._turn = weighing.extra, tools, turn
        self._message = "" if turn is None else f"turn {turn}"
        self.right = self.wrong = self.absent = self.surplus = 0
        self.items: list[Item] = []
        self.reasons: list[Reason] = []

    def pair(self, index: int, name: str, at: int, label: str, fate: Fate, values: Values) -> None:
        """Tell of an expected call and the call that was made for it, or of which nothing is right.

        Args:
            index: Of the expected call.
            name: Its tool.
            at: Index of the call that was made.
            label: Its tool.
            fate: How it fares.
            values: Of what is not right.
        """
        message = self._message
        reasons = [
            Reason(code=code, pointer=pointer, expected=expected, actual=actual, subject=label, message=message)
            for (code, pointer, _), (expected, actual) in zip(fate.losses, values, strict=True)
        ]
        if not reasons and not fate.share[0]:
            reasons = [Reason(code="missing_call", subject=name, message=message)]
        self._tell(str(index), name, at, label, reasons, fate)

    def misplaced(
        self, index: int, name: str, at: int, label: str, *, code: str, arguments: Arguments, actual: JSON = ABSENT
    ) -> None:
        """Tell of a call that was made at the wrong place, or with arguments that are none."""
        reasons = [Reason(code=code, actual=actual, subject=label, message=self._message)]
        self._tell(str(index), name, at, label, reasons, places_of(arguments).fate("misplaced"))

    def missing(self, index: int, name: str, arguments: Arguments) -> None:
        """Tell of an expected call that was not made."""
        reasons = [Reason(code="missing_call", expected=arguments, subject=name, message=self._message)]
        self._tell(str(index), name, None, None, reasons, places_of(arguments).fate("missing"))

    def unknown(self, label: str) -> list[Reason]:
        """Return the reason, if any, that there is no tool of that name."""
        if self._tools is None or label in self._tools:
            return []
        return [Reason(code="unknown_tool", subject=label, message=self._message)]

    def unasked(self, at: int, label: str, arguments: Arguments, raw: str | None, *, code: str) -> None:
        """Tell of a call that was made for no expected one."""
        reasons = self.unknown(label)
        if self._extra != "allow":
            if raw is not None:
                reasons.append(Reason(code=UNDECODABLE, actual=raw, subject=label, message=self._message))
            reasons.append(Reason(code=code, actual=arguments, subject=label, message=self._message))
        self._tell(f"+{at}", None, at, label, reasons, places_of(arguments).fate("extra"))

    def _tell(
        self,
        name: str,
        gold: str | None,
        at: int | None,
        label: str | None,
        reasons: list[Reason],
        fate: Fate,
    ) -> None:
        self.reasons += reasons
        right, wrong, missing, unknown = fate.numbers
        self.right += right
        self.wrong += wrong
        self.absent += missing
        self.surplus += unknown
        metadata: dict[str, JSON] = {"call": at, "arguments": fate.arguments}
        if self._turn is not None:
            metadata["turn"] = self._turn
        self.items.append(
            Item(
                id=name,
                score=fate.score,
                gold=gold,
                label=label,
                counts=fate.counts,
                reasons=tuple(reasons),
                metadata=metadata,
            )
        )

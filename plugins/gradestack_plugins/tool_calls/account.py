"""What is told of each call of a run, or of one turn: items, reasons and counts."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Literal

import attrs

from gradestack import Item, Reason, replace
from gradestack_plugins.tool_calls.calls import Arguments
from gradestack_plugins.tool_calls.comparison import Differences, Share, pointers, reasons_of

Figure = Literal["f1", "precision", "recall"]
ARGUMENTS = ("right", "wrong", "missing", "unknown")
"""How an argument may fare."""
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
    *(f"arguments_{fate}" for fate in ARGUMENTS),
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


def right_call(index: int, name: str, at: int, label: str, places: list[str]) -> Item:
    """Return the item of an expected call that was made, with nothing wrong in it.

    Args:
        index: Of the expected call.
        name: Its tool.
        at: Index of the call that was made.
        label: Its tool.
        places: Pointers of its arguments.
    """
    metadata = {"call": at, "arguments": {"right": places} if places else {}}
    counts = _right_counts(len(places))
    return Item(id=str(index), score=1.0, gold=name, label=label, counts=counts, metadata=metadata)


@lru_cache(maxsize=256)  # one object for thousands of items is in the processor's cache
def _right_counts(places: int) -> dict[str, int]:
    counts = {"expected": 1, "made": 1, "matched": 1, "exact": 1}
    return {**counts, "arguments_right": places} if places else counts


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

    def pair(self, index: int, name: str, at: int, label: str, right: Share, found: Differences) -> None:
        """Tell of an expected call and the call that was made for it, or of which nothing is right.

        Args:
            index: Of the expected call.
            name: Its tool.
            at: Index of the call that was made.
            label: Its tool.
            right: How much of it is right.
            found: How each argument fares.
        """
        agree, of = right
        fine, wrong, missing, unknown = found
        if agree == of:
            self.right += len(fine)
            self._keep(right_call(index, name, at, label, fine))
            return
        counts = {"expected": 1, "made": 1, "matched": 1} if agree else _mistaken()
        reasons = reasons_of(found, label, self._message)
        if not agree and not reasons:
            reasons = [self._reason("missing_call", name)]
        fared: ByFate = {}  # one by one: by a loop over the four, a wrong run takes a fifteenth longer
        if fine:
            fared["right"] = fine
            counts["arguments_right"] = number = len(fine)
            self.right += number
        if wrong:
            fared["wrong"] = [each[0] for each in wrong]
            counts["arguments_wrong"] = number = len(wrong)
            self.wrong += number
        if missing:
            fared["missing"] = [each[0] for each in missing]
            counts["arguments_missing"] = number = len(missing)
            self.absent += number
        if unknown:
            fared["unknown"] = [each[0] for each in unknown]
            counts["arguments_unknown"] = number = len(unknown)
            self.surplus += number
        self._tell(str(index), name, at, label, agree / of, counts, reasons, fared)

    def misplaced(
        self, index: int, name: str, at: int, label: str, *, code: str, arguments: Arguments, **values: Any
    ) -> None:
        """Tell of a call that was made at the wrong place, or with arguments that are none."""
        counts = _mistaken()
        reasons = [self._reason(code, label, **values)]
        self._tell(str(index), name, at, label, 0.0, counts, reasons, self._absent(arguments, counts))

    def missing(self, index: int, name: str, arguments: Arguments) -> None:
        """Tell of an expected call that was not made."""
        counts = {"expected": 1, "missing": 1}
        reasons = [Reason(code="missing_call", expected=arguments, subject=name, message=self._message)]
        self._tell(str(index), name, None, None, 0.0, counts, reasons, self._absent(arguments, counts))

    def unknown(self, label: str) -> list[Reason]:
        """Return the reason, if any, that there is no tool of that name."""
        if self._tools is None or label in self._tools:
            return []
        return [self._reason("unknown_tool", label)]

    def unasked(self, at: int, label: str, arguments: Arguments, raw: str | None, *, code: str) -> None:
        """Tell of a call that was made for no expected one."""
        reasons = self.unknown(label)
        if self._extra != "allow":
            if raw is not None:
                reasons.append(self._reason(UNDECODABLE, label, actual=raw))
            reasons.append(Reason(code=code, actual=arguments, subject=label, message=self._message))
        places = pointers(arguments)
        counts = {"made": 1, "extra": 1, "arguments_unknown": len(places)}
        self.surplus += len(places)
        self._tell(f"+{at}", None, at, label, 0.0, counts, reasons, {"unknown": places} if places else {})

    def _absent(self, arguments: Arguments, counts: dict[str, int]) -> ByFate:
        """Count arguments of which all are missing; return their pointers."""
        places = pointers(arguments)
        if not places:
            return {}
        counts["arguments_missing"] = number = len(places)
        self.absent += number
        return {"missing": places}

    def _tell(
        self,
        name: str,
        gold: str | None,
        at: int | None,
        label: str | None,
        score: float,
        counts: dict[str, int],
        reasons: list[Reason],
        fared: ByFate,
    ) -> None:
        self.reasons += reasons
        metadata = {"call": at, "arguments": fared}
        self._keep(
            Item(
                id=name,
                score=score,
                gold=gold,
                label=label,
                counts=counts,
                reasons=tuple(reasons),
                metadata=metadata,
            )
        )

    def _keep(self, item: Item) -> None:
        if self._turn is not None:
            item = replace(item, metadata={**item.metadata, "turn": self._turn})
        self.items.append(item)

    def _reason(self, code: str, subject: str, **values: Any) -> Reason:
        return Reason(code=code, subject=subject, message=self._message, **values)


def _mistaken() -> dict[str, int]:
    """Return what a call counts as that was made, of which nothing is right."""
    return {"expected": 1, "missing": 1, "made": 1, "extra": 1}

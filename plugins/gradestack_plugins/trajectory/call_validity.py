"""Aggregator ``call_validity``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Figure, Grade, Grades, Numbers, ratio, valid_confidence

_SHARE = "valid / (calls - unchecked)"


def _checked(counts: Mapping[str, int]) -> int:
    return counts.get("calls", 0) - counts.get("unchecked", 0)


def _shown(counts: Mapping[str, int]) -> dict[str, JSON]:
    """Return counts, and how often each keyword is violated."""
    own: dict[str, JSON] = {name: number for name, number in counts.items() if ":" not in name}
    keywords = {name.partition(":")[2]: counts[name] for name in sorted(counts) if name.startswith("violation:")}
    return {**own, "violations": keywords}


@attrs.frozen(kw_only=True)
class CallValidity(Aggregator):
    """Valid calls over all runs and by tool, and how often each keyword of a schema is violated.

    ``valid_share`` = valid / (calls - unchecked), over calls, not over runs; None where none was checked. Its interval
    leaves out one task at a time.

    Attributes:
        confidence: Of the interval, between 0 and 1.
    """

    version: ClassVar[str] = "1"
    figures: ClassVar = (
        Figure("valid_share", "Calls that keep their schema", about=_SHARE, divisor="checked"),
        Figure("tools.{tool}.valid_share", "Calls of a tool that keep its schema", about=_SHARE, divisor="checked"),
    )
    needs: ClassVar = frozenset({"items"})

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        found = Counter({"valid": grade.counts.get("valid", 0), "checked": _checked(grade.counts)})
        for item in grade.items:
            counts = {**item.counts, "checked": _checked(item.counts)}
            found.update({f"{name}\n{item.id}": number for name, number in counts.items()})
        return found

    @override
    def estimate(self, valid: float, checked: float) -> Mapping[str, float | None]:
        return {"valid_share": ratio(valid, checked)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        counts = Counter[str]()
        for grade, times in grades.counted:
            if grade.score is not None:
                counts.update({name: number * times for name, number in grade.counts.items()})
        found = _shown(counts)
        if not _checked(counts):
            found["valid_share_reason"] = "no call was checked"
        tools: dict[str, dict[str, int]] = {}
        for name, number in grades.totals.items():
            count, of_tool, tool = name.partition("\n")
            if of_tool:
                tools.setdefault(tool, {})[count] = int(number)
        by_tool: dict[str, JSON] = {}
        for tool, of in sorted(tools.items()):
            checked = of.pop("checked")
            by_tool[tool] = {**_shown(of), "valid_share": ratio(of.get("valid", 0), checked)}
        return {**found, "tools": by_tool}

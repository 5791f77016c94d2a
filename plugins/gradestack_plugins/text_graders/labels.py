"""Grader ``label``: the predicted class, or the name of a tool, against the expected one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import ExpectedCall, Grade, Grader, Reason, Sample, ToolCall, skipped

_NO_TOOL: Final = "no_tool"
"""Label of calling nothing."""


@attrs.frozen(kw_only=True)
class Label(Grader):
    """1.0 when predicted and expected label are equal once white space is stripped from both ends, else 0.0.

    Case counts. A missing or empty prediction is wrong where a label is expected. Where calls are expected instead, the
    labels are the names of tools, ``no_tool`` for none. Skipped without a reference. Both profiles are the same.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"label", "calls", "expected"})
    requires: ClassVar[frozenset[str]] = frozenset({"expected"})
    aggregators: ClassVar[tuple[str, ...]] = ("classification", "mean")
    words: ClassVar[tuple[str, str]] = ("correct", "wrong")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @override
    def grade(self, sample: Sample) -> Grade:
        expected, label = sample.expected, sample.label
        gold = expected.label
        if gold is None and expected.calls is not None:
            gold = _names(expected.calls)
            label = None if sample.calls is None else _names(sample.calls)
        if gold is None:
            return skipped("no_gold_label", "the sample has no expected label")
        gold, label = gold.strip(), (label or "").strip()
        if label == gold:
            return Grade(score=1.0, passed=True, gold=gold, label=label)
        reason = Reason(code="wrong_label", subject=gold, expected=gold, actual=label)
        return Grade(score=0.0, passed=False, gold=gold, label=label or None, reasons=(reason,))


def _names(calls: Iterable[ExpectedCall | ToolCall]) -> str:
    return ", ".join([call.name for call in calls]) or _NO_TOOL

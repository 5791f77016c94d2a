"""The points a sample lost: the first reasons, and one line that tells them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from gradestack import ABSENT, Reason
from gradestack.jsonio import compact

MAX_REASONS = 50
"""Reasons kept per sample; one more says how many were left out."""
_SHOWN_REASONS = 3
_SHOWN_CHARACTERS = 80


class Losses(msgspec.Struct):
    """The first reasons of a sample, and how many more there were."""

    kept: list[Reason] = msgspec.field(default_factory=list)
    more: int = 0

    def add(self, reasons: Iterable[Reason]) -> tuple[Reason, ...]:
        """Take reasons as long as there is room and return those taken."""
        start = len(self.kept)
        for reason in reasons:
            if len(self.kept) < MAX_REASONS:
                self.kept.append(reason)
            else:
                self.more += 1
        return tuple(self.kept[start:])

    def reasons(self) -> tuple[Reason, ...]:
        """Return the reasons kept, and one that counts the others."""
        if not self.more:
            return tuple(self.kept)
        return (*self.kept, Reason(code="more_reasons", message=f"{self.more} more reasons were left out"))

    def rationale(self) -> str:
        """Return the first few reasons in one line."""
        if not self.kept:
            return ""
        texts = [describe(reason) for reason in self.kept[:_SHOWN_REASONS]]
        hidden = len(self.kept) - len(texts) + self.more
        return "; ".join(texts + [f"{hidden} more"] * bool(hidden))


def describe(reason: Reason) -> str:
    """Return a reason as one line, such as ``book wrong_argument /date expected "2024-05-20" got "2024-05-21"``."""
    words = [reason.subject, reason.code, reason.pointer]
    if reason.expected is not ABSENT:
        words.append(f"expected {_clipped(reason.expected)}")
    if reason.actual is not ABSENT:
        words.append(f"got {_clipped(reason.actual)}")
    words.append(reason.message)
    return " ".join(filter(None, words))


def _clipped(value: Any) -> str:
    try:
        text = compact(value)
    except RecursionError:
        return "…"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"

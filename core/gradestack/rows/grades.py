"""Grades as an index of rows reads them: a few keys of each, whatever else a row holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from gradestack.jsonio.values import as_list, as_map, as_number, as_text

GRADED = ("graded", "", None)
"""States in which a score is one."""
MORE_REASONS = "more_reasons"
"""Code of a reason that is none: it says how many others were left out."""


class Reason(Struct, frozen=True, gc=False):
    """What an index reads of a reason."""

    code: str | None = None
    subject: str | None = None
    pointer: str | None = None


class Answer(Struct, frozen=True, gc=False):
    """What an index reads of an item's metadata: the call that answers an expected one, UNSET where it names none."""

    call: Any = msgspec.UNSET


class Item(Struct, frozen=True, gc=False):
    """What an index reads of an item."""

    reasons: tuple[Reason, ...] = ()
    score: float | None = None
    label: str | None = None
    gold: str | None = None
    outcome: str | None = None
    metadata: Answer = Answer()


class Head(Struct, frozen=True, gc=False):
    """What an index reads of a row's own grade, which stands among the others once more."""

    score: float | None = None
    state: str | None = None

    def outcome(self) -> str:
        """Return its state; a grade without one is graded when it has a score."""
        return self.state or ("skipped" if self.score is None else "graded")


class Grade(Head, frozen=True, gc=False):
    """What an index reads of a grade."""

    fault: dict[str, Any] | None = None
    reasons: tuple[Reason, ...] = ()
    items: tuple[Item, ...] = ()
    passed: bool | None = None


def odd_head(grade: Mapping[str, Any]) -> Head:
    """Return a row's own grade of any form."""
    return Head(as_number(grade.get("score")), as_text(grade.get("state")))


def odd_grade(grade: Mapping[str, Any]) -> Grade:
    """Return a grade of any form: what is not of the type it should have is as if it were not there."""
    passed = grade.get("passed")
    return Grade(
        as_number(grade.get("score")),
        as_text(grade.get("state")),
        dict(as_map(grade.get("fault"))),
        odd_reasons(grade),
        tuple(odd_item(item) for item in as_list(grade.get("items"))),
        passed if isinstance(passed, bool) else None,
    )


def odd_item(item: Any) -> Item:
    """Return an item of any form: what is not of the type it should have is as if it were not there."""
    held = as_map(item)
    metadata = as_map(held.get("metadata"))
    return Item(
        odd_reasons(held),
        as_number(held.get("score")),
        as_text(held.get("label")),
        as_text(held.get("gold")),
        as_text(held.get("outcome")) or None,
        Answer(metadata.get("call", msgspec.UNSET)),
    )


def odd_reasons(of: Any) -> tuple[Reason, ...]:
    """Return the reasons of a grade or item of any form."""
    found = map(as_map, as_list(as_map(of).get("reasons")))
    return tuple(
        Reason(as_text(each.get("code")), as_text(each.get("subject")), as_text(each.get("pointer"))) for each in found
    )

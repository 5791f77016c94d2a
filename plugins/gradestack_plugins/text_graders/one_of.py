"""Grader ``one_of``: several texts are right."""

from __future__ import annotations

from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import Grade, Grader, Sample
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.text_graders.verdicts import (
    NEEDS,
    empty_reference,
    no_reference,
    no_submission,
    reference,
    right,
    shortened,
    wrong,
)


@attrs.frozen(kw_only=True)
class OneOf(Grader):
    """1.0 when the submission equals one of several texts once white space is stripped from the ends, else 0.0.

    The accepted texts are ``values`` where given. Else they are the reference's: a reference that is a JSON list gives
    its items (items that are no text as their JSON), with ``separator`` a text gives its pieces, any other text is the
    only one. An empty reference, or one with no item, gives 0.0. A sample without reference is skipped.

    Profiles do not differ: letta-evals has no such grader.

    Attributes:
        values: Accepted texts, for all samples.
        separator: Splits the reference into accepted texts.
        ignore_case: Compare in lower case.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = NEEDS
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    alternatives: ClassVar[bool] = True
    submission: ClassVar[bool] = True

    values: tuple[str, ...] | None = None
    separator: str | None = None
    ignore_case: bool = False

    def __attrs_post_init__(self) -> None:
        """Check the options.

        Raises:
            ValueError: No value at all, or an empty separator.
        """
        if self.values is not None and not self.values:
            raise ValueError("values is empty: name at least one accepted text, or leave it out")
        if self.separator is not None and not self.separator:
            raise ValueError("separator is empty")

    @override
    def grade(self, sample: Sample) -> Grade:
        if sample.text is None:
            return no_submission()
        accepted = self.values if self.values is not None else self._accepted(reference(sample))
        if accepted is None:
            return no_reference()
        if not accepted:
            return empty_reference()
        if self._folded(sample.text) in map(self._folded, accepted):
            return right("one of the accepted texts")
        shown = " | ".join(accepted)
        return wrong(
            "not_accepted", "none of the accepted texts", expected=shortened(shown), actual=shortened(sample.text)
        )

    def _folded(self, text: str) -> str:
        text = text.strip()
        return text.lower() if self.ignore_case else text

    def _accepted(self, truth: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
        if truth is None or isinstance(truth, tuple):
            return truth
        if self.separator is not None:
            return tuple(piece for piece in truth.split(self.separator) if piece.strip())
        if truth.strip().startswith("["):
            try:
                items = loads(truth)
            except JsonProblem:
                return (truth,)
            return tuple(item if isinstance(item, str) else compact(item) for item in items)
        return (truth,) if truth else ()

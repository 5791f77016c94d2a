"""Grader ``numeric_close``: a number within a tolerance of the reference."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import Grade, Grader, Sample
from gradestack_plugins.text_graders.verdicts import (
    NEEDS,
    against,
    broken_reference,
    right,
    shortened,
    wrong,
)

_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_NUMBER = rf"[+-]?(?:{_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WHOLE = re.compile(_NUMBER)
_INSIDE = re.compile(rf"(?<![0-9A-Za-z_.,])(?:{_NUMBER})(?![0-9A-Za-z_])")
_LONGEST = 1000
_LARGEST_EXPONENT = 1000


@attrs.frozen(kw_only=True)
class NumericClose(Grader):
    r"""1.0 when submission x and reference t are numbers with |x - t| <= max(abs_tol, rel_tol * |t|), else 0.0.

    Bounds included. Both are read as decimal numbers and compared exactly, so that 0.1 + 0.2 is no matter; tolerances
    are taken as written. A number has ASCII digits, an optional sign, decimal point and exponent, and may have commas
    between groups of three digits. "nan", "inf", units and percent signs are no numbers.

    A submission without a number gives 0.0, so does an empty reference. A reference that is no number is a broken
    dataset row: a failed grade. A sample without reference is skipped. Profiles do not differ: letta-evals has no such
    grader.

    Attributes:
        rel_tol: Tolerance relative to the reference.
        abs_tol: Absolute tolerance; what counts for a reference of 0.
        number: ``whole``: the submission is the number and nothing else; ``first`` or ``last``: the first or last
            number in it, so that "The answer is 42." is understood. The reference is always read whole.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = NEEDS
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    submission: ClassVar[bool] = True

    rel_tol: float = 1e-9
    abs_tol: float = 0.0
    number: Literal["whole", "first", "last"] = "whole"

    def __attrs_post_init__(self) -> None:
        """Check the tolerances.

        Raises:
            ValueError: One is negative or not finite.
        """
        for name, value in (("rel_tol", self.rel_tol), ("abs_tol", self.abs_tol)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, got {value}")

    @override
    def grade(self, sample: Sample) -> Grade:
        return against(sample, self.compare)

    def compare(self, text: str, truth: str) -> Grade:
        """Return the grade of a submission against a reference that is not empty."""
        wanted = read_number(truth)
        if wanted is None:
            return broken_reference("truth_not_a_number", f"the ground truth is no number: {shortened(truth)}")
        found = self._found(text)
        if found is None:
            return wrong("not_a_number", "the submission holds no number", actual=shortened(text))
        allowed = max(Fraction(repr(self.abs_tol)), Fraction(repr(self.rel_tol)) * abs(wanted))
        if abs(found - wanted) <= allowed:
            return right("within the tolerance")
        shown = {"expected": shortened(truth.strip()), "actual": shortened(text.strip())}
        return wrong("too_far", "outside the tolerance", **shown)

    def _found(self, text: str) -> Fraction | None:
        if self.number == "whole":
            return read_number(text)
        found = _INSIDE.findall(text)
        return read_number(found[0 if self.number == "first" else -1]) if found else None


def read_number(text: str) -> Fraction | None:
    """Return the number a text is, exactly; None when it is none, or longer or larger than any measurement."""
    text = text.strip()
    if len(text) > _LONGEST or not _WHOLE.fullmatch(text):
        return None
    plain = text.replace(",", "")
    mantissa, _, exponent = plain.lower().partition("e")
    if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
        return None
    return Fraction(mantissa.removesuffix(".")) * Fraction(10) ** int(exponent or 0)

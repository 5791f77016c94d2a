"""The four text graders of letta-evals."""

from __future__ import annotations

import abc
import re
import warnings
from functools import lru_cache
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import Grade, Grader, Profile, Sample
from gradestack_plugins.text_graders.verdicts import (
    NEEDS,
    against,
    broken_reference,
    no_submission,
    right,
    shortened,
    wrong,
)


@attrs.frozen(kw_only=True)
class _Compared(Grader):
    """A grader that compares the submission with the reference text."""

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = NEEDS
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    submission: ClassVar[bool] = True

    profile: Profile = "documented"

    @abc.abstractmethod
    def compare(self, text: str, truth: str) -> Grade:
        """Return the grade of a submission against a reference that is not empty."""

    @override
    def grade(self, sample: Sample) -> Grade:
        return against(sample, self.compare, missing_is_wrong=self.profile == "upstream")


@attrs.frozen(kw_only=True)
class ExactMatch(_Compared):
    """1.0 when submission and reference are equal once white space is stripped from both ends, else 0.0.

    Case and inner white space count. An empty reference gives 0.0. A sample without reference is skipped in
    ``documented``; ``upstream`` gives it 0.0.

    Attributes:
        profile: ``documented`` or ``upstream``.
    """

    words: ClassVar[tuple[str, str]] = ("the right text", "another text")

    def compare(self, text: str, truth: str) -> Grade:
        """Return the grade of a submission."""
        if text.strip() == truth.strip():
            return right("equal to the ground truth")
        shown = {"expected": shortened(truth.strip()), "actual": shortened(text.strip())}
        return wrong("different_text", "not equal to the ground truth", **shown)


@attrs.frozen(kw_only=True)
class Contains(_Compared):
    """1.0 when the submission contains the reference, both in lower case, else 0.0.

    White space counts. An empty reference gives 0.0. A sample without reference is skipped in ``documented``;
    ``upstream`` gives it 0.0.

    Attributes:
        profile: ``documented`` or ``upstream``.
    """

    def compare(self, text: str, truth: str) -> Grade:
        """Return the grade of a submission."""
        if truth.lower() in text.lower():
            return right("contains the ground truth")
        shown = {"expected": shortened(truth), "actual": shortened(text)}
        return wrong("not_contained", "does not contain the ground truth", **shown)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | str:
    """Return the compiled expression, or what is wrong with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a pattern may come to mean in a later Python is no concern here
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{type(error).__name__}: {error}" if isinstance(error, RecursionError) else str(error)


@attrs.frozen(kw_only=True)
class RegexMatch(_Compared):
    """1.0 when the reference, a regular expression, matches somewhere in the submission, else 0.0.

    Case-sensitive, in the syntax of Python's ``re``; inline flags such as ``(?i)`` work. An empty reference gives 0.0.
    A sample without reference is skipped in ``documented``; ``upstream`` gives it 0.0. A reference that is not a
    regular expression is a broken dataset row: a failed grade in ``documented``, 0.0 in ``upstream``.

    Python's ``re`` has no time limit: an expression that backtracks without end blocks the run.

    Attributes:
        profile: ``documented`` or ``upstream``.
    """

    def compare(self, text: str, truth: str) -> Grade:
        """Return the grade of a submission."""
        pattern = _compiled(truth)
        if isinstance(pattern, str):
            message = f"the ground truth is not a regular expression: {pattern}"
            if self.profile == "upstream":
                return wrong("invalid_regex", message)
            return broken_reference("invalid_regex", message)
        if pattern.search(text):
            return right("the pattern matches")
        shown = {"expected": shortened(truth), "actual": shortened(text)}
        return wrong("no_match", "the pattern matches nowhere", **shown)


@attrs.frozen(kw_only=True)
class AsciiPrintableOnly(Grader):
    """1.0 when every character of the submission is printable ASCII (code points 32 to 126), else 0.0.

    Carriage returns and line feeds are ignored; a tab is not. No reference is needed, and profiles do not differ.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"text"})
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    submission: ClassVar[bool] = True

    @override
    def grade(self, sample: Sample) -> Grade:
        if sample.text is None:
            return no_submission()
        for place, character in enumerate(sample.text):
            if not 32 <= ord(character) <= 126 and character not in "\r\n":
                return wrong("not_printable", f"U+{ord(character):04X} at character {place} is not printable ASCII")
        return right("printable ASCII only")

"""Graders of the submission by the reference text, those of letta-evals and others."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import ABSENT, JSON, Fault, Grade, Grader, Profile, Reason, Sample, failed, skipped, suggest
from gradestack.jsonio import JsonProblem, compact, loads, pointer_to

NEEDS = frozenset({"text", "expected"})
_SHOWN = 200
_MISSING, _EMPTY = "the sample has no ground truth", "the ground truth is empty"


def reference(sample: Sample) -> str | tuple[str, ...] | None:
    """Return the reference text of a sample, else its expected label; None when it has neither."""
    expected = sample.expected
    return expected.text if expected.text is not None else expected.label


def shortened(text: str) -> str:
    """Return a text for a reason, cut after 200 characters."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def right(rationale: str) -> Grade:
    """Return full credit."""
    return Grade(score=1.0, rationale=rationale)


def wrong(code: str, rationale: str, *, expected: JSON = ABSENT, actual: JSON = ABSENT, pointer: str = "") -> Grade:
    """Return no credit, and why."""
    reason = Reason(code=code, pointer=pointer, expected=expected, actual=actual, message=rationale)
    return Grade(score=0.0, reasons=(reason,), rationale=rationale)


def broken_reference(code: str, message: str) -> Grade:
    """Return a failed grade: the reference, not the submission, cannot be used."""
    return failed(Fault(category="data", code=code, message=message))


def no_submission() -> Grade:
    """Return the grade of a sample that has no text to grade."""
    return skipped("no_submission", "no answer text was recorded")


def against(sample: Sample, compare: Callable[[str, str], Grade], *, missing_is_wrong: bool = False) -> Grade:
    """Return ``compare(submission, reference)``, or the grade of a sample that lacks one of them.

    An empty reference is wrong (0.0). A missing one is skipped, or wrong as well with ``missing_is_wrong``.
    """
    if sample.text is None:
        return no_submission()
    truth = reference(sample)
    if truth is None:
        return wrong("no_ground_truth", _MISSING) if missing_is_wrong else skipped("no_ground_truth", _MISSING)
    if isinstance(truth, tuple):
        return skipped("reference_per_turn", "the reference is a list of texts, one per turn; this grader takes one")
    return compare(sample.text, truth) if truth else wrong("empty_ground_truth", _EMPTY)


@attrs.frozen(kw_only=True)
class _TextGrader(Grader):
    needs: ClassVar[frozenset[str]] = NEEDS
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    submission: ClassVar[bool] = True

    def compare(self, text: str, truth: str) -> Grade:
        raise NotImplementedError

    @override
    def grade(self, sample: Sample) -> Grade:
        return against(sample, self.compare, missing_is_wrong=getattr(self, "profile", "documented") == "upstream")


@attrs.frozen(kw_only=True)
class ExactMatch(_TextGrader):
    """1.0 when submission and reference are equal once white space is stripped from both ends, else 0.0.

    Case and inner white space count. An empty reference gives 0.0. A sample without reference is skipped in
    ``documented``; ``upstream`` gives it 0.0.

    Attributes:
        profile: ``documented`` or ``upstream``.
    """

    words: ClassVar[tuple[str, str]] = ("exact match", "no exact match")

    profile: Profile = "documented"

    @override
    def compare(self, text: str, truth: str) -> Grade:
        if text.strip() == truth.strip():
            return right("equal to the ground truth")
        shown = {"expected": shortened(truth.strip()), "actual": shortened(text.strip())}
        return wrong("different_text", "not equal to the ground truth", **shown)


@attrs.frozen(kw_only=True)
class Contains(_TextGrader):
    """1.0 when the submission contains the reference, both in lower case, else 0.0.

    White space counts. An empty reference gives 0.0. A sample without reference is skipped in ``documented``;
    ``upstream`` gives it 0.0.

    Attributes:
        profile: ``documented`` or ``upstream``.
    """

    profile: Profile = "documented"

    @override
    def compare(self, text: str, truth: str) -> Grade:
        if truth.lower() in text.lower():
            return right("contains the ground truth")
        shown = {"expected": shortened(truth), "actual": shortened(text)}
        return wrong("not_contained", "does not contain the ground truth", **shown)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a pattern may come to mean in a later Python is no concern here
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{type(error).__name__}: {error}" if isinstance(error, RecursionError) else str(error)


@attrs.frozen(kw_only=True)
class RegexMatch(_TextGrader):
    """1.0 when the reference, a regular expression, matches somewhere in the submission, else 0.0.

    Case-sensitive, in the syntax of Python's ``re``; inline flags such as ``(?i)`` work. An empty reference gives 0.0.
    A sample without reference is skipped in ``documented``; ``upstream`` gives it 0.0. A reference that is not a
    regular expression is a broken dataset row: a failed grade in ``documented``, 0.0 in ``upstream``.

    An expression that backtracks without end costs its grade, which takes too long (``limits.seconds_per_grade``).

    Attributes:
        profile: ``documented`` or ``upstream``.
    """

    profile: Profile = "documented"

    @override
    def compare(self, text: str, truth: str) -> Grade:
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
class AsciiPrintableOnly(_TextGrader):
    """1.0 when every character of the submission is printable ASCII (code points 32 to 126), else 0.0.

    Carriage returns and line feeds are ignored; a tab is not. No reference is needed, and profiles do not differ.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"text"})

    @override
    def grade(self, sample: Sample) -> Grade:
        if sample.text is None:
            return no_submission()
        for place, character in enumerate(sample.text):
            if not 32 <= ord(character) <= 126 and character not in "\r\n":
                return wrong("not_printable", f"U+{ord(character):04X} at character {place} is not printable ASCII")
        return right("printable ASCII only")


_FENCED = re.compile(r"```[^\n`]*\n(?P<inside>.*?)```", re.DOTALL)


@attrs.frozen(kw_only=True)
class JsonEqual(_TextGrader):
    """1.0 when submission and reference are JSON texts of equal values, else 0.0 with the first difference's place.

    Objects are equal whatever the order of their keys; lists item by item, in order. Numbers are compared by value (1
    equals 1.0); true and 1 are different, so are "1" and 1; NaN equals nothing. Of a key written twice the last counts.

    A submission that is not JSON gives 0.0, so does an empty reference. A reference that is not JSON is a broken
    dataset row: a failed grade. A sample without reference is skipped. Profiles do not differ: letta-evals has no such
    grader.

    Attributes:
        allow_fence: Accept a submission whose JSON stands in a Markdown code block; the first one counts.
    """

    allow_fence: bool = False

    @override
    def compare(self, text: str, truth: str) -> Grade:
        try:
            wanted = loads(truth)
        except JsonProblem as problem:
            return broken_reference("truth_not_json", f"the ground truth is {problem}")
        shown = shortened(text)
        if self.allow_fence and (fenced := _FENCED.search(text)):
            text = fenced["inside"]
        try:
            found = loads(text)
        except JsonProblem as problem:
            return wrong("not_json", f"the submission is {problem}", actual=shown)
        different = first_difference(wanted, found)
        if different is None:
            return right("equal JSON")
        pointer, expected, actual = different
        where = f"at {pointer}" if pointer else "at the top"
        return wrong("different_value", f"differs {where}", expected=expected, actual=actual, pointer=pointer)


def _shown(value: JSON) -> JSON:
    """Return a value for a reason: scalars as they are, containers by their size."""
    if isinstance(value, dict):
        return f"an object with {len(value)} key(s)"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return shortened(value) if isinstance(value, str) else value


def _kind(value: JSON) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def first_difference(expected: JSON, actual: JSON) -> tuple[str, JSON, JSON] | None:
    """Return (JSON pointer, expected, actual) of the first difference in document order, None for equal values.

    The pointer is RFC 6901. A missing or unexpected part has ABSENT on the side that lacks it.
    """
    waiting: list[tuple[str, Any, Any]] = [("", expected, actual)]
    while waiting:
        pointer, left, right_side = waiting.pop()
        if left is ABSENT or right_side is ABSENT or _kind(left) is not _kind(right_side):
            return pointer, _shown(left), _shown(right_side)
        pairs: list[tuple[str, Any, Any]] = []
        if isinstance(left, dict):
            keys = [*left, *(key for key in right_side if key not in left)]
            pairs = [(pointer + pointer_to(k), left.get(k, ABSENT), right_side.get(k, ABSENT)) for k in keys]
        elif isinstance(left, list):
            for place in range(max(len(left), len(right_side))):
                one = left[place] if place < len(left) else ABSENT
                other = right_side[place] if place < len(right_side) else ABSENT
                pairs.append((f"{pointer}/{place}", one, other))
        elif left != right_side:
            return pointer, _shown(left), _shown(right_side)
        waiting += reversed(pairs)
    return None


_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_NUMBER = rf"[+-]?(?:{_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WHOLE = re.compile(_NUMBER)
_INSIDE = re.compile(rf"(?<![0-9A-Za-z_.,])(?:{_NUMBER})(?![0-9A-Za-z_])")
_LONGEST = 1000
_LARGEST_EXPONENT = 1000


@attrs.frozen(kw_only=True)
class NumericClose(_TextGrader):
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

    rel_tol: float = 1e-9
    abs_tol: float = 0.0
    number: Literal["whole", "first", "last"] = "whole"

    def __attrs_post_init__(self) -> None:
        for name, value in (("rel_tol", self.rel_tol), ("abs_tol", self.abs_tol)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number of at least 0, got {value}")

    @override
    def compare(self, text: str, truth: str) -> Grade:
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


@attrs.frozen(kw_only=True)
class OneOf(_TextGrader):
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

    alternatives: ClassVar[bool] = True

    values: tuple[str, ...] | None = None
    separator: str | None = None
    ignore_case: bool = False

    def __attrs_post_init__(self) -> None:
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
            return skipped("no_ground_truth", _MISSING)
        if not accepted:
            return wrong("empty_ground_truth", _EMPTY)
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


BUILT_IN: dict[str, Callable[[Profile], _TextGrader]] = {
    "exact_match": lambda profile: ExactMatch(profile=profile),
    "contains": lambda profile: Contains(profile=profile),
    "regex_match": lambda profile: RegexMatch(profile=profile),
    "ascii_printable_only": lambda _: AsciiPrintableOnly(),
    "json_equal": lambda _: JsonEqual(),
    "numeric_close": lambda _: NumericClose(),
    "one_of": lambda _: OneOf(),
}
"""Function name -> grader with its default options."""


@attrs.frozen(kw_only=True)
class Tool(_TextGrader):
    """Grades with the text grader that ``function`` names, as ``kind: tool`` does in letta-evals suites.

    ``{kind: tool, function: contains}`` and ``{kind: contains}`` are the same; a grader's own options need the second
    form. A function of a Python file (``function: graders.py:score``) is imported only with ``--allow-code``.

    Attributes:
        function: Name of a text grader.
        profile: ``documented`` or ``upstream``.
    """

    function: str
    profile: Profile = "documented"

    def __attrs_post_init__(self) -> None:
        if self.function in BUILT_IN:
            return
        if ":" in self.function:
            raise ValueError(
                f"{self.function!r} is Python code: it needs --allow-code on the command line, or as a grader of its "
                "own `kind: python_function` with `file` or `module` and `name`"
            )
        known = f"; there are: {', '.join(BUILT_IN)}"
        raise ValueError(f"no text grader is called {self.function!r}{suggest(self.function, BUILT_IN)}{known}")

    @override
    def grade(self, sample: Sample) -> Grade:
        return BUILT_IN[self.function](self.profile).grade(sample)

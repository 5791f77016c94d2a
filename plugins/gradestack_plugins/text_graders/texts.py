"""Graders of the submission by the reference text, those of letta-evals and others."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Literal

import attrs
from typing_extensions import override

from gradestack import (
    ABSENT,
    JSON,
    ExpectedCall,
    Fault,
    Grade,
    Grader,
    Reason,
    Sample,
    TextGrader,
    ToolCall,
    compile_later,
    failed,
    skipped,
    suggest,
)
from gradestack.jsonio import JsonProblem, compact, is_beyond_json, loads, pointer_to
from gradestack_plugins.readers.chat.unread import calls_unknown

_SHOWN = 200
"""Characters of a text that a reason shows."""
_MISSING, _EMPTY = "the sample has no ground truth", "the ground truth is empty"
_NO_SUBMISSION = skipped("no_submission", "no answer text was recorded")


def _reference(sample: Sample) -> str | tuple[str, ...] | None:
    expected = sample.expected
    return expected.text if expected.text is not None else expected.label


def _right(rationale: str) -> Grade:
    return Grade(score=1.0, rationale=rationale)


def _wrong(
    code: str, rationale: str, expected: JSON = ABSENT, actual: JSON = ABSENT, pointer: str = ""
) -> Grade:
    """Build the grade 0 of a wrong text, with its only reason."""
    shown = _shown(expected)
    reason = Reason(
        code=code,
        pointer=pointer,
        expected=shown,
        actual=_shown(actual),
        message=rationale,
    )
    return Grade(score=0.0, reasons=(reason,), rationale=rationale)


def _broken(code: str, message: str) -> Grade:
    """Return a failed grade: the reference, not the submission, cannot be used."""
    return failed(Fault(category="data", code=code, message=message))


def _shown(value: JSON) -> JSON:
    """Return a value for a reason.

    Texts cut, containers by their size, other scalars as they are.
    """
    if isinstance(value, dict):
        return f"an object with {len(value)} key(s)"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]}…"
    return value


class ExactMatch(TextGrader):
    """1.0 when submission and reference are equal once white space is stripped from both ends, else
    0.0.

    Case and inner white space count. An empty reference gives 0.0. A sample without reference is
    skipped.
    """

    verdict_labels = ("exact match", "no exact match")

    @override
    def compare(self, text: str, reference: str) -> Grade:
        if text.strip() == reference.strip():
            return _right("equal to the ground truth")
        why = "not equal to the ground truth"
        expected = reference.strip()
        return _wrong("different_text", why, expected, text.strip())


class Contains(TextGrader):
    """1.0 when the submission contains the reference, both in lower case, else 0.0.

    White space counts. An empty reference gives 0.0. A sample without reference is skipped.
    """

    @override
    def compare(self, text: str, reference: str) -> Grade:
        if reference.lower() in text.lower():
            return _right("contains the ground truth")
        return _wrong("not_contained", "does not contain the ground truth", reference, text)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | str:
    """Return a compiled pattern, or why it is none."""
    try:
        with warnings.catch_warnings():
            # that a pattern may mean something else in a later Python is no concern here
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except RecursionError as error:
        return f"RecursionError: {error}"
    except (re.error, OverflowError) as error:
        return str(error)


class RegexMatch(TextGrader):
    """1.0 when the reference, a regular expression, matches somewhere in the submission, else 0.0.

    Case-sensitive, in the syntax of Python's ``re``; inline flags such as ``(?i)`` work. An empty
    reference gives 0.0. A sample without reference is skipped. A reference that is not a regular
    expression is a broken dataset row: a failed grade.

    An expression that backtracks without end costs its grade, which takes too long
    (``limits.seconds_per_grade``).
    """

    @override
    def compare(self, text: str, reference: str) -> Grade:
        pattern = _compiled(reference)
        if isinstance(pattern, str):
            message = f"the ground truth is not a regular expression: {pattern}"
            return _broken("invalid_regex", message)
        if pattern.search(text):
            return _right("the pattern matches")
        return _wrong("no_match", "the pattern matches nowhere", reference, text)


_NOT_PRINTABLE = compile_later("[^ -~\r\n]")


class AsciiPrintableOnly(TextGrader):
    """1.0 when every character of the submission is printable ASCII (code points 32 to 126), else
    0.0.

    Carriage returns and line feeds are ignored; a tab is not. No reference is needed.
    """

    compares = frozenset[str]()

    @override
    def grade(self, sample: Sample) -> Grade:
        if sample.text is None:
            return _NO_SUBMISSION
        odd = _NOT_PRINTABLE.search(sample.text)
        if odd is None:
            return _right("printable ASCII only")
        why = f"U+{ord(odd[0]):04X} at character {odd.start()} is not printable ASCII"
        return _wrong("not_printable", why)


_FENCED = compile_later(r"```[^\n`]*\n(?P<inside>.*?)```", re.DOTALL)


@attrs.frozen(kw_only=True)
class JsonEqual(TextGrader):
    """1.0 when submission and reference are JSON texts of equal values, else 0.0 with the first
    difference's place.

    Objects are equal whatever the order of their keys; lists item by item, in order. Numbers are
    compared by value (1 equals 1.0); true and 1 are different, so are "1" and 1; NaN and
    numbers too large for a float equal nothing. Of a key written twice the last counts.

    A submission that is not JSON gives 0.0, so does an empty reference. A reference that is not
    JSON is a broken dataset row: a failed grade. A sample without reference is skipped.

    Attributes:
        allow_fence: Accept a submission whose JSON is in a Markdown code block; the first one
            counts.
    """

    allow_fence: bool = False

    @override
    def compare(self, text: str, reference: str) -> Grade:
        try:
            wanted = loads(reference)
        except JsonProblem as problem:
            return _broken("truth_not_json", f"the ground truth is {problem}")
        fenced = _FENCED.search(text) if self.allow_fence else None
        try:
            submitted = loads(fenced["inside"] if fenced else text)
        except JsonProblem as problem:
            return _wrong("not_json", f"the submission is {problem}", actual=text)
        difference = first_difference(wanted, submitted)
        if difference is None:
            return _right("equal JSON")
        pointer, expected, actual = difference
        where = f"at {pointer}" if pointer else "at the top"
        if is_beyond_json(expected) or is_beyond_json(actual):
            where += ": NaN and numbers too large for a float equal nothing"
        return _wrong("different_value", f"differs {where}", expected, actual, pointer)


def _kind(value: JSON) -> type:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float
    return type(value)


def first_difference(expected: JSON, actual: JSON) -> tuple[str, JSON, JSON] | None:
    """Return (JSON pointer, expected, actual) of the first difference; None for equal values.

    First is meant in the order of the document.
    """
    waiting: list[tuple[str, Any, Any]] = [("", expected, actual)]
    while waiting:
        pointer, one, other = waiting.pop()
        if _kind(one) is not _kind(other):
            return pointer, one, other
        if isinstance(one, dict):
            keys = list(one | other)
            pairs = [(one.get(key, ABSENT), other.get(key, ABSENT)) for key in keys]
            steps = [pointer_to(key) for key in keys]
        elif isinstance(one, list):
            pairs = list(zip_longest(one, other, fillvalue=ABSENT))
            steps = [f"/{index}" for index in range(len(pairs))]
        elif one != other or is_beyond_json(one):
            return pointer, one, other
        else:
            continue
        parts = [(pointer + step, *pair) for step, pair in zip(steps, pairs, strict=True)]
        waiting += reversed(parts)
    return None


_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_NUMBER = rf"[+-]?(?:{_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WHOLE = compile_later(_NUMBER)
_INSIDE = compile_later(rf"(?<![0-9A-Za-z_.,])(?:{_NUMBER})(?![0-9A-Za-z_])")
_LONGEST = 1000
_LARGEST_EXPONENT = 1000
_TOLERANCE: Any = [attrs.validators.ge(0), attrs.validators.lt(math.inf)]


@attrs.frozen(kw_only=True)
class NumericClose(TextGrader):
    r"""1.0 when submission x and reference t are numbers with |x - t| <= max(abs_tol, rel_tol *
    |t|), else 0.0.

    Bounds included. Both are read as decimal numbers and compared exactly, so that 0.1 + 0.2 is no
    match; tolerances are taken as written. A number has ASCII digits, an optional sign, decimal
    point and exponent, and may have commas between groups of three digits. "nan", "inf", units and
    percent signs are no numbers.

    A submission without a number gives 0.0, so does an empty reference. A reference that is no
    number is a broken dataset row: a failed grade. A sample without reference is skipped.

    Attributes:
        rel_tol: Tolerance relative to the reference.
        abs_tol: Absolute tolerance; what counts for a reference of 0.
        number: ``whole``: the submission is the number and nothing else; ``first`` or ``last``: the
            first or last number in it, so that "The answer is 42." is understood. The reference is
            always read whole.
    """

    rel_tol: float = attrs.field(default=1e-9, validator=_TOLERANCE)
    abs_tol: float = attrs.field(default=0.0, validator=_TOLERANCE)
    number: Literal["whole", "first", "last"] = "whole"

    @override
    def compare(self, text: str, reference: str) -> Grade:
        wanted = read_number(reference)
        if wanted is None:
            why = f"the ground truth is no number: {_shown(reference)}"
            return _broken("truth_not_a_number", why)
        if self.number == "whole":
            numbers = [text]
        else:
            numbers = _INSIDE.findall(text) or [""]
        number = read_number(numbers[-1 if self.number == "last" else 0])
        if number is None:
            return _wrong("not_a_number", "the submission holds no number", actual=text)
        absolute = Fraction(repr(self.abs_tol))
        relative = Fraction(repr(self.rel_tol))
        size = abs(number - wanted)
        if size <= max(absolute, relative * abs(wanted)):
            return _right("within the tolerance")
        expected = reference.strip()
        return _wrong("too_far", "outside the tolerance", expected, text.strip())


def read_number(text: str) -> Fraction | None:
    """Return the number a text is, exactly.

    None when it is none, or longer or larger than any measurement.
    """
    text = text.strip()
    if len(text) > _LONGEST or not _WHOLE.fullmatch(text):
        return None
    mantissa, _, exponent = text.replace(",", "").lower().partition("e")
    power = int(exponent or 0)
    if abs(power) > _LARGEST_EXPONENT:
        return None
    fraction = Fraction(mantissa.removesuffix("."))
    return fraction * Fraction(10) ** power


@attrs.frozen(kw_only=True)
class OneOf(TextGrader):
    """1.0 when the submission equals one of several texts once white space is stripped from the
    ends, else 0.0.

    The accepted texts are ``values`` where given. Else they are the reference's. A JSON list gives
    its items, those that are no text as their JSON. With ``separator`` a text gives its pieces; any
    other text is the only one. An empty reference, or one with no item, gives 0.0. A sample without
    reference is skipped.

    Attributes:
        values: Accepted texts, for all samples.
        separator: Splits the reference into accepted texts.
        ignore_case: Compare in lower case.
    """

    alternatives = True

    values: tuple[str, ...] | None = None
    separator: str | None = None
    ignore_case: bool = False

    def __attrs_post_init__(self) -> None:
        if self.values == ():
            raise ValueError("values is empty: name at least one accepted text, or leave it out")
        if self.separator == "":
            raise ValueError("separator is empty")

    @property
    @override
    def compares(self) -> frozenset[str]:  # type: ignore[override]  # of these options, not of all
        return frozenset(() if self.values else {"text", "label"})

    @override
    def grade(self, sample: Sample) -> Grade:
        if sample.text is None:
            return _NO_SUBMISSION
        accepted = self.values or self._accepted(_reference(sample))
        if accepted is None:
            return skipped("no_ground_truth", _MISSING)
        if not accepted:
            return _wrong("empty_ground_truth", _EMPTY)
        if self._folded(sample.text) in map(self._folded, accepted):
            return _right("one of the accepted texts")
        shown = " | ".join(accepted)
        return _wrong("not_accepted", "none of the accepted texts", shown, sample.text)

    def _folded(self, text: str) -> str:
        if self.ignore_case:
            return text.strip().lower()
        return text.strip()

    def _accepted(self, truth: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Split a truth into accepted texts: by the separator, as a JSON list, or not at all.

        Returns:
            The accepted texts; None where there is no truth.
        """
        if truth is None or isinstance(truth, tuple):
            return truth
        if self.separator is not None:
            pieces = truth.split(self.separator)
            return tuple(piece for piece in pieces if piece.strip())
        if truth.strip().startswith("["):
            with suppress(JsonProblem):
                items = loads(truth)
                return tuple([item if isinstance(item, str) else compact(item) for item in items])
        return (truth,) if truth else ()


_NO_TOOL = "no_tool"


class Label(Grader):
    """1.0 when predicted and expected label are equal once white space is stripped from both ends,
    else 0.0.

    Case counts. A missing or empty prediction is wrong where a label is expected. Where calls are
    expected instead, the labels are the names of tools, ``no_tool`` for none. Skipped without a
    reference.
    """

    needs = frozenset({"expected"})
    compares = frozenset({"calls", "label"})
    metrics = ("classification", "mean")
    verdict_labels = ("correct", "wrong")

    @override
    def grade(self, sample: Sample) -> Grade:
        expected, label = sample.expected, sample.label
        gold = expected.label
        if gold is None and expected.calls is not None:
            gold = _names(expected.calls)
            if sample.calls is None:
                return calls_unknown(sample)
            label = _names(sample.calls)
        if gold is None:
            return skipped("no_gold_label", "the sample has no expected label")
        gold = gold.strip()
        label = (label or "").strip()
        if label == gold:
            return Grade(score=1.0, passed=True, gold=gold, label=label)
        reason = Reason(code="wrong_label", subject=gold, expected=gold, actual=label)
        return Grade(score=0.0, passed=False, gold=gold, label=label or None, reasons=(reason,))


def _names(calls: Iterable[ExpectedCall | ToolCall]) -> str:
    names = [call.name for call in calls]
    return ", ".join(names) or _NO_TOOL


BUILT_IN: dict[str, type[TextGrader]] = {
    "exact_match": ExactMatch,
    "contains": Contains,
    "regex_match": RegexMatch,
    "ascii_printable_only": AsciiPrintableOnly,
    "json_equal": JsonEqual,
    "numeric_close": NumericClose,
    "one_of": OneOf,
}


@attrs.frozen(kw_only=True)
class Tool(TextGrader):
    """Grades with the text grader that ``function`` names, as ``kind: tool`` does in letta-evals
    suites.

    ``{kind: tool, function: contains}`` and ``{kind: contains}`` are the same; a grader's own
    options need the second form. A function of a Python file (``function: graders.py:score``) is
    imported only with ``--allow-code``.
    """

    function: str

    def __attrs_post_init__(self) -> None:
        """Refuse a function that is not built in."""
        if self.function in BUILT_IN:
            return
        if ":" in self.function:
            needed = "it needs --allow-code on the command line"
            other = "`kind: python_function` with `file` or `module` and `name`"
            problem = f"{self.function!r} is Python code: {needed}"
            raise ValueError(f"{problem}, or as a grader of its own {other}")
        hint = suggest(self.function, BUILT_IN)
        known = ", ".join(BUILT_IN)
        problem = f"no text grader is called {self.function!r}{hint}"
        raise ValueError(f"{problem}; there are: {known}")

    @override
    def grade(self, sample: Sample) -> Grade | float:
        return BUILT_IN[self.function]().grade(sample)

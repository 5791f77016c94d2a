"""The four graders of letta-evals, in each profile."""

import warnings

import pytest

from gradestack import Expectation, Sample
from gradestack_plugins.text_graders.texts import (
    AsciiPrintableOnly,
    Contains,
    ExactMatch,
    RegexMatch,
)
from tests.core.outcomes import data

DATA = data(__file__, "builtin.yaml")

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


def sample(text, truth=None, label=None):
    expectation = Expectation(text=truth, label=label)
    return Sample(id="t", text=text, expected=expectation)


def test_an_expression_too_deep_to_compile_is_a_data_fault():
    fault = RegexMatch().grade(sample("a", "(" * 5000 + ")" * 5000)).fault
    assert fault.code == "invalid_regex"


def test_regex_warnings_do_not_escape():
    """An expression Python warns about is used as it is, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RegexMatch().grade(sample("[", "[[a]")).score == 1.0


@pytest.mark.parametrize("kind", [ExactMatch, Contains, RegexMatch, AsciiPrintableOnly])
def test_no_submission_is_skipped(kind):
    """A sample nothing was extracted from and that has no answer text is skipped, not zero."""
    first_reason = kind().grade(sample(None, "a")).reasons[0]
    assert first_reason.code == "no_submission"


def test_a_reference_per_turn_is_not_one_text():
    """A list of references belongs to several turns; the grader itself takes one text."""
    first_reason = ExactMatch().grade(sample("a", ("a", "b"))).reasons[0]
    assert first_reason.code == "reference_per_turn"


@pytest.mark.parametrize(("text", "score"), DATA["ascii_printable_only"])
def test_ascii_printable_only(text, score):
    """Code points 32 to 126 and line ends pass; a tab does not; no reference is needed."""
    assert AsciiPrintableOnly().grade(sample(text)).score == score


def test_long_texts_are_cut_in_reasons():
    """Reasons show at most 200 characters of a text."""
    (reason,) = ExactMatch().grade(sample("x" * 500, "y" * 500)).reasons
    shown_length = len(reason.expected)
    assert shown_length == 201
    actual_count = len(reason.actual)
    assert actual_count == 201
    assert reason.expected[-1] == "…"

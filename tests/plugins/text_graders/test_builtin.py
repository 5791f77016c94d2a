"""The four graders of letta-evals, in each profile."""

from __future__ import annotations

import warnings

import pytest

from gradestack import Expectation, Sample, testing
from gradestack_plugins.text_graders.texts import AsciiPrintableOnly, Contains, ExactMatch, RegexMatch
from tests.core.outcomes import data

DATA = data(__file__, "builtin.yaml")

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


def sample(text, truth=None, label=None):
    return Sample(id="t", text=text, expected=Expectation(text=truth, label=label))


@PROFILES
@pytest.mark.parametrize("kind", [ExactMatch, Contains, RegexMatch])
def test_graders_keep_the_contract(kind, profile):
    own = [sample("a", "a"), sample("a", ""), sample("a", "("), sample("a", label="a"), sample("\ud800", "\ud800")]
    testing.check_grader(kind(profile=profile), own)
    testing.check_grader(AsciiPrintableOnly(), [sample("é"), sample("")])


@PROFILES
@pytest.mark.parametrize(("text", "truth", "score"), DATA["exact_match"])
def test_exact_match(profile, text, truth, score):
    """Equal once both ends are stripped; case and inner space count."""
    grade = ExactMatch(profile=profile).grade(sample(text, truth))
    assert grade.score == score
    assert bool(grade.reasons) is not bool(score)


@PROFILES
@pytest.mark.parametrize(("text", "truth", "score"), DATA["contains"])
def test_contains(profile, text, truth, score):
    """A case-insensitive substring."""
    assert Contains(profile=profile).grade(sample(text, truth)).score == score


@PROFILES
@pytest.mark.parametrize(("text", "truth", "score"), DATA["regex_match"])
def test_regex_match(profile, text, truth, score):
    """The reference is a regular expression, searched case-sensitively."""
    assert RegexMatch(profile=profile).grade(sample(text, truth)).score == score


@pytest.mark.parametrize("truth", ["(", "[", "*a", "a{99999999999999999999}", "(" * 5000 + ")" * 5000])
def test_invalid_regex(truth):
    """A broken expression is a data fault in documented and 0.0 in upstream."""
    documented = RegexMatch().grade(sample("a", truth))
    assert (documented.outcome, documented.score) == ("failed", None)
    assert (documented.fault.category, documented.fault.code) == ("data", "invalid_regex")
    upstream = RegexMatch(profile="upstream").grade(sample("a", truth))
    assert (upstream.outcome, upstream.score) == ("graded", 0.0)
    assert "not a regular expression" in upstream.rationale


def test_regex_warnings_do_not_escape():
    """An expression Python warns about is used as it is, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RegexMatch().grade(sample("[", "[[a]")).score == 1.0


@pytest.mark.parametrize("kind", [ExactMatch, Contains, RegexMatch])
def test_missing_reference(kind):
    """Without reference a sample is skipped with a code in documented; upstream gives 0.0 with a rationale."""
    documented = kind().grade(sample("a"))
    assert (documented.outcome, documented.score, documented.reasons[0].code) == ("skipped", None, "no_ground_truth")
    upstream = kind(profile="upstream").grade(sample("a"))
    assert (upstream.outcome, upstream.score) == ("graded", 0.0)
    assert upstream.rationale == "the sample has no ground truth"


@PROFILES
@pytest.mark.parametrize("kind", [ExactMatch, Contains, RegexMatch])
def test_empty_reference(kind, profile):
    """An empty reference gives 0.0 with a rationale in both profiles, even for an empty submission."""
    for text in ("a", ""):
        grade = kind(profile=profile).grade(sample(text, ""))
        assert (grade.outcome, grade.score, grade.rationale) == ("graded", 0.0, "the ground truth is empty")


@pytest.mark.parametrize("kind", [ExactMatch, Contains, RegexMatch, AsciiPrintableOnly])
def test_no_submission_is_skipped(kind):
    """A sample nothing was extracted from and that has no answer text is skipped, not zero."""
    assert kind().grade(sample(None, "a")).reasons[0].code == "no_submission"


def test_label_stands_in_for_the_text():
    assert ExactMatch().grade(sample("direct", label="direct")).score == 1.0
    assert ExactMatch().grade(sample("direct", "tool_call", label="direct")).score == 0.0


def test_a_reference_per_turn_is_not_one_text():
    """A list of references belongs to several turns; the grader itself takes one text."""
    assert ExactMatch().grade(sample("a", ("a", "b"))).reasons[0].code == "reference_per_turn"


@pytest.mark.parametrize(("text", "score"), DATA["ascii_printable_only"])
def test_ascii_printable_only(text, score):
    """Code points 32 to 126 and line ends pass; a tab does not; no reference is needed."""
    assert AsciiPrintableOnly().grade(sample(text)).score == score


def test_ascii_says_what_and_where():
    """The rationale names the first offending character."""
    assert AsciiPrintableOnly().grade(sample("ab\u00e9\t")).rationale == "U+00E9 at character 2 is not printable ASCII"


def test_long_texts_are_cut_in_reasons():
    """Reasons show at most 200 characters of a text."""
    (reason,) = ExactMatch().grade(sample("x" * 500, "y" * 500)).reasons
    assert (len(reason.expected), len(reason.actual), reason.expected[-1]) == (201, 201, "…")

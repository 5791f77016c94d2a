"""Labels out of raw text: the multiple-choice digit, the judge's JSON, the best score."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack_plugins.when2call.reader import (
    best_index,
    hopeless,
    judge_label,
    label_at,
    mcq_digit,
)
from tests.core.outcomes import data

DATA = data(__file__, "labels.yaml")


@pytest.mark.parametrize(
    ("text", "digit"), DATA["the_digit_is_a_lone_one_or_the_first_that_stands_as_a_word"]
)
def test_the_digit_is_a_lone_one_or_the_first_that_stands_as_a_word(text, digit):
    """Every case of the digit rule.

    Signs and dots are no part of a word, letters, digits and underscores are.
    """
    assert mcq_digit(text) == digit


@pytest.mark.parametrize(
    ("text", "label"),
    [*DATA["a_judges_answer_is_strict_json_with_one_of_four_labels"], ("[" * 100_000, None)],
)
def test_a_judges_answer_is_strict_json_with_one_of_four_labels(text, label):
    """No fences, no trailing text; ``label`` only when ``classification`` is absent.

    Trimmed and in lower case.
    """
    assert judge_label(text) == label


def test_further_names_may_be_allowed_in_a_judges_answer():
    """NVIDIA's name of the label is accepted on demand."""
    assert judge_label('{"classification": "Direct_Answer"}', ("direct_answer",)) == "direct_answer"


@pytest.mark.parametrize(("names", "index", "label"), DATA["an_index_beyond_the_names_is_invalid"])
def test_an_index_beyond_the_names_is_invalid(names, index, label):
    """An index maps through the item's own names; negative numbers never count from the end."""
    assert label_at(names, index) == label


@pytest.mark.parametrize(
    ("scores", "index"),
    DATA["the_best_score_is_the_first_highest"],
)
def test_the_best_score_is_the_first_highest(scores, index):
    """Ties go to the first; minus infinity is a score like any other."""
    assert best_index(scores) == index


def test_scores_are_hopeless_when_all_are_minus_infinity():
    """One finite score is enough to decide; nothing recorded is not hopeless."""
    assert hopeless([-math.inf] * 4)
    assert not hopeless([-math.inf, -1.0])
    assert not hopeless([])
    assert not hopeless(None)


@given(st.text())
def test_any_text_gives_a_digit_or_nothing(text):
    assert mcq_digit(text) in (None, 0, 1, 2, 3)
    assert judge_label(text) is None or isinstance(judge_label(text), str)

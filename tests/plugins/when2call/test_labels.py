"""Labels out of a judge's JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack_plugins.when2call.reader import judge_label
from tests.core.outcomes import data

DATA = data(__file__, "labels.yaml")


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


@given(st.text())
def test_any_text_gives_a_label_or_nothing(text):
    assert judge_label(text) is None or isinstance(judge_label(text), str)

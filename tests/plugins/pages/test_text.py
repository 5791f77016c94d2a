import pytest

from gradestack_plugins.pages.text import brief, clean, number
from tests.core.outcomes import data

DATA = data(__file__, "text.yaml")


@pytest.mark.parametrize(("text", "shown"), DATA["clean_shows_hidden_characters"])
def test_clean_shows_hidden_characters(text, shown):
    assert clean(text) == shown
    assert clean(clean(text)) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [*DATA["numbers_have_one_format"], (10**40, "10000000000000000000000…")]
)
def test_numbers_have_one_format(value, shown):
    assert number(value) == shown


def test_brief_is_one_line_within_its_limit():
    assert brief("a\n  b\tc") == "a b c"
    assert brief({"k": [1, None]}) == '{"k": [1, null]}'
    brief_count = len(brief("x" * 5000, 50))
    assert brief_count == 50
    assert brief("x" * 5000, 50).endswith("…")

import pytest

from gradestack_plugins.pages.text import brief, clean, cut, natural, number, percent, token
from tests.core.outcomes import data

DATA = data(__file__, "text.yaml")


@pytest.mark.parametrize(("text", "shown"), DATA["clean_shows_hidden_characters"])
def test_clean_shows_hidden_characters(text, shown):
    assert clean(text) == shown
    assert clean(clean(text)) == shown


def test_cut_says_how_much_is_left_out():
    assert (cut("abcdef", 4).shown, cut("abcdef", 4).dropped) == ("abcd", 2)
    assert (cut("abcd", 4).shown, cut("abcd", 4).dropped) == ("abcd", 0)


@pytest.mark.parametrize(("value", "shown"), [*DATA["numbers_have_one_format"], (10**40, "10000000000000000000000…")])
def test_numbers_have_one_format(value, shown):
    assert number(value) == shown


def test_percent_over_nothing_is_undefined():
    assert percent(1, 8) == "12.5%"
    assert percent(0, 0) == "n/a"


def test_brief_is_one_line_within_its_limit():
    assert brief("a\n  b\tc") == "a b c"
    assert brief({"k": [1, None]}) == '{"k": [1, null]}'
    assert len(brief("x" * 5000, 50)) == 50
    assert brief("x" * 5000, 50).endswith("…")


def test_natural_order_counts_numbers_as_numbers():
    assert sorted(["10", "2", "a10", "a2", "", "²"], key=natural) == sorted(
        ["", "²", "2", "10", "a2", "a10"], key=natural
    )
    assert sorted(["task 10", "task 2"], key=natural) == ["task 2", "task 10"]


def test_tokens_are_single_safe_words():
    assert token('wrong "arg" <x>') == "wrong_arg_x_"
    assert token("") == "_"

import pytest

from gradestack_plugins.pages.text import brief, clean, cut, natural, number, percent, token


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b\x1b[31m", "a␀b␛[31m"),
        ("\x7f\x9b", "␡⟨U+009B⟩"),
        ("left\u202eright\u2066x\u2069", "left⟨U+202E⟩right⟨U+2066⟩x⟨U+2069⟩"),
        ("in\u200bvisible\ufeff", "in⟨U+200B⟩visible⟨U+FEFF⟩"),
        ("half \ud83d pair", "half ⟨U+D83D⟩ pair"),
        ("tag \U000e0041", "tag ⟨U+E0041⟩"),
        ("line\r\nend\ttab\nnext\rlone", "line\nend\ttab\nnext␍lone"),
        ("Åse 日本 👩‍🚀", "Åse 日本 👩‍🚀"),
    ],
)
def test_clean_shows_hidden_characters(text, shown):
    assert clean(text) == shown
    assert clean(clean(text)) == shown


def test_cut_says_how_much_is_left_out():
    assert (cut("abcdef", 4).shown, cut("abcdef", 4).dropped) == ("abcd", 2)
    assert (cut("abcd", 4).shown, cut("abcd", 4).dropped) == ("abcd", 0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "n/a"),
        (True, "yes"),
        (0, "0"),
        (1234567, "1,234,567"),
        (10**40, "10000000000000000000000…"),
        (0.0, "0.000"),
        (0.59634117965368, "0.596"),
        (1.0, "1.000"),
        (12.3456, "12.346"),
        (123.456, "123.5"),
        (12345.678, "12,345.7"),
        (0.00012, "0.00012"),
        (2.5e9, "2.5e+09"),
        ("NaN", "NaN"),
    ],
)
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

"""Texts and numbers as people read them.

Hidden characters made visible, long texts cut, numbers in one format.
"""

from __future__ import annotations

import math
import re
from typing import Any

from gradestack import compile_later
from gradestack.jsonio import compact

UNDEFINED = "n/a"
"""What stands where a figure has no value. Never a zero."""

_HIDDEN = compile_later(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES = 0x2400
_LONGEST_INTEGER = 24
_MOST_DECIMALS = 8


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == 0x7F:
        return "\u2421"
    return f"⟨U+{code:04X}⟩"


def clean(text: str) -> str:
    """Return the text with every character that hides, reorders or cannot be written made visible.

    Control characters become their pictures (``␛``); bidirectional controls, invisible characters
    and lone surrogates become ``⟨U+202E⟩``. Tabs and line ends stay, CR LF reads as one line end.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    match = _HIDDEN.search(text)
    return _HIDDEN.sub(_visible, text) if match else text


def brief(value: Any, limit: int = 140) -> str:
    """Return a value on one line.

    Texts as they are, anything else as JSON, cut with an ellipsis.
    """
    if type(value) is str and len(value) <= limit and value.isascii() and value.isprintable():
        is_tidy = "  " not in value and value.strip() == value
        return value if is_tidy else " ".join(value.split())
    if isinstance(value, str):
        text = value[: 4 * limit]
    else:
        text = compact(value)[: 4 * limit]
    line = " ".join(clean(text).split())
    if len(line) <= limit:
        return line
    return line[: limit - 1].rstrip() + "…"


def number(value: Any) -> str:
    """Return a figure: integers with thousands separators, fractions with three decimals, None as
    "n/a".
    """
    if type(value) is float:
        return _fraction(value)
    if value is None:
        return UNDEFINED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _integer(value)
    return brief(value)


def _integer(value: int) -> str:
    if abs(value) < 10**15:
        return f"{value:,}"
    text = compact(value)
    if len(text) <= _LONGEST_INTEGER:
        return text
    return f"{text[: _LONGEST_INTEGER - 1]}…"


def _fraction(value: float) -> str:
    size = abs(value)
    if size >= 1e6 or 0 < size < 0.0005:
        return f"{value:.3g}"
    if size >= 1000:
        return f"{value:,.1f}"
    if size < 100:
        return f"{value:.3f}"
    return f"{value:.1f}"


def end(value: float) -> str:
    """Return an end of an interval: below 1 with three decimals, however near to 0 it is."""
    if abs(value) <= 1:
        return f"{value:.3f}"
    return number(value)


def three_digits(value: float) -> str:
    """Return an amount with three significant digits or its whole part: 0.0100, 12.5, 7,180."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    decimals = 2 - math.floor(math.log10(abs(value)))
    if decimals > _MOST_DECIMALS:
        return f"{value:.3g}"
    rounded = round(value, decimals)
    return f"{rounded:,.{max(0, decimals)}f}"


def percent(part: float, total: float) -> str:
    """Return ``part / whole`` as a percentage with one decimal, "n/a" over zero."""
    if total:
        return f"{100 * part / total:.1f}%"
    return UNDEFINED


def capital(text: str) -> str:
    """Return a text that begins with a capital letter; the rest of it stays as it is."""
    return f"{text[:1].upper()}{text[1:]}"


_STATE_WORDS = {"skipped": "not applicable", "failed": "error"}


def state_word(state: str) -> str:
    """Return the word for the state of a grade; files have names of their own for two of them.

    >>> state_word("skipped"), state_word("failed"), state_word("missing")
    ('not applicable', 'error', 'missing')
    """
    return _STATE_WORDS.get(state, state)


_TOKEN = compile_later(r"[^\w.-]+", re.ASCII)


def token(text: str) -> str:
    """Return a text as one word of letters, digits, dots, dashes and underscores, for classes and
    data attributes.
    """
    return _TOKEN.sub("_", text[:80]) or "_"


def counted(count: int, noun: str) -> str:
    """Return a number of what a plural names: ``1 sample``, ``2 samples``."""
    return f"{number(count)} {noun.removesuffix('s') if count == 1 else noun}"


_DIGITS = compile_later(r"(\d{1,18})")


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key by which ``task 2`` comes before ``task 10``."""
    parts = _DIGITS.split(text)
    if len(parts) == 3 and parts[1].isascii():  # nearly every id; there may be very many
        before, digits, after = parts
        return (-1, before), (int(digits), ""), (-1, after)
    return tuple(map(_natural_part, parts))


def _natural_part(part: str) -> tuple[int, str]:
    is_number = part.isdecimal() and part.isascii()
    if is_number:
        return (int(part), "")
    return (-1, part)


_CODE = compile_later(r"[a-z][a-z0-9_]*")
_CAUSES_IN_WORDS = {
    "component_distance": "plan differs",
    "database_mismatch": "end state differs",
    "different_text": "other text",
    "failed_generation": "no answer produced",
    "missing": "not recorded",
    "no_reason": "no reason given",
    "not_fulfilled": "criterion not met",
    "not_judged": "not judged",
    "run_error": "run crashed",
    "target_error": "agent ended in an error",
    "undecided": "could not be decided",
}


def cause_text(name: str) -> str:
    """Return a cause in words; behind the code of an error stands its text.

    >>> cause_text("wrong_argument"), cause_text("call_failed: HTTP 503")
    ('wrong argument', 'call failed: HTTP 503')
    """
    code, colon, error = name.partition(": ")
    if not _CODE.fullmatch(code):
        return name
    words = _CAUSES_IN_WORDS.get(code, code.replace("_", " "))
    return f"{words}{colon}{error}"

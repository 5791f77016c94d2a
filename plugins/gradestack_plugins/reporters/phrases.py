"""A run's words for success and its opposite in English sentences: of any run, as stacks and suites may have their own.

One word is an adjective, and so is ``not`` with one; ``passed`` alone is a verb. Of several the first says what they
are: ``without failed calls`` stands behind its noun as it is, ``all calls right`` is something that a sample has. All
others are quoted.
"""

from __future__ import annotations

from typing import Final

from gradestack_plugins.reporters.text import number

_BEHIND: Final = {
    *("above", "after", "at", "before", "behind", "below", "beyond", "for", "free", "from", "in", "near", "of", "on"),
    *("out", "outside", "over", "past", "short", "to", "under", "until", "up", "with", "within", "without"),
}
_HELD: Final = {
    *("a", "all", "an", "another", "any", "both", "each", "enough", "every", "few", "fewer", "less", "many", "more"),
    *("most", "no", "nothing", "one", "only", "several", "some", "something", "the", "too"),
}
_PASSED: Final = {False: "passed", True: "did not pass"}


def _plain(word: str) -> tuple[str, bool]:
    """Return a word without its ``not``, and whether there was one."""
    rest = word.removeprefix("not ")
    return rest, rest != word


def _is_adjective(word: str) -> bool:
    return " " not in _plain(word)[0]


def counted(count: int, noun: str) -> str:
    """Return a number of what a plural names: ``1 sample``, ``2 samples``."""
    return f"{number(count)} {one(noun) if count == 1 else noun}"


def one(noun: str) -> str:
    """Return the singular of a plural."""
    return noun.removesuffix("s")


def verb(word: str, *, single: bool, no: bool = False) -> str:
    """Return what is said of samples of a word: ``are solved``, ``has all calls right``; with ``no`` the opposite.

    Args:
        word: The run's word.
        single: Whether it is said of one.
        no: Whether it is denied.
    """
    plain, denied = _plain(word)
    no = no != denied
    if plain == _PASSED[False]:
        return _PASSED[no]
    first, _, rest = plain.partition(" ")
    if no and first == "without":
        return f"{'has' if single else 'have'} {rest}"
    if _is_adjective(word) or first.lower() in _BEHIND:
        return f"{'is' if single else 'are'}{' not' * no} {plain}"
    verb_of, rest = ("have", plain) if first.lower() in _HELD else ("count", f"as “{plain}”")
    if no:
        return f"{'does' if single else 'do'} not {verb_of} {rest}"
    return f"{({'have': 'has'}.get(verb_of, 'counts')) if single else verb_of} {rest}"


def behind(word: str) -> str:
    """Return what stands behind a number: ``solved``, ``with all calls right``, ``that count as “well done”``."""
    plain, denied = _plain(word)
    first = plain.partition(" ")[0].lower()
    if _is_adjective(word):
        return word
    if first in _BEHIND:
        return f"that are not {plain}" if denied else plain
    if first in _HELD:
        return f"{'without' if denied else 'with'} {plain}"
    return f"that {verb(word, single=False)}"


def those(word: str, noun: str) -> str:
    """Return samples by a word: ``solved runs``, ``runs with all calls right``."""
    return f"{word} {noun}".strip() if _is_adjective(word) else f"{noun} {behind(word)}"

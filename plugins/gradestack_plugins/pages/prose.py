"""Texts in Markdown, and a page of them with a limit.

What came from data becomes no heading, cell, link or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from gradestack import compile_later
from gradestack_plugins.pages.text import brief, clean, number

_BAR = 24
_SPECIAL = compile_later(r"[\\`*_\[\]#~]")
_FENCES = compile_later(r"`+")
_ITEM = compile_later(r"^([-+=]+|\d+(?=[.)]))(?=[.)]?(?:\s|$))")
"""What at the beginning of a block makes a list, a line across or a heading."""
_LINKED = compile_later(
    r"://|\bwww\.|\b(?:mailto|xmpp):|(?<!\w)@|@.*\.|#\d|\$"
    r"|(?<!\w)[!%&~]\w|\bgh(?:sa)?-\w|:[-+]?[a-z]\w*:|:[-+]1:"
    r"|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
"""What GitHub and GitLab make links, mentions, references, formulas and emoji of once Markdown is
rendered, where a backslash or an entity does not help: addresses, @name, #1, GH-1, !1, hashes of
commits.
"""


def prose(value: object) -> str:
    """Return a text that Markdown shows as it is, on one line and safe in a table.

    Markup is escaped; words that would become links all the same stand as code.
    """
    line = " ".join(map(_word, clean(str(value)).split()))
    return _ITEM.sub(
        lambda match: match[1] + "\\" if match[1].isdecimal() else "\\" + match[1], line
    )


def _word(word: str) -> str:
    parts = word.split("|")
    return "&#124;".join(
        code(part, len(part)) if _LINKED.search(part) else _escaped(part) for part in parts
    )


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\g<0>", text).replace("@", "&#64;")


def code(value: object, limit: int = 300) -> str:
    """Return a text as a code span, on one line and safe in a table; "" for an empty text."""
    text = brief(value if isinstance(value, str) else str(value), limit)
    if not text:
        return ""
    matches = _FENCES.findall(text)
    longest = max((len(run) for run in matches), default=0)
    fence = "`" * (longest + 1)
    pad = ""
    if text.startswith("`") or text.endswith("`"):
        pad = " "
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def around(text: str) -> str:
    """Return a part of a sentence as prose, with the spaces at its ends."""
    before = " " if text[:1].isspace() else ""
    after = ""
    if text[-1:].isspace():
        after = " "
    return f"{before}{prose(text)}{after}"


def bar(share: float) -> str:
    """Return a bar of block characters for a percentage."""
    if share > 0:
        rounded = round(_BAR * share / 100)
        return "█" * max(1, rounded)
    return ""


_TAGS = "<details>\n<summary>{}</summary>\n\n{}\n\n</details>\n"
_NOTE = 120
"""Room kept in each section for the sentence that says what was left out."""


class Fold(msgspec.Struct, frozen=True):
    """A section that can be folded; its pieces may be left out, the last ones first."""

    title: str
    intro: str
    pieces: Sequence[str]
    close: str
    """What joins pieces: a line end for rows of a table, an empty line otherwise."""
    noun: str
    """What a piece is."""
    file: str
    """The file that has those left out."""

    def written(self, room: int) -> str:
        """Return the section in at most so many characters; "" where not even its beginning fits.

        Pieces that do not fit are counted.
        """
        beginning = len(self.title) + len(self.intro)
        used = len(_TAGS) + beginning + _NOTE
        pieces: list[str] = []
        for piece in self.pieces:
            size = len(piece) + len(self.close)
            if used + size > room:
                break
            pieces.append(piece)
            used += size
        if used > room:
            return ""
        body = self.intro + "".join(self.close + piece for piece in pieces)
        left_out = len(self.pieces) - len(pieces)
        if left_out:
            if left_out == 1:
                rest = f"{self.noun.removesuffix('s')} is"
            else:
                rest = f"{self.noun} are"
            body += f"\n\n{number(left_out)} more {rest} in {self.file}."
        return _TAGS.format(self.title, body.strip())


def folded(folds: Sequence[Fold], shares: Sequence[float], room: int) -> str:
    """Return sections in their order within a number of characters.

    What one leaves free the later ones may use.
    """
    texts, free = [], float(room)
    for position, fold in enumerate(folds):
        total_shares = sum(shares[position:])
        share = free * shares[position] / total_shares
        text = fold.written(int(share)) or f"{fold.title}: in report.html.\n"
        texts.append(text)
        free -= len(text) + 1
    return "\n".join(texts)

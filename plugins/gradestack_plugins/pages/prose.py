"""Texts in Markdown: what came from data becomes no heading, cell, link, mention or HTML."""

from __future__ import annotations

import re

from gradestack_plugins.pages.text import brief, clean

_BAR = 24
_SPECIAL = re.compile(r"[\\`*_\[\]#~]")
_FENCES = re.compile(r"`+")
_ITEM = re.compile(r"^([-+=]+|\d+(?=[.)]))(?=[.)]?(?:\s|$))")
"""What at the beginning of a block makes a list, a line across or a heading."""
_LINKED = re.compile(
    r"://|\bwww\.|\b(?:mailto|xmpp):|(?<!\w)@|@.*\.|#\d|\$|(?<!\w)[!%&~]\w|\bgh(?:sa)?-\w|:[-+]?[a-z]\w*:|:[-+]1:"
    r"|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
"""What GitHub and GitLab make links, mentions, references, formulas and emoji of once Markdown is rendered, where a
backslash or an entity does not help: addresses, @name, #1, GH-1, !1, hashes of commits."""


def prose(value: object) -> str:
    """Return a text that Markdown shows as it is, on one line and safe in a table.

    Markup is escaped; words that would become links all the same stand as code.
    """
    line = " ".join(map(_word, clean(str(value)).split()))
    return _ITEM.sub(lambda match: match[1] + "\\" if match[1].isdecimal() else "\\" + match[1], line)


def _word(word: str) -> str:
    return "&#124;".join(code(part, len(part)) if _LINKED.search(part) else _escaped(part) for part in word.split("|"))


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\g<0>", text).replace("@", "&#64;")


def code(value: object, limit: int = 300) -> str:
    """Return a text as a code span, on one line and safe in a table; "" for an empty text."""
    text = brief(value if isinstance(value, str) else str(value), limit)
    if not text:
        return ""
    longest = max((len(run) for run in _FENCES.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def bar(share: float) -> str:
    """Return a bar of block characters for a percentage."""
    return "█" * max(1, round(_BAR * share / 100)) if share > 0 else ""

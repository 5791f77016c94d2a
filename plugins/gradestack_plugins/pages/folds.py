"""A Markdown page with a limit: what stands first, and folded sections that take what room is left."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from gradestack_plugins.pages.text import number

_TAGS = "<details>\n<summary>{}</summary>\n\n{}\n\n</details>\n"
_NOTE = 120
"""Room kept in each section for the sentence that says what was left out."""


@attrs.frozen
class Fold:
    """A section that can be folded.

    Attributes:
        title: Its heading, a word of ours.
        intro: What stands before its pieces.
        pieces: What can be left out, the most important first.
        close: What joins them: a line end for rows of a table, an empty line otherwise.
        noun: What a piece is.
        place: Where those left out are.
    """

    title: str
    intro: str
    pieces: Sequence[str]
    close: str
    noun: str
    place: str

    def written(self, room: int) -> str:
        """Return the section in at most so many characters; "" where not even its beginning fits.

        Pieces that do not fit are counted.
        """
        used = len(_TAGS) + len(self.title) + len(self.intro) + _NOTE
        kept: list[str] = []
        for piece in self.pieces:
            size = len(piece) + len(self.close)
            if used + size > room:
                break
            kept.append(piece)
            used += size
        if used > room:
            return ""
        body = self.intro + "".join(self.close + piece for piece in kept)
        left_out = len(self.pieces) - len(kept)
        if left_out:
            told = f"{self.noun.removesuffix('s')} is" if left_out == 1 else f"{self.noun} are"
            body += f"\n\n{number(left_out)} more {told} in {self.place}."
        return _TAGS.format(self.title, body.strip())


def folded(folds: Sequence[Fold], shares: Sequence[float], room: int) -> str:
    """Return sections in their order within a number of characters; what one leaves free the later ones may use."""
    texts, free = [], float(room)
    for place, fold in enumerate(folds):
        own = free * shares[place] / sum(shares[place:])
        text = fold.written(int(own)) or f"{fold.title}: in report.html.\n"
        texts.append(text)
        free -= len(text) + 1
    return "\n".join(texts)

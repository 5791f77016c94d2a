"""JSON documents over several lines, where JSON Lines are expected: one thing that is wrong, not one per line."""

from __future__ import annotations

SPREAD = "a JSON document over several lines begins here; JSON Lines has one record per line"


class Documents:
    """Tells the lines of such documents from records.

    One begins with a line that holds opening brackets only, or, in a range that begins within it, with an indented one;
    it goes on as long as lines are indented, and ends with a line that begins with a closing bracket.

    Args:
        within: Whether what stands in front of the first line is not known.
    """

    def __init__(self, *, within: bool) -> None:
        self.inside = False
        self._within = within

    def go_on(self, line: bytes) -> bool:
        """Return whether a line belongs to the document that has begun."""
        if not self.inside:
            return False
        self.inside = line[:1] in (b" ", b"\t")
        return self.inside or line[:1] in (b"]", b"}")

    def begin(self, line: bytes) -> bool:
        """Return whether a document begins with a line that is no JSON."""
        text = line.strip()
        indented = line[:1] in (b" ", b"\t")
        self.inside = not text.strip(b"[{") or (self._within and indented)
        self._within = False
        return self.inside

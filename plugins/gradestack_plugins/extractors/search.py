"""Extractors that search the assistant's messages, the newest first."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

import attrs
from typing_extensions import override

from gradestack import Extractor, Sample
from gradestack_plugins.extractors.conversation import assistant_texts


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a pattern may come to mean in a later Python is no concern of the run
        return re.compile(pattern)


@attrs.frozen(kw_only=True)
class Pattern(Extractor):
    """Takes what a regular expression finds, "" when it matches no assistant message.

    The newest message it matches anywhere counts. By default the text of ``group`` of the first match; with
    ``search_all`` all matches of that message, joined by a space. A pattern with several groups gives one tuple per
    match there, of which ``group`` is the element, counted from zero; a pattern with one group gives that group, one
    without groups the whole match. A group that takes no part in the match is "".

    Python's ``re`` has no time limit: a pattern that backtracks without end blocks the run.

    Attributes:
        pattern: Regular expression, in Python's syntax.
        group: Which group is taken; 0 is the whole match.
        search_all: Take all matches of the message.
    """

    pattern: str
    group: int = 0
    search_all: bool = False

    def __attrs_post_init__(self) -> None:
        """Check the pattern and the group."""
        try:
            groups = _compiled(self.pattern).groups
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"pattern {self.pattern!r} is not a regular expression: {error}") from error
        highest = max(groups - 1, 0) if self.search_all and groups > 1 else groups
        ignored = self.search_all and groups <= 1
        if not ignored and not 0 <= self.group <= highest:
            counted = "element of the tuples" if self.search_all else "group of the pattern"
            raise ValueError(f"group {self.group} is no {counted}; there are 0 to {highest}")

    @override
    def extract(self, sample: Sample) -> str:
        pattern = _compiled(self.pattern)
        for text in reversed(assistant_texts(sample)):
            if self.search_all:
                matches = pattern.findall(text)
                if matches:
                    return " ".join(match[self.group] if isinstance(match, tuple) else match for match in matches)
            elif match := pattern.search(text):
                return match.group(self.group) or ""
        return ""


@attrs.frozen(kw_only=True)
class AfterMarker(Extractor):
    """Takes what follows the first occurrence of a marker, stripped, "" when no assistant message holds it.

    The newest message that holds the marker counts.

    Attributes:
        marker: Literal text, matched case-sensitively.
        include_marker: Keep the marker itself.
    """

    marker: str
    include_marker: bool = False

    def __attrs_post_init__(self) -> None:
        """Check the marker."""
        if not self.marker:
            raise ValueError("marker is empty: name the text that stands before the answer")

    @override
    def extract(self, sample: Sample) -> str:
        for text in reversed(assistant_texts(sample)):
            _before, marker, after = text.partition(self.marker)
            if marker:
                return (marker + after if self.include_marker else after).strip()
        return ""

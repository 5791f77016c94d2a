"""Extractors of assistant messages: last, first, all, those of the last turn."""

from __future__ import annotations

import attrs
from typing_extensions import override

from gradestack import Extractor, Sample
from gradestack_plugins.extractors.conversation import assistant_texts, turn_texts


@attrs.frozen(kw_only=True)
class LastAssistant(Extractor):
    """Takes the text of the last assistant message, "" when there is none.

    Messages that only carry tool calls are no texts. Content given as parts is joined with spaces. A sample without
    any recorded message gives its answer text.
    """

    @override
    def extract(self, sample: Sample) -> str:
        return next(reversed(assistant_texts(sample)), "")


@attrs.frozen(kw_only=True)
class FirstAssistant(Extractor):
    """Takes the text of the first assistant message, "" when there is none."""

    @override
    def extract(self, sample: Sample) -> str:
        return next(iter(assistant_texts(sample)), "")


@attrs.frozen(kw_only=True)
class AllAssistant(Extractor):
    """Takes the texts of all assistant messages of all turns, joined.

    Attributes:
        separator: Stands between two messages.
    """

    separator: str = "\n"

    @override
    def extract(self, sample: Sample) -> str:
        return self.separator.join(assistant_texts(sample))


@attrs.frozen(kw_only=True)
class LastTurn(Extractor):
    """Takes the texts of the last turn's assistant messages, joined; "" when that turn has none.

    Attributes:
        separator: Stands between two messages.
    """

    separator: str = "\n"

    @override
    def extract(self, sample: Sample) -> str:
        if not any(sample.turns):
            return sample.text or ""
        return self.separator.join(turn_texts(sample.turns[-1]))

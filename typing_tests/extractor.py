"""An extractor: a text out of a trajectory."""

from typing import assert_type

import attrs

from gradestack import Extractor, Message, Sample


@attrs.frozen(kw_only=True)
class FirstWord(Extractor):
    """The first word of the last answer."""

    empty: str = ""

    def extract(self, sample: Sample) -> str:
        """Return the word."""
        messages = [
            message
            for turn in sample.turns or ()
            for message in turn
            if message.role == "assistant"
        ]
        assert_type(messages, list[Message])
        return ((messages[-1].content or self.empty) if messages else self.empty).partition(" ")[0]


assert_type(FirstWord().extract(Sample(id="a")), str)


class Wordy(Extractor):
    """Returns no text."""

    def extract(self, sample: Sample) -> list[str]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return words."""
        return []

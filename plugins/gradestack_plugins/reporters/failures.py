"""Why points were lost: reasons by tool and argument, the most frequent first."""

from __future__ import annotations

import attrs

from gradestack import RowIndex
from gradestack_plugins.reporters.text import brief, percent

_MOST, _LONGEST = 40, 80


@attrs.frozen
class Failure:
    """One kind of reason."""

    number: int
    """Its number in the list of samples."""
    grader: str
    code: str
    subject: str
    argument: str
    samples: int
    share: str
    width: float

    @property
    def text(self) -> str:
        """It on one line."""
        about = f"{self.subject}.{self.argument}" if self.argument else self.subject
        return f"{self.code} {about}".strip()


def failures_of(index: RowIndex) -> tuple[tuple[Failure, ...], int]:
    """Return the most frequent kinds of reasons, and how many others there are."""
    tally = index.given
    ranked = sorted(tally.kinds.items(), key=lambda each: (-tally.samples[each[1]], each[0]))
    top = max(tally.samples, default=1)
    found = []
    for kind, number in ranked[:_MOST]:
        grader, code, subject, argument = (brief(part, _LONGEST) for part in kind)
        samples = tally.samples[number]
        share, width = percent(samples, len(index.entries)), round(100 * samples / top, 2)
        found.append(Failure(number, grader, code, subject, argument, samples, share, width))
    return tuple(found), len(ranked) - len(found)

"""Repeated records: found from eight bytes per sample, whatever the number of samples.

Every shard hands over a digest of (id, model, run) per sample. Digests are kept packed, in input order; sets are made
of a 256th of them at a time. Where a repeated record stands is looked up afterwards, in the rows or in the input, so
that places cost no memory.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import attrs

from gradestack.api import Reader, Shard
from gradestack.errors import GradestackError
from gradestack.grading.reading import records_of
from gradestack.model import Sample, Status

DIGEST = 8
"""Bytes of one digest."""
_WHOLE = 1 << 14
"""Digests of which one set is made; more are taken by their first byte."""


class Span(NamedTuple):
    """Where one shard's samples are."""

    first: int
    """Number of digests before it."""
    ordinal: int
    samples: int
    """Its rows, missing ones included."""
    offset: int
    """Byte of results.jsonl its rows start at."""


@attrs.define
class Identities:
    """Digests of all samples so far, in input order."""

    digests: array[int] = attrs.field(factory=lambda: array("Q"))
    spans: list[Span] = attrs.field(factory=list)
    _due: int = 1

    def add(self, keys: bytes, ordinal: int, samples: int = 0, offset: int = 0) -> None:
        """Take in the digests of one shard: eight bytes each."""
        if keys:
            self.spans.append(Span(len(self.digests), ordinal, samples, offset))
            self.digests.frombytes(keys)

    def early(self) -> bool:
        """Return whether something repeats; looks only when there are twice as many as at its last look."""
        if len(self.digests) < self._due:
            return False
        self._due = 2 * len(self.digests)
        return self.repeated(1)[0] > 0

    def repeated(self, most: int) -> tuple[int, list[int]]:
        """Return how many digests repeat an earlier one, and the positions of the first ``most`` of those."""
        count, first = 0, list[int]()
        for digests, positions in self._groups():
            extra = len(digests) - len(set(digests))
            if extra:
                count += extra
                first = sorted([*first, *_later_ones(digests, positions, most)])[:most]
        return count, first

    def _groups(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        if len(self.digests) <= _WHOLE:
            yield self.digests, range(len(self.digests))
            return
        groups = [array("I" if len(self.digests) < 1 << 32 else "Q") for _ in range(256)]
        take = [group.append for group in groups]
        for position, digest in enumerate(self.digests):
            take[digest >> 56](position)
        for number, group in enumerate(groups):
            yield array("Q", map(self.digests.__getitem__, group)), group
            groups[number] = array("I")

    def last_of_repeated(self) -> dict[int, tuple[int, int]]:
        """Return where the last of every repeated digest stands: shard and position among its digests."""
        again: set[int] = set()
        for digests, positions in self._groups():
            if len(set(digests)) < len(digests):
                again.update(self.digests[at] for at in _later_ones(digests, positions, len(digests)))
        if not again:
            return {}
        found = {digest: at for at, digest in enumerate(self.digests) if digest in again}
        return {digest: self.place(at)[:2] for digest, at in found.items()}

    def place(self, position: int) -> tuple[int, int, Span]:
        """Return the shard of a digest, the position in it, and the shard's span."""
        span = self.spans[bisect_right(self.spans, position, key=lambda span: span.first) - 1]
        return span.ordinal, position - span.first, span

    def wanted(self, positions: Sequence[int]) -> dict[Span, list[int]]:
        """Return positions by shard, as positions in it."""
        found: dict[Span, list[int]] = {}
        for position in positions:
            _, inside, span = self.place(position)
            found.setdefault(span, []).append(inside)
        return found


def _later_ones(digests: Sequence[int], positions: Sequence[int], most: int) -> list[int]:
    seen: set[int] = set()
    found: list[int] = []
    for digest, position in zip(digests, positions, strict=True):
        if digest not in seen:
            seen.add(digest)
        else:
            found.append(position)
            if len(found) == most:
                break
    return found


def places_in_input(
    reader: Reader,
    shards: Mapping[int, Shard],
    index: Any,
    wanted: Mapping[Span, Sequence[int]],
    takes: Callable[[Sample, tuple[int, int]], bool] | None,
) -> list[str]:
    """Return the places of samples, by shard and position in it, from the input, read again."""
    found: list[str] = []
    for span, positions in wanted.items():
        samples = (each for each in records_of(reader, shards[span.ordinal], index) if isinstance(each, Sample))
        kept = (
            f"{sample.source or sample.id}"
            for position, sample in enumerate(samples)
            if (takes is None or takes(sample, (span.ordinal, position))) and sample.status is not Status.MISSING
        )
        try:
            found += picked(kept, positions)
        except (GradestackError, OSError):  # the input is gone by now; the count stands, only the list ends here
            break
    return found


def picked(places: Iterator[str], positions: Sequence[int]) -> list[str]:
    """Return the entries at some positions of an iterator, reading no further than the last of them."""
    chosen = set(positions)
    return [place for at, place in enumerate(islice(places, max(positions) + 1)) if at in chosen]

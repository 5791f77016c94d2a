"""Which samples of the input count, which repeat others (eight bytes per sample tell), and their dataset.

Every shard hands over a digest of (id, model, run) per sample. Digests are kept packed, in input order; sets are made
of a 256th of them at a time. Where a repeated record stands is looked up afterwards, in the rows or in the input, so
that places cost no memory.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import attrs
import msgspec

from gradestack.api import Reader, Shard
from gradestack.errors import DataError, GradestackError
from gradestack.grading.plan import Plan
from gradestack.grading.reading import records_of, shards_of
from gradestack.grading.subset import Fields, Subset
from gradestack.model import BadRecord, Sample, Status, replace

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


_encode = msgspec.json.Encoder().encode
_MASK, _HALF, _STEP = (1 << 64) - 1, 1 << 63, 0x9E3779B97F4A7C15
_MOST_MARKS = 1 << 16


def digests(samples: Sequence[Sample]) -> list[int]:
    """Return 64 bits of each sample's identity (id, model, run): those of its task, and a step for each trial."""
    marks = [_marks.get(key) or _mark(key) for key in [(sample.id, sample.model) for sample in samples]]
    return [
        (mark + (run * _STEP if type(run) is int and -_HALF <= run < _HALF else _mark((run,)))) & _MASK
        for mark, run in zip(marks, [sample.run for sample in samples], strict=True)
    ]


_marks: dict[tuple[Any, ...], int] = {}
"""Those of tasks met before: a task has several trials."""


def _mark(identity: tuple[Any, ...]) -> int:
    try:
        text = _encode(identity)
    except (TypeError, UnicodeEncodeError):  # a text of a class of its own, or a lone surrogate: the same form
        text = json.dumps(identity, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(_marks) >= _MOST_MARKS:
        _marks.clear()
    mark = _marks[identity] = int.from_bytes(blake2b(text, digest_size=DIGEST).digest())
    return mark


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A picklable choice of samples."""

    ids: frozenset[str] | None = None
    tags: frozenset[str] = frozenset()
    subset: Subset = Subset()
    last: Mapping[int, tuple[int, int]] | None = None
    """Identity digest -> (shard, position) of the record that counts, when the last duplicate wins."""

    def takes(self, sample: Sample, place: tuple[int, int]) -> bool:
        """Return whether a sample counts; ``place`` is its shard and its position in it."""
        if self.ids is not None and sample.id not in self.ids:
            return False
        if self.tags and not self.tags & tags_of(sample):
            return False
        if self.subset and not self.subset.admits(Fields.of(sample)):
            return False
        return not self.superseded(sample, place)

    def superseded(self, sample: Sample, place: tuple[int, int]) -> bool:
        """Return whether a later record of the same (id, model, run) takes this one's place."""
        return self.last is not None and self.last.get(*digests([sample])) not in (None, place)


def tags_of(sample: Sample) -> set[str]:
    """Return the facet ``tags``: a list of texts, or one text."""
    tags = sample.facets.get("tags")
    if isinstance(tags, str):
        return {tags}
    return {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list | tuple) else set()


def _samples(reader: Reader, shards: Iterable[Shard], index: Any) -> Iterator[tuple[tuple[int, int], Sample]]:
    for shard in shards:
        samples = (each for each in records_of(reader, shard, index) if isinstance(each, Sample))
        for position, sample in enumerate(samples):
            yield (shard.ordinal, position), sample


def first_ids(
    reader: Reader, shards: Iterable[Shard], index: Any, count: int, takes: Callable[[Sample], bool]
) -> frozenset[str]:
    """Return the first ``count`` distinct task ids of the samples that are taken; reads no further than it must."""
    found: set[str] = set()
    for sample in (each for _, each in _samples(reader, shards, index) if takes(each)):
        if sample.id not in found and len(found) == count:
            break
        found.add(sample.id)
    return frozenset(found)


def last_ones(reader: Reader, shards: Iterable[Shard], index: Any) -> dict[int, tuple[int, int]]:
    """Return where the last record of every repeated (id, model, run) stands: a first pass over all inputs."""
    found = Identities()
    for shard in shards:
        keys = array("Q", (digests([sample])[0] for _, sample in _samples(reader, [shard], index)))
        found.add(keys.tobytes(), shard.ordinal)
    return found.last_of_repeated()


def read_dataset(plan: Plan) -> tuple[dict[str, Sample] | None, list[str]]:
    """Return the rows of the dataset by id, and ids of rows that expect something else than an earlier one of theirs.

    None in place of rows: there is no dataset, or the reader joins it itself. Of several rows of an id the last counts.
    """
    stage, dataset = plan.dataset_reader, plan.inputs.dataset
    if stage is None or dataset is None:
        return None, []
    shards, index = shards_of(stage.component, msgspec.structs.replace(plan.inputs, data=(dataset,), dataset=None))
    rows: dict[str, Sample] = {}
    others: dict[str, None] = {}
    for shard in shards:
        for record in records_of(stage.component, shard, index):
            if isinstance(record, BadRecord):
                raise DataError(f"{replace(record.source, file=str(dataset.path))}: {record.reason}")
            if (earlier := rows.get(record.id)) is not None and earlier.expected != record.expected:
                others[record.id] = None
            if not plan.max_samples or plan.subset or len(rows) < plan.max_samples or earlier is not None:
                rows[record.id] = record
    if not rows:
        raise DataError(f"{dataset.path}: the dataset holds no row")
    return rows, list(others)


def joined(sample: Sample, dataset: Mapping[str, Sample], *, same_inputs: bool = False) -> Sample:
    """Return a sample with what the dataset knows of its task: expectations always, tools and input if it has none."""
    row = dataset.get(sample.id)
    if row is None:
        return sample
    if same_inputs and None not in (row.input, sample.input) and row.input != sample.input:
        msg = f"{sample.source or sample.id}: the input of sample {sample.id!r} differs from the dataset's"
        raise DataError(msg, "the recording was made with another dataset; grade it with that one")
    changes: dict[str, Any] = {"expected": row.expected}
    if row.facets:
        changes["facets"] = {**row.facets, **sample.facets}
    if sample.tools is None and row.tools is not None:
        changes["tools"] = row.tools
    if sample.input is None and row.input is not None:
        changes["input"] = row.input
    return replace(sample, **changes)


def unmatched(dataset: Mapping[str, Sample], seen: set[tuple[str, str, str]]) -> tuple[list[str], list[str]]:
    """Return the ids of samples that have no row in the dataset, sorted, and of rows that no sample answers."""
    there = {identifier for _, identifier, _ in seen}
    return sorted(there - dataset.keys()), [identifier for identifier in dataset if identifier not in there]


def unanswered(dataset: Mapping[str, Sample], seen: set[tuple[str, str, str]]) -> Iterator[Sample]:
    """Yield a missing sample for every dataset row no record answers, per model seen, and per run where told apart."""
    models = sorted({model for model, _, _ in seen}) or [""]
    runs = {run: json.loads(run) if run else None for run in sorted({run for _, _, run in seen}) or [""]}
    for model in models:
        for run, number in runs.items():
            for identifier, row in dataset.items():
                if (model, identifier, run) not in seen:
                    yield replace(row, model=model or None, status=Status.MISSING, run=number, native=None)

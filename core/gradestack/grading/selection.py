"""Which samples of the input count: the first tasks, certain tags, the last of several duplicates."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from gradestack.api import Reader, Shard
from gradestack.grading.duplicates import DIGEST, Identities
from gradestack.grading.reading import records_of
from gradestack.grading.subset import Fields, Subset
from gradestack.model import Sample

_encode = msgspec.json.Encoder().encode
_MASK, _HALF, _STEP = (1 << 64) - 1, 1 << 63, 0x9E3779B97F4A7C15


def digests(samples: Sequence[Sample]) -> list[int]:
    """Return 64 bits of each sample's identity (id, model, run): those of its task, and a step for each trial."""
    marks = map(_mark, [(sample.id, sample.model) for sample in samples])
    return [
        (mark + (run * _STEP if type(run) is int and -_HALF <= run < _HALF else _mark((run,)))) & _MASK
        for mark, run in zip(marks, [sample.run for sample in samples], strict=True)
    ]


@lru_cache(1 << 16)  # a task has several trials
def _mark(identity: tuple[Any, ...]) -> int:
    try:
        text = _encode(identity)
    except (TypeError, UnicodeEncodeError):  # a text of a class of its own, or a lone surrogate: the same form
        text = json.dumps(identity, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=DIGEST).digest())


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

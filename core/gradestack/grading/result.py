"""What one shard, and a whole run, came to."""

from __future__ import annotations

from typing import Any

import msgspec

LISTED = 1000
"""Bad and repeated records are all counted; this many are listed."""


class Tally(msgspec.Struct, kw_only=True):
    """What is counted of a shard, and of a whole run."""

    samples: int = 0
    bad: int = 0
    bad_listed: list[dict[str, Any]] = msgspec.field(default_factory=list)
    remarks: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    """Kind of remark on records -> how many, and where the first was."""
    ids: dict[str, str] = msgspec.field(default_factory=dict)
    """How ids that are whole numbers were recorded, ``number`` or ``text`` -> where the first was."""
    left_out: int = 0
    """Samples that the first tasks, tags or a subset leave out."""
    facets: set[str] = msgspec.field(default_factory=set)
    """Names of facets, only kept where a filter is asked."""
    seen: set[tuple[str, str, str]] = msgspec.field(default_factory=set)
    """(model, id, run as JSON or "" where runs are not told apart), only kept when a dataset is joined."""
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    """Aggregators (``grader/metric``) and exporters (name) that raised, with what they said."""
    breaches: dict[str, str] = msgspec.field(default_factory=dict)
    """What components of others did against their contracts, by whom and which law, and where first."""
    timings: dict[str, float] = msgspec.field(default_factory=dict)
    """Grader key -> seconds."""
    tracebacks: dict[str, str] = msgspec.field(default_factory=dict)
    """Grader key -> traceback of the first error it raised."""
    timed_out: int = 0
    """Grades that took too long: another machine may give others."""
    interrupted: bool = False


class ShardResult(Tally, kw_only=True):
    """Everything one shard came to."""

    ordinal: int
    input: str
    parts: Any = None
    """What its piece was closed with, for the recorder: where rows and native chunks are."""
    table: bytes = b""
    """Its columns of the table of grades."""
    keys: bytearray = msgspec.field(default_factory=bytearray)
    """Eight bytes per sample that is not missing: digests of (id, model, run), for finding duplicates."""
    superseded: list[str] = msgspec.field(default_factory=list)
    """Places of records left out because a later one of the same (id, model, run) counts."""

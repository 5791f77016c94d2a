"""Helpers of all sessions: runs with their session's id, and lines that were written twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final

from gradestack.jsonio import compact
from gradestack_plugins.readers.runs import Record, Run

SURE: Final = 0.97
"""How sure a reader is of a file of its own program."""


def session_run(first: Record, session: str, stem: str, parent: str = "") -> Run:
    """Return the run of a session, whose entries are to be added.

    Args:
        first: The first record of the session, which is its source.
        session: Its id; "" where none is recorded.
        stem: The id where none is recorded.
        parent: The session that began this one as its sub-agent; "" where none did.
    """
    run = Run(id=session or stem, entries=[], source=first.source, first=first.value)
    if parent:
        run.id = f"{parent}/{session}"
    root = parent or session
    if root:
        run.cluster = root
        run.trace = {"session_id": root}
    add_facets(run, subagent_of=parent)
    return run


def add_facets(run: Run, **facets: Any) -> None:
    """Add the facets that are a text which is not empty."""
    texts = {name: text for name, text in facets.items() if isinstance(text, str) and text}
    run.facets = {**run.facets, **texts}


def day_of(timestamp: Any) -> str:
    """Return the day of a time in ISO form; "" of anything else."""
    return timestamp[:10] if isinstance(timestamp, str) else ""


def drop_repeated_lines(
    records: Iterable[Record], identity_of: Callable[[Any], str | bytes], remarks: dict[str, int]
) -> Iterator[Record]:
    """Yield records without those that were written twice, which are remarked.

    Args:
        records: The records of a file.
        identity_of: Returns the identity of a record; an empty one where it has none.
        remarks: The remarks on the file; ``repeated_line`` is counted.
    """
    identities: set[str | bytes] = set()
    for record in records:
        identity = identity_of(record.value)
        if identity and identity in identities:
            repeated_line = remarks.get("repeated_line", 0)
            remarks["repeated_line"] = repeated_line + 1
            continue
        identities.add(identity)
        yield record


def timed_line(line: Any) -> bytes:
    """Return a digest of a line with a time, which no other line has; b"" of one without."""
    if "timestamp" not in line:
        return b""
    return blake2b(compact(line).encode(errors="surrogatepass"), digest_size=16).digest()

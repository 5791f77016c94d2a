"""How sure it is that a file holds dataset records, replies to them, or both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, Final

from gradestack.jsonio import JsonProblem, loads
from gradestack_plugins.deepfabric.records import RECORD_KEYS
from gradestack_plugins.deepfabric.replies import kind_of

_LINES: Final = 10
"""Lines looked at: a damaged one, or one without a reply, may stand first."""
_CUT: Final = 65_000
"""A head shorter than this is the whole file."""
_FAR: Final = 16 * 1024 * 1024
"""What is read of a file whose usual head ends within the first lines: messages are long."""
_BEHIND_OTHERS: Final = 0.3
_REPLY: Final = 0.3
_TEXTS: Final = 0.1
_JOIN_KEYS: Final = frozenset({"id", "model", "run"})
_JOINED_KEYS: Final = _JOIN_KEYS | {"sample", "recorded", "response"}
_SPOKEN: Final = frozenset({"content", "text", "tool_call", "tool_calls"})
_REPLY_KEYS: Final = _JOIN_KEYS | _SPOKEN | {"kind", "message", "error"}
_FIRST_KEY: Final = re.compile(rb'\{\s*"([a-z_]+)"')


def certainty(path: Path, head: bytes) -> float:
    """Return how sure it is that a file is of this format, from 0 to 1.

    Joined lines count 0.95 (0.8 where the reply is none), records with a reply 0.9, records that say which call they
    expect 0.7, replies that name their kind 0.6, replies known by their keys 0.3, and a ``.jsonl`` file of texts 0.1.
    Of the first lines the surest counts; behind objects of another form it counts little. Where the head ends within
    them, more of the file is read.
    """
    lines, rest = _lines(head, _CUT)
    found = _among(lines, path)
    if found is None and rest and _may_be_ours(rest):
        try:
            with path.open("rb") as file:
                lines, rest = _lines(file.read(_FAR), _FAR)
        except OSError:  # reading it will say so
            return _cut(rest)
        found = _among(lines, path)
    return (_cut(rest) if rest else 0.0) if found is None else found


def _lines(head: bytes, least: int) -> tuple[list[bytes], bytes]:
    """Return the first lines of a file that are not blank, and the one that is broken off, b"" when none is.

    What is shorter than ``least`` is a whole file.
    """
    *whole, last = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    cut = len(head) >= least
    lines = list(islice((line.strip() for line in (whole if cut else [*whole, last]) if line.strip()), _LINES))
    return lines, last if cut and len(lines) < _LINES else b""


def _among(lines: list[bytes], path: Path) -> float | None:
    """Return what the first lines say, None when they say nothing, as those that are not JSON do."""
    if lines and (lines[0] == b"{" or lines[0].startswith(b"[")):
        return 0.0  # one document over many lines, or a list
    best, others, texts = 0.0, False, 0
    for value in _values(lines):
        found = _looks(value)
        if found:
            best = max(best, min(found, _BEHIND_OTHERS) if others else found)
        elif found is not None:
            others = True
        texts += isinstance(value, str)
    if best or others:
        return best
    return _TEXTS if texts and path.suffix == ".jsonl" else None


def _values(lines: Iterable[bytes]) -> Iterable[Any]:
    for line in lines:
        try:
            yield loads(line)
        except JsonProblem:
            continue


def _looks(value: Any) -> float | None:
    """Return how much a line looks like one of this format; None where it neither does nor speaks against it."""
    if isinstance(value, str) or value is None:
        return None
    if not isinstance(value, dict) or "expected" in value or "predicted" in value:
        return 0.0
    reply = value.get("recorded", value.get("response"))
    replied = isinstance(reply, str) or (isinstance(reply, dict) and kind_of(reply) is not None)
    sample = value.get("sample")
    if isinstance(sample, dict) and "messages" in sample and (replied or value.keys() <= _JOINED_KEYS):
        return 0.95 if replied else 0.8
    if isinstance(sample, dict) and replied:
        return 0.5
    if isinstance(value.get("messages"), list):
        if replied:
            return 0.9
        own = "tool_context" in value or "executions" in value
        return 0.7 if own else None if value.keys() <= _JOINED_KEYS | RECORD_KEYS else 0.0
    if kind_of(value) is not None and isinstance(value.get("kind"), str):
        return 0.6
    if replied or "tool_call" in value:
        return _REPLY
    if value.keys() <= _REPLY_KEYS and kind_of(value) is not None:
        # A lone message or error may be anyone's; more often than not it is no reply to a record.
        return _REPLY if _SPOKEN & value.keys() else None
    return 0.0


def _may_be_ours(line: bytes) -> bool:
    first = _FIRST_KEY.match(line.lstrip())
    return first is not None and first[1].decode() in _JOINED_KEYS | _REPLY_KEYS | RECORD_KEYS


def _cut(line: bytes) -> float:
    """Judge a line longer than what was read of it."""
    return 0.6 if b'"messages"' in line and b'"tool_context"' in line else 0.0

"""How sure it is that a file holds dataset records, replies to them, or both."""

from __future__ import annotations

import re
from typing import Any, Final

from gradestack_plugins.deepfabric.records import RECORD_KEYS
from gradestack_plugins.deepfabric.replies import kind_of

_LONG: Final = 65_000
"""A shorter line that breaks off is a damaged one, which says nothing."""
_REPLY: Final = 0.3
_JOIN_KEYS: Final = frozenset({"id", "model", "run"})
_JOINED_KEYS: Final = _JOIN_KEYS | {"sample", "recorded", "response"}
_SPOKEN: Final = frozenset({"content", "text", "tool_call", "tool_calls"})
_REPLY_KEYS: Final = _JOIN_KEYS | _SPOKEN | {"kind", "message", "error"}
_FIRST_KEY: Final = re.compile(rb'\{\s*"([a-z_]+)"')


def looks_like(record: Any) -> float | None:
    """Return how much a line looks like one of this format; None where it neither does nor speaks against it.

    Joined lines count 0.95 (0.8 where the reply is none), records with a reply 0.9, records that say which call they
    expect 0.7, replies that name their kind or hold several turns 0.6 and replies known by their keys 0.3.
    """
    if isinstance(record, str) or record is None:
        return None
    if not isinstance(record, dict) or "expected" in record or "predicted" in record:
        return 0.0
    reply = record.get("recorded", record.get("response"))
    replied = isinstance(reply, str) or (isinstance(reply, dict) and kind_of(reply) is not None)
    sample = record.get("sample")
    if isinstance(sample, dict) and "messages" in sample and (replied or record.keys() <= _JOINED_KEYS):
        return 0.95 if replied else 0.8
    if isinstance(sample, dict) and replied:
        return 0.5
    if isinstance(record.get("messages"), list):
        if replied:
            return 0.9
        own = "tool_context" in record or "executions" in record
        return 0.7 if own else None if record.keys() <= _JOINED_KEYS | RECORD_KEYS else 0.0
    if kind_of(record) is not None and (isinstance(record.get("kind"), str) or _has_turns(record)):
        return 0.6
    if replied or "tool_call" in record:
        return _REPLY
    if record.keys() <= _REPLY_KEYS and kind_of(record) is not None:
        # A lone message or error may be anyone's; more often than not it is no reply to a record.
        return _REPLY if _SPOKEN & record.keys() else None
    return 0.0


def _has_turns(record: dict[str, Any]) -> bool:
    """Return whether a line holds the replies of several turns, each an object (a list would be messages)."""
    turns = record.get("turns")
    if not isinstance(turns, list) or not record.keys() <= _JOIN_KEYS | {"turns"}:
        return False
    return all(isinstance(each, dict) and bool(_SPOKEN & each.keys()) for each in turns)


def begins_like(text: bytes) -> float | None:
    """Return how much the beginning of a line looks like a long record; 0.0 where its first key is another format's."""
    if len(text) >= _LONG and b'"messages"' in text and b'"tool_context"' in text:
        return 0.6
    first = _FIRST_KEY.match(text)
    return None if first is not None and first[1].decode() in _JOINED_KEYS | _REPLY_KEYS | RECORD_KEYS else 0.0

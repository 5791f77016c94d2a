"""ragas: tool call accuracy over positions, and F1 over sets."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from gradestack_plugins.tool_calls.calls import Call
from gradestack_plugins.tool_calls.peers.verdict import Rule, Verdict, f1, refuse_undecodable


def accuracy(mode: str) -> Rule:
    """Return tool call accuracy, ``strict`` or ``flexible``: 0 unless all names agree, else the mean argument share."""

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        refuse_undecodable(expected, made)
        if not expected or not made:
            return Verdict(float(not expected and not made))
        wanted, done = list(expected), list(made)
        if mode == "flexible":
            wanted.sort(key=_sorting_key)
            done.sort(key=_sorting_key)
        if [call.name for call in wanted] != [call.name for call in done]:
            return Verdict(0.0)
        total = 0.0
        for call, other in zip(wanted, done, strict=True):
            total += _share(call.arguments, other.arguments)
        return Verdict(total / len(wanted))

    return verdict


def _sorting_key(call: Call) -> tuple[str, ...]:
    found = [call.name]
    for name in sorted(call.arguments):
        found += [name, str(call.arguments[name])]
    return tuple(found)


def _share(wanted: Mapping[str, Any], done: Mapping[str, Any]) -> float:
    """Return the share of the reference's arguments that are there as the same text; others are free."""
    if not wanted:
        return 0.0 if done else 1.0
    hits = sum(key in done and str(done[key]) == str(value) for key, value in wanted.items())
    return hits / len(wanted)


def call_f1(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
    """Return tool call F1: over sets of names with arguments, rounded to four places; 0 when both are empty."""
    refuse_undecodable(expected, made)
    wanted, done = ({(call.name, hashable(call.arguments)) for call in side} for side in (expected, made))
    hits = len(wanted & done)
    precision = hits / len(done) if done else 0.0
    recall = hits / len(wanted) if wanted else 0.0
    return Verdict(round(f1(precision, recall), 4))


def hashable(value: Any) -> Hashable:
    """Return a JSON value so that equal ones, in Python's sense, are equal and can be in a set."""
    if isinstance(value, Mapping):
        return frozenset((key, hashable(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    return value  # type: ignore[no-any-return]

"""deepeval: tool correctness, with its bookkeeping of used calls by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradestack_plugins.tool_calls.calls import Call
from gradestack_plugins.tool_calls.peers.ragas import hashable
from gradestack_plugins.tool_calls.peers.verdict import Rule, Verdict, refuse_undecodable

PASSES_AT = 0.5
Credit = Callable[[Call, Call], float]


def rule(mode: str, *, arguments: bool) -> Rule:
    """Return the rule of a mode: ``default``, ``ordering`` or ``exact``."""

    def credit(expected: Call, made: Call) -> float:
        if expected.name != made.name:
            return 0.0
        return _share(expected.arguments, made.arguments) if arguments else 1.0

    def exact(expected: Sequence[Call], made: Sequence[Call]) -> float:
        if len(expected) != len(made):
            return 0.0
        pairs = zip(expected, made, strict=True)
        return float(all(e.same(a) if arguments else e.name == a.name for e, a in pairs))

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        refuse_undecodable(expected, made)
        if mode == "exact":
            score = exact(expected, made)
        elif not expected:
            score = 0.0 if made else 1.0
        else:
            total = _ordered(expected, made, credit) if mode == "ordering" else _best_unused(expected, made, credit)
            score = total / len(expected)
        return Verdict(score, score >= PASSES_AT)

    return verdict


def _best_unused(expected: Sequence[Call], made: Sequence[Call], credit: Credit) -> float:
    """Return the credit of expected calls that each take the best call left; a call taken bars all that equal it."""
    values = [(call.name, hashable(call.arguments)) for call in made]
    used: set[Any] = set()
    total = 0.0
    for wanted in expected:
        best, taken = 0.0, None
        for call, value in zip(made, values, strict=True):
            if call.name == wanted.name and value not in used and (found := credit(wanted, call)) > best:
                best, taken = found, value
        if taken is not None:
            total += best
            used.add(taken)
    return total


def _ordered(expected: Sequence[Call], made: Sequence[Call], credit: Credit) -> float:
    """Return the weight of the heaviest common subsequence."""
    above = [0.0] * (len(made) + 1)
    for wanted in expected:
        row = [0.0]
        for place, call in enumerate(made):
            found = credit(wanted, call)
            best = max(above[place + 1], row[place])
            row.append(max(best, above[place] + found) if found > 0 else best)
        above = row
    return above[-1]


def _share(wanted: Mapping[str, Any], done: Mapping[str, Any]) -> float:
    """Return the share of equal keys among the keys of both, objects in turn by theirs."""
    if wanted == done:
        return 1.0
    total, keys = 0.0, len(wanted.keys() | done.keys())
    for key, value in wanted.items():
        if key not in done:
            continue
        if value == done[key]:
            total += 1 / keys
        elif isinstance(value, dict) and isinstance(done[key], dict):
            total += _share(value, done[key]) / keys
    return total

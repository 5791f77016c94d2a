"""Rules that look at names only: pydantic-evals' trajectory match and waza's action sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradestack_plugins.tool_calls.calls import Call
from gradestack_plugins.tool_calls.peers.verdict import Rule, Verdict, f1, refuse_nothing


def trajectory_match(mode: str) -> Rule:
    """Return pydantic-evals' rule of an order; calls that failed are left out."""

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        wanted, done = [call.name for call in expected], [call.name for call in made if not call.failed]
        if mode == "exact":
            return Verdict(float(wanted == done))
        if not wanted or not done:
            return Verdict(float(not wanted and not done))
        hits = common_run(wanted, done) if mode == "in_order" else _shared(wanted, done)
        return Verdict(f1(hits / len(done), hits / len(wanted)))

    return verdict


def action_sequence(mode: str) -> Rule:
    """Return waza's rule of a mode, which decides the verdict; the score is F1 over the names, repeats kept."""

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        refuse_nothing(expected)
        wanted, done = [call.name for call in expected], [call.name for call in made]
        if mode == "exact_match":
            passed = wanted == done
        elif mode == "in_order_match":
            rest = iter(done)
            passed = all(name in rest for name in wanted)
        else:
            passed = not Counter(wanted) - Counter(done)
        hits = _shared(wanted, done)
        return Verdict(f1(hits / len(done) if done else 0.0, hits / len(wanted)), passed)

    return verdict


def _shared(wanted: Sequence[str], done: Sequence[str]) -> int:
    return sum((Counter(wanted) & Counter(done)).values())


def common_run(wanted: Sequence[str], done: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    above = [0] * (len(done) + 1)
    for name in wanted:
        row = [0]
        for place, other in enumerate(done):
            row.append(above[place] + 1 if name == other else max(above[place + 1], row[place]))
        above = row
    return above[-1]

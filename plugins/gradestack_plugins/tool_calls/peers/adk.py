"""Google ADK: trajectories of invocations, each all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradestack import Sample
from gradestack_plugins.tool_calls.calls import Call
from gradestack_plugins.tool_calls.peers.verdict import Raised, SampleRule, Verdict, refuse_undecodable

Match = Callable[[Sequence[Call], Sequence[Call]], bool]


def rule(mode: str, *, names: bool) -> SampleRule:
    """Return the rule of a match type: the share of invocations that match, passed at 1."""

    def same(expected: Call, made: Call) -> bool:
        return expected.name == made.name if names else expected.same(made)

    def exact(expected: Sequence[Call], made: Sequence[Call]) -> bool:
        return len(expected) == len(made) and all(map(same, expected, made))

    def in_order(expected: Sequence[Call], made: Sequence[Call]) -> bool:
        waiting = list(reversed(expected))
        for call in made:
            if waiting and same(waiting[-1], call):
                waiting.pop()
        return not waiting

    def any_order(expected: Sequence[Call], made: Sequence[Call]) -> bool:
        left = list(made)
        for call in expected:
            place = next((at for at, other in enumerate(left) if same(call, other)), None)
            if place is None:
                return False
            left.pop(place)
        return True

    match: Match = {"exact": exact, "in_order": in_order, "any_order": any_order}[mode]

    def verdict(expected: Sequence[Call], made: Sequence[Call], sample: Sample) -> Verdict:
        refuse_undecodable(expected, made)
        pairs = invocations(expected, made, sample)
        total = 0.0
        for wanted, done in pairs:
            total += match(wanted, done)
        score = total / len(pairs)
        return Verdict(score, score >= 1)

    return verdict


def invocations(
    expected: Sequence[Call], made: Sequence[Call], sample: Sample
) -> list[tuple[Sequence[Call], Sequence[Call]]]:
    """Return expected and made calls by invocation, which is a user's turn; one, where the reference has no turns.

    Raises:
        Raised: There are not as many on either side.
    """
    if all(call.turn is None for call in expected):
        return [(expected, made)]
    wanted, done = by_turn(expected), by_turn(made)
    recorded = max(len(done), len(sample.turns) if len(sample.turns) > 1 else 0)
    if len(wanted) != recorded:
        told = f"{len(wanted)} invocations are expected, {recorded} were made; the original program raises on that"
        raise Raised("unequal_invocations", told)
    return [(calls, done[turn] if turn < len(done) else []) for turn, calls in enumerate(wanted)]


MOST_TURNS = 10_000
"""Turns that are laid out; a call may claim any number."""


def by_turn(calls: Sequence[Call]) -> list[list[Call]]:
    """Return calls by turn, from the first to the last one that has a call; those without a turn are in the first.

    Raises:
        Raised: A turn is no turn.
    """
    last = max((call.turn or 0 for call in calls), default=0)
    if last >= MOST_TURNS or any((call.turn or 0) < 0 for call in calls):
        raise Raised("odd_turns", f"turns must lie between 0 and {MOST_TURNS}")
    found: list[list[Call]] = [[] for _ in range(last + 1)]
    for call in calls:
        found[call.turn or 0].append(call)
    return found

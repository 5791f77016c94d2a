"""MLflow: tool call correctness by exact match, over texts of whole calls."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gradestack_plugins.tool_calls.calls import Call
from gradestack_plugins.tool_calls.peers.verdict import Rule, Verdict, boolean, refuse_nothing, refuse_undecodable


def rule(*, ordered: bool) -> Rule:
    """Return the rule; without order, calls are compared as sets, once their numbers agree."""

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        refuse_nothing(expected)
        if len(expected) != len(made):
            return boolean(False)
        arguments = all(call.compared for call in expected)
        if arguments:
            refuse_undecodable(expected, made)
        wanted, done = ([_signature(call, arguments=arguments) for call in side] for side in (expected, made))
        return boolean(wanted == done if ordered else set(wanted) == set(done))

    return verdict


def _signature(call: Call, *, arguments: bool) -> str:
    return f"{call.name}({json.dumps(call.arguments, sort_keys=True, default=str)})" if arguments else call.name

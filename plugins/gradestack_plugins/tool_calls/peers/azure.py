"""Azure AI Evaluation: task navigation efficiency, over names or names with parameters compared as text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gradestack_plugins.tool_calls.calls import Call, is_json
from gradestack_plugins.tool_calls.peers.verdict import NotTold, Raised, Rule, Verdict, boolean, f1, refuse_nothing

Step = tuple[str, tuple[tuple[str, str], ...]]


def rule(mode: str, *, names: bool) -> Rule:
    """Return the rule of a matching mode, or ``f1``: the property beside each mode's verdict."""

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        refuse_nothing(expected)
        if not names:
            _check_parameters(expected)
        for call in (*expected, *made):
            if call.raw is not None and not is_json(call.raw):
                told = f"the arguments of {call.name} are no JSON, and the original program raises on that"
                raise Raised("undecodable_arguments", told)
        wanted, done = ([_step(call, names=names) for call in side] for side in (expected, made))
        if mode == "f1":
            return _f1(wanted, done)
        if mode == "exact_match":
            return boolean(wanted == done)
        if mode == "in_order_match":
            rest = iter(done)
            return boolean(all(step in rest for step in wanted))
        counts = Counter(done)
        return boolean(all(counts[step] >= number for step, number in Counter(wanted).items()))

    return verdict


def _check_parameters(expected: Sequence[Call]) -> None:
    """Refuse what the original's one set of parameters per tool cannot hold.

    Raises:
        NotTold: Two expected calls of one tool have different arguments.
    """
    known: dict[str, str] = {}
    for call in expected:
        name, said = call.name.strip(), json.dumps(call.arguments, sort_keys=True, default=str)
        if known.setdefault(name, said) != said:
            told = f"{name} is expected with different arguments; the original takes one set of them for each tool"
            raise NotTold("not_expressible", told)


def _step(call: Call, *, names: bool) -> Step:
    arguments: Mapping[str, Any] = {} if names else call.arguments
    return call.name.strip(), tuple(sorted((key, _text(value)) for key, value in arguments.items()))


def _text(value: Any) -> str:
    """Return a parameter as it is compared: only the top level becomes text."""
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True, default=str)
    return str(value)


def _f1(wanted: Sequence[Step], done: Sequence[Step]) -> Verdict:
    hits = sum((Counter(wanted) & Counter(done)).values())
    precision = hits / len(done) if done else 0.0
    recall = hits / len(wanted) if done else 0.0
    return Verdict(f1(precision, recall), None, {"precision": precision, "recall": recall})

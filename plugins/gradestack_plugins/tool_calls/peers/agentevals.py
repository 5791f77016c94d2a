"""agentevals: trajectory matches, first fit, with modes for the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradestack_plugins.tool_calls.calls import Call
from gradestack_plugins.tool_calls.peers.verdict import Rule, Verdict, boolean, refuse_undecodable

Agree = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


def _within(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    return all(key in outer and outer[key] == value for key, value in inner.items())


ARGUMENTS: Mapping[str, Agree] = {
    "exact": lambda output, reference: output == reference,
    "ignore": lambda _output, _reference: True,
    "subset": _within,
    "superset": lambda output, reference: _within(reference, output),
}
"""Mode -> whether an output's arguments agree with a reference's."""


def rule(mode: str, arguments: str) -> Rule:
    """Return the rule of a trajectory match mode and a mode of the arguments.

    ``subset`` looks for each made call among the expected ones, and with that the arguments change sides.
    """
    agree = ARGUMENTS[arguments]

    def found(outputs: Sequence[Call], references: Sequence[Call]) -> bool:
        """Return whether every reference finds a call of its own among the outputs, first fit."""
        left = list(outputs)
        for wanted in references:
            free = not wanted.compared
            for place, call in enumerate(left):
                if call.name == wanted.name and (free or agree(call.arguments, wanted.arguments)):
                    left.pop(place)
                    break
            else:
                return False
        return True

    def strict(made: Sequence[Call], expected: Sequence[Call]) -> bool:
        return len(made) == len(expected) and all(found([a], [e]) for a, e in zip(made, expected, strict=True))

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        refuse_undecodable(expected, made)
        if mode == "strict":
            return boolean(strict(made, expected))
        if mode == "superset":
            return boolean(found(made, expected))
        if mode == "subset":
            return boolean(found(expected, made))
        return boolean(found(made, expected) and found(expected, made))

    return verdict

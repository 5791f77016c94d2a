"""Why a preset's verdict differs from the outcome's, from what the outcome grader found and the preset's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTHING_EXPECTED, OTHER_ORDER = "nothing_expected", "other_order"
"""Traits of samples that are no codes of reasons, as the index of a run names them."""
_NAMES_ONLY = "only names of tools are compared, no arguments"
_ONCE = "one call counts for several equal ones: expected twice and made once is right"
_AGAIN = "a call made again costs nothing: equal calls count once"
_SPELLED = "a call of a name spelled otherwise counts as the one expected"
_NOT_MADE = "expected calls that were not made cost nothing"
_PART = "a score below 1 is enough to pass"
_FREE = {
    "extra_call": "calls nobody expected cost nothing",
    "unexpected_call": "calls cost nothing where none is expected",
    "missing_argument": "arguments left out cost nothing",
    "unknown_argument": "arguments nobody expected cost nothing",
    "wrong_type": "values of another type count as equal",
    "wrong_value": "other values count as equal",
    "wrong_order": "the order of calls counts for nothing",
    "undecodable_arguments": "arguments that are no JSON object count as right",
}
_ARGUMENTS = frozenset({"missing_argument", "unknown_argument", "wrong_type", "wrong_value", "undecodable_arguments"})
_EQUAL = {"text": 'values are compared as text, so "1" is 1', "python": "values are compared as Python does: true is 1"}


def softer(code: str, options: Mapping[str, Any], *, part: bool) -> str:
    """Return why a preset passes samples in which the outcome grader found something wrong.

    Args:
        code: What it found: the code of a reason, "" where it gives none.
        options: The preset's options, as header.json has them.
        part: Whether the preset passes them with a score below 1.
    """
    if code in _ARGUMENTS:
        if options.get("arguments") == "ignore":
            return _NAMES_ONLY
        if part:
            return _PART
        if options.get("missing", "allow") == options.get("extra") == "allow":
            return _NOT_MADE
        return _EQUAL.get(str(options.get("equality")), _FREE[code]) if code == "wrong_type" else _FREE[code]
    if code == "missing_call":
        return _missing(options, part=part)
    if code == "extra_call" and options.get("extra", "allow") != "allow":
        return _AGAIN if options.get("repeats") == "set" else _PART if part else _SPELLED
    return _FREE.get(code) or (f"{code.replace('_', ' ')} costs nothing" if code else "no reason is given")


def _missing(options: Mapping[str, Any], *, part: bool) -> str:
    if options.get("repeats") == "set":
        return _ONCE
    if part:
        return _PART
    if options.get("missing", "allow") == "allow":
        return _NOT_MADE
    return _SPELLED


def harder(trait: str, options: Mapping[str, Any]) -> str:
    """Return why a preset does not pass samples that are a success; "" where this trait does not explain it.

    Args:
        trait: What they have in common; "" for nothing known.
        options: The preset's options, as header.json has them.
    """
    if trait == NOTHING_EXPECTED:
        return "to expect no call, and make none, is worth nothing"
    if trait == OTHER_ORDER:
        return "calls must come in the order expected" if options.get("order") in {"strict", "in_order"} else ""
    if options.get("equality") == "text":
        return "values are compared as text, so 1 is not 1.0"
    if options.get("assignment") == "first_fit":
        return "the first call that fits is taken, and a later one may be left without any"
    return "it asks for more, in a way its options do not say"


def silent(state: str, code: str) -> str:
    """Return why a preset gives no verdict."""
    why = f": {code.replace('_', ' ')}" if code else ""
    if state == "failed":
        return f"the original program raises{why}" if code else "the grade is failed"
    return f"not graded{why}" if state == "skipped" else f"{state.replace('_', ' ')}{why}"

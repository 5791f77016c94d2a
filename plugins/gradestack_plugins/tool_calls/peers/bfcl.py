"""The Berkeley function calling leaderboard: its rules for decoded calls, with its error types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from gradestack import Sample
from gradestack_plugins.tool_calls.calls import Call, is_json, name_of
from gradestack_plugins.tool_calls.peers.adk import by_turn
from gradestack_plugins.tool_calls.peers.bfcl_answers import LEFT_OUT, Answers, Described, answers_of, described
from gradestack_plugins.tool_calls.peers.bfcl_values import Problem, problem_of
from gradestack_plugins.tool_calls.peers.verdict import NotTold, Raised, Verdict


@attrs.frozen
class Wanted:
    """An expected call: its name, its possible answers, and its tool."""

    name: str
    answers: Answers
    tool: Described


def ast(expected: Sequence[Call], made: Sequence[Call], sample: Sample) -> Verdict:
    """Return whether decoded calls are right: ``simple`` with one tool, ``multiple`` with several, else ``parallel``.

    Calls expected by turn need their execution; without it only a turn in which nothing was called can be told.
    """
    if any(call.turn is not None for call in expected):
        return _turns(expected, made)
    tools = sample.tools
    if not tools:
        raise NotTold("not_expressible", "the sample does not say which tools the run had")
    if any(call.raw is not None for call in expected):
        raise NotTold("not_expressible", "the arguments of an expected call are no JSON object")
    if broken := [call for call in made if call.raw is not None]:
        text = all(is_json(call.raw or "") for call in broken)
        return _wrong("ast_decoder:decoder_wrong_output_format" if text else "ast_decoder:decoder_failed")
    try:
        return _decoded(sample, made)
    except (TypeError, KeyError, OverflowError, AttributeError) as error:
        told = f"the original program raises on these values ({type(error).__name__})"
        raise Raised("values_not_comparable", told) from error


def _wrong(problem: str) -> Verdict:
    return Verdict(0.0, False, metadata={"error_type": problem})


def _turns(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
    gold, done = by_turn(expected), by_turn(made)
    for turn, calls in enumerate(gold):
        if calls and (turn >= len(done) or not done[turn]):
            return _wrong("multi_turn:empty_turn_model_response")
    raise NotTold("not_expressible", "calls by turn are compared by what their execution leads to; see bfcl_valid")


def _decoded(sample: Sample, made: Sequence[Call]) -> Verdict:
    tools = sample.tools or ()
    gold = sample.expected.calls or ()
    if len(gold) == 1:
        checker = "simple_function_checker" if len(tools) == 1 else "multiple_function_checker"
        if len(made) != 1:
            return _wrong(f"{checker}:wrong_count")
        wanted = _wanted(gold[0], tools, only=len(tools) == 1)
        problem = _problem(wanted, made[0])
        return Verdict(1.0, True) if problem is None else _wrong(problem)
    checker = "parallel_function_checker_no_order"
    if len(made) != len(gold):
        return _wrong(f"{checker}:wrong_count")
    left = list(made)
    for call in gold:
        wanted = _wanted(call, tools)
        place = next((at for at, other in enumerate(left) if _problem(wanted, other) is None), None)
        if place is None:
            return _wrong(f"{checker}:cannot_find_match")
        left.pop(place)
    return Verdict(1.0, True)


def _wanted(call: Any, tools: Sequence[Any], *, only: bool = False) -> Wanted:
    named = tools[0] if only else next((tool for tool in tools if tool.name == call.name), None)
    if named is None:
        told = f"no tool {call.name} is described, and the original program raises on that"
        raise Raised("schema_incomplete", told)
    return Wanted(name_of(call.name), answers_of(call), described(named))


def _problem(wanted: Wanted, call: Call) -> Problem:
    """Return what is wrong with a call, None where it is right."""
    tool, checker = wanted.tool, "simple_function_checker"
    if call.name != tool.name:
        return f"{checker}:wrong_func_name"
    if any(name not in call.arguments for name in tool.required):
        return f"{checker}:missing_required"
    for name, value in call.arguments.items():
        if name not in tool.parameters or name not in wanted.answers:
            return f"{checker}:unexpected_param"
        problem = problem_of(value, wanted.answers[name], tool.parameter(name))
        if problem is not None:
            return problem
    if any(name not in call.arguments and LEFT_OUT not in allowed for name, allowed in wanted.answers.items()):
        return f"{checker}:missing_optional"
    return None

"""The Berkeley function calling leaderboard: its rules for decoded calls, with its error types."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from gradestack import ExpectedCall, Sample, ToolSpec
from gradestack_plugins.tool_calls.assignment import heaviest
from gradestack_plugins.tool_calls.calls import Call, is_json, name_of
from gradestack_plugins.tool_calls.peers.adk import by_turn
from gradestack_plugins.tool_calls.peers.bfcl_answers import LEFT_OUT, Answers, Described, answers_of, described
from gradestack_plugins.tool_calls.peers.bfcl_values import Problem, problem_of
from gradestack_plugins.tool_calls.peers.verdict import NotTold, Raised, SampleRule, Verdict

_RAISED = (TypeError, KeyError, OverflowError, AttributeError)
"""What comparing values of unlike kinds ends in."""


@attrs.frozen
class Wanted:
    """An expected call: its name, its possible answers, and its tool."""

    name: str
    answers: Answers
    tool: Described


def rule(*, optimal: bool = False) -> SampleRule:
    """Return the rule of decoded calls: ``simple`` with one tool, ``multiple`` with several, else ``parallel``.

    Calls expected by turn need their execution; without it only a turn in which nothing was called can be told.

    Args:
        optimal: Parallel calls are right where every expected call can have one that fits it. Else, as in the original,
            each takes the first one left that fits, even if another needs that.
    """

    def verdict(expected: Sequence[Call], made: Sequence[Call], sample: Sample) -> Verdict:
        if any(call.turn is not None for call in expected):
            return _turns(expected, made)
        if not sample.tools:
            raise NotTold("not_expressible", "the sample does not say which tools the run had")
        if any(call.raw is not None for call in expected):
            raise NotTold("not_expressible", "the arguments of an expected call are no JSON object")
        if broken := [call for call in made if call.raw is not None]:
            text = all(is_json(call.raw or "") for call in broken)
            return _wrong("ast_decoder:decoder_wrong_output_format" if text else "ast_decoder:decoder_failed")
        if optimal and _all_found(sample, made):
            return Verdict(1.0, True)
        try:
            return _decoded(sample, made)
        except _RAISED as error:
            told = f"the original program raises on these values ({type(error).__name__})"
            raise Raised("values_not_comparable", told) from error

    return verdict


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


def _all_found(sample: Sample, made: Sequence[Call]) -> bool:
    """Return whether each of several expected calls can have a call of its own that fits it, and none is left over."""
    gold, tools = sample.expected.calls or (), sample.tools or ()
    if len(gold) < 2 or len(gold) != len(made):
        return False
    return None not in heaviest([[_fits(call, other, tools) for other in made] for call in gold])


def _fits(call: ExpectedCall, made: Call, tools: Sequence[ToolSpec]) -> bool:
    try:
        return _problem(_wanted(call, tools), made) is None
    except (Raised, *_RAISED):
        return False


def _wanted(call: ExpectedCall, tools: Sequence[ToolSpec], *, only: bool = False) -> Wanted:
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

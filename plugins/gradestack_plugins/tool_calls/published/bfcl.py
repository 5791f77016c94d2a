"""The Berkeley function calling leaderboard: its rules for decoded calls, with its error types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import ExpectedCall, Sample, ToolSpec, compile_later
from gradestack import Rule as ArgumentRule
from gradestack.jsonio import as_map
from gradestack_plugins.tool_calls.diff import Expected, Made, arguments_of, is_json, name_of
from gradestack_plugins.tool_calls.matching import all_fit, heaviest
from gradestack_plugins.tool_calls.published.preset import (
    RAISES,
    NotExpressible,
    Raised,
    Rule,
    Verdict,
)

Problem = str | None
"""BFCL's error type, None where there is none."""
_RAISED = (TypeError, KeyError, OverflowError, AttributeError)
"""Errors of comparing values of unlike kinds."""
EXECUTED = "calls by turn are compared by what their execution leads to; see bfcl_valid"


class Wanted(msgspec.Struct, frozen=True):
    """An expected call: its name, its possible answers, and its tool."""

    name: str
    answers: Answers
    tool: Described


def rule(*, optimal: bool = False) -> Rule:
    """Return the rule of decoded calls.

    ``simple`` with one tool, ``multiple`` with several, else ``parallel``.
    """

    def verdict(expected: Sequence[Expected], made: Sequence[Made], sample: Sample) -> Verdict:
        """Check calls as BFCL does, with its name of the error in the metadata."""
        if any(call.turn is not None for call in expected):
            raise NotExpressible(EXECUTED)
        if not sample.tools:
            raise NotExpressible("no tool definitions recorded")
        if any(call.raw is not None for call in expected):
            raise NotExpressible("the arguments of an expected call are no JSON object")
        problem = decoding_problem(made)
        try:
            if problem is None and not (optimal and _all_found(sample, made)):
                problem = _calls_problem(sample, made)
        except _RAISED as error:
            message = f"the original program raises on these values ({type(error).__name__})"
            raise Raised("values_not_comparable", message) from error
        if problem is None:
            return Verdict(1.0, True)
        return Verdict(0.0, False, metadata={"error_type": problem})

    return verdict


def decoding_problem(made: Iterable[Made]) -> Problem:
    """Return the error type of calls whose arguments are no object, None where there are none."""
    broken = [call.raw for call in made if call.raw is not None]
    if not broken:
        return None
    return f"ast_decoder:decoder_{'wrong_output_format' if all(map(is_json, broken)) else 'failed'}"


def _calls_problem(sample: Sample, made: Sequence[Made]) -> Problem:
    """Return BFCL's name of the error in the calls of a sample, None where all are right."""
    tools = sample.tools or ()
    gold = sample.expected.calls or ()
    is_single = len(gold) == 1
    is_simple = len(tools) == 1
    checker = "parallel_function_checker_no_order"
    if is_single:
        checker = "simple_function_checker" if is_simple else "multiple_function_checker"
    if len(made) != len(gold):
        return f"{checker}:wrong_count"
    if is_single:
        return _call_problem(_wanted(gold[0], tools, only=is_simple), made[0])
    wanted = (_wanted(call, tools) for call in gold)
    if all_fit(wanted, made, _is_right):
        return None
    return f"{checker}:cannot_find_match"


def _is_right(wanted: Wanted, made: Made) -> bool:
    return _call_problem(wanted, made) is None


def _all_found(sample: Sample, made: Sequence[Made]) -> bool:
    """Check that expected calls and calls made can be paired one to one, each pair fitting."""
    gold = sample.expected.calls or ()
    tools = sample.tools or ()
    if len(gold) < 2 or len(gold) != len(made):
        return False
    weights = [[_is_fit(call, other, tools) for other in made] for call in gold]
    return None not in heaviest(weights)


def _is_fit(call: ExpectedCall, made: Made, tools: Sequence[ToolSpec]) -> bool:
    try:
        return _is_right(_wanted(call, tools), made)
    except (Raised, *_RAISED):
        return False


def _wanted(call: ExpectedCall, tools: Sequence[ToolSpec], *, only: bool = False) -> Wanted:
    named = tools[0] if only else next((tool for tool in tools if tool.name == call.name), None)
    if named is None:
        raise Raised("schema_incomplete", f"no tool {call.name} is described, and {RAISES}")
    return Wanted(name_of(call.name), answers_of(call), described(named))


def _call_problem(wanted: Wanted, call: Made) -> Problem:
    """Return BFCL's name of the first error in a call, None where it is right."""
    tool, checker = wanted.tool, "simple_function_checker"
    if call.name != tool.name:
        return f"{checker}:wrong_func_name"
    keys = call.arguments.keys()
    if not keys >= {*tool.required}:
        return f"{checker}:missing_required"
    for name, value in call.arguments.items():
        if name not in tool.parameters or name not in wanted.answers:
            return f"{checker}:unexpected_param"
        answers = wanted.answers[name]
        problem = argument_problem(value, answers, tool.parameter(name))
        if problem is not None:
            return problem
    if _lacks(call.arguments, wanted.answers):
        return f"{checker}:missing_optional"
    return None


def _lacks(arguments: Mapping[str, Any], answers: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether a key is left out that must not be."""
    return any(key not in arguments and LEFT_OUT not in allowed for key, allowed in answers.items())


Answers = dict[str, list[Any]]
"""Parameter -> values of which one must be met; ``""`` among them: it may be left out."""
LEFT_OUT = ""
TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "number": float,
    "boolean": bool,
}
TYPES |= {"array": list, "tuple": list, "dict": dict, "object": dict, "any": str}


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a tool, by its schema."""

    kind: type
    items: type | None
    """Of a list."""
    takes_integers: bool


class Described(msgspec.Struct, frozen=True):
    """A tool, as far as the rules look at it."""

    name: str
    parameters: Mapping[str, Any]
    required: tuple[str, ...]

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its schema."""
        schema = self.parameters[name]
        kind = _kind_of(schema)
        items = None
        if kind is list:
            items = _kind_of(schema.get("items"))
        return Parameter(kind, items, kind is float)


def _kind_of(schema: Any) -> type:
    if not isinstance(schema, Mapping):
        message = "a parameter of the tool has no description the original program can read"
        raise Raised("schema_incomplete", message)
    word = schema.get("type", "any")
    if not isinstance(word, str) or word not in TYPES:
        raise Raised("schema_incomplete", f"the original program knows no type {word!r}")
    return TYPES[word]


def described(tool: ToolSpec) -> Described:
    """Return a tool as the rules look at it."""
    schema = as_map(tool.parameters)
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list | tuple):
        problem = f"the schema of {tool.name} lacks properties or required"
        raise Raised("schema_incomplete", f"{problem}, which the original program reads")
    return Described(name_of(tool.name), properties, tuple(map(str, required)))


def answers_of(call: ExpectedCall) -> Answers:
    """Return a call's possible answers.

    A plain value is the only one, the values of an object are lists in turn.
    """
    rules = call.rules or {}
    arguments = arguments_of(call.arguments)
    answers = {key: [_listed(value)] for key, value in arguments.items() if key not in rules}
    ruleds_by_key = {key: _ruled(rule) for key, rule in rules.items()}
    return answers | ruleds_by_key


def _ruled(rule: ArgumentRule) -> list[Any]:
    if rule.ignore or rule.compare not in {"exact", "schema"} or rule.tolerance is not None:
        raise NotExpressible("an argument has a rule that is no list of values")
    values = list(map(_from_schema if rule.compare == "schema" else _listed, rule.any_of))
    return [*values, LEFT_OUT] if rule.optional else values


def _listed(value: Any) -> Any:
    """Return a plain value as an answer: each value of an object is a list of one."""
    if isinstance(value, dict):
        return {key: [member] for key, member in value.items()}
    if isinstance(value, list):
        return [_listed(item) if isinstance(item, dict) else item for item in value]
    return value


def _from_schema(schema: Any) -> Any:
    """Return the answer a schema stands for, in the form the reader of BFCL's answers writes it."""
    schema = as_map(schema)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("prefixItems"), list):
        return list(map(_from_schema, schema["prefixItems"]))
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        raise NotExpressible("an argument has a schema that is no list of values")
    required = schema.get("required") or ()
    answers = {}
    for key, member in properties.items():
        any_of = as_map(member).get("anyOf")
        values = list(map(_from_schema, any_of or ()))
        answers[key] = values if key in required else [*values, LEFT_OUT]
    return answers


_IGNORED = compile_later(r"[ ,./\-_*^]")


def argument_problem(value: Any, answers: Sequence[Any], parameter: Parameter) -> Problem:
    """Return the error type of an argument, None of a right one."""
    kind = parameter.kind
    if parameter.takes_integers and type(value) is int:
        value = float(value)
    problem, is_variable = _type_problem(value, answers, kind, parameter.items)
    if problem is not None:
        return problem
    if not is_variable and kind is dict:
        return _object_problem(value, answers)
    if not is_variable and parameter.items is dict:
        return _objects_problem(value, answers)
    if not is_variable and kind is str:
        texts = [_plain(text) for text in answers if isinstance(text, str)]
        return None if _plain(value) in texts else "value_error:string"
    if not is_variable and kind is list:
        wanted = [[_plain(option[index]) for index in range(len(option))] for option in answers]
        if list(map(_plain, value)) in wanted:
            return None
        return "value_error:list/tuple"
    return None if value in answers else "value_error:others"


def _type_problem(
    value: Any, answers: Sequence[Any], kind: type[Any], items: type | None
) -> tuple[Problem, bool]:
    """Return the error type of a value's type, and whether it stands for a variable.

    A value of the answers' own type passes whatever the schema says: it is taken for the name of a
    variable.
    """
    stated = next((type(option) for option in answers if not _is_left_out(option)), None)
    is_kind = type(value) is kind
    is_stated = stated is not None and type(value) is stated
    if is_kind and (items is None or _has_right_items(value, answers, items)):
        return None, stated is not None and stated is not kind
    if not is_stated:
        return "type_error:simple", False
    return "type_error:nested" if is_kind else None, True


def _has_right_items(value: Sequence[Any], answers: Sequence[Any], items: type) -> bool:
    """Return whether the items of a list are of the right type for one of the answers."""
    for option in answers:
        if not isinstance(option, list):
            return True
        problems = [_type_problem(item, option, items, None)[0] for item in value]
        if not any(problems):
            return True
    return False


def _is_left_out(option: Any) -> bool:
    return isinstance(option, str) and option == LEFT_OUT


def _plain(value: Any) -> Any:
    """Return a text without spaces and punctuation that do not count, in lower case.

    Anything else as it is.
    """
    if isinstance(value, str):
        return _IGNORED.sub("", value).lower().replace("'", '"')
    return value


def _object_problem(value: dict[str, Any], answers: Sequence[Any]) -> Problem:
    """Return BFCL's name of the error in an object that equals no accepted one, else None."""
    problem: Problem = "dict_checker:unclear"
    for option in answers:
        if _is_left_out(option):
            continue
        problem = _members_problem(value, option)
        if _lacks(value, option):
            problem = "value_error:dict_key"
        if problem is None:
            return None
    return problem


def _members_problem(value: dict[str, Any], option: Mapping[str, Sequence[Any]]) -> Problem:
    for key, member in value.items():
        if key not in option:
            return "value_error:dict_key"
        if _plain(member) not in map(_plain, option[key]):
            return "value_error:dict_value"
    return None


def _objects_problem(value: Sequence[Any], answers: Sequence[Any]) -> Problem:
    """Return the error type of a list of objects, whose order counts."""
    problem: Problem = "list_dict_checker:unclear"
    for option in answers:
        if len(value) != len(option):
            problem = "value_error:list_dict_count"
            continue
        pairs = zip(value, option, strict=True)
        problems = (_object_problem(item, [allowed]) for item, allowed in pairs)
        problem = next(filter(None, problems), None)
        if problem is None:
            return None
    return problem

"""The Berkeley function calling leaderboard: its rules for decoded calls, with its error types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from gradestack import ExpectedCall, Sample, ToolSpec
from gradestack import Rule as ArgumentRule
from gradestack.jsonio import as_map
from gradestack_plugins.tool_calls.diff import Expected, Made, arguments_of, is_json, name_of
from gradestack_plugins.tool_calls.matching import heaviest
from gradestack_plugins.tool_calls.published.preset import (
    NotExpressible,
    Raised,
    Rule,
    Verdict,
)

Problem = str | None
"""BFCL's error type, None where there is none."""
_RAISED = (TypeError, KeyError, OverflowError, AttributeError)
"""What comparing values of unlike kinds ends in."""
EXECUTED = "calls by turn are compared by what their execution leads to; see bfcl_valid"


@attrs.frozen
class Wanted:
    """An expected call: its name, its possible answers, and its tool."""

    name: str
    answers: Answers
    tool: Described


def rule(*, optimal: bool = False) -> Rule:
    """Return the rule of decoded calls.

    ``simple`` with one tool, ``multiple`` with several, else ``parallel``.
    """

    def verdict(expected: Sequence[Expected], made: Sequence[Made], sample: Sample) -> Verdict:
        if any(call.turn is not None for call in expected):
            raise NotExpressible(EXECUTED)
        if not sample.tools:
            raise NotExpressible("no tool definitions recorded")
        if any(call.raw is not None for call in expected):
            raise NotExpressible("the arguments of an expected call are no JSON object")
        if problem := undecoded(made):
            return _wrong(problem)
        if optimal and _all_found(sample, made):
            return Verdict(1.0, True)
        try:
            return _decoded(sample, made)
        except _RAISED as error:
            message = f"the original program raises on these values ({type(error).__name__})"
            raise Raised("values_not_comparable", message) from error

    return verdict


def undecoded(made: Iterable[Made]) -> Problem:
    """Return what is wrong with calls whose arguments are no object, None where there is none."""
    if not (broken := [call.raw for call in made if call.raw is not None]):
        return None
    return f"ast_decoder:decoder_{'wrong_output_format' if all(map(is_json, broken)) else 'failed'}"


def _wrong(problem: str) -> Verdict:
    return Verdict(0.0, False, metadata={"error_type": problem})


def _decoded(sample: Sample, made: Sequence[Made]) -> Verdict:
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


def _all_found(sample: Sample, made: Sequence[Made]) -> bool:
    """Return whether each of several expected calls can have a call of its own that fits it, and
    none is left over.
    """
    gold, tools = sample.expected.calls or (), sample.tools or ()
    if len(gold) < 2 or len(gold) != len(made):
        return False
    return None not in heaviest([[_fits(call, other, tools) for other in made] for call in gold])


def _fits(call: ExpectedCall, made: Made, tools: Sequence[ToolSpec]) -> bool:
    try:
        return _problem(_wanted(call, tools), made) is None
    except (Raised, *_RAISED):
        return False


def _wanted(call: ExpectedCall, tools: Sequence[ToolSpec], *, only: bool = False) -> Wanted:
    named = tools[0] if only else next((tool for tool in tools if tool.name == call.name), None)
    if named is None:
        raise Raised(
            "schema_incomplete",
            f"no tool {call.name} is described, and the original program raises on that",
        )
    return Wanted(name_of(call.name), answers_of(call), described(named))


def _problem(wanted: Wanted, call: Made) -> Problem:
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
    if any(
        name not in call.arguments and LEFT_OUT not in allowed
        for name, allowed in wanted.answers.items()
    ):
        return f"{checker}:missing_optional"
    return None


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


class Parameter(NamedTuple):
    """What a tool's schema says of a parameter.

    Its kind, that of the items of a list, whether it takes integers.
    """

    kind: type
    items: type | None
    takes_integers: bool


@attrs.frozen
class Described:
    """A tool, as far as the rules look at it."""

    name: str
    parameters: Mapping[str, Any]
    required: tuple[str, ...]

    def parameter(self, name: str) -> Parameter:
        """Return what is said of a parameter."""
        about = self.parameters[name]
        kind = _kind(_word(about))
        items = _kind(_word(about.get("items"))) if kind is list else None
        return Parameter(kind, items, kind is float)


def _word(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        raise Raised(
            "schema_incomplete",
            "a parameter of the tool has no description the original program can read",
        )
    return schema.get("type", "any")


def _kind(word: Any) -> type:
    kind = TYPES.get(word) if isinstance(word, str) else None
    if kind is None:
        raise Raised("schema_incomplete", f"the original program knows no type {word!r}")
    return kind


def described(tool: ToolSpec) -> Described:
    """Return a tool as the rules look at it."""
    properties, required = (as_map(tool.parameters).get(key) for key in ("properties", "required"))
    if not isinstance(properties, Mapping) or not isinstance(required, list | tuple):
        message = (
            f"the schema of {tool.name} lacks properties or required, which the original "
            "program reads"
        )
        raise Raised("schema_incomplete", message)
    return Described(name_of(tool.name), properties, tuple(map(str, required)))


def answers_of(call: ExpectedCall) -> Answers:
    """Return a call's possible answers.

    A plain value is the only one, the values of an object are lists in turn.
    """
    rules, arguments = call.rules or {}, arguments_of(call.arguments)
    plain = {key: [_listed(value)] for key, value in arguments.items() if key not in rules}
    return plain | {key: _ruled(rule) for key, rule in rules.items()}


def _ruled(rule: ArgumentRule) -> list[Any]:
    if rule.ignore or rule.compare not in {"exact", "schema"} or rule.tolerance is not None:
        raise NotExpressible("an argument has a rule that is no list of values")
    values = [
        _from_schema(each) if rule.compare == "schema" else _listed(each) for each in rule.any_of
    ]
    return [*values, LEFT_OUT] if rule.optional else values


def _listed(value: Any) -> Any:
    """Return a plain value as an answer: each value of an object is a list of one."""
    if isinstance(value, dict):
        return {key: [each] for key, each in value.items()}
    if isinstance(value, list):
        return [_listed(each) if isinstance(each, dict) else each for each in value]
    return value


def _from_schema(schema: Any) -> Any:
    """Return the answer a schema stands for, in the form the reader of BFCL's answers writes it."""
    schema = as_map(schema)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("prefixItems"), list):
        return [_from_schema(each) for each in schema["prefixItems"]]
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        raise NotExpressible("an argument has a schema that is no list of values")
    required = schema.get("required") or ()
    found = {}
    for key, each in properties.items():
        values = [_from_schema(value) for value in as_map(each).get("anyOf") or ()]
        found[key] = values if key in required else [*values, LEFT_OUT]
    return found


_IGNORED = re.compile(r"[ ,./\-_*^]")


def problem_of(value: Any, answers: Sequence[Any], about: Parameter) -> Problem:
    """Return what is wrong with an argument."""
    if about.takes_integers and type(value) is int:
        value = float(value)
    problem, variable = _type_problem(value, answers, about.kind, about.items)
    if problem is not None:
        return problem
    if not variable:
        if about.kind is dict:
            return _object_problem(value, answers)
        if about.items is dict:
            return _objects_problem(value, answers)
        if about.kind is str:
            texts = [_plain(each) for each in answers if isinstance(each, str)]
            return None if _plain(value) in texts else "value_error:string"
        if about.kind is list:
            given = [_plain(each) for each in value]
            wanted = [[_plain(one[place]) for place in range(len(one))] for one in answers]
            return None if given in wanted else "value_error:list/tuple"
    return None if value in answers else "value_error:others"


def _type_problem(
    value: Any, answers: Sequence[Any], kind: type[Any], items: type | None
) -> tuple[Problem, bool]:
    """Return what is wrong with a value's type, and whether it stands for a variable.

    A value of the answers' own type passes whatever the schema says: it is taken for the name of a
    variable.
    """
    given = next((type(each) for each in answers if not _is_left_out(each)), None)
    problem = "type_error:simple"
    if type(value) is kind:
        variable = given is not None and given is not kind
        if items is None or any(_items_fit(value, each, items) for each in answers):
            return None, variable
        problem = "type_error:nested"
    if given is not None and type(value) is given:
        return (None, True) if problem == "type_error:simple" else (problem, True)
    return "type_error:simple", False


def _items_fit(value: Sequence[Any], answer: Any, items: type) -> bool:
    return not isinstance(answer, list) or all(
        _type_problem(each, answer, items, None)[0] is None for each in value
    )


def _is_left_out(answer: Any) -> bool:
    return isinstance(answer, str) and answer == LEFT_OUT


def _plain(value: Any) -> Any:
    """Return a text without spaces and punctuation that do not count, in lower case.

    Anything else as it is.
    """
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _object_problem(value: dict[str, Any], answers: Sequence[Any]) -> Problem:
    problem: Problem = "dict_checker:unclear"
    for answer in answers:
        if _is_left_out(answer):
            continue
        problem = None
        for key, each in value.items():
            if key not in answer:
                problem = "value_error:dict_key"
                break
            if _plain(each) not in [_plain(one) for one in answer[key]]:
                problem = "value_error:dict_value"
                break
        if any(key not in value and LEFT_OUT not in allowed for key, allowed in answer.items()):
            problem = "value_error:dict_key"
        if problem is None:
            return None
    return problem


def _objects_problem(value: Sequence[Any], answers: Sequence[Any]) -> Problem:
    """Return what is wrong with a list of objects, whose order counts."""
    problem: Problem = "list_dict_checker:unclear"
    for answer in answers:
        if len(value) != len(answer):
            problem = "value_error:list_dict_count"
            continue
        found = (
            _object_problem(one, [allowed]) for one, allowed in zip(value, answer, strict=True)
        )
        problem = next((each for each in found if each is not None), None)
        if problem is None:
            return None
    return problem

"""BFCL's comparison of one argument: its type, or that of its answers, and then its value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gradestack_plugins.tool_calls.peers.bfcl_answers import LEFT_OUT, Parameter

Problem = str | None
"""BFCL's error type, None where there is none."""
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
            return None if _plain(value) in _texts(answers) else "value_error:string"
        if about.kind is list:
            given = [_plain(each) for each in value]
            return None if given in [_plain_items(one) for one in answers] else "value_error:list/tuple"
    return None if value in answers else "value_error:others"


def _type_problem(value: Any, answers: Sequence[Any], kind: type[Any], items: type | None) -> tuple[Problem, bool]:
    """Return what is wrong with a value's type, and whether it stands for a variable.

    A value of the answers' own type passes whatever the schema says: it is taken for the name of a variable.
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
    return not isinstance(answer, list) or all(_type_problem(each, answer, items, None)[0] is None for each in value)


def _is_left_out(answer: Any) -> bool:
    return isinstance(answer, str) and answer == LEFT_OUT


def _plain(value: Any) -> Any:
    """Return a text without spaces and punctuation that do not count, in lower case; anything else as it is."""
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _plain_items(answer: Any) -> list[Any]:
    return [_plain(answer[place]) for place in range(len(answer))]


def _texts(answers: Sequence[Any]) -> list[str]:
    return [_plain(each) for each in answers if isinstance(each, str)]


def _object_problem(value: dict[str, Any], answers: Sequence[Any]) -> Problem:
    """Return what is wrong with an object, by the last of its answers."""
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
        found = (_object_problem(one, [allowed]) for one, allowed in zip(value, answer, strict=True))
        problem = next((each for each in found if each is not None), None)
        if problem is None:
            return None
    return problem

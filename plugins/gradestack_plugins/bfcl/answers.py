"""Tools, calls written as text, and possible answers as expectations."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from gradestack import JSON, Expectation, ExpectedCall, Rule, ToolSpec
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.readers.chat import schema_of

TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
} | {word: word for word in ("string", "integer", "number", "boolean", "array", "object", "null")}
"""BFCL's word -> that of JSON Schema; a word that is not here (``any``) says nothing about the value."""
_DEEPEST = 64


def tools_of(functions: Any, *, texts: bool) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a question; None where it names none."""
    if not isinstance(functions, list):
        return None
    specs = []
    for function in functions:
        about = as_map(function)
        name, parameters = about.get("name"), about.get("parameters")
        if isinstance(name, str):
            schema = schema_of(parameters)
            if isinstance(parameters, Mapping):
                schema = json_schema(parameters)
                if texts:
                    schema["properties"] = {k: _as_text(v) for k, v in as_map(schema.get("properties")).items()}
            specs.append(ToolSpec(name=name, description=as_text(about.get("description")), parameters=schema))
    return tuple(specs)


def _as_text(schema: Any) -> dict[str, Any]:
    about = {key: each for key, each in as_map(schema).items() if key in {"description", "default"}}
    return {"type": "string", **about}


def json_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return a schema in BFCL's words in those of JSON Schema."""
    found = dict(as_map(schema))
    word = found.pop("type", None)
    if isinstance(word, str) and word in TYPES:
        found = {"type": TYPES[word], **found}
    if depth < _DEEPEST:
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), dict):
                found[key] = json_schema(found[key], depth + 1)
        if isinstance(properties := found.get("properties"), dict):
            found["properties"] = {name: json_schema(each, depth + 1) for name, each in properties.items()}
    return found


def parameter_names(tools: Sequence[ToolSpec] | None) -> dict[str, tuple[str, ...]]:
    """Return the names of each tool's parameters, in order."""
    return {tool.name: tuple(as_map(as_map(tool.parameters).get("properties"))) for tool in tools or ()}


def spellings(tools: Sequence[ToolSpec] | None) -> dict[str, str]:
    """Return the names interfaces may have given tools -> the tools' own, where that is plain."""
    own = {tool.name for tool in tools or ()}
    spelled: dict[str, set[str]] = {}
    for name in own:
        spelled.setdefault(name.replace(".", "_"), set()).add(name)
    return {spelling: names.pop() for spelling, names in spelled.items() if len(names) == 1 and spelling not in own}


_LONGEST = 200_000
"""No text longer than this is taken for calls."""
_FENCES = ("```json", "```python", "```")


class WrittenCall(NamedTuple):
    """One call as it is written."""

    name: str
    arguments: dict[str, Any] | None
    """None where one of them is no literal, or stands without a name that could be found."""
    text: str


def parse_calls(text: str, parameters: Mapping[str, Sequence[str]] | None = None) -> list[WrittenCall] | None:
    """Return the calls of a text, one or a list of them; None where it is something else."""
    inner = _stripped(text)
    if not inner or len(inner) > _LONGEST or "(" not in inner:
        return None
    inner = inner if inner.startswith("[") else f"[{inner}]"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes are the writer's
            tree = ast.parse(inner, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.List):
        return None
    found = [_call(node, inner, parameters or {}) for node in tree.elts]
    return [call for call in found if call is not None] if all(found) else None


def _stripped(text: str) -> str:
    inner = text.strip()
    for fence in _FENCES:
        inner = inner.removeprefix(fence)
    return inner.removesuffix("```").strip().strip("`").strip()


def _call(node: ast.expr, text: str, parameters: Mapping[str, Sequence[str]]) -> WrittenCall | None:
    if not isinstance(node, ast.Call):
        return None
    name = _dotted(node.func)
    if name is None:
        return None
    written = ast.get_source_segment(text, node) or name
    return WrittenCall(name, _arguments(node, parameters.get(name, ())), written)


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)) is not None:
        return f"{before}.{node.attr}"
    return None


def _arguments(node: ast.Call, names: Sequence[str]) -> dict[str, Any] | None:
    if len(node.args) > len(names):
        return None
    given = [*zip(names, node.args, strict=False), *((each.arg, each.value) for each in node.keywords)]
    found: dict[str, Any] = {}
    for key, value in given:
        if key is None or key in found:
            return None
        try:
            found[key] = _plain(ast.literal_eval(value))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None
    return found


def _plain(value: Any) -> Any:
    """Return a literal as JSON has it: tuples are lists; ValueError for sets, bytes, complex numbers and odd keys."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    raise ValueError


_MOST_VALUES = 64
"""Values that an object's or a list's parts may make up; beyond, they are described by a schema."""
_LEFT_OUT = ""
"""What stands among the values of an argument that may be absent."""


class Unusable(ValueError):
    """A ground truth that is none of the known forms."""


def expectation(ground_truth: Any, parameters: Mapping[str, Sequence[str]] | None = None) -> Expectation:
    """Return what a ground truth expects."""
    if not isinstance(ground_truth, list):
        raise Unusable
    if ground_truth and all(isinstance(each, str) for each in ground_truth):
        return Expectation(text=tuple(ground_truth))
    if ground_truth and all(isinstance(each, list) for each in ground_truth):
        turns = enumerate(ground_truth)
        return Expectation(calls=tuple(call for turn, texts in turns for call in _written(texts, turn, parameters)))
    return Expectation(calls=tuple(_allowed(each) for each in ground_truth))


def _written(texts: list[Any], turn: int, parameters: Mapping[str, Sequence[str]] | None) -> list[ExpectedCall]:
    found = []
    for text in texts:
        calls = parse_calls(text, parameters) if isinstance(text, str) else None
        if not calls:
            raise Unusable
        for call in calls:
            raw = call.text if call.arguments is None else None
            found.append(ExpectedCall(name=call.name, arguments=call.arguments, raw_arguments=raw, turn=turn))
    return found


def _allowed(entry: Any) -> ExpectedCall:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise Unusable
    ((name, values),) = entry.items()
    if not isinstance(values, dict) or not all(isinstance(each, list) for each in values.values()):
        raise Unusable
    arguments: dict[str, JSON] = {}
    rules: dict[str, Rule] = {}
    for key, allowed in values.items():
        rule = _rule(allowed)
        if rule.compare == "exact" and rule.any_of and rule.any_of[0] != _LEFT_OUT:
            arguments[key] = rule.any_of[0]
        if len(rule.any_of) != 1 or rule.optional or rule.compare != "exact":
            rules[key] = rule
    return ExpectedCall(name=name, arguments=arguments, rules=rules or None)


def _rule(allowed: list[Any]) -> Rule:
    """Return the rule of an argument; ``""`` among its values says that it may be absent."""
    optional = any(_is_left_out(each) for each in allowed)
    given = [each for each in allowed if not _is_left_out(each)]
    parts = [_values(each) for each in given]
    if any(part is None or len(part) > 1 for part in parts) or any(map(_leaves_choice, given)):
        return Rule(any_of=tuple(_schema(each) for each in given), optional=optional, compare="schema")
    values: list[JSON] = []
    for value in (each for part in parts if part is not None for each in part):
        if not any(type(value) is type(other) and value == other for other in values):
            values.append(value)
    return Rule(any_of=tuple(values) if values else (_LEFT_OUT,), optional=optional)


def _leaves_choice(allowed: Any) -> bool:
    """Return whether a key of an object may be absent; the ``""`` that says so is a value of it, too."""
    if isinstance(allowed, dict):
        return any(_is_left_out(one) for each in allowed.values() if isinstance(each, list) for one in each)
    return isinstance(allowed, list) and any(map(_leaves_choice, allowed))


def _is_left_out(value: Any) -> bool:
    return isinstance(value, str) and not value


def _values(allowed: Any) -> list[JSON] | None:
    """Return the values one entry stands for; None where they are too many.

    Objects keep a list of allowed values per key, and stand in lists, too.
    """
    if isinstance(allowed, dict):
        keys = [_choices(each) for each in allowed.values()]
        return _products(keys, lambda chosen: {k: v for k, v in zip(allowed, chosen, strict=True) if v is not _ABSENT})
    if isinstance(allowed, list) and any(isinstance(each, dict) for each in allowed):
        return _products([_values(each) for each in allowed], list)
    return [allowed]


_ABSENT = object()


def _choices(allowed: Any) -> list[Any] | None:
    """Return what a key of an object may be: its values, and nothing at all where it may be absent."""
    if not isinstance(allowed, list):
        return [allowed]
    found: list[Any] = []
    for each in allowed:
        values = [_ABSENT] if _is_left_out(each) else _values(each)
        if values is None:
            return None
        found += values
    return found


def _products(parts: list[list[Any] | None], made: Any) -> list[JSON] | None:
    number = 1
    for part in parts:
        number *= len(part) if part is not None else _MOST_VALUES + 1
    if number > _MOST_VALUES or any(part is None for part in parts):
        return None
    return [made(chosen) for chosen in product(*(part for part in parts if part is not None))]


def _schema(allowed: Any) -> dict[str, Any]:
    """Return the JSON Schema of what one entry stands for."""
    if isinstance(allowed, dict):
        lists = {key: each if isinstance(each, list) else [each] for key, each in allowed.items()}
        properties = {}
        for key, values in lists.items():
            schemas = []
            for each in values:  # a comprehension is a call more before Python 3.12: half the levels
                if not _is_left_out(each):
                    schemas.append(_schema(each))  # noqa: PERF401 - likewise
            properties[key] = {"anyOf": schemas or [{"const": _LEFT_OUT}]}
        return {
            "type": "object",
            "properties": properties,
            "required": [key for key, values in lists.items() if not any(map(_is_left_out, values))],
            "additionalProperties": False,
        }
    if isinstance(allowed, list) and any(isinstance(each, dict) for each in allowed):
        number = len(allowed)
        items = []
        for each in allowed:
            items.append(_schema(each))  # noqa: PERF401 - likewise
        return {"type": "array", "prefixItems": items, "minItems": number, "maxItems": number}
    return {"const": allowed}

"""Arguments against the JSON Schema of a tool: the keywords that are violated, and where.

Validators fetch and open nothing, and their patterns take linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import jsonschema_rs

from gradestack import JSON, Reason, compile_later
from gradestack.jsonio import JsonProblem, compact, dumps, loads, pointer_to
from gradestack_plugins.trajectory.schema_cost import (
    SchemaCost,
    Unusable,
    json_bytes,
    pattern_options,
)

_MOST_KEPT: Final = 128 * 1024 * 1024  # bytes that validators in memory may take
_SHOWN: Final = 200
_DIALECT: Final = compile_later(
    "https?://json-schema.org/(draft-0[467]|draft/(2019-09|2020-12))/schema#*"
)
_TYPES: Final = {
    "object": "object dict",
    "array": "array list tuple",
    "string": "string str",
    "number": "number float double",
    "integer": "integer int long",
    "boolean": "boolean bool",
    "null": "null none",
}
"""Type -> words for it in programming languages, where a reader has not put them into JSON
Schema's.
"""
_WORDS: Final = {word: name for name, words in _TYPES.items() for word in words.split()}
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas."""
_FALSE: Final = tuple(
    [keyword]
    for keyword in ("additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems")
)
_NOT_FETCHED: Final = "another document is not fetched"
_LONE: Final = compile_later(
    "[\ud800-\udfff]"
)  # half of a surrogate pair, which UTF-8 cannot carry


def violations(
    schema: Mapping[str, JSON],
    value: Mapping[str, JSON],
    *,
    strict_integers: bool,
    mapped: bool = True,
) -> list[Reason]:
    """Return the keywords of a schema that a value violates, each with a pointer into the value.

    The dialect is by ``$schema``, 2020-12 where it names none or one that is not known. With
    ``strict_integers`` 1.0 is no integer; if ``mapped``, words such as ``dict`` and ``OBJECT`` are
    understood.

    Raises:
        Unusable: Nothing can be checked by the schema.
    """
    try:
        text = json_bytes(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unusable("schema_unusable", "it is not JSON, or nested too deeply") from error
    validator, cost = _validator(text, strict_integers=strict_integers, mapped=mapped)
    try:
        cost.check(value)
        try:
            return list(_violated(validator, value))
        except UnicodeEncodeError:  # half a character counts as one all the same
            without_surrogates = loads(_LONE.sub("\ufffd", compact(value)))
            return list(_violated(validator, without_surrogates))
    except Unusable:
        raise
    except _LIBRARY_ERRORS as error:
        message = f"the arguments cannot be checked: {str(error)[:_SHOWN]}"
        raise Unusable("not_expressible", message) from error


_LIBRARY_ERRORS: Final = (TypeError, ValueError, RecursionError, OverflowError)


def _violated(validator: Any, value: Any) -> Iterator[Reason]:
    """Yield a reason for each violation, whose code is the keyword of the schema."""
    for error in validator.iter_errors(value):
        keyword = error.kind.name
        if keyword == "falseSchema":
            # where a keyword's schema is ``false``, it is the keyword that is violated
            path = error.schema_path
            keyword = "false"
            if path[-1:] in _FALSE:
                keyword = path[-1]
        pointer = pointer_to(*error.instance_path)
        message = error.message[:_SHOWN]
        yield Reason(code=keyword, pointer=pointer, message=message)


Validator = tuple[Any, SchemaCost]
_validators: dict[tuple[bytes, bool, bool], Validator | Unusable] = {}
"""Compiled ones, up to so many bytes.

Without them a run of tool_schema alone takes 1.6 times as long.
"""
_memory = [0]


def _validator(text: bytes, *, strict_integers: bool, mapped: bool) -> Validator:
    """Return the validator of a schema's text from the cache, compiled where it is not in there.

    Raises:
        Unusable: The schema cannot be used, which is cached as well.
    """
    key = (text, strict_integers, mapped)
    if key not in _validators:
        validator: Validator | Unusable
        memory = len(text) + 1024
        try:
            validator = _compiled(text, strict_integers=strict_integers, mapped=mapped)
            memory = validator[1].memory
        except Unusable as problem:
            # a new one: an exception holds the frames it went through
            validator = Unusable(problem.code, str(problem))
        if _memory[0] + memory > _MOST_KEPT:
            _validators.clear()
            _memory[0] = 0
        _validators[key] = validator
        _memory[0] += memory
    validator = _validators[key]
    if isinstance(validator, Unusable):
        raise Unusable(validator.code, str(validator))
    return validator


def _compiled(text: bytes, *, strict_integers: bool, mapped: bool) -> Validator:
    """Compile the validator of a schema's text, with its cost.

    ``mapped``: types that are not JSON's are replaced where the schema is unusable with them.

    Raises:
        Unusable: The schema cannot be used.
    """
    try:
        schema = loads(text)
    except JsonProblem as problem:
        raise Unusable("schema_unusable", str(problem)) from problem
    if isinstance(schema, dict) and not _DIALECT.fullmatch(str(schema.get("$schema"))):
        schema.pop("$schema", None)
    cost = SchemaCost(schema, len(text))
    try:
        return _validator_for(schema, strict_integers=strict_integers), cost
    except Unusable as problem:
        if not mapped or problem.code != "schema_unusable":
            raise
        schema = _with_json_types(schema)
        try:
            validator = _validator_for(schema, strict_integers=strict_integers)
            return validator, SchemaCost(schema, len(text))
        except Unusable as other:
            raise (other if other.code == "schema_too_large" else problem) from None


def _validator_for(schema: Any, *, strict_integers: bool) -> Any:
    """Return a validator of a schema. Formats are annotations, as the current dialect has them."""
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            retriever=_refuse,
            pattern_options=pattern_options(),
            keywords={"type": _StrictType} if strict_integers else None,
        )
    except jsonschema_rs.ValidationError as error:
        message = f"{pointer_to(*error.instance_path)} {error.message}".strip()[:_SHOWN]
        is_elsewhere = error.kind.name == "format" or _NOT_FETCHED in error.message
        code = "not_expressible" if is_elsewhere else "schema_unusable"
        raise Unusable(code, message) from error
    except _LIBRARY_ERRORS as error:
        raise Unusable("not_expressible", str(error)[:_SHOWN]) from error


def _refuse(uri: str) -> NoReturn:
    """Take the place of what would fetch or open a referenced schema."""
    raise ValueError(f"{_NOT_FETCHED}: {uri[:_SHOWN]}")


_KINDS_OF: Final = {
    bool: "boolean",
    int: "integer number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class _StrictType:
    def __init__(self, _: dict[str, Any], value: Any, __: list[str | int]) -> None:
        if isinstance(value, str):
            self._names = [value]
        else:
            self._names = list(value)

    def validate(self, instance: Any) -> None:
        if not set(_KINDS_OF.get(type(instance), "null").split()).intersection(self._names):
            raise ValueError(f"{dumps(instance)} is not of type {' or '.join(self._names)}")


def _with_json_types(value: Any) -> Any:
    """Return a schema with other words for types in those of JSON Schema.

    A word nobody knows says nothing.
    """
    if isinstance(value, list):
        return list(map(_with_json_types, value))
    if not isinstance(value, dict):
        return value
    schema = {
        key: member if key in _VALUES else _with_json_types(member) for key, member in value.items()
    }
    types = schema.get("type")
    if isinstance(types, list):
        schema["type"] = [_json_type(word) or word for word in types]
    elif isinstance(types, str):
        schema["type"] = _json_type(types)
        if schema["type"] is None:
            del schema["type"]
    return schema


def _json_type(word: Any) -> str | None:
    if isinstance(word, str):
        return _WORDS.get(word.lower())
    return None

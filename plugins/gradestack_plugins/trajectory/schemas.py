"""JSON Schema of tools: validators that fetch and open nothing, and whose patterns take linear time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import attrs
import jsonschema_rs
import msgspec

from gradestack import JSON
from gradestack.jsonio import JsonProblem, dumps, loads
from gradestack_plugins.trajectory.schema_cost import Cost, TooLarge, pattern_options

_DIALECTS: Final = frozenset(
    {
        "json-schema.org/draft-04/schema",
        "json-schema.org/draft-06/schema",
        "json-schema.org/draft-07/schema",
        "json-schema.org/draft/2019-09/schema",
        "json-schema.org/draft/2020-12/schema",
    }
)
_WORDS: Final = {
    "dict": "object",
    "float": "number",
    "double": "number",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
    "str": "string",
    "list": "array",
    "tuple": "array",
    "none": "null",
}
"""Words of programming languages for types, where a reader has not put them into JSON Schema's."""
_TYPES: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_SCHEMAS: Final = ("items", "additionalProperties", "not", "contains", "propertyNames")
_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_FALSE: Final = tuple([each] for each in ("additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems"))
_NOT_FETCHED: Final = "another document is not fetched"
_encode: Final = msgspec.json.Encoder().encode
_SHOWN: Final = 200
_MOST_KEPT: Final = 128 * 1024 * 1024
"""Bytes that validators in memory may take."""


@attrs.frozen
class Violation:
    """One keyword that a value does not keep."""

    keyword: str
    pointer: str
    """Of the value."""
    message: str


@attrs.frozen
class Unusable:
    """A schema that nothing can be checked by."""

    message: str
    wrong: bool
    """It is no JSON Schema; else it asks for what is not done here: references elsewhere, patterns that look around."""
    large: bool = False
    """It would take too much time or memory."""


def violations(
    schema: Mapping[str, JSON], value: Mapping[str, JSON], *, strict_integers: bool, mapped: bool = True
) -> list[Violation] | Unusable:
    """Return what of a schema a value does not keep, or why that cannot be said.

    Args:
        schema: The schema; its dialect is by ``$schema``, 2020-12 where it names none or one that is not known.
        value: What is checked.
        strict_integers: 1.0 is no integer.
        mapped: Words such as ``dict`` and ``OBJECT`` are understood.
    """
    try:
        try:
            text = _encode(schema)
        except (TypeError, ValueError):  # what the fast encoder does not write, such as a lone surrogate
            text = dumps(schema).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError):
        return Unusable("it is no JSON, or nested too deeply", wrong=True)
    found = _validator(text, strict_integers=strict_integers, mapped=mapped)
    if isinstance(found, Unusable):
        return found
    validator, cost = found
    try:
        cost.check(value, _length(value))
        try:
            return list(_found(validator, value))
        except UnicodeEncodeError:  # a lone surrogate, which counts as one character all the same
            return list(_found(validator, _encodable(value)))
    except TooLarge as error:
        return Unusable(str(error), wrong=False, large=True)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        return Unusable(f"the arguments cannot be checked: {str(error)[:_SHOWN]}", wrong=False)


def _length(value: Mapping[str, JSON]) -> int | None:
    try:
        return len(_encode(value))
    except (TypeError, ValueError, RecursionError):
        return None


def _found(validator: Any, value: Any) -> Iterator[Violation]:
    for error in validator.iter_errors(value):
        steps = [str(step).replace("~", "~0").replace("/", "~1") for step in error.instance_path]
        keyword = error.kind.name
        if keyword == "falseSchema":  # where a keyword's schema is ``false``, it is the keyword that is not kept
            keyword = error.schema_path[-1] if error.schema_path[-1:] in _FALSE else "false"
        yield Violation(keyword, "".join(f"/{step}" for step in steps), error.message[:_SHOWN])


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in value)
    if isinstance(value, Mapping):
        entries = {}
        for key, each in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            entries[_encodable(key)] = _encodable(each)
        return entries
    if not isinstance(value, list | tuple):
        return value
    items = []
    for each in value:
        items.append(_encodable(each))  # noqa: PERF401 - likewise
    return items


def _refuse(uri: str) -> NoReturn:
    """Take the place of what would fetch or open a referenced schema."""
    raise ValueError(f"{_NOT_FETCHED}: {uri[:_SHOWN]}")


class _StrictType:
    """Keyword ``type`` for which a float is never an integer."""

    def __init__(self, _: dict[str, Any], value: Any, __: list[str | int]) -> None:
        self._names = [value] if isinstance(value, str) else list(value)

    def validate(self, instance: Any) -> None:
        """Check one value.

        Raises:
            ValueError: It is of none of the types.
        """
        kinds = {
            bool: {"boolean"},
            int: {"integer", "number"},
            float: {"number"},
            str: {"string"},
            list: {"array"},
            dict: {"object"},
        }
        if not kinds.get(type(instance), {"null"}).intersection(self._names):
            raise ValueError(f"{dumps(instance)} is not of type {' or '.join(self._names)}")


class _Kept:
    """Validators in memory, by what they are made of."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bool, bool], Any] = {}
        self._takes = 0

    def get(self, key: tuple[bytes, bool, bool]) -> Any:
        return self._known.get(key)

    def put(self, key: tuple[bytes, bool, bool], validator: Any, takes: int) -> None:
        if self._takes + takes > _MOST_KEPT:
            self._known, self._takes = {}, 0
        self._known[key] = validator
        self._takes += takes


_kept: Final = _Kept()


def _validator(text: bytes, *, strict_integers: bool, mapped: bool) -> tuple[Any, Cost] | Unusable:
    """Return a validator of a schema and what its checks cost, or why there is none."""
    key = (text, strict_integers, mapped)
    found: tuple[Any, Cost] | Unusable | None = _kept.get(key)
    if found is None:
        found = _new(text, strict_integers=strict_integers, mapped=mapped)
        _kept.put(key, found, len(text) + 1024 if isinstance(found, Unusable) else found[1].takes)
    return found


def _new(text: bytes, *, strict_integers: bool, mapped: bool) -> tuple[Any, Cost] | Unusable:
    try:
        schema = loads(text)
    except JsonProblem as problem:
        return Unusable(str(problem), wrong=True)
    if isinstance(schema, dict):
        dialect = schema.get("$schema")
        if not isinstance(dialect, str) or dialect.partition("://")[2].rstrip("#") not in _DIALECTS:
            schema.pop("$schema", None)
    try:
        cost = Cost.of(schema, len(text))
        found = _made(schema, strict_integers=strict_integers)
        if mapped and isinstance(found, Unusable) and found.wrong:
            again = _in_json_schema(schema)
            made = _made(again, strict_integers=strict_integers)
            if not isinstance(made, Unusable):
                return made, Cost.of(again, len(text))
    except TooLarge as problem:
        return Unusable(str(problem), wrong=False, large=True)
    return found if isinstance(found, Unusable) else (found, cost)


def _made(schema: Any, *, strict_integers: bool) -> Any:
    """Return a validator of a schema, or why there is none.

    Formats are annotations, as the current dialect has them.
    """
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            retriever=_refuse,
            pattern_options=pattern_options(),
            keywords={"type": _StrictType} if strict_integers else None,
        )
    except jsonschema_rs.ValidationError as error:
        told = f"{''.join(f'/{step}' for step in error.instance_path)} {error.message}".strip()
        beyond = error.kind.name == "format" or _NOT_FETCHED in error.message
        return Unusable(told[:_SHOWN], wrong=not beyond)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        return Unusable(str(error)[:_SHOWN], wrong=False)


def _in_json_schema(schema: Any) -> Any:
    """Return a schema with other words for types in those of JSON Schema; a word nobody knows says nothing."""
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    word = found.pop("type", None)
    if isinstance(word, str):
        word = _word(word)
        if word is not None:
            found["type"] = word
    elif word is not None:
        found["type"] = [_word(each) or each if isinstance(each, str) else each for each in _listed(word)]
    for key in _SCHEMAS:
        if key in found:
            found[key] = _in_json_schema(found[key])
    for key in _MAPS:
        if isinstance(found.get(key), dict):
            found[key] = {name: _in_json_schema(each) for name, each in found[key].items()}
    for key in _LISTS:
        if isinstance(found.get(key), list):
            found[key] = [_in_json_schema(each) for each in found[key]]
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _word(word: str) -> str | None:
    if word in _TYPES:
        return word
    lower = word.lower()
    return lower if lower in _TYPES else _WORDS.get(lower)

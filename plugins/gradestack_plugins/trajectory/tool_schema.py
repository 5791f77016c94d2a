"""Grader ``tool_schema``, calls against the JSON Schema of the run's own tools, and aggregator ``call_validity``.

Validators fetch and open nothing, and their patterns take linear time.

What a check can cost at most is known before the library that checks sees the value. The library makes an error of
each keyword that fails, with a copy of the value and of the way to the keyword, and keeps the errors of all branches of
an ``anyOf``. So schemas of a few lines, whose references meet again and again, take gigabytes, and no signal is
answered meanwhile. The visits it would make are counted here, up to a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn
from urllib.parse import unquote

import attrs
import jsonschema_rs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grader,
    Item,
    Outcome,
    Reason,
    Sample,
    ToolCall,
    ToolSpec,
    preset_version,
    ratio,
    replace,
    skipped,
)
from gradestack.jsonio import JsonProblem, compact, dumps, loads, pointer_to
from gradestack_plugins.trajectory.calls import (
    ASSISTANT,
    CallShare,
    Count,
    added_up,
    at_pointer,
    judged,
    refuse,
    state_of,
)

_MOST: Final = 150_000
"""Units of a check: one is about what an error takes, 1.6 KB and 20 microseconds."""
_NODES, _CHARACTERS, _STEPS, _LEVELS = 16, 800, 5000, 8
"""Of these one unit each: nodes and characters that are copied, steps of a pattern, levels of the way to a keyword."""
_ALWAYS: Final = 100_000
"""Nodes of a schema without references times bytes of a value whose check needs no counting."""
_LARGEST_SCHEMA: Final = 2 * 1024 * 1024
_LARGEST_PATTERNS: Final = 64 * 1024 * 1024
_STATE: Final = 24
"""Bytes of a state of a pattern, at least."""
_SIZES: Final = (*(1 << power for power in (12, 14, 16, 18, 20, 22)), 10 * 1024 * 1024)
_CACHE: Final = 256 * 1024
_METASCHEMA: Final = 30
"""Units for each node of a value that is checked as a schema."""

_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE: Final = ("not", "if", "then", "else")
_OF_ENTRIES: Final = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS: Final = ("items", "additionalItems", "unevaluatedItems", "contains")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_FAILING: Final = frozenset(
    {
        *("type", "enum", "const", "required", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties"),
        *("maxProperties", "additionalProperties", "unevaluatedProperties", "items", "additionalItems"),
        *("unevaluatedItems", "contains", "anyOf", "oneOf", "not", "dependentRequired", "dependencies"),
        "propertyNames",
    }
)
"""Keywords that make an error of their own."""
_MANY: Final = frozenset({"required", "dependentRequired", "dependencies", "enum", "const"})
"""Keywords with an error, or a comparison, for each node of what they say."""


class Unusable(ValueError):
    """A schema, or a check against it, that is not done; the code says why, the message of what.

    ``schema_unusable``: it is no JSON Schema; ``not_expressible``: it asks for what is not done here, references
    elsewhere or patterns that look around; ``schema_too_large``: it takes too much time or memory.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message

    def __str__(self) -> str:
        """Return the message."""
        return self.message


def _too_large(message: str) -> Unusable:
    return Unusable("schema_too_large", message)


def pattern_options(size: int = _SIZES[-1]) -> jsonschema_rs.RegexOptions:
    """Return how patterns are compiled: for linear time, within a size."""
    return jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=_CACHE)


@lru_cache(maxsize=4096)  # without it a check by a schema with patterns and references takes three times as long
def _size_of(pattern: str) -> int:
    """Return the size a pattern is compiled to, rounded up; 0 of one that is not compiled."""
    for size in _SIZES:
        try:
            jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=pattern_options(size))
        except (jsonschema_rs.ValidationError, ValueError):
            continue
        return size
    return 0


def _weight(value: Any, known: dict[int, float]) -> float:
    """Return the units that a copy of a value takes."""
    if isinstance(value, str):
        return len(value) / _CHARACTERS
    if isinstance(value, int):
        return value.bit_length() / 64 / _NODES
    if not isinstance(value, Mapping | list | tuple):
        return 1 / _NODES
    found = known.get(id(value))
    if found is None:
        inner = value.values() if isinstance(value, Mapping) else value
        found = (1 + len(value)) / _NODES
        for each in inner:
            found += _weight(each, known)
        if isinstance(value, Mapping):
            found += sum(map(len, value)) / _CHARACTERS
        known[id(value)] = found
    return found


def _nodes(value: Any) -> Iterator[Any]:
    left = [value]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, dict):
            left += node.values()
        elif isinstance(node, list):
            left += node


@attrs.frozen
class Cost:
    """What is known of a schema before it is used."""

    schema: Any
    size: int
    """Nodes, and what patterns add to them; where there are references, nothing is known by that."""
    takes: int
    """Bytes that its validator may hold."""
    bases: tuple[Any, ...]
    """Schemas inside of it that references may begin at: itself first."""
    anchors: Mapping[str, list[Any]]
    referring: bool

    @classmethod
    def of(cls, schema: Any, length: int) -> Cost:
        """Return the costs of a schema whose text is so long."""
        if length > _LARGEST_SCHEMA:
            raise _too_large(f"the schema is longer than {_LARGEST_SCHEMA >> 20} MB")
        anchors: dict[str, list[Any]] = {}
        bases, size, patterns, referring = [schema], 0, 0, False
        copied = []  # into what compiles the keyword, for all that is for the same value
        for node in _nodes(schema):
            size += 1
            if not isinstance(node, dict):
                continue
            referring = referring or any(key in node for key in _REFERENCES)
            if "unevaluatedProperties" in node or "unevaluatedItems" in node:
                copied.append(node)
            if any(isinstance(node.get(key), str) for key in ("$id", "id")) and node is not schema:
                bases.append(node)
            for key in ("$anchor", "$dynamicAnchor", "$id", "id"):
                if isinstance(name := node.get(key), str):
                    anchors.setdefault(name.removeprefix("#"), []).append(node)
            if node.get("$recursiveAnchor") is True:
                anchors.setdefault("", []).append(node)
            for pattern in _patterns_of(node):
                compiled = _size_of(pattern)
                patterns += compiled + _CACHE
                size += compiled // _STATE // _STEPS
                if patterns > _LARGEST_PATTERNS:
                    raise _too_large("the patterns of the schema are too many or too large")
        cost = cls(schema, size, 64 * length + patterns, tuple(bases), anchors, referring)
        cost._count(copied, None, _MOST // 2)
        return cost

    def check(self, value: Any) -> None:
        """Refuse a value whose check takes too much time or memory."""
        if not self.referring:
            with suppress(TypeError, ValueError, RecursionError):  # what the fast encoder does not write
                if self.size * len(_encode(value)) <= _ALWAYS:
                    return
        self._count([self.schema], value, _MOST)

    def _count(self, schemas: list[Any], value: Any, most: int) -> None:
        """Count what schemas, and all that they lead to, take at a value; refuse what is too much."""
        weights: dict[int, float] = {}
        left: list[tuple[Any, Any, int, tuple[int, ...]]] = [(schema, value, 0, ()) for schema in schemas]
        units = 0.0
        while left:
            schema, at, level, behind = left.pop()
            units += 1 + level / _LEVELS
            if isinstance(schema, dict):
                units += _own(schema, at, weights)
                for target in self._referred(schema):
                    if target is None:
                        units += _METASCHEMA * (1 + _NODES * _weight(at, weights))
                    elif id(target) not in behind:  # else it leads back to itself, which the library sees, too
                        left.append((target, at, level + 1, (*behind, id(target))))
                left += ((each, at, level + 1, behind) for each in _in_place(schema))
                left += ((each, inner, level + 1, ()) for each, inner in _below(schema, at))
            if units > most:
                raise _too_large("a check by the schema takes too much time or memory")

    def _referred(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        for key in _REFERENCES:
            if isinstance(reference := schema.get(key), str):
                yield from self._targets(reference)

    def _targets(self, reference: str) -> list[Any]:
        """Return the schemas that a reference may mean; None is one that the library has itself."""
        place, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        found = [] if fragment[:1] == "/" else list(self.anchors.get(fragment, ()))
        if not fragment or fragment[0] == "/":
            found += (each for base in self.bases if isinstance(each := at_pointer(base, fragment), dict | bool))
        if found:
            return list({id(each): each for each in found}.values())
        if place.partition("://")[2].startswith("json-schema.org/"):
            return [None]
        raise _too_large(f"the reference {reference[:60]!r} cannot be followed")


def _patterns_of(schema: Mapping[str, Any]) -> list[str]:
    own, named = schema.get("pattern"), schema.get("patternProperties")
    return [*([own] if isinstance(own, str) else ()), *(named if isinstance(named, dict) else ())]


def _own(schema: Mapping[str, Any], value: Any, weights: dict[int, float]) -> float:
    """Return the units of a schema's own keywords at a value."""
    copy = 1 + _weight(value, weights)
    units = 0.0
    for key, said in schema.items():
        if key not in _FAILING:
            continue
        if key in _MANY and isinstance(said, dict | list):
            keys = said.values() if isinstance(said, dict) else said
            times = 1 if key in {"enum", "const"} else sum(len(each) if isinstance(each, list) else 1 for each in keys)
            units += times * copy + _weight(said, weights)
        else:
            units += copy
    for pattern in _patterns_of(schema):
        texts = [value] if isinstance(value, str) else value if isinstance(value, Mapping) else ()
        units += sum(map(len, texts)) * _size_of(pattern) / _STATE / _STEPS
    return units


def _in_place(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key in _BRANCHES:
        if isinstance(inner := schema.get(key), list):
            yield from inner
    for key in _IN_PLACE:
        if key in schema:
            yield schema[key]
    for key in ("dependentSchemas", "dependencies"):
        if isinstance(inner := schema.get(key), dict):
            yield from inner.values()


def _below(schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        named = schema.get("properties")
        named = named if isinstance(named, dict) else {}
        first, second = (named, value) if len(named) < len(value) else (value, named)
        yield from ((named[key], value[key]) for key in first if key in second)
        if isinstance(patterns := schema.get("patternProperties"), dict):
            yield from ((inner, each) for inner in patterns.values() for each in value.values())
        for key in _OF_ENTRIES:
            if isinstance(inner := schema.get(key), dict):
                yield from ((inner, each) for name, each in value.items() if name not in named)
        if isinstance(inner := schema.get("propertyNames"), dict):
            yield from ((inner, name) for name in value)
    elif isinstance(value, list | tuple):
        for key in ("prefixItems", "items"):
            if isinstance(inner := schema.get(key), list):
                yield from zip(inner, value, strict=False)
        for key in _OF_ITEMS:
            if isinstance(inner := schema.get(key), dict):
                yield from ((inner, each) for each in value)


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
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas."""
_FALSE: Final = tuple([each] for each in ("additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems"))
_NOT_FETCHED: Final = "another document is not fetched"
_encode: Final = msgspec.json.Encoder().encode
_SHOWN: Final = 200
_LONE: Final = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which UTF-8 cannot carry."""
_MOST_KEPT: Final = 128 * 1024 * 1024
"""Bytes that validators in memory may take."""


def violations(
    schema: Mapping[str, JSON], value: Mapping[str, JSON], *, strict_integers: bool, mapped: bool = True
) -> list[Reason]:
    """Return what of a schema a value does not keep: keywords, with a pointer into the value.

    The dialect is by ``$schema``, 2020-12 where it names none or one that is not known. With ``strict_integers`` 1.0 is
    no integer; if ``mapped``, words such as ``dict`` and ``OBJECT`` are understood.

    Raises:
        Unusable: Nothing can be checked by the schema.
    """
    try:
        try:
            text = _encode(schema)
        except (TypeError, ValueError):  # what the fast encoder does not write, such as a lone surrogate
            text = dumps(schema).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise Unusable("schema_unusable", "it is no JSON, or nested too deeply") from error
    validator, cost = _validator(text, strict_integers=strict_integers, mapped=mapped)
    try:
        cost.check(value)
        try:
            return list(_violated(validator, value))
        except UnicodeEncodeError:  # a lone surrogate, which counts as one character all the same
            return list(_violated(validator, loads(_LONE.sub("\ufffd", compact(value)))))
    except Unusable:
        raise
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        message = f"the arguments cannot be checked: {str(error)[:_SHOWN]}"
        raise Unusable("not_expressible", message) from error


def _violated(validator: Any, value: Any) -> Iterator[Reason]:
    for error in validator.iter_errors(value):
        keyword = error.kind.name
        if keyword == "falseSchema":  # where a keyword's schema is ``false``, it is the keyword that is not kept
            keyword = error.schema_path[-1] if error.schema_path[-1:] in _FALSE else "false"
        yield Reason(code=keyword, pointer=pointer_to(*error.instance_path), message=error.message[:_SHOWN])


def _refuse(uri: str) -> NoReturn:
    """Take the place of what would fetch or open a referenced schema."""
    raise ValueError(f"{_NOT_FETCHED}: {uri[:_SHOWN]}")


class _StrictType:
    def __init__(self, _: dict[str, Any], value: Any, __: list[str | int]) -> None:
        self._names = [value] if isinstance(value, str) else list(value)

    def validate(self, instance: Any) -> None:
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


_validators: dict[tuple[bytes, bool, bool], tuple[Any, Cost] | Unusable] = {}
"""Compiled ones, up to so many bytes: without them a run of tool_schema alone takes 1.6 times as long."""
_taken = [0]


def _validator(text: bytes, *, strict_integers: bool, mapped: bool) -> tuple[Any, Cost]:
    key = (text, strict_integers, mapped)
    found = _validators.get(key)
    if found is None:
        takes = len(text) + 1024
        try:
            found = _compiled(text, strict_integers=strict_integers, mapped=mapped)
            takes = found[1].takes
        except Unusable as problem:
            found = problem.with_traceback(None)
        if _taken[0] + takes > _MOST_KEPT:
            _validators.clear()
            _taken[0] = 0
        _validators[key] = found
        _taken[0] += takes
    if isinstance(found, Unusable):
        raise Unusable(found.code, found.message)  # a new one: an exception holds the frames it went through
    return found


def _compiled(text: bytes, *, strict_integers: bool, mapped: bool) -> tuple[Any, Cost]:
    try:
        schema = loads(text)
    except JsonProblem as problem:
        raise Unusable("schema_unusable", str(problem)) from problem
    if isinstance(schema, dict):
        dialect = schema.get("$schema")
        if not isinstance(dialect, str) or dialect.partition("://")[2].rstrip("#") not in _DIALECTS:
            schema.pop("$schema", None)
    cost = Cost.of(schema, len(text))
    try:
        return _validator_for(schema, strict_integers=strict_integers), cost
    except Unusable as problem:
        if not mapped or problem.code != "schema_unusable":
            raise
        again = _in_json_schema(schema)
        try:
            return _validator_for(again, strict_integers=strict_integers), Cost.of(again, len(text))
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
        beyond = error.kind.name == "format" or _NOT_FETCHED in error.message
        raise Unusable("not_expressible" if beyond else "schema_unusable", message) from error
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Unusable("not_expressible", str(error)[:_SHOWN]) from error


def _in_json_schema(value: Any) -> Any:
    """Return a schema with other words for types in those of JSON Schema; a word nobody knows says nothing."""
    if isinstance(value, list):
        return [_in_json_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: each if key in _VALUES else _in_json_schema(each) for key, each in value.items()}
    word = found.get("type")
    if isinstance(word, list):
        found["type"] = [_word(each) or each if isinstance(each, str) else each for each in word]
    elif isinstance(word, str) and (known := _word(word)) is not None:
        found["type"] = known
    elif isinstance(word, str):
        del found["type"]
    return found


def _word(word: str) -> str | None:
    lower = word.lower()
    return lower if lower in _TYPES else _WORDS.get(lower)


PRESETS: Final = {"mcp_bench/tool_accuracy": "01ae3b4"}
_COUNTS: Final = ("calls", "valid", "violating", "unknown_tool", "undecodable", "unchecked")
_KINDS: Final = {
    "unknown_tool": "unknown_tool",
    "undecodable_arguments": "undecodable",
    **dict.fromkeys(("schema_unusable", "schema_too_large", "not_expressible"), "unchecked"),
}
_MOST_REASONS: Final = 20
"""Of one call; counts have all."""
_LONGEST: Final = 300


def _named(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


@attrs.frozen(kw_only=True)
class ToolSchema(Grader):
    """Share of the calls that are valid against this run's own tools, in [0, 1].

        score = valid / (valid + violating + unknown_tool + undecodable)

    A call is valid when the run had a tool of its name and the arguments keep the tool's JSON Schema; a tool without a
    schema takes anything. ``violating`` calls break a keyword of it, ``unknown_tool`` ones name a tool the run did not
    have, ``undecodable`` ones have arguments that are no object. Calls of a tool whose schema is no JSON Schema, or
    asks for what is not done here (other documents, patterns that look around), or takes too much time or memory to
    check by, are ``unchecked`` and in neither number. Of several tools of one name any may take the call.

    Dialects are told by ``$schema``, 2020-12 by default. Nothing is fetched or opened, patterns take linear time.
    ``counts`` also has ``violation:KEYWORD`` for each keyword, ``items`` the same by tool; reasons are the keywords,
    with a pointer into the arguments. Skipped without recorded calls or tools, without any call, and where all are
    unchecked.

    With the preset ``mcp_bench/tool_accuracy`` the score is the share of known tools' calls that keep their schema, 0
    where no tool is known; ``parts`` are that benchmark's four rates. Both profiles are the same.

    Attributes:
        strict_integers: 1.0 is no integer; by the standard it is one.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
        preset: The rule of another tool.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls", "tools"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls", "tools"})
    aggregators: ClassVar[tuple[str, ...]] = ("call_validity", "mean")
    words: ClassVar[tuple[str, str]] = ("without invalid calls", "with invalid calls")

    strict_integers: bool = False
    count: Count = "attempted"
    requestor: str | None = ASSISTANT
    preset: str | None = attrs.field(default=None, converter=_named)

    def __attrs_post_init__(self) -> None:
        if self.preset is not None:
            refuse(self.preset, {"strict_integers": self.strict_integers})

    @property
    @override
    def tool_schemas(self) -> bool:
        return True

    @override
    def grade(self, sample: Sample) -> Grade:
        grade = self._grade(sample)
        return grade if self.preset is None else replace(grade, metadata={**grade.metadata, "preset": self.preset})

    def _grade(self, sample: Sample) -> Grade:
        calls = judged(sample, self.count, self.requestor)
        if isinstance(calls, Grade):
            return calls
        if sample.tools is None:
            return skipped("tools_not_recorded", "no tool definitions recorded")
        if not calls:
            return skipped("no_calls", "the run made no call")
        tools: dict[str, list[ToolSpec]] = {}
        for tool in sample.tools:
            tools.setdefault(tool.name, []).append(tool)
        by_tool: dict[str, dict[str, int]] = {}
        reasons: list[Reason] = []
        for call in calls:
            found = list(self._reasons(call, tools.get(call.name, ())))
            counts = by_tool.setdefault(call.name, dict.fromkeys(_COUNTS, 0))
            kind = _kind(found)
            counts["calls"] += 1
            counts[kind] += 1
            if kind == "violating":
                for each in found:
                    counts[f"violation:{each.code}"] = counts.get(f"violation:{each.code}", 0) + 1
            reasons += found[:_MOST_REASONS]
        items = tuple(_item(name, counts) for name, counts in by_tool.items())
        total = added_up(items)
        if self.preset is not None:
            return _mcp_bench(total, calls, items, tuple(reasons))
        checked = total["calls"] - total["unchecked"]
        if not checked:
            grade = skipped("schema_unusable", "no call is of a tool whose schema can be used")
            return replace(grade, counts=total, items=items, reasons=(*grade.reasons, *reasons))
        return Grade(score=total["valid"] / checked, counts=total, items=items, reasons=tuple(reasons))

    def _reasons(self, call: ToolCall, tools: Sequence[ToolSpec]) -> Iterator[Reason]:
        if not tools:
            yield Reason(code="unknown_tool", subject=call.name, message="the run had no tool of this name")
            return
        arguments = call.arguments
        if self.preset is not None and not tools[-1].parameters:
            return
        if arguments is None:
            yield Reason(code="undecodable_arguments", subject=call.name, message=(call.raw_arguments or "")[:_LONGEST])
            return
        first: list[Reason] | None = None
        for tool in tools if self.preset is None else tools[-1:]:
            found = list(self._violations(call.name, arguments, tool))
            if not found:
                return
            first = found if first is None or _kind(first) == "unchecked" else first
        yield from first or ()

    def _violations(self, name: str, arguments: Mapping[str, JSON], tool: ToolSpec) -> Iterator[Reason]:
        if tool.parameters is None:
            return
        mapped, strict = self.preset is None, self.strict_integers
        try:
            for each in violations(tool.parameters, arguments, strict_integers=strict, mapped=mapped):
                yield replace(each, subject=name)
        except Unusable as problem:
            beyond = problem.code == "not_expressible" and self.preset is None
            yield Reason(code="schema_unusable" if beyond else problem.code, subject=name, message=str(problem))


def _kind(reasons: Sequence[Reason]) -> str:
    return _KINDS.get(reasons[0].code, "violating") if reasons else "valid"


def _item(name: str, counts: dict[str, int]) -> Item:
    checked = counts["calls"] - counts["unchecked"]
    if not checked:
        return Item(id=name, outcome=Outcome.SKIPPED, counts=counts)
    return Item(id=name, score=counts["valid"] / checked, counts=counts)


def _mcp_bench(
    total: Mapping[str, int], calls: Sequence[ToolCall], items: tuple[Item, ...], reasons: tuple[Reason, ...]
) -> Grade:
    """Return the grade of MCP-Bench: rates over all calls, and over those of known tools.

    What failed is not known where the recording says of no call how it ended.
    """
    beyond = next((each.code for each in reasons if each.code in {"not_expressible", "schema_too_large"}), None)
    if beyond is not None:
        grade = skipped(beyond, "the schema uses an unsupported keyword")
        return replace(grade, counts=total, reasons=(*grade.reasons, *reasons))
    known = total["calls"] - total["unknown_tool"]
    strangers = {each.subject for each in reasons if each.code == "unknown_tool"}
    states = [state_of(call) for call in calls]
    executed = set(states) != {"unknown"}
    failures = sum(state != "ok" and call.name not in strangers for call, state in zip(calls, states, strict=True))
    compliance = total["valid"] / known if known else 0.0
    parts = {
        "valid_tool_name_rate": known / total["calls"],
        "input_schema_compliance": compliance,
        "execution_success_rate": states.count("ok") / total["calls"] if executed else None,
        "valid_call_failure_rate": (failures / known if known else 0.0) if executed else None,
    }
    return Grade(score=compliance, counts=total, parts=parts, items=items, reasons=reasons)


_SHARE, _UNCHECKED = "valid / (calls - unchecked)", "no call was checked"


@attrs.frozen(kw_only=True)
class CallValidity(CallShare):
    """Valid calls over all runs and by tool, and how often each keyword of a schema is violated.

    ``valid_share`` = valid / (calls - unchecked), over calls, not over runs; None where none was checked. Its interval
    and that of each tool leave out one task at a time.
    """

    figures: ClassVar = (
        Figure("valid_share", "Schema-valid calls", about=_SHARE, divisor="checked"),
        Figure("tools.{tool}.valid_share", "Schema-valid calls of a tool", about=_SHARE, divisor="checked"),
    )
    share, count, divisor, undefined = "valid_share", "valid", "checked", _UNCHECKED
    divisors = ("valid", "violating", "unknown_tool", "undecodable")

    @override
    def shown(self, counts: Mapping[str, int]) -> dict[str, JSON]:
        own = {name: number for name, number in counts.items() if ":" not in name and name != "checked"}
        keywords = {name.partition(":")[2]: counts[name] for name in sorted(counts) if name.startswith("violation:")}
        return {**own, "violations": keywords}

    @override
    def estimate(self, valid: float, checked: float) -> Mapping[str, float | None]:
        return {"valid_share": ratio(valid, checked)}

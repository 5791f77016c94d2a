"""Grader ``tool_schema``, calls against the JSON Schema of the run's own tools, and aggregator
``call_validity``.

Validators fetch and open nothing, and their patterns take linear time. What a check can cost at
most is counted before the library that checks sees the value: it makes an error of each keyword
that fails, with a copy of the value, and keeps those of all branches, so that a few lines whose
references meet again and again take gigabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    CallShares,
    Count,
    added_up,
    at_pointer,
    judged,
    refuse,
    share_item,
    state_of,
)

_MOST: Final = (
    150_000  # units of a check: one is about what an error takes, 1.6 KB and 20 microseconds
)
_ENTRIES, _CHARACTERS, _STEPS, _LEVELS = 16, 800, 5000, 8
"""Of these one unit each.

Entries and characters that are copied, steps of a pattern, levels of a keyword's path.
"""
_METASCHEMA: Final = (
    480  # units for each entry of a value that is checked as a schema, times those above
)
# nodes of a schema without references times bytes of a value whose check needs no counting
_ALWAYS: Final = 100_000
_LARGEST_SCHEMA: Final = 2 * 1024 * 1024
_LARGEST_PATTERNS: Final = 64 * 1024 * 1024
_STATE: Final = 24  # bytes of a state of a pattern, at least
_SIZES: Final = (*(1 << power for power in (12, 14, 16, 18, 20, 22)), 10 * 1024 * 1024)
_CACHE: Final = 256 * 1024
_MOST_KEPT: Final = 128 * 1024 * 1024  # bytes that validators in memory may take
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_encode: Final = msgspec.json.Encoder().encode
_SHOWN: Final = 200


class Unusable(ValueError):
    """A schema, or a check against it, that is not done; the code says why, the message of what.

    ``schema_unusable``: it is no JSON Schema; ``not_expressible``: it asks for what is not done
    here, references elsewhere or patterns that look around; ``schema_too_large``: it takes too much
    time or memory.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _too_large(message: str) -> Unusable:
    return Unusable("schema_too_large", message)


def _json(value: Any) -> bytes:
    try:
        return _encode(value)
    except (
        TypeError,
        ValueError,
    ):  # what the fast encoder does not write, such as a lone surrogate
        return dumps(value).encode("utf-8", "surrogatepass")


def _copy(value: Any) -> float:
    """Return the units that a copy of a value takes."""
    text = _json(value)
    return len(text) / _CHARACTERS + text.count(b",") / _ENTRIES


@lru_cache(
    maxsize=4096
)  # without it a check by a schema with patterns and references takes three times as long
def _size_of(pattern: str) -> int:
    """Return the size a pattern is compiled to, rounded up; 0 of one that is not compiled."""
    for size in _SIZES:
        with suppress(jsonschema_rs.ValidationError, ValueError):
            jsonschema_rs.validator_for(
                {"pattern": pattern}, pattern_options=_pattern_options(size)
            )
            return size
    return 0


def _pattern_options(size: int = _SIZES[-1]) -> jsonschema_rs.RegexOptions:
    return jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=_CACHE)


def _patterns(schema: Mapping[str, Any]) -> list[str]:
    own, named = schema.get("pattern"), schema.get("patternProperties")
    return [*([own] if isinstance(own, str) else ()), *(named if isinstance(named, dict) else ())]


def _nodes(value: Any) -> Iterator[Any]:
    left = [value]
    while left:
        yield (node := left.pop())
        left += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


class _Bound:
    """What a schema takes, known before it is used."""

    def __init__(self, schema: Any, length: int) -> None:  # noqa: C901
        if length > _LARGEST_SCHEMA:
            raise _too_large(f"the schema is longer than {_LARGEST_SCHEMA >> 20} MB")
        self.schema, self.size, patterns = schema, 0, 0
        self.bases, self.anchors = [schema], dict[str, list[Any]]()
        copied = []  # into what compiles the keyword, for all that is for the same value
        self.referring = False
        for node in _nodes(schema):
            self.size += 1
            if not isinstance(node, dict):
                continue
            self.referring = self.referring or any(key in node for key in _REFERENCES)
            if "unevaluatedProperties" in node or "unevaluatedItems" in node:
                copied.append(node)
            names = {
                key: name
                for key in ("$anchor", "$dynamicAnchor", "$id", "id")
                if (name := node.get(key))
            }
            for name in names.values():
                if isinstance(name, str):
                    self.anchors.setdefault(name.removeprefix("#"), []).append(node)
            if node is not schema and ("$id" in names or "id" in names):
                self.bases.append(node)
            if node.get("$recursiveAnchor") is True:
                self.anchors.setdefault("", []).append(node)
            for pattern in _patterns(node):
                compiled = _size_of(pattern)
                patterns += compiled + _CACHE
                self.size += compiled // _STATE // _STEPS
                if patterns > _LARGEST_PATTERNS:
                    raise _too_large("the patterns of the schema are too many or too large")
        self.takes = 64 * length + patterns  # bytes that its validator may hold
        self._count(copied, None, _MOST // 2)

    def check(self, value: Any) -> None:
        """Refuse a value whose check takes too much time or memory."""
        if self.referring or self.size * len(_json(value)) > _ALWAYS:
            self._count([self.schema], value, _MOST)

    def _count(self, schemas: list[Any], value: Any, most: int) -> None:
        """Count what schemas, and all that they lead to, take at a value.

        Refuse what is too much.
        """
        left: list[tuple[Any, Any, int, tuple[int, ...]]] = [
            (schema, value, 0, ()) for schema in schemas
        ]
        units = 0.0
        while left:
            schema, at, level, behind = left.pop()
            units += 1 + level / _LEVELS
            if isinstance(schema, dict):
                units += _own(schema, at)
                for target in self._targets(schema):
                    if target is None:
                        units += _METASCHEMA * (1 + _copy(at))
                    elif (
                        id(target) not in behind
                    ):  # else it leads back to itself, which the library sees, too
                        left.append((target, at, level + 1, (*behind, id(target))))
                for inner, within in _applied(schema, at):
                    left.append((inner, within, level + 1, behind if within is at else ()))
            if units > most:
                raise _too_large("a check by the schema takes too much time or memory")

    def _targets(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the schemas that the references of one may mean.

        None is one that the library has itself.
        """
        for reference in (schema[key] for key in _REFERENCES if isinstance(schema.get(key), str)):
            place, _, fragment = reference.partition("#")
            fragment = unquote(fragment)
            found = [] if fragment[:1] == "/" else list(self.anchors.get(fragment, ()))
            if not fragment or fragment[0] == "/":
                found += (
                    each
                    for base in self.bases
                    if isinstance(each := at_pointer(base, fragment), dict | bool)
                )
            if not found and not place.partition("://")[2].startswith("json-schema.org/"):
                raise _too_large(f"the reference {reference[:60]!r} cannot be followed")
            yield from {id(each): each for each in found or [None]}.values()


def _own(schema: Mapping[str, Any], value: Any) -> float:
    """Return the units of a schema's own keywords at a value.

    At most an error of each entry, with a copy.
    """
    errors, compared = len(schema), 0.0
    for key, said in schema.items():
        if key in {"required", "dependentRequired", "dependencies"}:
            errors += sum(len(each) if isinstance(each, list) else 1 for each in _members(said))
        elif key in {"enum", "const"}:
            compared += _copy(said)
    texts = [value] if isinstance(value, str) else value if isinstance(value, Mapping) else ()
    steps = sum(_size_of(pattern) for pattern in _patterns(schema)) / _STATE * sum(map(len, texts))
    return errors * (1 + _copy(value)) + compared + steps / _STEPS


def _members(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


_IN_PLACE: Final = {"allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"}
_OF_ITEMS: Final = {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"}


def _applied(schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: C901
    """Yield the schemas inside of one, each with what of the value it is for."""
    named = schema.get("properties")
    named = named if isinstance(named, dict) else {}
    for key, inner in schema.items():
        if key in _IN_PLACE:
            yield from ((each, value) for each in _members(inner))
        elif key in {"not", "if", "then", "else"}:
            yield inner, value
        elif isinstance(value, Mapping) and isinstance(inner, dict):
            if key == "properties":
                first, second = (inner, value) if len(inner) < len(value) else (value, inner)
                yield from ((inner[name], value[name]) for name in first if name in second)
            elif key == "patternProperties":
                yield from ((one, each) for one in inner.values() for each in value.values())
            elif key in {"additionalProperties", "unevaluatedProperties"}:
                yield from ((inner, each) for name, each in value.items() if name not in named)
            elif key == "propertyNames":
                yield from ((inner, name) for name in value)
        elif isinstance(value, list | tuple) and key in _OF_ITEMS:
            if isinstance(inner, list):
                yield from zip(inner, value, strict=False)
            else:
                yield from ((inner, each) for each in value)


_DIALECT: Final = re.compile(
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
_VALUES: Final = frozenset(
    {"const", "default", "enum", "examples"}
)  # keywords whose values are no schemas
_FALSE: Final = tuple(
    [each]
    for each in ("additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems")
)
_NOT_FETCHED: Final = "another document is not fetched"
_LONE: Final = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which UTF-8 cannot carry


def violations(
    schema: Mapping[str, JSON],
    value: Mapping[str, JSON],
    *,
    strict_integers: bool,
    mapped: bool = True,
) -> list[Reason]:
    """Return what of a schema a value does not keep: keywords, with a pointer into the value.

    The dialect is by ``$schema``, 2020-12 where it names none or one that is not known. With
    ``strict_integers`` 1.0 is no integer; if ``mapped``, words such as ``dict`` and ``OBJECT`` are
    understood.

    Raises:
        Unusable: Nothing can be checked by the schema.
    """
    try:
        text = _json(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unusable("schema_unusable", "it is no JSON, or nested too deeply") from error
    validator, bound = _validator(text, strict_integers=strict_integers, mapped=mapped)
    try:
        bound.check(value)
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
        if (
            keyword == "falseSchema"
        ):  # where a keyword's schema is ``false``, it is the keyword that is not kept
            keyword = error.schema_path[-1] if error.schema_path[-1:] in _FALSE else "false"
        yield Reason(
            code=keyword, pointer=pointer_to(*error.instance_path), message=error.message[:_SHOWN]
        )


_validators: dict[tuple[bytes, bool, bool], tuple[Any, _Bound] | Unusable] = {}
"""Compiled ones, up to so many bytes.

Without them a run of tool_schema alone takes 1.6 times as long.
"""
_taken = [0]


def _validator(text: bytes, *, strict_integers: bool, mapped: bool) -> tuple[Any, _Bound]:
    key = (text, strict_integers, mapped)
    if key not in _validators:
        known: tuple[Any, _Bound] | Unusable
        takes = len(text) + 1024
        try:
            known = _compiled(text, strict_integers=strict_integers, mapped=mapped)
            takes = known[1].takes
        except Unusable as problem:
            known = Unusable(
                problem.code, str(problem)
            )  # a new one: an exception holds the frames it went through
        if _taken[0] + takes > _MOST_KEPT:
            _validators.clear()
            _taken[0] = 0
        _validators[key] = known
        _taken[0] += takes
    found = _validators[key]
    if isinstance(found, Unusable):
        raise Unusable(found.code, str(found))
    return found


def _compiled(text: bytes, *, strict_integers: bool, mapped: bool) -> tuple[Any, _Bound]:
    try:
        schema = loads(text)
    except JsonProblem as problem:
        raise Unusable("schema_unusable", str(problem)) from problem
    if isinstance(schema, dict) and not _DIALECT.fullmatch(str(schema.get("$schema"))):
        schema.pop("$schema", None)
    bound = _Bound(schema, len(text))
    try:
        return _validator_for(schema, strict_integers=strict_integers), bound
    except Unusable as problem:
        if not mapped or problem.code != "schema_unusable":
            raise
        again = _with_json_types(schema)
        try:
            return _validator_for(again, strict_integers=strict_integers), _Bound(again, len(text))
        except Unusable as other:
            raise (other if other.code == "schema_too_large" else problem) from None


def _validator_for(schema: Any, *, strict_integers: bool) -> Any:
    """Return a validator of a schema. Formats are annotations, as the current dialect has them."""
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            retriever=_refuse,
            pattern_options=_pattern_options(),
            keywords={"type": _StrictType} if strict_integers else None,
        )
    except jsonschema_rs.ValidationError as error:
        message = f"{pointer_to(*error.instance_path)} {error.message}".strip()[:_SHOWN]
        beyond = error.kind.name == "format" or _NOT_FETCHED in error.message
        raise Unusable("not_expressible" if beyond else "schema_unusable", message) from error
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
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
        self._names = [value] if isinstance(value, str) else list(value)

    def validate(self, instance: Any) -> None:
        if not set(_KINDS_OF.get(type(instance), "null").split()).intersection(self._names):
            raise ValueError(f"{dumps(instance)} is not of type {' or '.join(self._names)}")


def _with_json_types(value: Any) -> Any:
    """Return a schema with other words for types in those of JSON Schema.

    A word nobody knows says nothing.
    """
    if isinstance(value, list):
        return [_with_json_types(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: each if key in _VALUES else _with_json_types(each) for key, each in value.items()}
    word = found.get("type")
    if isinstance(word, list):
        found["type"] = [
            _WORDS.get(each.lower(), each) if isinstance(each, str) else each for each in word
        ]
    elif isinstance(word, str):
        found["type"] = _WORDS.get(word.lower())
        if found["type"] is None:
            del found["type"]
    return found


PRESETS: Final = {"mcp_bench/tool_accuracy": "01ae3b4"}
_COUNTS: Final = ("calls", "valid", "violating", "unknown_tool", "undecodable", "unchecked")
_KINDS: Final = {
    "unknown_tool": "unknown_tool",
    "undecodable_arguments": "undecodable",
    **dict.fromkeys(("schema_unusable", "schema_too_large", "not_expressible"), "unchecked"),
}
_MOST_REASONS: Final = 20  # of one call; counts have all
_LONGEST: Final = 300


def _named(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


@attrs.frozen(kw_only=True)
class ToolSchema(Grader):
    """Share of the calls that are valid against this run's own tools, in [0, 1].

        score = valid / (valid + violating + unknown_tool + undecodable)

    A call is valid when the run had a tool of its name and the arguments keep the tool's JSON
    Schema; a tool without a schema takes anything. ``violating`` calls break a keyword of it,
    ``unknown_tool`` ones name a tool the run did not have, ``undecodable`` ones have arguments that
    are no object. Calls of a tool whose schema is no JSON Schema, or asks for what is not done here
    (other documents, patterns that look around), or takes too much time or memory to check by, are
    ``unchecked`` and in neither number. Of several tools of one name any may take the call.

    Dialects are told by ``$schema``, 2020-12 by default. Nothing is fetched or opened, patterns
    take linear time. ``counts`` also has ``violation:KEYWORD`` for each keyword, ``items`` the same
    by tool; reasons are the keywords, with a pointer into the arguments. Skipped without recorded
    calls or tools, without any call, and where all are unchecked.

    With the preset ``mcp_bench/tool_accuracy`` the score is the share of known tools' calls that
    keep their schema, 0 where no tool is known; ``parts`` are that benchmark's four rates.

    Attributes:
        strict_integers: 1.0 is no integer; by the standard it is one.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
        preset: The rule of another tool.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls", "tools"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    metrics: ClassVar[tuple[str, ...]] = ("call_validity", "mean")
    verdict_labels: ClassVar[tuple[str, str]] = ("without invalid calls", "with invalid calls")

    strict_integers: bool = False
    count: Count = "attempted"
    requestor: str | None = ASSISTANT
    preset: str | None = attrs.field(default=None, converter=_named)

    def __attrs_post_init__(self) -> None:
        if self.preset is not None:
            refuse(self, self.preset, ())

    @property
    @override
    def tool_schemas(self) -> bool:
        return True

    @override
    def grade(self, sample: Sample) -> Grade:
        grade = self._grade(sample)
        return (
            grade
            if self.preset is None
            else replace(grade, metadata={**grade.metadata, "preset": self.preset})
        )

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
            found = self._reasons(call, tools.get(call.name, []))
            counts, kind = by_tool.setdefault(call.name, dict.fromkeys(_COUNTS, 0)), _kind(found)
            counts["calls"] += 1
            for name in (
                kind,
                *(f"violation:{each.code}" for each in found if kind == "violating"),
            ):
                counts[name] = counts.get(name, 0) + 1
            reasons += found[:_MOST_REASONS]
        items = tuple(
            share_item(name, counts, counts["valid"], counts["calls"] - counts["unchecked"])
            for name, counts in by_tool.items()
        )
        total = added_up(items)
        if self.preset is not None:
            return _mcp_bench(total, calls, items, tuple(reasons))
        checked = total["calls"] - total["unchecked"]
        if not checked:
            grade = skipped("schema_unusable", "no call is of a tool whose schema can be used")
            return replace(grade, counts=total, items=items, reasons=(*grade.reasons, *reasons))
        return Grade(
            score=total["valid"] / checked, counts=total, items=items, reasons=tuple(reasons)
        )

    def _reasons(self, call: ToolCall, tools: Sequence[ToolSpec]) -> list[Reason]:
        """Return why no tool takes a call: of the first that can be checked by."""
        if not tools:
            return [
                Reason(
                    code="unknown_tool",
                    subject=call.name,
                    message="the run had no tool of this name",
                )
            ]
        if self.preset is not None and not tools[-1].parameters:
            return []
        if call.arguments is None:
            text = (call.raw_arguments or "")[:_LONGEST]
            return [Reason(code="undecodable_arguments", subject=call.name, message=text)]
        first: list[Reason] = []
        for tool in tools if self.preset is None else tools[-1:]:
            found = self._violations(call.name, call.arguments, tool)
            if not found:
                return []
            first = found if not first or _kind(first) == "unchecked" else first
        return first

    def _violations(self, name: str, arguments: Mapping[str, JSON], tool: ToolSpec) -> list[Reason]:
        if tool.parameters is None:
            return []
        mapped, strict = self.preset is None, self.strict_integers
        try:
            found = violations(tool.parameters, arguments, strict_integers=strict, mapped=mapped)
        except Unusable as problem:
            code = (
                "schema_unusable" if problem.code == "not_expressible" and mapped else problem.code
            )
            return [Reason(code=code, subject=name, message=str(problem))]
        return [replace(each, subject=name) for each in found]


def _kind(reasons: Sequence[Reason]) -> str:
    return _KINDS.get(reasons[0].code, "violating") if reasons else "valid"


def _mcp_bench(
    total: Mapping[str, int],
    calls: Sequence[ToolCall],
    items: tuple[Item, ...],
    reasons: tuple[Reason, ...],
) -> Grade:
    """Return the grade of MCP-Bench: rates over all calls, and over those of known tools.

    What failed is not known where the recording says of no call how it ended.
    """
    beyond = next(
        (each.code for each in reasons if each.code in {"not_expressible", "schema_too_large"}),
        None,
    )
    if beyond is not None:
        grade = skipped(beyond, "the schema uses an unsupported keyword")
        return replace(grade, counts=total, reasons=(*grade.reasons, *reasons))
    known = total["calls"] - total["unknown_tool"]
    strangers = {each.subject for each in reasons if each.code == "unknown_tool"}
    states = [state_of(call) for call in calls]
    executed = set(states) != {"unknown"}
    failures = sum(
        state != "ok" and call.name not in strangers
        for call, state in zip(calls, states, strict=True)
    )
    compliance = total["valid"] / known if known else 0.0
    parts = {
        "valid_tool_name_rate": known / total["calls"],
        "input_schema_compliance": compliance,
        "execution_success_rate": states.count("ok") / total["calls"] if executed else None,
        "valid_call_failure_rate": (failures / known if known else 0.0) if executed else None,
    }
    return Grade(score=compliance, counts=total, parts=parts, items=items, reasons=reasons)


_SHARE: Final = "valid / (calls - unchecked)"


@attrs.frozen(kw_only=True)
class CallValidity(CallShares):
    """Valid calls over all runs and by tool, and how often each keyword of a schema is violated.

    ``valid_share`` = valid / (calls - unchecked), over calls, not over runs; None where none was
    checked. Its interval and that of each tool leave out one task at a time.
    """

    figures: ClassVar = (
        Figure("valid_share", "Schema-valid calls", about=_SHARE, divisor="checked"),
        Figure(
            "tools.{tool}.valid_share",
            "Schema-valid calls of a tool",
            about=_SHARE,
            divisor="checked",
        ),
    )
    share, above, below, undefined = "valid_share", "valid", "checked", "no call was checked"
    summands = ("valid", "violating", "unknown_tool", "undecodable")

    @override
    def shown(self, counts: Mapping[str, int]) -> dict[str, JSON]:
        own = {
            name: number for name, number in counts.items() if ":" not in name and name != "checked"
        }
        keywords = {
            name.partition(":")[2]: counts[name]
            for name in sorted(counts)
            if name.startswith("violation:")
        }
        return {**own, "violations": keywords}

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        valid = totals["valid"]
        checked = totals["checked"]
        return {"valid_share": ratio(valid, checked)}

"""Expressions that are true of some samples: ``status == "ok" and facet.domain in ["a", "b"]``.

Nothing of an expression is run, and it knows no calls.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from gradestack.errors import ConfigError, suggest
from gradestack.model import Sample

_LONGEST = 4_000
"""Characters of an expression."""
_ORDERS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_WORDS = {"true": True, "false": False, "null": None, "none": None}


class Fields(NamedTuple):
    """The fields of a sample that an expression may name."""

    id: str
    model: str | None = None
    run: int | str | None = None
    cluster: str | None = None
    status: str = "ok"
    ended: str | None = None
    input: Any = None
    file: str | None = None
    facet: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, sample: Sample) -> Fields:
        """Collect the fields of a sample that a filter may name."""
        return cls(
            sample.id,
            sample.model,
            sample.run,
            sample.cluster,
            str(sample.status),
            sample.ended,
            sample.input,
            sample.source.file if sample.source else None,
            sample.facets,
        )


_NAMES = [name for name in Fields._fields if name != "facet"]
Value = Callable[[Fields], Any]


class Expression(msgspec.Struct, frozen=True):
    """A filter, ready to be asked."""

    holds: Value
    facets: frozenset[str]
    """Names of the facets it looks at."""


@lru_cache(64)
def parse_expression(text: str) -> Expression:
    """Parse an expression.

    Raises:
        ConfigError: It is none, is nested too deeply, or too long.
    """
    if len(text) > _LONGEST:
        limit = f"longer than {_LONGEST:,} characters"
        raise ConfigError(f"filter: {limit}; list the ids in a file (tasks)")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        compiler = _Compiler(text)
        return Expression(compiler.compile(tree.body), frozenset(compiler.facets))
    except (SyntaxError, ValueError) as error:
        hint = "; use and, or, not, ==, !=, <, <=, >, >=, in" if set("&|=!") & set(text) else ""
        offset = getattr(error, "offset", None)
        where = f" at character {offset}" if offset else ""
        raise ConfigError(f"filter {text!r}: cannot be read{where}{hint}") from error
    except (RecursionError, MemoryError) as error:
        raise ConfigError(f"filter: nested too deeply: {text[:60]!r}") from error


class _Compiler:
    """Makes functions of the parts of an expression.

    Attributes:
        facets: Names of the facets it looks at.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.facets: set[str] = set()

    def compile(self, node: ast.expr) -> Value:
        """Return the function that computes a part of the expression."""
        match node:
            case ast.Constant(value=str() | int() | float() | None as constant):
                return lambda _: constant
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return lambda _: -number
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self.compile(operand)
                return lambda fields: not value(fields)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                members = [self.compile(part) for part in parts]
                return lambda fields: [member(fields) for member in members]
            case ast.BoolOp(op=joint, values=parts):
                members = [self.compile(part) for part in parts]
                quantifier = all if isinstance(joint, ast.And) else any
                return lambda fields: quantifier(member(fields) for member in members)
            case ast.Compare():
                return self._compile_comparison(node)
            case ast.Name(id=name):
                return self._compile_name(name)
            case (
                ast.Attribute(value=ast.Name(id="facet"), attr=name)
                | ast.Subscript(value=ast.Name(id="facet"), slice=ast.Constant(value=str() as name))
            ):
                self.facets.add(name)
                return lambda fields: (fields.facet or {}).get(name)
        part = ast.get_source_segment(self._text.strip(), node) or type(node).__name__
        what = "is no part of a filter, which compares fields with texts and numbers"
        raise self._refusal(f"{part!r} {what}")

    def _refusal(self, problem: str) -> ConfigError:
        return ConfigError(f"filter {self._text!r}: {problem}")

    def _compile_name(self, name: str) -> Value:
        if name in _WORDS:
            return lambda _: _WORDS[name]
        if name in _NAMES:
            return operator.attrgetter(name)
        near = suggest(name, [*Fields._fields, *_WORDS])
        known = f"fields are {', '.join(_NAMES)} and facet.NAME; put texts in quotes"
        raise self._refusal(f"no field is called {name!r}{near}; {known}")

    def _compile_comparison(self, node: ast.Compare) -> Value:
        """Compile a chain of comparisons, such as ``1 < x <= 5``, into a function of the fields."""
        values = [self.compile(part) for part in (node.left, *node.comparators)]
        for comparison, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(comparison, ast.In | ast.NotIn) and _is_single(right):
                shown = ast.unparse(right)
                raise ConfigError(f"filter: 'in' looks in a text or a list, got {shown}")
        steps = [*zip(values, node.ops, values[1:], strict=False)]
        return lambda fields: all(
            _compare(comparison, left(fields), right(fields)) for left, comparison, right in steps
        )


def _is_single(node: ast.expr) -> bool:
    """Check whether an expression is a number, true, false or null, which holds nothing."""
    match node:
        case ast.Constant(value=value):
            return not isinstance(value, str)
        case ast.Name(id=name):
            return name in _WORDS
    return isinstance(node, ast.UnaryOp)


def _compare(comparison: ast.cmpop, left: Any, right: Any) -> bool:
    """Apply a comparison operator of a filter, such as ``==`` or ``in``, to two values.

    A number equals a text of the same digits, because ids may be either. Two values that have no
    order are neither less nor greater.
    """
    match comparison:
        case ast.Eq() | ast.Is():
            return _same(left, right)
        case ast.NotEq() | ast.IsNot():
            return not _same(left, right)
        case ast.In():
            return _is_in(left, right)
        case ast.NotIn():
            return not _is_in(left, right)
    for types in (str, int | float):
        if isinstance(left, types) and isinstance(right, types):
            return _ORDERS[type(comparison)](left, right)
    return False


def _is_in(part: Any, values: Any) -> bool:
    if isinstance(values, str):
        return isinstance(part, str) and part in values
    return isinstance(values, list | tuple) and any(_same(part, value) for value in values)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) != isinstance(right, str):
        return str(left) == str(right)
    return bool(left == right)

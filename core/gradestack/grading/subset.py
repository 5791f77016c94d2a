"""Part of a run's samples: those an expression is true of, of some tasks, the first ones."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gradestack.errors import ConfigError, suggest
from gradestack.model import Sample
from gradestack.output import counted
from gradestack.regular_files import read_text

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_WORDS = {"true": True, "false": False, "null": None, "none": None}


class Fields(NamedTuple):
    """What an expression may name of a sample."""

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
        """Return those of a sample."""
        recorded = (
            sample.id,
            sample.model,
            sample.run,
            sample.cluster,
            str(sample.status),
            sample.ended,
            sample.input,
        )
        return cls(*recorded, sample.source.file if sample.source else None, sample.facets)


Value = Callable[[Fields], Any]


class Expression(NamedTuple):
    """A filter, ready to be asked."""

    holds: Value
    facets: frozenset[str]
    """Names of the facets it looks at."""


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples count; by default all do."""

    filter: str = ""
    tasks: tuple[str, ...] | None = None
    limit: int = 0
    """The first tasks of those that are left; 0: all."""
    tags: str = ""

    def __bool__(self) -> bool:
        return bool(self.filter or self.limit) or self.tasks is not None

    def __str__(self) -> str:
        said = [f"filter {self.filter}"] if self.filter else []
        said += [] if self.tasks is None else [f"tasks of a list of {len(self.tasks):,}"]
        said += [self.tags] if self.tags else []
        said += [f"the first {counted(self.limit, 'task')}"] if self.limit else []
        return ", ".join(said)

    @classmethod
    # as it is called
    def read(cls, filter: str | None, tasks: str | Path | None, limit: int | None) -> Subset:  # noqa: A002
        """Return the subset that callers ask for."""
        if limit is not None and limit < 1:
            raise ConfigError(f"limit: expected at least 1 task, got {limit}")
        if filter is not None:
            expression(filter)
        listed = None if tasks is None else tasks_of(Path(tasks))
        return cls(filter=filter or "", tasks=listed, limit=limit or 0)

    def admits(self, fields: Fields) -> bool:
        """Return whether a sample is of the tasks, and the expression true of it."""
        if self.tasks is not None and fields.id not in _set(self.tasks):
            return False
        return not self.filter or bool(expression(self.filter).holds(fields))


_set = lru_cache(8)(frozenset[str])


def left_out_text(subset: Subset, taken: int, left_out: int) -> str:
    """Return how many samples are left out, and why, in one sentence."""
    return f"{left_out:,} of {taken + left_out:,} samples are left out: {subset}"


def subset_entry(subset: Subset, taken: int, left_out: int) -> dict[str, Any]:
    """Return the same for a run's header and summary."""
    said = {
        "filter": subset.filter,
        "tasks": len(subset.tasks or ()),
        "limit": subset.limit,
        "tags": subset.tags,
    }
    return {
        **{name: each for name, each in said.items() if each},
        "taken": taken,
        "left_out": left_out,
    }


def not_found(subset: Subset, known: Iterable[str], ids: Iterable[str]) -> list[str]:
    """Return which tasks of a list, and which facets of a filter, no sample has, in sentences."""
    known_ids = {*ids} if subset.tasks is not None and not subset.filter else set()
    tasks = [] if subset.tasks is None or subset.filter else [*dict.fromkeys(subset.tasks)]
    if absent := [task for task in tasks if task not in known_ids]:
        # not the id: the list may be any file that a suite names
        many = f"{len(absent):,} of {counted(len(tasks), 'listed task')}"
        number = tasks.index(absent[0]) + 1
        return [f"{many} without a sample, the first: number {number:,} of the list"]
    facets = expression(subset.filter).facets if subset.filter else ()
    there = sorted(known)
    named = f"; there are: {', '.join(there[:20])}" if there else "; there are no facets"
    return [
        f"no sample has the facet {each!r}{suggest(each, there) or named}"
        for each in facets
        if each not in there
    ]


def tasks_of(path: Path) -> tuple[str, ...]:
    """Return the ids of a file: one a line, but blank lines and those that begin with ``#``."""
    try:
        text = read_text(path)
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"{path}: the list of tasks cannot be read: {why}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: the list of tasks cannot be read: it is no UTF-8 text"
        ) from error
    lines = [line.strip() for line in text.splitlines()]
    if not (found := [line for line in lines if line and not line.startswith("#")]):
        raise ConfigError(f"{path}: expected ids of tasks, one a line")
    return tuple(dict.fromkeys(found))


@lru_cache(64)
def expression(text: str) -> Expression:
    """Return what an expression says; nothing of it is run, and it knows no calls."""
    try:
        if len(text) > 4_000:
            raise ConfigError(
                "filter: longer than 4,000 characters; list the ids in a file (tasks)"
            )
        facets = set[str]()
        return Expression(
            _value(ast.parse(text.strip(), mode="eval").body, text, facets), frozenset(facets)
        )
    except (SyntaxError, ValueError) as error:
        hint = "; use and, or, not, ==, !=, <, <=, >, >=, in" if set("&|=!") & set(text) else ""
        at = (
            f" at character {error.offset}"
            if isinstance(error, SyntaxError) and error.offset
            else ""
        )
        raise ConfigError(f"filter {text!r}: cannot be read{at}{hint}") from error
    except (RecursionError, MemoryError) as error:
        raise ConfigError(f"filter: nested too deeply: {text[:60]!r}") from error


def _value(node: ast.expr, text: str, facets: set[str]) -> Value:  # noqa: C901
    def inner(each: ast.expr) -> Value:
        return _value(each, text, facets)

    match node:
        case ast.Constant(value=str() | int() | float() | None as constant):
            return lambda _: constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return lambda _: -number
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            values = [inner(each) for each in parts]
            return lambda of: [value(of) for value in values]
        case ast.BoolOp(op=joint, values=parts):
            values, quantor = (
                [inner(each) for each in parts],
                all if isinstance(joint, ast.And) else any,
            )
            return lambda of: quantor(value(of) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = inner(operand)
            return lambda of: not value(of)
        case ast.Compare():
            return _comparison(node, inner)
        case ast.Name(id=name) if name in _WORDS:
            return lambda _: _WORDS[name]
        case ast.Name(id=name) if name in Fields._fields and name != "facet":
            return operator.attrgetter(name)
        case (
            ast.Attribute(value=ast.Name(id="facet"), attr=name)
            | ast.Subscript(value=ast.Name(id="facet"), slice=ast.Constant(value=str() as name))
        ):
            facets.add(name)
            return lambda of: (of.facet or {}).get(name)
    if isinstance(node, ast.Name):
        near = suggest(node.id, [*Fields._fields, *_WORDS])
        known = f"fields are {', '.join(Fields._fields[:-1])} and facet.NAME; texts stand in quotes"
        raise ConfigError(f"filter {text!r}: no field is called {node.id!r}{near}; {known}")
    said = ast.get_source_segment(text.strip(), node) or type(node).__name__
    raise ConfigError(
        f"filter {text!r}: {said!r} is no part of a filter, which compares fields with texts and "
        "numbers"
    )


def _comparison(node: ast.Compare, inner: Callable[[ast.expr], Value]) -> Value:
    values = [inner(each) for each in (node.left, *node.comparators)]
    for kind, right in zip(node.ops, node.comparators, strict=True):
        single = isinstance(right, ast.UnaryOp) or not isinstance(
            getattr(right, "value", ""), str | ast.expr
        )
        if isinstance(kind, ast.In | ast.NotIn) and (single or getattr(right, "id", "") in _WORDS):
            raise ConfigError(f"filter: 'in' looks in a text or a list, got {ast.unparse(right)}")
    steps = [*zip(values, node.ops, values[1:], strict=False)]
    return lambda of: all(_holds(kind, left(of), right(of)) for left, kind, right in steps)


def _holds(kind: ast.cmpop, left: Any, right: Any) -> bool:
    """Return whether two values compare so.

    Numbers and texts of the same digits are equal, as ids are.
    """
    match kind:
        case ast.Eq() | ast.Is():
            return _same(left, right)
        case ast.NotEq() | ast.IsNot():
            return not _same(left, right)
        case ast.In() | ast.NotIn():
            if isinstance(right, str):
                found = isinstance(left, str) and left in right
            else:
                found = isinstance(right, list | tuple) and any(_same(left, each) for each in right)
            return found is isinstance(kind, ast.In)
    alike = isinstance(left, str) and isinstance(right, str)
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    return (alike or numbers) and _COMPARED[type(kind)](left, right)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right) or (
        isinstance(left, str) != isinstance(right, str) and str(left) == str(right)
    )

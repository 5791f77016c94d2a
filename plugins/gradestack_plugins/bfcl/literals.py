"""Calls written as text, ``f(a=1, b='x')``: parsed as Python, values taken as literals only, never evaluated."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
    """Return the calls of a text, one or a list of them; None where it is something else.

    Args:
        text: The text; a code fence around it and missing brackets do not matter.
        parameters: Names of each function's parameters in order, for arguments given without a name.
    """
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
            literal = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None
        plain = _plain(literal)
        if plain is _ODD:
            return None
        found[key] = plain
    return found


_ODD = object()


def _plain(value: Any) -> Any:
    """Return a literal as JSON has it: tuples are lists; sets, bytes, complex numbers and odd keys are none of it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        items = [_plain(each) for each in value]
        return _ODD if any(each is _ODD for each in items) else items
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        entries = {key: _plain(each) for key, each in value.items()}
        return _ODD if any(each is _ODD for each in entries.values()) else entries
    return _ODD

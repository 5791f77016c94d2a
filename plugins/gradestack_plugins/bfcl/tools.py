"""Tools of a question, with BFCL's type words put into JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradestack import ToolSpec
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.readers.chat import schema_of

TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "array",
    "object": "object",
    "null": "null",
}
"""BFCL's word -> that of JSON Schema; a word that is not here (``any``) says nothing about the value."""
_INNER = ("items", "additionalProperties")
_NESTED = ("properties",)
_DEEPEST = 64


def tools_of(functions: Any, *, texts: bool) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a question; None where it names none.

    Args:
        functions: The question's ``function``.
        texts: Every argument is a text: Java and JavaScript values are handed over as source.
    """
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
                    schema = {
                        **schema,
                        "properties": {k: _as_text(v) for k, v in as_map(schema.get("properties")).items()},
                    }
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
        for key in _INNER:
            if isinstance(found.get(key), dict):
                found[key] = json_schema(found[key], depth + 1)
        for key in _NESTED:
            if isinstance(found.get(key), dict):
                found[key] = {name: json_schema(each, depth + 1) for name, each in found[key].items()}
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

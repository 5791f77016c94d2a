"""Tools whose parameters are a list, DeepFabric's own form, as JSON Schema."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradestack import JSON
from gradestack.jsonio import JsonProblem, loads

_JSON_WORDS: Final = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}


def list_schema(parameters: Sequence[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a list of ``{"name", "type", "description", "required", "default"}``.

    Types map word by word (``str`` or ``string`` to ``string``); a type outside the six words (``Any``, ``list[str]``)
    is left undeclared. A parameter is required unless it says otherwise. A default is kept for parameters that are not
    required, converted to the type, and left out where it is empty or does not convert. Entries without a name are
    left out.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters:
        name = parameter.get("name") if isinstance(parameter, Mapping) else None
        if not isinstance(name, str):
            continue
        given, description = parameter.get("type"), parameter.get("description")
        word = _JSON_WORDS.get(given, given) if isinstance(given, str) else None
        word = word if word in _JSON_WORDS.values() else None
        declared = {"type": word} if word else {}
        properties[name] = {**declared, "description": description if isinstance(description, str) else ""}
        default = parameter.get("default")
        if parameter.get("required", True):
            required.append(name)
        elif isinstance(default, str) and default:
            converts, value = _default(word or "string", default)
            if converts:
                properties[name]["default"] = value
    return {"type": "object", "properties": properties, "required": required}


def _default(word: str, text: str) -> tuple[bool, JSON]:
    """Return (True, the default as a value of its type), or (False, None) when the text does not convert."""
    try:
        if word == "integer":
            return True, int(text)
        if word == "number":
            return True, float(text)
    except ValueError:
        return False, None
    if word == "boolean":
        return True, text.lower() in {"true", "1", "yes"}
    if word in {"array", "object"}:
        return (True, None) if text.lower() == "none" else _literal(text)
    return True, text


def _literal(text: str) -> tuple[bool, JSON]:
    try:
        return True, loads(text)
    except JsonProblem:
        pass
    try:
        with warnings.catch_warnings(action="ignore"):  # escapes the text has no right to
            value = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False, None
    return True, value

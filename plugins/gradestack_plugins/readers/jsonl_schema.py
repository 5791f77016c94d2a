"""JSON Schema of one line of the ``jsonl`` form."""

from __future__ import annotations

from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"
FORM_VERSION = 1
"""Version of the form; raised when a file of the old one would be read differently."""

_CALL: dict[str, Any] = {
    "description": "A call, flat or in OpenAI's form; arguments are an object or JSON text.",
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "id": {"type": ["string", "null"]},
                "name": {"type": "string"},
                "arguments": {"type": ["object", "string", "null"]},
            },
            "required": ["name"],
        },
        {
            "type": "object",
            "properties": {
                "id": {"type": ["string", "null"]},
                "type": {"const": "function"},
                "function": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "arguments": {"type": ["object", "string", "null"]},
                    },
                    "required": ["name"],
                },
            },
            "required": ["function"],
        },
    ],
}
_CALLS: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/call"}}


def _side(what: str) -> dict[str, Any]:
    return {
        "description": f"{what}: a list of calls (empty: calling nothing), a text (label and answer), or an object.",
        "anyOf": [
            {"type": "null"},
            {"type": "string"},
            _CALLS,
            {"$ref": "#/$defs/call"},
            {
                "type": "object",
                "properties": {
                    "calls": {"anyOf": [_CALLS, {"type": "null"}]},
                    "label": {"type": ["string", "null"]},
                    "text": {
                        "anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}],
                    },
                    "plan": {},
                },
                "additionalProperties": False,
            },
        ],
    }


_MESSAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "role": {"type": "string"},
        "content": {},
        "tool_calls": {"type": ["array", "null"]},
        "tool_call_id": {"type": ["string", "null"]},
        "name": {"type": ["string", "null"]},
    },
}

SAMPLE_SCHEMA: dict[str, Any] = {
    "$schema": DRAFT,
    "title": "gradestack sample",
    "description": "One recorded run of one task; one such object per line.",
    "type": "object",
    "properties": {
        "version": {"const": FORM_VERSION, "description": "Version of this form; optional."},
        "id": {"type": ["string", "integer"], "description": "Names the task; its runs share it."},
        "expected": _side("The reference"),
        "predicted": _side("What the agent did"),
        "model": {"type": ["string", "null"]},
        "run": {"type": ["integer", "string", "null"], "description": "Trial of the same task."},
        "input": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}]},
        "messages": {
            "type": ["array", "null"],
            "items": _MESSAGE,
            "description": "The conversation, as chat messages.",
        },
        "turns": {
            "type": ["array", "null"],
            "items": {"type": "array", "items": _MESSAGE},
            "description": "The conversation by turns, instead of messages.",
        },
        "tools": {
            "type": ["array", "null"],
            "description": "Tools the agent had, in OpenAI's form or {name, parameters}; parameters may be a list.",
        },
        "recorded": {"type": ["object", "null"], "description": "Scores already known, by name."},
        "error": {"type": ["string", "object", "null"], "description": "Why the run itself failed."},
        "agent_id": {"type": ["string", "null"]},
        "usage": {},
        "facets": {"type": ["object", "null"], "description": "Metadata to group by."},
    },
    "required": ["id"],
    "additionalProperties": False,
    "$defs": {"call": _CALL},
}

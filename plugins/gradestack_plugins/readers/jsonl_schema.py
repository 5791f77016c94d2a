"""JSON Schema of one line of the ``jsonl`` form."""

from __future__ import annotations

from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"
VERSIONS = (1, 2)
"""Versions of the form. What has no version is of the first, with all that the second added. Some things differ: null
arguments of an expected call are none in the first, and not compared in the second; details of calls made that are of
another kind than the form's, and unknown keys of expected calls, are left out in the first, and refused in the second;
arguments of an expected call that are neither an object nor text cannot be decoded in the first, and are refused in
the second."""

_TEXT_OR_NULL = {"type": ["string", "null"]}
_COUNT = {"type": ["integer", "null"], "minimum": 0}
_ARGUMENTS = {"type": ["object", "string", "null"]}
_FUNCTION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": _TEXT_OR_NULL,
        "type": {"const": "function"},
        "function": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": _ARGUMENTS},
            "required": ["name"],
        },
    },
    "required": ["function"],
}
_MADE: dict[str, Any] = {
    "description": "A call, flat or in OpenAI's form; arguments are an object or JSON text.",
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "id": _TEXT_OR_NULL,
                "name": {"type": "string"},
                "arguments": _ARGUMENTS,
                "requestor": {"type": ["string", "null"], "description": "Who made it; assistant when absent."},
                "result": {"description": "What it returned."},
                "error": {"type": ["string", "null"], "description": "What went wrong with it."},
                "error_type": _TEXT_OR_NULL,
                "turn": {**_COUNT, "description": "User turn it belongs to, from 0."},
                "step": {**_COUNT, "description": "The model's answer it came from, from 0; parallel calls share it."},
                "author": {"type": ["string", "null"], "description": "Agent that made it."},
                "server": {"type": ["string", "null"], "description": "MCP server that offers the tool."},
                "kind": {"enum": ["function", "builtin", "mcp", "custom", None]},
                "status": {"enum": ["ok", "error", "denied", "not_run", None], "description": "How it ended."},
                "started": {"type": ["string", "null"], "description": "ISO 8601."},
                "seconds": {"type": ["number", "null"]},
            },
            "required": ["name"],
        },
        _FUNCTION,
    ],
}
_RULE: dict[str, Any] = {
    "description": "What one argument may be, where it is not simply equal to one value.",
    "type": "object",
    "properties": {
        "any_of": {"type": "array", "description": "Values of which one must be met, as compare says."},
        "optional": {"type": "boolean", "description": "The argument may be left out."},
        "ignore": {"type": "boolean", "description": "Any value will do."},
        "compare": {"enum": ["exact", "text", "number", "set", "schema", "regex"]},
        "tolerance": {"type": ["number", "null"], "description": "Of numbers."},
    },
    "additionalProperties": False,
}
_SAID: dict[str, Any] = {
    "rules": {"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/rule"}},
    "optional": {"type": ["boolean", "null"], "description": "It may be left out without loss."},
    "turn": {**_COUNT, "description": "User turn it is due in, from 0."},
    "group": {"type": ["integer", "null"], "description": "Calls of one group come in any order."},
    "requestor": _TEXT_OR_NULL,
}
_UNREAD: dict[str, Any] = {
    each: {"description": "Of a call that was made; nothing is expected of it."}
    for each in (
        *("id", "type", "index", "result", "error", "error_type", "step", "author", "server", "kind", "status"),
        *("started", "seconds"),
    )
}
_EXPECTED: dict[str, Any] = {
    "description": "An expected call, flat or in OpenAI's form; arguments are an object or JSON text.",
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "names": {
                    "type": ["array", "null"],
                    "items": {"type": "string"},
                    "description": "Tools of which any will do, in place of name.",
                },
                "arguments": {**_ARGUMENTS, "description": "null: in version 1 none, in version 2 not compared."},
                "kwargs": {**_ARGUMENTS, "description": "Another word for arguments."},
                "function": {"type": "null"},
                **_SAID,
                **_UNREAD,
            },
            "anyOf": [
                {"required": ["name"]},
                {"required": ["names"], "properties": {"names": {"type": "array", "minItems": 1}}},
            ],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "function": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "arguments": _ARGUMENTS, "kwargs": _ARGUMENTS},
                    "required": ["name"],
                    "additionalProperties": False,
                },
                **_SAID,
                **_UNREAD,
            },
            "required": ["function"],
            "additionalProperties": False,
        },
    ],
}


def _calls(form: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{form}"}}


def _side(what: str, form: str, **more: Any) -> dict[str, Any]:
    return {
        "description": f"{what}: a list of calls (empty: calling nothing), a text (label and answer), or an object.",
        "anyOf": [
            {"type": "null"},
            {"type": "string"},
            _calls(form),
            {"$ref": f"#/$defs/{form}"},
            {
                "type": "object",
                "properties": {
                    "calls": {"anyOf": [_calls(form), {"type": "null"}]},
                    "label": {"type": ["string", "null"]},
                    "text": {
                        "anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}],
                    },
                    "plan": {},
                    **more,
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
        "reasoning": {"type": ["string", "null"], "description": "Or reasoning_content."},
    },
}
_AMOUNT = {"type": ["number", "null"], "minimum": 0}
_USAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "requests": _COUNT,
        "input_tokens": {**_COUNT, "description": "All of them, cached ones too."},
        "cached_input_tokens": _COUNT,
        "cache_write_tokens": _COUNT,
        "output_tokens": {**_COUNT, "description": "All of them, reasoning too."},
        "reasoning_tokens": _COUNT,
        "cost_usd": _AMOUNT,
        "seconds": _AMOUNT,
        "first_token_seconds": _AMOUNT,
    },
    "additionalProperties": False,
}

SAMPLE_SCHEMA: dict[str, Any] = {
    "$schema": DRAFT,
    "title": "gradestack sample",
    "description": "One recorded run of one task; one such object per line.",
    "type": "object",
    "properties": {
        "version": {"enum": list(VERSIONS), "description": "Version of this form; 1 when absent."},
        "id": {"type": ["string", "integer"], "description": "Names the task; its runs share it."},
        "expected": _side(
            "The reference",
            "expected",
            alternatives={
                "type": ["array", "null"],
                "items": _calls("expected"),
                "description": "Other lists of calls that would be right too.",
            },
            forbidden={
                "type": ["array", "null"],
                "items": {"type": "string"},
                "description": "Patterns of tools that must not be called.",
            },
            state={"description": "The state a run should end in."},
        ),
        "predicted": _side("What the agent did", "made"),
        "cluster": {
            "type": ["string", "null"],
            "description": "What samples cut from one recording share; the id when absent.",
        },
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
        "state": {"description": "The state the run ended in."},
        "ended": {"type": ["string", "null"], "description": "completed, error, limit:WHICH or cancelled."},
        "trace": {
            "type": ["object", "null"],
            "additionalProperties": {"type": "string"},
            "description": "trace_id, span_id, session_id.",
        },
        "children": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": "Ids of the samples of its sub-agents.",
        },
        "usage": {
            "description": "What the run took, in these keys; anything else is kept as it is.",
            "anyOf": [{"$ref": "#/$defs/usage"}, {}],
        },
        "facets": {"type": ["object", "null"], "description": "Metadata to group by."},
    },
    "required": ["id"],
    "additionalProperties": False,
    "$defs": {"made": _MADE, "expected": _EXPECTED, "rule": _RULE, "usage": _USAGE},
}

"""Calls in the texts of models, in the forms that the handlers of BFCL decode."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradestack import compile_later
from gradestack_plugins.bfcl.side_files import WrittenCall, parse_calls
from gradestack_plugins.readers.chat.calls import call_of, calls_in_text, with_names
from gradestack_plugins.readers.chat.unread import unread_tags

_THOUGHT: Final = compile_later(r".*</think>", re.DOTALL)
_CALL_MARK: Final = compile_later(
    r"</?(?:tool_?calls?|function_?calls?)>|<\|/?(?:tool_?calls?(?:_start|_end)?|python_tag)\|>"
    r"|\[/?TOOL_CALLS\]|\bfunctools(?=\s*\[)|^\s*(?:Call|Action):(?=\s*[\w.]+\s*\()",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks in front of calls and behind them."""
_END_MARK: Final = compile_later(
    r"<bot_end>.*|<\|(?:eo[mt]_id|im_end|end(?:_?of_?text)?)\|>|</s>", re.DOTALL
)
_DECODER: Final = json.JSONDecoder()
Entry = WrittenCall | dict[str, Any]
"""A call as it is written in Python, or an object of a call."""


def calls_of_text(text: str, parameters: Mapping[str, Sequence[str]]) -> list[Entry] | None:
    """Return the calls of a text; None of one that holds none in a form that is known.

    Args:
        text: What the model answered.
        parameters: Names of the parameters of each tool, in order.
    """
    inner = _END_MARK.sub("", _THOUGHT.sub("", text)).strip()
    calls_of_whole = _decoded(inner, parameters)
    if calls_of_whole is not None or not _CALL_MARK.search(inner):
        return calls_of_whole
    parts = [part.strip() for part in _CALL_MARK.split(inner)]
    decoded = [_decoded(part, parameters) for part in parts if part]
    calls = [part for part in decoded if part is not None]
    if calls:
        return [call for part in calls for call in part]
    return None


def _decoded(text: str, parameters: Mapping[str, Sequence[str]]) -> list[Entry] | None:
    """Return the calls that a text is: Python calls, JSON, or a tool's name above its arguments."""
    written = None
    if "(" in text:
        written = parse_calls(text, parameters)
    if written is not None:
        return list(written)
    entries = calls_in_text(text)
    if entries is not None:
        have_names = all(call_of(entry)[0].get("name") for entry in entries)
        return list(entries) if have_names else None
    keyed = with_names(text)
    if isinstance(keyed, list) and {call["name"] for call in keyed} <= parameters.keys():
        return list(keyed)
    name, _, rest = text.partition("\n")
    if name.strip() in parameters:
        arguments = _documents(rest)
    else:
        arguments = []
    if len(arguments) == 1 and isinstance(arguments[0], dict):
        return [{name.strip(): arguments[0]}]
    documents = _documents(text)
    are_calls = bool(documents) and all(map(_is_call, documents))
    return documents if are_calls else None


def _is_call(document: Any) -> bool:
    return isinstance(document, dict) and call_of(document)[0] is not document


def _documents(text: str) -> list[Any]:
    """Split a text into the JSON documents that follow each other; an empty list for other text."""
    position = 0
    documents = []
    while position < len(text):
        try:
            document, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        documents.append(document)
        while position < len(text) and text[position] in " \t\r\n;,":
            position += 1
    return documents


def is_not_decoded(text: str, parameters: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a text in which no call was found holds one in a form that is not known.

    It has a mark of calls, is a list of what looks like calls, or has the name of a tool of its
    question before a bracket or beside an object.
    """
    inner = _THOUGHT.sub("", text).strip().strip("`").strip()
    match = _CALL_MARK.search(inner)
    if match or any(unread_tags(inner)):
        return True
    if inner.startswith("[") and inner.endswith("]") and "(" in inner:
        return True
    quoted = [f"{mark}{name}{mark}" for name in parameters for mark in ("'", '"')]
    is_object_of_call = "{" in inner and any(name in inner for name in quoted)
    return is_object_of_call or any(f"{name}(" in inner for name in parameters)

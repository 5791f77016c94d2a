"""Calls in a form that nobody decodes.

A run that holds one has unknown calls (None), never none. The rule looks at messages of the
assistant alone, never into arguments, results, schemas or metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from gradestack import Grade, Sample, compile_later, skipped
from gradestack.jsonio import JsonProblem, as_list, loads
from gradestack_plugins.readers.chat import OBJECT
from gradestack_plugins.readers.chat.libraries import TOOL_TAGS, texts_of

NOT_READ: Final = "calls not read: "
"""The beginning of remarks on parts, keys and tags with calls that nobody has decoded."""
HELP: Final = (
    "this form of calls is not decoded; write them as `gradestack schema sample` prints, "
    "or name the column that holds them: --map calls=COLUMN"
)
"""Advice for runs whose calls were not read."""

_CALLED: Final = r"(?:server_?tool|mcp_?tool|tool|function|func|fn|mcp|plugin)"
_CALL: Final = rf"{_CALLED}_?(?:call|use|invocation|request)s?"
_CALL_WORDS: Final = compile_later(rf"(?:.*_)?{_CALL}(?:_.*)?")
_DEED_WORDS: Final = compile_later(
    r"(?:.*_)?(?:invocations?|invoked?|actions?|commands?|execute|calls?)"
)
"""Types that may be calls: with a name or structure in their part beside its text."""
_CALL_TAG: Final = compile_later(rf"(?:.*_)?(?:{_CALL}|(?:use|call|invoke)_(?:mcp_)?tool)")
_NAME_WORDS: Final = compile_later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NO_CALL_WORDS: Final = frozenset(
    """
    result results output outputs response responses return returns observation observations
    execution executions error errors list lists listed listing definition definitions schema
    schemas reasoning thinking thought thoughts summary summaries refusal citation citations
    annotation annotations audio usage stats statistics count counts metadata meta id ids choice
    config configs approval token tokens
    """.split()  # noqa: SIM905
)
"""Words in a type or a key of anything but a call: results, thoughts, lists of tools, counts."""
_NO_CALL_TYPES: Final = frozenset(
    """
    text input_text output_text refusal image image_url input_image audio input_audio output_audio
    video file input_file document resource source source-url source-document thinking
    redacted_thinking reasoning reasoning_text summary_text citation citations url_citation
    file_citation mcp_list_tools mcp_tool_listing mcp_approval_request mcp_approval_response
    step-start step_start container_upload search_result connector_text item_reference
    attachment
    """.split()  # noqa: SIM905
)
"""Types of parts and items that are no calls, whatever else they hold."""
_NO_CALL_KEYS: Final = frozenset(
    """
    content parts contents role name usage metadata meta tools functions extra raw raw_data
    raw_response response_metadata provider_specific_fields provider_metadata logprobs annotations
    citations audio refusal reasoning reasoning_content reasoning_details thinking expected
    reference attachments messages history agent model
    """.split()  # noqa: SIM905
)
"""Keys of a message under which a name beside arguments is no call."""
_KINDS: Final = ("type", "kind", "part_kind", "part_type")
_NAMES: Final = compile_later(
    r"name|call|(?:tool|function|func|fn|method|action|command|operation|plugin|skill)(?:_name)?"
)
"""Keys, in snake case, under which a text is the name of what is called."""
_IDENTIFIERS: Final = ("toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "call_id")
_ARGUMENTS: Final = compile_later(
    r"(?:(?:tool|function|func|fn|action|command|call)_)?"
    r"(?:arguments|args|inputs?|input_parameters|parameters|params|kwargs)"
)
"""Keys, in snake case, of fields like arguments."""
_OUTCOMES: Final = frozenset({"output", "result", "results", "response", "content"})
_SCHEMA_KEYS: Final = frozenset({"properties", "$schema", "required", "additionalProperties"})
_SHOWN_NAME: Final = compile_later(r"[A-Za-z_][\w.:-]{0,47}")
_NOTHING: Final[tuple[Any, ...]] = (None, "", {}, [])
"""Entries of a list that hold nothing."""

_FENCED: Final = compile_later(r"(`{3,}|~{3,}).*?(?:\1|\Z)|`[^`\n]*`", re.DOTALL)
_TAG: Final = compile_later(r"<([A-Za-z_][\w.:-]{0,63})((?:=|\s)[^<>]{0,500})?>")
_NAMED_TAGS: Final = frozenset({"invoke", "function", "tool", "call"})
"""Tags that are calls where they name a tool: ``<invoke name="f">``, ``<function=f>``."""


@lru_cache(maxsize=4096)
def _words_of(name: str) -> str:
    """Return a name in snake case, however it is spelled."""
    return "_".join(_NAME_WORDS.findall(name)).lower()


@lru_cache(maxsize=4096)
def names_a_call(name: str) -> bool:
    """Return whether a type or a key names calls of tools, in any spelling."""
    words = _words_of(name)
    return bool(_CALL_WORDS.fullmatch(words)) and _NO_CALL_WORDS.isdisjoint(words.split("_"))


@lru_cache(maxsize=4096)
def _is_no_call(kind: str) -> bool:
    """Return whether a type is in the closed list of types that are no calls."""
    words = _words_of(kind).split("_")
    is_listed = kind in _NO_CALL_TYPES or not _NO_CALL_WORDS.isdisjoint(words)
    return is_listed or kind.startswith("data-")


def _described(noun: str, name: Any) -> str:
    """Return a description of a part, key or tag, with its name where that is one."""
    is_name = isinstance(name, str) and _SHOWN_NAME.fullmatch(name)
    return f"{noun} `{name}`" if is_name else noun


def _is_filled(value: Any) -> bool:
    """Return whether a value is an object, a list or the JSON text of one, with something in it."""
    if isinstance(value, str):
        if not value.lstrip().startswith(("{", "[")):
            return False
        try:
            value = loads(value)
        except JsonProblem:
            return False
    if isinstance(value, list):
        return any(entry not in _NOTHING for entry in value)
    return isinstance(value, OBJECT) and bool(value)


def _is_schema(value: Any) -> bool:
    """Return whether a value is the schema of arguments."""
    return isinstance(value, Mapping) and not _SCHEMA_KEYS.isdisjoint(value)


def _is_argument_key(key: Any) -> bool:
    """Return whether a key is like arguments."""
    return isinstance(key, str) and bool(_ARGUMENTS.fullmatch(_words_of(key)))


def _has_arguments(part: Mapping[str, Any]) -> bool:
    """Return whether an object has a field like arguments, which is no schema."""
    return any(
        value is not None and not _is_schema(value)
        for key, value in part.items()
        if _is_argument_key(key)
    )


def _has_name(part: Mapping[str, Any]) -> bool:
    """Return whether an object names what is called, or has the id of a call."""
    texts = [key for key, value in part.items() if isinstance(value, str) and value]
    return any(key in _IDENTIFIERS or _NAMES.fullmatch(_words_of(key)) for key in texts)


def _is_named_call(part: Mapping[str, Any]) -> bool:
    """Return whether an object has a name, or the id of a call, beside a field like arguments."""
    return _has_arguments(part) and _has_name(part)


def _structures(part: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each object below a key of a part, with the key, except below keys of no calls."""
    for key, value in part.items():
        if not isinstance(key, str) or key in _NO_CALL_KEYS or _is_no_call(key):
            continue
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if isinstance(entry, Mapping) and not _is_schema(entry):
                yield key, entry


def _is_deed(kind: str) -> bool:
    """Return whether a type or a key names a deed: ``action``, ``run_command``, ``invoke``."""
    return bool(_DEED_WORDS.fullmatch(_words_of(kind)))


def _holds_call(part: Mapping[str, Any], kind: str | None) -> bool:
    """Return whether a part is a call by what it holds: in itself, or in an object below a key."""
    if kind is None and isinstance(part.get("text"), str):
        return False
    structures = list(_structures(part))
    has_name = _has_name(part)
    is_named_object = kind is None and has_name and bool(structures)
    is_deed = kind is not None and _is_deed(kind) and (has_name or bool(structures))
    if is_named_object or is_deed or _is_named_call(part):
        return True
    return any(
        _is_call_without_result(entry) or (_is_deed(key) and _has_name(entry))
        for key, entry in structures
    )


def unread_part(part: Any) -> str | None:
    """Return a description of a call in a part of an assistant's message, or in an item.

    A part is a call where its type names one or a deed, where it has a name beside arguments
    (itself, or an object in it), and, without a type, where it has a name beside any object. None
    where it is no call.
    """
    if not isinstance(part, OBJECT):
        return None
    kind = part.get("type")
    if not isinstance(kind, str):
        kind = next((part[key] for key in _KINDS if isinstance(part.get(key), str)), None)
    if kind is not None:
        if names_a_call(kind):
            return _described("part", kind)
        if _is_no_call(kind):
            return None
    for key, value in part.items():
        if isinstance(key, str) and names_a_call(key) and _is_filled(value):
            return _described("part", key)
    if _holds_call(part, kind):
        return _described("part", kind) if kind is not None else "part that names a call"
    return None


def unread_keys(message: Mapping[str, Any], read: Iterable[str] = ()) -> Iterator[str]:
    """Yield the keys of an assistant's message that hold calls, except those that were read."""
    for key in message:
        if key in read or not isinstance(key, str) or not _may_hold_calls(key):
            continue
        value = message[key]
        if not value or not _is_filled(value):
            continue
        if names_a_call(key):
            yield key
            continue
        entries = value if isinstance(value, list) else [value]
        if any(isinstance(entry, Mapping) and _is_call_without_result(entry) for entry in entries):
            yield key


@lru_cache(maxsize=4096)
def _may_hold_calls(key: str) -> bool:
    """Return whether a key of a message names calls, or is none of those that hold no calls."""
    return names_a_call(key) or not (key in _NO_CALL_KEYS or _is_no_call(key))


def _is_call_without_result(entry: Mapping[str, Any]) -> bool:
    """Return whether an object below a key of a message is a call that nobody has read.

    It has a name and arguments. It is none if its type says that it is something else, or if it
    has a key that results have, such as ``output``.
    """
    kind = entry.get("type")
    is_of_other_kind = isinstance(kind, str) and _is_no_call(kind)
    has_result = not _OUTCOMES.isdisjoint(entry)
    return _is_named_call(entry) and not is_of_other_kind and not has_result


_DECODED_KEYS: Final = ("tool_calls", "function_call")
"""Keys of a chat message whose calls are decoded."""


def unread_in(message: Any, read: Iterable[str] = _DECODED_KEYS) -> list[str]:
    """Return descriptions of calls nobody has decoded in a raw message of the assistant."""
    if not isinstance(message, Mapping):
        return []
    keys = [_described("key", key) for key in unread_keys(message, set(read))]
    parts = as_list(message.get("content"))
    return [*keys, *(kind for part in parts if (kind := unread_part(part)) is not None)]


def count_unread(
    messages: Iterable[Any], *, has_calls: bool, read: Iterable[str] = _DECODED_KEYS
) -> dict[str, int]:
    """Return the remarks on calls nobody has decoded in raw chat messages.

    Tags in texts count only where the run has no decoded call.

    Args:
        messages: Messages as recorded; those of the assistant are looked at.
        has_calls: Whether the run has a decoded call.
        read: Keys of a message whose calls are decoded.
    """
    decoded_keys = frozenset(read)
    kinds: list[str] = []
    texts: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") != "assistant":
            continue
        kinds += unread_in(message, decoded_keys)
        kinds += _unread_entries(message.get("tool_calls"))
        texts += texts_of(message.get("content"))
    if not has_calls and not kinds:
        kinds = [kind for text in texts for kind in unread_tags(text)]
    return dict(Counter(map(not_read, kinds)))


def _unread_entries(entries: Any) -> list[str]:
    """Return a description for each entry of ``tool_calls`` that is no call."""
    listed = entries if isinstance(entries, list) else [entries]
    objects = [entry for entry in listed if isinstance(entry, Mapping)]
    n_calls = sum(bool({"function", "name"} & entry.keys()) for entry in objects)
    n_filled = sum(entry not in _NOTHING for entry in listed)
    return ["entry of `tool_calls`"] * (n_filled - n_calls)


def unread_tags(text: str) -> Iterator[str]:
    """Yield the closed tags in a text that are calls, outside of code."""
    if "</" not in text:
        return
    text = _FENCED.sub("", text)
    position = 0
    while (tag := _TAG.search(text, position)) is not None:
        position = tag.end()
        name, about = tag[1], tag[2]
        if not _is_call_tag(name, about):
            continue
        end = text.find(f"</{name}>", position)
        if end < 0 or not text[position:end].strip():
            continue
        yield _described("tag", name)
        position = end


def _is_call_tag(name: str, about: str | None) -> bool:
    """Return whether a tag is the call of a tool, by its name and what it says beside it."""
    local = name.rpartition(":")[2]
    if local in TOOL_TAGS or _CALL_TAG.fullmatch(_words_of(local)):
        return True
    return local in _NAMED_TAGS and about is not None and ("=" in about)


def not_read(kind: str) -> str:
    """Return the kind of a remark on calls that were not read."""
    return f"{NOT_READ}{kind}"


NOT_DECODED: Final = not_read("text with a call in no known form, not decoded")
"""Remark on a text of calls that the rules of BFCL count as one that could not be decoded."""


def unread_text(remarks: Mapping[str, int]) -> str | None:
    """Return a description of the calls that were not read, with counts; None where all were."""
    kinds = [kind for kind in remarks if kind.startswith(NOT_READ)]
    if not kinds:
        return None
    counts = (f"{kind.removeprefix(NOT_READ)}, {_times(remarks[kind])}" for kind in kinds)
    return NOT_READ + "; ".join(counts)


def _times(number: int) -> str:
    return f"{number} time{'s' * (number != 1)}"


def has_unread_calls(sample: Sample) -> bool:
    """Return whether a run holds calls that nobody has decoded."""
    return sample.calls is None and any(kind.startswith(NOT_READ) for kind in sample.remarks)


def calls_unknown(sample: Sample, advice: str = "") -> Grade:
    """Return the grade of a run whose calls are not known: skipped, with the reason."""
    text = unread_text(sample.remarks)
    if text is not None:
        return skipped("calls_not_read", f"{text}; {HELP}")
    has_reply = sample.text is not None or sample.turns
    recorded = "an answer but no calls" if has_reply else "no answer"
    message = f"{recorded} recorded, so the calls made are unknown"
    return skipped("calls_not_recorded", f"{message}; {advice}" if advice else message)

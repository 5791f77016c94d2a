"""Messages of other libraries and data sets, as the chat messages and items that they stand for.

Each message is told by its own keys: LangChain's (plain, ``messages_to_dict``, ``dumpd``),
ShareGPT's, items of the Agents SDK, Gemini's contents and ADK's events, OpenInference's; and the
texts of Hermes and glaive that hold calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import literal
from gradestack_plugins.readers.chat.libraries import has_tags, library_form, reader_of_parts

Entry = dict[str, Any]
_LANGCHAIN: Final = {
    **dict.fromkeys(("human", "humanmessage"), "user"),
    **dict.fromkeys(("ai", "aimessage"), "assistant"),
    **dict.fromkeys(("system", "systemmessage"), "system"),
    **dict.fromkeys(("tool", "toolmessage"), "tool"),
    **dict.fromkeys(("function", "functionmessage"), "function"),
    **dict.fromkeys(("chat", "chatmessage"), "chat"),
}
_FROM: Final = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "model"), "assistant"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(
        ("observation", "tool", "function_response", "tool_response", "function"), "tool"
    ),
}
_GEMINI: Final = """text thought functionCall functionResponse inlineData fileData executableCode codeExecutionResult
function_call function_response inline_data file_data executable_code code_execution_result"""
_PARTS: Final = frozenset(_GEMINI.split())  # keys of Gemini's parts, by one of which a part is told
in_snake: Final = lru_cache(maxsize=1024)(
    partial(re.sub, "[A-Z]", lambda found: f"_{found[0].lower()}")
)
"""Return a key in camel case as in snake case."""
_IN_TEXT: Final = re.compile(r"```.*?(?:```|\Z)|<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
"""A fenced block, or a call in a text."""
_RESPONSE: Final = re.compile(r"\s*<tool_response>(.*?)</tool_response>\s*", re.DOTALL)
_RESPONSES: Final = re.compile(rf"(?:{_RESPONSE.pattern})+", re.DOTALL)
_SPEAKERS: Final = re.compile(r"^\s*(SYSTEM|USER|ASSISTANT|FUNCTION RESPONSE):", re.MULTILINE)
_GLAIVE: Final = {
    "SYSTEM": "system",
    "USER": "user",
    "ASSISTANT": "assistant",
    "FUNCTION RESPONSE": "tool",
}
_FUNCTIONCALL: Final = re.compile(r"<functioncall>")
_QUOTED: Final = re.compile(
    r"""\{\s*"name"\s*:\s*"([^"]*)"\s*,\s*"arguments"\s*:\s*'(.*)'\s*\}""", re.DOTALL
)
"""A call whose arguments are JSON in single quotes, which is no JSON itself."""


def form_of(entry: Any) -> Callable[[Entry], Iterator[Any]] | None:  # noqa: C901
    """Return what reads a message of another form.

    None of one that is none, or of a form of the APIs.
    """
    if not isinstance(entry, dict):
        return None
    kind, content = entry.get("type"), entry.get("content")
    if "role" in entry and kind is None and "parts" not in entry and not isinstance(content, dict):
        is_library = "toolInvocations" in entry or has_tags(entry)
        return library_form(entry) if is_library else reader_of_parts(content)
    if isinstance(kind, str):
        if isinstance(entry.get("raw_item"), dict):
            return _of_agents
        if "lc" in entry and isinstance(entry.get("kwargs"), dict):
            return _dumped
        if _langchain_role(kind) is not None and (
            isinstance(entry.get("data"), dict) or "content" in entry
        ):
            return _langchain
    if isinstance(entry.get("from"), str) and "value" in entry:
        return _sharegpt
    if "role" not in entry or "parts" in entry:
        library = library_form(entry)
        if library is not None:
            return library
    if _has_parts(entry) or _has_parts(content):
        return _gemini
    if any(isinstance(key, str) and key.startswith("message.") for key in entry):
        return lambda given: iter(forms_read([nested(given)]))
    held = entry.get("message")
    if isinstance(held, dict) and isinstance(held.get("role"), str) and len(entry) == 1:
        return _openinference
    return None


def forms_read(entries: Iterable[Any]) -> list[Any]:
    """Return the chat messages and items that messages of any forms stand for."""
    found: list[Any] = []
    for entry in entries:
        form = form_of(entry)
        found += (entry,) if form is None else form(entry)
    return found


def _langchain_role(kind: str) -> str | None:
    return _LANGCHAIN.get(kind.lower().removesuffix("chunk"))


def _dumped(entry: Entry) -> Iterator[Any]:
    """Yield a message as ``dumpd`` writes it: its class, and what made it."""
    path = entry.get("id")
    kind = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""
    yield from forms_read([{**entry["kwargs"], "type": entry["kwargs"].get("type", kind)}])


def _langchain(entry: Entry) -> Iterator[Any]:
    if isinstance(entry.get("data"), dict):
        entry = {**entry["data"], "type": entry["type"]}
    role = _langchain_role(entry["type"]) or ""
    more, about = as_map(entry.get("additional_kwargs")), as_map(entry.get("response_metadata"))
    found: Entry = {"role": entry.get("role") if role == "chat" else role}
    found |= {
        key: entry[key]
        for key in ("content", "name", "tool_call_id", "status")
        if entry.get(key) is not None
    }
    if role == "assistant":
        calls = [*as_list(entry.get("tool_calls")), *as_list(entry.get("invalid_tool_calls"))]
        found["tool_calls"] = calls or as_list(more.get("tool_calls"))
        found["usage"] = (
            entry.get("usage_metadata") or about.get("token_usage") or about.get("usage")
        )
        found["model"] = about.get("model_name") or about.get("model")
        found["reasoning_content"] = more.get("reasoning_content")
        found["function_call"] = more.get("function_call")
        found.pop("status", None)
    yield found


def _of_agents(entry: Entry) -> Iterator[Any]:
    agent = entry.get("agent")
    author = agent.get("name") if isinstance(agent, dict) else agent
    yield from forms_read(
        [{**entry["raw_item"], **({"author": author} if isinstance(author, str) else {})}]
    )


def _sharegpt(entry: Entry) -> Iterator[Any]:
    value, said = entry["value"], entry["from"]
    role = _FROM.get(said.lower(), said)
    if role != "call":
        yield {"role": role, "content": value}
        return
    found = literal(value)[1] if isinstance(value, str) else value
    calls = found if isinstance(found, list) else [found]
    understood = all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in calls)
    yield {
        "role": "assistant",
        "content": None,
        "tool_calls": calls if understood else [undecodable(value)],
    }


def _has_parts(entry: Any) -> bool:
    parts = entry.get("parts") if isinstance(entry, dict) else None
    return isinstance(parts, list) and any(
        isinstance(part, dict) and not _PARTS.isdisjoint(part) for part in parts
    )


def _gemini(entry: Entry) -> Iterator[Any]:
    """Yield a content, or that of an event.

    An answer with its calls, results, and what the user says.
    """
    held = entry if _has_parts(entry) else entry["content"]
    said = held.get("role") or ("user" if entry.get("author") == "user" else "model")
    blocks: list[Any] = []
    for part in held["parts"]:
        given = as_map(part)
        call, result = either(given, "functionCall"), either(given, "functionResponse")
        if isinstance(call, dict):
            blocks.append(
                {
                    "type": "tool_use",
                    "id": call.get("id"),
                    "name": call.get("name"),
                    "input": call.get("args"),
                }
            )
        elif isinstance(result, dict):
            what = {
                "tool_call_id": result.get("id"),
                "name": result.get("name"),
                "content": result.get("response"),
            }
            yield {"role": "tool", **what}
        elif isinstance(given.get("text"), str):
            key = "thinking" if given.get("thought") is True else "text"
            blocks.append({"type": key, key: given["text"]})
        else:
            filled = {key: value for key, value in given.items() if value is not None}
            blocks.append({"type": next(iter(filled), None), **filled})
    if not blocks:
        return
    found: Entry = {"role": "assistant" if said == "model" else said, "content": blocks}
    found["usage"], found["model"] = either(entry, "usageMetadata"), either(entry, "modelVersion")
    yield {**found, "author": entry.get("author")}


def _openinference(entry: Entry) -> Iterator[Any]:
    held = entry["message"]
    calls = [
        each.get("tool_call", each) if isinstance(each, dict) else each
        for each in as_list(held.get("tool_calls"))
    ]
    parts = [
        each.get("message_content", each) if isinstance(each, dict) else each
        for each in as_list(held.get("contents"))
    ]
    yield {**held, "content": held.get("content", parts or None), "tool_calls": calls}


def nested(value: Any) -> Any:
    """Return a record whose keys are paths (``a.b.0.c``) as the objects and lists these lead to."""
    return _numbered(_spread(value))


def _spread(value: Any) -> Any:
    if isinstance(value, list):
        return [_spread(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    found: Entry = {}
    for path, each in value.items():
        *before, name = str(path).split(".")
        holder = found
        for step in before:
            if not isinstance(holder.get(step), dict):
                holder[step] = {}
            holder = holder[step]
        held, last = _spread(each), holder.get(name)
        holder[name] = (
            {**last, **held} if isinstance(last, dict) and isinstance(held, dict) else held
        )
    return found


def _numbered(value: Any) -> Any:
    """Return objects whose keys are 0, 1, 2, … as lists."""
    if isinstance(value, list):
        return [_numbered(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _numbered(each) for key, each in value.items()}
    numbers = [str(number) for number in range(len(found))]
    return (
        [found[number] for number in numbers] if found and found.keys() == set(numbers) else found
    )


def calls_in(text: str) -> tuple[str, list[Any]]:
    """Return a text without the calls that stand in it as ``<tool_call>…</tool_call>``, and these.

    What stands in fenced blocks is text, and so is a call that is not JSON.
    """
    calls = []
    for match in _IN_TEXT.finditer(text):
        if _is_json_call(match):
            found = literal(match[1].strip())[1]
            calls.append(found if isinstance(found, dict) else undecodable(match[1].strip()))
    rest = (
        _IN_TEXT.sub(lambda match: "" if _is_json_call(match) else match[0], text).strip()
        if calls
        else text
    )
    return rest, calls


def _is_json_call(match: re.Match[str]) -> bool:
    """Return whether a tag holds a call as JSON, not one in a form that is not decoded."""
    return match[1] is not None and not match[1].lstrip().startswith("<")


def undecodable(text: Any) -> Entry:
    """Return a call that cannot be decoded: its text stands for its arguments."""
    return {"function": {"name": "", "arguments": text}}


def results_in(text: Any) -> list[Entry]:
    """Return the results that a text consists of, as ``<tool_response>…</tool_response>``.

    None of any other text.
    """
    if not isinstance(text, str) or "<tool_response>" not in text or not _RESPONSES.fullmatch(text):
        return []
    return [_result(match[1].strip()) for match in _RESPONSE.finditer(text)]


def _result(text: str) -> Entry:
    found = literal(text)[1] if text.startswith("{") else None
    if (
        isinstance(found, dict)
        and "content" in found
        and found.keys() <= {"name", "content", "tool_call_id"}
    ):
        return found
    return {"content": text}


def glaive(text: Any) -> list[Entry] | None:
    """Return the messages of a text whose lines begin with who speaks; None of any other text."""
    if (
        not isinstance(text, str)
        or (first := _SPEAKERS.match(text)) is None
        or "ASSISTANT:" not in text
    ):
        return None
    pieces = _SPEAKERS.split(text[first.start() :])[1:]
    return [_spoken(*each) for each in zip(pieces[::2], pieces[1::2], strict=True)]


def _spoken(speaker: str, text: str) -> Entry:
    said, *calls = _FUNCTIONCALL.split(text.replace("<|endoftext|>", "").strip())
    found: Entry = {"role": _GLAIVE[speaker], "content": said.strip() or (None if calls else "")}
    return (
        {**found, "tool_calls": [_functioncall(each.strip()) for each in calls]} if calls else found
    )


def _functioncall(text: str) -> Entry:
    if quoted := _QUOTED.match(text):
        return {"name": quoted[1], "arguments": quoted[2]}
    found = literal(text)[1]
    return found if isinstance(found, dict) else undecodable(text)


def either(holder: Mapping[str, Any], key: str) -> Any:
    """Return what stands under a key in camel case, or in snake case."""
    return holder.get(key, holder.get(in_snake(key)))

"""Questions and answers in the bodies that APIs and platforms record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat.calls import decoded
from gradestack_plugins.readers.chat.forms import forms_read
from gradestack_plugins.readers.chat.unread import unread_keys

_ASKED: Final = ("messages", "input", "contents", "prompt", "inputs", "prompts")
_BODIES: Final = (list, dict, str)
_USAGE: Final = ("usage", "usage_metadata", "usageMetadata", "token_usage")


def asked_in(body: Any) -> list[Any]:
    """Return the messages of a request, in any form; a text is a question of the user."""
    body = decoded(body)
    if isinstance(body, str):
        return [{"role": "user", "content": body}] if body else []
    if isinstance(body, list):
        is_batch = len(body) == 1 and isinstance(body[0], list)
        return body[0] if is_batch else body
    if not isinstance(body, dict):
        return []
    if "role" in body:
        return [body]
    asked: list[Any] = []
    for key in _ASKED:
        if body.get(key):
            asked = asked_in(body[key])
            break
    instructions = body.get("instructions")
    system = body.get("system", instructions)
    if not system:
        return asked
    return [{"role": "system", "content": _text_of(system)}, *asked]


def _text_of(system: Any) -> Any:
    parts = as_list(system)
    texts = [as_map(part).get("text") for part in parts]
    if texts:
        return "\n".join(text for text in texts if isinstance(text, str))
    return system


def answers_in(body: Any) -> list[Any]:
    """Return the messages and items of an answer; a text is what the assistant says."""
    body = decoded(body)
    if isinstance(body, str):
        return [{"role": "assistant", "content": body}] if body else []
    if isinstance(body, list):
        return _listed(body)
    message = as_map(body)
    for key in filter(message.__contains__, _ANSWERS):
        if isinstance(message[key], _BODIES):
            return _ANSWERS[key](message[key])
    is_typed = "lc" in message or "type" in message
    if "role" in message or ("content" in message and not is_typed):
        return forms_read([{"role": "assistant", **_reply_alone(message)}])
    return forms_read([message]) if is_typed else []


def _reply_alone(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without the keys of its request, but with calls that nobody decodes."""
    keys = (*_OF_REPLIES, *unread_keys(message, _OF_REPLIES))
    return {key: message[key] for key in keys if key in message}


_OF_REPLIES: Final = ("content", "tool_calls", "function_call", "reasoning_content", "refusal")


def _listed(listed: list[Any]) -> list[Any]:
    """Return the message of the first of some choices, or the messages or items of a list."""
    messages = [as_map(entry).get("message") for entry in listed]
    are_choices = all(isinstance(message, dict) for message in messages)
    if listed and are_choices and len(as_map(listed[0])) > 1:
        return forms_read(messages[:1])
    return forms_read(listed)


def _generation(generations: list[Any]) -> list[Any]:
    """Return the first generation of a model call of LangChain."""
    first = generations[0] if generations else {}
    if isinstance(first, list) and first:
        first = first[0]
    message = as_map(first).get("message")
    if message:
        return forms_read([message])
    return answers_in(as_map(first).get("text"))


def usage_in(*bodies: Any) -> Any:
    """Return the usage that the first of some bodies records; None where none does."""
    for body in bodies:
        recorded = as_map(decoded(body))
        for holder in (recorded, as_map(recorded.get("llm_output"))):
            for key in _USAGE:
                if holder.get(key):
                    return holder[key]
    return None


def model_in(*bodies: Any) -> str | None:
    """Return the model that the first of some bodies names; None where none does."""
    for body in bodies:
        model = as_map(decoded(body)).get("model")
        if isinstance(model, str) and model:
            return model
    return None


_ANSWERS: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "choices": lambda choices: _listed([*as_list(choices)]),
    "generations": lambda generations: _generation([*as_list(generations)]),
    "candidates": lambda all_: forms_read(
        [as_map(one).get("content") for one in as_list(all_)[:1]]
    ),
    "output": lambda output: answers_in(as_map(output).get("message", output)),
    "messages": lambda messages: forms_read(as_list(messages)[-1:]),
    "message": answers_in,
}
"""Key of an answer -> what reads what stands under it."""

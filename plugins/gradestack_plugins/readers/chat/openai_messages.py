"""A conversation of chat messages, of Responses items, or of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from msgspec.structs import force_setattr
from typing_extensions import override

from gradestack import Message, ToolCall
from gradestack.jsonio import as_list
from gradestack_plugins.readers.chat import parse_arguments
from gradestack_plugins.readers.chat.conversation import Conversation, finish, kind_of, text_or_none
from gradestack_plugins.readers.chat.names import calls_of
from gradestack_plugins.readers.chat.results import error_form, error_text, plain

_KEPT_APART: Final = """
id type status call_id caller created_by async results outputs output result error server_label name
approval_request_id pending_safety_checks fingerprint namespace execution
"""
_BOOKKEEPING: Final = frozenset(_KEPT_APART.split())
"""Keys of a built-in call that are no arguments of it."""
_OUTCOMES: Final = ("results", "outputs", "output", "result")


def _thoughts(*lists: Any) -> list[str]:
    """Return the texts of reasoning: of its content, or where there is none of its summary."""
    for parts in lists:
        texts = [
            part["text"] for part in as_list(parts) if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        if texts:
            return texts
    return []


class OpenAIConversation(Conversation):
    """Reads chat messages and items; what belongs to one answer of Responses is put together into one message."""

    part = "part"
    texts: ClassVar = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}

    def __init__(self) -> None:
        super().__init__()
        self._answering = False
        self._parts: list[Any] = []
        self._thought: list[str] = []
        self._made: list[ToolCall] = []
        self._pending: dict[str, ToolCall] = {}

    def read(self, entries: Iterable[Any]) -> None:
        """Read messages and items to their end."""
        for entry in entries:
            if not isinstance(entry, dict):
                self.remark("message:other")
                continue
            kind, role = entry.get("type"), entry.get("role")
            if isinstance(role, str) and (kind is None or kind == "message"):
                if kind == "message" and role == "assistant":
                    self._said_in_item(entry)
                else:
                    self._message(entry, role)
            else:
                self._item(entry, kind)
        self._close()
        for call in self._pending.values():
            if call.status is None:  # nobody has allowed it
                force_setattr(call, "status", "not_run")
        self._pending.clear()

    @override
    def bare_text(self, part: Any) -> Any:
        return part

    def _message(self, entry: dict[str, Any], role: str) -> None:
        self._close()
        content, name = entry.get("content"), text_or_none(entry.get("name"))
        if role == "user":
            self.ask(Message(role=role, content=content, name=name), self.text_of(content, "\n") or "")
        elif role == "assistant":
            self._answer(entry, content, name)
        elif role in {"tool", "function"}:
            identifier, result = entry.get("tool_call_id"), plain(content)
            self.answered(identifier, name, result, *_error_of(result))
            self.add(Message(role=role, content=content, name=name, tool_call_id=text_or_none(identifier)))
        else:
            if role not in {"system", "developer"}:
                self.remark(kind_of("role", role))
            self.add(Message(role=role, content=content, name=name))

    def _answer(self, entry: dict[str, Any], content: Any, name: str | None) -> None:
        self.step += 1
        calls = entry.get("tool_calls")
        made = [call for each in calls if (call := self._call(each, name))] if isinstance(calls, list) else []
        legacy = entry.get("function_call")
        if isinstance(legacy, dict) and not made:
            made = [call for call in [self._call({"function": legacy}, name)] if call]
        text = self.text_of(content, "")
        if text is None:
            spoken = entry.get("audio")
            text = text_or_none(entry.get("refusal")) or text_or_none(
                spoken.get("transcript") if isinstance(spoken, dict) else None
            )
        self.text = text or (None if made else text)
        thought = entry.get("reasoning_content", entry.get("reasoning"))
        self.add(
            Message(
                role="assistant",
                content=text if content is None else content,
                tool_calls=tuple(made),
                name=name,
                reasoning=text_or_none(thought),
            )
        )

    def _call(self, raw: Any, author: str | None) -> ToolCall | None:
        """Take one entry of ``tool_calls`` into account; one without a name is remarked."""
        function = raw.get("function") if isinstance(raw, dict) else None
        custom = raw.get("custom") if isinstance(raw, dict) else None
        if isinstance(function, dict):
            given = parse_arguments(function.get("arguments"))
            return self.made("function", raw.get("id"), function.get("name"), given, author=author)
        if isinstance(custom, dict):
            return self.made("custom", raw.get("id"), custom.get("name"), _input(custom), author=author)
        flat = calls_of([raw])  # as other libraries write them
        if flat and isinstance(flat[0], dict) and isinstance(flat[0].get("name"), str):
            given = parse_arguments(flat[0].get("arguments"))
            return self.made("function", raw.get("id"), flat[0]["name"], given, author=author)
        self.remark("call:other")
        return None

    def _open(self) -> None:
        """Begin an answer of several items, unless one is being read."""
        if not self._answering:
            self._answering = True
            self.step += 1
            self.text = None

    def _close(self) -> None:
        """End an answer of several items: one message."""
        if not self._answering:
            return
        parts: Any = self._parts
        if len(parts) == 1 and isinstance(parts[0], str):
            parts = parts[0]
        thought = "\n".join(self._thought) if self._thought else None
        self.add(Message(role="assistant", content=parts or None, tool_calls=tuple(self._made), reasoning=thought))
        self._answering = False
        self._parts, self._thought, self._made = [], [], []

    def _said_in_item(self, entry: dict[str, Any]) -> None:
        self._open()
        content = entry.get("content")
        self.text = self.text_of(content, "") or self.text
        self._parts += content if isinstance(content, list) else [content] if content is not None else []

    def _item(self, item: dict[str, Any], kind: Any) -> None:
        read = self._items.get(kind) if isinstance(kind, str) else None
        if read is not None:
            read(self, item)
        elif isinstance(kind, str) and kind.endswith("_call"):
            self._built_in(item, kind.removesuffix("_call"))
        elif isinstance(kind, str) and kind.endswith("_output"):
            self._output(item)
        else:
            self.remark(kind_of("item", "item_reference" if kind is None and item.keys() == {"id"} else kind))

    def _reasoned(self, item: dict[str, Any]) -> None:
        self._open()
        self._thought += _thoughts(item.get("content"), item.get("summary"))

    def _function_call(self, item: dict[str, Any]) -> None:
        self._open()
        given = parse_arguments(item.get("arguments"))
        self._made.append(self.made("function", item.get("call_id"), item.get("name"), given))

    def _custom_call(self, item: dict[str, Any]) -> None:
        self._open()
        self._made.append(self.made("custom", item.get("call_id"), item.get("name"), _input(item)))

    def _output(self, item: dict[str, Any]) -> None:
        self._close()
        identifier, form = item.get("call_id"), item["type"]
        if identifier is None and self.knows(item.get("id")):
            identifier = item["id"]
        name = item.get("name") or form.removesuffix("_output").removesuffix("_call")
        result = plain(item.get("output", item.get("result", item.get("tools"))))
        error, kind = _error_of(result)
        if error is None and item.get("status") == "failed":
            error = result if isinstance(result, str) and result else "failed"
        self.answered(identifier, name, result, error, kind)
        self.add(Message(role="tool", content=result, tool_call_id=text_or_none(identifier)))

    def _built_in(self, item: dict[str, Any], name: str) -> None:
        """Take a call of a built-in tool into account: of one that the API runs, its result stands in the same item."""
        self._open()
        given: tuple[dict[str, Any] | None, str | None]
        if item.get("arguments") is None:
            given = {key: each for key, each in item.items() if key not in _BOOKKEEPING and each is not None}, None
        else:
            given = parse_arguments(item["arguments"])
        call = self.made("builtin", item.get("call_id") or item.get("id"), name, given)
        self._made.append(call)
        result = next((item[key] for key in _OUTCOMES if item.get(key) is not None), None)
        error, status = item.get("error"), item.get("status")
        if error is not None or status == "failed":
            finish(call, result, error_text(error) if error is not None else "failed", _type(error))
        elif result is not None or (status == "completed" and item.get("call_id") is None and "execution" not in item):
            finish(call, result, None)

    def _of_server(self, item: dict[str, Any]) -> ToolCall:
        given, server = parse_arguments(item.get("arguments")), item.get("server_label")
        call = self.made("mcp", item.get("id"), item.get("name"), given, server=server)
        self._made.append(call)
        return call

    def _mcp_call(self, item: dict[str, Any]) -> None:
        """Take a call of an MCP tool into account, or what came of one that waited for approval."""
        self._open()
        call = self.unanswered(item.get("approval_request_id"))
        if call is None:
            call = self._of_server(item)
        error, output = item.get("error"), item.get("output")
        if error is not None or item.get("status") == "failed":
            finish(call, output, error_text(error) if error is not None else "failed", _type(error))
        elif output is not None or item.get("status") == "completed":
            finish(call, output, None)

    def _asked_approval(self, item: dict[str, Any]) -> None:
        self._open()
        call = self._of_server(item)
        if call.id is not None:
            self._pending[call.id] = call

    def _approved(self, item: dict[str, Any]) -> None:
        self._close()
        self._pending.pop(str(item.get("approval_request_id")), None)
        if item.get("approve") is False:
            self.denied(item.get("approval_request_id"), item.get("reason"))

    def _tools_listed(self, item: dict[str, Any]) -> None:
        tools = item.get("tools")
        self.listed += tools if isinstance(tools, list) else []

    _items: ClassVar[dict[str, Callable[[OpenAIConversation, dict[str, Any]], None]]] = {
        "reasoning": _reasoned,
        "function_call": _function_call,
        "custom_tool_call": _custom_call,
        "mcp_call": _mcp_call,
        "mcp_approval_request": _asked_approval,
        "mcp_approval_response": _approved,
        "mcp_list_tools": _tools_listed,
        "additional_tools": _tools_listed,
        "program": lambda self, item: self._built_in(item, "program"),
    }


def _input(call: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of a custom tool, which takes text, and that text."""
    return {"input": call.get("input")}, text_or_none(call.get("input"))


def _error_of(result: Any) -> tuple[str | None, str | None]:
    """Return what a result says went wrong, and the rule by which it is told: the API has no mark for it."""
    found = error_form(result)
    return (None, None) if found is None else (found.message, found.type)


def _type(error: Any) -> str | None:
    kind = error.get("type", error.get("code")) if isinstance(error, dict) else None
    return kind if isinstance(kind, str) else None

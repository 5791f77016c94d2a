"""A conversation of messages made of content blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from gradestack import Message, ToolCall
from gradestack.jsonio import compact
from gradestack_plugins.readers.chat import parse_arguments
from gradestack_plugins.readers.chat.conversation import Conversation, kind_of, text_or_none
from gradestack_plugins.readers.chat.dialect import word
from gradestack_plugins.readers.chat.results import plain

_USES: Final = {"tool_use": "function", "server_tool_use": "builtin", "mcp_tool_use": "mcp"}
_RESULT: Final = "tool_result"


def is_result(block: Any) -> bool:
    """Return whether a block is the result of a call: ``tool_result``, or that of a server's tool."""
    kind = word(block, "type")
    return kind == _RESULT or kind.endswith("_tool_result")


class AnthropicConversation(Conversation):
    """Reads messages; each of the assistant is one answer."""

    part = "block"
    texts: ClassVar = {"text": "text"}

    def read(self, messages: Iterable[Any]) -> None:
        """Read messages to their end."""
        for entry in messages:
            role = entry.get("role") if isinstance(entry, dict) else None
            if not isinstance(role, str):
                self.remark("message:other" if not isinstance(entry, dict) else "message_without_role")
                continue
            content = entry.get("content")
            if role == "assistant":
                self._answer(content)
            elif role == "user":
                self._user(content)
            else:
                if role not in {"system", "developer"}:
                    self.remark(kind_of("role", role))
                self.add(Message(role=role, content=content))

    def system(self, content: Any) -> None:
        """Add the system prompt of a request."""
        if content:
            self.add(Message(role="system", content=content))

    def _user(self, content: Any) -> None:
        """Take a message of the user; one that holds only results begins no turn."""
        blocks = content if isinstance(content, list) else [content]
        results = [block for block in blocks if is_result(block)]
        for block in results:
            self._result(block)
            given = block.get("content")
            self.add(
                Message(role="tool", content=plain(given, "\n"), tool_call_id=text_or_none(block.get("tool_use_id")))
            )
        if results and len(results) == len(blocks):
            return
        rest: Any = [block for block in blocks if not is_result(block)] if results else content
        self.ask(Message(role="user", content=rest), self.text_of(rest, "\n") or "")

    def _answer(self, content: Any) -> None:
        self.step += 1
        if not isinstance(content, list):
            self.text = self.text_of(content, "")
            self.add(Message(role="assistant", content=content))
            return
        texts, thoughts, made = [], [], []
        results, others = [], []
        for block in content:
            kind = word(block, "type")
            if kind in _USES:
                made.append(self._call(block, _USES[kind]))
            elif kind == "thinking" and isinstance(block.get("thinking"), str):
                thoughts.append(block["thinking"])
            elif is_result(block):
                self._result(block)
                results.append(block)
            elif kind == "mcp_tool_listing":
                tools = block.get("tools")
                self.listed += tools if isinstance(tools, list) else []
            else:
                others.append(block)
        said = self.text_of(others, "")
        self.text = said or (None if made else said)
        texts = [block for block in others if isinstance(block, dict)]
        alone = len(texts) == 1 and texts[0].get("type") == "text" and not texts[0].get("citations")
        self.add(
            Message(
                role="assistant",
                content=said if alone else texts or None,
                tool_calls=tuple(made),
                reasoning="\n".join(thoughts) if thoughts else None,
            )
        )
        for block in results:
            result = Message(
                role="tool",
                content=plain(block.get("content"), "\n"),
                tool_call_id=text_or_none(block.get("tool_use_id")),
            )
            self.add(result)

    def _call(self, block: dict[str, Any], kind: Any) -> ToolCall:
        given, server = parse_arguments(block.get("input")), block.get("server_name")
        return self.made(kind, block.get("id"), block.get("name"), given, server=server)

    def _result(self, block: dict[str, Any]) -> None:
        content = block.get("content")
        result, problem = plain(content, "\n"), content if isinstance(content, dict) else {}
        kind = problem.get("type")
        if isinstance(kind, str) and kind.endswith("_error"):
            code = text_or_none(problem.get("error_code"))
            said = text_or_none(problem.get("error_message")) or code or kind
            self.answered(block.get("tool_use_id"), None, result, said, code)
        elif block.get("is_error") is True:
            said = result if isinstance(result, str) else compact(result)
            self.answered(block.get("tool_use_id"), None, result, said)
        else:
            self.answered(block.get("tool_use_id"), None, result)

"""The one decoder of conversations.

Messages and items of every dialect, each read by its own form.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final

from msgspec.structs import force_setattr

from gradestack import IMPOSSIBLE_AMOUNT, Message, ToolCall, impossible_amounts
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers.chat import dialect, parse_arguments, word
from gradestack_plugins.readers.chat.final_calls import final_text
from gradestack_plugins.readers.chat.forms import calls_in, form_of, results_in
from gradestack_plugins.readers.chat.names import call_of, decoded
from gradestack_plugins.readers.chat.pieces import whole_answers
from gradestack_plugins.readers.chat.results import error_form, error_text, plain
from gradestack_plugins.readers.chat.shells import exit_code_of, is_failure
from gradestack_plugins.readers.chat.unread import (
    NOT_READ,
    names_a_call,
    not_read,
    unread_keys,
    unread_part,
    unread_tags,
)
from gradestack_plugins.readers.chat.usage import said_usage

_WORD: Final = re.compile(r"[A-Za-z_][\w.:-]{0,47}")


_EXPECTED = re.compile("expected|gold|ground_?truth|reference", re.IGNORECASE)
"""How the names of keys and columns begin that hold what was expected."""


def kind_of(of: str, name: Any) -> str:
    """Return the kind of remark on something of a type or name that is not understood.

    ``part:input_audio``.
    """
    kind = f"{of}:{name if isinstance(name, str) and _WORD.fullmatch(name) else 'other'}"
    if of not in ("key", "column") or not _EXPECTED.match(kind.removeprefix(f"{of}:")):
        return kind
    field, grader = (
        ("calls", "tool_calls") if re.search("call|tool", kind) else ("text", "exact_match")
    )
    return f"{kind}, to compare: --map expected.{field}={name} --grader {grader}"


def text_or_none(value: Any) -> str | None:
    """Return a text as it is, None of anything else."""
    return value if isinstance(value, str) else None


_USES: Final = {
    **dict.fromkeys(("tool_use", "tool_call", "invalid_tool_call", "function_call"), "function"),
    **dict.fromkeys(("server_tool_use", "server_tool_call"), "builtin"),
    "mcp_tool_use": "mcp",
}
"""Types of blocks that are calls, and the kind of these."""
_KEPT_APART: Final = """
id type status call_id caller created_by async results outputs output result error server_label name
approval_request_id pending_safety_checks fingerprint namespace execution author
"""
_BOOKKEEPING: Final = frozenset(
    _KEPT_APART.split()
)  # keys of a built-in call that are no arguments of it
_READ_KEYS: Final = frozenset({"role", "content", "tool_calls", "function_call"})
"""Keys of the assistant's messages that are read: no other holds calls that are decoded."""
_NO_ASSISTANTS: Final = frozenset(
    {"user", "human", "system", "developer", "tool", "function", "observation", "function_response"}
    | {"humanmessage", "systemmessage", "toolmessage", "functionmessage", "tool_response"}
)
"""Speakers of messages of other libraries that make no calls."""
_READ_BY_FORMS: Final = _READ_KEYS | {
    *("data", "kwargs", "lc", "id", "value", "from", "parts", "invalid_tool_calls", "raw_item"),
    *("additional_kwargs", "response_metadata", "tool_call_chunks", "usage_metadata", "message"),
    *("artifact", "toolInvocations", "toolCalls", "toolResults", "tool_call_metadata"),
    *("staticToolCalls", "dynamicToolCalls", "staticToolResults", "dynamicToolResults"),
}
"""Keys of messages of other libraries that are read, or repeat what is read."""
_OUTCOMES: Final = ("results", "outputs", "output", "result")
_WHOLE_ANSWER: Final = frozenset({"stop_reason", "usage", "model"})
"""Keys by one of which a message is a recorded answer of Anthropic's, not an item of Responses."""


def is_result(block: Any) -> bool:
    """Return whether a block is the result of a call.

    ``tool_result``, or that of a server's tool.
    """
    kind = word(block, "type")
    return kind == "tool_result" or kind.endswith("_tool_result")


def _thoughts(*lists: Any) -> list[str]:
    """Return the texts of reasoning: of its content, or where there is none of its summary."""
    for parts in lists:
        texts = [
            part["text"]
            for part in as_list(parts)
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        if texts:
            return texts
    return []


class Conversation:
    """Reads messages, made of text, parts or blocks, and items.

    Each message of the assistant is one answer.

    What belongs to one answer of Responses is put together into one message. A user message begins
    a turn; what stands before the first one belongs to it. A call is handed its result when it is
    met: until the conversation is read to its end, calls are not finished.

    Attributes:
        turns: Messages by turn.
        calls: All calls made so far.
        asked: The text of each user turn.
        text: What the last answer says; None when it says nothing.
        step: Index of the last answer; -1 before the first.
        given_turns: Whether turns are given, not begun by the messages of the user.
        listed: Tools that MCP servers listed, as recorded.
        remarks: What was left out or lacks its counterpart, by kind.
        part: What a part of a message is called in remarks: ``part``, or ``block`` as Anthropic
            calls them.
        texts: Types of parts that are text, and the key it stands under.
        model: What the last answer that names its model names.
        usages: What answers say of their usage, as recorded.
        results: Whether what calls gave is recorded.
    """

    texts: ClassVar = {
        "text": "text",
        "input_text": "text",
        "output_text": "text",
        "refusal": "refusal",
    }

    def __init__(self, part: str = "part") -> None:
        self.part = part
        self.turns: list[list[Message]] = [[]]
        self.calls: list[ToolCall] = []
        self.asked: list[str] = []
        self.text: str | None = None
        self.step = -1
        self.given_turns = False
        self.listed: list[Any] = []
        self.remarks: dict[str, int] = {}
        self.model: str | None = None
        self.usages: list[Any] = []
        self.results = True
        self._open_calls: deque[ToolCall] = deque()
        self._by_id: dict[str, deque[ToolCall]] = {}
        self._by_name: dict[str, deque[ToolCall]] = {}
        self._answering = False
        self._parts: list[Any] = []
        self._thought: list[str] = []
        self._made: list[ToolCall] = []
        self._pending: dict[str, ToolCall] = {}
        self._tagged: list[str] = []

    @property
    def has_unread_calls(self) -> bool:
        """Whether the assistant made calls in a form that is not decoded."""
        return any(kind.startswith(NOT_READ) for kind in self.remarks)

    def remark_unread(self, kind: str | None) -> None:
        """Count a part, key or tag that holds calls nobody has decoded; None is none."""
        if kind is not None:
            self.remark(not_read(kind))

    def remark_unread_keys(
        self, message: dict[str, Any], read: Iterable[str] | None = None
    ) -> None:
        """Count the keys of an assistant's message that hold calls, except those that are read."""
        if message.keys() <= _READ_KEYS:
            return
        for key in unread_keys(message, _READ_KEYS if read is None else frozenset(read)):
            self.remark_unread(f"key `{key}`" if _WORD.fullmatch(key) else "key")

    def _remark_tags(self) -> None:
        """Count calls written as tags in the texts of a run that has no decoded call."""
        if not self.calls and not self.has_unread_calls:
            for text in self._tagged:
                for kind in unread_tags(text):
                    self.remark_unread(kind)
        self._tagged.clear()

    def remark(self, kind: str) -> None:
        """Count something that was left out or lacks its counterpart."""
        self.remarks[kind] = self.remarks.get(kind, 0) + 1

    def remark_amounts(self, recorded: Any) -> None:
        """Count recorded costs and times that cannot be any."""
        for _ in range(impossible_amounts(recorded)):
            self.remark(IMPOSSIBLE_AMOUNT)

    def add(self, message: Message) -> None:
        """Add a message to the turn at hand."""
        self.turns[-1].append(message)

    def ask(self, message: Message, text: str) -> None:
        """Add a message of the user, which begins a turn."""
        if self.asked and not self.given_turns:
            self.turns.append([])
        self.asked.append(text)
        self.turns[-1].append(message)

    def text_of(self, content: Any, joint: str) -> str | None:
        """Return the text of a message's content, None when there is none.

        Parts that are no text are remarked.
        """
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            if content is not None:
                self.remark("content:other")
            return None
        texts = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            key = self.texts.get(kind) if isinstance(kind, str) else None
            found = part.get("text" if kind is None else key) if isinstance(part, dict) else part
            if isinstance(found, str):
                texts.append(found)
            else:
                self.remark(kind_of(self.part, kind))
        return joint.join(texts) if texts else None

    def made(
        self,
        kind: Any,
        identifier: Any,
        name: Any,
        arguments: tuple[dict[str, Any] | None, str | None],
        *,
        server: Any = None,
        author: str | None = None,
    ) -> ToolCall:
        """Take a call into account, whose arguments are an object and its text, and return it."""
        if not isinstance(name, str):
            self.remark("call_without_name")
        call = ToolCall(
            name=text_or_none(name) or "",
            arguments=arguments[0],
            raw_arguments=arguments[1],
            id=text_or_none(identifier),
            turn=len(self.turns) - 1,
            step=self.step,
            author=author,
            server=text_or_none(server),
            kind=kind,
        )
        self.calls.append(call)
        self._open_calls.append(call)
        if call.arguments is None:
            self.remark("undecodable_arguments")
        if call.id is not None:
            if self.unanswered(call.id) is not None:
                self.remark("repeated_call_id")
            self._by_id.setdefault(call.id, deque()).append(call)
        self._by_name.setdefault(call.name, deque()).append(call)
        return call

    def answered(
        self,
        identifier: Any,
        name: Any,
        result: Any,
        error: str | None = None,
        error_type: str | None = None,
        *,
        is_decided: bool = False,
    ) -> None:
        """Hand a result to its call.

        The one of its id, or without one the oldest unanswered one of its name, if any.

        A result that has no call, or whose call has another already, is remarked.
        """
        named = isinstance(identifier, str)
        waiting = self._open_calls if not isinstance(name, str) else self._by_name.get(name)
        waiting = self._by_id.get(identifier) if isinstance(identifier, str) else waiting
        call = _oldest(waiting)
        if call is None:
            self.remark("second_result" if named and waiting is not None else "result_without_call")
            return
        finish(call, result, error, error_type, is_decided=is_decided)

    def denied(self, identifier: Any, reason: Any) -> None:
        """Mark a call as one that was not allowed."""
        call = self.unanswered(identifier)
        if call is None:
            self.remark("result_without_call")
            return
        force_setattr(call, "status", "denied")
        force_setattr(
            call, "error", reason if isinstance(reason, str) and reason else "not approved"
        )

    def unanswered(self, identifier: Any) -> ToolCall | None:
        """Return the oldest call of an id that has no result yet."""
        return _oldest(self._by_id.get(identifier)) if isinstance(identifier, str) else None

    def finished(self) -> dict[str, Any]:
        """Return what a sample says of it: input, turns, calls and text."""
        self._remark_tags()
        for call in self.calls if self.results else ():
            if call.status is None:
                self.remark("call_without_result")
        asked = self.asked
        is_known = self.step >= 0 and not self.has_unread_calls
        return {
            "input": None if not asked else asked[0] if len(asked) == 1 else tuple(asked),
            "turns": tuple([tuple(turn) for turn in self.turns]) if self.turns[0] else (),
            "calls": tuple(self.calls) if is_known else None,
            "text": final_text(self.calls, self.step) or self.text,
        }

    def said(self, predicted: Iterable[str]) -> dict[str, Any]:
        """Return what a sample says of it beside a prediction, which names some of its fields."""
        given = set(predicted)
        if "calls" in given:
            self._tagged.clear()
        found = self.finished()
        if self.step < 0 and not given and any(self.turns) and not self.has_unread_calls:
            self.remark("question_without_answer")
        found |= {"model": self.model} if self.model is not None else {}
        found |= said_usage(self.usages) if self.usages else {}
        return {name: value for name, value in found.items() if name not in given}

    def read(self, entries: Iterable[Any]) -> None:
        """Read messages and items to their end."""
        for entry in whole_answers(self._usual_entries(entries)):
            self._entry(entry)
        self._close()
        for call in self._pending.values():
            if call.status is None:  # nobody has allowed it
                force_setattr(call, "status", "not_run")
        self._pending.clear()

    def _usual_entries(self, entries: Iterable[Any]) -> Iterator[Any]:
        """Yield messages and items in the forms of the APIs."""
        for recorded in entries:
            form = form_of(recorded)
            if form is None:
                yield recorded
                continue
            yield from form(recorded)
            self._remark_keys_of_form(recorded)

    def _remark_keys_of_form(self, recorded: dict[str, Any]) -> None:
        """Count the keys of another library's message that hold calls and that its form leaves."""
        speaker = recorded.get("role", recorded.get("from", recorded.get("type")))
        if isinstance(speaker, str) and speaker.lower() in _NO_ASSISTANTS:
            return
        for holder in (recorded, recorded.get("data"), recorded.get("kwargs")):
            if isinstance(holder, dict):
                plain = {key: value for key, value in holder.items() if "." not in str(key)}
                self.remark_unread_keys(plain, _READ_BY_FORMS)

    def _entry(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            self.remark("message:other")
            return
        kind, role = entry.get("type"), entry.get("role")
        if isinstance(role, str) and (kind is None or kind == "message"):
            if kind == "message" and role == "assistant" and not entry.keys() & _WHOLE_ANSWER:
                self._said_in_item(entry)
            else:
                self._message(entry, role)
        elif kind is None and entry.keys() != {"id"}:
            self.remark_unread(unread_part(entry))
            self.remark("message_without_role")
        else:
            self._item(entry, kind)

    def _message(self, entry: dict[str, Any], role: str) -> None:
        self._close()
        content, name = entry.get("content"), text_or_none(entry.get("name"))
        if role == "assistant":
            self._answer(entry, content, name)
        elif role in {"tool", "function"}:
            for each in results_in(content) or (entry,):
                self._result_message(role, entry if each is entry else {**entry, **each})
        elif role == "user":
            self._user(content, name)
        else:
            if role not in {"system", "developer"}:
                self.remark(kind_of("role", role))
                self._remark_unread_speaker(entry, role)
            self.add(Message(role=role, content=content, name=name))

    def _remark_unread_speaker(self, entry: dict[str, Any], role: str) -> None:
        """Count what holds calls in a message whose role is not known."""
        if names_a_call(role) and entry.get("content"):
            self.remark_unread(f"role `{role}`" if _WORD.fullmatch(role) else "role")
            return
        self.remark_unread_keys(entry, ("role", "content"))
        for part in as_list(entry.get("content")):
            self.remark_unread(unread_part(part))

    def _result_message(self, role: str, entry: dict[str, Any]) -> None:
        identifier, result = entry.get("tool_call_id"), plain(entry.get("content"))
        error, kind = _error_of(result)
        if entry.get("status") == "error":
            error, kind = (
                result if isinstance(result, str) and result else error or compact(result),
                None,
            )
        is_decided = entry.get("status") == "success" or entry.get("is_error") is False
        self.answered(identifier, entry.get("name"), result, error, kind, is_decided=is_decided)
        name = text_or_none(entry.get("name"))
        self.add(
            Message(role=role, content=result, name=name, tool_call_id=text_or_none(identifier))
        )

    def _user(self, content: Any, name: str | None) -> None:
        """Take a message of the user; one that holds only results begins no turn."""
        if said := results_in(content) if _oldest(self._open_calls) is not None else []:
            for each in said:
                self._result_message("tool", each)
            return
        if isinstance(content, list) and (
            results := [block for block in content if is_result(block)]
        ):
            for block in results:
                self._result(block)
            if len(results) == len(content):
                return
            content = [block for block in content if not is_result(block)]
        self.ask(
            Message(role="user", content=content, name=name), self.text_of(content, "\n") or ""
        )

    def _answer(self, entry: dict[str, Any], content: Any, name: str | None) -> None:
        self.step += 1
        named_model = entry.get("model") or as_map(entry.get("modelInfo")).get("modelId")
        self.model = text_or_none(named_model) or self.model
        metrics = as_map(entry.get("metrics"))
        usage = entry.get("usage") or (metrics if "tokens" in metrics else None)
        self.usages += [usage] if usage else []
        author = text_or_none(entry.get("author")) or name
        self.remark_unread_keys(entry)
        given, legacy = decoded(entry.get("tool_calls")) or [], decoded(entry.get("function_call"))
        listed = given if isinstance(given, list) else [given]
        made = [call for each in listed if (call := self._call(each, author))]
        if isinstance(legacy, dict) and legacy and not made:
            made = [call for call in [self._call({"function": legacy}, author)] if call]
        if isinstance(content, str) and not made and "<tool_call>" in content:
            content, found = calls_in(content)
            content = content or None if found else content
            made = [call for each in found if (call := self._call(each, author))]
        blocks: list[Any] = content if isinstance(content, list) else []
        others, thoughts, results = self._blocks(blocks, made, author) if blocks else ([], [], [])
        text = self.text_of(others if blocks else content, "")
        self._keep_tags(text)
        if text is None:
            text = text_or_none(entry.get("refusal")) or text_or_none(
                as_map(entry.get("audio")).get("transcript")
            )
        self.text = text or (None if made else text)
        if len(others) < len(blocks) or (blocks and self.part == "block"):
            parts = [block for block in others if isinstance(block, dict)]
            alone = (
                len(parts) == 1 and parts[0].get("type") == "text" and not parts[0].get("citations")
            )
            content = text if alone else parts or None
        thought = text_or_none(entry.get("reasoning_content", entry.get("reasoning")))
        thoughts += [thought] if thought is not None and not thoughts else []
        self.add(
            Message(
                role="assistant",
                content=text if content is None else content,
                tool_calls=tuple(made),
                name=name,
                reasoning="\n".join(thoughts) if thoughts else None,
            )
        )
        for block in results:
            self._result(block)

    def _keep_tags(self, text: str | None) -> None:
        """Keep a text of the assistant that holds closed tags, until the calls are known."""
        if text is not None and "</" in text:
            self._tagged.append(text)

    def _blocks(
        self, blocks: list[Any], made: list[ToolCall], author: str | None
    ) -> tuple[list[Any], list[str], list[dict[str, Any]]]:
        """Take the blocks of an answer into account.

        Return those that are none of its calls, thoughts and results.
        """
        others, thoughts, results = [], [], []
        known = {call.id for call in made if call.id is not None}
        for block in blocks:
            kind = word(block, "type")
            if kind in _USES:
                identifier = block.get("call_id", block.get("id", block.get("tool_call_id")))
                if text_or_none(identifier) not in known:
                    made.append(self._use(block, kind, author))
            elif kind == "thinking" and isinstance(block.get("thinking"), str):
                thoughts.append(block["thinking"])
            elif kind == "reasoning":
                said = text_or_none(block.get("reasoning", block.get("text")))
                thoughts += (
                    [said] if said else _thoughts(block.get("content"), block.get("summary"))
                )
            elif is_result(block):
                results.append(block)
            elif kind == "mcp_tool_listing":
                self.listed += as_list(block.get("tools"))
            else:
                self.remark_unread(unread_part(block))
                others.append(block)
        return others, thoughts, results

    def _use(self, block: dict[str, Any], kind: str, author: str | None) -> ToolCall:
        given = parse_arguments(
            next((block[key] for key in ("input", "args", "arguments") if key in block), None)
        )
        identifier = block.get("call_id", block.get("id", block.get("tool_call_id")))
        server = block.get("server_name")
        return self.made(
            _USES[kind], identifier, block.get("name"), given, server=server, author=author
        )

    def _result(self, block: dict[str, Any]) -> None:
        """Hand the result in a block to its call, and add its message."""
        content = block.get("content", block.get("output"))
        identifier = block.get("tool_use_id", block.get("tool_call_id"))
        result, problem = plain(content, "\n"), as_map(content)
        kind, error, code = problem.get("type"), None, None
        if isinstance(kind, str) and kind.endswith("_error"):
            code = text_or_none(problem.get("error_code"))
            error = text_or_none(problem.get("error_message")) or code or kind
        elif block.get("is_error") is True or block.get("status") == "error":
            error = result if isinstance(result, str) else compact(result)
        is_decided = block.get("is_error") is False or block.get("status") == "success"
        self.answered(identifier, None, result, error, code, is_decided=is_decided)
        self.add(Message(role="tool", content=result, tool_call_id=text_or_none(identifier)))

    def _call(self, raw: Any, author: str | None) -> ToolCall | None:
        """Take one entry of ``tool_calls`` into account; one without a name is remarked."""
        if raw in (None, {}, ""):
            return None
        if not isinstance(raw, dict):
            self.remark_unread("entry of `tool_calls`")
            return None
        function, custom = raw.get("function"), raw.get("custom")
        if isinstance(custom, dict):
            return self.made(
                "custom", raw.get("id"), custom.get("name"), _input(custom), author=author
            )
        if isinstance(function, dict) and function.keys() <= {"name", "arguments"}:
            given = parse_arguments(function.get("arguments"))
            return self.made("function", raw.get("id"), function.get("name"), given, author=author)
        found, left = call_of(raw)  # as other libraries write them
        for key in left:
            self.remark(kind_of("call_key", key))
        if not isinstance(function, dict) and not isinstance(found.get("name"), str):
            self.remark_unread("entry of `tool_calls`")
            return None
        given = parse_arguments(found.get("arguments"))
        return self.made("function", raw.get("id"), found.get("name"), given, author=author)

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
        self.add(
            Message(
                role="assistant",
                content=parts or None,
                tool_calls=tuple(self._made),
                reasoning=thought,
            )
        )
        self._answering = False
        self._parts, self._thought, self._made = [], [], []

    def _said_in_item(self, entry: dict[str, Any]) -> None:
        self._open()
        content = entry.get("content")
        self.text = self.text_of(content, "") or self.text
        self._keep_tags(self.text)
        self.remark_unread_keys(entry, _READ_KEYS)
        for part in as_list(content):
            self.remark_unread(unread_part(part))
        self._parts += (
            content if isinstance(content, list) else [content] if content is not None else []
        )

    def _item(self, item: dict[str, Any], kind: Any) -> None:
        read = self._items.get(kind) if isinstance(kind, str) else None
        if read is not None:
            read(self, item)
        elif isinstance(kind, str) and names_a_call(kind):
            self._open()
            self.remark_unread(unread_part(item))
        elif isinstance(kind, str) and kind.endswith("_call"):
            self._built_in(item, kind.removesuffix("_call"))
        elif isinstance(kind, str) and kind.endswith("_output"):
            self._output(item)
        else:
            self.remark_unread(unread_part(item))
            self.remark(
                kind_of(
                    "item", "item_reference" if kind is None and item.keys() == {"id"} else kind
                )
            )

    def _reasoned(self, item: dict[str, Any]) -> None:
        self._open()
        self._thought += _thoughts(item.get("content"), item.get("summary"))

    def _function_call(self, item: dict[str, Any]) -> None:
        self._open()
        custom, author = item["type"] == "custom_tool_call", text_or_none(item.get("author"))
        kind, given = (
            ("custom", _input(item))
            if custom
            else ("function", parse_arguments(item.get("arguments")))
        )
        self._made.append(
            self.made(kind, item.get("call_id"), item.get("name"), given, author=author)
        )

    def _output(self, item: dict[str, Any]) -> None:
        self._close()
        identifier, form = item.get("call_id"), item["type"]
        if identifier is None and text_or_none(item.get("id")) in self._by_id:
            identifier = item["id"]
        name = item.get("name") or form.removesuffix("_output").removesuffix("_call")
        result = plain(item.get("output", item.get("result", item.get("tools"))))
        error, kind = _error_of(result)
        if error is None and item.get("status") == "failed":
            error = result if isinstance(result, str) and result else "failed"
        self.answered(identifier, name, result, error, kind)
        self.add(Message(role="tool", content=result, tool_call_id=text_or_none(identifier)))

    def _built_in(self, item: dict[str, Any], name: str) -> None:
        """Take a call of a built-in tool into account.

        Of one that the API runs, its result stands in the same item.
        """
        self._open()
        given: tuple[dict[str, Any] | None, str | None]
        if item.get("arguments") is None:
            given = (
                {
                    key: each
                    for key, each in item.items()
                    if key not in _BOOKKEEPING and each is not None
                },
                None,
            )
        else:
            given = parse_arguments(item["arguments"])
        call = self.made("builtin", item.get("call_id") or item.get("id"), name, given)
        self._made.append(call)
        _finish(call, item, ran_here=item.get("call_id") is not None or "execution" in item)

    def _mcp_call(self, item: dict[str, Any]) -> None:
        """Take a call of an MCP tool into account, one that waits for approval, or what came of
        that one.
        """
        self._open()
        asks = item["type"] == "mcp_approval_request"
        call = None if asks else self.unanswered(item.get("approval_request_id"))
        if call is None:
            given, server = parse_arguments(item.get("arguments")), item.get("server_label")
            call = self.made("mcp", item.get("id"), item.get("name"), given, server=server)
            self._made.append(call)
        if not asks:
            _finish(call, item)
        elif call.id is not None:
            self._pending[call.id] = call

    def _approved(self, item: dict[str, Any]) -> None:
        self._close()
        self._pending.pop(str(item.get("approval_request_id")), None)
        if item.get("approve") is False:
            self.denied(item.get("approval_request_id"), item.get("reason"))

    def _tools_listed(self, item: dict[str, Any]) -> None:
        self.listed += as_list(item.get("tools"))

    _items: ClassVar[dict[str, Callable[[Conversation, dict[str, Any]], None]]] = {
        "reasoning": _reasoned,
        "function_call": _function_call,
        "custom_tool_call": _function_call,
        "mcp_call": _mcp_call,
        "mcp_approval_request": _mcp_call,
        "mcp_approval_response": _approved,
        "mcp_list_tools": _tools_listed,
        "additional_tools": _tools_listed,
        "program": lambda self, item: self._built_in(item, "program"),
    }


def _oldest(waiting: deque[ToolCall] | None) -> ToolCall | None:
    """Return the first call that has no result yet; those before it are dropped."""
    while waiting:
        if waiting[0].status is None:
            return waiting[0]
        waiting.popleft()
    return None


def finish(
    call: ToolCall,
    result: Any,
    error: str | None,
    error_type: str | None = None,
    *,
    is_decided: bool = False,
) -> None:
    """Give a call that nobody has seen yet its result.

    Where the format does not say how it ended (``is_decided``), an exit code of a shell does.
    """
    force_setattr(call, "result", result)
    code = exit_code_of(call)
    if code is not None:
        force_setattr(call, "exit_code", code)
        if error is None and not is_decided and is_failure(code, call):
            error, error_type = f"the command ended with exit code {code}", "exit_code"
    force_setattr(call, "status", "ok" if error is None else "error")
    if error is not None:
        force_setattr(call, "error", error)
        force_setattr(call, "error_type", error_type)


def _finish(call: ToolCall, item: dict[str, Any], *, ran_here: bool = False) -> None:
    """Give a call the result that stands in its own item.

    One that the API has run may be complete without any.
    """
    result = next((item[key] for key in _OUTCOMES if item.get(key) is not None), None)
    error, status = item.get("error"), item.get("status")
    if error is not None or status == "failed":
        kind = (
            text_or_none(error.get("type", error.get("code"))) if isinstance(error, dict) else None
        )
        finish(call, result, error_text(error) if error is not None else "failed", kind)
    elif result is not None or (status == "completed" and not ran_here):
        finish(call, result, None)


def _input(call: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of a custom tool, which takes text, and that text."""
    return {"input": call.get("input")}, text_or_none(call.get("input"))


def _error_of(result: Any) -> tuple[str | None, str | None]:
    """Return what a result says went wrong, and the rule by which it is told.

    The API has no mark for it.
    """
    found = error_form(result)
    return (None, None) if found is None else (found.message, found.type)


def conversation_of(entries: Any, *, turns: Iterable[Any] | None = None) -> Conversation:
    """Return the conversation that a list of messages or items is, of whatever dialect each of them
    is.

    Args:
        entries: The messages and items.
        turns: In place of them lists of messages, each a turn.

    Raises:
        ValueError: It is no list, or nothing in it is understood.
    """
    lists = [entries] if turns is None else list(turns)
    if not all(isinstance(each, list) for each in lists):
        raise ValueError("messages: expected a list of messages")
    whole = [entry for each in lists for entry in each]
    found = dialect.of_entries(whole)
    talk = Conversation("block" if found is not None and found.name == "anthropic" else "part")
    talk.given_turns = turns is not None
    for number, each in enumerate(lists):
        if number:
            talk.turns.append([])
        talk.read(each)
    if whole and not any(talk.turns) and not talk.calls:
        keys = [
            ",".join(map(str, each)) if isinstance(each, dict) else type(each).__name__
            for each in whole[:1]
        ]
        raise ValueError(
            "messages: expected a list of messages, each an object with a role; found "
            f"{keys[0][:60]}"
        )
    return talk

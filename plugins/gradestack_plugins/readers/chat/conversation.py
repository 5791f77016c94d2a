"""The one decoder of conversations: messages and items of every dialect, each by its own form."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

from msgspec.structs import force_setattr

from gradestack import IMPOSSIBLE_AMOUNT, Message, ToolCall, compile_later, impossible_amounts
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers.chat import dialect, parse_arguments, text_or_none, word
from gradestack_plugins.readers.chat.calls import call_of, decoded
from gradestack_plugins.readers.chat.final_calls import final_text
from gradestack_plugins.readers.chat.forms import form_of
from gradestack_plugins.readers.chat.pieces import whole_answers
from gradestack_plugins.readers.chat.results import error_form, error_text, plain
from gradestack_plugins.readers.chat.shells import exit_code_of, is_failure
from gradestack_plugins.readers.chat.texts import calls_in, results_in
from gradestack_plugins.readers.chat.unread import (
    NOT_READ,
    names_a_call,
    not_read,
    unread_keys,
    unread_part,
    unread_tags,
)
from gradestack_plugins.readers.chat.usage import said_usage

Entry = dict[str, Any]
Arguments = tuple[dict[str, Any] | None, str | None]
"""Arguments of a call as an object, and as the text that was recorded."""

_WORD: Final = compile_later(r"[A-Za-z_][\w.:-]{0,47}")
_EXPECTED: Final = compile_later("expected|gold|ground_?truth|reference", re.IGNORECASE)
"""Beginnings of names of keys and columns that hold references."""
_BLOCK_CALLS: Final = {
    **dict.fromkeys(("tool_use", "tool_call", "invalid_tool_call", "function_call"), "function"),
    **dict.fromkeys(("server_tool_use", "server_tool_call"), "builtin"),
    "mcp_tool_use": "mcp",
}
"""Type of a block that is a call -> kind of the call."""
_BOOKKEEPING: Final = frozenset(
    """
    id type status call_id caller created_by async results outputs output result error server_label
    name approval_request_id pending_safety_checks fingerprint namespace execution author
    """.split()  # noqa: SIM905
)
"""Keys of a built-in call that are not its arguments."""
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
"""Keys of messages of other libraries that are read, or repeat other keys."""
_OUTCOMES: Final = ("results", "outputs", "output", "result")
_WHOLE_REPLY: Final = frozenset({"stop_reason", "usage", "model"})
"""Keys by which a message is a recorded answer of Anthropic's, not an item of Responses."""
_TEXTS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
}
"""Type of a part that is text -> the key of its text."""


def kind_of(category: str, name: Any) -> str:
    """Return the kind of a remark on a part, key, item, role or column that is not understood.

    For example ``part:input_audio``. A column of references comes with the option that compares it.
    """
    shown = name if isinstance(name, str) and _WORD.fullmatch(name) else "other"
    kind = f"{category}:{shown}"
    if category not in ("key", "column") or not _EXPECTED.match(shown):
        return kind
    is_calls = re.search("call|tool", kind)
    field, grader = ("calls", "tool_calls") if is_calls else ("text", "exact_match")
    return f"{kind}, to compare: --map expected.{field}={name} --grader {grader}"


def is_result(block: Any) -> bool:
    """Return whether a block is the result of a call, also of a server's tool."""
    kind = word(block, "type")
    return kind == "tool_result" or kind.endswith("_tool_result")


def _thoughts(*lists: Any) -> list[str]:
    """Return the texts of reasoning in the first of some lists of parts that has any."""
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

    Each message of the assistant is one answer. The items of one answer of Responses become one
    message. A user message begins a turn; messages before the first one belong to it. Results are
    given to calls as they are met: calls are complete when the conversation is read.

    Attributes:
        turns: Messages by turn.
        calls: All calls made so far.
        questions: The text of each user turn.
        text: The text of the last answer; None where it has none.
        step: Index of the last answer; -1 before the first.
        given_turns: Whether turns are given, not begun by the messages of the user.
        listed: Tools that MCP servers listed, as recorded.
        remarks: Number of things that were left out or lack their counterpart, by kind.
        part: The name of a part in remarks: ``part``, or ``block`` as Anthropic calls them.
        model: The model that the last answer with a model names.
        usages: Usage of the answers, as recorded.
        results: Whether results of calls are recorded.
    """

    def __init__(self, part: str = "part") -> None:
        """Begin an empty conversation; ``part`` names the record in remarks about unread parts."""
        self.part = part
        self.turns: list[list[Message]] = [[]]
        self.calls: list[ToolCall] = []
        self.questions: list[str] = []
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
        self._in_items = False
        self._item_parts: list[Any] = []
        self._item_thoughts: list[str] = []
        self._item_calls: list[ToolCall] = []
        self._pending: dict[str, ToolCall] = {}
        self._tagged: list[str] = []

    @property
    def has_unread_calls(self) -> bool:
        """Whether the assistant made calls in a form that is not decoded."""
        return any(kind.startswith(NOT_READ) for kind in self.remarks)

    def remark(self, kind: str) -> None:
        """Count something that was left out or lacks its counterpart."""
        self.remarks[kind] = self.remarks.get(kind, 0) + 1

    def remark_unread(self, kind: str | None) -> None:
        """Count a part, key or tag that holds calls nobody has decoded; None counts nothing."""
        if kind is not None:
            self.remark(not_read(kind))

    def remark_unread_keys(
        self, message: Entry, read: Collection[str] = _READ_KEYS, *, dotted: bool = True
    ) -> None:
        """Count the keys of an assistant's message that hold calls, except those that are read.

        Without ``dotted`` keys that are paths do not count.
        """
        for key in unread_keys(message, read):
            if dotted or "." not in key:
                match = _WORD.fullmatch(key)
                self.remark_unread(f"key `{key}`" if match else "key")

    def remark_amounts(self, recorded: Any) -> None:
        """Count recorded costs and times that are impossible."""
        for _ in range(impossible_amounts(recorded)):
            self.remark(IMPOSSIBLE_AMOUNT)

    def _remark_tags(self) -> None:
        """Count calls written as tags in the texts of a run that has no decoded call."""
        if not self.calls and not self.has_unread_calls:
            for text in self._tagged:
                for kind in unread_tags(text):
                    self.remark_unread(kind)
        self._tagged.clear()

    def add(self, message: Message) -> None:
        """Add a message to the turn at hand."""
        self.turns[-1].append(message)

    def add_question(self, message: Message, text: str) -> None:
        """Add a message of the user, which begins a turn."""
        if self.questions and not self.given_turns:
            self.turns.append([])
        self.questions.append(text)
        self.turns[-1].append(message)

    def text_of(self, content: Any, joint: str) -> str | None:
        """Return the text of a message's content, None for a content without text.

        Other parts than text are counted among the remarks.
        """
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            if content is not None:
                self.remark("content:other")
            return None
        texts = []
        for part in content:
            kind, text = None, part
            if isinstance(part, dict):
                kind = part.get("type")
                key = _TEXTS.get(kind) if isinstance(kind, str) else None
                text = part.get("text" if kind is None else key)
            if isinstance(text, str):
                texts.append(text)
            else:
                self.remark(kind_of(self.part, kind))
        return joint.join(texts) if texts else None

    def add_call(
        self,
        kind: Any,
        identifier: Any,
        name: Any,
        arguments: Arguments,
        *,
        server: Any = None,
        author: str | None = None,
    ) -> ToolCall:
        """Add a call of the answer at hand, and return it."""
        if not isinstance(name, str):
            self.remark("call_without_name")
        call = ToolCall(
            name=name if isinstance(name, str) else "",
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
            of_id = self._by_id.get(call.id) or deque()
            of_id.append(call)
            self._by_id[call.id] = of_id
        self._by_name.setdefault(call.name, deque()).append(call)
        return call

    def give_result(
        self,
        identifier: Any,
        name: Any,
        result: Any,
        error: str | None = None,
        error_type: str | None = None,
        *,
        is_decided: bool = False,
    ) -> None:
        """Give a result to the call of its id, or without an id to the oldest open one of its name.

        A result that has no call, or whose call has another already, is remarked.
        """
        has_id = isinstance(identifier, str)
        if has_id:
            waiting = self._by_id.get(identifier)
        else:
            waiting = self._by_name.get(name) if isinstance(name, str) else self._open_calls
        call = _oldest(waiting)
        if call is None:
            is_second = has_id and waiting is not None
            self.remark("second_result" if is_second else "result_without_call")
            return
        finish(call, result, error, error_type, is_decided=is_decided)
        if has_id and _oldest(waiting) is None:
            self._by_id[identifier] = _ANSWERED

    def _deny(self, identifier: Any, reason: Any) -> None:
        """Mark a call as one that was not allowed."""
        call = self.unanswered(identifier)
        if call is None:
            self.remark("result_without_call")
            return
        force_setattr(call, "status", "denied")
        force_setattr(call, "error", text_or_none(reason) or "not approved")

    def unanswered(self, identifier: Any) -> ToolCall | None:
        """Return the oldest call of an id that has no result yet."""
        return _oldest(self._by_id.get(identifier)) if isinstance(identifier, str) else None

    def finished(self) -> dict[str, Any]:
        """Return the fields of a sample that its conversation fills: input, turns, calls, text."""
        self._remark_tags()
        if self.results:
            for call in self.calls:
                if call.status is None:
                    self.remark("call_without_result")
        questions = self.questions
        question = tuple(questions) if len(questions) > 1 else None
        is_known = self.step >= 0 and not self.has_unread_calls
        turns = tuple([tuple(turn) for turn in self.turns]) if self.turns[0] else ()
        return {
            "input": questions[0] if len(questions) == 1 else question,
            "turns": turns,
            "calls": tuple(self.calls) if is_known else None,
            "text": final_text(self.calls, self.step, self.text),
        }

    def fields_beside(self, predicted: Iterable[str]) -> dict[str, Any]:
        """Return the fields of a sample that its conversation fills beside a prediction."""
        names = set(predicted)
        if "calls" in names:
            self._tagged.clear()
        fields = self.finished()
        is_unread = self.has_unread_calls
        is_open = self.step < 0 and any(self.turns)
        if is_open and not names and not is_unread:
            self.remark("question_without_answer")
        if self.model is not None:
            fields["model"] = self.model
        if self.usages:
            fields |= said_usage(self.usages)
        return {name: value for name, value in fields.items() if name not in names}

    def read(self, entries: Iterable[Any], *, is_in_api_form: bool = False) -> None:
        """Read messages and items to their end; those in the forms of the APIs as they are."""
        usual_entries = entries if is_in_api_form else self._usual_entries(entries)
        waiting = whole_answers(usual_entries)
        waiting.reverse()
        while waiting:
            self._read_entry(waiting.pop())
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

    def _remark_keys_of_form(self, recorded: Entry) -> None:
        """Count the keys of another library's message that hold calls and that its form leaves."""
        speaker = recorded.get("role", recorded.get("from", recorded.get("type")))
        if isinstance(speaker, str) and speaker.lower() in _NO_ASSISTANTS:
            return
        holders = [recorded, *(recorded[key] for key in ("data", "kwargs") if key in recorded)]
        for holder in holders:
            if isinstance(holder, dict):
                self.remark_unread_keys(holder, _READ_BY_FORMS, dotted=False)

    def _read_entry(self, entry: Any) -> None:
        """Read an entry of a history, a message or an item, and remark one that is neither."""
        if not isinstance(entry, dict):
            self.remark("message:other")
            return
        kind, role = entry.get("type"), entry.get("role")
        if isinstance(role, str) and (kind is None or kind == "message"):
            is_item = kind is not None and role == "assistant"
            if is_item and not entry.keys() & _WHOLE_REPLY:
                self._read_message_item(entry)
            else:
                self._read_message(entry, role)
        elif kind is None and entry.keys() != {"id"}:
            self.remark_unread(unread_part(entry))
            self.remark("message_without_role")
        else:
            self._read_item(entry, kind)

    def _read_message(self, entry: Entry, role: str) -> None:
        """Read a message by its role: a reply, a tool's results, a question or an instruction."""
        self._close()
        content = entry.get("content")
        if role == "assistant":
            self._read_reply(entry, content)
        elif role in {"tool", "function"}:
            results = results_in(content)
            for result in results:
                self._read_result(role, {**entry, **result})
            if not results:
                self._read_result(role, entry)
        elif role == "user":
            name = entry.get("name")
            self._read_question(content, text_or_none(name))
        else:
            if role not in {"system", "developer"}:
                self.remark(kind_of("role", role))
                self._remark_unread_speaker(entry, role)
            self.add(Message(role=role, content=content, name=text_or_none(entry.get("name"))))

    def _remark_unread_speaker(self, entry: Entry, role: str) -> None:
        """Count calls in a message whose role is not known."""
        if names_a_call(role) and entry.get("content"):
            match = _WORD.fullmatch(role)
            self.remark_unread(f"role `{role}`" if match else "role")
            return
        self.remark_unread_keys(entry, ("role", "content"))
        for part in as_list(entry.get("content")):
            self.remark_unread(unread_part(part))

    def _read_result(self, role: str, entry: Entry) -> None:
        """Give the result in a message of a tool to its call, and add the message."""
        result = plain(entry.get("content"))
        error, kind = _error_of(result)
        if entry.get("status") == "error":
            text = text_or_none(result) or error
            error, kind = text or compact(result), None
        tool_call_id = entry.get("tool_call_id")
        self._add_result(entry, tool_call_id, result, error, kind, role=role)

    def _read_block_result(self, block: Entry) -> None:
        """Give the result in a block to its call, and add its message."""
        content = block.get("content", block.get("output"))
        problem = as_map(content)
        result = plain(content, "\n")
        kind, error, code = problem.get("type"), None, None
        if isinstance(kind, str) and kind.endswith("_error"):
            code = text_or_none(problem.get("error_code"))
            error_message = problem.get("error_message")
            error = text_or_none(error_message) or code or kind
        elif block.get("is_error") is True or block.get("status") == "error":
            error = result if isinstance(result, str) else compact(result)
        identifier = block.get("tool_use_id", block.get("tool_call_id"))
        self._add_result({**block, "name": None}, identifier, result, error, code)

    def _add_result(
        self,
        entry: Entry,
        identifier: Any,
        result: Any,
        error: str | None,
        kind: str | None,
        *,
        role: str = "tool",
    ) -> None:
        """Add the message of a tool's result, and give the result to the call it answers."""
        name = entry.get("name")
        status = entry.get("status")
        is_decided = status == "success" or entry.get("is_error") is False
        self.give_result(identifier, name, result, error, kind, is_decided=is_decided)
        name, call_id = text_or_none(name), text_or_none(identifier)
        self.add(Message(role=role, content=result, name=name, tool_call_id=call_id))

    def _read_question(self, content: Any, name: str | None) -> None:
        """Read a message of the user; one that holds only results begins no turn."""
        results = results_in(content)
        if results and _oldest(self._open_calls) is not None:
            for result in results:
                self._read_result("tool", result)
            return
        if isinstance(content, list):
            blocks = [block for block in content if is_result(block)]
            for block in blocks:
                self._read_block_result(block)
            if blocks and len(blocks) == len(content):
                return
            if blocks:
                content = [block for block in content if not is_result(block)]
        text = self.text_of(content, "\n") or ""
        message = Message(role="user", content=content, name=name)
        self.add_question(message, text)

    def _read_reply(self, entry: Entry, content: Any) -> None:
        """Read a message of the assistant: its text, calls, thoughts, and results in its blocks."""
        self.step += 1
        self._note_model_and_usage(entry)
        self.remark_unread_keys(entry)
        name = text_or_none(entry.get("name"))
        author = text_or_none(entry.get("author")) or name
        calls = self._listed_calls(entry, author)
        if isinstance(content, str) and not calls and "<tool_call>" in content:
            content, tagged = calls_in(content)
            content = content or None if tagged else content
            calls = self._read_calls(tagged, author)
        blocks: list[Any] = content if isinstance(content, list) else []
        others, thoughts, results = self._read_blocks(blocks, calls, author)
        text = self.text_of(others if blocks else content, "")
        self._keep_tags(text)
        if text is None:
            transcript = as_map(entry.get("audio")).get("transcript")
            refusal = entry.get("refusal")
            text = text_or_none(refusal) or text_or_none(transcript)
        self.text = text or (None if calls else text)
        is_anthropic = bool(blocks) and self.part == "block"
        if is_anthropic or len(others) < len(blocks):
            content = _without_calls(others, text)
        reasoning = entry.get("reasoning")
        thought = text_or_none(entry.get("reasoning_content", reasoning))
        if thought is not None and not thoughts:
            thoughts = [thought]
        self.add(
            Message(
                role="assistant",
                content=text if content is None else content,
                tool_calls=tuple(calls),
                name=name,
                reasoning="\n".join(thoughts) if thoughts else None,
            )
        )
        for block in results:
            self._read_block_result(block)

    def _note_model_and_usage(self, entry: Entry) -> None:
        """Take over the model and the usage that a message of the assistant names."""
        model, usage = entry.get("model"), entry.get("usage")
        if not model and "modelInfo" in entry:
            model = as_map(entry["modelInfo"]).get("modelId")
        self.model = text_or_none(model) or self.model
        if not usage and "tokens" in as_map(entry.get("metrics")):
            usage = entry["metrics"]
        if usage:
            self.usages.append(usage)

    def _listed_calls(self, entry: Entry, author: str | None) -> list[ToolCall]:
        """Return the calls under ``tool_calls``, or without any the one under ``function_call``."""
        calls: list[ToolCall] = []
        listed = decoded(entry.get("tool_calls"))
        if listed:
            calls = self._read_calls(listed if isinstance(listed, list) else [listed], author)
        legacy = None if calls else decoded(entry.get("function_call"))
        if isinstance(legacy, dict) and legacy:
            calls = self._read_calls([{"function": legacy}], author)
        return calls

    def _read_calls(self, entries: Iterable[Any], author: str | None) -> list[ToolCall]:
        return [call for entry in entries if (call := self._read_call(entry, author))]

    def _keep_tags(self, text: str | None) -> None:
        """Keep a text of the assistant that holds closed tags, until the calls are known."""
        if text is not None and "</" in text:
            self._tagged.append(text)

    def _read_blocks(
        self, blocks: list[Any], calls: list[ToolCall], author: str | None
    ) -> tuple[list[Any], list[str], list[Entry]]:
        """Add the calls among the blocks of an answer to its calls.

        Returns:
            The blocks that are neither calls, thoughts nor results; the thoughts; the results.
        """
        others: list[Any] = []
        thoughts: list[str] = []
        results: list[Entry] = []
        if not blocks:
            return others, thoughts, results
        known = {call.id for call in calls if call.id is not None}
        for block in blocks:
            kind = word(block, "type")
            if kind == "text":
                others.append(block)
            elif kind in _BLOCK_CALLS:
                if text_or_none(_id_of_block(block)) not in known:
                    calls.append(self._read_block_call(block, kind, author))
            elif kind == "thinking" and isinstance(block.get("thinking"), str):
                thoughts.append(block["thinking"])
            elif kind == "reasoning":
                text = block.get("text")
                thought = text_or_none(block.get("reasoning", text))
                summary = block.get("summary")
                inner = _thoughts(block.get("content"), summary)
                thoughts += [thought] if thought else inner
            elif is_result(block):
                results.append(block)
            elif kind == "mcp_tool_listing":
                self.listed += as_list(block.get("tools"))
            else:
                self.remark_unread(unread_part(block))
                others.append(block)
        return others, thoughts, results

    def _read_block_call(self, block: Entry, kind: str, author: str | None) -> ToolCall:
        key = next(filter(block.__contains__, ("input", "args", "arguments")), "")
        arguments = parse_arguments(block.get(key))
        server, name = block.get("server_name"), block.get("name")
        identifier = _id_of_block(block)
        return self.add_call(
            _BLOCK_CALLS[kind], identifier, name, arguments, server=server, author=author
        )

    def _read_call(self, raw: Any, author: str | None) -> ToolCall | None:
        """Add the call in one entry of ``tool_calls``, and return it.

        An entry that holds no call is None: an empty one, and an unreadable one, which is counted
        among the remarks.
        """
        if not isinstance(raw, dict):
            if raw not in (None, ""):
                self.remark_unread("entry of `tool_calls`")
            return None
        if not raw:
            return None
        identifier, function, custom = raw.get("id"), raw.get("function"), raw.get("custom")
        if isinstance(custom, dict):
            text = _text_input(custom)
            return self.add_call("custom", identifier, custom.get("name"), text, author=author)
        call: Any = function
        if not isinstance(function, dict) or not function.keys() <= {"name", "arguments"}:
            call, unknown = call_of(raw)  # as other libraries write them
            for key in unknown:
                self.remark(kind_of("call_key", key))
            if not isinstance(function, dict) and not isinstance(call.get("name"), str):
                self.remark_unread("entry of `tool_calls`")
                return None
        arguments = parse_arguments(call.get("arguments"))
        return self.add_call("function", identifier, call.get("name"), arguments, author=author)

    def _open(self) -> None:
        """Begin an answer of several items, unless one is being read."""
        if not self._in_items:
            self._in_items = True
            self.step += 1
            self.text = None

    def _close(self) -> None:
        """End an answer of several items: one message."""
        if not self._in_items:
            return
        parts: Any = self._item_parts
        if len(parts) == 1 and isinstance(parts[0], str):
            parts = parts[0]
        thoughts = "\n".join(self._item_thoughts)
        tool_calls = tuple(self._item_calls)
        self.add(
            Message(
                role="assistant",
                content=parts or None,
                tool_calls=tool_calls,
                reasoning=thoughts if self._item_thoughts else None,
            )
        )
        self._in_items = False
        self._item_parts, self._item_thoughts, self._item_calls = [], [], []

    def _read_message_item(self, entry: Entry) -> None:
        """Read an assistant's message of OpenAI's Responses API."""
        self._open()
        content = entry.get("content")
        text = self.text_of(content, "")
        self.text = text or self.text
        self._keep_tags(self.text)
        self.remark_unread_keys(entry)
        for part in as_list(content):
            self.remark_unread(unread_part(part))
        if content is not None:
            self._item_parts += content if isinstance(content, list) else [content]

    def _read_item(self, item: Entry, kind: Any) -> None:
        """Read an item of the Responses API by its type, and remark an unknown one."""
        name = kind if isinstance(kind, str) else ""
        read = _ITEMS.get(name)
        if read is not None:
            read(self, item)
        elif names_a_call(name):
            self._open()
            self.remark_unread(unread_part(item))
        elif name.endswith("_call"):
            self._read_built_in(item, name.removesuffix("_call"))
        elif name.endswith("_output"):
            self._read_output(item)
        else:
            is_reference = kind is None and item.keys() == {"id"}
            self.remark_unread(unread_part(item))
            self.remark(kind_of("item", "item_reference" if is_reference else kind))

    def _read_reasoning(self, item: Entry) -> None:
        self._open()
        self._item_thoughts += _thoughts(item.get("content"), item.get("summary"))

    def _read_function_call(self, item: Entry) -> None:
        self._open()
        kind, arguments = "function", parse_arguments(item.get("arguments"))
        if item["type"] == "custom_tool_call":
            kind, arguments = "custom", _text_input(item)
        author, name = text_or_none(item.get("author")), item.get("name")
        call_id = item.get("call_id")
        call = self.add_call(kind, call_id, name, arguments, author=author)
        self._item_calls.append(call)

    def _read_output(self, item: Entry) -> None:
        """Give the result in an item to its call."""
        self._close()
        identifier, kind = item.get("call_id"), item["type"]
        if identifier is None and text_or_none(item.get("id")) in self._by_id:
            identifier = item["id"]
        name = item.get("name") or kind.removesuffix("_output").removesuffix("_call")
        tools = item.get("tools")
        result = plain(item.get("output", item.get("result", tools)))
        error, error_type = _error_of(result)
        if error is None and item.get("status") == "failed":
            error = text_or_none(result) or "failed"
        self.give_result(identifier, name, result, error, error_type)
        self.add(Message(role="tool", content=result, tool_call_id=text_or_none(identifier)))

    def _read_built_in(self, item: Entry, name: str) -> None:
        """Read a call of a built-in tool.

        The result of a call that the API runs stands in the same item.
        """
        self._open()
        if item.get("arguments") is None:
            recorded = {key: item[key] for key in item if item[key] is not None}
            own_keys = recorded.keys() - _BOOKKEEPING
            arguments: Arguments = ({key: item[key] for key in item if key in own_keys}, None)
        else:
            arguments = parse_arguments(item["arguments"])
        identifier = item.get("call_id") or item.get("id")
        call = self.add_call("builtin", identifier, name, arguments)
        self._item_calls.append(call)
        call_id = item.get("call_id")
        is_client_run = call_id is not None or "execution" in item
        _finish_item(call, item, is_client_run=is_client_run)

    def _read_mcp_call(self, item: Entry) -> None:
        """Read a call of an MCP tool, a request to approve it, or the result of an approved one."""
        self._open()
        is_request = item["type"] == "mcp_approval_request"
        call = None if is_request else self.unanswered(item.get("approval_request_id"))
        if call is None:
            arguments, server = parse_arguments(item.get("arguments")), item.get("server_label")
            identifier = item.get("id")
            call = self.add_call("mcp", identifier, item.get("name"), arguments, server=server)
            self._item_calls.append(call)
        if not is_request:
            _finish_item(call, item)
        elif call.id is not None:
            self._pending[call.id] = call

    def _read_approval(self, item: Entry) -> None:
        self._close()
        request = item.get("approval_request_id")
        self._pending.pop(str(request), None)
        if item.get("approve") is False:
            self._deny(request, item.get("reason"))

    def _read_tools(self, item: Entry) -> None:
        self.listed += as_list(item.get("tools"))

    def _read_program(self, item: Entry) -> None:
        self._read_built_in(item, "program")


_ITEMS: Final[dict[str, Callable[[Conversation, Entry], None]]] = {
    "reasoning": Conversation._read_reasoning,  # noqa: SLF001
    "function_call": Conversation._read_function_call,  # noqa: SLF001
    "custom_tool_call": Conversation._read_function_call,  # noqa: SLF001
    "mcp_call": Conversation._read_mcp_call,  # noqa: SLF001
    "mcp_approval_request": Conversation._read_mcp_call,  # noqa: SLF001
    "mcp_approval_response": Conversation._read_approval,  # noqa: SLF001
    "mcp_list_tools": Conversation._read_tools,  # noqa: SLF001
    "additional_tools": Conversation._read_tools,  # noqa: SLF001
    "program": Conversation._read_program,  # noqa: SLF001
}
"""Type of an item of Responses -> the method that reads it."""


def _id_of_block(block: Entry) -> Any:
    key = next(filter(block.__contains__, ("call_id", "id", "tool_call_id")), "")
    return block.get(key)


def _without_calls(others: list[Any], text: str | None) -> Any:
    """Return the content of an answer whose calls, thoughts and results are left out."""
    parts = [block for block in others if isinstance(block, dict)]
    is_text = len(parts) == 1 and parts[0].get("type") == "text"
    return text if is_text and not parts[0].get("citations") else parts or None


_ANSWERED: Final = deque[ToolCall]()
"""In place of the calls of an id that have their results: an empty queue takes much memory."""


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


def _finish_item(call: ToolCall, item: Entry, *, is_client_run: bool = False) -> None:
    """Give a call the result that stands in its own item.

    A call that the API has run may be complete without any.
    """
    result = next((item[key] for key in _OUTCOMES if item.get(key) is not None), None)
    error, status = item.get("error"), item.get("status")
    if error is not None or status == "failed":
        about = as_map(error)
        code = about.get("code")
        kind = text_or_none(about.get("type", code))
        finish(call, result, "failed" if error is None else error_text(error), kind)
    elif result is not None or (status == "completed" and not is_client_run):
        finish(call, result, None)


def _text_input(call: Entry) -> Arguments:
    """Return the arguments of a custom tool, which takes text, and that text."""
    return {"input": call.get("input")}, text_or_none(call.get("input"))


def _error_of(result: Any) -> tuple[str | None, str | None]:
    """Return the error that a result describes, and the rule by which it is recognised."""
    form = error_form(result)
    return (None, None) if form is None else (form.message, form.type)


def conversation_of(entries: Any, *, turns: Iterable[Any] | None = None) -> Conversation:
    """Return the conversation of a list of messages or items, of any dialects.

    Args:
        entries: The messages and items.
        turns: In place of them lists of messages, each a turn.

    Raises:
        ValueError: It is not a list, or nothing in it is understood.
    """
    lists = [entries] if turns is None else list(turns)
    if not all(isinstance(messages, list) for messages in lists):
        raise ValueError("messages: expected a list of messages")
    flat = [entry for messages in lists for entry in messages]
    log = dialect.of_entries(flat)
    talk = Conversation("block" if log is not None and log.name == "anthropic" else "part")
    talk.given_turns = turns is not None
    for number, messages in enumerate(lists):
        if number:
            talk.turns.append([])
        talk.read(messages)
    if flat and not any(talk.turns) and not talk.calls:
        first = flat[0]
        shown = ",".join(map(str, first)) if isinstance(first, dict) else type(first).__name__
        expected = "expected a list of messages, each an object with a role"
        raise ValueError(f"messages: {expected}; found {shown[:60]}")
    return talk

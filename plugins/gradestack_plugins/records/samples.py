"""The sample of a mapped record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import BadRecord, Sample, Source, replace
from gradestack_plugins.readers.chat import dialect
from gradestack_plugins.readers.chat.anthropic_messages import AnthropicConversation
from gradestack_plugins.readers.chat.conversation import Conversation
from gradestack_plugins.readers.chat.openai_messages import OpenAIConversation
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.records.mapping import Mapped, form_of, left_out

_FORM = JsonLines()


def sample_of(
    record: Mapping[str, Any], fields: Iterable[Mapped], source: Source, *, made: str, table: bool
) -> Sample | BadRecord:
    """Return the sample of a record, or what is wrong with it."""
    fields = tuple(fields)
    form = form_of(record, fields, table=table)
    remarks = left_out(record, frozenset(each.steps[0] for each in fields))
    if "id" not in form:
        remarks["id_made"] = 1
    messages = form.pop("messages", None)
    tools = form.get("tools")
    if isinstance(tools, list):
        form["tools"] = [_tool(each) for each in tools]
    sample = _FORM.sample({"version": 2, "id": made, **form}, source)
    if isinstance(sample, BadRecord):
        return replace(sample, native=record)
    changes: dict[str, Any] = {}
    if messages is not None:
        talk = _conversation(messages)
        changes |= _said(sample, talk, form.get("predicted"))
        remarks |= talk.remarks
    if isinstance(sample.agent_usage, dict) and sample.agent_usage and sample.usage is None:
        remarks["usage:other"] = 1
    if "id_made" in remarks:
        changes["facets"] = {**sample.facets, "id_made": True}
    return replace(sample, remarks=remarks, **changes)


def _tool(raw: Any) -> Any:
    """Return a tool in OpenAI's form; Anthropic's calls its parameters otherwise."""
    if not isinstance(raw, dict) or "parameters" in raw or not isinstance(raw.get("input_schema"), dict):
        return raw
    return {**raw, "parameters": raw["input_schema"]}


def _conversation(messages: Any) -> Conversation:
    if not isinstance(messages, list):
        raise ValueError("messages: expected a list of messages")  # noqa: TRY004 - what makes a bad record
    found = dialect.of_entries(messages)
    if found is None and messages:
        raise ValueError("messages: expected a list of messages, each an object with a role")
    talk = AnthropicConversation() if found is not None and found.name == "anthropic" else OpenAIConversation()
    talk.read(messages)
    return talk


def _said(sample: Sample, talk: Conversation, predicted: Any) -> dict[str, Any]:
    """Return what the conversation says and no column does."""
    said = talk.finished()
    if said["calls"] is None and predicted is None:
        talk.remark("question_without_answer")
    if sample.turns:
        del said["turns"]
    if sample.input is not None:
        del said["input"]
    own = isinstance(predicted, dict)
    if predicted is not None and (not own or "calls" in predicted):
        del said["calls"]
    if predicted is not None and (not own or "text" in predicted):
        del said["text"]
    return said

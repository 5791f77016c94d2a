"""Samples of conversations, with the tools on offer and the errors that ended a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gradestack import Fault, Sample, Source, Status, ToolSpec
from gradestack.jsonio import compact
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, kind_of
from gradestack_plugins.readers.chat.identity import Identity
from gradestack_plugins.readers.chat.usage import said_usage

PROVIDES: Final = frozenset(
    """
    cluster model run input turns calls text tools usage agent_usage ended trace facets remarks
    status error source expected recorded
    """.split()  # noqa: SIM905
)
"""Fields that samples of conversations have."""
_SERVERS: Final = frozenset({"mcp", "mcp_toolset"})
"""Types of tools that stand for all tools that a server lists."""
_NO_BUILT_IN: Final = _SERVERS | {"function", "custom", "namespace"}
"""Types of tools that are not the name of a built-in one."""


def log_sample(known: Identity, talk: Conversation, source: Source, **more: Any) -> Sample:
    """Return the sample of a conversation.

    Args:
        known: Its ids, facets and remarks.
        talk: The conversation.
        source: Where it stands.
        more: Other fields of the sample.
    """
    fields = talk.finished()
    calls = fields["calls"]
    is_unknown = calls is None and any(talk.turns)
    if is_unknown and "error" not in more and not talk.has_unread_calls:
        talk.remark("question_without_answer")
    agent_usage = more.get("agent_usage")
    if agent_usage is None and talk.usages:
        more |= said_usage(talk.usages)
    fields |= more
    model = more.get("model")
    fields["model"] = model or talk.model
    if known.remarks:
        remarks = {**known.remarks, **talk.remarks}
    else:
        remarks = talk.remarks
    return Sample(
        id=known.id,
        run=known.run,
        cluster=known.cluster,
        trace=known.trace,
        facets=known.facets,
        remarks=remarks,
        source=source,
        **fields,
    )


def broken(error: Any, default: str) -> dict[str, Any]:
    """Return the status and the error of a run that ended in an error.

    Args:
        error: The error as recorded: an object, a text, or anything else.
        default: The message of an error that has none.
    """
    kind, message = "", default
    if isinstance(error, Mapping):
        error = error.get("error", error)
    if isinstance(error, Mapping):
        code = error.get("code")
        kinds = (code, error.get("type"))
        kind = next((name for name in kinds if isinstance(name, str)), "")
        text = error.get("message")
        message = text if isinstance(text, str) else compact(error)
    elif isinstance(error, str):
        message = error
    fault = Fault(category="target", code="target_error", message=message or default, type=kind)
    return {"status": Status.FAILED, "error": fault}


def type_of(raw: Any) -> Any:
    """Return the type that an entry names; None for anything that is not an object."""
    return raw.get("type") if isinstance(raw, dict) else None


def tools_of(talk: Conversation, *parts: Mapping[str, Any]) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a request, or those its answer names, and those that servers listed."""
    for part in parts:
        functions = part.get("functions")
        if isinstance(functions, list) and part["functions"]:
            talk.remark("functions")
        tools = part.get("tools")
        if isinstance(tools, list):
            if talk.listed:
                tools = [tool for tool in tools if type_of(tool) not in _SERVERS]
            recorded = [*tools, *talk.listed]
            return tuple(_tools(recorded, talk))
    if talk.listed:
        return tuple(_tools(talk.listed, talk))
    return None


def _tools(recorded: Iterable[Any], talk: Conversation) -> Iterator[ToolSpec]:
    """Yield functions, custom tools, tools of servers, and built-in ones by their type."""
    for tool in recorded:
        kind = type_of(tool)
        if kind == "namespace" and isinstance(tool.get("tools"), list):
            yield from _tools(tool["tools"], talk)
            continue
        custom = None
        if isinstance(tool, dict):
            custom = tool.get("custom")
        spec = tool_spec(custom if isinstance(custom, dict) else tool)
        if spec is None and isinstance(kind, str) and kind not in _NO_BUILT_IN:
            spec = ToolSpec(name=kind)
        if spec is None:
            talk.remark(kind_of("tool", kind))
        else:
            yield spec

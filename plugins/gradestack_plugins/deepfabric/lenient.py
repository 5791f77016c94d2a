"""Dataset records read leniently: what they say of the truth, whatever else is wrong with them."""

from __future__ import annotations

from gradestack import JSON, ToolCall
from gradestack_plugins.deepfabric.records import Truth, json_text, looks_like_call, refuse


def lenient_truth(record: JSON) -> Truth:
    """Return the ground truth as far as the record has one; rules that grading does not depend on are not checked.

    Expected arguments may be an object too.

    Raises:
        RecordProblem: The record is not an object, or an execution names no tool or holds no argument object.
    """
    if not isinstance(record, dict):
        refuse("record", "must be an object", record)
    listed = record.get("messages")
    messages = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    asked = [entry.get("content") for entry in messages if entry.get("role") == "user"]
    query = next((text for text in (*asked[:1], record.get("question")) if isinstance(text, str)), "")
    spoken = [entry.get("content") for entry in reversed(messages) if entry.get("role") == "assistant"]
    texts = [text for text in spoken if isinstance(text, str)]
    context = record.get("tool_context")
    executions = context.get("executions") if isinstance(context, dict) else None
    calls = tuple(_lenient_call(entry) for entry in executions) if isinstance(executions, list) else ()
    answer = record.get("final_answer")
    if not isinstance(answer, str) or not answer:
        plain = (text for text in texts if not looks_like_call(text)) if context else iter(())
        answer = next(plain, texts[0] if texts else None)
    return Truth(query, calls, answer)


def _lenient_call(execution: JSON) -> ToolCall:
    name = execution.get("function_name") if isinstance(execution, dict) else None
    if not isinstance(name, str) or not name:
        refuse("tool_context.executions", "an execution must name its function", execution)
    raw = execution.get("arguments")
    arguments = json_text("tool_context.executions.arguments", raw) if isinstance(raw, str) else raw
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        refuse("tool_context.executions.arguments", "must hold a JSON object", raw)
    return ToolCall(name=name, arguments=arguments, raw_arguments=raw if isinstance(raw, str) else None)

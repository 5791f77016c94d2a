"""Messages of agents' libraries, as the chat messages that they stand for.

A library is a row of ``LIBRARIES``: how its message is told, and the function that reads it. Each
function yields chat messages and blocks as the APIs have them; what it does not know it hands on
with its type, so that it is counted as not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.readers.chat import word

Entry = dict[str, Any]


class Library(NamedTuple):
    """How the messages of a library are told, and read."""

    is_own: Callable[[Entry], bool]
    read: Callable[[Entry], Iterator[Any]]


def library_form(entry: Entry) -> Callable[[Entry], Iterator[Any]] | None:
    """Return what reads a message of a library; None where no library is known by it."""
    read = reader_of_parts(entry.get("content")) if "role" in entry else None
    if read is None:
        read = next((library.read for library in LIBRARIES if library.is_own(entry)), None)
    return read


def reader_of_parts(content: Any) -> Callable[[Entry], Iterator[Any]] | None:
    """Return what reads a message with such parts: of AI SDK, Azure, Converse, goose; None of others."""
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        read = _READERS_OF_PARTS.get(word(part, "type"))
        if read is not None:
            return read
        if not _CONVERSE.isdisjoint(part):
            return _read_converse
        if isinstance(part.get(_AZURE_RESULT), dict):
            return _read_azure_result
    return None


def _call(identifier: Any, name: Any, arguments: Any) -> Entry:
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


def _result(identifier: Any, name: Any, content: Any, *, failed: bool | None = None) -> Entry:
    """Return the message of a result; ``failed`` says how its call ended, where that is known."""
    entry: Entry = {"role": "tool", "tool_call_id": identifier, "name": name, "content": content}
    if failed is not None:
        entry["status"] = "error" if failed else "success"
    return entry


def _text(text: Any) -> Entry:
    return {"type": "text", "text": text}


def _thought(text: Any) -> Entry:
    return {"type": "thinking", "thinking": as_text(text)}


def _first(holder: Mapping[str, Any], *keys: str) -> Any:
    """Return what stands under the first of some keys that an object has."""
    return next((holder[key] for key in keys if holder.get(key) is not None), None)


# --- AI SDK: model messages, UI messages, toolInvocations, steps -----------------------------------

_AI_PARTS: Final = frozenset({"tool-call", "tool-result", "tool-error"})
_GOOSE_PARTS: Final = frozenset({"toolRequest", "toolResponse", "frontendToolRequest"})
_AZURE_RESULT: Final = "tool_result"
_CONVERSE: Final = frozenset({"toolUse", "toolResult", "reasoningContent"})
"""Keys of a part of Bedrock's Converse, which Strands writes, too."""
_FAILED_OUTPUTS: Final = frozenset({"error-text", "error-json", "execution-denied"})


def _ai_result(part: Entry) -> Entry:
    """Return the message of a ``tool-result`` or ``tool-error`` part."""
    identifier, name = part.get("toolCallId"), part.get("toolName")
    if part.get("type") == "tool-error":
        error = part.get("error")
        said = as_map(error).get("message") or (compact(error) if error else "the tool failed")
        text = error if isinstance(error, str) else said
        return _result(identifier, name, text, failed=True)
    output = _first(part, "output", "result")
    kind = word(output, "type")
    if kind and ("value" in output or kind == "execution-denied"):
        failed = True if kind in _FAILED_OUTPUTS else None
        return _result(identifier, name, output.get("value", output.get("reason")), failed=failed)
    return _result(identifier, name, output, failed=True if part.get("isError") is True else None)


def _ai_blocks(parts: Iterable[Any]) -> tuple[list[Any], list[Entry]]:
    """Return the blocks of an answer, and the messages of the results among its parts."""
    blocks: list[Any] = []
    results: list[Entry] = []
    for part in parts:
        kind = word(part, "type")
        if kind == "tool-call":
            arguments = _first(part, "input", "args")
            blocks.append(_call(part.get("toolCallId"), part.get("toolName"), arguments))
        elif kind in {"tool-result", "tool-error"}:
            results.append(_ai_result(part))
        elif kind == "reasoning":
            blocks.append(_thought(part.get("text")))
        else:
            blocks.append(part)
    return blocks, results


def _read_ai_message(entry: Entry) -> Iterator[Any]:
    """Yield a model message: an answer with its calls, then the results in it."""
    blocks, results = _ai_blocks(as_list(entry.get("content")))
    if blocks:
        yield {**entry, "content": blocks}
    yield from results


def _is_ui_message(entry: Entry) -> bool:
    parts = entry.get("parts")
    if not isinstance(parts, list) or "role" not in entry:
        return False
    kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
    return bool(kinds) and all(isinstance(kind, str) for kind in kinds)


def _ui_tool(part: Entry) -> tuple[Entry, Entry | None]:
    """Return the call of a tool's part, and its result; None where there is none yet."""
    invocation = as_map(part.get("toolInvocation")) or part
    kind = str(part.get("type"))
    own_name = kind.removeprefix("tool-") if "toolInvocation" not in part else None
    name = _first(invocation, "toolName") or own_name
    identifier, state = invocation.get("toolCallId"), word(invocation, "state")
    call = _call(identifier, name, _first(invocation, "input", "args", "rawInput"))
    if state == "output-error":
        return call, _result(identifier, name, invocation.get("errorText"), failed=True)
    if state == "output-denied":
        reason = as_map(invocation.get("approval")).get("reason", "not approved")
        return call, _result(identifier, name, reason, failed=True)
    if state in {"output-available", "result"}:
        return call, _result(identifier, name, _first(invocation, "output", "result"))
    return call, None


def _read_ui_message(entry: Entry) -> Iterator[Any]:
    """Yield a UI message, its steps as an answer each."""
    about = {key: entry[key] for key in ("metadata",) if key in entry}
    role, parts = entry["role"], entry["parts"]
    if role != "assistant":
        texts = [part for part in parts if part.get("type") != "step-start"]
        yield {**about, "role": role, "content": texts}
        return
    blocks: list[Any] = []
    results: list[Entry] = []
    for part in [*parts, {"type": "step-start"}]:
        kind = part["type"]
        if kind == "step-start":
            if blocks:
                yield {**about, "role": role, "content": blocks}
            yield from results
            blocks, results = [], []
        elif kind.startswith("tool-") or kind == "dynamic-tool":
            call, result = _ui_tool(part)
            blocks.append(call)
            results += [] if result is None else [result]
        elif kind == "reasoning":
            blocks.append(_thought(_first(part, "text", "reasoning")))
        elif not kind.startswith(("data-", "source-")):
            blocks.append(_text(part.get("text")) if kind == "text" else part)


def _read_invocations(entry: Entry) -> Iterator[Any]:
    """Yield a message with ``toolInvocations``: its calls and results by step, then what it says."""
    steps: dict[str, list[Entry]] = {}
    for invocation in as_list(entry.get("toolInvocations")):
        if isinstance(invocation, dict):
            steps.setdefault(compact(invocation.get("step")), []).append(invocation)
    for invocations in steps.values():
        pairs = [_ui_tool({"type": "tool-", **invocation}) for invocation in invocations]
        yield {"role": "assistant", "content": [call for call, _ in pairs]}
        yield from (result for _, result in pairs if result is not None)
    if entry.get("content"):
        yield {"role": "assistant", "content": entry["content"]}


def _is_ai_step(entry: Entry) -> bool:
    """Return whether an object is a step of ``generateText``, also one without its getters."""
    has_parts = "toolCalls" in entry or isinstance(entry.get("content"), list)
    return "finishReason" in entry and "role" not in entry and has_parts


def _read_ai_step(entry: Entry) -> Iterator[Any]:
    """Yield one of the steps of ``generateText``."""
    parts = entry.get("content")
    if not isinstance(parts, list):
        calls = [{**as_map(call), "type": "tool-call"} for call in as_list(entry.get("toolCalls"))]
        results = as_list(entry.get("toolResults"))
        parts = [*calls, *({**as_map(result), "type": "tool-result"} for result in results)]
        parts = [_text(entry["text"]), *parts] if entry.get("text") else parts
    blocks, results = _ai_blocks(parts)
    model = word(entry.get("response"), "modelId") or word(entry.get("model"), "modelId")
    answer = {"role": "assistant", "content": blocks, "usage": entry.get("usage")}
    yield {**answer, "model": model} if model else answer
    yield from results


# --- Bedrock Converse and Strands -----------------------------------------------------------------


def _converse_content(parts: Any) -> Any:
    """Return the content of a result: one JSON value or text as it is, several as a list."""
    values = [_first(part, "json", "text") if isinstance(part, dict) else part for part in parts]
    return values[0] if len(values) == 1 else values


def _read_converse(entry: Entry) -> Iterator[Any]:
    """Yield a message of Converse: what is said, its calls, and its results."""
    blocks: list[Any] = []
    results: list[Entry] = []
    for recorded in entry["content"]:
        part = as_map(recorded)
        text, use, result = part.get("text"), part.get("toolUse"), part.get("toolResult")
        if isinstance(text, str):
            blocks.append(_text(text))
        elif isinstance(use, dict):
            blocks.append(_call(use.get("toolUseId"), use.get("name"), use.get("input")))
        elif isinstance(result, dict):
            content = _converse_content(as_list(result.get("content")))
            failed = True if result.get("status") == "error" else None
            results.append(_result(result.get("toolUseId"), None, content, failed=failed))
        elif "reasoningContent" in part:
            thought = as_map(as_map(part["reasoningContent"]).get("reasoningText"))
            blocks.append(_thought(thought.get("text")))
        else:
            blocks.append({"type": next(iter(part), None), **part})
    yield from results
    if blocks:
        yield {**entry, "content": blocks}


# --- Azure AI Evaluation -------------------------------------------------------------------------


def _read_azure_result(entry: Entry) -> Iterator[Any]:
    """Yield the message of a result, which stands in a part of its own."""
    results = [as_map(part).get(_AZURE_RESULT) for part in entry["content"]]
    yield {**entry, "content": results[0] if len(results) == 1 else results}


# --- goose ---------------------------------------------------------------------------------------


def _read_goose(entry: Entry) -> Iterator[Any]:
    """Yield a message of goose: what is said, its calls, and its results."""
    blocks: list[Any] = []
    results: list[Entry] = []
    for part in entry["content"]:
        kind = word(part, "type")
        if kind in {"toolRequest", "frontendToolRequest"}:
            call = as_map(part.get("toolCall"))
            made = as_map(call.get("value")) or call
            blocks.append(_call(part.get("id"), made.get("name"), made.get("arguments")))
        elif kind == "toolResponse":
            results.append(_goose_result(part))
        elif kind not in {"redactedThinking", "systemNotification", "actionRequired"}:
            blocks.append(part)
    yield from results
    if blocks:
        yield {key: value for key, value in entry.items() if key != "id"} | {"content": blocks}


def _goose_result(part: Entry) -> Entry:
    outcome = part.get("toolResult")
    said = as_map(outcome)
    if said.get("status") == "error":
        return _result(part.get("id"), None, said.get("error"), failed=True)
    value = said.get("value", outcome)
    content = as_map(value).get("content", value)
    failed = as_map(value).get("isError")
    return _result(part.get("id"), None, content, failed=failed if failed is True else None)


# --- pydantic-ai ---------------------------------------------------------------------------------


def _is_pydantic_message(entry: Entry) -> bool:
    is_kind = word(entry, "kind") in {"request", "response"}
    return is_kind and isinstance(entry.get("parts"), list)


def _read_pydantic(entry: Entry) -> Iterator[Any]:
    """Yield a ModelMessage: prompts and results of a request, or what a response says and calls."""
    blocks: list[Any] = []
    results: list[Entry] = []
    for part in entry["parts"]:
        said, kind = as_map(part), word(part, "part_kind")
        content, name, call_id = map(said.get, ("content", "tool_name", "tool_call_id"))
        if kind in {"system-prompt", "user-prompt"}:
            yield {"role": kind.removesuffix("-prompt"), "content": content}
        elif kind == "retry-prompt" and name is None:
            yield {"role": "developer", "content": content}
        elif kind in {"tool-return", "retry-prompt", "builtin-tool-return"}:
            failed = kind == "retry-prompt" or word(part, "outcome") not in {"", "success"}
            results.append(_result(call_id, name, content, failed=True if failed else None))
        elif kind in {"tool-call", "builtin-tool-call"}:
            blocks.append(_call(call_id, name, said.get("args")))
        elif kind == "thinking":
            blocks.append(_thought(content))
        else:
            blocks.append(_text(content) if kind == "text" else {"type": kind, **said})
    if blocks:
        about = {"usage": entry.get("usage"), "model": entry.get("model_name")}
        yield {"role": "assistant", "content": blocks, **about}
    yield from results


# --- AutoGen -------------------------------------------------------------------------------------

_AUTOGEN_TEXTS: Final = frozenset(
    {"TextMessage", "ToolCallSummaryMessage", "StopMessage", "HandoffMessage", "MultiModalMessage"}
    | {"StructuredMessage", "UserMessage", "AssistantMessage", "SystemMessage"}
)
_AUTOGEN_SILENT: Final = frozenset(
    {
        "ThoughtEvent",
        "ModelClientStreamingChunkEvent",
        "UserInputRequestedEvent",
        "SelectSpeakerEvent",
    }
    | {"MemoryQueryEvent", "CodeGenerationEvent", "CodeExecutionEvent", "SelectorEvent"}
)
_AUTOGEN_CALLS: Final = "ToolCallRequestEvent"
_AUTOGEN_RESULTS: Final = frozenset({"ToolCallExecutionEvent", "FunctionExecutionResultMessage"})
_AUTOGEN: Final = _AUTOGEN_TEXTS | _AUTOGEN_SILENT | _AUTOGEN_RESULTS | {_AUTOGEN_CALLS}


def _read_autogen(entry: Entry) -> Iterator[Any]:
    """Yield a message or event of AgentChat, or a message of a model client."""
    kind, content, source = entry["type"], entry.get("content"), entry.get("source")
    if kind in _AUTOGEN_RESULTS:
        for result in as_list(content):
            said = as_map(result)
            failed = said.get("is_error") is True
            name, text = said.get("name"), said.get("content")
            yield _result(said.get("call_id"), name, text, failed=True if failed else None)
    elif kind == "SystemMessage":
        yield {"role": "system", "content": content}
    elif kind == "UserMessage" or (source == "user" and kind in _AUTOGEN_TEXTS):
        yield {"role": "user", "content": content}
    elif kind not in _AUTOGEN_SILENT:
        answer: Entry = {"role": "assistant", "usage": entry.get("models_usage"), "author": source}
        thought = entry.get("thought")
        answer |= {"reasoning_content": thought} if isinstance(thought, str) else {}
        calls = content if isinstance(content, list) and kind != "MultiModalMessage" else None
        yield answer | ({"content": content} if calls is None else {"tool_calls": calls})


# --- smolagents ----------------------------------------------------------------------------------


def _is_smolagents_step(entry: Entry) -> bool:
    is_task = isinstance(entry.get("task"), str) and entry.keys() <= {"task", "task_images"}
    return is_task or ("step_number" in entry and "observations" in entry)


def _read_smolagents(entry: Entry) -> Iterator[Any]:
    """Yield a step of an agent's memory: the task, or an answer with its calls and observations."""
    if "task" in entry:
        yield {"role": "user", "content": entry["task"]}
        return
    said = as_map(entry.get("model_output_message"))
    listed = as_list(entry.get("tool_calls")) or as_list(said.get("tool_calls"))
    calls = [_smolagents_call(call) for call in listed]
    usage = entry.get("token_usage") or said.get("token_usage")
    final = _smolagents_answer(entry, calls) if entry.get("is_final_answer") is True else None
    text = final if final is not None else entry.get("model_output") or None
    yield {"role": "assistant", "content": text, "tool_calls": calls, "usage": usage}
    yield from _smolagents_results(entry, calls)


def _smolagents_call(call: Any) -> Entry:
    """Return a call of a step; code that a CodeAgent runs is the argument ``code``."""
    function = as_map(as_map(call).get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    if name == "python_interpreter" and isinstance(arguments, str):
        arguments = {"code": arguments}
    return {"id": as_map(call).get("id"), "name": name, "arguments": arguments}


def _smolagents_answer(entry: Entry, calls: list[Entry]) -> str | None:
    """Return the final answer as text: what the step gave, else what was handed to the tool."""
    given = [call["arguments"] for call in calls if call["name"] == "final_answer"]
    answer = entry.get("action_output")
    if answer is None and given:
        answer = as_map(given[-1]).get("answer")
    if answer is None:
        answer = entry.get("observations")
    return answer if isinstance(answer, str | None) else compact(answer)


def _smolagents_results(entry: Entry, calls: list[Entry]) -> Iterator[Entry]:
    """Yield the results of a step, which has one text for all of its calls, or one error.

    An error of one of several calls names its tool; what became of the others is not known.
    """
    error, observed = entry.get("error"), entry.get("observations")
    if not error:
        for call in calls if observed is not None else ():
            yield _result(call["id"], None, observed)
        return
    message = as_map(error).get("message", compact(error))
    named = [call for call in calls if f"'{call['name']}'" in str(message)]
    for call in named or calls:
        yield _result(call["id"], None, message, failed=True)


# --- OpenHands -----------------------------------------------------------------------------------

_NO_ACTIONS: Final = frozenset(
    {"", "system", "recall", "change_agent_state", "null", "condensation", "condensation_request"}
)
_NO_OBSERVATIONS: Final = frozenset(
    {"", "agent_state_changed", "recall", "null", "condense", "user_rejected"}
)
_ABOUT_ACTIONS: Final = frozenset(
    {"thought", "is_input", "blocking", "confirmation_state", "hidden", "security_risk"}
)


def _is_openhands_event(entry: Entry) -> bool:
    return "source" in entry and ("action" in entry or "observation" in entry) and "id" in entry


def _read_openhands(entry: Entry) -> Iterator[Any]:
    """Yield an event: what the user or the agent says, a call, or what came of one."""
    about = as_map(entry.get("tool_call_metadata"))
    arguments = as_map(entry.get("args"))
    if "observation" in entry:
        yield from _openhands_result(entry, about)
    elif entry["action"] == "message":
        role = "user" if entry["source"] == "user" else "assistant"
        yield {"role": role, "content": arguments.get("content", entry.get("message"))}
    elif word(entry, "action") not in _NO_ACTIONS:
        yield _openhands_call(entry, about, arguments)


def _openhands_call(entry: Entry, about: Mapping[str, Any], arguments: Mapping[str, Any]) -> Entry:
    response = as_map(about.get("model_response"))
    choice = as_map(next(iter(as_list(response.get("choices"))), None))
    listed = as_list(as_map(choice.get("message")).get("tool_calls"))
    identifier = about.get("tool_call_id", f"event-{entry['id']}")
    calls = [call for call in listed if as_map(call).get("id") == identifier]
    if not calls:
        own = {key: value for key, value in arguments.items() if key not in _ABOUT_ACTIONS}
        name = about.get("function_name", entry["action"])
        calls = [{"id": identifier, "name": name, "arguments": own}]
    text = _first(arguments, "final_thought", "thought") or None
    answer = {"role": "assistant", "content": text, "tool_calls": calls}
    return answer | {"usage": response.get("usage"), "model": response.get("model")}


def _openhands_result(entry: Entry, about: Mapping[str, Any]) -> Iterator[Entry]:
    if word(entry, "observation") in _NO_OBSERVATIONS and not about:
        return
    identifier = about.get("tool_call_id", f"event-{entry.get('cause')}")
    code = as_map(as_map(entry.get("extras")).get("metadata")).get("exit_code")
    content = entry.get("content")
    if isinstance(code, int):
        content = {"content": content, "exit_code": code}
    failed = True if entry["observation"] == "error" else None
    yield _result(identifier, None, content, failed=failed)


# --- Cline and Roo Code: calls as tags in texts ---------------------------------------------------

TOOL_TAGS: Final = frozenset(
    """
    execute_command read_file write_to_file replace_in_file apply_diff search_files list_files
    list_code_definition_names browser_action use_mcp_tool access_mcp_resource
    ask_followup_question attempt_completion plan_mode_respond new_task switch_mode insert_content
    search_and_replace codebase_search update_todo_list fetch_instructions
    """.split()  # noqa: SIM905
)
"""Tools that coding agents call by a tag of their name."""
_TOOL_TAG: Final = re.compile(rf"<({'|'.join(sorted(TOOL_TAGS))})>(.*?)</\1>", re.DOTALL)
_PARAMETER: Final = re.compile(r"<(\w{1,64})>\n?(.*?)\n?</\1>", re.DOTALL)
_RESULT_HEAD: Final = re.compile(r"\[(\w{1,64})(?: for '.*?')?\] Result:\s*", re.DOTALL)
_ENVIRONMENT: Final = "<environment_details>"


def has_tags(entry: Entry) -> bool:
    """Return whether a chat message calls tools by tags in its text, or holds their results."""
    content = entry.get("content")
    if isinstance(content, str) and "</" not in content and not content.startswith("["):
        return False
    if entry.get("role") == "assistant":
        return any("</" in text and _TOOL_TAG.search(text) for text in texts_of(content))
    first = next(iter(texts_of(content)), "")
    return first.startswith("[") and _RESULT_HEAD.match(first) is not None


def texts_of(content: Any) -> list[str]:
    """Return the texts that a content is made of."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return [text for text in texts if isinstance(text, str)]


def _read_tags(entry: Entry) -> Iterator[Any]:
    """Yield an answer with the calls that its tags are, or the result of the call before."""
    content = entry.get("content")
    if entry.get("role") != "assistant":
        yield _tagged_result(texts_of(content))
        return
    calls: list[Entry] = []
    blocks: list[Any] = []
    for part in content if isinstance(content, list) else [content]:
        texts = texts_of([part])
        if not texts:
            blocks.append(part)
        for text in texts:
            for tag in _TOOL_TAG.finditer(text):
                calls.append({"name": tag[1], "arguments": dict(_PARAMETER.findall(tag[2]))})
            rest = _TOOL_TAG.sub("", text).strip()
            blocks += [_text(rest)] if rest else []
    yield {**entry, "content": blocks or None, "tool_calls": calls}


def _tagged_result(texts: list[str]) -> Entry:
    """Return the message of a result, which names its tool in front."""
    head = _RESULT_HEAD.match(texts[0])
    name = None if head is None else head[1]
    said = [texts[0] if head is None else texts[0][head.end() :], *texts[1:]]
    lines = [text for text in said if text and not text.lstrip().startswith(_ENVIRONMENT)]
    return _result(None, name, "\n".join(lines))


_READERS_OF_PARTS: Final[dict[str, Callable[[Entry], Iterator[Any]]]] = {
    **dict.fromkeys(_GOOSE_PARTS, _read_goose),
    **dict.fromkeys(_AI_PARTS, _read_ai_message),
}
"""Type of a part -> what reads a message that has one."""
LIBRARIES: Final = (
    Library(_is_ui_message, _read_ui_message),
    Library(lambda entry: isinstance(entry.get("toolInvocations"), list), _read_invocations),
    Library(_is_ai_step, _read_ai_step),
    Library(lambda entry: "role" in entry and has_tags(entry), _read_tags),
    Library(_is_pydantic_message, _read_pydantic),
    Library(lambda entry: word(entry, "type") in _AUTOGEN, _read_autogen),
    Library(_is_smolagents_step, _read_smolagents),
    Library(_is_openhands_event, _read_openhands),
)
"""Libraries whose messages are known by themselves; the first that knows a message reads it."""

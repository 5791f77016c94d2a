"""Messages of agents' libraries, as the chat messages that they stand for.

A library is a row of ``LIBRARIES``: whether a message is its own, and the function that reads it.
Each function yields chat messages and blocks as the APIs have them. A part that it does not know
keeps its type, so that it is counted as not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import msgspec

from gradestack import compile_later
from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.readers.chat import word

Entry = dict[str, Any]
ReadMessage = Callable[[Entry], Iterator[Any]]


class Library(msgspec.Struct, frozen=True):
    """A library's messages, which have a key."""

    key: str
    is_own: Callable[[Entry], bool]
    read: ReadMessage


def library_reader(entry: Entry) -> ReadMessage | None:
    """Return the reader for the library that wrote a message; None where no known one did.

    AutoGen's messages are known by their ``type``, those with a role by the parts of their
    content, all others by a key of their own.
    """
    if word(entry, "type") in _AUTOGEN:
        return _read_autogen
    read = None
    if "role" in entry:
        read = reader_of_parts(entry.get("content"))
    if read is not None:
        return read
    for library in LIBRARIES:
        if library.key in entry and library.is_own(entry):
            return library.read
    return None


def reader_of_parts(content: Any) -> ReadMessage | None:
    """Return the function that reads a message with such parts; None for parts of the APIs."""
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if isinstance(kind, str) and kind in _READERS_OF_PARTS:
            return _READERS_OF_PARTS[kind]
        if not _CONVERSE.isdisjoint(part):
            return _read_converse
        if _AZURE_RESULT in part and isinstance(part[_AZURE_RESULT], dict):
            return _read_azure_result
    return None


def call_block(identifier: Any, name: Any, arguments: Any) -> Entry:
    """Return the block of a call."""
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


def text_block(text: Any) -> Entry:
    """Return the block of a text."""
    return {"type": "text", "text": text}


def thought_block(text: Any) -> Entry:
    """Return the block of a thought."""
    return {"type": "thinking", "thinking": as_text(text)}


def result_message(identifier: Any, name: Any, content: Any, *, failed: bool = False) -> Entry:
    """Return the message of a result; without ``failed`` its content says how the call ended."""
    message = {"role": "tool", "tool_call_id": identifier, "name": name, "content": content}
    return {**message, "status": "error"} if failed else message


def split_pieces(pieces: Iterable[Any]) -> tuple[list[Any], list[Entry]]:
    """Return the blocks of an answer, and the messages of results among its pieces."""
    blocks: list[Any] = []
    results: list[Entry] = []
    for piece in pieces:
        is_result = isinstance(piece, dict) and piece.get("role") == "tool"
        (results if is_result else blocks).append(piece)
    return blocks, results


def _first(holder: Mapping[str, Any], *keys: str) -> Any:
    """Return the value of the first of some keys that an object has."""
    return next((holder[key] for key in keys if holder.get(key) is not None), None)


# --- AI SDK: model messages, UI messages, toolInvocations, steps ---------------------------------

_AI_PARTS: Final = frozenset({"tool-call", "tool-result", "tool-error"})
_GOOSE_PARTS: Final = frozenset({"toolRequest", "toolResponse", "frontendToolRequest"})
_AZURE_RESULT: Final = "tool_result"
_CONVERSE: Final = frozenset({"toolUse", "toolResult", "reasoningContent"})
"""Keys of a part of Bedrock's Converse, which Strands writes, too."""
_FAILED_OUTPUTS: Final = frozenset({"error-text", "error-json", "execution-denied"})


def _ai_result(part: Entry) -> Entry:
    """Return the message of a ``tool-result`` or ``tool-error`` part."""
    identifier = part.get("toolCallId")
    name = part.get("toolName")
    if part.get("type") == "tool-error":
        error = part.get("error")
        message = as_map(error).get("message")
        text = message or (compact(error) if error else "the tool failed")
        text = error if isinstance(error, str) else text
        return result_message(identifier, name, text, failed=True)
    output = _first(part, "output", "result")
    kind = word(output, "type")
    failed = part.get("isError") is True
    if kind and ("value" in output or kind == "execution-denied"):
        failed = kind in _FAILED_OUTPUTS
        reason = output.get("reason")
        output = output.get("value", reason)
    return result_message(identifier, name, output, failed=failed)


def _ai_piece(part: Any) -> Any:
    kind = word(part, "type")
    if kind == "tool-call":
        arguments = _first(part, "input", "args")
        tool_call_id = part.get("toolCallId")
        return call_block(tool_call_id, part.get("toolName"), arguments)
    if kind in {"tool-result", "tool-error"}:
        return _ai_result(part)
    if kind == "reasoning":
        return thought_block(part.get("text"))
    return part


def _read_ai_message(entry: Entry) -> Iterator[Any]:
    """Yield a model message: an answer with its calls, then the results in it."""
    blocks, results = split_pieces(map(_ai_piece, as_list(entry.get("content"))))
    if blocks:
        yield {**entry, "content": blocks}
    yield from results


def _is_ui_message(entry: Entry) -> bool:
    parts = entry["parts"]
    if not isinstance(parts, list) or not parts or "role" not in entry:
        return False
    return all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts)


def _ui_call(part: Entry) -> Iterator[Entry]:
    """Yield the call of a tool's part, and its result where there is one."""
    tool_invocation = part.get("toolInvocation")
    invocation = as_map(tool_invocation) or part
    own_name = None
    if "toolInvocation" not in part:
        own_name = str(part.get("type")).removeprefix("tool-")
    identifier = invocation.get("toolCallId")
    state = word(invocation, "state")
    name = _first(invocation, "toolName") or own_name
    arguments = _first(invocation, "input", "args", "rawInput")
    yield call_block(identifier, name, arguments)
    if state == "output-error":
        error_text = invocation.get("errorText")
        yield result_message(identifier, name, error_text, failed=True)
    elif state == "output-denied":
        approval = invocation.get("approval")
        reason = as_map(approval).get("reason", "not approved")
        yield result_message(identifier, name, reason, failed=True)
    elif state in {"output-available", "result"}:
        yield result_message(identifier, name, _first(invocation, "output", "result"))


def _ui_pieces(part: Entry) -> Iterator[Any]:
    """Yield a part of a message of the AI SDK's user interface as blocks and results."""
    kind = part["type"]
    if kind.startswith("tool-") or kind == "dynamic-tool":
        yield from _ui_call(part)
    elif kind == "reasoning":
        yield thought_block(_first(part, "text", "reasoning"))
    elif kind == "text":
        yield text_block(part.get("text"))
    elif not kind.startswith(("data-", "source-")):
        yield part


def _read_ui_message(entry: Entry) -> Iterator[Any]:
    """Yield a UI message, its steps as an answer each."""
    about = {key: entry[key] for key in ("metadata",) if key in entry}
    role = entry["role"]
    parts = entry["parts"]
    if role != "assistant":
        texts = [part for part in parts if part["type"] != "step-start"]
        yield {**about, "role": role, "content": texts}
        return
    steps: list[list[Entry]] = [[]]
    for part in parts:
        if part["type"] == "step-start":
            steps.append([])
        else:
            steps[-1].append(part)
    for step in steps:
        pieces = chain.from_iterable(map(_ui_pieces, step))
        blocks, results = split_pieces(pieces)
        if blocks:
            yield {**about, "role": role, "content": blocks}
        yield from results


def _read_invocations(entry: Entry) -> Iterator[Any]:
    """Yield a message with ``toolInvocations``: its calls and results by step, then its text."""
    steps: dict[str, list[Entry]] = {}
    for invocation in as_list(entry.get("toolInvocations")):
        if isinstance(invocation, dict):
            step = compact(invocation.get("step"))
            steps.setdefault(step, []).append({"type": "tool-", **invocation})
    for invocations in steps.values():
        pieces = chain.from_iterable(map(_ui_call, invocations))
        calls, results = split_pieces(pieces)
        yield {"role": "assistant", "content": calls}
        yield from results
    if entry.get("content"):
        yield {"role": "assistant", "content": entry["content"]}


def _is_ai_step(entry: Entry) -> bool:
    """Return whether an object is a step of ``generateText``, also one without its getters."""
    has_parts = "toolCalls" in entry or isinstance(entry.get("content"), list)
    return "role" not in entry and has_parts


def _read_ai_step(entry: Entry) -> Iterator[Any]:
    """Yield one of the steps of ``generateText``."""
    parts = entry.get("content")
    if not isinstance(parts, list):
        if entry.get("text"):
            parts = [text_block(entry["text"])]
        else:
            parts = []
        for key, kind in (("toolCalls", "tool-call"), ("toolResults", "tool-result")):
            parts += [{**as_map(part), "type": kind} for part in as_list(entry.get(key))]
    blocks, results = split_pieces(map(_ai_piece, parts))
    response = entry.get("response")
    model = word(response, "modelId") or word(entry.get("model"), "modelId")
    usage = entry.get("usage")
    reply = {"role": "assistant", "content": blocks, "usage": usage}
    yield {**reply, "model": model} if model else reply
    yield from results


# --- Bedrock Converse and Strands -----------------------------------------------------------------


def _converse_content(parts: Any) -> Any:
    """Return the content of a result: one JSON value or text as it is, several as a list."""
    values = [_first(part, "json", "text") if isinstance(part, dict) else part for part in parts]
    if len(values) == 1:
        return values[0]
    return values


def _converse_piece(recorded: Any) -> Any:
    """Convert a block of Bedrock's Converse API into a text, a call, a result or a thought."""
    part = as_map(recorded)
    text = part.get("text")
    if isinstance(text, str):
        return text_block(text)
    call = part.get("toolUse")
    result = part.get("toolResult")
    if isinstance(call, dict):
        tool_use_id = call.get("toolUseId")
        arguments = call.get("input")
        return call_block(tool_use_id, call.get("name"), arguments)
    if isinstance(result, dict):
        parts = as_list(result.get("content"))
        content = _converse_content(parts)
        failed = result.get("status") == "error"
        identifier = result.get("toolUseId")
        return result_message(identifier, None, content, failed=failed)
    if "reasoningContent" in part:
        reasoning_content = as_map(part["reasoningContent"])
        reasoning_text = reasoning_content.get("reasoningText")
        thought = as_map(reasoning_text)
        return thought_block(thought.get("text"))
    return {"type": next(iter(part), None), **part}


def _read_converse(entry: Entry) -> Iterator[Any]:
    """Yield a message of Converse: its results, then its texts and calls."""
    blocks, results = split_pieces(map(_converse_piece, entry["content"]))
    yield from results
    if blocks:
        yield {**entry, "content": blocks}


# --- Azure AI Evaluation -------------------------------------------------------------------------


def _read_azure_result(entry: Entry) -> Iterator[Any]:
    """Yield the message of a result, which stands in a part of its own."""
    parts = entry["content"]
    results = [as_map(part).get(_AZURE_RESULT) for part in parts]
    yield {**entry, "content": results[0] if len(results) == 1 else results}


# --- goose ---------------------------------------------------------------------------------------

_GOOSE_NOTICES: Final = frozenset({"redactedThinking", "systemNotification", "actionRequired"})


def _goose_piece(part: Any) -> Any:
    kind = word(part, "type")
    if kind in {"toolRequest", "frontendToolRequest"}:
        request = as_map(part.get("toolCall"))
        call = as_map(request.get("value")) or request
        identifier = part.get("id")
        arguments = call.get("arguments")
        return call_block(identifier, call.get("name"), arguments)
    return _goose_result(part) if kind == "toolResponse" else part


def _read_goose(entry: Entry) -> Iterator[Any]:
    """Yield a message of goose: its results, then its texts and calls."""
    parts = [part for part in entry["content"] if word(part, "type") not in _GOOSE_NOTICES]
    blocks, results = split_pieces(map(_goose_piece, parts))
    yield from results
    if blocks:
        values_by_key = {key: value for key, value in entry.items() if key != "id"}
        yield values_by_key | {"content": blocks}


def _goose_result(part: Entry) -> Entry:
    """Convert Goose's answer of a tool into the result of its call, with its failure."""
    identifier = part.get("id")
    outcome = part.get("toolResult")
    about = as_map(outcome)
    if about.get("status") == "error":
        error = about.get("error")
        return result_message(identifier, None, error, failed=True)
    value = about.get("value", outcome)
    content = as_map(value).get("content", value)
    is_error = as_map(value).get("isError")
    failed = is_error is True
    return result_message(identifier, None, content, failed=failed)


# --- pydantic-ai ---------------------------------------------------------------------------------


def _is_pydantic_message(entry: Entry) -> bool:
    is_kind = word(entry, "kind") in {"request", "response"}
    return is_kind and isinstance(entry.get("parts"), list)


def _pydantic_piece(recorded: Any) -> Any:
    """Convert a part of a pydantic-ai message into a message, a call, a result or a block."""
    part = as_map(recorded)
    kind = word(recorded, "part_kind")
    content, name, call_id = map(part.get, ("content", "tool_name", "tool_call_id"))
    if kind in {"system-prompt", "user-prompt"}:
        return {"role": kind.removesuffix("-prompt"), "content": content}
    if kind == "retry-prompt" and name is None:
        return {"role": "developer", "content": content}
    if kind in {"tool-return", "retry-prompt", "builtin-tool-return"}:
        is_failure = kind == "retry-prompt" or word(recorded, "outcome") not in {"", "success"}
        return result_message(call_id, name, content, failed=is_failure)
    if kind in {"tool-call", "builtin-tool-call"}:
        return call_block(call_id, name, part.get("args"))
    if kind == "thinking":
        return thought_block(content)
    return text_block(content) if kind == "text" else {"type": kind, **part}


def _read_pydantic(entry: Entry) -> Iterator[Any]:
    """Yield a ModelMessage: prompts and results of a request, or a response with its calls."""
    pieces, results = split_pieces(map(_pydantic_piece, entry["parts"]))
    yield from (piece for piece in pieces if "role" in piece)
    blocks = [piece for piece in pieces if "role" not in piece]
    if blocks:
        usage = entry.get("usage")
        model_name = entry.get("model_name")
        about = {"usage": usage, "model": model_name}
        yield {"role": "assistant", "content": blocks, **about}
    yield from results


# --- AutoGen -------------------------------------------------------------------------------------

_AUTOGEN_TEXTS: Final = frozenset(
    """
    TextMessage ToolCallSummaryMessage StopMessage HandoffMessage MultiModalMessage
    StructuredMessage UserMessage AssistantMessage SystemMessage
    """.split()  # noqa: SIM905
)
_AUTOGEN_SILENT: Final = frozenset(
    """
    ThoughtEvent ModelClientStreamingChunkEvent UserInputRequestedEvent SelectSpeakerEvent
    MemoryQueryEvent CodeGenerationEvent CodeExecutionEvent SelectorEvent
    """.split()  # noqa: SIM905
)
_AUTOGEN_RESULTS: Final = frozenset({"ToolCallExecutionEvent", "FunctionExecutionResultMessage"})
_AUTOGEN_CALLS: Final = "ToolCallRequestEvent"
_AUTOGEN: Final = _AUTOGEN_TEXTS | _AUTOGEN_SILENT | _AUTOGEN_RESULTS | {_AUTOGEN_CALLS}


def _read_autogen(entry: Entry) -> Iterator[Any]:
    """Yield a message or event of AgentChat, or a message of a model client."""
    kind = entry["type"]
    content = entry.get("content")
    source = entry.get("source")
    if kind in _AUTOGEN_RESULTS:
        for result in as_list(content):
            about = as_map(result)
            name = about.get("name")
            text = about.get("content")
            failed = about.get("is_error") is True
            call_id = about.get("call_id")
            yield result_message(call_id, name, text, failed=failed)
    elif kind == "SystemMessage":
        yield {"role": "system", "content": content}
    elif kind == "UserMessage" or (source == "user" and kind in _AUTOGEN_TEXTS):
        yield {"role": "user", "content": content}
    elif kind not in _AUTOGEN_SILENT:
        are_calls = isinstance(content, list) and kind != "MultiModalMessage"
        models_usage = entry.get("models_usage")
        thought = entry.get("thought")
        yield {
            "role": "assistant",
            "usage": models_usage,
            "author": source,
            "reasoning_content": thought,
            "tool_calls" if are_calls else "content": content,
        }


# --- smolagents ----------------------------------------------------------------------------------


def _is_smolagents_task(entry: Entry) -> bool:
    task = entry["task"]
    return isinstance(task, str) and entry.keys() <= {"task", "task_images"}


def _read_smolagents(entry: Entry) -> Iterator[Any]:
    """Yield a step of an agent's memory: the task, or an answer with its calls and observations."""
    if "task" in entry:
        yield {"role": "user", "content": entry["task"]}
        return
    output = as_map(entry.get("model_output_message"))
    tool_calls = entry.get("tool_calls")
    listed = as_list(tool_calls) or as_list(output.get("tool_calls"))
    calls = [_smolagents_call(call) for call in listed]
    token_usage = entry.get("token_usage")
    usage = token_usage or output.get("token_usage")
    text = None
    if entry.get("is_final_answer") is True:
        text = _smolagents_final_text(entry, calls)
    if text is None:
        text = entry.get("model_output") or None
    yield {"role": "assistant", "content": text, "tool_calls": calls, "usage": usage}
    yield from _smolagents_results(entry, calls)


def _smolagents_call(call: Any) -> Entry:
    """Convert a call of a smolagents step; code of a CodeAgent becomes the argument ``code``."""
    function = as_map(as_map(call).get("function"))
    name = function.get("name")
    arguments = function.get("arguments")
    if name == "python_interpreter" and isinstance(arguments, str):
        arguments = {"code": arguments}
    return {"id": as_map(call).get("id"), "name": name, "arguments": arguments}


def _smolagents_final_text(entry: Entry, calls: list[Entry]) -> str | None:
    """Return the final answer as text: the output of the step, else the argument of the tool."""
    arguments = [call["arguments"] for call in calls if call["name"] == "final_answer"]
    output = entry.get("action_output")
    if output is None and arguments:
        last_argument = as_map(arguments[-1])
        output = last_argument.get("answer")
    if output is None:
        output = entry.get("observations")
    if isinstance(output, str | None):
        return output
    return compact(output)


def _smolagents_results(entry: Entry, calls: list[Entry]) -> Iterator[Entry]:
    """Yield the results of a step, which has one text for all of its calls, or one error.

    An error of one of several calls names its tool; the results of the others are not known.
    """
    error = entry.get("error")
    observed = entry.get("observations")
    if not error:
        for call in calls if observed is not None else ():
            yield result_message(call["id"], None, observed)
        return
    message = as_map(error).get("message", compact(error))
    named = [call for call in calls if f"'{call['name']}'" in str(message)]
    for call in named or calls:
        yield result_message(call["id"], None, message, failed=True)


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
    return ("action" in entry or "observation" in entry) and "id" in entry


def _read_openhands(entry: Entry) -> Iterator[Any]:
    """Yield an event: a text of the user or the agent, a call, or a result."""
    about = as_map(entry.get("tool_call_metadata"))
    arguments = as_map(entry.get("args"))
    if "observation" in entry:
        yield from _openhands_result(entry, about)
    elif entry["action"] == "message":
        role = "user" if entry["source"] == "user" else "assistant"
        message = entry.get("message")
        yield {"role": role, "content": arguments.get("content", message)}
    elif word(entry, "action") not in _NO_ACTIONS:
        yield _openhands_call(entry, about, arguments)


def _openhands_call(entry: Entry, about: Mapping[str, Any], arguments: Mapping[str, Any]) -> Entry:
    """Convert an action of OpenHands into the reply that called it, with usage and model."""
    response = as_map(about.get("model_response"))
    choices = as_list(response.get("choices"))
    if choices:
        first_choice = as_map(choices[0])
        message = as_map(first_choice.get("message"))
    else:
        message = {}
    identifier = about.get("tool_call_id", f"event-{entry['id']}")
    listed = as_list(message.get("tool_calls"))
    calls = [call for call in listed if as_map(call).get("id") == identifier]
    if not calls:
        named = {key: arguments[key] for key in arguments if key not in _ABOUT_ACTIONS}
        name = about.get("function_name", entry["action"])
        calls = [{"id": identifier, "name": name, "arguments": named}]
    return {
        "role": "assistant",
        "content": _first(arguments, "final_thought", "thought") or None,
        "tool_calls": calls,
        "usage": response.get("usage"),
        "model": response.get("model"),
    }


def _openhands_result(entry: Entry, about: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield an observation of OpenHands as the result of its call, with its exit code."""
    if word(entry, "observation") in _NO_OBSERVATIONS and not about:
        return
    identifier = about.get("tool_call_id", f"event-{entry.get('cause')}")
    extras = entry.get("extras")
    metadata = as_map(as_map(extras).get("metadata"))
    code = metadata.get("exit_code")
    content = entry.get("content")
    if isinstance(code, int):
        content = {"content": content, "exit_code": code}
    observation = entry["observation"]
    yield result_message(identifier, None, content, failed=observation == "error")


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
_TOOL_TAG: Final = compile_later(rf"<({'|'.join(sorted(TOOL_TAGS))})>(.*?)</\1>", re.DOTALL)
_PARAMETER: Final = compile_later(r"<(\w{1,64})>\n?(.*?)\n?</\1>", re.DOTALL)
_RESULT_HEAD: Final = compile_later(r"\[(\w{1,64})(?: for '.*?')?\] Result:\s*", re.DOTALL)
_ENVIRONMENT: Final = "<environment_details>"


def has_tags(entry: Entry) -> bool:
    """Return whether a chat message calls tools by tags in its text, or holds their results."""
    is_reply = entry.get("role") == "assistant"
    for text in texts_of(entry.get("content")):
        if not is_reply:
            return text.startswith("[") and bool(_RESULT_HEAD.match(text))
        if "</" in text and _TOOL_TAG.search(text):
            return True
    return False


def texts_of(content: Any) -> list[str]:
    """Return the texts that a content is made of."""
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for part in content if isinstance(content, list) else (content,):
        if isinstance(part, dict):
            text = part.get("text")
        else:
            text = part
        if isinstance(text, str):
            texts.append(text)
    return texts


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
            continue
        for tag in _TOOL_TAG.finditer(texts[0]):
            matches = _PARAMETER.findall(tag[2])
            arguments = dict(matches)
            calls.append({"name": tag[1], "arguments": arguments})
        rest = _TOOL_TAG.sub("", texts[0]).strip()
        if rest:
            blocks.append(text_block(rest))
    yield {**entry, "content": blocks or None, "tool_calls": calls}


def _tagged_result(texts: list[str]) -> Entry:
    """Return a tool's result as a message; the text begins with the tool's name."""
    head = _RESULT_HEAD.match(texts[0])
    if head is not None:
        end = head.end()
        first_text = texts[0][end:]
        texts = [first_text, *texts[1:]]
    lines = [text for text in texts if text and not text.lstrip().startswith(_ENVIRONMENT)]
    return result_message(None, None if head is None else head[1], "\n".join(lines))


_READERS_OF_PARTS: Final[dict[str, ReadMessage]] = {
    **dict.fromkeys(_GOOSE_PARTS, _read_goose),
    **dict.fromkeys(_AI_PARTS, _read_ai_message),
}
"""Type of a part -> the function that reads a message that has one."""
LIBRARIES: Final = (
    Library("parts", _is_ui_message, _read_ui_message),
    Library(
        "toolInvocations",
        lambda entry: isinstance(entry["toolInvocations"], list),
        _read_invocations,
    ),
    Library("finishReason", _is_ai_step, _read_ai_step),
    Library("role", has_tags, _read_tags),
    Library("kind", _is_pydantic_message, _read_pydantic),
    Library("task", _is_smolagents_task, _read_smolagents),
    Library("step_number", lambda entry: "observations" in entry, _read_smolagents),
    Library("source", _is_openhands_event, _read_openhands),
)
"""Libraries; the first whose own a message is reads it."""

"""Results as samples.

Trajectories with their calls, references, facets, and why a recorded run or grade is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec

from gradestack import (
    JSON,
    BadRecord,
    Expectation,
    Fault,
    Message,
    Sample,
    Source,
    Status,
    ToolCall,
    replace,
)
from gradestack.jsonio import as_list, as_map, compact
from gradestack.jsonio import as_text as text_or_empty
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.chat import text_of
from gradestack_plugins.readers.chat.unread import count_unread, names_a_call, not_read

_ENVELOPE = ("id", "date", "message_type", "otid", "run_id", "step_id", "sender_id", "seq_id")
_SPOKEN = {"assistant_message": "assistant", "user_message": "user", "system_message": "system"}
_THOUGHTS = {"reasoning_message": "reasoning", "hidden_reasoning_message": "hidden_reasoning"}
_CALLING = ("tool_call_message", "approval_request_message")
_TAKEN = ("assistant", "user", "system", "tool", *_THOUGHTS.values())
"""Roles that mean something; no message of an unknown type gets one of them."""


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of messages, and every call made in them with what it returned."""

    turns: tuple[tuple[Message, ...], ...] = ()
    calls: tuple[ToolCall, ...] = ()
    unread: Mapping[str, int] = {}
    """Remarks on calls that nobody has decoded: with any, the calls are unknown."""

    @property
    def known_calls(self) -> tuple[ToolCall, ...] | None:
        """The calls; None where they are not recorded, or not all of them are decoded."""
        return self.calls if self.said and not self.unread else None

    @property
    def said(self) -> bool:
        """Whether there is any message."""
        return any(self.turns)


def read_trajectory(raw: JSON) -> Trajectory:
    """Return a recorded trajectory.

    A flat list of messages is one turn, entries that are no objects are left out.
    """
    if not isinstance(raw, list):
        return Trajectory()
    is_flat = raw and not any(isinstance(turn, list) for turn in raw)
    turns = [[each for each in as_list(turn) if isinstance(each, dict)] for turn in raw]
    if is_flat:
        turns = [[each for each in raw if isinstance(each, dict)]]
    failed: set[int] = set()
    read: list[tuple[Message, ...]] = []
    for turn in turns:
        forms = [form for entry in turn for form in _chat_forms(entry)]
        messages = tuple(map(_read_message, forms))
        failed.update(
            id(message)
            for message, form in zip(messages, forms, strict=True)
            if form.get("status") == "error"
        )
        read.append(messages)

    def answered(call: ToolCall, message: Message) -> ToolCall:
        content = message.content
        error = chat.text_of(content) or compact(content) if id(message) in failed else None
        return replace(call, result=content, error=error)

    calls = chat.made_calls(chain.from_iterable(read), answered)
    entries = list(chain.from_iterable(turns))
    spoken = [
        {**entry, "role": "assistant"}
        if entry.get("message_type") == "assistant_message"
        else entry
        for entry in entries
    ]
    unread = Counter(count_unread(spoken, has_calls=bool(calls)))
    unread.update(kind for entry in entries if (kind := _unread_message(entry)) is not None)
    return Trajectory(turns=tuple(read), calls=calls, unread=dict(unread))


def _unread_message(entry: Mapping[str, Any]) -> str | None:
    """Return the remark on a message of calls of which none can be read."""
    kind = entry.get("message_type")
    if not isinstance(kind, str) or kind == "tool_return_message":
        return None
    if kind in _CALLING:
        is_filled = any(map(entry.get, ("tool_calls", "tool_call", "content")))
        return not_read(f"message `{kind}`") if is_filled and not _calls(entry) else None
    if not names_a_call(kind):
        return None
    return not_read(f"message `{kind}`" if kind.isidentifier() else "message")


def _read_message(form: Mapping[str, Any]) -> Message:
    message = chat.message(form) or Message(role="")
    is_silent = not message.tool_calls and not chat.text_of(message.content)
    if message.role == "assistant" and is_silent and form.get("tool_calls"):
        return replace(message, role="tool_call", content=form["tool_calls"])
    return message


def _chat_forms(raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the chat messages that one entry stands for."""
    kind, content = raw.get("message_type"), raw.get("content")
    if not isinstance(kind, str):
        yield raw
    elif kind in _SPOKEN:
        yield {"role": _SPOKEN[kind], "content": content, "name": raw.get("name")}
    elif kind in _THOUGHTS:
        yield {"role": _THOUGHTS[kind], "content": raw.get(_THOUGHTS[kind], content)}
    elif kind in _CALLING and (calls := _calls(raw)):
        yield {"role": "assistant", "tool_calls": calls}
    elif kind == "tool_return_message":
        yield from map(_returned, as_list(raw.get("tool_returns")) or [raw])
    else:
        # With them messages of calls none of which can be read: as the assistant's they would be
        # its last, empty, word.
        rest = {name: value for name, value in raw.items() if name not in _ENVELOPE}
        role = kind.removesuffix("_message")
        role = f"unknown_{role}" if role in _TAKEN else role
        yield {"role": role, "content": raw.get("content", rest or None)}
        approvals = [
            each for each in as_list(raw.get("approvals")) if "tool_return" in as_map(each)
        ]
        yield from map(_returned, approvals)


def _calls(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    several = raw.get("tool_calls") or raw.get("tool_call")
    entries = several if isinstance(several, list) else [several]
    calls = [{**entry, "function": None} for entry in entries if isinstance(entry, dict)]
    for call in calls:
        call["id"] = text_or_empty(call.get("tool_call_id")) or call.get("id")
    return calls


def _returned(raw: Any) -> dict[str, Any]:
    entry = raw if isinstance(raw, dict) else {"tool_return": raw}
    names = ("tool_call_id", "name", "status")
    about = {name: entry.get(name) for name in names}
    return {"role": "tool", "content": entry.get("tool_return"), **about}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


VARIABLES = ("agent_args", "rubric_vars", "extra_vars")
"""Objects of variables, which may also stand under ``metadata``.

A prompt's are kept as one facet, others are none.
"""


def as_text(value: JSON) -> str:
    """Return text as it is and any other value as JSON."""
    return value if isinstance(value, str) else compact(value)


def input_of(value: JSON) -> str | tuple[str, ...] | None:
    """Return what the user asked: one text, or one per turn."""
    if isinstance(value, list):
        return tuple(map(as_text, value))
    return None if value is None else as_text(value)


def truth_of(value: JSON, *, turns: bool) -> str | tuple[str, ...] | None:
    """Return a reference.

    Text as it is, a list of texts (with ``turns``, of anything) as one each, else JSON text.
    """
    if value is None or value == []:
        return None
    if isinstance(value, list) and (turns or all(isinstance(item, str) for item in value)):
        return tuple(map(as_text, value))
    return as_text(value)


def expectation(truth: str | tuple[str, ...] | None) -> Expectation:
    """Return the reference as expected text, and as expected label where it is one text."""
    return Expectation(text=truth, label=truth if isinstance(truth, str) else None)


def facets_of(record: Mapping[str, Any]) -> dict[str, JSON]:
    """Return what samples may be grouped and chosen by.

    The entries of ``metadata``, and ``tags``.
    """
    found = dict(as_map(record.get("metadata")))
    variables = record.get("rubric_vars") or found.get("rubric_vars")
    for name in VARIABLES:
        found.pop(name, None)
    if variables and isinstance(variables, dict):
        found["rubric_vars"] = variables
    if (tags := record.get("tags")) is not None:
        found["tags"] = tags
    return found


_RUN, _GRADING = "Error: ", "Error during grading: "
"""How the rationale begins of a grade that stands for a run, or for a judge, that broke down."""


def error_fault(error: JSON) -> Fault:
    """Return the fault of an ``error`` record.

    ``category``, ``exception_type`` and ``message``, or a text.
    """
    if not isinstance(error, Mapping):
        return Fault(category="target", code="recorded_error", message=as_text(error))
    category, kind, message = (
        text_or_empty(error.get(name)) for name in ("category", "exception_type", "message")
    )
    return Fault(category=category or "target", code="recorded_error", message=message, type=kind)


def grade_fault(grade: JSON) -> Fault | None:
    """Return why a recorded grade is no judgement, from its rationale and ``metadata``.

    None when nothing says so.
    """
    if not isinstance(grade, Mapping):
        return None
    rationale, metadata = text_or_empty(grade.get("rationale")), as_map(grade.get("metadata"))
    error = as_text(metadata["error"]) if metadata.get("error") else ""
    category, code, message = "grading", "recorded_error", ""
    if rationale.startswith(_RUN):
        category, code, message = "target", "target_error", rationale.removeprefix(_RUN)
    elif rationale.startswith(_GRADING):
        message = rationale.removeprefix(_GRADING)
    if error not in message:
        message = f"{message} ({error})" if message else error
    kind = text_or_empty(metadata.get("error_type"))
    return Fault(category=category, code=code, message=message, type=kind) if message else None


KEPT = (
    *("cost", "prompt_tokens", "completion_tokens", "total_time", "target_time", "extraction_time"),
    *("per_grader_time", "timing", "timing_metrics"),
)
"""Figures later versions record with a result, kept as they stand."""
_SELF = ("extraction", "grading", "reward")
"""Error categories in which the recorded conversation itself is whole."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a line's file says about it."""

    run: int | str | None = None
    """Run of lines that name none."""
    apart: str | None = None
    """Name of the input, put before the run where several inputs repeat each other's runs."""
    model: str | None = None
    """Model the file is named by."""
    unnamed: str | None = None
    """Model of results that name none, nor does their file."""
    samples: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """Samples by id, for lines that only name theirs."""


def identity(result: Any) -> str | int | None:
    """Return a result's sample id as recorded, ``sample.id`` or else ``sample_id``.

    None when it has none.
    """
    if not isinstance(result, dict):
        return None
    found = as_map(result.get("sample")).get("id")
    if found is None:
        found = result.get("sample_id")
    return None if isinstance(found, bool) or not isinstance(found, int | str) else found


def model_of(result: Mapping[str, Any], context: Context) -> str | None:
    """Return the model a result names, else its file's.

    Gradestack's own rows without one have none.
    """
    own = is_own(result)
    if own and isinstance(result.get("model_name"), str):
        return str(result["model_name"])
    named = (result.get(name) for name in ("model_name", "model_handle"))
    other = context.model or (None if own else context.unnamed)
    return next((name for name in named if isinstance(name, str) and name), other)


def run_of(result: Mapping[str, Any], context: Context) -> int | str | None:
    """Return a result's run.

    Its own, else its file's number, else 1 (none for gradestack's own rows).
    """
    found = result.get("run")
    if isinstance(found, bool) or not isinstance(found, int | str):
        found = context.run
    if context.apart is not None:
        return context.apart if found is None else f"{context.apart}/{found}"
    return 1 if found is None and not is_own(result) else found


def sample_of(result: Any, source: Source, context: Context) -> Sample | BadRecord:
    """Return the sample of one result, or a bad record when it is no object or has no usable sample
    id.
    """
    named = identity(result)
    if named is None:
        what = "sample.id is missing (so is sample_id), or neither a text nor a whole number"
        if not isinstance(result, dict):
            what = f"expected a result (an object), found {compact(result)[:60]}"
        return BadRecord(source=source, reason=what, native=result)
    identifier, asked = str(named), result.get("sample")
    asked = asked if isinstance(asked, dict) else context.samples.get(identifier, {})
    given = input_of(asked.get("input"))
    trajectory = read_trajectory(result.get("trajectory"))
    if is_own(result):
        found = _own(result, identifier, trajectory, _answer(result, trajectory))
    else:
        status, error = _status(result, trajectory)
        usage = result.get("agent_usage")
        truth = truth_of(asked.get("ground_truth"), turns=isinstance(given, tuple))
        found = Sample(
            id=identifier,
            calls=trajectory.known_calls,
            text=_answer(result, trajectory),
            expected=expectation(truth),
            status=status,
            error=error,
            agent_id=_text(result.get("agent_id")),
            agent_usage=result.get("usage") if usage is None else usage,
            facets=facets_of(asked),
        )
    unread = trajectory.unread if found.calls is None else {}
    recorded = _recorded(result) | _metadata(asked)
    placed = source if isinstance(named, str) else replace(source, id=named)
    found = replace(found, remarks={**found.remarks, **unread}, recorded=recorded, source=placed)
    model, run = model_of(result, context), run_of(result, context)
    return replace(found, model=model, run=run, input=given, turns=trajectory.turns)


def _answer(result: Mapping[str, Any], trajectory: Trajectory) -> str | None:
    """Return the final answer: what the assistant said last, else the recorded submission.

    Of a result whose own grade is an error it is the submission.
    """
    submitted = _text(result.get("submission"))
    if trajectory.said and is_broken(result):
        return submitted
    said = [message for turn in trajectory.turns for message in turn if message.role == "assistant"]
    spoken = [text for message in said if (text := text_of(message.content))]
    return spoken[-1] if spoken else submitted or None


def is_broken(result: Mapping[str, Any]) -> bool:
    """Return whether a result's own grade is an error and it has no others."""
    return not as_map(result.get("grades")) and grade_fault(result.get("grade")) is not None


def _recorded(result: Mapping[str, Any]) -> dict[str, JSON]:
    found: dict[str, JSON] = dict(as_map(result.get("recorded")))
    names = ("grade", "grades", "submission", "submissions", *KEPT)
    found |= {name: result[name] for name in names if result.get(name) is not None}
    if not is_own(result) and result.get("error") is not None:
        found["error"] = result["error"]
    if (reward := result.get("reward")) is not None:
        found["reward"] = reward.get("score") if isinstance(reward, dict) else reward
    memory = as_map(as_map(result.get("agent_state")).get("memory"))
    blocks = result.get("memory_blocks", memory.get("blocks"))
    if blocks is not None:
        found["memory_blocks"] = blocks
    return found


def _metadata(sample: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the recorded sample's metadata, which its row's ``sample`` shows as given."""
    metadata = sample.get("metadata")
    return {"metadata": metadata} if isinstance(metadata, dict) and metadata else {}


def _status(result: Mapping[str, Any], trajectory: Trajectory) -> tuple[Status, Fault | None]:
    """Return whether the recorded run ended in an error, and in which."""
    error = result.get("error")
    if error is not None:
        fault = error_fault(error)
        whole = fault.category in _SELF and trajectory.said
        return (Status.OK, None) if whole else (Status.FAILED, fault)
    is_nameless, said = result.get("agent_id", "") is None, trajectory.said
    if said and not is_nameless:
        return Status.OK, None
    grades = (result.get("grade"), *as_map(result.get("grades")).values())  # the gate's first
    reason = next(filter(None, map(grade_fault, grades)), None)
    is_broken_off = reason is not None and reason.category == "target"
    is_known = said or not (is_broken_off or not text_or_empty(result.get("submission")))
    if is_known and not is_nameless:
        return Status.OK, None
    what = "the recording names no agent" if is_known else "the recorded trajectory is empty"
    return Status.FAILED, reason or Fault(category="target", code="target_error", message=what)


_AS_WRITTEN = (
    *("cluster", "expected", "status", "error", "ended", "trace", "children", "facets", "remarks"),
    *("native", "agent_id", "agent_usage", "usage"),
)
"""Fields that stand in a row in the form of a sample's."""
_PREDICTED = ("calls", "label", "text", "plan", "state")


def is_own(record: Mapping[str, Any]) -> bool:
    """Return whether a result line was written by gradestack."""
    return isinstance(record.get("predicted"), dict) and isinstance(record.get("expected"), dict)


def _own(
    row: Mapping[str, Any], identifier: str, trajectory: Trajectory, answer: str | None
) -> Sample:
    """Return the sample of a row of gradestack's.

    Tools stand there with their schemas, or by name.
    """
    predicted, tools = row["predicted"], row.get("tools")
    found = {name: row[name] for name in _AS_WRITTEN if row.get(name) is not None}
    found |= {"text": answer} | {name: predicted[name] for name in _PREDICTED if name in predicted}
    if isinstance(tools, list):
        found["tools"] = [{"name": each} if isinstance(each, str) else each for each in tools]
    try:
        sample = msgspec.convert({"id": identifier, **found}, Sample)
    except ValueError as error:
        raise ValueError(f"the row is not as gradestack wrote it: {error}") from error
    made, paired = sample.calls or (), trajectory.calls
    if not made or [call.name for call in made] != [call.name for call in paired]:
        return sample
    calls = []
    for call, other in zip(made, paired, strict=True):
        why = other.error if call.error is None else call.error
        text = call.raw_arguments or other.raw_arguments
        known = replace(call, raw_arguments=text, error=why)
        calls.append(replace(known, id=other.id, result=other.result))
    return replace(sample, calls=tuple(calls))

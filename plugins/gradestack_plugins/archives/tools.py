"""Readers ``promptfoo`` and ``deepeval``: results of two evaluation tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import Expectation, ExpectedCall, Message, Sample, Source, Usage, replace
from gradestack.jsonio import JsonProblem, as_list, as_map, compact, loads
from gradestack_plugins.archives.documents import DocumentReader, at, named, number_or_none
from gradestack_plugins.readers.chat import dialect, parse_arguments
from gradestack_plugins.readers.chat.conversation import Conversation, finish
from gradestack_plugins.readers.chat.logs import log_sample
from gradestack_plugins.readers.chat.names import decoded
from gradestack_plugins.readers.chat.results import error_form
from gradestack_plugins.readers.chat.usage import usage_of

_SCALARS: Final = (str, int, float)
_FAILURES: Final = {0: "none", 1: "assertion", 2: "error"}


@attrs.frozen(kw_only=True)
class Promptfoo(DocumentReader):
    """Reads promptfoo's results: a document with ``results.results`` (or ``results``), or one row a line.

    A sample per row. The id is ``testIdx``, the model ``provider.id``; what the user says is the prompt as it was sent,
    or the only variable. The answer is ``response.output``: text, calls in OpenAI's form, messages, or the JSON text of
    blocks and items that are calls. ``success``, ``score`` and named scores are recorded, also of rows that ended in an
    error (``failureReason`` 2), which promptfoo counts as not passed. Results of calls are not recorded.
    """

    version: ClassVar[str] = "1"
    marks = (("evalId", "results"), ("results", "testIdx", "promptIdx"))

    @classmethod
    @override
    def records_in(cls, value: Any) -> list[Any] | None:
        found = value.get("results") if isinstance(value, dict) else None
        found = found.get("results") if isinstance(found, dict) else found
        if not isinstance(found, list):
            return None
        rows = (each for each in found[: cls.sniffed] if isinstance(each, dict))
        return found if "evalId" in value or any(map(cls.is_record, rows)) else None

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        return "testIdx" in value and "promptIdx" in value

    @override
    def samples_of_record(self, record: dict[str, Any], source: Source, made: str) -> Iterable[Sample]:
        response, test, provider = at(record, "response"), at(record, "test_case"), record.get("provider")
        talk = Conversation()
        talk.read([*_asked(record), *_answer(at(response, "output"))])
        prompt, reason = at(record, "prompt"), at(record, "failure_reason")
        facets = {
            "prompt": at(prompt, "label"),
            "description": at(test, "description"),
            "failure_reason": _FAILURES.get(reason) if isinstance(reason, int) else None,
            **{key: each for key, each in as_map(at(test, "metadata")).items() if isinstance(each, _SCALARS)},
        }
        verdicts = {**as_map(at(record, "named_scores")), **{key: record.get(key) for key in ("success", "score")}}
        model = provider.get("id") if isinstance(provider, dict) else provider
        sample = log_sample(
            named(record.get("testIdx"), made, facets={key: each for key, each in facets.items() if each is not None}),
            talk,
            source,
            model=model if isinstance(model, str) else None,
            usage=_usage(record, response),
            agent_usage=at(response, "token_usage"),
            recorded={key: each for key, each in verdicts.items() if isinstance(each, bool | int | float)},
        )
        remarks = {kind: n for kind, n in sample.remarks.items() if kind != "call_without_result"}  # there are none
        return [replace(sample, remarks=remarks, ended="error" if facets["failure_reason"] == "error" else None)]


def _asked(record: Mapping[str, Any]) -> list[Any]:
    """Return the messages that were sent."""
    raw = at(at(record, "prompt"), "raw")
    sent = decoded(raw)
    if dialect.of_entries(sent) is not None:
        return list(sent)
    given = at(record, "vars") or at(at(record, "test_case"), "vars")
    values = list(given.values()) if isinstance(given, dict) else []
    said = raw if isinstance(raw, str) and raw else values[0] if len(values) == 1 else None
    return [] if said is None else [{"role": "user", "content": said if isinstance(said, str) else compact(said)}]


def _answer(output: Any) -> list[Any]:
    """Return the messages and items of an answer."""
    if isinstance(output, str):
        return _in_text(output)
    if isinstance(output, dict):
        if isinstance(output.get("tool_calls"), list) or isinstance(output.get("function_call"), dict):
            return [{**output, "role": "assistant"}]
        block = output.get("type") == "tool_use"
        return [{"role": "assistant", "content": [output]} if block else _said(compact(output))]
    if not isinstance(output, list):
        return [] if output is None else [_said(compact(output))]
    if output and all(isinstance(each, dict) and ("function" in each or "name" in each) for each in output):
        return [{"role": "assistant", "content": None, "tool_calls": output}]
    return output if dialect.of_entries(output) is not None else [_said(compact(output))]


def _in_text(output: str) -> list[Any]:
    """Return an answer with the calls that providers write into its text as JSON, one a line, or as the whole of it."""
    if not output.lstrip().startswith(("{", "[")) and '\n{"' not in output:
        return [_said(output)]
    blocks: list[Any] = []
    for text in [output] if isinstance(decoded(output), dict | list) else output.splitlines():
        found: Any = None
        with suppress(JsonProblem):
            found = loads(text) if text.lstrip().startswith(("{", "[")) else None
        held = found if isinstance(found, list) else [found]
        for each in held:
            kind = each.get("type") if isinstance(each, dict) else None
            if kind == "function" and isinstance(each.get("function"), dict):
                function = each["function"]
                call = {"name": function.get("name"), "input": function.get("arguments")}
                blocks.append({"type": "tool_use", "id": each.get("id"), **call})
            elif kind in ("tool_use", "function_call"):
                blocks.append(each)
            elif found is None and text.strip():
                blocks.append({"type": "text", "text": text})
            elif found is not None:
                return [_said(output)]
    calls = any(block["type"] != "text" for block in blocks)
    return [{"role": "assistant", "content": blocks}] if calls else [_said(output)]


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _usage(record: Mapping[str, Any], response: Any) -> Usage | None:
    """Return tokens, cost and time of the request; of an answer out of promptfoo's own cache only what it says."""
    tokens, cost = at(response, "token_usage"), number_or_none(at(record, "cost"))
    milliseconds = number_or_none(at(record, "latency_ms"))
    found = usage_of({key: each for key, each in as_map(tokens).items() if key != "cached"})
    seconds = None if milliseconds is None else milliseconds / 1000
    return replace(found or Usage(), cost_usd=cost, seconds=seconds) if found or cost or seconds else None


@attrs.frozen(kw_only=True)
class DeepEval(DocumentReader):
    """Reads deepeval's test runs (``testCases``, also under ``testRunData``), and data sets of test cases.

    Keys are in camel or in snake case; a file holds a document, a list of test cases, or one a line. A sample per test
    case: the id is ``name``, calls are ``toolsCalled``, executed where they have an ``output``; expected are
    ``expectedTools`` (one without parameters: its arguments are not compared) and ``expectedOutput``. ``success`` and
    the scores of ``metricsData`` are recorded. Conversational test cases have their calls in ``turns``.
    """

    version: ClassVar[str] = "1"
    marks = (
        *(("testCases", each) for each in ("actualOutput", "toolsCalled", "conversationalTestCases")),
        ("test_cases", "actual_output"),
    )

    @classmethod
    @override
    def records_in(cls, value: Any) -> list[Any] | None:
        found = at(value, "test_run_data") or value
        cases = [at(found, "test_cases"), at(found, "conversational_test_cases")]
        held = [each for listed in cases for each in as_list(listed)]
        looked_at = (each for each in held[: cls.sniffed] if isinstance(each, dict))
        known = at(found, "test_file", "test_passed") is not None or any(map(cls.is_record, looked_at))
        return held if known and any(isinstance(each, list) for each in cases) else None

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        asked = at(value, "input") is not None and "messages" not in value
        tools = {"toolsCalled", "tools_called", "expectedTools", "expected_tools"} & value.keys()
        own = {"metricsData", "metrics_data", "retrievalContext", "retrieval_context"} & value.keys()
        output = {"actualOutput", "actual_output"} & value.keys()
        if not asked:
            return isinstance(value.get("turns"), list) and bool(own)
        return bool(output) and (bool(own) or any(_is_tools(value[key]) for key in tools))

    @override
    def samples_of_record(self, record: dict[str, Any], source: Source, made: str) -> Iterable[Sample]:
        talk = Conversation()
        turns = record.get("turns")
        for turn in turns if isinstance(turns, list) else _turns_of(record):
            _take(turn, talk)
        scores = {
            at(each, "name"): at(each, "score")
            for each in as_list(at(record, "metrics_data"))
            if isinstance(at(each, "name"), str) and number_or_none(at(each, "score")) is not None
        }
        if isinstance(record.get("success"), bool):
            scores["success"] = record["success"]
        details = as_map(at(record, "additional_metadata", "metadata"))
        facets = {key: each for key, each in details.items() if isinstance(each, _SCALARS)}
        cost, seconds = number_or_none(at(record, "token_cost")), number_or_none(at(record, "completion_time"))
        usage = Usage(cost_usd=cost, seconds=seconds) if cost is not None or seconds is not None else None
        text = at(record, "expected_output")
        calls = _expected(at(record, "expected_tools"))
        expected = Expectation(calls=calls, text=text if isinstance(text, str) else None)
        known = named(record.get("name"), made, facets=facets)
        return [log_sample(known, talk, source, usage=usage, recorded=scores, expected=expected)]


def _is_tools(value: Any) -> bool:
    """Return whether calls are deepeval's: objects with a name and, if any, ``inputParameters``."""
    own = ("inputParameters", "input_parameters")
    return any(isinstance(each, dict) and any(key in each for key in own) for each in as_list(value))


def _turns_of(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if (asked := at(record, "input")) is not None:
        yield {"role": "user", "content": asked}
    said, tools = at(record, "actual_output"), at(record, "tools_called")
    if said is not None or tools is not None:
        yield {"role": "assistant", "content": said, "toolsCalled": tools}


def _take(turn: Any, talk: Conversation) -> None:
    """Take one turn of a conversation into account: calls first, then what is said."""
    tools = [each for each in as_list(at(turn, "tools_called")) if isinstance(each, dict)]
    if tools:
        talk.step += 1
        talk.text = None
        calls = []
        for each in tools:
            call = talk.made("function", None, each.get("name"), parse_arguments(at(each, "input_parameters")))
            if (output := each.get("output")) is not None:
                problem = error_form(output)
                finish(call, output, problem and problem.message, problem and problem.type)
            calls.append(call)
        talk.add(Message(role="assistant", tool_calls=tuple(calls)))
        talk.turns[-1] += [Message(role="tool", content=call.result, name=call.name) for call in calls if call.status]
    if at(turn, "content") is not None or not tools:
        talk.read([{"role": at(turn, "role"), "content": at(turn, "content")}])


def _expected(tools: Any) -> tuple[ExpectedCall, ...] | None:
    if not isinstance(tools, list):
        return None
    found = []
    for each in tools:
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise ValueError(f"expectedTools: expected an object with a name, found {compact(each)[:60]}")  # noqa: TRY004 - what makes a bad record
        given = at(each, "input_parameters")
        arguments, raw = (None, None) if given is None else parse_arguments(given)
        found.append(ExpectedCall(name=name, arguments=arguments, raw_arguments=raw if arguments is None else None))
    return tuple(found)

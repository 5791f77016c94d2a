"""Readers ``promptfoo`` and ``deepeval``: results of two evaluation tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs
from msgspec import Struct, field
from typing_extensions import override

from gradestack import Expectation, ExpectedCall, Message, Sample, Source, Usage, replace
from gradestack.jsonio import as_amount, as_list, as_map, compact
from gradestack_plugins.archives.documents import DocumentReader, at, named
from gradestack_plugins.readers.chat import dialect, parse_arguments
from gradestack_plugins.readers.chat.conversation import Conversation, finish, text_or_none
from gradestack_plugins.readers.chat.forms import in_snake
from gradestack_plugins.readers.chat.logs import log_sample, type_of
from gradestack_plugins.readers.chat.names import decoded
from gradestack_plugins.readers.chat.results import error_form
from gradestack_plugins.readers.chat.unread import unread_in, unread_part
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.declared import Items, Object, Text, convert_record

_NUMBERS: Final = (int, float)
_SCALARS: Final = (str, *_NUMBERS)
_MODEL: Final = "gradestack: model of the run"
_READ_TURN: Final = frozenset({"role", "content", "tools_called", "toolsCalled"})
"""Keys of a turn of deepeval's that are read."""
_FAILURES: Final = {0: "none", 1: "assertion", 2: "error"}


class _Prompt(Struct, frozen=True):
    """A prompt as it was sent."""

    raw: Any = None
    label: Any = None


class _Test(Struct, frozen=True):
    """The test that a row is a run of."""

    vars: Object = None
    description: Any = None
    metadata: dict[str, Any] = {}


class _Row(Struct):
    """A row of promptfoo's, its keys in snake case."""

    test_idx: Any = None
    prompt: _Prompt = _Prompt()
    test_case: _Test = _Test()
    vars: Object = None
    provider: Any = None
    response: dict[str, Any] = {}
    failure_reason: Any = None
    named_scores: dict[str, Any] = {}
    success: Any = None
    score: Any = None
    cost: Any = None
    latency_ms: Any = None


class _Metric(Struct):
    """What one metric says of a test case of deepeval's."""

    name: Text = None
    score: Any = None
    error: Any = None


class _Case(Struct):
    """A test case of deepeval's, its keys in snake case."""

    name: Any = None
    input: Any = None
    actual_output: Any = None
    tools_called: Any = None
    turns: list[dict[str, Any]] = []
    expected_tools: Items = None
    expected_output: Text = None
    metrics_data: list[_Metric] = []
    success: Any = None
    additional_metadata: Object = None
    metadata: Object = None
    tags: Any = None
    trace: Any = None
    token_cost: Any = None
    completion_time: Any = None
    model: Any = field(default=None, name=_MODEL)


@attrs.frozen(kw_only=True)
class Promptfoo(DocumentReader):
    """Reads promptfoo's results.

    A document with ``results.results`` (or ``results``), or one row a line.

    A sample per row. The id is ``testIdx``, the model ``provider.id``; what the user says is the
    prompt as it was sent, or the only variable. The answer is ``response.output``: text, calls in
    OpenAI's form, messages, or the JSON text of blocks and items that are calls. ``success``,
    ``score`` and named scores are recorded, also of rows that ended in an error (``failureReason``
    2), which promptfoo counts as not passed. Results of calls are not recorded. Rows of version 2
    have no ``testIdx``: those of the same variables are one test.
    """

    example_file = "results.json"
    marks = (
        ("evalId", "results"),
        ("results", "testIdx", "promptIdx"),
        ("results", "namedScores", "latencyMs"),
    )

    @classmethod
    @override
    def records_in(cls, value: Any) -> list[Any] | None:
        held = value.get("results") if isinstance(value, dict) else None
        summary = held if isinstance(held, dict) else as_map(value)
        found = summary.get("results")
        if not isinstance(found, list):
            return None
        if {"stats", "table"} <= summary.keys():
            tests = dict[str, int]()
            numbers = [tests.setdefault(compact(at(each, "vars")), len(tests)) for each in found]
            old = zip(numbers, found, strict=True)
            return [
                {"testIdx": number, **each} if isinstance(each, dict) else each
                for number, each in old
            ]
        rows = (each for each in found[: cls.sniffed] if isinstance(each, dict))
        return found if "evalId" in value or any(map(cls.is_record, rows)) else None

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        return "testIdx" in value and "promptIdx" in value

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, made: str
    ) -> Iterable[Sample]:
        row, wrong = convert_record({in_snake(key): each for key, each in record.items()}, _Row)
        prompt, test, provider = row.prompt, row.test_case, row.provider
        talk = Conversation()
        talk.results = False
        talk.remarks |= wrong
        asked = _asked(prompt.raw, row.vars or test.vars or {})
        talk.read([*asked, *_answer(row.response.get("output"))])
        tokens, reason = at(row.response, "token_usage"), row.failure_reason
        failure = _FAILURES.get(reason) if isinstance(reason, int) else None
        facets = {
            "prompt": prompt.label,
            "description": test.description,
            "failure_reason": failure,
            **{key: each for key, each in test.metadata.items() if isinstance(each, _SCALARS)},
        }
        facets = {key: each for key, each in facets.items() if each is not None}
        verdicts = {**row.named_scores, "success": row.success, "score": row.score}
        model = provider.get("id") if isinstance(provider, dict) else provider
        talk.remark_amounts([row.cost, row.latency_ms])
        sample = log_sample(
            named(row.test_idx, made, facets=facets),
            talk,
            source,
            model=text_or_none(model),
            usage=_usage(tokens, as_amount(row.cost), as_amount(row.latency_ms)),
            agent_usage=tokens,
            recorded={key: each for key, each in verdicts.items() if isinstance(each, _NUMBERS)},
            ended="error" if failure == "error" else None,
        )
        return (sample,)


def _asked(raw: Any, given: dict[str, Any]) -> list[Any]:
    sent = decoded(raw)
    if dialect.of_entries(sent) is not None:
        return list(sent)
    values = list(given.values())
    said = raw if isinstance(raw, str) and raw else values[0] if len(values) == 1 else None
    return (
        []
        if said is None
        else [{"role": "user", "content": said if isinstance(said, str) else compact(said)}]
    )


def _answer(output: Any) -> list[Any]:
    """Return the messages and items of an answer.

    Providers write calls into its text as JSON, too, one a line.
    """
    if isinstance(output, dict) and (
        "tool_calls" in output or "function_call" in output or unread_in(output)
    ):
        return [{**output, "role": "assistant"}]
    if isinstance(output, list):
        if output and all(
            isinstance(each, dict) and isinstance(each.get("function"), dict) for each in output
        ):
            return [{"role": "assistant", "tool_calls": output}]
        if dialect.of_entries(output) is not None:
            return output
        if any(map(_is_unread, output)):
            return [{"role": "assistant", "content": output}]
    if output is None:
        return []
    text, blocks = output if isinstance(output, str) else compact(output), list[Any]()
    for line in [text] if isinstance(decoded(text), dict | list) else text.splitlines():
        held = decoded(line)
        entries = held if isinstance(held, list) else [held]
        found = [_call(each) or (each if _is_unread(each) else None) for each in entries]
        blocks += found if all(found) else [{"type": "text", "text": line}]
    calls = any(block.get("type") != "text" for block in blocks)
    return [{"role": "assistant", "content": blocks if calls else text}]


def _is_unread(block: Any) -> bool:
    """Return whether a block is a call in a form that is not decoded."""
    return _call(block) is None and unread_part(block) is not None


def _call(block: Any) -> dict[str, Any] | None:
    function = at(block, "function")
    if isinstance(function, dict):
        what = {
            "id": at(block, "id"),
            "name": at(function, "name"),
            "input": at(function, "arguments"),
        }
        return {"type": "tool_use", **what}
    return block if type_of(block) in ("tool_use", "function_call") else None


def _usage(tokens: Any, cost: float | None, milliseconds: float | None) -> Usage | None:
    """Return tokens, cost and time of the request.

    Of an answer out of promptfoo's own cache only what it says.
    """
    found, seconds = usage_of(tokens), None if milliseconds is None else milliseconds / 1000
    return (
        replace(found or Usage(), cost_usd=cost, seconds=seconds)
        if found or cost or seconds
        else None
    )


@attrs.frozen(kw_only=True)
class DeepEval(DocumentReader):
    """Reads deepeval's test runs (``testCases``, also under ``testRunData``), and data sets of test
    cases.

    Keys are in camel or in snake case; a file holds a document, a list of test cases, or one a
    line. A sample per test case: the id is ``name``, calls are ``toolsCalled``, executed where they
    have an ``output``; expected are ``expectedTools`` (one without parameters: its arguments are
    not compared) and ``expectedOutput``. ``success`` and the scores of ``metricsData`` are
    recorded; a metric that failed is a remark. Conversational test cases have their calls in
    ``turns``. Of a traced case without ``toolsCalled`` calls, model and usage are those of the
    trace's spans. Else the model is that of the run's ``hyperparameters``.
    """

    example_file = ".deepeval/.latest_test_run.json"
    marks = (
        *(
            ("testCases", each)
            for each in ("actualOutput", "toolsCalled", "conversationalTestCases")
        ),
        ("test_cases", "actual_output"),
    )

    @classmethod
    @override
    def records_in(cls, value: Any) -> list[Any] | None:
        found = at(value, "test_run_data") or value
        cases = [at(found, "test_cases"), at(found, "conversational_test_cases")]
        held = [each for listed in cases for each in as_list(listed)]
        looked_at = (each for each in held[: cls.sniffed] if isinstance(each, dict))
        known = at(found, "test_file", "test_passed") is not None or any(
            map(cls.is_record, looked_at)
        )
        if not known or not any(isinstance(each, list) for each in cases):
            return None
        model = at(at(found, "hyperparameters"), "model")
        return (
            [{_MODEL: model, **each} if isinstance(each, dict) else each for each in held]
            if model
            else held
        )

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        own = (
            at(value, "metrics_data", "retrieval_context", "tools_called", "expected_tools")
            is not None
        )
        if at(value, "input") is None:
            return isinstance(value.get("turns"), list) and at(value, "metrics_data") is not None
        return (
            own
            and bool({"actualOutput", "actual_output"} & value.keys())
            and "messages" not in value
        )

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, made: str
    ) -> Iterable[Sample]:
        case, wrong = convert_record({in_snake(key): each for key, each in record.items()}, _Case)
        talk = Conversation()
        talk.remarks |= wrong
        for turn in case.turns:
            _take(turn, at(turn, "tools_called"), talk)
        if not case.turns:
            if case.input is not None:
                asked = Message(role="user", content=case.input)
                talk.ask(asked, talk.text_of(case.input, "\n") or "")
            spans = as_list(at(case.trace, "tool_spans")) if case.tools_called is None else []
            answer = {"role": "assistant", "content": case.actual_output}
            _take(answer, spans or case.tools_called, talk)
        scores: dict[str, Any] = {}
        for metric in case.metrics_data:
            if metric.name is not None and metric.score is not None:
                scores[metric.name] = metric.score
            if metric.error:
                talk.remark("metric_error")
        if case.success is not None:
            scores["success"] = case.success
        details = case.additional_metadata or case.metadata or {}
        facets = {key: each for key, each in details.items() if isinstance(each, _SCALARS)}
        facets |= {"tags": case.tags} if case.tags else {}
        models, spent = _requests(case.trace)
        talk.remark_amounts([case.token_cost, case.completion_time])
        cost, seconds = as_amount(case.token_cost), as_amount(case.completion_time)
        if cost is not None or seconds is not None:
            cost = spent.get("cost_usd") if cost is None else cost
            spent = {**spent, "cost_usd": cost, "seconds": seconds}
        tools = case.expected_tools
        due = None if tools is None else tuple([_due(*each) for each in enumerate(tools)])
        sample = log_sample(
            named(case.name, made, facets=facets),
            talk,
            source,
            model=text_or_none(models.pop() if len(models) == 1 else case.model),
            usage=Usage(**spent) if spent else None,
            recorded=scores,
            expected=Expectation(calls=due, text=case.expected_output),
        )
        return [sample]


def _requests(trace: Any) -> tuple[set[str], dict[str, Any]]:
    """Return the models that a traced test case asked, and what they used."""
    asked = [each for each in as_list(at(trace, "llm_spans")) if isinstance(each, dict)]
    spent: dict[str, Any] = {"requests": len(asked)} if asked else {}
    for side in ("input", "output") if asked else ():
        counts = [as_amount(at(each, f"{side}_token_count")) for each in asked]
        prices = [as_amount(at(each, f"cost_per_{side}_token")) for each in asked]
        total = as_amount(sum(count or 0 for count in counts))
        spent |= {f"{side}_tokens": int(total)} if total else {}
        if any(prices):
            costs = sum(
                (count or 0) * (price or 0) for count, price in zip(counts, prices, strict=True)
            )
            spent["cost_usd"] = spent.get("cost_usd", 0.0) + costs
    return {each["model"] for each in asked if isinstance(each.get("model"), str)}, spent


def _due(number: int, tool: Any) -> ExpectedCall:
    """Return an expected call; one without parameters is not compared by them."""
    called = {"name": tool.strip()} if isinstance(tool, str) else as_map(tool)
    name, given = called.get("name"), at(called, "input_parameters", "input")
    if not isinstance(name, str):
        what = f"expected.calls[{number}]: expected a call with a name, got {compact(tool)[:60]}"
        raise ValueError(what)
    if given is None:
        return ExpectedCall(name=name, arguments=None)
    arguments, text = parse_arguments(given)
    return ExpectedCall(
        name=name, arguments=arguments, raw_arguments=text if arguments is None else None
    )


def _take(turn: Mapping[str, Any], made: Any, talk: Conversation) -> None:
    content = turn.get("content")
    tools = [each for each in as_list(made) if isinstance(each, dict)]
    for _ in (each for each in as_list(made) if each and not isinstance(each, dict)):
        talk.remark_unread("entry of `toolsCalled`")
    if tools or (made == [] and content is None):
        talk.step += 1
        talk.text = None
        calls = []
        for each in tools:
            call = talk.made(
                "function",
                None,
                each.get("name"),
                parse_arguments(at(each, "input_parameters", "input")),
            )
            output, failed = each.get("output"), text_or_none(each.get("error"))
            if output is not None or failed is not None:
                problem = error_form(output)
                finish(
                    call, output, failed or (problem and problem.message), problem and problem.type
                )
            calls.append(call)
        results = [
            Message(role="tool", content=call.result, name=call.name)
            for call in calls
            if call.status
        ]
        talk.turns[-1] += [Message(role="assistant", tool_calls=tuple(calls)), *results]
    if turn.get("role") == "assistant":
        talk.remark_unread_keys(dict(turn), _READ_TURN)
    if content is not None:
        talk.read([{"role": turn.get("role"), "content": content}])

"""Readers ``promptfoo`` and ``deepeval``: results of two evaluation tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field
from typing_extensions import override

from gradestack import (
    Expectation,
    ExpectedCall,
    Message,
    Sample,
    Source,
    ToolCall,
    Usage,
)
from gradestack.jsonio import as_amount, as_list, as_map, compact
from gradestack_plugins.archives.documents import DocumentReader, at, named
from gradestack_plugins.readers.chat import dialect, parse_arguments, text_or_none
from gradestack_plugins.readers.chat.calls import decoded
from gradestack_plugins.readers.chat.conversation import Conversation, finish
from gradestack_plugins.readers.chat.forms import in_snake
from gradestack_plugins.readers.chat.results import error_form
from gradestack_plugins.readers.chat.samples import log_sample, type_of
from gradestack_plugins.readers.chat.unread import unread_in, unread_part
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.declared import Items, Object, Text, convert_record

_NUMBERS: Final = (int, float)
_SCALARS: Final = (str, *_NUMBERS)
_FIELDS_OF_CASES: Final = ("retrieval_context", "tools_called", "expected_tools")
_MODEL: Final = "gradestack: model of the run"
_READ_TURN: Final = frozenset({"role", "content", "tools_called", "toolsCalled"})
"""Keys of a turn that are read."""
_FAILURES: Final = {0: "none", 1: "assertion", 2: "error"}


class _Prompt(Struct, frozen=True):
    """A prompt as it was sent."""

    raw: Any = None
    label: Any = None


class _Test(Struct, frozen=True):
    """The test of a row."""

    vars: Object = None
    description: Any = None
    metadata: dict[str, Any] = {}


class _Row(Struct):
    """A row of promptfoo, its keys in snake case."""

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
    """The result of a metric on a test case."""

    name: Text = None
    score: Any = None
    error: Any = None


class _Case(Struct):
    """A test case of deepeval, its keys in snake case."""

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


class Promptfoo(DocumentReader):
    """Reads promptfoo's results.

    A document with ``results.results`` (or ``results``), or one row a line.

    A sample per row. The id is ``testIdx``, the model ``provider.id``; the question is the prompt
    as it was sent, or the only variable. The answer is ``response.output``: text, calls in
    OpenAI's form, messages, or the JSON text of blocks and items that are calls. ``success``,
    ``score`` and named scores are recorded, also of rows that ended in an error (``failureReason``
    2), which promptfoo counts as not passed. Results of calls are not recorded. Rows of version 2
    have no ``testIdx``: rows with the same variables are one test.
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
        results = as_map(value).get("results")
        summary = results if isinstance(results, dict) else as_map(value)
        rows = summary.get("results")
        if not isinstance(rows, list):
            return None
        if {"stats", "table"} <= summary.keys():
            return _number_tests(rows)
        looked_at = [row for row in rows[: cls.sniffed] if isinstance(row, dict)]
        if "evalId" in value or any(map(cls.is_record, looked_at)):
            return rows
        return None

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        return "testIdx" in value and "promptIdx" in value

    @classmethod
    @override
    def is_own(cls, value: Mapping[str, Any]) -> bool:
        return "testIdx" in value or {"prompt", "response"} <= value.keys()

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, fallback_id: str
    ) -> Iterable[Sample]:
        row, field_remarks = convert_record(_in_snake(record), _Row)
        test = row.test_case
        talk = Conversation()
        talk.results = False
        talk.remarks |= field_remarks
        variables = row.vars or test.vars or {}
        question = _question(row.prompt.raw, variables)
        reply_entries = _reply_entries(row.response.get("output"))
        talk.read([*question, *reply_entries])
        talk.remark_amounts([row.cost, row.latency_ms])
        reason = row.failure_reason
        failure = None
        if isinstance(reason, int):
            failure = _FAILURES.get(reason)
        about = {
            "prompt": row.prompt.label,
            "description": test.description,
            "failure_reason": failure,
        }
        known = _known(about)
        facets = {**known, **_scalars(test.metadata)}
        verdicts = {**row.named_scores, "success": row.success, "score": row.score}
        tokens = at(row.response, "token_usage")
        usage = _usage_of(tokens, row.cost, _seconds_of(row.latency_ms))
        if isinstance(row.provider, dict):
            model = row.provider.get("id")
        else:
            model = row.provider
        sample = log_sample(
            named(row.test_idx, fallback_id, facets=facets),
            talk,
            source,
            model=text_or_none(model),
            usage=usage,
            agent_usage=tokens,
            recorded={
                name: score for name, score in verdicts.items() if isinstance(score, _NUMBERS)
            },
            ended="error" if failure == "error" else None,
        )
        return [sample]


def _in_snake(record: Mapping[str, Any]) -> dict[str, Any]:
    return {in_snake(key): value for key, value in record.items()}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _scalars(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if isinstance(value, _SCALARS)}


def _number_tests(rows: list[Any]) -> list[Any]:
    """Return rows of version 2 with the number of their test, whose variables are the same."""
    numbers: dict[str, int] = {}
    numbered = []
    for row in rows:
        number = numbers.setdefault(compact(at(row, "vars")), len(numbers))
        numbered.append({"testIdx": number, **row} if isinstance(row, dict) else row)
    return numbered


def _question(prompt: Any, variables: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a prompt; without a prompt the only variable is the question."""
    sent = decoded(prompt)
    if dialect.of_entries(sent) is not None:
        return list(sent)
    values = list(variables.values())
    if isinstance(prompt, str) and prompt:
        text = prompt
    else:
        text = None
        if len(values) == 1:
            text = values[0]
    if text is None:
        return []
    return [{"role": "user", "content": text if isinstance(text, str) else compact(text)}]


def _reply_entries(output: Any) -> list[Any]:
    """Return the messages and items of an answer.

    Providers write calls into its text as JSON, too, one a line.
    """
    if output is None:
        return []
    keys = {"tool_calls", "function_call"}
    if isinstance(output, dict) and (keys & output.keys() or unread_in(output)):
        return [{**output, "role": "assistant"}]
    if isinstance(output, list) and output:
        if all(isinstance(as_map(call).get("function"), dict) for call in output):
            return [{"role": "assistant", "tool_calls": output}]
        if dialect.of_entries(output) is not None:
            return output
        if any(map(_is_unread, output)):
            return [{"role": "assistant", "content": output}]
    text = output if isinstance(output, str) else compact(output)
    document = decoded(text)
    if isinstance(document, dict | list):
        blocks = _blocks_of(text, document)
    else:
        blocks = [block for line in text.splitlines() for block in _blocks_of(line, decoded(line))]
    has_calls = any(block.get("type") != "text" for block in blocks)
    return [{"role": "assistant", "content": blocks if has_calls else text}]


def _blocks_of(line: str, value: Any) -> list[dict[str, Any]]:
    """Return the calls that a line is as JSON, its value, else its text."""
    blocks = []
    for entry in value if isinstance(value, list) else [value]:
        call = _call_block(entry)
        if call is None and not _is_unread(entry):
            return [{"type": "text", "text": line}]
        blocks.append(call or entry)
    return blocks


def _is_unread(block: Any) -> bool:
    """Return whether a block is a call in a form that is not decoded."""
    return _call_block(block) is None and unread_part(block) is not None


def _call_block(block: Any) -> dict[str, Any] | None:
    function = at(block, "function")
    if isinstance(function, dict):
        name = at(function, "name")
        arguments = at(function, "arguments")
        return {"type": "tool_use", "id": at(block, "id"), "name": name, "input": arguments}
    return block if type_of(block) in ("tool_use", "function_call") else None


def _seconds_of(milliseconds: Any) -> float | None:
    amount = as_amount(milliseconds)
    return None if amount is None else amount / 1000


def _usage_of(tokens: Any, cost: Any, seconds: float | None) -> Usage | None:
    """Return tokens with cost and time of the request; None where none of them is known.

    An answer from promptfoo's own cache has its own amounts alone.
    """
    price = as_amount(cost)
    usage = usage_of({**as_map(tokens), "cost_usd": price, "seconds": seconds})
    if usage is None and (price or seconds):
        return Usage(cost_usd=price, seconds=seconds)
    return usage


class DeepEval(DocumentReader):
    """Reads deepeval's test runs (``testCases``, also under ``testRunData``), and data sets of test
    cases.

    Keys are in camel or in snake case; a file holds a document, a list of test cases, or one a
    line. A sample per test case: the id is ``name``, calls are ``toolsCalled``, executed where they
    have an ``output``. Expected are ``expectedTools`` and ``expectedOutput``; the arguments of a
    tool without parameters are not compared. ``success`` and the scores of ``metricsData`` are
    recorded; a metric that failed is a remark. Conversational test cases have their calls in
    ``turns``. Of a traced case without ``toolsCalled`` calls, model and usage are those of the
    trace's spans. Else the model is that of the run's ``hyperparameters``.
    """

    example_file = ".deepeval/.latest_test_run.json"
    marks = (
        *(("testCases", key) for key in ("actualOutput", "toolsCalled", "conversationalTestCases")),
        ("test_cases", "actual_output"),
    )

    @classmethod
    @override
    def records_in(cls, value: Any) -> list[Any] | None:
        test_run = at(value, "test_run_data") or value
        lists = [at(test_run, "test_cases"), at(test_run, "conversational_test_cases")]
        if not any(isinstance(listed, list) for listed in lists):
            return None
        cases = [case for listed in lists for case in as_list(listed)]
        looked_at = [case for case in cases[: cls.sniffed] if isinstance(case, dict)]
        is_test_run = at(test_run, "test_file", "test_passed") is not None
        if not is_test_run and not any(map(cls.is_record, looked_at)):
            return None
        model = at(at(test_run, "hyperparameters"), "model")
        if not model:
            return cases
        return [{_MODEL: model, **case} if isinstance(case, dict) else case for case in cases]

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        """Return whether this is a test case of DeepEval: a conversation, or one exchange.

        One with ``messages`` is of another format.
        """
        has_metrics = at(value, "metrics_data") is not None
        is_conversation = at(value, "input") is None
        if is_conversation:
            return has_metrics and isinstance(value.get("turns"), list)
        has_field_of_case = at(value, *_FIELDS_OF_CASES) is not None
        is_case = has_metrics or has_field_of_case
        return is_case and _has_answer(value) and "messages" not in value

    @classmethod
    @override
    def is_own(cls, value: Mapping[str, Any]) -> bool:
        return _has_answer(value) or isinstance(value.get("turns"), list)

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, fallback_id: str
    ) -> Iterable[Sample]:
        case, field_remarks = convert_record(_in_snake(record), _Case)
        talk = Conversation()
        talk.remarks |= field_remarks
        _read_turns(case, talk)
        models, spent = _requests(case.trace)
        talk.remark_amounts([case.token_cost, case.completion_time])
        cost = as_amount(case.token_cost)
        seconds = as_amount(case.completion_time)
        if cost is not None or seconds is not None:
            if cost is None:
                cost = spent.get("cost_usd")
            spent = {**spent, "cost_usd": cost, "seconds": seconds}
        facets = _scalars(case.additional_metadata or case.metadata or {})
        facets |= {"tags": case.tags} if case.tags else {}
        known = named(case.name, fallback_id, facets=facets)
        model = text_or_none(models.pop() if len(models) == 1 else case.model)
        usage = Usage(**spent) if spent else None
        scores = _scores(case, talk)
        expectation = Expectation(calls=_expected_calls(case), text=case.expected_output)
        sample = log_sample(
            known,
            talk,
            source,
            model=model,
            usage=usage,
            recorded=scores,
            expected=expectation,
        )
        return [sample]


def _has_answer(value: Mapping[str, Any]) -> bool:
    return "actualOutput" in value or "actual_output" in value


def _read_turns(case: _Case, talk: Conversation) -> None:
    """Read the turns of a test case, or its question and its answer."""
    for turn in case.turns:
        _read_turn(turn, at(turn, "tools_called"), talk)
    if case.turns:
        return
    if case.input is not None:
        question_message = Message(role="user", content=case.input)
        text = talk.text_of(case.input, "\n") or ""
        talk.add_question(question_message, text)
    if case.tools_called is None:
        spans = as_list(at(case.trace, "tool_spans"))
    else:
        spans = []
    reply = {"role": "assistant", "content": case.actual_output}
    recorded_calls = spans or case.tools_called
    _read_turn(reply, recorded_calls, talk)


def _scores(case: _Case, talk: Conversation) -> dict[str, Any]:
    """Return the scores of metrics and the verdict, and count a remark for a failed metric."""
    scores: dict[str, Any] = {}
    for metric in case.metrics_data:
        if metric.name is not None and metric.score is not None:
            scores[metric.name] = metric.score
        if metric.error:
            talk.remark("metric_error")
    if case.success is not None:
        scores["success"] = case.success
    return scores


def _requests(trace: Any) -> tuple[set[str], dict[str, Any]]:
    """Return the models that a traced test case asked, and their usage."""
    spans = [span for span in as_list(at(trace, "llm_spans")) if isinstance(span, dict)]
    models = {span["model"] for span in spans if isinstance(span.get("model"), str)}
    if not spans:
        return models, {}
    spent: dict[str, Any] = {"requests": len(spans)}
    for side in ("input", "output"):
        counts = [as_amount(at(span, f"{side}_token_count")) or 0 for span in spans]
        prices = [as_amount(at(span, f"cost_per_{side}_token")) or 0 for span in spans]
        total = as_amount(sum(counts))
        if total:
            spent[f"{side}_tokens"] = int(total)
        if any(prices):
            costs = sum(count * price for count, price in zip(counts, prices, strict=True))
            cost_usd = spent.get("cost_usd", 0.0)
            spent["cost_usd"] = cost_usd + costs
    return models, spent


def _expected_calls(case: _Case) -> tuple[ExpectedCall, ...] | None:
    """Return the expected calls; the arguments of a tool without parameters are not compared."""
    if case.expected_tools is None:
        return None
    calls = []
    for number, tool in enumerate(case.expected_tools):
        called = {"name": tool.strip()} if isinstance(tool, str) else as_map(tool)
        name = called.get("name")
        parameters = at(called, "input_parameters", "input")
        if not isinstance(name, str):
            shown = compact(tool)[:60]
            raise ValueError(f"expected.calls[{number}]: expected a call with a name, got {shown}")
        arguments, text = (None, None) if parameters is None else parse_arguments(parameters)
        raw = text if arguments is None else None
        expected_call = ExpectedCall(name=name, arguments=arguments, raw_arguments=raw)
        calls.append(expected_call)
    return tuple(calls)


def _read_turn(turn: Mapping[str, Any], recorded_calls: Any, talk: Conversation) -> None:
    """Read the calls of a turn with their results, and its message."""
    content = turn.get("content")
    tools = [tool for tool in as_list(recorded_calls) if isinstance(tool, dict)]
    for tool in as_list(recorded_calls):
        if tool and not isinstance(tool, dict):
            talk.remark_unread("entry of `toolsCalled`")
    if tools or (recorded_calls == [] and content is None):
        talk.step += 1
        talk.text = None
        calls = [_made_call(tool, talk) for tool in tools]
        message = Message(role="assistant", tool_calls=tuple(calls))
        talk.add(message)
        for call in calls:
            if call.status:
                talk.add(Message(role="tool", content=call.result, name=call.name))
    if turn.get("role") == "assistant":
        talk.remark_unread_keys(dict(turn), _READ_TURN)
    if content is not None:
        role = turn.get("role")
        talk.read([{"role": role, "content": content}])


def _made_call(tool: dict[str, Any], talk: Conversation) -> ToolCall:
    """Add a recorded tool call to the conversation, finished if it has an output or error."""
    arguments = parse_arguments(at(tool, "input_parameters", "input"))
    call = talk.add_call("function", None, tool.get("name"), arguments)
    output = tool.get("output")
    error = text_or_none(tool.get("error"))
    if output is not None or error is not None:
        form = error_form(output)
        if form is None:
            finish(call, output, error)
        else:
            finish(call, output, error or form.message, form.type)
    return call

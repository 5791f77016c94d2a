"""DeepFabric's own evaluation, as its versions 4.10 to 4.13 compute it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

from msgspec import UNSET
from typing_extensions import override

from gradestack import (
    ABSENT,
    JSON,
    Inputs,
    Program,
    ProgramFigure,
    ProgramInput,
    ProgramRun,
    Sample,
    ToolCall,
    compile_later,
)
from gradestack.jsonio import as_map, standard_loads
from gradestack_plugins.deepfabric.aggregators import FIGURES
from gradestack_plugins.deepfabric.exporter import (
    ARTEFACT,
    COUNTS,
    VERDICTS,
    Prediction,
    native_config,
    render_around,
    render_prediction,
)
from gradestack_plugins.deepfabric.grader import WRONG, DeepFabric, weighted
from gradestack_plugins.deepfabric.records import (
    GroundTruth,
    Record,
    RecordProblem,
    check_expected,
    check_word,
    parse_record,
    read_calls,
    read_truth,
)
from gradestack_plugins.deepfabric.replies import (
    NO_TOOL,
    ReplyProblem,
    balanced,
    blocks,
    function_of,
    replies_of,
    require,
    split_kind,
)
from gradestack_plugins.deepfabric.samples import NO_REPLY, Entry
from gradestack_plugins.deepfabric.schemas import CLASSES, Classes

SAME_NUMBER: Final = 1e-6


class Call(NamedTuple):
    """A call as it is recorded, whatever stands in it."""

    name: Any
    arguments: Any


NO_CALL: Final = Call(None, {})


class Response(NamedTuple):
    """The parts of one reply that a backend hands over."""

    content: str
    calls: Sequence[Call] = ()
    """All calls; where a single turn is evaluated, the one that counts."""


class Tool(NamedTuple):
    """A tool's definition."""

    name: str
    required: list[str]
    classes: dict[str, Classes]
    """Accepted classes of decoded values by parameter; nothing is coerced."""


# Records


def ground_truth(record: Record, calls: list[ToolCall]) -> GroundTruth:
    """Return the ground truth of a record, as the original program takes it.

    Raises:
        RecordProblem: An expected call cannot be used, or the agent mode is no single turn.
    """
    truth = read_truth(record, calls)
    for call in calls:
        check_expected(call)
    mode = (record.metadata or {}).get("agent_mode")
    check_word("metadata.agent_mode", mode, (None, "single_turn"))
    return truth


def convert_tools(record: Record) -> tuple[list[Tool], Exception | None]:
    """Return the definitions of a record's tools, and why they cannot be converted."""
    try:
        return [convert_tool(entry) for entry in record.tools or ()], None
    except (RecordProblem, AttributeError, TypeError) as problem:
        return [], problem


def convert_tool(entry: Mapping[str, Any]) -> Tool:
    """Return the definition of a tool in OpenAI's form; one in another form has no name."""
    function = entry.get("function", {})
    schema = function.get("parameters", {})
    properties = schema.get("properties") or {}
    required = schema.get("required")
    listed = set(required or ())
    declared = {name: inner for name, inner in properties.items() if inner is not None}
    words = {name: inner.get("type", "string") for name, inner in declared.items()}
    classes = {name: CLASSES.get(word, CLASSES["string"]) for name, word in words.items()}
    name = function.get("name", "")
    described = (function, *declared.values())
    for text in (name, *(text.get("description", "") for text in described)):
        if not isinstance(text, str):
            raise RecordProblem(f"name and descriptions of a tool must be text, got {text!r:.80}")
    keys = [key for key in classes if key in listed]
    return Tool(name, keys, classes)


# Replies


def read_response(reply: JSON, *, has_tools: bool, multi_turn: bool) -> Response:
    """Read the text and the calls of one reply, which is a text or an object.

    Calls in a text are parsed, if the record has tools. An object is either a chat message with
    calls in OpenAI's form, or it holds calls as DeepFabric records them: ``tool_call`` is then the
    one that counts in a single turn, ``tool_calls`` are all of several turns.

    Raises:
        ReplyProblem: The reply cannot be processed.
    """
    kind, text_or_fields = split_kind(reply)
    if kind == "text":
        calls = parse_calls(text_or_fields) if has_tools else []
        return Response(text_or_fields, calls)
    fields = text_or_fields
    content = fields.get("content")
    call_entries = fields.get("tool_calls") or []
    require(isinstance(call_entries, list), "tool_calls must be a list", call_entries)
    if kind == "chat" and "tool_call" not in fields:
        content = content or ""
        if None in call_entries or ({} in call_entries and not multi_turn):
            raise ReplyProblem("one of the tool_calls names no tool")
        calls = [read_chat_call(entry) for entry in call_entries]
    else:
        all_calls = [read_plain_call(entry) for entry in call_entries]
        counted_entry = fields.get("tool_call")
        if counted_entry in NO_TOOL:
            counted_calls = []
        else:
            counted_calls = [read_plain_call(counted_entry)]
        calls = all_calls if multi_turn else counted_calls
    require(isinstance(content, str), "the content of a reply must be text", content)
    return Response(content, calls)


def read_plain_call(fields: Any) -> Call:
    """Read a call from an object with name and arguments, neither of which is decoded."""
    require(isinstance(fields, dict), "a tool call must be an object or null", fields)
    arguments = fields.get("arguments", {})
    return Call(fields.get("name"), arguments)


def read_chat_call(entry: Any) -> Call:
    """Read a call of a chat message, decoding arguments in JSON text where it has OpenAI's form.

    Text that is no JSON stands for no arguments.
    """
    function, is_openai = function_of(entry)
    call = read_plain_call(function)
    if not is_openai or isinstance(call.arguments, dict):
        return call
    requirement = "the arguments of a call must be JSON text or an object"
    usable = isinstance(call.arguments, str)
    require(usable, requirement, call.arguments)
    arguments = parse_json(call.arguments)
    return call._replace(arguments={} if arguments is ABSENT else arguments)


def parse_json(text: str) -> Any:
    """Return the value of a text, ABSENT where it is no JSON."""
    try:
        return standard_loads(text)
    except json.JSONDecodeError:
        return ABSENT


HEAD: Final = compile_later(r'\{\s*"name"\s*:\s*"([^"]+)"\s*,\s*"parameters"\s*:\s*(?=\{)')
WRAPPER: Final = compile_later(r'\{\s*"type"\s*:\s*"function"\s*,\s*"function"\s*:\s*(?=\{)')
MARK: Final = compile_later(r"\[TOOL_CALLS\]\s*(?=\[)")
LIST: Final = compile_later(r"\[\s*\{.*?\}\s*\]", re.DOTALL)
BRACES: Final = compile_later(r"[{}]")
LIST_END: Final = compile_later(r"\}\s*\]")


def parse_calls(text: str) -> list[Call]:
    """Return every call that the first parser with a result finds."""
    for values in parsed_values(text):
        calls = [call for value in values if (call := call_in(value)) is not None]
        if calls:
            return calls
    return []


def parsed_values(text: str) -> Iterator[list[Any]]:
    """Yield the calls that each parser reads, in time in proportion to the text."""
    # Qwen, Hermes: blocks between tags
    yield [parse_json(block.strip()) for block in blocks(text)]
    # Mistral: the list behind its mark, up to its first bracket; any list of objects
    for mark in islice(MARK.finditer(text), 1):
        yield entries(text[mark.end() : text.find("]", mark.end()) + 1])
    matches = LIST_END.finditer(text)
    ends = [end.end() for end in matches]
    lists = LIST.findall(text[: ends[-1]]) if ends else ()
    yield [value for part in lists for value in entries(part)]
    # Llama: a name and flat parameters; OpenAI's wrapper, with room for a name; any flat object
    yield [
        {"name": head[1], "arguments": parse_json(inner)} for head, inner in enclosed(HEAD, text)
    ]
    wrapped = [parse_json(inner) for _, inner in enclosed(WRAPPER, text)]
    yield [{"name": "", "arguments": {}, **value} for value in wrapped if isinstance(value, dict)]
    parts = re.findall(r"\{[^{}]*\}", text)
    yield [with_arguments(part) for part in parts]
    # any other model: objects between outermost braces, those in strings counted
    yield [with_arguments(part) for part in balanced(text, BRACES)]


def call_in(value: Any) -> Call | None:
    """Read a call from an object with a name and arguments (an object, or its JSON text)."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments")
    if isinstance(arguments, str):
        arguments = parse_json(arguments)
    if isinstance(arguments, dict):
        return Call(value["name"], arguments)
    return None


def entries(text: str) -> list[Any]:
    """Return the values of a JSON list; none where the text is no list."""
    values = parse_json(text)
    return values if isinstance(values, list) else []


def enclosed(head: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each head with the object behind it.

    That ends at its first closing brace, and another one follows.
    """
    for part, space in pairwise(text.split("}")[:-1]):
        start = None if space.strip() else head.search(part)
        if start is not None:
            end = start.end()
            yield start, part[end:] + "}"


def with_arguments(text: str) -> Any:
    """Return the object of a text, its parameters as arguments where it has none."""
    value = parse_json(text)
    if isinstance(value, dict):
        return {"arguments": value.get("parameters"), **value}
    return None


# Verdicts


def judge_call(
    truth: GroundTruth, calls: Sequence[Call], tools: Sequence[Tool]
) -> tuple[bool, ...]:
    """Judge the first call against the expected one: whether tool, parameters, and both are right.

    All are wrong where no call is expected or made.
    """
    if not calls:
        return WRONG
    call = calls[0]
    is_object = isinstance(call.arguments, dict)
    require(is_object, "the arguments of a call must be an object", call.arguments)
    if not truth.calls or call.name is None:
        return WRONG
    expected = truth.calls[0]
    is_selected = call.name == expected.name
    is_accurate = are_parameters_right(expected.arguments or {}, call, tools)
    return (is_selected, is_accurate, is_selected and is_accurate)


def are_parameters_right(expected: Mapping[str, Any], call: Call, tools: Sequence[Tool]) -> bool:
    """Compare arguments: with the schema of the called tool, by value where it is not known."""
    predicted = call.arguments
    if not expected and not predicted:
        return True
    known = [tool for tool in tools if tool.name == call.name and call.name]
    if not known:
        keys = expected.keys()
        is_same = keys == predicted.keys()
        return is_same and all(is_equal(expected[key], predicted[key]) for key in expected)
    tool = known[0]
    return all(name in predicted for name in tool.required) and all(
        type(value) in tool.classes[name]
        for name, value in predicted.items()
        if name in tool.classes
    )


def is_equal(expected: Any, predicted: Any) -> bool:
    """Compare values: texts without case and outer space, numbers (bools, too) within 1e-6."""
    if isinstance(expected, str) and isinstance(predicted, str):
        return expected.lower().strip() == predicted.lower().strip()
    if isinstance(expected, int | float) and isinstance(predicted, int | float):
        size = abs(float(expected) - float(predicted))
        return not size > SAME_NUMBER
    return bool(expected == predicted)


def judge_turns(
    truth: GroundTruth, calls: Sequence[Call], answer: str
) -> tuple[tuple[bool, ...], float]:
    """Judge the calls of several turns against the expected tools.

    Order, repeats and surplus calls cost nothing; of arguments only the names count.

    Returns:
        Whether all expected tools were called, whether with all expected arguments, and whether
        there is any call or answer; the share of the expected tools that were called.
    """
    expected_arguments = {call.name: call.arguments or {} for call in reversed(truth.calls)}
    expected_calls = [call for call in calls if call.name in expected_arguments]
    coverage = float(not calls)
    if expected_arguments:
        names = {call.name for call in expected_calls}
        coverage = len(names) / len(expected_arguments)
    is_accurate = all(
        expected_arguments[call.name].keys() <= as_map(call.arguments).keys()
        for call in expected_calls
    )
    return (coverage == 1.0, is_accurate, bool(calls or answer)), coverage


# Results


def result_of(number: int, entry: Entry, grader: DeepFabric) -> Prediction:
    """Return the result of a record and its reply.

    A record on which the program itself ends, without any result, is a processing error, too.
    """
    result = Prediction(number)
    try:
        evaluate_sample(entry, grader, result)
    except Exception as error:  # noqa: BLE001  as the program: it costs this record alone
        if entry.reply is ABSENT:
            result.error = NO_REPLY
        else:
            result.error = str(error)
    return result


def evaluate_sample(entry: Entry, grader: DeepFabric, result: Prediction) -> None:
    """Fill in a result, as far as the record and its reply can be processed.

    Raises:
        Exception: Of any class: they cannot.
    """
    record = parse_record(entry.record)
    calls = read_calls(record)
    if record.agent_context is not None:
        check_word("agent_context.mode", record.agent_context.mode, ("single_turn",))
    tools, problem = convert_tools(record)
    result.available_tools = [tool.name for tool in tools]
    if calls and problem is not None:
        raise problem
    truth = ground_truth(record, calls)
    result.query = truth.query
    result.expected_answer = truth.answer
    for call in calls[:1]:
        result.expected_tool = call.name
        result.expected_parameters = call.arguments
    if problem is not None:
        raise problem
    contents = [message.content for message in record.prompt]
    if UNSET in contents:
        raise RecordProblem("'content'")
    turns = []
    replies = replies_of(entry.reply)
    for reply in replies[: grader.max_turns if grader.multi_turn else 1]:
        response = read_response(reply, has_tools=bool(tools), multi_turn=grader.multi_turn)
        turns.append(response)
        if not turns[-1].calls:
            break
    counted = [call for turn in turns for call in turn.calls]
    answer = turns[-1].content
    score = 0.0
    if grader.multi_turn:
        verdicts, score = judge_turns(truth, counted, answer)
    else:
        verdicts = judge_call(truth, counted, tools)
        if None in contents:
            raise RecordProblem("a message of the prompt has null content")
    called = counted[0] if counted else NO_CALL
    is_name = isinstance(called.name, str | None)
    require(is_name, "the name of a called tool must be text", called.name)
    result.predicted_tool = called.name
    result.predicted_parameters = as_map(called.arguments)
    result.predicted_answer, result.response_score = answer, score
    result.set_verdicts(verdicts)


def mean(predictions: Sequence[Prediction], field: str) -> float:
    """Return the mean of a field, summed in order; 0.0 of nothing."""
    total = 0.0
    for prediction in predictions:
        total += getattr(prediction, field)
    return total / len(predictions) if predictions else 0.0


def compute_metrics(predictions: Sequence[Prediction], grader: DeepFabric) -> dict[str, Any]:
    """Return the metrics of results."""
    rates = [mean(predictions, field) for field in (*VERDICTS, "response_score")]
    score = weighted(rates, grader.weights)
    errors = sum(prediction.error is not None for prediction in predictions)
    counts = (len(predictions), len(predictions) - errors, errors)
    return dict(zip((*FIGURES, *COUNTS), (*rates, score, *counts), strict=True))


CONSOLE: Final = """Evaluation Summary
Samples Evaluated: {samples_evaluated}
Processed Successfully: {samples_processed}
Processing Errors: {processing_errors}

Metrics
Tool Selection Accuracy: {tool_selection_accuracy:.2%}
Parameter Accuracy: {parameter_accuracy:.2%}
Execution Success Rate: {execution_success_rate:.2%}
Response Quality: {response_quality:.2%}

Overall Score: {overall_score:.2%}"""
WHY: Final = (
    "the program compares by value where the called tool is not known, counts samples that expect "
    "no call as wrong, and reads tools and replies by rules of its own"
)


class DeepFabricProgram(Program):
    """DeepFabric's result file as its versions 4.10 to 4.13 write it.

    A text reply is read by the parser for any model. Weights and turns are the grader's.
    """

    reader = "deepfabric"
    title = "DeepFabric"

    @override
    def run(self, program_input: ProgramInput) -> ProgramRun:
        graders = program_input.graders.items()
        keys = [key for key, grader in graders if isinstance(grader, DeepFabric)]
        key = keys[0] if keys else ""
        grader: Any = program_input.graders.get(key, DeepFabric())
        inputs = Inputs(data=(program_input.input,), dataset=program_input.dataset)
        index = program_input.reader.index(inputs)
        predictions = []
        for shard in program_input.reader.plan(inputs, index):
            for sample in program_input.reader.read(shard, index):
                if isinstance(sample, Sample):
                    native = sample.native
                    result = result_of(native.row, native.entry, grader)
                    predictions.append(result)
        predictions = predictions[: program_input.max_samples]
        metrics = compute_metrics(predictions, grader)
        shown = (program_input.dataset or program_input.input).shown
        config = native_config(shown, grader, program_input.max_samples)
        head, tail = render_around(metrics, config)
        if predictions:
            records = ",\n".join(map(render_prediction, predictions))
            head = f"{head}\n{records}"
            tail = f"\n  {tail}"
        figures = [
            ProgramFigure(label=name, value=value, figure=f"{key}.deepfabric.{name}", why=WHY)
            for name, value in metrics.items()
        ]
        console = CONSOLE.format_map(metrics)
        files = {ARTEFACT: head + tail}
        return ProgramRun(
            files=files,
            console=console,
            figures=tuple(figures) if key else (),
        )

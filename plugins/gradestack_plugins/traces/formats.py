"""Platforms' rows: the keys of each platform, and which rows are models, tools and roots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradestack import Input
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.readers.chat import literal, word
from gradestack_plugins.readers.chat.calls import decoded
from gradestack_plugins.readers.chat.forms import forms_read
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.rows import Kind, Row, runs_of_rows
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.readers.spans import Span, field_paths, read_row

_SURE: Final = 0.96
_HTTP_ERROR: Final = 400


class RowReader(RunReader):
    """Base of readers of traces that are kept as rows.

    Rows that share a trace are one run; where they name none, a request that continues an answer
    belongs to the run of that answer.

    Attributes:
        places: Field of ``Span`` -> the path of its value in a row, its own name by default. Of
            several paths the first one with a value counts; of a list the first entry.
        kinds: The platform's word for a kind of rows -> the kind.
        keys: Keys by which the rows of a platform are recognised.
        needed: Keys that every row has.
    """

    places: ClassVar[Mapping[str, str]] = {}
    kinds: ClassVar[Mapping[str, Kind]] = {}
    keys: ClassVar[frozenset[str]] = frozenset()
    needed: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        rows = cls.rows_in(record)
        are_own = any(cls.keys <= row.keys() and cls.is_row(row) for row in rows)
        return _SURE if are_own else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return any(map(cls.is_row, cls.rows_in(record)))

    @classmethod
    def is_row(cls, row: dict[str, Any]) -> bool:
        """Return whether an object is a row of the platform."""
        return cls.needed <= row.keys()

    @classmethod
    def rows_in(cls, record: Any) -> list[dict[str, Any]]:
        """Return the rows that a record is, or that a document lists."""
        if not isinstance(record, dict):
            return [row for row in as_list(record) if isinstance(row, dict)]
        for key in ("spans", "data"):
            listed = record.get(key)
            if isinstance(listed, list) and listed:
                return [row for row in listed if isinstance(row, dict)]
        return [record]

    def kind_of(self, span: Span) -> Kind:
        """Return the kind of a row: by its word, else a row without a parent is the root."""
        kind = self.kinds.get(span.kind or "")
        if kind is not None:
            return kind
        return "other" if span.parent else "root"

    def complete_row(self, row: Row, recorded: dict[str, Any]) -> None:
        """Change a row where the platform differs from the others."""

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        rows = self._rows(records)
        yield from runs_of_rows(rows, file.name, keeps_records=self.ids is not None)

    def _rows(self, records: Iterable[Record]) -> Iterator[Row]:
        paths = field_paths(self.places)
        for value, source in records:
            rows = self.rows_in(value)
            for recorded in filter(self.is_row, rows):
                row = read_row(recorded, paths, self.kind_of)
                row.source, row.record = source, recorded
                self.complete_row(row, recorded)
                yield row


class AgentsTraces(RowReader):
    """Reads traces of OpenAI's Agents SDK: ``trace`` and ``trace.span`` objects.

    Generations are answers, functions give results. A trace is a run; its group is the cluster.
    Answers of the Responses API are traced with their tokens alone: their calls are those of
    functions.
    """

    example_file = "traces.jsonl"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "trace_id id",
        "own": "id",
        "parent": "parent_id",
        "group": "group_id",
        "kind": "span_data.type",
        "name": "span_data.name",
        "started": "started_at",
        "input": "span_data.input",
        "output": "span_data.output",
        "model": "span_data.model",
        "usage": "span_data.usage",
    }
    kinds: ClassVar[Mapping[str, Kind]] = {
        "generation": "model",
        "response": "model",
        "function": "tool",
    }
    keys = frozenset({"object", "id"})

    @classmethod
    @override
    def is_row(cls, row: dict[str, Any]) -> bool:
        return word(row, "object") in {"trace", "trace.span"} and "id" in row

    @override
    def kind_of(self, span: Span) -> Kind:
        return self.kinds.get(span.kind or "", "other")


class Opik(RowReader):
    """Reads spans of Opik: ``llm`` spans are answers, ``tool`` spans give results.

    A span without a parent is the root of its run, and so is the trace of a file that ``opik
    export`` writes; feedback scores are recorded.
    """

    example_file = "spans.json"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "trace_id",
        "own": "id",
        "parent": "parent_span_id",
        "kind": "type",
        "started": "start_time",
        "error": "error_info",
        "scores": "feedback_scores",
    }
    kinds: ClassVar[Mapping[str, Kind]] = {"llm": "model", "tool": "tool"}
    keys = frozenset({"trace_id", "parent_span_id", "type", "feedback_scores"})
    needed = frozenset({"trace_id", "type"})

    @classmethod
    @override
    def rows_in(cls, record: Any) -> list[dict[str, Any]]:
        rows = super().rows_in(record)
        trace = as_map(record).get("trace")
        if isinstance(trace, dict):
            trace_id = trace.get("id")
            rows.append({**trace, "id": "", "trace_id": trace_id, "type": "trace"})
        return rows


class Weave(RowReader):
    """Reads calls of Weave: those whose inputs are messages are answers, others steps.

    A step gives the result of the call of its name in an answer. A call without a parent is the
    root of its run.
    """

    example_file = "calls.jsonl"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "trace_id",
        "own": "id",
        "parent": "parent_id",
        "name": "op_name",
        "started": "started_at",
        "input": "inputs",
        "error": "exception",
    }
    keys = frozenset({"op_name", "trace_id", "inputs", "output"})
    needed = frozenset({"op_name", "trace_id"})

    @override
    def kind_of(self, span: Span) -> Kind:
        output = as_map(span.output)
        has_answer = {"choices", "content", "candidates"} & output.keys()
        if has_answer or isinstance(as_map(span.input).get("messages"), list):
            return "model"
        return "step" if span.parent else "root"

    @override
    def complete_row(self, row: Row, recorded: dict[str, Any]) -> None:
        row.name = row.name.rpartition("/")[2].partition(":")[0]
        if row.kind == "step":
            inputs = as_map(row.arguments)
            row.arguments = {key: value for key, value in inputs.items() if key != "self"}


_BRAINTRUST_TOKENS: Final = {
    "prompt_cached_tokens": "cached_tokens",
    "prompt_cache_creation_tokens": "cache_write_tokens",
    "completion_reasoning_tokens": "reasoning_tokens",
}


class Braintrust(RowReader):
    """Reads spans of Braintrust: logs and experiments.

    ``llm`` spans are answers, ``tool`` spans give results. The root of a trace has the question,
    the answer, the expected answer, and the scores of its run.
    """

    example_file = "experiment.jsonl"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "root_span_id",
        "own": "span_id",
        "parent": "span_parents.first",
        "task": "id",
        "kind": "span_attributes.type",
        "name": "span_attributes.name",
        "started": "created",
        "model": "metadata.model",
        "usage": "metrics",
    }
    kinds: ClassVar[Mapping[str, Kind]] = {"llm": "model", "tool": "tool"}
    keys = frozenset({"root_span_id", "span_id", "span_attributes"})
    needed = keys

    @override
    def complete_row(self, row: Row, recorded: dict[str, Any]) -> None:
        if row.kind == "model":
            usage: dict[str, Any] = {}
            metrics = recorded.get("metrics")
            for key, value in as_map(metrics).items():
                usage[_BRAINTRUST_TOKENS.get(key, key)] = value
            row.usage = usage_of(usage)


class Helicone(RowReader):
    """Reads requests exported from Helicone; those of one session are one run.

    A request that failed is no answer; bodies may be JSON text.
    """

    example_file = "requests.jsonl"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "request_properties.Helicone-Session-Id",
        "own": "request_id",
        "started": "request_created_at",
        "input": "request_body",
        "output": "response_body",
        "cost": "costUSD cost_usd",
    }
    keys = frozenset({"request_id", "request_body", "response_body"})
    needed = frozenset({"request_body", "response_body"})

    @override
    def kind_of(self, span: Span) -> Kind:
        return "model"

    @override
    def complete_row(self, row: Row, recorded: dict[str, Any]) -> None:
        status = recorded.get("response_status")
        has_failed = isinstance(status, int) and not 0 <= status < _HTTP_ERROR
        if has_failed:
            answered = as_map(decoded(recorded["response_body"]))
            error = answered.get("error")
            row.error = error or f"the request ended with status {status}"


class LiteLLM(RowReader):
    """Reads request logs of LiteLLM: standard logging payloads, and rows of its spend logs.

    Requests of one trace or session are one run; a request that failed is no answer.
    """

    example_file = "spend_logs.jsonl"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "trace_id session_id",
        "own": "id",
        "started": "startTime",
        "input": "messages proxy_server_request",
        "output": "response",
        "cost": "response_cost spend",
        "error": "error_str",
    }
    keys = frozenset({"call_type", "messages", "response"})
    needed = frozenset({"call_type"})

    @override
    def kind_of(self, span: Span) -> Kind:
        return "model"

    @override
    def complete_row(self, row: Row, recorded: dict[str, Any]) -> None:
        if recorded.get("status") != "failure":
            row.error = None
            return
        row.error = row.error or "the request failed"
        row.response, row.usage = [], None


class LangSmith(RowReader):
    """Reads runs exported from LangSmith: ``llm`` runs are answers, ``tool`` runs give results.

    The run without a parent is the root. Its reference outputs and feedback are recorded.
    """

    example_file = "runs.jsonl"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "trace_id",
        "own": "id",
        "parent": "parent_run_id",
        "kind": "run_type",
        "started": "dotted_order start_time",
        "input": "inputs",
        "output": "outputs",
        "model": "extra.metadata.ls_model_name",
        "expected": "reference_outputs",
        "scores": "feedback_stats",
    }
    kinds: ClassVar[Mapping[str, Kind]] = {"llm": "model", "tool": "tool"}
    keys = frozenset({"run_type", "trace_id", "inputs", "outputs"})
    needed = frozenset({"run_type", "trace_id"})

    @override
    def complete_row(self, row: Row, recorded: dict[str, Any]) -> None:
        inputs = recorded.get("inputs")
        prompts = as_list(as_map(inputs).get("prompts"))
        if row.kind == "model" and prompts:
            row.request = _prompt_question(prompts, row.response)
        elif row.kind == "tool":
            row.arguments = _tool_input(inputs)
            outputs = recorded.get("outputs")
            row.result, error = _tool_result(outputs)
            row.error = error if row.error is None else row.error


def _prompt_question(prompts: Sequence[Any], reply: list[Any]) -> list[Any]:
    """Return the user's question from prompts that a tracer wrote as one text.

    Prompts of a chat model repeat messages that were said: they are no questions.
    """
    is_chat = any("tool_calls" in as_map(entry) for entry in reply)
    return [] if is_chat else [{"role": "user", "content": prompts[0]}]


def _tool_result(outputs: Any) -> tuple[Any, str | None]:
    """Return the result of a tool's run, and its error: also of a message of LangChain."""
    output = as_map(outputs).get("output", outputs)
    message = forms_read([output])[0] if isinstance(output, dict) else None
    if word(message, "role") != "tool":
        return output, None
    content = as_map(message).get("content")
    return content, as_text(content) if word(message, "status") == "error" else None


def _tool_input(inputs: Any) -> Any:
    """Return the arguments of a tool's run, which LangChain also writes as JSON or a literal."""
    keys = as_map(inputs).keys()
    text = word(inputs, "input") if keys == {"input"} else ""
    arguments = literal(text)[1] if text.startswith("{") else inputs
    return arguments if isinstance(arguments, dict) else inputs


class BedrockLogs(RowReader):
    """Reads logs of model invocations of Amazon Bedrock.

    A request that continues an earlier answer belongs to the run of that answer.
    """

    example_file = "AWSLogs/…/20260101T00….json"
    version = "1"
    places: ClassVar[Mapping[str, str]] = {
        "trace": "requestMetadata.sessionId",
        "own": "requestId",
        "started": "timestamp",
        "input": "input.inputBodyJson",
        "output": "output.outputBodyJson",
        "model": "modelId",
        "prompt_tokens": "input.inputTokenCount",
        "completion_tokens": "output.outputTokenCount",
        "tools": "input.inputBodyJson.toolConfig.tools",
        "error": "errorCode",
    }
    keys = frozenset({"schemaType", "modelId", "input"})

    @classmethod
    @override
    def is_row(cls, row: dict[str, Any]) -> bool:
        return word(row, "schemaType") == "ModelInvocationLog"

    @override
    def kind_of(self, span: Span) -> Kind:
        return "model"

    @override
    def complete_row(self, row: Row, recorded: dict[str, Any]) -> None:
        if row.tools:
            row.tools = [_tool_spec(tool) for tool in row.tools]


def _tool_spec(tool: Any) -> Any:
    """Return a tool of Converse in the form of the APIs."""
    tool_spec = as_map(tool).get("toolSpec")
    spec = as_map(tool_spec)
    input_schema = spec.get("inputSchema")
    schema = as_map(input_schema).get("json")
    description = spec.get("description")
    return {"name": spec.get("name"), "description": description, "parameters": schema}

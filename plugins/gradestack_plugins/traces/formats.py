"""Platforms' rows: what is a row of a model, of a tool, and a root, in each of them."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import JSON, Input, Usage, replace
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.readers.bodies import answers_in, asked_in, model_in, usage_in
from gradestack_plugins.readers.chat import literal, word
from gradestack_plugins.readers.chat.forms import forms_read
from gradestack_plugins.readers.chat.names import decoded
from gradestack_plugins.readers.chat.usage import count_of, usage_of
from gradestack_plugins.readers.rows import Row, runs_of_rows
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.96
_HTTP_ERROR: Final = 400


class RowReader(RunReader):
    """Base of readers of traces that are kept as rows.

    A platform names the keys of its rows and writes ``row_of``. Rows that share a trace are one
    run; where they name none, a request that goes on from an answer belongs to its run.

    Attributes:
        keys: Keys of the rows of a platform, by which it is told.
        needed: Those of them without which a row is none.
        own_key: Key of a row's id.
        parent_key: Key of the id of the row above it.
    """

    keys: ClassVar[frozenset[str]] = frozenset()
    needed: ClassVar[frozenset[str]] = frozenset()
    own_key: ClassVar[str] = "id"
    parent_key: ClassVar[str] = "parent_id"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        rows = cls.rows_in(record)
        is_own = [cls.keys <= row.keys() and cls.is_row(row) for row in rows]
        return _SURE if is_own and any(is_own) else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return any(cls.needed <= row.keys() and cls.is_row(row) for row in cls.rows_in(record))

    @classmethod
    def is_row(cls, row: dict[str, Any]) -> bool:
        """Return whether an object that has all keys is a row of the platform."""
        return True

    @classmethod
    def rows_in(cls, record: Any) -> list[dict[str, Any]]:
        """Return the rows that a record is, or that a document lists."""
        if isinstance(record, dict):
            listed = as_list(record.get("spans")) or as_list(record.get("data"))
            if not listed:
                return [record]
        else:
            listed = as_list(record)
        return [row for row in listed if isinstance(row, dict)]

    @abc.abstractmethod
    def row_of(self, row: dict[str, Any]) -> Row | None:
        """Return what a row is; None of one that belongs to no conversation."""

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        yield from runs_of_rows(self._rows(records), file.name)

    def _rows(self, records: Iterable[Record]) -> Iterator[Row]:
        for value, source in records:
            for recorded in self.rows_in(value):
                if not self.needed <= recorded.keys() or not self.is_row(recorded):
                    continue
                row = self.row_of(recorded) or Row(kind="other", trace=self.trace_of(recorded))
                row.source, row.record = source, recorded
                row.own, row.parent = word(recorded, self.own_key), self.parent_of(recorded)
                yield row

    def trace_of(self, row: dict[str, Any]) -> str:
        """Return what the rows of one run share; "" where they name nothing."""
        return word(row, "trace_id")

    def parent_of(self, row: dict[str, Any]) -> str:
        """Return the id of the row above one; "" where it has none."""
        return word(row, self.parent_key)


def _question(value: Any) -> list[Any]:
    """Return the question of a root: messages, a text, or the only text of an object."""
    value = decoded(value)
    if isinstance(value, Mapping) and not {"messages", "input"} & value.keys():
        texts = [text for text in value.values() if isinstance(text, str)]
        value = texts[0] if len(texts) == 1 else None
    return asked_in(value)


def _said(value: Any) -> str | None:
    """Return the answer of a root: a text, or the only text of an object."""
    value = decoded(value)
    if isinstance(value, str):
        return value
    texts = [text for text in as_map(value).values() if isinstance(text, str)]
    return texts[0] if len(texts) == 1 else None


def _scores(listed: Any) -> dict[str, JSON]:
    """Return scores by name, of a list of objects with a name and a value or a score."""
    scores: dict[str, JSON] = {}
    for score in as_list(listed):
        name, value = word(score, "name"), as_map(score).get("value", as_map(score).get("score"))
        if name and isinstance(value, bool | int | float | str):
            scores[name] = value
    return scores


@attrs.frozen(kw_only=True)
class AgentsTraces(RowReader):
    """Reads traces of OpenAI's Agents SDK: ``trace`` and ``trace.span`` objects.

    Generations are answers, functions give results. A trace is a run; its group is the cluster. Of
    answers of the Responses API a trace has the tokens alone: their calls are those of functions.
    """

    example_file = "traces.jsonl"
    version = "1"
    keys = frozenset({"object", "id"})
    needed = keys

    @classmethod
    @override
    def is_row(cls, row: dict[str, Any]) -> bool:
        return word(row, "object") in {"trace", "trace.span"}

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        if word(row, "object") == "trace":
            group = word(row, "group_id") or None
            return Row(kind="other", trace=word(row, "id"), group=group)
        about = as_map(row.get("span_data"))
        shared: dict[str, Any] = {
            "trace": word(row, "trace_id"),
            "started": word(row, "started_at"),
        }
        kind = about.get("type")
        if kind == "response":
            return Row(kind="model", usage=about.get("usage"), error=row.get("error"), **shared)
        if kind == "generation":
            return Row(
                kind="model",
                asked=asked_in(about.get("input")),
                answer=answers_in(about.get("output")),
                model=model_in(about),
                usage=about.get("usage"),
                error=row.get("error"),
                **shared,
            )
        if kind == "function":
            return Row(
                kind="tool",
                name=word(dict(about), "name"),
                arguments=decoded(about.get("input")),
                result=about.get("output"),
                error=row.get("error"),
                **shared,
            )
        return None


@attrs.frozen(kw_only=True)
class Opik(RowReader):
    """Reads spans of Opik: ``llm`` spans are answers, ``tool`` spans give results.

    A span without a parent is the root of its run, and so is the trace of a file that ``opik export``
    writes; feedback scores are recorded.
    """

    example_file = "spans.json"
    version = "1"
    keys = frozenset({"trace_id", "parent_span_id", "type", "feedback_scores"})
    needed = frozenset({"trace_id", "type"})
    parent_key = "parent_span_id"

    @classmethod
    @override
    def rows_in(cls, record: Any) -> list[dict[str, Any]]:
        rows = super().rows_in(record)
        trace = as_map(record).get("trace")
        if isinstance(trace, dict):
            rows.append({**trace, "id": "", "trace_id": trace.get("id"), "type": "trace"})
        return rows

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        shared: dict[str, Any] = {
            "trace": word(row, "trace_id"),
            "started": word(row, "start_time"),
            "error": row.get("error_info"),
        }
        if row.get("type") == "llm":
            return Row(
                kind="model",
                asked=asked_in(row.get("input")),
                answer=answers_in(row.get("output")),
                model=model_in(row, row.get("output"), row.get("input")),
                usage=row.get("usage") or usage_in(row.get("output")),
                **shared,
            )
        if row.get("type") == "tool":
            result, arguments = row.get("output"), row.get("input")
            name = word(row, "name")
            return Row(kind="tool", name=name, arguments=arguments, result=result, **shared)
        if row.get("parent_span_id") is None:
            return Row(
                kind="root",
                asked=_question(row.get("input")),
                text=_said(row.get("output")),
                recorded=_scores(row.get("feedback_scores")),
                **shared,
            )
        return None


@attrs.frozen(kw_only=True)
class Weave(RowReader):
    """Reads calls of Weave: those whose inputs are messages are answers, others steps.

    A step that is called like a call of an answer gives its result. A call without a parent is the
    root of its run.
    """

    example_file = "calls.jsonl"
    version = "1"
    keys = frozenset({"op_name", "trace_id", "inputs", "output"})
    needed = frozenset({"op_name", "trace_id"})

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        inputs, output = as_map(row.get("inputs")), row.get("output")
        shared: dict[str, Any] = {
            "trace": word(row, "trace_id"),
            "started": word(row, "started_at"),
            "error": row.get("exception"),
        }
        is_answer = (
            isinstance(output, dict) and {"choices", "content", "candidates"} & output.keys()
        )
        if is_answer or isinstance(inputs.get("messages"), list):
            return Row(
                kind="model",
                asked=asked_in(inputs),
                answer=answers_in(output),
                model=model_in(output, inputs),
                usage=usage_in(output),
                **shared,
            )
        if row.get("parent_id") is None:
            asked, text = _question(inputs), _said(output)
            return Row(kind="root", asked=asked, text=text, **shared)
        name = word(row, "op_name").rpartition("/")[2].partition(":")[0]
        own = {key: value for key, value in inputs.items() if key != "self"}
        return Row(kind="step", name=name, arguments=own, result=output, **shared)


@attrs.frozen(kw_only=True)
class Braintrust(RowReader):
    """Reads spans of Braintrust: logs and experiments.

    ``llm`` spans are answers, ``tool`` spans give results. The root of a trace has the question, the
    answer, what was expected, and the scores of its run.
    """

    example_file = "experiment.jsonl"
    version = "1"
    keys = frozenset({"root_span_id", "span_id", "span_attributes"})
    needed = keys
    own_key = "span_id"

    @override
    def trace_of(self, row: dict[str, Any]) -> str:
        return word(row, "root_span_id")

    @override
    def parent_of(self, row: dict[str, Any]) -> str:
        parents = as_list(row.get("span_parents"))
        return parents[0] if parents and isinstance(parents[0], str) else ""

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        kind = as_map(row.get("span_attributes")).get("type")
        shared: dict[str, Any] = {
            "trace": word(row, "root_span_id"),
            "started": word(row, "created"),
            "error": row.get("error"),
        }
        if kind == "llm":
            about = as_map(row.get("metadata"))
            return Row(
                kind="model",
                asked=asked_in(row.get("input")),
                answer=answers_in(row.get("output")),
                model=model_in(about),
                usage=_braintrust_usage(as_map(row.get("metrics"))),
                **shared,
            )
        if kind == "tool":
            name = word(dict(as_map(row.get("span_attributes"))), "name")
            result, arguments = row.get("output"), row.get("input")
            return Row(kind="tool", name=name, arguments=arguments, result=result, **shared)
        if row.get("span_id") == row.get("root_span_id"):
            scores = as_map(row.get("scores"))
            return Row(
                kind="root",
                id=word(row, "id"),
                asked=_question(row.get("input")),
                text=_said(row.get("output")),
                expected=decoded(row.get("expected")),
                recorded={name: value for name, value in scores.items() if value is not None},
                **shared,
            )
        return None


def _braintrust_usage(metrics: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "prompt_cached_tokens": "cached_tokens",
        "prompt_cache_creation_tokens": "cache_write_tokens",
        "completion_reasoning_tokens": "reasoning_tokens",
    }
    return {names.get(key, key): value for key, value in metrics.items()}


@attrs.frozen(kw_only=True)
class Helicone(RowReader):
    """Reads requests exported from Helicone; those of one session are one run.

    A request that failed is no answer; bodies may be JSON text.
    """

    example_file = "requests.jsonl"
    version = "1"
    keys = frozenset({"request_id", "request_body", "response_body"})
    needed = frozenset({"request_body", "response_body"})
    own_key = "request_id"

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        asked, answered = row.get("request_body"), row.get("response_body")
        properties = as_map(row.get("request_properties"))
        session = properties.get("Helicone-Session-Id")
        usage = usage_of(usage_in(answered)) or usage_of(row)
        cost = as_number(row.get("costUSD", row.get("cost_usd")))
        return Row(
            kind="model",
            trace=session if isinstance(session, str) else "",
            started=word(row, "request_created_at"),
            asked=asked_in(asked),
            answer=answers_in(answered),
            model=model_in(answered, asked),
            usage=usage if usage is None else replace(usage, cost_usd=cost),
            error=_failed_status(row.get("response_status"), answered),
        )


def _failed_status(status: Any, answered: Any) -> Any:
    """Return what made a request fail; None of one that did not."""
    if isinstance(status, int) and (status >= _HTTP_ERROR or status < 0):
        return as_map(decoded(answered)).get("error") or f"the request ended with status {status}"
    return None


@attrs.frozen(kw_only=True)
class LiteLLM(RowReader):
    """Reads request logs of LiteLLM: standard logging payloads, and rows of its spend logs.

    Requests of one trace or session are one run; a request that failed is no answer.
    """

    example_file = "spend_logs.jsonl"
    version = "1"
    keys = frozenset({"call_type", "messages", "response"})
    needed = frozenset({"call_type"})

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        answered = row.get("response")
        failed = word(row, "status") == "failure"
        usage = usage_of(usage_in(answered)) or usage_of(row)
        cost = as_number(row.get("response_cost", row.get("spend")))
        started = row.get("startTime")
        asked = asked_in(row.get("messages")) or asked_in(row.get("proxy_server_request"))
        return Row(
            kind="model",
            trace=word(row, "trace_id") or word(row, "session_id"),
            started=started if isinstance(started, str) else _sortable(started),
            asked=asked,
            answer=[] if failed else answers_in(answered),
            model=model_in(row, answered),
            usage=None if usage is None or failed else replace(usage, cost_usd=cost),
            error=(row.get("error_str") or "the request failed") if failed else None,
        )


def _sortable(seconds: Any) -> str:
    """Return a time in seconds as a text that sorts like it."""
    number = as_number(seconds)
    return "" if number is None else f"{number:020.6f}"


@attrs.frozen(kw_only=True)
class LangSmith(RowReader):
    """Reads runs exported from LangSmith: ``llm`` runs are answers, ``tool`` runs give results.

    The run without a parent is the root. Its reference outputs and feedback are recorded.
    """

    example_file = "runs.jsonl"
    version = "1"
    keys = frozenset({"run_type", "trace_id", "inputs", "outputs"})
    needed = frozenset({"run_type", "trace_id"})
    parent_key = "parent_run_id"

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        inputs, outputs = row.get("inputs"), row.get("outputs")
        shared: dict[str, Any] = {
            "trace": word(row, "trace_id"),
            "started": word(row, "dotted_order") or word(row, "start_time"),
            "error": row.get("error"),
        }
        about = as_map(as_map(row.get("extra")).get("metadata"))
        if row.get("run_type") == "llm":
            answer = answers_in(outputs)
            usage = usage_in(outputs, *answer) or _counted(row)
            model = about.get("ls_model_name")
            return Row(
                kind="model",
                asked=_asked_of_run(inputs, answer),
                answer=answer,
                model=model if isinstance(model, str) else model_in(outputs, inputs),
                usage=usage,
                **shared,
            )
        if row.get("run_type") == "tool":
            name, result, error = word(row, "name"), *_tool_result(outputs)
            if shared["error"] is None:
                shared["error"] = error
            arguments = _tool_input(inputs)
            return Row(kind="tool", name=name, arguments=arguments, result=result, **shared)
        if row.get("parent_run_id") is None:
            feedback = as_map(row.get("feedback_stats"))
            averages = {name: as_map(stats).get("avg") for name, stats in feedback.items()}
            return Row(
                kind="root",
                asked=_question(inputs),
                text=_said(outputs),
                expected=_said(row.get("reference_outputs")),
                recorded={name: value for name, value in averages.items() if value is not None},
                **shared,
            )
        return None


def _asked_of_run(inputs: Any, answer: list[Any]) -> list[Any]:
    """Return the messages that a model was asked with.

    Prompts that a tracer wrote as one text repeat messages that were said: they are no questions.
    """
    prompts = as_list(as_map(inputs).get("prompts"))
    if not prompts:
        return asked_in(inputs)
    is_chat = any("tool_calls" in as_map(entry) for entry in answer)
    return [] if is_chat else [{"role": "user", "content": prompt} for prompt in prompts[:1]]


def _tool_result(outputs: Any) -> tuple[Any, str | None]:
    """Return what a tool's run gave, and its error: also where that is a message of LangChain."""
    given = as_map(outputs).get("output", outputs)
    message = forms_read([given])[0] if isinstance(given, dict) else None
    if word(message, "role") != "tool":
        return given, None
    content = as_map(message).get("content")
    return content, as_text(content) if word(message, "status") == "error" else None


def _counted(row: Mapping[str, Any]) -> dict[str, Any] | None:
    counts = {key: row[key] for key in ("prompt_tokens", "completion_tokens") if row.get(key)}
    return counts or None


def _tool_input(inputs: Any) -> Any:
    """Return the arguments of a tool's run, which LangChain writes as JSON or as a literal, too."""
    text = word(inputs, "input") if as_map(inputs).keys() == {"input"} else ""
    found = literal(text)[1] if text.startswith("{") else inputs
    return found if isinstance(found, dict) else inputs


@attrs.frozen(kw_only=True)
class BedrockLogs(RowReader):
    """Reads logs of model invocations of Amazon Bedrock.

    A request that goes on from an earlier answer belongs to its run.
    """

    example_file = "AWSLogs/…/20260101T00….json"
    version = "1"
    keys = frozenset({"schemaType", "modelId", "input"})
    needed = frozenset({"schemaType"})
    own_key = "requestId"

    @classmethod
    @override
    def is_row(cls, row: dict[str, Any]) -> bool:
        return word(row, "schemaType") == "ModelInvocationLog"

    @override
    def row_of(self, row: dict[str, Any]) -> Row | None:
        inputs, outputs = as_map(row.get("input")), as_map(row.get("output"))
        asked, answered = inputs.get("inputBodyJson"), outputs.get("outputBodyJson")
        tools = as_list(as_map(as_map(asked).get("toolConfig")).get("tools"))
        session = as_map(row.get("requestMetadata")).get("sessionId")
        usage = usage_in(answered)
        counted = Usage(
            requests=1,
            input_tokens=count_of(inputs.get("inputTokenCount")),
            output_tokens=count_of(outputs.get("outputTokenCount")),
        )
        return Row(
            kind="model",
            trace=session if isinstance(session, str) else "",
            started=word(row, "timestamp"),
            asked=asked_in(asked),
            answer=answers_in(answered),
            model=word(row, "modelId") or None,
            usage=usage if usage is not None else counted,
            tools=[_tool_spec(tool) for tool in tools] or None,
            error=row.get("errorCode"),
        )


def _tool_spec(tool: Any) -> Any:
    """Return a tool of Converse in the form of the APIs."""
    spec = as_map(as_map(tool).get("toolSpec"))
    schema = as_map(spec.get("inputSchema")).get("json")
    return {"name": spec.get("name"), "description": spec.get("description"), "parameters": schema}

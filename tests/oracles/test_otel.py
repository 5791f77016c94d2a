"""Traces that released instrumentations write say in our reader what was sent and answered."""

import asyncio
import importlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.plugins.chat_files import read

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("default")]
ARGUMENTS = {"ref": "A1", "to": ["Ghent", "Köln"], "by": {"é": 1.5}}
TOOLS = [
    {"type": "function", "function": {"name": member, "parameters": {}}}
    for member in ("find", "move")
]
FUNCTIONS = [
    {"name": "find", "arguments": json.dumps(ARGUMENTS)},
    {"name": "move", "arguments": "{}"},
]
CALLS = [
    {"id": f"c{at}", "type": "function", "function": function}
    for at, function in enumerate(FUNCTIONS)
]
MADE = [("find", ARGUMENTS, "room 100", "ok"), ("move", {}, "Error: taken", "error")]
ASKED = [{"role": "system", "content": "Desk."}, {"role": "user", "content": "Move A1."}]
RESULTS = [
    {"tool_call_id": "c1", "content": "Error: taken"},
    {"tool_call_id": "c0", "content": "room 100"},
]
TALK = [
    *ASKED,
    {"role": "assistant", "tool_calls": CALLS},
    *({"role": "tool", **result} for result in RESULTS),
]
V2, ONLY = "opentelemetry.instrumentation.openai_v2", ("SPAN_ONLY", "EVENT_ONLY")
WRITERS = [
    f"{by}.instrumentation.{of}"
    for by in ("opentelemetry", "openinference")
    for of in ("openai", "langchain")
]
CASES = [*((member, "true") for member in (V2, *WRITERS)), *((V2, member) for member in ONLY)]


class Api(BaseHTTPRequestHandler):
    log_message = print

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        done = any(message["role"] == "tool" for message in request["messages"])
        reply_message = (
            {"role": "assistant", "content": "Done."}
            if done
            else {"role": "assistant", "tool_calls": CALLS}
        )
        choice = {
            "index": 0,
            "message": reply_message,
            "finish_reason": "stop" if done else "tool_calls",
        }
        usage = {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37}
        reply = {
            "id": "a",
            "object": "chat.completion",
            "created": 1,
            "model": "m-1",
            "usage": usage,
        }
        content = json.dumps({**reply, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def address():
    with HTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


class Export:
    """An exporter that keeps a program's traces and writes them as a Collector does."""

    def __init__(self):
        trace, logs = (
            pytest.importorskip(f"opentelemetry.sdk.{name}") for name in ("trace", "_logs")
        )
        to_spans, to_logs = (
            importlib.import_module(f"{module.__name__}.export") for module in (trace, logs)
        )
        memory = importlib.import_module(f"{trace.__name__}.export.in_memory_span_exporter")
        self.spans, self.logs = memory.InMemorySpanExporter(), to_logs.InMemoryLogRecordExporter()
        self.provider, self.logger = trace.TracerProvider(), logs.LoggerProvider()
        self.provider.add_span_processor(to_spans.SimpleSpanProcessor(self.spans))
        self.logger.add_log_record_processor(to_logs.SimpleLogRecordProcessor(self.logs))

    def sample(self, tmp_path):
        json_format = importlib.import_module("google.protobuf.json_format")
        common = "opentelemetry.exporter.otlp.proto.common"
        spans = importlib.import_module(f"{common}.trace_encoder").encode_spans(
            self.spans.get_finished_spans()
        )
        logs = importlib.import_module(f"{common}._log_encoder").encode_logs(
            self.logs.get_finished_logs()
        )
        path = tmp_path / "traces.jsonl"
        path.write_text(
            "".join(
                json.dumps(json_format.MessageToDict(request)) + "\n" for request in (spans, logs)
            )
        )
        (read_sample,) = read("otel", path)
        return read_sample

    def console_sample(self, tmp_path):
        """Return the sample of what the console exporter writes: documents of several lines."""
        path = tmp_path / "console.json"
        path.write_text("".join(f"{span.to_json()}\n" for span in self.spans.get_finished_spans()))
        (read_sample,) = read("otel", path)
        return read_sample


def made(sample):
    return [(call.name, call.arguments, call.result, call.status) for call in sample.calls]


@pytest.mark.parametrize(("module", "captured"), CASES)
def test_what_an_api_was_asked_and_answered(tmp_path, address, module, captured, monkeypatch):
    """By the client of OpenAI, and through LangChain, whose tools are run."""
    stability = pytest.importorskip(
        "opentelemetry.instrumentation._semconv"
    )._OpenTelemetrySemanticConventionStability
    monkeypatch.setattr(stability, "_initialized", False)  # it reads the environment once
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", captured)
    if captured in ONLY:
        monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    known = {name.lower(): value for name, value in vars(pytest.importorskip(module)).items()}
    export = Export()
    instrumentor = known[f"{module.rpartition('.')[2].partition('_')[0]}instrumentor"]()
    instrumentor.instrument(tracer_provider=export.provider, logger_provider=export.logger)
    try:
        with export.provider.get_tracer("desk").start_as_current_span("run"):
            through_langchain(address) if "langchain" in module else directly(address)
    finally:
        instrumentor.uninstrument()
    sample = export.sample(tmp_path)
    assert made(sample) == MADE
    assert (sample.input, sample.text, sample.model) == ("Move A1.", "Done.", "m-1")
    if module in WRITERS:  # the others write logs beside the spans
        assert made(export.console_sample(tmp_path)) == MADE
    assert (sample.usage.input_tokens, sample.usage.output_tokens, sample.usage.requests) == (
        60,
        14,
        2,
    )
    assert {call.step for call in sample.calls} == {0}


def directly(address):
    completions = (
        importlib.import_module("openai").OpenAI(base_url=address, api_key="none").chat.completions
    )
    for messages in (ASKED, TALK):
        completions.create(model="m", messages=messages, tools=TOOLS)


def through_langchain(address):
    tools = importlib.import_module("langchain_core.tools")
    model = pytest.importorskip("langchain_openai").ChatOpenAI(
        model="m", base_url=address, api_key="none"
    )
    functions = {"find": lambda ref, to, by: "room 100", "move": lambda: "Error: taken"}
    run = [
        tools.StructuredTool.from_function(function, name=name, description=".")
        for name, function in functions.items()
    ]
    bound, talk = model.bind_tools(run), [("system", "Desk."), ("user", "Move A1.")]
    reply = bound.invoke(talk)
    results = [tool.invoke(call) for tool, call in zip(run, reply.tool_calls, strict=True)]
    bound.invoke([*talk, reply, *results])


@pytest.mark.parametrize("captured", ["SPAN_AND_EVENT", "NO_CONTENT"])
def test_what_an_agent_of_adk_did(tmp_path, captured, monkeypatch):
    """Its own spans, also without content.

    Then calls are known by their executions, and whether these failed.
    """
    agents, models = (
        pytest.importorskip("google.adk.agents"),
        importlib.import_module("google.adk.models"),
    )
    runners, types = (
        importlib.import_module("google.adk.runners"),
        importlib.import_module("google.genai.types"),
    )
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", captured)
    export, spans = Export(), importlib.import_module("google.adk.telemetry.tracing")
    monkeypatch.setattr(spans, "tracer", export.provider.get_tracer("gcp.vertex.agent"))

    class Model(models.BaseLlm):
        async def generate_content_async(self, request, stream=False):
            done = any(
                part.function_response for content in request.contents for part in content.parts
            )
            calls = [
                types.FunctionCall(id=f"f{n}", name=name, args=arguments)
                for n, (name, arguments, *_) in enumerate(MADE)
            ]
            if done:
                parts = [types.Part(text="Done.")]
            else:
                parts = [types.Part(function_call=call) for call in calls]
            used = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=30, candidates_token_count=7
            )
            yield models.LlmResponse(
                content=types.Content(role="model", parts=parts), usage_metadata=used
            )

    def find(ref: str, to: list[str], by: dict) -> str:
        return "room 100"

    def move() -> dict:
        return {"error": "taken"}

    agent = agents.LlmAgent(name="desk", model=Model(model="m-1"), tools=[find, move])
    asyncio.run(runners.InMemoryRunner(agent, app_name="app").run_debug("Move A1.", quiet=True))
    sample = export.sample(tmp_path)
    assert [(call.name, call.status) for call in sample.calls] == [
        ("find", "ok"),
        ("move", "error"),
    ]
    used = sample.usage
    assert (sample.model, used.input_tokens, used.output_tokens, used.requests) == (
        "m-1",
        60,
        14,
        2,
    )
    if captured != "NO_CONTENT":
        made = [(call.arguments, call.result) for call in sample.calls]
        assert made == [(ARGUMENTS, {"result": "room 100"}), ({}, {"error": "taken"})]
        assert (sample.input, sample.text) == ("Move A1.", "Done.")

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
        content_length = self.headers["Content-Length"]
        text = self.rfile.read(int(content_length))
        request = json.loads(text)
        messages = request["messages"]
        done = any(message["role"] == "tool" for message in messages)
        reply_message = (
            {"role": "assistant", "content": "Done."}
            if done
            else {"role": "assistant", "tool_calls": CALLS}
        )
        finish_reason = "stop" if done else "tool_calls"
        choice = {
            "index": 0,
            "message": reply_message,
            "finish_reason": finish_reason,
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
        in_memory_span_exporter = memory.InMemorySpanExporter()
        self.spans, self.logs = in_memory_span_exporter, to_logs.InMemoryLogRecordExporter()
        tracer_provider = trace.TracerProvider()
        logger_provider = logs.LoggerProvider()
        self.provider = tracer_provider
        self.logger = logger_provider
        simple_span_processor = to_spans.SimpleSpanProcessor(self.spans)
        self.provider.add_span_processor(simple_span_processor)
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
        spans = self.spans.get_finished_spans()
        path.write_text("".join(f"{span.to_json()}\n" for span in spans))
        (read_sample,) = read("otel", path)
        return read_sample


def made(sample):
    mades = []
    for call in sample.calls:
        mades.append((call.name, call.arguments, call.result, call.status))
    return mades


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
    known = {}
    attributes = vars(pytest.importorskip(module))
    for name, value in attributes.items():
        known[name.lower()] = value
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
    assert sample.input == "Move A1."
    assert sample.text == "Done."
    assert sample.model == "m-1"
    if module in WRITERS:  # the others write logs beside the spans
        assert made(export.console_sample(tmp_path)) == MADE
    assert sample.usage.input_tokens == 60
    assert sample.usage.output_tokens == 14
    assert sample.usage.requests == 2
    steps = {call.step for call in sample.calls}
    assert steps == {0}


def directly(address):
    open_ai = importlib.import_module("openai").OpenAI(base_url=address, api_key="none")
    completions = open_ai.chat.completions
    for messages in (ASKED, TALK):
        completions.create(model="m", messages=messages, tools=TOOLS)


def through_langchain(address):
    tools = importlib.import_module("langchain_core.tools")
    model = pytest.importorskip("langchain_openai").ChatOpenAI(
        model="m", base_url=address, api_key="none"
    )
    functions = {"find": lambda ref, to, by: "room 100", "move": lambda: "Error: taken"}
    run = []
    for name, function in functions.items():
        run.append(tools.StructuredTool.from_function(function, name=name, description="."))
    bound = model.bind_tools(run)
    talk = [("system", "Desk."), ("user", "Move A1.")]
    reply = bound.invoke(talk)
    pairs = zip(run, reply.tool_calls, strict=True)
    results = [tool.invoke(call) for tool, call in pairs]
    bound.invoke([*talk, reply, *results])


@pytest.mark.parametrize("captured", ["SPAN_AND_EVENT", "NO_CONTENT"])
def test_what_an_agent_of_adk_did(tmp_path, captured, monkeypatch):
    """Its own spans, also without content.

    Then calls are known by their executions, and whether these failed.
    """
    agents = pytest.importorskip("google.adk.agents")
    models = importlib.import_module("google.adk.models")
    runners = importlib.import_module("google.adk.runners")
    types = importlib.import_module("google.genai.types")
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", captured)
    export = Export()
    spans = importlib.import_module("google.adk.telemetry.tracing")
    monkeypatch.setattr(spans, "tracer", export.provider.get_tracer("gcp.vertex.agent"))

    class Model(models.BaseLlm):
        async def generate_content_async(self, request, stream=False):
            done = any(
                part.function_response for content in request.contents for part in content.parts
            )
            calls = []
            for n, (name, arguments, *_) in enumerate(MADE):
                function_call = types.FunctionCall(id=f"f{n}", name=name, args=arguments)
                calls.append(function_call)
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

    model = Model(model="m-1")
    agent = agents.LlmAgent(name="desk", model=model, tools=[find, move])
    in_memory_runner = runners.InMemoryRunner(agent, app_name="app")
    debug = in_memory_runner.run_debug("Move A1.", quiet=True)
    asyncio.run(debug)
    sample = export.sample(tmp_path)
    assert [(call.name, call.status) for call in sample.calls] == [
        ("find", "ok"),
        ("move", "error"),
    ]
    used = sample.usage
    assert sample.model == "m-1"
    assert used.input_tokens == 60
    assert used.output_tokens == 14
    assert used.requests == 2
    if captured != "NO_CONTENT":
        made = [(call.arguments, call.result) for call in sample.calls]
        assert made == [(ARGUMENTS, {"result": "room 100"}), ({}, {"error": "taken"})]
        assert sample.input == "Move A1."
        assert sample.text == "Done."

"""Calls against the run's own tools: what is valid, what is violated where, and that nothing is fetched for it."""

import http.server
import json
import math
import random
import threading
import time

import jsonschema
import pytest

import gradestack
from gradestack import Outcome, Sample, ToolCall, ToolSpec
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.anthropic_logs.reader import _tools as of_anthropic
from gradestack_plugins.bfcl.answers import tools_of as of_bfcl
from gradestack_plugins.openai_logs.reader import _tool as of_openai
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.tau2_bench.records import _tools as of_tau2
from gradestack_plugins.trajectory.schemas import violations
from gradestack_plugins.trajectory.tool_schema import ToolSchema
from tests.core.outcomes import data

DATA = data(__file__, "tool_schema.yaml")

BOOK = {
    "type": "object",
    "properties": {"seat": {"type": "integer"}, "class": {"enum": ["a", "b"]}, "x/y~": {"type": "string"}},
    "required": ["seat"],
    "additionalProperties": False,
}
VERSION = "mcp_bench/tool_accuracy@01ae3b4"


def call(name="book", arguments=None, **more):
    return ToolCall(name=name, arguments={} if arguments is None else arguments, **more)


BOOKING = (ToolSpec(name="book", parameters=BOOK),)


def graded(*calls, tools=BOOKING, **options):
    return ToolSchema(**options).grade(Sample(id="a", calls=calls, tools=tools))


def one(schema, arguments, **options):
    return graded(call(arguments=arguments), tools=(ToolSpec(name="book", parameters=schema),), **options)


def test_the_score_is_the_share_of_valid_calls():
    """Unknown tools and arguments that are no object are not valid; counts say which were which, also by tool."""
    undecodable = ToolCall(name="book", arguments=None, raw_arguments="{")
    grade = graded(call(arguments={"seat": 1}), call(arguments={"seat": "1", "no": 1}), call("fly"), undecodable)
    assert grade.score == 0.25
    assert grade.counts == {
        "calls": 4,
        "valid": 1,
        "violating": 1,
        "unknown_tool": 1,
        "undecodable": 1,
        "unchecked": 0,
        "violation:type": 1,
        "violation:additionalProperties": 1,
    }
    assert [(item.id, item.score) for item in grade.items] == [("book", 1 / 3), ("fly", 0.0)]
    found = {(each.code, each.pointer, each.subject) for each in grade.reasons}
    assert found == {
        ("type", "/seat", "book"),
        ("additionalProperties", "", "book"),
        ("unknown_tool", "", "fly"),
        ("undecodable_arguments", "", "book"),
    }


def test_pointers_are_escaped():
    """RFC 6901: a slash in a key is ~1, a tilde ~0."""
    assert [each.pointer for each in one(BOOK, {"seat": 1, "x/y~": 2}).reasons] == ["/x~1y~0"]


@pytest.mark.parametrize(
    ("sample", "code"),
    [
        (Sample(id="a", tools=()), "calls_not_recorded"),
        (Sample(id="a", calls=(call(),)), "tools_not_recorded"),
        (Sample(id="a", calls=(), tools=()), "no_calls"),
        (Sample(id="a", calls=(call(requestor="user"),), tools=()), "no_calls"),
        (Sample(id="a", calls=(call(),), tools=(ToolSpec(name="book", parameters={"type": 3}),)), "schema_unusable"),
    ],
)
def test_what_is_not_known_is_skipped(sample, code):
    """No zero where nothing was recorded, or nothing can be checked."""
    grade = ToolSchema().grade(sample)
    assert (grade.outcome, grade.score, grade.reasons[0].code) == (Outcome.SKIPPED, None, code)


def test_a_run_without_tools_knows_none():
    """An empty list of tools is recorded: each call is of an unknown one."""
    assert graded(call(), tools=()).score == 0.0


def test_a_tool_without_a_schema_takes_anything_and_of_two_of_one_name_any_may():
    assert graded(call(arguments={"a": 1}), tools=(ToolSpec(name="book"),)).score == 1.0
    two = (ToolSpec(name="book", parameters=BOOK), ToolSpec(name="book", parameters={"required": ["a"]}))
    assert graded(call(arguments={"a": 1}), tools=two).score == 1.0
    assert [each.code for each in graded(call(), tools=two).reasons] == ["required"]


def test_calls_of_an_unusable_schema_are_in_neither_number():
    """Neither valid nor invalid: nobody knows."""
    tools = (ToolSpec(name="book", parameters=BOOK), ToolSpec(name="fly", parameters={"pattern": "(?=a)b"}))
    grade = graded(call(arguments={"seat": 1}), call("fly"), tools=tools)
    assert (grade.score, grade.counts["unchecked"], grade.reasons[0].code) == (1.0, 1, "schema_unusable")


@pytest.mark.parametrize(("dialect", "value", "valid"), DATA["dialects_are_told_by_the_schema"])
def test_dialects_are_told_by_the_schema(dialect, value, valid):
    """1.0 is an integer since draft 6; an unknown dialect is read as 2020-12; a bool is none anywhere."""
    schema = {"properties": {"n": {"type": "integer"}}} | ({"$schema": dialect} if dialect else {})
    assert one(schema, {"n": value}).score == float(valid)


def test_strict_integers_refuse_whole_floats():
    """Also within lists of types and referenced schemas; other types stay as they are."""
    schema = {
        "$defs": {"n": {"type": ["integer", "null"]}},
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "number"}, "c": {"type": "boolean"}},
    }
    assert one(schema, {"a": 1.0}, strict_integers=False).score == 1.0
    grade = one(schema, {"a": 1.0, "b": 1, "c": 1}, strict_integers=True)
    assert {(each.code, each.pointer) for each in grade.reasons} == {("type", "/a"), ("type", "/c")}
    assert one(schema, {"a": None, "b": 1.5, "c": True}, strict_integers=True).score == 1.0


def test_words_of_other_languages_for_types_are_understood():
    """Python's and Gemini's, where a reader has left them; a word nobody knows says nothing."""
    schema = {"type": "dict", "properties": {"a": {"type": "FLOAT"}, "b": {"type": "tuple", "items": {"type": "any"}}}}
    assert one(schema, {"a": 1, "b": [None]}).score == 1.0
    assert [each.pointer for each in one(schema, {"a": "1", "b": 2}).reasons] == ["/a", "/b"]


def test_odd_values_are_checked_or_left_unchecked():
    """Lone surrogates count as one character, NaN is no number, and huge numbers are."""
    assert one({"properties": {"t": {"maxLength": 1}}}, {"t": "\ud800"}).score == 1.0
    assert one({"properties": {"n": {"type": "number"}}}, {"n": math.nan}).score == 0.0
    assert one({"properties": {"n": {"type": "integer"}}}, {"n": 10**40}).score == 1.0
    assert one({"$ref": "#"}, {"a": 1}).score == 1.0
    assert one({}, {1: 2}).outcome is Outcome.SKIPPED


def test_formats_are_annotations_in_every_dialect():
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"d": {"format": "date"}}}
    assert one(schema, {"d": "no date"}).score == 1.0


def test_nothing_is_fetched_or_opened(tmp_path):
    """References to a server and to a file leave the call unchecked; the server that would answer hears nothing."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"required": ["never"]}')

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "schema.json").write_text('{"required": ["never"]}')
    place, file = f"http://127.0.0.1:{server.server_port}", (tmp_path / "schema.json").as_uri()
    try:
        for schema in (
            {"$ref": f"{place}/ref"},
            {"$id": f"{place}/base/", "$ref": "other"},
            {"properties": {"a": {"$dynamicRef": f"{place}/dynamic"}}},
            {"properties": {"a": {"$schema": f"{place}/meta"}}},
            {"$schema": f"{place}/meta", "$ref": file},
            {"$ref": file},
        ):
            for strict in (False, True):
                grade = one(schema, {"a": 1}, strict_integers=strict)
                assert "required" not in {each.code for each in grade.reasons}, schema
                assert "$ref" not in schema or grade.reasons[-1].code == "schema_unusable", schema
    finally:
        server.shutdown()
        server.server_close()
    assert asked == []


def test_patterns_take_linear_time():
    """What takes others ages is told at once."""
    schema = {"properties": {"t": {"pattern": "^(a+)+$"}}}
    began = time.perf_counter()
    assert one(schema, {"t": "a" * 100_000 + "b"}).score == 0.0
    assert time.perf_counter() - began < 20


def test_executed_calls_alone_can_be_counted():
    """Where it is not known of a call whether it was, nothing is counted."""
    bad, good = call(status="denied"), call(arguments={"seat": 1}, status="ok")
    assert graded(bad, good).score == 0.5
    assert graded(bad, good, count="executed").score == 1.0
    grade = graded(bad, good, call(), count="executed")
    assert (grade.outcome, grade.reasons[0].code) == (Outcome.SKIPPED, "execution_not_recorded")


def test_mcp_bench_gives_its_four_rates():
    """By hand: of four calls three are of known tools, of which two keep their schema and one fails; two succeed."""
    calls = (
        call(arguments={"seat": 1}, status="ok"),
        call(arguments={"seat": "1"}, status="error"),
        call("fly", status="error"),
        call("none", {"a": 1}, status="ok"),
    )
    grade = graded(
        *calls,
        tools=(ToolSpec(name="book", parameters=BOOK), ToolSpec(name="none", parameters={})),
        preset="mcp_bench/tool_accuracy",
    )
    assert grade.parts == {
        "valid_tool_name_rate": 0.75,
        "input_schema_compliance": 2 / 3,
        "execution_success_rate": 0.5,
        "valid_call_failure_rate": 1 / 3,
    }
    assert (grade.score, grade.passed, grade.metadata) == (2 / 3, None, {"preset": VERSION})


def test_mcp_bench_has_zeros_where_no_tool_is_known_and_nothing_without_calls():
    """A schema that is none is not kept; what is not done here is not expressible; outcomes may be unknown."""
    preset = {"preset": VERSION}
    assert graded(call("fly", status="ok"), **preset).parts == {
        "valid_tool_name_rate": 0.0,
        "input_schema_compliance": 0.0,
        "execution_success_rate": 1.0,
        "valid_call_failure_rate": 0.0,
    }
    assert graded(**preset).reasons[0].code == "no_calls"
    assert one({"type": "dict"}, {}, **preset).score == 0.0
    assert one({"$ref": "#/nowhere"}, {}, **preset).score == 0.0
    assert one({"$ref": "http://x.invalid/s"}, {}, **preset).reasons[0].code == "not_expressible"
    assert one({"pattern": "(?=a)"}, {}, **preset).reasons[0].code == "not_expressible"
    assert one(BOOK, {"seat": 1}, **preset).parts["execution_success_rate"] is None


def test_presets_are_named_with_their_version_and_refuse_what_contradicts_them():
    """In the component and in header.json; unknown ones with what was meant."""
    assert ToolSchema(preset="mcp_bench/tool_accuracy") == ToolSchema(preset=VERSION)
    for options, said in (
        ({"preset": "mcp_bench/tool_acuracy"}, "did you mean"),
        ({"preset": "mcp_bench/tool_accuracy@1"}, "in version 01ae3b4 only"),
        ({"preset": VERSION, "strict_integers": True}, "leaves no choice for strict_integers"),
    ):
        with pytest.raises(Problems, match=said):
            structure(options, ToolSchema)


def test_header_names_a_presets_version(tmp_path):
    """However the suite wrote it."""
    line = {"id": "a", "predicted": [{"name": "f", "arguments": {}}], "tools": [{"name": "f"}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(line) + "\n")
    grader = "{kind: tool_schema, preset: mcp_bench/tool_accuracy}"
    (tmp_path / "suite.yaml").write_text(f"name: s\ntarget: {{paths: [runs.jsonl]}}\ngraders: {{s: {grader}}}\n")
    report = gradestack.run(tmp_path / "suite.yaml", output=tmp_path / "out")
    stage = next(each for each in report.header["components"] if each["name"] == "tool_schema")
    assert stage["options"] == {"preset": VERSION}
    assert next(iter(report.rows()))["grade"]["metadata"] == {"preset": VERSION}


def test_figures_are_over_calls_by_tool_and_by_keyword():
    """With an interval that leaves out a task at a time; without a checked call there is a reason."""
    runs = {"a": (call(arguments={"seat": 1}), call("fly")), "b": (call(), call(arguments={"seat": 2}))}
    rows = [(task, None, None, graded(*calls)) for task, calls in runs.items()]
    figures = gradestack.figures({"call_validity": {}}, rows)["call_validity"]
    assert (figures["calls"], figures["valid"], figures["valid_share"]) == (4, 2, 0.5)
    assert figures["violations"] == {"required": 1}
    assert (figures["valid_share_interval"]["n"], figures["valid_share_interval"]["clusters"]) == (4, 2)
    assert {name: each["valid_share"] for name, each in figures["tools"].items()} == {"book": 2 / 3, "fly": 0.0}
    assert gradestack.figures({"call_validity": {}}, [])["call_validity"]["valid_share_reason"] == "no call was checked"


def _schema(rng, depth=0):
    kinds = ["integer", "number", "string", "boolean", "null", "array", "object"]
    found = {}
    if rng.random() < 0.8:
        found["type"] = rng.choice([rng.choice(kinds), rng.sample(kinds, 2)])
    if rng.random() < 0.3:
        found |= rng.choice(
            [{"enum": [1, "a", None, [1]]}, {"const": 1}, {"minimum": 1}, {"maxLength": 1}, {"maxItems": 1}]
        )
    if depth < 3:
        if rng.random() < 0.5:
            found["properties"] = {name: _schema(rng, depth + 1) for name in "ab"}
            found["required"] = rng.sample("ab", rng.randrange(3))
        if rng.random() < 0.3:
            found["items"] = _schema(rng, depth + 1)
        if rng.random() < 0.3:
            found[rng.choice(["anyOf", "oneOf", "allOf"])] = [_schema(rng, depth + 1) for _ in range(2)]
        if rng.random() < 0.2:
            found["additionalProperties"] = rng.choice([False, _schema(rng, depth + 1)])
    return found


def _value(rng, depth=0):
    plain = [0, 1, 2, 1.0, 1.5, "a", "ab", True, None]
    if depth < 3 and rng.random() < 0.5:
        return rng.choice([[_value(rng, depth + 1) for _ in range(2)], {key: _value(rng, depth + 1) for key in "abc"}])
    return rng.choice(plain)


def test_verdicts_and_places_are_those_of_another_validator():
    """Five hundred random schemas and arguments against the jsonschema package, with what is violated where."""
    rng = random.Random(17)  # noqa: S311 - test data
    seen = set()
    for _ in range(500):
        schema, arguments = _schema(rng), {key: _value(rng) for key in rng.sample("abc", rng.randrange(4))}
        grade = one(schema, arguments)
        validator = jsonschema.Draft202012Validator(schema)
        wanted = {
            (error.validator, "".join(f"/{step}" for step in error.absolute_path))
            for error in validator.iter_errors(arguments)
        }
        found = violations(schema, arguments, strict_integers=False)
        assert {(each.code, each.pointer) for each in found} == wanted, (schema, arguments)
        assert grade.score == float(not wanted)
        seen.add(grade.score)
    assert seen == {0.0, 1.0}


@pytest.mark.parametrize("schema", [5, "text", [1], [["a"]], True])
def test_a_schema_that_is_no_object_makes_no_call_valid(schema):
    found = [
        tool_spec({"name": "book", "parameters": schema}),
        tool_spec({"type": "function", "function": {"name": "book", "parameters": schema}}),
        *of_anthropic([{"name": "book", "input_schema": schema}], None),
        of_openai({"name": "book", "input_schema": schema}),
        *of_bfcl([{"name": "book", "parameters": schema}], texts=False),
        *of_tau2({"book": {"doc": "", "params": schema}}),
    ]
    assert len(found) == 6
    for tool in found:
        grade = graded(call(), tools=(tool,))
        assert (grade.outcome, grade.counts["unchecked"]) == (Outcome.SKIPPED, 1)
        assert [reason.code for reason in grade.reasons] == ["schema_unusable", "schema_unusable"]

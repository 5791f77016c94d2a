"""Calls against the run's own tools.

What is valid, what is violated where, and that nothing is fetched for it.
"""

import http.server
import math
import random
import threading

import jsonschema
import pytest

from gradestack import Outcome, Sample, ToolCall, ToolSpec
from gradestack.suites.options import Problems, structure
from gradestack_plugins.bfcl.side_files import tools_of as of_bfcl
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation
from gradestack_plugins.readers.chat.samples import tools_of
from gradestack_plugins.tau2_bench.records import setting_of
from gradestack_plugins.trajectory.schemas import violations
from gradestack_plugins.trajectory.tool_schema import ToolSchema

BOOK = {
    "type": "object",
    "properties": {
        "seat": {"type": "integer"},
        "class": {"enum": ["a", "b"]},
        "x/y~": {"type": "string"},
    },
    "required": ["seat"],
    "additionalProperties": False,
}
VERSION = "mcp_bench/tool_accuracy@01ae3b4"


def call(name="book", arguments=None, **more):
    return ToolCall(name=name, arguments={} if arguments is None else arguments, **more)


BOOKING = (ToolSpec(name="book", parameters=BOOK),)


def graded(*calls, tools=BOOKING, **options):
    tool_schema = ToolSchema(**options)
    sample = Sample(id="a", calls=calls, tools=tools)
    return tool_schema.grade(sample)


def one(schema, arguments, **options):
    return graded(
        call(arguments=arguments), tools=(ToolSpec(name="book", parameters=schema),), **options
    )


def test_odd_values_are_checked_or_left_unchecked():
    """Lone surrogates count as one character, NaN is no number, and huge numbers are."""
    assert one({"properties": {"t": {"maxLength": 1}}}, {"t": "\ud800"}).score == 1.0
    arguments = {"n": math.nan}
    assert one({"properties": {"n": {"type": "number"}}}, arguments).score == 0.0
    score = one({"properties": {"n": {"type": "integer"}}}, {"n": 10**40}).score
    assert score == 1.0
    assert one({"$ref": "#"}, {"a": 1}).score == 1.0
    assert one({}, {1: 2}).outcome is Outcome.SKIPPED


def test_nothing_is_fetched_or_opened(tmp_path):
    """References to a server and to a file leave the call unchecked.

    The server that would answer hears nothing.
    """
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"required": ["never"]}')

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    schema_path = tmp_path / "schema.json"
    schema_path.write_text('{"required": ["never"]}')
    address = f"http://127.0.0.1:{server.server_port}"
    file = (tmp_path / "schema.json").as_uri()
    try:
        dynamic_ref = f"{address}/dynamic"
        properties = {"a": {"$dynamicRef": dynamic_ref}}
        ref = f"{address}/ref"
        for schema in (
            {"$ref": ref},
            {"$id": f"{address}/base/", "$ref": "other"},
            {"properties": properties},
            {"properties": {"a": {"$schema": f"{address}/meta"}}},
            {"$schema": f"{address}/meta", "$ref": file},
            {"$ref": file},
        ):
            for strict in (False, True):
                grade = one(schema, {"a": 1}, strict_integers=strict)
                codes = {reason.code for reason in grade.reasons}
                assert "required" not in codes, schema
                assert "$ref" not in schema or grade.reasons[-1].code == "schema_unusable", schema
    finally:
        server.shutdown()
        server.server_close()
    assert requests == []


def test_presets_are_named_with_their_version_and_refuse_what_contradicts_them():
    """In the component and in header.json; unknown ones with what was meant."""
    tool_schema = ToolSchema(preset="mcp_bench/tool_accuracy")
    assert tool_schema == ToolSchema(preset=VERSION)
    for options, message in (
        ({"preset": "mcp_bench/tool_acuracy"}, "did you mean"),
        ({"preset": "mcp_bench/tool_accuracy@1"}, "in version 01ae3b4 only"),
        ({"preset": VERSION, "strict_integers": True}, "leaves no choice for strict_integers"),
    ):
        with pytest.raises(Problems, match=message):
            structure(options, ToolSchema)


def _schema(rng, depth=0):
    kinds = ["integer", "number", "string", "boolean", "null", "array", "object"]
    schema = {}
    if rng.random() < 0.8:
        schema["type"] = rng.choice([rng.choice(kinds), rng.sample(kinds, 2)])
    if rng.random() < 0.3:
        schema |= rng.choice(
            [
                {"enum": [1, "a", None, [1]]},
                {"const": 1},
                {"minimum": 1},
                {"maxLength": 1},
                {"maxItems": 1},
            ]
        )
    if depth < 3:
        if rng.random() < 0.5:
            schema["properties"] = {name: _schema(rng, depth + 1) for name in "ab"}
            schema["required"] = rng.sample("ab", rng.randrange(3))
        if rng.random() < 0.3:
            schema["items"] = _schema(rng, depth + 1)
        if rng.random() < 0.3:
            schema[rng.choice(["anyOf", "oneOf", "allOf"])] = [
                _schema(rng, depth + 1) for _ in range(2)
            ]
        if rng.random() < 0.2:
            schema["additionalProperties"] = rng.choice([False, _schema(rng, depth + 1)])
    return schema


def _value(rng, depth=0):
    plain = [0, 1, 2, 1.0, 1.5, "a", "ab", True, None]
    if depth < 3 and rng.random() < 0.5:
        return rng.choice(
            [
                [_value(rng, depth + 1) for _ in range(2)],
                {key: _value(rng, depth + 1) for key in "abc"},
            ]
        )
    return rng.choice(plain)


def test_verdicts_and_places_are_those_of_another_validator():
    """Five hundred random schemas and arguments against the jsonschema package, with what is
    violated where.
    """
    rng = random.Random(17)  # noqa: S311 - test data
    kinds_met = set()
    for _ in range(500):
        schema = _schema(rng)
        arguments = {}
        for key in rng.sample("abc", rng.randrange(4)):
            arguments[key] = _value(rng)
        grade = one(schema, arguments)
        validator = jsonschema.Draft202012Validator(schema)
        errors = validator.iter_errors(arguments)
        wanted = {
            (error.validator, "".join(f"/{step}" for step in error.absolute_path))
            for error in errors
        }
        mistakes = violations(schema, arguments, strict_integers=False)
        assert {(mistake.code, mistake.pointer) for mistake in mistakes} == wanted, (
            schema,
            arguments,
        )
        expected = float(not wanted)
        assert grade.score == expected
        kinds_met.add(grade.score)
    assert kinds_met == {0.0, 1.0}


@pytest.mark.parametrize("schema", [5, "text", [1], [["a"]], True])
def test_a_schema_that_is_no_object_makes_no_call_valid(schema):
    specifications = [
        tool_spec({"name": "book", "parameters": schema}),
        tool_spec({"type": "function", "function": {"name": "book", "parameters": schema}}),
        *(tools_of(Conversation(), {"tools": [{"name": "book", "input_schema": schema}]}) or ()),
        *of_bfcl([{"name": "book", "parameters": schema}], texts=False),
        *setting_of(
            {"environment_info": {"tool_defs": {"book": {"doc": "", "params": schema}}}}, None
        ).tools,
    ]
    assert len(specifications) == 5
    for tool in specifications:
        grade = graded(call(), tools=(tool,))
        assert grade.outcome == Outcome.SKIPPED
        assert grade.counts["unchecked"] == 1
        codes = [reason.code for reason in grade.reasons]
        assert codes == ["schema_unusable", "schema_unusable"]

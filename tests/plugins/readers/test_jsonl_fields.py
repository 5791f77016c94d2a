"""What the second version of the form adds: details of calls, references with rules, states, usage, origin."""

import json

import jsonschema
import msgspec
import pytest

from gradestack import (
    BadRecord,
    Expectation,
    ExpectedCall,
    Input,
    Message,
    Rule,
    Sample,
    Shard,
    Source,
    ToolCall,
    Usage,
)
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.readers.jsonl_fast import CallDetails
from gradestack_plugins.readers.jsonl_schema import SAMPLE_SCHEMA

VALID = jsonschema.Draft202012Validator(JsonLines.json_schema()).is_valid


@pytest.fixture
def read(parse, tmp_path):
    def read(**record):
        path = tmp_path / "f.jsonl"
        path.write_text(json.dumps(record) + "\n", encoding="utf-8")
        shard = Shard(ordinal=0, input=Input(path=path, name="f", shown="f.jsonl"))
        (found,) = JsonLines().read(shard, None)
        again = JsonLines().sample(record, Source(file="f.jsonl", ordinal=0, line=1))
        assert found == again
        assert repr(found) == repr(again)
        assert VALID(record) is isinstance(found, Sample) or record.get("version", 1) == 1
        return found

    return read


DETAILS = {
    "result": {"ok": True},
    "error": "late",
    "error_type": "Timeout",
    "turn": 0,
    "step": 3,
    "author": "planner",
    "server": "files",
    "kind": "mcp",
    "status": "error",
    "started": "2026-01-02T03:04:05Z",
    "seconds": 1.5,
}


def test_a_call_made_says_how_it_went(read):
    """Result, error, place in the run, who made it, where it ran, how it ended and how long it took."""
    sample = read(version=2, id="a", predicted=[{"name": "f", "arguments": {}, **DETAILS}])
    assert sample.calls == (ToolCall(name="f", **DETAILS),)


def test_details_of_calls_that_are_null_are_not_recorded(read):
    sample = read(version=2, id="a", predicted=[{"name": "f", **dict.fromkeys(DETAILS)}])
    assert sample.calls == (ToolCall(name="f"),)


ODD = [("status", "completed"), ("kind", "tool"), ("turn", "first"), ("seconds", "1"), ("error", {"code": 1})]


@pytest.mark.parametrize(("key", "value"), ODD)
def test_details_of_another_kind_are_left_out_in_the_first_version(read, key, value):
    """Its files may hold anything there: they are read as before, and what fits is taken."""
    sample = read(id="a", predicted=[{"name": "f", "author": "a", key: value}])
    assert sample.calls == (ToolCall(name="f", author="a"),)


@pytest.mark.parametrize(("key", "value"), ODD)
def test_details_of_another_kind_are_refused_in_the_second_version(read, key, value):
    """With the place they stand at."""
    found = read(version=2, id="a", predicted=[{"name": "g"}, {"name": "f", key: value}])
    assert isinstance(found, BadRecord)
    assert found.reason.startswith(f"predicted[1].{key}: ")


def test_details_of_calls_in_another_form_are_not_looked_at(read):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "status": "completed"}
    assert read(version=2, id="a", predicted=[call]).calls == (ToolCall(name="f", raw_arguments="{}", id="c"),)


def test_an_expected_call_may_be_one_of_several_tools_with_rules(read):
    rules = {
        "date": {"any_of": ["2026-01-02", "tomorrow"], "compare": "text"},
        "note": {"optional": True},
        "token": {"ignore": True},
        "price": {"any_of": [10], "compare": "number", "tolerance": 1},
    }
    sample = read(
        version=2,
        id="a",
        expected=[
            {"names": ["f", "g"], "arguments": {"x": 1}, "rules": rules},
            {"name": "h", "optional": True, "turn": 1, "group": 2, "requestor": "user"},
        ],
    )
    assert sample.expected.calls == (
        ExpectedCall(
            names=("f", "g"),
            arguments={"x": 1},
            rules={
                "date": Rule(any_of=("2026-01-02", "tomorrow"), compare="text"),
                "note": Rule(optional=True),
                "token": Rule(ignore=True),
                "price": Rule(any_of=(10,), compare="number", tolerance=1.0),
            },
        ),
        ExpectedCall(name="h", optional=True, turn=1, group=2, requestor="user"),
    )
    assert not any(call.plain for call in sample.expected.calls)


def test_null_arguments_are_not_compared_in_the_second_version(read):
    """In the first they are none; so in either form of a call."""
    flat, wrapped = {"name": "f", "arguments": None}, {"function": {"name": "f", "arguments": None}}
    assert read(id="a", expected=[flat, wrapped]).expected.calls == (ExpectedCall(name="f"),) * 2
    open_ = ExpectedCall(name="f", arguments=None)
    assert read(version=2, id="a", expected=[flat, wrapped]).expected.calls == (open_,) * 2
    assert read(version=2, id="a", predicted=[flat]).calls == (ToolCall(name="f"),)


def test_a_reference_may_have_alternatives_and_forbidden_tools_and_a_state(read):
    """Beside calls, label, text and plan."""
    sample = read(
        id="a",
        expected={
            "calls": [],
            "alternatives": [[{"name": "f"}], []],
            "forbidden": ["rm*"],
            "state": {"db": [1]},
            "label": "l",
        },
    )
    assert sample.expected == Expectation(
        calls=(), alternatives=((ExpectedCall(name="f"),), ()), forbidden=("rm*",), state={"db": [1]}, label="l"
    )


def wanted(**more):
    return [{"name": "f", **more}]


def ruled(rule):
    return wanted(rules={"x": rule})


COMPARE = "expected[0].rules.x.compare: expected one of exact, text, number, set, schema, regex, got "
NONSENSE = [
    ([{"names": []}], "expected[0]: expected a call with a name, got "),
    ([{"names": ["f", 1]}], "expected[0]: expected a call with a name, got "),
    ([{"name": 5, "names": ["f"]}], "expected[0]: expected a call with a name, got "),
    (wanted(names=5), "expected[0].names: expected a list of texts, got 5"),
    (wanted(optional="yes"), 'expected[0].optional: expected true or false, got "yes"'),
    (wanted(turn="1"), 'expected[0].turn: expected a whole number of at least 0, got "1"'),
    (wanted(turn=-1), "expected[0].turn: expected a whole number of at least 0, got -1"),
    (wanted(group=1.5), "expected[0].group: expected a whole number, got 1.5"),
    (wanted(requestor=5), "expected[0].requestor: expected text, got 5"),
    (wanted(rules="x"), 'expected[0].rules: expected an object: argument to rule, got "x"'),
    (ruled(5), "expected[0].rules.x: expected a rule, which is an object with any of any_of, optional, "),
    (ruled({"compare": "fuzzy", "any_of": [5]}), f'{COMPARE}"fuzzy"'),
    (ruled({"compare": "txt"}), f"{COMPARE}\"txt\" (did you mean 'text'?)"),
    (ruled({"compare": 5}), f"{COMPARE}5"),
    (ruled({"any": [1]}), "expected[0].rules.x.any: unknown key (did you mean 'any_of'?)"),
    (ruled({"zz": 1}), "expected[0].rules.x.zz: unknown key; known: any_of, optional, ignore, compare, tolerance"),
    (ruled({"any_of": "x"}), 'expected[0].rules.x.any_of: expected a list of values, got "x"'),
    (ruled({"ignore": 1}), "expected[0].rules.x.ignore: expected true or false, got 1"),
    (ruled({"tolerance": "1"}), 'expected[0].rules.x.tolerance: expected a number, got "1"'),
    (wanted(rules={"a b": 1}), 'expected[0].rules["a b"]: expected a rule'),
    (wanted(argments={"x": 1}), "expected[0].argments: unknown key (did you mean 'arguments'?)"),
    (wanted(optinal=True), "expected[0].optinal: unknown key (did you mean 'optional'?)"),
    ([{"function": {"name": "f", "args": {}}}], "expected[0].function.args: unknown key (did you mean 'arguments'?)"),
    ({"name": "f", "turn": []}, "expected.turn: expected a whole number of at least 0, got []"),
    ({"names": []}, "expected: expected a call with a name, got "),
    (
        {"name": "f", "forbidden": 5},
        "expected.forbidden: not beside the name of a call; give the call in a list ",
    ),
    ({"calls": [], "alternatives": {}}, "expected.alternatives: expected a list of lists of calls, got {}"),
    ({"alternatives": [5]}, "expected.alternatives[0]: expected a list of calls, got 5"),
    ({"alternatives": [[5]]}, "expected.alternatives[0][0]: expected a call with a name, got 5"),
    ({"alternatives": [[], wanted(turn="1")]}, "expected.alternatives[1][0].turn: expected a whole number of at "),
    ({"calls": wanted(group="a")}, 'expected.calls[0].group: expected a whole number, got "a"'),
    ({"forbidden": "rm"}, 'expected.forbidden: expected a list of texts, got "rm"'),
    ({"forbidden": 5}, "expected.forbidden: expected a list of texts, got 5"),
    ({"forbiden": []}, "expected.forbiden: unknown key (did you mean 'forbidden'?)"),
]
"""References that are wrong in either version, and why."""


@pytest.mark.parametrize(("expected", "reason"), NONSENSE)
def test_references_that_do_not_follow_the_form_are_refused(read, expected, reason):
    """In either version, with the place and what was expected there."""
    for version in (1, 2):
        found = read(version=version, id="a", expected=expected)
        assert isinstance(found, BadRecord)
        assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        (
            wanted(comment="x"),
            "expected[0].comment: unknown key; known: name, names, arguments, rules, optional, ",
        ),
        (wanted(arguments={}, args={}), "expected[0].args: unknown key (did you mean 'arguments'?)"),
        (wanted(arguments=[1]), "expected[0].arguments: expected an object or JSON text, got [1]"),
        (wanted(function="g"), 'expected[0].function: expected an object with name and arguments, got "g"'),
        ([{"function": {"name": "f"}, "name": "g"}], "expected[0].name: unknown key"),
        ([{"function": {"name": "f", "strict": True}}], "expected[0].function.strict: unknown key"),
    ],
)
def test_what_nobody_looked_at_in_expected_calls_is_refused_in_the_second_version(read, expected, reason):
    """Files of the first may hold it, and are read as before."""
    found = read(version=2, id="a", expected=expected)
    assert isinstance(found, BadRecord)
    assert found.reason.startswith(reason)
    (call,) = read(id="a", expected=expected).expected.calls
    assert call.name == "f"


def test_a_call_that_was_made_may_be_given_as_a_reference(read):
    """What it says of how it went is not expected of the next one."""
    made = {"name": "f", "arguments": {"x": 1}, "id": "c", "type": "function", "index": 0, **DETAILS, "turn": 2}
    wrapped = {"id": "c", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    calls = read(version=2, id="a", expected=[made, wrapped]).expected.calls
    assert calls == (ExpectedCall(name="f", arguments={"x": 1}, turn=2), ExpectedCall(name="g"))


def test_a_sample_says_how_it_ended_and_where_it_belongs(read):
    """Cluster, state, end, trace, children; null is "not recorded"."""
    sample = read(
        id="a/1",
        cluster="a",
        state={"db": 1},
        ended="limit:turns",
        trace={"trace_id": "t", "session_id": "s"},
        children=["a/1/b"],
    )
    assert (sample.cluster, sample.state, sample.ended) == ("a", {"db": 1}, "limit:turns")
    assert (sample.trace, sample.children) == ({"trace_id": "t", "session_id": "s"}, ("a/1/b",))
    bare = Sample(id="a", source=Source(file="f.jsonl", ordinal=0, line=1))
    assert read(id="a", cluster=None, state=None, ended=None, trace=None, children=None, usage=None) == bare


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"cluster": 1}, "cluster: expected text, got 1"),
        ({"ended": ["x"]}, 'ended: expected text, got ["x"]'),
        ({"trace": {"trace_id": 1}}, 'trace: expected an object of texts, got {"trace_id": 1}'),
        ({"trace": []}, "trace: expected an object, got []"),
        ({"children": ["a", 1]}, 'children: expected a list of texts, got ["a", 1]'),
    ],
)
def test_ends_and_origins_of_another_kind_are_refused(read, record, reason):
    """In either version, which had none of these keys before."""
    for version in (1, 2):
        found = read(version=version, id="a", **record)
        assert isinstance(found, BadRecord)
        assert found.reason == reason
        assert not VALID({"version": version, "id": "a", **record})


def test_usage_in_the_forms_keys_is_typed(read):
    """What is not said is None, never 0."""
    recorded = {"requests": 2, "input_tokens": 10, "cached_input_tokens": 0, "cost_usd": 1, "seconds": 2.5}
    sample = read(id="a", usage=recorded)
    assert sample.usage == Usage(requests=2, input_tokens=10, cached_input_tokens=0, cost_usd=1.0, seconds=2.5)
    assert sample.usage.output_tokens is None
    assert sample.agent_usage == recorded


@pytest.mark.parametrize("recorded", [{"tokens": 5}, {"requests": 1, "tokens": 5}, {"requests": "1"}, [1], 5, {}, "x"])
def test_usage_in_any_other_form_is_kept_as_it_is(read, recorded):
    """It is no error."""
    sample = read(version=2, id="a", usage=recorded)
    assert (sample.usage, sample.agent_usage) == (None, recorded)


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_messages_may_hold_reasoning(read, key):
    """Under either name."""
    sample = read(id="a", messages=[{"role": "assistant", "content": "x", key: "because"}])
    assert sample.turns == ((Message(role="assistant", content="x", reasoning="because"),),)


def test_the_second_version_is_that_of_the_schema():
    """Version 2 with all its keys is valid; an unknown key of a rule, or a status of another kind, is not."""
    line = {"version": 2, "id": "a", "predicted": [{"name": "f", **DETAILS}], "usage": {"requests": 1}}
    assert VALID(line)
    assert not VALID({**line, "version": 3})
    assert not VALID({**line, "predicted": [{"name": "f", "status": "completed"}]})
    assert not VALID({**line, "expected": [{"name": "f", "rules": {"x": {"any": [1]}}}]})


def test_the_form_has_every_detail_of_a_call():
    """What a call of the model can say can be written in the form, in the quick way and in the schema."""
    details = {field.name: field.type for field in msgspec.structs.fields(ToolCall)}
    for name in ("name", "arguments", "raw_arguments", "id", "requestor"):
        del details[name]
    assert {field.name: field.type for field in msgspec.structs.fields(CallDetails)} == details
    assert set(details) <= set(SAMPLE_SCHEMA["$defs"]["made"]["anyOf"][0]["properties"])

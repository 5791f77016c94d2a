"""JSON Lines: fields, lists of parameters."""

import itertools
import json

import jsonschema
import msgspec
import pytest

import gradestack
from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Input,
    Message,
    Rule,
    Sample,
    Shard,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    Usage,
    replace,
    testing,
)
from gradestack_plugins.readers.chat import list_schema
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.readers.jsonl_lines import CallDetails
from gradestack_plugins.readers.jsonl_schema import SAMPLE_SCHEMA
from tests.core.outcomes import data

DATA = data(__file__, "jsonl.yaml")

SCHEMA = JsonLines.json_schema()
FLAT = {"name": "f", "arguments": {"x": 1}}
OPENAI = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
CALL = ToolCall(name="f", arguments={"x": 1})
CALLED = ToolCall(name="f", arguments={"x": 1}, raw_arguments='{"x": 1}', id="c1")
WANTED = ExpectedCall(name="f", arguments={"x": 1})


def valid(record):
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(record)


def test_three_fields_are_enough(parse):
    assert parse(id="a", expected=[FLAT], predicted=[OPENAI]) == Sample(
        id="a", expected=Expectation(calls=(WANTED,)), calls=(CALLED,), source=Source(file="f.jsonl", ordinal=0)
    )


@pytest.mark.parametrize(
    ("side", "calls", "label", "text", "plan"),
    [
        (None, None, None, None, None),
        ([], (), None, None, None),
        ([FLAT, OPENAI], (CALL, CALLED), None, None, None),
        (FLAT, (CALL,), None, None, None),
        (OPENAI, (CALLED,), None, None, None),
        ("direct", None, "direct", "direct", None),
        ("", None, "", "", None),
        ({}, None, None, None, None),
        ({"calls": [], "label": "l", "text": "t", "plan": [1]}, (), "l", "t", [1]),
        ({"calls": None, "label": None, "text": None, "plan": None}, None, None, None, None),
    ],
)
def test_both_sides_have_short_forms(parse, side, calls, label, text, plan):
    """Calls, one call, a text, an object; and the schema allows each."""
    sample = parse(id="a", expected=side, predicted=side)
    wanted = None if calls is None else (WANTED,) * len(calls)
    assert sample.expected == Expectation(calls=wanted, label=label, text=text, plan=plan)
    assert (sample.calls, sample.label, sample.text, sample.plan) == (calls, label, text, plan)
    assert valid({"id": "a", "expected": side, "predicted": side})


def test_reference_texts_may_be_one_per_turn(parse):
    """Answers of several turns are one text, a line each."""
    sample = parse(id="a", expected={"text": ["x", "y"]}, predicted={"text": ["p", "q"]})
    assert (sample.expected.text, sample.text) == (("x", "y"), "p\nq")


def test_every_other_key(parse):
    record = {
        "version": 1,
        "id": 7,
        "model": "m",
        "run": 2,
        "input": ["one", "two"],
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "f"}, {"type": "function", "function": {"name": "g", "parameters": {}}}],
        "recorded": {"reward": 1.0},
        "error": {"type": "Timeout", "message": "slow"},
        "agent_id": "x",
        "usage": {"tokens": 5},
        "facets": {"domain": "air"},
        "predicted": "p",
    }
    assert valid(record)
    assert parse(**record) == Sample(
        id="7",
        model="m",
        run=2,
        input=("one", "two"),
        turns=((Message(role="user", content="hi"),),),
        tools=(ToolSpec(name="f"), ToolSpec(name="g", parameters={})),
        recorded={"reward": 1.0},
        status=Status.FAILED,
        error=Fault(category="target", code="target_error", message="slow", type="Timeout"),
        agent_id="x",
        agent_usage={"tokens": 5},
        facets={"domain": "air"},
        label="p",
        text="p",
        source=Source(file="f.jsonl", ordinal=0, id=7),
    )


TALK = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "first", "tool_calls": [OPENAI]},
    {"role": "tool", "content": "ok", "tool_call_id": "c1"},
    {"role": "assistant", "content": [{"text": "last "}, {"text": "words"}], "tool_calls": None},
]


def test_without_a_prediction_the_conversation_is_one(parse):
    """Its calls in order with their results, its last assistant message as answer, its question as input."""
    called = replace(CALLED, result="ok", status="ok", kind="function", turn=0, step=0)
    sample = parse(id="a", messages=TALK)
    assert (sample.calls, sample.text, sample.label, sample.input) == ((called,), "last words", None, "hi")
    assert len(sample.turns) == 1
    by_turn = parse(id="a", turns=[TALK[:2], TALK[2:]])
    assert (by_turn.calls, by_turn.text, len(by_turn.turns)) == ((called,), "last words", 2)
    assert valid({"id": "a", "messages": TALK})
    assert valid({"id": "a", "turns": [TALK]})


def test_a_prediction_beside_a_conversation_counts(parse):
    """Even an empty one; and no conversation is not "made no calls"."""
    assert parse(id="a", messages=TALK, predicted=[]).calls == ()
    assert parse(id="a", messages=TALK, predicted=None).calls is None
    assert parse(id="a", messages=[]).calls is None
    asked = parse(id="a", messages=[{"role": "user"}])
    assert (asked.calls, asked.remarks) == (None, {"question_without_answer": 1})


@pytest.mark.parametrize(
    ("error", "message", "kind"), [("slow", "slow", ""), ({}, "", ""), ({"type": 5, "message": None}, "", "5")]
)
def test_a_recorded_error_makes_a_failed_run(parse, error, message, kind):
    sample = parse(id="a", error=error)
    assert (sample.status, sample.error.message, sample.error.type) == (Status.FAILED, message, kind)
    assert parse(id="a", error=None).status is Status.OK


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        *DATA["records_that_do_not_follow_the_form"],
        ({"id": "a", "input": ["x" * 100, 5]}, 'input: expected text or a list of texts, got ["' + "x" * 55 + "..."),
    ],
)
def test_records_that_do_not_follow_the_form(parse, record, reason):
    """The key, what was expected, what was found; long values are cut. The record itself is kept for exporters."""
    found = parse(**record)
    assert isinstance(found, BadRecord)
    assert found.reason.startswith(reason)
    assert found.native == record


@pytest.mark.parametrize("record", DATA["the_schema_refuses_them_too"])
def test_the_schema_refuses_them_too(parse, record):
    """An editor or a producer's own tests notice what the reader would refuse."""
    assert isinstance(parse(**record), BadRecord)
    assert not valid(record)


@pytest.mark.parametrize("value", [None, 5, "x", [], [[]]])
def test_a_record_that_is_no_object(value):
    found = JsonLines().record(value, file="f", ordinal=2)
    assert (found.reason, found.source) == (
        f"record: expected an object, got {json.dumps(value)}",
        Source(file="f", ordinal=2),
    )


def test_a_record_too_deep_to_be_shown_is_a_bad_record(parse):
    """Showing what is wrong must not break on it."""
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert parse(id=deep).reason == "nested too deeply"


def test_lines_have_places(read_all):
    """Blank ones are counted; what is no JSON is a bad record at its line."""
    shards, [records] = read_all(['{"id": "a"}', "", "{", '{"id": "b"}', "[1]"])
    assert [(isinstance(each, Sample), each.source.line, each.source.ordinal) for each in records] == [
        (True, 1, 0),
        (False, 3, 2),
        (True, 4, 3),
        (False, 5, 4),
    ]
    assert (shards[0].first_line, shards[0].ordinal, shards[0].position) == (1, 0, 0)


@pytest.mark.parametrize("size", [1, 20, 50, 10_000])
def test_shards_of_any_size_hold_the_same(read_all, monkeypatch, size):
    """Numbered through over all files, with positions that never overlap."""
    files = [[{"id": str(number)} for number in range(9)], [{"id": "x"}], [{"id": str(number)} for number in range(4)]]
    _, whole = read_all(*files)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", size)
    shards, parts = read_all(*files)
    assert [shard.ordinal for shard in shards] == list(range(len(shards)))
    assert list(itertools.chain(*parts)) == list(itertools.chain(*whole))
    for shard, later, part in zip(shards, shards[1:], parts, strict=False):
        assert shard.position + len(part) <= later.position


def test_an_unknown_version_stops_before_anything_is_read(read_all):
    """The first line decides, with advice; in a later line it is a bad record."""
    with pytest.raises(DataError, match=r"runs0\.jsonl:2: version 9 of the sample form is unknown.*upgrade gradestack"):
        read_all(["", '{"version": 9, "id": "a"}'])
    _, [records] = read_all(['{"id": "a"}', '{"version": 9, "id": "b"}'])
    assert records[1].reason.startswith("version 9")
    _, [broken] = read_all(["{", '{"version": 9, "id": "b"}'])
    assert len(broken) == 2


@pytest.mark.parametrize(
    ("data", "sure"),
    [
        (b'{"id": "a", "expected": "x"}\n', 0.5),
        (b'\xef\xbb\xbf\n\n{"id": "a", "messages": []}', 0.5),
        (b'broken\n{"id": "a", "predicted": "x"}\n', 0.5),
        (b'{"version": 9, "id": "a", "predicted": "x"}', 0.5),
        (b'{"id": "a", "predicted": "x", "mine": 1}\n', 0.0),
        (b'{"id": "a"}\n', 0.0),
        (b'{"expected": "x"}\n', 0.0),
        (b'{"task_id": 1}\n{"id": "a", "predicted": "x"}\n', 0.0),
        (b"[]", 0.0),
        (b'[{"id": "a", "predicted": "x"}]', 0.0),
        (b"", 0.0),
        (b"\x00\xff", 0.0),
        (b"[" * 10_000, 0.0),
    ],
)
def test_the_form_is_recognised(tmp_path, data, sure):
    """By the keys of the first object; keys of others mean another format."""
    path = tmp_path / "x"
    path.write_bytes(data)
    assert JsonLines.sniff(path, data[: 64 * 1024]) == sure


def test_a_long_first_line_is_recognised(tmp_path):
    """Conversations are often longer than the head of a file that readers are shown."""
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"id": "a", "messages": [{"role": "user", "content": "x" * 200_000}]}) + "\n")
    assert JsonLines.sniff(path, path.read_bytes()[: 64 * 1024]) == 0.5
    path.write_text(json.dumps({"other": "x" * 200_000}) + "\n")
    assert JsonLines.sniff(path, path.read_bytes()[: 64 * 1024]) == 0.0


def test_the_reader_keeps_the_contract(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "expected": [], "predicted": "é"}\n{"id": "b", "predicted": null}\n', encoding="utf-8")
    testing.check_reader(JsonLines(), path, scratch=tmp_path)


def test_the_schema_is_sound_and_names_every_key():
    """It is a JSON Schema, and its keys are those the reader provides."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["required"]) == {"id"}
    assert {"expected", "predicted", "messages", "turns", "model", "run"} <= set(SCHEMA["properties"])


@pytest.mark.parametrize("expected", [{"text": "Oslo"}, "Oslo"])
def test_files_that_expect_texts_alone_have_them_compared(tmp_path, expected):
    """The default stack grades them; one record that expects a call, and calls are compared."""
    lines = [{"id": "a", "expected": expected, "predicted": {"text": "Oslo"}}, {"id": "b", "predicted": "x"}]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert list(report.aggregates) == ["text"]
    assert report.summary["metrics"]["avg_score_attempted"] == 1.0
    lines.append({"id": "c", "expected": [FLAT], "predicted": []})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert list(gradestack.grade_files([path], output=tmp_path / "two").aggregates) == ["calls"]


CALLING = {"id": "a", "expected": [FLAT], "predicted": [FLAT]}
WRITING = {"id": "b", "expected": {"text": "Oslo"}, "predicted": "Rome"}
NOTHING = {"id": "c", "predicted": [FLAT]}


@pytest.mark.parametrize(
    "records",
    [
        [CALLING, NOTHING],
        [CALLING, WRITING],
        [NOTHING, WRITING],
        [WRITING | {"expected": "Oslo"}],
        [WRITING | {"expected": {"text": "Oslo", "label": "Oslo"}}],
        [WRITING | {"expected": {"text": "Oslo", "label": "Rome"}}],
        [CALLING | {"expected": []}],
    ],
)
def test_records_from_python_are_graded_as_a_file_of_them(tmp_path, records):
    """Mappings, samples, and what gives each only once: what is expected is compared."""
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
    file = gradestack.grade_files([path], output=tmp_path / "out")
    samples = [JsonLines().record(each, file="memory", ordinal=at) for at, each in enumerate(records)]
    for given in (records, samples, iter(records)):
        report = gradestack.grade(given)
        assert report.states == file.states
        assert report.aggregates == file.aggregates
        assert report.summary["headline"] == file.summary["headline"]
        assert report.summary["outcome"] == file.summary["outcome"]


def test_records_that_expect_nothing_get_the_graders_that_compare_nothing():
    late = [*(NOTHING | {"id": str(at)} for at in range(1000)), CALLING]
    for given in ([NOTHING], [NOTHING | {"expected": None}], [Sample(id="a", calls=(CALL,))], late):
        report = gradestack.grade(given)
        assert "tool_policy" in report.states
        assert sum(report.states["tool_policy"].values()) == len(given)


def test_a_grader_without_any_grade_says_why(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"id": "a", "expected": "x", "predicted": "x"}\n', encoding="utf-8")
    report = gradestack.grade_files([path], graders=["tau_partial"], output=tmp_path / "out")
    told = "graded no sample (1 skipped); the first: no expected calls"
    assert any(told in warning for warning in report.summary["warnings"])


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
    ({"name": "f", "turn": []}, "expected.turn: expected a whole number of at least 0, got []"),
    ({"names": []}, "expected: expected a call with a name, got "),
    ({"name": "f", "forbidden": 5}, "expected.forbidden: not beside the name of a call; give the call in a list "),
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
    ("expected", "reason"), DATA["what_nobody_looked_at_in_expected_calls_is_refused_in_the_second_version"]
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


@pytest.mark.parametrize(("record", "reason"), DATA["ends_and_origins_of_another_kind_are_refused"])
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
    sample = read(version=2, id="a", usage=recorded)
    assert (sample.usage, sample.agent_usage) == (None, recorded)


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_messages_may_hold_reasoning(read, key):
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


def test_types_and_required_names():
    """The six words become JSON Schema's, which are understood too; any other leaves the type undeclared."""
    words = ["str", "int", "float", "bool", "list", "dict", "string", "object", "Any", "list[str]", 3, None]
    schema = list_schema([{"name": f"p{n}", "type": word} for n, word in enumerate(words)])
    found = [schema["properties"][f"p{n}"].get("type") for n in range(len(words))]
    assert found == ["string", "integer", "number", "boolean", "array", "object", "string", "object", *[None] * 4]
    assert schema["required"] == [f"p{n}" for n in range(len(words))]
    assert list_schema([{"name": "a", "required": False, "description": "A"}, {"name": 1}, None]) == {
        "type": "object",
        "properties": {"a": {"description": "A"}},
        "required": [],
    }


DEFAULTS = DATA["defaults"]


@pytest.mark.parametrize(("kind", "text", "value"), DEFAULTS)
def test_defaults_of_the_own_form(kind, text, value):
    """A default converts to its type; what does not convert, and an empty one, is left out."""
    parameter = {"name": "a", "type": kind, "description": "", "required": False, "default": text}
    schema = list_schema([parameter])
    found = schema["properties"]["a"].get("default")
    assert (found, type(found)) == (value, type(value))
    required = {**parameter, "required": True}
    schema = list_schema([required])
    assert "default" not in schema["properties"]["a"]


def test_a_default_of_none_is_null():
    """The word none is null for lists and objects, and a text elsewhere."""
    for kind, expected in (("list", None), ("dict", None), ("str", "None")):
        parameter = {"name": "a", "type": kind, "required": False, "default": "None"}
        assert list_schema([parameter, "odd"])["properties"]["a"]["default"] == expected

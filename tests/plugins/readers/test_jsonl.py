"""gradestack's own input form: what each key becomes, and what is refused with which words."""

import itertools
import json

import jsonschema
import pytest

import gradestack
from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Message,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    testing,
)
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.readers.stacks import jsonl as default_stack

SCHEMA = JsonLines.json_schema()
FLAT = {"name": "f", "arguments": {"x": 1}}
OPENAI = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
CALL = ToolCall(name="f", arguments={"x": 1})
CALLED = ToolCall(name="f", arguments={"x": 1}, raw_arguments='{"x": 1}', id="c1")
WANTED = ExpectedCall(name="f", arguments={"x": 1})


def valid(record):
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(record)


# what a record becomes


def test_three_fields_are_enough(parse):
    sample = parse(id="a", expected=[FLAT], predicted=[OPENAI])
    assert sample == Sample(
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
    {"role": "assistant", "content": [{"text": "last"}, {"text": "words"}], "tool_calls": None},
]


def test_without_a_prediction_the_conversation_is_one(parse):
    """Its calls in order, its last assistant message as answer."""
    sample = parse(id="a", messages=TALK)
    assert (sample.calls, sample.text, sample.label) == ((CALLED,), "last words", None)
    assert len(sample.turns) == 1
    by_turn = parse(id="a", turns=[TALK[:2], TALK[2:]])
    assert (by_turn.calls, by_turn.text, len(by_turn.turns)) == ((CALLED,), "last words", 2)
    assert valid({"id": "a", "messages": TALK})
    assert valid({"id": "a", "turns": [TALK]})


def test_a_prediction_beside_a_conversation_counts(parse):
    """Even an empty one; and no conversation is not "made no calls"."""
    assert parse(id="a", messages=TALK, predicted=[]).calls == ()
    assert parse(id="a", messages=TALK, predicted=None).calls is None
    assert parse(id="a", messages=[]).calls is None
    assert parse(id="a", messages=[{"role": "user"}]).calls == ()


@pytest.mark.parametrize(
    ("error", "message", "kind"), [("slow", "slow", ""), ({}, "", ""), ({"type": 5, "message": None}, "", "5")]
)
def test_a_recorded_error_makes_a_failed_run(parse, error, message, kind):
    sample = parse(id="a", error=error)
    assert (sample.status, sample.error.message, sample.error.type) == (Status.FAILED, message, kind)
    assert parse(id="a", error=None).status is Status.OK


# what is refused


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "id is missing"),
        ({"id": None}, "id: expected text or a whole number, got null"),
        ({"id": True}, "id: expected text or a whole number, got true"),
        ({"id": 1.5}, "id: expected text or a whole number, got 1.5"),
        ({"id": "a", "expcted": []}, "expcted: unknown key (did you mean 'expected'?)"),
        ({"id": "a", "zzz": 1}, "zzz: unknown key; put your own data under facets"),
        ({"id": "a", "expected": 5}, "expected: expected calls, text or an object, got 5"),
        ({"id": "a", "expected": [5]}, "expected[0]: expected a call with a name, got 5"),
        ({"id": "a", "expected": [{"name": None}]}, 'expected[0]: expected a call with a name, got {"name": null}'),
        ({"id": "a", "predicted": {"calls": 5}}, "predicted.calls: expected a list of calls, got 5"),
        ({"id": "a", "predicted": {"calls": [{"function": {}}]}}, "predicted.calls[0]: expected a call with a name"),
        ({"id": "a", "predicted": {"lable": "x"}}, "predicted.lable: unknown key (did you mean 'label'?)"),
        ({"id": "a", "predicted": {"label": 5}}, "predicted.label: expected text, got 5"),
        ({"id": "a", "predicted": {"label": ["x"]}}, 'predicted.label: expected text, got ["x"]'),
        ({"id": "a", "predicted": {"text": ["x", 5]}}, 'predicted.text: expected text, got ["x", 5]'),
        ({"id": "a", "model": 5}, "model: expected text, got 5"),
        ({"id": "a", "run": 1.5}, "run: expected a whole number or text, got 1.5"),
        ({"id": "a", "run": True}, "run: expected a whole number or text, got true"),
        ({"id": "a", "input": 5}, "input: expected text or a list of texts, got 5"),
        ({"id": "a", "input": ["x", None]}, 'input: expected text or a list of texts, got ["x", null]'),
        ({"id": "a", "messages": "x"}, 'messages: expected a list of messages, got "x"'),
        ({"id": "a", "messages": ["x"]}, 'messages: expected a list of messages, got ["x"]'),
        ({"id": "a", "turns": {}}, "turns: expected a list of lists of messages, got {}"),
        ({"id": "a", "turns": [{}]}, "messages: expected a list of messages, got {}"),
        ({"id": "a", "tools": {}}, "tools: expected a list of tools with a name, got {}"),
        ({"id": "a", "tools": [{"description": "x"}]}, "tools: expected a list of tools with a name"),
        ({"id": "a", "recorded": []}, "recorded: expected an object, got []"),
        ({"id": "a", "facets": "x"}, 'facets: expected an object, got "x"'),
        ({"id": "a", "error": 5}, "error: expected text or an object with type and message, got 5"),
        (
            {"id": "a", "version": 3},
            "version 3 of the sample form is unknown, this gradestack reads versions up to 2; upgrade",
        ),
        ({"id": "a", "version": True}, "version True of the sample form is unknown"),
        ({"id": "a", "input": ["x" * 100, 5]}, 'input: expected text or a list of texts, got ["' + "x" * 55 + "..."),
    ],
)
def test_records_that_do_not_follow_the_form(parse, record, reason):
    """The key, what was expected, what was found; long values are cut. The record itself is kept for exporters."""
    found = parse(**record)
    assert isinstance(found, BadRecord)
    assert found.reason.startswith(reason)
    assert found.native == record


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1.5},
        {"id": "a", "zzz": 1},
        {"id": "a", "expected": 5},
        {"id": "a", "expected": [{"arguments": {}}]},
        {"id": "a", "predicted": {"lable": "x"}},
        {"id": "a", "model": 5},
        {"id": "a", "run": 1.5},
        {"id": "a", "recorded": []},
        {"id": "a", "version": 3},
        {},
    ],
)
def test_the_schema_refuses_them_too(parse, record):
    """An editor or a producer's own tests notice what the reader would refuse."""
    assert isinstance(parse(**record), BadRecord)
    assert not valid(record)


@pytest.mark.parametrize("value", [None, 5, "x", [], [[]]])
def test_a_record_that_is_no_object(value):
    """Is told as such."""
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


# files


def test_lines_have_places(read_all):
    """Blank ones are counted; what is no JSON is a bad record at its line."""
    shards, [records] = read_all(['{"id": "a"}', "", "{", '{"id": "b"}', "[1]"])
    assert [(type(each).__name__, each.source.line, each.source.ordinal) for each in records] == [
        ("Sample", 1, 0),
        ("BadRecord", 3, 2),
        ("Sample", 4, 3),
        ("BadRecord", 5, 4),
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
    """Recognised, repeatable, lazy in files, sound on files cut off or garbled."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "expected": [], "predicted": "é"}\n{"id": "b", "predicted": null}\n', encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    testing.check_reader(JsonLines(), path, scratch=tmp_path / "scratch")


def test_the_schema_is_sound_and_names_every_key():
    """It is a JSON Schema, and its keys are those the reader provides."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["required"]) == {"id"}
    assert {"expected", "predicted", "messages", "turns", "model", "run"} <= set(SCHEMA["properties"])


def test_the_default_stack_exists():
    """Partial credit for calls."""
    assert default_stack()["graders"] == {"partial": {"kind": "tau_partial"}}
    assert JsonLines.stack == "jsonl"


@pytest.mark.parametrize("expected", [{"text": "Oslo"}, "Oslo"])
def test_files_that_expect_texts_alone_have_them_compared(tmp_path, expected):
    """The default stack grades them; one record that expects calls, and it is partial credit again."""
    lines = [{"id": "a", "expected": expected, "predicted": {"text": "Oslo"}}, {"id": "b", "predicted": "x"}]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert list(report.aggregates) == ["text"]
    assert report.summary["metrics"]["avg_score_attempted"] == 1.0
    lines.append({"id": "c", "expected": [], "predicted": []})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert list(gradestack.grade_files([path], output=tmp_path / "two").aggregates) == ["partial"]


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
    """Also where others come after a thousand of them."""
    late = [*(NOTHING | {"id": str(at)} for at in range(1000)), CALLING]
    for given in ([NOTHING], [NOTHING | {"expected": None}], [Sample(id="a", calls=(CALL,))], late):
        report = gradestack.grade(given)
        assert "tool_policy" in report.states
        assert sum(report.states["tool_policy"].values()) == len(given)


def test_a_grader_without_any_grade_says_why(tmp_path):
    """The warning holds the first sample's reason."""
    path = tmp_path / "runs.jsonl"
    path.write_text('{"id": "a", "expected": "x", "predicted": "x"}\n', encoding="utf-8")
    report = gradestack.grade_files([path], graders=["tau_partial"], output=tmp_path / "out")
    told = "graded no sample (1 skipped); the first: the sample does not say which calls are expected"
    assert any(told in warning for warning in report.summary["warnings"])

"""JSON Lines: fields, lists of parameters."""

import copy
import io
import json
import pickle
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradestack
from gradestack import (
    BadRecord,
    Input,
    Sample,
    Shard,
    Source,
    ToolCall,
    ToolSpec,
    replace,
    testing,
)
from gradestack.jsonio import JsonProblem, loads
from gradestack_plugins.readers import jsonl_form
from gradestack_plugins.readers.jsonl import JsonLines
from tests.core.outcomes import data

DATA = data(__file__, "jsonl.yaml")

SCHEMA = JsonLines.json_schema()
FLAT = {"name": "f", "arguments": {"x": 1}}
CALL = ToolCall(name="f", arguments={"x": 1})


def valid(record):
    draft202012_validator = jsonschema.Draft202012Validator(SCHEMA)
    return draft202012_validator.is_valid(record)


@pytest.mark.slow
def test_the_schema_allows_what_the_reader_takes(read):
    """Every record of the cases in tests/cases/jsonl."""
    file_path = Path(__file__)
    file_folder = file_path.parents[2] / "cases/jsonl/file"
    for case in data(file_folder, "samples.yaml"):
        records = [read(**record) for record in case["records"]]
        bad_records = case.get("bad_records", ())
        bad_record_count = len(bad_records)
        count = sum(isinstance(read_record, BadRecord) for read_record in records)
        assert count == bad_record_count


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        *DATA["records_that_do_not_follow_the_form"],
        (
            {"id": "a", "input": ["x" * 100, 5]},
            'input: expected text or a list of texts, got ["' + "x" * 55 + "...",
        ),
    ],
)
def test_records_that_do_not_follow_the_form(parse, record, reason):
    """The key, what was expected, what was found; long values are cut.

    The record itself is kept for exporters.
    """
    outcome = parse(**record)
    assert isinstance(outcome, BadRecord)
    assert outcome.reason.startswith(reason)
    assert outcome.native == record


@pytest.mark.parametrize("record", DATA["the_schema_refuses_them_too"])
def test_the_schema_refuses_them_too(parse, record):
    """An editor or a producer's own tests notice what the reader would refuse."""
    assert isinstance(parse(**record), BadRecord)
    assert not valid(record)


@pytest.mark.parametrize("value", [None, 5, "x", [], [[]]])
def test_a_record_that_is_no_object(value):
    outcome = JsonLines().record(value, file="f", ordinal=2)
    expected_text = f"record: expected an object, got {json.dumps(value)}"
    assert outcome.reason == expected_text
    source = Source(file="f", ordinal=2)
    assert outcome.source == source


def test_a_record_too_deep_to_be_shown_is_a_bad_record(parse):
    """Showing what is wrong must not break on it."""
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert parse(id=deep).reason == "nested too deeply"


def test_lines_have_places(read_all):
    """Blank ones are counted; what is no JSON is a bad record at its line."""
    shards, [records] = read_all(['{"id": "a"}', "", "{", '{"id": "b"}', "[1]"])
    assert [
        (isinstance(record, Sample), record.source.line, record.source.ordinal)
        for record in records
    ] == [
        (True, 1, 0),
        (False, 3, 2),
        (True, 4, 3),
        (False, 5, 4),
    ]
    assert shards[0].first_line == 1
    assert shards[0].ordinal == 0
    assert shards[0].position == 0


@pytest.mark.parametrize(("text", "sure"), [*DATA["forms"], ("[" * 10_000, 0.0)])
def test_the_form_is_recognised(tmp_path, text, sure):
    """By the keys of the first object; keys of others mean another format."""
    path = tmp_path / "x"
    path.write_bytes(text.encode("latin-1"))
    assert JsonLines.sniff(path, text.encode("latin-1")[: 64 * 1024]) == sure


@pytest.mark.parametrize("layout", ["list", "indented", "list a line"])
def test_the_same_records_are_the_same_samples_in_lines_and_in_lists(tmp_path, layout):
    records = [
        {"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]},
        {"id": "b", "expected": [{"name": "f"}], "predicted": [{"name": "g", "arguments": FLAT}]},
    ]
    lines = tmp_path / "runs.jsonl"
    listed = tmp_path / "runs.json"
    lines.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    if layout == "list a line":
        listed.write_text("".join(f"{json.dumps([record])}\n" for record in records))
    else:
        text = json.dumps(records, indent=2 if layout == "indented" else None)
        listed.write_text(text)
    graded = {}
    for path in (lines, listed):
        output = tmp_path / path.suffix[1:]
        paths = [str(path)]
        report = gradestack.grade_files(paths, output=output)
        rows = report.rows()
        graded[path.suffix] = [(row["sample"]["id"], row["grades"]) for row in rows]
    assert graded[".jsonl"] == graded[".json"]
    assert len(graded[".json"]) == 2


ARGUMENTS = st.one_of(
    st.dictionaries(st.sampled_from("xy"), st.none() | st.integers() | st.text(max_size=2)),
    st.sampled_from(['{"x": 1}', '{"x": NaN}', "{", "", "[]", '"\\ud800"']),
    st.none(),
    st.integers(),
)
FUNCTIONS = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from(["f", "", None]), "arguments": ARGUMENTS}
)
CALLS = st.one_of(
    FUNCTIONS,
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from(["c1", 5, None]),
            "type": st.just("function"),
            "function": FUNCTIONS | st.none(),
            "name": st.just("f"),
            "arguments": ARGUMENTS,
            "raw_arguments": st.none(),
            "args": ARGUMENTS,
            "result": st.integers(),
            "optional": st.booleans(),
        },
    ),
)
SIDES = st.one_of(
    st.none(),
    st.text(max_size=2),
    st.lists(CALLS, max_size=2),
    CALLS,
    st.fixed_dictionaries(
        {},
        optional={
            "calls": st.lists(CALLS, max_size=2) | st.none(),
            "text": st.text(max_size=2) | st.lists(st.just("a"), max_size=2),
            "label": st.just("l") | st.none(),
            "plan": st.integers(),
            "forbidden": st.just(["g"]),
        },
    ),
)


FIELDS = st.fixed_dictionaries(
    {"id": st.just("a") | st.integers(), "version": st.sampled_from([1, 2])},
    optional={
        "predicted": SIDES,
        "expected": SIDES,
        "error": st.sampled_from([None, False, "", "late", {"type": "Timeout"}]),
        "state": st.sampled_from([None, 0, {}]),
        "facets": st.sampled_from([None, {}, {"domain": "home"}]),
        "tools": st.none() | st.lists(st.sampled_from([{"name": "f"}, {"name": ""}, {}, 5])),
        "messages": st.none() | st.just([{"role": "user", "content": "x"}]),
    },
)


@given(FIELDS)
def test_a_line_is_the_sample_of_its_decoded_record(record):
    """Whether a side of it is of the usual form, which is decoded at once, or of any other."""
    reader = JsonLines()
    data = json.dumps(record).encode()
    file = io.BufferedReader(io.BytesIO(data))
    shard = Shard(ordinal=0, input=Input(path=Path("f"), name="f", shown="f"))
    [[from_line]] = reader._blocks_of_lines(shard, file)
    source = Source(file="f", ordinal=0, line=1)
    sample = reader.sample(record, source)
    assert repr(from_line) == repr(sample)


@pytest.mark.parametrize("call", [FLAT, {"id": "c", "type": "function", "function": FLAT}])
def test_sides_of_the_usual_form_are_decoded_at_once(call):
    side = {"calls": [call], "text": "t", "label": "l", "plan": None}
    text = json.dumps({"id": "a", "expected": side, "predicted": [call]})
    source = Source(file="f", ordinal=0, line=1)
    sample = jsonl_form.sample_of_line(text.encode(), source)
    assert sample.expected.label == "l"
    assert len(sample.calls) == 1


def test_the_reader_keeps_the_contract(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"id": "a", "expected": [], "predicted": "é"}\n{"id": "b", "predicted": null}\n',
        encoding="utf-8",
    )
    testing.check_reader(JsonLines(), path, scratch=tmp_path)


@pytest.mark.parametrize("expected", [{"text": "Oslo"}, "Oslo"])
def test_files_that_expect_texts_alone_have_them_compared(tmp_path, expected):
    """The default stack grades them; one record that expects a call, and calls are compared."""
    lines = [
        {"id": "a", "expected": expected, "predicted": {"text": "Oslo"}},
        {"id": "b", "predicted": "x"},
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    output = tmp_path / "out"
    report = gradestack.grade_files([path], output=output, overrides=["reports=[]"])
    assert list(report.aggregates) == ["text"]
    metrics = report.summary["metrics"]
    assert metrics["avg_score_attempted"] == 1.0
    lines.append({"id": "c", "expected": [FLAT], "predicted": []})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    two_folder = tmp_path / "two"
    aggregates = list(
        gradestack.grade_files([path], output=two_folder, overrides=["reports=[]"]).aggregates
    )
    assert aggregates == ["calls"]


CALLING = {"id": "a", "expected": [FLAT], "predicted": [FLAT]}
NOTHING = {"id": "c", "predicted": [FLAT]}


@pytest.mark.parametrize(
    "records",
    DATA["records_from_python_are_graded_as_a_file_of_them"],
)
def test_records_from_python_are_graded_as_a_file_of_them(tmp_path, records):
    """Mappings, samples, and what gives each only once: what is expected is compared."""
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    output = tmp_path / "out"
    file = gradestack.grade_files([path], output=output, overrides=["reports=[]"])
    samples = []
    for at, record in enumerate(records):
        samples.append(JsonLines().record(record, file="memory", ordinal=at))
    for source in (records, samples, iter(records)):
        report = gradestack.grade(source)
        assert report.states == file.states
        assert report.aggregates == file.aggregates
        headline = report.summary["headline"]
        assert headline == file.summary["headline"]
        outcome = report.summary["outcome"]
        assert outcome == file.summary["outcome"]


def test_records_that_expect_nothing_get_the_graders_that_compare_nothing():
    called_late = [*(NOTHING | {"id": str(at)} for at in range(1000)), CALLING]
    sample = Sample(id="a", calls=(CALL,))
    for source in (
        [NOTHING],
        [NOTHING | {"expected": None}],
        [sample],
        called_late,
    ):
        report = gradestack.grade(source)
        assert "tool_policy" in report.states
        tool_policy = report.states["tool_policy"]
        total_tool_policy = sum(tool_policy.values())
        assert total_tool_policy == len(source)


def test_a_grader_without_any_grade_says_why(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"id": "a", "expected": "x", "predicted": "x"}\n', encoding="utf-8")
    output = tmp_path / "out"
    report = gradestack.grade_files([path], graders=["tau_partial"], output=output)
    reason = "graded no run (1 not applicable); the first: no expected calls"
    warnings = report.summary["warnings"]
    assert any(reason in warning for warning in warnings)


VALID = jsonschema.Draft202012Validator(JsonLines.json_schema()).is_valid


@pytest.fixture
def read_line(tmp_path):
    def read_line(line):
        path = tmp_path / "f.jsonl"
        path.write_bytes(line + b"\n")
        shard = Shard(ordinal=0, input=Input(path=path, name="f", shown="f.jsonl"))
        (sample,) = JsonLines().read(shard, None)
        return sample

    return read_line


@pytest.fixture
def read(read_line):
    def read(**record):
        text = json.dumps(record)
        sample = read_line(text.encode())
        sample_again = JsonLines().sample(record, Source(file="f.jsonl", ordinal=0, line=1))
        assert sample == sample_again
        assert repr(sample) == repr(sample_again)
        assert VALID(record) is isinstance(sample, Sample) or record.get("version", 1) == 1
        return sample

    return read


DETAILS = DATA["details"]


@pytest.mark.parametrize(
    ("expected", "reason"), DATA["references_that_do_not_follow_the_form_are_refused"]
)
def test_references_that_do_not_follow_the_form_are_refused(read, expected, reason):
    """In either version, with the place and what was expected there."""
    for version in (1, 2):
        outcome = read(version=version, id="a", expected=expected)
        assert isinstance(outcome, BadRecord)
        assert outcome.reason.startswith(reason)


@pytest.mark.parametrize(
    ("expected", "reason"),
    DATA["what_nobody_looked_at_in_expected_calls_is_refused_in_the_second_version"],
)
def test_what_nobody_looked_at_in_expected_calls_is_refused_in_the_second_version(
    read, expected, reason
):
    """Files of the first may hold it, and are read as before."""
    outcome = read(version=2, id="a", expected=expected)
    assert isinstance(outcome, BadRecord)
    assert outcome.reason.startswith(reason)
    (call,) = read(id="a", expected=expected).expected.calls
    assert call.name == "f"


@pytest.mark.parametrize(("record", "reason"), DATA["ends_and_origins_of_another_kind_are_refused"])
def test_ends_and_origins_of_another_kind_are_refused(read, record, reason):
    """In either version, which had none of these keys before."""
    for version in (1, 2):
        outcome = read(version=version, id="a", **record)
        assert isinstance(outcome, BadRecord)
        assert outcome.reason == reason
        assert not VALID({"version": version, "id": "a", **record})


def test_the_second_version_is_that_of_the_schema():
    """Version 2 with all its keys is valid.

    An unknown key of a rule, or a status of another kind, is not.
    """
    line = {
        "version": 2,
        "id": "a",
        "predicted": [{"name": "f", **DETAILS}],
        "usage": {"requests": 1},
    }
    assert VALID(line)
    assert not VALID({**line, "version": 3})
    assert not VALID({**line, "predicted": [{"name": "f", "status": "completed"}]})
    assert not VALID({**line, "expected": [{"name": "f", "rules": {"x": {"any": [1]}}}]})


def test_the_form_has_every_detail_of_a_call():
    """Every detail that the model of a call holds can be written in the form."""
    any_of = SCHEMA["$defs"]["made"]["anyOf"]
    properties = any_of[0]["properties"]
    form = set(properties)
    struct_fields = set(ToolCall.__struct_fields__)
    assert struct_fields - {"raw_arguments"} <= form


DEEP = b"[" * 3000 + b"]" * 3000
BORDER = [
    *(line.encode("latin-1") for line in data(__file__, "border.yaml")),
    b'{"id": "a", "expected": [{"name": "f", "rules": {"x": {"any_of": ' + DEEP + b"}}}]}",
    b'{"id": "a", "usage": ' + DEEP + b"}",
    b'{"id": "a", "predicted": [{"name": "f", "arguments": "' + b"[" * 3000 + b'"}]}',
]


@pytest.mark.parametrize("line", BORDER)
def test_a_line_is_what_its_record_is(read_line, line):
    """Repeated keys, odd numbers, bytes nobody looks at: the standard library's JSON is read."""
    sample = read_line(line)
    source = Source(file="f.jsonl", ordinal=0, line=1)
    try:
        expected = JsonLines().sample(loads(line), source)
    except JsonProblem as problem:
        expected = BadRecord(source=source, reason=str(problem))
    names = type(expected).__struct_fields__
    assert type(sample) is type(expected)
    assert [repr(getattr(sample, name)) for name in names] == [
        repr(getattr(expected, name)) for name in names
    ]


def test_samples_read_equal_samples_made(read_line):
    """Whether it was decoded or made by hand: equal, the same text, and the same after pickling."""
    parameters = {"type": "object", "properties": {"x": {"type": "integer"}}}
    tools = [{"name": "f", "parameters": parameters}, {"function": {"name": "g"}}]
    text = json.dumps({"id": 7, "predicted": [FLAT], "tools": tools})
    sample = read_line(text.encode())
    tool_spec = ToolSpec(name="f", parameters=parameters)
    made = Sample(
        id="7",
        calls=(CALL,),
        tools=(tool_spec, ToolSpec(name="g")),
        source=Source(file="f.jsonl", line=1, id=7),
    )
    pickled = pickle.loads(pickle.dumps(sample))  # noqa: S301 - our own
    for copied in (sample, pickled, copy.deepcopy(sample), replace(sample, label=None)):
        assert copied == made
        assert repr(copied) == repr(made)
    assert replace(sample, model="m") != made


def test_tools_are_shared_by_lines(read_all):
    """Equal ones are decoded once; others are others."""
    lines = []
    for n in range(3):
        parameters = {"a": n // 2}
        tools = [{"name": "f", "parameters": parameters}]
        lines.append({"id": n, "tools": tools})
    _, [(one, two, three)] = read_all(map(json.dumps, lines))
    first_tool = one.tools[0]
    assert first_tool is two.tools[0]
    assert one.tools[0] != three.tools[0]

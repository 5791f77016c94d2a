"""The straight way from a line to a sample gives what the thorough way gives, whatever the line
holds.
"""

import copy
import json
import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradestack import BadRecord, Input, Sample, Shard, Source, ToolCall, ToolSpec, Usage, replace
from gradestack.jsonio import JsonProblem, loads, standard_loads
from gradestack_plugins.readers import jsonl_lines
from gradestack_plugins.readers.jsonl import JsonLines
from tests.conftest import examples
from tests.core.outcomes import data

DATA = data(__file__, "jsonl_lines.yaml")


READER = JsonLines()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("jsonl") / "runs.jsonl"


def read(place, lines):
    place.write_bytes(b"".join(line + b"\n" for line in lines))
    shard = Shard(ordinal=0, input=Input(path=place, name="runs", shown="runs.jsonl"))
    return list(READER.read(shard, None))


def thorough(line, number):
    source = Source(file="runs.jsonl", ordinal=number - 1, line=number)
    try:
        record = standard_loads(line)
    except (ValueError, RecursionError):
        with pytest.raises(JsonProblem) as caught:
            loads(line)
        return BadRecord(source=source, reason=str(caught.value))
    return READER.sample(record, source)


def told(record):
    assert isinstance(record, Sample | BadRecord)
    names = (Sample if isinstance(record, Sample) else BadRecord).__struct_fields__
    return {name: repr(getattr(record, name)) for name in names}


def agrees(place, *lines):
    """Check every line, alone in its file, and again when everything about it is known."""
    found = read(place, lines)
    assert [told(each) for each in found] == [
        told(thorough(line, at)) for at, line in enumerate(lines, 1)
    ]
    again = read(place, lines)
    assert list(map(told, again)) == list(map(told, found))
    return found


# records, most of them nearly right

NAMES = st.sampled_from(["search", "book", "", "é", "\ud800"])
ODD = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        1.0,
        -1,
        10**30,
        1.5,
        float("nan"),
        "",
        "x",
        "\ud800",
        [],
        {},
        [1],
        {"a": 1},
    ]
)
VALUES = st.recursive(
    ODD | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner),
)
OBJECTS = st.dictionaries(st.sampled_from(["q", "n", "id", ""]), VALUES, max_size=3)
TEXTS = DATA["texts"]
ARGUMENTS = OBJECTS | st.sampled_from(
    [*TEXTS, [], 1, 1.5, True, [{"q": 1}], {"deep": [[[{}]]]}, float("nan"), "9" * 30]
)


def some(required, optional):
    return st.fixed_dictionaries(required, optional=optional)


DETAILS = {
    "result": VALUES,
    "error": NAMES | ODD,
    "turn": st.integers(0, 3) | ODD,
    "step": st.integers(0, 3) | ODD,
    "author": NAMES | ODD,
    "server": NAMES | ODD,
    "kind": st.sampled_from(["function", "builtin", "mcp", "custom", "tool", None, 1]),
    "status": st.sampled_from(["ok", "error", "denied", "not_run", "completed", None, 1]),
    "error_type": NAMES | ODD,
    "started": st.sampled_from(["2026-01-01T00:00:00Z", "", None, 1.5]),
    "seconds": st.sampled_from([0, 1, 1.5, -1, None, "1", True, float("inf"), 10**30]),
}
EXTRA = {"junk": VALUES, "type": st.sampled_from(["function", 1, None]), "index": VALUES, **DETAILS}
FUNCTIONS = some({"name": NAMES}, {"arguments": ARGUMENTS, "kwargs": ARGUMENTS})
ODD_FUNCTIONS = (
    some({}, {"name": NAMES | ODD, "arguments": ARGUMENTS, "kwargs": ARGUMENTS, "junk": VALUES})
    | ODD
)
FLAT = some(
    {"name": NAMES},
    {"arguments": ARGUMENTS, "kwargs": ARGUMENTS, "id": NAMES | ODD, "requestor": NAMES | ODD},
)
TOLD = some(
    {"name": NAMES},
    {"arguments": OBJECTS, "id": NAMES, "requestor": NAMES, "function": st.none(), **DETAILS},
)
WRAPPED = some(
    {"function": FUNCTIONS}, {"id": NAMES, "type": st.just("function"), "name": ODD, **DETAILS}
)
ODD_CALLS = (
    some(
        {},
        {
            "name": NAMES | ODD,
            "function": ODD_FUNCTIONS,
            "arguments": ARGUMENTS,
            "id": ODD,
            **EXTRA,
        },
    )
    | ODD
)
CALLS = st.one_of(FLAT, FLAT, TOLD, WRAPPED, ODD_CALLS)
LISTED = st.lists(CALLS, max_size=3)
FLAGS = st.sampled_from([True, False, None, 0, 1, "yes"])
RULES = some(
    {},
    {
        "any_of": st.lists(VALUES, max_size=2) | ODD,
        "optional": FLAGS,
        "ignore": FLAGS,
        "compare": st.sampled_from(
            ["exact", "text", "number", "set", "schema", "regex", "fuzzy", None, 1]
        ),
        "tolerance": st.sampled_from([None, 0, 1, 0.5, "1", True, float("inf")]),
    },
)
RULE = RULES | some({}, {"any_of": st.lists(VALUES, max_size=2), "junk": VALUES}) | ODD
RIGHT_RULE = some(
    {}, {"any_of": st.lists(VALUES, max_size=2), "ignore": st.booleans(), "tolerance": st.just(1)}
)
WANTED = some(
    {"name": NAMES},
    {
        "arguments": OBJECTS,
        "rules": st.dictionaries(NAMES, RIGHT_RULE, max_size=2),
        "optional": st.booleans(),
        "turn": st.integers(0, 3),
        "group": st.integers(-1, 3),
        "requestor": NAMES,
        "names": st.lists(NAMES, max_size=2),
    },
)
ODD_WANTED = some(
    {},
    {
        "name": NAMES | ODD,
        "names": st.lists(NAMES | ODD, max_size=2) | ODD,
        "arguments": ARGUMENTS,
        "raw_arguments": NAMES | ODD,
        "rules": st.dictionaries(NAMES, RULE, max_size=2) | ODD,
        "optional": FLAGS,
        "turn": st.integers(0, 3) | ODD,
        "group": st.integers(-1, 3) | ODD,
        "requestor": NAMES | ODD,
        "function": FUNCTIONS | ODD,
        **dict.fromkeys(
            ("id", "type", "index", "status", "kwargs", "args", "argument", "optinal", "junk"), ODD
        ),
    },
)
ODD_AMONG = st.tuples(
    WANTED,
    st.sampled_from(["optional", "turn", "group", "rules", "names", "requestor", "rule"]),
    ODD,
)
ONE_ODD = ODD_AMONG.map(lambda drawn: {**drawn[0], drawn[1]: drawn[2]})
WANTED_CALLS = st.one_of(WANTED, WANTED, ONE_ODD, ODD_WANTED, CALLS)
WANTED_LISTED = st.lists(WANTED_CALLS, max_size=3)
ANSWERS = st.text(max_size=3) | st.sampled_from([None, [], ["a", "b"], ["a", 1], 1, {}])
SIDES = st.one_of(
    LISTED,
    some(
        {}, {"calls": LISTED | st.none() | CALLS, "label": ANSWERS, "text": ANSWERS, "plan": VALUES}
    ),
    some(
        {},
        {"calls": LISTED, "label": ANSWERS, "lable": ANSWERS, "name": NAMES, "function": FUNCTIONS},
    ),
    CALLS,
    ANSWERS,
    ODD,
)
REFERENCES = st.one_of(
    SIDES,
    WANTED_LISTED,
    WANTED_CALLS,
    some(
        {},
        {
            "calls": WANTED_LISTED | st.none() | WANTED_CALLS,
            "alternatives": st.lists(WANTED_LISTED | ODD, max_size=2) | ODD,
            "forbidden": st.lists(NAMES | ODD, max_size=2) | ODD,
            "state": VALUES,
            "label": ANSWERS,
            "text": ANSWERS,
            "plan": VALUES,
        },
    ),
    some(
        {"calls": st.lists(WANTED, max_size=2)},
        {"forbidden": st.lists(NAMES, max_size=2), "state": VALUES},
    ),
    some({"name": NAMES}, {"alternatives": VALUES, "forbidden": VALUES, "state": VALUES}),
)
COUNTS = st.integers(0, 9) | ODD
USAGE = some({}, dict.fromkeys(Usage.__struct_fields__, COUNTS)) | some(
    {}, {"requests": COUNTS, "tokens": COUNTS}
)
MESSAGES = some(
    {"role": st.sampled_from(["user", "assistant", "tool", None, 1])},
    {
        "content": st.text(max_size=3)
        | st.sampled_from([None, ["a", {"text": "b"}, {"text": 1}], 1, {}]),
        "tool_calls": LISTED | ODD,
        "name": ODD,
        "tool_call_id": ODD,
        "reasoning": ODD,
        "reasoning_content": ODD,
        "junk": VALUES,
    },
)
TALKS = st.lists(MESSAGES, max_size=3)
LISTED_PARAMETERS = st.lists(
    some({}, {"name": NAMES | ODD, "type": ODD | st.just("int"), "default": ODD}) | ODD
)
PARAMETERS = OBJECTS | ODD | LISTED_PARAMETERS
TOOLS = some(
    {"name": NAMES | ODD},
    {"description": ODD, "parameters": PARAMETERS, "function": FUNCTIONS | ODD},
)
KEYS = {
    "id": st.sampled_from(["t", "", 1, 0, -1, 10**30, True, 1.0, 1e3, None, [], "\ud800"]),
    "version": st.sampled_from([1, 2, 2, 1.0, 2.0, True, 3, 0, "1", None, [1], 1e0]),
    "expected": REFERENCES,
    "predicted": SIDES,
    "model": st.sampled_from(["m", "", None, 1, ["m"]]),
    "run": st.sampled_from([0, 1, "a", None, True, 1.0, 10**30, [], float("nan")]),
    "input": ANSWERS,
    "messages": TALKS | st.lists(ODD, max_size=2) | ODD,
    "turns": st.lists(TALKS | ODD, max_size=2) | ODD,
    "tools": st.lists(TOOLS | ODD, max_size=3) | ODD,
    "recorded": OBJECTS | ODD,
    "error": st.sampled_from([None, "boom", {"type": "E", "message": "boom"}, {}, 1, [], False]),
    "agent_id": st.sampled_from(["a", None, 1]),
    "usage": VALUES | USAGE,
    "cluster": NAMES | ODD,
    "state": VALUES,
    "ended": st.sampled_from(["completed", "limit:turns", "", None, 1]),
    "trace": st.dictionaries(st.sampled_from(["trace_id", "span_id", "x"]), NAMES | ODD, max_size=2)
    | ODD,
    "children": st.lists(NAMES | ODD, max_size=2) | ODD,
    "facets": OBJECTS | ODD,
    "modle": st.just("m"),
    "native": VALUES,
}
RIGHT = st.fixed_dictionaries(
    {"id": st.sampled_from(["t", 1]), "expected": LISTED | st.lists(WANTED | ONE_ODD, max_size=2)},
    optional={
        "version": st.sampled_from([1, 2]),
        "predicted": LISTED | st.lists(TOLD, max_size=2),
        "messages": TALKS,
        "tools": st.lists(TOOLS, max_size=2),
        "facets": OBJECTS,
    },
)
ONE_WRONG = (
    st.sampled_from(sorted(KEYS))
    .flatmap(lambda key: st.tuples(RIGHT, st.just(key), KEYS[key]))
    .map(lambda drawn: {**drawn[0], drawn[1]: drawn[2]})
)
RECORDS = st.one_of(RIGHT, ONE_WRONG, ONE_WRONG, st.fixed_dictionaries({}, optional=KEYS), ODD)


def encoded(record, *, escaped=True):
    return json.dumps(record, ensure_ascii=escaped).encode("utf-8", "surrogatepass")


@settings(max_examples=examples(150), deadline=None)
@given(records=st.lists(RECORDS, min_size=1, max_size=3), escaped=st.booleans())
@example(
    records=[{"id": "t", "input": "", "messages": [{"role": "user", "content": "Hi"}]}],
    escaped=False,
)
def test_both_ways_give_one_result(place, records, escaped):
    """The same sample, or the same words on what is wrong; so again when schemas are known."""
    agrees(place, *[encoded(record, escaped=escaped) for record in records])


PIECES = [piece.encode("latin-1") for piece in data(__file__, "pieces.yaml")]


@settings(max_examples=examples(120), deadline=None)
@given(record=RIGHT | ONE_WRONG, data=st.data())
def test_spoilt_lines_give_one_result(place, record, data):
    """Bytes cut out and put in anywhere, in keys and values that nobody looks at, too."""
    line = encoded(record, escaped=data.draw(st.booleans()))
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, min(len(line), start + 4)))
    piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=2))
    spoilt = (line[:start] + piece + line[end:]).replace(b"\n", b" ")
    if spoilt and not spoilt.isspace() and not spoilt.startswith(b"\xef\xbb\xbf"):
        agrees(place, spoilt)


CALL = {"name": "f", "arguments": {"x": 1}}


DEEP = b"[" * 3000 + b"]" * 3000
BORDER = [
    *(line.encode("latin-1") for line in data(__file__, "border.yaml")),
    b'{"id": "a", "expected": [{"name": "f", "rules": {"x": {"any_of": ' + DEEP + b"}}}]}",
    b'{"id": "a", "usage": ' + DEEP + b"}",
    b'{"id": "a", "predicted": [{"name": "f", "arguments": "' + b"[" * 3000 + b'"}]}',
]


@pytest.mark.parametrize("line", BORDER)
def test_lines_at_the_border_of_the_form_give_one_result(place, line):
    """What a typed decoder might read otherwise.

    Repeated keys, numbers, bytes nobody looks at, short forms.
    """
    agrees(place, line)


def test_usual_lines_go_the_straight_way(place, monkeypatch):
    """All forms of calls and sides, with tools and messages: the thorough way is not asked."""
    monkeypatch.setattr(JsonLines, "sample", None)
    wrapped = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    lines = [
        {
            "id": "a",
            "expected": [CALL],
            "predicted": [wrapped],
            "tools": tools,
            "model": "m",
            "run": 1,
        },
        {
            "id": 2,
            "expected": {"calls": [CALL], "plan": {"x": 1}},
            "predicted": {"label": "l", "text": "t"},
        },
        {
            "id": "b",
            "version": 1,
            "expected": "yes",
            "predicted": "no",
            "facets": {"d": 1},
            "recorded": {"r": 1.0},
        },
        {
            "id": "c",
            "expected": None,
            "messages": [{"role": "assistant", "content": "x", "tool_calls": [wrapped]}],
        },
        {
            "id": "d",
            "version": 2,
            "expected": [{**CALL, "rules": {"x": {"ignore": True}}, "turn": 0}],
        },
        {
            "id": "e",
            "predicted": [{**CALL, "status": "ok", "seconds": 1, "turn": 0}],
            "usage": {"requests": 1},
        },
        {
            "id": "f",
            "cluster": "c",
            "state": {},
            "ended": "completed",
            "trace": {"trace_id": "t"},
            "children": ["a"],
        },
    ]
    found = read(place, map(encoded, lines))
    assert [(each.id, each.calls and each.calls[0].arguments, each.text) for each in found] == [
        ("a", {"x": 1}, None),
        ("2", None, "t"),
        ("b", None, "no"),
        ("c", {"x": 1}, "x"),
        ("d", None, None),
        ("e", {"x": 1}, None),
        ("f", None, None),
    ]


# what is known of earlier lines


def test_samples_read_equal_samples_made(place):
    """Whether it was decoded or made by hand: equal, the same text, and the same after pickling."""
    parameters = {"type": "object", "properties": {"x": {"type": "integer"}}}
    tools = [{"name": "f", "parameters": parameters}, {"function": {"name": "g"}}]
    (found,) = read(place, [encoded({"id": 7, "predicted": [CALL], "tools": tools})])
    made = Sample(
        id="7",
        calls=(ToolCall(name="f", arguments={"x": 1}),),
        tools=(ToolSpec(name="f", parameters=parameters), ToolSpec(name="g")),
        source=Source(file="runs.jsonl", line=1, id=7),
    )
    for each in (
        found,
        pickle.loads(pickle.dumps(found)),  # noqa: S301 - our own
        copy.deepcopy(found),
        replace(found, label=None),
    ):
        assert each == made
        assert made == each
        assert repr(each) == repr(made)
    assert replace(found, tools=()).tools == ()
    assert replace(found, model="m") != made
    assert found.tools[0] != made.tools[1]
    assert found.tools[0] != "f"


def test_schemas_are_shared(place):
    """Equal parameters of tools are decoded once; others are others."""
    lines = [{"id": n, "tools": [{"name": "f", "parameters": {"a": n // 2}}]} for n in range(3)]
    one, two, three = read(place, map(encoded, lines))
    assert one.tools[0].parameters is two.tools[0].parameters
    assert one.tools[0] != three.tools[0]


def test_what_is_known_does_not_grow_without_end(place, monkeypatch):
    """Samples are right when more tools are met than are kept, and no large one is kept."""
    monkeypatch.setattr(jsonl_lines, "_MOST_TOOLS", 3)
    monkeypatch.setattr(jsonl_lines, "_LARGEST_TOOL", 200)
    jsonl_lines._known_tools.clear()
    lines = [{"id": n, "tools": [{"name": "f", "parameters": {"a": n % 5}}]} for n in range(40)]
    lines.append({"id": "large", "tools": [{"name": "f", "parameters": {"a": "x" * 300}}]})
    agrees(place, *map(encoded, lines))
    assert 0 < len(jsonl_lines._known_tools) <= 3
    assert max(map(len, jsonl_lines._known_tools)) <= 200
    jsonl_lines._known_tools.clear()

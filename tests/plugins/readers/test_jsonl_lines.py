"""The straight way from a line to a sample gives what the thorough way gives, whatever the line
holds.
"""

import copy
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradestack import BadRecord, Input, Sample, Shard, Source, ToolCall, ToolSpec, replace
from gradestack.jsonio import JsonProblem, loads, standard_loads
from gradestack_plugins.readers.jsonl import JsonLines
from tests.conftest import examples
from tests.core.outcomes import data
from tests.fuzz.mutation import byte_edits, changed, edited, tree_edits, written

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


def encoded(record):
    return json.dumps(record).encode("utf-8", "surrogatepass")


def agrees(place, *lines):
    """Check every line, alone in its file, and again when everything about it is known."""
    found = read(place, lines)
    assert [told(each) for each in found] == [
        told(thorough(line, at)) for at, line in enumerate(lines, 1)
    ]
    again = read(place, lines)
    assert list(map(told, again)) == list(map(told, found))
    return found


PIECES = [piece.encode("latin-1") for piece in data(__file__, "pieces.yaml")]
CASES = data(Path(__file__).parents[2] / "cases/jsonl/file", "samples.yaml")
SEEDS = [record for case in CASES for record in case["records"]] + DATA["usual"]


@settings(max_examples=examples(600), deadline=None)
@given(
    records=st.lists(st.tuples(st.sampled_from(SEEDS), tree_edits), min_size=1, max_size=2),
    spoilt=byte_edits,
)
@example(
    records=[({"id": "t", "input": "", "messages": [{"role": "user", "content": "Hi"}]}, [])],
    spoilt=[],
)
def test_both_ways_give_one_result(place, records, spoilt):
    """The same sample, or the same words on what is wrong: of records with values changed, moved
    and left out, and of lines with bytes cut out and put in anywhere.
    """
    texts = [written(changed([record], edits), "lines") for record, edits in records]
    first, *lines = [line for text in texts for line in text.splitlines()] or [b"{}"]
    first = edited(first, spoilt, PIECES).replace(b"\n", b" ")
    found = [line for line in (first, *lines) if line.strip()]
    is_list = b"[" in (line.lstrip()[:1] for line in found)  # the file is one then, not lines
    if found and not is_list and not first.startswith(b"\xef\xbb\xbf"):
        agrees(place, *found)


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
    found = read(place, map(encoded, DATA["usual"]))
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

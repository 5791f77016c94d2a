"""One shard: rows, columns and native pieces out of its samples."""

import json

import pytest

from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    Input,
    Sample,
    Shard,
    Source,
    ToolSpec,
    replace,
)
from gradestack.grading.selection import joined
from tests.core.workers import grader_stage, merged, metric, singly, worker

GIVEN = Input(path="in.jsonl", name="in", shown="in.jsonl")
SHARD = Shard(ordinal=3, input=GIVEN, position=100)


@pytest.fixture
def make_worker(tmp_path, toys):
    """Return a function that makes a worker with one toy grader and its count."""

    def make(**fields):
        numbers = toys.Numbers()
        toy = toys.Toy()
        return worker(
            tmp_path,
            numbers,
            graders=(grader_stage(key="quality", component="toy", grader=toy),),
            metrics=(metric(key="toy_count", of="quality", aggregator=toys.Count()),),
            **fields,
        )

    return make


def sample(identifier="a", score=1.0, **fields):
    recorded = {"score": score} | fields.pop("recorded", {})
    return Sample(id=identifier, recorded=recorded, **fields)


def rows(result):
    text = result.parts.rows.read_text()
    lines = text.splitlines()
    return [json.loads(line) for line in lines]


def count(made, result):
    """Return the figures of the metric of a worker's shard."""
    figures = merged(made, result).figures()
    return figures["quality"]["toy_count"]


def test_a_shard_done_twice_at_once_keeps_its_pieces_apart(make_worker, with_echo):
    """As when a machine is lost after its result was handed over.

    Another one does the shard again, for nobody.
    """
    made = make_worker(exporters=(("echo", with_echo.load("exporter", "echo")()),))
    second_results = []

    def records():
        yield sample("a")
        blocks = singly([sample("a"), sample("b"), sample("c")])
        second_results.append(made.process(SHARD, blocks))
        yield sample("b")

    blocks = singly(records())
    first = made.process(SHARD, blocks)
    for result, expected in ((first, "ab"), (second_results[0], "abc")):
        ids = [row["sample"]["id"] for row in rows(result)]
        assert ids == list(expected)
        (native,) = result.parts.native.values()
        text = native.read_text()
        assert text == ",\n".join(f'"{name}=1.0"' for name in expected)


def test_remarks_are_added_up_with_the_first_place(make_worker):
    places = []
    for n in range(3):
        source = Source(file="f", ordinal=n, line=n + 1)
        places.append(source)
    remarks = [{}, {"part:image": 2}, {"part:image": 1, "id_made": 1}]
    samples = [replace(sample(str(n)), source=places[n], remarks=remarks[n]) for n in range(3)]
    made = make_worker()
    blocks = singly(samples)
    assert made.process(SHARD, blocks).remarks == {
        "part:image": [3, "f:2"],
        "id_made": [1, "f:3"],
    }
    both = []
    for number in (0, 1):
        shard = replace(SHARD, ordinal=number)
        both.append(made.process(shard, singly(samples)))
    assert merged(made, *both).merged.remarks == {"part:image": [6, "f:2"], "id_made": [2, "f:3"]}


def test_bad_records_are_counted_and_the_first_thousand_listed(make_worker):
    bad = []
    for n in range(1005):
        source = Source(file="f", ordinal=n, line=n + 1)
        bad_record = BadRecord(source=source, reason="not JSON")
        bad.append(bad_record)
    made = make_worker()
    blocks = singly([*bad, sample()])
    result = made.process(SHARD, blocks)
    assert result.bad == 1005
    assert result.samples == 1
    bad_listed_count = len(result.bad_listed)
    assert bad_listed_count == 1000
    assert result.bad_listed[1] == {"file": "f", "ordinal": 1, "line": 2, "reason": "not JSON"}
    ids = count(made, result)["ids"]
    assert ids == ["a"]
    with pytest.raises(DataError, match="f:1: not JSON"):
        make_worker(strict=True).process(SHARD, singly(bad))


def test_samples_take_from_the_dataset_what_they_lack():
    """Expectations always; tools and input only where the recording has none."""
    tool_spec = ToolSpec(name="g")
    gold = Sample(id="a", input="gold", tools=(tool_spec,), expected=Expectation(label="x"))
    bare = joined(Sample(id="a"), {"a": gold})
    assert bare.expected.label == "x"
    assert bare.input == "gold"
    assert bare.tools == gold.tools
    expectation = Expectation(label="y")
    own_sample = joined(Sample(id="a", input="own", tools=(), expected=expectation), {"a": gold})
    assert own_sample.expected.label == "x"
    assert own_sample.input == "own"
    assert own_sample.tools == ()
    expected = Expectation(label="y")
    stranger = Sample(id="b", expected=expected)
    assert joined(stranger, {"a": gold}) is stranger

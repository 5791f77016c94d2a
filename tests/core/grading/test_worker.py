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
        return worker(
            tmp_path,
            toys.Numbers(),
            graders=(grader_stage(key="quality", component="toy", grader=toys.Toy()),),
            metrics=(metric(key="toy_count", of="quality", aggregator=toys.Count()),),
            **fields,
        )

    return make


def sample(identifier="a", score=1.0, **fields):
    return Sample(id=identifier, recorded={"score": score} | fields.pop("recorded", {}), **fields)


def rows(result):
    return [json.loads(line) for line in result.parts.rows.read_text().splitlines()]


def count(made, result):
    """Return the figures of the metric of a worker's shard."""
    return merged(made, result).figures()["quality"]["toy_count"]


def test_a_shard_done_twice_at_once_keeps_its_pieces_apart(make_worker, with_echo):
    """As when a machine is lost after its result was handed over.

    Another one does the shard again, for nobody.
    """
    made = make_worker(exporters=(("echo", with_echo.load("exporter", "echo")()),))
    second_results = []

    def records():
        yield sample("a")
        second_results.append(made.process(SHARD, singly([sample("a"), sample("b"), sample("c")])))
        yield sample("b")

    first = made.process(SHARD, singly(records()))
    for result, expected in ((first, "ab"), (second_results[0], "abc")):
        assert [row["sample"]["id"] for row in rows(result)] == list(expected)
        (native,) = result.parts.native.values()
        assert native.read_text() == ",\n".join(f'"{name}=1.0"' for name in expected)


def test_remarks_are_added_up_with_the_first_place(make_worker):
    places = [Source(file="f", ordinal=n, line=n + 1) for n in range(3)]
    remarks = [{}, {"part:image": 2}, {"part:image": 1, "id_made": 1}]
    samples = [replace(sample(str(n)), source=places[n], remarks=remarks[n]) for n in range(3)]
    made = make_worker()
    assert made.process(SHARD, singly(samples)).remarks == {
        "part:image": [3, "f:2"],
        "id_made": [1, "f:3"],
    }
    both = [made.process(replace(SHARD, ordinal=number), singly(samples)) for number in (0, 1)]
    assert merged(made, *both).merged.remarks == {"part:image": [6, "f:2"], "id_made": [2, "f:3"]}


def test_bad_records_are_counted_and_the_first_thousand_listed(make_worker):
    bad = [
        BadRecord(source=Source(file="f", ordinal=n, line=n + 1), reason="not JSON")
        for n in range(1005)
    ]
    made = make_worker()
    result = made.process(SHARD, singly([*bad, sample()]))
    assert (result.bad, result.samples, len(result.bad_listed)) == (1005, 1, 1000)
    assert result.bad_listed[1] == {"file": "f", "ordinal": 1, "line": 2, "reason": "not JSON"}
    assert count(made, result)["ids"] == ["a"]
    with pytest.raises(DataError, match="f:1: not JSON"):
        make_worker(strict=True).process(SHARD, singly(bad))


def test_samples_take_from_the_dataset_what_they_lack():
    """Expectations always; tools and input only where the recording has none."""
    gold = Sample(
        id="a", input="gold", tools=(ToolSpec(name="g"),), expected=Expectation(label="x")
    )
    bare = joined(Sample(id="a"), {"a": gold})
    assert (bare.expected.label, bare.input, bare.tools) == ("x", "gold", gold.tools)
    own_sample = joined(
        Sample(id="a", input="own", tools=(), expected=Expectation(label="y")), {"a": gold}
    )
    assert (own_sample.expected.label, own_sample.input, own_sample.tools) == ("x", "own", ())
    stranger = Sample(id="b", expected=Expectation(label="y"))
    assert joined(stranger, {"a": gold}) is stranger

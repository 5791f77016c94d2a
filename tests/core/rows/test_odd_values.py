"""Odd values in rows: not a number, not JSON, too deep, several lines, met again."""

import json
import math
from collections import OrderedDict

from gradestack import Expectation, ExpectedCall, Grade, Sample, ToolCall
from gradestack.rows.write import RowEncoder
from tests.core.row_reference import (
    row_bytes,
)


def test_objects_met_again_are_told_from_their_likes():
    for round_ in range(3):
        tool_call = ToolCall(name=f"again {round_}", arguments={"n": round_})
        shared = Expectation(calls=(tool_call,))
        grade = Grade(score=0.5, counts={"n": round_})
        for number in range(1500):
            own_one = Expectation(text=f"{round_} {number}")
            score = number / 1500
            own_grade = Grade(score=score, counts={"n": number})
            for expected, held_grade in ((shared, grade), (own_one, own_grade)):
                sample = Sample(id="x", expected=expected)
                line = row_bytes(
                    sample,
                    {"g": held_grade},
                    "g",
                    passed=None,
                    submissions={},
                )
                row = json.loads(line)
                assert row["grade"]["score"] == held_grade.score
                counts = row["grade"]["counts"]
                assert counts == held_grade.counts
                text = row["expected"]["text"]
                assert text == expected.text
                calls = row["expected"]["calls"]
                assert (calls is None) == (expected is own_one)


def test_objects_of_a_class_of_their_own_are_written_as_they_stand():
    """Arguments in their order, whatever their class; so is what stands in their place."""
    arguments = OrderedDict(b=1, a=[2, {"d": 3.5, "c": None}])
    for written in (arguments, [arguments["a"], "x"], None):
        call = ToolCall(name="f", arguments=written)
        wanted = ExpectedCall(name="f", arguments=written)
        sample = Sample(id="x", calls=(call,), expected=Expectation(calls=(wanted,)))
        line = row_bytes(sample, {"g": Grade(score=1.0)}, "g")
        shown = json.dumps(written, separators=(",", ":")).encode()
        assert line.count(b'"arguments":' + shown) == 2


def test_arguments_hold_nothing_that_json_lacks():
    for odd, shown in ((math.nan, "NaN"), (-math.inf, "-Infinity"), ((1, 2.5), [1, 2.5])):
        arguments = OrderedDict(z={"deep": [odd]}, a=odd)
        call = ToolCall(name="f", arguments=arguments)
        sample = Sample(id="x", calls=(call,), expected=Expectation(calls=(call,)))
        row = json.loads(row_bytes(sample, {"g": Grade(score=1.0)}, "g"))
        for side in ("expected", "predicted"):
            assert row[side]["calls"][0]["arguments"] == {"z": {"deep": [shown]}, "a": shown}


def test_long_texts_are_no_part_of_a_joined_block():
    """A row with a long text comes in pieces, of which the long one is no copy."""
    text = "é" * (1 << 20)
    for fields in ({"text": text}, {"label": text}, {"plan": [text]}):
        sample = Sample(id="x", **fields)
        encoder = RowEncoder(main="g", success=None, signatures={})
        encoded, samples = encoder.encode_samples([sample])
        columns = {"g": [Grade(score=1.0)]}
        pieces, _ = encoder.encode_rows(samples, encoded, columns, {})
        long_ones = [piece for piece in pieces if len(piece) > 1 << 20]
        assert {type(piece) for piece in long_ones} == {memoryview}
        side = json.loads(b"".join(pieces))["predicted"]
        assert text in (side["text"], side["label"], *(side["plan"] or ()))

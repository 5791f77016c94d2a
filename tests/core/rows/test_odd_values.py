"""Odd values in rows: not a number, not JSON, too deep, several lines, met again."""

import json

from gradestack import Expectation, Grade, Sample, ToolCall
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

"""Odd values in rows: not a number, not JSON, too deep, several lines, met again."""

import json

from gradestack import Expectation, Grade, Sample, ToolCall
from tests.core.row_reference import (
    row_bytes,
)


def test_objects_met_again_are_told_from_their_likes():
    for round_ in range(3):
        shared = Expectation(calls=(ToolCall(name=f"again {round_}", arguments={"n": round_}),))
        grade = Grade(score=0.5, counts={"n": round_})
        for number in range(1500):
            own_one = Expectation(text=f"{round_} {number}")
            own_grade = Grade(score=number / 1500, counts={"n": number})
            for expected, held_grade in ((shared, grade), (own_one, own_grade)):
                line = row_bytes(
                    Sample(id="x", expected=expected),
                    {"g": held_grade},
                    "g",
                    passed=None,
                    submissions={},
                )
                row = json.loads(line)
                assert row["grade"]["score"] == held_grade.score
                assert row["grade"]["counts"] == held_grade.counts
                assert row["expected"]["text"] == expected.text
                assert (row["expected"]["calls"] is None) == (expected is own_one)

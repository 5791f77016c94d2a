"""Recordings for benchmarks.

The same from the same seed, of the form that is published, and wrong as often as said.
"""

import json

import pytest

from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.tau_bench.grader import TauPartial

pytestmark = pytest.mark.proof


def decoded(workload, number, **options):
    """Return (record, kind) pairs."""
    records = workload.records(number, **options)
    return [(json.loads(line), kind) for line, kind in records]


@pytest.mark.parametrize("tasks", [0, 30])
def test_the_same_seed_gives_the_same_recording(workload, tasks):
    """Every byte depends on the seed and the number of tasks only."""
    first, again = (list(workload.records(100, 5, tasks=tasks)) for _ in range(2))
    assert first == again
    records = list(workload.records(100, 6, tasks=tasks))
    assert first != records


def test_mistakes_that_partial_credit_forgives_can_be_left_out(workload):
    """Then a full score of tau_partial means equal calls, so that peers are asked the same
    question.
    """
    reader = JsonLines()
    grader = TauPartial()
    forgiven = ("extra_argument", "extra_call")
    for number, (record, kind) in enumerate(decoded(workload, 1500, tasks=0, leave_out=forgiven)):
        assert kind not in forgiven
        grade = grader.grade(reader.record(record, file="recording", ordinal=number))
        assert (grade.score == 1) == (kind == "right"), record

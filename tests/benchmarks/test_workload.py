"""Recordings for benchmarks.

The same from the same seed, of the form that is published, and wrong as often as said.
"""

import json
from pathlib import Path

import pytest

from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.tau_bench.grader import TauPartial

pytestmark = pytest.mark.proof
SCRIPT = Path(__file__).parents[2] / "benchmarks/workload.py"


def decoded(workload, number, **options):
    """Return (record, kind) pairs."""
    return [(json.loads(line), kind) for line, kind in workload.records(number, **options)]


def calls_of(record):
    """Return (expected, made) calls as lists of (name, arguments).

    Arguments that are not JSON read as None.
    """

    def arguments(text):
        try:
            return json.loads(text)
        except ValueError:
            return None

    made = [call["function"] for call in record["predicted"]["calls"]]
    expected = [(call["name"], call["arguments"]) for call in record["expected"]["calls"]]
    return expected, [(function["name"], arguments(function["arguments"])) for function in made]


@pytest.mark.parametrize("tasks", [0, 30])
def test_the_same_seed_gives_the_same_recording(workload, tasks):
    """Every byte depends on the seed and the number of tasks only."""
    first, again = (list(workload.records(100, 5, tasks=tasks)) for _ in range(2))
    assert first == again
    assert first != list(workload.records(100, 6, tasks=tasks))


def test_about_two_thirds_are_right_and_every_mistake_occurs(workload):
    """Shares are those of the table within three standard deviations, and right means
    equal calls.
    """
    number = 6000
    kinds = dict.fromkeys(["right", *workload.WRONG], 0)
    for record, kind in decoded(workload, number):
        expected, made = calls_of(record)
        assert (expected == made) == (kind == "right"), (kind, expected, made)
        kinds[kind] += 1
    for kind, share in {"right": 65, **workload.WRONG}.items():
        wanted = share / 100
        assert abs(kinds[kind] / number - wanted) < 3 * (wanted * (1 - wanted) / number) ** 0.5, (
            kind
        )


def test_the_recording_of_a_weak_model_is_wrong_more_often(workload):
    """The share is the one asked for, the ways of being wrong keep their proportions, and tasks are
    the same.
    """
    number = 6000
    usual, weak = list(workload.records(number)), list(workload.records(number, wrong=80))
    assert list(workload.records(number, wrong=workload.USUALLY_WRONG)) == usual
    kinds = [kind for _, kind in weak]
    for kind, share in {
        "right": 20,
        **{kind: share * 80 / 35 for kind, share in workload.WRONG.items()},
    }.items():
        wanted = share / 100
        assert (
            abs(kinds.count(kind) / number - wanted) < 3 * (wanted * (1 - wanted) / number) ** 0.5
        ), kind
    assert [line.partition('"model"')[0] for line, _ in weak] == [
        line.partition('"model"')[0] for line, _ in usual
    ]


def test_mistakes_that_partial_credit_forgives_can_be_left_out(workload):
    """Then a full score of tau_partial means equal calls, so that peers are asked the same
    question.
    """
    reader, grader = JsonLines(), TauPartial()
    forgiven = ("extra_argument", "extra_call")
    for number, (record, kind) in enumerate(decoded(workload, 1500, tasks=0, leave_out=forgiven)):
        assert kind not in forgiven
        grade = grader.grade(reader.record(record, file="recording", ordinal=number))
        assert (grade.score == 1) == (kind == "right"), record

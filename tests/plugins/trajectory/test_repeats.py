"""Repeated calls and loops."""

import pytest

import gradestack
from gradestack import Outcome, Sample, ToolCall
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.trajectory.repeats import CallRepeats
from tests.core.outcomes import data

DATA = data(__file__, "repeats.yaml")


def graded(names, **options):
    calls = tuple(ToolCall(name=name, arguments={"x": 1}) for name in names)
    return CallRepeats(**options).grade(Sample(id="a", calls=calls))


@pytest.mark.parametrize(
    ("names", "score", "counts"),
    [*DATA["repeats_and_loops_by_hand"], ("aab", 2 / 3, [3, 2, 1, 2, 0, 0]), ("aaabbb", 1 / 3, [6, 2, 4, 3, 2, 6])],
)
def test_repeats_and_loops_by_hand(names, score, counts):
    """A repeat is identical to the call before it; a loop is a block of up to four calls, three times in a row."""
    grade = graded(names)
    keys = ("calls", "distinct", "repeats", "longest", "loops", "looped")
    assert (grade.score, [grade.counts[key] for key in keys]) == (score, counts)
    assert grade.passed is (counts[4] == 0)


def test_reasons_say_what_went_round_and_how_often():
    (reason,) = graded("xababab").reasons
    assert (reason.code, reason.subject, reason.actual) == ("loop", "a", 3)
    assert reason.message == "a, b: 3 times in a row, from call 1"


def test_options_say_what_a_loop_is():
    """How many rounds of how many calls; fewer than two rounds are none."""
    assert graded("abab", loop=2).passed is False
    assert graded("abababab", period=1).passed is True
    for options in ({"loop": 1}, {"period": 0}):
        with pytest.raises(Problems, match="at least"):
            structure(options, CallRepeats)


def test_only_identical_calls_are_repeats():
    """Other arguments are another call; undecodable ones are compared as texts; executed ones may be counted alone."""
    other = tuple(ToolCall(name="a", arguments={"x": n}, status="ok") for n in (1, 2, True))
    assert CallRepeats().grade(Sample(id="a", calls=other)).score == 1.0
    raw = tuple(ToolCall(name="a", arguments=None, raw_arguments="{", status=status) for status in ("ok", "denied"))
    assert CallRepeats().grade(Sample(id="a", calls=raw)).score == 0.5
    assert CallRepeats(count="executed").grade(Sample(id="a", calls=raw)).score == 1.0


@pytest.mark.parametrize(("calls", "code"), [(None, "calls_not_recorded"), ((), "no_calls")])
def test_without_calls_nothing_is_said(calls, code):
    """Not a one: there was nothing to repeat."""
    grade = CallRepeats().grade(Sample(id="a", calls=calls))
    assert (grade.outcome, grade.reasons[0].code) == (Outcome.SKIPPED, code)


def test_figures_are_over_runs_and_over_calls():
    """Runs with a loop / runs, repeats / calls, both with intervals; the longest run of all."""
    rows = [(task, None, None, graded(names)) for task, names in (("x", "aaa"), ("y", "ab"), ("y", "aabb"))]
    figures = gradestack.figures({"loops": {}}, rows)["loops"]
    assert (figures["n"], figures["clusters"], figures["longest"]) == (3, 2, 3)
    assert (figures["loop_rate"], figures["repeat_share"]) == (1 / 3, 4 / 9)
    assert {"loop_rate_interval", "repeat_share_interval"} <= figures.keys()
    assert gradestack.figures({"loops": {}}, [])["loops"]["loop_rate_reason"] == "no run made a call"

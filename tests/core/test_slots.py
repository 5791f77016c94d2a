"""One grader at work: whatever it does, there is a grade."""

import pytest

from gradestack.api import Grader
from gradestack.errors import PluginError
from gradestack.model import Fault, Grade, Outcome, Sample, Source, Status
from gradestack.slots import GraderSlot, grade_sample


@pytest.fixture
def slot(toys):
    """The toy grader as `quality`."""
    return GraderSlot(key="quality", component="toy", grader=toys.Toy())


def sample(do=None, **fields):
    recorded = {"do": do, "score": 0.5}
    return Sample(id="a", recorded=recorded, source=Source(file="f", ordinal=2, line=3), **fields)


def test_a_grade_passes_through(slot):
    """As the grader gave it, with no submission for graders that judge the sample."""
    grade, submission = grade_sample(slot, sample())
    assert (grade.outcome, grade.score, submission) == (Outcome.GRADED, 0.5, None)


def test_a_raising_grader_gives_a_failed_grade(slot):
    """With type, message without addresses, component and version."""
    grade, _ = grade_sample(slot, sample("raise"))
    assert (grade.outcome, grade.score) == (Outcome.FAILED, None)
    assert grade.fault == Fault(
        category="grading",
        code="raised",
        message="cannot grade <object object>",
        type="ZeroDivisionError",
        component="toy 7",
    )


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ("nothing", "returned NoneType, not a Grade"),
        ("nan part", "part 'share' must be finite or None, got nan"),
    ],
)
def test_a_grade_that_breaks_the_contract_is_a_failed_one(slot, do, message):
    """It cannot poison what comes after."""
    grade, _ = grade_sample(slot, sample(do))
    assert (grade.outcome, grade.fault.code, grade.fault.message) == (Outcome.FAILED, "bad_grade", message)
    assert grade.fault.component == "toy 7"


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 1e200, 10**400, "x", True, None])
def test_scores_that_are_no_finite_numbers_fail(slot, score):
    """NaN, infinity, text, truth values."""
    grade, _ = grade_sample(slot, Sample(id="a", recorded={"score": score}))
    assert grade.outcome is Outcome.FAILED


@pytest.mark.parametrize("do", ["raise", "nothing", "nan part"])
def test_strict_stops(slot, do):
    """The message names grader, version and record."""
    with pytest.raises(PluginError, match=r"grader 'quality' \(toy 7\) (raised|broke its contract) on f:3"):
        grade_sample(slot, sample(do), strict=True)


def test_deep_recursion_is_a_failure_with_a_plain_message(slot, toys):
    """Not the interpreter's wording, which differs between versions."""

    class Endless(Grader):
        def grade(self, sample):
            return self.grade(sample)

    grade, _ = grade_sample(GraderSlot(key="q", component="endless", grader=Endless()), sample())
    assert (grade.fault.type, grade.fault.message) == ("RecursionError", "nested too deeply")


def test_runs_that_failed_are_not_graded(slot):
    """Their own error is the fault; without one, that they failed."""
    error = Fault(category="target", code="timeout", message="too slow")
    assert grade_sample(slot, sample(status=Status.FAILED, error=error))[0].fault == error
    bare, _ = grade_sample(slot, sample(status=Status.FAILED))
    assert (bare.outcome, bare.fault.code) == (Outcome.FAILED, "target_error")


def test_rows_nobody_answered_are_missing(slot):
    """A state of its own."""
    grade, _ = grade_sample(slot, sample(status=Status.MISSING))
    assert (grade.outcome, grade.score, grade.fault.code) == (Outcome.MISSING, None, "missing")


def test_a_grader_may_handle_failed_runs_itself():
    """Where its class says so."""

    class Tolerant(Grader):
        handles = frozenset({Status.OK, Status.FAILED})

        def grade(self, sample):
            return Grade(score=0.0)

    grade, _ = grade_sample(GraderSlot(key="q", component="t", grader=Tolerant()), sample(status=Status.FAILED))
    assert grade.score == 0.0

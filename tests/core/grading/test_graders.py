"""One grader at work: whatever it does, there is a grade."""

import math

import attrs
import pytest

from gradestack import (
    DataError,
    Expectation,
    Extractor,
    Fault,
    Grade,
    Grader,
    Message,
    Outcome,
    PluginError,
    Sample,
    Source,
    Status,
    TextGrader,
)
from gradestack.grading.graders import StageGrader
from tests.core.workers import grade_sample, grader_stage


@pytest.fixture
def slot(toys):
    toy = toys.Toy()
    return grader_stage(key="quality", component="toy", grader=toy)


def check_grades(stage, samples, grades):
    stage_grader = StageGrader(stage, (), explain=False, strict=False)
    stage_grader.check(samples, grades)


def sample(do=None, **fields):
    recorded = {"do": do, "score": 0.5}
    source = Source(file="f", ordinal=2, line=3)
    return Sample(id="a", recorded=recorded, source=source, **fields)


def test_a_raising_grader_gives_a_failed_grade(slot):
    grade, _ = grade_sample(slot, sample("raise"))
    assert grade.outcome == Outcome.FAILED
    assert grade.score is None
    fault = Fault(
        category="grading",
        code="raised",
        message="cannot grade <object object> (toy_components.py:69)",
        type="ZeroDivisionError",
        component="toy 7",
    )
    assert grade.fault == fault


def test_a_grader_may_end_the_run(slot):
    """A data error is for the run, not for one grade; nothing else that a grader raises is."""
    with pytest.raises(DataError, match="ends the run"):
        grade_sample(slot, sample("end the run"))


@pytest.mark.parametrize("parts", [None, (), 0, ""])
def test_parts_that_are_no_mapping_fail_the_grade(slot, parts):
    grades = [Grade(score=1.0, parts=parts)]
    samples = [sample()]
    check_grades(slot, samples, grades)
    assert grades[0].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "parts", [{}, {"a": None, "b": 0.5}, {"a": 10**308, "b": 10**308}, {"a": 1e308, "b": 1e308}]
)
def test_parts_are_finite_one_by_one(slot, parts):
    """Or undefined; their sum may be beyond any float."""
    grades = [Grade(score=1.0, parts=parts)]
    samples = [sample()]
    check_grades(slot, samples, grades)
    assert grades[0].outcome is Outcome.GRADED


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ("nothing", "returned None (NoneType), expected a Grade, a number, or True or False"),
        ("nan part", "part 'share' must be finite or None, got nan"),
    ],
)
def test_a_grade_that_breaks_the_contract_is_a_failed_one(slot, do, message):
    grade, _ = grade_sample(slot, sample(do))
    assert grade.outcome == Outcome.FAILED
    assert grade.fault.code == "bad_grade"
    assert grade.fault.message == message
    assert grade.fault.component == "toy 7"


@pytest.mark.parametrize("do", ["raise", "nothing", "nan part"])
def test_strict_stops(slot, do):
    with pytest.raises(
        PluginError, match=r"grader 'quality' \(toy 7\) (raised|broke its contract) on f:3"
    ):
        grade_sample(slot, sample(do), strict=True)


def test_deep_recursion_is_a_failure_with_a_plain_message(slot, toys):
    """Not the interpreter's wording, which differs between versions."""

    class Endless(Grader):
        def grade(self, sample):
            return self.grade(sample)

    stage = grader_stage(key="q", component="endless", grader=Endless())
    grade, _ = grade_sample(stage, sample())
    assert grade.fault.type == "RecursionError"
    assert grade.fault.message == "nested too deeply"


def test_runs_that_failed_are_not_graded(slot):
    """Their own error is the fault; without one, that they failed."""
    error = Fault(category="target", code="timeout", message="too slow")
    fault = grade_sample(slot, sample(status=Status.FAILED, error=error))[0].fault
    assert fault == error
    bare, _ = grade_sample(slot, sample(status=Status.FAILED))
    assert bare.outcome == Outcome.FAILED
    assert bare.fault.code == "target_error"


def test_rows_nobody_answered_are_missing(slot):
    grade, _ = grade_sample(slot, sample(status=Status.MISSING))
    assert grade.outcome == Outcome.MISSING
    assert grade.score is None
    assert grade.fault.code == "missing"


def test_a_grader_may_handle_failed_runs_itself():
    class Tolerant(Grader):
        graded_statuses = frozenset({Status.OK, Status.FAILED})

        def grade(self, sample):
            return Grade(score=0.0)

    stage = grader_stage(key="q", component="t", grader=Tolerant())
    grade, _ = grade_sample(stage, sample(status=Status.FAILED))
    assert grade.score == 0.0


@attrs.frozen(kw_only=True)
class Length(TextGrader):
    """Scores a text by its length over ten, or as the reference says."""

    def grade(self, sample):
        if sample.text == "boom":
            msg = "boom"
            raise RuntimeError(msg)
        exact = sample.expected.text == sample.text
        if exact:
            score = 1.0
        else:
            score = len(sample.text) / 10
        rationale = f"{sample.text!r}"
        return Grade(score=score, rationale=rationale)


@attrs.frozen(kw_only=True)
class LastMessage(Extractor):
    """The last message's content."""

    def extract(self, sample):
        contents = [message.content for turn in sample.turns for message in turn]
        if contents and contents[-1] == "raise":
            raise LookupError("no text")
        return contents[-1] if contents else ""


def text_slot():
    return grader_stage(key="q", component="length", grader=Length(), extractor=LastMessage())


def talk(*turns, truth=None, **fields):
    made = tuple(tuple(Message(role="assistant", content=text) for text in turn) for turn in turns)
    expectation = Expectation(text=truth)
    return Sample(id="a", turns=made, expected=expectation, **fields)


def test_the_extracted_text_is_graded():
    """And handed back as the submission; the sample's own text does not matter."""
    grade, submission = grade_sample(text_slot(), talk(["one", "four"], text="other"))
    assert (grade.score, submission) == (0.4, "four")


def test_an_empty_submission():
    """It is a failed extraction, not a wrong answer."""
    grade, submission = grade_sample(text_slot(), talk())
    assert grade.outcome == Outcome.FAILED
    assert submission == ""
    assert grade.fault.category == "extraction"
    assert grade.fault.code == "empty_submission"


def test_a_raising_extractor_is_a_failed_extraction():
    grade, submission = grade_sample(text_slot(), talk(["raise"]))
    assert grade.fault.category == "extraction"
    assert grade.fault.type == "LookupError"
    assert submission == ""
    with pytest.raises(PluginError, match="the extractor of 'q' raised on a"):
        grade_sample(text_slot(), talk(["raise"]), strict=True)


def test_a_list_of_references_is_graded_turn_by_turn():
    """Scores 1 (exact), 0.3 and 0 for the absent third turn, over three references."""
    sample = talk(["yes"], ["abc"], truth=("yes", "no", "maybe"), input=("a", "b", "c"))
    grade, submission = grade_sample(text_slot(), sample)
    expected = (1.0 + 0.3 + 0.0) / 3
    assert grade.score == expected
    assert [(item.id, item.outcome, item.score) for item in grade.items] == [
        ("turn 1", Outcome.GRADED, 1.0),
        ("turn 2", Outcome.GRADED, 0.3),
        ("turn 3", Outcome.FAILED, None),
    ]
    assert grade.counts == {"turns_passed": 1, "turns_total": 3}
    assert submission == "[Turn 1] yes | [Turn 2] abc | [Turn 3] "


@pytest.mark.parametrize("turns_given", [None, "one", ("one",), ("1", "2", "3")])
def test_references_need_as_many_turns(turns_given):
    grade, _ = grade_sample(text_slot(), talk(["x"], ["y"], truth=("a", "b"), input=turns_given))
    assert grade.outcome == Outcome.FAILED
    assert grade.fault.code == "turn_mismatch"


def test_turns_of_which_none_could_be_graded():
    grade, _ = grade_sample(
        text_slot(), talk(["boom"], ["boom"], truth=("a", "b"), input=("1", "2"))
    )
    assert grade.outcome == Outcome.FAILED
    assert grade.fault.type == "RuntimeError"
    assert grade.fault.component == "length 1"


class Number(float):
    """A float of a class of its own, as numpy's are."""


class Whole(int):
    """The same of whole numbers."""


def test_numbers_of_classes_of_their_own_are_plain(slot):
    """Else nothing could write them, and the run would end."""
    score = Number(0.5)
    grades = [
        Grade(
            score=score,
            parts={"a": Number(0.25), "b": None},
            counts={"n": Whole(2), "flag": True},
        )
    ]
    samples = [sample()]
    check_grades(slot, samples, grades)
    parts = grades[0].parts.values()
    counts = grades[0].counts.values()
    numbers = (grades[0].score, *parts, *counts)
    assert numbers == (0.5, 0.25, None, 2, True)
    expected = [float, float, type(None), int, bool]
    assert [type(number) for number in numbers] == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"counts": {"n": "x"}},
        {"counts": {"n": math.nan}},
        {"counts": {"n": {1}}},
        {"label": {1}},
        {"gold": 3},
        {"parts": {"a": "b"}},
    ],
)
def test_what_no_column_holds_fails_its_grade(slot, fields):
    grades = [Grade(score=1.0, **fields), Grade(outcome=Outcome.FAILED, **fields)]
    samples = [sample(), sample()]
    check_grades(slot, samples, grades)
    expected = [(Outcome.FAILED, "bad_grade")] * 2
    assert [(grade.outcome, grade.fault.code) for grade in grades] == expected

"""The letta-evals form `kind: tool`, Python functions, and model judges."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from gradestack import Expectation, Grade, Sample, ToolCall, discover
from gradestack.suites.options import Problems, structure
from gradestack_plugins.text_graders.python_function import PythonFunction, as_grade
from gradestack_plugins.text_graders.texts import BUILT_IN, Tool
from tests.core.outcomes import data

DATA = data(__file__, "tool.yaml")

REGISTRY = discover(limit="")


def sample(text, truth=None, **fields):
    expectation = Expectation(text=truth)
    return Sample(id="t", text=text, expected=expectation, **fields)


@pytest.mark.parametrize("function", BUILT_IN)
def test_tool_is_the_grader_it_names(function):
    """`kind: tool` gives the grades of the grader of that name."""
    component = REGISTRY.load("grader", function)
    tool = structure({"function": function}, Tool)
    for case in (
        sample("a", "a"),
        sample("a"),
        sample("7", "7"),
        sample("a", ""),
        sample("\t", "("),
    ):
        assert tool.grade(case) == component().grade(case)


@pytest.mark.parametrize(("options", "message"), DATA["tool_refuses_unknown_functions"])
def test_tool_refuses_unknown_functions(options, message):
    """An unknown function is refused with the ones there are; Python code with what it takes."""
    with pytest.raises(Problems, match=message):
        structure(options, Tool)


FUNCTIONS = DATA["functions"]


@pytest.fixture
def functions(tmp_path):
    path = tmp_path / "graders.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "score", "rationale"),
    [
        ("number", 0.25, ""),
        ("truth", 1.0, ""),
        ("mapping", 1.0, "t: where?"),
        ("result", 0.5, "as an object"),
    ],
)
def test_functions_of_a_file(functions, name, score, rationale):
    """A function's number, truth value, mapping or object becomes a grade."""
    python_function = PythonFunction(file=functions, name=name)
    grade = python_function.grade(sample("Oslo", "Oslo", input="where?"))
    assert grade.score == score
    assert grade.rationale == rationale


def test_functions_see_the_reference_as_letta_writes_it(functions):
    """ground_truth is the text, a list of texts per turn, the label, or None."""
    references = []
    grader = PythonFunction(file=functions, name="number")
    object.__setattr__(
        grader, "function", lambda sample, _: references.append(sample.ground_truth) or 1.0
    )
    expectation = Expectation(text="a")
    for expected in (
        expectation,
        Expectation(text=("a", "b")),
        Expectation(label="l"),
        Expectation(),
    ):
        grader.grade(Sample(id="t", text="x", expected=expected))
    assert references == ["a", ["a", "b"], "l", None]


def test_a_function_of_the_sample_alone_grades_the_sample(functions):
    """It takes no submission, so that a run that says nothing but calls a tool is graded too.

    The verdict is kept.
    """
    grader = PythonFunction(file=functions, name="alone")
    assert grader.takes_text is False
    graded = []
    tool_call = ToolCall(name="f")
    for calls in ((), (tool_call,)):
        graded.append(grader.grade(Sample(id="t", calls=calls)))
    expected = [Grade(score=0.0, passed=False), Grade(score=1.0, passed=True)]
    assert graded == expected
    python_function = PythonFunction(file=functions, name="truth")
    assert python_function.takes_text is True


@pytest.mark.parametrize(
    ("name", "given"),
    [("nobody", "none"), ("three", "sample, submission, more"), ("named", "sample, least")],
)
def test_a_function_takes_one_parameter_or_two(functions, name, given):
    """Any other number of parameters without a default is refused with their names."""
    match = f"{name!r} must take one parameter, .*those without a default are: {given}"
    with pytest.raises(
        ValueError,
        match=match,
    ):
        PythonFunction(file=functions, name=name)


def test_a_function_at_hand():
    """It needs no file; one whose parameters are not known is refused."""
    python_function = PythonFunction.of(lambda sample: 0.5)
    assert python_function.grade(Sample(id="t")).score == 0.5
    with pytest.raises(ValueError, match="what 'max' takes cannot be told"):
        PythonFunction.of(max)


@pytest.mark.parametrize(
    ("returned", "score"),
    [(1, 1.0), (0.0, 0.0), ({"score": True}, 1.0), (Fraction(1, 4), 0.25), (Grade(score=0.3), 0.3)],
)
def test_returns_that_are_understood(returned, score):
    """Numbers in [0, 1] of any type, mappings and grades."""
    assert as_grade(returned).score == score


@pytest.mark.parametrize(("returned", "score"), [(True, 1.0), (False, 0.0)])
def test_a_truth_value_is_the_verdict_too(returned, score):
    """True is 1.0 and passed, False is 0.0 and not."""
    assert as_grade(returned) == Grade(score=score, passed=returned)


@pytest.mark.parametrize(
    "value",
    [
        "1",
        [],
        {},
        {"score": "1"},
        1.5,
        -0.1,
        10**400,
        float("nan"),
        {"score": 2},
        SimpleNamespace(score=None),
    ],
)
def test_returns_that_are_not(value):
    """Anything else, and a score outside [0, 1], is a failed grade."""
    grade = as_grade(value)
    assert grade.outcome == "failed"
    assert grade.fault.category == "grading"
    assert grade.fault.code == "bad_return"


def test_a_function_that_returns_nothing_failed():
    """It has a code of its own: a forgotten return is the usual reason."""
    grade = as_grade(None)
    assert grade.outcome == "failed"
    assert grade.score is None
    assert grade.fault.code == "returned_nothing"


@pytest.mark.parametrize(("name", "message"), DATA["functions_that_cannot_be_used"])
def test_functions_that_cannot_be_used(functions, name, message):
    """A missing, wrong or asynchronous function is refused with its place."""
    with pytest.raises(ValueError, match=message):
        PythonFunction(file=functions, name=name)


def test_code_that_cannot_be_imported(tmp_path):
    """A missing file, a broken file and an unknown module are refused with the reason."""
    with pytest.raises(ValueError, match="no such Python file"):
        PythonFunction(file=tmp_path / "none.py", name="f")
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_that_name", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot be imported: ModuleNotFoundError"):
        PythonFunction(file=broken, name="f")
    broken.write_text("raise SystemExit(0)", encoding="utf-8")
    with pytest.raises(ValueError, match="cannot be imported: SystemExit"):
        PythonFunction(file=broken, name="f")
    with pytest.raises(ValueError, match="module 'nothing_of_that_name' cannot be imported"):
        PythonFunction(module="nothing_of_that_name", name="f")
    with pytest.raises(ValueError, match="either a file or a module"):
        PythonFunction(name="f")
    with pytest.raises(ValueError, match="either a file or a module"):
        PythonFunction(name="f", file=broken, module="operator")

"""Cases as data: what is refused, what fails, and how it says so."""

import pytest
import yaml

from gradestack import ConfigError, testing
from tests.core.outcomes import data

DATA = data(__file__, "case_files.yaml")

RECORD = {
    "id": "a",
    "expected": [{"name": "f", "arguments": {"x": 1}}],
    "predicted": [{"name": "f"}],
}
CASE = {"name": "half", "records": [RECORD], "grader": "tau_partial"}
RIGHT = DATA["right"]


@pytest.fixture
def checked(tmp_path):
    """Return a function that writes cases to a file below a folder, and checks each."""

    def check(*cases, text=None):
        deep_folder = tmp_path / "deep"
        deep_folder.mkdir(exist_ok=True)
        few_path = tmp_path / "deep/few.yaml"
        few_path.write_text(yaml.safe_dump(list(cases)) if text is None else text)
        for case in testing.cases(tmp_path):
            testing.check_case(case)

    return check


def test_a_right_expectation_holds(checked):
    checked(
        CASE | RIGHT,
        DATA["a_right_expectation_holds"],
        {
            "name": "\ud800",
            "files": {"x.jsonl": [RECORD]},
            "grader": "tau_partial",
            "grades": {"score": 0.4},
        },
        DATA["a_right_expectation_holds_2"],
        {
            "name": "option",
            "records": [RECORD],
            "grader": {"kind": "tau_partial", "a": 1},
            "refused": "unknown key",
        },
        {
            "name": "data",
            "records": ["{"],
            "grader": "tau_partial",
            "refused": "no record could be read",
        },
    )


@pytest.mark.parametrize(
    ("part", "pointer", "value", "got"),
    [*DATA["a_wrong_expectation_fails"], ("figures", "mean.mean", 0.4 + 1e-11, "0.4")],
)
def test_a_wrong_expectation_fails(checked, part, pointer, value, got):
    with pytest.raises(AssertionError) as caught:
        checked(CASE | RIGHT | {part: RIGHT[part] | {pointer: value}})
    line = str(caught.value)
    assert line.startswith("deep/few.yaml: half: ")
    assert line.endswith(f"{pointer}: expected {value!r}, got {got}")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        *DATA["what_else_is_wrong_with_a_case"],
        ({"grades": [{"score": 0.4}] * 2}, "grade of grader: expected 2, got 1"),
        ({"records": [RECORD, "{"]}, "bad_records: expected 0, got 1: "),
    ],
)
def test_what_else_is_wrong_with_a_case(checked, change, line):
    """Other numbers of grades, bad records nobody expects, and what a suite may not hold."""
    data = {key: value for key, value in (CASE | RIGHT | change).items() if value is not None}
    if "stack" in data:
        del data["figures"]
    with pytest.raises(AssertionError, match=r"deep/few\.yaml: half") as caught:
        checked(data)
    assert line in str(caught.value)


def test_all_that_failed_is_listed(checked):
    with pytest.raises(AssertionError, match=r"few.yaml: half: .*\n.*few.yaml: half: .*"):
        checked(CASE | {"grades": {"score": 1, "passed": True}})


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([CASE], "deep/few.yaml: half: must expect something"),
        ([CASE | {"grades": {}, "figures": {}}], "must expect something"),
        ([CASE | RIGHT | {"refused": "x"}], "must expect something"),
        ([CASE | RIGHT | {"files": {}}], "half: needs either records or files"),
        (
            [{"name": "half", "grader": "tau_partial"} | RIGHT],
            "half: needs either records or files",
        ),
        ([{"name": "s", "records": [RECORD], "grades": [{"score": 1}]}], "s: without grader"),
        ([CASE | RIGHT, CASE | RIGHT], "deep/few.yaml: case 2 needs a name of its own"),
        (["x"], "deep/few.yaml: case 1 needs a name of its own"),
    ],
)
def test_files_that_hold_no_cases_are_refused(checked, cases, message):
    with pytest.raises(ConfigError, match=message):
        checked(*cases)


def test_what_cannot_be_read_is_refused(checked, tmp_path):
    with pytest.raises(ConfigError, match="holds no case"):
        testing.cases(tmp_path)
    with pytest.raises(ConfigError, match=r"deep/few\.yaml: cannot be read: "):
        checked(text="[")

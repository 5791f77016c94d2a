"""Figures as data: grades in short, and what metrics make of them, worked out by hand."""

from pathlib import Path

import pytest

from gradestack import ConfigError, Fault, Grade, Item, Outcome, figures
from tests.core.outcomes import at, data

PLACE = Path(__file__).parent / "figures"
CASES = {
    f"{path.stem}: {name}": case
    for path in sorted(PLACE.iterdir())
    for name, case in data(path, path.name).items()
}


def grade_of(fields_given):
    """Make a grade of a score, of the name of an outcome, or of fields.

    Parts of an item stand for it.
    """
    if isinstance(fields_given, dict):
        fields = fields_given
    else:
        fields = {"outcome" if isinstance(fields_given, str) else "score": fields_given}
    fields = fields | {
        "items": tuple(
            Item(id=str(n), parts=item) for n, item in enumerate(fields.get("items", ()))
        )
    }
    outcome = Outcome(fields.get("outcome", "graded"))
    fault = None
    if outcome is Outcome.FAILED:
        fault = Fault(category="data", code="x")
    return Grade(**fields | {"outcome": outcome, "fault": fault})


def rows_of(rows):
    """Yield task, run, model and grade.

    Of tasks with a mark for each run, or of rows that leave out run or model.
    """
    if isinstance(rows, dict):
        for task, marks in rows.items():
            for run, mark in enumerate(marks):
                if mark != ".":
                    yield task, run, None, Grade(score=float(mark), passed=mark == "1")
    else:
        for task, *model_and_run, grade in rows:
            yield (str(task), *[*model_and_run, None, None][:2], grade_of(grade))


@pytest.mark.parametrize("name", CASES)
def test_figures(name):
    case = CASES[name]
    rows = list(rows_of(case["rows"]))
    figures_found = figures(case["metrics"], rows)
    paths = case["is"]
    assert {path: at(figures_found, path) for path in paths} == case["is"]
    keys = case.get("keys", {})
    for path, names in keys.items():
        assert list(at(figures_found, path)) == names


REFUSED = data(__file__, "figures_refused.yaml")


@pytest.mark.parametrize(("metric", "message"), REFUSED)
def test_options_that_mean_nothing_are_refused(metric, message):
    with pytest.raises(ConfigError) as caught:
        figures({"m": metric}, [])
    assert message in str(caught.value)

"""The rules of the metric families, as data: what they make of records."""

from pathlib import Path

import pytest

from gradestack import testing

CASES = testing.cases(Path(__file__).parent)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case):
    """Grades and figures are those that stand in the case."""
    testing.check_case(case)

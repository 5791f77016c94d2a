"""The rules of the metric families, as data: what they make of records."""

from pathlib import Path

import pytest

from gradestack import discover, testing

REGISTRY = discover()


@pytest.mark.parametrize("case", testing.cases(Path(__file__).parent), ids=str)
def test_case(case):
    testing.check_case(case, registry=REGISTRY)

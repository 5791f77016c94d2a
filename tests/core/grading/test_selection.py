"""Tests of the samples that count: first tasks, certain tags, the last of several duplicates."""

import pytest

from gradestack import Sample
from gradestack.grading.selection import tags_of


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (None, set()),
        ("x", {"x"}),
        (["x", 5, None, "y"], {"x", "y"}),
        (("x",), {"x"}),
        ({"x": 1}, set()),
        (5, set()),
    ],
)
def test_tags(tags, expected):
    sample = Sample(id="a", facets={"tags": tags})
    assert tags_of(sample) == expected

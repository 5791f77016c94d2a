"""Accuracy by category, and the mean in which every category weighs the same."""

import pytest

import gradestack


@pytest.fixture
def report(bfcl, tmp_path):
    """Return the report of a file of three entries and one of a single entry, which is wrong."""
    sizes = {"simple_python": 3, "parallel": 1}
    for category, size in sizes.items():
        names = []
        for number in range(size):
            names.append(f"{category}_{number}")
        bfcl.questions(*map(bfcl.question, names), category=category)
        bfcl.results(*(bfcl.result([], name) for name in names), category=category)
        if category == "simple_python":
            wrong = []
        else:
            wrong = [{"id": names[0], "valid": False}]
        correct = size - len(wrong)
        header = bfcl.header(correct, size)
        bfcl.scores(header, *wrong, category=category)
    output = tmp_path / "out"
    paths = [bfcl.root]
    return gradestack.grade_files(paths, output=output, overrides=["reports=[]"])


def test_every_category_weighs_the_same(report):
    metrics = report.summary["metrics"]
    valid = metrics["aggregates"]["valid"]
    figures = valid["categories"]
    assert figures["accuracy"] == {"parallel": 0.0, "simple_python": 1.0}
    assert figures["unweighted"] == 0.5
    keys = figures["accuracy_interval"].keys()
    expected = figures["accuracy"].keys()
    assert keys == expected


def test_weighed_by_their_entries_they_are_the_share_of_all(report):
    metrics = report.summary["metrics"]
    valid = metrics["aggregates"]["valid"]
    figures = valid["categories"]
    simple_python = figures["accuracy"]["simple_python"]
    parallel = figures["accuracy"]["parallel"]
    weighed = 3 * simple_python + parallel
    outcome = report.summary["outcome"]
    assert outcome["share"] == weighed / 4

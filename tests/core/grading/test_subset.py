"""Part of a run's samples: filters, lists of tasks, the first tasks; what is left out is said."""

from contextlib import suppress

import pytest

import gradestack
from gradestack import ConfigError, DataError, Sample, Source, Subset
from gradestack.grading.filters import Fields, parse_expression
from tests.core.outcomes import data, ids

DATA = data(__file__, "subset.yaml")
FACETS = {"domain": "air", "tags": ["easy"], "deep": 3, "flag": True, "none": None}


@pytest.mark.parametrize(("text", "expected"), DATA["holds"])
def test_a_filter_is_asked_of_a_sample_and_of_its_row_alike(text, expected, tmp_path):
    source = Source(file="f.json", ordinal=0)
    sample = Sample(
        id="7", model="m", run=1, input="Refund it", ended="completed", facets=FACETS, source=source
    )
    subset = Subset(filter=text)
    fields = Fields.of(sample)
    assert subset.admits(fields) is expected
    graders = {"one": lambda _: 1.0}
    report = gradestack.grade([sample], graders=graders)
    if expected:
        assert ids(report.filter(Subset(filter=text))) == ["7"]
    else:
        with pytest.raises(DataError, match="no run is left"):
            report.filter(Subset(filter=text))


@pytest.mark.parametrize(("text", "message"), DATA["refused"])
def test_what_is_no_filter(text, message):
    with pytest.raises(ConfigError) as caught:
        Subset.read(text, None, None)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["(" * 3_000 + "1" + ")" * 3_000, "not " * 900 + "run", "1 == " * 700 + "1", "x" * 5_000],
)
def test_a_filter_without_an_end(text):
    with suppress(ConfigError):
        expression = parse_expression(text)
        fields = Fields(id="a")
        assert expression.holds(fields) in (True, False)


def test_runs_are_compared_on_a_subset(run_lines, record, tmp_path):
    """The same of every side; what is left out is among the comparison's warnings."""
    ids_folder = tmp_path / "ids"
    ids_folder.write_text("a\nb\n")
    before, after = (
        run_lines([record(task, score, run=run) for task in "abc" for run in range(3)], output=name)
        for name, score in (("before", 0.0), ("after", 1.0))
    )
    tasks = tmp_path / "ids"
    data = gradestack.compare(before, after, tasks=tasks).data
    assert [run["tasks"] for run in data["runs"]] == [2, 2]
    expected = [
        f"{name}: 3 of 9 runs are left out: tasks of a list of 2" for name in ("before", "after")
    ]
    assert data["warnings"] == expected
    with pytest.raises(ConfigError, match="limit: expected at least 1 task, got 0"):
        gradestack.compare(before, after, limit=0)

"""Part of a run's samples: filters, lists of tasks, the first tasks; what is left out is said."""

from contextlib import suppress

import pytest

import gradestack
from gradestack import ConfigError, DataError, Sample, Source, Subset
from gradestack.grading.subset import Fields, expression
from tests.core.outcomes import data, ids, read

DATA = data(__file__, "subset.yaml")
FACETS = {"domain": "air", "tags": ["easy"], "deep": 3, "flag": True, "none": None}


@pytest.mark.parametrize(("text", "held"), DATA["holds"])
def test_a_filter_is_asked_of_a_sample_and_of_its_row_alike(text, held, tmp_path):
    source = Source(file="f.json", ordinal=0)
    sample = Sample(id="7", model="m", run=1, input="Refund it", ended="completed", facets=FACETS, source=source)
    assert Subset(filter=text).admits(Fields.of(sample)) is held
    report = gradestack.grade([sample], graders={"one": lambda _: 1.0})
    if held:
        assert ids(report.only(Subset(filter=text))) == ["7"]
    else:
        with pytest.raises(DataError, match="no sample is left"):
            report.only(Subset(filter=text))


@pytest.mark.parametrize(("text", "said"), DATA["refused"])
def test_what_is_no_filter(text, said):
    with pytest.raises(ConfigError) as caught:
        Subset.read(text, None, None)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text", ["(" * 3_000 + "1" + ")" * 3_000, "not " * 900 + "run", "1 == " * 700 + "1", "x" * 5_000]
)
def test_a_filter_without_an_end(text):
    with suppress(ConfigError):
        assert expression(text).holds(Fields(id="a")) in (True, False)


@pytest.mark.parametrize("shard_bytes", [1, 10_000])
def test_what_is_left_out_is_said(run_lines, record, monkeypatch, tmp_path, shard_bytes):
    """The first tasks are those of what is left; tasks of a list that are not there are named."""
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", shard_bytes)
    records = [record(task, 1.0, run=run, facets={"even": run % 2 == 0}) for run in range(4) for task in "abc"]
    (tmp_path / "ids").write_text("# tasks\n\nb\nc\nz\n")
    listed = run_lines(records, tasks=str(tmp_path / "ids"), output="listed")
    assert ids(listed) == ["b", "c"] * 4
    assert read(listed)["subset"] == {"tasks": 3, "taken": 8, "left_out": 4} == read(listed, "header.json")["subset"]
    said = ["4 of 12 samples are left out: tasks of a list of 3", "1 of 3 listed tasks without a sample, the first: z"]
    assert read(listed)["warnings"] == said
    report = run_lines(records, filter='facet.even == true and id != "a"', max_samples=1, reports=["markdown"])
    assert ids(report) == ["b", "b"]
    said = '10 of 12 samples are left out: filter facet.even == true and id != "a", the first 1 task'
    assert said in "".join(read(report)["warnings"]), said
    assert "samples are left out" in (report.path / "report.md").read_text()
    misspelt = run_lines(records, filter='facet.evn != "x"', output="misspelt")
    assert "no sample has the facet 'evn' (did you mean 'even'?)" in read(misspelt)["warnings"]
    with pytest.raises(DataError, match=r"no sample is left.*\n.*filter id == 3\n"):
        run_lines(records, filter="id == 3\n")


def test_tasks_of_a_dataset_that_are_left_out_are_not_missing(run_lines, record, write_lines):
    rows = [{"id": name, "expected": "x", "facets": {"hard": name in "bd"}} for name in "abcd"]
    gold = write_lines(rows, "gold.jsonl")
    report = run_lines([record("a", 1.0), record("b", 1.0)], dataset=str(gold), filter="facet.hard == true")
    assert [(row["sample"]["id"], row["state"]) for row in report.rows()] == [("b", "graded"), ("d", "missing")]


def test_runs_are_compared_on_a_subset(run_lines, record, tmp_path):
    """The same of every side; what is left out is among the comparison's warnings."""
    (tmp_path / "ids").write_text("a\nb\n")
    before, after = (
        run_lines([record(task, score, run=run) for task in "abc" for run in range(3)], output=name)
        for name, score in (("before", 0.0), ("after", 1.0))
    )
    data = gradestack.compare(before, after, tasks=tmp_path / "ids").data
    assert [each["tasks"] for each in data["runs"]] == [2, 2]
    assert data["warnings"] == [
        f"{name}: 3 of 9 samples are left out: tasks of a list of 2" for name in ("before", "after")
    ]
    with pytest.raises(ConfigError, match="limit: expected at least 1 task, got 0"):
        gradestack.compare(before, after, limit=0)

"""The reporters `csv`, `json` and `parquet`: every table of a run as a file."""

import csv
import json

import pytest

from gradestack import Report
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.table_files import (
    CsvReporter,
    JsonReporter,
    ParquetReporter,
)

ROWS = ("samples", "grades", "items", "reasons", "calls")
OTHERS = ("headline", "figures", "gates", "tasks", "failures")


@pytest.fixture
def tables(tmp_path):
    def write(report):
        found = []
        for reporter, ending in ((JsonReporter(), "json"), (CsvReporter(), "csv")):
            paths = reporter.write(report, tmp_path)
            assert all(
                path.parent == tmp_path / "tables" and path.suffix == f".{ending}" for path in paths
            )
            texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
            found.append(
                {name: json.loads(text) for name, text in texts.items()}
                if ending == "json"
                else texts
            )
        return found

    return write


def lines(text):
    return list(csv.DictReader(text.splitlines(keepends=True)))


def test_the_rows_are_the_tables_of_the_report(fake, tables):
    report = fake.make_report(fake.realistic_rows(tasks=9, trials=3))
    data, texts = tables(report)
    assert [*data] == [*texts] == [*OTHERS, *ROWS]
    for name in ROWS:
        table = report.table(name)
        assert data[name] == list(table.rows())
        found = lines(texts[name])
        assert [*found[0]] == list(table.columns)
        assert len(found) == len(table)
    ungraded = [row for row in data["grades"] if row["state"] != "graded"]
    assert len(ungraded) == 8
    assert {row["score"] for row in ungraded} == {None}
    assert {row["score"] for row in lines(texts["grades"]) if row["state"] != "graded"} == {""}
    assert lines(texts["samples"])[0]["facets"] == '{"domain": "rail"}'
    assert {row["passed"] for row in lines(texts["samples"])} == {"true", "false", ""}


def test_figures_stand_by_their_paths_with_intervals_and_reasons(fake, tables):
    report = fake.make_report(fake.realistic_rows())
    interval = {
        "low": 0.1,
        "high": 0.3,
        "confidence": 0.95,
        "n": 8,
        "clusters": 4,
        "method": "logit_t",
    }
    metrics = {
        "rate": 0.2,
        "rate_interval": interval,
        "by": {"a": 0.5},
        "by_interval": {"a": {"reason": "one task"}},
    }
    metrics |= {
        "none": None,
        "undefined": {"none": "no call"},
        "text": "x",
        "models": {"=m": {"rate": 0.25}},
    }
    report.summary["metrics"]["aggregates"]["partial"]["more"] = metrics
    data, texts = tables(report)
    found = {
        (row["figure"], row["model"]): row for row in data["figures"] if row["aggregator"] == "more"
    }
    assert set(found) == {("rate", None), ("by.a", None), ("none", None), ("rate", "=m")}
    assert {name: found["rate", None][name] for name in interval} == interval
    assert (found["by.a", None]["value"], found["by.a", None]["reason"]) == (0.5, "one task")
    assert (found["none", None]["value"], found["none", None]["reason"]) == (None, "no call")
    assert [row["model"] for row in lines(texts["figures"]) if row["model"]] == ["'=m"]
    head = {row["figure"]: (row["value"], row["reason"]) for row in data["headline"]}
    assert head["reward.pass_hat_k.pass_hat_k.2"] == (0.2733, None)
    assert head["reward.mean.mean"] == (None, "no <b>reward</b> | at all")
    assert data["gates"][0]["gate"] == "partial >= 0.6"


def test_tasks_and_failures_are_counted(fake, tables):
    report = fake.make_report(fake.realistic_rows(tasks=9, trials=3))
    data, _ = tables(report)
    assert sum(row["trials"] for row in data["tasks"]) == len(list(report.rows())) == 54
    for row in data["tasks"]:
        assert row["passed"] + row["not_passed"] + row["ungraded"] == row["trials"] == 3
    assert sum(row["passed"] for row in data["tasks"]) == report.summary["outcome"]["passed"]
    given = dict(zip(index_of(report).given.kinds, index_of(report).given.samples, strict=True))
    keys = ("grader", "code", "subject", "argument")
    assert {
        tuple(row[key] or "" for key in keys): row["samples"] for row in data["failures"]
    } == given


def test_a_spreadsheet_calculates_nothing(fake, tables):
    row = fake.graded_row(3, 1, "=HYPERLINK(1)")
    row["sample"]["id"], row["run"] = "@SUM(1)", "-1+1"
    data, texts = tables(fake.make_report([row], many_models=False))
    for name in ROWS:
        assert {(each["id"], each["model"], each["run"]) for each in data[name]} == {
            ("@SUM(1)", "=HYPERLINK(1)", "-1+1")
        }
        found = {(each["id"], each["model"], each["run"]) for each in lines(texts[name])}
        assert found == {("'@SUM(1)", "'=HYPERLINK(1)", "'-1+1")}


def test_a_run_without_rows_has_its_figures(fake, tables):
    report = fake.make_report(fake.realistic_rows(tasks=2, trials=1))
    report = Report(path=None, header={**report.header, "rows": False}, summary=report.summary)
    data, texts = tables(report)
    assert [*data] == [*texts] == ["headline", "figures", "gates"]


def test_an_empty_run_has_empty_tables(fake, tables):
    data, texts = tables(fake.make_report([]))
    assert data["samples"] == []
    assert texts["samples"].startswith("position,id,model,run,")


def test_parquet_is_the_tables_of_the_report(fake, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    report = fake.make_report(fake.realistic_rows(tasks=9, trials=3))
    paths = ParquetReporter().write(report, tmp_path)
    assert [path.stem for path in paths] == ["headline", "figures", "gates", *ROWS]
    for path in paths:
        read, held = parquet.read_table(path), report.table(path.stem).to_arrow()
        assert read.equals(held), path.stem
    frame = report.table("grades").to_pandas()
    means = {
        grader: each["avg_score_attempted"] for grader, each in report.metrics["by_metric"].items()
    }
    assert report.table("grades").to_polars().shape == frame.shape
    assert set(frame.score[frame.state != "graded"].isna()) == {True}
    assert frame.groupby("grader").score.mean().to_dict().keys() == means.keys()


def test_parquet_holds_whatever_stands_in_rows(fake, tmp_path):
    """Half of a surrogate pair is a question mark; a whole number no column can hold is null."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    row = fake.graded_row(3, 1, "m")
    row["sample"]["id"], row["facets"], row["source"] = (
        "\ud800",
        {"\udfff": [1, "\ud800"]},
        {"file": "f", "line": 2**70},
    )
    report = fake.make_report([row], many_models=False)
    list(ParquetReporter().write(report, tmp_path))
    (found,) = report.table("samples").to_arrow().to_pylist()
    assert (found["id"], found["source_line"], found["facets"]) == ("?", None, [("?", '[1, "?"]')])

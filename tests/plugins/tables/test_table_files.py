"""The reporters `csv`, `json` and `parquet`: every table of a run as a file."""

import csv
import json

import pytest

from gradestack import Report
from gradestack_plugins.tables.files import (
    CsvReporter,
    JsonReporter,
    ParquetReporter,
)

ROWS = ("samples", "grades", "items", "reasons", "calls")
OTHERS = ("headline", "figures", "gates", "tasks", "failures")


@pytest.fixture
def tables(tmp_path):
    def write(report):
        tables_read = []
        for reporter, ending in ((JsonReporter(), "json"), (CsvReporter(), "csv")):
            paths = reporter.write(report, tmp_path)
            assert all(
                path.parent == tmp_path / "tables" and path.suffix == f".{ending}" for path in paths
            )
            texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
            tables_read.append(
                {name: json.loads(text) for name, text in texts.items()}
                if ending == "json"
                else texts
            )
        return tables_read

    return write


def lines(text):
    return list(csv.DictReader(text.splitlines(keepends=True)))


def test_the_rows_are_the_tables_of_the_report(fake, tables):
    realistic_rows = fake.realistic_rows(tasks=9, trials=3)
    report = fake.make_report(realistic_rows)
    data, texts = tables(report)
    assert [*data] == [*texts] == [*OTHERS, *ROWS]
    for name in ROWS:
        table = report.table(name)
        expected = list(table.rows())
        assert data[name] == expected
        lines_found = lines(texts[name])
        columns = list(table.columns)
        assert [*lines_found[0]] == columns
        assert len(lines_found) == len(table)
    grades = data["grades"]
    ungraded = [row for row in grades if row["state"] != "graded"]
    assert len(ungraded) == 8
    scores = {row["score"] for row in ungraded}
    assert scores == {None}
    rows = lines(texts["grades"])
    assert {row["score"] for row in rows if row["state"] != "graded"} == {""}
    first_line = lines(texts["samples"])[0]
    facets = first_line["facets"]
    assert facets == '{"domain": "rail"}'
    samples = texts["samples"]
    assert {row["passed"] for row in lines(samples)} == {"true", "false", ""}


def test_a_spreadsheet_calculates_nothing(fake, tables):
    row = fake.graded_row(3, 1, "=HYPERLINK(1)")
    row["sample"]["id"], row["run"] = "@SUM(1)", "-1+1"
    report = fake.make_report([row], many_models=False)
    data, texts = tables(report)
    for name in ROWS:
        sample_rows = data[name]
        assert {
            (sample_row["id"], sample_row["model"], sample_row["run"]) for sample_row in sample_rows
        } == {("@SUM(1)", "=HYPERLINK(1)", "-1+1")}
        lines_found = set()
        for sample_row in lines(texts[name]):
            model = sample_row["model"]
            lines_found.add((sample_row["id"], model, sample_row["run"]))
        assert lines_found == {("'@SUM(1)", "'=HYPERLINK(1)", "'-1+1")}


def test_a_run_without_rows_has_its_figures(fake, tables):
    realistic_rows = fake.realistic_rows(tasks=2, trials=1)
    report = fake.make_report(realistic_rows)
    header = {**report.header, "rows": False}
    report = Report(path=None, header=header, summary=report.summary)
    data, texts = tables(report)
    assert [*data] == [*texts] == ["headline", "figures", "gates"]


def test_an_empty_run_has_empty_tables(fake, tables):
    report = fake.make_report([])
    data, texts = tables(report)
    assert data["samples"] == []
    assert texts["samples"].startswith("position,id,model,run,")


@pytest.mark.slow
def test_parquet_is_the_tables_of_the_report(fake, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    realistic_rows = fake.realistic_rows(tasks=9, trials=3)
    report = fake.make_report(realistic_rows)
    paths = ParquetReporter().write(report, tmp_path)
    stems = [path.stem for path in paths]
    expected = ["headline", "figures", "gates", *ROWS]
    assert stems == expected
    for path in paths:
        read = parquet.read_table(path)
        held_table = report.table(path.stem).to_arrow()
        assert read.equals(held_table), path.stem
    frame = report.table("grades").to_pandas()
    by_metric = report.metrics["by_metric"]
    means = {grader: value["avg_score_attempted"] for grader, value in by_metric.items()}
    table = report.table("grades")
    polars = table.to_polars()
    assert polars.shape == frame.shape
    assert set(frame.score[frame.state != "graded"].isna()) == {True}
    groupby = frame.groupby("grader")
    mean = groupby.score.mean()
    keys = mean.to_dict().keys()
    assert keys == means.keys()


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
    table = report.table("samples")
    (only_row,) = table.to_arrow().to_pylist()
    assert only_row["id"] == "?"
    assert only_row["source_line"] is None
    assert only_row["facets"] == [("?", '[1, "?"]')]

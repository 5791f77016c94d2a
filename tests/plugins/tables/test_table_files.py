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
    report = fake.make_report(fake.realistic_rows(tasks=9, trials=3))
    data, texts = tables(report)
    assert [*data] == [*texts] == [*OTHERS, *ROWS]
    for name in ROWS:
        table = report.table(name)
        assert data[name] == list(table.rows())
        lines_found = lines(texts[name])
        assert [*lines_found[0]] == list(table.columns)
        assert len(lines_found) == len(table)
    ungraded = [row for row in data["grades"] if row["state"] != "graded"]
    assert len(ungraded) == 8
    assert {row["score"] for row in ungraded} == {None}
    assert {row["score"] for row in lines(texts["grades"]) if row["state"] != "graded"} == {""}
    assert lines(texts["samples"])[0]["facets"] == '{"domain": "rail"}'
    assert {row["passed"] for row in lines(texts["samples"])} == {"true", "false", ""}


def test_a_spreadsheet_calculates_nothing(fake, tables):
    row = fake.graded_row(3, 1, "=HYPERLINK(1)")
    row["sample"]["id"], row["run"] = "@SUM(1)", "-1+1"
    data, texts = tables(fake.make_report([row], many_models=False))
    for name in ROWS:
        assert {
            (sample_row["id"], sample_row["model"], sample_row["run"]) for sample_row in data[name]
        } == {("@SUM(1)", "=HYPERLINK(1)", "-1+1")}
        lines_found = {
            (sample_row["id"], sample_row["model"], sample_row["run"])
            for sample_row in lines(texts[name])
        }
        assert lines_found == {("'@SUM(1)", "'=HYPERLINK(1)", "'-1+1")}


def test_a_run_without_rows_has_its_figures(fake, tables):
    report = fake.make_report(fake.realistic_rows(tasks=2, trials=1))
    report = Report(path=None, header={**report.header, "rows": False}, summary=report.summary)
    data, texts = tables(report)
    assert [*data] == [*texts] == ["headline", "figures", "gates"]


def test_an_empty_run_has_empty_tables(fake, tables):
    data, texts = tables(fake.make_report([]))
    assert data["samples"] == []
    assert texts["samples"].startswith("position,id,model,run,")


@pytest.mark.slow
def test_parquet_is_the_tables_of_the_report(fake, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    report = fake.make_report(fake.realistic_rows(tasks=9, trials=3))
    paths = ParquetReporter().write(report, tmp_path)
    assert [path.stem for path in paths] == ["headline", "figures", "gates", *ROWS]
    for path in paths:
        read = parquet.read_table(path)
        held_table = report.table(path.stem).to_arrow()
        assert read.equals(held_table), path.stem
    frame = report.table("grades").to_pandas()
    means = {
        grader: value["avg_score_attempted"]
        for grader, value in report.metrics["by_metric"].items()
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
    (only_row,) = report.table("samples").to_arrow().to_pylist()
    assert (only_row["id"], only_row["source_line"], only_row["facets"]) == (
        "?",
        None,
        [("?", '[1, "?"]')],
    )

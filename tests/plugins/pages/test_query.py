"""The command `query`: SQL over the tables of a run, and nothing else."""

import pytest
from click.testing import CliRunner

import gradestack
from gradestack import ConfigError
from gradestack_plugins.pages.query import query
from tests.core.outcomes import data

pytest.importorskip("duckdb", reason="duckdb is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the airline example with tables, as every engine and cut writes it."""
    out = tmp_path_factory.mktemp("run") / "out"
    gradestack.run(
        "examples/airline/suite.yaml", output=out, overrides=["tables=parquet", "reports=[]"]
    )
    return out


def answer(*arguments):
    return CliRunner().invoke(query, list(map(str, arguments)), catch_exceptions=False)


def test_figures_are_those_of_the_report(run):
    report = gradestack.load_report(run)
    means = {
        grader: each["avg_score_attempted"] for grader, each in report.metrics["by_metric"].items()
    }
    sql = (
        "select grader, avg(score) as mean, count(*) as n from grades group by grader order by "
        "grader"
    )
    found = answer(run, sql, "--format", "json").stdout.splitlines()
    assert found == [
        f'{{"grader":"{grader}","mean":{mean:.16g},"n":52}}'
        for grader, mean in sorted(means.items())
    ]
    assert report.table("grades").to_pandas().groupby(
        "grader"
    ).score.mean().to_dict() == pytest.approx(means, abs=1e-12)


def test_an_answer_is_a_table_csv_or_json(run, tmp_path):
    sql = (
        "select id, score, passed, parts from grades where grader = 'reward' order by position "
        "limit 1"
    )
    assert answer(run, sql).stdout == "id  score  passed  parts\n0   1      true    {}\n(1 row)\n"
    answer(run, sql, "-o", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "id,score,passed,parts\n0,1.0,true,{}\n"
    assert answer(
        run, "select 1.5::decimal(3, 1) as a, date '2026-01-02' as b", "--format", "json"
    ).stdout == ('{"a":"1.5","b":"2026-01-02"}\n')


@pytest.mark.parametrize(("sql", "said"), data(__file__, "query.yaml"))
def test_a_query_that_cannot_be_answered(run, sql, said):
    """It reads and writes no other file, and no table either."""
    before = {path: path.read_bytes() for path in (run / "tables").iterdir()}
    with pytest.raises(ConfigError) as caught:
        answer(run, sql.replace("TABLES", str(run / "tables")))
    assert said in str(caught.value)
    assert {path: path.read_bytes() for path in (run / "tables").iterdir()} == before


def test_a_place_that_cannot_be_written_is_said(run, tmp_path):
    with pytest.raises(ConfigError, match=r"x\.csv: cannot be written: No such file or directory"):
        answer(run, "select 1", "-o", tmp_path / "gone/x.csv")


def test_a_run_without_tables_gets_them_for_the_query(tmp_path):
    report = gradestack.run(
        "examples/airline/suite.yaml", output=tmp_path / "out", overrides=["reports=[]"]
    )
    found = answer(report.path, "select count(*) as n from samples", "--format", "csv")
    assert (found.stdout, "are made for this query" in found.stderr) == ("n\n52\n", True)
    assert not (report.path / "tables").exists()


def test_a_run_without_rows_has_tables_of_figures(tmp_path):
    report = gradestack.run(
        "examples/airline/suite.yaml",
        output=tmp_path / "out",
        overrides=["reports=[]"],
        rows="none",
    )
    assert answer(report.path, "select count(*) from figures").exit_code == 0
    with pytest.raises(
        ConfigError, match=r"the tables are headline, figures, gates \(the run kept no rows"
    ):
        answer(report.path, "from grades")


def test_a_missing_library_is_named_with_its_extra(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(
        ConfigError, match=r"duckdb is not installed: pip install duckdb \(extra 'query'\)"
    ):
        answer(run, "select 1")

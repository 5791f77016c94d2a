"""The command `query`: SQL over the tables of a run, and nothing else."""

import os
import shutil
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

import gradestack
from gradestack import ConfigError, DataError
from gradestack_plugins.tables.files import TABLES
from gradestack_plugins.tables.query import query
from tests.core.outcomes import data

pytest.importorskip("duckdb", reason="duckdb is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


HOSTILE = data(__file__, "hostile_tables.yaml")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the airline example with tables, as every engine and cut writes it."""
    out = tmp_path_factory.mktemp("run") / "out"
    gradestack.run(
        "examples/airline/suite.yaml", output=out, overrides=["tables=parquet", "reports=[]"]
    )
    return out


def run_query(*arguments):
    return CliRunner().invoke(query, list(map(str, arguments)), catch_exceptions=False)


INTERRUPTED = """
import os, signal, threading
from gradestack.cli.commands import main

delay = float(os.environ["INTERRUPTED_AFTER"])
threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
main()
"""
ENDLESS = """
select sum(a.score + b.score + c.score + d.score + e.score + f.score)
from grades a, grades b, grades c, grades d, grades e, grades f
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    "delay",
    [3.0, *(pytest.param(0.2 + step / 50, marks=pytest.mark.faults) for step in range(40))],
)
def test_an_interruption_ends_a_query_that_would_not_end(run, delay):
    """With 130 and one word, while libraries are loaded, tables opened or rows counted."""
    command = [sys.executable, "-c", INTERRUPTED, "query", str(run), ENDLESS]
    environment = {**os.environ, "INTERRUPTED_AFTER": str(delay)}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert ended.returncode == 130
    assert ended.stdout == ""
    stderr = ended.stderr.strip()
    assert stderr == "interrupted"


@pytest.mark.slow
def test_figures_are_those_of_the_report(run):
    report = gradestack.load_report(run)
    by_metric = report.metrics["by_metric"]
    means = {grader: value["avg_score_attempted"] for grader, value in by_metric.items()}
    sql = (
        "select grader, avg(score) as mean, count(*) as n from grades group by grader order by "
        "grader"
    )
    output = run_query(run, sql, "--format", "json").stdout.splitlines()
    expected = []
    for grader, mean in sorted(means.items()):
        expected.append(f'{{"grader":"{grader}","mean":{mean:.16g},"n":52}}')
    assert output == expected
    table = report.table("grades")
    frame = table.to_pandas()
    groupby = frame.groupby("grader")
    assert groupby.score.mean().to_dict() == pytest.approx(means, abs=1e-12)


def test_an_answer_is_a_table_csv_or_json(run, tmp_path):
    sql = (
        "select id, score, passed, parts from grades where grader = 'reward' order by position "
        "limit 1"
    )
    assert (
        run_query(run, sql).stdout == "id  score  passed  parts\n0   1      true    {}\n(1 row)\n"
    )
    x_path = tmp_path / "x.csv"
    run_query(run, sql, "-o", x_path)
    text = (tmp_path / "x.csv").read_text()
    assert text == "id,score,passed,parts\n0,1.0,true,{}\n"
    assert run_query(
        run, "select 1.5::decimal(3, 1) as a, date '2026-01-02' as b", "--format", "json"
    ).stdout == ('{"a":"1.5","b":"2026-01-02"}\n')


@pytest.mark.parametrize(("sql", "message"), data(__file__, "query.yaml"))
def test_a_query_that_cannot_be_answered(run, sql, message):
    """It reads and writes no other file, and no table either."""
    tables_folder = run / "tables"
    before = {path: path.read_bytes() for path in tables_folder.iterdir()}
    with pytest.raises(ConfigError) as caught:
        run_query(run, sql.replace("TABLES", str(run / "tables")))
    assert message in str(caught.value)
    paths = (run / "tables").iterdir()
    contents_by_path = {path: path.read_bytes() for path in paths}
    assert contents_by_path == before


def test_a_place_that_cannot_be_written_is_said(run, tmp_path):
    with pytest.raises(ConfigError, match=r"x\.csv: cannot be written: No such file or directory"):
        run_query(run, "select 1", "-o", tmp_path / "gone/x.csv")


def test_a_run_without_tables_gets_them_for_the_query(tmp_path):
    out_folder = tmp_path / "out"
    report = gradestack.run(
        "examples/airline/suite.yaml", output=out_folder, overrides=["reports=[]"]
    )
    output = run_query(report.path, "select count(*) as n from samples", "--format", "csv")
    assert output.stdout == "n\n52\n"
    assert "are made for this query" in output.stderr
    tables_folder = report.path / "tables"
    assert not tables_folder.exists()


def test_a_run_without_rows_has_tables_of_figures(tmp_path):
    output = tmp_path / "out"
    report = gradestack.run(
        "examples/airline/suite.yaml",
        output=output,
        overrides=["reports=[]"],
        rows="none",
    )
    assert run_query(report.path, "select count(*) from figures").exit_code == 0
    with pytest.raises(
        ConfigError, match=r"the tables are headline, figures, gates \(the run kept no rows"
    ):
        run_query(report.path, "from grades")


def test_a_missing_library_is_named_with_its_extra(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(
        ConfigError, match=r"duckdb is not installed: pip install duckdb \(extra 'query'\)"
    ):
        run_query(run, "select 1")


def test_the_names_of_tables_are_known(run):
    tables_folder = run / "tables"
    paths = tables_folder.iterdir()
    names = {path.name for path in paths}
    expected = {f"{name}.parquet" for name in TABLES}
    assert names == expected


@pytest.mark.parametrize("name", HOSTILE["names"])
def test_the_name_of_a_file_among_the_tables_does_nothing(run, tmp_path, monkeypatch, name):
    """Neither what it says is done, nor is the file a table."""
    monkeypatch.chdir(tmp_path)
    stranger_folder = tmp_path / "stranger"
    shutil.copytree(run, stranger_folder)
    gates_path = run / "tables/gates.parquet"
    tables_folder = tmp_path / "stranger/tables"
    shutil.copy(gates_path, tables_folder / name)
    before = set(tmp_path.rglob("*"))
    output = run_query("stranger", "select count(*) as n from samples", "--format", "csv")
    assert output.exit_code == 0
    assert output.stdout == "n\n52\n"
    assert output.stderr == ""
    known = run_query("stranger", "select count(*) from duckdb_views() where not internal")
    lines = known.stdout.splitlines()
    last_line = lines[-2]
    table_count = str(len(TABLES))
    assert last_line.strip() == table_count
    paths = tmp_path.rglob("*")
    assert set(paths) == before


def put(what, path):
    """Put something else in the place of a table."""
    if what in {"damaged", "cut"}:
        content = path.read_bytes()
        first = content.find(b"\x28\xb5\x2f\xfd")  # of compressed data
        broken = content[:first] + b"\0" * 40 + content[first + 40 :]
        path.write_bytes(broken if what == "damaged" else content[:-20])
        return
    path.unlink()
    match what:
        case "fifo":
            os.mkfifo(path)
        case "zero":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "dangling":
            path.symlink_to("gone")
        case "socket":
            with socket.socket(socket.AF_UNIX) as opened:
                opened.bind(os.path.relpath(path))
        case "text":
            path.write_text("secret\n" * 100)
        case "empty":
            path.touch()


@pytest.mark.skipif(os.name == "nt", reason="there are none")
@pytest.mark.parametrize("case", HOSTILE["places"], ids=lambda case: case["put"])
def test_what_is_no_table_is_not_opened(run, tmp_path, monkeypatch, case):
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tables/samples.parquet"
    put(case["put"], path)
    with pytest.raises(DataError) as caught:
        run_query(tmp_path, "from samples")
    assert case["says"] in str(caught.value)
    assert "secret" not in str(caught.value)

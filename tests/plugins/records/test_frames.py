"""Data frames and mappings of any form in Python; files with a mapping."""

import io
import json
import sys

import pytest
from click.testing import CliRunner

import gradestack
from gradestack.cli.commands import cli
from gradestack.errors import ConfigError, DataError

TALK = [
    {"role": "user", "content": "Hi"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "done"},
    {"role": "assistant", "content": "Done."},
]
NAN = float("nan")


class Frame:
    """A data frame as the reader sees one of pandas."""

    def __init__(self, columns, rows):
        self.columns = columns
        self.rows = rows

    def itertuples(self, index, name):
        assert (index, name) == (False, None)
        return iter(self.rows)

    def __iter__(self):
        return iter(self.columns)


def test_missing_values_of_a_frame_are_not_recorded():
    """NaN is how a frame says that a number is not there.

    A column of counts is then one of floats.
    """
    frame = Frame(["task", "trial", "n"], [(1.0, 0.0, 12.0), (2.0, NAN, NAN)])
    columns = {"id": "task", "run": "trial", "usage.input_tokens": "n"}
    report = gradestack.grade(frame, ["usage"], columns=columns)
    table = report.table("samples")
    first, second = table.rows()
    assert first["id"] == "1"
    assert first["run"] == "0"
    assert first["input_tokens"] == 12
    assert second["id"] == "2"
    assert second["run"] is None
    assert second["input_tokens"] is None


def test_mappings_are_read_by_their_columns():
    """A frame with a mapping gives the samples of a file with the same mapping."""
    rows = [{"task": "a", "gold": [{"name": "f"}], "log": {"messages": TALK}}, 5]
    columns = {"id": "task", "expected": "gold", "messages": "$.log.messages"}
    report = gradestack.grade(rows, ["tau_partial"], columns=columns)
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == 1.0
    bad_records = report.summary["bad_records"]
    assert bad_records["count"] == 1


@pytest.mark.parametrize(
    ("frame", "columns", "error", "message"),
    [
        (Frame(["a", "a"], []), None, DataError, "the data frame: the column 'a' occurs twice"),
        (Frame([], []), None, DataError, "the data frame: there are no columns"),
        (
            Frame(["a"], [(1,)]),
            None,
            DataError,
            (
                "no column has a name that is recognised\n  - fields: a\n  - say which holds what: "
                'columns={"id": COLUMN, '
            ),
        ),
        (Frame(["a"], [(1,)]), {"id": "b"}, DataError, "there is no column 'b', mapped to id"),
        ([{"a": 1}], {"id": "b"}, DataError, "the records: there is no column 'b', mapped to id"),
        ([{"a": 1}], {"idd": "a"}, ConfigError, "did you mean 'id'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(frame, columns, error, message):
    with pytest.raises(error, match=message):
        gradestack.grade(frame, ["usage"], columns=columns)


@pytest.mark.parametrize(
    "arguments",
    [["--map", "id"], ["--map", "=x"], ["--map", "id="], ["--map", "id=a", "--map", "id=b"]],
)
def test_a_mapping_that_is_none_is_a_mistake_in_usage(arguments):
    """Before any file is looked at."""
    result = CliRunner().invoke(cli, ["grade", "nowhere.csv", *arguments])
    assert isinstance(result.exception, ConfigError)
    exception = str(result.exception)
    assert "--map" in exception


def test_a_mapping_is_refused_by_a_reader_that_takes_none(tmp_path):
    """Nothing is ignored without a word."""
    with pytest.raises(ConfigError, match="the reader 'openai' takes none"):
        gradestack.grade_files(tmp_path / "x.jsonl", reader="openai", columns={"model": "a"})


def test_frames_of_the_libraries_are_read():
    rows = [{"task": "a", "n": 1, "messages": TALK}, {"task": "b", "n": None, "messages": None}]
    pandas, arrow, polars = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "polars"))
    plain = []
    for row in rows:
        text = json.dumps(row["messages"])
        plain.append({**row, "messages": text})
    data_frame = pandas.DataFrame(rows)
    frames = [
        data_frame,
        pandas.DataFrame(plain),
        polars.DataFrame(plain),
        arrow.Table.from_pylist(plain),
    ]
    columns = {"id": "task", "usage.input_tokens": "n", "messages": "messages"}
    reports = [
        gradestack.grade(frame, ["tool_success", "usage"], columns=columns) for frame in frames
    ]
    tables = []
    for report in reports:
        tables.append((list(report.table("samples").rows()), list(report.table("calls").rows())))
    assert all(table == tables[0] for table in tables)
    assert len(tables[0][0]) == 2
    assert len(tables[0][1]) == 1


def test_parquet_with_columns_of_runs_is_recognised(tmp_path):
    """As a CSV file is; of another one the columns are named, with what to type."""
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "runs.parquet"
    parquet.write_table(arrow.Table.from_pylist([{"id": "a", "messages": TALK}]), path)
    output = tmp_path / "out"
    report = gradestack.grade_files(path, output=output, overrides=("reports=[]",))
    tool_success = report.states["tool_success"]
    assert tool_success["graded"] == 1
    parquet.write_table(arrow.Table.from_pylist([{"task": "a", "log": "x"}]), path)
    with pytest.raises(
        DataError, match=r"is a Parquet file.*\(fields: task, log\)\n  - to grade answers"
    ):
        gradestack.grade_files(path, output=tmp_path / "out")


def test_a_parquet_file_that_nothing_can_read_says_what_to_install(tmp_path, monkeypatch):
    """Without pyarrow, also where no reader is named."""
    path = tmp_path / "runs.parquet"
    path.write_bytes(b"PAR1" + b"\x80" * 99)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"\(extra 'tables'\)"):
        gradestack.grade_files(path, output=tmp_path / "out")


def test_a_table_on_standard_input_is_recognised(tmp_path, monkeypatch):
    """It has no suffix; its header says what it is, or what there is to be mapped."""
    bytes_io = io.BytesIO(b"id,calls\na,[]\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(bytes_io))
    output = tmp_path / "out"
    report = gradestack.grade_files("-", output=output, overrides=("reports=[]",))
    rows = report.rows()
    ids = [row["sample"]["id"] for row in rows]
    assert ids == ["a"]
    table_folder = tmp_path / "table"
    table_folder.write_text("task,log\na,[]\n")
    with pytest.raises(DataError, match="fields: task, log"):
        gradestack.grade_files(tmp_path / "table", output=tmp_path / "out")

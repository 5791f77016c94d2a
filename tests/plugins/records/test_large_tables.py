"""Parquet files of some kilobytes that hold gigabytes: refused or read in bounded memory."""

import json
import os

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.core.outcomes import some_of

MB = 1_000_000
READ = (
    "--reader",
    "records",
    "--map",
    "id=id",
    "--map",
    "label=label",
    "--quiet",
    "--output",
    "out",
)


def repeated(times, text):
    """Return a column that is one text again and again, which stands once in the file."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), [text])


def listed(*columns):
    column = pa.concat_arrays(columns)
    return pa.ListArray.from_arrays([0, len(column)], column)


FILES = {
    "a long text in each of many rows": lambda: repeated(4200, "x" * MB),
    "a longer text in each of some rows": lambda: repeated(64, "x" * 64 * MB),
    "one row": lambda: listed(repeated(4200, "x" * MB)),
    "objects": lambda: pa.StructArray.from_arrays([repeated(64, "x" * 64 * MB)], ["a"]),
}


def written(folder, column, **options):
    table = pa.table({"id": [str(n) for n in range(len(column))], "label": column})
    runs_path = folder / "runs.parquet"
    parquet.write_table(table, runs_path, compression="zstd", **options)
    return (folder / "runs.parquet").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(FILES, 2))
def test_a_small_file_that_holds_gigabytes_is_refused(bounded, tmp_path, name):
    """With exit code 3, in words, within 20 s and 500 MB.

    What stands there once is counted as often as it is meant.
    """
    column = FILES[name]()
    assert written(tmp_path, column) < 35_000
    done = bounded("grade", "runs.parquet", *READ)
    assert done.returncode == 3
    assert "unpack to more than 256 MiB and 1000 times its size" in done.stderr


@pytest.mark.slow
def test_a_page_that_unpacks_to_much_is_refused_by_what_the_file_says(bounded, tmp_path):
    """Compressed a thousand times, without a dictionary: nothing of it is read."""
    column = pa.array(["x" * MB] * 300)
    data_page_size = 1 << 30
    written(tmp_path, column, use_dictionary=False, data_page_size=data_page_size)
    done = bounded("grade", "runs.parquet", *READ)
    assert done.returncode == 3
    assert "unpack to more than" in done.stderr


@pytest.mark.slow
def test_a_row_of_many_megabytes_is_a_bad_record(bounded, tmp_path):
    """As in CSV: rows before and behind it are read."""
    text = os.urandom(MB // 2).hex()
    column = pa.array(["first", text * 70, "last"])
    written(tmp_path, column)
    done = bounded("grade", "runs.parquet", *READ, "--allow-all-failed")
    assert done.returncode == 0, done.stderr
    rows = []
    results_path = tmp_path / "out/results.jsonl"
    for line in results_path.read_text().splitlines():
        document = json.loads(line)
        rows.append(document)
    ids = [row["sample"]["id"] for row in rows]
    assert ids == ["0", "2"]
    summary_path = tmp_path / "out/summary.json"
    assert "longer than 64 MiB" in summary_path.read_text()


@pytest.mark.slow
def test_a_text_that_stands_once_is_read_in_every_row(tmp_path, bounded):
    """Columns with a dictionary, also within lists and objects, hold the texts they hold without
    one.
    """
    calls = [{"name": "book", "arguments": {"seat": "1A"}}]
    rows = []
    for n in range(200):
        label = "yes" if n % 2 else None
        rows.append({"id": f"t{n}", "label": label, "calls": calls})
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "runs.parquet")
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for suffix in ("parquet", "jsonl"):
        done = bounded(
            "grade", f"runs.{suffix}", "--reader", "records", "--quiet", "--output", suffix
        )
        assert done.returncode == 0, done.stderr
    read = [(tmp_path / suffix / "results.jsonl").read_text() for suffix in ("parquet", "jsonl")]
    samples = []
    for text in read:
        lines = text.splitlines()
        samples.append([json.loads(line)["sample"] for line in lines])
    expected = []
    for sample in samples[1]:
        expected.append([sample.get(key) for key in ("id", "label", "calls")])
    first_sample = samples[0]
    assert [
        [sample.get(key) for key in ("id", "label", "calls")] for sample in first_sample
    ] == expected

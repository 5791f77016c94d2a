"""Compressed rows: the same rows in another file, read by everything that reads a run."""

import importlib
import json
import shutil

import pytest

import gradestack
from gradestack import DataError, load_report
from gradestack.regular_files import ZSTD
from gradestack.rows import packed
from tests.core.outcomes import files_but_headers

zstd = importlib.import_module(ZSTD)
PACKED = "results.jsonl.zst"


@pytest.fixture
def run(tmp_path, monkeypatch, write_lines, record, registry):
    """Run a suite of forty records, cut into many ranges."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 900)
    lines = []
    for n in range(40):
        score = n / 40
        lines.append(record(f"t{n}", run=n % 2, recorded={"score": score}))
    write_lines(lines)

    def call(output, **options):
        suite = {
            "name": "x",
            "target": {"paths": ["runs.jsonl"]},
            "reader": "jsonl",
            "graders": {"g": "toy"},
        }
        suite |= options.pop("more", {})
        return gradestack.run(
            suite, output=output, registry=registry, **{"engine": "serial"} | options
        )

    return call


def test_everything_but_the_file_of_rows_is_the_same(run, tmp_path):
    run("full")
    report = run("serial", rows="compressed")
    run("processes", rows="compressed", engine="processes", workers=2)
    full_folder = tmp_path / "full"
    full = files_but_headers(full_folder)
    serial_folder = tmp_path / "serial"
    serial = files_but_headers(serial_folder)
    folder = tmp_path / "processes"
    assert serial == files_but_headers(folder)
    decompressed = zstd.decompress(serial.pop(PACKED))
    assert decompressed == full.pop("results.jsonl")
    assert serial == full
    rows = report.header["rows"]
    assert rows == "compressed"
    assert report.has_rows is True


def test_rows_are_read_in_any_order(run, monkeypatch):
    monkeypatch.setattr(packed, "_FRAME", 700)  # several a range, whose ends fall into rows
    full = run("full")
    report = run("out", rows="compressed")
    lines = list(full.lines())
    assert list(report.lines()) == lines
    backwards = []
    for number, offset, _ in reversed(lines):
        backwards.append((number - 1, offset))
    assert list(report.lines(backwards)) == lines[::-1]
    rows = list(report.rows())
    expected = list(full.rows())
    assert rows == expected
    table = report.table("grades")
    assert table.columns == full.table("grades").columns
    with report.open_rows() as file:
        content = file.read()
        assert file.seek(-9, 2) == len(content) - 9
        assert file.read() == content[-9:]


def test_they_are_compared_and_graded_again(run, tmp_path, registry):
    run("full")
    run("out", rows="compressed")
    comparison = gradestack.compare("full", "out", registry=registry)
    incomparable = comparison.data["incomparable"]
    assert incomparable == []
    graded_again = []
    for name in ("full", "out"):
        graded_again.append(
            gradestack.grade_files(name, graders=["toy"], reader="letta", registry=registry)
        )
    assert graded_again[0].metrics == graded_again[1].metrics
    results_path = tmp_path / "full/results.jsonl"
    shutil.copy(results_path, tmp_path / "out/results.jsonl")
    out_folder = tmp_path / "out"
    (out_folder / PACKED).unlink()  # as unpacked by hand
    report = load_report("out")
    rows = list(report.rows())
    expected = list(load_report("full").rows())
    assert rows == expected


def test_runs_are_told_apart_by_them(run, tmp_path):
    run("full", more={"num_runs": 2})
    run("out", more={"num_runs": 2}, rows="compressed")
    for name in ("run_1", "run_2"):
        out_folder = tmp_path / "out"
        unpacked = zstd.decompress((out_folder / name / PACKED).read_bytes())
        full_folder = tmp_path / "full"
        results_path = full_folder / name / "results.jsonl"
        expected = results_path.read_bytes()
        assert unpacked == expected


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:-10], "cannot be unpacked"),
        (lambda data: data[: packed._HEAD.size - 2], "it ends within a frame"),
        (lambda data: data[:60] + bytes([data[60] ^ 255]) + data[61:], "cannot be unpacked"),
        (lambda data: zstd.compress(zstd.decompress(data)), "gradestack did not pack it"),
        (lambda data: data[:12] + b"\1" + data[13:], "a frame is damaged"),
        (lambda _: b"no rows at all, not even packed", "gradestack did not pack it"),
    ],
)
def test_a_file_that_cannot_be_unpacked_is_refused(run, tmp_path, damage, why):
    run("out", rows="compressed")
    out_folder = tmp_path / "out"
    path = out_folder / PACKED
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=why) as caught:
        list(load_report("out").rows())
    assert str(caught.value).startswith(f"out/{PACKED}: ")
    first_problem = caught.value.problems[0]
    assert "grade the files again" in first_problem


def test_slim_rows_of_an_earlier_release_are_not_graded_again(run, tmp_path, registry):
    run("out")
    header = tmp_path / "out/header.json"
    text = header.read_text()
    document = json.loads(text)
    header.write_text(json.dumps({**document, "rows": "slim"}))
    with pytest.raises(DataError, match="its rows hold no conversation"):
        gradestack.grade_files("out", graders=["toy"], reader="letta", registry=registry)
    report = load_report("out")
    rows = list(report.rows())
    row_count = len(rows)
    assert row_count == 40

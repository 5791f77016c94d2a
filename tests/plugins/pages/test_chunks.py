"""Rows and drill-downs a page loads when they are looked at."""

import base64
import hashlib
import io
import json
import re

import attrs
import jinja2
import pytest

from gradestack.rundir.place import filling
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.rows import pieces_of
from tests.placed import carried, unpacked

FILE = re.compile(r'globalThis\.gradestackChunk = "([A-Za-z0-9+/=]+)";\n')


def written(report, out, **options):
    """Write a page; return its text, the list of samples in it, and the text of every file beside
    it.
    """
    out.mkdir(exist_ok=True)
    (path,) = HtmlReporter(**options).write(report, out)
    page = path.read_text(encoding="utf-8")
    files = {
        chunk_path.name: chunk_path.read_text(encoding="ascii")
        for chunk_path in sorted((out / "report_data").glob("*"))
    }
    assert all(FILE.fullmatch(text) for text in files.values())
    return page, json.loads(carried(page, "rows")), files


def texts(files, listed):
    texts_read = [
        unpacked(FILE.fullmatch(files[f"chunk-{number}.js"])[1]) for number in range(1, len(files))
    ]
    return [text.split("\n") for text in texts_read[: len(listed["first"])]]


def test_a_small_run_is_one_file(fake, tmp_path):
    report = fake.make_report(fake.realistic_rows(tasks=3, trials=2))
    page, listed, files = written(report, tmp_path / "a", max_samples=2)
    text = hashlib.sha256(
        base64.b64decode(re.search('id="chunktext">([^<]*)<', page)[1])
    ).hexdigest()
    wanted = {"first": [0], "picked": [], "sums": [], "panels": [], "without": [], "text": text}
    assert (files, listed["chunks"]) == ({}, wanted)
    assert not (tmp_path / "a" / "report_data").exists()
    assert "strict-dynamic" not in page
    assert [json.loads(line) for line in carried(page).split("\n")] == list(report.rows())


def test_a_large_run_has_every_row_beside_its_page(fake, tmp_path, monkeypatch):
    monkeypatch.setattr("gradestack_plugins.pages.chunks._CHUNK", 20_000)
    report = fake.make_report(fake.realistic_rows(tasks=30, trials=2))
    page, listed, files = written(report, tmp_path / "a", max_samples=70, max_bytes=60_000)
    rows = texts(files, listed["chunks"])
    assert len(rows) > 3
    assert [json.loads(line) for chunk in rows for line in chunk] == list(report.rows())
    assert listed["chunks"]["first"] == [
        sum(map(len, rows[:number])) for number in range(len(rows))
    ]
    sums = [
        hashlib.sha256(base64.b64decode(FILE.fullmatch(files[f"chunk-{number}.js"])[1])).hexdigest()
        for number in range(1, len(files))
    ]
    assert listed["chunks"]["sums"][:-1] == sums
    (picked_chunk,) = listed["chunks"]["picked"]
    every = [line for chunk in rows for line in chunk]
    assert carried(page).split("\n") == [every[position] for position in picked_chunk]
    assert 30_000 < len(carried(page)) <= 60_000
    assert "'strict-dynamic'" in page.replace("&#39;", "'")
    assert "70 of 120 runs, failures first" in page
    assert len(page) < 300_000


def rewritten(report, out, **options):
    """Write a page as ``gradestack report`` does, over one that is there.

    Return the names of what is beside it.
    """
    with filling(out, HtmlReporter.data_files) as new:
        HtmlReporter(**options).write(report, new)
    return sorted(path.name for path in (out / "report_data").glob("*"))


@pytest.mark.slow
def test_chunks_of_an_earlier_page_are_replaced(fake, tmp_path):
    many, few = (fake.make_report(fake.realistic_rows(tasks=tasks, trials=2)) for tasks in (9, 2))
    data_folder = tmp_path / "report_data"
    assert rewritten(many, tmp_path, max_bytes=0, max_samples=500) == [
        "chunk-1.js",
        "chunk-text.js",
    ]
    before = (data_folder / "chunk-1.js").read_bytes()
    (data_folder / "chunk-99.js").write_bytes(before)
    (data_folder / "index.js").write_bytes(before)
    assert rewritten(few, tmp_path, max_bytes=0, max_samples=0) == ["chunk-1.js", "chunk-text.js"]
    assert (data_folder / "chunk-1.js").read_bytes() != before
    (data_folder / "mine.txt").write_text("mine", encoding="ascii")
    assert rewritten(few, tmp_path) == ["mine.txt"]
    (data_folder / "mine.txt").unlink()
    rewritten(many, tmp_path, max_bytes=0)
    rewritten(fake.make_report([]), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_chunks_somewhere_else_are_nobodys_to_remove(fake, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "chunk-1.js").write_text("mine", encoding="ascii")
    (tmp_path / "report_data").symlink_to("mine")
    report = fake.make_report(fake.realistic_rows(tasks=9, trials=2))
    rewritten(report, tmp_path)
    assert (tmp_path / "report_data").is_symlink()
    assert "chunk-1.js" in rewritten(report, tmp_path, max_bytes=0)
    assert not (tmp_path / "report_data").is_symlink()
    assert [entry.read_text(encoding="ascii") for entry in (tmp_path / "mine").iterdir()] == [
        "mine"
    ]


def test_a_page_that_cannot_be_written_leaves_the_one_before(fake, tmp_path, monkeypatch):
    report = fake.make_report(fake.realistic_rows(tasks=1, trials=1))
    rewritten(report, tmp_path, max_bytes=0)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(jinja2.environment.TemplateStream, "enable_buffering", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rewritten(fake.make_report([]), tmp_path, max_bytes=0)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_blank_lines_between_rows_are_none_of_them(fake):
    report = fake.make_report(fake.realistic_rows(tasks=2, trials=1))
    lines = report.row_buffer.getvalue().splitlines(keepends=True)
    odd = attrs.evolve(report, row_buffer=io.BytesIO(b"\n".join([lines[0], b"  \n", *lines[1:]])))
    assert b"".join(pieces_of(report, 0, 9)) == b"".join(lines).rstrip(b"\n")
    assert b"".join(pieces_of(odd, 0, 9)) == b"".join(pieces_of(report, 0, 9))
    assert (
        b"".join(pieces_of(odd, 1, 3))
        == b"".join(pieces_of(report, 1, 3))
        == b"".join(lines[1:3]).rstrip(b"\n")
    )
    assert b"".join(pieces_of(report, 2, 2)) == b"".join(pieces_of(report, 99, 100)) == b""

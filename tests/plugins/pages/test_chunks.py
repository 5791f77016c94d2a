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
    html_reporter = HtmlReporter(**options)
    (path,) = html_reporter.write(report, out)
    page = path.read_text(encoding="utf-8")
    files = {}
    report_data_folder = out / "report_data"
    paths = report_data_folder.glob("*")
    for chunk_path in sorted(paths):
        files[chunk_path.name] = chunk_path.read_text(encoding="ascii")
    assert all(FILE.fullmatch(text) for text in files.values())
    document = json.loads(carried(page, "rows"))
    return page, document, files


def texts(files, listed):
    texts_read = []
    for number in range(1, len(files)):
        file = files[f"chunk-{number}.js"]
        match = FILE.fullmatch(file)
        texts_read.append(unpacked(match[1]))
    first_count = len(listed["first"])
    return [text.split("\n") for text in texts_read[:first_count]]


def test_a_small_run_is_one_file(fake, tmp_path):
    realistic_rows = fake.realistic_rows(tasks=3, trials=2)
    report = fake.make_report(realistic_rows)
    a_folder = tmp_path / "a"
    page, listed, files = written(report, a_folder, max_samples=2)
    match = re.search('id="chunktext">([^<]*)<', page)
    text = hashlib.sha256(base64.b64decode(match[1])).hexdigest()
    wanted = {"first": [0], "picked": [], "sums": [], "panels": [], "without": [], "text": text}
    assert files == {}
    assert listed["chunks"] == wanted
    report_data_folder = tmp_path / "a" / "report_data"
    assert not report_data_folder.exists()
    assert "strict-dynamic" not in page
    lines = carried(page).split("\n")
    documents = [json.loads(line) for line in lines]
    rows = list(report.rows())
    assert documents == rows


def test_a_large_run_has_every_row_beside_its_page(fake, tmp_path, monkeypatch):
    monkeypatch.setattr("gradestack_plugins.pages.chunks._CHUNK", 20_000)
    realistic_rows = fake.realistic_rows(tasks=30, trials=2)
    report = fake.make_report(realistic_rows)
    a_folder = tmp_path / "a"
    page, listed, files = written(report, a_folder, max_samples=70, max_bytes=60_000)
    rows = texts(files, listed["chunks"])
    assert len(rows) > 3
    documents = [json.loads(line) for chunk in rows for line in chunk]
    expected = list(report.rows())
    assert documents == expected
    total_rows = [sum(map(len, rows[:number])) for number in range(len(rows))]
    assert listed["chunks"]["first"] == total_rows
    sums = []
    for number in range(1, len(files)):
        file = files[f"chunk-{number}.js"]
        match = FILE.fullmatch(file)
        digest = hashlib.sha256(base64.b64decode(match[1])).hexdigest()
        sums.append(digest)
    chunks = listed["chunks"]
    assert chunks["sums"][:-1] == sums
    (picked_chunk,) = listed["chunks"]["picked"]
    every = [line for chunk in rows for line in chunk]
    assert carried(page).split("\n") == [every[position] for position in picked_chunk]
    carried_count = len(carried(page))
    assert 30_000 < carried_count <= 60_000
    assert "'strict-dynamic'" in page.replace("&#39;", "'")
    assert "70 of 120 runs, failures first" in page
    assert len(page) < 300_000


def rewritten(report, out, **options):
    """Write a page as ``gradestack report`` does, over one that is there.

    Return the names of what is beside it.
    """
    with filling(out, HtmlReporter.data_files) as new:
        html_reporter = HtmlReporter(**options)
        html_reporter.write(report, new)
    report_data_folder = out / "report_data"
    paths = report_data_folder.glob("*")
    return sorted(path.name for path in paths)


@pytest.mark.slow
def test_chunks_of_an_earlier_page_are_replaced(fake, tmp_path):
    many, few = (fake.make_report(fake.realistic_rows(tasks=tasks, trials=2)) for tasks in (9, 2))
    data_folder = tmp_path / "report_data"
    assert rewritten(many, tmp_path, max_bytes=0, max_samples=500) == [
        "chunk-1.js",
        "chunk-text.js",
    ]
    before = (data_folder / "chunk-1.js").read_bytes()
    chunk_99_path = data_folder / "chunk-99.js"
    chunk_99_path.write_bytes(before)
    index_path = data_folder / "index.js"
    index_path.write_bytes(before)
    assert rewritten(few, tmp_path, max_bytes=0, max_samples=0) == ["chunk-1.js", "chunk-text.js"]
    chunk_1_path = data_folder / "chunk-1.js"
    assert chunk_1_path.read_bytes() != before
    mine_path = data_folder / "mine.txt"
    mine_path.write_text("mine", encoding="ascii")
    assert rewritten(few, tmp_path) == ["mine.txt"]
    (data_folder / "mine.txt").unlink()
    rewritten(many, tmp_path, max_bytes=0)
    report = fake.make_report([])
    rewritten(report, tmp_path)
    paths = tmp_path.iterdir()
    names = [entry.name for entry in paths]
    assert names == ["report.html"]


def test_chunks_somewhere_else_are_nobodys_to_remove(fake, tmp_path):
    (tmp_path / "mine").mkdir()
    mine_folder = tmp_path / "mine"
    chunk_1_path = mine_folder / "chunk-1.js"
    chunk_1_path.write_text("mine", encoding="ascii")
    (tmp_path / "report_data").symlink_to("mine")
    realistic_rows = fake.realistic_rows(tasks=9, trials=2)
    report = fake.make_report(realistic_rows)
    rewritten(report, tmp_path)
    assert (tmp_path / "report_data").is_symlink()
    expected = rewritten(report, tmp_path, max_bytes=0)
    assert "chunk-1.js" in expected
    report_data_folder = tmp_path / "report_data"
    assert not report_data_folder.is_symlink()
    paths = (tmp_path / "mine").iterdir()
    assert [entry.read_text(encoding="ascii") for entry in paths] == ["mine"]


def test_a_page_that_cannot_be_written_leaves_the_one_before(fake, tmp_path, monkeypatch):
    realistic_rows = fake.realistic_rows(tasks=1, trials=1)
    report = fake.make_report(realistic_rows)
    rewritten(report, tmp_path, max_bytes=0)
    paths = tmp_path.rglob("*")
    before = {path: path.read_bytes() for path in paths if path.is_file()}
    monkeypatch.setattr(jinja2.environment.TemplateStream, "enable_buffering", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rewritten(fake.make_report([]), tmp_path, max_bytes=0)
    contents_by_path = {}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            contents_by_path[path] = path.read_bytes()
    assert contents_by_path == before


def test_blank_lines_between_rows_are_none_of_them(fake):
    realistic_rows = fake.realistic_rows(tasks=2, trials=1)
    report = fake.make_report(realistic_rows)
    lines = report.row_buffer.getvalue().splitlines(keepends=True)
    first_line = lines[0]
    bytes_io = io.BytesIO(b"\n".join([first_line, b"  \n", *lines[1:]]))
    odd = attrs.evolve(report, row_buffer=bytes_io)
    pieces = pieces_of(report, 0, 9)
    expected = b"".join(lines).rstrip(b"\n")
    assert b"".join(pieces) == expected
    assert b"".join(pieces_of(odd, 0, 9)) == b"".join(pieces_of(report, 0, 9))
    assert (
        b"".join(pieces_of(odd, 1, 3))
        == b"".join(pieces_of(report, 1, 3))
        == b"".join(lines[1:3]).rstrip(b"\n")
    )
    assert b"".join(pieces_of(report, 2, 2)) == b"".join(pieces_of(report, 99, 100)) == b""

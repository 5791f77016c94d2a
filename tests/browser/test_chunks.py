"""A page whose samples stand beside it, in a real browser, from a file."""

import importlib.util
import sys
from pathlib import Path

import pytest

from gradestack_plugins.reporters.html import HtmlReporter

READY = "document.documentElement.classList.contains('ready')"
PAIRS = """[...document.querySelectorAll('#one .pair')].map(pair => [
  pair.className, pair.querySelector('.tool').textContent,
  ...[...pair.querySelectorAll('tbody tr')].map(row => row.className + ' ' + row.querySelector('th code').textContent)
])"""


@pytest.fixture(scope="module")
def fake():
    """Return the maker of made-up reports."""
    path = Path(__file__).parents[1] / "plugins" / "reporters" / "fake_report.py"
    spec = importlib.util.spec_from_file_location("gradestack_test_fake_report_chunks", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def opened(tab, fake, tmp_path):
    """Return a function that writes a run's page, opens it and returns the browser and the page's address."""

    def write(rows=None, **options):
        report = fake.make_report(rows or fake.realistic_rows(tasks=6, trials=2))
        (path,) = HtmlReporter(**{"max_bytes": 0, "max_samples": 0, **options}).write(report, tmp_path)
        tab.emulate(width=1440)
        tab.open("about:blank")
        tab.open(path.as_uri())
        tab.wait(READY)
        return tab, path

    return write


def show(tab, row):
    """Open the sample of a row and wait until it is there."""
    tab.run(f"location.hash = '#s{row + 1}'")
    tab.wait("document.querySelector('#one .inside') !== null")


def test_a_sample_beside_the_page_is_read_when_it_is_looked_at(opened):
    """It has its task, calls, grades and conversation; one file is asked for, and no message is written."""
    tab, path = opened()
    show(tab, 7)
    assert tab.run("document.querySelectorAll('#one .pair').length") > 0
    assert tab.run("document.querySelectorAll('#one .m').length") > 2
    assert tab.run("document.querySelectorAll('#one .grade').length") > 0
    assert "Row 8 of results.jsonl" in tab.run("document.getElementById('one').textContent")
    assert tab.messages() == []
    assert tab.requests() == [path.as_uri(), (path.parent / "report_data" / "chunk-1.js").as_uri()]


def test_both_drawings_of_a_sample_agree(opened, fake):
    """Calls stand in pairs, and arguments are the same, missing or different, whether a row or a template is drawn."""
    rows = [fake.graded_row(task, run, "m") for task in range(8) for run in range(2)]
    seen = []
    for options in ({"max_samples": 500}, {}):
        tab, _ = opened(rows, **options)
        found = []
        for row in range(len(rows)):
            show(tab, row)
            tab.wait(f"document.querySelector('#one').textContent.includes('Row {row + 1} of')")
            found.append(tab.run(PAIRS))
        seen.append(found)
    assert seen[0] == seen[1]
    assert {pair[0] for sample in seen[0] for pair in sample} >= {"pair matched", "pair differs"}


def test_numbers_keep_their_digits(opened, fake):
    """A whole number beyond what scripts can count, and 1.0, read as they were recorded."""
    row = fake.graded_row(1, 0, "m")
    row["expected"]["calls"][0]["arguments"] = {"many": 12345678901234567890, "one": 1.0, "two": 2}
    tab, _ = opened([row, fake.graded_row(2, 0, "m")])
    show(tab, 0)
    cells = "[...document.querySelector('#one .pair').querySelectorAll('tr td:nth-child(2)')]"
    assert tab.run(f"{cells}.map(one => one.textContent).slice(0, 3)") == ["12345678901234567890", "1.0", "2"]


def test_a_page_without_its_chunks_says_so(opened):
    """What it shows instead are the reasons, and where the sample is."""
    tab, path = opened()
    tab.open("about:blank")
    (path.parent / "report_data" / "chunk-1.js").unlink()
    tab.open(path.as_uri())
    tab.wait(READY)
    note = "report_data/chunk-1.js is not beside this page: see results.jsonl, line"
    tab.wait(f"document.getElementById('one').textContent.includes({note!r})")


def test_a_chunk_of_another_page_is_not_shown(opened):
    """Its digest is not the one the page has."""
    tab, path = opened()
    tab.open("about:blank")
    chunk = path.parent / "report_data" / "chunk-1.js"
    chunk.write_text('globalThis.gradestackChunk = "H4sIAAAAAAAAAwMAAAAAAAAAAAA=";\n', encoding="ascii")
    tab.open(path.as_uri())
    tab.wait(READY)
    tab.wait("document.getElementById('one').textContent.includes('chunk-1.js is of another page')")
    assert tab.run("document.querySelector('#one .inside')") is None


def test_samples_in_the_page_are_drawn_from_their_rows(opened):
    """As long as they fit it, rows without a drill-down of their own are in the page, which asks for nothing."""
    tab, path = opened(max_bytes=5_000_000, max_samples=2)
    for row in range(24):
        show(tab, row)
    assert tab.messages() == []
    assert tab.requests() == [path.as_uri()]


def test_a_long_list_is_read_from_beside_the_page(opened, monkeypatch):
    """It is ready when its file has been read."""
    monkeypatch.setattr("gradestack_plugins.reporters.html._LONGEST_LIST", 100)
    tab, _ = opened()
    assert tab.run("document.getElementById('shown-count').textContent") == "24 of 24"
    show(tab, 3)
    assert tab.messages() == []


def test_the_worst_samples_can_be_read_without_scripts(opened):
    """Those that stay in the page; a note says how many there are, and nothing that needs a script is shown."""
    tab, path = opened(max_bytes=60_000, max_samples=500)
    tab.emulate(scripts=False)
    tab.open("about:blank")
    tab.open(path.as_uri())
    shown = tab.run("document.querySelectorAll('details.sample').length")
    assert 2 < shown < 24
    assert f"Without scripts {shown} of 24 samples" in tab.run("document.body.innerText")
    tab.run("document.querySelector('details.sample summary').click()")
    assert tab.run("document.querySelector('details.sample .inside').checkVisibility()")
    assert tab.run("document.getElementById('list').checkVisibility()") is False
    tab.emulate()


def test_a_slim_run_says_where_its_conversations_are(opened, fake):
    """Its rows do not hold them; the drawing has everything else, and the place they were read from."""
    row = fake.graded_row(1, 0, "m")
    del row["trajectory"]
    tab, _ = opened([row])
    show(tab, 0)
    text = tab.run("document.getElementById('one').textContent")
    assert "It was left in the input of this run: runs/rail.json" in text
    assert tab.run("document.querySelectorAll('#one .pair').length") > 0

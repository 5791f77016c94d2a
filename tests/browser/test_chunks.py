"""A page whose samples stand beside it, in a real browser, from a file."""

import importlib.util
import io
import sys
from pathlib import Path

import attrs
import pytest

from gradestack.jsonio import dumps
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.text import clean
from tests.placed import panel_of, with_panels

READY = "document.documentElement.classList.contains('ready')"
PAIRS = """[...document.querySelectorAll('#one .pair')].map(pair => [
  pair.className, pair.querySelector('.tool').textContent,
  ...[...pair.querySelectorAll('tbody tr')].map(row => row.className + ' ' + row.querySelector('th code').textContent)
])"""


@pytest.fixture(scope="module")
def fake():
    """Return the maker of made-up reports."""
    path = Path(__file__).parents[1] / "plugins" / "pages" / "fake_report.py"
    spec = importlib.util.spec_from_file_location("gradestack_test_fake_report_chunks", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def opened(tab, fake, tmp_path):
    """Return a function that writes a run's page, opens it and returns the browser and the page's address."""

    def write(rows=None, more=(), panels=(), **options):
        report = fake.make_report(rows or fake.realistic_rows(tasks=6, trials=2))
        held = io.BytesIO(report.held.getvalue() + "".join(f"{dumps(row)}\n" for row in more).encode())
        report = with_panels(attrs.evolve(report, held=held), *panels)
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


def rich_rows(fake):
    """Return rows with everything a drill-down shows, and with what it should hold but does not."""
    rows = [fake.graded_row(task, run, "m") for task in range(8) for run in range(2)]
    rows += [fake.ungraded_row(9, run, "m", state) for run, state in enumerate(("failed", "skipped", "missing"))]
    spoken = fake.graded_row(3, 5, "m")
    spoken["trajectory"] *= 2
    spoken["trajectory"][0][1] |= {"reasoning": "First I look. " * 9, "name": "ann", "content": ["a", {"text": "b"}, 3]}
    spoken["trajectory"][0][2]["tool_calls"] = [
        {"function": {"name": "", "arguments": '{"a": [1, {"b": [2.50, "c,d"]}]}'}}
    ]
    call = {
        "status": "error",
        "error": "no such\ntrain",
        "error_type": "Lost",
        "seconds": 0.25,
        "server": "rail",
        "author": "b",
    }
    spoken["predicted"]["calls"] = [each | call for each in spoken["predicted"]["calls"]]
    spoken |= {
        "ended": "limit",
        "usage": {"requests": 12, "cost_usd": 0.00012, "seconds": 1234.5, "input_tokens": 12345678},
    }
    spoken["recorded"] |= {
        "mean": 1.0,
        "b_10": 1e22,
        "b_9": -1.5,
        "c": 0.8125,
        "d": 0.6875,
        "e": 123456.25,
        "word": "x" * 400,
    }
    bare = fake.graded_row(2, 6, "m")
    bare["grades"] = {
        "partial": bare["grade"] | {"items": [], "label": "l" * 99, "gold": 3, "counts": {"n": 0, "f1_a": 2}}
    }
    bare["grade"] = bare["grades"]["partial"]
    bare["predicted"] = {"calls": None, "label": "yes", "plan": {"b": {"steps": [1, 2]}, "a": [{}, []]}}
    bare["expected"] |= {"label": "no", "text": "It is so.", "plan": ["deep", {"er": [[[[[[[[[1]]]]]]]]]}]}
    bare["sample"]["input"] = ["one", ["two", "three"], {"four": 4}]
    odd = fake.graded_row(3, 7, "m")
    odd["grades"]["reward"]["items"] = [
        {"outcome": "graded", "score": 0.57, "parts": {"a_b": 1, "c": None}, "label": "x"}
    ]
    odd["grades"]["partial"] = odd["grade"] = odd["grade"] | {"items": []}
    odd["predicted"]["calls"] = [{"name": "other", "arguments": None, "raw_arguments": "{no"}]
    odd["expected"]["calls"] = odd["expected"]["calls"][:1]
    plain = [
        {"sample": {"id": 1}},
        {"sample": {"id": "é"}, "grade": {"score": 0.29, "rationale": "why"}, "trajectory": [[], []]},
    ]
    return rows, [spoken, bare, odd, *plain]


DRAWN = """(() => { const seen = [], inside = document.querySelector('#one .inside').cloneNode(true);
  inside.querySelectorAll('.from-system').forEach(one => one.remove());
  const own = one => [...one.childNodes].filter(each => each.nodeType === 3).map(each => each.data).join('');
  inside.querySelectorAll('*').forEach(one => {
    seen.push([one.tagName, one.className, own(one).split(/\\s+/).join(' ').trim()].join(' '));
  });
  return seen.concat([...inside.querySelectorAll('details')].map(one => one.open ? 'open' : 'shut')); })()"""


def test_a_sample_looks_the_same_however_it_is_drawn(opened, fake):
    """Every element with its text, in one order, whether made by a template or by the page's script from the row."""
    seen, (rows, more) = [], rich_rows(fake)
    for options in ({"max_samples": 500}, {}):
        tab, _ = opened(rows, more, **options)
        found = []
        for row in range(len(rows) + len(more)):
            show(tab, row)
            tab.wait(f"document.querySelector('#one').textContent.includes('Row {row + 1} of')")
            found.append(tab.run(DRAWN))
        seen.append(found)
    for one, other in zip(*seen, strict=True):
        assert one == other


def of_sample(row):
    """Return a block with markup in it for every second trial."""
    return [blocks.Words(f"<b>of</b> {row['sample']['id']}")] if row["run"] % 2 else None


@pytest.fixture
def panel():
    """Return a panel of samples."""
    return panel_of(of_sample, "sample", name="own", title="<i>Own")


OWN = "[...document.querySelectorAll('#one .panel')].map(one => one.textContent.split(/\\s+/).join(' ').trim())"


@pytest.mark.parametrize("options", [{"max_samples": 3, "max_bytes": 10**7}, {"max_samples": 3}, {}])
def test_panels_stand_in_samples_without_a_drill_down(opened, panel, options):
    """Rendered with the page, in it or beside it, they are at their place in each sample they show anything of."""
    tab, _ = opened(panels=[panel], **options)
    for row in range(24):
        show(tab, row)
        tab.wait(f"document.querySelector('#one').textContent.includes('Row {row + 1} of')")
        task, trial = tab.run("document.querySelector('#one h3').textContent").removeprefix("Task ").split(", trial ")
        assert tab.run(OWN) == ([f"<i>Own <b>of</b> {task}"] if trial == "1" else [])
        if trial == "1":
            assert tab.run("document.querySelector('#one .panel').nextElementSibling.textContent").startswith("Calls")
    assert tab.messages() == []


def test_of_very_many_samples_a_sentence_says_which_panels_are_missing(opened, panel, monkeypatch):
    """They are drawn in the drill-downs alone; the sentence says what shows them for every sample."""
    monkeypatch.setattr("gradestack_plugins.pages.html._MOST_WITH_PANELS", 23)
    tab, _ = opened(panels=[panel], max_samples=2, max_bytes=10**7)
    show(tab, 23)
    assert tab.run(OWN) == []
    assert "<i>Own: in a run of this size drawn for the worst samples only" in tab.run("document.body.textContent")


def test_numbers_keep_their_digits(opened, fake):
    """A whole number beyond what scripts can count, and 1.0, read as they were recorded."""
    row = fake.graded_row(1, 0, "m")
    row["expected"]["calls"][0]["arguments"] = {"many": 12345678901234567890, "one": 1.0, "two": 2}
    tab, _ = opened([row, fake.graded_row(2, 0, "m")])
    show(tab, 0)
    cells = "[...document.querySelector('#one .pair').querySelectorAll('tr td:nth-child(2)')]"
    assert tab.run(f"{cells}.map(one => one.textContent).slice(0, 3)") == ["12345678901234567890", "1.0", "2"]


def test_hidden_characters_are_visible_in_both_drawings(opened, fake):
    """The page's script shows the same pictures and code points as its templates, for each such character."""
    row, far = fake.graded_row(1, 0, "m"), (*range(0x2000, 0x2100), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0100))
    text = "".join(map(chr, (*range(0x250), 0x61C, 0x180E, *far, 0xD83D))) + "\r\n"
    for grade in (row["grade"], *row["grades"].values()):
        grade["rationale"] = text
    tab, _ = opened([row])
    show(tab, 0)
    shown = tab.run("[...document.querySelector('#one .rationale').textContent].map(one => one.codePointAt(0))")
    assert "".join(map(chr, shown)) == clean(text)


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
    monkeypatch.setattr("gradestack_plugins.pages.html._LONGEST_LIST", 100)
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

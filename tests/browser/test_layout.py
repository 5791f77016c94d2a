"""Where things stand on the pages, in a real browser."""

import json
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.pages.rows import RowPlaces
from gradestack_plugins.pages.view import sample_page

EXAMPLES = Path(__file__).parents[2] / "examples"
MIDDLES = """(found => found.map(one => one.getBoundingClientRect()).map(box => (box.left + box.right) / 2))(
  [...document.querySelectorAll(%s)])"""
LABELS, GRID = MIDDLES % "'.ticks span'", MIDDLES % "'.row:first-child .estimate .grid'"
CUT = """[...document.querySelectorAll('.estimates .num')].filter(one => one.scrollWidth > one.clientWidth)
  .map(one => one.textContent)"""
TEXT_STARTS = """(table => {
  const start = cell => cell.getBoundingClientRect().left + parseFloat(getComputedStyle(cell).paddingLeft);
  return [...table.tHead.querySelectorAll('th:not(.n):not(.bars)')].map(
    (head, place) => [head, table.tBodies[0].rows[0].cells[place]].map(cell => Math.round(start(cell))));
})(document.querySelector('.failures'))"""
LONG = "a_tool_with_a_long_name_" + "y" * 60


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the run directory of the example, in which a figure is 100 %."""
    out = tmp_path_factory.mktemp("layout") / "run"
    gradestack.run(EXAMPLES / "airline" / "suite.yaml", output=out, engine="serial")
    return out


def opened(tab, path, width):
    tab.emulate(width=width)
    tab.open("about:blank")
    tab.open(path.as_uri())


@pytest.mark.parametrize("width", [390, 1440])
def test_the_axis_is_labelled_where_its_lines_are(tab, run, width):
    """Each label has its line in its middle, and no figure is wider than its column."""
    opened(tab, run / "report.html", width)
    labels, lines = tab.run(LABELS), tab.run(GRID)
    assert len(labels) == len(lines) == 5
    assert labels == pytest.approx(lines, abs=1)
    assert tab.run("document.querySelector('.estimates').textContent.includes('1.000')")
    assert tab.run(CUT) == []


@pytest.mark.parametrize("width", [390, 1440])
def test_an_interval_keeps_to_its_column(tab, tmp_path, width):
    """Also one that needs more digits, of which this example has two."""
    gradestack.run(EXAMPLES / "when2call" / "suite.yaml", output=tmp_path / "run", engine="serial")
    opened(tab, tmp_path / "run" / "report.html", width)
    shown = "[...document.querySelectorAll('.plot small')]"
    assert tab.run(f"{shown}.filter(one => /0[.]000\\d/.test(one.textContent)).length") == 2
    assert tab.run(f"{shown}.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)") == []


def test_heads_of_failures_stand_over_their_columns(tab, run):
    """Texts of a column begin below the text of its head."""
    opened(tab, run / "report.html", 1440)
    starts = tab.run(TEXT_STARTS)
    assert len(starts) >= 4
    assert all(head == cell for head, cell in starts)


def test_heads_of_this_run_keep_their_distance(tab, run):
    """From what stands above them."""
    opened(tab, run / "report.html", 1440)
    top, end = "one.getBoundingClientRect().top", "one.previousElementSibling.getBoundingClientRect().bottom"
    gaps = tab.run(f"[...document.querySelectorAll('#run > h3')].map(one => {top} - {end})")
    assert len(gaps) == 2
    assert min(gaps) >= 12


def test_a_score_stands_by_its_task(tab, tmp_path):
    """Nearer to its own id than to the next one, where every task was run once."""
    made = [{"id": str(each), "expected": [], "predicted": []} for each in range(12)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in made), encoding="utf-8")
    gradestack.grade_files(tmp_path / "rows.jsonl", output=tmp_path / "out")
    opened(tab, tmp_path / "out" / "report.html", 1440)
    boxes = "[...document.querySelectorAll('.map li > *')].slice(0, 3).map(one => one.getBoundingClientRect())"
    own, following = tab.run(f"(boxes => [boxes[1].left - boxes[0].right, boxes[2].left - boxes[1].right])({boxes})")
    assert 0 < own < following


@pytest.mark.parametrize("width", [390, 1000, 1440])
def test_long_names_widen_no_page(tab, tmp_path, width):
    """Names of tools and arguments break, after an underscore where they have one, and are whole when copied."""
    made = [
        {
            "id": str(each),
            "expected": [{"name": LONG, "arguments": {"p" * 50: 1}}],
            "predicted": [{"name": LONG, "arguments": {"p" * 50: 2}}],
        }
        for each in range(3)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in made), encoding="utf-8")
    gradestack.grade_files(tmp_path / "rows.jsonl", output=tmp_path / "out")
    opened(tab, tmp_path / "out" / "report.html", width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("document.querySelector('.funnel tbody code').textContent") == LONG
    assert tab.run("document.querySelectorAll('.funnel tbody wbr').length") == LONG.count("_")
    assert tab.run("document.querySelector('#arguments tbody code').textContent") == f"{LONG}.{'p' * 50}"


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_of_one_sample_has_a_margin(tab, run, tmp_path, width):
    """Its texts do not touch the edge of their card."""
    report = gradestack.load_report(run)
    path = tmp_path / "sample.html"
    path.write_text(sample_page(report, *RowPlaces(report).part(0, 1, 50).shown[0], 10_000), encoding="utf-8")
    opened(tab, path, width)
    tab.wait("document.querySelector('main .inside') !== null")
    left = "document.querySelector('%s').getBoundingClientRect().left"
    assert tab.run(f"{left % 'main .inside h4, main .inside h3'} - {left % 'main .card'}") >= 15


def test_no_card_is_stretched_over_the_height_of_two(tab, tmp_path):
    """Of two figures beside a finding the card is as high as its content, and the scores stand below both."""
    gradestack.run(EXAMPLES / "letta" / "suite.yaml", output=tmp_path / "run", engine="serial")
    opened(tab, tmp_path / "run" / "report.html", 1440)
    boxes = (
        "(one => { const box = document.querySelector(one).getBoundingClientRect(); return [box.top, box.bottom]; })"
    )
    figures, finding, scores = (
        tab.run(f"{boxes}({json.dumps(each)})") for each in (".estimates", ".findings", ".findings + .card")
    )
    assert figures == finding
    assert scores[0] > figures[1]
    last = tab.run("document.querySelector('.estimates > :last-child').getBoundingClientRect().bottom")
    assert figures[1] - last < 40

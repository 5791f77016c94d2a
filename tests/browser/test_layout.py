"""Where things stand on the pages, in a real browser."""

import json
from pathlib import Path

import pytest

import gradestack

EXAMPLES = Path(__file__).parents[2] / "examples"
MIDDLES = """(found => found.map(one => one.getBoundingClientRect()).map(box => (box.left + box.right) / 2))(
  [...document.querySelectorAll(%s)])"""
LABELS, GRID = MIDDLES % "'.ticks span'", MIDDLES % "'.row:first-child .estimate .grid'"
CUT = """[...document.querySelectorAll('.estimates .num')].filter(one => one.scrollWidth > one.clientWidth)
  .map(one => one.textContent)"""
LONG = "a_tool_with_a_long_name_" + "y" * 60


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("layout") / "run"
    gradestack.run(EXAMPLES / "airline" / "suite.yaml", output=out, engine="serial")
    return out


def opened(tab, path, width):
    tab.visit(path.as_uri(), width=width)
    tab.wait("document.documentElement.classList.contains('ready') || !document.getElementById('list')")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_axis_is_labelled_where_its_lines_are(tab, run, width):
    opened(tab, run / "report.html", width)
    labels, lines = tab.run(LABELS), tab.run(GRID)
    assert len(labels) == len(lines) == 10  # five of shares, five of scores
    assert labels == pytest.approx(lines, abs=1)
    assert tab.run("document.querySelector('.estimates').textContent.includes('1.000')")
    assert tab.run(CUT) == []


@pytest.mark.parametrize("width", [390, 1440])
def test_an_interval_keeps_to_its_column(tab, tmp_path, width):
    gradestack.run(EXAMPLES / "when2call" / "suite.yaml", output=tmp_path / "run", engine="serial")
    opened(tab, tmp_path / "run" / "report.html", width)
    shown = "[...document.querySelectorAll('.plot small')]"
    assert tab.run(f"{shown}.filter(one => /0[.]000\\d/.test(one.textContent)).length") == 2
    assert tab.run(f"{shown}.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)") == []


@pytest.mark.parametrize("width", [390, 1000, 1440])
def test_long_names_widen_no_page(tab, tmp_path, width):
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

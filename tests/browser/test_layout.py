"""Where things stand on the pages, in a real browser."""

import json
from pathlib import Path

import pytest

import gradestack
from tests.core.outcomes import some_of

EXAMPLES = Path(__file__).parents[2] / "examples"
MIDDLES = """(found => found.map(one => one.getBoundingClientRect())
  .map(box => (box.left + box.right) / 2))(
  [...document.querySelectorAll(%s)])"""
LABELS, GRID = (
    MIDDLES % "'#estimates .ticks span'",
    MIDDLES % "'#estimates .row:first-child .estimate .grid'",
)
CUT = """[...document.querySelectorAll('#estimates .num')]
  .filter(one => one.scrollWidth > one.clientWidth)
  .map(one => one.textContent)"""
LONG = "a_tool_with_a_long_name_" + "y" * 60


def opened(tab, path, width):
    tab.visit(path.as_uri(), width=width)
    tab.wait(
        "document.documentElement.classList.contains('ready') || !document.getElementById('list')"
    )


@pytest.mark.parametrize("width", [390, 1440])
def test_the_axis_is_labelled_where_its_lines_are(tab, page_of, width):
    page = page_of("airline")
    opened(tab, page, width)
    labels = tab.run(LABELS)
    lines = tab.run(GRID)
    assert len(labels) == len(lines) == 5  # one axis for shares and scores
    assert labels == pytest.approx(lines, abs=1)
    assert tab.run("document.querySelector('#estimates').textContent.includes('100.0%')")
    assert tab.run(CUT) == []


@pytest.mark.parametrize("width", [390, 1440])
def test_an_interval_keeps_to_its_column(tab, page_of, width):
    page = page_of("when2call")
    opened(tab, page, width)
    shown = "[...document.querySelectorAll('.plot small')]"
    script = f"{shown}.filter(one => /0[.]000\\d/.test(one.textContent)).length"
    assert tab.run(script) == 0  # three digits are enough
    assert (
        tab.run(
            f"{shown}.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
        )
        == []
    )


@pytest.mark.parametrize("width", some_of([390, 1000, 1440], 2))
def test_long_names_widen_no_page(tab, tmp_path, width):
    made = []
    for number in range(3):
        arguments = {"p" * 50: 1}
        expected = [{"name": LONG, "arguments": arguments}]
        predicted = [{"name": LONG, "arguments": {"p" * 50: 2}}]
        made.append(
            {
                "id": str(number),
                "expected": expected,
                "predicted": predicted,
            }
        )
    rows_path = tmp_path / "rows.jsonl"
    rows_path.write_text("".join(f"{json.dumps(row)}\n" for row in made), encoding="utf-8")
    paths = tmp_path / "rows.jsonl"
    output = tmp_path / "out"
    gradestack.grade_files(paths, output=output)
    out_folder = tmp_path / "out"
    path = out_folder / "report.html"
    opened(tab, path, width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("document.querySelector('#calls tbody th').textContent") == LONG
    assert (
        tab.run("document.querySelector('.causes small').textContent")
        == f"always about {LONG[:79]}….{'p' * 50}"
    )


FAMILIES = sorted(path.parent.name for path in EXAMPLES.glob("*/suite.yaml"))
VIEWS = "[...document.querySelectorAll('.view')].map(one => one.dataset.view)"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_overview_is_short(tab, page_of, family):
    """The overview of every family takes some two screens of a desk, four of a phone.

    And no view is wider than the window.
    """
    for width, most in ((1440, 2500), (390, 4 * 844)):
        page = page_of(family)
        opened(tab, page, width)
        assert tab.run("document.documentElement.scrollHeight") <= most
        for view in dict.fromkeys(tab.run(VIEWS)):
            tab.run(f"location.hash = '#{view}'")
            tab.wait(f"document.querySelector('.view.now').dataset.view === '{view}'")
            assert tab.run("document.documentElement.scrollWidth") <= width
    messages = tab.messages()
    assert messages == []


def test_figures_are_searched(tab, page_of):
    page = page_of("airline")
    opened(tab, page, 1440)
    tab.run("location.hash = '#figures'; document.getElementById('figure-table').open = true")
    tab.wait("document.querySelectorAll('[data-table] tbody tr').length > 20")
    tab.run(
        "const find = document.querySelector('#figure-table input'); find.value = 'reward "
        "pass_hat_k.4'"
    )
    tab.run("find.dispatchEvent(new Event('input'))")
    lines = tab.run(
        "[...document.querySelectorAll('[data-table] tbody th')].map(one => one.textContent)"
    )
    assert lines == ["reward.pass_hat_k.pass_hat_k.4"]


def test_a_cell_of_the_confusion_matrix_shows_its_samples(tab, page_of):
    page = page_of("when2call")
    opened(tab, page, 1440)
    tab.wait("document.documentElement.classList.contains('searchable')")
    cells = tab.run(
        "[...document.querySelectorAll('.heat td a')].map(one => [one.textContent, one.hash])"
    )
    assert len(cells) > 5
    for count, address in cells:
        tab.run(f"location.hash = {json.dumps(address)}")
        tab.wait(f"document.getElementById('shown-count').textContent.startsWith('{count} of ')")
        tab.run("location.hash = '#overview'")


def test_a_phone_shows_the_list_or_the_sample(tab, page_of):
    page = page_of("airline")
    opened(tab, page, 390)
    tab.run("location.hash = '#samples'")
    visible_parts = (
        "[...document.querySelectorAll('.list, #one')].filter(one => one.checkVisibility())"
    )
    visible_parts += ".map(one => one.className || one.id)"
    tab.wait(f"{visible_parts}.length === 1")
    assert tab.run(visible_parts)[0].startswith("list")
    tab.run("document.querySelectorAll('.line')[2].click()")
    assert tab.run(visible_parts) == ["one"]
    tab.run("document.querySelector('.back').click()")
    assert tab.run(visible_parts)[0].startswith("list")


@pytest.mark.parametrize("family", ["airline", "when2call"])
def test_what_is_touched_is_large_enough(tab, page_of, family):
    page = page_of(family)
    opened(tab, page, 390)
    small = """[...document.querySelectorAll('a, button, select, input, summary')]
      .filter(one => one.checkVisibility() && !one.closest('.skip, p, .reasons'))
      .map(one => [one, one.getBoundingClientRect()])
      .filter(([one, box]) => box.height && box.height < 23.5)
      .map(([one]) => one.outerHTML.slice(0, 80))"""
    for view in ("overview", "failures", "samples", "figures"):
        tab.run(f"location.hash = '#{view}'")
        tab.wait(f"document.querySelector('.view.now').dataset.view === '{view}'")
        assert tab.run(small) == []

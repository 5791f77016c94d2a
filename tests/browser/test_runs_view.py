"""The list of runs and the open one: terms of expected calls, keys, a wrong tool, places."""

import json

import pytest

import gradestack

COUNT = "parseInt(document.getElementById('shown-count').textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    find = {"name": "find", "arguments": {"id": 1}}
    rows = [
        {"id": "wrong", "expected": [find], "predicted": [{**find, "name": "send"}]},
        {"id": "right", "expected": [find], "predicted": [find]},
        {"id": "none", "expected": [], "predicted": []},
        {"id": "needless", "expected": [], "predicted": [find]},
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    rows_path = folder / "rows.jsonl"
    rows_path.write_text(lines, encoding="utf-8")
    graders = {"calls": {"kind": "tool_calls"}, "names": {"kind": "tau_partial"}}
    output = folder / "out"
    report = gradestack.grade(rows, graders=graders, output=output, reports=["html"])
    return report.path / "report.html"


@pytest.fixture
def opened(tab, page):
    tab.visit(f"{page.as_uri()}#samples", width=1440, height=900)
    tab.wait("document.documentElement.classList.contains('searchable')")
    return tab


@pytest.mark.parametrize(
    ("term", "count"),
    [("expected:find", 2), ("expected:none", 2), ("uncalled:find", 1), ("expected:send", 0)],
)
def test_runs_are_found_by_the_calls_they_were_expected_to_make(opened, term, count):
    opened.run(f"location.hash = 'q={term}'")
    opened.wait(f"{COUNT} === {count}")


def test_a_wrong_tool_is_the_first_marked_row(opened):
    opened.run("location.hash = 'sample=wrong'")
    opened.wait("document.querySelector('#one .inside') !== null")
    rows = "[...document.querySelectorAll('#one .arguments tbody tr')]"
    first = opened.run(f"({rows})[0] && [({rows})[0].className, ({rows})[0].innerText]")
    assert first is not None
    css, text = first
    assert css == "differs"
    assert text.split() == ["tool", "differs", "find", "send"]


def test_enter_after_j_goes_to_the_run(opened):
    opened.run("document.activeElement.blur()")
    opened.key("j", 74)
    opened.key("Enter", 13)
    assert opened.run("document.activeElement.id") == "one"


def test_the_open_run_is_in_sight_after_a_link(opened):
    opened.run("location.hash = '#failures'")
    opened.run("document.querySelector('.tree a').click()")
    opened.wait("document.querySelector('.view.now').dataset.view === 'samples'")
    opened.wait("document.querySelector('.line[aria-selected=true]') !== null")
    line_position = """(() => {
      const selected = document.querySelector('.line[aria-selected=true]');
      const line = selected.getBoundingClientRect(),
      list = document.getElementById('list').getBoundingClientRect();
      return line.top >= list.top - 1 && line.bottom <= list.bottom + 1; })()"""
    assert opened.run(line_position)
    assert opened.run("window.scrollY") == 0
    assert opened.run("document.documentElement.scrollHeight <= window.innerHeight")

"""Pages as axe-core sees them.

It comes in the wheel of axe-playwright-python, of which nothing else is used.
"""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.pages.chunks import served_sample
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.runs import folder_of, write_index

FAMILIES = (
    "airline",
    "deepfabric",
    "letta",
    "orchestration",
    "quickstart",
    "stability",
    "when2call",
)
RUN = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(each =>
  [each.id, each.impact, each.nodes.length,
   ...each.nodes.slice(0, 3).map(node => node.html.slice(0, 160))]))"""
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
MAP = """(async () => {
  const map = document.getElementById('whole-map');
  if (map) { map.scrollIntoView({behavior: 'instant'}); }
  while (map && !map.querySelector('path')) { await new Promise(done => setTimeout(done, 20)); }
})()"""
VIEWS = "[...document.querySelectorAll('.view')].map(one => one.dataset.view)"
READY = "document.documentElement.classList.contains('ready') || !document.getElementById('list')"


def everywhere(test):
    """Mark a test as one of `make accessibility`, in narrow and wide windows and both colour
    schemes.
    """
    looks = pytest.mark.parametrize(
        ("width", "scheme"), [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]
    )
    return pytest.mark.accessibility(looks(test))


def axe_file():
    axe_path = os.environ.get("GRADESTACK_AXE")
    if axe_path:
        return Path(axe_path)
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip(
            "no axe-core here; `make accessibility` has it, or GRADESTACK_AXE names axe.min.js"
        )
    origin_path = Path(package.origin)
    return origin_path.with_name("axe.min.js")


@pytest.fixture(scope="module")
def axe():
    return axe_file().read_text(encoding="utf-8")


def violations(tab, axe, path, *, width, scheme):
    """Open a page, every part of it, and return what axe finds, of any impact."""
    tab.visit(path.as_uri(), width=width, scheme=scheme)
    tab.wait(READY)
    tab.run("document.querySelector('.line') && document.getElementById('one').focus()")
    tab.run(OPEN)
    tab.run(MAP)
    tab.run(f"(() => {{ {axe} }})(); 0")
    problems = []
    for view in dict.fromkeys(tab.run(VIEWS)) or [""]:
        tab.run(f"location.hash = '{view}'")
        tab.wait(f"!'{view}' || document.querySelector('.view.now').dataset.view === '{view}'")
        problems += [json.dumps([view, violation]) for violation in tab.run(RUN)]
    return problems


def test_a_page_has_no_violation(tab, axe, page_of):
    page = page_of("quickstart")
    assert violations(tab, axe, page, width=390, scheme="light") == []
    tab.run("document.querySelector('.view.now').append(document.createElement('img'))")
    names = [name for name, *_ in tab.run(RUN)]
    assert names == ["image-alt"]


@everywhere
@pytest.mark.parametrize("family", FAMILIES)
def test_no_page_of_any_family_has_a_violation(tab, axe, page_of, family, scheme, width):
    page = page_of(family)
    assert violations(tab, axe, page, width=width, scheme=scheme) == []


@everywhere
def test_a_comparison_has_no_violation(tab, axe, page_of, tmp_path, scheme, width):
    path = tmp_path / "comparison"
    page = page_of("airline")
    gradestack.compare(page.parent, page_of("airline").parent, output=path)
    comparison_path = path / "comparison.html"
    assert violations(tab, axe, comparison_path, width=width, scheme=scheme) == []


@everywhere
def test_a_page_with_its_samples_beside_it_has_no_violation(
    tab, axe, page_of, tmp_path, scheme, width
):
    page = page_of("airline")
    report = gradestack.load_report(page.parent)
    html_reporter = HtmlReporter(max_bytes=0, max_samples=0)
    (path,) = html_reporter.write(report, tmp_path)
    assert violations(tab, axe, path, width=width, scheme=scheme) == []


@everywhere
def test_a_folder_of_runs_has_no_violation(tab, axe, page_of, tmp_path, scheme, width):
    for name in ("first", "second"):
        page = page_of("airline")
        shutil.copytree(page.parent, tmp_path / name)
    (tmp_path / ".third.unfinished").mkdir()
    first_folder = tmp_path / "first"
    second_folder = tmp_path / "second"
    output = tmp_path / "compared"
    gradestack.compare(first_folder, second_folder, output=output)
    folder = folder_of(tmp_path)
    path = write_index(folder, tmp_path)
    assert violations(tab, axe, path, width=width, scheme=scheme) == []


@everywhere
@pytest.mark.parametrize("family", ["airline", "orchestration"])
def test_served_pages_have_no_violation(tab, axe, page_of, tmp_path, family, scheme, width):
    page = page_of(family)
    report = gradestack.load_report(page.parent)
    (path,) = HtmlReporter().write_served(report, tmp_path)
    (row,) = rows_at(report, [0])
    report_data_folder = tmp_path / "report_data"
    chunk_s1_path = report_data_folder / "chunk-s1.js"
    chunk_s1_path.write_text(served_sample(row, ()), encoding="utf-8")
    assert violations(tab, axe, path, width=width, scheme=scheme) == []

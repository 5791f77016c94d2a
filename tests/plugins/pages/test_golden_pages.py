"""Pages as a whole, compared with committed files: see tests/golden/pages.py."""

import io

import pytest

from gradestack import Report
from gradestack.jsonio import dumps
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.markdown import MarkdownReporter
from tests.core.outcomes import data
from tests.golden.pages import FOLDER as GOLDEN_FOLDER
from tests.golden.pages import check_golden_file

SCREENS = data(__file__, "first_screens.yaml")


def report_of_rows(rows, summary, header):
    buffer = io.BytesIO("".join(f"{dumps(row)}\n" for row in rows).encode())
    return Report(path=None, header=header, summary=summary, row_buffer=buffer)


def declare_figure(path, better, unit):
    """Return the component of a header that declares a figure."""
    grader, metric = path.split(".")
    figure = {"name": metric, "label": "F", "better": better, "unit": unit}
    return {"kind": "aggregator", "key": metric, "name": metric, "of": grader, "figures": [figure]}


def first_screen_row(task, run, passed, score):
    grade = {"state": "graded" if score is not None else "failed", "score": score or 0.0}
    reward = {**grade, "passed": passed}
    row = {"sample": {"id": task}, "run": run, "passed": passed, "state": grade["state"]}
    return {**row, "grade": grade, "grades": {"partial": grade, "reward": reward}}


def first_screen_report(case):
    rows = [first_screen_row(*sample) for sample in case["samples"]]
    components = [declare_figure(*figure) for figure in case.get("declared", ())]
    components.append({"kind": "grader", "key": "partial", "name": "tau_partial"})
    summary = {"suite": "rail", "gates_passed": None, "metrics": {"total": len(rows)}}
    return report_of_rows(rows, summary | case["summary"], {"components": components})


@pytest.mark.parametrize("kind", [HtmlReporter, MarkdownReporter])
def test_golden_page_of_a_whole_run(fake, tmp_path, kind):
    """Two models, every state, a gate that failed, what could not be read."""
    rows = fake.realistic_rows(tasks=9)
    for number, row in enumerate(rows):
        row["facets"] = {"<b>kind": "v9<script>" if number % 3 else "v10"}
    report = fake.make_report(rows, threshold=0.9)
    (path,) = kind(max_samples=12).write(report, tmp_path)
    check_golden_file(f"whole{path.suffix}", path.read_text(encoding="utf-8"))


def test_golden_page_of_first_screens(tmp_path):
    """Sentence, figures with their intervals, gates and findings of many runs, in Markdown."""
    screens = []
    for name, case in SCREENS.items():
        (path,) = MarkdownReporter().write(first_screen_report(case), tmp_path)
        first, _, _ = path.read_text(encoding="utf-8").partition("<details>")
        screens.append(f"<!-- {name} -->\n{first}")
    check_golden_file("first_screens.md", "\n".join(screens))


@pytest.mark.parametrize("name", ["every figure has its place", "models have a row each", "gates"])
def test_golden_page_of_a_first_screen(tmp_path, name):
    """Places on the axis, too."""
    (path,) = HtmlReporter().write(first_screen_report(SCREENS[name]), tmp_path)
    page = path.read_text(encoding="utf-8")
    first = page[page.index('<section id="overview"') : page.index('data-view="failures"')]
    check_golden_file(f"{name.replace(' ', '_')}.html", first)


def test_tables_of_golden_pages_are_tables():
    """The rule below the headings of a Markdown table follows them, and rows follow the rule."""
    for page in GOLDEN_FOLDER.glob("*.md"):
        lines = page.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if line.startswith("| ---"):
                heads, row = lines[number - 1], lines[number + 1]
                assert heads.startswith("|"), f"{page.name}, line {number + 1}"
                assert row.startswith("|"), f"{page.name}, line {number + 1}"
                assert heads.count(" |") == line.count(" |"), f"{page.name}, line {number + 1}"

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
    state = "graded" if score is not None else "failed"
    grade = {"state": state, "score": score or 0.0}
    reward = {**grade, "passed": passed}
    row = {"sample": {"id": task}, "run": run, "passed": passed, "state": grade["state"]}
    return {**row, "grade": grade, "grades": {"partial": grade, "reward": reward}}


def first_screen_report(case):
    rows = [first_screen_row(*sample) for sample in case["samples"]]
    declared = case.get("declared", ())
    components = [declare_figure(*figure) for figure in declared]
    components.append({"kind": "grader", "key": "partial", "name": "tau_partial"})
    metrics = {"total": len(rows)}
    summary = {"suite": "rail", "gates_passed": None, "metrics": metrics}
    return report_of_rows(rows, summary | case["summary"], {"components": components})


@pytest.mark.parametrize("kind", [HtmlReporter, MarkdownReporter])
def test_golden_page_of_a_whole_run(fake, tmp_path, kind):
    """Two models, every state, a gate that failed, what could not be read."""
    rows = fake.realistic_rows(tasks=9)
    for number, row in enumerate(rows):
        b_kind = "v9<script>" if number % 3 else "v10"
        row["facets"] = {"<b>kind": b_kind}
    report = fake.make_report(rows, threshold=0.9)
    (path,) = kind(max_samples=12).write(report, tmp_path)
    text = path.read_text(encoding="utf-8")
    check_golden_file(f"whole{path.suffix}", text)


def test_golden_page_of_first_screens(tmp_path):
    """Sentence, figures with their intervals, gates and findings of many runs, in Markdown."""
    screens = []
    for name, case in SCREENS.items():
        (path,) = MarkdownReporter().write(first_screen_report(case), tmp_path)
        text = path.read_text(encoding="utf-8")
        first, _, _ = text.partition("<details>")
        screens.append(f"<!-- {name} -->\n{first}")
    page = "\n".join(screens)
    check_golden_file("first_screens.md", page)


@pytest.mark.parametrize("name", ["every figure has its place", "models have a row each", "gates"])
def test_golden_page_of_a_first_screen(tmp_path, name):
    """Places on the axis, too."""
    (path,) = HtmlReporter().write(first_screen_report(SCREENS[name]), tmp_path)
    page = path.read_text(encoding="utf-8")
    index = page.index('<section id="overview"')
    first = page[index : page.index('data-view="failures"')]
    check_golden_file(f"{name.replace(' ', '_')}.html", first)


def test_tables_of_golden_pages_are_tables():
    """The rule below the headings of a Markdown table follows them, and rows follow the rule."""
    for page in GOLDEN_FOLDER.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("| ---"):
                heads = lines[number - 1]
                row = lines[number + 1]
                assert heads.startswith("|"), f"{page.name}, line {number + 1}"
                assert row.startswith("|"), f"{page.name}, line {number + 1}"
                assert heads.count(" |") == line.count(" |"), f"{page.name}, line {number + 1}"

"""Facts that a reader sees first and reaches by few clicks, in a real browser."""

import base64
import json
import os
import re
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.pages.text import cause_text


@pytest.fixture(scope="module")
def tau(tmp_path_factory):
    data = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not data:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    out = tmp_path_factory.mktemp("tau") / "run"
    data_path = Path(data)
    tau_bench_folder = data_path / "tau-bench"
    paths = tau_bench_folder / "gpt-4o-airline.json"
    gradestack.grade_files(paths, output=out)
    return out


@pytest.fixture
def opened(tab, tau):
    report_path = tau / "report.html"
    tab.visit(report_path.as_uri(), width=1440, height=900)
    tab.wait("document.querySelector('#whole-map path') !== null")  # which the page's script draws
    return tab


def test_it_prints_on_six_pages(opened):
    """Failures, all tasks and the ten worst samples are printed, without controls of the screen."""
    opened.wait("document.documentElement.classList.contains('ready')")
    paper = base64.b64decode(
        opened.send("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)[
            "data"
        ]
    )
    matches = re.findall(rb"/Type */Page\b", paper)
    assert 2 <= len(matches) <= 6
    opened.send("Emulation.setEmulatedMedia", media="print")
    shown = (
        "[...document.querySelectorAll('.causes, .tree, .task-room, .print-only tr, #graders, "
        "#list')]"
    )
    page_count = opened.run(
        f"{shown}.filter(one => one.checkVisibility()).map(one => one.id || one.className || "
        "one.tagName)"
    )
    opened.send("Emulation.setEmulatedMedia", media="")
    assert page_count.count("v-lost") == 10
    assert {"tree", "task-room", "lines causes"} <= set(page_count)
    assert not {"graders", "list"} & set(page_count)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    right_call = {"name": "f", "arguments": {"a": 1}}
    wrong_call = {"name": "f", "arguments": {"a": 2}}
    rows = []
    for (model, share), task, run in product((("north", 9), ("south", 5)), range(12), range(2)):
        is_right = (task * 2 + run * 5) % 12 < share
        identity = {"id": f"t{task}", "model": model, "run": run}
        predicted = [right_call if is_right else wrong_call]
        calls = {"expected": [right_call], "predicted": predicted}
        rows.append({**identity, **calls, "usage": {"cost_usd": 0.01}})
    runs_path = folder / "runs.jsonl"
    runs_path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    paths = folder / "runs.jsonl"
    output = folder / "out"
    report = gradestack.grade_files(paths, output=output, engine="serial")
    return report.path / "report.html"


def test_two_models_are_compared_on_the_first_screen(tab, two):
    tab.visit(two.as_uri(), width=1440)
    tab.wait("document.documentElement.classList.contains('ready')")
    shown = gradestack.compare(two.parent)
    assert tab.run("document.querySelector('.against').textContent") == f"{shown.sentence}. Compare"
    assert tab.run("document.querySelectorAll('.together:first-child .point').length") == 2
    names = (
        "[...document.querySelectorAll('.together:first-child code')].map(one => one.textContent)"
    )
    assert tab.run(names) == ["north", "south"]  # as in the input
    tab.emulate(width=390)
    assert (
        tab.run(
            "(views => views.scrollWidth - views.clientWidth)(document.querySelector('.bar ul'))"
        )
        == 0
    )
    counts = f"{shown.data['outcome']['better']} better, {shown.data['outcome']['worse']} worse"
    assert counts in tab.run("document.querySelector('.differences .row').textContent")
    assert tab.run("document.querySelector('.task-head').textContent").count("passed") == 2


class Reader:
    """Somebody before the first screen of a page, who knows ``rows`` from elsewhere and whose
    clicks are counted.
    """

    def __init__(self, tab, page):
        self.clicks = 0
        self.run = tab.run
        self.wait = tab.wait
        results_path = page.parent / "results.jsonl"
        lines = results_path.read_bytes().splitlines()
        self.rows = [json.loads(line) for line in lines]
        graded = [row for row in self.rows if row["state"] == "graded"]
        below = []
        for row in graded:
            passed = row["passed"]
            below.append(row["grade"]["score"] < 1 if passed is None else not row["passed"])
        pairs = zip(graded, below, strict=True)
        self.lost = [row for row, is_lost in pairs if is_lost]
        tab.visit(page.as_uri(), width=1440)
        tab.wait("document.documentElement.classList.contains('searchable')")

    def click(self, selector):
        self.clicks += 1
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def shown(self):
        return int(self.text("#shown-count").split(" ")[0])

    def opened(self):
        self.wait("document.querySelector('#one .inside') !== null")
        return self.rows[int(re.search(r"Row (\d+) of", self.text("#one"))[1]) - 1]


def reasons_of(row):
    grades = row["grades"].values()
    graded_parts = [one for grade in grades for one in (grade, *(grade.get("items") or ()))]
    return [reason for one in graded_parts for reason in one.get("reasons") or ()]


def the_most_common_cause(reader):
    """A lost sample counts once.

    Where a tool is named, else anywhere, under the code that most lost samples have.
    """
    times = Counter(
        code
        for row in reader.lost
        for code in {found_reason["code"] for found_reason in reasons_of(row)}
    )
    ranked = [
        min(
            (not reason.get("subject"), -times[reason["code"]], reason["code"])
            for reason in reasons
        )
        for reasons in map(reasons_of, reader.lost)
        if reasons
    ]
    counts = Counter(sorted(code for *_, code in ranked))
    ((code, count),) = counts.most_common(1)
    if not reader.run("document.querySelector('.causes a') !== null"):
        reader.click(".bar [href='#failures']")
        reader.clicks = 0
    first = ".causes a" if reader.run("document.querySelector('.causes a') !== null") else ".tree a"
    assert reader.text(first) == cause_text(code)
    reader.click(first)
    assert reader.shown() == count
    found_reasons = reasons_of(reader.opened())
    codes = {found_reason["code"] for found_reason in found_reasons}
    assert code in codes


def the_wrong_argument_of_a_sample(reader):
    reader.click(".causes [href*='wrong_']")
    blamed = set()
    row = reader.opened()
    for reason in reasons_of(row):
        if reason.get("pointer"):
            blamed.add(reason["pointer"].split("/")[1])
    marked = reader.run(
        "[...document.querySelectorAll('#one .differs th code')].map(one => one.textContent)"
    )
    assert blamed & set(marked)


def the_samples_that_called_a_tool(reader):
    reader.click(".bar [href='#samples']")
    reader.click(".term[data-term^='tool:']")
    tool = reader.run("document.getElementById('find').value").removeprefix("tool:").strip('"')
    called = []
    for row in reader.rows:
        calls = row["predicted"].get("calls") or ()
        called.append({call["name"] for call in calls})
    assert reader.shown() == sum(tool in names for names in called) > 0


def the_models_task_by_task(reader):
    reader.click(".against a")
    reader.wait("document.querySelector('.view.now').dataset.view === 'compare'")
    assert reader.run("document.querySelector('.task-lines').checkVisibility()")
    first = reader.run(
        "[...document.querySelectorAll('.task-line:not(.task-head)')][0].textContent"
    )
    name = next(
        row["sample"]["id"] for row in reader.rows if first.startswith(f"{row['sample']['id']}✓")
    )
    passed = Counter(
        (row["model_name"], row["passed"]) for row in reader.rows if row["sample"]["id"] == name
    )
    expected = passed["north", True] + passed["south", True]
    assert first.count("✓") == expected > 0


def the_cost_of_a_success(reader):
    rows_of_model = [row for row in reader.rows if row["model_name"] == "north"]
    cost = f"${0.01 * len(rows_of_model) / sum(row['passed'] for row in rows_of_model):.3g}"
    assert cost in reader.text("#took tbody")


def the_samples_without_a_grade(reader):
    reader.click(".finding a")
    assert reader.shown() == sum(row["state"] in {"failed", "missing"} for row in reader.rows) > 0


def the_link_of_a_sample(reader):
    reader.run("location.hash = '#samples'")
    sample = reader.opened()["sample"]
    name = re.escape(str(sample["id"]))
    reader.click(".one-head button:last-child")
    reader.wait("/Copied|address bar/.test(document.querySelector('.one-head').textContent)")
    assert re.search(rf"sample=[^&]*{name}", reader.run("decodeURIComponent(location.hash)"))


FAMILIES = (
    "airline",
    "deepfabric",
    "letta",
    "orchestration",
    "quickstart",
    "stability",
    "when2call",
    "two",
)
CLICKS = (
    (the_most_common_cause, 1, FAMILIES),
    (the_wrong_argument_of_a_sample, 2, ("airline", "quickstart", "two")),
    (
        the_samples_that_called_a_tool,
        2,
        ("airline", "deepfabric", "letta", "orchestration", "quickstart", "two"),
    ),
    (the_models_task_by_task, 1, ("two",)),
    (the_cost_of_a_success, 0, ("two",)),
    (the_samples_without_a_grade, 1, ("deepfabric", "stability", "when2call")),
    (the_link_of_a_sample, 1, FAMILIES),
)


@pytest.mark.parametrize(
    ("find", "clicks", "family"),
    [(find, clicks, family) for find, clicks, of in CLICKS for family in of],
)
def test_what_is_asked_is_a_few_clicks_away(tab, page_of, two, find, clicks, family):
    reader = Reader(tab, two if family == "two" else page_of(family))
    find(reader)
    assert reader.clicks <= clicks
    messages = tab.messages()
    assert messages == []

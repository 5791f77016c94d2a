"""The map of tasks and trials, in a real browser."""

from collections import Counter

import pytest

from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.index import index_of, verdict

READY = "document.documentElement.classList.contains('ready')"
MAP = "document.getElementById('whole-map')"
CELLS = f"""[...{MAP}.querySelectorAll('path.trial')].map(one =>
  [one.classList[1], one.getAttribute('d').split('z').length - 1])"""
SAID = "document.getElementById('map-says').textContent.replace('Selected: ', '')"
HOSTILE = "<img src=https://example.invalid/x.png onerror=\"console.log('ran')\">"


@pytest.fixture(scope="module")
def run(fake, tmp_path_factory):
    rows = fake.realistic_rows(tasks=48, trials=4)
    rows[0]["sample"]["id"] = HOSTILE
    report = fake.make_report(rows)
    html_reporter = HtmlReporter(max_samples=3)
    (path,) = html_reporter.write(report, tmp_path_factory.mktemp("map"))
    return report, path.as_uri()


@pytest.fixture
def opened(tab, run):
    def open_page(width=1440, height=900, scripts=True, scroll=True):
        tab.visit(run[1], width=width, height=height, scripts=scripts)
        if scripts:
            tab.wait(READY)
        if scroll and scripts:
            tab.run(f"{MAP}.scrollIntoView({{behavior: 'instant'}})")
            tab.wait(f"{MAP}.querySelector('path') !== null")
        return tab

    yield open_page
    tab.emulate()


def summed(cells):
    totals = Counter()
    for kind, count in cells:
        totals[kind] += count
    return totals


def test_every_trial_is_a_cell_and_few_elements(opened, run):
    tab = opened()
    cells = tab.run(CELLS)
    assert summed(cells) == Counter(map(verdict, index_of(run[0]).entries))
    titles = tab.run(f"[...{MAP}.querySelectorAll('.group-title')].map(one => one.textContent)")
    assert titles[0].startswith("north-1: never ")
    script = f"{MAP}.querySelectorAll('*').length"
    assert tab.run(script) <= 12 * len(titles)
    messages = tab.messages()
    assert messages == []


def test_of_more_trials_there_is_a_bar(fake, tab, tmp_path):
    row = fake.graded_row(1, 0, "m")
    rows = []
    for task in range(201):
        sample = {**row["sample"], "id": f"t{task}"}
        rows += [
            {**row, "sample": sample, "run": run, "passed": run < task % 3} for run in range(2)
        ]
    (path,) = HtmlReporter().write(fake.make_report(rows), tmp_path)
    tab.visit(path.as_uri())
    tab.wait(READY)
    lines = (
        "[...document.querySelectorAll('#map tr')].map(one => one.innerText.replace(/\\s+/g, "
        "' ').trim())"
    )
    assert tab.run(lines) == [
        "solved in every trial 67",
        "solved in some 67",
        "solved in none 67",
    ]
    assert "Of 201 tasks 67 pass in every trial, 67 in some, 67 in none." in tab.run(
        "document.querySelector('.sub').textContent"
    )


TENTHS = ["never", "up to 10%", "10 – 20%", "90% and more", "always"]


def test_groups_are_few(fake, tab, tmp_path):
    """Tasks of very many trials stand together by tenths of successes."""
    passes, trials = (0, 1, 2, 10, 11), 11
    row = fake.graded_row(1, 0, "m")
    groups = []
    for number, passed in enumerate(passes):
        for run in range(trials):
            sample = {**row["sample"], "id": f"t{number}"}
            task = {"run": run, "passed": run < passed}
            groups.append({**row, **task, "sample": sample})
    (path,) = HtmlReporter().write(fake.make_report(groups), tmp_path)
    tab.visit(path.as_uri(), width=1440)
    tab.run(f"{MAP}.scrollIntoView({{behavior: 'instant'}})")
    tab.wait(f"{MAP}.querySelector('path') !== null")
    shown = tab.run(f"[...{MAP}.querySelectorAll('.group-title')].map(one => one.textContent)")
    expected = [f"{title} (1)" for title in TENTHS]
    assert shown == expected


def test_keys_walk_over_trials_and_open_one(opened):
    tab = opened()
    tab.run(f"{MAP}.focus()")
    first = tab.run(SAID)
    tab.key("ArrowDown", 40)
    second = tab.run(SAID)
    expected = second.partition(", trial")[0]
    assert first.partition(", trial")[0] == expected
    assert first != second
    tab.key("ArrowRight", 39)
    third = tab.run(SAID)
    assert third.partition(", trial")[0] != second.partition(", trial")[0]
    active = f"document.getElementById({MAP}.getAttribute('aria-activedescendant'))"
    script = f"{active}.getAttribute('aria-label')"
    assert tab.run(script) == third
    tab.key("Enter", 13)
    assert (
        tab.run("document.querySelector('#one h3').textContent").lower() == third.partition(":")[0]
    )


def test_a_click_opens_what_is_under_it(opened):
    tab = opened()
    spot = tab.run(
        f"(() => {{ const box = {MAP}.querySelectorAll('svg')[1].getBoundingClientRect();"
        " return [box.left + 17, box.top + 17]; })()"
    )
    mouse_event = {"x": spot[0], "y": spot[1], "button": "left", "clickCount": 1}
    tab.send("Input.dispatchMouseEvent", type="mouseMoved", **{**mouse_event, "button": "none"})
    text_shown = tab.run(SAID)
    for kind in ("mousePressed", "mouseReleased"):
        tab.send("Input.dispatchMouseEvent", type=kind, **mouse_event)
    assert (
        tab.run("document.querySelector('#one h3').textContent").lower()
        == text_shown.partition(":")[0]
    )
    assert text_shown.partition(":")[0] != ""


def test_it_fits_a_phone_and_is_replaced_by_a_sentence_without_scripts(opened):
    tab = opened(width=390)
    assert tab.run("document.documentElement.scrollWidth") <= 390
    tab = opened(scripts=False)
    assert "The map of 384 trials needs JavaScript." in tab.run(
        "document.getElementById('map').innerText"
    )
    script = f"{MAP}.checkVisibility()"
    assert tab.run(script) is False

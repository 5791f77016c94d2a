"""The map of tasks and trials, in a real browser."""

from collections import Counter

import pytest

from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.index import index_of, verdict

READY = "document.documentElement.classList.contains('ready')"
MAP = "document.getElementById('whole-map')"
CELLS = f"""[...{MAP}.querySelectorAll('path.trial')].map(one =>
  [one.classList[1], one.getAttribute('d').split('z').length - 1])"""
SAID = "document.getElementById('map-says').textContent"
HOSTILE = "<img src=https://example.invalid/x.png onerror=\"console.log('ran')\">"


@pytest.fixture(scope="module")
def run(fake, tmp_path_factory):
    rows = fake.realistic_rows(tasks=102, trials=4)
    rows[0]["sample"]["id"] = HOSTILE
    report = fake.make_report(rows)
    (path,) = HtmlReporter(max_samples=3).write(report, tmp_path_factory.mktemp("map"))
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


def counted(report, model):
    return Counter(verdict(entry) for entry in index_of(report).entries if entry.model == model)


def summed(cells):
    found = Counter()
    for kind, count in cells:
        found[kind] += count
    return found


def test_every_trial_of_a_model_is_a_cell(opened, run):
    tab = opened()
    models = list(dict.fromkeys(entry.model for entry in index_of(run[0]).entries))
    assert len(index_of(run[0]).entries) == 816
    assert summed(tab.run(CELLS)) == counted(run[0], models[0])
    tab.run("const model = document.getElementById('map-model'); model.value = '1'")
    tab.run("model.dispatchEvent(new Event('change', {bubbles: true}))")
    assert summed(tab.run(CELLS)) == counted(run[0], models[1])
    assert tab.messages() == []


def test_it_is_few_elements_and_drawn_when_it_is_looked_at(opened):
    tab = opened(height=240, scroll=False)
    assert tab.run(f"{MAP}.querySelectorAll('path').length") == 0
    tab.run(f"{MAP}.scrollIntoView({{behavior: 'instant'}})")
    tab.wait(f"{MAP}.querySelector('path') !== null")
    titles = tab.run(f"[...{MAP}.querySelectorAll('.group-title')].map(one => one.textContent)")
    assert titles[0].startswith("never ")
    assert titles[-1].startswith(("always", "no grade"))
    assert tab.run(f"{MAP}.querySelectorAll('*').length") <= 12 * len(titles)
    assert tab.run("document.querySelectorAll('*').length") < 5000


TENTHS = ["never", "up to 10%", "10 – 20%", "90% and more", "always"]


@pytest.mark.parametrize(("trials", "titles"), [(11, TENTHS), (1, ["not solved", "solved"])])
def test_groups_are_few(fake, tab, tmp_path, trials, titles):
    """Tasks of very many trials stand together by tenths of successes; of one trial each is a success or not."""
    passes = (0, 1, 2, 10, 11) if trials > 1 else (0, 1)
    row = fake.graded_row(1, 0, "m")
    found = []
    for number, passed in enumerate(passes):
        for run in range(trials):
            sample, task = {**row["sample"], "id": f"t{number}"}, {"run": run, "passed": run < passed}
            found.append({**row, **task, "sample": sample})
    (path,) = HtmlReporter().write(fake.make_report(found), tmp_path)
    tab.visit(path.as_uri(), width=1440)
    tab.run(f"{MAP}.scrollIntoView({{behavior: 'instant'}})")
    tab.wait(f"{MAP}.querySelector('path') !== null")
    shown = tab.run(f"[...{MAP}.querySelectorAll('.group-title')].map(one => one.textContent)")
    assert shown == [f"{title} (1)" for title in titles]


def test_keys_walk_over_trials_and_open_one(opened):
    tab = opened()
    tab.run(f"{MAP}.focus()")
    first = tab.run(SAID)
    tab.key("ArrowDown", 40)
    second = tab.run(SAID)
    assert first.partition(", trial")[0] == second.partition(", trial")[0]
    assert first != second
    tab.key("ArrowRight", 39)
    third = tab.run(SAID)
    assert third.partition(", trial")[0] != second.partition(", trial")[0]
    active = f"document.getElementById({MAP}.getAttribute('aria-activedescendant'))"
    assert tab.run(f"{active}.getAttribute('aria-label')") == third
    tab.key("Enter", 13)
    assert tab.run("document.querySelector('#one h3').textContent").lower() == third.partition(":")[0]


def test_a_click_opens_what_is_under_it(opened):
    tab = opened()
    spot = tab.run(
        f"(() => {{ const box = {MAP}.querySelectorAll('svg')[1].getBoundingClientRect();"
        " return [box.left + 17, box.top + 17]; })()"
    )
    place = {"x": spot[0], "y": spot[1], "button": "left", "clickCount": 1}
    tab.send("Input.dispatchMouseEvent", type="mouseMoved", **{**place, "button": "none"})
    said = tab.run(SAID)
    for kind in ("mousePressed", "mouseReleased"):
        tab.send("Input.dispatchMouseEvent", type=kind, **place)
    assert tab.run("document.querySelector('#one h3').textContent").lower() == said.partition(":")[0]
    assert said.partition(":")[0] != ""


def test_hostile_ids_are_text(opened):
    tab = opened()
    tab.run(f"{MAP}.focus()")
    step = f"{MAP}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowDown'}}))"
    seen = tab.run(f"Array.from({{length: 408}}, () => {{ const told = {SAID}; {step}; return told; }})")
    assert len(set(seen)) == 408
    assert sum("onerror=" in text for text in seen) == 1
    assert tab.messages() == []
    assert tab.requests() == [tab.run("location.href.split('#')[0]")]


def test_it_fits_a_phone_and_is_replaced_by_a_sentence_without_scripts(opened):
    tab = opened(width=390)
    assert tab.run("document.documentElement.scrollWidth") <= 390
    tab = opened(scripts=False)
    assert "The map of 816 trials needs JavaScript." in tab.run("document.getElementById('map').innerText")
    assert tab.run(f"{MAP}.checkVisibility()") is False


def test_a_small_run_shows_all_models_and_ids(fake, tab, tmp_path):
    rows = fake.realistic_rows(tasks=6, trials=2)
    for row in rows:
        row["sample"]["id"] = row["sample"]["id"].removeprefix("journey-")
    report = fake.make_report(rows)
    (path,) = HtmlReporter().write(report, tmp_path)
    tab.visit(path.as_uri(), width=1440, height=240)
    tab.wait(READY)
    assert summed(tab.run(CELLS)) == Counter(map(verdict, index_of(report).entries))
    titles = tab.run(f"[...{MAP}.querySelectorAll('.group-title')].map(one => one.textContent)")
    assert [title.partition(":")[0] for title in titles] == sorted(title.partition(":")[0] for title in titles)
    labels = tab.run(f"[...{MAP}.querySelectorAll('text')].map(one => one.textContent)")
    assert sorted(labels) == sorted("012345" * 2)
    tab.run(f"{MAP}.focus()")
    tab.key("Enter", 13)
    said = tab.run(SAID).partition(":")[0]
    assert tab.run("document.querySelector('#one h3').textContent").lower() == said
    assert tab.messages() == []

"""report.html in a real browser."""

from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.html import HtmlReporter
from tests.placed import panel_of, with_panels

SHOWN = "+document.getElementById('shown-count').textContent.split(' ')[0]"
READY = "document.documentElement.classList.contains('ready')"
LINES = "[...document.querySelectorAll('.line')]"
CHANGE = "dispatchEvent(new Event('change', {bubbles: true}))"
HOSTILE = "<img src=https://example.invalid/x.png onerror=\"console.log('ran')\"><script>console.log('ran')</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory, fake):
    rows = fake.realistic_rows(tasks=6, trials=2)
    rows[0]["sample"]["input"] = rows[0]["model_name"] = rows[0]["sample"]["id"] = HOSTILE
    rows[0]["trajectory"][0][1]["content"] = HOSTILE
    out = tmp_path_factory.mktemp("page")
    HtmlReporter().write(fake.make_report(rows, threshold=0.9), out)
    return (out / "report.html").as_uri(), rows


@pytest.fixture
def opened(tab, page):
    tab.visit(page[0])
    tab.wait(READY)
    return tab


def background(tab):
    return tab.run("getComputedStyle(document.body).backgroundColor")


def test_it_is_silent_and_alone(opened, page):
    opened.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    opened.run("document.getElementById('list').focus()")
    for _ in range(24):
        assert opened.run("document.querySelectorAll('#one img, #one script').length") == 0
        opened.key("j", 74)
    assert opened.run("document.body.textContent.includes('onerror=')")
    opened.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 200)))")
    assert opened.messages() == []
    assert opened.requests() == [page[0]]


@pytest.mark.parametrize("width", [390, 1440])
def test_presets_side_by_side_fit_any_width(tab, tmp_path, width):
    call = '{"name": "f", "arguments": {"a_long_argument": 1}}'
    line = f'{{"id": "one", "expected": [{call}, {call}], "predicted": [{call}]}}\n'
    (tmp_path / "runs.jsonl").write_text(line, encoding="utf-8")
    report = gradestack.grade_files([tmp_path / "runs.jsonl"], output=tmp_path / "out", stack="peers", engine="serial")
    tab.visit((report.path / "report.html").as_uri(), width=width)
    tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") <= width
    rules = "document.querySelectorAll('#panel-tool_calls-other_tools .measure').length"
    assert tab.run(rules) == 57
    tab.wait(READY)
    tab.run("document.querySelector('#panel-tool_calls-other_tools a').click()")
    assert tab.run("document.querySelector('#one h3').textContent") == "Task one"
    assert tab.messages() == []


def test_the_filter_leaves_what_was_asked_for(opened, page):
    rows = page[1]
    assert opened.run(SHOWN) == len(rows) == 24
    assert opened.run("[...document.querySelectorAll('.chip b')].reduce((sum, one) => sum + +one.textContent, 0)") == 24
    opened.run("document.querySelector('input[value=\"5\"]').click()")
    assert opened.run(SHOWN) == sum(row["passed"] is not True for row in rows)
    opened.run("document.querySelector('input[value=\"5\"]').click()")
    opened.run("const model = document.getElementById('model'), find = document.getElementById('find')")
    opened.run("model.value = [...model.options].find(one => one.textContent === 'north-2').value")
    opened.run(f"model.{CHANGE}")
    assert opened.run(SHOWN) == sum(row["model_name"] == "north-2" for row in rows)
    opened.run(f"model.value = ''; model.{CHANGE}")
    opened.run("find.value = 'EXAMPLE.invalid'; find.dispatchEvent(new Event('input', {bubbles: true}))")
    opened.wait(f"{SHOWN} === 1")
    opened.run("find.value = 'nowhere to be found'; find.dispatchEvent(new Event('input', {bubbles: true}))")
    opened.wait(f"{SHOWN} === 0")
    assert opened.run("document.getElementById('nothing').hidden") is False
    assert opened.messages() == []


def test_sorting_reorders_the_list(opened, page):
    order = f"{LINES}.map(one => +one.dataset.row)"
    first = opened.run(order)
    opened.run(f"const sort = document.getElementById('sort'); sort.value = 'order'; sort.{CHANGE}")
    assert opened.run(order) == sorted(first) != first
    opened.run(f"sort.value = 'high'; sort.{CHANGE}")
    scores = opened.run(f"{LINES}.map(one => one.querySelector('.n').textContent)")
    graded = [float(text) for text in scores if text]
    assert graded == sorted(graded, reverse=True)
    assert scores[len(graded) :] == [""] * (len(scores) - len(graded))
    opened.run(f"sort.value = 'worst'; sort.{CHANGE}")
    assert opened.run(order) == first


def test_colours_follow_the_system_and_the_button(opened, page):
    light = background(opened)
    opened.emulate(scheme="dark")
    dark = background(opened)
    assert dark != light
    click = "document.getElementById('theme').click()"
    opened.run(click)
    assert background(opened) == light
    assert opened.run("document.getElementById('theme').textContent").split() == ["◐", "Light"]
    opened.open("about:blank")
    opened.open(page[0])
    assert background(opened) == light
    opened.emulate(scheme="light")
    opened.run(click)
    assert background(opened) == dark
    opened.run(click)
    assert background(opened) == light
    assert opened.run("document.documentElement.dataset.theme === undefined")


def test_a_link_to_a_sample_opens_it(opened, page):
    opened.run("document.querySelectorAll('a.cell')[5].click()")
    position = opened.run("+document.querySelectorAll('a.cell')[5].getAttribute('href').slice(2)") - 1
    row = page[1][position]
    title = f"Task {row['sample']['id']}, trial {row['run']}"
    assert opened.run("document.querySelector('#one h3').textContent") == title
    assert opened.run("document.querySelectorAll('#one .pair').length") > 0
    address = opened.run("location.href")
    assert f"{row['sample']['id']}.{row['run']}" in address
    opened.open("about:blank")
    opened.open(address)
    opened.wait(READY)
    assert opened.run("document.querySelector('#one h3').textContent") == title


def test_filter_and_sort_survive_a_reload(opened, page):
    opened.run("document.querySelector('input[value=\"5\"]').click()")
    opened.run(f"const sort = document.getElementById('sort'); sort.value = 'low'; sort.{CHANGE}")
    before, address = opened.run(f"{LINES}.map(one => one.textContent)"), opened.run("location.href")
    opened.open("about:blank")
    opened.open(address)
    opened.wait(READY)
    assert opened.run(f"{LINES}.map(one => one.textContent)") == before
    assert opened.run("document.getElementById('sort').value") == "low"


def test_a_reason_shows_exactly_its_samples(opened):
    for place in range(opened.run("document.querySelectorAll('a.pick').length")):
        opened.run(f"document.querySelectorAll('a.pick')[{place}].click()")
        told = opened.run(
            f"+document.querySelectorAll('.failures tbody tr')[{place}].querySelector('td.n').textContent"
        )
        assert opened.run(SHOWN) == told > 0


def test_a_finding_shows_exactly_its_samples(tab, tmp_path, fake):
    rows = []
    for task in range(24):
        row = fake.graded_row(task, 0, "north")
        codes = ("wrong_argument", "missing_argument") if task < 14 else ()
        reasons = [{"code": code, "subject": HOSTILE, "pointer": "/seat"} for code in codes[task % 2 :]]
        grade = {"state": "graded", "score": 0.5, "passed": task >= 12, "reasons": reasons}
        rows.append({**row, "passed": task >= 12, "grade": grade, "grades": {"partial": grade, "reward": grade}})
    HtmlReporter().write(fake.make_report(rows), tmp_path)
    tab.emulate()
    tab.open((tmp_path / "report.html").as_uri())
    tab.wait(READY)
    assert "wrong in 12 of 12 samples “not solved”" in tab.run("document.querySelector('.findings').textContent")
    tab.run("document.querySelector('.findings a.pick').click()")
    shown = [tab.run(SHOWN), tab.run(f"{LINES}.map(one => one.textContent)"), tab.run("document.title")]
    assert shown[0] == 12
    address = tab.run("location.href")
    tab.open("about:blank")
    tab.open(address)
    tab.wait(READY)
    assert [tab.run(SHOWN), tab.run(f"{LINES}.map(one => one.textContent)"), tab.run("document.title")] == shown
    assert tab.messages() == []


def test_the_keyboard_is_enough(opened):
    opened.key("Tab", 9)
    assert opened.run("document.activeElement.className") == "skip"
    opened.run("document.getElementById('samples').scrollIntoView()")
    opened.run("document.getElementById('list').focus()")
    selected = "document.querySelector('.line[aria-selected=true]').id"
    first = opened.run(selected)
    opened.key("j", 74)
    second = opened.run(selected)
    assert second != first
    opened.key("ArrowDown", 40)
    opened.key("k", 75)
    assert opened.run(selected) == second
    opened.key("Enter", 13)
    assert opened.run("document.activeElement.id") == "one"
    opened.key("Escape", 27)
    assert opened.run("document.activeElement.id") == "list"
    opened.key("/", 191)
    assert opened.run("document.activeElement.id") == "find"


def test_all_trials_of_a_task_are_one_click_away(opened):
    assert opened.run("document.querySelectorAll('.trials button').length") == 2
    opened.run("document.querySelector('.trials button[aria-pressed=false]').click()")
    assert opened.run("document.querySelectorAll('.trials button[aria-pressed=true]').length") == 1


@pytest.mark.parametrize("width", [390, 740, 900, 1280])
def test_nothing_is_wider_than_the_window(opened, page, width):
    opened.emulate(width=width)
    opened.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert opened.run("document.documentElement.scrollWidth") <= width


def test_paper_is_white(opened):
    """A page printed from a dark screen has dark text on white, and no controls."""
    opened.emulate(scheme="dark")
    opened.run("document.documentElement.dataset.theme = 'dark'")
    opened.send("Emulation.setEmulatedMedia", media="print")
    assert background(opened) == "rgb(255, 255, 255)"
    assert opened.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert opened.run("getComputedStyle(document.getElementById('filter')).display") == "none"
    opened.send("Emulation.setEmulatedMedia", media="")


def test_it_works_without_scripts(tab, page):
    tab.visit(page[0], scripts=False)
    for name in ("filter", "theme", "list", "task-says"):
        assert tab.run(f"document.getElementById('{name}').offsetParent") is None
    assert tab.run("document.querySelectorAll('noscript tr .what').length") == 24
    assert tab.run("document.getElementById('s1').checkVisibility()")
    assert tab.run("document.documentElement.scrollWidth") <= 1280
    tab.emulate()


def test_text_can_be_read_in_both_schemes(opened):
    script = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
    for scheme in ("light", "dark"):
        opened.emulate(scheme=scheme)
        found = opened.run(script)
        assert found["poor"] == []
        assert found["seen"] > 300
    opened.run("document.documentElement.setAttribute('data-theme', 'light')")
    opened.run("document.documentElement.style.setProperty('--soft', '#aaa')")
    assert opened.run(script)["poor"] != []


@pytest.mark.parametrize("width", [390, 1440])
def test_everything_has_a_name(opened, width):
    opened.emulate(width=width)
    script = Path(__file__).with_name("names.js").read_text(encoding="utf-8")
    assert opened.run(script) == []
    opened.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert opened.run(script) == []
    opened.run("document.querySelector('h1').outerHTML = '<h3>x</h3>'")
    assert len(opened.run(script)) >= 2


def test_a_sample_is_few_stops_away(opened):
    opened.key("Tab", 9)
    opened.key("Tab", 9)
    assert opened.run("document.activeElement.textContent") == "Skip to the samples"
    opened.key("Enter", 13)
    for _ in range(10):
        opened.key("Tab", 9)
        if opened.run("document.activeElement.id") == "list":
            return
    raise AssertionError(opened.run("document.activeElement.outerHTML.slice(0, 200)"))


def test_a_browser_that_cannot_unpack_the_list_shows_the_samples(tab, page):
    script = tab.send("Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.DecompressionStream")
    tab.open("about:blank")
    tab.open(page[0])
    tab.wait(READY)
    tab.send("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])
    assert tab.run("document.querySelectorAll('#all tr .what').length") == 24
    assert tab.run("document.querySelector('#all tr .what').checkVisibility()")
    assert tab.run("document.getElementById('list').checkVisibility()") is False
    assert tab.messages() == []


@pytest.fixture
def panelled(page, fake, tmp_path):
    def write(function, place="overview"):
        panel = panel_of(function, place, plugin="me")
        pages = HtmlReporter().write(with_panels(fake.make_report(page[1]), panel), tmp_path)
        return list(pages)[-1].as_uri()

    return write


@pytest.mark.parametrize("place", ["overview", "page", "sample"])
def test_a_panel_is_silent_and_alone(tab, panelled, place):
    address = panelled(
        lambda _: [
            blocks.Words(HOSTILE, HOSTILE),
            blocks.Link(HOSTILE, search=HOSTILE),
            blocks.Graph([blocks.Node(HOSTILE, (), [HOSTILE])], title=HOSTILE),
            blocks.Matrix([HOSTILE], [HOSTILE], [[1]], HOSTILE, HOSTILE),
            blocks.Interval([blocks.Figure(HOSTILE, 0.5, (0.25, 1), HOSTILE)]),
        ],
        place,
    )
    tab.visit(address)
    tab.wait("document.querySelectorAll('.panel').length > 0")
    assert tab.run("document.querySelectorAll('.panel img, .panel script').length") == 0
    assert tab.run("document.querySelector('.panel').textContent.includes('onerror=')")
    tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 200)))")
    assert tab.messages() == []
    assert tab.requests() == [address]


def test_a_panel_links_to_the_samples_a_filter_finds(tab, page, panelled):
    id_ = page[1][2]["sample"]["id"]
    address = panelled(lambda _: [blocks.Link("Those", search=id_)])
    tab.emulate()
    tab.open(address)
    tab.wait(READY)
    tab.run(f"document.getElementById('sort').value = 'order'; document.getElementById('sort').{CHANGE}")
    before = tab.run(SHOWN)
    tab.run("document.querySelector('#panel-me-p a').click()")
    tab.wait(f"{SHOWN} < {before}")
    assert 0 < tab.run(SHOWN) < before
    assert id_ in tab.run("document.getElementById('one').textContent")

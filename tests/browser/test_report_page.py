"""report.html in a real browser."""

import json
from pathlib import Path

import pytest

from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.html import HtmlReporter
from tests.placed import panel_of, with_panels

SHOWN = "+document.getElementById('shown-count').textContent.split(' ')[0]"
READY = "document.documentElement.classList.contains('ready')"
LINES = "[...document.querySelectorAll('.line')]"
CHANGE = "dispatchEvent(new Event('change', {bubbles: true}))"
HOSTILE = (
    "<img src=https://example.invalid/x.png "
    "onerror=\"console.log('ran')\"><script>console.log('ran')</script>"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory, fake):
    rows = fake.realistic_rows(tasks=6, trials=2)
    rows[0]["sample"]["input"] = rows[0]["model_name"] = rows[0]["sample"]["id"] = HOSTILE
    rows[0]["trajectory"][0][1]["content"] = HOSTILE
    out = tmp_path_factory.mktemp("page")
    HtmlReporter().write(fake.make_report(rows, threshold=0.9), out)
    report_path = out / "report.html"
    return report_path.as_uri(), rows


@pytest.fixture
def opened(tab, page):
    tab.visit(page[0])
    tab.wait(READY)
    view(tab, "samples")
    return tab


def view(tab, name):
    tab.run(f"document.querySelector('.bar a[href=\"#{name}\"]').click()")
    tab.wait(f"document.querySelector('.view.now').dataset.view === '{name}'")


def search(tab, text):
    tab.run(f"document.getElementById('find').value = {json.dumps(text)}")
    tab.run("document.getElementById('find').dispatchEvent(new Event('input', {bubbles: true}))")
    tab.run("new Promise(done => setTimeout(done, 90))")
    return tab.run(SHOWN)


def background(tab):
    return tab.run("getComputedStyle(document.body).backgroundColor")


def test_the_filter_leaves_what_was_asked_for(opened, page):
    rows = page[1]
    assert opened.run(SHOWN) == len(rows) == 24
    assert (
        opened.run(
            "[...document.querySelectorAll('.chip b')].reduce((sum, one) => sum + "
            "+one.textContent, 0)"
        )
        == 24
    )
    opened.run("document.querySelector('input[value=\"5\"]').click()")
    assert opened.run(SHOWN) == sum(row["passed"] is not True for row in rows)
    opened.run("document.querySelector('input[value=\"5\"]').click()")
    opened.wait("document.documentElement.classList.contains('searchable')")
    named = sum(row["model_name"] == "north-2" for row in rows)
    assert search(opened, "model:north-2") == search(opened, 'model:"north-2"') == named
    assert search(opened, "EXAMPLE.invalid") == 1
    assert search(opened, "passed:no") == sum(row["passed"] is False for row in rows)
    assert search(opened, "score<0.5") == sum(
        row["state"] == "graded" and row["grade"]["score"] < 0.5 for row in rows
    )
    called = []
    for row in rows:
        calls = row["predicted"]["calls"] or ()
        called.append({call["name"] for call in calls})
    tool = next(name for names in called for name in names)
    expected_text = f"tool:{tool}"
    assert search(opened, expected_text) == sum(tool in names for names in called)
    assert search(opened, f"tool:{tool} model:north-1") == sum(
        tool in names and row["model_name"] == "north-1"
        for names, row in zip(called, rows, strict=True)
    )
    sample = rows[3]["sample"]
    query = sample["input"][:60].lower()
    text = json.dumps(query)
    assert search(opened, text) == sum(
        query in row["sample"]["input"].lower()[:200] for row in rows
    )
    assert search(opened, "nowhere to be found") == 0
    assert opened.run("document.getElementById('nothing').hidden") is False
    opened.run("document.getElementById('clear').click()")
    assert opened.run(SHOWN) == 24
    assert opened.run("document.getElementById('clear').hidden")
    messages = opened.messages()
    assert messages == []


def test_sorting_reorders_the_list(opened, page):
    order = f"{LINES}.map(one => +one.dataset.row)"
    first = opened.run(order)
    opened.run(f"const sort = document.getElementById('sort'); sort.value = 'order'; sort.{CHANGE}")
    assert opened.run(order) == sorted(first) != first
    opened.run(f"sort.value = 'high'; sort.{CHANGE}")
    scores = opened.run(f"{LINES}.map(one => one.querySelector('.n').textContent)")
    graded = [float(text) for text in scores if text]
    expected = sorted(graded, reverse=True)
    assert graded == expected
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
    view(opened, "compare")
    mark = "document.querySelectorAll('a.mark')[5]"
    position = opened.run(f"+{mark}.getAttribute('href').slice(2)") - 1
    opened.run(f"{mark}.click()")
    opened.wait("document.querySelector('#one .inside') !== null")
    row = page[1][position]
    title = f"Task {row['sample']['id']}, trial {row['run']}"
    assert opened.run("document.querySelector('#one h3').textContent") == title
    assert opened.run("document.querySelectorAll('#one .grade').length") > 0
    address = opened.run("location.href")
    expected_text = f"{row['sample']['id']}.{row['run']}"
    assert expected_text in address
    opened.open("about:blank")
    opened.open(address)
    opened.wait(READY)
    assert opened.run("document.querySelector('#one h3').textContent") == title


def test_a_cause_shows_exactly_its_samples(opened):
    """On the overview and in the tree, on every level.

    What the levels below come to is that of the level above.
    """
    links = "[...document.querySelectorAll('.tree a[href*=cause]')]"
    count = opened.run(f"{links}.length")
    assert count > 3
    for position in range(count):
        line = f"{links}[{position}]"
        number_beside = f"({line}.closest('.leaf')?.querySelector('.n') ?? {line}.nextSibling)"
        number_shown = opened.run(f"+{number_beside}.textContent")
        opened.run(f"{line}.click()")
        opened.wait(f"{SHOWN} === {number_shown}")
        assert number_shown > 0
        assert opened.run("document.querySelector('.view.now').dataset.view") == "samples"
    # also in so many that passed; passed of a category
    numbers = "document.querySelectorAll('a[href*=reason], td a[href*=facet]')"
    script = f"{numbers}.length"
    assert opened.run(script) > 2
    for position in range(opened.run(f"{numbers}.length")):
        number_shown = opened.run(
            f"const one{position} = {numbers}[{position}]; one{position}.click(); "
            f"parseInt(one{position}.textContent)"
        )
        opened.wait(f"{SHOWN} === {number_shown}")
    address = opened.run("location.href")
    shown = opened.run(SHOWN)
    opened.open("about:blank")
    opened.open(address)
    opened.wait(READY)
    assert opened.run(SHOWN) == shown
    first = opened.run("+document.querySelector('.causes td.n').textContent")
    opened.run("document.querySelector('.causes a').click()")
    opened.wait(f"{SHOWN} === {first}")
    messages = opened.messages()
    assert messages == []


def test_the_keyboard_is_enough(opened, page):
    opened.visit(page[0])
    opened.wait(READY)
    opened.key("Tab", 9)
    assert opened.run("document.activeElement.className") == "skip"
    view(opened, "samples")
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
    for name in ("filter", "theme", "list", "task-view"):
        assert tab.run(f"document.getElementById('{name}').offsetParent") is None
    assert tab.run("document.querySelectorAll('noscript tr .what').length") == 24
    visible = tab.run(
        "[...document.querySelectorAll('.view')].map(one => one.checkVisibility() && "
        "one.dataset.view)"
    )
    assert list(dict.fromkeys(visible)) == ["overview", "failures", "samples", "compare", "figures"]
    assert tab.run("document.getElementById('s1').checkVisibility()")
    assert tab.run("document.documentElement.scrollWidth") <= 1280
    buttons = "[...document.querySelectorAll('.save')].filter(one => one.checkVisibility())"
    script = f"{buttons}.length"
    assert tab.run(script) == 0
    tab.emulate()


def test_text_can_be_read_in_both_schemes(opened):
    file_path = Path(__file__)
    path = file_path.with_name("contrast.js")
    script = path.read_text(encoding="utf-8")
    texts_checked = 0
    for scheme in ("light", "dark"):
        opened.emulate(scheme=scheme)
        for name in ("overview", "failures", "samples", "compare", "figures"):
            view(opened, name)
            contrasts = opened.run(script)
            assert contrasts["poor"] == []
            texts_checked += contrasts["seen"]
    assert texts_checked > 600
    opened.run("document.documentElement.setAttribute('data-theme', 'light')")
    opened.run("document.documentElement.style.setProperty('--soft', '#aaa')")
    poor = opened.run(script)["poor"]
    assert poor != []


@pytest.mark.parametrize("width", [390, 1440])
def test_everything_has_a_name(opened, width):
    opened.emulate(width=width)
    file_path = Path(__file__)
    path = file_path.with_name("names.js")
    script = path.read_text(encoding="utf-8")
    assert opened.run(script) == []
    opened.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert opened.run(script) == []
    opened.run("document.querySelector('.now h1').outerHTML = '<h3>x</h3>'")
    process_count = len(opened.run(script))
    assert process_count >= 2


def test_a_browser_that_cannot_unpack_the_list_shows_the_samples(tab, page):
    script = tab.send(
        "Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.DecompressionStream"
    )
    tab.open("about:blank")
    tab.open(page[0])
    tab.wait(READY)
    tab.send("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])
    assert tab.run("document.querySelectorAll('#all tr .what').length") == 24
    view(tab, "samples")
    assert tab.run("document.querySelector('#all tr .what').checkVisibility()")
    assert tab.run("document.getElementById('list').checkVisibility()") is False
    messages = tab.messages()
    assert messages == []


@pytest.fixture
def panelled(page, fake, tmp_path):
    def write(function, panel_place="overview"):
        panel = panel_of(function, panel_place, plugin="me")
        pages = HtmlReporter().write(with_panels(fake.make_report(page[1]), panel), tmp_path)
        return list(pages)[-1].as_uri()

    return write


@pytest.mark.parametrize("panel_place", ["overview", "page", "sample"])
def test_a_panel_is_silent_and_alone(tab, panelled, panel_place):
    address = panelled(
        lambda _: [
            blocks.Words(HOSTILE, HOSTILE),
            blocks.Link(HOSTILE, search=HOSTILE),
            blocks.Graph([blocks.Node(HOSTILE, (), [HOSTILE])], title=HOSTILE),
            blocks.Matrix([HOSTILE], [HOSTILE], [[1]], HOSTILE, HOSTILE),
            blocks.Interval([blocks.Figure(HOSTILE, 0.5, (0.25, 1), HOSTILE)]),
        ],
        panel_place,
    )
    tab.visit(address)
    tab.wait("document.querySelectorAll('.panel').length > 0")
    assert tab.run("document.querySelectorAll('.panel img, .panel script').length") == 0
    assert tab.run("document.querySelector('.panel').textContent.includes('onerror=')")
    tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 200)))")
    messages = tab.messages()
    assert messages == []
    requests = tab.requests()
    assert requests == [address]


def test_a_sample_shows_its_sub_agents(tab, tmp_path, fake):
    rows = fake.realistic_rows(tasks=2, trials=1)
    sample = rows[1]["sample"]
    rows[0]["children"] = [sample["id"], f"gone {HOSTILE}"]
    rows[1] |= {"agent_id": HOSTILE, "usage": {"input_tokens": 50}}
    HtmlReporter().write(fake.make_report(rows, threshold=0.9), tmp_path)
    report_path = tmp_path / "report.html"
    tab.visit(report_path.as_uri())
    tab.wait(READY)
    tab.run("location.hash = '#s1'")
    items = (
        "[...document.querySelectorAll('#one h4')].find(one => one.textContent === "
        "'Sub-agents 2')?.nextSibling"
    )
    tab.wait(f"{items}?.textContent.includes('input_tokens 50')")
    child, gone = tab.run(f"[...{items}.children].map(item => item.textContent)")
    assert child.startswith(f"{rows[1]['sample']['id']} agent {HOSTILE[:60]}")
    assert child.endswith(" calls, input_tokens 50")
    assert gone.startswith("gone <img")
    tab.run(f"{items}.querySelector('a').click()")
    tab.wait(
        "document.querySelector('#one "
        f"h3').textContent.includes({json.dumps(rows[1]['sample']['id'])})"
    )
    messages = tab.messages()
    assert messages == []

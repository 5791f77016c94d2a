"""report.html in a real browser."""

import importlib.util
import sys
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.reporters.html import HtmlReporter

SHOWN = "[...document.querySelectorAll('details.sample')].filter(one => !one.hidden).length"
HOSTILE = "<img src=https://example.invalid/x.png onerror=\"console.log('ran')\"><script>console.log('ran')</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the address of a page over a made-up run with hostile texts in it, and the run."""
    path = Path(__file__).parents[1] / "plugins" / "reporters" / "fake_report.py"
    spec = importlib.util.spec_from_file_location("gradestack_test_fake_report_browser", path)
    fake = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = fake
    spec.loader.exec_module(fake)
    rows = fake.realistic_rows(tasks=6, trials=2)
    rows[0]["sample"]["input"] = rows[0]["model_name"] = rows[0]["sample"]["id"] = HOSTILE
    rows[0]["trajectory"][0][1]["content"] = HOSTILE
    out = tmp_path_factory.mktemp("page")
    HtmlReporter().write(fake.make_report(rows, threshold=0.9), out)
    return (out / "report.html").as_uri(), rows


@pytest.fixture
def opened(tab, page):
    """Return the browser with the page freshly opened in a wide light window."""
    tab.emulate()
    tab.open("about:blank")
    tab.open(page[0])
    return tab


def background(tab):
    return tab.run("getComputedStyle(document.body).backgroundColor")


def test_it_is_silent_and_alone(opened, page):
    """Opening the page, and every drill-down in it, writes nothing to the console and asks for nothing else."""
    opened.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    opened.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 200)))")
    assert opened.messages() == []
    assert opened.requests() == [page[0]]
    assert opened.run("document.querySelectorAll('details.sample .inside img').length") == 0


@pytest.mark.parametrize("width", [390, 1440])
def test_presets_side_by_side_fit_any_width(tab, tmp_path, width):
    """What other tools would say, every part of it open, is no wider than the window and leaves the console empty."""
    call = '{"name": "f", "arguments": {"a_long_argument": 1}}'
    line = f'{{"id": "one", "expected": [{call}, {call}], "predicted": [{call}]}}\n'
    (tmp_path / "runs.jsonl").write_text(line, encoding="utf-8")
    report = gradestack.grade_files([tmp_path / "runs.jsonl"], output=tmp_path / "out", stack="peers", engine="serial")
    tab.emulate(width=width)
    tab.open("about:blank")
    tab.open((report.path / "report.html").as_uri())
    tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("document.querySelectorAll('#presets .rules tbody tr').length") == 57
    assert tab.messages() == []


def test_the_filter_leaves_what_was_asked_for(opened, page):
    """Verdict, model, reason and text each narrow the list, and the count says how many are left."""
    rows = page[1]
    assert opened.run(SHOWN) == len(rows) == 24
    opened.run("document.querySelector('input[value=passed]').click()")
    lost = sum(row["passed"] is not True for row in rows)
    assert opened.run(SHOWN) == lost
    assert opened.run("document.getElementById('shown-count').textContent") == f"{lost} shown"
    opened.run("document.querySelector('input[value=passed]').click()")
    change = "dispatchEvent(new Event('change', {bubbles: true}))"
    opened.run(f"const model = document.getElementById('model'); model.value = 'north-2'; model.{change}")
    assert opened.run(SHOWN) == sum(row["model_name"] == "north-2" for row in rows)
    opened.run(
        f"model.value = ''; const code = document.getElementById('code'); code.value = 'wrong_argument'; code.{change}"
    )
    wrong = sum("wrong_argument" in {reason["code"] for reason in row["grade"].get("reasons", ())} for row in rows)
    assert opened.run(SHOWN) == wrong > 0
    opened.run(f"code.value = ''; code.{change}")
    opened.run("const find = document.getElementById('find'); find.value = 'EXAMPLE.invalid'")
    opened.run("find.dispatchEvent(new Event('input', {bubbles: true}))")
    opened.wait(f"{SHOWN} === 1")
    opened.run("find.value = 'nowhere to be found'; find.dispatchEvent(new Event('input', {bubbles: true}))")
    opened.wait(f"{SHOWN} === 0")
    assert opened.run("document.getElementById('nothing').hidden") is False
    assert opened.messages() == []


def test_sorting_reorders_the_list(opened, page):
    """Samples can be put in the order they were recorded in, or by score, and back."""
    order = "[...document.querySelectorAll('details.sample')].map(one => +one.dataset.p)"
    first = opened.run(order)
    change = "sort.dispatchEvent(new Event('change', {bubbles: true}))"
    opened.run(f"const sort = document.getElementById('sort'); sort.value = 'order'; {change}")
    assert opened.run(order) == sorted(first) != first
    opened.run(f"sort.value = 'high'; {change}")
    scores = opened.run("[...document.querySelectorAll('details.sample')].map(one => one.dataset.s)")
    graded = [float(text) for text in scores if text]
    assert graded == sorted(graded, reverse=True)
    assert scores[len(graded) :] == [""] * (len(scores) - len(graded))
    opened.run(f"sort.value = 'worst'; {change}")
    assert opened.run(order) == first


def test_colours_follow_the_system_and_the_button(opened, page):
    """The page is light or dark as the system says, until the button says otherwise; the choice is remembered."""
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


def test_a_link_to_a_sample_opens_it(opened):
    """A cell of the task table leads to its sample, opens it, and the address can be shared."""
    opened.run("document.querySelector('a.cell').click()")
    name = opened.run("document.querySelector('a.cell').getAttribute('href').slice(1)")
    opened.wait(f"document.getElementById('{name}').open")
    assert opened.run("location.hash") == f"#{name}"
    assert opened.run("document.activeElement.tagName") == "SUMMARY"


def test_a_reason_filters_the_samples(opened):
    """A click on a reason for lost points shows the samples it was given for."""
    opened.run("document.querySelector('a.pick').click()")
    wanted = opened.run("document.querySelector('a.pick').dataset.code")
    codes = "[...document.querySelectorAll('details.sample')].filter(one => !one.hidden).map(one => one.dataset.k)"
    shown = opened.run(codes)
    assert shown
    assert all(wanted in codes.split() for codes in shown)
    assert len(shown) < 24


def test_the_keyboard_is_enough(opened):
    """The first stop leads past the header; a sample is opened with Enter."""
    opened.key("Tab", 9)
    assert opened.run("document.activeElement.className") == "skip"
    opened.run("document.querySelector('details.sample summary').focus()")
    opened.key("Enter", 13)
    assert opened.run("document.querySelector('details.sample').open") is True


@pytest.mark.parametrize("width", [390, 740, 900, 1280])
def test_nothing_is_wider_than_the_window(opened, page, width):
    """At any width the page scrolls one way only; wide tables scroll inside their own box."""
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
    """Without scripts everything can be read; what needs a script is not shown."""
    tab.emulate(scripts=False)
    tab.open("about:blank")
    tab.open(page[0])
    assert tab.run("getComputedStyle(document.getElementById('filter')).display") == "none"
    assert tab.run("getComputedStyle(document.getElementById('theme')).display") == "none"
    assert tab.run(SHOWN) == 24
    tab.run("document.querySelector('details.sample summary').click()")
    assert tab.run("document.querySelector('details.sample').open") is True
    tab.emulate()


def test_text_can_be_read_in_both_schemes(opened):
    """Every text that is shown has a contrast of at least 4.5 to 1 against what is behind it."""
    script = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
    opened.run("document.querySelectorAll('details.sample').forEach((one, n) => { one.open = n % 4 === 0; })")
    for scheme in ("light", "dark"):
        opened.emulate(scheme=scheme)
        found = opened.run(script)
        assert found["poor"] == []
        assert found["seen"] > 500
    opened.run("document.documentElement.setAttribute('data-theme', 'light')")
    opened.run("document.documentElement.style.setProperty('--soft', '#aaa')")
    assert opened.run(script)["poor"] != []

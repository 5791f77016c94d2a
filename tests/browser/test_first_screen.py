"""What a reader sees first, in a real browser: the published tau-bench file, graded and opened without scrolling."""

import base64
import json
import os
import re
from pathlib import Path

import pytest

import gradestack

VISIBLE = """[...document.querySelectorAll("header, .view.now > *")].flatMap(part => {
  if (part.getBoundingClientRect().top >= innerHeight) { return []; }
  return [...part.querySelectorAll("*")].filter(one => {
    const box = one.getBoundingClientRect();
    return box.height && box.top < innerHeight && box.bottom > 0 && box.right > 0;
  }).flatMap(one => [...one.childNodes].filter(node => node.nodeType === 3).map(node => node.nodeValue.trim()));
}).filter(Boolean).join(" ")"""
RANGE = re.compile(r"\b0(\.\d)?–(0\.\d|1)\b")
"""A bin of a histogram, which is no figure."""
FIGURE = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")


@pytest.fixture(scope="module")
def tau(tmp_path_factory):
    data = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not data:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    out = tmp_path_factory.mktemp("tau") / "run"
    gradestack.grade_files(Path(data) / "tau-bench" / "gpt-4o-airline.json", output=out)
    return out


@pytest.fixture
def opened(tab, tau):
    tab.visit((tau / "report.html").as_uri(), width=1440, height=900)
    tab.wait("document.querySelector('#whole-map path') !== null")  # which the page's script draws
    return tab


def test_the_first_screen_has_the_figures(opened):
    text = opened.run(VISIBLE)
    for figure in ("42.0", "32.0", "52.7", "0.200", "0.109", "0.339", "0.596", "26"):
        assert figure in text
    assert "Partial credit does not separate “solved” from “not solved”." in text
    figures = FIGURE.findall(RANGE.sub("", text))
    assert sorted(figures) == sorted(set(figures))
    assert opened.messages() == []


def test_a_task_solved_four_times_is_solved_everywhere(opened, tau):
    opened.wait("document.documentElement.classList.contains('ready')")
    opened.run("location.hash = '#tasks'")
    opened.run("const task = document.getElementById('task-view').elements")
    opened.run("task.find.value = '18'; task.find.dispatchEvent(new Event('input'))")
    assert opened.run("document.querySelector('.task-lines').textContent") == "18✓✓✓✓4/4"
    opened.run("location.hash = '#sample=18.2'")
    opened.wait("document.querySelector('#one h3').textContent === 'Task 18, trial 2'")
    trials = "[...document.querySelectorAll('.trials button')].map(one => one.textContent)"
    assert opened.run(trials) == [f"● trial {run}" for run in range(4)]
    assert opened.run("document.querySelector('#one .pill').textContent") == "● solved"
    markdown = (tau / "report.md").read_text(encoding="utf-8")
    assert "| `18` | 4 | 4 | 0.000 |" in markdown


@pytest.mark.parametrize("width", [390, 1440])
def test_the_map_has_every_trial_and_fits(opened, width):
    opened.emulate(width=width)
    assert opened.run("document.documentElement.scrollWidth") <= width
    drawn = "[...document.querySelectorAll('.taskmap path.trial')].map(one => one.getAttribute('d')).join('')"
    assert opened.run(drawn).count("z") == 200
    assert opened.run("document.querySelectorAll('.taskmap a, .taskmap [tabindex]').length") == 0
    labels = opened.run("[...document.querySelectorAll('.taskmap text')].map(one => one.textContent)")
    assert sorted(labels, key=int) == [str(task) for task in range(50)]


def test_it_prints_on_six_pages(opened):
    """What fails, every task and the ten worst samples are on paper, and nothing that only a screen can use."""
    opened.wait("document.documentElement.classList.contains('ready')")
    paper = base64.b64decode(
        opened.send("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
    )
    assert 2 <= len(re.findall(rb"/Type */Page\b", paper)) <= 6
    opened.send("Emulation.setEmulatedMedia", media="print")
    shown = "[...document.querySelectorAll('.causes, .tree, .task-room, .print-only tr, #graders, #list')]"
    seen = opened.run(
        f"{shown}.filter(one => one.checkVisibility()).map(one => one.id || one.className || one.tagName)"
    )
    opened.send("Emulation.setEmulatedMedia", media="")
    assert seen.count("v-lost") == 10
    assert {"tree", "task-room", "lines causes"} <= set(seen)
    assert not {"graders", "list"} & set(seen)


def test_two_models_are_compared_on_the_first_screen(tab, tmp_path):
    call = {"name": "f", "arguments": {"a": 1}}
    rows = [
        {
            "id": f"t{task}",
            "model": model,
            "run": run,
            "expected": [call],
            "predicted": [call if good else {"name": "f", "arguments": {"a": 2}}],
            "usage": {"cost_usd": 0.01},
        }
        for model, share in (("north", 9), ("south", 5))
        for task in range(12)
        for run in range(2)
        for good in [(task * 2 + run * 5) % 12 < share]
    ]
    (tmp_path / "runs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    out = gradestack.grade_files([tmp_path / "runs.jsonl"], output=tmp_path / "out", engine="serial").path
    tab.visit((out / "report.html").as_uri(), width=1440)
    tab.wait("document.documentElement.classList.contains('ready')")
    text = tab.run("document.querySelector('.against').textContent")
    assert text == f"{gradestack.compare(out).sentence}. Compare"
    assert tab.run("document.querySelectorAll('.together:first-child .point').length") == 2
    names = "[...document.querySelectorAll('.together:first-child code')].map(one => one.textContent)"
    assert tab.run(names) == ["north", "south"]  # as in the input
    tab.emulate(width=390)
    assert tab.run("(views => views.scrollWidth - views.clientWidth)(document.querySelector('.bar ul'))") == 0
    tab.run("document.querySelector('.against a').click()")
    tab.wait("document.querySelector('.view.now').dataset.view === 'compare'")
    assert tab.run("document.querySelector('.task-lines').checkVisibility()")  # task by task after one click
    shown = gradestack.compare(out).data
    first = tab.run("document.querySelector('.differences .row').textContent")
    assert f"{shown['outcome']['better']} better, {shown['outcome']['worse']} worse" in first
    assert tab.run("document.querySelector('.task-head').textContent").count("passed") == 2
    tab.run("location.hash = '#overview'")
    assert "$0.0133" in tab.run("document.getElementById('took').textContent")  # cost of a success without a click
    tab.run("document.querySelector('.causes a').click()")  # the wrong argument of a sample after one
    tab.wait("document.querySelector('#one .inside') !== null")
    assert tab.run("document.querySelector('#one .arguments').textContent").endswith("differs12")
    tab.run("[...document.querySelectorAll('.one-head button')].at(-1).click()")  # its link after one more
    tab.wait("/Copied|address bar/.test(document.querySelector('.one-head').textContent)")
    assert "sample=" in tab.run("location.hash")
    tab.run("document.getElementById('clear').click()")
    tab.run("document.querySelector('.bar a[href=\"#failures\"]').click()")
    tab.run("document.querySelector('#calls a').click()")  # samples that called a tool after two
    assert tab.run("document.getElementById('find').value") == 'tool:"f"'
    assert tab.run("document.getElementById('shown-count').textContent") == "48 of 48"
    assert tab.messages() == []


@pytest.mark.parametrize("family", ["airline", "deepfabric", "letta", "orchestration", "quickstart", "when2call"])
def test_the_first_screen_of_a_family_leads_to_its_samples(tab, tmp_path, family):
    """The most common cause and a sample of it are a click away, those that called a tool two, its link one more."""
    suite = Path(__file__).parents[2] / "examples" / family / "suite.yaml"
    tab.visit((gradestack.run(suite, output=tmp_path, engine="serial").path / "report.html").as_uri(), width=1440)
    tab.wait("document.documentElement.classList.contains('searchable')")
    count = "document.getElementById('shown-count').textContent.split(' ')[0]"
    told = tab.run("document.querySelector('.causes td.n').textContent")
    tab.run("document.querySelector('.causes a').click()")
    assert tab.run(count) == told
    tab.wait("document.querySelector('#one .inside') !== null")
    tab.run("[...document.querySelectorAll('.one-head button')].at(-1).click()")
    tab.wait("/Copied|address bar/.test(document.querySelector('.one-head').textContent)")
    tab.run("document.getElementById('clear').click()")
    if tab.run("document.querySelector('.term[data-term^=\"tool:\"]')?.click() === undefined"):
        assert int(tab.run(count)) > 0
    assert tab.messages() == []

"""What a reader sees first, in a real browser: the published tau-bench file, graded and opened without scrolling."""

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

"""The table of tasks in a real browser.

Every task, all trials of each model, the largest differences first.
"""

import pytest

from gradestack_plugins.pages.html import HtmlReporter

READY = "document.documentElement.classList.contains('ready')"
HOSTILE = "<img src=x onerror=alert(1)>"
LINES = "[...document.querySelectorAll('.task-lines .task-line')]"
TEXTS = f"{LINES}.map(one => [...one.children].map(each => each.textContent))"
HEADS = "[...document.querySelectorAll('.task-head > *')].map(one => one.textContent)"
SORT = "document.getElementById('task-view').elements.sort"


def row(fake, task, run, model, passed):
    score = float(passed) / 2
    grade = {"state": "graded", "score": score, "passed": passed}
    graded_row = fake.graded_row(0, run or 0, model)
    fields = {
        **graded_row,
        "sample": {"id": task},
        "run": run,
        "passed": passed,
    }
    return {**fields, "grade": grade, "grades": {"partial": grade, "reward": grade}}


@pytest.fixture
def opened(tab, fake, tmp_path):
    def open_page(rows, view="compare", width=1280):
        HtmlReporter().write(fake.make_report(rows), tmp_path)
        tab.visit(f"{(tmp_path / 'report.html').as_uri()}", width=width)
        tab.wait(READY)
        tab.run(f"location.hash = '#{view}'")
        tab.wait("document.querySelector('.task-lines .task-line') !== null")
        return tab

    yield open_page
    tab.emulate()


def choose(tab, value):
    tab.run(
        f"{SORT}.value = '{value}'; {SORT}.dispatchEvent(new Event('change', {{bubbles: true}}))"
    )


def test_models_stand_side_by_side_the_largest_difference_first(opened, fake):
    wanted = {"task 10": ((1, 1), (1, 0)), "task 2": ((0, 1), (0, 1)), HOSTILE: ((0, 0), (1, 1))}
    rows = [
        row(fake, task, run, model, bool(passed))
        for task, sides in wanted.items()
        for model, side in zip((HOSTILE, "south"), sides, strict=True)
        for run, passed in enumerate(side)
    ]
    tab = opened([*rows, row(fake, "alone", 0, "south", passed=True)])
    assert tab.run(HEADS) == ["Task", HOSTILE, "passed", "south", "passed", "difference"]
    by_difference = [
        [HOSTILE, "✗✗", "0/2", "✓✓", "2/2", "+100%"],
        ["task 10", "✓✓", "2/2", "✓✗", "1/2", "-50%"],
        ["task 2", "✗✓", "1/2", "✗✓", "1/2", "0%"],
        ["alone", "", "", "✓", "1/1", ""],
    ]
    assert tab.run(TEXTS) == by_difference
    choose(tab, "task")
    lines = tab.run(TEXTS)
    assert [line[0] for line in lines] == [HOSTILE, "alone", "task 2", "task 10"]
    address = tab.run("location.href")
    tab.open("about:blank")
    tab.open(address)
    tab.wait(READY)
    assert [line[0] for line in tab.run(TEXTS)] == [HOSTILE, "alone", "task 2", "task 10"]
    tab.run(
        "document.querySelectorAll('.task-lines "
        ".task-line')[3].querySelectorAll('.mark')[3].click()"
    )
    assert tab.run("document.querySelector('#one h3').textContent") == "Task task 10, trial 1"
    assert tab.run("document.querySelector('.view.now').dataset.view") == "samples"
    messages = tab.messages()
    assert messages == []


def test_every_task_of_many_is_there(opened, fake):
    rows = []
    for task in range(1500):
        for run in range(2):
            rows.append(row(fake, str(task), run, "m", task % 7 > run))
    tab = opened(rows, "tasks")
    assert tab.run("document.querySelectorAll('*').length") < 4000
    assert (
        tab.run("document.querySelector('#task-view output').textContent") == "1,500 of 1,500 tasks"
    )
    assert tab.run(TEXTS)[0] == ["0", "✗✗", "0/2"]
    choose(tab, "task")
    tab.run("document.querySelector('.task-room').scrollTop = 1e9")
    tab.wait(f"{TEXTS}.some(one => one[0] === '1499')")


def test_trials_without_names_and_states_are_shown(opened, fake):
    rows = []
    for passed in (False, True):
        rows.append(row(fake, "a", None, "m", passed=passed))
    rows += [
        {**fake.ungraded_row(5, 0, None, state), "sample": {"id": "b"}}
        for state in ("failed", "skipped", "missing")
    ]
    tab = opened(rows, "tasks", width=390)
    assert tab.run(TEXTS) == [["a", "✗✓", "1/2"], ["b", "!––", ""]]
    assert tab.run("document.documentElement.scrollWidth") <= 390


def test_tasks_that_were_run_once_by_one_model_have_no_table(fake, tab, tmp_path):
    (path,) = HtmlReporter().write(
        fake.make_report([row(fake, "a", 0, "m", passed=True)]), tmp_path
    )
    tab.visit(path.as_uri())
    tab.wait(READY)
    assert tab.run(
        "document.getElementById('tasks') === null && document.getElementById('map') === null"
    )


def test_filters_show_the_tasks_that_broke_that_were_fixed_and_that_both_fail(opened, fake):
    """The keyboard walks over them, the address has the chosen one, and links lead to it."""
    sides = {"a": ((1, 1), (1, 0)), "b": ((0, 1), (1, 1)), "c": ((0, 0), (0, 0)), "d": ((1,), (1,))}
    rows = [
        row(fake, task, run, model, bool(passed))
        for task, models in sides.items()
        for model, side in zip(("north", "south"), models, strict=True)
        for run, passed in enumerate(side)
    ]
    tab = opened(rows)
    names = f"{LINES}.map(one => one.children[0].textContent).sort().join(' ')"
    chips = "[...document.querySelectorAll('#task-filter .chip')].map(one => one.innerText.trim())"
    assert tab.run(chips) == ["all 4", "broke 1", "fixed 1", "both fail 1", "both pass 1"]
    tab.run("document.querySelector('#task-filter input').focus()")
    for expected in ("a", "b", "c", "d"):
        tab.key("ArrowRight", 39)
        tab.wait(f"{names} === '{expected}'")
    assert "show=pass" in tab.run("location.hash")
    tab.run("location.hash = 'view=compare&show=fail'")
    tab.wait(f"{names} === 'c'")
    assert tab.run("document.querySelector('#task-filter input:checked').value") == "fail"
    messages = tab.messages()
    assert messages == []


def test_of_three_models_no_task_broke(opened, fake):
    rows = []
    for model in ("x", "y", "z"):
        rows.append(row(fake, "a", 0, model, passed=True))
    assert opened(rows).run("document.getElementById('task-filter') === null")

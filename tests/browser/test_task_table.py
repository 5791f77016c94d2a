"""The table of tasks in a real browser: for one model, and by the verdicts of another grader."""

import attrs
import pytest

from gradestack_plugins.pages.html import HtmlReporter

READY = "document.documentElement.classList.contains('ready')"
HOSTILE = "<img src=x onerror=alert(1)>"
FORM = "document.getElementById('task-view').elements"
TEXTS = (
    "[...document.querySelectorAll('#task-table tbody tr')].map(one => [...one.children].map(each => each.textContent))"
)
HEADS = "[...document.querySelectorAll('#task-table thead th bdi')].map(one => one.textContent)"
FOOT = "[...document.querySelectorAll('#task-table tfoot tr > *')].map(one => one.textContent)"


def choose(tab, name, value):
    tab.run(
        f"{FORM}['{name}'].value = '{value}'; {FORM}['{name}'].dispatchEvent(new Event('change', {{bubbles: true}}))"
    )


def written(fake, rows, out):
    """Write the page of a run with the graders partial and reward; return its address."""
    report = fake.make_report(rows)
    graders = [{"kind": "grader", "key": key, "options": {}} for key in ("partial", "reward")]
    components = [each for each in report.header["components"] if each["kind"] != "grader"]
    HtmlReporter().write(attrs.evolve(report, header={**report.header, "components": components + graders}), out)
    return (out / "report.html").as_uri()


def row(fake, task, run, model, *, partial, reward):
    grades = {
        "partial": {"state": "graded", "score": partial, "passed": partial >= 1},
        "reward": {"state": "graded", "score": reward, "passed": reward >= 1},
    }
    held = {**fake.graded_row(0, run, model), "sample": {"id": task}, "passed": partial >= 1}
    return {**held, "grade": grades["partial"], "grades": grades}


@pytest.fixture
def opened(tab, fake, tmp_path):
    rows = [
        row(fake, task, run, model, partial=(number + run) / 4, reward=float(number == run))
        for model in (HOSTILE, "south")
        for number, task in enumerate(("task 10", "task 2", HOSTILE))
        for run in range(2)
        if (model, task) != ("south", HOSTILE)
    ]
    tab.visit(written(fake, rows, tmp_path))
    tab.wait(READY)
    return tab


def test_one_model_has_a_table_of_its_own(opened):
    before = opened.run("document.getElementById('task-table').innerHTML")
    assert opened.run(HEADS) == [HOSTILE, "south", "Task", "0", "1", "0", "1", "Mean", "Solved"]
    assert opened.run(TEXTS)[1] == ["task 2", "0.250", "0.500", "0.250", "0.500", "0.375", "0/4"]
    assert opened.run(FOOT) == ["Mean", "0.250", "0.500", "0.125", "0.375", ""]
    choose(opened, "model", 1)
    shown = [["task 2", "0.250", "0.500", "0.375", "0/2"], ["task 10", "0.000", "0.250", "0.125", "0/2"]]
    assert opened.run(TEXTS) == shown
    assert opened.run(HEADS) == ["Task", "0", "1", "Mean", "Solved"]
    assert "Only of south." in opened.run("document.getElementById('task-says').textContent")
    address = opened.run("location.href")
    opened.open("about:blank")
    opened.open(address)
    opened.wait(READY)
    assert opened.run(TEXTS) == shown
    choose(opened, "model", "")
    assert opened.run("document.getElementById('task-table').innerHTML") == before
    assert "tasks=" not in opened.run("location.href")


def test_another_grader_has_its_verdicts(opened):
    choose(opened, "by", 0)
    assert opened.run(HEADS) == [HOSTILE, "south", "Task", "0", "1", "0", "1", "Passed"]
    assert opened.run(TEXTS) == [
        [HOSTILE, "✗", "✗", "·", "·", "0/2"],
        ["task 2", "✗", "✓", "✗", "✓", "2/4"],
        ["task 10", "✓", "✗", "✓", "✗", "2/4"],
    ]
    choose(opened, "model", 0)
    assert [line[-1] for line in opened.run(TEXTS)] == ["0/2", "1/2", "1/2"]
    assert opened.run("document.getElementById('task-says').textContent") == (
        f"Verdict of every trial by reward: ✓ and blue passed. Only of {HOSTILE}."
    )
    opened.run("document.querySelector('#task-table a.cell.passed').click()")
    assert opened.run("document.querySelector('#one h3').textContent") == "Task task 2, trial 1"
    assert "by=reward" in opened.run("location.href")
    assert opened.messages() == []


def test_a_table_of_many_tasks_is_bounded(tab, fake, tmp_path):
    first = row(fake, "0", 0, "north", partial=0.5, reward=1.0)
    rows = [
        {**first, "sample": {"id": str(task)}, "run": run, "model_name": model}
        for task in range(1500)
        for run in range(2)
        for model in ("north", "south")
    ]
    tab.visit(written(fake, rows, tmp_path))
    tab.wait(READY)
    for name, value in (("model", 1), ("by", 0), ("model", "")):
        choose(tab, name, value)
        assert tab.run("document.querySelectorAll('*').length") < 5000
        assert "more tasks are not in this table" in tab.run("document.getElementById('task-table').textContent")
        assert tab.run(f"{TEXTS}.slice(0, 3).map(one => one[0])") == ["0", "1", "2"]


def test_trials_without_names_are_counted(tab, fake, tmp_path):
    rows = [
        {**row(fake, task, 0, model, partial=score, reward=1.0), "run": None}
        for model in ("north", "south")
        for task, score in (("a", 0.25), ("b", 0.5), ("a", 1.0))
    ]
    tab.visit(written(fake, rows, tmp_path))
    tab.wait(READY)
    choose(tab, "model", 1)
    assert tab.run(HEADS) == ["Task", "1", "2", "Mean", "Solved"]
    assert tab.run(TEXTS) == [["a", "0.250", "✓ 1.000", "0.625", "1/2"], ["b", "0.500", "·", "0.500", "0/1"]]


def test_tasks_that_were_run_once_are_cells(tab, fake, tmp_path):
    rows = [fake.ungraded_row(5, 0, "m", state) for state in ("failed", "skipped", "missing")]
    rows = [{**each, "sample": {"id": f"t{number}"}} for number, each in enumerate((*rows, fake.graded_row(4, 0, "m")))]
    score = rows[3]["grade"]["score"]
    tab.visit(written(fake, rows, tmp_path))
    tab.wait(READY)
    cells = tab.run("[...document.querySelectorAll('#task-table .map li')].map(one => one.textContent)")
    assert cells == ["t0error", "t1skipped", "t2missing", f"t3{'✓ ' * (score == 1)}{score:.3f}"]
    assert tab.run("document.querySelectorAll('#task-table table').length") == 0

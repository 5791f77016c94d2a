"""A comparison on the console, and as a comment on a pull request."""

import random

import pytest

import gradestack
from gradestack_plugins.pages.compare_text import MOST_LINES, comment, console_lines


@pytest.fixture
def compared(tmp_path):
    """Return the data of a comparison of tasks with so many passed trials on both sides."""

    def compare(passed, trials=4, **options):
        for number, name in enumerate(("a", "b")):
            samples = []
            for task, counts in passed.items():
                for run in range(trials):
                    cost_usd = 0.01 + number * run / 1000
                    seconds = 3 + run
                    usage = {"cost_usd": cost_usd, "seconds": seconds}
                    predicted = "y"
                    if run < counts[number]:
                        predicted = "x"
                    samples.append(
                        {
                            "id": task,
                            "run": run,
                            "expected": "x",
                            "predicted": predicted,
                            "usage": usage,
                        }
                    )
            output = tmp_path / name
            gradestack.grade(samples, graders={"g": "exact_match"}, output=output)
        a_folder = tmp_path / "a"
        b_folder = tmp_path / "b"
        return gradestack.compare(a_folder, b_folder, **options).data

    return compare


def test_tasks_that_got_worse_stand_before_those_that_got_better_and_these_before_figures(compared):
    data = compared({"1": (4, 1), "2": (0, 4), "3": (2, 2), "4": (4, 4), "5": (0, 0)})
    shown_lines = console_lines(data)
    for lines, figures in (
        (shown_lines, "50.0% ->"),
        (comment(data).split("\n"), "| 50.0%"),
    ):
        places = [
            next(at for at, line in enumerate(lines) if text in line)
            for text in ("Exact match", "got worse", "got better", "unchanged", figures)
        ]
        assert places == sorted(places)
    assert "  1  4 → 1 of 4  other text" in console_lines(data)
    assert "3 tasks unchanged: passed 1 never, 1 sometimes, 1 always" in console_lines(data)
    assert "- `1` 4 → 1 of 4: other text" in comment(data)
    assert "**1 got better:** `2` · 3 unchanged, 1 of them never passed" in comment(data)


@pytest.mark.parametrize("seed", range(12))
def test_a_comment_has_at_most_25_lines(compared, seed):
    draw = random.Random(seed)  # noqa: S311
    tasks = {}
    for task in range(draw.choice([1, 3, 40])):
        tasks["t" * draw.choice([1, 200]) + str(task)] = (draw.randint(0, 4), draw.randint(0, 4))
    data = compared(tasks, report_url="https://example.org/c.html")
    incomparable = ["other graders"] * 3
    warnings = ["one"] * 20
    text = comment({**data, "incomparable": incomparable, "warnings": warnings})
    lines = text.splitlines()
    line_count = len(lines)
    assert line_count <= MOST_LINES
    assert console_lines(data)


def test_links_of_a_comment_cannot_be_left(compared):
    """Neither by the address that was given nor by the id of a task."""
    data = compared({"a](x) <b> `": (4, 0), "b": (1, 1)}, report_url="https://e.org/r (1).html?a=b")
    text = comment(data)
    address = "https://e.org/r%20%281%29.html?a=b"
    assert f"**[Full report]({address})**" in text
    assert f"({address}#task-a%5D%28x%29%20%3Cb%3E%20%60)" in text


def test_an_address_that_is_none_is_refused(compared):
    with pytest.raises(gradestack.ConfigError, match="begins with https://"):
        compared({"1": (1, 1)}, report_url="javascript:alert(1)")


def test_same_runs_and_several_runs_have_a_comment_too(compared, tmp_path):
    data = compared({"1": (1, 1), "2": (4, 4)})
    assert comment(data).startswith("### ⚪ Exact match 62.5%: the same in every task\n")
    passed = tmp_path / "a"
    trials = tmp_path / "b"
    a_folder = tmp_path / "a"
    several = gradestack.compare(passed, trials, a_folder).data
    assert "| | Exact match | rank | ties |" in comment(several)

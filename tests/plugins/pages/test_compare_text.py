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
            samples = [
                {
                    "id": task,
                    "run": run,
                    "expected": "x",
                    "predicted": "x" if run < counts[number] else "y",
                    "usage": {"cost_usd": 0.01 + number * run / 1000, "seconds": 3 + run},
                }
                for task, counts in passed.items()
                for run in range(trials)
            ]
            gradestack.grade(samples, graders={"g": "exact_match"}, output=tmp_path / name)
        return gradestack.compare(tmp_path / "a", tmp_path / "b", **options).data

    return compare


def test_tasks_that_got_worse_stand_before_those_that_got_better_and_these_before_figures(compared):
    data = compared({"1": (4, 1), "2": (0, 4), "3": (2, 2), "4": (4, 4), "5": (0, 0)})
    for lines, figures in (
        (console_lines(data), "50.0% ->"),
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
    tasks = {
        "t" * draw.choice([1, 200]) + str(task): (draw.randint(0, 4), draw.randint(0, 4))
        for task in range(draw.choice([1, 3, 40]))
    }
    data = compared(tasks, report_url="https://example.org/c.html")
    text = comment({**data, "incomparable": ["other graders"] * 3, "warnings": ["one"] * 20})
    assert len(text.splitlines()) <= MOST_LINES
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
    several = gradestack.compare(tmp_path / "a", tmp_path / "b", tmp_path / "a").data
    assert "| | Exact match | rank | ties |" in comment(several)

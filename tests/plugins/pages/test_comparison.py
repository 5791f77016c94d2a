"""The page of a comparison."""

import json

import pytest

import gradestack
from gradestack_plugins.pages.comparison import differences
from gradestack_plugins.pages.html import HtmlReporter
from tests.core.outcomes import data
from tests.placed import carried
from tests.plugins.pages.conftest import Page

DATA = data(__file__, "comparison.yaml")


def metric(low, high, *, same=0, difference=0.0, verdict="no evidence", share=True):
    ends = None if low is None else [low, high]
    found = {
        "difference": difference,
        "b": 0.5 + difference,
        "same": same,
        "tasks": 3 + same,
        "verdict": verdict,
    }
    return (
        DATA["metric"]
        | found
        | {"interval": {"confidence": 0.95, "ends": ends, "reason": None}, "share": share}
    )


def comparison(**metrics):
    return DATA["comparison"] | {"metrics": metrics}


def test_differences_share_an_axis_around_zero():
    """Of shares alone: seconds and counts are no distance on it."""
    rows = {
        "x": metric(-0.4, 0.2, difference=-0.1),
        "y": metric(None, None),
        "z": metric(-4, 2, share=False),
    }
    shown = differences({"metrics": rows}, 0.5)
    assert [(each.at, each.low, each.high) for each in shown] == [
        (40.0, 10.0, 70.0),
        (50.0, None, None),
        (None,) * 3,
    ]


def test_names_are_escaped(fake, tmp_path):
    """A run or task named like a tag stays text."""
    rows = [fake.graded_row(task, 0, model) for task in range(2) for model in ("one", "<i>two")]
    data, report = (
        comparison(x=metric(-0.1, 0.1), y=metric(0, 1, difference=0.1, verdict=None)),
        fake.make_report(rows),
    )
    pages = []
    for _ in range(2):
        (path,) = HtmlReporter().write_comparison(data, report, tmp_path)
        pages.append(Page(path.read_text(encoding="utf-8")))
    assert pages[0].html == pages[1].html
    assert pages[0].open == []
    assert "<i>two against one" in pages[0].text
    assert (
        "0.500 → 0.600 +0.100 no test 0.000 to 1.000 2 better, 1 worse, 0 the same of 3 tasks"
        in pages[0].text
    )
    assert "<i>two" not in pages[0].html
    assert [json.loads(line) for line in carried(pages[0].html, "chunk1").splitlines()] == rows


def test_a_page_that_breaks_costs_itself_alone(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(
            '{"id": "1", "expected": [], "predicted": []}\n', encoding="utf-8"
        )
    monkeypatch.setattr(HtmlReporter, "comparison", lambda *_: 1 / 0)
    with pytest.raises(gradestack.PluginError, match=r"reporter html.*ZeroDivisionError"):
        gradestack.compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", output=tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "comparison.json",
        "comparison.md",
    ]

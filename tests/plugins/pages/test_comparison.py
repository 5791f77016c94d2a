"""The page of a comparison."""

import json

import pytest

import gradestack
from gradestack_plugins.pages.comparison import differences
from gradestack_plugins.pages.html import HtmlReporter
from tests.placed import carried
from tests.plugins.pages.conftest import Page


def metric(low, high, *, same=0, difference=0.0, verdict="no evidence", share=True):
    ends = None if low is None else [low, high]
    return {
        "a": 0.5,
        "b": 0.5 + difference,
        "difference": difference,
        "better": 2,
        "worse": 1,
        "same": same,
        "tasks": 3 + same,
        "interval": {"confidence": 0.95, "ends": ends, "reason": None},
        "p_holm": 0.5,
        "mde80": None,
        "verdict": verdict,
        "label": "Right",
        "path": "x",
        "unit": "score",
        "share": share,
    }


def comparison(**metrics):
    run = {"model": None, "tasks": 3, "trials": 2}
    tasks = [{"task": "<b>", "a": "2/2", "b": "0/2"}, {"task": "2", "a": "0/2", "b": "1/2"}]
    flips = {"fixed": 1, "broken": 2, "count": 2, "tasks": tasks}
    return {
        "runs": [{**run, "name": "one"}, {**run, "name": "<i>two"}],
        "failed": "zero",
        "incomparable": [],
        "sentence": "no evidence",
        "headline": "x",
        "metrics": metrics,
        "changed": {"reasons": [], "tools": [], "arguments": []},
        "flips": flips,
    }


def test_differences_share_an_axis_around_zero():
    """Of shares alone: seconds and counts are no distance on it."""
    rows = {"x": metric(-0.4, 0.2, difference=-0.1), "y": metric(None, None), "z": metric(-4, 2, share=False)}
    shown = differences({"metrics": rows}, 0.5)
    assert [(each.at, each.low, each.high) for each in shown] == [(40.0, 10.0, 70.0), (50.0, None, None), (None,) * 3]


def test_names_are_escaped(fake, tmp_path):
    """A run or task named like a tag stays text."""
    rows = [fake.graded_row(task, 0, model) for task in range(2) for model in ("one", "<i>two")]
    data, report = comparison(x=metric(-0.1, 0.1), y=metric(0, 1, difference=0.1, verdict=None)), fake.make_report(rows)
    pages = []
    for _ in range(2):
        (path,) = HtmlReporter().write_comparison(data, report, tmp_path)
        pages.append(Page(path.read_text(encoding="utf-8")))
    assert pages[0].html == pages[1].html
    assert pages[0].open == []
    assert "<i>two against one" in pages[0].text
    assert "0.500 → 0.600 +0.100 no test 0.000 to 1.000 2 better, 1 worse, 0 the same of 3 tasks" in pages[0].text
    assert "<i>two" not in pages[0].html
    assert [json.loads(line) for line in carried(pages[0].html, "chunk1").splitlines()] == rows


def test_a_page_that_breaks_costs_itself_alone(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text('{"id": "1", "expected": [], "predicted": []}\n', encoding="utf-8")
    monkeypatch.setattr(HtmlReporter, "comparison", lambda *_: 1 / 0)
    with pytest.raises(gradestack.PluginError, match=r"reporter html.*ZeroDivisionError"):
        gradestack.compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", output=tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["comparison.json", "comparison.md"]

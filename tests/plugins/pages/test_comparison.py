"""The page of a comparison."""

import pytest

import gradestack
from gradestack_plugins.pages.html import HtmlReporter


def test_a_page_that_breaks_costs_itself_alone(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(
            '{"id": "1", "expected": [], "predicted": []}\n', encoding="utf-8"
        )
    monkeypatch.setattr(HtmlReporter, "comparison", lambda *_: 1 / 0)
    with pytest.raises(gradestack.PluginError, match=r"reporter html.*ZeroDivisionError"):
        gradestack.compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", output=tmp_path / "out")
    out_folder = tmp_path / "out"
    paths = out_folder.iterdir()
    names = sorted(path.name for path in paths)
    assert names == [
        "comparison.json",
        "comparison.md",
    ]

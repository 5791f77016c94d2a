"""The index of runs: each against the run before, and figures over time."""

import re

import pytest

import gradestack
from gradestack_plugins.pages.runs import add_changes, folder_of, runs_page, write_index
from tests.core.outcomes import read_json

TIMES = iter(f"2031-01-01T00:{minute:02}:00+00:00" for minute in range(60))


@pytest.fixture
def runs(tmp_path):
    """Return a function that grades models with so many right answers of twelve, a minute later."""

    def grade(name, suite="s", **right):
        samples = []
        for model, count in right.items():
            for task in range(12):
                predicted = "x" if task < count else "y"
                samples.append(
                    {"id": f"t{task}", "model": model, "expected": "x"} | {"predicted": predicted}
                )
        runs_folder = tmp_path / "runs"
        out = runs_folder / name
        gate = {"metric_key": "g", "op": "gte", "value": 0.5}
        gradestack.grade(samples, graders={"g": "exact_match"}, output=out, name=suite, gate=gate)
        path = out / "header.json"
        header = read_json(path)
        text = gradestack.jsonio.dumps({**header, "timestamp": next(TIMES)})
        header_path = out / "header.json"
        header_path.write_text(text)

    return grade


def changes_of(folder):
    changes = {}
    for run in folder.runs:
        for line in run.lines:
            changes[(run.path, line.model)] = line.change and (
                line.change.text,
                line.change.verdict,
            )
    return changes


def test_each_run_is_compared_with_the_one_before_of_its_suite(runs, tmp_path):
    runs("a", m=3)
    runs("other", suite="another", m=0)
    runs("b", m=11)
    runs("c", m=10)
    runs_folder = tmp_path / "runs"
    folder = folder_of(runs_folder)
    root = tmp_path / "runs"
    add_changes(folder, root)
    changes = changes_of(folder)
    assert changes == {
        ("a", ""): None,
        ("other", ""): None,
        ("b", ""): ("+66.7 points", "better"),
        ("c", ""): ("-8.3 points", "not clear"),
    }
    path = tmp_path / "runs"
    write_index(folder, path)
    index_path = tmp_path / "runs/index.html"
    page = index_path.read_text()
    assert '<b class="good">+66.7 points</b>' in page
    assert "Against the one before" in page


def test_models_are_compared_with_the_same_model_before(runs, tmp_path):
    runs("a", m=2, n=6)
    runs("b", m=11, n=6)
    runs_folder = tmp_path / "runs"
    folder = folder_of(runs_folder)
    root = tmp_path / "runs"
    add_changes(folder, root)
    change = changes_of(folder)["b", "m"]
    assert change == ("+75.0 points", "better")
    changes = changes_of(folder)
    assert changes["b", "n"] == ("0.0 points", "same")


def test_runs_that_cannot_be_compared_have_no_difference(runs, tmp_path):
    runs("a", m=2)
    runs("b", m=9)
    (tmp_path / "runs/a/results.jsonl").unlink()
    runs_folder = tmp_path / "runs"
    folder = folder_of(runs_folder)
    root = tmp_path / "runs"
    add_changes(folder, root)
    changes = changes_of(folder)
    change = changes["b", ""]
    assert change is None
    assert "Against the one before" not in runs_page(folder)


def test_a_trend_names_the_run_and_value_of_every_point_and_draws_the_threshold(runs, tmp_path):
    runs("a", m=3)
    runs("b", m=9)
    runs_folder = tmp_path / "runs"
    folder = folder_of(runs_folder)
    page = runs_page(folder)
    names = re.findall(r'<g class="pt" tabindex="0" role="img" aria-label="([^"]+)"', page)
    assert [name.partition(" (")[0] for name in names[:2]] == ["a: 25.0%", "b: 75.0%"]
    matches = re.findall(r'<line class="asked" x1="0%" x2="100%" y1="([\d.]+)%"', page)
    (line,) = set(matches)
    assert 0 <= float(line) <= 100
    assert "dashed: gate: at least 50%" in page or "dashed: gate: ≥ 50%" in page

"""The marks pages are made of, each beside its golden picture in ``marks/``.

Open one in a browser to see it.

A mark that is meant to look otherwise gets a new picture by
``python tests/plugins/pages/test_marks.py``.
"""

import re
from pathlib import Path
from types import SimpleNamespace as Of

import pytest

from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.draw import draw_block
from gradestack_plugins.pages.environment import asset, environment
from gradestack_plugins.pages.index import ScoreBins

GOLDEN = Path(__file__).with_name("marks")
HOSTILE = "<b>&\"'"


def _one(block):
    (drawn_block,) = draw_block(block)
    return drawn_block


def _marks():
    interval = blocks.Interval(
        [blocks.Figure(HOSTILE, 0.5, (0.25, 0.75)), blocks.Figure("bare", 1)]
    )
    estimates = _one(interval).rows
    scores = ScoreBins(counts=[4, 0, 1, 2, 3, 6], below=1, above=2)
    distribution = blocks.Distribution({HOSTILE: [0.1, 0.1, 0.5], "others": [1.0]}, "t")
    opposed = _one(distribution).chart
    node = blocks.Node
    graph = blocks.Graph(
        [node(HOSTILE), node("b", [HOSTILE], ["x"])], made=[node("b"), node("c", ["b"])]
    )
    pair = _one(graph).sides
    models = []
    for at, low in ((50.0, 10.0), (None, None)):
        models.append(Of(model=HOSTILE, value="0.5", at=at, low=low, high=90.0))
    difference_line = blocks.DifferenceLine(
        HOSTILE, "1% → 2%", "+1.0", "0.5 to 1.5 points", "", "", 0.01, (0.005, 0.015)
    )
    lines = [
        difference_line,
        blocks.DifferenceLine("none", "n/a", "n/a", "one task"),
    ]
    differences = _one(blocks.Differences(lines))
    shares = {}
    for k in (1, 2, 4):
        shares[k] = blocks.Figure("", 1 / k, (0.5 / k, 1.0), unit="share")
    block = blocks.Curve({HOSTILE: shares, "none": {1: blocks.Figure("", None)}}, HOSTILE)
    curve = _one(block)
    figure = blocks.Figure("a", 0.42)
    sides = (figure, blocks.Figure(HOSTILE, 0.51))
    paired_difference = blocks.PairedDifference(
        HOSTILE, *sides, 0.09, (0.04, 0.14), "better", 0.0006
    )
    paired = _one(paired_difference)
    change = blocks.TaskChange(HOSTILE, HOSTILE, 3, 2, 4)
    task_group = blocks.TaskGroup("1 got worse", [change], "bad")
    dumbbells = blocks.Dumbbells([task_group], "a", "b")
    bells = _one(dumbbells)
    labelled = scores.labelled()
    counts = blocks.Counts(labelled, HOSTILE)
    histogram = [(_one(counts),)]
    first_group = bells.groups[0]
    first_task = first_group.tasks[0]
    bell = [(first_task,)]
    dot = [(estimates[0],), (estimates[1],)]
    together = [(Of(title="F1", rows=models),)]
    estimate = [(estimates[0],), (estimates[1],)]
    trend = [
        (
            Of(
                about=HOSTILE,
                points=[(0, 60.0, 20.0, 90.0), (50, 50.0, None, None), (100, 40.0, 30.0, 70.0)],
            ),
        )
    ]
    difference = [(line, differences.ticks) for line in differences.lines]
    return {
        "paired": [(paired,)],
        "bell": bell,
        "curve": [(curve,)],
        "scale": [(50.0, 25.0, 110.0, 80.0, HOSTILE), (None,)],
        "dot": dot,
        "histogram": histogram,
        "together": together,
        "estimate": estimate,
        "opposed": [(opposed,), (opposed, True)],
        "parts": [([("fill-good", 0, 40), ("fill-bad", 40, 35.5), ("fill-absent", 75.5, 0)],)],
        "bar": [(40.5,)],
        "graph": [(arguments,) for arguments in pair],
        "trend": trend,
        "difference": difference,
        "scale_of": [(differences.ticks,)],
    }


def _picture(env, name):
    marks = env.get_template("_marks.html").module
    mark = _marks()[name]
    drawings = "\n".join(f"<div>\n{getattr(marks, name)(*arguments)}\n</div>" for arguments in mark)
    return (
        '<!doctype html>\n<meta charset="utf-8">\n<link rel="stylesheet" '
        f'href="{STYLE}">\n{drawings}\n'
    )


STYLE = "../../../../templates/gradestack_templates/report.css"


@pytest.mark.parametrize("name", _marks())
def test_a_mark_looks_as_its_golden_picture(name):
    text = _picture(environment(), name)
    expected = (GOLDEN / f"{name}.html").read_text(encoding="utf-8")
    assert text == expected
    assert HOSTILE not in text


def test_every_mark_has_a_picture():
    text = str(asset(environment(), "_marks.html"))
    matches = re.findall(r"{% macro (\w+)\(", text)
    names = set(matches)
    marks = set(_marks())
    assert names == marks == {path.stem for path in GOLDEN.iterdir()}
    expected = set(re.findall(r"^    (\w+)\(", text, re.MULTILINE))
    assert names == expected


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for each in _marks():
        (GOLDEN / f"{each}.html").write_text(_picture(environment(), each), encoding="utf-8")

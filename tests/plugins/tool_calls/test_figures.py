"""Figures over many runs: precision, recall, F1, verdicts, by tool and by argument."""

import pytest

import gradestack
from gradestack import Expectation, ExpectedCall, Sample, ToolCall
from gradestack_plugins.tool_calls.grader import ToolCalls


def sample(name, expected, made):
    """Return a sample of calls given as (name, arguments)."""
    calls = tuple(ExpectedCall(name=tool, arguments=arguments) for tool, arguments in expected)
    expectation = Expectation(calls=calls)
    tool_calls = tuple(ToolCall(name=tool, arguments=arguments) for tool, arguments in made)
    return Sample(
        id=name,
        expected=expectation,
        calls=tool_calls,
    )


RUNS = [
    sample("a", [("f", {"x": 1, "y": [1, 2]})], [("f", {"x": 1, "y": [1, 2]})]),
    sample(
        "b",
        [("f", {"x": 1, "y": [1, 2]}), ("g", {})],
        [("f", {"x": 2, "y": [1, 2]}), ("h", {"z": 1})],
    ),
    sample("c", [("g", {})], []),
    sample("d", [], []),
]


def figures(runs, **options):
    grader = ToolCalls(**options)
    rows = []
    for run in runs:
        rows.append((run.id, None, None, grader.grade(run)))
    return gradestack.figures({"call_figures": {}}, rows)["call_figures"]


def test_figures_by_hand():
    """Sums over all calls, means over samples, and verdicts."""
    figures_found = figures(RUNS)
    credit = 1 + 2 / 3
    macro_precision = (1 + 1 / 3 + 0 + 1) / 4
    macro_recall = (1 + 1 / 3 + 0 + 1) / 4
    macro_f1 = (1 + 1 / 3 + 0 + 1) / 4
    macro_argument_precision = (1 + 2 / 4) / 2
    macro_argument_recall = (1 + 2 / 3) / 2
    macro_argument_f1 = (1 + 4 / 7) / 2
    verdict_rate = 2 / 4
    precision = credit / 3
    recall = credit / 4
    argument_precision = 5 / 7
    argument_recall = 5 / 6
    argument_f1 = 10 / 13
    wanted = {
        "verdict_rate": verdict_rate,
        "precision": precision,
        "recall": recall,
        "f1": 2 * credit / 7,
        "macro_precision": macro_precision,
        "macro_recall": macro_recall,
        "macro_f1": macro_f1,
        "argument_precision": argument_precision,
        "argument_recall": argument_recall,
        "argument_f1": argument_f1,
        "macro_argument_precision": macro_argument_precision,
        "macro_argument_recall": macro_argument_recall,
        "macro_argument_f1": macro_argument_f1,
    }
    expected = {name: pytest.approx(value) for name, value in wanted.items()}
    assert {name: figures_found[name] for name in wanted} == expected
    assert figures_found["n"] == figures_found["clusters"] == 4
    assert all(
        0 <= figures_found[f"{name}_interval"]["low"] <= figures_found[name]
        for name in ("f1", "verdict_rate")
    )


def test_figures_of_published_rules():
    """Presets have verdicts, and the figures their program gives.

    The rest is null, with the reason.
    """
    runs = RUNS[:3]
    azure = figures(runs, preset="azure/f1")
    assert azure["macro_precision"] == pytest.approx(1 / 3)
    assert azure["macro_recall"] == pytest.approx(1 / 3)
    assert azure["verdict_rate"] is None
    assert azure["f1"] is None
    undefined = set(azure["undefined"])
    assert {"verdict_rate", "f1"} <= undefined
    verdict_rate = figures(RUNS, preset="adk/exact")["verdict_rate"]
    assert verdict_rate == 0.5
    states = figures(RUNS, preset="azure/exact_match")["states"]
    assert states == {"failed": 1, "graded": 3}


def test_names_may_be_made_of_anything():
    """Tools and arguments whose names are no UTF-8, or look like places in a list."""
    odd = sample(
        "u", [("a\ud800", {"\ud800": 1, "7": [1]})], [("a\ud800", {"\ud800": 2, "7": [1]})]
    )
    tools = figures([odd])["tools"]
    arguments = tools["a\ud800"]["arguments"]
    right, wrong = (
        {"right": 0, "wrong": 0, "missing": 0, "unknown": 0, fate: 1} for fate in ("right", "wrong")
    )
    assert arguments == {"/*/*": right, "/\ud800": wrong}

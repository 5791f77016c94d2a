"""What families show on pages: sound panels, on their own examples and nowhere else."""

import json
from pathlib import Path

import pytest
from markupsafe import escape

import gradestack
from gradestack_plugins.judges.journal import Reply
from gradestack_plugins.judges.session import judge
from gradestack_plugins.orchestrationbench.panels import plans
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.panel import panels_of
from gradestack_plugins.pages.testing import check_panel
from tests.placed import carried

EXAMPLES = Path(__file__).parents[2] / "examples"
PANELS = {
    f"{each.plugin}.{each.name}": each.panel
    for each in panels_of(gradestack.discover(limit="")).placed
}
SHOWN = {
    "airline": {
        "tau_bench.reliability",
        "reporters.statements",
        "statistics.graders_agree",
    },
    "deepfabric": {"deepfabric.readiness", "reporters.statements"},
    "orchestration": {
        "orchestrationbench.decisions",
        "orchestrationbench.plans",
        "reporters.statements",
    },
    "quickstart": {"tau_bench.reliability", "reporters.statements"},
    "stability": {"stability.stability", "reporters.programs"},
    "when2call": {"when2call.classes"},
    "presets": {"tool_calls.other_tools"},
    "judges": {"text_graders.judges"},
    "sessions": {"sessions.sessions", "statistics.graders_agree"},
    "categories": {"bfcl.categories"},
}
PRESETS = """
name: presets
target: {paths: [runs.jsonl]}
graders:
  own: {kind: tool_calls, preset: documented}
  strict: {kind: tool_calls, preset: adk/exact}
  loose: {kind: tool_calls, preset: adk/any_order/names}
outcome: own
"""
JUDGED = """
name: judges
target: {paths: [runs.jsonl]}
graders: {helpful: {kind: judged, rubric: rubric.yaml, judgements: judgements.jsonl, labels: labels.csv}}
"""
CATEGORIES = """
name: categories
target: {paths: [valid.jsonl]}
graders: {valid: {kind: recorded, metric: valid}}
metrics: {categories: {kind: bfcl_categories, of: valid}}
"""
VALID = """
{"id": "a", "facets": {"category": "simple_python"}, "recorded": {"valid": true}, "predicted": []}
{"id": "b", "facets": {"category": "parallel"}, "recorded": {"valid": false}, "predicted": []}
"""
CALLS = """
{"id": "a", "expected": [{"name": "f", "arguments": {"x": 1}}], "predicted": [{"name": "f", "arguments": {"x": 2}}]}
{"id": "b", "expected": [{"name": "f", "arguments": {}}], "predicted": [{"name": "f", "arguments": {}}]}
"""


def suites_in(own):
    """Write two suites into a folder; return all suites by what they are of."""
    (own / "suite.yaml").write_text(PRESETS, encoding="utf-8")
    (own / "runs.jsonl").write_text(CALLS.lstrip(), encoding="utf-8")
    (own / "judged.yaml").write_text(JUDGED, encoding="utf-8")
    (own / "categories.yaml").write_text(CATEGORIES, encoding="utf-8")
    (own / "valid.jsonl").write_text(VALID.lstrip(), encoding="utf-8")
    (own / "rubric.yaml").write_text(
        "criteria: {good: It is good.}\njudge: {model: m}", encoding="utf-8"
    )
    (own / "labels.csv").write_text("id,label\na,pass\nb,fail\n", encoding="utf-8")
    judge(own / "judged.yaml", ask=all_pass)
    suites = {"presets": own / "suite.yaml"}
    suites |= {"judges": own / "judged.yaml", "categories": own / "categories.yaml"}
    return {name: suites.get(name, EXAMPLES / name / "suite.yaml") for name in SHOWN}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out, places = tmp_path_factory.mktemp("runs"), suites_in(tmp_path_factory.mktemp("presets"))
    overrides = {"stability": ["profile=upstream"]}
    return {
        name: gradestack.run(suite, output=out / name, overrides=overrides.get(name, ()))
        for name, suite in places.items()
    }


def all_pass(_, todo, record):
    for request, vote in todo:
        verdict = {"good": {"reason": "<b>Sure.</b>", "verdict": "pass"}}
        content = json.dumps({"check": request.messages[0]["content"][-8:], "criteria": verdict})
        record(request, vote, Reply(content=content), "plain", [])
    return ""


def test_every_panel_has_an_example():
    """So that each is looked at below."""
    assert set().union(*SHOWN.values()) == PANELS.keys()


@pytest.mark.parametrize("example", SHOWN)
def test_each_stands_on_the_pages_of_its_family_alone(runs, example):
    """The overview has the family's panels, and nothing of another one."""
    page = (runs[example].path / "report.html").read_text(encoding="utf-8")
    for key, panel in PANELS.items():
        title = f">{escape(panel.title)}</h"
        assert (title in page + carried(page)) == (key in SHOWN[example]), key


@pytest.mark.parametrize(
    ("example", "key"), [(name, key) for name, keys in SHOWN.items() for key in sorted(keys)]
)
def test_each_is_sound(runs, example, key):
    """The conformance kit says so; axe-core looks at whole pages elsewhere."""
    check_panel(PANELS[key], runs[example])


def test_where_a_judge_and_people_disagree_is_listed_with_the_reason(runs):
    words, _, matrix, _, apart = PANELS["text_graders.judges"](runs["judges"])
    assert "uncalibrated: 2 labels, floor 50" in words.text
    assert matrix.values == [[1, 1], [0, 0]]
    assert apart.rows == {"1. b": [blocks.Link("pass / fail", position=1), "good: <b>Sure.</b>"]}


def test_the_figures_of_panels_are_those_of_the_summary(runs):
    """Value and interval of each, and the reason where there is none."""
    held = runs["when2call"].aggregates["label"]["classification"]
    matrix, figures = PANELS["when2call.classes"](runs["when2call"])
    assert (list(matrix.rows), matrix.columns[-1]) == (held["labels"], "invalid")
    for row, values in zip(matrix.rows, matrix.values, strict=True):
        assert dict(zip(matrix.columns, values, strict=True)) == held["confusion_matrix"][row]
    (direct,) = (each for each in figures.figures if each.label == "direct")
    interval = held["per_class"]["direct"]["f1_interval"]
    assert direct == blocks.Figure("direct", 0.5, (interval["low"], interval["high"]), "2 samples")
    hat, at, tasks = PANELS["tau_bench.reliability"](runs["airline"])
    held = runs["airline"].aggregates["reward"]
    assert {str(k): each.value for k, each in hat.points.items()} == held["pass_hat_k"][
        "pass_hat_k"
    ]
    assert at.points[4].interval[1] == held["pass_at_k"]["pass_at_k_interval"]["4"]["high"] == 1
    assert tasks.counts == held["pass_hat_k"]["tasks_by_successes"]


def test_reliability_of_several_models_stands_apart():
    """Each has its own curves; a model that was run once has none."""
    metrics = {"pass_hat_k": {"1": 0.5, "2": 0.25}, "tasks_by_successes": {"0": 1}}
    held = {"pass_hat_k": {"models": {"a": metrics, "b": {"pass_hat_k": {"1": 0.5}}}}}
    report = gradestack.Report(
        path=None,
        header={},
        summary={"outcome": {"grader": "g"}, "metrics": {"aggregates": {"g": held}}},
    )
    (section,) = PANELS["tau_bench.reliability"](report)
    assert section.title == "a"
    curve, tasks = section.blocks
    assert {k: each.value for k, each in curve.points.items()} == {1: 0.5, 2: 0.25}
    assert tasks.counts == {"0": 1}


def test_a_figure_is_read_with_its_interval():
    """Where there is none, or no value, its note is the reason that the metrics give."""
    metrics = {
        "a": 1,
        "a_interval": {"reason": "one task"},
        "b": None,
        "undefined": {"b": "no trial"},
    }
    assert blocks.figure_of("A", metrics, "a") == blocks.Figure("A", 1, None, "one task")
    assert blocks.figure_of("A", metrics, "a", "of 3") == blocks.Figure("A", 1, None, "of 3")
    assert blocks.figure_of("B", metrics, "b") == blocks.Figure("B", None, None, "no trial")
    assert blocks.figure_of("C", metrics, "c") == blocks.Figure("C", None)


@pytest.mark.parametrize(
    "gold", [None, "text", {}, {"a": {"steps": []}}, {"a": {"depends_on": "b"}}, [], {"a": []}]
)
def test_only_plans_that_are_graphs_are_drawn(gold):
    """Objects of nodes that say what they depend on.

    Beside an unreadable plan the expected one stands alone.
    """
    node = {"steps": ["look"], "depends_on": ["b", "a"]}

    def shown(gold, made):
        item = {"id": "3", "metadata": {"gold": gold, "predicted": made}}
        return list(plans({"grades": {"plan": {"items": [item]}}}))

    assert shown(gold, {"a": node}) == []
    (graph,) = shown({"a": node}, gold)
    assert (graph.title, list(graph.made)) == ("Step 3", [])
    assert graph.nodes == [blocks.Node("a", ["b", "a"], ["look"])]

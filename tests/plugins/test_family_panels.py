"""Panels of families on pages: sound ones, on their own examples and nowhere else."""

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
    f"{bar.plugin}.{bar.name}": bar.panel for bar in panels_of(gradestack.discover(limit="")).placed
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
    "quickstart": {"reporters.statements"},
    "letta": {"letta.results", "statistics.graders_agree"},
    "answers": {"text_graders.answers"},
    "stability": {"stability.stability", "reporters.programs"},
    "when2call": {"when2call.classes"},
    "presets": {"tool_calls.other_tools"},
    "judges": {"text_graders.judges"},
    "sessions": {"sessions.sessions", "statistics.graders_agree", "trajectory.tool_errors"},
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
graders:
  helpful:
    {kind: judged, rubric: rubric.yaml, judgements: judgements.jsonl, labels: labels.csv}
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
EXPECTED_CALL = {"name": "f", "arguments": {"x": 1}}
WRONG_CALL = {"name": "f", "arguments": {"x": 2}}
CALL_WITHOUT_ARGUMENTS = {"name": "f", "arguments": {}}
CALLS = [
    {"id": "a", "expected": [EXPECTED_CALL], "predicted": [WRONG_CALL]},
    {"id": "b", "expected": [CALL_WITHOUT_ARGUMENTS], "predicted": [CALL_WITHOUT_ARGUMENTS]},
]


ANSWERS = """
name: answers
target: {paths: [answers.jsonl]}
graders: {text: {kind: exact_match}}
"""
TEXTS = """
{"id": "a", "input": "Breakfast until?", "expected": "10:00", "predicted": "10:30"}
{"id": "b", "input": "Gym?", "expected": "yes", "predicted": "yes"}
"""


def suites_in(folders):
    """Write two suites into a folder; return all suites by what they are of."""
    suite_path = folders / "suite.yaml"
    suite_path.write_text(PRESETS, encoding="utf-8")
    lines = [json.dumps(record) for record in CALLS]
    runs_path = folders / "runs.jsonl"
    runs_path.write_text("\n".join(lines), encoding="utf-8")
    judged_path = folders / "judged.yaml"
    judged_path.write_text(JUDGED, encoding="utf-8")
    categories_path = folders / "categories.yaml"
    categories_path.write_text(CATEGORIES, encoding="utf-8")
    valid_path = folders / "valid.jsonl"
    valid = VALID.lstrip()
    valid_path.write_text(valid, encoding="utf-8")
    rubric_path = folders / "rubric.yaml"
    rubric_path.write_text("criteria: {good: It is good.}\njudge: {model: m}", encoding="utf-8")
    labels_path = folders / "labels.csv"
    labels_path.write_text("id,label\na,pass\nb,fail\n", encoding="utf-8")
    judge(folders / "judged.yaml", ask=all_pass)
    answers_path = folders / "answers.yaml"
    answers_path.write_text(ANSWERS, encoding="utf-8")
    texts = TEXTS.lstrip()
    (folders / "answers.jsonl").write_text(texts, encoding="utf-8")
    presets = folders / "suite.yaml"
    answers = folders / "answers.yaml"
    suites = {"presets": presets, "answers": answers}
    judges = folders / "judged.yaml"
    categories = folders / "categories.yaml"
    suites |= {"judges": judges, "categories": categories}
    return {name: suites.get(name, EXAMPLES / name / "suite.yaml") for name in SHOWN}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    folders = tmp_path_factory.mktemp("presets")
    places = suites_in(folders)
    overrides = {"stability": ["profile=upstream"]}
    processes_by_name = {}
    for name, suite in places.items():
        output = out / name
        processes_by_name[name] = gradestack.run(
            suite, output=output, overrides=overrides.get(name, ())
        )
    return processes_by_name


def all_pass(_, todo, record):
    for request, vote in todo:
        verdict = {"good": {"reason": "<b>Sure.</b>", "verdict": "pass"}}
        first_message = request.messages[0]
        check = first_message["content"][-8:]
        content = json.dumps({"check": check, "criteria": verdict})
        reply = Reply(content=content)
        record(request, vote, reply, "plain", [])
    return ""


def test_every_panel_has_an_example():
    """So that each is looked at below."""
    keys = PANELS.keys()
    assert set().union(*SHOWN.values()) == keys


@pytest.mark.parametrize("example", SHOWN)
def test_each_stands_on_the_pages_of_its_family_alone(runs, example):
    """The overview has the family's panels, and nothing of another one."""
    report_path = runs[example].path / "report.html"
    page = report_path.read_text(encoding="utf-8")
    for key, panel in PANELS.items():
        title = f">{escape(panel.title)}</h"
        expected = page + carried(page)
        assert (title in expected) == (key in SHOWN[example]), key


@pytest.mark.parametrize(
    ("example", "key"), [(name, key) for name, keys in SHOWN.items() for key in sorted(keys)]
)
def test_each_is_sound(runs, example, key):
    """The conformance kit says so; axe-core looks at whole pages elsewhere."""
    check_panel(PANELS[key], runs[example])


def test_where_a_judge_and_people_disagree_is_listed_with_the_reason(runs):
    words, _, matrix, _, disagreements = PANELS["text_graders.judges"](runs["judges"])
    assert "uncalibrated: 2 labels, floor 50" in words.text
    assert matrix.values == [[1, 1], [0, 0]]
    link = blocks.Link("pass / fail", position=1)
    expected = {"1. b": [link, "good: <b>Sure.</b>"]}
    assert disagreements.rows == expected


def test_the_figures_of_panels_are_those_of_the_summary(runs):
    """Counts, rates and the values and intervals of curves."""
    label = runs["when2call"].aggregates["label"]
    figures = label["classification"]
    head, matrix, rates = PANELS["when2call.classes"](runs["when2call"])
    rows = list(matrix.rows)
    assert rows == figures["labels"]
    for row, values in zip(matrix.rows, matrix.values, strict=True):
        counts = figures["confusion_matrix"][row]
        pairs = dict(zip(matrix.columns, values, strict=True))
        counts_by_name = {name: counts[name] for name in matrix.columns}
        assert pairs == counts_by_name
        columns = set(matrix.columns)
        left_out = set(counts) - columns
        assert not any(counts[name] for name in left_out)
    assert rates.rows["direct"][-1] == "50.0%"
    expected_text = f"{100 * figures['accuracy']:.1f}%"
    assert head.sentence[1].text == expected_text
    (curve,) = PANELS["tau_bench.reliability"](runs["airline"])
    figures = runs["airline"].aggregates["reward"]
    every = curve.lines["every time"]
    once = curve.lines["at least once"]
    values = {str(k): value.value for k, value in every.items()}
    pass_hat_k = figures["pass_hat_k"]["pass_hat_k"]
    assert values == pass_hat_k
    pass_at_k_interval = figures["pass_at_k"]["pass_at_k_interval"]
    high = pass_at_k_interval["4"]["high"]
    assert once[4].interval[1] == high == 1


def test_reliability_of_several_models_stands_apart():
    """Each has its own curve; a model that was run once or twice has none."""
    metrics = {"pass_hat_k": {"1": 0.5, "2": 0.25, "3": 0.125}}
    figures = {"pass_hat_k": {"models": {"a": metrics, "b": {"pass_hat_k": {"1": 0.5, "2": 0.2}}}}}
    report = gradestack.Report(
        path=None,
        header={},
        summary={"outcome": {"grader": "g"}, "metrics": {"aggregates": {"g": figures}}},
    )
    (section,) = PANELS["tau_bench.reliability"](report)
    assert section.title == "a"
    (curve,) = section.blocks
    every_time = curve.lines["every time"]
    values = {k: value.value for k, value in every_time.items()}
    assert values == {1: 0.5, 2: 0.25, 3: 0.125}


def test_the_worst_answers_stand_beside_what_was_expected(runs):
    head, answers = PANELS["text_graders.answers"](runs["answers"])
    texts = []
    for part in head.sentence:
        texts.append(part if isinstance(part, str) else part.text)
    assert "".join(texts) == "1 of 2 answers are exactly right"
    first, second = answers.answers
    assert first.question.text == "Breakfast until?"
    assert first.expected == "10:00"
    assert first.given == "10:30"
    assert first.right is False
    assert second.right is True


def test_errors_of_tools_are_quoted_with_their_runs(runs):
    head, quotes = PANELS["trajectory.tool_errors"](runs["sessions"])
    rows = list(runs["sessions"].rows())
    failed = [row for row in rows if row["passed"] is False]
    expected_text = f"{len(failed)} of {len(rows)} runs"
    assert head.sentence[0].text == expected_text
    total = sum(quote.samples for quote in quotes.quotes)
    assert total == quotes.total == len(failed)
    for quote in quotes.quotes:
        examples = [rows[link.position] for link in quote.examples]
        assert all(row["passed"] is False for row in examples)


def test_the_runs_of_a_question_are_marked_by_its_expected_label(runs):
    report = runs["stability"]
    head, strips, _ = PANELS["stability.stability"](report)
    label = report.aggregates["label"]
    metrics = label["stability"]
    same, _, question = head.sentence[1].text.partition(" of ")
    stability_at_k = metrics["stability_at_k"]
    assert int(same) / int(question) == stability_at_k
    for strip in strips.strips:
        rows = report.rows()
        labels = [row for row in rows if row["sample"]["id"] == strip.task.text]
        rights = []
        for mark in strip.marks:
            if mark.right is not None:
                rights.append(mark.right)
        expected = []
        for row in labels:
            expected.append(row["grade"]["label"] == strip.expected)
        assert rights == expected
        mark_count = len(strip.marks)
        assert mark_count == metrics["k"]


def test_a_figure_is_read_with_its_interval():
    """Where there is none, or no value, its note is the reason that the metrics give."""
    metrics = {
        "a": 1,
        "a_interval": {"reason": "one task"},
        "b": None,
        "undefined": {"b": "no trial"},
    }
    figure = blocks.figure_of("A", metrics, "a")
    expected = blocks.Figure("A", 1, None, "one task")
    assert figure == expected
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
    assert graph.title == "Step 3"
    assert list(graph.made) == []
    expected = [blocks.Node("a", ["b", "a"], ["look"])]
    assert graph.nodes == expected

"""The results block: what a run is summed up by, states, and the first failure of every grader."""

import json

import pytest

from gradestack import Report
from gradestack.cli import console
from gradestack.cli.headline import share

METRICS = {
    "total": 4,
    "total_attempted": 3,
    "avg_score_attempted": 0.8333,
    "avg_score_total": 0.625,
    "passed_attempts": 2,
    "by_metric": {"quality": {"avg_score_attempted": 0.8333}},
    "states": {"quality": {"graded": 3, "skipped": 1, "failed": 0, "missing": 0}},
    "per_model": None,
}
OUTCOME = {
    "grader": "quality",
    "rule": "verdict of quality",
    "words": {"passed": "solved", "failed": "not solved"},
    "passed": 1,
    "failed": 2,
    "per_model": None,
}
SUMMARY = {
    "metrics": METRICS,
    "gates": [],
    "bad_records": {"count": 0, "listed": []},
    "warnings": [],
    "gates_passed": None,
    "outcome": OUTCOME,
    "pass_rule": "quality score >= 0.5",
    "headline": {"letta": False, "figures": []},
    "failures": {},
}
LETTA = [
    "Results:",
    "  Total samples: 4",
    "  Attempted: 3",
    "  Avg score: 0.62 (attempted: 0.83)",
    "  Passed: 2 (66.7%)",
    "  Passed means: quality score >= 0.5, of 3 attempted",
]


SURE = {"low": 0.25, "high": 0.75, "confidence": 0.95, "method": "logit_t"}


def shown(*figures, header=None, **changes):
    headline = {"letta": False, "figures": list(figures)}
    report = Report(path=None, header=header or {}, summary=SUMMARY | {"headline": headline} | changes)
    return console.results(report).splitlines()[2:]


def test_success_says_its_rule_and_of_how_many():
    assert shown() == [
        "Results:",
        "  Solved: 1 of 3 (33.3%); rule: verdict of quality",
        "",
        "By grader:",
        "  quality  avg 0.83  graded 3, 1 skipped",
    ]
    assert "  Solved: 0 of 0; rule: verdict of quality" in shown(outcome=OUTCOME | {"passed": 0, "failed": 0})
    assert shown(outcome=None)[:3] == ["Results:", "", "By grader:"]


@pytest.mark.parametrize(
    ("figure", "line"),
    [
        ({"value": 0.8289}, "Plan: 0.829"),
        ({"value": 3}, "Plan: 3"),
        ({"value": None, "reason": "no gold plan"}, "Plan: n/a (no gold plan)"),
        (
            {"value": 0.5, "interval": {"low": 0.25, "high": 0.75, "confidence": 0.95}},
            "Plan: 0.500 (95% interval 0.250 to 0.750)",
        ),
        (
            {"value": 0.5, "interval": {"low": 0.25, "high": 0.75}},
            "Plan: 0.500 (interval of unknown confidence 0.250 to 0.750)",
        ),
        ({"value": 0.5, "interval": {"reason": "one task"}}, "Plan: 0.500 (no interval: one task)"),
        (
            {"value": 0.5, "interval": SURE | {"n": 200, "clusters": 50}},
            "Plan: 0.500 (95% interval 0.250 to 0.750; logit t, 50 tasks x 4)",
        ),
        (
            {"value": 0.5, "interval": SURE | {"n": 63, "clusters": 50}},
            "Plan: 0.500 (95% interval 0.250 to 0.750; logit t, 50 tasks, n = 63)",
        ),
        ({"value": {"1": 0.5, "2": None}}, "Plan: 1: 0.500, 2: n/a"),
        (
            {"value": {"1": 0.5, "2": 0.25}, "interval": {"2": {"low": 0.0, "high": 0.5, "confidence": 0.9}}},
            "Plan: 1: 0.500, 2: 0.250 (90% interval 0.000 to 0.500)",
        ),
        ({"value": {str(k): 1 / k for k in range(1, 17)}}, "Plan: 1: 1.000, …, 16: 0.062"),
    ],
)
def test_figures_of_the_headline(figure, line):
    assert shown({"label": "Plan", "figure": "a.b.c", **figure})[2] == f"  {line}"


def test_figures_of_several_models_have_a_line_each():
    models = {"strong": {"value": 0.75}, "": {"value": None, "reason": "no gold plan"}}
    lines = shown({"label": "Plan", "figure": "a.b.c", "value": None, "reason": "several", "models": models})
    assert lines[2:5] == ["  Plan:", "    strong   0.750", "    unnamed  n/a (no gold plan)"]


def test_models_are_told_in_the_words_of_the_run():
    row = {"total": 4, "total_attempted": 3, "avg_score_attempted": 0.5, "passed_samples": 2, "model_name": "m"}
    outcome = OUTCOME | {"per_model": [{"model_name": "m", "passed": 1, "failed": 2}]}
    line = "  m  attempted 3/4  avg 0.50"
    assert f"{line}  solved 1 of 3 (33.3%)" in shown(metrics=METRICS | {"per_model": [row]}, outcome=outcome)
    assert line in shown(metrics=METRICS | {"per_model": [row]}, outcome=None)
    letta = {"letta": True, "figures": []}
    assert f"{line}  passed 2 (66.7%)" in shown(metrics=METRICS | {"per_model": [row]}, headline=letta)


def test_the_block_of_letta_evals():
    lines = shown(headline={"letta": True, "figures": [{"label": "x", "value": 1}]})
    assert lines == [*LETTA, "  Score band: very good (an interpretation)"]


@pytest.mark.parametrize(
    ("score", "word"),
    [(1.0, "perfect"), (0.999, "very good"), (0.8, "very good"), (0.6, "good"), (0.4, "acceptable"), (0.2, "poor")],
)
def test_score_bands_include_their_lower_bound(score, word):
    headline, metrics = {"letta": True, "figures": []}, METRICS | {"avg_score_attempted": score}
    assert shown(headline=headline, metrics=metrics)[-1] == f"  Score band: {word} (an interpretation)"


def test_upstream_has_the_letta_block_and_the_headline():
    lines = shown({"label": "Plan", "figure": "a.b.c", "value": 0.5}, header={"profile": "upstream"})
    assert lines[:8] == [*LETTA, "  Solved: 1 of 3 (33.3%); rule: verdict of quality", "  Plan: 0.500"]


def test_the_first_failure_of_every_grader_is_told(command, here, write_lines, record):
    records = [record("a", 1.0), *(record(name, recorded={"do": "raise"}) for name in "bc")]
    write_lines(records, "odd.jsonl")
    said = command("grade", "odd.jsonl", "--grader", "toy", "-o", "out")
    assert (
        "  toy: 2 failed, first: ZeroDivisionError: cannot grade <object object> at odd.jsonl:2"
        in said.out.splitlines()
    )
    assert "  toy  avg 1.00  graded 1, 2 failed" in said.out.splitlines()
    kept = json.loads((here / "out/summary.json").read_text())["failures"]
    assert kept == {
        "toy": {"count": 2, "first": {"reason": "ZeroDivisionError: cannot grade <object object>", "at": "odd.jsonl:2"}}
    }
    said = command("grade", "odd.jsonl", "--grader", "toy", "-o", "out", "--rows", "none")
    assert "  toy: 2 failed" in said.out.splitlines()


def test_debug_adds_the_traceback(command, here, write_lines, record):
    write_lines([record("a", recorded={"do": "raise"})], "odd.jsonl")
    said = command("grade", "odd.jsonl", "--grader", "toy", "-o", "out", "--debug")
    assert "the first error of grader 'toy'" in said.err
    assert "Traceback" in said.err


def test_a_share_of_successes_says_how_sure_it_is():
    """By its interval, or why there is none; summaries of earlier versions say neither, and nothing has no share."""
    counts = {"passed": 1, "failed": 3}
    held = {"low": 0.1, "high": 0.45, "confidence": 0.95}
    assert share(counts | {"share_interval": held}) == "1 of 4 (25.0%; 95% interval 10.0 to 45.0%)"
    assert share(counts | {"share_interval": {"reason": "one task"}}) == "1 of 4 (25.0%; no interval: one task)"
    assert share(counts) == "1 of 4 (25.0%)"
    assert share({"passed": 0, "failed": 0, "share_interval": {"reason": "nothing graded"}}) == "0 of 0"

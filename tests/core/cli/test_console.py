"""Tests of the lines the command line prints about a run.

Progress, what it is summed up by, states, failures, and what is odd.
"""

import re

import pytest

from gradestack import Progress, Report
from gradestack.cli import progress
from gradestack.cli import results as console
from tests.core.outcomes import data, read_json

DATA = data(__file__, "console.yaml")


SUMMARY = DATA["summary"]
METRICS = SUMMARY["metrics"]
LETTA = SUMMARY | {"headline": {"letta": True, "figures": []}}


def results(summary, header=None):
    report = Report(path=None, header=header or {}, summary=summary)
    return console.results(report).splitlines()


def shown(*figures, header=None, **changes):
    headline = {"letta": False, "figures": list(figures)}
    summary = SUMMARY | {"headline": headline} | changes
    return results(summary, header)[2:]


def test_the_results_block_of_lettas_guide():
    gate = {"text": "quality >= 0.75", "outcome": "passed", "passed": True, "actual": 0.83}
    summary = LETTA | {"gates": [gate]}
    assert results(summary) == DATA["results_block_of_lettas_guide"]


def test_nothing_attempted_is_not_zero():
    empty = METRICS | {
        "total_attempted": 0,
        "avg_score_attempted": None,
        "avg_score_total": None,
        "passed_attempts": 0,
    }
    summary = LETTA | {"metrics": empty}
    lines = results(summary)
    assert "  Avg score: n/a (attempted: n/a)" in lines
    assert "  Passed: 0" in lines


def test_models_are_in_the_order_of_the_input_in_every_list():
    """The question's share of each model is before that of all."""
    models = ["weak", "able"]
    rows = [{"model_name": name, "total": 2, "total_attempted": 2} for name in models]
    rows = [row | {"avg_score_attempted": 0.5} for row in rows]
    shares = [{"model_name": name, "passed": 1, "failed": 1} for name in models]
    outcome = SUMMARY["outcome"] | {"share": 0.5, "passed": 2, "failed": 2, "per_model": shares}
    figure = {"label": "Plan", "figure": "a.b.c", "models": {}}
    figure["models"] = {name: {"value": 0.5} for name in sorted(models)}
    metrics = METRICS | {"per_model": rows}
    lines = shown(figure, metrics=metrics, outcome=outcome)
    start = lines.index("  Solved:")
    assert lines[start + 1 : start + 7] == [
        "    weak  1 of 2 (50.0%)",
        "    able  1 of 2 (50.0%)",
        "    of all models: 2 of 4 (50.0%); passed by grader quality",
        "  Plan:",
        "    weak  0.500",
        "    able  0.500",
    ]
    assert lines[-2:] == ["  weak  attempted 2/2  avg 0.50", "  able  attempted 2/2  avg 0.50"]


@pytest.mark.parametrize(("line", "figure"), data(__file__, "headline_figures.yaml").items())
def test_figures_of_the_headline(line, figure):
    assert shown({"label": "Plan", "figure": "a.b.c", **figure})[2] == f"  {line}"


@pytest.mark.parametrize(
    ("score", "word"),
    [
        (1.0, "perfect"),
        (0.999, "very good"),
        (0.8, "very good"),
        (0.6, "good"),
        (0.4, "acceptable"),
        (0.2, "poor"),
    ],
)
def test_score_bands_include_their_lower_bound(score, word):
    headline = {"letta": True, "figures": []}
    metrics = METRICS | {"avg_score_attempted": score}
    assert shown(headline=headline, metrics=metrics)[-1] == f"  Score band: {word}"


def test_the_first_failure_of_every_grader_is_told(command, here, write_lines, record):
    records = [record("a", 1.0), *(record(name, recorded={"do": "raise"}) for name in "bc")]
    write_lines(records, "odd.jsonl")
    result = command("grade", "odd.jsonl", "--grader", "toy", "-o", "out")
    first = (
        r"^  toy: 2 errors, first: ZeroDivisionError: cannot grade <object object> "
        r"\(\w+\.py:\d+\) at odd\.jsonl:2$"
    )
    assert re.search(first, result.out, re.MULTILINE)
    lines = result.out.splitlines()
    assert "  toy  avg 1.00  1 graded, 2 errors" in lines
    path = here / "out/summary.json"
    document = read_json(path)
    failures = document["failures"]
    assert failures == DATA["the_first_failure_of_every_grader_is_told"]
    result = command("grade", "odd.jsonl", "--grader", "toy", "-o", "out", "--rows", "none")
    assert "  toy: 2 errors" in result.out.splitlines()


def test_progress_away_from_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_PLAIN_EVERY", -1.0)
    with progress.show_progress("airline", quiet=False) as watch:
        watch(Progress(samples=64))
        watch(Progress(samples=6_700, states={"graded": 6_000, "skipped": 700}, bad=1))
        watch(Progress(samples=6_700, phase="pages"))
    printed = capsys.readouterr()
    assert printed.out == "Running evaluation: airline\n"
    lines = printed.err.splitlines()
    assert lines == DATA["progress_away_from_a_terminal"]


def test_rate_and_remaining_time(monkeypatch):
    """The rate is this attempt's alone, the remaining time goes by the share of the input in
    finished ranges.
    """
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    meter = progress.Meter()
    taken_up = Progress(samples=1_000, resumed=1_000, share=0.2)
    clock[0] = 5.0
    assert meter.line(taken_up) == "1,000 runs graded"
    clock[0] = 15.0  # ten seconds for another two tenths: three times ten seconds to go
    more = Progress(samples=2_000, resumed=1_000, share=0.4)
    assert meter.line(more) == "2,000 runs graded, 100/s, about 0:00:30 left"
    clock[0] = 25.0  # within the next range time goes on
    assert (
        meter.line(Progress(samples=2_500, resumed=1_000, share=0.4))
        == "2,500 runs graded, 75/s, about 0:00:20 left"
    )


def test_progress_when_quiet(capsys):
    with progress.show_progress("airline", quiet=True) as watch:
        watch(Progress(samples=64))
    assert capsys.readouterr() == ("", "")

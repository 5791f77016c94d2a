"""What the command line prints of a run.

Progress, what it is summed up by, states, failures, and what is odd.
"""

import json
import re

import pytest

from gradestack import Progress, Report
from gradestack.cli import console
from gradestack.cli.console import share
from tests.core.outcomes import data

DATA = data(__file__, "console.yaml")


METRICS = DATA["metrics"]
OUTCOME = DATA["outcome"]
SUMMARY = DATA["summary"]
LETTA = DATA["letta"]
OF_EARLIER_VERSIONS = {
    name: SUMMARY[name] for name in ("metrics", "gates", "bad_records", "warnings", "gates_passed")
}


def results(summary, header=None):
    return console.results(Report(path=None, header=header or {}, summary=summary)).splitlines()


def shown(*figures, header=None, **changes):
    return results(
        SUMMARY | {"headline": {"letta": False, "figures": list(figures)}} | changes, header
    )[2:]


def odd(**changes):
    return results(OF_EARLIER_VERSIONS | changes)


def test_the_results_block_of_earlier_versions():
    gate = {"text": "quality >= 0.75", "outcome": "passed", "value": 0.75, "actual": 0.8333}
    assert odd(gates=[gate]) == DATA["results_of_earlier_versions"]


def test_nothing_attempted_is_not_zero():
    empty = METRICS | {
        "total_attempted": 0,
        "avg_score_attempted": None,
        "avg_score_total": None,
        "passed_attempts": 0,
    }
    lines = odd(metrics=empty)
    assert "  Avg score: n/a (attempted: n/a)" in lines
    assert "  Passed: 0" in lines


def test_several_graders_have_a_line_each():
    metrics = METRICS | {
        "by_metric": {
            "quality": {"avg_score_attempted": 0.8333},
            "b": {"avg_score_attempted": None},
        },
        "states": METRICS["states"] | {"b": {"graded": 0, "skipped": 1, "failed": 2, "missing": 1}},
    }
    lines = odd(metrics=metrics)
    assert "  quality  avg 0.83  graded 3, 1 skipped" in lines
    assert "  b        avg n/a  graded 0, 1 skipped, 2 failed, 1 missing" in lines


def test_what_needs_attention_is_told():
    listed = [
        {"file": "f", "line": number or None, "ordinal": number, "reason": "bad\x1b[2J"}
        for number in range(5)
    ]
    lines = odd(
        bad_records={"count": 5, "listed": listed},
        warnings=["mind this"],
        incomplete="interrupted: x",
    )
    assert lines[-7:] == data(__file__, "console.yaml")["what_needs_attention_is_told"]


def test_success_says_its_rule_and_of_how_many():
    assert shown() == DATA["success_says_its_rule_and_of_how_many"]
    assert "  Solved: no result" in shown(outcome=OUTCOME | {"passed": 0, "failed": 0})
    assert shown(outcome=None)[:3] == ["Results:", "", "By grader:"]


@pytest.mark.parametrize(("line", "figure"), data(__file__, "headline_figures.yaml").items())
def test_figures_of_the_headline(line, figure):
    assert shown({"label": "Plan", "figure": "a.b.c", **figure})[2] == f"  {line}"


def test_figures_of_several_models_have_a_line_each():
    models = {"strong": {"value": 0.75}, "": {"value": None, "reason": "no gold plan"}}
    lines = shown(
        {"label": "Plan", "figure": "a.b.c", "value": None, "reason": "several", "models": models}
    )
    assert lines[2:5] == ["  Plan:", "    strong   0.750", "    unnamed  n/a (no gold plan)"]


def test_models_are_told_in_the_words_of_the_run():
    row = {
        "total": 4,
        "total_attempted": 3,
        "avg_score_attempted": 0.5,
        "passed_samples": 2,
        "model_name": "m",
    }
    outcome = OUTCOME | {"per_model": [{"model_name": "m", "passed": 1, "failed": 2}]}
    line = "  m  attempted 3/4  avg 0.50"
    assert f"{line}  solved 1 of 3 (33.3%)" in shown(
        metrics=METRICS | {"per_model": [row]}, outcome=outcome
    )
    assert line in shown(metrics=METRICS | {"per_model": [row]}, outcome=None)
    letta = {"letta": True, "figures": []}
    assert "  m - Avg: 0.50, Pass: 66.7%" in shown(
        metrics=METRICS | {"per_model": [row]}, headline=letta
    )
    nothing = row | {"total_attempted": 0, "avg_score_attempted": None, "passed_samples": 0}
    assert "  m - Avg: n/a, Pass: n/a" in shown(
        metrics=METRICS | {"per_model": [nothing]}, headline=letta
    )


def test_the_block_of_letta_evals():
    lines = shown(headline={"letta": True, "figures": [{"label": "x", "value": 1}]})
    assert lines == [*LETTA, "  Score band: very good"]


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
    headline, metrics = {"letta": True, "figures": []}, METRICS | {"avg_score_attempted": score}
    assert shown(headline=headline, metrics=metrics)[-1] == f"  Score band: {word}"


def test_a_share_of_successes_says_how_sure_it_is():
    """By its interval, or why there is none.

    Summaries of earlier versions say neither, and nothing has no share.
    """
    counts = {"passed": 1, "failed": 3}
    held = {"low": 0.1, "high": 0.45, "confidence": 0.95}
    assert share(counts | {"share_interval": held}) == "1 of 4 (25.0%; 95% interval 10.0 to 45.0%)"
    assert (
        share(counts | {"share_interval": {"reason": "one task"}})
        == "1 of 4 (25.0%; no interval: one task)"
    )
    assert share(counts) == "1 of 4 (25.0%)"
    assert (
        share({"passed": 0, "failed": 0, "share_interval": {"reason": "nothing graded"}})
        == "no result"
    )


def test_the_first_failure_of_every_grader_is_told(command, here, write_lines, record):
    records = [record("a", 1.0), *(record(name, recorded={"do": "raise"}) for name in "bc")]
    write_lines(records, "odd.jsonl")
    said = command("grade", "odd.jsonl", "--grader", "toy", "-o", "out")
    first = (
        r"^  toy: 2 failed, first: ZeroDivisionError: cannot grade <object object> "
        r"\(\w+\.py:\d+\) at odd\.jsonl:2$"
    )
    assert re.search(first, said.out, re.MULTILINE)
    assert "  toy  avg 1.00  graded 1, 2 failed" in said.out.splitlines()
    kept = json.loads((here / "out/summary.json").read_text())["failures"]
    assert kept == DATA["the_first_failure_of_every_grader_is_told"]
    said = command("grade", "odd.jsonl", "--grader", "toy", "-o", "out", "--rows", "none")
    assert "  toy: 2 failed" in said.out.splitlines()


def test_where_the_files_are(tmp_path):
    report = Report(path=tmp_path, header={}, summary=SUMMARY, pages=(tmp_path / "report.html",))
    assert console.files(report) == f"Results: {tmp_path}\nReport:  {tmp_path}/report.html"


def test_progress_away_from_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(console, "_PLAIN_EVERY", -1.0)
    with console.progress("airline", quiet=False) as watch:
        watch(Progress(samples=64))
        watch(Progress(samples=6_700, states={"graded": 6_000, "skipped": 700}, bad=1))
        watch(Progress(samples=6_700, phase="pages"))
    said = capsys.readouterr()
    assert said.out == "Running evaluation: airline\n"
    assert said.err.splitlines() == DATA["progress_away_from_a_terminal"]


def test_rate_and_remaining_time(monkeypatch):
    """The rate is this attempt's alone, the remaining time goes by the share of the input in
    finished ranges.
    """
    clock = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    found = console.Meter()
    taken_up = Progress(samples=1_000, resumed=1_000, share=0.2)
    clock[0] = 5.0
    assert found.line(taken_up) == "1,000 samples graded"
    clock[0] = 15.0  # ten seconds for another two tenths: three times ten seconds to go
    more = Progress(samples=2_000, resumed=1_000, share=0.4)
    assert found.line(more) == "2,000 samples graded, 100/s, about 0:00:30 left"
    clock[0] = 25.0  # within the next range time goes on
    assert (
        found.line(Progress(samples=2_500, resumed=1_000, share=0.4))
        == "2,500 samples graded, 75/s, about 0:00:20 left"
    )


def test_progress_when_quiet(capsys):
    with console.progress("airline", quiet=True) as watch:
        watch(Progress(samples=64))
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with console.progress("airline", quiet=False) as watch:
        watch(Progress(samples=64))
    assert capsys.readouterr().out == "Running evaluation: airline\n"

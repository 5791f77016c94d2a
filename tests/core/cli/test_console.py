"""What the command line prints of a run."""

import pytest

from gradestack import Progress, Report
from gradestack.cli import console, progress_line

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
SUMMARY = {
    "metrics": METRICS,
    "gates": [],
    "bad_records": {"count": 0, "listed": []},
    "warnings": [],
    "gates_passed": None,
}
GATE = {"text": "quality >= 0.75", "outcome": "passed", "value": 0.75, "actual": 0.8333}


def shown(tmp_path, **changes):
    return console.results(Report(path=tmp_path, header={}, summary=SUMMARY | changes)).splitlines()


def test_the_results_block(tmp_path):
    assert shown(tmp_path, gates=[GATE]) == [
        "━" * 40 + " 4/4 100%",
        "",
        "Results:",
        "  Total samples: 4",
        "  Attempted: 3",
        "  Avg score: 0.62 (attempted: 0.83)",
        "  Passed: 2 (66.7%)",
        "",
        "Gate (quality >= 0.75): PASSED (actual: 0.83)",
    ]


def test_nothing_attempted_is_not_zero(tmp_path):
    empty = METRICS | {"total_attempted": 0, "avg_score_attempted": None, "avg_score_total": None, "passed_attempts": 0}
    lines = shown(tmp_path, metrics=empty)
    assert "  Avg score: n/a (attempted: n/a)" in lines
    assert "  Passed: 0" in lines


@pytest.mark.parametrize(
    ("gate", "line"),
    [
        (GATE | {"outcome": "failed", "actual": 0.5}, "Gate (quality >= 0.75): FAILED (actual: 0.50)"),
        (GATE | {"outcome": "no_data", "actual": None}, "Gate (quality >= 0.75): NO DATA (actual: n/a)"),
    ],
)
def test_gates_show_the_figure(tmp_path, gate, line):
    assert line in shown(tmp_path, gates=[gate])


def test_several_graders_have_a_line_each(tmp_path):
    metrics = METRICS | {
        "by_metric": {"quality": {"avg_score_attempted": 0.8333}, "b": {"avg_score_attempted": None}},
        "states": METRICS["states"] | {"b": {"graded": 0, "skipped": 1, "failed": 2, "missing": 1}},
    }
    lines = shown(tmp_path, metrics=metrics)
    assert "  quality  avg 0.83  graded 3, 1 skipped" in lines
    assert "  b        avg n/a  graded 0, 1 skipped, 2 failed, 1 missing" in lines


def test_what_needs_attention_is_told(tmp_path):
    listed = [{"file": "f", "line": number or None, "ordinal": number, "reason": "bad\x1b[2J"} for number in range(5)]
    lines = shown(
        tmp_path, bad_records={"count": 5, "listed": listed}, warnings=["mind this"], incomplete="interrupted: x"
    )
    assert lines[-7:] == [
        "5 bad records left out:",
        "  f:record 0: bad\\x1b[2J",
        "  f:1: bad\\x1b[2J",
        "  f:2: bad\\x1b[2J",
        "  and 2 more, in summary.json",
        "Warning: mind this",
        "Incomplete: interrupted: x",
    ]


def test_where_the_files_are(tmp_path):
    report = Report(path=tmp_path, header={}, summary=SUMMARY, pages=(tmp_path / "report.html",))
    assert console.files(report) == f"Results: {tmp_path}\nReport:  {tmp_path}/report.html"


def test_progress_away_from_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress_line, "_PLAIN_EVERY", -1.0)
    with console.progress("airline", quiet=False) as watch:
        watch(Progress(samples=64))
        watch(Progress(samples=6_700, states={"graded": 6_000, "skipped": 700}, bad=1))
        watch(Progress(samples=6_700, phase="pages"))
    said = capsys.readouterr()
    assert said.out == "Running evaluation: airline\n"
    assert said.err.splitlines() == [
        "  64 samples graded",
        "  6,700 samples graded; 700 skipped; 1 bad record",
        "  6,700 samples graded; writing pages",
    ]


def test_rate_and_remaining_time(monkeypatch):
    """The rate is this attempt's alone, the remaining time goes by the share of the input in finished ranges."""
    clock = [0.0]
    monkeypatch.setattr(progress_line.time, "monotonic", lambda: clock[0])
    found = progress_line.Meter()
    taken_up = Progress(samples=1_000, resumed=1_000, share=0.2)
    clock[0] = 5.0
    found.note(taken_up)
    assert found.line(taken_up) == "1,000 samples graded"
    clock[0] = 15.0  # ten seconds for another two tenths: three times ten seconds to go
    more = Progress(samples=2_000, resumed=1_000, share=0.4)
    found.note(more)
    assert found.line(more) == "2,000 samples graded, 100/s, about 30 s left"
    clock[0] = 25.0
    found.note(more)
    assert found.line(more) == "2,000 samples graded, 50/s, about 20 s left"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (59.4, "59 s"), (61, "1 min 01 s"), (3599, "59 min 59 s"), (7260, "2 h 01 min")]
)
def test_durations(seconds, text):
    assert progress_line._duration(seconds) == text


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


def test_verdicts():
    assert (console.verdict(passed=True), console.verdict(passed=False)) == ("✓ PASSED", "✗ FAILED")


def test_what_holds_of_many_graders_is_one_line(tmp_path):
    few = [f"grader 'few{n}' graded no sample (2 skipped); the first: why" for n in range(5)]
    many = [f"grader 'many{n}' graded no sample (2 skipped); the first: because" for n in range(6)]
    others = ["ids made up", "grader 'many0': a figure is odd"]
    warned = [line for line in shown(tmp_path, warnings=[others[0], *few, *many, others[1]]) if "Warning" in line]
    one = "Warning: 6 graders ('many0', 'many1', 'many2', …) graded no sample (2 skipped); the first: because; all 6 "
    assert warned == [
        "Warning: ids made up",
        *(f"Warning: {text}" for text in few),
        f"{one}under warnings in summary.json",
        "Warning: grader 'many0': a figure is odd",
    ]

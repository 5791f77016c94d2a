import attrs
import pytest

from gradestack import Declarations
from gradestack_plugins.pages.figures import rows_of
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.overview import main_key, overview
from gradestack_plugins.pages.tasks import Reliability
from tests.core.outcomes import data

DATA = data(__file__, "overview.yaml")


def of(fake, rows, change=None, **options):
    report = fake.make_report(rows, **options)
    if change:
        report = attrs.evolve(report, summary={**report.summary, **change})
    return overview(report, index_of(report))


def test_figures_are_those_of_the_summary(fake):
    rows = [fake.graded_row(3, run, "m") for run in range(3)] + [
        fake.ungraded_row(3, 3, "m", "failed")
    ]
    head = of(fake, rows).head
    scores = [row["grade"]["score"] for row in rows[:3]]
    assert head.key == "partial"
    assert head.attempted == f"{sum(scores) / 3:.3f}"
    assert head.total == f"{sum(scores) / 4:.3f}"
    assert head.counts == {"graded": 3, "skipped": 0, "failed": 1, "missing": 0}


def test_nothing_graded_is_undefined_not_zero(fake):
    view = of(fake, [fake.ungraded_row(1, 0, "m", "skipped")])
    assert (view.head.attempted, view.success.passed, view.success.of) == ("n/a", 0, 0)
    assert (view.gates[0].outcome, view.gates[0].actual, view.gates[0].at) == (
        "no_data",
        "n/a",
        None,
    )


def test_scores_without_an_aggregator_are_counted_here(fake):
    rows = [fake.graded_row(3, run, "m") for run in range(6)]
    report = fake.make_report(rows)
    metrics = {**report.summary["metrics"], "aggregates": {}}
    partial, reward = of(fake, rows, {"metrics": metrics}).graders
    assert [bar.label for bar in partial.scores.bars][-2:] == ["[0.8,\u00a01)", "1"]
    assert sum(bar.count for bar in partial.scores.bars) == 6
    assert reward.scores is None


def test_the_main_grader_is_the_gates(fake):
    summary = fake.summary_of([fake.graded_row(1, 0, "m")])
    graders = [
        {"kind": "reader", "key": "reader"},
        *({"kind": "grader", "key": key} for key in ("reward", "partial")),
    ]
    assert (
        main_key({**summary, "gates": [{"metric_key": "partial"}]}, {"components": graders})
        == "partial"
    )
    assert main_key({**summary, "gates": []}, {"components": graders}) == "reward"
    assert main_key({**summary, "gates": []}, {"components": graders[::-1]}) == "partial"
    assert main_key({**summary, "gates": []}, {}) == "partial"
    assert main_key({}, {}) is None


def test_gates_in_percent_are_drawn_in_percent(fake):
    gate = {"text": "accuracy", "metric": "accuracy", "value": 80, "actual": 62.5, "passed": False}
    (shown,) = of(fake, [], {"gates": [gate]}).gates
    assert (shown.actual, shown.at, shown.threshold, shown.outcome) == (
        "62.5%",
        62.5,
        80.0,
        "failed",
    )


@pytest.mark.parametrize(("verdict", "word"), [(True, "passed"), (False, "failed"), (None, "none")])
def test_the_verdict_has_three_values(fake, verdict, word):
    assert of(fake, [], {"gates_passed": verdict}).verdict == word


def test_machine_and_place_are_not_shown(fake):
    view = of(fake, [])
    assert view.inputs == [("rail.json", "123,456 bytes", "ab" * 32)]
    assert [component[0] for component in view.components] == ["reader", "grader"]


def test_broken_and_interrupted_runs_say_so(fake):
    view = of(fake, [], {"broken": {"exporter x": "KeyError: 'a'"}, "incomplete": True})
    assert [problem.place for problem in view.broken] == ["incomplete", "exporter x"]


@pytest.mark.parametrize("summary", DATA["odd_summaries_never_raise"])
def test_odd_summaries_never_raise(fake, summary):
    summary = {"suite": "rail", "gates_passed": None, **summary}
    report = attrs.evolve(
        fake.make_report([]), summary=summary, header={"components": [None], "inputs": [{}]}
    )
    overview(report, index_of(report))


@pytest.mark.parametrize(("gate", "actual", "note"), DATA["gates_show_their_verdict"])
def test_gates_show_their_verdict(fake, gate, actual, note):
    (shown,) = of(fake, [], {"gates": [{"text": "rule", "passed": False, **gate}]}).gates
    assert (shown.actual, shown.note.startswith(note), bool(shown.note)) == (
        actual,
        True,
        bool(note),
    )
    assert shown.at is None or gate.get("kind") != "baseline"  # a difference is not on the axis


def test_a_run_that_failed_whole_did_not_pass(fake):
    view = of(fake, [], {"gates_passed": True, "all_failed": "all 3 grades failed"})
    assert (view.verdict, view.broken[0].reason) == ("failed", "all 3 grades failed")


def test_figures_of_a_headline_show_their_intervals():
    sure = {
        "low": 0.25,
        "high": 0.75,
        "confidence": 0.9,
        "method": "logit_t",
        "n": 8,
        "clusters": 4,
    }
    entries = [
        {"label": "a", "value": 0.5, "interval": sure},
        {"label": "b", "value": 0.5, "interval": {"reason": "one task"}},
        {"label": "c", "value": {"1": 0.5, "2": 0.25}, "interval": {"1": sure}},
    ]
    rows = rows_of(
        {"headline": {"figures": entries}},
        Declarations({}),
        Reliability(tasks=4, trials=2, passes={}),
    )
    assert [(row.title, row.interval, row.note) for row in rows] == [
        ("a", "0.250 – 0.750", ""),
        ("b", "", "no interval: one task"),
        ("c, k = 2", "", ""),
    ]

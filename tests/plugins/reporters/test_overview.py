import attrs
import pytest

from gradestack_plugins.reporters.overview import headline_key, overview


def of(fake, rows, change=None, **options):
    report = fake.make_report(rows, **options)
    if change:
        report = attrs.evolve(report, summary={**report.summary, **change})
    return overview(report, report.index)


def test_figures_are_those_of_the_summary(fake):
    """Averages, passes and states are shown as the summary has them, over graded and over all samples."""
    rows = [fake.graded_row(3, run, "m") for run in range(3)] + [fake.ungraded_row(3, 3, "m", "failed")]
    head = of(fake, rows).head
    scores = [row["grade"]["score"] for row in rows[:3]]
    assert head.key == "partial"
    assert head.attempted == f"{sum(scores) / 3:.3f}"
    assert head.total == f"{sum(scores) / 4:.3f}"
    assert [(state.name, state.count, state.share) for state in head.states] == [
        ("graded", 3, "75.0%"),
        ("skipped", 0, "0.0%"),
        ("failed", 1, "25.0%"),
        ("missing", 0, "0.0%"),
    ]
    assert head.spread == "± 0.031"
    assert head.interval == f"{sum(scores) / 3 - 0.06:.3f} – {sum(scores) / 3 + 0.06:.3f}"


def test_nothing_graded_is_undefined_not_zero(fake):
    """Without a graded sample averages and rates have no value."""
    view = of(fake, [fake.ungraded_row(1, 0, "m", "skipped")])
    assert (view.head.attempted, view.head.pass_rate) == ("n/a", "n/a")
    assert (view.gates[0].outcome, view.gates[0].actual, view.gates[0].at) == ("no_data", "n/a", None)


def test_a_histogram_of_an_aggregator_is_shown_once(fake):
    """The aggregator's own histogram and bands stand at the top of its grader and nowhere else."""
    head = of(fake, fake.realistic_rows(tasks=4, trials=1)).head
    assert [bar.label for bar in head.scores.bars][:2] == ["[0,\u00a00.2)", "[0.2,\u00a00.4)"]
    assert head.bands.title == "Interpretation"
    kinds = [block.kind for name, blocks in head.aggregates for block in blocks if name == "partial_statistics"]
    assert kinds == ["figures", "section", "histogram"]  # the histogram left is that of tasks by successes


def test_scores_without_an_aggregator_are_counted_here(fake):
    """A grader without a histogram of its own gets one over five bins and 1.0; one with only 0 and 1 gets none."""
    rows = [fake.graded_row(3, run, "m") for run in range(6)]
    report = fake.make_report(rows)
    metrics = {**report.summary["metrics"], "aggregates": {}}
    partial, reward = of(fake, rows, {"metrics": metrics}).graders
    assert [bar.label for bar in partial.scores.bars][-2:] == ["[0.8,\u00a01)", "1"]
    assert sum(bar.count for bar in partial.scores.bars) == 6
    assert reward.scores is None


def test_the_headline_is_the_gates_grader(fake):
    """The gate names the grader of the headline; without a gate it is the one the rows' grades come from."""
    rows = [fake.graded_row(1, 0, "m")]
    summary = fake.summary_of(rows)
    index = fake.make_report(rows).index
    assert headline_key({**summary, "gates": [{"metric_key": "reward"}]}, index) == "reward"
    assert headline_key({**summary, "gates": []}, index) == "partial"
    assert headline_key({}, index) is None


def test_gates_in_percent_are_drawn_in_percent(fake):
    """An accuracy gate compares percentages; its place on the scale is the percentage itself."""
    gate = {"text": "accuracy", "metric": "accuracy", "value": 80, "actual": 62.5, "passed": False}
    (shown,) = of(fake, [], {"gates": [gate]}).gates
    assert (shown.actual, shown.at, shown.threshold, shown.outcome) == ("62.5%", 62.5, 80.0, "failed")


@pytest.mark.parametrize(("verdict", "word"), [(True, "passed"), (False, "failed"), (None, "none")])
def test_the_verdict_has_three_values(fake, verdict, word):
    """No gate is neither a pass nor a failure."""
    assert of(fake, [], {"gates_passed": verdict}).verdict == word


def test_machine_and_place_are_not_shown(fake):
    """Folders, engine and timings depend on the machine and stay out of the page."""
    view = of(fake, [])
    assert view.inputs == (("rail.json", "123,456 bytes", "ab" * 32),)
    assert [component[0] for component in view.components] == ["reader", "grader"]


def test_broken_and_interrupted_runs_say_so(fake):
    """A summary that says what broke or that the run was cut short is repeated at the top."""
    view = of(fake, [], {"broken": {"exporter x": "KeyError: 'a'"}, "incomplete": True})
    assert [problem.place for problem in view.broken] == ["incomplete", "exporter x"]


@pytest.mark.parametrize(
    "summary",
    [
        {},
        {"metrics": None, "gates": {}, "bad_records": [], "duplicates": 3, "warnings": "x", "config": None},
        {"metrics": {"by_metric": {"g": 3}, "states": {"g": []}, "aggregates": {"g": {"a": 3, "b": None}}}},
        {"metrics": {"per_model": [None, {}], "total": "x"}, "gates": [None, {"actual": "x"}]},
    ],
)
def test_odd_summaries_never_raise(fake, summary):
    """A summary of another version, with keys missing or of other types, still gives an overview."""
    summary = {"suite": "rail", "gates_passed": None, **summary}
    report = attrs.evolve(fake.make_report([]), summary=summary, header={"components": [None], "inputs": [{}]})
    overview(report, report.index)

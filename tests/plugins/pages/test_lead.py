"""The first screen: sentence, figures on one axis, findings, map of tasks, funnel of calls."""

import attrs

import gradestack
from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages import index
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.index import RowIndex
from gradestack_plugins.pages.losses import funnel_of
from gradestack_plugins.pages.overview import findings, main_key, overview

SOLVED = {
    "grader": "reward",
    "rule": "passed by grader reward",
    "words": {"passed": "solved", "failed": "not solved"},
}


def success(passed, of, **models):
    return Shape(
        passed=passed, of=of, grader="reward", models=models, many=len(models) > 1, others=0
    )


def told(parts):
    return "".join(part.text for part in parts)


def index_of(rows):
    return RowIndex.of(((0, 0, dumps(row).encode()) for row in rows), lambda _, line: loads(line))


def row(id_, run, passed, partial=0.0, **more):
    grade = {"state": "graded", "score": partial}
    reward = {"state": "graded", "score": float(passed), "passed": passed}
    named = {"sample": {"id": id_}, "run": run, "passed": passed, "state": "graded"}
    return {**named, "grade": grade, "grades": {"partial": grade, "reward": reward}, **more}


SUMMARY = {
    "headline": {"figures": [{"label": "Credit", "figure": "partial.mean", "value": 0.596}]},
    "outcome": {**SOLVED, "passed": 4, "failed": 4},
}


def found(index, outcome, summary, noun="runs"):
    return [told(finding.parts) for finding in findings(summary, index, outcome, "reward", noun)]


def test_a_score_that_tells_nothing_is_said():
    rows = [row(str(n % 10), n // 10, n % 2 == 0, [0.0, 0.5, 1.0][n % 3]) for n in range(60)]
    for each in rows[:10]:
        each["expected"] = {"calls": []}
    (finding,) = findings(SUMMARY, index_of(rows), success(30, 60), "reward", "runs")
    assert told(finding.parts) == (
        "Credit does not separate “solved” from “not solved”. Mean: solved 0.50 (30 runs), not "
        "solved 0.50 (30 runs)."
    )
    assert [(bar.label, bar.left, bar.right) for bar in finding.chart.bars][:2] == [
        ("1", 10, 10),
        ("[0.8,\u00a01)", 0, 0),
    ]
    assert finding.more == (
        "No call is expected in 10 runs of 10 tasks, where any call scores 0: 2 of these “solved”."
    )


def test_a_score_that_tells_something_is_not_a_finding():
    apart = [row(str(n), 0, n % 2 == 0, 0.9 if n % 2 == 0 else 0.2) for n in range(60)]
    few = [row(str(n), 0, n % 2 == 0, 0.5) for n in range(18)]
    assert found(index_of(apart), success(30, 60), SUMMARY) == []
    assert found(index_of(few), success(9, 18), SUMMARY) == []


def call(tool, score, made, *pointers):
    reasons = [
        {"code": "wrong_argument", "subject": tool, "pointer": pointer} for pointer in pointers
    ]
    return {"gold": tool, "score": score, "metadata": {"call": made}, "reasons": reasons}


def test_the_funnel_ranks_tools_by_calls_lost():
    items = (
        [call("find", 1.0, 0)] * 9 + [call("find", 0.0, None)] + [call("book", 0.5, 0, "/day")] * 2
    )
    grade = {"state": "graded", "score": 0.5, "items": items}
    found = funnel_of(
        index_of([{"sample": {"id": "a"}, "grade": grade, "grades": {"calls": grade}}])
    )
    assert [
        (tool.name, tool.expected, tool.right, tool.wrong, tool.absent) for tool in found.tools
    ] == [
        ("book", 2, 0, 2, 0),
        ("find", 10, 9, 0, 1),
    ]
    assert funnel_of(index_of([])) is None


def test_calls_that_nothing_was_expected_for_are_extra_ones(tmp_path):
    said = [{"name": "find", "arguments": {}}, {"name": "book", "arguments": {"day": 1}}]
    record = {
        "id": "a",
        "expected": said,
        "predicted": [*said, said[1], {"name": "pay", "arguments": {}}],
    }
    report = gradestack.grade([record], reports=["html"], output=str(tmp_path / "out"))
    found = funnel_of(index_of(report.rows()))
    assert [
        (tool.name, tool.expected, tool.right, tool.absent, tool.extra) for tool in found.tools
    ] == [
        ("book", 1, 1, 0, 1),
        ("pay", 0, 0, 0, 1),
        ("find", 1, 1, 0, 0),
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert ">extra</th>" in page
    gradestack.grade([record], "tau_partial", reports=["html"], output=str(tmp_path / "other"))
    assert ">extra</th>" not in (tmp_path / "other" / "report.html").read_text()


def of(fake, rows, change=None, **options):
    report = fake.make_report(rows, **options)
    if change:
        report = attrs.evolve(report, summary={**report.summary, **change})
    return overview(report, index.index_of(report))


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

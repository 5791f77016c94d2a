"""The first screen: sentence, figures on one axis, findings, map of tasks, funnel of calls."""

import attrs

import gradestack
from gradestack import Declarations
from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages.failures import calls_section
from gradestack_plugins.pages.figures import Success, gate_lines, results_of
from gradestack_plugins.pages.index import RowIndex
from gradestack_plugins.pages.page import page_of
from gradestack_plugins.pages.screen import caveats_of, main_key

SOLVED = {
    "grader": "reward",
    "rule": "passed by grader reward",
    "words": {"passed": "solved", "failed": "not solved"},
}


def success(passed, of, **models):
    return Success(passed=passed, of=of, grader="reward", models=models)


def shown_texts(parts):
    return "".join(part if isinstance(part, str) else part.text for part in parts)


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


def findings_of(index, outcome):
    caveats = caveats_of(SUMMARY, index, outcome, "reward")
    return [shown_texts(caveat.text) for caveat in caveats]


def test_a_score_that_tells_nothing_is_said():
    rows = []
    for n in range(60):
        run = n // 10
        partial = [0.0, 0.5, 1.0][n % 3]
        rows.append(row(str(n % 10), run, n % 2 == 0, partial))
    for failed_row in rows[:10]:
        failed_row["expected"] = {"calls": []}
    index = index_of(rows)
    (caveat,) = caveats_of(SUMMARY, index, success(30, 60), "reward")
    assert shown_texts(caveat.text) == (
        "Credit says nothing here: solved and not solved runs get the same (50% and 50%)."
    )
    assert shown_texts(caveat.more) == (
        "In 10 tasks (10 runs) nothing should be called. 4 runs did call something and get 0%, "
        "yet the outcome of 2 of them is “solved”. Show them"
    )


def test_a_score_that_tells_something_is_not_a_finding():
    telling_rows = []
    for n in range(60):
        partial = 0.2
        if n % 2 == 0:
            partial = 0.9
        telling_rows.append(row(str(n), 0, n % 2 == 0, partial))
    few = [row(str(n), 0, n % 2 == 0, 0.5) for n in range(18)]
    findings = findings_of(index_of(telling_rows), success(30, 60))
    assert findings == []
    index = index_of(few)
    outcome = success(9, 18)
    assert findings_of(index, outcome) == []


def call(tool, score, made, *pointers):
    reasons = [
        {"code": "wrong_argument", "subject": tool, "pointer": pointer} for pointer in pointers
    ]
    return {"gold": tool, "score": score, "metadata": {"call": made}, "reasons": reasons}


def numbers_of(section):
    """Return the numbers of each tool: expected, right, wrong, not called, and extra calls."""
    (table,) = section.blocks
    shown = {}
    for name, cells in table.rows.items():
        counts = []
        for cell in (*cells[:2], *cells[3:]):
            number = int(getattr(cell, "text", cell))
            counts.append(number)
        shown[name] = counts
    return list(shown.items())


def test_tools_are_ranked_by_calls_lost():
    right = [call("find", 1.0, 0)] * 9
    missing = call("find", 0.0, None)
    wrong_days = [call("book", 0.5, 0, "/day")] * 2
    items = [*right, missing, *wrong_days]
    grade = {"state": "graded", "score": 0.5, "items": items}
    rows = [{"sample": {"id": "a"}, "grade": grade, "grades": {"calls": grade}}]
    section = calls_section(index_of(rows))
    numbers = numbers_of(section)
    assert numbers == [("book", [2, 0, 2, 0]), ("find", [10, 9, 0, 1])]
    index = index_of([])
    assert calls_section(index) is None


def test_calls_that_nothing_was_expected_for_are_extra_ones(tmp_path):
    calls_made = [{"name": "find", "arguments": {}}, {"name": "book", "arguments": {"day": 1}}]
    predicted = [*calls_made, calls_made[1], {"name": "pay", "arguments": {}}]
    record = {
        "id": "a",
        "expected": calls_made,
        "predicted": predicted,
    }
    out_folder = tmp_path / "out"
    report = gradestack.grade([record], reports=["html"], output=str(out_folder))
    rows = report.rows()
    index = index_of(rows)
    section = calls_section(index)
    numbers = numbers_of(section)
    assert numbers == [
        ("book", [1, 1, 0, 0, 1]),
        ("pay", [0, 0, 0, 0, 1]),
        ("find", [1, 1, 0, 0, 0]),
    ]
    report_path = tmp_path / "out" / "report.html"
    page = report_path.read_text()
    assert ">extra</th>" in page
    other_folder = tmp_path / "other"
    gradestack.grade([record], "tau_partial", reports=["html"], output=str(other_folder))
    text = (tmp_path / "other" / "report.html").read_text()
    assert ">extra</th>" not in text


def test_scores_without_an_aggregator_are_counted_here(fake):
    rows = []
    for run in range(6):
        rows.append(fake.graded_row(3, run, "m"))
    report = fake.make_report(rows)
    metrics = {**report.summary["metrics"], "aggregates": {}}
    summary = {**report.summary, "metrics": metrics}
    page = page_of(attrs.evolve(report, summary=summary))
    (scores,) = [section for section in page.first if section.id == "scores"]
    (counts,) = scores.blocks
    assert list(counts.counts)[-2:] == ["[0.8,\u00a01)", "1"]
    total_counts = sum(counts.counts.values())
    assert total_counts == 6


def test_the_main_grader_is_the_gates(fake):
    rows = [fake.graded_row(1, 0, "m")]
    summary = fake.summary_of(rows)
    graders = [
        {"kind": "reader", "key": "reader"},
        *({"kind": "grader", "key": key} for key in ("reward", "partial")),
    ]
    assert (
        main_key({**summary, "gates": [{"metric_key": "partial"}]}, {"components": graders})
        == "partial"
    )
    assert main_key({**summary, "gates": []}, {"components": graders}) == "reward"
    components = graders[::-1]
    assert main_key({**summary, "gates": []}, {"components": components}) == "partial"
    assert main_key({**summary, "gates": []}, {}) == "partial"
    assert main_key({}, {}) is None


def test_a_gate_is_drawn_on_its_figure_in_percent():
    """The figure that a gate compares is among the results, though no headline has it."""
    component = {"kind": "grader", "key": "tools", "name": "t", "better": "higher", "unit": "score"}
    declared = Declarations({"components": [{**component, "label": "Quality"}]})
    gate = {"metric_key": "tools", "metric": "avg_score", "op": "gte", "value": 0.5}
    gate |= {"actual": 0.625, "interval": {"low": 0.25, "high": 0.75}, "text": "tools >= 0.5"}
    outcome = {"grader": "tools", "passed": 9, "failed": 9, "share": 0.5}
    summary = {
        "metrics": {"total": 22},
        "outcome": outcome,
        "gates": [{**gate, "passed": True, "outcome": "passed"}],
    }
    share, mean = results_of(summary, declared)
    assert share.figure.note == "9 of 18 graded runs"
    assert share.figure.gate == ""
    assert mean.figure.label == "Quality (tools)"
    assert mean.figure.value == 0.625
    assert mean.figure.threshold == 0.5
    assert mean.figure.gate == "gate: at least 50%"
    (line,) = gate_lines(summary, [share, mean])
    assert line.rule == "tools >= 0.5"
    assert line.value == "62.5%"
    assert line.unit == "share"
    assert line.note.startswith("at least 50% is asked")


def test_little_is_known_where_the_first_interval_is_wide():
    """It is said in the note; where each task has one run, nothing is said about trials."""
    for number, is_wide in ((5, True), (200, False)):
        samples = [
            {"id": f"t{task}", "expected": "x", "predicted": "xy"[task % 2]}
            for task in range(number)
        ]
        report = gradestack.grade(samples, graders={"g": "exact_match"})
        note = shown_texts(page_of(report).head.note)
        assert ("Little is known of so few tasks: “Exact match” may be " in note) is is_wide
        assert "95% intervals." in note
        assert "trials" not in note


def test_a_gate_says_on_which_side_of_its_threshold_the_figure_may_be_as_well():
    gate = {"text": "g >= 0.5", "metric_key": "g", "metric": "mean", "value": 0.5, "actual": 0.6}
    gate |= {"outcome": "passed", "passed": True, "sure": False, "op": "gte"}
    summary = {"metrics": {"total": 9}, "gates": [gate]}
    component = {"kind": "grader", "key": "g", "name": "t", "better": "higher", "unit": "score"}
    results = results_of(summary, Declarations({"components": [component]}))
    for changes, doubt in (
        ({}, "but may be below 50%"),
        ({"passed": False, "outcome": "failed", "actual": 0.4}, "but may be above 50%"),
        ({"op": "lte"}, "but may be above 50%"),
        ({"op": "eq"}, "but the threshold lies within the interval"),
        ({"sure": True}, ""),
    ):
        (line,) = gate_lines({**summary, "gates": [{**gate, **changes}]}, results)
        assert line.doubt == doubt

"""``max_failed``: how many samples may have failed or be missing."""

import pytest

from gradestack.gates.rules import as_limit
from gradestack.gates.verdicts import limit_verdict
from gradestack.grading.metrics import Count
from tests.core.outcomes import data

DATA = data(__file__, "limit.yaml")

RAISE, SKIP = {"recorded": {"do": "raise"}}, {"recorded": {"do": "skip"}}


@pytest.fixture
def run(run_lines, record):
    """Return a function that runs 18 good samples, 2 that fail, and 5 the grader does not apply to."""
    records = [record(f"a{number}", 1.0) for number in range(18)]
    records += [record(f"b{number}", **RAISE) for number in range(2)]
    records += [record(f"c{number}", **SKIP) for number in range(5)]
    return lambda **suite: run_lines(records, **suite)


@pytest.mark.parametrize(("limit", "passed", "text", "actual"), DATA["a_number_or_a_share"])
def test_a_number_or_a_share(run, limit, passed, text, actual):
    """Two of twenty failed; the five to which the grader does not apply are in neither number."""
    report = run(max_failed=limit)
    assert (report.passed, report.exit_code) == (passed, 0 if passed else 1)
    (found,) = report.gates
    assert (found["kind"], found["text"], found["actual"], found["passed"]) == ("max_failed", text, actual, passed)
    assert (found["failed"], found["missing"], found["of"], found["grader"]) == (2, 0, 20, "quality")


def test_percentages_are_read_exactly():
    assert [as_limit(each) for each in ("5%", "2.9%", "29 %")] == [0.05, 0.029, 0.29]


def test_it_stands_beside_the_gates(run):
    report = run(gate={"op": "gte", "value": 0.9}, max_failed=1)
    assert [(gate["text"], gate["passed"]) for gate in report.gates] == [
        ("quality >= 0.9", True),
        ("failed or missing <= 1", False),
    ]
    assert (report.passed, report.exit_code) == (False, 1)


def test_the_grader_that_lost_most_decides():
    """One that applies to few samples may have lost the larger share, another the larger number."""
    many = {"graded": 17, "failed": 2, "missing": 1, "skipped": 0}
    few = {"graded": 2, "failed": 2, "missing": 0, "skipped": 16}
    counts = {"many": Count(states=many), "few": Count(states=few)}
    by_number, by_share = limit_verdict(2, counts), limit_verdict(0.2, counts)
    assert (by_number["grader"], by_number["actual"], by_number["passed"]) == ("many", 3, False)
    assert (by_share["grader"], by_share["actual"], by_share["passed"]) == ("few", 0.5, False)


def test_missing_samples_count(run_lines, record, write_lines):
    dataset = write_lines([{"id": name, "expected": "x"} for name in "abcd"], "tasks.jsonl")
    (found,) = run_lines([record("a", 1.0)], dataset=str(dataset), max_failed="50%").gates
    assert (found["actual"], found["missing"], found["passed"]) == (0.75, 3, False)


def test_where_no_grader_applies_nothing_failed(run_lines, record):
    """A share of nothing is no figure and above no limit."""
    (found,) = run_lines([record("a", **SKIP)], max_failed="5%").gates
    assert (found["actual"], found["of"], found["passed"]) == (None, 0, True)


def test_every_run_of_several_has_it(run_lines, record):
    """A run of which too many failed does not pass, also where the suite has no other gate."""
    records = [record("a", 1.0, run=1), record("b", 1.0, run=1), record("a", 1.0, run=2), record("b", run=2, **RAISE)]
    report = run_lines(records, num_runs=2, max_failed=0)
    assert (report.passed, report.summary["runs"]["passed"], report.summary["runs"]["failed"]) == (False, 1, 1)
    assert run_lines(records, num_runs=2, max_failed=0, runs_must_pass=1).passed is True


def test_no_rows_are_needed(run_lines, record):
    assert run_lines([record("a", 1.0), record("b", **RAISE)], rows="none", max_failed=0).exit_code == 1

"""``max_failed``: how many samples may have failed or be missing."""

from gradestack.gates.rules import as_limit
from gradestack.gates.verdicts import limit_verdict
from gradestack.metrics.counts import Count


def test_percentages_are_read_exactly():
    limits = [as_limit(text) for text in ("5%", "2.9%", "29 %")]
    assert limits == [0.05, 0.029, 0.29]


def test_the_grader_that_lost_most_decides():
    """One that applies to few samples may have lost the larger share, another the larger number."""
    many = {"graded": 17, "failed": 2, "missing": 1, "skipped": 0}
    few = {"graded": 2, "failed": 2, "missing": 0, "skipped": 16}
    counts = {"many": Count(states=many), "few": Count(states=few)}
    by_number = limit_verdict(2, counts)
    by_share = limit_verdict(0.2, counts)
    assert by_number.grader == "many"
    assert by_number.actual == 3
    assert by_number.passed is False
    assert by_share.grader == "few"
    assert by_share.actual == 0.5
    assert by_share.passed is False

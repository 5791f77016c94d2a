"""The figures every run has: states are counted, never turned into zeros."""

from gradestack import Fault, Grade, Key, Outcome, failed, skipped
from gradestack.gates.successes import grader_figures
from gradestack.metrics.counts import counts_by_model, merge_counts
from gradestack.table import Table, Wanted

SKIP, FAIL = skipped("x", "y"), failed(Fault(category="data", code="x"))
MISSING = Grade(outcome=Outcome.MISSING)


def of(*grades):
    keys = []
    for number, _ in enumerate(grades):
        keys.append(Key(id=str(number)))
    wanted = Wanted(parts={"q": ()})
    table = Table.of(wanted, keys, {"q": grades})
    return merge_counts(counts_by_model(table, "q", None).values())


def test_nothing_attempted():
    """The average of no score is undefined, but 0.0 over all of them."""
    count = of(SKIP, FAIL)
    computed = grader_figures(count)
    assert computed["total"] == 2
    assert computed["total_attempted"] == 0
    assert computed["avg_score_attempted"] is None
    assert computed["pass_rate"] is None
    assert computed["avg_score_total"] == 0.0
    empty = grader_figures(of())
    assert empty["total"] == 0
    assert empty["avg_score_total"] is None

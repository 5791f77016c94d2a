"""The figures every run has: states are counted, never turned into zeros."""

from gradestack import Fault, Grade, Key, Outcome, failed, skipped
from gradestack.gates.successes import grader_figures
from gradestack.metrics.counts import counts_by_model, merge_counts
from gradestack.table import Table, Wanted

SKIP, FAIL = skipped("x", "y"), failed(Fault(category="data", code="x"))
MISSING = Grade(outcome=Outcome.MISSING)


def of(*grades):
    keys = [Key(id=str(number)) for number, _ in enumerate(grades)]
    return merge_counts(
        counts_by_model(Table.of(Wanted(parts={"q": ()}), keys, {"q": grades}), "q", None).values()
    )


def test_nothing_attempted():
    """The average of no score is undefined, but 0.0 over all of them."""
    computed = grader_figures(of(SKIP, FAIL))
    assert (computed["total"], computed["total_attempted"]) == (2, 0)
    assert (computed["avg_score_attempted"], computed["pass_rate"]) == (None, None)
    assert computed["avg_score_total"] == 0.0
    empty = grader_figures(of())
    assert (empty["total"], empty["avg_score_total"]) == (0, None)

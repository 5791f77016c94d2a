"""Successes among the samples of a run."""

import gradestack
from gradestack import Grade, Key, skipped
from gradestack.gates.rules import GateSpec
from gradestack.gates.successes import successes
from gradestack.grading.plan import Success
from gradestack.table import Table, Wanted

GATE = GateSpec(op="gt", value=0.5)


def of(rows, success):
    wanted = Wanted(parts={"q": ()})
    keys = [key for key, _ in rows]
    grades = [grade for _, grade in rows]
    table = Table.of(wanted, keys, {"q": grades})
    return successes(table, success)


def test_a_sample_is_a_success_by_the_verdict_it_was_given():
    """The grader's own, else a full score; by a gate's rule alone where that is the rule.

    Per model.
    """
    grades = [
        Grade(score=0.25, passed=True),
        Grade(score=1.0, passed=False),
        Grade(score=1.0),
        Grade(score=0.75),
        skipped("x", ""),
    ]
    rows = []
    for n, grade in enumerate(grades):
        key = Key(id=str(n), model="m" if n % 2 else None)
        rows.append((key, grade))
    computed = of(rows, Success("q"))
    assert computed["passed"] == 2
    assert computed["failed"] == 2
    assert computed["own_verdicts"] == 2
    models = computed["models"].items()
    assert {name: (model["passed"], model["failed"]) for name, model in models} == {
        "": (2, 0),
        "m": (0, 2),
    }
    success = Success("q", GATE)
    by_rule = of(rows, success)
    assert by_rule["passed"] == 3
    assert by_rule["failed"] == 1


def test_the_share_has_the_interval_of_a_mean_of_zeros_and_ones():
    """Clustered by task; of every model its own, of one model the same."""
    verdicts = {"a": (1, 1, 0), "b": (0, 0, 1), "c": (1, 1, 1), "d": (0, 0, 0)}
    runs = [
        (task, run, verdict)
        for task, several in verdicts.items()
        for run, verdict in enumerate(several)
    ]
    rows = []
    for task, run, verdict in runs:
        key = Key(id=task, run=run)
        rows.append((key, Grade(score=0.5, passed=bool(verdict))))
    success = Success("q")
    computed = of(
        rows,
        success,
    )
    figures = gradestack.figures(
        {"mean": {}}, [(task, run, None, float(verdict)) for task, run, verdict in runs]
    )
    mean = figures["mean"]
    assert computed["share"] == 0.5
    assert computed["share_interval"] == mean["mean_interval"]
    expected = {
        "": {name: computed[name] for name in ("passed", "failed", "share", "share_interval")}
    }
    assert computed["models"] == expected


def test_nothing_graded_has_no_share():
    """Not a share of 0, and the interval says why there is none."""
    key = Key(id="a")
    rows = [(key, skipped("x", ""))]
    success = Success("q")
    computed = of(rows, success)
    assert computed["passed"] == 0
    assert computed["failed"] == 0
    assert computed["share"] is None
    assert "low" not in computed["share_interval"]
    assert computed["share_interval"]["reason"]

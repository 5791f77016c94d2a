import tracemalloc

import pytest

from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages.index import (
    RowIndex,
    lost,
    severity,
    shade,
    shown_as,
    verdict,
)
from gradestack_plugins.pages.markdown import table
from gradestack_plugins.pages.tasks import reliability_of
from tests.core.outcomes import data

DATA = data(__file__, "tasks.yaml")


def row(task, run, score, *, state="graded", model="m", passed=...):
    passed = (score == 1 if state == "graded" else None) if passed is ... else passed
    grade = {"score": score, "state": state}
    return {"sample": {"id": task}, "run": run, "model_name": model, "state": state, "passed": passed, "grade": grade}


def index(*rows):
    return RowIndex.of(((0, 0, dumps(row).encode()) for row in rows), lambda _, line: loads(line))


def entries(*rows):
    return index(*rows).entries


def test_verdicts_follow_state_and_pass():
    found = entries(
        row("a", 0, 0.7, passed=True),
        row("a", 1, 1.0, passed=False),
        row("a", 2, 1.0, passed=None),
        row("a", 3, 0.99, passed=None),
        row("a", 4, 0.0, state="failed"),
        row("a", 5, 0.0, state="missing"),
        row("a", 6, 0.0, state="skipped"),
    )
    verdicts = ["passed", "lost", "graded", "graded", "error", "missing", "skipped"]
    assert [verdict(entry) for entry in found] == verdicts
    assert [entry.score for entry in found] == [0.7, 1.0, 1.0, 0.99, None, None, None]
    assert [shown_as(entry) for entry in found] == ["0.700", "1.000", "1.000", "0.990", "error", "missing", "skipped"]


def test_failures_come_first():
    """Broken samples first, then lost points from the lowest score, missing, skipped, and passed ones last."""
    found = entries(
        row("p", 0, 1.0),
        row("s", 0, 0.0, state="skipped"),
        row("h", 0, 0.9),
        row("m", 0, 0.0, state="missing"),
        row("l", 0, 0.1),
        row("e", 0, 0.0, state="failed"),
        row("l2", 0, 0.1),
    )
    assert [entry.id for entry in sorted(found, key=severity)] == ["e", "l", "l2", "h", "m", "s", "p"]


@pytest.mark.parametrize(("score", "css"), DATA["shades_go_by_tenths"])
def test_shades_go_by_tenths(score, css):
    assert shade(score) == css


def test_reasons_are_counted_once_per_sample():
    reason = {"code": "wrong", "subject": "book", "pointer": "/a"}
    grade = {"state": "graded", "score": 0.5, "reasons": [reason], "items": [{"reasons": [reason, reason]}]}
    broken = {"state": "failed", "score": 0.0, "fault": {"code": "boom", "type": "KeyError"}}
    rows = [{"grade": grade, "grades": {"g": grade}}] * 2 + [{"grade": broken, "grades": {"g": broken}}]
    assert [(each.code, each.subject, each.samples) for each in lost(index(*rows), "g", 9)] == [
        ("wrong", "book", 2),
        ("boom", "KeyError", 1),
    ]


def shown(found):
    lines = [(task.id, [len(cell) for cell in task.cells], task.mean, task.passed, task.trials) for task in found.rows]
    return [f"{column.model}.{column.label}" for column in found.columns], lines


@pytest.mark.parametrize(
    ("rows", "columns", "lines"),
    [
        (  # tasks and trials in natural order, means over graded trials
            [row("t10", 10, 1.0), row("t2", 2, 0.5), row("t2", 10, 0.0, state="failed"), row("t10", 2, 0.0)],
            ["m.2", "m.10"],
            [("t2", [1, 1], "0.500", 0, 2), ("t10", [1, 1], "0.500", 1, 2)],
        ),
        (  # a trial nobody ran is an empty cell; two samples of one id, model and run are both in theirs
            [row("a", 0, 1.0), row("a", 0, 0.5), row("b", 1, 1.0)],
            ["m.0", "m.1"],
            [("a", [2, 0], "0.750", 1, 2), ("b", [0, 1], "1.000", 1, 1)],
        ),
        (  # runs without names are counted
            [row("a", None, 1.0), row("b", None, 1.0), row("a", None, 0.5)],
            ["m.1", "m.2"],
            [("a", [1, 1], "0.750", 1, 2), ("b", [1, 0], "1.000", 1, 1)],
        ),
        (  # models stand side by side, as first seen
            [row("a", 0, 1.0, model="y"), row("a", 0, 0.5, model="x"), row("a", 1, 0.5, model="y")],
            ["y.0", "y.1", "x.0"],
            [("a", [1, 1, 1], "0.667", 1, 3)],
        ),
        (  # samples nobody ran have no model, and belong to the only one
            [row("a", None, 1.0), row("b", None, 0.0, state="missing", model=None)],
            ["m.1"],
            [("a", [1], "1.000", 1, 1), ("b", [1], "–", 0, 1)],
        ),
        (  # ids that read alike are one task
            [row("a b", 0, 1.0), row("other", 0, 0.0) | {"cluster": "a  b"}, row("a\nb", 1, 1.0)],
            ["m.0", "m.1"],
            [("a b", [1, 1], "1.000", 2, 2), ("other", [1, 0], "0.000", 0, 1)],
        ),
    ],
)
def test_tasks_over_trials(rows, columns, lines):
    """The table of report.md."""
    assert shown(table(index(*rows), 99)) == (columns, lines)


def test_large_tables_are_cut_and_counted():
    found = table(index(*(row(f"t{n}", 0, 1.0) for n in (10, 9, 8, 1, 7))), 3)
    assert ([task.id for task in found.rows], found.left_out) == (["t1", "t7", "t8"], 2)
    wide = table(index(*(row("t", n, 1.0) for n in range(40))), 5)
    assert (len(wide.columns), wide.columns_left_out, wide.rows[0].trials) == (32, 8, 40)


@pytest.mark.parametrize(
    ("passed", "counts"),
    [([(0, 1), (1, 1)], {1: 1, 2: 1}), ([(1,), (0,)], {0: 1, 1: 1}), ([(1, 1), (0,)], {}), ([], {})],
)
def test_tasks_are_counted_by_their_successes(passed, counts):
    rows = [row(f"t{n}", run, float(each)) for n, own in enumerate(passed) for run, each in enumerate(own)]
    assert reliability_of(index(*rows), outcome=True).passes == counts
    assert reliability_of(index(*rows), outcome=False).passes == {}


def test_the_state_of_a_sample_is_that_of_its_outcome():
    skipped = {"score": 0.0, "state": "skipped"}
    both = row("a", 0, 1.0, passed=None) | {"grades": {"main": {"score": 1.0, "state": "graded"}, "by": skipped}}
    (entry,) = RowIndex.of([(0, 0, dumps(both).encode())], lambda _, line: loads(line), "by").entries
    assert (verdict(entry), entry.score, shown_as(entry)) == ("skipped", 1.0, "1.000")


def test_tables_of_very_many_tasks_keep_little_of_each():
    held = index(*(row(f"t{number}", 0, 1.0) for number in range(4000)))
    tracemalloc.start()
    table(held, 10)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 60 * 4000
    assert most < 200 * 4000


def test_an_index_lets_go_of_what_only_its_making_needs():
    rows = [(0, 0, dumps(row(f"t{number}", 0, 1.0)).encode()) for number in range(4000)]
    tracemalloc.start()
    held = RowIndex.of(rows, lambda _, line: loads(line), "x", ("x", "y"))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(held.entries) == 4000
    assert kept < 260 * 4000

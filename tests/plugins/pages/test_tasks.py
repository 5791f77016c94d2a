import tracemalloc

import pytest

from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages.index import (
    RowIndex,
    severity,
    shade,
    shown_entry,
    verdict,
)
from gradestack_plugins.pages.markdown import tasks_of
from gradestack_plugins.pages.tasks import reliability_of
from tests.core.outcomes import data

DATA = data(__file__, "tasks.yaml")


def row(task, run, score, *, state="graded", model="m", passed=...):
    passed = (score == 1 if state == "graded" else None) if passed is ... else passed
    grade = {"score": score, "state": state}
    return {
        "sample": {"id": task},
        "run": run,
        "model_name": model,
        "state": state,
        "passed": passed,
        "grade": grade,
    }


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
    shown = ["0.700", "1.000", "1.000", "0.990", "error", "missing", "skipped"]
    assert [entry.score for entry in found] == [0.7, 1.0, 1.0, 0.99, None, None, None]
    assert [shown_entry(entry).shown for entry in found] == shown


def test_failures_come_first():
    """Broken samples first, then lost points from the lowest score, missing, skipped, and passed
    ones last.
    """
    found = entries(
        row("p", 0, 1.0),
        row("s", 0, 0.0, state="skipped"),
        row("h", 0, 0.9),
        row("m", 0, 0.0, state="missing"),
        row("l", 0, 0.1),
        row("e", 0, 0.0, state="failed"),
        row("l2", 0, 0.1),
    )
    assert [entry.id for entry in sorted(found, key=severity)] == [
        "e",
        "l",
        "l2",
        "h",
        "m",
        "s",
        "p",
    ]


@pytest.mark.parametrize(("score", "css"), DATA["shades_go_by_tenths"])
def test_shades_go_by_tenths(score, css):
    assert shade(score) == css


def test_tasks_of_the_comment():
    """In natural order, by model; ids that read alike stand together.

    What is beyond the limit is counted.
    """
    rows = [
        row("t10", 10, 1.0),
        row("t2", 2, 0.5),
        row("t2", 10, 0.0, state="failed"),
        row("t10", 2, 0.0),
    ]
    rows += [
        row("a\nb", 1, 1.0),
        row("a b", 0, 0.0),
        row("t2", 0, 1.0, model="other"),
        row("z", 0, 1.0),
    ]
    found, left_out = tasks_of(index(*rows), 3)
    assert found == [
        ("a\nb", "m", 1, 1, 0, 0, 1.0),
        ("a b", "m", 1, 0, 1, 0, 0.0),
        ("t2", "m", 2, 0, 1, 1, 0.5),
        ("t2", "other", 1, 1, 0, 0, 1.0),
        ("t10", "m", 2, 1, 1, 0, 0.5),
    ]
    assert left_out == 1


@pytest.mark.parametrize(
    ("passed", "counts"),
    [
        ([(0, 1), (1, 1)], {1: 1, 2: 1}),
        ([(1,), (0,)], {0: 1, 1: 1}),
        ([(1, 1), (0,)], {}),
        ([], {}),
    ],
)
def test_tasks_are_counted_by_their_successes(passed, counts):
    rows = [
        row(f"t{n}", run, float(each))
        for n, own in enumerate(passed)
        for run, each in enumerate(own)
    ]
    assert reliability_of(index(*rows), outcome=True).passes == counts
    assert reliability_of(index(*rows), outcome=False).passes == {}


def test_the_state_of_a_sample_is_that_of_its_outcome():
    skipped = {"score": 0.0, "state": "skipped"}
    both = row("a", 0, 1.0, passed=None) | {
        "grades": {"main": {"score": 1.0, "state": "graded"}, "by": skipped}
    }
    (entry,) = RowIndex.of(
        [(0, 0, dumps(both).encode())], lambda _, line: loads(line), "by"
    ).entries
    assert (verdict(entry), entry.score, shown_entry(entry).shown) == ("skipped", 1.0, "1.000")


def test_index_and_tables_of_very_many_tasks_keep_little_of_each():
    rows = [(0, 0, dumps(row(f"t{number}", 0, 1.0)).encode()) for number in range(4000)]
    tracemalloc.start()
    held = RowIndex.of(rows, lambda _, line: loads(line), "x", ("x", "y"))
    assert tracemalloc.get_traced_memory()[0] < 260 * 4000
    tracemalloc.stop()
    tracemalloc.start()
    tasks_of(held, 10)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (kept < 60 * 4000, most < 200 * 4000, len(held.entries)) == (True, True, 4000)

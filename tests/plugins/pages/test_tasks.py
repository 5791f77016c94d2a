import tracemalloc

import pytest

from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages.index import (
    RowIndex,
    shade,
    shown_entry,
    verdict,
)
from gradestack_plugins.pages.markdown import tasks_of
from tests.core.outcomes import data

DATA = data(__file__, "tasks.yaml")


def row(task, run, score, *, state="graded", model="m", passed=...):
    if passed is ...:
        passed = None
        if state == "graded":
            passed = score == 1
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


@pytest.mark.parametrize(("score", "css"), DATA["shades_go_by_tenths"])
def test_shades_go_by_tenths(score, css):
    assert shade(score) == css


def test_the_state_of_a_sample_is_that_of_its_outcome():
    skipped = {"score": 0.0, "state": "skipped"}
    both = row("a", 0, 1.0, passed=None) | {
        "grades": {"main": {"score": 1.0, "state": "graded"}, "by": skipped}
    }
    text = dumps(both).encode()
    (entry,) = RowIndex.of([(0, 0, text)], lambda _, line: loads(line), "by").entries
    assert verdict(entry) == "skipped"
    assert entry.score == 1.0
    assert shown_entry(entry).shown == "1.000"


def test_index_and_tables_of_very_many_tasks_keep_little_of_each():
    rows = []
    for number in range(4000):
        task = f"t{number}"
        text = dumps(row(task, 0, 1.0))
        rows.append((0, 0, text.encode()))
    tracemalloc.start()
    row_index = RowIndex.of(rows, lambda _, line: loads(line), "x", ("x", "y"))
    assert tracemalloc.get_traced_memory()[0] < 260 * 4000
    tracemalloc.stop()
    tracemalloc.start()
    tasks_of(row_index, 10)
    bytes_kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bytes_kept < 60 * 4000
    assert most < 200 * 4000
    entry_count = len(row_index.entries)
    assert entry_count == 4000

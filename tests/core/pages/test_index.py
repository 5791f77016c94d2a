"""The index of a run's rows: the same from few keys of a row as from the whole row."""

import io
import json
import re

import pytest

from gradestack import DataError, Report
from gradestack_plugins.pages import index as index_module
from gradestack_plugins.pages import tallies
from gradestack_plugins.pages.index import RowIndex, index_of
from gradestack_plugins.pages.rows import rows_at
from tests.core.outcomes import data

DATA = data(__file__, "index.yaml")

GRADE = DATA["grade"]
FAULT = {
    "score": 0.0,
    "state": "failed",
    "fault": {"code": "boom", "type": "KeyError", "message": "x"},
}
ROW = DATA["row"]


def report_of(*lines):
    bytes_io = io.BytesIO(b"".join(line + b"\n" for line in lines))
    return Report(
        path=None,
        header={},
        summary={},
        row_buffer=bytes_io,
    )


def row(**changes):
    return json.dumps(ROW | changes).encode()


def content(index):
    bins = {}
    for key, score in index.scores.items():
        bins[key] = (score.counts, score.below, score.above, score.fractional)
    return index.entries, bins, index.reasons.kinds, index.reasons.by_run


@pytest.mark.parametrize(
    ("changes", "pointer"), DATA["a_value_of_another_type_is_refused_with_its_line_and_place"]
)
def test_a_value_of_another_type_is_refused_with_its_line_and_place(changes, pointer):
    match = r"a row:2: Expected .* at `" + re.escape(pointer)
    with pytest.raises(DataError, match=match):
        _ = index_of(report_of(row(), row(**changes)))


@pytest.mark.parametrize("key", list(ROW))
def test_a_key_may_be_missing(key):
    changed = {name: value for name, value in ROW.items() if name != key}
    text = json.dumps(changed)
    quick = index_of(report_of(text.encode()))
    report = report_of(json.dumps(changed | {"odd": float("inf")}).encode())
    whole_index = index_of(report)
    assert content(quick) == content(whole_index)
    entry_count = len(quick.entries)
    assert entry_count == 1


def test_repeated_keys_count_by_the_last():
    line = row()[:-1] + b', "run": "late", "grades": {"other": {"score": 1, "state": "graded"}}}'
    report = report_of(line)
    index = index_of(report)
    first_entry = index.entries[0]
    assert first_entry.run == "late"
    scores = list(index.scores)
    assert scores == ["other"]


def test_names_are_text_and_bounded():
    long = "x" * 10_000
    report = report_of(
        row(run=1),
        row(run="1"),
        row(run=None),
        row(sample={"id": long}),
        row(sample={"id": f"{long}y"}),
    )
    index = index_of(report)
    entries = index.entries[:3]
    runs = [entry.run for entry in entries]
    assert runs == ["1", "1", ""]
    id_counts = []
    for entry in index.entries[3:]:
        id_counts.append(len(entry.id))
    assert id_counts == [800, 800]
    tasks = list(index.tasks[3:])
    assert tasks == [1, 2]  # though they begin alike
    reasons = [{"code": long, "subject": long}]
    (kind,) = index_of(report_of(row(grades={"g": {"reasons": reasons}}))).reasons.kinds
    assert kind == ("g", long[:240], long[:240], "")


def test_a_short_index_has_the_same_entries_and_makes_room_for_a_whole_one():
    report = report_of(row(grades={"g": FAULT}), row(sample={"id": 7}, run=2, passed=True))
    short = index_of(report, short=True)
    assert short.reasons.kinds == {}
    index = index_of(report, short=True)
    assert index is short
    whole_index = index_of(report)
    assert whole_index.entries == short.entries
    kind_count = len(whole_index.reasons.kinds)
    assert kind_count > 0
    assert index_of(report, short=True) is whole_index


def test_blocks_do_not_show(monkeypatch):
    items = []
    for n in (2, 1):
        reasons = [{"code": f"c{n}"}]
        score = n / 2
        items.append({"gold": "f", "score": score, "metadata": {"call": n}, "reasons": reasons})
    graded = [{**GRADE, "score": n / 3, "items": items[: n % 3]} for n in range(4)]
    grades = [{"a": graded[n % 4], "b": (GRADE, FAULT)[n % 2]} for n in range(40)]
    changed = [
        {"sample": {"id": n % 7}, "facets": {"n": n % 3}, "passed": n % 4 == 3} for n in range(40)
    ]
    rows = []
    for more, grade in zip(changed, grades, strict=True):
        rows.append(row(**more, grades=grade, expected={"calls": []}))

    def all_content():
        lines = ((number, 0, line) for number, line in enumerate(rows, start=1))
        index = RowIndex.of(lines, lambda _, line: json.loads(line), "a", ("a", "b"), ordered=True)
        kinds = index.reasons.kinds
        index_content = (
            kinds,
            index.reasons.samples,
            index.reasons.by_run,
            index.calls.tools,
        )
        marks = index.verdicts.marks
        verdicts = (
            marks,
            index.verdicts.by_grader,
            index.verdicts.reordered,
            index.verdicts.tasks,
        )
        return (
            content(index),
            index_content,
            verdicts,
            index.facets.counts(),
            index.by_outcome,
            index.without_calls,
            index.tasks,
        )

    uncut = all_content()
    assert uncut[1][1][uncut[1][0]["a", "c2", "", ""]] == 20
    for block, skipped_rows in ((1, 1), (1, 3), (1000, 2)):
        monkeypatch.setattr(index_module, "_BLOCK", block)
        monkeypatch.setattr(tallies, "_MOST_HELD", skipped_rows)
        assert all_content() == uncut


def test_rows_are_read_at_their_place(run_lines, record):
    records = [record(name, 1.0) for name in "abcd"]
    run = run_lines(records)
    entries = index_of(run).entries
    ids = [entry.id for entry in entries]
    assert ids == ["a", "b", "c", "d"]
    path = run.path / "results.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"#" * (len(first) - 1) + b"\n" + b"".join(others))
    rows = rows_at(run, [3, 1])
    assert [row["sample"]["id"] for row in rows] == ["d", "b"]
    with pytest.raises(DataError, match=r"results\.jsonl:1: not JSON"):
        list(rows_at(run, [0]))


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        row()[:-9],
        row(error="\x00").replace(b"\\u0000", b"\xff"),
        b'{"trajectory":' + b"[" * 200_000,
    ],
)
def test_a_damaged_row_is_told_with_its_line(line):
    with pytest.raises(DataError, match=r"a row:2: (not JSON|not UTF-8|nested too deeply)"):
        _ = index_of(report_of(row(), line, row()))

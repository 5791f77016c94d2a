"""Tables of a run."""

import json

import pytest

from gradestack import (
    ConfigError,
    DataError,
    load_report,
)
from gradestack_plugins.tables.frame import COLUMNS
from tests.core.outcomes import write_records


def test_the_columns_are_a_contract():
    key = "position id model run"
    interval = "low high confidence n clusters method reason"
    gates = f"gate outcome passed metric_key metric op threshold actual {interval}"
    samples = (
        f"{key} cluster facets status ended state score passed n_calls requests "
        "input_tokens "
        "cached_input_tokens cache_write_tokens output_tokens reasoning_tokens cost_usd seconds "
        "first_token_seconds "
        "source_file source_line source_ordinal"
    )
    grades = f"{key} grader state score passed label gold parts"
    reasons = f"{key} grader item code subject pointer"
    calls = f"{key} side index name matched score error seconds"
    headline = f"label figure model value {interval} unit better"
    expected = {
        "headline": headline,
        "figures": f"grader aggregator figure model value {interval} label unit better",
        "gates": gates,
        "samples": samples,
        "grades": grades,
        "items": f"{key} grader item state score label gold parts",
        "reasons": reasons,
        "tasks": "id model trials passed not_passed ungraded mean_score",
        "failures": "grader code subject argument samples",
        "calls": calls,
    }
    assert {name: " ".join(columns) for name, columns in COLUMNS.items()} == expected


def test_an_unknown_table_is_refused(run_lines, record):
    with pytest.raises(
        ConfigError,
        match=r"unknown table 'grade' \(did you mean 'grades'\?\)",
    ):
        run_lines([record("a", 1.0)]).table("grade")


def test_a_run_that_kept_no_rows_has_no_tables(run_lines, record):
    with pytest.raises(DataError, match="kept no rows"):
        run_lines([record("a", 1.0)], rows="none").table("grades")


def test_rows_of_any_kind_are_read(run_lines, record):
    """Ids that are numbers are texts.

    What is not of its type is as if it were not there, and never a zero.
    """
    records = [record(name, 1.0) for name in "abcd"]
    report = run_lines(records)
    path = report.path / "results.jsonl"
    lines = path.read_text().splitlines()
    text = lines[0]
    row = json.loads(text)
    odd = {
        "sample": {"id": 12},
        "run": 2,
        "passed": "yes",
        "facets": 3,
        "usage": {"requests": "x", "seconds": "NaN"},
    }
    odd |= {
        "grades": {
            "quality": {"score": "NaN", "items": 5, "reasons": [7], "parts": {"a": "NaN"}},
            "other": None,
        }
    }
    bare = {
        "sample": None,
        "grades": [],
        "predicted": {"calls": [None]},
        "expected": 4,
        "state": "graded",
    }
    write_records(path, (row, row | odd, {}, bare))
    loaded = load_report(report.path)
    samples = loaded.table("samples")
    grades = loaded.table("grades")
    assert samples["id"] == ["a", "12", None, None]
    run = samples["run"]
    passed = samples["passed"]
    requests = samples["requests"]
    assert (
        run[1],
        passed[1],
        requests[1],
        samples["seconds"][1],
    ) == (
        "2",
        *[None] * 3,
    )
    state = grades["state"][1:]
    assert state == ["skipped"] * 2
    score = grades["score"][1:]
    assert score == [None] * 2
    assert grades["parts"][1] == {"a": None}
    table = loaded.table("reasons")
    assert table["code"][-1] == ""
    assert loaded.table("calls")["name"][-1] is None
    table_count = len(loaded.table("items"))
    assert table_count == 0

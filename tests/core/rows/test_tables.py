"""Tables of a run."""

import json

import pytest

import gradestack
from gradestack import (
    ConfigError,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Grader,
    Item,
    Outcome,
    Reason,
    Sample,
    Source,
    ToolCall,
    Usage,
    load_report,
    skipped,
)
from gradestack.rows.tables import COLUMNS


def test_the_columns_are_a_contract():
    key = "position id model run"
    interval = "low high confidence n clusters method reason"
    assert {name: " ".join(columns) for name, columns in COLUMNS.items()} == {
        "headline": f"label figure model value {interval} unit better",
        "figures": f"grader aggregator figure model value {interval} label unit better",
        "gates": f"gate outcome passed metric_key metric op threshold actual {interval}",
        "samples": f"{key} cluster facets status ended state score passed n_calls requests "
        "input_tokens "
        "cached_input_tokens cache_write_tokens output_tokens reasoning_tokens cost_usd seconds "
        "first_token_seconds "
        "source_file source_line source_ordinal",
        "grades": f"{key} grader state score passed label gold parts",
        "items": f"{key} grader item state score label gold parts",
        "reasons": f"{key} grader item code subject pointer",
        "calls": f"{key} side index name matched score error seconds",
    }


class Detailed(Grader):
    """Says all a grade can say; is skipped without calls."""

    def grade(self, sample):
        if sample.calls is None:
            return skipped("no_calls", "there are none")
        items = (
            Item(
                id="0", score=0.5, label="g", gold="f", parts={"names": 0.0}, metadata={"call": 1}
            ),
            Item(
                id="1",
                outcome=Outcome.SKIPPED,
                metadata={"call": None},
                reasons=(Reason(code="absent", subject="h"),),
            ),
        )
        reasons = (Reason(code="low", pointer="/x", expected=1),)
        parts = {"half": 0.5, "none": None}
        return Grade(
            score=0.25, passed=False, label="a", gold="b", parts=parts, items=items, reasons=reasons
        )


@pytest.fixture(scope="module")
def report():
    """A run of two samples.

    One with everything, one that is skipped by the first grader and failed by the second.
    """
    full = Sample(
        id="7",
        model="m",
        run=1,
        cluster="c",
        ended="completed",
        calls=(ToolCall(name="e"), ToolCall(name="g", error="no", seconds=0.5)),
        expected=Expectation(calls=(ExpectedCall(name="f"), ExpectedCall(names=("h", "i")))),
        usage=Usage(input_tokens=10, cost_usd=1),
        facets={"domain": "air"},
        source=Source(file="f.json", line=3, ordinal=2),
    )
    failed = gradestack.failed(Fault(category="grading", code="broken"))
    graders = {"one": Detailed(), "two": lambda sample: 1.0 if sample.calls else failed}
    return gradestack.grade([full, Sample(id="b")], graders=graders)


def test_an_unknown_table_is_refused(report):
    with pytest.raises(
        ConfigError,
        match=r"no table is called 'grade' \(did you mean 'grades'\?\); there are: headline",
    ):
        report.table("grade")


def test_a_run_that_kept_no_rows_has_no_tables(run_lines, record):
    with pytest.raises(DataError, match="kept no rows"):
        run_lines([record("a", 1.0)], rows="none").table("grades")


def test_rows_of_any_kind_are_read(run_lines, record):
    """Ids that are numbers are texts.

    What is not of its type is as if it were not there, and never a zero.
    """
    report = run_lines([record(name, 1.0) for name in "abcd"])
    path = report.path / "results.jsonl"
    row = json.loads(path.read_text().splitlines()[0])
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
    path.write_text("".join(f"{json.dumps(each)}\n" for each in (row, row | odd, {}, bare)))
    loaded = load_report(report.path)
    samples, grades = loaded.table("samples"), loaded.table("grades")
    assert samples["id"] == ["a", "12", None, None]
    assert (
        samples["run"][1],
        samples["passed"][1],
        samples["requests"][1],
        samples["seconds"][1],
    ) == (
        "2",
        *[None] * 3,
    )
    assert (grades["state"][1:], grades["score"][1:]) == (["skipped"] * 2, [None] * 2)
    assert grades["parts"][1] == {"a": None}
    assert loaded.table("reasons")["code"][-1] == ""
    assert loaded.table("calls")["name"][-1] is None
    assert len(loaded.table("items")) == 0

"""The stability reader and grader.

Records into runs, gold labels, duplicates and broken records.
"""

import json

import pytest

from gradestack import BadRecord
from gradestack_plugins.stability.reader import StabilityReader
from tests.core.outcomes import data

DATA = data(__file__, "reader.yaml")


def record(uuid, runs, gold="tool_call", **more):
    return {
        "uuid": uuid,
        "gold_label": gold,
        "n_runs": 5,
        "run_labels": runs,
        "target_model": "m",
        **more,
    }


def item(uuid, gold="tool_call"):
    return {"uuid": uuid, "question": f"q {uuid}", "correct_answer": gold}


def bad(found):
    return [each.reason for each in found if isinstance(each, BadRecord)]


def test_a_label_that_is_no_text_is_invalid_in_documented_and_a_value_upstream(read):
    """Numbers and truth values; what cannot be counted at all spoils the record upstream only."""
    records = [record("a", [3, True])]
    assert [each.label for each in read(records)] == ["invalid", "invalid"]
    assert [each.native.label.json for each in read(records, profile="upstream")] == ["3", "1"]
    assert [each.label for each in read([record("a", [["x"]])])] == ["invalid"]
    assert "cannot be counted" in bad(read([record("a", [["x"]])], profile="upstream"))[0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        *DATA["a_derived_field_that_cannot_be_trusted_fails_the_record_upstream_only"],
        ({"flip_rate": float("nan")}, "flip_rate must be finite"),
    ],
)
def test_a_derived_field_that_cannot_be_trusted_fails_the_record_upstream_only(read, more, said):
    """Documented computes everything anew and does not look."""
    records = [record("a", ["direct"], **more)]
    assert said in bad(read(records, profile="upstream"))[0]
    assert bad(read(records)) == []


@pytest.mark.parametrize(
    ("given", "number"), [(5, 5), (5.0, 5), ("5", 5), (None, 0), (0, 0), (-3, 0), (True, 1)]
)
def test_n_runs_is_read_as_the_original_reads_it_upstream(read, given, number):
    """Whatever int() takes; 0, null and negative numbers mean that the record does not say."""
    (sample,) = read([record("a", ["direct"], n_runs=given)], profile="upstream")
    assert sample.native.n_runs == number


def test_n_runs_must_be_a_number_in_documented(read):
    """Anything else means that the record does not say."""
    given = [4, 4.0, "4", None, True, 10**20]
    found = read([record(str(n), ["direct"], n_runs=value) for n, value in enumerate(given)])
    assert [each.native.n_runs for each in found] == [4, 4, 0, 0, 0, 0]


def test_dataset_rows_are_counted_and_records_outside_are_marked(read):
    """A uuid that occurs twice counts twice; one that does not occur counts as none."""
    found = read([record("a", ["direct"]), record("x", ["direct"])], [item("a"), item("a")])
    assert [each.native.dataset_rows for each in found] == [2, 0]


def test_sweeps_are_recognised(tmp_path):
    """By run_labels and uuid; When2Call predictions and others are not claimed."""
    sweep = json.dumps(record("a", ["direct"])).encode()
    assert StabilityReader.sniff(tmp_path / "x", sweep) > 0.5
    assert StabilityReader.sniff(tmp_path / "x", b"[\n  " + sweep + b"]") > 0.5
    assert StabilityReader.sniff(tmp_path / "x", sweep[:-5]) > 0.5
    for other in (
        b"",
        b"\xff\x00",
        b'{"uuid": "a", "predicted_label": "x"}',
        b'{"run_labels": []}',
        b"[]",
    ):
        assert StabilityReader.sniff(tmp_path / "x", other) == 0.0

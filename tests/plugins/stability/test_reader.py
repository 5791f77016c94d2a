"""The stability reader and grader.

Records into runs, gold labels, duplicates and broken records.
"""

import json

from gradestack_plugins.stability.reader import StabilityReader


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
    question = f"q {uuid}"
    return {"uuid": uuid, "question": question, "correct_answer": gold}


def test_a_label_that_is_no_text_is_invalid(read):
    samples = read([record("a", [3, True, ["x"]])])
    labels = [sample.label for sample in samples]
    assert labels == ["invalid"] * 3


def test_n_runs_must_be_a_number(read):
    """Anything else means that the record does not say."""
    values = [4, 4.0, "4", None, True, 10**20]
    records = []
    for n, value in enumerate(values):
        records.append(record(str(n), ["direct"], n_runs=value))
    samples = read(records)
    n_runs = [sample.native.n_runs for sample in samples]
    assert n_runs == [4, 4, 0, 0, 0, 0]


def test_dataset_rows_are_counted_and_records_outside_are_marked(read):
    """A uuid that occurs twice counts twice; one that does not occur counts as none."""
    samples = read([record("a", ["direct"]), record("x", ["direct"])], [item("a"), item("a")])
    dataset_rows = [sample.native.counts["dataset_rows"] for sample in samples]
    assert dataset_rows == [2, 0]


def test_sweeps_are_recognised(tmp_path):
    """By run_labels and uuid; When2Call predictions and others are not claimed."""
    text = json.dumps(record("a", ["direct"]))
    sweep = text.encode()
    x_folder = tmp_path / "x"
    assert StabilityReader.sniff(x_folder, sweep) > 0.5
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

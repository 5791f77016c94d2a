"""Results that name no model, beside results that do."""

from __future__ import annotations

import json

import pytest

import gradestack


def models(report):
    return [row["model_name"] for row in report.rows()]


def write_gold(tmp_path, rows):
    lines = (json.dumps({"input": "Capital?", "ground_truth": "Oslo"}) + "\n" for _ in range(rows))
    (tmp_path / "gold.jsonl").write_text("".join(lines), encoding="utf-8")


def test_they_are_those_of_the_only_model_named(letta, tmp_path):
    """With a warning, once; and a dataset counts its rows for one model, not for two."""
    records = [
        letta.result(0, model_name="gpt"),
        letta.failure(1),
        letta.wrapped(letta.result(2, model_name="")),
        letta.result(3, model_handle="gpt"),
    ]
    letta.write(tmp_path / "recorded/results.jsonl", ['{"type": "header"}', "no JSON", *records])
    write_gold(tmp_path, 5)
    done = letta.run(["grade", "recorded", "--dataset", "gold.jsonl", "--grader", "contains", "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    report = gradestack.load_report(tmp_path / "out")
    assert models(report) == ["gpt"] * 5
    assert (report.metrics["total"], report.states["contains"]["missing"]) == (5, 1)
    assert [each["model_name"] for each in report.metrics["per_model"]] == ["gpt"]
    (said,) = [each for each in report.summary["warnings"] if "name no model" in each]
    assert said == (
        "recorded: 2 result(s) name no model, the first at recorded/results.jsonl:4; "
        "they are taken as those of 'gpt', the only one named"
    )


def test_runs_of_one_recording_are_looked_at_together(letta, tmp_path):
    for number, model in ((1, "gpt"), (2, None)):
        letta.write(tmp_path / f"recorded/run_{number}/results.jsonl", [letta.result(0, model_name=model)])
    samples = letta.read(tmp_path / "recorded")
    assert [(sample.run, sample.model) for sample in samples] == [(1, "gpt"), (2, "gpt")]


def test_several_models_need_a_word(letta, tmp_path):
    """Whose such a result is cannot be known: exit 2 with its place, and an option says it."""
    records = [letta.result(0, model_name="b"), letta.result(1), letta.result(2, model_name="a"), letta.result(3)]
    letta.write(tmp_path / "recorded/results.jsonl", records)
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 2
    assert (
        "recorded/results.jsonl:2: the result names no model, and others name several, such as 'b' and 'a'"
        in done.stderr
    )
    assert "--set reader.model=NAME" in done.stderr
    assert not (tmp_path / "out").exists()
    assert letta.run(["grade", "recorded", "--set", "reader.model=a", "-o", "out"], tmp_path).returncode == 0
    assert models(gradestack.load_report(tmp_path / "out")) == ["b", "a", "a", "a"]


@pytest.mark.parametrize("given", [[None, None], ["a", "b"]])
def test_nothing_is_said_where_nothing_is_mixed(letta, tmp_path, given):
    records = [letta.result(number, model_name=model) for number, model in enumerate(given)]
    letta.write(tmp_path / "recorded/results.jsonl", records)
    assert letta.run(["grade", "recorded", "-o", "out"], tmp_path).returncode == 0
    report = gradestack.load_report(tmp_path / "out")
    assert (models(report), report.summary["warnings"]) == (given, [])


def test_recordings_are_looked_at_one_by_one(letta, tmp_path):
    letta.write(tmp_path / "one/results.jsonl", [letta.result(0, model_name="gpt"), letta.result(1)])
    letta.write(tmp_path / "two/results.jsonl", [letta.result(0)])
    assert [sample.model for sample in letta.read(tmp_path / "one", tmp_path / "two")] == ["gpt", "gpt", None]


def test_files_named_by_model_are_told_apart(letta, tmp_path):
    """`default.jsonl` is a target of its own in that layout."""
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded/suite.json").write_text('{"samples": [{"id": 0, "input": "?"}]}', encoding="utf-8")
    for name in ("default", "gpt"):
        letta.write(tmp_path / f"recorded/{name}.jsonl", [{"sample_id": 0, "trajectory": [[letta.spoken("Oslo")]]}])
    assert [sample.model for sample in letta.read(tmp_path / "recorded")] == [None, "gpt"]


def test_rows_of_gradestack_keep_what_they_say(letta, tmp_path):
    """A null model in a run directory of ours is a fact, not an omission."""
    samples = [
        {"id": "a", "model": "gpt", "predicted": "x", "expected": "x"},
        {"id": "b", "predicted": "x", "expected": "x"},
    ]
    gradestack.grade(samples, "exact_match", output=tmp_path / "own")
    assert [sample.model for sample in letta.read(tmp_path / "own")] == ["gpt", None]


@pytest.mark.parametrize(
    "odd", [{"model_name": 3}, {"model_name": ["gpt"]}, {"sample": {"id": True}}, {"predicted": 1}]
)
def test_odd_results_are_looked_at_like_any_other(letta, tmp_path, odd):
    letta.write(tmp_path / "recorded/results.jsonl", [letta.result(0, model_name="gpt"), letta.result(1, **odd)])
    found = letta.read(tmp_path / "recorded")
    assert [getattr(each, "model", "bad") for each in found] == ["gpt", "bad" if "sample" in odd else "gpt"]

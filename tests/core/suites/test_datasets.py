"""Datasets of any form: joined by id, with a reader of their own, and what has no counterpart is named."""

import json

import pytest

import gradestack
from gradestack import ConfigError, DataError
from tests.plugins.chat_files import written

REGISTRY = gradestack.discover(limit="")


def talk(name):
    call = {"id": "c", "function": {"name": "refund", "arguments": '{"ticket": "T-3"}'}}
    return {"id": name, "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}]}


def graded(tmp_path, runs, dataset, **more):
    suite = {
        "target": {"paths": [str(written(tmp_path, runs, "runs.jsonl"))]},
        "dataset": dataset,
        "graders": {"calls": {"kind": "tau_partial"}},
        "reports": [],
        **more,
    }
    return gradestack.run(suite, output=tmp_path / "out", registry=REGISTRY)


def said(report):
    return [each for each in report.summary["warnings"] if "row" in each]


GOLD = json.dumps([{"name": "refund", "arguments": {"ticket": "T-3"}}]).replace('"', '""')


def test_ids_without_a_counterpart_are_counted_on_both_sides(tmp_path):
    rows = [{"id": name, "expected": []} for name in "abcdefg"]
    gold = str(written(tmp_path, rows, "gold.jsonl"))
    report = graded(tmp_path, [talk(name) for name in "azyxwb"], gold)
    (warning,) = said(report)
    assert warning == "gold.jsonl: 4 task(s) without a row in it: w, x, y, …; 5 row(s) of it without a run: c, d, e, …"
    assert report.states["calls"]["missing"] == 5
    assert said(graded(tmp_path, [talk(name) for name in "abcdefg"], gold)) == []


def test_a_table_is_a_dataset_by_a_mapping_of_its_own(tmp_path):
    (tmp_path / "gold.csv").write_text(f'task,gold\na,"{GOLD}"\nb,[]\n')
    dataset = {
        "path": str(tmp_path / "gold.csv"),
        "reader": {"kind": "records", "columns": {"id": "task", "expected": "gold"}},
    }
    report = graded(tmp_path, [talk("a")], dataset)
    assert [(row["sample"]["id"], row["state"], row["grade"]["score"]) for row in report.rows()] == [
        ("a", "graded", 1.0),
        ("b", "missing", 0.0),
    ]
    assert said(report) == ["gold.csv: 1 row(s) of it without a run: b"]
    assert report.summary["config"]["dataset"] == "gold.csv"


def test_questions_of_bfcl_are_a_dataset(tmp_path):
    """Possible answers alone are references, whoever ran them."""
    rows = [{"id": "simple_0", "ground_truth": [{"refund": {"ticket": ["T-3"]}}]}]
    gold = written(tmp_path, rows, "BFCL_v4_simple.json")
    assert graded(tmp_path, [talk("simple_0")], str(gold)).metrics["avg_score_attempted"] == 1.0


def test_options_alone_keep_the_recognised_format(tmp_path):
    gold = written(tmp_path, [{"id": "x", "expected": [], "facets": {"task": "a"}}], "gold.jsonl")
    report = graded(tmp_path, [talk("a")], {"path": str(gold), "reader": {"ids": "$.facets.task"}})
    assert report.states["calls"] == {"graded": 1, "skipped": 0, "failed": 0, "missing": 0}


def test_a_dataset_of_no_known_format_is_refused_with_what_to_write(tmp_path):
    """Not with an option that is for the runs."""
    (tmp_path / "gold.csv").write_text("task,gold\na,[]\n")
    with pytest.raises(DataError, match=r"name it with dataset: \{path: FILE, reader: NAME\}"):
        graded(tmp_path, [talk("a")], str(tmp_path / "gold.csv"))


def test_a_reader_that_joins_its_dataset_itself_takes_no_other(tmp_path):
    dataset = {"path": str(written(tmp_path, [talk("a")], "gold.jsonl")), "reader": "jsonl"}
    with pytest.raises(ConfigError) as caught:
        graded(tmp_path, [talk("a")], dataset, reader="deepfabric")
    assert any("reads its dataset itself" in each for each in caught.value.problems)


def test_rows_of_one_id_that_contradict_each_other_are_said(tmp_path):
    """The last counts; rows that say the same are nobody's worry."""
    call = {"name": "refund", "arguments": {"ticket": "T-3"}}
    rows = [{"id": "a", "expected": []}, {"id": "b", "expected": []}] * 2 + [{"id": "a", "expected": [call]}]
    report = graded(tmp_path, [talk("a"), talk("b")], str(written(tmp_path, rows, "gold.jsonl")))
    assert said(report) == ["gold.jsonl: 1 id(s) of several rows, of which the last counts: a"]
    assert next(iter(report.rows()))["grade"]["score"] == 1.0

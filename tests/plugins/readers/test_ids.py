"""Ids that were recorded as whole numbers: text inside, the number in the rows."""

import json

import pytest

import gradestack
from gradestack_plugins.pages.index import index_of

ANSWERED = {"trajectory": [[{"role": "assistant", "content": "Oslo"}]], "agent_id": "a", "grade": None}
DEEPFABRIC = {
    "messages": [{"role": "user", "content": "Capital?"}, {"role": "assistant", "content": "Oslo"}],
    "tools": [],
    "recorded": {"kind": "content", "content": "Oslo"},
}
RECORDS = {
    "jsonl": {"predicted": "Oslo", "expected": "Oslo"},
    "jsonl with a thorough look": {"predicted": "Oslo", "expected": "Oslo", "error": "gone"},
    "tau_bench": {"task_id": None, "reward": 1.0, "info": {"task": {"actions": []}}, "traj": [], "trial": 0},
    "letta": {"sample": {"input": "Capital?"}, **ANSWERED},
    "letta without samples": {"sample_id": None, **ANSWERED},
    "deepfabric": DEEPFABRIC,
}


def record(form, identifier, **fields):
    found = json.loads(json.dumps(RECORDS[form])) | fields
    if "sample" in found:
        found["sample"]["id"] = identifier
        return found
    named = {"tau_bench": "task_id", "letta without samples": "sample_id"}
    return found | {named.get(form, "id"): identifier}


def write(path, records, *, whole=False):
    lines = json.dumps(records) if whole else "".join(json.dumps(each) + "\n" for each in records)
    path.write_text(lines, encoding="utf-8")
    return path


def ids(report):
    return [row["sample"]["id"] for row in report.rows()]


@pytest.mark.parametrize("form", RECORDS)
def test_a_number_stays_a_number_in_the_row(tmp_path, form):
    reader = form.split()[0]
    recorded = [10**20, "10", 0, -3] if reader != "letta" else [7, "10", 0]
    data = write(tmp_path / "data.json", [record(form, each) for each in recorded], whole=reader == "tau_bench")
    suite = {
        "target": {"paths": [str(data)], "reader": reader},
        "graders": {"exact": {"kind": "exact_match"}},
        "reports": ["html"],
    }
    report = gradestack.run(suite, output=tmp_path / "out")
    assert ids(report) == recorded
    assert [entry.id for entry in index_of(report).entries] == list(map(str, recorded))
    assert all(set(row["source"]) == {"file", "ordinal", "line"} for row in report.rows())
    again = gradestack.run(suite | {"target": {"paths": [str(tmp_path / "out")]}}, output=tmp_path / "again")
    assert ids(again) == recorded


def test_a_number_and_its_text_are_one_task(tmp_path):
    """Runs of task 1 and of task "1" belong together in intervals, and join the same row of a dataset."""
    records = [{"id": each, "run": run, "predicted": text} for run, (each, text) in enumerate([(1, "a"), ("1", "b")])]
    data = write(tmp_path / "data.jsonl", records)
    gold = write(tmp_path / "gold.jsonl", [{"id": 1, "input": "?", "ground_truth": "a"}])
    suite = {
        "target": {"paths": [str(data)], "reader": "jsonl"},
        "dataset": str(gold),
        "graders": {"exact": {"kind": "exact_match", "extractor": "last_assistant"}},
        "reports": [],
        "num_runs": 2,
    }
    report = gradestack.run(suite, output=tmp_path / "out")
    assert [(row["sample"]["id"], row["grade"]["score"]) for row in report.rows()] == [(1, 1.0), ("1", 0.0)]
    mean = report.aggregates["exact"]["mean"]
    assert (mean["n"], mean["clusters"]) == (2, 1)
    assert report.metrics["total"] == 2
    said = 'ids are numbers (first at data.jsonl:1) and text (first at data.jsonl:2): 1 and "1" are one task'
    assert report.summary["warnings"].count(said) == 1


@pytest.mark.parametrize("recorded", [(1, 2), ("1", "2"), (1, "a")])
def test_ids_of_one_kind_are_not_worth_a_word(tmp_path, recorded):
    """Nor are texts that are no whole numbers, beside numbers."""
    records = [{"id": each, "expected": "a", "predicted": "a"} for each in recorded]
    report = gradestack.grade_files(
        write(tmp_path / "data.jsonl", records),
        graders=["exact_match"],
        output=tmp_path / "out",
        overrides=["reports=[]"],
    )
    assert not any("one task" in text for text in report.summary.get("warnings", ()))


def test_keys_of_rows_are_text():
    """What recomputes figures from rows joins by the id's text, like the run itself."""
    row = {"sample": {"id": 7}, "model_name": None, "run": 1, "facets": {}}
    assert gradestack.key_from_row(row, 0) == gradestack.Key(id="7", run=1)


def test_a_missing_row_shows_the_number_of_its_dataset(tmp_path):
    """A dataset that counts its rows gives numbers, so that a file's rows have ids of one kind."""
    data = write(tmp_path / "data.jsonl", [record("letta", 0, submission="Oslo")])
    gold = write(tmp_path / "gold.jsonl", [{"input": "Capital?", "ground_truth": "Oslo"}] * 2)
    report = gradestack.run(
        {
            "target": {"paths": [str(data)], "reader": "letta"},
            "dataset": str(gold),
            "graders": {"exact": {"kind": "exact_match"}},
            "reports": [],
        },
        output=tmp_path / "out",
    )
    assert [(row["sample"]["id"], row["status"]) for row in report.rows()] == [(0, "ok"), (1, "missing")]

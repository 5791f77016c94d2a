"""Every reader goes with every grader, or says why not."""

import json
import sys
from pathlib import Path

import pytest
import yaml

import gradestack
from gradestack import ConfigError, discover

sys.path.insert(0, str(Path(__file__).parent))
import combinations

from tests.core.outcomes import data

DATA = data(__file__, "combinations.yaml")

sys.path.pop(0)
EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = DATA["options"]
DATASETS = {
    name: EXAMPLES / name / "dataset.jsonl" for name in ("deepfabric", "stability", "when2call")
}
"""Without which these formats have no sample."""
APART = {"combined", "judged", "model_judge", "rubric"}
"""They ask a model, or combine other graders, and refuse on every reader as they stand."""
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
TALK = DATA["talk"]
BLOCKS = DATA["blocks"]
ACTIONS = {"actions": [{"name": "f", "arguments": {"x": 1}}]}
SIMULATION = {
    "id": "s",
    "task_id": "t",
    "trial": 0,
    "reward_info": {"reward": 1.0},
    "messages": TALK[:1],
}
SPAN = DATA["span"]
RECORDED = {
    "name": "m",
    "attributes": {"mlflow.spanType": '"LLM"', "mlflow.spanOutputs": '"seven"'},
}
EVALUATED = {"id": "t", "epoch": 1, "messages": TALK, "scores": {"match": {"value": "C"}}}


@pytest.fixture(scope="module")
def registry():
    return discover(limit="")


@pytest.fixture
def files(tmp_path):
    """A small recording of each format that has no example: reader -> path."""
    written = {
        "openai": ("log.jsonl", {"messages": TALK, "tools": [TOOL]}),
        "anthropic": ("claude.jsonl", {"messages": BLOCKS}),
        "records": ("rows.jsonl", {"id": "a", "messages": TALK, "state": {"x": 1}}),
        "adk": (
            "desk.evalset.json",
            {"eval_set_id": "e", "eval_cases": [{"eval_id": "a", "conversation": []}]},
        ),
        "atif": (
            "t.json",
            {"schema_version": "ATIF-v1.7", "agent": {}, "steps": [{"source": "agent"}]},
        ),
        "deepeval": (
            "run.json",
            {"testFile": "t", "testCases": [{"name": "a", "input": "hi", "actualOutput": "ho"}]},
        ),
        "promptfoo": (
            "eval.json",
            {"evalId": "e", "results": [{"testIdx": 0, "promptIdx": 0, "success": True}]},
        ),
        "tau2": (
            "tau2.json",
            {
                "info": {},
                "tasks": [{"id": "t", "evaluation_criteria": ACTIONS}],
                "simulations": [SIMULATION],
            },
        ),
        "bfcl": (
            "result/m/BFCL_v4_multiple_result.json",
            {"id": "multiple_0", "result": [{"f": '{"x": 1}'}]},
        ),
        "otel": ("traces.json", {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}),
        "mlflow": ("mlflow.json", {"info": {"trace_id": "t"}, "data": {"spans": [RECORDED]}}),
        "inspect": (
            "inspect.json",
            {"version": 2, "eval": {"task": "t", "model": "m"}, "samples": [EVALUATED]},
        ),
    }
    tau_bench = EXAMPLES / "airline/results.json"
    deepfabric = EXAMPLES / "deepfabric/replies.jsonl"
    jsonl = EXAMPLES / "quickstart/runs.jsonl"
    letta = EXAMPLES / "letta/recorded"
    letta_dataset = EXAMPLES / "letta/dataset.jsonl"
    orchestrationbench = EXAMPLES / "orchestration/results"
    stability = EXAMPLES / "stability/runs.jsonl"
    when2call = EXAMPLES / "when2call/judge_decisions.jsonl"
    written_files = {
        "tau_bench": tau_bench,
        "deepfabric": deepfabric,
        "jsonl": jsonl,
        "letta": letta,
        "letta_dataset": letta_dataset,
        "orchestrationbench": orchestrationbench,
        "stability": stability,
        "when2call": when2call,
    }
    records = DATA["records"].items()
    written |= {name: (f"{name}.jsonl", record) for name, record in records}
    for name, (folder, record) in written.items():
        written_files[name] = tmp_path / folder
        written_files[name].parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record)
        written_files[name].write_text(text + "\n")
    for place, record in DATA["storage"].items():
        storage_folder = tmp_path / "storage"
        path = storage_folder / place
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record))
    written_files["opencode_storage"] = tmp_path / "storage"
    count_path = tmp_path / "count.py"
    count_path.write_text("def count(sample, submission):\n    return 1.0\n")
    return written_files


def test_every_reader_goes_with_every_grader_or_says_why_not(files, tmp_path, registry):
    """A grader that lacks a field is refused by its name before reading.

    All others grade, or skip with a reason.
    """
    readers, graders = (combinations.classes(registry, kind) for kind in ("reader", "grader"))
    assert set(files) == set(readers)
    graded = set()
    for name, reader in readers.items():
        lacking = {
            grader_name: grader.needs - reader.provides for grader_name, grader in graders.items()
        }
        refused = {grader_name: fields for grader_name, fields in lacking.items() if fields}
        if refused:
            problems = _problems(tmp_path, files[name], name, refused)
            for grader, fields in refused.items():
                wanted = f"{grader} needs {', '.join(sorted(fields))}; the format {name!r} provides"
                assert any(wanted in line for line in problems), (name, grader, problems)
        path = files[name]
        for grade_of, row in _rows(tmp_path, path, name, set(graders) - set(refused) - APART):
            assert row["state"] in {"graded", "skipped", "failed", "missing"}
            if row["state"] == "graded":
                graded.add(grade_of)
            elif row["state"] == "skipped":
                first_reason = row["reasons"][0]
                assert first_reason["code"], (name, grade_of)
            elif row["state"] == "failed":
                category = row["fault"]["category"]
                assert category != "grading", (name, grade_of, row["fault"])
    assert {"tool_schema", "tool_policy", "repeats", "usage", "tau_partial", "recorded"} <= graded


def _suite(folder, path, reader, graders):
    metric = "quality" if reader == "letta" else "reward"
    recorded = {"metric": metric}
    options = {**OPTIONS, "recorded": recorded}
    entries = {}
    for kind in sorted(graders):
        entries[kind] = {"kind": kind, **options.get(kind, {})}
    paths = [str(path)]
    target = {"paths": paths, "reader": {"kind": reader}}
    suite = {
        "name": "all",
        "target": target,
        "graders": entries,
        "reports": [],
    }
    suite_path = folder / "suite.yaml"
    suite_path.write_text(yaml.safe_dump(suite))
    return folder / "suite.yaml"


def _problems(folder, path, reader, graders):
    with pytest.raises(ConfigError) as caught:
        gradestack.load_suite(_suite(folder, path, reader, graders))
    return str(caught.value).splitlines()


def _rows(folder, path, reader, graders):
    """Yield each grader with each of its grades, of the first samples.

    None where there is only a reference.
    """
    suite = _suite(folder, path, reader, graders)
    overrides = ["max_samples=3", "engine=serial"]
    overrides += [f"dataset={DATASETS[reader]}"] if reader in DATASETS else []
    output = folder / reader
    report = gradestack.run(suite, output=output, overrides=overrides, allow_code=True)
    for row in report.rows():
        yield from row["grades"].items()

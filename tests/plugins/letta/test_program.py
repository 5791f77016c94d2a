"""letta-evals' program: its native files, its verdict and what it prints."""

import json

import pytest

import gradestack
from gradestack_plugins.letta.gates import Result
from gradestack_plugins.letta.program import gate_of
from tests.core.outcomes import at, data, read_json

DATA = data(__file__, "program.yaml")


def ran(letta, folder, results, **suite):
    """Run the program on recorded results; return its results and its native files by name."""
    for run, records in results.items() if isinstance(results, dict) else [("", results)]:
        lines = [record_of(letta, number, record) for number, record in enumerate(records)]
        letta.write(folder / "recorded" / f"{run}results.jsonl", lines)
    target = {"target": {"paths": [str(folder / "recorded")]}, "reports": []}
    written = {"allow_all_failed": True, "profile": "upstream", **target, **suite}
    with gradestack.run(written, output=folder / "out") as report:
        (entry,) = report.summary["programs"]
        return entry, {path.stem: path for path in (folder / "out/native/letta").iterdir()}


def record_of(letta, number, written):
    """Return a result: of an answer, of fields of its own, or of a run that failed."""
    if not isinstance(written, dict):
        return letta.result(number, written)
    changes = dict(written)
    failed = changes.pop("failed", False)
    identifier = changes.pop("id", number)
    without = changes.pop("without", ())
    if failed:
        record = letta.failure(identifier, **changes)
    else:
        record = letta.result(identifier, **changes)
    return {name: value for name, value in record.items() if name not in without}


@pytest.mark.parametrize("case", DATA["recordings"], ids=lambda case: case["name"])
def test_a_recording_graded_again(letta, tmp_path, case):
    entry, files = ran(letta, tmp_path, case["results"], **case["suite"])
    for name, wanted in case["is"].items():
        native = read_json(files[name])
        assert {path: at(native, path) for path in wanted} == wanted
    if "scores" in case:
        lines = files["results"].read_text(encoding="utf-8").splitlines()
        grades = [json.loads(line)["result"]["grades"] or {} for line in lines]
        assert [{key: grade["score"] for key, grade in of.items()} for of in grades] == case[
            "scores"
        ]
    assert entry["exit_code"] == case.get("exit")
    assert not {*case.get("prints", ())} - {*entry["console"].splitlines()}


@pytest.mark.parametrize("case", DATA["gates"], ids=str)
def test_a_gate(case):
    scores = case["scores"]
    attempted = case.get("attempted", [True] * len(scores))
    results = [
        Result(record={}, scores=of, attempted=ran, run=1)
        for of, ran in zip(scores, attempted, strict=True)
    ]
    gate = gate_of({"gate": case["gate"]})
    gate_result = {
        "passed": gate.passes(results, gate.metric_key or "q"),
        "actual": gate.value_of(results, gate.metric_key or "q"),
    }
    assert gate_result == {name: case[name] for name in gate_result}


@pytest.mark.parametrize("gate", DATA["gates_of_gradestack"], ids=str)
def test_a_gate_that_letta_evals_lacks_is_left_to_gradestack(gate):
    assert gate_of({"gate": gate}) is None


@pytest.mark.parametrize(("rule", "score", "passes"), DATA["samples"])
def test_a_sample_passes_by_the_rule_of_the_gate(rule, score, passes):
    gate = gate_of({"gate": {"op": "gte", "value": 0.5, **rule}})
    assert gate.passes_sample(score) is passes

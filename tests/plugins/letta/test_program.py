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
        recorded_folder = folder / "recorded"
        letta.write(recorded_folder / f"{run}results.jsonl", lines)
    paths = [str(folder / "recorded")]
    target = {"target": {"paths": paths}, "reports": []}
    written = {"allow_all_failed": True, "profile": "upstream", **target, **suite}
    output = folder / "out"
    with gradestack.run(written, output=output) as report:
        (entry,) = report.summary["programs"]
        letta_folder = folder / "out/native/letta"
        return entry, {path.stem: path for path in letta_folder.iterdir()}


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
        text = files["results"].read_text(encoding="utf-8")
        lines = text.splitlines()
        grades = []
        for line in lines:
            document = json.loads(line)
            grades.append(document["result"]["grades"] or {})
        scores_by_keys = []
        for of in grades:
            scores_by_key = {key: grade["score"] for key, grade in of.items()}
            scores_by_keys.append(scores_by_key)
        assert scores_by_keys == case["scores"]
    assert entry["exit_code"] == case.get("exit")
    console = entry["console"]
    assert not {*case.get("prints", ())} - {*console.splitlines()}


@pytest.mark.parametrize("case", DATA["gates"], ids=str)
def test_a_gate(case):
    scores = case["scores"]
    attempted = case.get("attempted", [True] * len(scores))
    pairs = zip(scores, attempted, strict=True)
    results = [Result(record={}, scores=of, attempted=ran, run=1) for of, ran in pairs]
    config = {"gate": case["gate"]}
    gate = gate_of(config)
    passes = gate.passes(results, gate.metric_key or "q")
    actual = gate.value_of(results, gate.metric_key or "q")
    gate_result = {
        "passed": passes,
        "actual": actual,
    }
    expected = {name: case[name] for name in gate_result}
    assert gate_result == expected


@pytest.mark.parametrize("gate", DATA["gates_of_gradestack"], ids=str)
def test_a_gate_that_letta_evals_lacks_is_left_to_gradestack(gate):
    assert gate_of({"gate": gate}) is None


@pytest.mark.parametrize(("rule", "score", "passes"), DATA["samples"])
def test_a_sample_passes_by_the_rule_of_the_gate(rule, score, passes):
    gate = gate_of({"gate": {"op": "gte", "value": 0.5, **rule}})
    passes_sample = gate.passes_sample(score)
    assert passes_sample is passes

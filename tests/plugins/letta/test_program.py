"""letta-evals' program: its native files, its verdict and what it prints."""

import json

import pytest

import gradestack
from gradestack import ProgramInput, load_suite
from gradestack_plugins.letta.gates import Result, percentile
from gradestack_plugins.letta.program import LettaProgram, gates_of
from tests.core.outcomes import at, data

DATA = data(__file__, "program.yaml")


def ran(letta, folder, results, **suite):
    """Return what the program makes of recorded results."""
    for run, records in results.items() if isinstance(results, dict) else [(None, results)]:
        name = "results.jsonl" if run is None else f"run_{run}/results.jsonl"
        letta.write(
            folder / "recorded" / name, [record_of(letta, *each) for each in enumerate(records)]
        )
    target = {"target": {"paths": [str(folder / "recorded")]}, "reports": []}
    written = {"name": "again", "allow_all_failed": True, **target, **suite}
    with gradestack.run(written, output=folder / "out") as report:
        loaded = load_suite(written)
        given = ProgramInput(
            input=loaded.inputs.data[0],
            reader=loaded.reader.component,
            config=loaded.config,
            graders={stage.key: stage.component for stage in loaded.graders},
            rows=report.rows,
        )
        return LettaProgram().run(given)


def record_of(letta, number, written):
    """Return a result: its answer, or fields of its own; ``failed`` ones as letta-evals has them."""
    if not isinstance(written, dict):
        return letta.result(number, written)
    changes = dict(written)
    failed = changes.pop("failed", False)
    identifier = changes.pop("id", number)
    without = changes.pop("without", ())
    record = letta.failure(identifier, **changes) if failed else letta.result(identifier, **changes)
    return {name: value for name, value in record.items() if name not in without}


@pytest.mark.parametrize("case", DATA["recordings"], ids=lambda case: case["name"])
def test_a_recording_graded_again(letta, tmp_path, case):
    found = ran(letta, tmp_path, case["results"], **case["suite"])
    native = {name: json.loads(found.files[f"letta/{name}.json"]) for name in case["is"]}
    for name, wanted in case["is"].items():
        assert {path: at(native[name], path) for path in wanted} == wanted
    lines = [json.loads(line) for line in found.files["letta/results.jsonl"].splitlines()]
    if "scores" in case:
        scores = [
            {key: grade["score"] for key, grade in (line["result"]["grades"] or {}).items()}
            for line in lines
        ]
        assert scores == case["scores"]
    assert found.exit_code == case.get("exit")
    for text in case.get("prints", ()):
        assert text in found.console.splitlines()


def results_of(scores, attempted=None):
    count = max(map(len, scores.values()))
    attempted = attempted or [True] * count
    return [
        Result(
            record={},
            scores={
                key: column[number]
                for key, column in scores.items()
                if number < len(column) and column[number] is not None
            },
            attempted=attempted[number],
            run=1,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("case", DATA["gates"], ids=str)
def test_a_gate(case):
    scores = case.get("scores", {"q": [0.2, 1.0, 0.6], "r": [1.0, 0.0], "empty": []})
    results = results_of(scores, case.get("attempted"))
    (gate,) = gates_of({"gate": case["gate"]})
    assert gate.passes(results, "q") == case["passed"]
    if "actual" in case:
        assert gate.value_of(results, "q") == case["actual"]
    if "line" in case:
        assert gate.lines(results, "q")[0] == case["line"]


@pytest.mark.parametrize("gate", DATA["gates_of_gradestack"], ids=str)
def test_a_gate_that_letta_evals_lacks_is_left_to_gradestack(gate):
    assert gates_of({"gate": gate}) == ()


@pytest.mark.parametrize(("rule", "score", "passes"), DATA["samples"])
def test_a_sample_passes_by_the_rule_of_the_gate(rule, score, passes):
    (gate,) = gates_of({"gate": {"op": "gte", "value": 0.5, **rule}})
    assert gate.passes_sample(score) is passes


def test_percentiles_are_those_of_numpy():
    """Linear interpolation at position share x (n - 1)."""
    assert [percentile([0.2, 1.0, 0.6], share) for share in (0.95, 0.99)] == [0.96, 0.992]
    assert percentile([0.5], 0.99) == 0.5

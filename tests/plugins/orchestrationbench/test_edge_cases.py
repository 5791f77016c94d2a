"""Broken records: what stays of a file, and what zeroes it in the original's program.

Results that cannot be read.
"""

import copy

import pytest

import gradestack
from gradestack import DataError, Outcome
from tests.core.outcomes import data

BREAKS = data(__file__, "broken_runs.yaml")


@pytest.fixture
def sound(scenario, turns):
    """A scenario of two trials: one call repeated exactly, one rejection met, one plan repeated."""
    label = turns.label(
        _2={"role": "user", "content": "please"},
        _3={"role": "assistant", "content": "workflow_1: {steps: [{name: a, status: x}]}"},
        _4=[turns.call("f", {"a": 1, "refinedQuery": "q"})],
        _5="AWAITING_USER_INPUT",
    )
    main_agent_history = [turns.plan(3, "workflow_1: {steps: [{name: a, status: x}]}")]
    sub_agent_history = [
        turns.answer("4", [turns.call("f", {"a": 1, "refinedQuery": "q"})]),
        turns.answer("5", [], "AWAITING_USER_INPUT"),
    ]
    run = {
        "label": label,
        "main_agent_history": main_agent_history,
        "sub_agent_history": sub_agent_history,
    }
    run_2 = copy.deepcopy(run)
    return scenario(runs={"run #1": run, "run #2": run_2})


def row(bench):
    figures = bench.figures()
    (scenario,) = figures["scenarios"]
    return scenario


@pytest.fixture(params=BREAKS.values(), ids=list(BREAKS))
def broken(bench, sound, request):
    """A file whose first run is broken, and what documented still counts of it."""
    path, value, counts = request.param
    at, (*steps, last) = sound, ["history", "run #1", *filter(None, path.split("."))]
    for step in steps:
        if isinstance(at, list):
            at = at[int(step)]
        else:
            at = at[step]
    if isinstance(at, list):
        at[int(last) :] = [value, *at[int(last) + 1 :]]
    elif value == "gone":
        del at[last]
    else:
        at[last] = value
    bench.write("one", sound)
    return path, tuple(counts)


@pytest.mark.usefixtures("broken")
def test_one_broken_record_zeroes_the_argument_part_in_the_program(bench):
    """Whatever the original raises on zeroes the argument part of the whole file, which still
    counts as successful.
    """
    tree = bench.program()
    (result,) = tree["detailed_results"]
    successful_evaluations = tree["overall_statistics"]["successful_evaluations"]
    assert successful_evaluations == 1
    assert result["function_name_accuracy"] == result["total_function_call_cases"] == 0.0
    arguments = result["detail"]["arguments_detail"]
    assert arguments["error"]
    assert arguments["llm_failed_trials"] == []
    assert "total_failed_generation" not in arguments


def test_one_broken_record_costs_no_more_than_its_step(bench, broken):
    """Everything else of the file is kept.

    The second trial is untouched, the rest of the first one too.
    """
    _, expected = broken
    scenario = row(bench)
    assert scenario["error"] is None
    assert scenario["fc_fc"] >= 1
    assert scenario["reject_reject"] >= 1
    assert scenario["function_name_accuracy"] == 1.0
    assert (
        tuple(
            scenario[name] for name in ("fc_fc", "reject_reject", "steps_faulty", "steps_missing")
        )
        == expected
    )


def test_plans_survive_a_broken_argument_part(bench, broken):
    is_lost = broken[0] in ("label", "")
    program = bench.program()
    (result,) = program["detailed_results"]
    for scenario in (row(bench), result):
        assert scenario["total_comparison_steps_evaluated"] == (1 if is_lost else 2)
        assert scenario["workflow_evaluation_with_failure"] == 1.0


@pytest.mark.parametrize("history", [None, {}, [], [1], "x"])
def test_a_file_without_runs(bench, sound, history):
    """One failed sample and an error entry; to the program a successful file of zeros."""
    sound["history"] = history
    bench.write("one", sound)
    program = bench.program()
    (result,) = program["detailed_results"]
    assert result["detail"]["arguments_detail"]["error"]
    assert result["workflow_evaluation_with_failure"] == result["function_name_accuracy"] == 0.0
    ((sample, grade),) = bench.grades()
    status = str(sample.status)
    assert status == "failed"
    assert grade.outcome == Outcome.FAILED
    assert grade.fault.code == "no_runs"
    native = bench.native()
    overall_statistics = native["overall_statistics"]
    failed_evaluations = overall_statistics["failed_evaluations"]
    assert failed_evaluations == 1


def test_strict_stops_at_the_first_file_that_cannot_be_read(tmp_path):
    """Such a file is a failed run, as the original counts it.

    Strict takes it for the bad record it is: exit code 3.
    """
    results = tmp_path / "results"
    results.mkdir()
    a_out_path = results / "a_out.json"
    a_out_path.write_text("{broken")
    b_out_path = results / "b_out.json"
    b_out_path.write_text("[]")
    output = tmp_path / "out"
    report = gradestack.grade_files(results, output=output, overrides=["reports=[]"])
    total = report.metrics["total"]
    assert total == 2
    with pytest.raises(DataError, match=r"results/a_out\.json record 0: not JSON: ") as caught:
        gradestack.grade_files(results, output=tmp_path / "strict", strict=True)
    assert caught.value.exit_code == 3
    strict_folder = tmp_path / "strict"
    assert not strict_folder.exists()

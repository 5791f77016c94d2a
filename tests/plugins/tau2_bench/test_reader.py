"""tau2-bench: results, rewards, reference data."""

import json

import pytest

import gradestack
from gradestack import DataError, Outcome, Sample, Status, testing
from gradestack_plugins.tau2_bench.grader import Tau2Reward
from gradestack_plugins.tau2_bench.reader import Tau2
from tests.core.outcomes import at, data
from tests.plugins.described_samples import read

DATA = data(
    __file__, "reader.yaml"
)  # its conversation has two turns: the agent calls twice at once, the user once


def test_calls_have_their_results_and_requestors(tau2):
    """Results find their call by id whatever their order; the user's calls say so.

    Parallel calls share a step.
    """
    (sample,) = read(Tau2(), tau2.write(tau2.simulation(messages=DATA["conversation"])))
    assert [(call.name, call.result, call.status, call.requestor) for call in sample.calls] == [
        ("find", "yes", "ok", "assistant"),
        ("find", "no", "error", "assistant"),
        ("check_phone", "ok", "ok", "user"),
    ]
    assert [(call.turn, call.step) for call in sample.calls] == [(0, 1), (0, 1), (0, None)]
    assert sample.calls[1].error == "no"
    assert not sample.remarks


def test_the_directory_form_reads_as_the_single_file_does(tau2):
    """Files by name below simulations/; given as a directory, as results.json, or alone."""
    simulations = []
    for trial in range(2):
        simulation = tau2.simulation("t", trial, DATA["conversation"])
        simulations.append(simulation)
    folder = tau2.directory(*simulations)
    single = read(Tau2(), tau2.write(*simulations))
    results_path = folder / "results.json"
    for path in (folder, results_path):
        samples = read(Tau2(), path)
        assert [gradestack.replace(sample, source=None) for sample in samples] == [
            gradestack.replace(sample, source=None) for sample in single
        ]
        expected = [str(folder / "simulations" / f"t-{trial}.json") for trial in range(2)]
        files = [sample.source.file for sample in samples]
        assert files == expected
    (alone,) = read(Tau2(), folder / "simulations" / "t-1.json")
    assert alone.model == "rail-1"
    assert alone.run == 1


def test_a_folder_of_one_file_is_read_as_that_file(tau2, tmp_path):
    simulation = tau2.simulation()
    path = tau2.write(simulation)
    (tmp_path / "folder").mkdir()
    results_path = tmp_path / "folder" / "results.json"
    path.rename(results_path)
    assert len(read(Tau2(), tmp_path / "folder")) == 1


def test_a_directory_is_checked_against_its_index(tau2):
    """A file that is missing is a bad record, one too many is read and remarked."""
    simulation = tau2.simulation("t", 0)
    folder = tau2.directory(simulation, tau2.simulation("t", 1))
    simulations_folder = folder / "simulations"
    t_0_path = simulations_folder / "t-0.json"
    other_path = folder / "simulations" / "other.json"
    t_0_path.rename(other_path)
    first, second, bad = read(Tau2(), folder)
    assert [first.run, second.run] == [0, 1]
    assert "t-0" in bad.reason
    inputs = gradestack.Inputs(data=(gradestack.Input(path=folder, name="run", shown="run"),))
    remarks = list(Tau2().remarks(inputs))
    assert remarks == ["run: 1 simulation(s) not in simulation_index, read all the same: other"]


def test_a_folder_of_runs_reads_each_simulation_once(tau2, tmp_path):
    """Single files of a folder whose results file is read too are not read again."""
    simulation = tau2.simulation("t", 0)
    tau2.directory(simulation, name="all/one")
    tau2.directory(tau2.simulation("t", 1), name="all/two")
    all_folder = tmp_path / "all"
    paths = all_folder.rglob("*.json")
    files = sorted(paths)
    assert len(read(Tau2(), *files)) == 2


def test_what_cannot_be_used_is_refused_by_name(tau2, tmp_path):
    """A file that is no results file, one whose tasks are broken, and one whose simulations are no
    list.
    """
    for number, text in enumerate(
        ('{"a": 1}', "[1]", "", '{"info": {}, "tasks": [1', '{"simulations": {"a": 1}}')
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        with pytest.raises(DataError, match=path.name):
            read(Tau2(), path)
    with pytest.raises(DataError, match=r"no results\.json"):
        read(Tau2(), tmp_path)


def test_the_reader_keeps_the_contract(tau2, tmp_path):
    path = tau2.write(*(tau2.simulation("t", trial, DATA["conversation"]) for trial in range(3)))
    testing.check_reader(Tau2(), path, scratch=tmp_path)


def test_what_is_left_out_is_said_once_for_the_run(tau2, tmp_path):
    simulation = tau2.simulation(messages=["no message"])
    path = tau2.write(
        simulation,
        tau2.simulation(messages=["no message", 1], trial=1),
    )
    output = tmp_path / "out"
    report = gradestack.grade_files(path, output=output, overrides=("reports=[]",))
    remarks = report.summary["remarks"]
    count = remarks["message:other"]["count"]
    assert count == 3
    warnings = report.summary["warnings"]
    assert any("message other (3 times, first at " in warning for warning in warnings)


def graded(tau2, **about):
    (sample,) = read(Tau2(), tau2.write(tau2.simulation(**about)))
    return Tau2Reward().grade(sample)


def test_a_missed_reward_says_what_was_missing(tau2):
    """The database, each action without a call, each unmet statement, and an end that is never a
    success.
    """
    action_checks = [
        {"action": tau2.action("find"), "action_match": True, "tool_type": "read"},
        {"action": tau2.action("book", seat=1), "action_match": False, "tool_type": "write"},
    ]
    about = {
        "reward": 0.0,
        "db_check": {"db_match": False, "db_reward": 0.0},
        "action_checks": action_checks,
        "communicate_checks": [{"info": "42", "met": False, "justification": ""}],
        "reward_breakdown": {"DB": 0.0, "COMMUNICATE": 0.0},
    }
    grade = graded(tau2, reward_info=about, ended="max_steps")
    codes = [reason.code for reason in grade.reasons]
    assert codes == DATA["a_missed_reward_says_what_was_missing_2"]
    assert grade.parts == {"DB": 0.0, "COMMUNICATE": 0.0}
    assert grade.counts == DATA["a_missed_reward_says_what_was_missing"]


@pytest.mark.parametrize(("about", "wanted"), DATA["rewards"])
def test_rewards(tau2, about, wanted):
    grade = graded(tau2, **about)
    assert {path: at(grade, path) for path in wanted} == wanted


def test_rewards_of_other_samples():
    """They are taken where one is recorded; a failed run keeps its fault."""
    outcome = Tau2Reward().grade(Sample(id="x")).outcome
    assert outcome is Outcome.SKIPPED
    passed = Tau2Reward().grade(Sample(id="x", recorded={"reward": 1})).passed
    assert passed is True
    fault = gradestack.Fault(category="target", code="broken")
    assert Tau2Reward().grade(Sample(id="x", status=Status.FAILED, error=fault)).fault == fault
    with pytest.raises(ValueError, match="tolerance"):
        Tau2Reward(tolerance=-1)


def test_a_planned_trial_that_is_not_there_did_not_pass(tau2, tmp_path):
    """``info.num_trials`` is the plan; without it each task is divided by its own trials."""
    trials = [("t", 0), ("t", 1), ("t", 2), ("u", 0), ("u", 1)]
    simulations = [tau2.simulation(task_id=task, trial=trial) for task, trial in trials]
    tasks = [tau2.task("t"), tau2.task("u")]
    path = tau2.write(*simulations, tasks=tasks)
    text = path.read_text()
    content = json.loads(text)
    figures = {}
    for plan in (3, None):
        content["info"]["num_trials"] = plan
        path.write_text(json.dumps(content))
        output = tmp_path / "out"
        report = gradestack.grade_files(path, output=output, overrides=("reports=[]",))
        figures[plan] = report.aggregates["reward"]
    pass_hat_k = figures[3]["pass_hat_k"]["pass_hat_k"]
    assert pass_hat_k == pytest.approx({"1": 5 / 6, "2": 2 / 3, "3": 0.5})
    pass_at_k = figures[3]["pass_at_k"]["pass_at_k"]
    assert pass_at_k["1"] == pytest.approx(5 / 6)
    assert figures[None]["pass_hat_k"]["pass_hat_k"] == {"1": 1.0, "2": 1.0}
    warnings = figures[None]["pass_hat_k"]["warnings"]
    first_warning = warnings[0]
    assert first_warning == ("1 of 2 tasks have more trials; k ends at 2")

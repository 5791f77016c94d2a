"""Directory figures, the original's result file, and the laws of the aggregators."""

import json
from pathlib import Path

import pytest

from gradestack import Grade, Outcome, figures
from tests.golden.pages import check_golden_file

AWAIT, VIOLATE = "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION"


@pytest.fixture
def write(bench, scenario, turns):
    """Write a file whose steps are (gold, answer) pairs: ``f`` calls, other texts reject."""

    def calls(calls_made):
        if calls_made == "f":
            return [turns.call("f", {"a": 1})]
        return calls_made

    def run(name, *pairs, main=(), gold_plan=None, runs=None):
        label = turns.label(
            **{f"_{number}": calls(gold) for number, (gold, _) in enumerate(pairs, start=2)}
        )
        if gold_plan:
            label["90"] = {"role": "assistant", "content": gold_plan}
        answers = []
        for number, (_, calls_made) in enumerate(pairs, start=2):
            if calls_made is not None:
                answers.append(
                    turns.answer(
                        str(number),
                        *((calls(calls_made),) if calls_made == "f" else ((), calls_made)),
                    )
                )
        bench.write(name, scenario(label, main, answers, runs))

    return run


def native_file(bench, definition):
    """Return the native file as text, without the folder of this test."""
    if definition == "program":
        tree = bench.program()
    else:
        tree = bench.native()
    directory_path = Path(tree["directory"])
    tree["directory"] = directory_path.name
    return json.dumps(tree, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("definition", ["documented", "program"])
def test_golden_file_of_results(bench, write, turns, definition):
    """Every field and type of figure, of sound files, broken trials and a file that is no JSON."""
    plan = "workflow_1: {steps: [{name: a}]}"
    pairs = [("f", "f"), (AWAIT, VIOLATE), ("f", "hm")]
    shards = turns.plan(90, plan)
    write("b", *pairs, gold_plan=plan, main=[shards])
    write("a", (AWAIT, AWAIT))
    long_plan = "workflow_1: {steps: [{name: a}, {name: b}, {name: c}]}"
    write("third", ("f", "f"), gold_plan=long_plan, main=[turns.plan(90, plan)])
    write("broken", runs={"run #1": {"label": {}, "sub_agent_history": []}})
    call = [turns.call("f", {"a": 1})]
    label = turns.label(_2=call)
    sub_agent_history = [turns.answer("2", call)]
    run = {"label": label, "sub_agent_history": sub_agent_history}
    write("one_of_two", runs={"run #1": {**run, "main_agent_history": []}, "run #2": 7})
    bench.write("unreadable", "{")
    page = native_file(bench, definition)
    check_golden_file(f"orchestrationbench_{definition}.json", page)


@pytest.mark.parametrize("definition", ["documented", "program"])
def test_golden_file_without_readable_files(bench, definition):
    """The program's tree lacks the fields that the original lacks; documented keeps them null."""
    bench.write("one", "{")
    name = f"orchestrationbench_nothing_{definition}.json"
    page = native_file(bench, definition)
    check_golden_file(name, page)


def test_without_its_own_aggregator_nothing_is_exported():
    """The result file needs the figures of the family's aggregator."""
    from gradestack import ExportSummary, GraderSummary, Input
    from gradestack_plugins.orchestrationbench.exporter import OrchestrationBenchExporter
    from gradestack_plugins.orchestrationbench.graders import OrchestrationBench

    grader = GraderSummary(key="x", grader=OrchestrationBench(), states={}, aggregates={})
    path = Path("x")
    input_file = Input(path=path, name="x", shown="x")
    summary = ExportSummary(input=input_file, reader=None, graders={"orchestrationbench": grader})
    assert OrchestrationBenchExporter().finish(summary) == {}


def test_missing_trials_are_no_trials():
    """A dataset row without a run leaves no trace in the figures."""
    rows = [("x", None, None, Grade(outcome=Outcome.MISSING))]
    orchestrationbench = figures({"orchestrationbench": {}}, rows)["orchestrationbench"]
    scenarios = orchestrationbench["scenarios"]
    assert scenarios == []


def test_a_grade_without_file_is_grouped_by_task():
    """Samples of other readers are grouped by id, so that k runs of a task are its trials."""
    counts = {"plans": 1, "plans_parsed": 1}
    rows = [
        ("x", run, None, Grade(score=score, counts=counts, metadata={"plan_scores": [score]}))
        for run, score in ((1, 1.0), (2, 0.0))
    ]
    orchestrationbench = figures({"orchestrationbench": {}}, rows)["orchestrationbench"]
    (row,) = orchestrationbench["scenarios"]
    assert row["file"] == "x"
    assert row["trials"] == 2
    assert row["workflow_evaluation_with_failure"] == 0.5

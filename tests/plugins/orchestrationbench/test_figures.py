"""Directory figures, the original's result file, and the laws of the aggregators."""

from pathlib import Path

import pytest

from gradestack import Grade, Outcome, figures
from tests.core.outcomes import data

DATA = data(__file__, "figures.yaml")

PROFILES = ["documented", "upstream"]
AWAIT, VIOLATE = "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION"


@pytest.fixture
def write(bench, scenario, turns):
    """Write a file whose steps are (gold, answer) pairs: ``f`` calls, other texts reject."""

    def calls(said):
        return [turns.call("f", {"a": 1})] if said == "f" else said

    def run(name, *pairs, main=(), gold_plan=None, runs=None):
        label = turns.label(
            **{f"_{number}": calls(gold) for number, (gold, _) in enumerate(pairs, start=2)}
        )
        if gold_plan:
            label["90"] = {"role": "assistant", "content": gold_plan}
        answers = []
        for number, (_, said) in enumerate(pairs, start=2):
            if said is not None:
                answers.append(
                    turns.answer(str(number), *((calls(said),) if said == "f" else ((), said)))
                )
        bench.write(name, scenario(label, main, answers, runs))

    return run


def test_without_gold_plans_there_is_no_plan_score_and_no_average(bench, scenario, turns):
    """Calls and rejections have their figures.

    Plan and Average are null and say why, in upstream they are numbers.
    """
    call, ask = turns.call("f", {"x": 1}), "AWAITING_USER_INPUT"
    label = turns.label(_2=[call], _3=ask)
    bench.write(
        "one", scenario(label, sub=[turns.answer("2", [call]), turns.answer("3", content=ask)])
    )
    found, original = (bench.figures(profile=profile) for profile in PROFILES)
    assert (found["call_rejection_accuracy"], found["fc"]) == (1.0, 1.0)
    assert (found["plan"], found["plan_upper_bound"], found["average"]) == (None, None, None)
    assert (found["undefined"]["plan"], found["undefined"]["average"]) == (
        "no gold plan",
        "plan not defined",
    )
    assert (original["plan"], original["average"]) == (0.0, 0.6667)
    assert (
        bench.native()["overall_statistics"]["key_metrics"]
        == DATA["key_metrics_without_gold_plans"]
    )


@pytest.mark.parametrize("profile", PROFILES)
def test_average_is_of_rounded_figures(bench, generator, tmp_path, profile):
    """Average = mean of the three key metrics after rounding, rounded again."""
    directory, cards = generator.write_suite(tmp_path / "suite", 31, seed=3)
    bench.directory = directory
    figures = bench.figures(profile=profile, reader={"agent_cards": cards}, solver="exact")
    three = figures["call_rejection_accuracy"], figures["fc"], figures["plan"]
    assert all(value == round(value, 4) for value in three)
    assert figures["average"] == round((three[0] + three[1] + three[2]) / 3, 4)
    single = {
        kind: bench.figures(kind, profile, reader={"agent_cards": cards})
        for kind in ("decision", "call")
    }
    assert (single["decision"]["call_rejection_accuracy"], single["call"]["fc"]) == three[:2]
    plans = bench.figures("plan", profile, solver="exact")
    assert plans["plan"] == three[2]
    assert figures["fc_upper_bound"] >= figures["fc"]


FIELDS = {name: set(fields) for name, fields in data(__file__, "fields.yaml").items()}
MATRIX, WORKFLOW, REJECTIONS, PERFORMANCE = (
    FIELDS[name] for name in ("matrix", "workflow", "rejections", "performance")
)
ARGUMENTS = MATRIX | FIELDS["arguments"]


@pytest.mark.parametrize("profile", PROFILES)
def test_the_result_file_has_every_field(bench, write, turns, profile):
    plan = "workflow_1: {steps: [{name: a}]}"
    write(
        "b", ("f", "f"), (AWAIT, VIOLATE), ("f", "hm"), gold_plan=plan, main=[turns.plan(90, plan)]
    )
    write("a", (AWAIT, AWAIT))
    extra = profile == "documented"
    tree = bench.native(profile)
    assert list(tree) == ["directory", "overall_statistics", "detailed_results"]
    assert tree["directory"].endswith("/out")  # as it was given
    overall = tree["overall_statistics"]
    assert set(overall) == FIELDS["overall"]
    assert list(overall["key_metrics"]) == [
        "Average",
        "Call Rejection Classification Accuracy",
        "FC",
        "Plan",
    ]
    details = overall["score_details"]
    assert list(details) == [
        "workflow_scores",
        "function_call_scores",
        "call_rejection_scores",
        "raw_confusion_matrix",
    ]
    assert set(details["workflow_scores"]) == WORKFLOW
    assert set(details["function_call_scores"]) == FIELDS["calls"] | (
        {"arguments_value_score_upper_bound"} if extra else set()
    )
    rejections = details["call_rejection_scores"]
    assert set(rejections) == REJECTIONS
    assert (
        set(rejections["reject_decision_performance"])
        == set(rejections["fc_decision_performance"])
        == PERFORMANCE
    )
    assert set(rejections["error_patterns"]) == {
        "overaction_rate",
        "underaction_rate",
        "type_mismatch_rate",
    }
    assert set(details["raw_confusion_matrix"]) == MATRIX
    assert [entry["file_path"] for entry in tree["detailed_results"]] == [
        "out/a_out.json",
        "out/b_out.json",
    ]
    entry = tree["detailed_results"][1]
    assert set(entry) == WORKFLOW | MATRIX | FIELDS["detailed"]
    assert set(entry["detail"]["workflow_detail"]) == FIELDS["workflow_detail"]
    arguments = entry["detail"]["arguments_detail"]
    assert set(arguments) == ARGUMENTS | ({"value_score_upper_bound"} if extra else set())
    assert arguments["total_rejection_type_mismatch"] == 1
    assert arguments["total_failed_generation"] == (1 if extra else 0)
    assert rejections["total_rejection_type_mismatch"] == (1 if extra else 0)
    assert (
        entry["function_name_accuracy"]
        == arguments["function_name_score"]["f1-score"]
        == (1.0 if extra else 0.5)
    )
    assert tree["detailed_results"][0]["function_name_accuracy"] == (None if extra else 0.0)


def test_the_result_file_of_a_broken_argument_part(bench, write):
    """Upstream writes zeros, an empty trial list and the error.

    The entry has the original's shorter set of fields.
    """
    write("one", ("f", "f"), runs={"run #1": {"label": {}, "sub_agent_history": []}})
    arguments = bench.native("upstream")["detailed_results"][0]["detail"]["arguments_detail"]
    assert set(arguments) == (ARGUMENTS - FIELDS["only_of_whole_arguments"]) | {"error"}
    assert arguments["error"].startswith("KeyError")


def test_failed_trials_are_named_in_documented(bench, scenario, turns):
    """A trial that cannot be graded is listed, and its file's figures come from the others."""
    label = turns.label(_2=[turns.call("f", {"a": 1})])
    run = {
        "label": label,
        "main_agent_history": [],
        "sub_agent_history": [turns.answer("2", [turns.call("f", {"a": 1})])],
    }
    bench.write("one", scenario(runs={"run #1": run, "run #2": 7}))
    arguments = bench.native()["detailed_results"][0]["detail"]["arguments_detail"]
    assert arguments["failed_trials"] == [["run #2", "run #2: the run is not an object"]]
    assert arguments["function_name_score"]["f1-score"] == 1.0


@pytest.mark.parametrize("profile", PROFILES)
def test_the_result_file_without_readable_files(bench, profile):
    """Only errors: upstream's tree lacks the fields the original lacks then, documented keeps them
    as null.
    """
    bench.write("one", "{")
    tree = bench.native(profile)
    overall = tree["overall_statistics"]
    assert (
        overall["total_files"],
        overall["successful_evaluations"],
        overall["failed_evaluations"],
    ) == (1, 0, 1)
    assert overall["key_metrics"]["Average"] == (0.0 if profile == "upstream" else None)
    rejections = overall["score_details"]["call_rejection_scores"]
    if profile == "upstream":
        assert set(rejections) == REJECTIONS - FIELDS["only_of_readable_files"]
        assert set(rejections["reject_decision_performance"]) == PERFORMANCE - {"accuracy"}
        assert set(rejections["error_patterns"]) == {"overaction_rate", "underaction_rate"}
        assert tree["detailed_results"] == [{"error": "Failed to load data from out/one_out.json"}]
    else:
        assert set(rejections) == REJECTIONS
        assert overall["score_details"]["function_call_scores"]["function_name_accuracy"] is None
        assert tree["detailed_results"][0]["file_path"] == "out/one_out.json"


def test_counters_have_the_types_of_the_original(bench, write):
    """Upstream writes some counters as floats, as the original does.

    Documented writes whole numbers.
    """
    write("one", ("f", "f"))
    for profile, kind in (("documented", int), ("upstream", float)):
        raw = bench.native(profile)["overall_statistics"]["score_details"]["raw_confusion_matrix"]
        assert type(raw["total_true_negative_reject"]) is kind
        assert type(raw["total_true_positive_fc"]) is int


def test_the_result_file_survives_odd_paths(bench, write, monkeypatch):
    """A lone surrogate in a text is escaped, so that the file can be written."""
    from gradestack_plugins.orchestrationbench import aggregators

    assert aggregators._text({"a": "\ud800é"}) == '{\n  "a": "\\ud800\\u00e9"\n}'
    assert "é" in aggregators._text({"a": "é"})


def test_without_its_own_aggregator_nothing_is_exported():
    """The result file needs the figures of the family's aggregator."""
    from gradestack import ExportSummary, GraderSummary, Input
    from gradestack_plugins.orchestrationbench.aggregators import OrchestrationBenchExporter
    from gradestack_plugins.orchestrationbench.graders import OrchestrationBench

    grader = GraderSummary(key="x", grader=OrchestrationBench(), states={}, aggregates={})
    given = Input(path=Path("x"), name="x", shown="x")
    summary = ExportSummary(
        input=given, reader=None, profile="documented", graders={"orchestrationbench": grader}
    )
    assert OrchestrationBenchExporter().finish(summary) == {}


def test_missing_trials_are_no_trials():
    """A dataset row without a run leaves no trace in the figures."""
    rows = [("x", None, None, Grade(outcome=Outcome.MISSING))]
    assert figures({"orchestrationbench": {}}, rows)["orchestrationbench"]["scenarios"] == []


def test_a_grade_without_file_is_grouped_by_task():
    """Samples of other readers are grouped by id, so that k runs of a task are its trials."""
    counts = {"plans": 1, "plans_parsed": 1}
    rows = [
        ("x", run, None, Grade(score=score, counts=counts, metadata={"plan_scores": [score]}))
        for run, score in ((1, 1.0), (2, 0.0))
    ]
    (row,) = figures({"orchestration_plans": {}}, rows)["orchestration_plans"]["scenarios"]
    assert (row["file"], row["trials"], row["workflow_evaluation_with_failure"]) == ("x", 2, 0.5)

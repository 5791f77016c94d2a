"""Whole runs: made-up suites, the judge, reference data."""

import json
import shutil
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.orchestrationbench.plans import parse_plan

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "orchestration"


def figures(report, grader="orchestrationbench", aggregator="orchestrationbench"):
    metrics = report.summary["metrics"]
    return metrics["aggregates"][grader][aggregator]


@pytest.fixture
def page_example(tmp_path):
    """The file of the page's worked example."""
    worked_folder = EXAMPLE / "worked"
    ferry_out_path = worked_folder / "ferry_out.json"
    return Path(shutil.copy(ferry_out_path, tmp_path))


def test_worked_example_documented(page_example, tmp_path):
    """The page's figures follow from the formulas."""
    output = tmp_path / "run"
    report = gradestack.grade_files([page_example], output=output, overrides=["reports=[]"])
    values = figures(report)
    third = 2 * (1 / 3 * 1 / 3) / (1 / 3 + 1 / 3)
    rounded = round(2 / 3, 4)
    call = round((1 + rounded + round(third, 4)) / 3, 4)
    plan = 0.5 * (1 - 1 / 5) + 0.5 * (1 - 1.5 / 5)
    assert values["call_rejection_accuracy"] == 0.25
    assert values["fc"] == call
    assert values["plan"] == round(plan, 4)
    expected = round((0.25 + call + round(plan, 4)) / 3, 4)
    assert values["average"] == expected == 0.5556
    assert values["fc_upper_bound"] == 0.7778
    assert values["decision_matrix"]["FC"] == {"FC": 1, "Reject": 0, "FAILED": 1}


def test_a_directory_is_a_model_and_several_are_never_pooled(page_example, tmp_path):
    places = []
    for name, text in (
        ("strong", page_example.read_text()),
        ("weak", page_example.read_text().replace("Brekke", "X")),
    ):
        (tmp_path / name).mkdir()
        ferry_out_path = tmp_path / name / "ferry_out.json"
        ferry_out_path.write_text(text)
        places.append(tmp_path / name)
    paths = places[:1]
    one = gradestack.grade_files(paths, output=tmp_path / "one", overrides=["reports=[]"])
    output = tmp_path / "two"
    two = gradestack.grade_files(places, output=output, overrides=["reports=[]"])
    model_names = [row["model_name"] for row in two.rows()]
    assert model_names == ["strong", "weak"]
    rows = two.metrics["per_model"]
    assert [row["model_name"] for row in rows] == ["strong", "weak"]
    duplicates = two.summary["duplicates"]
    assert duplicates["count"] == 0
    values = figures(two)
    assert values["average"] is None
    assert values["plan"] is None
    average = values["undefined"]["average"]
    assert "under `models`" in average
    strong = values["models"]["strong"]
    assert strong["average"] == figures(one)["average"] is not None
    expected = [
        values["models"]["weak"][name]
        for name in ("average", "call_rejection_accuracy", "fc", "plan")
    ]
    headline = two.summary["headline"]
    entries = headline["figures"]
    assert [entry["models"]["weak"]["value"] for entry in entries] == expected
    models = set(values["models"])
    assert models == {"strong", "weak"}
    one_folder = tmp_path / "one"
    two_folder = tmp_path / "two"
    alone, joined = (run / "native" for run in (one_folder, two_folder))
    key_metrics = []
    orchestrationbench_path = alone / "orchestrationbench.json"
    strong_folder = joined / "strong"
    for path in (
        orchestrationbench_path,
        strong_folder / "orchestrationbench.json",
    ):
        document = json.loads(path.read_text())
        key_metrics.append(document["overall_statistics"]["key_metrics"])
    assert key_metrics[0] == key_metrics[1]


def _close(value, expected):
    if value is None or expected is None:
        return value is expected
    return abs(value - expected) < 1e-12


def _agree(native, expected):
    statistics = native["overall_statistics"]
    assert statistics["key_metrics"] == expected["keys"]
    assert statistics["total_files"] == expected["files"]
    assert statistics["successful_evaluations"] == expected["successful"]
    assert statistics["total_failed_workflow_generation"] == expected["plan_failures"]
    assert statistics["total_comparison_steps_evaluated"] == expected["plan_steps"]
    raw = statistics["score_details"]["raw_confusion_matrix"]
    names = {
        "TP": "true_positive",
        "TN": "true_negative",
        "FP": "false_positive",
        "FN": "false_negative",
    }
    for short, long in names.items():
        for side in ("reject", "fc"):
            count = expected["counts"][f"{short}_{side}"]
            expected_text = f"total_{long}_{side}"
            assert raw[expected_text] == count


@pytest.mark.slow
@pytest.mark.parametrize("count", [35, pytest.param(210, marks=pytest.mark.proof)])
@pytest.mark.parametrize("trouble", [0.0, 0.4])
def test_scenarios_agree_with_the_slow_calculation(
    tmp_path, bench, generator, oracle, trouble, count
):
    """Key metrics, counts and every file's figures equal those of an independent calculation, sound
    files or not.
    """
    suite_folder = tmp_path / "suite"
    directory, cards = generator.write_suite(suite_folder, count, seed=17, trouble=trouble)
    bench.directory = directory
    slow = oracle.Oracle()
    paths = sorted(directory.rglob("*_out.json"))
    figures = bench.figures(reader={"agent_cards": cards})
    native = bench.native(reader={"agent_cards": cards})
    overall = slow.overall(paths)
    _agree(native, overall)
    rows = {row["file"]: row for row in figures["scenarios"]}
    assert len(rows) == count
    for path in paths:
        row = rows[f"out/{path.relative_to(directory).as_posix()}"]
        expected = slow.file(path)
        assert (row["error"] is not None) == (expected is None)
        if expected is None:
            continue
        assert row["function_name_accuracy"] == expected["name"], path
        assert row["arguments_key_score"] == expected["key"], path
        assert row["arguments_value_score_not_count_rejection"] == expected["value"], path
        perfect = expected["counts"]["perfect"]
        assert row["perfect_calls"] == perfect, path
        calls = expected["counts"]["calls"]
        assert row["function_call_cases"] == calls, path
        rejections = expected["counts"]["rejections"]
        assert row["rejection_cases"] == rejections, path
        for name, part in (
            ("workflow_evaluation_with_failure", "with"),
            ("workflow_evaluation_without_failure", "without"),
        ):
            plan = expected["plans"][part]
            assert _close(row[name], plan), path
        structural = expected["plans"]["structural"]
        assert _close(row["average_structural_GED"], structural), path
        component = expected["plans"]["component"]
        assert _close(row["average_component_GED"], component), path


@pytest.mark.proof
def test_the_suite_meets_every_kind_of_outcome(tmp_path, bench, generator):
    """The synthetic suite fills every cell of the matrix and every reason, so agreement means
    something.
    """
    suite_folder = tmp_path / "suite"
    directory, cards = generator.write_suite(suite_folder, 210, seed=17, trouble=0.4)
    bench.directory = directory
    matrix = bench.figures(reader={"agent_cards": cards})["decision_matrix"]
    rows = matrix.values()
    assert all(count > 3 for row in rows for count in row.values())
    grades = [grade for _, grade in bench.grades(reader={"agent_cards": cards})]
    items = [item for grade in grades for item in grade.items]
    reasons = set()
    for item in items:
        for key in item.metadata.get("keys", ()):
            reasons.add(key["reason"])
    assert reasons == {
        "exact_comparison",
        "key_missing_in_predicted",
        "key_missing_in_actual",
        "type_mismatch",
        "enum_exact_comparison",
        "pattern_mismatch",
        "undecided",
    }
    codes = {reason.code for item in items for reason in item.reasons}
    assert {"plan_absent", "plan_unparsable", "structural_distance", "component_distance"} <= codes
    outcomes = {str(grade.outcome) for grade in grades}
    assert outcomes == {"graded", "failed", "skipped"}


@pytest.mark.proof
def test_all_published_gold_plans_but_one_are_read(reference):
    """317 plans of 219 scenarios; that of scenario 85, step 8, is no YAML."""
    unread = []
    plans = 0
    scenario_data_folder = reference / "scenario_data"
    for path in scenario_data_folder.glob("*.yaml"):
        yaml_data = gradestack.yaml_data(path.read_text())
        for step in yaml_data["steps"]:
            text = step["data"]["content"]
            if text.startswith("workflow_"):
                plans += 1
                plan = parse_plan(text)
                if not plan.workflows:
                    unread.append((path.stem, step["step_id"]))
    assert (plans, unread) == (317, [("85", 8)])

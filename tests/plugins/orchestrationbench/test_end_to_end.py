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
    return report.summary["metrics"]["aggregates"][grader][aggregator]


@pytest.fixture
def page_example(tmp_path):
    """The file of the page's worked example."""
    return Path(shutil.copy(EXAMPLE / "worked" / "ferry_out.json", tmp_path))


def test_worked_example_documented(page_example, tmp_path):
    """The page's figures follow from the formulas."""
    report = gradestack.grade_files(
        [page_example], output=tmp_path / "run", overrides=["reports=[]"]
    )
    values = figures(report)
    third = 2 * (1 / 3 * 1 / 3) / (1 / 3 + 1 / 3)
    call = round((1 + round(2 / 3, 4) + round(third, 4)) / 3, 4)
    plan = 0.5 * (1 - 1 / 5) + 0.5 * (1 - 1.5 / 5)
    assert (values["call_rejection_accuracy"], values["fc"], values["plan"]) == (
        0.25,
        call,
        round(plan, 4),
    )
    assert values["average"] == round((0.25 + call + round(plan, 4)) / 3, 4) == 0.5556
    assert values["fc_upper_bound"] == 0.7778
    assert values["decision_matrix"]["FC"] == {"FC": 1, "Reject": 0, "FAILED": 1}


def test_a_directory_is_a_model_and_several_are_never_pooled(page_example, tmp_path):
    places = []
    for name, text in (
        ("strong", page_example.read_text()),
        ("weak", page_example.read_text().replace("Brekke", "X")),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ferry_out.json").write_text(text)
        places.append(tmp_path / name)
    one = gradestack.grade_files(places[:1], output=tmp_path / "one", overrides=["reports=[]"])
    two = gradestack.grade_files(places, output=tmp_path / "two", overrides=["reports=[]"])
    assert [row["model_name"] for row in two.rows()] == ["strong", "weak"]
    assert [row["model_name"] for row in two.metrics["per_model"]] == ["strong", "weak"]
    assert two.summary["duplicates"]["count"] == 0
    values = figures(two)
    assert (values["average"], values["plan"]) == (None, None)
    assert "under `models`" in values["undefined"]["average"]
    assert values["models"]["strong"]["average"] == figures(one)["average"] is not None
    assert [entry["models"]["weak"]["value"] for entry in two.summary["headline"]["figures"]] == [
        values["models"]["weak"][name]
        for name in ("average", "call_rejection_accuracy", "fc", "plan")
    ]
    assert set(values["models"]) == {"strong", "weak"}
    alone, joined = (run / "native" for run in (tmp_path / "one", tmp_path / "two"))
    key_metrics = [
        json.loads(path.read_text())["overall_statistics"]["key_metrics"]
        for path in (
            alone / "orchestrationbench.json",
            joined / "strong" / "orchestrationbench.json",
        )
    ]
    assert key_metrics[0] == key_metrics[1]


def _close(value, expected):
    return (value is None) == (expected is None) and (
        value is None or abs(value - expected) < 1e-12
    )


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
            assert raw[f"total_{long}_{side}"] == expected["counts"][f"{short}_{side}"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [35, pytest.param(210, marks=pytest.mark.proof)])
@pytest.mark.parametrize("trouble", [0.0, 0.4])
def test_scenarios_agree_with_the_slow_calculation(
    tmp_path, bench, generator, oracle, trouble, count
):
    """Key metrics, counts and every file's figures equal those of an independent calculation, sound
    files or not.
    """
    directory, cards = generator.write_suite(tmp_path / "suite", count, seed=17, trouble=trouble)
    bench.directory = directory
    slow = oracle.Oracle()
    paths = sorted(directory.rglob("*_out.json"))
    figures = bench.figures(reader={"agent_cards": cards})
    _agree(bench.native(reader={"agent_cards": cards}), slow.overall(paths))
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
        assert row["perfect_calls"] == expected["counts"]["perfect"], path
        assert row["function_call_cases"] == expected["counts"]["calls"], path
        assert row["rejection_cases"] == expected["counts"]["rejections"], path
        for name, part in (
            ("workflow_evaluation_with_failure", "with"),
            ("workflow_evaluation_without_failure", "without"),
        ):
            assert _close(row[name], expected["plans"][part]), path
        assert _close(row["average_structural_GED"], expected["plans"]["structural"]), path
        assert _close(row["average_component_GED"], expected["plans"]["component"]), path


@pytest.mark.proof
def test_the_suite_meets_every_kind_of_outcome(tmp_path, bench, generator):
    """The synthetic suite fills every cell of the matrix and every reason, so agreement means
    something.
    """
    directory, cards = generator.write_suite(tmp_path / "suite", 210, seed=17, trouble=0.4)
    bench.directory = directory
    matrix = bench.figures(reader={"agent_cards": cards})["decision_matrix"]
    assert all(count > 3 for row in matrix.values() for count in row.values())
    grades = [grade for _, grade in bench.grades(reader={"agent_cards": cards})]
    items = [item for grade in grades for item in grade.items]
    reasons = {key["reason"] for item in items for key in item.metadata.get("keys", ())}
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
    for path in (reference / "scenario_data").glob("*.yaml"):
        for step in gradestack.yaml_data(path.read_text())["steps"]:
            text = step["data"]["content"]
            if text.startswith("workflow_"):
                plans += 1
                if not parse_plan(text).workflows:
                    unread.append((path.stem, step["step_id"]))
    assert (plans, unread) == (317, [("85", 8)])

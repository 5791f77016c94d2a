"""Plan figures of one trial, and their sums over trials and files."""

import json

import pytest

from gradestack import ConfigError
from tests.core.outcomes import data

DATA = data(__file__, "plan_scores.yaml")


def plan_of(*workflows):
    """A plan text; each workflow is (steps, fields)."""
    built = {}
    for number, (steps, fields) in enumerate(workflows, start=1):
        built[f"workflow_{number}"] = {
            **fields,
            "steps": [{"name": agent, "status": status} for agent, status in steps],
        }
    return json.dumps(built)


ONE = plan_of(([("a", "x")], {}))


@pytest.fixture
def grade(bench, scenario, turns):
    def run(golds, entries):
        label = turns.label(
            **{f"_{step}": {"role": "assistant", "content": text} for step, text in golds.items()}
        )
        bench.write("one", scenario(label, main=[turns.plan(step, text) for step, text in entries]))
        ((_, plan_grade),) = bench.grades()
        return plan_grade

    return run


@pytest.mark.parametrize("text", DATA["malformed_plans"])
def test_a_malformed_plan_drops_the_run_in_the_program_only(bench, grade, text):
    """A plan on which the original raises drops all plans of the run, without a failure."""
    documented = grade({3: ONE, 5: ONE}, [(3, text), (5, ONE)])
    (result,) = bench.program()["detailed_results"]
    assert result["total_comparison_steps_evaluated"] == result["failed_workflow_generation"] == 0
    assert documented.counts["plans"] == 2
    assert documented.items[1].score == 1.0
    assert 0 < documented.items[0].score < 1


def test_weights_come_from_the_config_or_are_the_defaults(bench, scenario, turns, tmp_path):
    label = turns.label(_3={"role": "assistant", "content": ONE})
    bench.write("one", scenario(label, main=[turns.plan(3, plan_of(([("a", "y")], {})))]))
    config = tmp_path / "eval.yaml"
    config.write_text(
        "evaluation_params: {agent_change_weight: 0.8, status_change_weight: 0.2}\n",
        encoding="utf-8",
    )

    def component(reader=None):
        ((_, plan_grade),) = bench.grades(reader=reader)
        return plan_grade.items[0].parts["component"]

    assert component() == 1 - 0.5 / 2
    assert component({"config": config}) == 1 - 0.2 / 2
    (result,) = bench.program(config=config)["detailed_results"]
    assert result["average_component_GED"] == 1 - 0.2 / 2
    config.write_text("evaluation_params: {status_change_weight: high}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="evaluation config"):
        component({"config": config})


def test_a_plan_too_large_for_the_budget_has_bounds(grade):
    """The score uses the upper bound of the distance; the reason says the search stopped."""
    wide = [
        ([(f"agent_{n}", "x") for n in range(k, k + 4)], {"depends_on": [f"workflow_{k % 7}"]})
        for k in range(64)
    ]
    other = [
        ([(f"agent_{n}", "y") for n in range(k, k + 3)], {"depends_on": [f"workflow_{k % 5}"]})
        for k in range(65)
    ]
    item = grade({3: plan_of(*wide)}, [(3, plan_of(*other))]).items[0]
    assert item.metadata["component"]["exact"] is False
    assert "search stopped" in item.reasons[-1].message

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
        shards = [turns.plan(step, text) for step, text in entries]
        bench.write("one", scenario(label, main=shards))
        ((_, plan_grade),) = bench.grades()
        return plan_grade

    return run


@pytest.mark.parametrize("text", DATA["malformed_plans"])
def test_a_malformed_plan_drops_the_run_in_the_program_only(bench, grade, text):
    """A plan on which the original raises drops all plans of the run, without a failure."""
    documented = grade({3: ONE, 5: ONE}, [(3, text), (5, ONE)])
    program = bench.program()
    (result,) = program["detailed_results"]
    assert result["total_comparison_steps_evaluated"] == result["failed_workflow_generation"] == 0
    plans = documented.counts["plans"]
    assert plans == 2
    assert documented.items[1].score == 1.0
    first_item = documented.items[0]
    assert 0 < first_item.score < 1


def test_weights_come_from_the_config_or_are_the_defaults(bench, scenario, turns, tmp_path):
    label = turns.label(_3={"role": "assistant", "content": ONE})
    plan = plan_of(([("a", "y")], {}))
    shards = turns.plan(3, plan)
    bench.write("one", scenario(label, main=[shards]))
    config = tmp_path / "eval.yaml"
    config.write_text(
        "evaluation_params: {agent_change_weight: 0.8, status_change_weight: 0.2}\n",
        encoding="utf-8",
    )

    def component(reader=None):
        ((_, plan_grade),) = bench.grades(reader=reader)
        first_item = plan_grade.items[0]
        return first_item.parts["component"]

    assert component() == 1 - 0.5 / 2
    assert component({"config": config}) == 1 - 0.2 / 2
    program = bench.program(config=config)
    (result,) = program["detailed_results"]
    expected = 1 - 0.2 / 2
    assert result["average_component_GED"] == expected
    config.write_text("evaluation_params: {status_change_weight: high}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="evaluation config"):
        component({"config": config})


def test_a_plan_too_large_for_the_budget_has_bounds(grade):
    """The score uses the upper bound of the distance; the reason says the search stopped."""
    wide = []
    for k in range(64):
        depends_on = [f"workflow_{k % 7}"]
        wide.append(([(f"agent_{n}", "x") for n in range(k, k + 4)], {"depends_on": depends_on}))
    other = [
        ([(f"agent_{n}", "y") for n in range(k, k + 3)], {"depends_on": [f"workflow_{k % 5}"]})
        for k in range(65)
    ]
    plan = plan_of(*wide)
    scenario = [(3, plan_of(*other))]
    item = grade({3: plan}, scenario).items[0]
    exact = item.metadata["component"]["exact"]
    assert exact is False
    last_reason = item.reasons[-1]
    assert "search stopped" in last_reason.message

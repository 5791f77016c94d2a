"""The seven forms of a plan text."""

import pytest

from gradestack_plugins.orchestrationbench.evaluator import read_plan
from gradestack_plugins.orchestrationbench.plans import parse_plan
from tests.core.outcomes import data


@pytest.mark.parametrize(
    "case", data(__file__, "plan_texts.yaml"), ids=lambda case: repr(case["text"][:40])
)
def test_the_first_form_that_yields_a_plan_wins(case):
    plan = parse_plan(case["text"])
    assert read_plan(case["text"]) == plan.workflows
    assert plan.workflows == (case["plan"] or {})
    assert bool(plan.problem) is (case["plan"] is None)


@pytest.mark.parametrize(
    "text",
    ["5: x\nworkflow_1: {}", "workflow_1: 2031-99-99", "workflow_1: " + "[" * 3000],
    ids=["key", "date", "depth"],
)
def test_what_stops_the_original_stops_only_its_program(text):
    """A key that is no text, an impossible date or extreme nesting raises there."""
    with pytest.raises(Exception, match=r"."):
        read_plan(text)
    plan = parse_plan(text)
    assert bool(plan.workflows) == text.startswith("5: x")


@pytest.mark.parametrize(
    "text",
    [
        "```json{" * 20000,
        "workflow_1: " + "[" * 100000,
        "{" * 200000,
        "```yaml workflow_" + " " * 200000,
        '"workflow_1":{' * 9000,
    ],
)
def test_hostile_texts_take_no_quadratic_time(text):
    """Long runs of openings are refused quickly: the patterns are searched in linear time."""
    plan = parse_plan(text)
    assert plan.workflows == {}

"""Graphs built from plans."""

import pytest

from gradestack_plugins.orchestrationbench.plans import graphs, outline
from tests.core.outcomes import data

DATA = data(__file__, "workflow_graphs_texts.yaml")


PROFILES = ["documented", "upstream"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "case", data(__file__, "workflow_graphs.yaml"), ids=lambda case: str(case["plan"])[:60]
)
def test_graphs_of_a_plan(profile, case):
    structural, component = graphs(case["plan"], profile)
    found = {
        "nodes": structural.nodes,
        "structural": sorted(map(list, structural.edges)),
        "labels": list(map(list, component.labels)),
        "component": sorted(map(list, component.edges)),
    }
    expected = case.get(profile, case["documented"])
    assert found == {
        name: sorted(value) if name in ("structural", "component") else value
        for name, value in expected.items()
    }


@pytest.mark.parametrize(
    "plan",
    DATA["malformed_plans_raise_in_upstream_and_count_as_empty_in_documented"],
)
def test_malformed_plans_raise_in_upstream_and_count_as_empty_in_documented(plan):
    """What the original stumbles over gives a smaller graph in documented, and an outline for
    people.
    """
    with pytest.raises(Exception, match=r"."):
        graphs(plan, "upstream")
    structural, component = graphs(plan, "documented")
    assert structural.nodes >= 1
    assert component.nodes <= 1
    assert list(outline(plan)) == ["workflow_1"]


def test_outline_is_short():
    """Queries and other texts are left out of what people are shown."""
    step = {"name": "a", "status": "pending", "refined_query": "long"}
    plan = {"workflow_1": {"type": "x", "depend_on": "workflow_0", "steps": [step]}}
    assert outline(plan) == {"workflow_1": {"steps": ["a|pending"], "depends_on": ["workflow_0"]}}

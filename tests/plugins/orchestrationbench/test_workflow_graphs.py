"""Graphs built from plans."""

import pytest

from gradestack_plugins.orchestrationbench.evaluator import graphs_of
from gradestack_plugins.orchestrationbench.plans import graphs, outline
from tests.core.outcomes import data

DATA = data(__file__, "workflow_graphs_texts.yaml")


def program_graphs(plan):
    workflows = {name: fields for name, fields in plan.items() if "workflow" in name}
    return graphs_of(workflows)


DEFINITIONS = {"documented": graphs, "program": program_graphs}


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize(
    "case", data(__file__, "workflow_graphs.yaml"), ids=lambda case: str(case["plan"])[:60]
)
def test_graphs_of_a_plan(definition, case):
    structural, component = DEFINITIONS[definition](case["plan"])
    edges = sorted(map(list, structural.edges))
    labels = list(map(list, component.labels))
    graph = {
        "nodes": structural.nodes,
        "structural": edges,
        "labels": labels,
        "component": sorted(map(list, component.edges)),
    }
    expected = case.get(definition, case["documented"])
    assert graph == {
        name: sorted(value) if name in ("structural", "component") else value
        for name, value in expected.items()
    }


@pytest.mark.parametrize(
    "plan",
    DATA["malformed_plans"],
)
def test_malformed_plans_stop_the_program_and_count_as_empty(plan):
    """A plan that the original cannot read gives a smaller graph, and an outline for people."""
    with pytest.raises(Exception, match=r"."):
        program_graphs(plan)
    structural, component = graphs(plan)
    assert structural.nodes >= 1
    assert component.nodes <= 1
    assert list(outline(plan)) == ["workflow_1"]


def test_outline_is_short():
    """Queries and other texts are left out of what people are shown."""
    step = {"name": "a", "status": "pending", "refined_query": "long"}
    plan = {"workflow_1": {"type": "x", "depend_on": "workflow_0", "steps": [step]}}
    assert outline(plan) == {"workflow_1": {"steps": ["a|pending"], "depends_on": ["workflow_0"]}}

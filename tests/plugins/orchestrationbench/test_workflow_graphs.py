"""Graphs built from plans."""

import pytest

from gradestack_plugins.orchestrationbench.plans import graphs, outline

PROFILES = ["documented", "upstream"]


def step(agent, status="pending", key="name"):
    return {key: agent, "status": status}


def shape(graph):
    return list(graph.names), {(graph.names[a], graph.names[b]) for a, b in graph.edges}


@pytest.mark.parametrize("profile", PROFILES)
def test_structural_graph_has_workflows_and_dependencies(profile):
    """One node per workflow, one edge per item of depends_on; an undefined dependency creates a node."""
    plan = {"workflow_1": {}, "workflow_2": {"depends_on": ["workflow_1", "workflow_9"]}, "note": {}}
    nodes, edges = shape(graphs(plan, profile)[0])
    assert nodes == ["workflow_1", "workflow_2", "workflow_9"]
    assert edges == {("workflow_1", "workflow_2"), ("workflow_9", "workflow_2")}


def test_depend_on_makes_structural_edges_in_documented_only():
    plan = {"workflow_1": {}, "workflow_2": {"depend_on": "workflow_1"}}
    assert shape(graphs(plan, "documented")[0])[1] == {("workflow_1", "workflow_2")}
    assert shape(graphs(plan, "upstream")[0])[1] == set()


def test_a_text_in_depends_on_is_a_name_or_letters():
    """A text is one dependency in documented, and one per character in upstream."""
    plan = {"workflow_1": {}, "workflow_2": {"depends_on": "w_1"}}
    assert shape(graphs(plan, "documented")[0]) == (["workflow_1", "workflow_2", "w_1"], {("w_1", "workflow_2")})
    nodes, edges = shape(graphs(plan, "upstream")[0])
    assert nodes == ["workflow_1", "workflow_2", "w", "_", "1"]
    assert edges == {("w", "workflow_2"), ("_", "workflow_2"), ("1", "workflow_2")}


@pytest.mark.parametrize("profile", PROFILES)
def test_component_graph_joins_steps_and_workflows(profile):
    """Nodes are distinct (agent, status) pairs; equal neighbours are skipped; a dependency joins last to first step."""
    plan = {
        "workflow_1": {"steps": [step("a"), step("a"), step("b", key="agent_id"), {"name": "c"}, {"status": "x"}]},
        "workflow_2": {"depend_on": "workflow_1", "steps": [step("a")]},
        "workflow_3": {"depends_on": ["workflow_1", "workflow_8"], "depend_on": "workflow_2", "steps": [step("d")]},
        "workflow_4": {"depend_on": ["workflow_2"], "steps": [step("a", "done")]},
    }
    nodes, edges = shape(graphs(plan, profile)[1])
    assert nodes == ["a|pending", "b|pending", "c|UNK", "d|pending", "a|done"]
    assert edges == {
        ("a|pending", "b|pending"),
        ("b|pending", "c|UNK"),
        ("c|UNK", "a|pending"),
        ("c|UNK", "d|pending"),
        ("a|pending", "a|done"),
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_component_graph_may_have_a_self_loop(profile):
    """Two consecutive workflows of the same pending agent give an edge from the node to itself."""
    plan = {"workflow_1": {"steps": [step("a")]}, "workflow_2": {"depend_on": "workflow_1", "steps": [step("a")]}}
    graph = graphs(plan, profile)[1]
    assert graph.edges == ((0, 0),)
    assert graph.has_loop
    assert not graphs(plan, profile)[0].has_loop


@pytest.mark.parametrize(
    "plan",
    [
        {"workflow_1": None},
        {"workflow_1": "x"},
        {"workflow_1": {"steps": ["x"]}},
        {"workflow_1": {"steps": 3}},
        {"workflow_1": {"steps": [step(["a"])]}},
        {"workflow_1": {"steps": [step("a", {"b": 1})]}},
        {"workflow_1": {"depends_on": 5}},
        {"workflow_1": {"depends_on": [None]}},
        {"workflow_1": {"depends_on": [["x"]]}},
        {"workflow_1": {}, 7: {}},
    ],
)
def test_malformed_plans_raise_in_upstream_and_count_as_empty_in_documented(plan):
    """What the original stumbles over gives a smaller graph in documented, and an outline for people."""
    with pytest.raises(Exception, match=r"."):
        graphs(plan, "upstream")
    structural, component = graphs(plan, "documented")
    assert "workflow_1" in structural.names
    assert len(component.names) <= 1
    assert list(outline(plan)) == ["workflow_1"]


def test_outline_is_short():
    """Queries and other texts are left out of what people are shown."""
    plan = {"workflow_1": {"type": "x", "depend_on": "workflow_0", "steps": [{**step("a"), "refined_query": "long"}]}}
    assert outline(plan) == {"workflow_1": {"steps": ["a|pending"], "depends_on": ["workflow_0"]}}

"""Graphs of what was expected and made."""

from itertools import pairwise

import pytest

from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.draw import drawn


def node(*before, steps=("a",)):
    return before, steps


def nodes(graph):
    return None if graph is None else [blocks.Node(name, *held) for name, held in graph.items()]


def pair_of(gold, made):
    (found,) = drawn(blocks.Graph(nodes(gold), made=nodes(made)))
    return found.pair


def test_both_sides_say_what_differs():
    gold = {"w1": node(), "w2": node("w1", steps=("b", "c")), "w3": node("w1")}
    made = {"w1": node(), "w2": node(steps=("b",)), "w4": node("w1")}
    found = pair_of(gold, made)
    assert {each.name: each.status for each in found.expected.nodes} == {
        "w1": "same",
        "≠ w2": "differs",
        "✗ w3": "missing",
    }
    assert {each.name: each.status for each in found.actual.nodes} == {"w1": "same", "≠ w2": "differs", "+ w4": "extra"}
    assert [each.status for each in found.expected.edges] == ["missing", "missing"]
    assert [each.status for each in found.actual.edges] == ["extra"]
    assert found.expected.about == "w1: a; w2 after w1: b, c, differs; w3 after w1: a, missing"


def test_nodes_stand_right_of_what_they_depend_on():
    found = pair_of({"c": node("b", "a"), "b": node("a"), "a": node(), "d": node()}, {}).expected
    places = {each.name.removeprefix("✗ "): (each.x, each.y) for each in found.nodes}
    assert places["a"][0] == places["d"][0] < places["b"][0] < places["c"][0]
    column = sorted((each.y, each.height) for each in found.nodes if each.x == places["a"][0])
    assert all(upper + height < lower for (upper, height), (lower, _) in pairwise(column))
    assert all(0 < each.x < found.width for each in found.nodes)


@pytest.mark.parametrize(
    "gold",
    [
        {"a": node("a")},
        {"a": node("b"), "b": node("a")},
        {"a": node("c"), "b": node("a"), "c": node("b"), "d": node("c", "a")},
        {"a": node("gone")},
        {f"n{number}": node(*(f"n{other}" for other in range(number))) for number in range(50)},
    ],
)
def test_any_graph_has_a_layout(gold):
    found = pair_of(gold, None).expected
    assert len(found.nodes) + found.left_out == len(gold)
    assert len(found.nodes) <= 30
    assert len({(each.x, each.y) for each in found.nodes}) == len(found.nodes)


def test_a_graph_that_could_not_be_read_has_no_picture():
    found = pair_of({"a": node()}, {})
    assert (found.actual, found.expected.nodes[0].status) == (None, "missing")
    found = pair_of({"a": node()}, None)
    assert (found.actual, found.expected.nodes[0].status) == (None, "same")


def test_names_are_cut_and_cleaned():
    held = node(steps=["\u202ex", *(f"step {number}" for number in range(9))])
    (shown,) = pair_of({"n" * 90: held}, None).expected.nodes
    assert len(shown.name) <= 25
    assert shown.lines[0] == "⟨U+202E⟩x"
    assert shown.lines[-1] == "… 5 more"
    assert len(shown.lines) == 6

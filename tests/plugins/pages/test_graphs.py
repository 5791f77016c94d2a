"""Graphs of what was expected and made."""

import pytest

from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.draw import draw_block


def node(*before, steps=("a",)):
    return before, steps


def nodes(graph):
    if graph is None:
        return None
    return [blocks.Node(name, *fields) for name, fields in graph.items()]


def sides_of(gold, made=None):
    (drawn_graph,) = draw_block(blocks.Graph(nodes(gold), made=nodes(made)))
    return [
        [[shown_node.name for shown_node in layer] for layer in side.layers]
        for side in drawn_graph.sides
    ], drawn_graph.sides


def test_both_sides_say_what_differs():
    gold = {"w1": node(), "w2": node("w1", steps=("b", "c")), "w3": node("w1")}
    made = {"w1": node(), "w2": node(steps=("b",)), "w4": node("w1")}
    names, (expected, actual) = sides_of(gold, made)
    assert names == [[["w1"], ["≠ w2", "✗ w3"]], [["w1", "≠ w2"], ["+ w4"]]]
    assert [
        (shown_node.status, shown_node.after, shown_node.lines) for shown_node in expected.layers[1]
    ] == [
        ("differs", ["✗ w1"], ["b", "c"]),
        ("missing", ["✗ w1"], ["a"]),
    ]
    assert [shown_node.after for layer in actual.layers for shown_node in layer] == [
        [],
        [],
        ["+ w1"],
    ]


def test_nodes_stand_behind_what_they_depend_on():
    names, _ = sides_of({"c": node("b", "a"), "b": node("a"), "a": node(), "d": node()})
    assert names == [[["a", "d"], ["b"], ["c"]]]


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
    (names,), (sides,) = sides_of(gold)
    shown = [name for layer in names for name in layer]
    assert len(set(shown)) + sides.left_out == len(gold)
    assert len(shown) <= 30


def test_a_graph_that_could_not_be_read_has_no_picture():
    assert sides_of({"a": node()}, {})[0] == [[["✗ a"]], []]
    assert sides_of({"a": node()})[0] == [[["a"]]]


def test_names_are_cut_and_cleaned():
    made_node = node(steps=["\u202ex", *(f"step {number}" for number in range(9))])
    shown = sides_of({"n" * 90: made_node})[1][0].layers[0][0]
    assert len(shown.name) <= 82
    assert (shown.lines[0], shown.lines[-1], len(shown.lines)) == ("⟨U+202E⟩x", "… 5 more", 6)

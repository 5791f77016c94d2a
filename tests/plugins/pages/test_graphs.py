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
    graph = blocks.Graph(nodes(gold), made=nodes(made))
    (drawn_graph,) = draw_block(graph)
    names = []
    for side in drawn_graph.sides:
        names.append([[shown_node.name for shown_node in layer] for layer in side.layers])
    return names, drawn_graph.sides


def test_both_sides_say_what_differs():
    gold = {"w1": node(), "w2": node("w1", steps=("b", "c")), "w3": node("w1")}
    made = {"w1": node(), "w2": node(steps=("b",)), "w4": node("w1")}
    names, (expected, actual) = sides_of(gold, made)
    assert names == [[["w1"], ["≠ w2", "✗ w3"]], [["w1", "≠ w2"], ["+ w4"]]]
    shown_nodes = expected.layers[1]
    assert [
        (shown_node.status, shown_node.after, shown_node.lines) for shown_node in shown_nodes
    ] == [
        ("differs", ["✗ w1"], ["b", "c"]),
        ("missing", ["✗ w1"], ["a"]),
    ]
    afters = [shown_node.after for layer in actual.layers for shown_node in layer]
    assert afters == [
        [],
        [],
        ["+ w1"],
    ]


def test_nodes_stand_behind_what_they_depend_on():
    gold = {"c": node("b", "a"), "b": node("a"), "a": node(), "d": node()}
    names, _ = sides_of(gold)
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
    shown_count = len(set(shown))
    assert shown_count + sides.left_out == len(gold)
    assert len(shown) <= 30


def test_a_graph_that_could_not_be_read_has_no_picture():
    gold = {"a": node()}
    sides = sides_of(gold, {})
    assert sides[0] == [[["✗ a"]], []]
    first_side = sides_of({"a": node()})[0]
    assert first_side == [[["a"]]]


def test_names_are_cut_and_cleaned():
    steps = ["\u202ex", *(f"step {number}" for number in range(9))]
    made_node = node(steps=steps)
    gold = {"n" * 90: made_node}
    sides = sides_of(gold)
    first_layer = sides[1][0].layers[0]
    shown = first_layer[0]
    name_count = len(shown.name)
    assert name_count <= 82
    first_line = shown.lines[0]
    assert first_line == "⟨U+202E⟩x"
    last_line = shown.lines[-1]
    assert last_line == "… 5 more"
    line_count = len(shown.lines)
    assert line_count == 6

"""Milestones over snapshots: similarities by hand, and the best mapping against trying every one."""

import itertools
import math
import random

import pytest
from scipy.optimize import linear_sum_assignment

from gradestack import Expectation, Outcome, Sample
from gradestack_plugins.end_states import milestones
from gradestack_plugins.end_states.milestones import (
    Milestones,
    addition_similarity,
    assignment,
    graph_of,
    snapshots_of,
    table_similarity,
    update_similarity,
)
from gradestack_plugins.end_states.state_diff import Unusable
from tests.core.outcomes import data

DATA = data(__file__, "milestones.yaml")

OFF, ON = [{"wifi": False, "low": True}], [{"wifi": True, "low": True}]
SNAPSHOTS = [{"SETTING": OFF, "SENT": []}, {"SETTING": ON}, {"SENT": [{"to": "Ann"}]}]
WIFI = {"constraints": [{"database": "SETTING", "kind": "snapshot", "target": [{"wifi": True}]}]}
SENT = {"constraints": [{"database": "SENT", "kind": "addition", "target": [{"to": "Ann"}], "reference": 0}]}


def graded(reference, state=SNAPSHOTS):
    return Milestones().grade(Sample(id="a", state={"snapshots": state}, expected=Expectation(state=reference)))


def test_milestones_are_reached_in_order():
    """The mean of their similarities; each is laid over the snapshot it fits best, a snapshot keeps what it lacks."""
    grade = graded({"milestones": [WIFI, SENT]})
    assert (grade.score, grade.parts) == (1.0, {"milestones": 1.0, "minefields": 0.0})
    assert [(item.id, item.metadata["snapshot"]) for item in grade.items] == [("milestone 0", 1), ("milestone 1", 2)]
    late = [SNAPSHOTS[0], {"SENT": [{"to": "Ann"}]}, {"SETTING": ON}]
    assert graded({"milestones": [WIFI, SENT]}, late).score == 0.5
    first_sent = {"constraints": [{**SENT["constraints"][0], "reference": -1}]}
    assert graded({"milestones": [WIFI, first_sent], "edges": []}, late).score == 1.0


def test_a_minefield_nullifies_the_run():
    """However small its similarity; without milestones the rest is 1."""
    grade = graded(
        {
            "milestones": [WIFI],
            "minefields": [SENT | {"constraints": [{"database": "SENT", "target": [{"to": "Ann"}]}]}],
        }
    )
    assert (grade.score, grade.parts) == (0.0, {"milestones": 1.0, "minefields": 1.0})
    assert [each.code for each in grade.reasons] == ["minefield"]
    assert graded({"minefields": [{"constraints": [{"database": "SENT", "target": [{"to": "Bob"}]}]}]}).score == 1.0
    assert graded({"milestones": []}).score == 1.0


def test_guardrails_keep_other_tables_as_they_were():
    """Since the milestones before; they are factors and not in the root, and may be named or taken away."""
    moved = [SNAPSHOTS[0], {"SETTING": ON, "OTHER": [{"x": 1}]}, {"SENT": [{"to": "Ann"}], "OTHER": []}]
    assert graded({"milestones": [WIFI, SENT]}, moved).score == 0.5
    assert graded({"milestones": [WIFI, {**SENT, "unguarded": ["OTHER"]}]}, moved).score == 1.0
    assert graded({"milestones": [WIFI, {**SENT, "guardrails": []}]}, moved).score == 1.0
    talk = [SNAPSHOTS[0], {"SETTING": ON, "SANDBOX": [{"x": 1}]}, {"SENT": [{"to": "Ann"}], "SANDBOX": []}]
    assert graded({"milestones": [WIFI, SENT]}, talk).score == 1.0


def test_similarity_is_the_geometric_mean_of_constraints():
    """Two constraints, of which one is half kept: the root of a half; a guardrail does not change the root."""
    half = {"database": "SENT", "target": [{"to": "Ann Lee x"}], "columns": {"to": "words"}}
    grade = graded({"milestones": [{"constraints": [half, *WIFI["constraints"]]}]})
    assert grade.score == pytest.approx(math.sqrt(0.5))
    guard = {"database": "SETTING", "kind": "guardrail", "reference": 0}
    both = graded({"milestones": [WIFI, {"constraints": [half, *WIFI["constraints"], guard]}]})
    assert both.items[1].score == pytest.approx(math.sqrt(0.5))


def test_tables_are_compared_by_the_best_assignment_of_rows():
    """Only the columns of the target count; other numbers of rows, or a column that is missing, are 0."""
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y z"}]
    assert table_similarity(rows, [{"a": 2}, {"a": 1}], {}) == 1.0
    assert table_similarity(rows, [{"a": 2}], {}) == 0.0
    assert table_similarity(rows, [{"c": 2}, {"a": 1}], {}) == 0.0
    assert table_similarity(rows, [{"a": 1}, {"a": 1}], {}) == 0.0
    assert table_similarity([], [], {}) == 1.0
    words = table_similarity(rows, [{"a": 2, "b": "y"}, {"a": 1, "b": "x"}], {"b": "words"})
    assert words == pytest.approx(math.exp(-(-math.log(2 / 3) / 2) / 2))


@pytest.mark.parametrize(("value", "wanted", "measure", "found"), DATA["every_measure"])
def test_every_measure(value, wanted, measure, found):
    """Of one column of one row."""
    assert table_similarity([{"c": value}], [{"c": wanted}], {"c": measure}) == pytest.approx(found)


def test_additions_removals_and_updates_look_at_what_differs():
    """What was there before must still be there for an addition, and as many rows for an update."""
    a, b, c = {"x": 1}, {"x": 2}, {"x": 3}
    assert addition_similarity([a, b], [a], [b], {}) == 1.0
    assert addition_similarity([b], [a], [b], {}) == 0.0
    assert addition_similarity([a], [a], [], {}) == 1.0
    assert update_similarity([a, c], [a, b], [c], {}) == 1.0
    assert update_similarity([a, b, c], [a, b], [c], {}) == 0.0
    removal = {"constraints": [{"database": "T", "kind": "removal", "target": [{"x": 2}], "reference": -1}]}
    assert graded({"milestones": [removal]}, [{"T": [a, b]}, {"T": [a]}]).score == 1.0
    update = {"constraints": [{"database": "T", "kind": "update_similarity", "target": [{"x": 3}]}]}
    assert graded({"milestones": [update]}, [{"T": [a, b]}, {"T": [a, c]}]).score == 1.0


def test_assignments_are_those_of_another_solver():
    """Two hundred random matrices, some with costs beyond all others, against scipy."""
    rng = random.Random(3)  # noqa: S311 - test data
    for _ in range(200):
        size = rng.randrange(1, 7)
        costs = [[rng.choice([0.0, 1e9, rng.random() * 5]) for _ in range(size)] for _ in range(size)]
        found = assignment(costs)
        assert sorted(found) == list(range(size))
        rows, columns = linear_sum_assignment(costs)
        wanted = sum(costs[row][column] for row, column in zip(rows, columns, strict=True))
        assert sum(costs[row][column] for row, column in enumerate(found)) == pytest.approx(wanted)


def _tried(matcher, snapshots):
    """Return the greatest sum over every topological order and every mapping that never goes back."""
    best, numbers = 0.0, range(len(matcher.milestones))
    for order in itertools.permutations(numbers):
        if any(order.index(other) > order.index(each) for each in numbers for other in matcher.before[each]):
            continue
        for places in itertools.combinations_with_replacement(range(len(snapshots)), len(order)):
            at = dict(zip(order, places, strict=True))
            best = max(best, sum(_similarity(matcher.milestones[each], snapshots, at, at[each]) for each in numbers))
    return best


def _similarity(constraints, snapshots, at, place):
    found = 1.0
    for each in constraints:
        before = None if each.reference is None else snapshots[0 if each.reference == -1 else at[each.reference]]
        found *= each.similarity(snapshots[place], before)
    return found ** (1 / sum(each.kind != "guardrail" for each in constraints))


def test_the_best_mapping_is_found():
    rng = random.Random(5)  # noqa: S311 - test data
    seen = set()
    for _ in range(40):
        tables = [{name: [{"x": rng.randrange(3)}] for name in "AB"} for _ in range(rng.randrange(1, 5))]
        number = rng.randrange(1, 4)
        edges = [[i, j] for i in range(number) for j in range(i + 1, number) if rng.random() < 0.5]
        nodes = [
            {
                "constraints": [
                    {"database": rng.choice("AB"), "target": [{"x": rng.randrange(3)}]}
                    for _ in range(rng.randrange(1, 3))
                ]
            }
            for _ in range(number)
        ]
        for i, j in edges:
            if rng.random() < 0.5:
                nodes[j]["constraints"].append(
                    {"database": "A", "kind": "update", "target": [{"x": 1}], "reference": i}
                )
        matcher, snapshots = graph_of(nodes, edges, ["A", "B"]), snapshots_of(tables)
        found = sum(each for _, each in matcher.best(snapshots).values())
        assert found == pytest.approx(_tried(matcher, snapshots))
        seen.add(round(found, 3))
    assert seen == {0.0, 1.0, 2.0, 3.0}


@pytest.mark.parametrize(
    ("reference", "state"),
    [
        ({"milestones": [{"constraints": [{"kind": "snapshot"}]}]}, SNAPSHOTS),
        ({"milestones": [{"constraints": [{"database": "A", "kind": "wish"}]}]}, SNAPSHOTS),
        ({"milestones": [{"constraints": [{"database": "A", "target": [1]}]}]}, SNAPSHOTS),
        (
            {"milestones": [{"constraints": [{"database": "SENT", "target": [], "columns": {}, "reference": "x"}]}]},
            SNAPSHOTS,
        ),
        ({"milestones": [WIFI, WIFI], "edges": [[0, 1], [1, 0]]}, SNAPSHOTS),
        ({"milestones": [WIFI, WIFI], "edges": [[0, 2]]}, SNAPSHOTS),
        ({"milestones": [WIFI, SENT], "edges": []}, SNAPSHOTS),
        ({"milestones": 3}, SNAPSHOTS),
        ({"milestones": [WIFI]}, []),
        ({"milestones": [WIFI]}, [3]),
        (
            {"milestones": [{"constraints": [{"database": "SENT", "target": [{"to": 1}], "columns": {"to": "luck"}}]}]},
            SNAPSHOTS,
        ),
        ({"milestones": [WIFI] * 65}, SNAPSHOTS),
    ],
)
def test_what_is_not_of_its_form_fails_the_grade(reference, state):
    """With what is wrong, and no zero."""
    grade = graded(reference, state)
    assert (grade.outcome, grade.fault.code) == (Outcome.FAILED, "unusable_state")


def test_long_runs_are_mapped_and_endless_ones_refused(monkeypatch):
    """Twenty milestones in a row over sixty snapshots are laid at once; mappings beyond a budget fail the grade."""
    tables = [{"T": [{"x": n}]} for n in range(60)]
    nodes = [{"constraints": [{"database": "T", "target": [{"x": 3 * n}]}]} for n in range(20)]
    assert graded({"milestones": nodes}, tables).score == 1.0
    never = [{"constraints": [{"database": "T", "target": [{"x": -n - 1}]}]} for n in range(20)]
    monkeypatch.setattr(milestones, "_BUDGET", 5000)
    with pytest.raises(Unusable, match="more than 5,000 mappings"):
        graph_of(never, [], ["T"]).best(snapshots_of(tables))


def test_nothing_recorded_and_no_reference_are_skipped():
    assert Milestones().grade(Sample(id="a")).reasons[0].code == "state_not_recorded"
    assert Milestones().grade(Sample(id="a", state=[{}])).reasons[0].code == "no_milestones"

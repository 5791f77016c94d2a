"""Milestones over snapshots.

Similarities by hand, and the best mapping against trying every one.
"""

import itertools
import math
import random

import pytest
from scipy.optimize import linear_sum_assignment

from gradestack import Expectation, Sample
from gradestack_plugins.end_states import milestones
from gradestack_plugins.end_states.declared import Unusable, convert
from gradestack_plugins.end_states.milestones import Milestone, Milestones, graph_of, snapshots_of
from gradestack_plugins.end_states.similarity import table_similarity
from gradestack_plugins.statistics.assignment import assign_rows
from tests.core.outcomes import data

DATA = data(__file__, "milestones.yaml")

OFF, ON = [{"wifi": False, "low": True}], [{"wifi": True, "low": True}]
SNAPSHOTS = [{"SETTING": OFF, "SENT": []}, {"SETTING": ON}, {"SENT": [{"to": "Ann"}]}]
WIFI = {"constraints": [{"database": "SETTING", "kind": "snapshot", "target": [{"wifi": True}]}]}
SENT = {
    "constraints": [
        {"database": "SENT", "kind": "addition", "target": [{"to": "Ann"}], "reference": 0}
    ]
}


def graded(reference, state=SNAPSHOTS):
    return Milestones().grade(
        Sample(id="a", state={"snapshots": state}, expected=Expectation(state=reference))
    )


def matcher_of(nodes, edges, databases):
    return graph_of(convert(nodes, list[Milestone], "milestones"), edges, databases)


def test_tables_are_compared_by_the_best_assignment_of_rows():
    """Only the columns of the target count.

    Other numbers of rows, or a column that is missing, are 0.
    """
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y z"}]
    assert table_similarity(rows, [{"a": 2}, {"a": 1}], {}) == 1.0
    assert table_similarity(rows, [{"a": 2}], {}) == 0.0
    assert table_similarity(rows, [{"c": 2}, {"a": 1}], {}) == 0.0
    assert table_similarity(rows, [{"a": 1}, {"a": 1}], {}) == 0.0
    assert table_similarity([], [], {}) == 1.0
    words = table_similarity(rows, [{"a": 2, "b": "y"}, {"a": 1, "b": "x"}], {"b": "words"})
    distance = -math.log(2 / 3) / 2
    assert words == pytest.approx(math.exp(-distance / 2))


@pytest.mark.parametrize(("value", "wanted", "measure", "similarity"), DATA["every_measure"])
def test_every_measure(value, wanted, measure, similarity):
    """A measure compares one column of one row."""
    assert table_similarity([{"c": value}], [{"c": wanted}], {"c": measure}) == pytest.approx(
        similarity
    )


def test_assignments_are_those_of_another_solver():
    """Two hundred random matrices, some with costs beyond all others, against scipy."""
    rng = random.Random(3)  # noqa: S311 - test data
    for _ in range(200):
        size = rng.randrange(1, 7)
        costs = []
        for _ in range(size):
            costs.append([rng.choice([0.0, 1e9, rng.random() * 5]) for _ in range(size)])
        assignment = assign_rows(costs)
        expected = list(range(size))
        assert sorted(assignment) == expected
        rows, columns = linear_sum_assignment(costs)
        pairs = zip(rows, columns, strict=True)
        wanted = sum(costs[row][column] for row, column in pairs)
        total = sum(costs[row][column] for row, column in enumerate(assignment))
        assert total == pytest.approx(wanted)


def _tried(matcher, snapshots):
    """Return the greatest sum over every topological order and every mapping that never
    goes back.
    """
    best = 0.0
    milestone_count = len(matcher.milestones)
    numbers = range(milestone_count)
    for order in itertools.permutations(numbers):
        if any(
            order.index(other) > order.index(number)
            for number in numbers
            for other in matcher.before[number]
        ):
            continue
        for places in itertools.combinations_with_replacement(range(len(snapshots)), len(order)):
            pairs = zip(order, places, strict=True)
            at = dict(pairs)
            total = sum(
                _similarity(matcher.milestones[number], snapshots, at, at[number])
                for number in numbers
            )
            best = max(
                best,
                total,
            )
    return best


def _similarity(constraints, snapshots, at, chosen):
    product = 1.0
    for each in constraints:
        if each.reference is None:
            before = None
        else:
            before = snapshots[0 if each.reference == -1 else at[each.reference]]
        product *= each.similarity(snapshots[chosen], before)
    count = sum(constraint.kind != "guardrail" for constraint in constraints)
    return product ** (1 / count)


def test_the_best_mapping_is_found():
    rng = random.Random(5)  # noqa: S311 - test data
    scores = set()
    for _ in range(40):
        tables = []
        for _ in range(rng.randrange(1, 5)):
            tables.append({name: [{"x": rng.randrange(3)}] for name in "AB"})
        number = rng.randrange(1, 4)
        edges = [[i, j] for i in range(number) for j in range(i + 1, number) if rng.random() < 0.5]
        nodes = []
        for _ in range(number):
            constraints = []
            for _ in range(rng.randrange(1, 3)):
                database = rng.choice("AB")
                target = [{"x": rng.randrange(3)}]
                constraints.append({"database": database, "target": target})
            nodes.append({"constraints": constraints})
        for i, j in edges:
            if rng.random() < 0.5:
                nodes[j]["constraints"].append(
                    {"database": "A", "kind": "update", "target": [{"x": 1}], "reference": i}
                )
        matcher = matcher_of(nodes, edges, ["A", "B"])
        snapshots = snapshots_of(tables)
        best = matcher.best(snapshots)
        total = sum(similarity for _, similarity in best.values())
        tried = _tried(matcher, snapshots)
        assert total == pytest.approx(tried)
        rounded = round(total, 3)
        scores.add(rounded)
    assert scores == {0.0, 1.0, 2.0, 3.0}


def test_more_milestones_than_can_be_laid_fail_the_grade():
    reference = {"milestones": [WIFI] * 65}
    assert graded(reference).fault.code == "unusable_state"


def test_long_runs_are_mapped_and_endless_ones_refused(monkeypatch):
    """Twenty milestones in a row over sixty snapshots are laid at once.

    Mappings beyond a budget fail the grade.
    """
    tables = [{"T": [{"x": n}]} for n in range(60)]
    nodes = []
    for n in range(20):
        target = [{"x": 3 * n}]
        nodes.append({"constraints": [{"database": "T", "target": target}]})
    assert graded({"milestones": nodes}, tables).score == 1.0
    never = [{"constraints": [{"database": "T", "target": [{"x": -n - 1}]}]} for n in range(20)]
    monkeypatch.setattr(milestones, "_BUDGET", 5000)
    with pytest.raises(Unusable, match="more than 5,000 mappings"):
        matcher_of(never, [], ["T"]).best(snapshots_of(tables))

"""Similarity of a predicted and a gold plan, and the plan figures of one trial.

For each of the two graphs: max_cost = nodes + edges of both sides, similarity = 1 - distance / max_cost (1 when both
are empty). Step score = 0.5 * structural + 0.5 * component similarity. All are fractions in [0, 1].
"""

from __future__ import annotations

from typing import Literal

import attrs

from gradestack import Profile
from gradestack_plugins.orchestrationbench.graphs.ged import BUDGET, Distance, edit_distance
from gradestack_plugins.orchestrationbench.graphs.ged_problem import Weights
from gradestack_plugins.orchestrationbench.graphs.graph import Graph
from gradestack_plugins.orchestrationbench.graphs.networkx_ged import available, feasible, networkx_distance
from gradestack_plugins.orchestrationbench.plans.plantext import Workflows
from gradestack_plugins.orchestrationbench.plans.workflows import graphs

Solver = Literal["auto", "exact", "networkx"]


@attrs.frozen
class Comparison:
    """One pair of graphs compared."""

    similarity: float
    """From the upper bound of the distance, so never too high."""
    highest: float
    """From the lower bound; equal to ``similarity`` when exact."""
    distance: Distance
    loops: bool
    """True when either graph has a self-loop."""


@attrs.frozen
class PlanScore:
    """A predicted plan against a gold plan."""

    score: float
    structural: Comparison
    component: Comparison


@attrs.frozen(kw_only=True)
class PlanRules:
    """How plans are compared."""

    profile: Profile = "documented"
    weights: Weights = attrs.field(factory=Weights)
    solver: Solver = "auto"
    """``auto``: networkx in ``upstream`` where installed and feasible, else the exact solver."""
    budget: int = BUDGET


def compare_plans(predicted: Workflows, gold: Workflows, rules: PlanRules) -> PlanScore:
    """Return the similarity of two parsed plans.

    Raises:
        Exception: In ``upstream`` only: whatever the original stumbles over in building the graphs.
    """
    structural, component = (
        _compare(ours, theirs, rules)
        for ours, theirs in zip(graphs(predicted, rules.profile), graphs(gold, rules.profile), strict=True)
    )
    score = structural.similarity * 0.5 + component.similarity * 0.5
    return PlanScore(score, structural, component)


def _compare(predicted: Graph, gold: Graph, rules: PlanRules) -> Comparison:
    most = predicted.size + gold.size
    distance = _distance(predicted, gold, rules)
    return Comparison(
        similarity=1 - distance.upper / most if most else 1.0,
        highest=1 - distance.lower / most if most else 1.0,
        distance=distance,
        loops=predicted.has_loop or gold.has_loop,
    )


def _distance(predicted: Graph, gold: Graph, rules: PlanRules) -> Distance:
    wanted = rules.solver == "networkx" or (rules.solver == "auto" and rules.profile == "upstream")
    if wanted and available() and feasible(predicted, gold):
        return networkx_distance(predicted, gold, rules.weights)
    return edit_distance(predicted, gold, rules.weights, rules.budget)

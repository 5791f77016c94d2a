"""Grader ``milestones``: how far a run came, by its snapshots."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import Fault, Grade, Grader, Item, Reason, Sample, failed, skipped
from gradestack.jsonio import as_map
from gradestack_plugins.end_states.matching import Snapshots, graph_of, snapshots_of
from gradestack_plugins.end_states.predicates import Unusable

_KEYS = ("milestones", "edges", "minefields", "minefield_edges")


@attrs.frozen(kw_only=True)
class Milestones(Grader):
    """Similarity of a run's snapshots to milestones, 0 when a minefield was stepped on; in [0, 1].

        score = (mean similarity of the milestones) * [mean similarity of the minefields = 0]

    The recorded state is a list of snapshots of tables, the first of them the initial state. The reference
    (``expected.state``) has ``milestones``, each with ``constraints`` on tables, ``edges`` (pairs of numbers; each
    after the one before it where there are none), ``minefields`` and ``minefield_edges``. Milestones are laid over
    snapshots so that the sum of similarities is greatest, in any order the edges allow, never going back. A milestone's
    similarity is the geometric mean of its constraints'; tables it says nothing of must be as they were at the
    milestones it comes after (guardrails, which are 1 or 0 and outside the root). Without milestones their mean is 1,
    without minefields 0.

    This is ToolSandbox's rule; columns are compared exactly where nothing else is said. ``items`` are the milestones
    and minefields with the snapshot each was laid over. What is not of this form, or has more mappings than are looked
    at, fails the grade. Skipped without a recorded state, and without a reference. Both profiles are the same.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"state", "expected"})
    requires: ClassVar[frozenset[str]] = frozenset({"state", "expected"})
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)

    @override
    def grade(self, sample: Sample) -> Grade:
        reference = as_map(sample.expected.state)
        if sample.state is None:
            return skipped("state_not_recorded", "the recording does not hold the states the run went through")
        if "milestones" not in reference and "minefields" not in reference:
            return skipped("no_milestones", "the reference has neither milestones nor minefields")
        try:
            snapshots = snapshots_of(sample.state)
            reached = _mapped(reference, "milestones", "edges", snapshots)
            stepped = _mapped(reference, "minefields", "minefield_edges", snapshots)
        except Unusable as problem:
            return failed(Fault(category="data", code="unusable_state", message=str(problem)))
        except RecursionError:
            return failed(Fault(category="data", code="unusable_state", message="nested too deeply"))
        return _grade(reached, stepped)


def _mapped(reference: Any, key: str, edges: str, snapshots: Snapshots) -> list[tuple[int, float]]:
    """Return of each milestone the snapshot it is laid over and its similarity."""
    given = reference.get(key)
    if given is not None and not isinstance(given, list):
        raise Unusable(f"expected.state.{key}: expected a list")
    databases = list(dict.fromkeys(name for each in snapshots for name in each))
    found = graph_of(given or [], reference.get(edges), databases).best(snapshots)
    return [found[number] for number in sorted(found)]


def _grade(reached: list[tuple[int, float]], stepped: list[tuple[int, float]]) -> Grade:
    similarity = sum(each for _, each in reached) / len(reached) if reached else 1.0
    danger = sum(each for _, each in stepped) / len(stepped) if stepped else 0.0
    items = [
        Item(id=f"{name} {number}", score=each, metadata={"snapshot": snapshot})
        for name, mapped in (("milestone", reached), ("minefield", stepped))
        for number, (snapshot, each) in enumerate(mapped)
    ]
    reasons = [
        Reason(code="milestone_missed", pointer=f"/milestones/{number}", actual=each, message=f"similarity {each:.3g}")
        for number, (_, each) in enumerate(reached)
        if each < 1.0
    ]
    reasons += [
        Reason(code="minefield", pointer=f"/minefields/{number}", actual=each, message=f"at snapshot {snapshot}")
        for number, (snapshot, each) in enumerate(stepped)
        if each
    ]
    return Grade(
        score=similarity if danger == 0.0 else 0.0,
        counts={"milestones": len(reached), "minefields": len(stepped), "reached": sum(x == 1.0 for _, x in reached)},
        parts={"milestones": similarity, "minefields": danger},
        items=tuple(items),
        reasons=tuple(reasons),
    )

"""Grader ``milestones``: how far a run came by its snapshots, as ToolSandbox has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from typing import Annotated, Any, Final

import msgspec
from typing_extensions import override

from gradestack import Grade, Grader, Item, Reason, Sample, skipped
from gradestack.jsonio import as_map
from gradestack_plugins.end_states.declared import (
    Tables,
    Unusable,
    convert,
    rows_by_table,
    unusable_state,
)
from gradestack_plugins.end_states.similarity import (
    Rows,
    addition_similarity,
    table_similarity,
    update_similarity,
)

INITIAL: Final = -1
"""Reference to the initial state."""
_KINDS: Final = ("snapshot", "addition", "removal", "update", "guardrail")
_SANDBOX: Final = "SANDBOX"
"""The conversation, which always changes: it is never guarded."""
_MOST_MILESTONES: Final = 64
_BUDGET: Final = 200_000
"""Similarities looked up for one sample, at most."""
Snapshot = Mapping[str, Rows]


class Constraint(msgspec.Struct):
    """The demand that a table is like something in a snapshot.

    It is looked at by itself, or beside the snapshot of another milestone.
    """

    database: str
    kind: str = "snapshot"
    reference: int | None = None
    target: list[dict[str, Any]] | None = None
    columns: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.kind = self.kind.removesuffix("_similarity")
        if self.kind not in _KINDS:
            known = ", ".join(_KINDS)
            raise ValueError(f"kind: expected {known}, found {self.kind[:60]!r}")
        if self.reference is None and self.kind != "snapshot":
            self.reference = INITIAL

    def similarity(self, snapshot: Snapshot, before: Snapshot | None) -> float:
        """Return the similarity of a snapshot, beside that of its reference."""
        rows = snapshot.get(self.database, ())
        old = () if before is None else before.get(self.database, ())
        target = self.target or ()
        columns = self.columns or {}
        if self.kind == "snapshot":
            return table_similarity(rows, target, columns)
        if self.kind == "addition":
            return addition_similarity(rows, old, target, columns)
        if self.kind == "removal":
            return addition_similarity(old, rows, target, columns)
        if self.kind == "update":
            return update_similarity(rows, old, target, columns)
        return float([*rows] == [*old])


Names = list[str] | None


class Milestone(msgspec.Struct, frozen=True):
    """A milestone, or a minefield: constraints on the tables of one snapshot."""

    constraints: list[Constraint] | None = None
    guardrails: Names = None
    """Tables that stay as they were; default: all that nothing is said of."""
    unguarded: Names = None

    @property
    def stated(self) -> Sequence[Constraint]:
        """Its constraints."""
        return self.constraints or ()

    @property
    def tables(self) -> list[str]:
        """The tables that something is said of."""
        return [constraint.database for constraint in self.stated if constraint.kind != "guardrail"]


Nodes = list[Milestone]
Edges = list[tuple[int, int]]


class _Reference(msgspec.Struct, frozen=True):
    milestones: Nodes | None = None
    edges: Edges | None = None
    minefields: Nodes | None = None
    minefield_edges: Edges | None = None


def snapshots_of(state: Any) -> list[Snapshot]:
    """Return the snapshots of a recorded state; one that lacks a table has it as it was before.

    Raises:
        Unusable: The state is no list of tables.
    """
    if isinstance(state, Mapping):
        recorded = state.get("snapshots")
    else:
        recorded = state
    meta = msgspec.Meta(min_length=1)
    form = Annotated[list[Tables], meta]
    snapshots: list[Snapshot] = []
    tables: Snapshot = {}
    for changed in convert(recorded, form, "snapshots"):
        tables = {**tables, **rows_by_table(changed)}
        snapshots.append(tables)
    return snapshots


def graph_of(
    milestones: Sequence[Milestone], edges: Edges | None, databases: Iterable[str]
) -> Matcher:
    """Return the matcher of milestones and their order.

    Args:
        milestones: The milestones.
        edges: Pairs of numbers, the first before the second; None: each after the one before it.
        databases: Names of all tables.

    Raises:
        Unusable: They cannot be ordered, are too many, or refer to later ones.
    """
    if len(milestones) > _MOST_MILESTONES:
        raise Unusable(f"{len(milestones)} milestones; at most {_MOST_MILESTONES} are matched")
    numbers = range(len(milestones))
    before: list[set[int]] = [set() for _ in numbers]
    for first, second in pairwise(numbers) if edges is None else edges:
        if first not in numbers or second not in numbers:
            raise Unusable(f"edges: no milestones have the numbers {first} and {second}")
        before[second].add(first)
    constraints = []
    for number in numbers:
        guardrails = _guardrails(number, milestones, before[number], databases)
        constraints.append([*milestones[number].stated, *guardrails])
    matcher = Matcher(milestones=constraints, before=before)
    matcher.check()
    return matcher


def _guardrails(
    number: int, milestones: Sequence[Milestone], before: set[int], databases: Iterable[str]
) -> list[Constraint]:
    """Return the guardrails of a milestone.

    Tables that nothing is said of stay as they were at the milestones it comes after.
    """
    milestone = milestones[number]
    stated = [constraint.reference for constraint in milestone.stated]
    numbers = [number for number in stated if number is not None]
    references = before.union(numbers)
    free = {_SANDBOX, *(milestone.unguarded or ())}
    for other in {number, *references}:
        # the reference -1 looks at the last milestone here, as in the original
        if -1 <= other < len(milestones):
            free.update(milestones[other].tables)
    tables = databases if milestone.guardrails is None else milestone.guardrails
    guarded = [table for table in dict.fromkeys(tables) if table not in free]
    return [
        Constraint(database=table, kind="guardrail", reference=reference)
        for reference in sorted(references)
        for table in guarded
    ]


class Matcher(msgspec.Struct, frozen=True):
    """Milestones, each with its constraints, and which come before which."""

    milestones: Sequence[Sequence[Constraint]]
    before: Sequence[set[int]]

    def check(self) -> None:
        """Check that the milestones can be ordered, and refer to earlier ones."""
        earlier: dict[int, set[int]] = {}
        try:
            topological_sorter = TopologicalSorter(dict(enumerate(self.before)))
            for number in topological_sorter.static_order():
                others = self.before[number]
                earlier[number] = others.union(*[earlier[other] for other in others])
        except CycleError:
            raise Unusable("edges: the milestones go round in a circle") from None
        for number, constraints in enumerate(self.milestones):
            references = {constraint.reference for constraint in constraints}
            for reference in references - earlier[number] - {None, INITIAL}:
                problem = f"milestone {number} refers to {reference}"
                raise Unusable(f"{problem}, which need not come before it")

    def best(self, snapshots: Sequence[Snapshot]) -> dict[int, tuple[int, float]]:
        """Return the mapping of the greatest sum: milestone -> snapshot and similarity."""
        milestone_count = len(self.milestones)
        remaining = frozenset(range(milestone_count))
        _, mapped = _Search(self, snapshots).best(remaining, 0, ())
        return dict(mapped)


Places = tuple[tuple[int, int], ...]
"""Milestones that are referred to, each with its snapshot."""
Mapped = tuple[tuple[int, tuple[int, float]], ...]
"""Milestone, snapshot and similarity, in order."""


class _Search:
    """The best mapping, by what is left to map, the last snapshot, and the snapshots that are
    referred to.
    """

    def __init__(self, matcher: Matcher, snapshots: Sequence[Snapshot]) -> None:
        self._matcher, self._snapshots = matcher, snapshots
        self._best: dict[tuple[frozenset[int], int, Places], tuple[float, Mapped]] = {}
        self._similarities: dict[tuple[int, int, int, int | None], float] = {}
        self._budget = _BUDGET

    def best(self, remaining: frozenset[int], last: int, referred: Places) -> tuple[float, Mapped]:
        """Return the greatest sum over what remains, and its mapping.

        Among equals the one met first.
        """
        if not remaining:
            return 0.0, ()
        key = remaining, last, referred
        if key in self._best:
            return self._best[key]
        snapshot_of = {INITIAL: 0, **dict(referred)}
        most: float = -1.0
        mapping: Mapped = ()
        for negative, number, snapshot in self._choices(remaining, last, snapshot_of):
            rest = remaining - {number}
            if len(rest) - negative <= most:
                continue
            places = self._referred({**snapshot_of, number: snapshot}, rest)
            total, mapped = self.best(rest, snapshot, places)
            if total - negative > most:
                most = total - negative
                mapping = ((number, (snapshot, -negative)), *mapped)
        self._best[key] = most, mapping
        return most, mapping

    def _choices(
        self, remaining: frozenset[int], last: int, snapshot_of: Mapping[Any, int]
    ) -> list[tuple[float, int, int]]:
        """Return the milestones that may come next, the most similar first.

        Each with the negative of its similarity, its number and its snapshot.
        """
        before = self._matcher.before
        numbers = [number for number in remaining if not before[number] & remaining]
        snapshots = range(last, len(self._snapshots))
        return sorted(
            (-self._similarity(number, snapshot, snapshot_of), number, snapshot)
            for number in numbers
            for snapshot in snapshots
        )

    def _referred(self, snapshot_of: Mapping[int, int], rest: frozenset[int]) -> Places:
        """List (milestone, its snapshot) of those that the rest of the milestones refers to."""
        milestones = [self._matcher.milestones[number] for number in rest]
        constraints = chain.from_iterable(milestones)
        references = {constraint.reference for constraint in constraints}
        snapshots = [
            (number, snapshot) for number, snapshot in snapshot_of.items() if number in references
        ]
        return tuple(sorted(snapshots))

    def _similarity(self, number: int, snapshot: int, snapshot_of: Mapping[Any, int]) -> float:
        """Return the geometric mean of a milestone's constraints.

        Guardrails count as factors, not in the root.
        """
        self._budget -= 1
        if self._budget < 0:
            most = f"more than {_BUDGET:,} mappings of milestones to snapshots"
            raise Unusable(f"{most}; give fewer of either")
        product, count = 1.0, 0
        for index, constraint in enumerate(self._matcher.milestones[number]):
            other = snapshot_of.get(constraint.reference)
            key = number, index, snapshot, other
            if key not in self._similarities:
                tables = self._snapshots[snapshot]
                if other is None:
                    before = None
                else:
                    before = self._snapshots[other]
                self._similarities[key] = constraint.similarity(tables, before)
            product *= self._similarities[key]
            count += constraint.kind != "guardrail"
        if count:
            return float(product ** (1 / count))
        return product


class Milestones(Grader):
    """Similarity of a run's snapshots to milestones, 0 when a minefield was stepped on; in [0, 1].

        score = (mean similarity of the milestones) * [mean similarity of the minefields = 0]

    The recorded state is a list of snapshots of tables, the first of them the initial state. The
    reference (``expected.state``) has ``milestones``, each with ``constraints`` on tables,
    ``edges`` (pairs of numbers; each after the one before it where there are none), ``minefields``
    and ``minefield_edges``. Milestones are laid over snapshots so that the sum of similarities is
    greatest, in any order the edges allow, never going back. A milestone's similarity is the
    geometric mean of its constraints'. Tables it says nothing of must be as they were at the
    milestones it comes after; these guardrails are 1 or 0 and outside the root. Without milestones
    their mean is 1, without minefields 0.

    This is ToolSandbox's rule; columns are compared exactly where nothing else is said. ``items``
    are the milestones and minefields with the snapshot each was laid over. What is not of this
    form, or has more mappings than are looked at, fails the grade. Skipped without a recorded
    state, and without a reference.
    """

    needs = frozenset({"state", "expected"})
    compares = frozenset({"state"})
    metrics = ("mean",)

    @override
    def grade(self, sample: Sample) -> Grade:
        recorded = as_map(sample.expected.state)
        if sample.state is None:
            return skipped("state_not_recorded", "the states of the run are not recorded")
        if "milestones" not in recorded and "minefields" not in recorded:
            return skipped("no_milestones", "the reference has neither milestones nor minefields")
        try:
            reference = convert(recorded, _Reference, "expected.state")
            snapshots = snapshots_of(sample.state)
            reached = _map_nodes(reference.milestones, reference.edges, snapshots)
            stepped = _map_nodes(reference.minefields, reference.minefield_edges, snapshots)
        except (Unusable, RecursionError) as problem:
            return unusable_state(problem)
        return _grade_of(reached, stepped)


def _map_nodes(
    nodes: Nodes | None, edges: Edges | None, snapshots: Sequence[Snapshot]
) -> list[tuple[int, float]]:
    """Return the snapshot and the similarity of each milestone."""
    databases = [table for tables in snapshots for table in tables]
    milestones = nodes or []
    graph = graph_of(milestones, edges, databases)
    mapping = graph.best(snapshots)
    return [mapping[number] for number in sorted(mapping)]


def _grade_of(reached: Sequence[tuple[int, float]], stepped: Sequence[tuple[int, float]]) -> Grade:
    """Grade a run by similarity to its milestones; 0 where it steps on a minefield.

    Both lists have the snapshot and the similarity of each node.
    """
    similarities, dangers = ([value for _, value in nodes] for nodes in (reached, stepped))
    similarity = 1.0
    if reached:
        similarity = sum(similarities) / len(reached)
    danger = 0.0
    if stepped:
        danger = sum(dangers) / len(stepped)
    items = list[Item]()
    reasons = list[Reason]()
    for number, (snapshot, value) in enumerate(reached):
        items.append(_item("milestone", number, snapshot, value))
        if value < 1.0:
            pointer = f"/milestones/{number}"
            message = f"similarity {value:.3g}"
            missed = Reason(code="milestone_missed", pointer=pointer, actual=value, message=message)
            reasons.append(missed)
    for number, (snapshot, value) in enumerate(stepped):
        items.append(_item("minefield", number, snapshot, value))
        if value:
            pointer = f"/minefields/{number}"
            message = f"at snapshot {snapshot}"
            hit = Reason(code="minefield", pointer=pointer, actual=value, message=message)
            reasons.append(hit)
    counts = {
        "milestones": len(reached),
        "minefields": len(stepped),
        "reached": similarities.count(1.0),
    }
    score = similarity if danger == 0.0 else 0.0
    return Grade(
        score=score,
        counts=counts,
        parts={"milestones": similarity, "minefields": danger},
        items=tuple(items),
        reasons=tuple(reasons),
    )


def _item(kind: str, number: int, snapshot: int, value: float) -> Item:
    return Item(id=f"{kind} {number}", score=value, metadata={"snapshot": snapshot})

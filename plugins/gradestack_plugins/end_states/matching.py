"""Milestones of a graph laid over the snapshots of a run, as ToolSandbox has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.end_states.differences import tables_of
from gradestack_plugins.end_states.predicates import Row, Unusable
from gradestack_plugins.end_states.similarity import addition_similarity, table_similarity, update_similarity

INITIAL: Final = -1
"""The reference that means the first snapshot."""
_KINDS: Final = ("snapshot", "addition", "removal", "update", "guardrail")
_SANDBOX: Final = "SANDBOX"
"""The conversation, which always changes: it is never guarded."""
_MOST_MILESTONES: Final = 64
_BUDGET: Final = 200_000
"""Similarities looked up for one sample, at most."""
Snapshots = Sequence[Mapping[str, Sequence[Row]]]


@attrs.frozen(kw_only=True)
class Constraint:
    """What a table should be like in a snapshot, by itself or beside the snapshot of another milestone."""

    database: str
    kind: str
    reference: int | None
    target: tuple[Row, ...] = ()
    columns: Mapping[str, Any] = attrs.field(factory=dict)

    def similarity(self, snapshot: Mapping[str, Sequence[Row]], before: Mapping[str, Sequence[Row]] | None) -> float:
        """Return how well a snapshot keeps it, beside that of its reference."""
        rows = snapshot.get(self.database, ())
        if self.kind == "snapshot":
            return table_similarity(rows, self.target, self.columns)
        old = (before or {}).get(self.database, ())
        if self.kind == "addition":
            return addition_similarity(rows, old, self.target, self.columns)
        if self.kind == "removal":
            return addition_similarity(old, rows, self.target, self.columns)
        return (
            update_similarity(rows, old, self.target, self.columns)
            if self.kind == "update"
            else float(list(rows) == list(old))
        )


def snapshots_of(state: Any) -> Snapshots:
    """Return the snapshots of a recorded state; one that lacks a table has it as it was before.

    Raises:
        Unusable: There are none.
    """
    listed = state.get("snapshots") if isinstance(state, Mapping) else state
    if not isinstance(listed, list) or not listed:
        raise Unusable("the state holds no list of snapshots")
    found: list[dict[str, Sequence[Row]]] = []
    for number, each in enumerate(listed):
        found.append({**(found[-1] if found else {}), **tables_of(each, f"snapshots.{number}")})
    return found


def graph_of(milestones: Any, edges: Any, databases: Sequence[str]) -> Matcher:
    """Return the matcher of milestones and their order, each after the one before it where no edges are given.

    Raises:
        Unusable: They are not of their form.
    """
    nodes = [[_constraint(each) for each in as_list(as_map(node).get("constraints"))] for node in as_list(milestones)]
    if len(nodes) > _MOST_MILESTONES:
        raise Unusable(f"{len(nodes)} milestones; at most {_MOST_MILESTONES} are matched")
    chain = [[number, number + 1] for number in range(len(nodes) - 1)]
    before: list[set[int]] = [set() for _ in nodes]
    for edge in chain if edges is None else as_list(edges):
        ends = as_list(edge)
        if len(ends) != 2 or not all(type(end) is int and 0 <= end < len(nodes) for end in ends):
            raise Unusable(f"edges: expected pairs of milestones' numbers, found {compact(edge)[:60]}")
        before[ends[1]].add(ends[0])
    guarded = [
        (*own, *_guardrails(number, nodes, before[number], as_map(milestones[number]), databases))
        for number, own in enumerate(nodes)
    ]
    matcher = Matcher(milestones=tuple(guarded), before=tuple(map(frozenset, before)))
    matcher.check()
    return matcher


def _constraint(given: Any) -> Constraint:
    about = as_map(given)
    kind = about.get("kind", "snapshot")
    kind = kind.removesuffix("_similarity") if isinstance(kind, str) else kind
    database, reference = about.get("database"), about.get("reference")
    if kind not in _KINDS or not isinstance(database, str):
        raise Unusable(f"expected a constraint's database and kind ({', '.join(_KINDS)}), found {compact(given)[:80]}")
    if reference is None and kind != "snapshot":
        reference = INITIAL
    if reference is not None and type(reference) is not int:
        raise Unusable(f"reference: expected a milestone's number, or {INITIAL}, found {compact(reference)[:60]}")
    target = as_list(about.get("target"))
    if not all(isinstance(each, Mapping) for each in target):
        raise Unusable(f"target: expected rows, found {compact(about.get('target'))[:60]}")
    columns = as_map(about.get("columns"))
    return Constraint(database=database, kind=kind, reference=reference, target=tuple(target), columns=columns)


def _guardrails(
    number: int,
    nodes: Sequence[Sequence[Constraint]],
    before: set[int],
    about: Mapping[str, Any],
    databases: Sequence[str],
) -> list[Constraint]:
    """Return the guardrails of a milestone: tables nothing is said of stay as they were at those it comes after."""
    references = {each.reference for each in nodes[number] if each.reference is not None}
    named = about.get("guardrails")
    guarded = dict.fromkeys(databases if named is None else map(str, as_list(named)))
    free = {_SANDBOX, *map(str, as_list(about.get("unguarded")))}
    for other in (number, *references, *before):
        if -1 <= other < len(nodes):  # the reference -1 looks at the last milestone here, as in the original
            free |= {each.database for each in nodes[other] if each.kind != "guardrail"}
    return [
        Constraint(database=database, kind="guardrail", reference=other)
        for other in sorted(references | before)
        for database in guarded
        if database not in free
    ]


@attrs.frozen(kw_only=True)
class Matcher:
    """Milestones, each with its constraints, and which come before which."""

    milestones: tuple[tuple[Constraint, ...], ...]
    before: tuple[frozenset[int], ...]

    def check(self) -> None:
        """Check that the milestones can be ordered, and refer to earlier ones.

        Raises:
            Unusable: There is a circle, or a reference to what need not come before.
        """
        earlier: list[set[int]] = [set() for _ in self.milestones]
        waiting = set(range(len(self.milestones)))
        while waiting:
            ready = [each for each in waiting if not self.before[each] & waiting]
            if not ready:
                raise Unusable("edges: the milestones go round in a circle")
            for node in ready:
                earlier[node] = set().union(*(earlier[other] | {other} for other in self.before[node]))
            waiting -= set(ready)
        for number, constraints in enumerate(self.milestones):
            for each in constraints:
                if each.reference is not None and each.reference != INITIAL and each.reference not in earlier[number]:
                    raise Unusable(f"milestone {number} refers to {each.reference}, which need not come before it")

    def best(self, snapshots: Snapshots) -> dict[int, tuple[int, float]]:
        """Return the mapping of milestones to snapshots with the greatest sum of similarities: snapshot and similarity.

        Raises:
            Unusable: There are too many mappings to look at.
        """
        return dict(_Search(self, snapshots).best(frozenset(range(len(self.milestones))), 0, ())[1])


Mapped = tuple[tuple[int, tuple[int, float]], ...]
"""Milestone, snapshot and similarity, in order."""


class _Search:
    """The best mapping, by what is left to map, the last snapshot, and the snapshots that are referred to."""

    def __init__(self, matcher: Matcher, snapshots: Snapshots) -> None:
        self._matcher, self._snapshots = matcher, snapshots
        self._known: dict[tuple[frozenset[int], int, tuple[tuple[int, int], ...]], tuple[float, Mapped]] = {}
        self._similarities: dict[tuple[int, int, int, int | None], float] = {}
        self._left = _BUDGET

    def best(self, remaining: frozenset[int], last: int, referred: tuple[tuple[int, int], ...]) -> tuple[float, Mapped]:
        """Return the greatest sum over what remains, and its mapping; among equals the one met first."""
        if not remaining:
            return 0.0, ()
        key = remaining, last, referred
        if key in self._known:
            return self._known[key]
        at, found = dict(referred), (-1.0, ())
        choices = [
            (-self._similarity(number, snapshot, at), number, snapshot)
            for number in remaining
            if not self._matcher.before[number] & remaining
            for snapshot in range(last, len(self._snapshots))
        ]
        for negative, number, snapshot in sorted(choices):
            rest = remaining - {number}
            if len(rest) - negative <= found[0]:
                continue
            needed = {each.reference for other in rest for each in self._matcher.milestones[other]}
            kept = tuple(sorted((each, to) for each, to in {**at, number: snapshot}.items() if each in needed))
            total, mapped = self.best(rest, snapshot, kept)
            if total - negative > found[0]:
                found = (total - negative, ((number, (snapshot, -negative)), *mapped))  # type: ignore[assignment]
        self._known[key] = found
        return found

    def _similarity(self, number: int, snapshot: int, at: Mapping[int, int]) -> float:
        """Return the geometric mean of a milestone's constraints; guardrails count as factors, not in the root."""
        self._left -= 1
        if self._left < 0:
            raise Unusable(f"more than {_BUDGET:,} mappings of milestones to snapshots; give fewer of either")
        product, count = 1.0, 0
        for place, each in enumerate(self._matcher.milestones[number]):
            to = None if each.reference is None else 0 if each.reference == INITIAL else at[each.reference]
            key = number, place, snapshot, to
            if key not in self._similarities:
                before = None if to is None else self._snapshots[to]
                self._similarities[key] = each.similarity(self._snapshots[snapshot], before)
            product *= self._similarities[key]
            count += each.kind != "guardrail"
        return float(product ** (1 / count)) if count else product

"""Grader ``milestones``: how far a run came by its snapshots, as ToolSandbox has it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import Fault, Grade, Grader, Item, Reason, Sample, failed, skipped
from gradestack.jsonio import as_list, as_map, as_number, compact, dumps, standard_loads
from gradestack_plugins.end_states.state_diff import Row, Unusable, tables_of

_FAR: Final = 1e9
"""Stands for an infinite cost while rows are assigned: more than any sum of finite ones."""
_MOST_ROWS: Final = 100
_WORD: Final = re.compile(r"[a-z0-9]+")
_MEASURES: Final = ("exact", "close", "contains", "one", "words", "tool_trace")


Rows = Sequence[Row]


def table_similarity(rows: Rows, target: Rows, columns: Mapping[str, Any]) -> float:
    """Return how similar a table is to the rows it should have, in [0, 1].

        exp(-mean over pairs of rows of the mean over columns of -log similarity)

    by the best assignment of rows to rows. 0 where their numbers differ, a column is missing, or no
    assignment has only similar rows.
    """
    if len(rows) != len(target) or {key for row in target for key in row} - {
        key for row in rows for key in row
    }:
        return 0.0
    if len(rows) > _MOST_ROWS:
        raise Unusable(f"{len(rows)} rows; at most {_MOST_ROWS} are assigned")
    if not target:
        return 1.0
    costs = [[_cost(row, wanted, columns) for row in rows] for wanted in target]
    chosen = [costs[at][to] for at, to in enumerate(assignment(costs))]
    return math.exp(-sum(chosen) / len(chosen)) if max(chosen) < _FAR else 0.0


def _cost(row: Row, wanted: Row, columns: Mapping[str, Any]) -> float:
    found = [
        _similarity(row.get(name), value, columns.get(name, "exact"))
        for name, value in wanted.items()
    ]
    return (
        _FAR
        if 0.0 in found
        else sum(-math.log(each) for each in found) / len(found)
        if found
        else 0.0
    )


def _similarity(value: Any, wanted: Any, measure: Any) -> float:
    name, option = (
        next(iter(measure.items())) if isinstance(measure, Mapping) and measure else (measure, None)
    )
    if name == "exact":
        return float(value == wanted and isinstance(value, bool) is isinstance(wanted, bool))
    if name == "python":
        return float(value == wanted)
    if name == "close":
        left, right = as_number(value), as_number(wanted)
        return float(
            left is not None
            and right is not None
            and abs(left - right) <= (as_number(option) or 0.0)
        )
    if name == "contains":
        return float(isinstance(value, str) and isinstance(wanted, str) and wanted in value)
    if name == "words":
        return _words(value, wanted) if isinstance(value, str) and isinstance(wanted, str) else 0.0
    if name == "tool_trace":
        return float(
            any(
                _traced(each, gold, as_map(option))
                for gold in _traces(wanted)
                for each in _traces(value)
            )
        )
    if name == "one":
        return 1.0
    raise Unusable(
        f"columns: unknown measure {compact(measure)[:60]}; there are {', '.join(_MEASURES)}"
    )


def _words(value: str, wanted: str) -> float:
    """Return the F1 of the longest common subsequence of words (ROUGE-L without stemming)."""
    left, right = _WORD.findall(value.lower()), _WORD.findall(wanted.lower())
    held = [0] * (len(right) + 1)
    for word in left:
        before = 0
        for at, other in enumerate(right, 1):
            held[at], before = (
                before + 1 if word == other else max(held[at], held[at - 1]),
                held[at],
            )
    common = held[-1]
    return 2 * common / (len(left) + len(right)) if common else 0.0


def _traces(value: Any) -> Sequence[Any]:
    """Return tool traces: one or a list of them, each an object or its JSON text."""
    found = []
    for each in value if isinstance(value, list) else [value]:
        trace = each
        with suppress(ValueError):
            trace = standard_loads(each) if isinstance(each, str) else each
        found += list(as_list(trace)) or [trace]
    return found


def _traced(made: Any, gold: Any, tolerances: Mapping[str, Any]) -> bool:
    arguments = as_map(as_map(made).get("arguments"))
    if as_map(made).get("tool_name") != as_map(gold).get("tool_name"):
        return False
    for name, value in as_map(as_map(gold).get("arguments")).items():
        measure = {"close": tolerances[name]} if name in tolerances else "python"
        if name not in arguments or not _similarity(arguments[name], value, measure):
            return False
    return True


def addition_similarity(
    rows: Rows, before: Rows, target: Rows, columns: Mapping[str, Any]
) -> float:
    """Return how similar what was added is to what should be.

    0 where something of before is not there any more.
    """
    old, new = Counter(map(dumps, before)), Counter(map(dumps, rows))
    if sum(new[mark] * number for mark, number in old.items()) != len(before):
        return 0.0
    return table_similarity([row for row in rows if dumps(row) not in old], target, columns)


def update_similarity(rows: Rows, before: Rows, target: Rows, columns: Mapping[str, Any]) -> float:
    """Return how similar the rows that differ from before are to what they should be.

    0 for another number of rows.
    """
    if len(rows) != len(before):
        return 0.0
    old = set(map(dumps, before))
    return table_similarity([row for row in rows if dumps(row) not in old], target, columns)


def assignment(costs: Sequence[Sequence[float]]) -> list[int]:  # noqa: C901
    """Return for each row of a square matrix the column it is assigned, at the least sum (the
    Hungarian method).
    """
    size = len(costs)
    above, left = [0.0] * (size + 1), [0.0] * (size + 1)
    owner, way = [0] * (size + 1), [0] * (size + 1)  # column -> row, both from 1
    for row in range(1, size + 1):
        owner[0], column = row, 0
        least, used = [math.inf] * (size + 1), [False] * (size + 1)
        while owner[column]:
            used[column], here, delta, following = True, owner[column], math.inf, 0
            for each in range(1, size + 1):
                if not used[each]:
                    reduced = costs[here - 1][each - 1] - above[here] - left[each]
                    if reduced < least[each]:
                        least[each], way[each] = reduced, column
                    if least[each] < delta:
                        delta, following = least[each], each
            for each in range(size + 1):
                if used[each]:
                    above[owner[each]] += delta
                    left[each] -= delta
                else:
                    least[each] -= delta
            column = following
        while column:
            owner[column], column = owner[way[column]], way[column]
    found = [0] * size
    for column in range(1, size + 1):
        found[owner[column] - 1] = column - 1
    return found


INITIAL: Final = -1
_KINDS: Final = ("snapshot", "addition", "removal", "update", "guardrail")
_SANDBOX: Final = "SANDBOX"
"""The conversation, which always changes: it is never guarded."""
_MOST_MILESTONES: Final = 64
_BUDGET: Final = 200_000
"""Similarities looked up for one sample, at most."""
Snapshots = Sequence[Mapping[str, Rows]]


@attrs.frozen(kw_only=True)
class Constraint:
    """What a table should be like in a snapshot, by itself or beside the snapshot of another
    milestone.
    """

    database: str
    kind: str
    reference: int | None
    target: tuple[Row, ...] = ()
    columns: Mapping[str, Any] = attrs.field(factory=dict)

    def similarity(self, snapshot: Mapping[str, Rows], before: Mapping[str, Rows] | None) -> float:
        """Return how well a snapshot keeps it, beside that of its reference."""
        rows = snapshot.get(self.database, ())
        if self.kind == "snapshot":
            return table_similarity(rows, self.target, self.columns)
        old = (before or {}).get(self.database, ())
        if self.kind == "addition":
            return addition_similarity(rows, old, self.target, self.columns)
        if self.kind == "removal":
            return addition_similarity(old, rows, self.target, self.columns)
        if self.kind == "update":
            return update_similarity(rows, old, self.target, self.columns)
        return float(list(rows) == list(old))


def snapshots_of(state: Any) -> Snapshots:
    """Return the snapshots of a recorded state; one that lacks a table has it as it was before."""
    listed = state.get("snapshots") if isinstance(state, Mapping) else state
    if not isinstance(listed, list) or not listed:
        raise Unusable("the state holds no list of snapshots")
    found: list[dict[str, Sequence[Row]]] = []
    for number, each in enumerate(listed):
        found.append({**(found[-1] if found else {}), **tables_of(each, f"snapshots.{number}")})
    return found


def graph_of(milestones: Any, edges: Any, databases: Sequence[str]) -> Matcher:
    """Return the matcher of milestones and their order, each after the one before it where no edges
    are given.
    """
    nodes = [
        [_constraint(each) for each in as_list(as_map(node).get("constraints"))]
        for node in as_list(milestones)
    ]
    if len(nodes) > _MOST_MILESTONES:
        raise Unusable(f"{len(nodes)} milestones; at most {_MOST_MILESTONES} are matched")
    chain = [[number, number + 1] for number in range(len(nodes) - 1)]
    before: list[set[int]] = [set() for _ in nodes]
    for edge in chain if edges is None else as_list(edges):
        ends = as_list(edge)
        if len(ends) != 2 or not all(type(end) is int and 0 <= end < len(nodes) for end in ends):
            raise Unusable(
                f"edges: expected pairs of milestones' numbers, found {compact(edge)[:60]}"
            )
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
        raise Unusable(
            f"expected a constraint's database and kind ({', '.join(_KINDS)}), found "
            f"{compact(given)[:80]}"
        )
    if reference is None and kind != "snapshot":
        reference = INITIAL
    if reference is not None and type(reference) is not int:
        raise Unusable(
            f"reference: expected a milestone's number, or {INITIAL}, found "
            f"{compact(reference)[:60]}"
        )
    target = as_list(about.get("target"))
    if not all(isinstance(each, Mapping) for each in target):
        raise Unusable(f"target: expected rows, found {compact(about.get('target'))[:60]}")
    columns = as_map(about.get("columns"))
    return Constraint(
        database=database, kind=kind, reference=reference, target=tuple(target), columns=columns
    )


def _guardrails(
    number: int,
    nodes: Sequence[Sequence[Constraint]],
    before: set[int],
    about: Mapping[str, Any],
    databases: Sequence[str],
) -> list[Constraint]:
    """Return the guardrails of a milestone.

    Tables nothing is said of stay as they were at those it comes after.
    """
    references = {each.reference for each in nodes[number] if each.reference is not None}
    named = about.get("guardrails")
    guarded = dict.fromkeys(databases if named is None else map(str, as_list(named)))
    free = {_SANDBOX, *map(str, as_list(about.get("unguarded")))}
    for other in (number, *references, *before):
        if (
            -1 <= other < len(nodes)
        ):  # the reference -1 looks at the last milestone here, as in the original
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
        """Check that the milestones can be ordered, and refer to earlier ones."""
        earlier: list[set[int]] = [set() for _ in self.milestones]
        try:
            for node in TopologicalSorter(dict(enumerate(self.before))).static_order():
                earlier[node] = set().union(
                    *(earlier[other] | {other} for other in self.before[node])
                )
        except CycleError:
            raise Unusable("edges: the milestones go round in a circle") from None
        for number, constraints in enumerate(self.milestones):
            for each in constraints:
                if (
                    each.reference is not None
                    and each.reference != INITIAL
                    and each.reference not in earlier[number]
                ):
                    raise Unusable(
                        f"milestone {number} refers to {each.reference}, which need not come "
                        "before it"
                    )

    def best(self, snapshots: Snapshots) -> dict[int, tuple[int, float]]:
        """Return of each milestone its snapshot and similarity, in the mapping of the
        greatest sum.
        """
        return dict(_Search(self, snapshots).best(frozenset(range(len(self.milestones))), 0, ())[1])


Mapped = tuple[tuple[int, tuple[int, float]], ...]
"""Milestone, snapshot and similarity, in order."""


class _Search:
    """The best mapping, by what is left to map, the last snapshot, and the snapshots that are
    referred to.
    """

    def __init__(self, matcher: Matcher, snapshots: Snapshots) -> None:
        self._matcher, self._snapshots = matcher, snapshots
        self._known: dict[
            tuple[frozenset[int], int, tuple[tuple[int, int], ...]], tuple[float, Mapped]
        ] = {}
        self._similarities: dict[tuple[int, int, int, int | None], float] = {}
        self._left = _BUDGET

    def best(
        self, remaining: frozenset[int], last: int, referred: tuple[tuple[int, int], ...]
    ) -> tuple[float, Mapped]:
        """Return the greatest sum over what remains, and its mapping.

        Among equals the one met first.
        """
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
            kept = tuple(
                sorted(
                    (each, to) for each, to in {**at, number: snapshot}.items() if each in needed
                )
            )
            total, mapped = self.best(rest, snapshot, kept)
            if total - negative > found[0]:
                found = (total - negative, ((number, (snapshot, -negative)), *mapped))  # type: ignore[assignment]
        self._known[key] = found
        return found

    def _similarity(self, number: int, snapshot: int, at: Mapping[int, int]) -> float:
        """Return the geometric mean of a milestone's constraints.

        Guardrails count as factors, not in the root.
        """
        self._left -= 1
        if self._left < 0:
            raise Unusable(
                f"more than {_BUDGET:,} mappings of milestones to snapshots; give fewer of either"
            )
        product, count = 1.0, 0
        for place, each in enumerate(self._matcher.milestones[number]):
            to = (
                None
                if each.reference is None
                else 0
                if each.reference == INITIAL
                else at[each.reference]
            )
            key = number, place, snapshot, to
            if key not in self._similarities:
                before = None if to is None else self._snapshots[to]
                self._similarities[key] = each.similarity(self._snapshots[snapshot], before)
            product *= self._similarities[key]
            count += each.kind != "guardrail"
        return float(product ** (1 / count)) if count else product


_KEYS = ("milestones", "edges", "minefields", "minefield_edges")


@attrs.frozen(kw_only=True)
class Milestones(Grader):
    """Similarity of a run's snapshots to milestones, 0 when a minefield was stepped on; in [0, 1].

        score = (mean similarity of the milestones) * [mean similarity of the minefields = 0]

    The recorded state is a list of snapshots of tables, the first of them the initial state. The
    reference (``expected.state``) has ``milestones``, each with ``constraints`` on tables,
    ``edges`` (pairs of numbers; each after the one before it where there are none), ``minefields``
    and ``minefield_edges``. Milestones are laid over snapshots so that the sum of similarities is
    greatest, in any order the edges allow, never going back. A milestone's similarity is the
    geometric mean of its constraints'; tables it says nothing of must be as they were at the
    milestones it comes after (guardrails, which are 1 or 0 and outside the root). Without
    milestones their mean is 1, without minefields 0.

    This is ToolSandbox's rule; columns are compared exactly where nothing else is said. ``items``
    are the milestones and minefields with the snapshot each was laid over. What is not of this
    form, or has more mappings than are looked at, fails the grade. Skipped without a recorded
    state, and without a reference.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"state", "expected"})
    compares: ClassVar[frozenset[str] | None] = frozenset({"state"})
    metrics: ClassVar[tuple[str, ...]] = ("mean",)

    @override
    def grade(self, sample: Sample) -> Grade:
        reference = as_map(sample.expected.state)
        if sample.state is None:
            return skipped("state_not_recorded", "the states of the run are not recorded")
        if "milestones" not in reference and "minefields" not in reference:
            return skipped("no_milestones", "the reference has neither milestones nor minefields")
        try:
            snapshots = snapshots_of(sample.state)
            reached = _mapped(reference, "milestones", "edges", snapshots)
            stepped = _mapped(reference, "minefields", "minefield_edges", snapshots)
        except Unusable as problem:
            return failed(Fault(category="data", code="unusable_state", message=str(problem)))
        except RecursionError:
            return failed(
                Fault(category="data", code="unusable_state", message="nested too deeply")
            )
        return _milestone_grade(reached, stepped)


def _mapped(reference: Any, key: str, edges: str, snapshots: Snapshots) -> list[tuple[int, float]]:
    given = reference.get(key)
    if given is not None and not isinstance(given, list):
        raise Unusable(f"expected.state.{key}: expected a list")
    databases = list(dict.fromkeys(name for each in snapshots for name in each))
    found = graph_of(given or [], reference.get(edges), databases).best(snapshots)
    return [found[number] for number in sorted(found)]


def _milestone_grade(reached: list[tuple[int, float]], stepped: list[tuple[int, float]]) -> Grade:
    similarity = sum(each for _, each in reached) / len(reached) if reached else 1.0
    danger = sum(each for _, each in stepped) / len(stepped) if stepped else 0.0
    items, reasons = list[Item](), list[Reason]()
    for name, mapped in (("milestone", reached), ("minefield", stepped)):
        for number, (snapshot, each) in enumerate(mapped):
            items.append(Item(id=f"{name} {number}", score=each, metadata={"snapshot": snapshot}))
            code, said = "milestone_missed", f"similarity {each:.3g}"
            if name == "minefield":
                code, said = "minefield", f"at snapshot {snapshot}"
            if each if name == "minefield" else each < 1.0:
                reasons.append(
                    Reason(code=code, pointer=f"/{name}s/{number}", actual=each, message=said)
                )
    return Grade(
        score=similarity if danger == 0.0 else 0.0,
        counts={
            "milestones": len(reached),
            "minefields": len(stepped),
            "reached": sum(x == 1.0 for _, x in reached),
        },
        parts={"milestones": similarity, "minefields": danger},
        items=tuple(items),
        reasons=tuple(reasons),
    )

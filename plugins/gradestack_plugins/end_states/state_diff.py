"""Grader ``state_diff``: assertions about what changed in the world."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import Fault, Grade, Grader, Item, Reason, Sample, failed, skipped
from gradestack.jsonio import as_map
from gradestack_plugins.end_states.assertions import Policy, broken, name_of
from gradestack_plugins.end_states.differences import difference_of
from gradestack_plugins.end_states.predicates import Unusable


@attrs.frozen(kw_only=True)
class StateDiff(Grader):
    """Share of the assertions that a run's end state keeps, in [0, 1]; ``passed`` when it keeps all.

        score = kept / assertions

    The assertions are those of agent-diff, in the reference (``expected.state``: ``assertions``, ``strict``,
    ``ignore_fields``) or in the options: ``diff_type`` ``added``, ``removed``, ``changed`` or ``unchanged`` rows of a
    table (``entity``) that keep ``where``, as many as ``expected_count`` says (at least one; of ``unchanged`` none). A
    changed row's ``expected_changes`` say from what to what; with ``strict`` nothing else of it may have changed, but
    for ignored fields.

    The recorded state is what changed (``inserts``, ``updates`` with ``before`` and ``after``, ``deletes``, each with
    its ``__table__``), or tables ``before`` and ``after``, whose rows are told by ``key``. A state or an assertion that
    is of neither form fails the grade. Skipped without a recorded state, and without assertions. Both profiles are the
    same.

    Attributes:
        assertions: For samples whose reference has none.
        strict: Whether other fields of a changed row may not change, where the reference does not say.
        ignore_fields: ``global`` and tables -> fields whose change does not count, where the reference does not say.
        key: The field that rows are told by.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"state", "expected"})
    requires: ClassVar[frozenset[str]] = frozenset({"state"})
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)

    assertions: tuple[dict[str, Any], ...] = ()
    strict: bool = True
    ignore_fields: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    key: str = "id"

    @override
    def grade(self, sample: Sample) -> Grade:
        reference = as_map(sample.expected.state)
        assertions = reference.get("assertions", list(self.assertions) or None)
        if sample.state is None:
            return skipped("state_not_recorded", "the recording does not hold the state the run ended in")
        if assertions is None:
            return skipped("no_assertions", "neither the reference nor the options assert anything of the state")
        policy = Policy(
            reference.get("strict", self.strict), as_map(reference.get("ignore_fields", self.ignore_fields))
        )
        try:
            return self._graded(sample, assertions, policy)
        except Unusable as problem:
            return failed(Fault(category="data", code="unusable_state", message=str(problem)))
        except RecursionError:
            return failed(Fault(category="data", code="unusable_state", message="nested too deeply"))

    def _graded(self, sample: Sample, assertions: Any, policy: Policy) -> Grade:
        if not isinstance(assertions, list):
            raise Unusable("expected.state.assertions: expected a list")
        difference = difference_of(sample.state, self.key)
        items, reasons = [], []
        for number, assertion in enumerate(assertions):
            said = broken(assertion, difference, policy)
            items.append(Item(id=name_of(number, assertion), score=float(not said)))
            subject = str(as_map(assertion).get("entity"))
            pointer = f"/assertions/{number}"
            reasons += [Reason(code="assertion", pointer=pointer, subject=subject, message=each) for each in said]
        kept = sum(item.score == 1.0 for item in items)
        score = kept / len(items) if items else 1.0
        counts = {"assertions": len(items), "kept": kept}
        return Grade(score=score, passed=kept == len(items), counts=counts, items=tuple(items), reasons=tuple(reasons))

"""Items of a trial's grade: steps of sub-agents, and plans, with a reason for every lost point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from gradestack import JSON, Item, Outcome, Reason, replace
from gradestack.jsonio import pointer_to
from gradestack_plugins.orchestrationbench.calls import Pair, sum_counts
from gradestack_plugins.orchestrationbench.decisions import CALL, Step, mean
from gradestack_plugins.orchestrationbench.plans import PlanStep

_LONGEST = 2_000


def step_items(steps: Iterable[Step], pairs: Iterable[Pair]) -> Iterator[Item]:
    """Yield an item for each step, with how the calls of a pair compare."""
    numbers = Counter[str]()
    compared = iter(pairs)
    for step in steps:
        if numbers[step.id]:
            name = f"{step.id} (again {numbers[step.id]})"
        else:
            name = step.id
        numbers[step.id] += 1
        item = _decision_item(name, step)
        yield _with_calls(item, next(compared)) if step.called else item


def _decision_item(name: str, step: Step) -> Item:
    """Build the item of a step: whether it was right to call, and both sides' calls or texts."""
    gold = _cut(step.gold_text)
    predicted = _cut(step.text)
    if step.gold == CALL:
        gold = msgspec.to_builtins(step.gold_bag)
    if step.bag.names:
        predicted = msgspec.to_builtins(step.bag)
    metadata = {"agent": step.agent, "gold": gold, "predicted": predicted}
    if step.fault is not None:
        return Item(id=name, outcome=Outcome.FAILED, fault=step.fault, metadata=metadata)
    reasons = []
    if not step.labelled:
        message = "the label has no such step: a rejection is expected"
        reasons.append(Reason(code="no_label", message=message, subject=step.id))
    if mistake := _mistake(step):
        code, message = mistake
        reason = Reason(
            code=code,
            message=message,
            subject=step.id,
            expected=step.gold,
            actual=step.predicted,
        )
        reasons.append(reason)
    score = float(step.right)
    counts = {step.cell: 1}
    return Item(
        id=name,
        score=score,
        label=step.predicted,
        gold=step.gold,
        counts=counts,
        reasons=tuple(reasons),
        metadata=metadata,
    )


_FAILED = "failed_generation", "no call and no rejection marker"
_MISTAKES = {
    "fc_failed": _FAILED,
    "reject_failed": _FAILED,
    "reject_fc": ("overaction", "called where it should have rejected"),
    "fc_reject": ("underaction", "rejected where it should have called"),
}
"""Cell -> code and message."""


def _mistake(step: Step) -> tuple[str, str] | None:
    """Return code and message of what is wrong with a decision."""
    if not step.answered:
        return "no_prediction", "the label expects a turn, none was recorded"
    if step.right and step.gold != step.predicted:
        return "rejection_type", "rejected, for another reason than the gold turn"
    return _MISTAKES.get(step.cell)


def _with_calls(item: Item, pair: Pair) -> Item:
    """Return the item of a step where both sides call with how the calls compare."""
    step, reasons = pair.step, []
    if pair.name < 1:
        expected = [*step.gold_bag.names]
        names = step.bag.names
        reason = Reason(
            code="function_name",
            message="the sets of called functions differ",
            subject=step.id,
            expected=expected,
            actual=[*names],
        )
        reasons.append(reason)
    for key in pair.keys:
        if key.fp or key.fn:
            actual = [*key.predicted]
            pointer = pointer_to(key.key)
            message = f"tp {key.tp}, fp {key.fp}, fn {key.fn}"
            reason = Reason(
                code=key.reason,
                message=message,
                subject=step.id,
                expected=[*key.gold],
                actual=actual,
                pointer=pointer,
            )
            reasons.append(reason)
    parts = {"name": pair.name, "key": pair.key, "value": pair.value}
    score = mean(parts.values())
    tp, fp, fn = sum_counts(key.counts for key in pair.keys)
    keys = [msgspec.to_builtins(key) for key in pair.keys]
    counts = {**item.counts, "tp": tp, "fp": fp, "fn": fn}
    metadata = {**item.metadata, "keys": keys}
    return replace(
        item,
        score=score,
        counts=counts,
        parts={**parts, "value_upper_bound": pair.best_value},
        reasons=(*item.reasons, *reasons),
        metadata=metadata,
    )


def plan_item(step: PlanStep) -> Item:
    """Return the grade's item about one step of the gold plan."""
    gold = _cut(step.gold)
    predicted = _cut(step.predicted)
    metadata: dict[str, JSON] = {"gold": gold, "predicted": predicted}
    if step.fault is not None:
        return Item(id=step.id, outcome=Outcome.FAILED, fault=step.fault, metadata=metadata)
    reasons = []
    if not step.comparisons:
        code, message = step.problem
        reasons.append(Reason(code=code, message=message, subject=step.id))
    for name, comparison in zip(("structural", "component"), step.comparisons, strict=False):
        distance = comparison.distance
        metadata[name] = {
            "lower": distance.lower,
            "upper": distance.upper,
            "exact": distance.exact,
        }
        edits = f"{distance.upper:g} edits from the gold graph"
        if not distance.exact:
            edits = f"{distance.lower:g} to {edits} (search stopped)"
        if distance.upper:
            reason = Reason(
                code=f"{name}_distance",
                message=f"{name} graph: {edits}",
                subject=step.id,
                expected=0.0,
                actual=distance.upper,
            )
            reasons.append(reason)
    score, structural, component = step.figures
    parts = {"structural": structural, "component": component}
    return Item(id=step.id, score=score, parts=parts, reasons=tuple(reasons), metadata=metadata)


def _cut(value: JSON) -> JSON:
    """Return a value for people: a long text cut."""
    is_long = isinstance(value, str) and len(value) > _LONGEST
    return value[:_LONGEST] + "…" if is_long else value

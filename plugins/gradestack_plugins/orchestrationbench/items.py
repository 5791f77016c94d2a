"""What the graders say about single steps: labels, counts, and a reason for every lost point."""

from __future__ import annotations

from gradestack import JSON, Item, Outcome, Reason
from gradestack_plugins.orchestrationbench.calls.arguments import Arguments
from gradestack_plugins.orchestrationbench.calls.decisions import Step
from gradestack_plugins.orchestrationbench.calls.f1 import Pair
from gradestack_plugins.orchestrationbench.plans.similarity import Comparison
from gradestack_plugins.orchestrationbench.plans.steps import PlanStep
from gradestack_plugins.orchestrationbench.recorded.trial import CALL, FAILED

_LONGEST = 2_000
"""Characters of a text kept for people."""


def decision_items(arguments: Arguments) -> tuple[Item, ...]:
    """Return one item per predicted step and one, MISSING, per step the prediction lacks."""
    items = [_decision(step, name) for step, name in zip(arguments.steps, _unique(arguments.steps), strict=True)]
    items.extend(
        Item(
            id=step,
            outcome=Outcome.MISSING,
            reasons=(
                Reason(code="no_prediction", subject=step, message="the label expects a turn, none was recorded"),
            ),
        )
        for step in arguments.missing
    )
    return tuple(items)


def _unique(steps: tuple[Step, ...]) -> list[str]:
    """Return step ids, a repeated one with its number."""
    seen: dict[str, int] = {}
    names = []
    for step in steps:
        seen[step.id] = seen.get(step.id, 0) + 1
        names.append(step.id if seen[step.id] == 1 else f"{step.id} (again {seen[step.id] - 1})")
    return names


def _decision(step: Step, name: str) -> Item:
    metadata = {
        "agent": step.agent if isinstance(step.agent, str) else None,
        "gold": step.gold_bag.shown() if step.gold_bag is not None else _cut(step.gold_text),
        "predicted": step.bag.shown() if step.bag is not None else _cut(step.text),
    }
    if step.fault is not None:
        return Item(id=name, outcome=Outcome.FAILED, fault=step.fault, metadata=metadata)
    return Item(
        id=name,
        score=1.0 if step.right else 0.0,
        label=step.predicted,
        gold=step.gold,
        counts={step.cell: 1},
        reasons=_decision_reasons(step),
        metadata=metadata,
    )


def _decision_reasons(step: Step) -> tuple[Reason, ...]:
    found = []
    if not step.labelled:
        found.append(
            Reason(code="no_label", subject=step.id, message="the label has no such step: a rejection is expected")
        )
    if step.predicted == FAILED:
        found.append(_wrong("failed_generation", step, "no call and no rejection marker"))
    elif (step.gold == CALL) != (step.predicted == CALL):
        called = step.predicted == CALL
        message = "called where it should have rejected" if called else "rejected where it should have called"
        found.append(_wrong("overaction" if called else "underaction", step, message))
    elif step.gold != step.predicted:
        found.append(_wrong("rejection_type", step, "rejected, for another reason than the gold turn"))
    return tuple(found)


def _wrong(code: str, step: Step, message: str) -> Reason:
    return Reason(code=code, subject=step.id, expected=step.gold, actual=step.predicted, message=message)


def call_items(pairs: tuple[Pair, ...]) -> tuple[Item, ...]:
    """Return one item per graded pair, with counts and reason of every argument."""
    names = _unique(tuple(pair.step for pair in pairs))
    return tuple(_call(pair, name) for pair, name in zip(pairs, names, strict=True))


def _call(pair: Pair, name: str) -> Item:
    step = pair.step
    parts = {"name": pair.name, "key": pair.key, "value": pair.value, "value_upper_bound": pair.best_value}
    return Item(
        id=name,
        score=(pair.name + pair.key + (pair.value or 0.0)) / 3
        if pair.value is not None
        else (pair.name + pair.key) / 2,
        counts={
            "tp": sum(result.tp for result in pair.keys),
            "fp": sum(result.fp for result in pair.keys),
            "fn": sum(result.fn for result in pair.keys),
        },
        parts=parts,
        reasons=_call_reasons(pair),
        metadata={
            "agent": step.agent if isinstance(step.agent, str) else None,
            "gold": step.gold_bag.shown() if step.gold_bag is not None else None,
            "predicted": step.bag.shown() if step.bag is not None else None,
            "keys": [result.shown() for result in pair.keys],
        },
    )


def _call_reasons(pair: Pair) -> tuple[Reason, ...]:
    step = pair.step
    found = []
    if pair.name < 1 and step.bag is not None and step.gold_bag is not None:
        found.append(
            Reason(
                code="function_name",
                subject=step.id,
                expected=list(step.gold_bag.names),
                actual=list(step.bag.names),
                message="the sets of called functions differ",
            )
        )
    found.extend(
        Reason(
            code=result.reason,
            pointer="/" + result.key.replace("~", "~0").replace("/", "~1"),
            subject=step.id,
            expected=list(result.gold),
            actual=list(result.predicted),
            message=f"tp {result.tp}, fp {result.fp}, fn {result.fn}",
        )
        for result in pair.keys
        if result.fp or result.fn
    )
    return tuple(found)


def plan_item(step: PlanStep) -> Item:
    """Return the item of one gold plan."""
    metadata: dict[str, JSON] = {"gold": _cut(step.gold), "predicted": _cut(step.predicted)}
    if step.fault is not None:
        return Item(id=step.id, outcome=Outcome.FAILED, fault=step.fault, metadata=metadata)
    score, structural, component = step.figures
    reasons = []
    if step.result is None:
        code, _, message = step.problem.partition(": ")
        reasons.append(Reason(code=code, subject=step.id, message=message or "no plan was predicted at this step"))
    else:
        for name, comparison in (("structural", step.result.structural), ("component", step.result.component)):
            metadata[name] = _comparison(comparison)
            reasons.extend(_plan_reasons(step.id, name, comparison))
    return Item(
        id=step.id,
        score=score,
        parts={"structural": structural, "component": component, "upper_bound": step.highest},
        reasons=tuple(reasons),
        metadata=metadata,
    )


def _comparison(comparison: Comparison) -> dict[str, JSON]:
    distance = comparison.distance
    return {
        "lower": distance.lower,
        "upper": distance.upper,
        "exact": distance.exact,
        "self_loop": comparison.loops,
        "solver": distance.backend,
    }


def _plan_reasons(step: str, name: str, comparison: Comparison) -> list[Reason]:
    distance = comparison.distance
    found = []
    if distance.upper:
        message = f"{name} graph: {distance.upper:g} edits from the gold graph"
        if not distance.exact and distance.backend == "own":
            message = (
                f"{name} graph: {distance.lower:g} to {distance.upper:g} edits from the gold graph (search stopped)"
            )
        found.append(
            Reason(code=f"{name}_distance", subject=step, expected=0.0, actual=distance.upper, message=message)
        )
    return found


def _cut(value: JSON) -> JSON:
    """Return a value for people: a long text cut, what is neither text nor a plan outline named by its type."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else value[:_LONGEST] + "…"
    return value if value is None or isinstance(value, dict) else f"<{type(value).__name__}>"

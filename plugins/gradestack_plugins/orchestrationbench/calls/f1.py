"""Function name, argument key and argument value F1 of one trial.

Graded are the pairs where both sides call. Set F1: both empty 1, one empty 0, else P = |both| / |predicted|,
R = |both| / |gold|, F1 = 2PR / (P + R).

* name F1 on the sets of function names, key F1 on the sets of argument names;
* value F1 from true positives, false positives and false negatives summed over all arguments of the pair; every zero
  denominator gives 0.

Trial: mean over the graded pairs; name and key are rounded to four decimals, as the original does, value is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack import JSON, Profile
from gradestack_plugins.orchestrationbench.calls.decisions import Step
from gradestack_plugins.orchestrationbench.calls.judge import Judge, JudgeRequest
from gradestack_plugins.orchestrationbench.calls.values import KeyResult, at_best, compare_key, decided, usable
from gradestack_plugins.orchestrationbench.recorded.history import history_before, system_message
from gradestack_plugins.orchestrationbench.recorded.trial import CALL
from gradestack_plugins.orchestrationbench.recorded.verdicts import Verdict


@attrs.frozen(kw_only=True)
class Pair:
    """One gold call beside a predicted call."""

    step: Step
    name: float
    key: float
    value: float | None
    """None in ``documented`` when neither side has an argument: 0/0."""
    best_value: float | None
    """Value F1 if a judge decided every undecided value as leniently as can be."""
    keys: tuple[KeyResult, ...] = ()


@attrs.frozen(kw_only=True)
class CallFigures:
    """The calls of one trial."""

    pairs: tuple[Pair, ...]
    name: float | None
    """None in ``documented`` when there is no graded pair; 0.0 then in ``upstream``."""
    key: float | None
    value: float | None
    best_value: float | None
    perfect: int
    """Pairs with key F1 and value F1 both 1."""
    judge_failed: bool = False
    """The original lists the trial among those whose judge failed: no graded pair, or value F1 replaced by key F1."""
    fallback: str = ""
    """Why value F1 was replaced by key F1 (``upstream``)."""


def set_f1(predicted: Iterable[JSON], gold: Iterable[JSON]) -> float:
    """Return the F1 of two collections as sets; lists in them are taken as tuples."""
    ours = {tuple(item) if isinstance(item, list) else item for item in predicted}
    theirs = {tuple(item) if isinstance(item, list) else item for item in gold}
    if not ours or not theirs:
        return 1.0 if not ours and not theirs else 0.0
    both = len(ours & theirs)
    return harmonic(both / len(ours), both / len(theirs))


def harmonic(precision: float, recall: float) -> float:
    """Return 2PR / (P + R), 0 when both are 0."""
    return 2 * (precision * recall) / (precision + recall) if precision + recall > 0 else 0.0


def value_f1(results: Sequence[KeyResult], profile: Profile) -> float | None:
    """Return the F1 of counts summed over arguments; without any count None in ``documented``, 0 in ``upstream``."""
    tp = sum(result.tp for result in results)
    fp = sum(result.fp for result in results)
    fn = sum(result.fn for result in results)
    if not tp + fp + fn:
        return None if profile == "documented" else 0.0
    return harmonic(tp / (tp + fp) if tp + fp > 0 else 0.0, tp / (tp + fn) if tp + fn > 0 else 0.0)


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, added from left to right; None of nothing."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values) if values else None


@attrs.frozen(kw_only=True)
class CallRules:
    """What calls are compared by, beside the steps."""

    profile: Profile = "documented"
    tools: Mapping[str, Any] = attrs.field(factory=dict)
    """Parameters (JSON Schema) by tool name."""
    judge: Judge | None = None
    judge_section: bool = True
    """False when the evaluation config lacks its judge section."""
    label: JSON = None
    """The gold conversation, for a judge."""


def grade_calls(steps: Iterable[Step], rules: CallRules) -> CallFigures:
    """Return the call figures of one trial.

    ``documented``: value is the mean over all pairs with an argument on either side. ``upstream``: the mean over the
    pairs whose value F1 is above 0; when the judge section is missing or a comparison raises, every pair's value F1
    becomes its key F1; no pair gives 0.0 throughout.

    Raises:
        Exception: In ``upstream`` only: a function name that cannot be put into a set.
    """
    called = [step for step in steps if step.fault is None and step.gold == CALL and step.predicted == CALL]
    if rules.profile == "documented":
        return _documented(called, rules)
    return _upstream(called, rules)


def _documented(called: list[Step], rules: CallRules) -> CallFigures:
    pairs = tuple(_pair(step, _compare(step, rules, usable(_schemas(step, rules))), rules) for step in called)
    name, key = mean([pair.name for pair in pairs]), mean([pair.key for pair in pairs])
    return CallFigures(
        pairs=pairs,
        name=None if name is None else round(name, 4),
        key=None if key is None else round(key, 4),
        value=mean([pair.value for pair in pairs if pair.value is not None]),
        best_value=mean([pair.best_value for pair in pairs if pair.best_value is not None]),
        perfect=sum(1 for pair in pairs if pair.key == 1.0 and pair.value in (1.0, None)),
    )


def _upstream(called: list[Step], rules: CallRules) -> CallFigures:
    fallback = "" if rules.judge_section else "the evaluation config has no judge section"
    results: list[tuple[KeyResult, ...]] = [() for _ in called]
    if called and not fallback:
        try:
            results = [_compare(step, rules, _schemas(step, rules)) for step in called]
        except Exception as error:  # noqa: BLE001 - whatever a broken schema raises, the original falls back
            fallback = f"{type(error).__name__}: {error}"
    pairs = tuple(_pair(step, found, rules) for step, found in zip(called, results, strict=True))
    if fallback:
        pairs = tuple(attrs.evolve(pair, value=pair.key, best_value=pair.key) for pair in pairs)
    values = [pair.value or 0.0 for pair in pairs]
    listed = _listed(pairs) if rules.judge is not None and not fallback else values
    return CallFigures(
        pairs=pairs,
        name=round(mean([pair.name for pair in pairs]) or 0.0, 4),
        key=round(mean([pair.key for pair in pairs]) or 0.0, 4),
        value=mean([value for value in values if value > 0]) or 0.0,
        best_value=mean([pair.best_value for pair in pairs if pair.best_value]) or 0.0,
        perfect=sum(1 for pair, value in zip(pairs, listed, strict=True) if pair.key == 1.0 and value == 1.0),
        judge_failed=bool(fallback) or not pairs,
        fallback=fallback,
    )


def _listed(pairs: Sequence[Pair]) -> list[float]:
    """Return value F1s as a live judge of the original leaves them: judged pairs first, then assigned by position."""
    judged = [any(result.reason in ("judged", "undecided") for result in pair.keys) for pair in pairs]
    first = [pair.value or 0.0 for pair, asked in zip(pairs, judged, strict=True) if asked]
    return first + [pair.value or 0.0 for pair, asked in zip(pairs, judged, strict=True) if not asked]


def _schemas(step: Step, rules: CallRules) -> dict[str, Any]:
    names = step.bag.names if step.bag is not None else ()
    return {name: rules.tools[name] for name in names if name in rules.tools}


def _compare(step: Step, rules: CallRules, schemas: Mapping[str, Any]) -> tuple[KeyResult, ...]:
    """Return the results of all arguments of a pair, by name, the judge's verdicts included."""
    ours, theirs = _arguments(step)
    found = [compare_key(key, ours, theirs, schemas, rules.profile) for key in sorted({*ours, *theirs})]
    asked = [result for result in found if result.reason == "undecided"]
    verdicts: Mapping[str, Verdict] = {}
    if asked and rules.judge is not None:
        request = JudgeRequest(
            step=step.id,
            leftovers=tuple(result.leftover for result in asked),
            schema=schemas,
            history=lambda: history_before(rules.label, step.recorded_id),
            system=str(system_message(rules.label)) if _has_system(rules.label) else "",
        )
        verdicts = rules.judge.decide(request)
    return tuple(
        decided(result, verdicts.get(result.key), rules.profile) if result.reason == "undecided" else result
        for result in found
    )


def _has_system(label: JSON) -> bool:
    first = label.get("1") if isinstance(label, Mapping) else None
    return isinstance(first, Mapping) and "role" in first and "content" in first


def _arguments(step: Step) -> tuple[Mapping[str, JSON], Mapping[str, JSON]]:
    return (step.bag.arguments if step.bag else {}), (step.gold_bag.arguments if step.gold_bag else {})


def _pair(step: Step, results: tuple[KeyResult, ...], rules: CallRules) -> Pair:
    ours, theirs = _arguments(step)
    return Pair(
        step=step,
        name=set_f1(step.bag.names if step.bag else (), step.gold_bag.names if step.gold_bag else ()),
        key=set_f1(ours, theirs),
        value=value_f1(results, rules.profile),
        best_value=value_f1([_best(result, rules.profile) for result in results], rules.profile),
        keys=results,
    )


def _best(result: KeyResult, profile: Profile) -> KeyResult:
    """Return the most lenient outcome of an undecided key; what ``upstream`` lost stays lost."""
    best = at_best(result)
    if profile == "documented" or result.reason != "undecided":
        return best
    return attrs.evolve(best, tp=best.tp - result.confirmed)

"""The graders of OrchestrationBench: decisions, calls, plans, and all three in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Fault,
    Grade,
    Grader,
    Item,
    Outcome,
    Reason,
    Sample,
    Status,
    failed,
    native_of,
    ratio,
    replace,
    skipped,
)
from gradestack.jsonio import pointer_to
from gradestack_plugins.judges.contract import PartlyJudged, Request
from gradestack_plugins.judges.journal import Reply
from gradestack_plugins.orchestrationbench.calls import (
    Pair,
    asked_about,
    call_grade,
    compare_calls,
    judge_calls,
    read_reply,
    sum_counts,
)
from gradestack_plugins.orchestrationbench.decisions import (
    CALL,
    FAILED,
    Arguments,
    Setting,
    Step,
    Trial,
    arguments_of,
    fault_of,
    is_plain,
    make_grade,
    make_reason,
    mean,
)
from gradestack_plugins.orchestrationbench.graphs import BUDGET, Weights
from gradestack_plugins.orchestrationbench.plans import (
    PlanFigures,
    PlanRules,
    PlanStep,
    plan_figures,
    sample_plans,
)
from gradestack_plugins.readers.chat.unread import calls_unknown, has_unread_calls

_LONGEST = 2_000
PLANS = ("scores", "structural", "component", "highest")
"""Figures of each gold plan, in the metadata of a grade as ``plan_NAME``."""
COMPARED = frozenset({"calls", "label", "text", "plan"})


@attrs.frozen(kw_only=True)
class _Bench(Grader):
    native: ClassVar[type[Trial]] = Trial
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})


@attrs.frozen(kw_only=True)
class OrchestrationDecision(_Bench):
    """Whether each sub-agent turn rightly called a tool or rightly refused to.

    Steps are items: label is the predicted decision (``FC``, ``AWAITING_USER_INPUT``,
    ``TOOL_CONSTRAINT_VIOLATION``, ``FAILED``), gold the expected one (with ``GENERAL_REJECTION``).
    A step is right when call meets call or rejection meets rejection; another type of rejection is
    right but counted as ``rejection_type_mismatch``. An answer without call and without marker is
    FAILED, as is a gold step without an answer. A step that cannot be read is a failed item outside
    all counts.

    score = right steps / graded steps, in [0, 1].
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    compares: ClassVar[frozenset[str] | None] = COMPARED
    metrics: ClassVar[tuple[str, ...]] = ("orchestration_decisions", "mean")

    @override
    def grade(self, sample: Sample) -> Grade:
        arguments = _arguments(sample)
        if isinstance(arguments, Grade):
            return arguments
        names = _unique(arguments.steps)
        items = tuple(map(_decision, arguments.steps, names))
        label, gold = (items[0].label, items[0].gold) if len(items) == 1 else (None, None)
        return replace(_decision_grade(arguments), items=items, label=label, gold=gold)


@attrs.frozen(kw_only=True, slots=False)
class _Calls(_Bench, PartlyJudged):
    """Base of what asks a model about values only a judge could tell equal, by step."""

    @override
    def requests(self, sample: Sample) -> Sequence[Request]:
        if not self.judgements or fault_of(sample) is not None:
            return []
        arguments = arguments_of(sample)
        if not isinstance(arguments, Arguments):
            return []
        pairs = compare_calls(sample, arguments.steps)
        return [self.request(*asked_about(sample, pair)) for pair in pairs if pair.undecided]

    @override
    def problem(self, request: Request, reply: Reply) -> str | None:
        return read_reply(request.schema, reply)[1]


@attrs.frozen(kw_only=True)
class OrchestrationCall(_Calls):
    """Function name, argument key and argument value F1 where both sides call.

    Each step is one bag of calls; single calls are not paired. Name and key F1 compare sets; value
    F1 = 2PR / (P + R) from tp, fp and fn summed over the arguments of the step, undefined without
    any. Undecodable arguments are one wrong value. Trial: mean over the steps, name and key rounded
    to 4 digits.

    score = mean of the trial's name, key and value F1 that are defined, in [0, 1]. Skipped when no
    step is a graded pair.

    Values only a judge could tell equal count as not matching, and ``value_upper_bound`` has the
    best a judge could give. With ``judgements`` the model ``judge`` is asked about them, a request
    for each step, in words of our own: it sees the gold turns before the step, the tools, and what
    is left over on both sides. A reply counts whole, in one fence or none, if it has every argument
    and adds up. What has no verdict stays undecided, with a reason: ``not_judged`` or another code
    of ``judged``.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    compares: ClassVar[frozenset[str] | None] = COMPARED
    metrics: ClassVar[tuple[str, ...]] = ("orchestration_calls", "mean")

    @override
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        arguments = _arguments(sample)
        if isinstance(arguments, Grade):
            return arguments
        pairs, reasons = judge_calls(sample, arguments.steps, replies)
        items = tuple(map(_call, pairs, _unique([pair.step for pair in pairs])))
        return replace(call_grade(pairs, reasons), items=items)


@attrs.frozen(kw_only=True)
class _PlanOptions(_Bench):
    agent_weight: float | None = None
    """Price of a step with another agent, same status; from the evaluation config, else 0.8.

    0 to 2.
    """
    status_weight: float | None = None
    """Price of a step with another status, same agent; from the evaluation config, else 0.5.

    0 to 2.
    """
    search_budget: int = BUDGET
    """Partial mappings the solver may expand per pair of graphs with more than 8 nodes."""

    def __attrs_post_init__(self) -> None:
        Weights(self.agent_weight or 0.0, self.status_weight or 0.0)
        if self.search_budget < 1:
            raise ValueError(f"search_budget {self.search_budget}: expected a whole number from 1")

    def _plans(self, sample: Sample) -> PlanFigures | None:
        trial = native_of(sample, Trial)
        setting = Setting() if trial is None else trial.setting
        agent, status = self.agent_weight, self.status_weight
        weights = Weights(
            setting.agent_weight if agent is None else agent,
            setting.status_weight if status is None else status,
        )
        rules = PlanRules(weights=weights, budget=self.search_budget)
        return sample_plans(sample, rules) if trial is None else plan_figures(trial, rules)


@attrs.frozen(kw_only=True)
class OrchestrationPlan(_PlanOptions):
    """Similarity of predicted and gold workflow plans.

    Per graph similarity = 1 - distance / (nodes + edges of both), step score = 0.5 structural + 0.5
    component similarity. Distance is the graph edit distance with insertions and deletions at 1,
    free edge substitution, and for component nodes 0 / status_weight / agent_weight / 1 when
    nothing / the status / the agent / both differ. Both graphs read ``depends_on``, else
    ``depend_on``; what is malformed counts as empty.

    score = sum of step scores / gold plans, in [0, 1]; a plan that is absent or cannot be read is
    one zero. Skipped when the trial has no gold plan.
    """

    compares: ClassVar[frozenset[str] | None] = COMPARED
    metrics: ClassVar[tuple[str, ...]] = ("orchestration_plans", "mean")

    @override
    def grade(self, sample: Sample) -> Grade:
        if fault := fault_of(sample):
            return failed(fault)
        figures = self._plans(sample)
        if figures is None:
            return skipped("no_gold_plan", "the sample has no reference plan")
        return replace(_plan_grade(figures), items=tuple(map(_plan_item, figures.steps)))


@attrs.frozen(kw_only=True)
class OrchestrationBench(_PlanOptions, _Calls):
    """Decisions, calls and plans of a trial in one grade, for the figures that need all three.

    score = mean of the decision, call and plan scores that are defined, in [0, 1]. It has no items:
    the three single graders show the steps. The official figures (Average, Call Rejection
    Classification Accuracy, FC, Plan) are computed over the whole input by the aggregator of the
    same name. A trial whose calls cannot be graded fails, and its plans still count. ``judgements``
    and ``judge`` are those of its calls.
    """

    compares: ClassVar[frozenset[str] | None] = COMPARED
    metrics: ClassVar[tuple[str, ...]] = ("orchestrationbench", "mean")

    @override
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        if fault := fault_of(sample):
            return failed(fault)
        arguments, plans = arguments_of(sample), self._plans(sample)
        grades = [] if plans is None else [_plan_grade(plans)]
        if isinstance(arguments, Arguments):
            pairs, _ = judge_calls(sample, arguments.steps, replies)
            grades += [_decision_grade(arguments), call_grade(pairs)]
        merged = _merged(grades)
        if isinstance(arguments, Fault):
            changes = {"outcome": Outcome.FAILED, "score": None, "rationale": arguments.message}
            return replace(merged, fault=arguments, **changes)
        if merged.score is None:
            reason = make_reason("nothing_to_grade", "no step, call or plan with a reference")
            return replace(merged, reasons=(reason,))
        return merged


def _merged(grades: list[Grade]) -> Grade:
    counts, parts, metadata = dict[str, int](), dict[str, Any](), dict[str, Any]()
    for grade in grades:
        counts |= grade.counts
        parts |= grade.parts
        metadata |= grade.metadata
    return make_grade(mean([grade.score for grade in grades]), counts, parts, **metadata)


def _arguments(sample: Sample) -> Arguments | Grade:
    """Return the argument part of a sample, or the grade that says why there is none."""
    if fault := fault_of(sample):
        return failed(fault)
    if has_unread_calls(sample):
        return calls_unknown(sample)
    arguments = arguments_of(sample)
    if isinstance(arguments, Fault):
        return failed(arguments)
    if arguments is not None:
        return arguments
    if is_plain(sample.expected):
        return skipped("no_decision", "no expected calls or rejection, or nothing predicted")
    message = "the reference is more than a list of names and arguments, which this metric does not support"
    return skipped("reference_not_plain", message)


def _decision_grade(arguments: Arguments) -> Grade:
    counts = arguments.counts()
    score = ratio(sum(step.right for step in arguments.steps), counts["steps_graded"])
    no_steps = make_reason("no_steps", "no sub-agent turn could be judged")
    return make_grade(score, counts, {"decision": score}, [no_steps] if score is None else ())


def _plan_grade(figures: PlanFigures) -> Grade:
    compared = figures.compared
    scores = [step.figures for step in compared]
    parsed = sum(step.comparisons is not None for step in compared)
    score, reasons = mean([step_score for step_score, *_ in scores]), list(figures.notes)
    if not compared:
        message = "the label has no plan that can be compared"
        reasons.append(make_reason("no_gold_plan", message))
    failures = len(compared) - parsed
    counts = {"plans": len(compared), "plans_parsed": parsed, "plans_failed": failures}
    metadata: dict[str, Any] = {}
    for part, name in enumerate(PLANS):
        metadata[f"plan_{name}"] = [values[part] for values in scores]
    return make_grade(score, counts, {"plan": score}, reasons, **metadata)


def _unique(steps: Sequence[Step]) -> list[str]:
    seen, names = Counter[str](), []
    for step in steps:
        names.append(f"{step.id} (again {seen[step.id]})" if seen[step.id] else step.id)
        seen[step.id] += 1
    return names


def _decision(step: Step, name: str) -> Item:
    metadata = _sides(step)
    if step.fault is not None:
        return Item(id=name, outcome=Outcome.FAILED, fault=step.fault, metadata=metadata)
    return Item(
        id=name,
        score=float(step.right),
        label=step.predicted,
        gold=step.gold,
        counts={step.cell: 1},
        reasons=_decision_reasons(step),
        metadata=metadata,
    )


def _sides(step: Step) -> dict[str, JSON]:
    gold, predicted = step.gold_bag, step.bag
    return {
        "agent": step.agent if isinstance(step.agent, str) else None,
        "gold": _cut(step.gold_text) if gold is None else gold.shown(),
        "predicted": _cut(step.text) if predicted is None else predicted.shown(),
    }


def _decision_reasons(step: Step) -> tuple[Reason, ...]:
    reasons = []
    if not step.labelled:
        message = "the label has no such step: a rejection is expected"
        reasons.append(make_reason("no_label", message, step.id))
    if mistake := _mistake(step):
        reasons.append(make_reason(*mistake, step.id, step.gold, step.predicted))
    return tuple(reasons)


def _mistake(step: Step) -> tuple[str, str] | None:
    """Return code and message of what is wrong with a decision."""
    if not step.answered:
        return "no_prediction", "the label expects a turn, none was recorded"
    if step.predicted == FAILED:
        return "failed_generation", "no call and no rejection marker"
    if step.predicted == step.gold:
        return None
    if step.predicted == CALL:
        return "overaction", "called where it should have rejected"
    if step.gold == CALL:
        return "underaction", "rejected where it should have called"
    return "rejection_type", "rejected, for another reason than the gold turn"


def _call(pair: Pair, name: str) -> Item:
    parts = {"name": pair.name, "key": pair.key, "value": pair.value}
    totals = sum_counts(key.counts for key in pair.keys)
    keys = [msgspec.to_builtins(key) for key in pair.keys]
    return Item(
        id=name,
        score=mean(parts.values()),
        counts=dict(zip(("tp", "fp", "fn"), totals, strict=True)),
        parts={**parts, "value_upper_bound": pair.best_value},
        reasons=_call_reasons(pair),
        metadata={**_sides(pair.step), "keys": keys},
    )


def _call_reasons(pair: Pair) -> tuple[Reason, ...]:
    step, reasons = pair.step, []
    if pair.name < 1 and step.bag is not None and step.gold_bag is not None:
        message = "the sets of called functions differ"
        sides = list(step.gold_bag.names), list(step.bag.names)
        reasons.append(make_reason("function_name", message, step.id, *sides))
    for key in pair.keys:
        if key.fp or key.fn:
            message = f"tp {key.tp}, fp {key.fp}, fn {key.fn}"
            reason = make_reason(key.reason, message, step.id, [*key.gold], [*key.predicted])
            reasons.append(replace(reason, pointer=pointer_to(key.key)))
    return tuple(reasons)


def _plan_item(step: PlanStep) -> Item:
    metadata: dict[str, JSON] = {"gold": _cut(step.gold), "predicted": _cut(step.predicted)}
    if step.fault is not None:
        return Item(id=step.id, outcome=Outcome.FAILED, fault=step.fault, metadata=metadata)
    reasons = []
    if step.comparisons is None:
        reasons.append(make_reason(*step.problem, step.id))
    for name, comparison in zip(("structural", "component"), step.comparisons or (), strict=False):
        distance = comparison.distance
        known = {"lower": distance.lower, "upper": distance.upper, "exact": distance.exact}
        metadata[name] = {**known, "self_loop": comparison.loops}
        edits = f"{distance.upper:g} edits from the gold graph"
        if not distance.exact:
            edits = f"{distance.lower:g} to {edits} (search stopped)"
        if distance.upper:
            code, message = f"{name}_distance", f"{name} graph: {edits}"
            reasons.append(make_reason(code, message, step.id, 0.0, distance.upper))
    score, structural, component, highest = step.figures
    parts = {"structural": structural, "component": component, "upper_bound": highest}
    return Item(id=step.id, score=score, parts=parts, reasons=tuple(reasons), metadata=metadata)


def _cut(value: JSON) -> JSON:
    """Return a value for people.

    A long text cut, what is neither text nor a plan outline named by its type.
    """
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else value[:_LONGEST] + "…"
    return value if value is None or isinstance(value, dict) else f"<{type(value).__name__}>"

"""The graders of OrchestrationBench: decisions, calls, plans, and all three in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

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
    Profile,
    Reason,
    Sample,
    Status,
    failed,
    native_of,
    replace,
    skipped,
)
from gradestack.jsonio import pointer_to
from gradestack_plugins.judges.contract import PartlyJudged, Request
from gradestack_plugins.judges.journal import Reply
from gradestack_plugins.orchestrationbench.aggregators import PLANS
from gradestack_plugins.orchestrationbench.calls import (
    Pair,
    asked_about,
    call_grade,
    judged_grade,
    read_reply,
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
    mean,
    sum_up,
)
from gradestack_plugins.orchestrationbench.graphs import BUDGET, Weights
from gradestack_plugins.orchestrationbench.plans import (
    PlanFigures,
    PlanRules,
    PlanStep,
    Solver,
    plan_figures,
    sample_plans,
)
from gradestack_plugins.readers.chat.unread import calls_unknown, has_unread_calls

_LONGEST = 2_000

ARGUMENT_FIELDS = frozenset({"native", "calls", "label", "text", "expected", "agent_id", "tools"})
AGENT_WEIGHT, STATUS_WEIGHT = 0.8, 0.5
"""Defaults of the original without a config; the config it ships sets 0.8 and 0.2."""


@attrs.frozen(kw_only=True)
class _Bench(Grader):
    profile: Profile = "documented"

    native: ClassVar[type[Trial]] = Trial
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})


@attrs.frozen(kw_only=True)
class OrchestrationDecision(_Bench):
    """Whether each sub-agent turn rightly called a tool or rightly refused to (spec sections 2.1
    and 2.2).

    Steps are items: label is the predicted decision (``FC``, ``AWAITING_USER_INPUT``,
    ``TOOL_CONSTRAINT_VIOLATION``, ``FAILED``), gold the expected one (with ``GENERAL_REJECTION``).
    A step is right when call meets call or rejection meets rejection; another type of rejection is
    right but counted as ``rejection_type_mismatch``.

    score = right steps / (graded steps + steps the prediction lacks), in [0, 1].

    documented and upstream differ:

    * a gold step without an answer is FAILED; upstream has it in no cell of the matrix
    * an answer without call and without marker is FAILED; upstream takes it for a call of nothing;
    * a step that cannot be read is a failed item outside all counts; upstream gives up the argument
      part of the whole file, so every trial of it fails;
    * step ids may be numbers or texts; upstream finds a rejection only by text;
    * a gold call that the scenario converter could not read is such a failed item; upstream counts
      it as a call in ``function_call_cases`` and as a general rejection in the matrix.
    """

    needs: ClassVar[frozenset[str]] = ARGUMENT_FIELDS
    metrics: ClassVar[tuple[str, ...]] = ("orchestration_decisions", "mean")

    @override
    def grade(self, sample: Sample) -> Grade:
        found = _arguments(sample, self.profile)
        if isinstance(found, Grade):
            return found
        items = _decision_items(found)
        label, gold = (items[0].label, items[0].gold) if len(items) == 1 else (None, None)
        return replace(_decision_grade(found), items=items, label=label, gold=gold)


@attrs.frozen(kw_only=True, slots=False)
class _Calls(_Bench, PartlyJudged):
    """What asks a model about the values only a judge could tell equal, a request for each step
    that has any.
    """

    @override
    def requests(self, sample: Sample) -> Sequence[Request]:
        found = (
            arguments_of(sample, self.profile)
            if self.judgements and fault_of(sample) is None
            else None
        )
        pairs = (
            call_grade(sample, found.steps, self.profile)[1] if isinstance(found, Arguments) else []
        )
        return [self.request(*asked_about(sample, pair)) for pair in pairs if pair.undecided]

    @override
    def problem(self, request: Request, reply: Reply) -> str | None:
        return read_reply(request.schema, reply, self.profile)[1]


@attrs.frozen(kw_only=True)
class OrchestrationCall(_Calls):
    """Function name, argument key and argument value F1 where both sides call (spec sections 2.3
    and 2.4).

    Each step is one bag of calls; single calls are not paired. Name and key F1 compare sets; value
    F1 = 2PR / (P + R) from tp, fp and fn summed over the arguments of the step. Trial: mean over
    the steps, name and key rounded to 4 digits.

    score = mean of the trial's name, key and value F1 that are defined, in [0, 1]. Skipped when no
    step is a graded pair (0.0 in upstream).

    documented and upstream differ:

    * value is the mean over all pairs that have an argument; upstream leaves out the pairs with
      value F1 0, and a pair without arguments has 0 there (documented: undefined, 0/0);
    * values only a judge could tell equal keep the confirmed matches, count as not matching, and
      ``value_upper_bound`` has the best a judge could give; upstream loses the confirmed matches of
      such an argument;
    * undecodable arguments are one wrong value; upstream counts the characters of an error text;
    * a broken tool schema is passed over; in upstream it replaces the trial's value F1s by the key
      F1s, as does an evaluation config without judge section.

    With ``judgements`` the model ``judge`` is asked about the undecided values of each step, in
    words of our own: it sees the gold turns before the step, the tools, and what is left over on
    both sides. ``documented`` takes a whole reply (in one fence or none) that has every argument
    and adds up; ``upstream`` the counts of any JSON reply. What has no verdict stays undecided,
    with a reason: ``not_judged`` or another code of ``judged``.
    """

    needs: ClassVar[frozenset[str]] = ARGUMENT_FIELDS
    metrics: ClassVar[tuple[str, ...]] = ("orchestration_calls", "mean")

    @override
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        found = _arguments(sample, self.profile)
        if isinstance(found, Grade):
            return found
        grade, pairs = judged_grade(sample, found.steps, self.profile, replies)
        return replace(
            grade, items=tuple(map(_call, pairs, _unique([pair.step for pair in pairs])))
        )


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
    solver: Solver = "auto"
    """``exact``, ``networkx``, or ``auto``.

    Networkx in upstream where it is installed and the graphs are small.
    """
    search_budget: int = BUDGET
    """Partial mappings the exact solver may expand per pair of graphs with more than 8 nodes."""

    def __attrs_post_init__(self) -> None:
        Weights(self.agent_weight or 0.0, self.status_weight or 0.0)
        if self.search_budget < 1:
            raise ValueError(f"search_budget {self.search_budget}: expected a whole number from 1")

    def _plans(self, sample: Sample) -> PlanFigures | None:
        trial = native_of(sample, Trial)
        setting = Setting() if trial is None else trial.setting
        weights = Weights(
            _first(self.agent_weight, setting.agent_weight, AGENT_WEIGHT),
            _first(self.status_weight, setting.status_weight, STATUS_WEIGHT),
        )
        rules = PlanRules(
            profile=self.profile, weights=weights, solver=self.solver, budget=self.search_budget
        )
        return sample_plans(sample, rules) if trial is None else plan_figures(trial, rules)


def _first(option: float | None, setting: float | None, default: float) -> float:
    return option if option is not None else default if setting is None else setting


@attrs.frozen(kw_only=True)
class OrchestrationPlan(_PlanOptions):
    """Similarity of predicted and gold workflow plans (spec sections 2.5 to 2.7).

    Per graph similarity = 1 - distance / (nodes + edges of both), step score = 0.5 structural + 0.5
    component similarity. Distance is the graph edit distance with insertions and deletions at 1,
    free edge substitution, and for component nodes 0 / status_weight / agent_weight / 1 when
    nothing / the status / the agent / both differ.

    score = trial's plan score with failures, in [0, 1]: documented sum of step scores / gold plans,
    where a plan that is absent or cannot be read is one zero; upstream sum / (gold plans +
    failures), where an absent plan weighs 2 and an unreadable one 3. Skipped when the trial has no
    gold plan (0.0 in upstream).

    documented and upstream differ further:

    * distances are exact with self-loops; upstream asks networkx, which misses them, where it is
      installed;
    * the structural graph reads ``depends_on``, else ``depend_on``; upstream only ``depends_on``, a
      text character by character;
    * step ids may be texts of digits; upstream then sees no prediction;
    * what is malformed counts as empty; upstream drops all plans of the run.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"native", "plan", "expected"})
    metrics: ClassVar[tuple[str, ...]] = ("orchestration_plans", "mean")

    @override
    def grade(self, sample: Sample) -> Grade:
        broken = fault_of(sample)
        if broken is not None:
            return failed(broken)
        figures = self._plans(sample)
        if figures is None:
            return skipped("no_gold_plan", "the sample has no reference plan")
        return replace(
            _plan_grade(figures, self.profile), items=tuple(map(_plan_item, figures.steps))
        )


@attrs.frozen(kw_only=True)
class OrchestrationBench(_PlanOptions, _Calls):
    """Decisions, calls and plans of a trial in one grade, for the figures that need all three.

    score = mean of the decision, call and plan scores that are defined, in [0, 1]. It has no items:
    the three single graders show the steps. The official figures (Average, Call Rejection
    Classification Accuracy, FC, Plan) are computed over the whole input by the aggregator of the
    same name.

    The differences between documented and upstream are those of the single graders. In upstream a
    trial whose argument part cannot be graded fails, and its plans still count. ``judgements`` and
    ``judge`` are those of its calls.
    """

    needs: ClassVar[frozenset[str]] = ARGUMENT_FIELDS | {"plan"}
    metrics: ClassVar[tuple[str, ...]] = ("orchestrationbench", "mean")

    @override
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        broken = fault_of(sample)
        if broken is not None:
            return failed(broken)
        grades: list[Grade] = []
        plans = self._plans(sample)
        if plans is not None:
            grades.append(_plan_grade(plans, self.profile))
        found = arguments_of(sample, self.profile)
        if isinstance(found, Arguments):
            grades.append(_decision_grade(found))
            grades.append(judged_grade(sample, found.steps, self.profile, replies)[0])
        merged = _merged(grades)
        if isinstance(found, Fault):
            return replace(
                merged, outcome=Outcome.FAILED, score=None, fault=found, rationale=found.message
            )
        if merged.outcome is Outcome.SKIPPED:
            reason = Reason(
                code="nothing_to_grade", message="no step, call or plan with a reference"
            )
            return replace(merged, reasons=(reason,))
        return merged


def _merged(grades: list[Grade]) -> Grade:
    score = mean([grade.score for grade in grades])
    return Grade(
        outcome=Outcome.SKIPPED if score is None else Outcome.GRADED,
        score=score,
        counts={name: count for grade in grades for name, count in grade.counts.items()},
        parts={name: part for grade in grades for name, part in grade.parts.items()},
        metadata={name: value for grade in grades for name, value in grade.metadata.items()},
    )


def _arguments(sample: Sample, profile: Profile) -> Arguments | Grade:
    broken = fault_of(sample)
    if broken is not None:
        return failed(broken)
    if profile == "documented" and has_unread_calls(sample):
        return calls_unknown(sample)
    found = arguments_of(sample, profile)
    if isinstance(found, Fault):
        return failed(found)
    if found is None and not is_plain(sample.expected):
        message = (
            "the reference is more than a list of names and arguments, which this metric "
            "does not support"
        )
        return skipped("reference_not_plain", message)
    return (
        skipped("no_decision", "no expected calls or rejection, or nothing predicted")
        if found is None
        else found
    )


def _decision_grade(arguments: Arguments) -> Grade:
    counts = arguments.counts()
    total = counts["steps_graded"] + len(arguments.missing)
    score = sum(1 for step in arguments.steps if step.right) / total if total else None
    return Grade(
        outcome=Outcome.SKIPPED if score is None else Outcome.GRADED,
        score=score,
        counts=counts,
        parts={"decision": score},
        reasons=()
        if total
        else (Reason(code="no_steps", message="no sub-agent turn could be judged"),),
    )


def _plan_grade(figures: PlanFigures, profile: Profile) -> Grade:
    compared = figures.compared
    scores = [step.figures for step in compared]
    parsed = sum(1 for step in compared if step.structural is not None)
    divisor = len(compared) + (figures.failed if profile == "upstream" else 0)
    total = sum_up(score for score, *_ in scores)
    with_failure = total / divisor if divisor else (0.0 if profile == "upstream" else None)
    reasons = list(figures.notes)
    if figures.dropped:
        reasons.append(Reason(code="run_dropped", message=figures.dropped))
    elif not compared:
        reasons.append(
            Reason(code="no_gold_plan", message="the label has no plan that can be compared")
        )
    return Grade(
        outcome=Outcome.SKIPPED if with_failure is None else Outcome.GRADED,
        score=with_failure,
        counts={"plans": len(compared), "plans_parsed": parsed, "plans_failed": figures.failed},
        parts={"plan": with_failure},
        reasons=tuple(reasons),
        metadata={
            f"plan_{name}": [score[place] for score in scores] for place, name in enumerate(PLANS)
        },
    )


def _decision_items(arguments: Arguments) -> tuple[Item, ...]:
    message = "the label expects a turn, none was recorded"
    missing = [
        (step, Reason(code="no_prediction", subject=step, message=message))
        for step in arguments.missing
    ]
    return (
        *map(_decision, arguments.steps, _unique(arguments.steps)),
        *(Item(id=step, outcome=Outcome.MISSING, reasons=(reason,)) for step, reason in missing),
    )


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
        score=1.0 if step.right else 0.0,
        label=step.predicted,
        gold=step.gold,
        counts={step.cell: 1},
        reasons=_decision_reasons(step),
        metadata=metadata,
    )


def _sides(step: Step) -> dict[str, JSON]:
    return {
        "agent": step.agent if isinstance(step.agent, str) else None,
        "gold": step.gold_bag.shown() if step.gold_bag is not None else _cut(step.gold_text),
        "predicted": step.bag.shown() if step.bag is not None else _cut(step.text),
    }


def _decision_reasons(step: Step) -> tuple[Reason, ...]:
    found = []
    if not step.labelled:
        message = "the label has no such step: a rejection is expected"
        found.append(Reason(code="no_label", subject=step.id, message=message))
    if not step.answered:
        wrong = "no_prediction", "the label expects a turn, none was recorded"
    elif step.predicted == FAILED:
        wrong = "failed_generation", "no call and no rejection marker"
    elif step.predicted == step.gold:
        return tuple(found)
    elif step.predicted == CALL:
        wrong = "overaction", "called where it should have rejected"
    elif step.gold == CALL:
        wrong = "underaction", "rejected where it should have called"
    else:
        wrong = "rejection_type", "rejected, for another reason than the gold turn"
    code, message = wrong
    found.append(
        Reason(
            code=code, subject=step.id, expected=step.gold, actual=step.predicted, message=message
        )
    )
    return tuple(found)


def _call(pair: Pair, name: str) -> Item:
    parts = {"name": pair.name, "key": pair.key, "value": pair.value}
    return Item(
        id=name,
        score=mean(parts.values()),
        counts={
            count: sum(getattr(result, count) for result in pair.keys)
            for count in ("tp", "fp", "fn")
        },
        parts={**parts, "value_upper_bound": pair.best_value},
        reasons=_call_reasons(pair),
        metadata={
            **_sides(pair.step),
            "keys": [msgspec.to_builtins(result) for result in pair.keys],
        },
    )


def _call_reasons(pair: Pair) -> tuple[Reason, ...]:
    step = pair.step
    found = []
    if pair.name < 1 and step.bag is not None and step.gold_bag is not None:
        gold, made = list(step.gold_bag.names), list(step.bag.names)
        message = "the sets of called functions differ"
        found.append(
            Reason(
                code="function_name", subject=step.id, expected=gold, actual=made, message=message
            )
        )
    for each in pair.keys:
        if each.fp or each.fn:
            place = {"code": each.reason, "pointer": pointer_to(each.key), "subject": step.id}
            message = f"tp {each.tp}, fp {each.fp}, fn {each.fn}"
            found.append(
                Reason(**place, expected=[*each.gold], actual=[*each.predicted], message=message)
            )
    return tuple(found)


def _plan_item(step: PlanStep) -> Item:
    metadata: dict[str, JSON] = {"gold": _cut(step.gold), "predicted": _cut(step.predicted)}
    if step.fault is not None:
        return Item(id=step.id, outcome=Outcome.FAILED, fault=step.fault, metadata=metadata)
    score, structural, component, highest = step.figures
    reasons = []
    if step.structural is None or step.component is None:
        code, message = step.problem
        reasons.append(Reason(code=code, subject=step.id, message=message))
    else:
        for name, comparison in (("structural", step.structural), ("component", step.component)):
            distance = comparison.distance
            metadata[name] = {
                "lower": distance.lower,
                "upper": distance.upper,
                "exact": distance.exact,
                "self_loop": comparison.loops,
                "solver": distance.backend,
            }
            edits = f"{distance.upper:g} edits from the gold graph"
            if not distance.exact and distance.backend == "own":
                edits = f"{distance.lower:g} to {edits} (search stopped)"
            if distance.upper:
                code, message = f"{name}_distance", f"{name} graph: {edits}"
                reasons.append(
                    Reason(
                        code=code,
                        subject=step.id,
                        expected=0.0,
                        actual=distance.upper,
                        message=message,
                    )
                )
    return Item(
        id=step.id,
        score=score,
        parts={"structural": structural, "component": component, "upper_bound": highest},
        reasons=tuple(reasons),
        metadata=metadata,
    )


def _cut(value: JSON) -> JSON:
    """Return a value for people.

    A long text cut, what is neither text nor a plan outline named by its type.
    """
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else value[:_LONGEST] + "…"
    return value if value is None or isinstance(value, dict) else f"<{type(value).__name__}>"

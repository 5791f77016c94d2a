"""Every plan of one trial beside its gold, and the sums the plan figures are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack import JSON, Fault, Reason, Sample
from gradestack_plugins.orchestrationbench.plans.plantext import PlanText, Workflows, parse_plan
from gradestack_plugins.orchestrationbench.plans.similarity import PlanRules, PlanScore, compare_plans
from gradestack_plugins.orchestrationbench.plans.workflows import outline
from gradestack_plugins.orchestrationbench.recorded.trial import PLAN_MARK, Trial

ABSENT, UNPARSABLE = "plan_absent", "plan_unparsable"


@attrs.frozen(kw_only=True)
class PlanStep:
    """One gold plan and what was predicted for it."""

    id: str
    gold: JSON = None
    """Gold plan in short."""
    predicted: JSON = None
    """Predicted plan in short; the text when it holds none, None when there is none."""
    result: PlanScore | None = None
    """None when nothing could be compared: all three figures are 0."""
    problem: str = ""
    """``plan_absent`` or ``plan_unparsable``, then what is wrong."""
    fault: Fault | None = None
    """Why the gold plan cannot be used; then the step is in no figure."""

    @property
    def figures(self) -> tuple[float, float, float]:
        """Score, structural and component similarity."""
        if self.result is None:
            return 0.0, 0.0, 0.0
        return self.result.score, self.result.structural.similarity, self.result.component.similarity

    @property
    def highest(self) -> float:
        """Score if every distance that is only bounded were at its lower bound."""
        if self.result is None:
            return 0.0
        return self.result.structural.highest * 0.5 + self.result.component.highest * 0.5


@attrs.frozen(kw_only=True)
class PlanFigures:
    """The plans of one trial."""

    steps: tuple[PlanStep, ...] = ()
    failed: int = 0
    """Failed plan generations as the profile counts them."""
    notes: tuple[Reason, ...] = ()
    """Predicted plans nobody asked for."""
    dropped: str = ""
    """Why the original ignores the plans of this run altogether (``upstream``)."""

    @property
    def compared(self) -> list[PlanStep]:
        """Steps with a usable gold plan."""
        return [step for step in self.steps if step.fault is None]


def plan_figures(trial: Trial, rules: PlanRules) -> PlanFigures:
    """Return the plans of one trial.

    ``documented``: the gold plans are the assistant turns of the label without an agent whose text mentions
    ``workflow_``; each without a readable prediction is one failure. ``upstream``: any turn of the label may be one;
    each predicted entry without a plan is a failure, and each gold plan without a prediction is another; a run that
    raises, or whose name leaves a gap, counts nothing.
    """
    if rules.profile == "documented":
        return _documented(trial, rules)
    if not trial.planned:
        return PlanFigures(dropped="the run's name leaves a gap, so the original does not look it up")
    try:
        return _upstream(trial.run, rules)
    except Exception as error:  # noqa: BLE001 - the original drops a run whatever it raises
        return PlanFigures(dropped=f"{type(error).__name__}: {error}")


# --- upstream ---------------------------------------------------------------------------------------------------------


def _upstream(run: Any, rules: PlanRules) -> PlanFigures:
    predicted: dict[Any, PlanText] = {}
    failed = 0
    unparsable: dict[Any, Any] = {}
    for entry in run.get("main_agent_history", []):
        step = entry.get("step_id")
        if step is None:
            continue
        content = entry.get("content")
        plan = (
            parse_plan(content, "upstream") if isinstance(content, str) else PlanText(problem="the content is no text")
        )
        if plan.workflows:
            predicted[step] = plan
        else:
            failed += 1
            unparsable[_hashable(step)] = content, plan.problem
    golds = _upstream_golds(run.get("label", {}))
    steps = []
    for number in sorted(golds):
        gold = golds[number]
        if number in predicted:
            plan = predicted[number]
            result = compare_plans(plan.workflows, gold, rules)
            steps.append(PlanStep(id=str(number), gold=outline(gold), predicted=outline(plan.workflows), result=result))
        else:
            failed += 1
            content, problem = unparsable.get(number, (None, ""))
            why = f"{UNPARSABLE}: {problem}" if problem else ABSENT
            steps.append(PlanStep(id=str(number), gold=outline(gold), predicted=content, problem=why))
    notes = tuple(_extra(step) for step in predicted if step not in golds)
    return PlanFigures(steps=tuple(steps), failed=failed, notes=notes)


def _upstream_golds(label: Any) -> dict[int, Workflows]:
    golds: dict[int, Workflows] = {}
    for key, turn in label.items():
        try:
            number = int(key)
            content = turn.get("content", "")
            if isinstance(content, str) and PLAN_MARK in content:
                plan = parse_plan(content, "upstream")
                if plan.workflows:
                    golds[number] = plan.workflows
        except (ValueError, TypeError):
            continue
    return golds


def _hashable(step: Any) -> Any:
    return step if isinstance(step, int | float | str) else repr(step)


# --- documented -------------------------------------------------------------------------------------------------------


def _documented(trial: Trial, rules: PlanRules) -> PlanFigures:
    label, history = trial.part("label"), trial.part("main_agent_history")
    predicted: dict[int, tuple[PlanText, Any]] = {}
    notes = []
    for entry in history if isinstance(history, list | tuple) else ():
        number = step_number(entry.get("step_id")) if isinstance(entry, Mapping) else None
        if number is None:
            notes.append(Reason(code="plan_without_step", message="an entry of main_agent_history has no step number"))
            continue
        content = entry.get("content")
        plan = (
            parse_plan(content, "documented")
            if isinstance(content, str)
            else PlanText(problem="the content is no text")
        )
        if plan.workflows or number not in predicted:
            predicted[number] = plan, content
    steps, asked = [], set()
    for number, text in sorted(gold_plans(label).items()):
        asked.add(number)
        gold = parse_plan(text, "documented")
        if gold.workflows:
            steps.append(_compare_step(str(number), gold.workflows, predicted.get(number), rules))
        elif text.startswith(PLAN_MARK):
            fault = Fault(category="data", code="gold_unreadable", message=f"label {number}: {gold.problem}")
            steps.append(PlanStep(id=str(number), gold=text, fault=fault))
    notes.extend(_extra(number) for number in predicted if number not in asked)
    failed = sum(1 for step in steps if step.fault is None and step.result is None)
    return PlanFigures(steps=tuple(steps), failed=failed, notes=tuple(notes))


def gold_plans(label: Any) -> dict[int, str]:
    """Return the texts that may be gold plans, by step: assistant turns without an agent that mention ``workflow_``."""
    found = {}
    for key, turn in label.items() if isinstance(label, dict) else ():
        if not isinstance(turn, dict) or "agent_id" in turn or turn.get("role") != "assistant":
            continue
        content = turn.get("content")
        if isinstance(content, str) and PLAN_MARK in content and (number := step_number(key)) is not None:
            found[number] = content
    return found


def _compare_step(name: str, gold: Workflows, prediction: tuple[PlanText, Any] | None, rules: PlanRules) -> PlanStep:
    short = outline(gold)
    if prediction is None:
        return PlanStep(id=name, gold=short, problem=ABSENT)
    plan, content = prediction
    if not plan.workflows:
        return PlanStep(id=name, gold=short, predicted=content, problem=f"{UNPARSABLE}: {plan.problem}")
    result = compare_plans(plan.workflows, gold, rules)
    return PlanStep(id=name, gold=short, predicted=outline(plan.workflows), result=result)


def step_number(step: Any) -> int | None:
    """Return a step id as a number, None when it is none: a whole number or a text of ASCII digits."""
    if isinstance(step, str) and step.isascii() and step.isdigit() and len(step) < 20:
        return int(step)
    return step if isinstance(step, int) and not isinstance(step, bool) else None


def _extra(step: Any) -> Reason:
    return Reason(code="plan_not_asked_for", subject=str(step), message="a plan was predicted where the label has none")


# --- samples of other readers ---------------------------------------------------------------------------------------


def sample_plans(sample: Sample, rules: PlanRules) -> PlanFigures | None:
    """Return the plans of a sample of another reader, None when it has no reference plan.

    A plan is a text, an object with ``workflow_`` keys, or an object step -> plan.
    """
    golds = _by_step(sample.expected.plan)
    if not golds:
        return None
    predicted = _by_step(sample.plan)
    steps = []
    for name, gold in golds.items():
        parsed = _as_plan(gold)
        if parsed.workflows:
            found = predicted.get(name)
            prediction = None if found is None else (_as_plan(found), found)
            steps.append(_compare_step(name, parsed.workflows, prediction, rules))
        else:
            fault = Fault(category="data", code="gold_unreadable", message=f"plan {name}: {parsed.problem}")
            steps.append(PlanStep(id=name, gold=gold, fault=fault))
    failed = sum(1 for step in steps if step.fault is None and step.result is None)
    return PlanFigures(steps=tuple(steps), failed=failed)


def _by_step(plan: JSON) -> dict[str, JSON]:
    if plan is None:
        return {}
    if isinstance(plan, Mapping) and not any(isinstance(key, str) and key.startswith(PLAN_MARK) for key in plan):
        return {str(key): value for key, value in plan.items()}
    return {"1": plan}


def _as_plan(plan: JSON) -> PlanText:
    if isinstance(plan, str):
        return parse_plan(plan, "documented")
    if isinstance(plan, Mapping) and any(isinstance(key, str) and key.startswith(PLAN_MARK) for key in plan):
        return PlanText(workflows=dict(plan), form=4)
    return PlanText(problem="neither text nor an object with a workflow_ key")

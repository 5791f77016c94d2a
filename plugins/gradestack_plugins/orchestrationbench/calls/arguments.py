"""The argument part of one trial: its steps, what the label expects, and what stands in the way of grading it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from gradestack import Fault, Profile, Sample, Status
from gradestack_plugins.orchestrationbench.calls.decisions import (
    Step,
    documented_cases,
    documented_steps,
    gold_decision,
    gold_steps,
    sample_step,
    tally,
    upstream_cases,
    upstream_steps,
)
from gradestack_plugins.orchestrationbench.calls.f1 import CallFigures, CallRules, grade_calls, set_f1
from gradestack_plugins.orchestrationbench.calls.judge import RecordedJudge
from gradestack_plugins.orchestrationbench.recorded.history import history_before, system_message
from gradestack_plugins.orchestrationbench.recorded.trial import CALL, Trial

UNREADABLE, EMPTY, ARGUMENTS = "unreadable_file", "no_runs", "argument_part"
"""Fault codes: the file cannot be read; it holds no run; its argument part cannot be graded."""


@attrs.frozen(kw_only=True)
class Arguments:
    """Steps of one trial beside their gold."""

    steps: tuple[Step, ...]
    missing: tuple[str, ...] = ()
    """Steps the label expects and the prediction lacks; they are in no matrix cell."""
    rejection_cases: int = 0
    function_call_cases: int = 0

    def counts(self) -> dict[str, int]:
        """Return every count of the decisions."""
        faulty = sum(1 for step in self.steps if step.fault is not None)
        return {
            **tally(self.steps),
            "rejection_cases": self.rejection_cases,
            "function_call_cases": self.function_call_cases,
            "steps_graded": len(self.steps) - faulty,
            "steps_missing": len(self.missing),
            "steps_faulty": faulty,
        }


def fault_of(sample: Sample) -> Fault | None:
    """Return why a sample cannot be graded at all, None when it can."""
    trial = sample.native
    if isinstance(trial, Trial):
        if trial.unreadable:
            return Fault(category="data", code=UNREADABLE, message=trial.unreadable)
        if trial.empty:
            return Fault(category="data", code=EMPTY, message=trial.empty)
        return None
    if sample.status is not Status.OK:
        return sample.error or Fault(category="target", code=str(sample.status), message="the recorded run failed")
    return None


def arguments_of(sample: Sample, profile: Profile) -> Arguments | Fault | None:
    """Return the argument part of a sample: a fault when it is broken, None when the sample has none.

    In ``upstream`` whatever the original stumbles over is a fault; in ``documented`` only a run or label that is no
    object.
    """
    trial = sample.native
    if not isinstance(trial, Trial):
        step = sample_step(sample, profile)
        if step is None:
            return None
        called = step.gold == CALL
        return Arguments(steps=(step,), rejection_cases=int(not called), function_call_cases=int(called))
    if profile == "documented":
        return _documented(trial)
    try:
        return _upstream(trial)
    except Exception as error:  # noqa: BLE001 - the original gives up the file whatever it raises
        return Fault(category="data", code=ARGUMENTS, message=str(error), type=type(error).__name__)


def _documented(trial: Trial) -> Arguments | Fault:
    label = trial.part("label")
    if not isinstance(label, Mapping):
        what = "the run is not an object" if not isinstance(trial.run, Mapping) else "the run has no label object"
        return Fault(category="data", code=ARGUMENTS, message=f"{trial.name}: {what}")
    steps = tuple(documented_steps(label, trial.part("sub_agent_history")))
    faults = {step: gold_decision(label, step)[3] for step in _missing(label, steps)}
    steps += tuple(Step(id=step, fault=fault) for step, fault in faults.items() if fault is not None)
    rejections, calls = documented_cases(label)
    return Arguments(steps=steps, missing=_missing(label, steps), rejection_cases=rejections, function_call_cases=calls)


def _upstream(trial: Trial) -> Arguments:
    history, label = trial.run["sub_agent_history"], trial.run["label"]
    system_message(label)
    steps = tuple(upstream_steps(label, history))
    for step in steps:
        history_before(label, step.recorded_id)
        if step.gold == CALL and step.predicted == CALL and step.bag is not None and step.gold_bag is not None:
            set_f1(step.bag.names, step.gold_bag.names)
    rejections, calls = upstream_cases(label)
    return Arguments(steps=steps, missing=_missing(label, steps), rejection_cases=rejections, function_call_cases=calls)


def _missing(label: object, steps: tuple[Step, ...]) -> tuple[str, ...]:
    predicted = {step.id for step in steps}
    return tuple(step for step in gold_steps(label) if step not in predicted)


def calls_of(sample: Sample, arguments: Arguments, profile: Profile) -> CallFigures:
    """Return the call figures of a sample."""
    trial = sample.native if isinstance(sample.native, Trial) else None
    verdicts = trial.verdicts if trial is not None else None
    rules = CallRules(
        profile=profile,
        tools={spec.name: spec.parameters for spec in sample.tools or ()},
        judge=RecordedJudge(verdicts) if verdicts is not None else None,
        judge_section=trial.setting.judge_section if trial is not None else True,
        label=trial.part("label") if trial is not None else None,
    )
    return grade_calls(arguments.steps, rules)

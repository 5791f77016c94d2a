"""General fields of samples, so that graders of other families find calls, labels and plans too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from gradestack import JSON, Expectation, ExpectedCall, Fault, Sample, Status, ToolSpec
from gradestack_plugins.orchestrationbench.calls.decisions import documented_steps, gold_decision, gold_steps, gold_turn
from gradestack_plugins.orchestrationbench.plans.steps import gold_plans, step_number
from gradestack_plugins.orchestrationbench.recorded.trial import CALL, Trial
from gradestack_plugins.readers.chat import messages, text_of, tool_calls


@attrs.frozen(kw_only=True)
class Common:
    """What all samples of one trial share."""

    id: str
    model: str | None = None
    run: int | str | None = None
    tools: tuple[ToolSpec, ...] | None = None
    usage: JSON = None
    facets: Mapping[str, JSON] = attrs.field(factory=dict)


def trial_sample(common: Common, trial: Trial) -> Sample:
    """Return one trial as one sample; a run that is no object, or has no label, is a failed one."""
    label, history, plans = trial.part("label"), trial.part("sub_agent_history"), trial.part("main_agent_history")
    sound = isinstance(trial.run, dict) and isinstance(label, dict)
    turns = messages(history)
    texts = [text for turn in turns if (text := text_of(turn.content))]
    return Sample(
        id=common.id,
        model=common.model,
        run=common.run,
        input=user_turns(label),
        turns=(turns,) if turns else (),
        calls=tuple(call for turn in turns for call in turn.tool_calls) if isinstance(history, list) else None,
        text=texts[-1] if texts else None,
        plan=_plans(plans) or None,
        tools=common.tools,
        expected=expectation(label),
        status=Status.OK if sound else Status.FAILED,
        error=None
        if sound
        else Fault(category="data", code="run_unreadable", message="expected a run with a label object"),
        agent_usage=common.usage,
        facets=common.facets,
        native=trial,
    )


def expectation(label: Any) -> Expectation:
    """Return all gold calls (those that can be read) and gold plans of a label; nothing when it is no object."""
    if not isinstance(label, dict):
        return Expectation()
    calls = tuple(call for step in in_order(gold_steps(label)) for call in gold_calls(label, step))
    plans = {str(step): text for step, text in sorted(gold_plans(label).items())}
    return Expectation(calls=calls, plan=plans or None)


def step_samples(common: Common, trial: Trial) -> Iterator[Sample]:
    """Yield one sample per step: ``scenario/step``, predicted ones first in their order, then those not predicted.

    A sub-agent step has calls, decision label and text, a plan step has a plan. A step the label expects and the
    prediction lacks is ``missing``; one whose gold cannot be read is ``failed``.
    """
    label, history = trial.part("label"), trial.part("sub_agent_history")
    known: Mapping[str, Any] = label if isinstance(label, dict) else {}
    seen = set()
    for step, entry in zip(
        documented_steps(known, history), history if isinstance(history, list) else (), strict=False
    ):
        seen.add(step.id)
        rejects = step.gold != CALL
        broken = step.fault is not None
        yield _step_sample(
            common,
            step.id,
            calls=() if broken and not isinstance(entry, dict) else tool_calls(entry.get("tool_calls")),
            label=step.predicted,
            text=step.text if isinstance(step.text, str) else None,
            expected=Expectation(
                calls=None if broken else gold_calls(known, step.id),
                label=None if broken else step.gold,
                text=step.gold_text if rejects and isinstance(step.gold_text, str) else None,
            ),
            status=Status.FAILED if broken else Status.OK,
            error=step.fault,
            agent_id=step.agent if isinstance(step.agent, str) else None,
        )
    for name in in_order(gold_steps(known)):
        if name not in seen:
            gold, _, text, fault = gold_decision(known, name)
            expected = Expectation(
                calls=None if fault else gold_calls(known, name),
                label=None if fault else gold,
                text=text if isinstance(text, str) else None,
            )
            yield _step_sample(common, name, expected=expected, status=Status.MISSING)
    predicted = _plans(trial.part("main_agent_history"))
    for number, text in sorted(gold_plans(known).items()):
        plan = predicted.get(str(number))
        status = Status.MISSING if str(number) not in predicted else Status.OK
        yield _step_sample(common, str(number), plan=plan, expected=Expectation(plan=text), status=status)


def _step_sample(common: Common, step: str, **fields: Any) -> Sample:
    facets = {**common.facets, "step": step}
    identity: dict[str, Any] = {"id": f"{common.id}/{step}", "cluster": common.id}
    identity |= {"model": common.model, "run": common.run}
    return Sample(**identity, tools=common.tools, facets=facets, **fields)


def gold_calls(label: Mapping[str, Any], step: str) -> tuple[ExpectedCall, ...]:
    """Return the gold calls of a step; none for a rejection or a gold turn that cannot be read."""
    _, calls, _, _ = gold_turn(label, step)
    return tuple(map(ExpectedCall.of, calls))


def user_turns(label: Any) -> str | tuple[str, ...] | None:
    """Return what the user says in a label: a text, a tuple for several turns, None for none."""
    if not isinstance(label, dict):
        return None
    spoken = [key for key, turn in label.items() if isinstance(turn, dict) and turn.get("role") == "user"]
    texts = tuple(text_of(label[key].get("content")) for key in in_order(spoken))
    return None if not texts else texts[0] if len(texts) == 1 else texts


def in_order(steps: list[str]) -> list[str]:
    """Return step keys by number, those without one last, as they came."""

    def place(key: str) -> tuple[bool, int]:
        number = step_number(key)
        return number is None, number or 0

    return sorted(steps, key=place)


def _plans(history: Any) -> dict[str, JSON]:
    """Return predicted plan contents by step, the last of a step."""
    found = {}
    for entry in history if isinstance(history, list | tuple) else ():
        number = step_number(entry.get("step_id")) if isinstance(entry, dict) else None
        if number is not None:
            found[str(number)] = entry.get("content")
    return found

"""The grader of OrchestrationBench: decisions, calls and plans of a trial in one grade."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from typing_extensions import override

from gradestack import (
    Grade,
    Outcome,
    Reason,
    Sample,
    ratio,
)
from gradestack_plugins.judges.contract import PartlyJudged, Request
from gradestack_plugins.judges.journal import Reply
from gradestack_plugins.orchestrationbench.calls import Pair, compare_calls
from gradestack_plugins.orchestrationbench.decisions import (
    count_steps,
    mean,
    short,
    steps_of,
)
from gradestack_plugins.orchestrationbench.items import plan_item, step_items
from gradestack_plugins.orchestrationbench.judging import (
    SYSTEM,
    data_of,
    judge_pairs,
    read_reply,
    reply_schema,
)
from gradestack_plugins.orchestrationbench.plans import PlanStep, compare_plans
from gradestack_plugins.orchestrationbench.records import Trial

PLANS = ("scores", "structural", "component")
"""Figures of each gold plan, in the metadata of a grade as ``plan_NAME``."""


class OrchestrationBench(PartlyJudged):
    """Decisions, calls and plans of a trial.

    score = mean of the decision, call and plan scores that are defined, in [0, 1]; each is in
    ``parts``. The official figures (Average, Call Rejection Classification Accuracy, FC, Plan) are
    computed over the whole input by the metric of the same name. Steps and plans are items.

    decision = right steps / graded steps. Label is the predicted decision (``FC``,
    ``AWAITING_USER_INPUT``, ``TOOL_CONSTRAINT_VIOLATION``, ``FAILED``), gold the expected one (with
    ``GENERAL_REJECTION``). A step is right when call meets call or rejection meets rejection;
    another type of rejection is right but counted as ``rejection_type_mismatch``. An answer without
    call and without marker is FAILED, as is a gold step without an answer. A step whose gold turn
    cannot be read is a failed item outside all counts.

    call = mean of name, key and value F1 that are defined, over the steps where both sides call.
    Each step is one bag of calls; single calls are not paired. Name and key F1 compare sets; value
    F1 = 2PR / (P + R) from tp, fp and fn summed over the arguments of the step, undefined without
    any. Undecodable arguments are one wrong value. Trial: mean over the steps, name and key rounded
    to 4 digits.

    Values that only a judge could call equal count as different. ``value_upper_bound`` is the best
    result that a judge could give. With ``judgements`` the model ``judge`` is asked about them, a
    request for each step, in words of our own. It sees the gold turns before the step, the tools,
    and what is left over on both sides. A reply counts whole, in one fence or none, if it has every
    argument and adds up. What has no verdict stays undecided, with a reason: ``not_judged`` or
    another code of ``judged``.

    plan = sum of step scores / gold plans; a plan that is absent or cannot be read is one zero. Per
    graph similarity = 1 - distance / (nodes + edges of both), step score = 0.5 structural + 0.5
    component similarity. Distance is the graph edit distance with insertions and deletions at 1 and
    free edge substitution. For component nodes it is 0 / status weight / agent weight / 1 when
    nothing / the status / the agent / both differ. The weights are the reader's, else 0.5 and 0.8.
    Both graphs read ``depends_on``, else ``depend_on``; what is malformed counts as empty.
    """

    native = Trial
    compares = frozenset({"calls", "label", "text", "plan"})
    metrics = ("orchestrationbench", "mean")

    @override
    def requests(self, sample: Sample) -> Sequence[Request]:
        steps = steps_of(sample)
        if not self.judgements or isinstance(steps, Grade):
            return []
        pairs = [pair for pair in compare_calls(sample, steps) if pair.undecided]
        return [self.request(SYSTEM, data_of(sample, pair), reply_schema(pair)) for pair in pairs]

    @override
    def problem(self, request: Request, reply: Reply) -> str | None:
        return read_reply(request.schema, reply)[1]

    @override
    def verdict(self, sample: Sample, replies: Sequence[Reply | None]) -> Grade:
        steps, (plans, unwanted) = steps_of(sample), compare_plans(sample)
        if isinstance(steps, Grade):
            if not plans:
                return steps
            steps = []
        pairs, reasons = judge_pairs(compare_calls(sample, steps), replies)
        counts = count_steps(steps)
        calls = _call_parts(pairs)
        fc_fc = counts["fc_fc"]
        decision = ratio(fc_fc + counts["reject_reject"], counts["steps_graded"])
        figures = [step.figures for step in plans if step.fault is None]
        plan = mean(score for score, *_ in figures)
        key = calls["key"]
        score = mean([decision, mean([calls["name"], key, calls["value"]]), plan])
        message = "a plan was predicted where the label has none"
        for step in unwanted:
            reason = Reason(code="plan_not_asked_for", message=message, subject=step)
            reasons.append(reason)
        if score is None:
            message = "no step, call or plan with a reference"
            reasons = [Reason(code="nothing_to_grade", message=message)]
        metadata = {}
        for part, name in enumerate(PLANS):
            metadata[f"plan_{name}"] = [values[part] for values in figures]
        counts |= {**_count_pairs(pairs), **_count_plans(plans)}
        items = [*step_items(steps, pairs), *map(plan_item, plans)]
        outcome = Outcome.SKIPPED if score is None else Outcome.GRADED
        return Grade(
            outcome=outcome,
            score=score,
            counts=counts,
            parts={"decision": decision, **calls, "plan": plan},
            items=tuple(items),
            reasons=tuple(reasons),
            metadata=metadata,
        )


def _call_parts(pairs: Sequence[Pair]) -> dict[str, float | None]:
    names = [pair.name for pair in pairs]
    parts = {
        "name": short(mean(names)),
        "key": short(mean([pair.key for pair in pairs])),
    }
    parts["value"] = mean([pair.value for pair in pairs])
    best_values = [pair.best_value for pair in pairs]
    parts["value_upper_bound"] = mean(best_values)
    return parts


def _count_pairs(pairs: Sequence[Pair]) -> dict[str, int]:
    perfect = sum(pair.key == 1.0 and pair.value in (1.0, None) for pair in pairs)
    return {"pairs": len(pairs), "perfect_calls": perfect}


def _count_plans(plans: Iterable[PlanStep]) -> dict[str, int]:
    compared = [bool(step.comparisons) for step in plans if step.fault is None]
    counts = {"plans": len(compared), "plans_parsed": sum(compared)}
    plans_failed = compared.count(False)
    return counts | {"plans_failed": plans_failed}

"""Workflow plans: read from a text, made into graphs, compared with gold.

A text is a plan by the first of seven forms that yields an object with some key starting
``workflow_``, looked for behind the last ``</think>``. Patterns are searched by hand where a
regular expression would need quadratic time on hostile text. The forms, the two graphs and the
score are described in docs/orchestrationbench.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import yaml

from gradestack import JSON, Fault, Reason, Sample, yaml_data
from gradestack.jsonio import as_list, as_map, standard_loads
from gradestack_plugins.orchestrationbench.decisions import (
    PLAN_MARK,
    Trial,
    data_fault,
    make_reason,
)
from gradestack_plugins.orchestrationbench.graphs import (
    BUDGET,
    Builder,
    Distance,
    Graph,
    Label,
    Weights,
    edit_distance,
)

Workflows = dict[Any, Any]

_JSON_FENCE = re.compile(r"```json\s*\{")
_JSON_FENCE_END = re.compile(r"\}\s*```")
_YAML_FENCE = re.compile(r"```yaml\s*workflow_")
_NAMED_WORKFLOW = re.compile(r'"workflow_\d+":\s*\{')
_BRACE = re.compile(r"[{}]")
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 400
"""Open brackets beyond which the YAML parser would run out of stack, but only after
quadratic time.
"""
_FLAT_FOLLOWS = re.compile(r"\s*,\s*\{")


class Plan(msgspec.Struct, frozen=True):
    """A plan as it was given, and its workflows."""

    content: Any
    workflows: Workflows = msgspec.field(default_factory=dict)
    """Everything the content's object holds; empty when it is no plan.

    Shared, never to be changed.
    """
    problem: str = ""


# two graders ask: without it a run of the default stack takes 1.6 to 1.9 times as long
@lru_cache(maxsize=512)
def parse_plan(text: str) -> Plan:
    """Return the plan of a text, empty with a reason when it holds none.

    Whatever goes wrong in one form, the next one is tried.
    """
    for load, candidate in plan_candidates(text):
        try:
            value = load(candidate)
        except Exception:  # noqa: BLE001, S112 - the parsers raise much
            continue
        if isinstance(value, dict) and _has_workflow(value):
            return Plan(text, value)
    if PLAN_MARK in _after_thinking(text):
        return Plan(text, problem="no object with a workflow_ key in any of the seven forms")
    return Plan(text, problem="the text names no workflow_")


def plan_candidates(text: str) -> Iterator[tuple[Callable[[str], Any], str]]:
    """Yield (parser, part of the text) of each form the text has."""
    answer = _after_thinking(text)
    for form, load in _FORMS:
        candidate = form(answer)
        if candidate is not None:
            yield load, candidate


def _after_thinking(text: str) -> str:
    return text.rsplit("</think>", maxsplit=1)[-1]


def _load_yaml(text: str) -> Any:
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket.group() in "[{" else max(0, depth - 1)
        if depth > _DEEPEST:
            raise RecursionError("nested too deeply")
    # Only what has aliases can be small to write and huge to hold; all else is read as the original
    # reads it.
    return yaml_data(text) if "&" in text and "*" in text else yaml.safe_load(text)


def _has_workflow(value: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith(PLAN_MARK) for key in value)


def _fenced_json(text: str) -> str | None:
    # Only the first fence: were there no end behind it, there would be none behind a later one.
    start = _JSON_FENCE.search(text)
    end = _JSON_FENCE_END.search(text, start.end()) if start else None
    return text[start.end() - 1 : end.start() + 1] if start and end else None


def _flat_object(text: str) -> str | None:
    begin = text.find("{")
    while begin >= 0 and (end := text.find("}", begin)) >= 0:
        if '"workflow_' in text[begin:end]:
            # Further such objects after a comma belong to the match, which then is no single JSON
            # value.
            start = _FLAT_FOLLOWS.match(text, end + 1)
            last = text.find("}", start.end()) if start else -1
            follows = start is not None and last >= 0 and '"workflow_' in text[start.end() : last]
            return None if follows else text[begin : end + 1]
        begin = text.find("{", end)
    return None


def _balanced_object(text: str) -> str | None:
    named = _NAMED_WORKFLOW.search(text)
    begin = text.rfind("{", 0, max(text.find('"workflow_'), 0))
    if named is None or begin < 0 or "}" not in text[named.end() :]:
        return None
    depth = 0
    for brace in _BRACE.finditer(text, begin):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return text[begin : brace.end()]
    return None


def _fenced_yaml(text: str) -> str | None:
    start = _YAML_FENCE.search(text)
    end = text.find("```", start.end()) if start else -1
    return text[start.end() - len(PLAN_MARK) : end].rstrip() if start and end >= 0 else None


def _repaired_yaml(text: str) -> str | None:
    lines = text.strip().split("\n")
    if not lines[0].startswith(PLAN_MARK):
        return None
    repaired = []
    for line in lines:
        bare = line.strip()
        if bare.startswith(PLAN_MARK):
            repaired.append(f"{line}:\n")
        else:
            depth = 4 if bare.startswith("-") else 2 if ":" in line else 6
            repaired.append(f"{' ' * depth}{bare}\n")
    return "".join(repaired)


_FORMS: tuple[tuple[Callable[[str], str | None], Callable[[str], Any]], ...] = (
    (_fenced_json, standard_loads),
    (_flat_object, standard_loads),
    (_balanced_object, standard_loads),
    (lambda text: text, standard_loads),
    (_fenced_yaml, _load_yaml),
    (lambda text: text if PLAN_MARK in text else None, _load_yaml),
    (_repaired_yaml, _load_yaml),
)


UNKNOWN = "UNK"


def graphs(workflows: Workflows) -> tuple[Graph, Graph]:
    """Return (structural, component) graph of a plan.

    Keys that do not contain ``workflow`` are left out; what is not an object where one belongs
    counts as empty.
    """
    plan = _named_workflows(workflows)
    steps: dict[Hashable, list[Label]] = {name: _steps(plan[name]) for name in plan}
    structural, component = Builder(), Builder()
    for name, fields in plan.items():
        structural.node(name)
        for dependency in _dependencies(fields):
            structural.edge(dependency, name)
    component.chains(steps.values())
    for name, fields in plan.items():
        for dependency in _dependencies(fields):
            before = steps.get(dependency)
            if before and steps[name]:
                component.edge(before[-1], steps[name][0])
    return structural.graph(labelled=False), component.graph(labelled=True)


def outline(workflows: Workflows) -> dict[str, dict[str, list[str]]]:
    """Return a plan in short, for people.

    Per workflow its steps as ``agent|status`` and what it depends on.
    """
    short = {}
    for name, fields in _named_workflows(workflows).items():
        steps = [f"{agent}|{status}" for agent, status in _steps(fields)]
        short[name] = {"steps": steps, "depends_on": list(map(str, _dependencies(fields)))}
    return short


def _named_workflows(workflows: Workflows) -> dict[str, Mapping[Any, Any]]:
    names = [name for name in workflows if isinstance(name, str) and "workflow" in name]
    return {name: as_map(workflows[name]) for name in names}


def _dependencies(fields: Mapping[Any, Any]) -> list[Hashable]:
    value = fields.get("depends_on") or fields.get("depend_on") or []
    names = value if isinstance(value, list | tuple | Mapping) else [value]
    return [_scalar(name) for name in names]


def _steps(fields: Mapping[Any, Any]) -> list[Label]:
    labels: list[Label] = []
    steps = fields.get("steps")
    for step in steps if isinstance(steps, list | tuple) else ():
        agent = as_map(step).get("agent_id") or as_map(step).get("name")
        if agent:
            labels.append((_scalar(agent), _scalar(step.get("status", UNKNOWN))))
    return labels


def _scalar(value: Any) -> Hashable:
    return f"<{type(value).__name__}>" if isinstance(value, list | tuple | Mapping | set) else value


class Comparison(msgspec.Struct, frozen=True):
    """One pair of graphs compared."""

    distance: Distance
    most: int
    loops: bool

    @property
    def similarity(self) -> float:
        """From the upper bound of the distance, so never too high."""
        return 1 - self.distance.upper / self.most if self.most else 1.0

    @property
    def highest(self) -> float:
        """From the lower bound; equal to ``similarity`` when exact."""
        return 1 - self.distance.lower / self.most if self.most else 1.0


class PlanRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of comparing plans."""

    weights: Weights = Weights()
    budget: int = BUDGET


@lru_cache(maxsize=4096)  # two graders ask
def _compare(predicted: Graph, gold: Graph, rules: PlanRules) -> Comparison:
    distance = edit_distance(predicted, gold, rules.weights, rules.budget)
    return Comparison(distance, predicted.size + gold.size, predicted.has_loop or gold.has_loop)


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One gold plan and what was predicted for it."""

    id: str
    gold: JSON = None
    predicted: JSON = None
    """Predicted plan in short; the text when it holds none, None when there is none."""
    comparisons: tuple[Comparison, Comparison] | None = None
    """Structural and component graphs; None when nothing could be compared: all figures are 0."""
    problem: tuple[str, str] = ("", "")
    """Why there is none: ``plan_absent`` or ``plan_unparsable``, and what is wrong."""
    fault: Fault | None = None
    """Why the gold plan cannot be used; then the step is in no figure."""

    @property
    def figures(self) -> tuple[float, float, float, float]:
        """Score, structural and component similarity, and the score if every distance were at its
        lower bound.
        """
        if self.comparisons is None:
            return 0.0, 0.0, 0.0, 0.0
        structural, component = [each.similarity for each in self.comparisons]
        highest_structural, highest_component = [each.highest for each in self.comparisons]
        highest = highest_structural * 0.5 + highest_component * 0.5
        return structural * 0.5 + component * 0.5, structural, component, highest


class PlanFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The plans of one trial."""

    steps: Sequence[PlanStep] = ()
    notes: Iterable[Reason] = ()
    """Predicted plans nobody asked for."""

    @property
    def compared(self) -> list[PlanStep]:
        """Steps with a usable gold plan."""
        return [step for step in self.steps if step.fault is None]


def plan_figures(trial: Trial, rules: PlanRules) -> PlanFigures:
    """Return the plans of one trial."""
    predicted: dict[int, Plan] = {}
    notes = []
    for entry in as_list(trial.part("main_agent_history")):
        number = step_number(as_map(entry).get("step_id"))
        if number is None:
            message = "an entry of main_agent_history has no step number"
            notes.append(make_reason("plan_without_step", message))
            continue
        content = entry.get("content")
        plan = Plan(content, problem="the content is no text")
        if isinstance(content, str):
            plan = parse_plan(content)
        if plan.workflows or number not in predicted:
            predicted[number] = plan
    golds = {step: parse_plan(text) for step, text in gold_plans(trial.part("label")).items()}
    meant = {
        step: gold
        for step, gold in golds.items()
        if gold.workflows or gold.content.startswith(PLAN_MARK)
    }
    notes += _not_asked_for(predicted, golds)
    return _figures(meant, predicted, rules, "label", notes)


def sample_plans(sample: Sample, rules: PlanRules) -> PlanFigures | None:
    """Return the plans of a sample of another reader, None when it has no reference plan.

    A plan is a text, an object with ``workflow_`` keys, or an object step -> plan.
    """
    golds = _by_step(sample.expected.plan)
    predicted = {
        name: plan for name, plan in _by_step(sample.plan).items() if plan.content is not None
    }
    return _figures(golds, predicted, rules, "plan") if golds else None


def _by_step(plan: JSON) -> dict[str, Plan]:
    if isinstance(plan, Mapping) and not _has_workflow(plan):
        return {str(key): _as_plan(each) for key, each in plan.items()}
    return {} if plan is None else {"1": _as_plan(plan)}


def _as_plan(plan: JSON) -> Plan:
    if isinstance(plan, str):
        return parse_plan(plan)
    if isinstance(plan, Mapping) and _has_workflow(plan):
        return Plan(plan, workflows=dict(plan))
    return Plan(plan, problem="neither text nor an object with a workflow_ key")


_K = TypeVar("_K", int, str)


def _figures(
    golds: Mapping[_K, Plan],
    predicted: Mapping[_K, Plan],
    rules: PlanRules,
    where: str,
    notes: Iterable[Reason] = (),
) -> PlanFigures:
    """Return gold plans beside predicted ones.

    A gold plan that is none is in no figure, a prediction a failure.
    """
    steps = []
    for name, gold in golds.items():
        if gold.workflows:
            steps.append(_compare_step(str(name), gold.workflows, predicted.get(name), rules))
        else:
            message = f"{where} {name}: {gold.problem}"
            fault = data_fault("gold_unreadable", message)
            steps.append(PlanStep(id=str(name), gold=gold.content, fault=fault))
    return PlanFigures(steps=steps, notes=notes)


def gold_plans(label: Any) -> dict[int, str]:
    """Return possible gold plans, by step in order.

    Texts of assistants without agent that mention ``workflow_``.
    """
    found = {}
    for key, turn in as_map(label).items():
        content, number = as_map(turn).get("content"), step_number(key)
        spoken = "agent_id" not in as_map(turn) and as_map(turn).get("role") == "assistant"
        if spoken and isinstance(content, str) and PLAN_MARK in content and number is not None:
            found[number] = content
    return dict(sorted(found.items()))


def _compare_step(name: str, gold: Workflows, plan: Plan | None, rules: PlanRules) -> PlanStep:
    short = outline(gold)
    if plan is None:
        problem = "plan_absent", "no plan was predicted at this step"
        return PlanStep(id=name, gold=short, problem=problem)
    if not plan.workflows:
        problem = "plan_unparsable", plan.problem
        return PlanStep(id=name, gold=short, predicted=plan.content, problem=problem)
    structural, component = zip(graphs(plan.workflows), graphs(gold), strict=True)
    comparisons = _compare(*structural, rules), _compare(*component, rules)
    predicted = outline(plan.workflows)
    return PlanStep(id=name, gold=short, predicted=predicted, comparisons=comparisons)


def step_number(step: Any) -> int | None:
    """Return a step id as a number, None when it is none.

    A whole number or a text of ASCII digits.
    """
    if isinstance(step, str) and step.isascii() and step.isdigit() and len(step) < 20:
        return int(step)
    return step if isinstance(step, int) and not isinstance(step, bool) else None


def _not_asked_for(predicted: Iterable[Any], golds: Container[Any]) -> list[Reason]:
    message = "a plan was predicted where the label has none"
    extra = [str(step) for step in predicted if step not in golds]
    return [make_reason("plan_not_asked_for", message, step) for step in extra]

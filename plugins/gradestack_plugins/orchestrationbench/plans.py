"""Workflow plans: read from a text, made into graphs, compared with gold.

A text is a plan by the first of seven forms that yields an object with some key starting
``workflow_``, looked for behind the last ``</think>``. Patterns are searched by hand where a
regular expression would need quadratic time on hostile text. The forms, the two graphs and the
score are described in docs/orchestrationbench.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec

from gradestack import JSON, Fault, Sample, compile_later, native_of, yaml_data
from gradestack.jsonio import as_map, standard_loads
from gradestack_plugins.orchestrationbench.graphs import (
    Distance,
    Graph,
    Label,
    Weights,
    build_graph,
    edit_distance,
)
from gradestack_plugins.orchestrationbench.records import (
    PLAN_MARK,
    Trial,
    Turn,
    data_fault,
)

Workflows = dict[Any, Any]

_JSON_FENCE = compile_later(r"```json\s*\{")
_JSON_FENCE_END = compile_later(r"\}\s*```")
_YAML_FENCE = compile_later(r"```yaml\s*workflow_")
_FLAT = compile_later(r"\{[^}]*\}")
_FLAT_FOLLOWS = compile_later(r'\s*,\s*\{[^}]*"workflow_[^}]*\}')
_NAMED_WORKFLOW = compile_later(r'"workflow_\d+":\s*\{')
_BRACE = compile_later(r"[{}]")
_TOO_DEEP = compile_later(r"(?:[\[{][^\[\]{}]*){400}")
"""Open brackets on which the YAML parser would run out of stack, but only after quadratic time."""


class Plan(msgspec.Struct, frozen=True):
    """A plan as it was given, and its workflows."""

    content: Any
    workflows: Workflows = msgspec.field(default_factory=dict)
    """Everything the content's object holds; empty when it is no plan.

    Shared, never to be changed.
    """
    problem: str = ""


@lru_cache(maxsize=512)  # the trials of a scenario share their gold plans
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
    return Plan(text, problem="no object with a workflow_ key in any of the seven forms")


def plan_candidates(text: str) -> Iterator[tuple[Callable[[str], Any], str]]:
    """Yield (parser, part of the text) of each form the text has."""
    answer = text.rsplit("</think>", maxsplit=1)[-1]
    for form, load in _FORMS:
        candidate = form(answer)
        if candidate is not None:
            yield load, candidate


def _load_yaml(text: str) -> Any:
    if _TOO_DEEP.search(text):
        raise RecursionError("nested too deeply")
    # Only what has aliases can be small to write and huge to hold; all else is read as the original
    # reads it.
    if "&" in text and "*" in text:
        return yaml_data(text)
    import yaml  # noqa: PLC0415 - takes long to import, and recognising files needs none

    return yaml.safe_load(text)


def _has_workflow(value: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith(PLAN_MARK) for key in value)


def _fenced_json(text: str) -> str | None:
    # Only the first fence: were there no end behind it, there would be none behind a later one.
    start = _JSON_FENCE.search(text)
    end = None
    if start:
        end = _JSON_FENCE_END.search(text, start.end())
    if start and end:
        return text[start.end() - 1 : end.start() + 1]
    return None


def _flat_object(text: str) -> str | None:
    closed = text[: text.rfind("}") + 1]
    for flat in _FLAT.finditer(closed):
        if '"workflow_' in flat[0]:
            # Further such objects after a comma belong to the match, which then is no single JSON
            # value.
            if _FLAT_FOLLOWS.match(closed, flat.end()):
                return None
            return flat[0]
    return None


def _balanced_object(text: str) -> str | None:
    """Cut the object around the first workflow out of a text, None without closing brace."""
    named = _NAMED_WORKFLOW.search(text)
    begin = text.rfind("{", 0, max(text.find('"workflow_'), 0))
    if named is None or begin < 0 or text.rfind("}") < named.end():
        return None
    depth = 0
    for brace in _BRACE.finditer(text, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[begin : brace.end()]
    return None


def _fenced_yaml(text: str) -> str | None:
    start = _YAML_FENCE.search(text)
    if start:
        end = text.find("```", start.end())
    else:
        end = -1
    if start and end >= 0:
        return text[start.end() - len(PLAN_MARK) : end].rstrip()
    return None


def _repaired_yaml(text: str) -> str | None:
    """Indent the lines of a plan anew by what each begins with; None where it is no plan."""
    lines = text.strip().split("\n")
    if not lines[0].startswith(PLAN_MARK):
        return None
    repaired = []
    for line in lines:
        bare = line.strip()
        if bare.startswith(PLAN_MARK):
            repaired.append(f"{line}:\n")
        else:
            if bare.startswith("-"):
                depth = 4
            else:
                depth = 2 if ":" in line else 6
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


Steps = Mapping[Any, list[Label]]
"""workflow -> (agent, status) of its steps."""
Dependencies = Mapping[Any, Iterable[Hashable]]
"""workflow -> workflows it waits for."""


def read_workflows(plan: Workflows) -> tuple[Steps, Dependencies]:
    """Return the workflows of a plan; keys that do not contain ``workflow`` are left out.

    What is not an object where one belongs counts as empty.
    """
    steps, dependencies = {}, {}
    for name, value in plan.items():
        if isinstance(name, str) and "workflow" in name:
            fields = as_map(value)
            depends_on = fields.get("depends_on")
            waits_for = depends_on or fields.get("depend_on") or []
            if isinstance(waits_for, list | tuple | Mapping):
                names = waits_for
            else:
                names = [waits_for]
            labels = _labels(fields)
            scalars = list(map(_scalar, names))
            steps[name], dependencies[name] = labels, scalars
    return steps, dependencies


def _labels(fields: Mapping[Any, Any]) -> list[Label]:
    labels: list[Label] = []
    steps = fields.get("steps")
    for step in map(as_map, steps if isinstance(steps, list | tuple) else ()):
        agent_id = step.get("agent_id")
        agent = agent_id or step.get("name")
        if agent:
            scalar = _scalar(agent)
            status = step.get("status", "UNK")
            labels.append((scalar, _scalar(status)))
    return labels


def _scalar(value: Any) -> Hashable:
    return f"<{type(value).__name__}>" if isinstance(value, list | tuple | Mapping | set) else value


def structural_graph(dependencies: Dependencies) -> Graph:
    """Return the graph of workflows and what they depend on; names do not matter."""
    nodes, edges = [], []
    for name, waits_for in dependencies.items():
        before = list(waits_for)
        nodes += [name, *before]
        edges += [(dependency, name) for dependency in before]
    return build_graph(nodes, edges, labelled=False)


def component_graph(steps: Steps, dependencies: Dependencies) -> Graph:
    """Return the graph of steps as (agent, status), in their order and that of the workflows."""
    nodes, edges = [], []
    for labels in steps.values():
        nodes += labels
        edges += [(label, following) for label, following in pairwise(labels) if label != following]
    for name, waits_for in dependencies.items():
        for before in [steps.get(dependency) for dependency in waits_for]:
            if before and steps[name]:
                edges.append((before[-1], steps[name][0]))
    return build_graph(nodes, edges, labelled=True)


def graphs(plan: Workflows) -> tuple[Graph, Graph]:
    """Return (structural, component) graph of a plan."""
    steps, dependencies = read_workflows(plan)
    return structural_graph(dependencies), component_graph(steps, dependencies)


def outline(plan: Workflows) -> dict[str, dict[str, list[str]]]:
    """Return a plan in short, for people.

    Per workflow its steps as ``agent|status`` and what it depends on.
    """
    steps, dependencies = read_workflows(plan)
    short = {}
    for name, labels in steps.items():
        texts = [f"{agent}|{status}" for agent, status in labels]
        depends_on = list(map(str, dependencies[name]))
        short[name] = {"steps": texts, "depends_on": depends_on}
    return short


class Comparison(msgspec.Struct, frozen=True):
    """One pair of graphs compared."""

    distance: Distance
    similarity: float
    """From the upper bound of the distance, so never too high."""


def similarity(distance: float, left: Graph, right: Graph) -> float:
    """Return the similarity of two graphs, of the price of deleting both."""
    most = left.size + right.size
    return 1 - distance / most if most else 1.0


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One gold plan and what was predicted for it."""

    id: str
    gold: JSON = None
    predicted: JSON = None
    """Predicted plan in short; the text when it holds none, None when there is none."""
    comparisons: Sequence[Comparison] = ()
    """Structural and component graphs; none when nothing could be compared: all figures are 0."""
    problem: tuple[str, str] = ("", "")
    """Why there is none: ``plan_absent`` or ``plan_unparsable``, and what is wrong."""
    fault: Fault | None = None
    """Why the gold plan cannot be used; then the step is in no figure."""

    @property
    def figures(self) -> tuple[float, float, float]:
        """Score, structural and component similarity."""
        similarities = [part.similarity for part in self.comparisons]
        structural, component = similarities or (0.0, 0.0)
        return structural * 0.5 + component * 0.5, structural, component


def compare_plans(sample: Sample) -> tuple[list[PlanStep], list[str]]:
    """Return gold plans beside predicted ones, and the steps of predicted plans nobody asked for.

    Of another reader's sample a plan is a text, an object with ``workflow_`` keys, or an object
    step -> plan. A gold plan that is none is in no figure, a prediction a failure.
    """
    trial = native_of(sample, Trial)
    if trial is not None:
        return _trial_plans(trial)
    golds = _by_step(sample.expected.plan)
    predicted = _by_step(sample.plan)
    weights = Weights()
    steps = [_plan_step(name, gold, predicted.get(name), weights) for name, gold in golds.items()]
    return steps, []


def _trial_plans(trial: Trial) -> tuple[list[PlanStep], list[str]]:
    """Compare the plans of a trial with the gold ones.

    Returns:
        A step for each gold plan; the names of steps whose plan has no gold one.
    """
    predicted: dict[str, Plan] = {}
    for reply in trial.plans:
        step = str(reply.step_id)
        plan = _as_plan(reply.content)
        if plan.workflows or step not in predicted:
            predicted[step] = plan
    golds = {step: parse_plan(text) for step, text in gold_plans(trial.label).items()}
    steps = [
        _plan_step(name, gold, predicted.get(name), trial.setting.weights)
        for name, gold in golds.items()
        if gold.workflows or gold.content.startswith(PLAN_MARK)
    ]
    return steps, [name for name in predicted if name not in golds]


def gold_plans(label: Mapping[str, Turn]) -> dict[str, str]:
    """Return possible gold plans, by step.

    Texts of assistants without agent that mention ``workflow_``.
    """
    plans = {}
    for key, turn in label.items():
        is_main = key.isdecimal() and turn.agent_id is msgspec.UNSET
        is_text = isinstance(turn.content, str) and turn.role == "assistant"
        if is_main and is_text and PLAN_MARK in turn.content:
            plans[key] = turn.content
    return plans


def _by_step(plan: JSON) -> dict[str, Plan]:
    if isinstance(plan, Mapping) and not _has_workflow(plan):
        plans = plan
    else:
        plans = {"1": plan}
    return {str(key): _as_plan(plan) for key, plan in plans.items() if plan is not None}


def _as_plan(plan: JSON) -> Plan:
    if isinstance(plan, str):
        return parse_plan(plan)
    if isinstance(plan, Mapping) and _has_workflow(plan):
        return Plan(plan, workflows=dict(plan))
    return Plan(plan, problem="neither text nor an object with a workflow_ key")


def _plan_step(name: str, gold: Plan, plan: Plan | None, weights: Weights) -> PlanStep:
    """Compare a plan with the gold one by their graphs, or record why it cannot be compared."""
    if not gold.workflows:
        fault = data_fault("gold_unreadable", f"plan {name}: {gold.problem}")
        return PlanStep(id=name, gold=gold.content, fault=fault)
    short = outline(gold.workflows)
    if plan is None:
        problem = "plan_absent", "no plan was predicted at this step"
        return PlanStep(id=name, gold=short, problem=problem)
    if not plan.workflows:
        problem = "plan_unparsable", plan.problem
        return PlanStep(id=name, gold=short, predicted=plan.content, problem=problem)
    comparisons = []
    for left, right in zip(graphs(plan.workflows), graphs(gold.workflows), strict=True):
        distance = edit_distance(left, right, weights)
        comparison = Comparison(distance, similarity(distance.upper, left, right))
        comparisons.append(comparison)
    predicted = outline(plan.workflows)
    return PlanStep(id=name, gold=short, predicted=predicted, comparisons=comparisons)

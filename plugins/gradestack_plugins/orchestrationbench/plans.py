"""Workflow plans: read from a text, made into graphs, compared with gold.

A text is a plan by the first of seven forms that yields an object with some key starting
``workflow_``, looked for behind the last ``</think>``. Patterns are searched by hand where a
regular expression would need quadratic time on hostile text. The forms, the two graphs and the
score are described in docs/orchestrationbench.md.

``upstream`` differs by what is marked so, and raises where the original raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Literal, TypeVar

import msgspec
import yaml

from gradestack import JSON, Fault, Profile, Reason, Sample, yaml_data
from gradestack.jsonio import as_list, as_map, standard_loads
from gradestack_plugins.orchestrationbench.decisions import PLAN_MARK, Trial
from gradestack_plugins.orchestrationbench.graphs import (
    BUDGET,
    Builder,
    Distance,
    Graph,
    Label,
    Weights,
    available,
    edit_distance,
    feasible,
    networkx_distance,
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
    """What was given as a plan, and what it holds."""

    content: Any
    workflows: Workflows = msgspec.field(default_factory=dict)
    """Everything the content's object holds; empty when it is no plan.

    Shared, never to be changed.
    """
    problem: str = ""


@lru_cache(
    maxsize=512
)  # two graders ask: without it a run of the default stack takes 1.6 to 1.9 times as long
def parse_plan(text: str, profile: Profile) -> Plan:
    """Return the plan of a text, empty with a reason when it holds none.

    ``documented`` goes on to the next form whatever goes wrong in one, ``upstream`` only where the
    text is not the form's language.
    """
    said = text.rsplit("</think>", maxsplit=1)[-1]
    for form, load in _FORMS:
        candidate = form(said)
        if candidate is None:
            continue
        try:
            value = load(candidate)
            if isinstance(value, dict) and _has_workflow(value, profile):
                return Plan(text, value)
        except (json.JSONDecodeError, yaml.YAMLError):
            continue
        except Exception:
            if profile == "upstream":
                raise
    found = "no object with a workflow_ key in any of the seven forms"
    return Plan(text, problem=found if PLAN_MARK in said else "the text names no workflow_")


def _load_yaml(text: str) -> Any:
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket.group() in "[{" else max(0, depth - 1)
        if depth > _DEEPEST:
            raise RecursionError("nested too deeply")
    # Only what has aliases can be small to write and huge to hold; all else is read as the original
    # reads it.
    return yaml_data(text) if "&" in text and "*" in text else yaml.safe_load(text)


def _has_workflow(value: Mapping[Any, Any], profile: Profile) -> bool:
    return any(
        (profile == "upstream" or isinstance(key, str)) and key.startswith(PLAN_MARK)
        for key in value
    )


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


def graphs(workflows: Workflows, profile: Profile) -> tuple[Graph, Graph]:  # noqa: C901
    """Return (structural, component) graph of a plan.

    Keys that do not contain ``workflow`` are left out.

    ``documented`` never fails: what is not an object where one belongs counts as empty.
    ``upstream`` raises where a key is no text, a workflow or step no object, a name or status not
    hashable.
    """
    strict = profile == "upstream"
    known: dict[Any, Any] = {}
    for key, value in workflows.items():
        if (strict or isinstance(key, str)) and "workflow" in key:
            known[key] = value if strict else as_map(value)
    structural, component = Builder(), Builder()
    for name, fields in known.items():
        structural.node(name)
        for dependency in (fields.get("depends_on", []) or []) if strict else _dependencies(fields):
            if dependency is None and strict:
                raise ValueError("None cannot be a node")
            structural.edge(dependency, name)
    steps = {name: _steps(fields, strict=strict) for name, fields in known.items()}
    for step in chain.from_iterable(steps.values()):
        component.node(step)
    for step, following in chain.from_iterable(map(pairwise, steps.values())):
        if step != following:
            component.edge(step, following)
    for name, fields in known.items():
        for dependency in _dependencies(fields, strict=strict) if steps[name] else ():
            if before := steps.get(dependency):
                component.edge(before[-1], steps[name][0])
    return structural.graph(labelled=False), component.graph(labelled=True)


def outline(workflows: Workflows) -> dict[str, dict[str, list[str]]]:
    """Return a plan in short, for people.

    Per workflow its steps as ``agent|status`` and what it depends on.
    """
    return {
        key: {
            "steps": [f"{agent}|{status}" for agent, status in _steps(as_map(value))],
            "depends_on": [str(name) for name in _dependencies(as_map(value))],
        }
        for key, value in workflows.items()
        if isinstance(key, str) and "workflow" in key
    }


def _dependencies(fields: Mapping[Any, Any], *, strict: bool = False) -> Iterable[Any]:
    value = fields.get("depends_on") or fields.get("depend_on")
    if not value:
        return ()
    if strict:  # a text of depends_on is taken character by character, one of depend_on is a name
        return [value] if isinstance(value, str) and not fields.get("depends_on") else value
    return [
        _scalar(name) for name in (value if isinstance(value, list | tuple | Mapping) else [value])
    ]


def _steps(fields: Mapping[Any, Any], *, strict: bool = False) -> list[Label]:
    steps = fields.get("steps")
    found: list[Label] = []
    for step in steps if isinstance(steps, list | tuple) or (strict and steps) else ():
        agent = (
            (step.get("agent_id") or step.get("name"))
            if strict or isinstance(step, Mapping)
            else None
        )
        if agent:
            label = agent, step.get("status", UNKNOWN)
            if strict:
                hash(label)
            found.append(label if strict else (_scalar(label[0]), _scalar(label[1])))
    return found


def _scalar(value: Any) -> Hashable:
    return f"<{type(value).__name__}>" if isinstance(value, list | tuple | Mapping | set) else value


Solver = Literal["auto", "exact", "networkx"]


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
    """How plans are compared."""

    profile: Profile = "documented"
    weights: Weights = msgspec.field(default_factory=Weights)
    solver: Solver = "auto"
    """``auto``: networkx in ``upstream`` where installed and feasible, else the exact solver."""
    budget: int = BUDGET


@lru_cache(
    maxsize=4096
)  # two graders ask: with networkx a run of the default stack takes 1.4 times as long without it
def _compare(predicted: Graph, gold: Graph, rules: PlanRules) -> Comparison:
    wanted = rules.solver == "networkx" or (rules.solver == "auto" and rules.profile == "upstream")
    if wanted and available() and feasible(predicted, gold):
        distance = networkx_distance(predicted, gold, rules.weights)
    else:
        distance = edit_distance(predicted, gold, rules.weights, rules.budget)
    return Comparison(distance, predicted.size + gold.size, predicted.has_loop or gold.has_loop)


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One gold plan and what was predicted for it."""

    id: str
    gold: JSON = None
    predicted: JSON = None
    """Predicted plan in short; the text when it holds none, None when there is none."""
    structural: Comparison | None = None
    component: Comparison | None = None
    """None when nothing could be compared: all figures are 0."""
    problem: tuple[str, str] = ("", "")
    """Why there is none: ``plan_absent`` or ``plan_unparsable``, and what is wrong."""
    fault: Fault | None = None
    """Why the gold plan cannot be used; then the step is in no figure."""

    @property
    def figures(self) -> tuple[float, float, float, float]:
        """Score, structural and component similarity, and the score if every distance were at its
        lower bound.
        """
        if self.structural is None or self.component is None:
            return 0.0, 0.0, 0.0, 0.0
        structural, component = self.structural.similarity, self.component.similarity
        highest = self.structural.highest * 0.5 + self.component.highest * 0.5
        return structural * 0.5 + component * 0.5, structural, component, highest


class PlanFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The plans of one trial."""

    steps: Sequence[PlanStep] = ()
    failed: int = 0
    """Failed plan generations as the profile counts them."""
    notes: Iterable[Reason] = ()
    """Predicted plans nobody asked for."""
    dropped: str = ""
    """Why the original ignores the plans of this run altogether (``upstream``)."""

    @property
    def compared(self) -> list[PlanStep]:
        """Steps with a usable gold plan."""
        return [step for step in self.steps if step.fault is None]


def plan_figures(trial: Trial, rules: PlanRules) -> PlanFigures:
    """Return the plans of one trial."""
    if rules.profile == "documented":
        return _documented(trial, rules)
    if not trial.planned:
        return PlanFigures(
            dropped="the run's name leaves a gap, so the original does not look it up"
        )
    try:
        return _upstream(trial.run, rules)
    except Exception as error:  # noqa: BLE001 - the original drops a run whatever it raises
        return PlanFigures(dropped=f"{type(error).__name__}: {error}")


def _plan(content: Any, profile: Profile) -> Plan:
    if isinstance(content, str):
        return parse_plan(content, profile)
    return Plan(content, problem="the content is no text")


def _upstream(run: Any, rules: PlanRules) -> PlanFigures:
    predicted: dict[Any, Plan] = {}
    unreadable: dict[Any, Plan] = {}
    failed = 0
    for entry in run.get("main_agent_history", []):
        step = entry.get("step_id")
        if step is None:
            continue
        plan = _plan(entry.get("content"), "upstream")
        if plan.workflows:
            predicted[step] = plan
        else:
            failed += 1
            unreadable[step if isinstance(step, int | float | str) else repr(step)] = plan
    golds: dict[int, Plan] = {}
    for key, turn in run.get("label", {}).items():
        with suppress(ValueError, TypeError):
            number = int(key)
            content = turn.get("content", "")
            if (
                isinstance(content, str)
                and PLAN_MARK in content
                and (plan := parse_plan(content, "upstream")).workflows
            ):
                golds[number] = plan
    failed += sum(number not in predicted for number in golds)
    golds = dict(sorted(golds.items()))
    return _figures(
        golds, {**unreadable, **predicted}, rules, "label", _not_asked_for(predicted, golds), failed
    )


def _documented(trial: Trial, rules: PlanRules) -> PlanFigures:
    predicted: dict[int, Plan] = {}
    notes = []
    for entry in as_list(trial.part("main_agent_history")):
        number = step_number(as_map(entry).get("step_id"))
        if number is None:
            notes.append(
                Reason(
                    code="plan_without_step",
                    message="an entry of main_agent_history has no step number",
                )
            )
            continue
        plan = _plan(entry.get("content"), "documented")
        if plan.workflows or number not in predicted:
            predicted[number] = plan
    golds = {
        number: parse_plan(text, "documented")
        for number, text in gold_plans(trial.part("label")).items()
    }
    meant = {
        number: gold
        for number, gold in golds.items()
        if gold.workflows or gold.content.startswith(PLAN_MARK)
    }
    return _figures(meant, predicted, rules, "label", [*notes, *_not_asked_for(predicted, golds)])


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
    if isinstance(plan, Mapping) and not _has_workflow(plan, "documented"):
        return {str(key): _as_plan(each) for key, each in plan.items()}
    return {} if plan is None else {"1": _as_plan(plan)}


def _as_plan(plan: JSON) -> Plan:
    if isinstance(plan, Mapping) and _has_workflow(plan, "documented"):
        return Plan(plan, workflows=dict(plan))
    if isinstance(plan, str):
        return parse_plan(plan, "documented")
    return Plan(plan, problem="neither text nor an object with a workflow_ key")


_K = TypeVar("_K", int, str)


def _figures(
    golds: Mapping[_K, Plan],
    predicted: Mapping[Any, Plan],
    rules: PlanRules,
    where: str,
    notes: Iterable[Reason] = (),
    failed: int | None = None,
) -> PlanFigures:
    """Return gold plans beside predicted ones.

    A gold plan that is none is in no figure, a prediction a failure.
    """
    steps = []
    for name, gold in golds.items():
        if gold.workflows:
            steps.append(_compare_step(str(name), gold.workflows, predicted.get(name), rules))
        else:
            fault = Fault(
                category="data", code="gold_unreadable", message=f"{where} {name}: {gold.problem}"
            )
            steps.append(PlanStep(id=str(name), gold=gold.content, fault=fault))
    if failed is None:
        failed = sum(step.fault is None and step.structural is None for step in steps)
    return PlanFigures(steps=steps, failed=failed, notes=notes)


def gold_plans(label: Any) -> dict[int, str]:
    """Return what may be gold plans, by step in order.

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
        return PlanStep(
            id=name, gold=short, problem=("plan_absent", "no plan was predicted at this step")
        )
    if not plan.workflows:
        return PlanStep(
            id=name, gold=short, predicted=plan.content, problem=("plan_unparsable", plan.problem)
        )
    sides = zip(graphs(plan.workflows, rules.profile), graphs(gold, rules.profile), strict=True)
    structural, component = (_compare(ours, theirs, rules) for ours, theirs in sides)
    predicted = outline(plan.workflows)
    return PlanStep(
        id=name, gold=short, predicted=predicted, structural=structural, component=component
    )


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
    return [Reason(code="plan_not_asked_for", subject=step, message=message) for step in extra]

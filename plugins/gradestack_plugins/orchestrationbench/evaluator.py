"""OrchestrationBench as its own evaluator computes it, ported.

It raises where the evaluator raises, and catches what that catches: a file whose argument part
raises has zeros there, a run whose plans raise has none. Sums are added from left to right. Texts
of values, rules of schemas, forms of a plan's text and the exact edit distance are shared.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import yaml

from gradestack import JSON
from gradestack.jsonio import as_map, standard_loads
from gradestack_plugins.orchestrationbench.aggregators import (
    CALL_SCORES,
    PLAN_COUNTS,
    PLAN_SCORES,
    decision_divisors,
    files_with,
    overall,
    round_figures,
)
from gradestack_plugins.orchestrationbench.calls import Counts, compare_key, value_f1
from gradestack_plugins.orchestrationbench.decisions import (
    CALL,
    CASES,
    CELL_COUNTS,
    FAILURES,
    GENERAL,
    MATRIX,
    MISMATCHES,
    UNDECODABLE,
    cell_of,
    marked,
    mean,
    set_f1,
    sum_up,
)
from gradestack_plugins.orchestrationbench.exporter import detailed_result, overall_statistics
from gradestack_plugins.orchestrationbench.graphs import Graph, usual_distance
from gradestack_plugins.orchestrationbench.plans import (
    component_graph,
    plan_candidates,
    similarity,
    structural_graph,
)
from gradestack_plugins.orchestrationbench.reader import NO_RUN
from gradestack_plugins.orchestrationbench.records import (
    PLAN_MARK,
    RUN_PREFIX,
    SideFiles,
    Verdict,
    verdicts_for,
)

FLOATS = (*MATRIX[:4], "perfect_calls", *CASES)
"""Counts that the evaluator keeps as floats."""
MEANS = (*PLAN_SCORES, *CALL_SCORES)
SUMMED = (*MATRIX, *FLOATS[4:], *PLAN_COUNTS, *MEANS)
"""Sums over files: without mismatches, which the evaluator looks for elsewhere."""
DETAILS = (
    "total_perfect_function_calls",
    "total_fc_successful_calls",
    "total_rejection_type_mismatch",
    "total_failed_generation",
)
"""Counts that are left out of a file whose argument part raised."""
Scores = tuple[float, float, float]


class ScenarioFile(NamedTuple):
    """One scenario output file."""

    path: str
    name: str
    """Path below the directory, which verdicts are recorded by."""
    data: JSON
    """None where it cannot be read."""


class Calls(NamedTuple):
    """All calls of a step together: single calls are not paired."""

    names: list[Any]
    arguments: dict[str, Any]

    def add(self, name: Any, arguments: Any) -> None:
        """Add a call; a text that is no JSON becomes a text under ``error``."""
        self.names.append(name)
        try:
            values = arguments if isinstance(arguments, dict) else standard_loads(arguments)
        except json.JSONDecodeError:
            self.arguments["error"] = f"{UNDECODABLE}{arguments}"
            return
        for key, value in values.items():
            self.arguments.setdefault(key, []).append(value)


def decide_gold(label: Any, step: Any) -> tuple[str, Calls]:
    """Return the decision the label expects; at an unknown step a general rejection."""
    if f"{step}-1" in label:
        key = f"{step}-1"
    else:
        key = step
    turn = label.get(key, {})
    calls = Calls([], {})
    if "tool_calls" in turn:
        for call in turn["tool_calls"]:
            function = call.get("function", {})
            arguments = function.get("arguments", {})
            calls.add(function.get("name", ""), arguments)
        return CALL, calls
    return marked(turn.get("content", "")) or GENERAL, calls


def decide_predicted(entry: Any) -> tuple[str, Calls]:
    """Return the predicted decision; no call and no marker are a call of nothing."""
    calls = Calls([], {})
    tool_call_count = len(entry.get("tool_calls", []))
    if tool_call_count == 0:
        calls.names.append("")
        return marked(entry.get("content", "")) or CALL, calls
    for call in entry["tool_calls"]:
        arguments = call["function"]["arguments"]
        calls.add(call["function"]["name"], arguments)
    return marked(calls.arguments) or CALL, calls


def read_history(label: Any, step: Any) -> None:
    """Read the queries before a step as the evaluator does for its judge: it stops at odd ones."""
    for key in sorted(label, key=lambda name: [int(part) for part in name.split("-")]):
        if key == step:
            break
        if "-1" in key:
            calls = label[key].get("tool_calls")
        else:
            calls = ()
        decoded = [standard_loads(call["function"]["arguments"]) for call in calls or ()]
        refined_queries = [part["refinedQuery"] for part in decoded if "refinedQuery" in part]
        " ".join(refined_queries)


def count_key(
    key: str, ours: Calls, theirs: Calls, schemas: Sequence[Any], verdict: Verdict | None
) -> tuple[Counts, bool]:
    """Count true and false values of an argument; also return whether a judge is asked.

    Then values that are equal are lost.
    """
    if key not in ours.arguments or key not in theirs.arguments:
        # the text of undecodable arguments counts by its characters
        sides = [calls.arguments.get(key, []) for calls in (ours, theirs)]
        surplus, missing = map(len, sides)
        return (0, surplus, missing), False
    result = compare_key(key, ours.arguments, theirs.arguments, schemas)
    if result.reason != "undecided":
        return result.counts, False
    if verdict is None or verdict == Verdict():
        return (0, result.fp, result.fn), True
    return verdict.counts, True


def average(values: Iterable[float]) -> float:
    """Return the mean, added from left to right, 0.0 of nothing."""
    return mean(values) or 0.0


class Pair(NamedTuple):
    """A step where both sides call."""

    step: str
    ours: Calls
    theirs: Calls
    name: float
    key: float


def compare_values(pair: Pair, verdicts: Any, settings: SideFiles) -> tuple[float, bool]:
    """Compare the argument values of a pair of calls.

    Returns:
        The F1 of the values; whether a judge is asked about any of them.
    """
    known = as_map(verdicts).get(pair.step, {})
    tools = {tool.name: tool.parameters for tool in settings.tools or ()}
    names = [name for name in dict.fromkeys(pair.ours.names) if name in tools]
    sides = pair.ours, pair.theirs, [tools[name] for name in names]
    keys = {*pair.ours.arguments, *pair.theirs.arguments}
    counted = [count_key(key, *sides, known.get(key)) for key in keys]
    value = value_f1(counts for counts, _ in counted) or 0.0
    return value, any(is_asked for _, is_asked in counted)


class Trial(NamedTuple):
    """The argument part of one run."""

    counts: Counter[str]
    scores: Scores
    """F1 of names, keys, values."""
    is_judge_failed: bool


def evaluate_arguments(run: Any, verdicts: Any, settings: SideFiles) -> Trial:
    """Grade the decisions and calls of one run.

    Args:
        run: As recorded.
        verdicts: Its recorded verdicts by step and argument; None: the judge is skipped.
        settings: How the evaluator is started.
    """
    history = run["sub_agent_history"]
    label = run["label"]
    if label["1"]["role"] == "system":
        _ = label["1"]["content"]  # what the judge is told of the scenario
    counts = Counter[str]()
    pairs = list[Pair]()
    for entry in history:
        step = entry["step_id"]
        (gold, theirs), (predicted, ours) = decide_gold(label, step), decide_predicted(entry)
        read_history(label, step)
        cell = cell_of(gold, predicted)
        counts.update(CELL_COUNTS[cell])
        counts[MISMATCHES] += CALL not in (gold, predicted) and gold != predicted
        if gold == predicted == CALL:
            name = set_f1(ours.names, theirs.names)
            key = set_f1(ours.arguments, theirs.arguments)
            pairs.append(Pair(str(step), ours, theirs, name, key))
    cases = [key for key, turn in label.items() if "-" not in key and "agent_id" in as_map(turn)]
    counts["function_call_cases"] = sum(f"{step}-1" in label for step in cases)
    counts["rejection_cases"] = len(cases) - counts["function_call_cases"]
    try:
        compared = [compare_values(pair, verdicts, settings) for pair in pairs]
    except Exception:  # noqa: BLE001 - whatever a broken schema raises
        compared = []
    is_judge_failed = not compared or not settings.setting.judge_section
    if is_judge_failed:  # key F1s then stand for values
        compared = [(pair.key, False) for pair in pairs]
    # steps that a judge was asked about come first, and are assigned to steps by position
    in_judge_order = compared
    if verdicts is not None:
        in_judge_order = sorted(compared, key=lambda value_and_asked: not value_and_asked[1])
    for pair, (value, _) in zip(pairs, in_judge_order, strict=True):
        counts["perfect_calls"] += pair.key == 1.0 and value == 1.0
    above_zero = [value for value, _ in compared if value]
    names = average(pair.name for pair in pairs)
    keys = average(pair.key for pair in pairs)
    rounded = round(names, 4)
    scores = rounded, round(keys, 4), average(above_zero)
    return Trial(counts, scores, is_judge_failed)


def read_plan(text: Any) -> dict[Any, Any]:
    """Return the first object with a ``workflow_`` key that a text yields; empty for none."""
    for load, candidate in plan_candidates(text) if isinstance(text, str) else ():
        try:
            value = load(candidate)
            if isinstance(value, dict) and any(key.startswith(PLAN_MARK) for key in value):
                return value
        except (json.JSONDecodeError, yaml.YAMLError):
            continue
    return {}


def steps_of(fields: Any) -> list[tuple[Any, Any]]:
    """Return (agent, status) of the steps of a workflow."""
    steps = []
    for step in fields.get("steps") or ():
        agent_id = step.get("agent_id")
        agent = agent_id or step.get("name")
        if agent:
            status = step.get("status", "UNK")
            steps.append((agent, status))
    return steps


def graphs_of(workflows: Mapping[Any, Any]) -> tuple[Graph, Graph]:
    """Return the structural graph, which ignores ``depend_on``, and that of components."""
    structural, component = {}, {}
    steps = {name: steps_of(fields) for name, fields in workflows.items()}
    for name, fields in workflows.items():
        depends_on = fields.get("depends_on", [])
        structural[name] = list(depends_on or [])
        if None in structural[name]:
            raise ValueError("None cannot be a node")
        waits_for = fields.get("depends_on") or fields.get("depend_on") or []
        if isinstance(waits_for, str) and not fields.get("depends_on"):
            waits_for = [waits_for]
        component[name] = waits_for if steps[name] else ()
    return structural_graph(structural), component_graph(steps, component)


def compare_plans(predicted: Any, gold: Any, settings: SideFiles) -> Scores:
    """Compare a predicted plan with the gold one, by their structural and component graphs.

    Returns:
        The mean of both similarities, the structural similarity, the component similarity.
    """
    predicted_graphs, gold_graphs = (
        graphs_of({name: fields for name, fields in plan.items() if "workflow" in name})
        for plan in (predicted, gold)
    )
    similarities = []
    for predicted_graph, gold_graph in zip(predicted_graphs, gold_graphs, strict=True):
        distance = usual_distance(predicted_graph, gold_graph, settings.setting.weights)
        similarities.append(similarity(distance, predicted_graph, gold_graph))
    structural, component = similarities
    return structural * 0.5 + component * 0.5, structural, component


def evaluate_plans(run: Any, settings: SideFiles) -> tuple[list[Scores], int]:
    """Return the scores of each gold plan of a run, and how many generations failed.

    A gold plan without a prediction has zeros and is a failure; an unreadable prediction is one
    more.
    """
    predicted = dict[Any, Any]()
    golds = dict[int, Any]()
    failed = 0
    for entry in run.get("main_agent_history", []):
        step = entry.get("step_id")
        if step is not None:
            plan = read_plan(entry.get("content"))
            failed += not plan
            predicted |= {step: plan} if plan else {}
    for key, turn in run.get("label", {}).items():
        with suppress(ValueError, TypeError):
            number = int(key)
            content = turn.get("content", "")
            is_marked = isinstance(content, str) and PLAN_MARK in content
            if is_marked and (plan := read_plan(content)):
                golds[number] = plan
    scores: list[Scores] = []
    for number, gold in sorted(golds.items()):
        if number in predicted:
            scores.append(compare_plans(predicted[number], gold, settings))
        else:
            scores.append((0.0, 0.0, 0.0))
            failed += 1
    return scores, failed


def evaluate_workflows(history: Mapping[str, Any], settings: SideFiles) -> dict[str, Any]:
    """Return the plan figures of a file, of all its runs together."""
    scores = list[Scores]()
    failed = 0
    for number in range(1, len(history) + 1):
        with suppress(Exception):  # whatever is raised, the run is dropped
            run = history[f"{RUN_PREFIX}{number}"]
            of_run, failed_of_run = evaluate_plans(run, settings)
            scores += of_run
            failed += failed_of_run
    compared = len(scores)
    means = [average(score[part] for score in scores) for part in range(3)]
    total = sum_up(score for score, _, _ in scores)
    with_failure = 0.0
    if compared + failed:
        with_failure = total / (compared + failed)
    named = zip(PLAN_SCORES, (with_failure, *means), strict=True)
    pairs = dict(zip(PLAN_COUNTS, (failed, compared), strict=True))
    return dict(named) | pairs


def evaluate_file(file: ScenarioFile, settings: SideFiles) -> dict[str, Any]:
    """Return the figures of a file, whose argument part is zero where it raises."""
    history = as_map(as_map(file.data).get("history"))
    counts = Counter[str]()
    scores = list[Scores]()
    judge_failed = list[str]()
    error = "" if history else NO_RUN
    try:
        for name, run in history.items():
            verdicts = verdicts_for(settings.verdicts, file.name, name)
            trial = evaluate_arguments(run, verdicts, settings)
            counts.update(trial.counts)
            scores.append(trial.scores)
            judge_failed += [name] if trial.is_judge_failed else []
    except Exception as problem:  # noqa: BLE001 - whatever is raised
        counts, scores, judge_failed = Counter(), [], []
        error = f"{type(problem).__name__}: {problem}"
    means = [round(average(score[part] for score in scores), 4) for part in range(3)]
    return {
        "file": file.path,
        "arguments_error": error,
        "judge_failed_trials": judge_failed,
        **evaluate_workflows(history, settings),
        **{name: counts[name] for name in (*MATRIX[4:], MISMATCHES, FAILURES)},
        **{name: float(counts[name]) for name in FLOATS},
        **dict(zip(CALL_SCORES, means, strict=True)),
    }


def sum_files(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a directory: sums of counts, means over the files, 0 for 0/0."""
    nothing = dict.fromkeys(("files", *SUMMED, MISMATCHES, FAILURES), 0)
    sums: Counter[str] = Counter({**nothing, **dict.fromkeys(FLOATS, 0.0)})
    for row in rows:
        sums.update({"files": 1, **{name: row[name] for name in SUMMED}})
        sums.update(files_with(name) for name in MEANS)
    sums.update(decision_divisors(sums))
    figures = overall(sums)
    for name, value in figures.items():
        if isinstance(value, dict):
            figures[name] = {part: 0 if share is None else share for part, share in value.items()}
        else:
            figures[name] = value or 0.0
    return {**sums, **round_figures(figures)}


def evaluate_directory(
    directory: str, files: Iterable[ScenarioFile], settings: SideFiles
) -> dict[str, Any]:
    """Return the result file of a directory; a file that holds nothing is an error."""
    results = list[Any]()
    rows = list[Any]()
    for file in files:
        if not file.data:
            results.append({"error": f"Failed to load data from {file.path}"})
            continue
        row = evaluate_file(file, settings)
        result = detailed_result(row)
        if row["arguments_error"]:
            details = result["detail"]["arguments_detail"]
            for name in DETAILS:
                del details[name]
            details["error"] = row["arguments_error"]
        rows.append(row)
        results.append(result)
    totals = sum_files(rows)
    statistics = overall_statistics(totals, len(results))
    if not rows:
        rejections = statistics["score_details"]["call_rejection_scores"]
        for name in ("rejection_type_accuracy", *DETAILS[2:]):
            del rejections[name]
        del rejections["reject_decision_performance"]["accuracy"]
        del rejections["error_patterns"]["type_mismatch_rate"]
    parts = {"overall_statistics": statistics, "detailed_results": results}
    return {"directory": directory, **parts}

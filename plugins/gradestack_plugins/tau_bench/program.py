"""tau-bench's own programs, ported: its partial scoring script, and pass^k as its runner prints it.

A record on which the script stops has no score here, and the statistics say how many there are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import comb
from typing import Any, NamedTuple

import msgspec
from typing_extensions import override

from gradestack import (
    Grader,
    Program,
    ProgramFigure,
    ProgramInput,
    ProgramRun,
    read_records,
    terminal_line,
)
from gradestack.jsonio import JsonProblem, loads
from gradestack_plugins.statistics.success import is_success
from gradestack_plugins.tau_bench.aggregators import (
    CASES,
    FIRST_CASES,
    SUCCESS_ABOVE,
    case_of,
    make_histogram,
)
from gradestack_plugins.tau_bench.grader import reward_of
from gradestack_plugins.tau_bench.reader import is_result, trial_name
from gradestack_plugins.tau_bench.similarity import Budget, TooMuchWork, similarity

STATISTICS = "tau_statistics.txt"
METRICS = "tau_metrics.json"
TOLERANCE = 1e-6
"""Of the runner; the script takes rewards above 0.9 for successes."""
LARGEST_K = 100
"""The runner has no such limit: of files with thousands of trials its figures would take hours."""

BLOCK = """
=== SCORING STATISTICS ===
Total tasks: {n}
{left_out}
Binary Scoring:
  Success rate: {binary[successes]}/{binary[n]} ({rate})
  Average: {binary_average}

Partial Scoring:
  Average: {average}
  Min: {min}
  Max: {max}

Partial Score Distribution:
{histogram}
Interesting Cases:
{cases}"""


class Result(NamedTuple):
    """The results of the programs for one record."""

    task_id: int | str
    trial: int | str | None
    reward: float | None
    """None where it is no finite number: then both programs stop."""
    partial_score: float | None
    """None where the script stops."""


def extract_calls(traj: Any) -> list[tuple[Any, Any]]:
    """Return name and arguments of every tool call, whatever the role of its message."""
    calls = []
    for message in traj:
        for call in message.get("tool_calls") or ():
            function = call.get("function", {})
            arguments = parse_arguments(function.get("arguments", "{}"))
            calls.append((function.get("name", ""), arguments))
    return calls


def parse_arguments(text: Any) -> Any:
    """Return decoded arguments; ``{}`` of what is no JSON text, an object among it."""
    try:
        return loads(text) if isinstance(text, str) else {}
    except JsonProblem:
        return {}


def compute_partial_score(record: Mapping[str, Any]) -> float:
    """Return the partial score of a record.

    Raises:
        AttributeError, KeyError, RecursionError, TypeError: The script stops here.
        TooMuchWork: It would take hours.
    """
    if "error" in record.get("info", {}):
        return 0.0
    try:
        expected = record["info"]["task"]["actions"]
    except KeyError:
        return 0.0
    calls = extract_calls(record["traj"])
    if not expected:
        return 0.0 if calls else 1.0
    total, budget = 0.0, Budget()
    for action in expected:
        name = action.get("name", "")
        kwargs = action.get("kwargs", {})
        made = [arguments for called, arguments in calls if called == name]
        scores = [0.4 + 0.6 * similarity(kwargs, arguments, budget) for arguments in made]
        total += max(scores, default=0.0)
    return total / len(expected)


def read_result(record: Mapping[str, Any]) -> Result:
    """Return the results of both programs for a record."""
    try:
        partial_score = compute_partial_score(record)
    except (AttributeError, KeyError, RecursionError, TypeError, TooMuchWork):
        partial_score = None
    trial = trial_name(record.get("trial"))
    reward = record.get("reward")
    return Result(record["task_id"], trial, reward_of(reward), partial_score)


def average(values: Sequence[float]) -> float | None:
    """Return the mean, summed from left to right; None without values (the programs stop there)."""
    total = 0.0
    for value in values:
        total += value
    return total / len(values) if values else None


def compute_statistics(results: Sequence[Result]) -> dict[str, Any]:
    """Return the script's statistics, of the results that have a partial score."""
    scored = [result for result in results if result.partial_score is not None]
    scores = [result.partial_score or 0.0 for result in scored]
    rewards = [result.reward for result in scored if result.reward is not None]
    successes = [reward for reward in rewards if reward > SUCCESS_ABOVE]
    cases: dict[str, list[Result]] = {name: [] for name in CASES}
    for result in scored:
        if name := case_of(result.reward, result.partial_score):
            cases[name].append(result)
    n = len(scored)
    n_rewards = len(rewards)
    n_successes = len(successes)
    failed = len(results) - n
    average_reward = average(rewards)
    average_score = average(scores)
    least = min(scores, default=None)
    most = max(scores, default=None)
    histogram = make_histogram(Counter(scores))
    binary = {"n": n_rewards, "successes": n_successes, "average": average_reward}
    statistics = {
        "n": n,
        "failed": failed,
        "binary": binary,
        "average": average_score,
        "min": least,
        "max": most,
        "histogram": histogram,
    }
    cases_by_name = {name: list_cases(results) for name, results in cases.items()}
    return statistics | cases_by_name


def list_cases(results: Sequence[Result]) -> dict[str, Any]:
    """Return the number of interesting cases and the first of them."""
    first = results[:FIRST_CASES]
    shown = [{"id": str(result.task_id), "score": result.partial_score} for result in first]
    return {"total": len(results), "first": shown}


def compute_pass_hat_k(results: Sequence[Result]) -> dict[str, Any]:
    """Return the runner's figures.

    Tasks are divided by the number of distinct trials in the file: one that lacks a trial fails it,
    and a trial that stands twice counts twice. Records without a trial are numbered by task.
    """
    trials = set[Any]()
    n_of_task = Counter[Any]()
    successes = Counter[Any]()
    for task, trial, reward, _ in results:
        trials.add(("unnamed", n_of_task[task]) if trial is None else trial)
        n_of_task[task] += 1
        successes[task] += reward is not None and is_success(reward, TOLERANCE)
    n = len(trials)
    pass_hat_ks = {
        str(k): mean_combinations(list(successes.values()), n, k)
        for k in range(1, min(n, LARGEST_K) + 1)
    }
    rewards = [result.reward for result in results if result.reward is not None]
    avg_reward = average(rewards)
    return {"avg_reward": avg_reward, "num_trials": n, "pass_hat_ks": pass_hat_ks}


def mean_combinations(successes: Sequence[int], n: int, k: int) -> float | None:
    """Return the mean of C(c, k) / C(n, k) over tasks; None where it is beyond every float."""
    try:
        return average([comb(c, k) / comb(n, k) for c in successes])
    except OverflowError:
        return None


def statistics_block(statistics: Mapping[str, Any]) -> str:
    """Return the lines the script prints, beginning with an empty one.

    Args:
        statistics: Those of ``compute_statistics``, or the figures of ``partial_statistics``.
    """
    n = statistics["n"]
    failed = statistics["failed"]
    binary = statistics["binary"]
    left_out = f"Not scored: {failed}\n" if failed else ""
    if n > binary["n"]:
        left_out += f"Without reward: {n - binary['n']}\n"
    cases: list[str] = []
    for name, title in CASES.items():
        cases += case_lines(title, statistics[name])
    histogram = [bin_line(n, **entry) for entry in statistics["histogram"]]
    rate = percent(binary["successes"], binary["n"])
    shown = {name: number(statistics[name]) for name in ("average", "min", "max")}
    binary_average = number(binary["average"])
    return BLOCK.format(
        n=n,
        left_out=left_out,
        binary=binary,
        rate=rate,
        binary_average=binary_average,
        histogram="".join(histogram),
        cases="".join(cases),
        **shown,
    )


def bin_line(n: int, lower: float, upper: float, count: int, **_: Any) -> str:
    """Return the line of one bin of the histogram."""
    name = f"[{lower:.1f}-{upper:.1f})"
    if lower == upper:
        name = f"[{lower:.1f}]"
    return f"  {name}: {count:3d} tasks ({percent(count, n, 5)})\n"


def case_lines(title: str, cases: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of interesting cases and the first of them; nothing where there is none."""
    if cases["total"]:
        yield f"  {title}: {cases['total']} tasks\n"
    for case in cases["first"]:
        text = f"    Task {case['id']}: partial={case['score']:.2f}"
        yield terminal_line(text) + "\n"


def percent(count: int, total: int, width: int = 0) -> str:
    """Return a share with one decimal."""
    if total:
        return f"{count / total * 100:{width}.1f}%"
    return "n/a"


def number(value: float | None) -> str:
    """Return a figure with three decimals."""
    if value is None:
        return "n/a"
    return f"{value:.3f}"


def pass_hat_k_block(metrics: Mapping[str, Any]) -> str:
    """Return the lines the runner prints at its end."""
    values = metrics["pass_hat_ks"].items()
    lines = "".join(f"  k={k}: {value}\n" for k, value in values)
    return f"🏆 Average reward: {metrics['avg_reward']}\n📈 Pass^k\n{lines}"


def partial_name(name: str) -> str:
    """Return the script's output file of an input: ``.json`` becomes ``_partial.json``."""
    if ".json" in name:
        return name.replace(".json", "_partial.json")
    return f"{name}_partial.json"


def indent_json(value: Any) -> str:
    """Return the text of ``json.dumps(value, indent=2)``, sooner."""
    try:
        text = json.dumps(value)
        return msgspec.json.format(text, indent=2)
    except ValueError:  # NaN
        return json.dumps(value, indent=2)


class TauBenchProgram(Program):
    """``<input>_partial.json``, ``tau_statistics.txt`` and ``tau_metrics.json``.

    The first two are the partial scoring script's; the third holds its statistics, too, and the
    figures that tau-bench's runner prints. A record that is no result is written unchanged into the
    first and is in no figure; what is no JSON is left out.
    """

    reader = "tau_bench"
    title = "tau-bench"

    @override
    def run(self, program_input: ProgramInput) -> ProgramRun:
        results: list[Result] = []
        scored = []
        for record in read_values(program_input):
            if is_result(record):
                results.append(read_result(record))
                partial_score = results[-1].partial_score
                scored.append({**record, "partial_score": partial_score})
            else:
                scored.append(record)
        pass_hat_k = compute_pass_hat_k(results)
        metrics = {**pass_hat_k, "statistics": compute_statistics(results)}
        block = statistics_block(metrics["statistics"])
        path = program_input.input.path
        files = {
            partial_name(path.name): indent_json(scored),
            STATISTICS: block,
            METRICS: indent_json(metrics),
        }
        reliability = pass_hat_k_block(metrics)
        console = block + reliability
        figures = tuple(compare_figures(metrics, program_input.graders))
        return ProgramRun(files=files, console=console, figures=figures)


def read_values(program_input: ProgramInput) -> list[Any]:
    """Return the JSON values of the file; of the first tasks alone where the suite has a limit."""
    elements = read_records(program_input.input, layout="list")
    values = [element.value for element in elements if element.problem is None]
    tasks = {str(value["task_id"]): None for value in values if is_result(value)}
    first = list(tasks)[: program_input.max_samples]
    return [value for value in values if not is_result(value) or str(value["task_id"]) in first]


WHY_CALLS = (
    "the script reads no arguments program_input as an object, and no actions of act and react runs"
)
WHY_TRIALS = "the runner divides by the distinct trials of the file, and counts copies of a trial"


def compare_figures(
    metrics: Mapping[str, Any], graders: Mapping[str, Grader]
) -> Iterator[ProgramFigure]:
    """Yield the programs' figures, with the paths of ours."""
    keys = {metric: key for key, grader in graders.items() for metric in grader.metrics}
    reward = keys.get("pass_hat_k")
    partial = keys.get("partial_statistics")
    rows = [("Average reward", metrics["avg_reward"], f"{reward}.mean.mean", WHY_TRIALS)]
    for k, value in metrics["pass_hat_ks"].items():
        rows.append((f"Pass^{k}", value, f"{reward}.pass_hat_k.pass_hat_k.{k}", WHY_TRIALS))
    for name in ("average", "min", "max"):
        ours = f"{partial}.partial_statistics.{name}"
        statistic = metrics["statistics"][name]
        rows.append((f"Partial {name}", statistic, ours, WHY_CALLS))
    for label, value, ours, why in rows:
        yield ProgramFigure(label=label, value=value, figure=ours, why=why)

"""The script one writes instead.

The figures of the benchmark's suite by hand, for this one form of recording.

    python benchmarks/by_hand.py recording.jsonl [ROWS.jsonl]

Partial credit for expected calls, the check of the first call against its tool's schema, means with
standard errors clustered by task, and pass^k; with a second file a row per record, with the reason
of every point lost. It has what a script has: no odd input, no other format, no second core,
nothing to continue. ``throughput.py`` measures it beside gradestack, whose figures it must equal.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Calls = list[tuple[str, dict[str, Any] | None]]
"""Names and arguments; None where the text is no JSON."""
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
VERDICTS = ("tool_selection", "parameter_accuracy", "execution_success")
MOST_RUNS = 5
"""Highest k of pass^k."""


def similarity(expected: Any, actual: Any) -> float:
    """Return how much of ``expected`` is in ``actual``."""
    if expected == actual:
        return 1.0
    if isinstance(expected, dict) and isinstance(actual, dict):
        if not actual or not expected:
            return 0.0 if expected else 1.0
        total = 0.0
        for name, value in expected.items():
            if name in actual:
                total += similarity(value, actual[name])
        return total / len(expected)
    if isinstance(expected, list) and isinstance(actual, list):
        if not actual or not expected:
            return 0.0 if expected else 1.0
        total = 0.0
        for value in expected:
            total += max(similarity(value, one) for one in actual)
        return total / len(expected)
    return 0.0


def differences(
    expected: Any, actual: Any, call: str, pointer: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield where the similarity is lost."""
    if expected == actual:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name, value in expected.items():
            if name not in actual:
                yield {
                    "code": "missing",
                    "call": call,
                    "pointer": f"{pointer}/{name}",
                    "expected": value,
                }
            else:
                yield from differences(value, actual[name], call, f"{pointer}/{name}")
    else:
        yield {
            "code": "wrong",
            "call": call,
            "pointer": pointer,
            "expected": expected,
            "actual": actual,
        }


def accepted(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value is of its declared type."""
    kind = schema.get("type")
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind]) if kind in TYPES else True


def callable_with(
    arguments: Mapping[str, Any], name: str, tools: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether the called tool takes these arguments."""
    for tool in tools:
        function = tool["function"]
        if function["name"] == name:
            declared = function["parameters"]
            known = declared["properties"]
            for each in declared["required"]:
                if each not in arguments:
                    return False
            return all(
                each not in known or accepted(value, known[each])
                for each, value in arguments.items()
            )
    return False


class Totals:
    """What is added up over the records."""

    def __init__(self) -> None:
        self.partial: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        """Scores by model and task."""
        self.check: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.trials: defaultdict[str, set[int]] = defaultdict(set)
        self.expected = self.called = self.made = self.selected = self.fitting = self.executed = (
            self.broken
        ) = 0

    def figures(self) -> dict[str, Any]:
        """Return the figures."""
        right = {key: sum(score >= 1.0 for score in scores) for key, scores in self.partial.items()}
        tasks = Counter((len(self.trials[key[0]]), successes) for key, successes in right.items())
        most = min(MOST_RUNS, *(trials for trials, _ in tasks))
        return {
            "partial": clustered(self.partial),
            "successes": sum(right.values()),
            "pass_hat_k": {
                str(k): sum(
                    math.comb(c, k) / math.comb(n, k) * times for (n, c), times in tasks.items()
                )
                / len(right)
                for k in range(1, most + 1)
            },
            "calls": {
                "expected_calls": self.expected,
                "called": self.called,
                "made_calls": self.made,
            },
            "deepfabric": clustered(self.check),
            "correct": dict(
                zip(VERDICTS, (self.selected, self.fitting, self.executed), strict=True)
            ),
            "processing_errors": self.broken,
        }


def clustered(scores: Mapping[tuple[str, str], Sequence[float]]) -> dict[str, Any]:
    """Return the mean of all scores, and its standard error clustered by task, over all models."""
    tasks: defaultdict[str, list[float]] = defaultdict(list)
    for (_, task), found in scores.items():
        tasks[task] += found
    n, clusters = sum(map(len, tasks.values())), len(tasks)
    mean = math.fsum(score for each in tasks.values() for score in each) / n
    squares = math.fsum((sum(each) - len(each) * mean) ** 2 for each in tasks.values())
    stderr = math.sqrt(squares * clusters / (clusters - 1)) / n if clusters > 1 else None
    return {"n": n, "clusters": clusters, "mean": mean, "stderr": stderr}


def grade(path: Path, rows: Path | None = None) -> dict[str, Any]:
    """Grade a recording and return its figures.

    Args:
        path: The recording.
        rows: Where a row per record is written.
    """
    orjson, totals = importlib.import_module("orjson"), Totals()
    loads, dumps = orjson.loads, orjson.dumps
    out = None if rows is None else rows.open("wb")
    with path.open("rb") as file:
        for line in file:
            record = loads(line)
            made: Calls = []
            for call in record["predicted"]["calls"]:
                function = call["function"]
                try:
                    made.append((function["name"], loads(function["arguments"])))
                except ValueError:
                    made.append((function["name"], None))
            expected = record["expected"]["calls"]
            partial, reasons = credit(expected, made, totals, explain=out is not None)
            verdict = checked(expected, made, record["tools"], totals)
            check = 0.4 * verdict[0] + 0.35 * verdict[1] + 0.25 * verdict[2]
            key = record["model"], record["id"]
            totals.partial[key].append(partial)
            if (
                not made or made[0][1] is not None
            ):  # a call that cannot be read has failed, it has no score
                totals.check[key].append(check)
            totals.trials[key[0]].add(record["run"])
            if out is not None:
                kept = {name: record[name] for name in ("id", "model", "run", "input", "facets")}
                grades = {
                    "partial": partial,
                    "deepfabric": check,
                    **dict(zip(VERDICTS, verdict, strict=True)),
                }
                row = {
                    **kept,
                    "expected": expected,
                    "made": made,
                    "grades": grades,
                    "reasons": reasons,
                }
                out.write(dumps(row) + b"\n")
    if out is not None:
        out.close()
    return totals.figures()


def credit(
    expected: Sequence[Mapping[str, Any]], made: Calls, totals: Totals, *, explain: bool
) -> tuple[float, list[dict[str, Any]]]:
    """Return the partial score, and why it is not more."""
    total, reasons = 0.0, []
    for wanted in expected:
        name, arguments = wanted["name"], wanted["arguments"]
        best, closest = -1.0, None
        for called, given in made:
            if called == name:
                found = similarity(arguments, given or {})
                if found > best:
                    best, closest = found, given or {}
                    if found == 1.0:
                        break
        if closest is not None:
            totals.called += 1
            total += 0.4 + 0.6 * best
        if explain and best < 1.0:
            if closest is None:
                reasons.append({"code": "not_called", "call": name, "expected": arguments})
            else:
                reasons.extend(differences(arguments, closest, name))
    totals.expected += len(expected)
    totals.made += len(made)
    return (total / len(expected) if expected else float(not made)), reasons


def checked(
    expected: Sequence[Mapping[str, Any]],
    made: Calls,
    tools: Sequence[Mapping[str, Any]],
    totals: Totals,
) -> tuple[bool, bool, bool]:
    """Return the verdicts on the first call."""
    if not made:
        return False, False, False
    name, arguments = made[0]
    if arguments is None:
        totals.broken += 1
        return False, False, False
    selected = name == expected[0]["name"]
    fitting = callable_with(arguments, name, tools)
    executed = selected and fitting
    totals.selected += selected
    totals.fitting += fitting
    totals.executed += executed
    return selected, fitting, executed


# --------------------------------------------------------------------------------------------------


def figures_of(report: Any) -> dict[str, Any]:
    """Return the same figures from the report of a run of gradestack."""
    partial, deepfabric = report.aggregates["partial"], report.aggregates["deepfabric"]
    reliable, verdicts = partial["pass_hat_k"], deepfabric["deepfabric"]
    names = ("n", "clusters", "mean", "stderr")
    most = {str(k) for k in range(1, MOST_RUNS + 1)}
    return {
        "partial": {name: partial["mean"][name] for name in names},
        "successes": report.metrics["by_metric"]["partial"]["passed_attempts"],
        "pass_hat_k": {k: value for k, value in reliable["pass_hat_k"].items() if k in most},
        "calls": {
            name: partial["partial_statistics"][name]
            for name in ("expected_calls", "called", "made_calls")
        },
        "deepfabric": {name: deepfabric["mean"][name] for name in names},
        "correct": {name: verdicts[f"{name}_correct"] for name in VERDICTS},
        "processing_errors": verdicts["processing_errors"],
    }


def unequal(ours: Mapping[str, Any], theirs: Mapping[str, Any], place: str = "") -> list[str]:
    """Return where two sets of figures differ.

    Counts at all, fractions by more than 1e-12 of their size.
    """
    if ours.keys() != theirs.keys():
        return [f"{place}: {sorted(ours)} and {sorted(theirs)}"]
    found = []
    for name, value in ours.items():
        other = theirs[name]
        if isinstance(value, Mapping):
            found += unequal(value, other, f"{place}/{name}")
        elif value != other and not _near(value, other):
            found.append(f"{place}/{name}: {value!r} and {other!r}")
    return found


def _near(one: Any, other: Any) -> bool:
    return (
        isinstance(one, float)
        and isinstance(other, float)
        and math.isclose(one, other, rel_tol=1e-12)
    )


if __name__ == "__main__":
    print(json.dumps(grade(*map(Path, sys.argv[1:3])), indent=2))

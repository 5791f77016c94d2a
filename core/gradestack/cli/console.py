"""What the command line prints: progress, the results block, the verdict."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gradestack.cli.progress_line import shown
from gradestack.gates.lines import gate_line
from gradestack.grading.progress import ProgressCallback
from gradestack.output.terminal import terminal_line
from gradestack.report import Report

_BAR = 40


def _number(value: Any) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def verdict(passed: bool) -> str:
    """Return the verdict line."""
    return "✓ PASSED" if passed else "✗ FAILED"


def say(text: str) -> None:
    """Print lines to standard output; when nobody reads them any more, go on, so that the run is not lost."""
    try:
        print("\n".join(map(terminal_line, text.split("\n"))), flush=True)  # noqa: T201 - this module is the printer
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def progress(name: str, *, quiet: bool) -> Iterator[ProgressCallback]:
    """Say what is run and show that work goes on; yield the function to call with the run's progress."""
    if quiet:
        yield lambda _: None
        return
    say(f"Running evaluation: {terminal_line(name)}")
    with shown() as watcher:
        yield watcher


def _models(rows: list[Mapping[str, Any]]) -> list[str]:
    """Return the block "Results by model"; nothing for a single unnamed one."""
    if not rows:
        return []
    lines = ["", "Results by model:"]
    width = max(len(str(row["model_name"])) for row in rows)
    for row in rows:
        attempted = row["total_attempted"]
        share = f" ({100 * row['passed_samples'] / attempted:.1f}%)" if attempted else ""
        lines.append(
            f"  {row['model_name'] or 'unnamed':<{width}}  attempted {attempted}/{row['total']}  "
            f"avg {_number(row['avg_score_attempted'])}  passed {row['passed_samples']}{share}"
        )
    return lines


def _runs(runs: Mapping[str, Any] | None) -> list[str]:
    """Return the block over several runs."""
    if not runs:
        return []
    number, block = len(runs["runs"]), runs["avg_score_attempted"]
    lines = [f"Runs: {number}", f"  Avg score: mean {_number(block['mean'])}, std {_number(block['std'])}"]
    if "passed" in runs:
        share = 100 * runs["passed"] / number
        lines.append(f"  Runs passed: {runs['passed']}, failed: {runs['failed']} ({share:.1f}%); rule: {runs['rule']}")
    return [*lines, ""]


def results(report: Report) -> str:
    """Return the results block: totals, average over attempted and total, passes, gates, and what needs attention."""
    metrics = report.metrics
    total, attempted = metrics["total"], metrics["total_attempted"]
    share = f" ({100 * metrics['passed_attempts'] / attempted:.1f}%)" if attempted else ""
    lines = [
        f"{'━' * _BAR} {total}/{total} 100%" if "incomplete" not in report.summary else f"{total} samples, interrupted",
        "",
        "Results:",
        f"  Total samples: {total}",
        f"  Attempted: {attempted}",
        f"  Avg score: {_number(metrics['avg_score_total'])} (attempted: {_number(metrics['avg_score_attempted'])})",
        f"  Passed: {metrics['passed_attempts']}{share}",
    ]
    if len(metrics["by_metric"]) > 1:
        lines += ["", "By grader:"]
        width = max(map(len, metrics["by_metric"]))
        for key, figures in metrics["by_metric"].items():
            states = metrics["states"][key]
            other = ", ".join(f"{n} {state}" for state, n in states.items() if n and state != "graded")
            average = _number(figures["avg_score_attempted"])
            lines.append(f"  {key:<{width}}  avg {average}  graded {states['graded']}{f', {other}' if other else ''}")
    lines += _models(metrics["per_model"] or [])
    if report.gates or report.summary.get("runs"):
        lines.append("")
    lines += _runs(report.summary.get("runs"))
    lines += map(gate_line, report.gates)
    bad = report.summary["bad_records"]
    if bad["count"]:
        lines.append(f"{bad['count']} bad record{'s' if bad['count'] > 1 else ''} left out:")
        for entry in bad["listed"][:3]:
            place = entry["line"] if entry["line"] is not None else f"record {entry['ordinal']}"
            lines.append(f"  {entry['file']}:{place}: {entry['reason']}")
        if bad["count"] > 3:
            lines.append(f"  and {bad['count'] - 3} more, in summary.json")
    lines += [f"Warning: {text}" for text in report.summary["warnings"]]
    if "incomplete" in report.summary:
        lines.append(f"Incomplete: {report.summary['incomplete']}")
    return "\n".join(map(terminal_line, lines))


def files(report: Report) -> str:
    """Return where the results and pages are."""
    lines = [f"Results: {report.path}", *(f"Report:  {page}" for page in report.pages)]
    return "\n".join(map(terminal_line, lines))

"""What the command line prints: progress, the results block, the verdict."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

from gradestack.cli.progress_line import shown
from gradestack.errors import printable
from gradestack.grading.progress import Progress, ProgressCallback
from gradestack.report import Report

_BAR = 40


def _number(value: Any) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def verdict(passed: bool) -> str:
    """Return the verdict line."""
    return "✓ PASSED" if passed else "✗ FAILED"


def say(text: str) -> None:
    """Print to standard output; when nobody reads it any more, go on without it, so that the run is not lost."""
    try:
        print(printable(text), flush=True)  # noqa: T201 - this module is the printer
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def plugins_apart() -> Iterator[None]:
    """Have everything that is printed meanwhile go to standard error: standard output is for results.

    Graders print; so may libraries of theirs in other languages, and processes they start, which know the descriptor
    alone.
    """
    ours = sys.stdout
    kept = _copy_of_output()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            with suppress(OSError, ValueError):
                ours.flush()  # what was written by way of an older name for it
            os.dup2(kept, 1)
            os.close(kept)


def _copy_of_output() -> int | None:
    """Let what is written to standard output go to standard error; return the descriptor of where it went before.

    None where standard output is not the process's own, or closed.
    """
    try:
        if sys.stdout is None or sys.stdout.fileno() != 1:
            return None
        sys.stdout.flush()
        kept = os.dup(1)
    except (OSError, ValueError):
        return None
    with suppress(OSError):  # standard error may be closed
        os.dup2(2, 1)
    return kept


@contextmanager
def progress(name: str, *, quiet: bool) -> Iterator[ProgressCallback]:
    """Say what is run and show that work goes on; yield the function to call with the run's progress."""
    if quiet:
        yield lambda _: None
        return
    say(f"Running evaluation: {name}")
    with shown() as watcher:
        yield _with_resumed(watcher)


def _with_resumed(watcher: ProgressCallback) -> ProgressCallback:
    """Return what says once, as soon as all of it is known, how much is taken over from an unfinished run."""
    said: list[int] = []

    def note(progress: Progress) -> None:
        if progress.resumed and not said and (progress.samples > progress.resumed or progress.phase != "grading"):
            said.append(progress.resumed)
            print(  # noqa: T201 - this module is the printer
                f"{progress.resumed:,} samples are taken over from the unfinished run", file=sys.stderr, flush=True
            )
        watcher(progress)

    return note


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
    for gate in report.gates:
        outcome = {"passed": "PASSED", "failed": "FAILED", "no_data": "NO DATA"}[gate["outcome"]]
        note = "" if gate["outcome"] == "passed" else f" (actual: {_number(gate['actual'])})"
        lines.append(f"Gate ({gate['text']}): {outcome}{note}")
    bad = report.summary["bad_records"]
    if bad["count"]:
        lines.append(f"{bad['count']} bad record{'s' if bad['count'] > 1 else ''} left out:")
        for entry in bad["listed"][:3]:
            place = entry["line"] if entry["line"] is not None else f"record {entry['ordinal']}"
            lines.append(f"  {entry['file']}:{place}: {entry['reason']}")
        if bad["count"] > 3:
            lines.append(f"  and {bad['count'] - 3} more, in summary.json")
    lines += [f"Warning: {text}" for text in [*report.summary["warnings"], *report.header.get("warnings", [])]]
    if "incomplete" in report.summary:
        lines.append(f"Incomplete: {report.summary['incomplete']}")
    return printable("\n".join(lines))


def files(report: Report) -> str:
    """Return where the results and pages are."""
    lines = [f"Results: {report.path}"]
    return "\n".join([*lines, *(f"Report:  {page}" for page in report.pages)])

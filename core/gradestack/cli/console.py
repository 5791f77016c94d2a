"""What the command line prints: progress, the results block, the verdict."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import timedelta
from functools import partial
from typing import Any

from gradestack.api import Figure
from gradestack.declared import Declarations, which_is_better, with_unit
from gradestack.gates.texts import gate_lines
from gradestack.grading.loop import Progress, ProgressCallback
from gradestack.jsonio.values import as_list, as_map, as_number, as_text
from gradestack.model import Outcome
from gradestack.outcome.causes import NO_REASON, Cause, causes_of_run, most_often
from gradestack.output import coloured, counted, terminal_line
from gradestack.report import Report

_PASSED, _FAILED = "✓ PASSED", "✗ FAILED"
_BAR = 40
_MOST_CAUSES, _LONGEST_CAUSE = 3, 80
_MOST_MODELS = 50


def verdict(report: Report) -> str:
    """Return the verdict line, with what decides where it is not the gates: the runs, or the
    original program.
    """
    passed = bool(report.passed and not report.all_failed)
    decided = report.program_verdict
    if decided is not None:
        word = _PASSED if decided[0] and not report.all_failed else _FAILED
        return f"{word} (as {decided[1]} decides)"
    word = _PASSED if passed else _FAILED
    runs = report.summary.get("runs") or {}
    if "passed" not in runs or all(gate["passed"] for gate in report.gates) == report.passed:
        return word
    return f"{word} ({runs['passed']} of {len(runs['runs'])} runs passed, {_must(runs['rule'])})"


def _must(rule: Any) -> str:
    words = {"all": "all must", "any": "one must", "majority": "more than half must"}
    return words.get(rule, f"{rule} must")


def say(text: str) -> None:
    """Print lines to standard output.

    When nobody reads them any more, go on, so that the run is not lost.
    """
    try:
        print(  # noqa: T201
            *(coloured(terminal_line(each), sys.stdout) for each in text.split("\n")),
            sep="\n",
            flush=True,
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def plugins_apart() -> Iterator[None]:
    """Redirect what graders and their processes print to standard error.

    Standard output is for results.
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
    """Redirect standard output to standard error.

    Return a copy of its descriptor, None where it is not ours.
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


def _graders(report: Report) -> list[str]:
    metrics, failures = report.metrics, report.summary.get("failures", {})
    lines = []
    width = max(map(len, metrics["by_metric"]))
    for key, figures in metrics["by_metric"].items():
        states = metrics["states"][key]
        other = ", ".join(f"{n} {state}" for state, n in states.items() if n and state != "graded")
        average = number(figures["avg_score_attempted"])
        lines.append(
            f"  {key:<{width}}  avg {average}  graded "
            f"{states['graded']}{f', {other}' if other else ''}"
        )
    for key, failure in sorted(failures.items()):
        first = failure.get("first")
        told = f", first: {first['reason']} at {first['at']}" if first else ""
        lines.append(f"  {key}: {failure['count']} failed{told}")
    shown = (
        len(metrics["by_metric"]) > 1
        or failures
        or not report.summary.get("headline", {"letta": True})["letta"]
    )
    return ["", "By grader:", *lines] if shown else []


def _models(report: Report) -> list[str]:
    rows = report.metrics["per_model"] or []
    width = max((len(str(row["model_name"])) for row in rows), default=0)
    outcome = report.summary.get("outcome") or {}
    counts = {each["model_name"]: each for each in outcome.get("per_model") or ()}
    lines = []
    for row in rows:
        attempted, passed, name = (
            row["total_attempted"],
            row["passed_samples"],
            row["model_name"] or "unnamed",
        )
        average, rate = (
            number(row["avg_score_attempted"]),
            f"{100 * passed / attempted:.1f}%" if attempted else "n/a",
        )
        line = f"  {name:<{width}}  attempted {attempted}/{row['total']}  avg {average}"
        if _in_lettas_words(report):
            line = f"  {name:<{width}} - Avg: {average}, Pass: {rate}"
        elif counts:
            line += f"  {outcome['words']['passed']} {share(counts[row['model_name']])}"
        lines.append(line)
    return ["", "Results by model:", *_first(lines)] if lines else []


def _first(lines: list[str]) -> list[str]:
    """Return the lines of the first models, and how many others there are."""
    others = len(lines) - _MOST_MODELS
    if others <= 0:
        return lines
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return [*lines[:_MOST_MODELS], f"{indent}and {others} more, in summary.json"]


def _causes(report: Report) -> list[str]:
    """Return why samples failed: the three largest causes, and how many samples have others.

    Without an outcome nothing has failed by a verdict: then it is why samples did not score 1.
    """
    causes = causes_of_run(report)
    if not causes:
        return []
    has_outcome = report.summary.get("outcome") is not None
    if not has_outcome and {cause.name for cause in causes} == {NO_REASON}:
        return []
    listed, failed = causes[:_MOST_CAUSES], sum(cause.samples for cause in causes)
    others = sum(cause.samples for cause in causes[_MOST_CAUSES:])
    lines = [(cause.samples, f"{_cut(cause.name)}{_most_often(cause)}") for cause in listed]
    if others:
        lines.append((others, f"others ({counted(len(causes) - len(listed), 'cause')})"))
    width = len(str(failed))
    failure = "failed" if has_outcome else "did not score 1"
    return [
        "",
        f"Why {failed} of {report.metrics['total']} samples {failure}:",
        *(f"  {n:>{width}} ({100 * n / failed:.1f}%)  {text}" for n, text in lines),
    ]


def _programs(report: Report) -> Iterator[str]:
    """Yield what the original programs print of the same files."""
    for entry in map(as_map, as_list(report.summary.get("programs"))):
        of = f" of {as_text(entry['input'])}" if "input" in entry else ""
        yield ""
        yield f"As {as_text(entry.get('title'))} computes it{of}:"
        printed = as_text(entry.get("console")).splitlines()
        for figure in () if printed else map(as_map, as_list(entry.get("figures"))):
            value = as_number(figure.get("value"))
            shown = "n/a" if value is None else f"{value:.3f}"
            printed.append(f"  {as_text(figure.get('label'))}: {shown}")
        yield from printed
        files = ", ".join(f"native/{name}" for name in as_list(entry.get("files")))
        if files:
            yield f"  in {files}"


def _most_often(cause: Cause) -> str:
    often = most_often(cause)
    if often is None:
        return ""
    word, path, samples = often
    name = ".".join(map(_cut, path))
    share = "" if samples == cause.samples else f" ({samples} of {cause.samples})"
    return f", {word} {name}{share}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_CAUSE else f"{name[: _LONGEST_CAUSE - 1]}…"


def _in_lettas_words(report: Report) -> bool:
    headline = report.summary.get("headline")
    return headline is None or headline["letta"]


def _runs(runs: Mapping[str, Any] | None) -> list[str]:
    if not runs:
        return []
    of, average = len(runs["runs"]), runs["avg_score_attempted"]
    lines = [
        f"Runs: {of}",
        f"  Avg score: mean {number(average['mean'])}, std {number(average['std'])}",
    ]
    if average["std"] is not None and of > 1:
        ends = runs.get("uncertainty") or {}
        known = (
            f"{ends['low']:.3f} to {ends['high']:.3f}"
            if ends.get("low") is not None
            else "not computed"
        )
        why = f" ({ends['reason']})" if ends.get("reason") else ""
        spread = (
            f"run to run {average['min']:.3f} to {average['max']:.3f} (sd "
            f"{average['std']:.3f}), same tasks"
        )
        lines.append(f"  {spread}; 95% interval of the score: {known}{why}")
    if "passed" in runs:
        rate = 100 * runs["passed"] / of
        lines.append(
            f"  Runs passed: {runs['passed']}, failed: {runs['failed']} ({rate:.1f}%); rule: "
            f"{runs['rule']}"
        )
    return [*lines, ""]


def _bad_records(bad: Mapping[str, Any]) -> list[str]:
    if not bad["count"]:
        return []
    lines = [f"{bad['count']} bad record{'s' if bad['count'] > 1 else ''} left out:"]
    for entry in bad["listed"][:3]:
        place = entry["line"] if entry["line"] is not None else f"record {entry['ordinal']}"
        lines.append(f"  {entry['file']}:{place}: {entry['reason']}")
    return (
        [*lines, f"  and {bad['count'] - 3} more, in summary.json"] if bad["count"] > 3 else lines
    )


def results(report: Report) -> str:
    """Return the results block.

    Headline, states by grader, models, gates, and what needs attention.
    """
    total = report.metrics["total"]
    lines = [
        f"{'━' * _BAR} {total}/{total} 100%"
        if "incomplete" not in report.summary
        else f"{total} samples, interrupted",
        "",
        *block(report),
        *_graders(report),
        *_models(report),
        *_causes(report),
        *_programs(report),
    ]
    rest = [
        *_runs(report.summary.get("runs")),
        *[
            line
            for gate in report.gates
            for line in gate_lines(
                gate,
                apart=_in_lettas_words(report),
                over_runs=bool(report.summary.get("runs")),
            )
        ],
        *_bad_records(report.summary["bad_records"]),
        *report.header.get("notes", []),
        *(
            f"Warning: {each}"
            for each in [*report.summary["warnings"], *report.header.get("warnings", [])]
        ),
        *(
            [f"Incomplete: {report.summary['incomplete']}"]
            if "incomplete" in report.summary
            else []
        ),
    ]
    return "\n".join(map(terminal_line, [*lines, *([""] if rest else []), *rest]))


def files(report: Report) -> str:
    """Return where the results and pages are."""
    return "\n".join(
        map(
            terminal_line,
            [f"Results: {report.path}", *(f"Report:  {page}" for page in report.pages)],
        )
    )


_MOST_IN_A_ROW = 8
"""Figures of a map, such as pass^k by k, that are printed; of more, the first and the last are."""
_BANDS = (
    (1.0, "perfect"),
    (0.8, "very good"),
    (0.6, "good"),
    (0.4, "acceptable"),
    (0.2, "poor"),
    (0.0, "failed"),
)
"""Score bands of letta-evals' guide; the lower bound belongs to the band."""


def number(value: Any) -> str:
    """Return an average with two digits; n/a for none."""
    return "n/a" if value is None else f"{value:.2f}"


def block(report: Report) -> Iterator[str]:
    """Yield the lines of the results block.

    That of letta-evals' guide, what the headline declares, or both.
    """
    found = report.summary.get("headline")
    yield "Results:"
    if _in_lettas_words(report):
        yield from _letta(report, bands=found is not None and found["letta"])
    if found is not None and not found["letta"]:
        outcome, figures = report.summary["outcome"], found["figures"]
        for figure in figures:
            if "corrects" in figure:
                yield from _corrected(figure, outcome)
        yield from _outcome(report.summary)
        others = [figure for figure in figures if "corrects" not in figure]
        yield from _figures(others, Declarations(report.header))
    yield from _statements(report)


def _statements(report: Report) -> Iterator[str]:
    """Yield the sentences that metrics say of their figures."""
    for metrics in as_map(report.metrics.get("aggregates")).values():
        texts = [text for figures in metrics.values() for text in figures.get("statements", ())]
        yield from (f"  {text}" for text in dict.fromkeys(texts))


def _letta(report: Report, *, bands: bool) -> Iterator[str]:
    metrics = report.metrics
    attempted, passed, average = (
        metrics["total_attempted"],
        metrics["passed_attempts"],
        metrics["avg_score_attempted"],
    )
    yield f"  Total samples: {metrics['total']}"
    yield f"  Attempted: {attempted}"
    yield f"  Avg score: {number(metrics['avg_score_total'])} (attempted: {number(average)})"
    yield f"  Passed: {passed}{f' ({100 * passed / attempted:.1f}%)' if attempted else ''}"
    if rule := report.summary.get("pass_rule"):
        yield f"  Passed means: {rule}, of {attempted} attempted"
    if bands and average is not None:
        word = next((name for bound, name in _BANDS if average >= bound), _BANDS[-1][1])
        yield f"  Score band: {word}"


def _corrected(figure: Mapping[str, Any], outcome: Mapping[str, Any]) -> Iterator[str]:
    """Yield the share of successes as labels correct it, beside the share itself."""
    share_itself = outcome["share"]
    raw = "" if share_itself is None else f"; {figure['corrects']} {100 * share_itself:.1f}%"
    models = {name or "unnamed": each for name, each in figure.get("models", {}).items()}
    if not models:
        between = " " if figure["value"] is not None else ": "
        yield f"  {figure['label']}{between}{_percent(figure)}{raw}"
        return
    yield f"  {figure['label']}:"
    width = max(map(len, models))
    yield from _first([f"    {name:<{width}}  {_percent(each)}" for name, each in models.items()])


def _percent(figure: Mapping[str, Any]) -> str:
    """Return a share as ``60.3% (95% interval 51.6 to 68.4%)``, or why it is not known."""
    value, interval = figure["value"], figure.get("interval") or {}
    if value is None:
        return f"not known ({figure['reason']})"
    return f"{100 * value:.1f}%{_percent_interval(interval)}"


def _percent_interval(interval: Mapping[str, Any]) -> str:
    if interval.get("low") is None:
        return f" (no interval: {interval['reason']})" if interval.get("reason") else ""
    ends = f"{100 * interval['low']:.1f} to {100 * interval['high']:.1f}%"
    return f" ({100 * interval['confidence']:.6g}% interval {ends})"


def _outcome(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the share of runs that passed, and how many it leaves out as they have no verdict."""
    outcome = summary["outcome"]
    if outcome is None:
        return
    word, graded = outcome["words"]["passed"], outcome["passed"] + outcome["failed"]
    rule = f"; {outcome['rule']}" if graded else ""
    errors = as_map(summary["metrics"]["states"].get(outcome["grader"])).get(Outcome.FAILED, 0)
    left_out = f"; {errors} more ended in an error, in no rate" if graded and errors else ""
    yield f"  {word[:1].upper()}{word[1:]}: {share(outcome)}{rule}{left_out}"


def share(counts: Mapping[str, Any]) -> str:
    """Return ``31 of 52 (59.6%; 95% interval 44.7 to 73.0%)``; ``no result`` of nothing."""
    passed = counts["passed"]
    of, interval = passed + counts["failed"], counts.get("share_interval") or {}
    if interval.get("low") is not None:
        ends = f"{100 * interval['low']:.1f} to {100 * interval['high']:.1f}%"
        sure = f"; {100 * interval['confidence']:.6g}% interval {ends}"
    else:
        sure = f"; no interval: {interval['reason']}" if interval.get("reason") else ""
    return f"{passed} of {of} ({100 * passed / of:.1f}%{sure})" if of else "no result"


def _figures(figures: list[Mapping[str, Any]], declared: Declarations) -> Iterator[str]:
    for figure in figures:
        models = {name or "unnamed": each for name, each in figure.get("models", {}).items()}
        meaning = declared.at(figure["figure"])
        unit, better = (
            ("", "") if meaning is None else (meaning.unit, which_is_better(meaning.better))
        )
        note = f", {better}" if better else ""
        of_runs = meaning is None or _is_of_runs(meaning)
        if models:
            yield f"  {figure['label']}{note}:"
            width = max(map(len, models))
            yield from _first(
                [
                    f"    {name:<{width}}  {_estimate(each, unit, of_runs=of_runs)}"
                    for name, each in models.items()
                ]
            )
        else:
            estimate = _estimate(figure, unit, of_runs=of_runs)
            yield f"  {figure['label']}: {estimate}{note}"


def _is_of_runs(meaning: Figure) -> bool:
    """Return whether the number that a figure is of counts runs, and not calls, say."""
    return not meaning.divisor or bool(meaning.samples) or "run" in meaning.divisor


def _estimate(figure: Mapping[str, Any], unit: str, *, of_runs: bool) -> str:
    value, interval = figure["value"], figure.get("interval") or {}
    if value is None:
        return f"n/a ({figure['reason']})"
    if isinstance(value, Mapping):
        return _row(value, interval)
    return f"{with_unit(_figure(value), unit)}{_interval(interval, whole=True, of_runs=of_runs)}"


def _row(values: Mapping[str, Any], intervals: Mapping[str, Any]) -> str:
    shown = [
        f"{key}: {_figure(value)}{_interval(intervals.get(key) or {})}"
        for key, value in values.items()
    ]
    if len(shown) > _MOST_IN_A_ROW:
        shown = [shown[0], "…", shown[-1]]
    return ", ".join(shown)


def _figure(value: Any) -> str:
    return "n/a" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"


def _interval(interval: Mapping[str, Any], *, whole: bool = False, of_runs: bool = True) -> str:
    """Return an interval, ``whole`` with the tasks it is of, and the runs if it is of any.

    Why there is none where it says so.
    """
    if interval.get("low") is None or interval.get("high") is None:
        reason = interval.get("reason")
        return f" (no interval: {reason})" if whole and reason else ""
    confidence = interval.get("confidence")
    named = (
        f"{100 * confidence:.6g}% interval "
        if confidence is not None
        else "interval of unknown confidence "
    )
    known = f"; {_extent(interval, of_runs=of_runs)}" if whole and "method" in interval else ""
    return f" ({named}{interval['low']:.3f} to {interval['high']:.3f}{known})"


def _extent(interval: Mapping[str, Any], *, of_runs: bool) -> str:
    """Return what an interval is made of: ``50 tasks, 200 runs``."""
    runs, tasks = interval["n"], interval["clusters"]
    return f"{tasks} tasks" if runs == tasks or not of_runs else f"{tasks} tasks, {runs} runs"


_PLAIN_EVERY = 10.0
"""Seconds between progress lines when standard error is not a terminal."""
_LIVE_EVERY = 0.1


class Meter:
    """Progress of a run as a line of text."""

    def __init__(self) -> None:
        self._begun = self._counted = time.monotonic()
        self._share = self._before = 0.0  # of the input: graded, and that by earlier attempts

    def line(self, progress: Progress) -> str:
        """Return how far the run is.

        ``12,800 samples graded, 6,400/s, about 0:00:20 left; 3 failed; 1 bad record``.
        """
        text, fresh = f"{progress.samples:,} samples graded", progress.samples - progress.resumed
        if progress.phase != "grading":
            return f"{text}; writing {progress.phase}"
        now, share = time.monotonic(), progress.share or 0.0
        if share != self._share:  # a range is finished
            self._share, self._counted = share, now
        if progress.resumed and not fresh:
            self._begun, self._before = now, share
        seconds = now - self._begun
        if fresh and seconds >= 1:
            text += f", {fresh / seconds:,.0f}/s"
        if self._before < share < 1:
            left = (self._counted - self._begun) * (1 - share) / (share - self._before) - (
                now - self._counted
            )
            text += f", about {timedelta(seconds=max(1, round(left)))} left"
        others = [
            f"{number:,} {state}"
            for state, number in progress.states.items()
            if number and state != "graded"
        ]
        bad = (
            [f"{progress.bad:,} bad record{'s' if progress.bad > 1 else ''}"]
            if progress.bad
            else []
        )
        return "; ".join([text, *([", ".join(others)] if others else []), *bad])


@contextmanager
def progress(name: str, *, quiet: bool) -> Iterator[ProgressCallback]:
    """Print what is run; yield what to call with its progress, which is shown on standard error.

    It is live on a terminal, a line every ten seconds elsewhere; how much is taken over from an
    unfinished run is said once, as soon as all of it is known.
    """
    if quiet:
        yield lambda _: None
        return
    say(f"Running evaluation: {terminal_line(name)}")
    meter, last, resumed = Meter(), time.monotonic(), 0
    with _bar() as update:

        def note(now: Progress) -> None:
            nonlocal last, resumed
            if (
                now.resumed
                and not resumed
                and (now.samples > now.resumed or now.phase != "grading")
            ):
                resumed = now.resumed
                _note(f"{resumed:,} samples are taken over from the unfinished run")
            text, waited = meter.line(now), time.monotonic() - last
            if update is not None and (now.phase != "grading" or waited > _LIVE_EVERY):
                update(total=now.share and 1.0, completed=now.share or 0.0, description=text)
            elif update is None and waited > _PLAIN_EVERY:
                _note(f"  {text}")
            else:
                return
            last = time.monotonic()

        yield note


def _note(line: str) -> None:
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this module is the printer


@contextmanager
def _bar() -> Iterator[Callable[..., None] | None]:
    """Yield what moves a bar on a terminal; None elsewhere."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - for a terminal alone
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (
        SpinnerColumn(),
        BarColumn(_BAR),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield partial(bar.update, bar.add_task("", total=None))

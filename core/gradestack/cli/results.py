"""The results block that the command line prints, and the verdict line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradestack.api import Figure
from gradestack.declared import Declarations, which_is_better, with_unit
from gradestack.gates.texts import gate_lines
from gradestack.jsonio.values import as_list, as_map, as_number, as_text
from gradestack.model import Outcome
from gradestack.outcome.causes import NO_REASON, Cause, causes_of_run, most_often
from gradestack.output import counted, state_text, terminal_line
from gradestack.report import Report

_PASSED, _FAILED = "✓ PASSED", "✗ FAILED"
_BAR_WIDTH = 40
_MOST_CAUSES, _LONGEST_CAUSE = 3, 80
_MOST_MODELS = 50
_MOST_BAD_RECORDS = 3
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
_RUNS_MUST = {"all": "all must", "any": "one must", "majority": "more than half must"}


def verdict(report: Report) -> str:
    """Return the verdict line.

    It names what decides where that is not the gates: the runs, or the original program.
    """
    program = report.program_verdict
    has_passed = report.passed if program is None else program[0]
    word = _PASSED if has_passed and not report.all_failed else _FAILED
    if program is not None:
        return f"{word} (as {program[1]} decides)"
    runs = report.summary.get("runs") or {}
    all_gates_passed = all(gate["passed"] for gate in report.gates)
    if "passed" not in runs or all_gates_passed == report.passed:
        return word
    rule = _RUNS_MUST.get(runs["rule"], f"{runs['rule']} must")
    return f"{word} ({runs['passed']} of {len(runs['runs'])} runs passed, {rule})"


def results(report: Report) -> str:
    """Return the results block: headline, graders, models, causes, gates and warnings."""
    summary = report.summary
    total = report.metrics["total"]
    is_complete = "incomplete" not in summary
    bar = f"{'━' * _BAR_WIDTH} {total}/{total} 100%"
    lines = [bar if is_complete else f"{total} runs, interrupted", "", "Results:"]
    lines += _headline_lines(report)
    lines += _grader_lines(report)
    lines += _model_lines(report)
    lines += _cause_lines(report)
    lines += _program_lines(report)
    runs = summary.get("runs") or {}
    notes = _run_lines(runs)
    for gate in report.gates:
        notes += gate_lines(gate, apart=summary["headline"]["letta"], over_runs=bool(runs))
    notes += _bad_record_lines(summary["bad_records"])
    notes += report.header.get("notes", ())
    warnings = [*summary["warnings"], *report.header.get("warnings", ())]
    notes += [f"Warning: {warning}" for warning in warnings]
    if not is_complete:
        notes.append(f"Incomplete: {summary['incomplete']}")
    if notes:
        lines += ["", *notes]
    return "\n".join(map(terminal_line, lines))


def files(report: Report) -> str:
    """Return where the results and pages are."""
    lines = [f"Results: {report.path}"]
    lines += [f"Report:  {page}" for page in report.pages]
    return "\n".join(map(terminal_line, lines))


def _headline_lines(report: Report) -> Iterator[str]:
    """Yield the block of letta-evals' guide, or what the headline declares."""
    headline = report.summary["headline"]
    if headline["letta"]:
        yield from _letta_lines(report)
    else:
        outcome, figures = report.summary["outcome"], headline["figures"]
        for figure in figures:
            if "corrects" in figure:
                yield from _corrected_lines(figure, outcome)
        if outcome is not None:
            yield _outcome_line(outcome, report.states)
        declarations = Declarations(report.header)
        for figure in figures:
            if "corrects" not in figure:
                yield from _figure_lines(figure, declarations)
    for metrics in report.aggregates.values():
        groups = [as_list(figures.get("statements")) for figures in metrics.values()]
        statements = [text for texts in groups for text in texts]
        yield from (f"  {text}" for text in dict.fromkeys(statements))


def _letta_lines(report: Report) -> Iterator[str]:
    metrics = report.metrics
    attempted, passed = metrics["total_attempted"], metrics["passed_attempts"]
    average = metrics["avg_score_attempted"]
    in_all = _average(metrics["avg_score_total"])
    share = f" ({100 * passed / attempted:.1f}%)" if attempted else ""
    yield f"  Total samples: {metrics['total']}"
    yield f"  Attempted: {attempted}"
    yield f"  Avg score: {in_all} (attempted: {_average(average)})"
    yield f"  Passed: {passed}{share}"
    yield f"  Passed means: {report.summary['pass_rule']}, of {attempted} attempted"
    if average is not None:
        bands = [band for bound, band in _BANDS if average >= bound]
        yield f"  Score band: {bands[0] if bands else _BANDS[-1][1]}"


def _corrected_lines(figure: Mapping[str, Any], outcome: Mapping[str, Any]) -> Iterator[str]:
    """Yield the share of successes as labels correct it, beside the share itself."""
    models = _by_model_name(figure)
    if models:
        yield f"  {figure['label']}:"
        yield from _table({name: _percent(estimate) for name, estimate in models.items()})
        return
    between = ": " if figure["value"] is None else " "
    share = outcome["share"]
    uncorrected = "" if share is None else f"; {figure['corrects']} {100 * share:.1f}%"
    yield f"  {figure['label']}{between}{_percent(figure)}{uncorrected}"


def _percent(figure: Mapping[str, Any]) -> str:
    """Return a share as ``60.3% (95% interval 51.6 to 68.4%)``, or why it is not known."""
    if figure["value"] is None:
        return f"not known ({figure['reason']})"
    interval = _percent_interval(figure.get("interval"))
    return f"{100 * figure['value']:.1f}%{f' ({interval})' if interval else ''}"


def _outcome_line(outcome: Mapping[str, Any], states: Mapping[str, Any]) -> str:
    """Return the share of runs that passed, and how many runs it leaves out as errors."""
    word = outcome["words"]["passed"]
    line = f"  {word[:1].upper()}{word[1:]}: {_share(outcome)}"
    if not outcome["passed"] + outcome["failed"]:
        return line
    errors = as_map(states.get(outcome["grader"])).get(Outcome.FAILED, 0)
    left_out = f"; {errors} more ended in an error, not counted" if errors else ""
    return f"{line}; {outcome['rule']}{left_out}"


def _share(counts: Mapping[str, Any]) -> str:
    """Return ``31 of 52 (59.6%; 95% interval 44.7 to 73.0%)``; ``no result`` of nothing."""
    passed = counts["passed"]
    graded = passed + counts["failed"]
    if not graded:
        return "no result"
    interval = _percent_interval(counts.get("share_interval"))
    parts = filter(None, (f"{100 * passed / graded:.1f}%", interval))
    return f"{passed} of {graded} ({'; '.join(parts)})"


def _figure_lines(figure: Mapping[str, Any], declarations: Declarations) -> Iterator[str]:
    """Yield a figure of the headline, or a line for each model."""
    meaning = declarations.at(figure["figure"])
    better = "" if meaning is None else which_is_better(meaning.better)
    note = f", {better}" if better else ""
    models = _by_model_name(figure)
    if models:
        yield f"  {figure['label']}{note}:"
        yield from _table({name: _estimate(part, meaning) for name, part in models.items()})
    else:
        yield f"  {figure['label']}: {_estimate(figure, meaning)}{note}"


def _by_model_name(figure: Mapping[str, Any]) -> dict[str, Any]:
    return {name or "unnamed": part for name, part in as_map(figure.get("models")).items()}


def _table(rows: Mapping[str, str]) -> list[str]:
    """Return one line for each of the first models, and how many others there are."""
    width = max(map(len, rows))
    return _first_models([f"    {name:<{width}}  {text}" for name, text in rows.items()])


def _first_models(lines: Sequence[str]) -> list[str]:
    """Return the lines of the first models, and how many others there are."""
    others = len(lines) - _MOST_MODELS
    if others <= 0:
        return [*lines]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return [*lines[:_MOST_MODELS], f"{indent}and {others} more, in summary.json"]


def _estimate(figure: Mapping[str, Any], meaning: Figure | None) -> str:
    """Return a figure with its interval, of a map of figures a row of them."""
    value, interval = figure["value"], as_map(figure.get("interval"))
    if value is None:
        return f"n/a ({figure['reason']})"
    if isinstance(value, Mapping):
        return _row(value, interval)
    number = with_unit(_number(value), "" if meaning is None else meaning.unit)
    shown = _interval(interval)
    if interval.get("low") is not None and "method" in interval:
        shown += f"; {_extent(interval, meaning)}"
    return f"{number} ({shown})" if shown else number


def _row(values: Mapping[str, Any], intervals: Mapping[str, Any]) -> str:
    cells = []
    for key, value in values.items():
        interval = as_map(intervals.get(key))
        shown = f" ({_interval(interval)})" if interval.get("low") is not None else ""
        cells.append(f"{key}: {_number(value)}{shown}")
    if len(cells) > _MOST_IN_A_ROW:
        cells = [cells[0], "…", cells[-1]]
    return ", ".join(cells)


def _number(value: Any) -> str:
    if value is None:
        return "n/a"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _average(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _percent_interval(interval: Any) -> str:
    """Return an interval of a share as ``95% interval 44.7 to 73.0%``."""
    return _interval(as_map(interval), 100.0, 1, "%")


def _interval(
    interval: Mapping[str, Any], scale: float = 1.0, decimals: int = 3, sign: str = ""
) -> str:
    """Return an interval, or why there is none; "" where nothing is known of one."""
    low, high = interval.get("low"), interval.get("high")
    if low is None or high is None:
        reason = interval.get("reason")
        return f"no interval: {reason}" if reason else ""
    confidence = interval.get("confidence")
    kind = "interval of unknown confidence"
    if confidence is not None:
        kind = f"{100 * confidence:.6g}% interval"
    return f"{kind} {scale * low:.{decimals}f} to {scale * high:.{decimals}f}{sign}"


def _extent(interval: Mapping[str, Any], meaning: Figure | None) -> str:
    """Return the data of an interval: ``50 tasks, 200 runs``; tasks alone where n counts no runs."""
    tasks, runs = interval["clusters"], interval["n"]
    divisor = "" if meaning is None else meaning.divisor
    counts_runs = not divisor or "run" in divisor or bool(meaning and meaning.samples)
    return f"{tasks} tasks, {runs} runs" if counts_runs and runs != tasks else f"{tasks} tasks"


def _grader_lines(report: Report) -> list[str]:
    """Return the states of each grader, and its first error."""
    averages, failures = report.metrics["by_metric"], report.summary.get("failures", {})
    is_letta = report.summary["headline"]["letta"]
    if is_letta and len(averages) == 1 and not failures:
        return []
    lines = ["", "By grader:"]
    width = max(map(len, averages))
    for key, states in report.states.items():
        counts = [f"{states['graded']} graded", *_list_states(states)]
        average = _average(averages[key]["avg_score_attempted"])
        lines.append(f"  {key:<{width}}  avg {average}  {', '.join(counts)}")
    for key, failure in sorted(failures.items()):
        first = failure.get("first")
        example = f", first: {first['reason']} at {first['at']}" if first else ""
        lines.append(f"  {key}: {counted(failure['count'], 'error')}{example}")
    return lines


def _list_states(states: Mapping[str, int]) -> list[str]:
    """Return how many grades have each state but ``graded``."""
    others = [(state, number) for state, number in states.items() if state != "graded"]
    return [state_text(state, number) for state, number in others if number]


def _model_lines(report: Report) -> list[str]:
    rows = report.metrics["per_model"] or ()
    if not rows:
        return []
    outcome = report.summary["outcome"] or {}
    counts = {entry["model_name"]: entry for entry in outcome.get("per_model") or ()}
    is_letta = report.summary["headline"]["letta"]
    width = max(len(str(row["model_name"])) for row in rows)
    lines = []
    for row in rows:
        attempted, passed = row["total_attempted"], row["passed_samples"]
        average = _average(row["avg_score_attempted"])
        name = f"{row['model_name'] or 'unnamed':<{width}}"
        line = f"  {name}  attempted {attempted}/{row['total']}  avg {average}"
        if is_letta:
            rate = f"{100 * passed / attempted:.1f}%" if attempted else "n/a"
            line = f"  {name} - Avg: {average}, Pass: {rate}"
        elif counts:
            line += f"  {outcome['words']['passed']} {_share(counts[row['model_name']])}"
        lines.append(line)
    return ["", "Results by model:", *_first_models(lines)]


def _cause_lines(report: Report) -> list[str]:
    """Return why samples failed: the three largest causes, and how many samples have others.

    Without an outcome these are the causes of samples that did not score 1.
    """
    causes = causes_of_run(report)
    has_outcome = report.summary["outcome"] is not None
    names = {cause.name for cause in causes}
    if not causes or (not has_outcome and names == {NO_REASON}):
        return []
    failed = sum(cause.samples for cause in causes)
    rows = [(cause.samples, _cause_text(cause)) for cause in causes[:_MOST_CAUSES]]
    others = causes[_MOST_CAUSES:]
    if others:
        samples = sum(cause.samples for cause in others)
        rows.append((samples, f"others ({counted(len(others), 'cause')})"))
    what = "failed" if has_outcome else "did not score 1"
    lines = ["", f"Why {failed} of {report.metrics['total']} runs {what}:"]
    width = len(str(failed))
    for samples, text in rows:
        lines.append(f"  {samples:>{width}} ({100 * samples / failed:.1f}%)  {text}")
    return lines


def _cause_text(cause: Cause) -> str:
    """Return a cause, and the tool or argument that it is most often about."""
    name = _shorten(cause.name)
    often = most_often(cause)
    if often is None:
        return name
    word, path, samples = often
    part = ".".join(map(_shorten, path))
    share = "" if samples == cause.samples else f" ({samples} of {cause.samples})"
    return f"{name}, {word} {part}{share}"


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_CAUSE else f"{name[: _LONGEST_CAUSE - 1]}…"


def _program_lines(report: Report) -> Iterator[str]:
    """Yield what the original programs print of the same files."""
    for entry in map(as_map, as_list(report.summary.get("programs"))):
        of_input = f" of {as_text(entry['input'])}" if "input" in entry else ""
        yield ""
        yield f"As {as_text(entry.get('title'))} computes it{of_input}:"
        printed = as_text(entry.get("console")).splitlines()
        yield from printed or _program_figures(entry)
        names = ", ".join(f"native/{name}" for name in as_list(entry.get("files")))
        if names:
            yield f"  in {names}"


def _program_figures(entry: Mapping[str, Any]) -> Iterator[str]:
    for figure in map(as_map, as_list(entry.get("figures"))):
        value = as_number(figure.get("value"))
        shown = "n/a" if value is None else f"{value:.3f}"
        yield f"  {as_text(figure.get('label'))}: {shown}"


def _run_lines(runs: Mapping[str, Any]) -> list[str]:
    """Return the statistics over several recorded runs; nothing of one run."""
    if not runs:
        return []
    number, average = len(runs["runs"]), runs["avg_score_attempted"]
    mean, deviation = average["mean"], average["std"]
    lines = [f"Runs: {number}", f"  Avg score: mean {_average(mean)}, std {_average(deviation)}"]
    if deviation is not None:
        ends = f"{average['min']:.3f} to {average['max']:.3f}"
        spread = f"run to run {ends} (sd {deviation:.3f}), same tasks"
        interval = runs.get("uncertainty") or {}
        score = "not computed"
        if interval.get("low") is not None:
            score = f"{interval['low']:.3f} to {interval['high']:.3f}"
        reason = f" ({interval['reason']})" if interval.get("reason") else ""
        lines.append(f"  {spread}; 95% interval of the score: {score}{reason}")
    if "passed" in runs:
        share = f"{100 * runs['passed'] / number:.1f}%"
        passed = f"Runs passed: {runs['passed']}, failed: {runs['failed']} ({share})"
        lines.append(f"  {passed}; rule: {runs['rule']}")
    return [*lines, ""]


def _bad_record_lines(bad: Mapping[str, Any]) -> Iterable[str]:
    number = bad["count"]
    if number:
        yield f"{counted(number, 'bad record')} left out:"
        for entry in bad["listed"][:_MOST_BAD_RECORDS]:
            line = entry["line"]
            position = f"record {entry['ordinal']}" if line is None else line
            yield f"  {entry['file']}:{position}: {entry['reason']}"
    if number > _MOST_BAD_RECORDS:
        yield f"  and {number - _MOST_BAD_RECORDS} more, in summary.json"

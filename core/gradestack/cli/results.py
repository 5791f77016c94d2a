"""The results block that the command line prints, and the verdict line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from gradestack.aggregator import Figure
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
_MOST_REASONS = 3
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
    """Return the verdict line: passed or failed, and in brackets who decided.

    Nothing is in brackets where the gates explain the result. Otherwise the original program has
    decided, or the rule over the runs of a suite with several, and how many of them passed.
    """
    if report.program_verdict is not None and not report.all_failed:
        has_passed, program = report.program_verdict
        return f"{_PASSED if has_passed else _FAILED} (as {program} decides)"
    word = _PASSED if report.passed and not report.all_failed else _FAILED
    runs = report.summary.get("runs") or {}
    gates_explain_it = all(gate["passed"] for gate in report.gates) == report.passed
    if "passed" not in runs or gates_explain_it:
        return word
    rule = runs["rule"]
    passed = runs["passed"]
    number = len(runs["runs"])
    must = _RUNS_MUST.get(rule, f"{rule} must")
    return f"{word} ({passed} of {number} runs passed, {must})"


def results(report: Report) -> str:
    """Return the results block: headline, graders, models, causes, gates and warnings."""
    summary = report.summary
    total = report.metrics["total"]
    is_complete = "incomplete" not in summary
    bar = f"{'━' * _BAR_WIDTH} {total}/{total} 100%"  # as letta-evals prints it
    lines = [bar if is_complete else f"{counted(total, 'run')}, interrupted", "", "Results:"]
    lines += _headline_lines(report)
    lines += _grader_lines(report)
    lines += _model_lines(report)
    lines += _cause_lines(report)
    lines += _program_lines(report)
    runs = summary.get("runs") or {}
    notes = _run_lines(runs)
    is_letta = summary["headline"]["letta"]
    for gate in report.gates:
        notes += gate_lines(gate, apart=is_letta, over_runs=bool(runs))
    notes += _bad_record_lines(summary["bad_records"], total)
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
    if report.has_rows and len(report.metrics["per_model"] or ()) > 1:
        lines.append(f"Compare the models: gradestack compare {shlex.quote(str(report.path))}")
    return "\n".join(map(terminal_line, lines))


def _headline_lines(report: Report) -> Iterator[str]:
    """Yield the headline's figures as lines, or the summary that letta-evals prints."""
    headline = report.summary["headline"]
    if headline["letta"]:
        yield from _letta_lines(report)
    else:
        outcome = report.summary["outcome"]
        figures = [_in_input_order(figure, report) for figure in headline["figures"]]
        for figure in figures:
            if "corrects" in figure:
                yield from _corrected_lines(figure, outcome)
        if outcome is not None:
            yield from _outcome_lines(outcome, report.states)
        declarations = Declarations(report.header)
        for figure in figures:
            if "corrects" not in figure:
                yield from _figure_lines(figure, declarations)
    for metrics in report.aggregates.values():
        groups = [as_list(figures.get("statements")) for figures in metrics.values()]
        statements = [text for texts in groups for text in texts]
        yield from (f"  {text}" for text in dict.fromkeys(statements))


def _letta_lines(report: Report) -> Iterator[str]:
    """Yield the summary lines that letta-evals prints: counts, averages, passes, score band."""
    metrics = report.metrics
    attempted = metrics["total_attempted"]
    passed = metrics["passed_attempts"]
    average = metrics["avg_score_attempted"]
    in_all = _average(metrics["avg_score_total"])
    share = ""
    if attempted:
        share = f" ({_percentage(passed, attempted)})"
    yield f"  Total samples: {metrics['total']}"
    yield f"  Attempted: {attempted}"
    yield f"  Avg score: {in_all} (attempted: {_average(average)})"
    yield f"  Passed: {passed}{share}"
    yield f"  Passed means: {report.summary['pass_rule']}, of {attempted} attempted"
    if average is not None:
        bands = [band for bound, band in _BANDS if average >= bound]
        _, lowest = _BANDS[-1]
        yield f"  Score band: {bands[0] if bands else lowest}"


def _corrected_lines(figure: Mapping[str, Any], outcome: Mapping[str, Any]) -> Iterator[str]:
    """Yield the share of successes as labels correct it, beside the share itself."""
    models = _by_model_name(figure)
    if models:
        yield f"  {figure['label']}:"
        yield from _table({name: _percent(estimate) for name, estimate in models.items()})
        return
    between = " "
    if figure["value"] is None:
        between = ": "
    line = f"  {figure['label']}{between}{_percent(figure)}"
    share = outcome["share"]
    if share is not None:
        line += f"; {figure['corrects']} {_percentage(share, 1)}"
    yield line


def _percentage(part: float, total: float) -> str:
    return f"{100 * part / total:.1f}%"


def _percent(figure: Mapping[str, Any]) -> str:
    """Return a share as ``60.3% (95% interval 51.6 to 68.4%)``, or why it is not known."""
    if figure["value"] is None:
        return f"not known ({figure['reason']})"
    share = _percentage(figure["value"], 1)
    interval = _percent_interval(figure.get("interval"))
    if interval:
        return f"{share} ({interval})"
    return share


def _outcome_lines(outcome: Mapping[str, Any], states: Mapping[str, Any]) -> Iterator[str]:
    """Yield the share of runs that passed, of several models each before all."""
    passed_word = outcome["words"]["passed"]
    label = passed_word[:1].upper() + passed_word[1:]
    models = outcome.get("per_model") or ()
    shares = {entry["model_name"] or "unnamed": _share(entry) for entry in models}
    share = _share_of_all(outcome, states)
    if len(shares) > 1:
        yield f"  {label}:"
        yield from _table(shares)
        yield f"    of all models: {share}"
    else:
        yield f"  {label}: {share}"


def _share_of_all(outcome: Mapping[str, Any], states: Mapping[str, Any]) -> str:
    """Return the text of the share of runs that passed, and of the errors that it leaves out."""
    share = _share(outcome)
    if not outcome["passed"] + outcome["failed"]:
        return share
    of_grader = as_map(states.get(outcome["grader"]))
    errors = of_grader.get(Outcome.FAILED, 0)
    share += f"; {outcome['rule']}"
    return f"{share}; {errors:,} more ended in an error, not counted" if errors else share


def _share(counts: Mapping[str, Any]) -> str:
    """Return ``31 of 52 (59.6%; 95% interval 44.7 to 73.0%)``; ``no result`` of nothing."""
    passed = counts["passed"]
    graded = passed + counts["failed"]
    if not graded:
        return "no result"
    shown = _percentage(passed, graded)
    interval = _percent_interval(counts.get("share_interval"))
    if interval:
        shown += f"; {interval}"
    return f"{passed:,} of {graded:,} ({shown})"


def _figure_lines(figure: Mapping[str, Any], declarations: Declarations) -> Iterator[str]:
    """Yield a figure of the headline, or a line for each model."""
    meaning = declarations.at(figure["figure"])
    better = "" if meaning is None else which_is_better(meaning.better)
    note = ""
    if better:
        note = f", {better}"
    models = _by_model_name(figure)
    if models:
        yield f"  {figure['label']}{note}:"
        yield from _table({name: _estimate(part, meaning) for name, part in models.items()})
    else:
        estimate = _estimate(figure, meaning)
        yield f"  {figure['label']}: {estimate}{note}"


def _in_input_order(figure: Mapping[str, Any], report: Report) -> Mapping[str, Any]:
    """Return a figure with its models in the order of the input, as every list of models is."""
    models = figure.get("models")
    if not models:
        return figure
    rows = report.metrics["per_model"] or ()
    names = [row["model_name"] for row in rows]
    ordered = {name: models[name] for name in names if name in models}
    return {**figure, "models": {**ordered, **models}}


def _by_model_name(figure: Mapping[str, Any]) -> dict[str, Any]:
    models = as_map(figure.get("models"))
    return {name or "unnamed": estimate for name, estimate in models.items()}


def _table(rows: Mapping[str, str]) -> list[str]:
    """Return one line for each of the first models, and how many others there are."""
    width = max(map(len, rows))
    lines = [f"    {name:<{width}}  {text}" for name, text in rows.items()]
    return _first_models(lines)


def _first_models(lines: Sequence[str]) -> list[str]:
    """Shorten the lines of models to the first ones and a line with the number left."""
    first = [*lines[:_MOST_MODELS]]
    others = len(lines) - len(first)
    if others:
        line = first[0]
        indent = len(line) - len(line.lstrip())
        first.append(f"{' ' * indent}and {others:,} more, in summary.json")
    return first


def _estimate(figure: Mapping[str, Any], meaning: Figure | None) -> str:
    """Write a figure with its interval; write a map of figures as a row."""
    value = figure["value"]
    interval = as_map(figure.get("interval"))
    if value is None:
        return f"n/a ({figure['reason']})"
    if isinstance(value, Mapping):
        return _row(value, interval)
    unit = "" if meaning is None else meaning.unit
    number = with_unit(_number(value), unit)
    shown = _interval(interval)
    low = interval.get("low")
    if low is not None and "method" in interval:
        shown += f"; {_extent(interval, meaning)}"
    if shown:
        return f"{number} ({shown})"
    return number


def _row(values: Mapping[str, Any], intervals: Mapping[str, Any]) -> str:
    """Join the figures of a row as "key: value (interval)"; shorten long rows to first and last."""
    cells = []
    for key, value in values.items():
        cell = f"{key}: {_number(value)}"
        interval = as_map(intervals.get(key))
        if interval.get("low") is not None:
            cell += f" ({_interval(interval)})"
        cells.append(cell)
    if len(cells) > _MOST_IN_A_ROW:
        cells = [cells[0], "…", cells[-1]]
    return ", ".join(cells)


def _number(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if value is None:
        return "n/a"
    return f"{value:,.3f}"


def _average(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,.2f}"


def _percent_interval(interval: Any) -> str:
    """Return an interval of a share as ``95% interval 44.7 to 73.0%``."""
    return _interval(as_map(interval), 100.0, 1, "%")


def _interval(
    interval: Mapping[str, Any], scale: float = 1.0, decimals: int = 3, sign: str = ""
) -> str:
    """Return an interval, or why there is none; "" where nothing is known of one."""
    low = interval.get("low")
    high = interval.get("high")
    if low is None or high is None:
        reason = interval.get("reason")
        if reason:
            return f"no interval: {reason}"
        return ""
    confidence = interval.get("confidence")
    kind = "interval of unknown confidence"
    if confidence is not None:
        kind = f"{100 * confidence:.6g}% interval"
    first, last = (f"{scale * end:,.{decimals}f}" for end in (low, high))
    return f"{kind} {first} to {last}{sign}"


def _extent(interval: Mapping[str, Any], meaning: Figure | None) -> str:
    """Return the data of an interval: ``50 tasks, 200 runs``, or tasks alone."""
    tasks = interval["clusters"]
    runs = interval["n"]
    extent = f"{tasks:,} tasks"
    counts_runs = True
    if meaning is not None and meaning.divisor:
        counts_runs = "run" in meaning.divisor or bool(meaning.samples)
    if counts_runs and runs != tasks:
        return f"{extent}, {runs:,} runs"
    return extent


def _grader_lines(report: Report) -> list[str]:
    """Return the states of each grader, and its first error."""
    averages = report.metrics["by_metric"]
    failures = report.summary.get("failures", {})
    is_letta = report.summary["headline"]["letta"]
    if is_letta and len(averages) == 1 and not failures:
        return []
    lines = ["", "By grader:"]
    width = max(map(len, averages))
    for key, states in report.states.items():
        counts = [f"{states['graded']:,} graded", *_list_states(states)]
        average = _average(averages[key]["avg_score_attempted"])
        shown = ", ".join(counts)
        lines.append(f"  {key:<{width}}  avg {average}  {shown}")
    for key, failure in sorted(failures.items()):
        line = f"  {key}: {counted(failure['count'], 'error')}"
        first_error = failure.get("first")
        if first_error:
            line += f", first: {first_error['reason']} at {first_error['at']}"
        lines.append(line)
    return lines


def _list_states(states: Mapping[str, int]) -> list[str]:
    """Count the grades in each state but ``graded``."""
    others = [(state, number) for state, number in states.items() if state != "graded"]
    return [state_text(state, number) for state, number in others if number]


def _model_lines(report: Report) -> list[str]:
    """List the lines of the section "Results by model", one line per model; none without models."""
    rows = report.metrics["per_model"] or ()
    if not rows:
        return []
    outcome = report.summary["outcome"] or {}
    entries = outcome.get("per_model") or ()
    counts = {entry["model_name"]: entry for entry in entries}
    is_letta = report.summary["headline"]["letta"]
    width = max(len(str(row["model_name"])) for row in rows)
    lines = []
    for row in rows:
        model = row["model_name"]
        attempted = row["total_attempted"]
        total = row["total"]
        average = _average(row["avg_score_attempted"])
        name = f"{model or 'unnamed':<{width}}"
        line = f"  {name}  attempted {attempted}/{total}  avg {average}"
        if is_letta:
            rate = "n/a"
            if attempted:
                rate = _percentage(row["passed_samples"], attempted)
            line = f"  {name} - Avg: {average}, Pass: {rate}"
        elif len(counts) == 1:
            word = outcome["words"]["passed"]
            line += f"  {word} {_share(counts[model])}"
        lines.append(line)
    of_grader = ""
    if report.main_grader:
        of_grader = f", avg of {report.main_grader}"
    return ["", f"Results by model{of_grader}:", *_first_models(lines)]


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
    other_causes = causes[_MOST_CAUSES:]
    if other_causes:
        samples = sum(cause.samples for cause in other_causes)
        causes_text = counted(len(other_causes), "cause")
        rows.append((samples, f"others ({causes_text})"))
    predicate = "failed" if has_outcome else "did not score 1"
    lines = ["", f"Why {failed:,} of {_count_applicable(report):,} runs {predicate}:"]
    width = len(f"{failed:,}")
    for samples, text in rows:
        number = f"{samples:>{width},}"
        lines.append(f"  {number} ({_percentage(samples, failed)})  {text}")
    return lines


def _count_applicable(report: Report) -> int:
    """Count the runs that can pass or fail: all but those that the outcome grader skips."""
    outcome = report.summary["outcome"]
    key = report.main_grader if outcome is None else outcome["grader"]
    skipped: int = as_map(report.states.get(key)).get(Outcome.SKIPPED, 0)
    total: int = report.metrics["total"]
    return total - skipped


def _cause_text(cause: Cause) -> str:
    """Return a cause, and the tool or argument that it is most often about."""
    name = _shorten(cause.name)
    often = most_often(cause)
    if often is None:
        return name
    word, path, samples = often
    part = ".".join(map(_shorten, path))
    if samples == cause.samples:
        return f"{name} ({word} {part})"
    return f"{name} ({word} {part}, {samples:,} of {cause.samples:,})"


def _shorten(name: str) -> str:
    last = _LONGEST_CAUSE - 1
    if len(name) <= _LONGEST_CAUSE:
        return name
    return f"{name[:last]}…"


def _program_lines(report: Report) -> Iterator[str]:
    """Yield the blocks that the original programs print of the same files."""
    programs = as_list(report.summary.get("programs"))
    for entry in map(as_map, programs):
        title = as_text(entry.get("title"))
        of_input = as_text(entry.get("input"))
        yield ""
        yield f"As {title} computes it{' of ' if of_input else ''}{of_input}:"
        console = entry.get("console")
        printed = as_text(console).splitlines()
        yield from printed or _program_figures(entry)
        names = ", ".join(f"native/{name}" for name in as_list(entry.get("files")))
        if names:
            yield f"  in {names}"


def _program_figures(entry: Mapping[str, Any]) -> Iterator[str]:
    figures = entry.get("figures")
    for figure in map(as_map, as_list(figures)):
        value = as_number(figure.get("value"))
        shown = "n/a" if value is None else f"{value:.3f}"
        yield f"  {as_text(figure.get('label'))}: {shown}"


def _run_lines(runs: Mapping[str, Any]) -> list[str]:
    """Return the statistics over several recorded runs; nothing of one run."""
    if not runs:
        return []
    number = len(runs["runs"])
    average = runs["avg_score_attempted"]
    mean = average["mean"]
    deviation = average["std"]
    lines = [f"Runs: {number:,}"]
    lines.append(f"  Avg score: mean {_average(mean)}, std {_average(deviation)}")
    if deviation is not None:
        ends = _ends(average["min"], average["max"])
        spread = f"run to run {ends} (sd {deviation:.3f}), same tasks"
        interval = runs.get("uncertainty") or {}
        score = "not computed"
        if interval.get("low") is not None:
            score = _ends(interval["low"], interval["high"])
        if interval.get("reason"):
            score += f" ({interval['reason']})"
        lines.append(f"  {spread}; 95% interval of the score: {score}")
    if "passed" in runs:
        passed = runs["passed"]
        failed = runs["failed"]
        share = _percentage(passed, number)
        lines.append(f"  Runs passed: {passed}, failed: {failed} ({share}); rule: {runs['rule']}")
    return [*lines, ""]


def _ends(low: float, high: float) -> str:
    return f"{low:.3f} to {high:.3f}"


def _bad_record_lines(bad: Mapping[str, Any], runs: int) -> Iterable[str]:
    """Yield a line with the counts of bad records and runs, and the place of each reason."""
    number = bad["count"]
    if not number:
        return
    yield f"{counted(number, 'bad record')} left out, {counted(runs, 'run')} read:"
    by_reason: dict[str, list[Mapping[str, Any]]] = {}
    for entry in bad["listed"]:
        by_reason.setdefault(entry["reason"], []).append(entry)
    for reason, entries in islice(by_reason.items(), _MOST_REASONS):
        position = entries[0]["line"]
        if position is None:
            position = f"record {entries[0]['ordinal']}"
        alike = f" and {len(entries) - 1:,} more" * (len(entries) > 1)
        yield f"  {entries[0]['file']}:{position}{alike}: {reason}"
        number -= len(entries)
    if number:
        yield f"  and {number:,} more, in summary.json"

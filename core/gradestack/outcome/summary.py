"""The content of summary.json: figures, gates, headline, failures and warnings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from gradestack.errors import ConfigError, first_of
from gradestack.gates.coverage import Coverage
from gradestack.gates.measures import Scores
from gradestack.gates.paths import Aggregates, NoFigure, figure_at
from gradestack.gates.rules import BaselineGate
from gradestack.gates.successes import grader_figures, rule_text, successes, verdict_text
from gradestack.gates.texts import gate_warnings, is_many, share_text
from gradestack.gates.verdicts import Verdict, judge, limit_verdict, require_graded
from gradestack.grading.merging import Merged, Merging
from gradestack.grading.metrics import Count, in_all
from gradestack.grading.plan import TO_COMPARE, may_compare
from gradestack.grading.subset import left_out_text, not_found, subset_entry
from gradestack.jsonio.values import as_list, as_map, as_text, is_number
from gradestack.model import JSON, Outcome, Source
from gradestack.outcome.baselines import Baselines
from gradestack.outcome.programs import ProgramResults
from gradestack.output import counted, terminal_line
from gradestack.report import Report
from gradestack.rows.read import Row
from gradestack.rundir.header import MADE
from gradestack.suites.spec import Figure, Suite
from gradestack.table import Table

if TYPE_CHECKING:
    from gradestack.comparison.sides import Side

_SHOWN = 8  # kinds of remarks named in a warning
_PREFIXED = re.compile(r"\w+:\S")
"""How a kind of remark begins that names something by its type: ``column:latency``."""
_NAMED = 3  # ids named of those without a counterpart
_LONGEST = 300  # characters of a reason
_LONGEST_NAME = 80  # characters of a model in a warning
_ANY = ""  # any state
Firsts = Mapping[tuple[str, str], tuple[int, Row, Mapping[str, Any]]]
"""Grader key and state -> the first line that holds such a grade.

Its number, its row, and the grade.
"""


def check_without_rows(suite: Suite) -> None:
    """Refuse to keep no rows where rows are what something is computed from."""
    problems = [
        f"gate {number}: compares task by task with a baseline, which needs rows"
        for number, gate in enumerate(suite.gates, 1)
        if isinstance(gate, BaselineGate)
    ]
    if suite.num_runs is not None:
        problems.append("num_runs: runs are told apart by their rows")
    problems += [
        f"profile: the program of {stage.name} reads the rows"
        for stage in suite.programs
        if stage.component.needs_rows
    ]
    if problems:
        raise ConfigError("no rows are kept (rows: none), but the suite needs them", *problems)


def summary(
    suite: Suite,
    merging: Merging,
    merged: Merged,
    recorded: Report,
    baselines: Baselines,
    programs: ProgramResults,
    part: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the content of summary.json for everything, or for one run of several."""
    table, by_model, broken_now = merging.merged.table, merging.counts(part), merging.merged.broken
    # nobody knows of which run they are; a part of a run is no run
    bad = merged.bad - merged.bad_parts if part is None else 0
    counts = {key: in_all(each.values()).with_unreadable(bad) for key, each in by_model.items()}
    figures = {key: grader_figures(count) for key, count in counts.items()}
    models = list(by_model[suite.main]) if any(by_model[suite.main]) else []
    aggregates = merging.figures(part)
    scores = Scores(
        table=table,
        part=part,
        graders={stage.key: stage.component for stage in suite.graders},
        figures=lambda rows: aggregates if rows is part else merging.figures(rows),
        unreadable=bad,
        min_graded=suite.min_graded,
        native=programs.native_files(),
    )
    now = cache(
        lambda: baselines.this_run(suite, recorded, aggregates)
    )  # rows are read for baselines only, once
    gates = [
        baseline_verdict(gate, suite, baselines, now, scores)
        if isinstance(gate, BaselineGate)
        else judge(gate, scores)
        for gate in suite.gates
    ]
    add_reasons(gates, recorded)
    if suite.max_failed is not None:
        gates.append(limit_verdict(suite.max_failed, counts))
    exporters = {
        each.name: f"exporter {each.name} ({each.distribution})" for each in suite.exporters
    }
    broken = {exporters[name]: text for name, text in broken_now.items() if name in exporters}
    broken |= {f"program {name}": text for name, text in programs.broken.items()}
    failed_metrics = {
        each.name: broken_now[each.name] for each in suite.metrics if each.name in broken_now
    }
    own_data = suite.reader.component.stack == "auto"
    doubted = suite.success.grader if own_data and suite.success is not None else ""
    firsts = _first_grades(counts, doubted, recorded)
    short = (
        "avg_score_attempted",
        "avg_score_total",
        "pass_rate",
        "passed_attempts",
        "failed_attempts",
    )
    content: dict[str, Any] = {
        "suite": suite.name,
        "config": suite.config,
        "metrics": {
            **{name: value for name, value in figures[suite.main].items() if name != "pass_rate"},
            "per_model": [_model_row(suite, model, by_model) for model in models] or None,
            "by_metric": {
                key: {name: each[name] for name in short} for key, each in figures.items()
            },
            "metrics": {key: each["pass_rate"] for key, each in figures.items()},
            "states": {key: count.states for key, count in counts.items()},
            "aggregates": aggregates,
        },
        "pass_rule": rule_text(suite.main, suite.rule),
        "outcome": None,
        "headline": {
            "letta": suite.headline.letta,
            "figures": headline_figures(suite, aggregates, figures),
        },
        "gates": [gate.as_json() for gate in gates],
        "gates_passed": all(gate.passed for gate in gates) if gates else None,
        **({"programs": programs.entries} if programs.entries else {}),
        "bad_records": {"count": merged.bad, "listed": merged.bad_listed},
        "duplicates": {
            "policy": suite.duplicates,
            "count": merged.duplicates,
            "listed": merged.duplicates_listed,
        },
        "warnings": [
            *suite.warnings,
            *_warnings_of_records(suite, merged, table.keys["id"].values),
            *_warnings_of_models(models),
            *_warnings_of_files(suite, table),
            *_warnings_of_grades(suite, counts, doubted, merged, firsts),
            *(text for gate in gates for text in gate_warnings(gate)),
            *_warnings_of_components(suite, broken | failed_metrics, aggregates),
        ],
    }
    if suite.success is not None:  # in the run's words
        success = successes(table, suite.success, part)
        nothing = {"passed": 0, "failed": 0, "share": None, "share_interval": None}
        per_model = [
            {"model_name": name or None, **success["models"].get(name, nothing)} for name in models
        ]
        graded = success["passed"] + success["failed"]
        content["outcome"] = {
            "grader": suite.success.grader,
            "rule": verdict_text(suite.success, graded, success["own_verdicts"]),
            "words": {"passed": suite.headline.passed, "failed": suite.headline.failed},
            **{name: success[name] for name in nothing},
            "per_model": per_model or None,
        }
    if part is None:
        failures: dict[str, dict[str, Any]] = {}
        for key, count in counts.items():
            if failed := count.states[Outcome.FAILED]:
                failures[key] = {"count": failed}
                if (key, Outcome.FAILED) in firsts:
                    _, row, grade = firsts[key, Outcome.FAILED]
                    failures[key]["first"] = {"reason": _reason(grade), "at": _place(row)}
        content["failures"] = failures
    if merged.left_out or suite.subset:
        content["subset"] = subset_entry(suite.taken, merged.samples, merged.left_out)
    if merged.remarks:
        content["remarks"] = {
            kind: {"count": n, "first": at} for kind, (n, at) in sorted(merged.remarks.items())
        }
    if merged.interrupted:
        content["incomplete"] = "interrupted: the figures cover the samples graded before"
        content["gates_passed"] = False if gates else None
    lost = _all_failed(suite, counts, merged, firsts)
    more = {"all_failed": lost, "broken": broken, "failed_metrics": failed_metrics}
    return content | {name: each for name, each in more.items() if each}


def _model_row(
    suite: Suite, model: str, by_model: Mapping[str, Mapping[str, Count]]
) -> dict[str, Any]:
    figures = {key: grader_figures(of[model]) for key, of in by_model.items()}
    head = figures[suite.main]
    return {
        "model_name": model or None,
        **{
            name: head[name]
            for name in ("total", "total_attempted", "avg_score_attempted", "avg_score_total")
        },
        "passed_samples": head["passed_attempts"],
        "failed_samples": head["failed_attempts"],
        "metrics": {key: each["pass_rate"] for key, each in figures.items()},
    }


def headline_figures(
    suite: Suite, aggregates: Aggregates, averages: Aggregates
) -> list[dict[str, JSON]]:
    """Return the figures of the headline.

    Label, path, value, and interval or reason where there is one. One that corrects the share of
    successes (``corrects``) has no value while it is uncalibrated.
    """
    found = []
    for figure in suite.headline.figures:
        metrics = as_map(
            aggregates[figure.grader][figure.metric] if figure.metric else averages[figure.grader]
        )
        entry: dict[str, JSON] = {"label": _label(figure.label, metrics), "figure": figure.path}
        why = metrics.get("uncalibrated")
        if figure.corrects:
            entry["corrects"] = figure.corrects
        if figure.corrects and why is not None:
            found.append({**entry, "value": None, "reason": why})
            continue
        models = {
            str(name): _estimate(figure, as_map(each))
            for name, each in as_map(metrics.get("models")).items()
        }
        entry |= _estimate(figure, metrics)
        found.append({**entry, "models": models} if models else entry)
    return found


def _label(label: str, metrics: Mapping[str, Any]) -> str:
    """Return a label of a figure at k with the number of runs, where its metric has one ``k``."""
    k = metrics.get("k")
    return f"{label.removesuffix('k')}{k}" if label.endswith("@k") and is_number(k) else label


def _estimate(figure: Figure, metrics: Mapping[str, Any]) -> dict[str, JSON]:
    """Return value, and interval or reason, of a number or a map of numbers.

    Null where there is none of that name.
    """
    with suppress(NoFigure):
        value, path, reason, interval = figure_at(metrics, figure.name, (figure.metric,), "")
        numbers = value.values() if isinstance(value, Mapping) and value else [value]
        if path and all(each is None or is_number(each) for each in numbers):
            found = {"value": value} | (
                {"interval": dict(interval)} if isinstance(interval, Mapping) else {}
            )
            undefined = as_map(metrics.get("undefined")).get(path)
            reasons = map(as_text, (reason, undefined, as_map(interval).get("reason")))
            why = next((text for text in reasons if text not in ("", "undefined")), "not defined")
            return found if value is not None else {**found, "reason": why}
    why = (
        as_text(metrics.get("error"))
        or f"{figure.metric} has no figure {figure.name or figure.metric!r}"
    )
    return {"value": None, "reason": why}


def _first_grades(counts: Mapping[str, Count], doubted: str, recorded: Report) -> Firsts:
    """Return by grader and state the first of its grades that something is said of.

    One pass, none without rows.
    """
    wanted = {
        (key, str(Outcome.FAILED)) for key, count in counts.items() if count.states[Outcome.FAILED]
    }
    wanted |= {
        (key, _ANY)
        for key, count in counts.items()
        if any(count.states.values()) and not count.graded
    }
    if doubted in counts and counts[doubted].graded and counts[doubted].states[Outcome.SKIPPED]:
        wanted.add((doubted, str(Outcome.SKIPPED)))
    found: Any = {}
    for number, _, line in recorded.lines() if wanted and recorded.has_rows else ():
        if any(state.encode() in line for _, state in wanted):
            row = recorded.row(number, line)
            there = {
                (key, state)
                for key, state in wanted
                if state in (_ANY, row["grades"][key]["state"])
            }
            found |= {each: (number, row, row["grades"][each[0]]) for each in there}
            wanted -= there
            if not wanted:
                break
    return found  # type: ignore[no-any-return]


def _reason(grade: Mapping[str, Any]) -> str:
    """Return why a grade is what it is, in one line."""
    fault, reason = (
        as_map(grade.get("fault")),
        as_map(next(iter(as_list(grade.get("reasons"))), None)),
    )
    message = (
        as_text(fault.get("message"))
        or as_text(fault.get("code"))
        or as_text(reason.get("message"))
    )
    message = (
        message
        or as_text(grade.get("rationale"))
        or as_text(reason.get("code"))
        or as_text(grade.get("state"))
    )
    kind = as_text(fault.get("type"))
    text = " ".join(
        (f"{kind}: {message}" if kind and not message.startswith(kind) else message).split()
    )
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _place(row: Mapping[str, Any]) -> str:
    """Return where a sample was read, ``file:line`` where its format has lines.

    Its id where nobody knows.
    """
    source = row["source"]
    return f"sample {row['sample']['id']}" if source is None else str(Source(**source))


def _others(count: Count) -> str:
    return ", ".join(f"{number} {state}" for state, number in count.states.items() if number)


def _why(firsts: Firsts, key: str, state: str = _ANY) -> str:
    """Return ``the first: REASON`` of a grader's grades in a state; nothing without rows."""
    return (
        f"the first: {terminal_line(_reason(firsts[key, state][2]))}"
        if (key, state) in firsts
        else ""
    )


def _fix(suite: Suite, key: str) -> str:
    compares = [stage.key for stage in suite.graders if may_compare(stage.component)]
    return (
        "; to add what is missing: --dataset FILE"
        if key in compares and suite.inputs.dataset is None
        else ""
    )


def _all_failed(
    suite: Suite, counts: Mapping[str, Count], merged: Merged, firsts: Firsts
) -> str | None:
    """Return in one sentence that every grade failed, or that there is no result.

    None where that is not so.
    """
    if suite.allow_all_failed or merged.interrupted:
        return None
    failed = sum(each.states[Outcome.FAILED] for each in counts.values())
    if failed and not any(each.graded for each in counts.values()):
        first = next(
            (
                f"grader {key}: {text.strip().splitlines()[-1]}"
                for key, text in merged.tracebacks.items()
            ),
            "",
        )
        rows = [
            (firsts[key, Outcome.FAILED], key) for key in counts if (key, Outcome.FAILED) in firsts
        ]
        if rows:
            (_, row, grade), key = min(rows, key=lambda each: each[0][0])
            first = f"{_place(row)}, grader {key}: {_reason(grade)}"
        number = "the only grade" if failed == 1 else f"all {failed} grades"
        return f"{number} failed, so nothing was graded{f'; the first: {first}' if first else ''}"
    key = "" if suite.success is None else suite.success.grader
    if key not in counts or counts[key].graded or not merged.samples:
        return None
    why = _why(firsts, key)
    fix = "" if "--dataset" in why else _fix(suite, key)
    others = _others(counts[key])
    return (
        f"no result: {key!r}, the outcome grader, graded no sample "
        f"({others}){why and f'; {why}'}{fix}"
    )


def _warnings_of_duplicates(merged: Merged) -> Iterator[str]:
    repeats = "record(s) repeat an (id, model, run)"
    if merged.superseded:
        first = f", the first at {merged.superseded_first}"
        yield f"{merged.superseded} {repeats}{first}; the last is kept"
    if kept := merged.duplicates - merged.superseded:
        listed = merged.duplicates_listed[merged.superseded :]
        first = f", the first at {listed[0]}" if listed else ""
        yield f"{kept} {repeats}{first}; all are kept"


def _warnings_of_models(models: Iterable[str]) -> Iterator[str]:
    """Yield which models have almost the same name, and are probably one model."""
    alike: dict[str, list[str]] = {}
    for name in models:
        alike.setdefault(name.strip().casefold(), []).append(name)
    groups = [names for names in alike.values() if len(names) > 1]
    for names in groups[:_SHOWN]:
        if len({name.strip() for name in names}) == 1:
            difference = "white space"
        elif len({name.casefold() for name in names}) == 1:
            difference = "case"
        else:
            difference = "white space and case"
        quoted = [repr(name[:_LONGEST_NAME]) for name in names[:_NAMED]]
        if len(names) > _NAMED:
            quoted.append(f"{len(names) - _NAMED} more")
        listed = f"{', '.join(quoted[:-1])} and {quoted[-1]}"
        yield f"models {listed} differ only in {difference}: they are graded as different models"
    if len(groups) > _SHOWN:
        more = counted(len(groups) - _SHOWN, "other group")
        yield f"{more} of models differ only in white space or case"


def _warnings_of_files(suite: Suite, table: Table) -> Iterator[str]:
    """Yield that files which look like trials of one agent are taken for models, by their names."""
    names = [given.name for given in suite.inputs.data]
    advice = suite.reader.component.one_model
    if len(names) < 2 or not advice:
        return
    ids, models = table.keys["id"], table.keys["model"]
    tasks_of_files = []
    for name in names:
        rows = table.of_input(name)
        tasks = {ids.codes[row] for row in rows}
        has_one_run_each = len(tasks) == len(rows)
        if not has_one_run_each or any(models.values[models.codes[row]] != name for row in rows):
            return
        tasks_of_files.append(tasks)
    first = tasks_of_files[0]
    if not first or any(tasks != first for tasks in tasks_of_files):
        return
    tasks_text = counted(len(first), "task")
    yield (
        f"{len(names)} files with one run each of the same {tasks_text} are {len(names)} models, "
        f"by the files' names; if they are trials of one agent: {advice}"
    )


def _warnings_of_records(suite: Suite, merged: Merged, ids: Iterable[str]) -> Iterator[str]:
    """Yield what is left out, repeated, odd about the data, not used, or without a counterpart in
    the dataset.
    """
    if merged.left_out or suite.subset:
        yield left_out_text(suite.taken, merged.samples, merged.left_out)
        yield from not_found(suite.taken, merged.facets, ids)
    yield from _warnings_of_duplicates(merged)
    if len(merged.ids) > 1:
        number, text = merged.ids["number"], merged.ids["text"]
        yield (
            f'ids are numbers (first at {number}) and text (first at {text}): 1 and "1" are one '
            "task"
        )
    if MADE in merged.remarks:
        number = merged.remarks[MADE][0]
        what = "no task ids found: records were numbered, repeated runs are not grouped (--id)"
        yield f"{number} task{'s' * (number > 1)}: {what}"
    kinds = {kind: entry for kind, entry in sorted(merged.remarks.items()) if kind != MADE}
    named: dict[str, list[str]] = {"in the data": [], "not used": []}
    for kind, (times, place) in list(kinds.items())[:_SHOWN]:
        where, what = _remark_text(kind)
        named[where].append(f"{what} ({counted(times, 'time')}, first at {place})")
    if len(kinds) > _SHOWN:
        named["not used"].append(f"{len(kinds) - _SHOWN} more kinds in header.json")
    yield from (f"{where}: {', '.join(each)}" for where, each in named.items() if each)
    without = {
        "task(s) without a row in it": merged.unmatched[0],
        "row(s) of it without a run": merged.unmatched[1],
        "id(s) of several rows, of which the last counts": merged.contradicted,
    }
    shown = suite.inputs.dataset.shown if suite.inputs.dataset is not None else "the dataset"
    if told := [
        f"{len(names)} {what}: {first_of(names, _NAMED)}"
        for what, names in without.items()
        if names
    ]:
        yield f"{shown}: {'; '.join(told)}"


def _remark_text(kind: str) -> tuple[str, str]:
    """Return where a kind of remark stands among the warnings, and its words.

    Not used are ``column:latency``, ``part:image_url`` and expectations that no grader reads; a
    name (``call_without_result``) and a sentence are about the data.
    """
    if kind.isidentifier():
        return "in the data", kind.replace("_", " ")
    if _PREFIXED.match(kind):
        return "not used", kind.replace(":", " ", 1)
    is_sentence = ": " in kind and TO_COMPARE not in kind
    return "in the data" if is_sentence else "not used", kind


def _warnings_of_grades(
    suite: Suite, counts: Mapping[str, Count], doubted: str, merged: Merged, firsts: Firsts
) -> Iterator[str]:
    if (
        doubted in counts
        and counts[doubted].graded
        and (skipped := counts[doubted].states[Outcome.SKIPPED])
    ):
        why, fix = _why(firsts, doubted, Outcome.SKIPPED), _fix(suite, doubted)
        yield (
            f"{skipped} of {merged.samples} samples are in no rate of "
            f"{doubted!r}{why and f', {why}'}{fix}"
        )
    without: dict[tuple[int, int], list[str]] = {}
    for key, count in counts.items():
        if merged.samples and not count.graded:
            yield (
                f"grader {key!r} graded no sample ({_others(count)}); "
                f"{_why(firsts, key) or 'which rows would say'}"
            )
        elif is_many(count.lost, of := count.graded + count.lost):
            without.setdefault((count.lost, of), []).append(repr(key))
    bad = (
        f", {merged.bad - merged.bad_parts} of them unreadable"
        if any(count.unreadable for count in counts.values())
        else ""
    )
    yield from (
        f"{share_text(*numbers)} failed or missing for {', '.join(keys)}{bad}"
        for numbers, keys in without.items()
    )


def baseline_verdict(
    gate: BaselineGate,
    suite: Suite,
    baselines: Baselines,
    now: Callable[[], list[Side]],
    scores: Scores,
) -> Verdict:
    """Return the verdict of a gate against an earlier run, with how many runs it stands on."""
    judged = baselines.verdict(gate, suite, now)
    require_graded(judged, [judged.metric_key or ""], scores)
    return judged


def add_reasons(gates: Sequence[Verdict], recorded: Report) -> None:
    """Add to the coverage of gates the most frequent reason of runs that were not graded.

    Of the most frequent state of the runs that a grader should have graded.
    """
    entries = [item for gate in gates for item in gate.all_coverage().items()]
    if not any(coverage.states for _, coverage in entries) or not recorded.has_rows:
        return
    reasons = _count_reasons(entries, recorded)
    for key, coverage in entries:
        counts = reasons.get((key, coverage.main_state))
        if counts:
            coverage.reason = counts.most_common(1)[0][0]


def _count_reasons(
    entries: Sequence[tuple[str, Coverage]], recorded: Report
) -> dict[tuple[str, str], Counter[str]]:
    """Count by grader and state the reasons of runs that were not graded."""
    elsewhere: dict[str, set[str]] = {}
    for key, coverage in entries:
        elsewhere.setdefault(key, set()).update(coverage.elsewhere)
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for number, _, line in recorded.lines():
        if not any(state in line for state in _UNGRADED):
            continue
        grades = recorded.row(number, line)["grades"]
        graders = {key for key, grade in grades.items() if grade["state"] != Outcome.SKIPPED}
        for key in elsewhere.keys() & grades.keys():
            state = grades[key]["state"]
            is_elsewhere = state == Outcome.SKIPPED and not graders.isdisjoint(elsewhere[key])
            if state != Outcome.GRADED and not is_elsewhere:
                reasons.setdefault((key, state), Counter())[_reason(grades[key])] += 1
    return reasons


_UNGRADED = [f'"{state}"'.encode() for state in Outcome if state != Outcome.GRADED]
"""Bytes of a row that has a grade without a score."""


def _warnings_of_components(
    suite: Suite, broken: Mapping[str, str], aggregates: Any
) -> Iterator[str]:
    origin = {each.name: f" ({each.stage.origin})" for each in suite.metrics}
    for name, text in sorted(broken.items()):
        yield f"{name}{origin.get(name, '')} is broken and left out: {text}"
    for key, metrics in aggregates.items():
        texts = (text for each in metrics.values() for text in as_list(each.get("warnings")))
        distinct = dict.fromkeys(text for text in texts if isinstance(text, str))
        yield from (f"grader {key!r}: {text}" for text in distinct)

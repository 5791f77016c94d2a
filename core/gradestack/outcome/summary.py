"""The content of summary.json: figures, gates, headline, failures and warnings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from gradestack.errors import ConfigError, first_of
from gradestack.gates.rules import BaselineGate, NoFigure, figure_at
from gradestack.gates.verdicts import (
    Scores,
    grader_figures,
    left_out,
    limit_verdict,
    mark_uncalibrated,
    rule_text,
    successes,
    verdict,
    verdict_text,
)
from gradestack.grading.merging import Merged, Merging
from gradestack.grading.metrics import Count, in_all
from gradestack.grading.subset import left_out_text, not_found, subset_entry
from gradestack.jsonio.values import as_list, as_map, as_text, is_number, loads
from gradestack.model import JSON, Outcome, Source
from gradestack.outcome.baselines import Baselines, baseline_verdict
from gradestack.output import counted, terminal_line
from gradestack.report import Report
from gradestack.rundir.header import MADE
from gradestack.suites.components import name_of_broken
from gradestack.suites.spec import Figure, Suite

_SHOWN = 8
"""Kinds of remarks named in a warning."""
_NAMED = 3
"""Ids named of those without a counterpart."""
_LONGEST = 300
"""Characters of a reason in a warning."""


def check_without_rows(suite: Suite) -> None:
    """Refuse to keep no rows where rows are what something is computed from."""
    problems = [
        f"gate {number}: compares task by task with a baseline, which needs rows"
        for number, gate in enumerate(suite.gates, 1)
        if isinstance(gate, BaselineGate)
    ]
    if suite.num_runs is not None:
        problems.append("num_runs: runs are told apart by their rows")
    if problems:
        raise ConfigError("no rows are kept (rows: none), but the suite needs them", *problems)


def summary(
    suite: Suite,
    merging: Merging,
    merged: Merged,
    recorded: Report,
    baselines: Baselines,
    part: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the content of summary.json for everything, or for one run of several."""
    keys, table = [stage.key for stage in suite.graders], merging.merged.table
    by_model = merging.counts(part)
    bad = merged.bad if part is None else 0  # nobody knows of which run they are
    counts = {key: in_all(each.values()).with_unreadable(bad) for key, each in by_model.items()}
    figures = {key: grader_figures(count, suite.profile) for key, count in counts.items()}
    head = figures[suite.main]
    aggregates = merging.figures(part)
    bounds = {stage.key: stage.component.bounds for stage in suite.graders}
    now = cache(lambda: baselines.this_run(suite, recorded, aggregates))  # rows are read for baselines only, once
    scores = Scores(table, part, bounds, lambda rows: aggregates if rows is part else merging.figures(rows), bad)
    gates = [
        baseline_verdict(gate, suite, now, baselines)
        if isinstance(gate, BaselineGate)
        else verdict(gate, scores, suite.profile)
        for gate in suite.gates
    ]
    asked = {stage.key for stage in suite.graders if getattr(stage.component, "judgements", None)}
    for gate in gates:
        mark_uncalibrated(gate, asked)
    gates += [] if suite.max_failed is None else [limit_verdict(suite.max_failed, counts)]
    lost = all_failed(suite, counts, merged, recorded)
    short = ("avg_score_attempted", "avg_score_total", "pass_rate", "passed_attempts", "failed_attempts")
    models = list(by_model[suite.main])
    named = any(models)
    found = None if suite.success is None else successes(table, suite.success, part)
    content: dict[str, Any] = {
        "suite": suite.name,
        "config": suite.config,
        "metrics": {
            **{name: head[name] for name in head if name != "pass_rate"},
            "per_model": [
                _model_row(suite, model, {key: of[model] for key, of in by_model.items()}) for model in models
            ]
            if named
            else None,
            "by_metric": {key: {name: figures[key][name] for name in short} for key in keys},
            "metrics": {key: figures[key]["pass_rate"] for key in keys},
            "states": {key: counts[key].states for key in keys},
            "aggregates": aggregates,
        },
        "pass_rule": rule_text(suite.main, suite.rule),
        "outcome": _outcome(suite, found, models if named else []),
        "headline": {"letta": suite.headline.letta, "figures": headline_figures(suite, aggregates, figures)},
        "gates": gates,
        "gates_passed": all(gate["passed"] for gate in gates) if gates else None,
        "bad_records": {"count": merged.bad, "listed": merged.bad_listed},
        "duplicates": {"policy": suite.duplicates, "count": merged.duplicates, "listed": merged.duplicates_listed},
        "warnings": [*_warnings(suite, merging, merged, counts, gates, recorded), *_figures_warnings(aggregates)],
    }
    if merged.left_out or suite.subset:
        content["subset"] = subset_entry(suite.taken, merged.samples, merged.left_out)
    if lost is not None:
        content["all_failed"] = lost
    if merged.remarks:
        content["remarks"] = {kind: {"count": n, "first": at} for kind, (n, at) in sorted(merged.remarks.items())}
    if broken := _broken(suite, merging.merged):
        content["broken"] = broken
    if lacking := _failed_metrics(suite, merging.merged):
        content["failed_metrics"] = lacking
    if merged.interrupted:
        content["incomplete"] = "interrupted: the figures cover the samples graded before"
        content["gates_passed"] = False if gates else None
    return content


def _model_row(suite: Suite, model: str, counts: Mapping[str, Count]) -> dict[str, Any]:
    profile = suite.profile
    head = grader_figures(counts[suite.main], profile)
    return {
        "model_name": model or None,
        "total": head["total"],
        "total_attempted": head["total_attempted"],
        "avg_score_attempted": head["avg_score_attempted"],
        "avg_score_total": head["avg_score_total"],
        "passed_samples": head["passed_attempts"],
        "failed_samples": head["failed_attempts"],
        "metrics": {key: grader_figures(count, profile)["pass_rate"] for key, count in counts.items()},
    }


def _first_reason(recorded: Report, key: str, *states: str) -> str:
    grades: Iterable[Mapping[str, Any]] = (row["grades"].get(key) or {} for row in recorded.rows())
    grade: Mapping[str, Any] = next((each for each in grades if not states or each.get("state") in states), {})
    reasons: list[Any] = grade.get("reasons") or [grade.get("fault") or {}]
    said = reasons[0].get("message") or grade.get("rationale") or reasons[0].get("code") or grade.get("state")
    return terminal_line(" ".join(str(said).split())[:_LONGEST])


def _warnings(
    suite: Suite,
    merging: Merging,
    merged: Merged,
    counts: Mapping[str, Count],
    gates: list[dict[str, JSON]],
    recorded: Report,
) -> list[str]:
    found = list(suite.warnings)
    if merged.left_out or suite.subset:
        found.append(left_out_text(suite.taken, merged.samples, merged.left_out))
        found += not_found(suite.taken, merged.facets, merging.merged.table.keys["id"].values)
    if merged.duplicates:
        first = f", the first at {merged.duplicates_listed[0]}" if merged.duplicates_listed else ""
        what = {"keep": "all are kept", "last": "the last is kept"}[suite.duplicates]
        found.append(f"{merged.duplicates} record(s) repeat an (id, model, run){first}; {what}")
    if len(merged.ids) > 1:
        number, text = merged.ids["number"], merged.ids["text"]
        found.append(f'ids are numbers (first at {number}) and text (first at {text}): 1 and "1" are one task')
    found += [*_remarks(merged), *_unmatched(suite, merged)]
    own_data = suite.profile != "upstream" and suite.reader.component.stack == "auto"
    key = suite.success.grader if own_data and suite.success is not None else ""
    if key in counts and counts[key].graded and (skipped := counts[key].states[Outcome.SKIPPED]):
        why = "" if suite.rows == "none" else f", the first: {_first_reason(recorded, key, Outcome.SKIPPED)}"
        found.append(f"{skipped} of {merged.samples} samples are in no rate of {key!r}{why}{_fix(suite, key)}")
    without: dict[tuple[int, int], list[str]] = {}
    for key, count in counts.items():
        states, lost = count.states, count.lost
        if merged.samples and not states[Outcome.GRADED]:
            others = ", ".join(f"{number} {state}" for state, number in states.items() if number)
            why = "which rows would say" if suite.rows == "none" else f"the first: {_first_reason(recorded, key)}"
            found.append(f"grader {key!r} graded no sample ({others}); {why}")
        elif suite.profile != "upstream" and _many(lost, of := states[Outcome.GRADED] + lost):
            without.setdefault((lost, of), []).append(repr(key))
    bad = f", {merged.bad} of them unreadable" if any(count.unreadable for count in counts.values()) else ""
    found += [f"{_share(*numbers)} failed or missing for {', '.join(keys)}{bad}" for numbers, keys in without.items()]
    found += [text for gate in gates for text in _left_out_of_groups(gate)]
    alone = [gate for gate in gates if gate.get("kind") == "baseline" and gate["outcome"] == "no_data"]
    found += [f"gate {gate['text']}: {gate['reason']}" for gate in alone]
    parts = [part for gate in gates for part in (gate, *gate.get("conditions", ()))]
    loose = [each for each in parts if each.get("outcome") == "undecided" and each["on_undecided"] == "warn"]
    found += [f"gate {each['text']}: undecided" for each in loose]
    doubtful = [gate for gate in gates if gate.get("on_uncalibrated") == "warn"]
    found += [f"gate {gate['text']}: uncalibrated: {gate['uncalibrated']}" for gate in doubtful]
    origin = {each.name: f" ({each.stage.origin})" for each in suite.metrics}
    broken = sorted({**_broken(suite, merging.merged), **_failed_metrics(suite, merging.merged)}.items())
    found += [f"{name}{origin.get(name, '')} is broken and left out: {text}" for name, text in broken]
    found += [f"{law}, {said}" for law, said in sorted(merged.breaches.items())]
    return found


def _failed_metrics(suite: Suite, merged: Merged) -> dict[str, str]:
    return {each.name: merged.broken[each.name] for each in suite.metrics if each.name in merged.broken}


def _broken(suite: Suite, merged: Merged) -> dict[str, str]:
    exporters = {stage.name: name_of_broken(stage.name, stage.distribution) for stage in suite.exporters}
    found = {exporters[name]: text for name, text in merged.broken.items() if name in exporters}
    return {**suite.broken, **found}


def _many(lost: int, of: int) -> bool:
    """Return whether so many samples failed or are missing that it has to be known: more than 5 %."""
    return 20 * lost > of


def _share(lost: int, of: int) -> str:
    return f"{lost} of {of} samples ({100 * lost / of:.1f}%)"


def _left_out_of_groups(gate: dict[str, JSON]) -> Iterator[str]:
    """Yield in which groups a gate compares figures that many samples are left out of."""
    for name, each in gate.get("groups", {}).items():
        for key, lost, of in left_out(each):
            if _many(lost, of):
                group = f"{terminal_line(name)}, {_share(lost, of)}"
                yield f"gate {gate['text']}: of {group} failed or missing for {key!r} do not count"


def _remarks(merged: Merged) -> list[str]:
    """Return what readers remarked: that ids were made up, what is odd about the data, what is not used."""
    kinds = {kind: entry for kind, entry in sorted(merged.remarks.items()) if kind != MADE}
    named: dict[str, list[str]] = {"in the data": [], "not used": []}
    for kind, (times, place) in list(kinds.items())[:_SHOWN]:
        odd = kind.isidentifier()  # else a column:latency
        what = kind.replace("_", " ") if odd else re.sub(r":(?=\S)", " ", kind, count=1)
        named["in the data" if odd else "not used"].append(f"{what} ({counted(times, 'time')}, first at {place})")
    if len(kinds) > _SHOWN:
        named["not used"].append(f"{len(kinds) - _SHOWN} more kinds in header.json")
    lines = [f"{where}: {', '.join(each)}" for where, each in named.items() if each]
    if MADE in merged.remarks:
        number = merged.remarks[MADE][0]
        what = "no task ids found: records were numbered, repeated runs are not grouped (--id)"
        lines.insert(0, f"{number} task{'s' * (number > 1)}: {what}")
    return lines


def _unmatched(suite: Suite, merged: Merged) -> list[str]:
    whose = (
        "task(s) without a row in it",
        "row(s) of it without a run",
        "id(s) of several rows, of which the last counts",
    )
    told = [
        f"{len(ids)} {what}: {first_of(ids, _NAMED)}"
        for ids, what in zip((*merged.unmatched, merged.contradicted), whose, strict=True)
        if ids
    ]
    shown = suite.inputs.dataset.shown if suite.inputs.dataset is not None else "the dataset"
    return [f"{shown}: {'; '.join(told)}"] if told else []


def _figures_warnings(aggregates: Mapping[str, Mapping[str, Mapping[str, JSON]]]) -> Iterator[str]:
    for key, metrics in aggregates.items():
        for each in metrics.values():
            texts = each.get("warnings")
            yield from (f"grader {key!r}: {text}" for text in as_list(texts) if isinstance(text, str))


def _outcome(suite: Suite, successes: Mapping[str, Any] | None, models: list[str]) -> dict[str, JSON] | None:
    """Return how many samples are a success, and the interval of their share; by whose verdict, in the run's words.

    None without an outcome.
    """
    if suite.success is None or successes is None:
        return None
    words, nothing = suite.headline, {"passed": 0, "failed": 0, "share": None, "share_interval": None}
    counts = {name: successes[name] for name in nothing}
    return {
        "grader": suite.success.grader,
        "rule": verdict_text(suite.success, counts["passed"] + counts["failed"], successes["own_verdicts"]),
        "words": {"passed": words.passed, "failed": words.failed},
        **counts,
        "per_model": [{"model_name": name or None, **successes["models"].get(name, nothing)} for name in models]
        or None,
    }


def headline_figures(
    suite: Suite, aggregates: Mapping[str, Mapping[str, Any]], averages: Mapping[str, Mapping[str, JSON]]
) -> list[dict[str, JSON]]:
    """Return the figures of the headline: label, path, value, and interval or reason where there is one."""
    found = []
    for figure in suite.headline.figures:
        metrics = as_map(aggregates[figure.grader][figure.metric] if figure.metric else averages[figure.grader])
        models = {str(name): _estimate(figure, as_map(each)) for name, each in as_map(metrics.get("models")).items()}
        entry = {"label": figure.label, "figure": figure.path, **_estimate(figure, metrics)}
        found.append({**entry, "models": models} if models else entry)
    return found


def _estimate(figure: Figure, metrics: Mapping[str, Any]) -> dict[str, JSON]:
    """Return value, and interval or reason, of a figure of an aggregator; null where there is none of that name."""
    place = None
    with suppress(NoFigure):
        place = figure_at(metrics, figure.name, (figure.metric,), "")
    if place is None or not place.path or not _shown(place.value):
        why = as_text(metrics.get("error")) or f"{figure.metric} has no figure {figure.name or figure.metric!r}"
        return {"value": None, "reason": why}
    interval = {"interval": dict(place.interval)} if isinstance(place.interval, Mapping) else {}
    if place.value is not None:
        return {"value": place.value, **interval}
    told = as_map(metrics.get("undefined")).get(place.path)
    return {"value": None, **interval, "reason": as_text(place.reason) or as_text(told) or "not defined"}


def _shown(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(each is None or is_number(each) for each in value.values())
    return value is None or is_number(value)


_MARK = b'"failed"'
"""What the line of a sample with a failed grade holds."""


def first_failures(lines: Iterable[bytes], states: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, Any]]:
    """Return grader key -> number of its failed grades, and reason and place of the first."""
    failed = {key: counts[Outcome.FAILED] for key, counts in states.items() if counts.get(Outcome.FAILED)}
    found: dict[str, dict[str, Any]] = {key: {"count": count} for key, count in failed.items()}
    wanted = set(failed)
    for line in lines if wanted else ():
        if _MARK not in line:
            continue
        row = loads(line)
        for key in sorted(wanted):
            grade = row["grades"][key]
            if grade["state"] == Outcome.FAILED:
                found[key]["first"] = {"reason": _reason(grade), "at": _place(row)}
                wanted.discard(key)
        if not wanted:
            break
    return found


def _reason(grade: Mapping[str, Any]) -> str:
    fault = as_map(grade.get("fault"))
    message = as_text(fault.get("message")) or as_text(fault.get("code"))
    kind = as_text(fault.get("type"))
    text = " ".join((f"{kind}: {message}" if kind and not message.startswith(kind) else message).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _place(row: Mapping[str, Any]) -> str:
    """Return where a sample was read, ``file:line`` where its format has lines; its id where nobody knows."""
    source = row["source"]
    return f"sample {row['sample']['id']}" if source is None else str(Source(**source))


def all_failed(suite: Suite, counts: Mapping[str, Count], merged: Merged, recorded: Report) -> str | None:
    """Return in one sentence that every grade failed, or that there is no result; None where that is not so."""
    if suite.profile == "upstream" or suite.allow_all_failed or merged.interrupted:
        return None
    failed = sum(each.states[Outcome.FAILED] for each in counts.values())
    if failed and not any(each.graded for each in counts.values()):
        reasons = (f"grader {key}: {text.strip().splitlines()[-1]}" for key, text in merged.tracebacks.items())
        if suite.rows != "none":
            graded = ((row, key, grade) for row in recorded.rows() for key, grade in row["grades"].items())
            ended = (each for each in graded if each[2]["state"] == Outcome.FAILED)
            reasons = (f"{_place(row)}, grader {key}: {_reason(grade)}" for row, key, grade in ended)
        first = next(reasons, "")
        number = "the only grade" if failed == 1 else f"all {failed} grades"
        return f"{number} failed, so nothing was graded{f'; the first: {first}' if first else ''}"
    key = "" if suite.success is None else suite.success.grader
    if key not in counts or counts[key].graded or not merged.samples:
        return None
    others = ", ".join(f"{number} {state}" for state, number in counts[key].states.items() if number)
    why = "" if suite.rows == "none" else f"; the first: {_first_reason(recorded, key)}"
    fix = "" if "--dataset" in why else _fix(suite, key)
    return f"no result: {key!r}, the outcome grader, graded no sample ({others}){why}{fix}"


def _fix(suite: Suite, key: str) -> str:
    compares = [stage.key for stage in suite.graders if "expected" in stage.component.needs]
    return "; to add what is expected: --dataset FILE" if key in compares and suite.inputs.dataset is None else ""

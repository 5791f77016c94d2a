"""The content of summary.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from gradestack.errors import ConfigError
from gradestack.gates.lines import left_out
from gradestack.gates.rules import BaselineGate
from gradestack.gates.scores import Scores, grader_figures, rule_text, successes
from gradestack.gates.verdicts import limit_verdict, verdict
from gradestack.grading.counts import Count, in_all
from gradestack.grading.merging import Merged, Merging
from gradestack.model import JSON, Outcome
from gradestack.outcome.baselines import Baselines, baseline_verdict, this_run
from gradestack.outcome.failures import all_failed
from gradestack.outcome.headline import headline_figures, outcome
from gradestack.output.terminal import terminal_line
from gradestack.report import Report
from gradestack.rundir.header import MADE
from gradestack.suites.components import name_of_broken
from gradestack.suites.spec import Suite

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
    counts = {key: in_all(each.values()) for key, each in by_model.items()}
    figures = {key: grader_figures(count, suite.profile) for key, count in counts.items()}
    head = figures[suite.main]
    aggregates = merging.figures(part)
    bounds = {stage.key: stage.component.bounds for stage in suite.graders}
    now = cache(lambda: this_run(suite, recorded))  # rows are read for baselines only, once
    scores = Scores(table, part, bounds, lambda rows: aggregates if rows is part else merging.figures(rows))
    gates = [
        baseline_verdict(gate, suite, now, baselines)
        if isinstance(gate, BaselineGate)
        else verdict(gate, scores, suite.profile)
        for gate in suite.gates
    ]
    gates += [] if suite.max_failed is None else [limit_verdict(suite.max_failed, counts)]
    lost = all_failed(suite, counts, merged, recorded.rows)
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
        "outcome": outcome(suite, found, models if named else []),
        "headline": {"letta": suite.headline.letta, "figures": headline_figures(suite, aggregates, figures)},
        "gates": gates,
        "gates_passed": all(gate["passed"] for gate in gates) if gates else None,
        "bad_records": {"count": merged.bad, "listed": merged.bad_listed},
        "duplicates": {
            "policy": suite.duplicates,
            "count": merged.duplicates,
            "listed": merged.duplicates_listed,
        },
        "warnings": [*_warnings(suite, merging, merged, counts, gates, recorded), *_figures_warnings(aggregates)],
    }
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


def _first_reason(recorded: Report, key: str) -> str:
    """Return why the first sample has no grade of a grader, on one line."""
    grade: Mapping[str, Any] = next((row["grades"].get(key) or {} for row in recorded.rows()), {})
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
    if merged.duplicates:
        first = f", the first at {merged.duplicates_listed[0]}" if merged.duplicates_listed else ""
        what = {"keep": "all are kept", "last": "the last is kept"}[suite.duplicates]
        found.append(f"{merged.duplicates} record(s) repeat an (id, model, run){first}; {what}")
    if len(merged.ids) > 1:
        number, text = merged.ids["number"], merged.ids["text"]
        found.append(f'ids are numbers (first at {number}) and text (first at {text}): 1 and "1" are one task')
    found += [*_remarks(merged), *_unmatched(suite, merged)]
    without: dict[tuple[int, int], list[str]] = {}
    for key, count in counts.items():
        states, lost = count.states, count.lost
        if merged.samples and not states[Outcome.GRADED]:
            others = ", ".join(f"{number} {state}" for state, number in states.items() if number)
            why = "which rows would say" if suite.rows == "none" else f"the first: {_first_reason(recorded, key)}"
            found.append(f"grader {key!r} graded no sample ({others}); {why}")
        elif suite.profile != "upstream" and _many(lost, of := states[Outcome.GRADED] + lost):
            without.setdefault((lost, of), []).append(repr(key))
    found += [f"{_share(*numbers)} failed or missing for {', '.join(keys)}" for numbers, keys in without.items()]
    found += [text for gate in gates for text in _left_out_of_groups(gate)]
    found += [f"gate {gate['text']}: {gate['reason']}" for gate in gates if _without_baseline(gate)]
    found += [f"gate {text}: undecided" for gate in gates for text in _undecided(gate)]
    origin = {each.name: f" ({each.stage.name} of {each.stage.distribution})" for each in suite.metrics}
    broken = sorted({**_broken(suite, merging.merged), **_failed_metrics(suite, merging.merged)}.items())
    found += [f"{name}{origin.get(name, '')} is broken and left out: {text}" for name, text in broken]
    return found


def _failed_metrics(suite: Suite, merged: Merged) -> dict[str, str]:
    """Return the metrics that have no figures, with why: the run stands without them."""
    return {each.name: merged.broken[each.name] for each in suite.metrics if each.name in merged.broken}


def _broken(suite: Suite, merged: Merged) -> dict[str, str]:
    """Return the exporters that are broken, by kind, name and distribution, with what each said."""
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


def _without_baseline(gate: dict[str, JSON]) -> bool:
    return gate.get("kind") == "baseline" and gate["outcome"] == "no_data"


def _undecided(gate: dict[str, JSON]) -> Iterator[str]:
    """Yield the rules of gates, or of their conditions, that pass although nothing is decided (``on_undecided``)."""
    for part in (gate, *gate.get("conditions", ())):
        if part.get("outcome") == "undecided" and part["on_undecided"] == "warn":
            yield part["text"]


def _remarks(merged: Merged) -> list[str]:
    """Return what readers remarked, in one line, and that ids were made up in another."""
    kinds = {kind: entry for kind, entry in sorted(merged.remarks.items()) if kind != MADE}
    named = [f"{number} {kind} (first at {place})" for kind, (number, place) in list(kinds.items())[:_SHOWN]]
    if len(kinds) > _SHOWN:
        named.append(f"{len(kinds) - _SHOWN} more kinds in header.json")
    lines = [f"left out, or without a counterpart: {', '.join(named)}"] if named else []
    if MADE in merged.remarks:
        number = merged.remarks[MADE][0]
        lines.insert(0, f"{number} task{'s' * (number > 1)}: ids made up, runs of one task cannot be told")
    return lines


def _unmatched(suite: Suite, merged: Merged) -> list[str]:
    """Return what has no counterpart on the other side of a dataset, with the first ids."""
    whose = (
        "task(s) without a row in it",
        "row(s) of it without a run",
        "id(s) of several rows, of which the last counts",
    )
    told = [
        f"{len(ids)} {what}: {', '.join(ids[:_NAMED])}{', …' * (len(ids) > _NAMED)}"
        for ids, what in zip((*merged.unmatched, merged.contradicted), whose, strict=True)
        if ids
    ]
    shown = suite.inputs.dataset.shown if suite.inputs.dataset is not None else "the dataset"
    return [f"{shown}: {'; '.join(told)}"] if told else []


def _figures_warnings(aggregates: Mapping[str, Mapping[str, Mapping[str, JSON]]]) -> list[str]:
    """Return what aggregators found that must not be overlooked: the texts under ``warnings`` of their metrics."""
    found = []
    for key, metrics in aggregates.items():
        for each in metrics.values():
            texts = each.get("warnings")
            found += (
                [f"grader {key!r}: {text}" for text in texts if isinstance(text, str)]
                if isinstance(texts, list)
                else []
            )
    return found

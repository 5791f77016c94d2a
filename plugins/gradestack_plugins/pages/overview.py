"""What pages show of a run beside single samples.

Verdict, figures, findings, graders, problems, how it was made.
"""

from __future__ import annotations

import operator
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gradestack import Declarations, Report, declared_presets, set_aside
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.pages import draw
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.figures import (
    axes_of,
    confidence_of,
    ends_of,
    gate_of,
    headline,
    rows_of,
    success_of,
    words_of,
)
from gradestack_plugins.pages.index import RowIndex, index_of
from gradestack_plugins.pages.jsonview import laid_out
from gradestack_plugins.pages.losses import agreement_of, funnel_of, losses_of
from gradestack_plugins.pages.panel import Asked, asked, panels, says_left_out
from gradestack_plugins.pages.sample import source_text
from gradestack_plugins.pages.tasks import Reliability, reliability_of
from gradestack_plugins.pages.text import (
    UNDEFINED,
    brief,
    capital,
    counted,
    natural,
    number,
    percent,
)

_STATES = ("graded", "skipped", "failed", "missing")
_MOST_PROBLEMS, _MOST_FINDINGS, _MOST_MODELS = 200, 3, 6
_LONGEST_NOTE = 1000
_LOST_INPUT, _UNGRADED = 0.01, 0.01
"""Shares from which unread records and ungraded samples are a finding."""
_NO_DIFFERENCE, _ENOUGH = 0.05, 10
"""A grader whose means differ by less between successes and the others, over so many samples each,
tells them not.
"""


class Part(NamedTuple):
    """A part of a sentence: ``ok``, ``no`` and ``b`` stand out, "" does not."""

    text: str
    tone: str = ""


def overview(report: Report, index: RowIndex) -> Shape:
    """Return everything before the samples of a report.

    ``verdict`` is ``passed``, ``failed``, ``none`` without a gate, or ``no_result`` without one
    where nothing was graded; ``success`` None where the run has no outcome; ``broken`` what ended
    the run early or broke on the way.
    """
    summary, header = as_map(report.summary), as_map(report.header)
    bad, duplicates = as_map(summary.get("bad_records")), as_map(summary.get("duplicates"))
    head, metrics = main_key(summary, header), as_map(summary.get("metrics"))
    graders = list(_graders(metrics, head, index))
    inputs = [_input(as_map(entry)) for entry in as_list(header.get("inputs"))]
    components = map(as_map, as_list(header.get("components")))

    def listed(held: Any, limit: int) -> list[str]:
        return [brief(each, limit) for each in as_list(held)[:_MOST_PROBLEMS]]

    return Shape(
        name=brief(report.name, 200),
        verdict=_verdict(report),
        notes=[
            _note(as_text(each), {name for name, *_ in inputs})
            for each in as_list(header.get("notes"))
        ],
        version=brief(as_text(header.get("version")), 40),
        total=as_count(metrics.get("total")),
        gates=[gate_of(as_map(gate)) for gate in as_list(summary.get("gates"))],
        success=success_of(summary),
        words=words_of(summary),
        stack=brief(as_text(as_map(summary.get("config")).get("stack")), 60),
        profile=_profile_text(report),
        lead=_lead(summary, Declarations(header), index, head or ""),
        graders=graders,
        head=graders[0] if graders else None,
        bad_count=as_count(bad.get("count")),
        bad=[
            Shape(place=source_text(each), reason=brief(as_text(each.get("reason")), 600))
            for each in map(as_map, as_list(bad.get("listed"))[:_MOST_PROBLEMS])
        ],
        warnings=listed(summary.get("warnings"), 1000),
        duplicates=as_count(duplicates.get("count")),
        duplicate_rule=brief(as_text(duplicates.get("policy")), 40),
        duplicate_places=listed(duplicates.get("listed"), 300),
        broken=[Shape(place=place, reason=brief(text, 600)) for place, text in _broken(summary)],
        components=[
            _component(each) for each in components if each.get("kind") != "engine"
        ],  # no result depends on it
        inputs=inputs,
        config=laid_out(summary["config"], 20_000) if summary.get("config") else "",
    )


def _profile_text(report: Report) -> str:
    """Return what a run says of its profile; the original program may have run beside it."""
    if as_list(report.summary.get("programs")):
        return "with the original program"
    name = brief(as_text(report.header.get("profile")), 60)
    return f"{name} profile" if name else ""


def _verdict(report: Report) -> str:
    if report.passed is None:
        return "no_result" if report.all_failed else "none"
    return "passed" if report.passed and not report.all_failed else "failed"


def _input(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return name, size and checksum.

    The folder is left out, since a page says the same wherever the files lay.
    """
    name, size = (
        as_text(entry.get("path")).replace("\\", "/").rpartition("/")[2],
        entry.get("bytes"),
    )
    known = "" if size is None else f"{number(size)} bytes"
    return brief(name, 200), known, brief(as_text(entry.get("sha256")), 80)


def _note(text: str, names: Collection[str]) -> str:
    """Return a note; input files in a command by their names."""
    head, command, words = text.partition("The same as: ")
    if command:
        short = (
            last if (last := each.rpartition("/")[2]) in names else each
            for each in shlex.split(words)
        )
        text = f"{head}{command}{shlex.join(short)}"
    return brief(text, _LONGEST_NOTE)


def _component(entry: Mapping[str, Any]) -> tuple[str, ...]:
    texts = (
        brief(as_text(entry.get(name)), 120)
        for name in ("kind", "key", "name", "version", "distribution")
    )
    options = as_map(entry.get("options"))
    return (*texts, brief(dict(options), 400) if options else "")


def _broken(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if stopped := summary.get("incomplete"):
        why = "the run was interrupted; figures cover what was read"
        yield "incomplete", stopped[:300] if isinstance(stopped, str) else why
    if summary.get("all_failed"):
        yield "error", as_text(summary["all_failed"])
    broken = {**as_map(summary.get("broken")), **as_map(summary.get("failed_metrics"))}
    yield from ((brief(key, 120), text) for key, text in sorted(broken.items()))


def main_key(summary: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    """Return the key of the main grader, whose grades stand as the rows' own.

    The gate's, else the suite's first.
    """
    keys = sorted(as_map(as_map(summary.get("metrics")).get("by_metric")), key=natural)
    gates = [as_text(as_map(gate).get("metric_key")) for gate in as_list(summary.get("gates"))[:1]]
    gates.append(as_text(as_map(as_map(summary.get("config")).get("gate")).get("metric_key")))
    components = map(as_map, as_list(header.get("components")))
    graders = [as_text(each.get("key")) for each in components if each.get("kind") == "grader"]
    return next((key for key in (*filter(None, gates), *graders, *keys) if key in keys), None)


def _graders(metrics: Mapping[str, Any], head: str | None, index: RowIndex) -> Iterator[Shape]:
    """Yield the figures of graders.

    Averages over graded samples and over all, states, and scores beside 0 and 1.
    """
    by_metric, aggregates, states = (
        as_map(metrics.get(part)) for part in ("by_metric", "aggregates", "states")
    )
    for key in sorted(
        {*by_metric, *aggregates, *states}, key=lambda key: (key != head, natural(key))
    ):
        averages, scores = as_map(by_metric.get(key)), index.scores.get(key)
        yield Shape(
            key=brief(key, 80),
            attempted=number(averages.get("avg_score_attempted")),
            total=number(averages.get("avg_score_total")),
            counts={name: as_count(as_map(states.get(key)).get(name)) for name in _STATES},
            scores=draw.distribution("Distribution of scores", scores)
            if scores and scores.fractional
            else None,
        )


def _lead(summary: Mapping[str, Any], declared: Declarations, index: RowIndex, main: str) -> Shape:
    success, metrics = success_of(summary), as_map(summary.get("metrics"))
    own = success.grader if success is not None else main
    reliable, states = (
        reliability_of(index, outcome=success is not None),
        as_map(as_map(metrics.get("states")).get(own)),
    )
    rows = rows_of(summary, declared, reliable)
    return Shape(
        sentence=sentence(
            success,
            words_of(summary),
            reliable,
            rows,
            as_count(metrics.get("total")),
            next((each for each in headline(summary) if "corrects" in each), {}),
        ),
        made_of=made_of(summary, reliable),
        states=[(name, as_count(states.get(name))) for name in _STATES] if states else [],
        confidence=confidence_of(summary),
        rows=rows,
        axes=axes_of(rows),
        findings=findings(summary, index, success, own, reliable.noun),
        reliable=reliable,
        funnel=funnel_of(index),
    )


def sentence(
    success: Shape | None,
    words: Mapping[str, str],
    reliable: Reliability,
    rows: Collection[Shape],
    total: int,
    corrected: Mapping[str, Any] = {},
) -> tuple[Part, ...]:
    """Return what a run comes to.

    Its successes, of several models those of each, else its first figure. Before the successes of
    one model the share that labels make of them (``corrected``).
    """
    if not total:
        return (Part("This run has no samples."),)
    first = next((row for row in rows if row.value != UNDEFINED), None)
    if success is None and first is not None:
        return (Part(f"{first.title}: "), Part(f"{first.value}{first.unit}", "ok"))
    if success is None or not (success.of or any(map(any, success.models.values()))):
        by = "" if success is None else f" by {brief(success.grader, 60)}"
        return (Part("No result", "no"), Part(f": none of {counted(total, 'samples')} graded{by}"))
    if corrected and not success.many:
        return _corrected_sentence(success, corrected)
    head = Part(f"{capital(words['passed'])}: ")
    if success.many:
        shares = [
            f"{brief(name, 60) or '(no name)'} {percent(ok, ok + no)}"
            for name, (ok, no) in success.models.items()
        ]
        others = success.others + max(0, len(shares) - _MOST_MODELS)
        more = f", {others} more models" if others else ""
        return (head, Part(", ".join(shares[:_MOST_MODELS]), "ok"), Part(more))
    share = Part(f"{number(success.passed)} of {counted(success.of, reliable.noun)}", "ok")
    if not reliable.parts or success.passed in (0, success.of):
        return (head, share)
    every = f"{number(reliable.parts[0][1])} of {counted(reliable.tasks, 'tasks')}"
    return (head, share, Part("; in every trial: "), Part(every, "no"))


def _corrected_sentence(success: Shape, corrected: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return the share of successes as labels correct it, and the share itself."""
    label = brief(as_text(corrected.get("label")), 80)
    whose = brief(as_text(corrected.get("corrects")), 80)
    share = success.passed / success.of
    raw = f"{whose} {share:.0%} ({number(success.passed)} of {number(success.of)})"
    value, (low, high) = as_number(corrected.get("value")), ends_of(corrected.get("interval"))
    if value is None:
        why = brief(as_text(corrected.get("reason")), 160)
        return (Part(f"{label}: "), Part("not known", "no"), Part(f" ({why}); {raw}"))
    ends = "" if low is None or high is None else f" ({100 * low:.0f}–{100 * high:.0f})"
    return (Part(f"{label} "), Part(f"{value:.0%}{ends}", "ok"), Part(f"; {raw}"))


def side_of(summary: Mapping[str, Any]) -> str:
    """Return what is compared on a page: a ``run`` or, of one run, a ``model``."""
    return as_text(summary.get("side")) or "model"


def made_of(summary: Mapping[str, Any], reliable: Reliability) -> str:
    """Return what a run is made of, as a phrase: ``50 tasks × 4 trials = 200 runs``."""
    total, side = as_count(as_map(summary.get("metrics")).get("total")), side_of(summary)
    trials, models = reliable.trials or 1, reliable.models
    if (
        trials == 1 or reliable.tasks * trials != total or reliable.tasks % models
    ):  # the sides may have other tasks
        return counted(total, "samples")
    sides = f" × {models} {side}s" if models > 1 else ""
    noun = "samples" if side == "run" else reliable.noun
    return (
        f"{counted(reliable.tasks // models, 'tasks')}{sides} × {trials} trials = "
        f"{number(total)} {noun}"
    )


def findings(
    summary: Mapping[str, Any], index: RowIndex, success: Shape | None, main: str, noun: str
) -> list[Shape]:
    """Return what to know before using the figures, the gravest first, and only what holds.

    ``chart`` has scores it is about, ``link`` the id on the page that has the details, ``ungraded``
    failed and missing samples it is about.
    """
    found, metrics = [], as_map(summary.get("metrics"))
    bad = as_count(as_map(summary.get("bad_records")).get("count"))
    every = bad + as_count(metrics.get("total"))
    if every and bad / every > _LOST_INPUT:
        head = f"{number(bad)} of {counted(every, 'records')} could not be read"
        found.append(
            _finding(head, f" ({percent(bad, every)}) and are in no figure.", link="problems")
        )
    states = as_map(as_map(metrics.get("states")).get(main))
    counts = {name: as_count(states.get(name)) for name in ("failed", "missing")}
    without = sum(counts.values())
    every = as_count(states.get("graded")) + without
    if every and without / every > _UNGRADED:
        kinds = " and ".join(f"{number(n)} {name}" for name, n in counts.items() if n)
        head = f"{number(without)} of {counted(every, 'samples')} have no grade"
        rest = f" by {brief(main, 60)} ({kinds}); averages of graded samples leave them out."
        found.append(_finding(head, rest, ungraded=without))
    if success is not None and not success.many:
        found += _unrelated(summary, index, success, noun)
    return found[:_MOST_FINDINGS]


def _finding(head: str, rest: str, **more: Any) -> Shape:
    return Shape(
        parts=(Part(head, "b"), Part(rest)),
        **({"chart": None, "more": "", "link": "", "ungraded": 0} | more),
    )


def _unrelated(
    summary: Mapping[str, Any], index: RowIndex, success: Shape, noun: str
) -> Iterator[Shape]:
    """Yield graders whose scores are about the same whatever the outcome, with both
    distributions.
    """
    words = words_of(summary)
    names = {
        as_text(each.get("figure")): brief(as_text(each.get("label")), 60)
        for each in headline(summary)
    }
    for key in sorted({key for key, _ in index.by_outcome} - {success.grader}):
        sides = [
            (words[word], index.by_outcome.get((key, word == "passed")))
            for word in ("passed", "lost")
        ]
        known = [(word, each) for word, each in sides if each is not None and each.count >= _ENOUGH]
        means = [each.mean or 0.0 for _, each in known]
        if len(means) < 2 or means[0] - means[1] >= _NO_DIFFERENCE:
            continue
        name, scores = names.get(f"{key}.mean") or brief(key, 60), index.scores[key]
        told = ", ".join(
            f"{word} {each.mean:.2f} ({counted(each.count, noun)})" for word, each in known
        )
        bins = draw.binned(
            scores.edges, [(each.below, *each.counts, each.above) for _, each in known]
        )
        chart = (
            draw.opposed(name, [word for word, _ in known], bins[::-1])
            if scores.fractional
            else None
        )
        head = f"{name} does not separate “{words['passed']}” from “{words['lost']}”."
        yield _finding(head, f" Mean: {told}.", chart=chart, more=_quiet(index, words, noun))


def _quiet(index: RowIndex, words: Mapping[str, str], noun: str) -> str:
    """Return what samples that expect no call have to do with it, "" when nothing."""
    entries = [index.entries[position] for position in index.quiet]
    zero = sum(entry.passed is True and entry.score == 0 for entry in entries)
    tasks = counted(len({(entry.model, entry.id) for entry in entries}), "tasks")
    every = (
        f"No call is expected in {counted(len(entries), noun)} of {tasks}, where any call scores 0"
    )
    return f"{every}: {number(zero)} of these “{words['passed']}”." if zero else ""


class Page(msgspec.Struct, frozen=True):
    """What pages show of a run beside single samples."""

    index: RowIndex
    view: Shape
    panels: Asked
    agreement: Sequence[Shape]
    losses: Shape


def page_of(report: Report) -> Page:
    """Return the model of a report's pages; the same one for every reporter of a run."""
    index, header, summary = index_of(report), report.header, report.summary
    made_from = (index, header, summary, panels(report))
    known, found = report.shared.get("page", ((), None))
    if not known or not all(map(operator.is_, known, made_from)):
        view = overview(report, index)
        view.warnings = [each for each in view.warnings if not says_left_out(each)]
        shown = asked(panels(report), ("overview", "figures", "page"), report)
        outcome = as_text(as_map(summary.get("outcome")).get("grader")) or None
        losses = losses_of(index, set_aside(declared_presets(header), outcome))
        found = Page(index, view, shown, agreement_of(header, summary, index), losses)
        report.shared["page"] = (made_from, found)
    page: Page = found
    return page

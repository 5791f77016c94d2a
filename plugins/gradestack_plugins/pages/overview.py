"""What pages show of a run beside single samples: verdict, figures, findings, graders, problems, how it was made."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from gradestack import Declarations, Report
from gradestack.jsonio import as_count, as_list, as_map, as_text
from gradestack_plugins.pages import draw
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.figures import (
    FigureRow,
    Success,
    axes_of,
    confidence_of,
    gate_of,
    rows_of,
    success_of,
    words_of,
)
from gradestack_plugins.pages.index import RowIndex, index_of
from gradestack_plugins.pages.jsonview import laid_out
from gradestack_plugins.pages.losses import Losses, agreement_of, funnel_of, losses_of
from gradestack_plugins.pages.panel import Asked, asked, panels, says_left_out
from gradestack_plugins.pages.tallies import declared_presets
from gradestack_plugins.pages.tasks import Reliability, reliability_of
from gradestack_plugins.pages.text import UNDEFINED, brief, capital, counted, natural, number, percent

STATES = ("graded", "skipped", "failed", "missing")
MOST_PROBLEMS = 200
SCORES = "Distribution of scores"
_MOST_FINDINGS, _MOST_MODELS = 3, 6
_LONGEST_NOTE = 1000
_LOST_INPUT, _UNGRADED = 0.01, 0.01
"""Shares from which unread records and ungraded samples are a finding."""
_NO_DIFFERENCE, _ENOUGH = 0.05, 10
"""A grader whose means differ by less between successes and the others, over so many samples each, tells them not."""


class Part(msgspec.Struct, frozen=True):
    """A part of a sentence: ``ok``, ``no`` and ``b`` stand out, "" does not."""

    text: str
    tone: str = ""


class Finding(msgspec.Struct, frozen=True):
    """What to know before using the figures."""

    parts: tuple[Part, ...]
    chart: Shape | None = None
    """Scores it is about."""
    more: str = ""
    link: str = ""
    """Id on the page that has the details."""
    ungraded: int = 0
    """Failed and missing samples it is about."""


def overview(report: Report, index: RowIndex) -> Shape:
    """Return everything before the samples of a report.

    ``verdict`` is ``passed``, ``failed``, ``none`` without a gate, or ``no_result`` without one where nothing was
    graded; ``success`` None where the run has no outcome; ``broken`` what ended the run early or broke on the way.
    """
    summary, header, declared = as_map(report.summary), as_map(report.header), Declarations(report.header)
    metrics, bad = as_map(summary.get("metrics")), as_map(summary.get("bad_records"))
    duplicates, success, head = as_map(summary.get("duplicates")), success_of(summary), main_key(summary, header)
    graders = _graders(summary, head, index)
    return Shape(
        name=brief(report.name, 200),
        verdict=_verdict(report),
        notes=tuple(_note(as_text(each), header) for each in as_list(header.get("notes"))),
        version=brief(as_text(header.get("version")), 40),
        total=as_count(metrics.get("total")),
        gates=tuple(gate_of(as_map(gate)) for gate in as_list(summary.get("gates"))),
        success=success,
        words=words_of(summary),
        stack=brief(as_text(as_map(summary.get("config")).get("stack")), 60),
        profile=brief(as_text(header.get("profile")), 60),
        lead=_lead(summary, declared, index, head or ""),
        graders=graders,
        head=graders[0] if graders else None,
        bad_count=as_count(bad.get("count")),
        bad=tuple(_problem(as_map(entry)) for entry in as_list(bad.get("listed"))[:MOST_PROBLEMS]),
        warnings=tuple(brief(warning, 1000) for warning in as_list(summary.get("warnings"))[:MOST_PROBLEMS]),
        duplicates=as_count(duplicates.get("count")),
        duplicate_rule=brief(as_text(duplicates.get("policy")), 40),
        duplicate_places=tuple(brief(place, 300) for place in as_list(duplicates.get("listed"))[:MOST_PROBLEMS]),
        broken=_broken(summary),
        components=_components(header),
        inputs=tuple(_input(as_map(entry)) for entry in as_list(header.get("inputs"))),
        config=laid_out(summary["config"], 20_000) if summary.get("config") else "",
    )


def _verdict(report: Report) -> str:
    if report.passed is None:
        return "no_result" if report.all_failed else "none"
    return "passed" if report.passed and not report.all_failed else "failed"


def _note(text: str, header: Mapping[str, Any]) -> str:
    """Return a note; files in a command by their names, since a page says the same wherever they lay."""
    head, command, words = text.partition("The same as: ")
    if not command:
        return brief(text, _LONGEST_NOTE)
    names = {_input(as_map(each))[0] for each in as_list(header.get("inputs"))}
    short = (each.rpartition("/")[2] if each.rpartition("/")[2] in names else each for each in shlex.split(words))
    return brief(f"{head}{command}{shlex.join(short)}", _LONGEST_NOTE)


def main_key(summary: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    """Return the key of the main grader, whose grades stand as the rows' own: the gate's, else the suite's first."""
    keys = sorted(as_map(as_map(summary.get("metrics")).get("by_metric")), key=natural)
    gate = next((as_text(as_map(gate).get("metric_key")) for gate in as_list(summary.get("gates"))), "")
    gate = gate or as_text(as_map(as_map(summary.get("config")).get("gate")).get("metric_key"))
    components = map(as_map, as_list(header.get("components")))
    graders = [as_text(each.get("key")) for each in components if each.get("kind") == "grader"]
    return next((key for key in (gate, *graders, *keys) if key in keys), None)


def _graders(summary: Mapping[str, Any], head: str | None, index: RowIndex) -> tuple[Shape, ...]:
    """Return the figures of graders: averages over graded samples and over all, states, and scores beside 0 and 1."""
    metrics = as_map(summary.get("metrics"))
    by_metric, aggregates, states = (as_map(metrics.get(part)) for part in ("by_metric", "aggregates", "states"))
    found = []
    for key in sorted({*by_metric, *aggregates, *states}, key=lambda key: (key != head, natural(key))):
        averages, scores = as_map(by_metric.get(key)), index.scores.get(key)
        found.append(
            Shape(
                key=brief(key, 80),
                attempted=number(averages.get("avg_score_attempted")),
                total=number(averages.get("avg_score_total")),
                counts={name: as_count(as_map(states.get(key)).get(name)) for name in STATES},
                scores=draw.distribution(SCORES, scores) if scores is not None and scores.fractional else None,
            )
        )
    return tuple(found)


def _lead(summary: Mapping[str, Any], declared: Declarations, index: RowIndex, main: str) -> Shape:
    words, metrics, success = words_of(summary), as_map(summary.get("metrics")), success_of(summary)
    reliable = reliability_of(index, outcome=success is not None)
    rows = rows_of(summary, declared, reliable)
    own = success.grader if success is not None else main
    states = as_map(as_map(metrics.get("states")).get(own))
    return Shape(
        sentence=sentence(success, words, reliable, rows, as_count(metrics.get("total"))),
        made_of=made_of(summary, reliable),
        states=tuple((name, as_count(states.get(name))) for name in STATES) if states else (),
        confidence=confidence_of(summary),
        rows=rows,
        axes=axes_of(rows),
        findings=findings(summary, index, success, own, reliable.noun),
        reliable=reliable,
        funnel=funnel_of(index),
    )


def sentence(
    success: Success | None, words: Mapping[str, str], reliable: Reliability, rows: Collection[FigureRow], total: int
) -> tuple[Part, ...]:
    """Return what a run comes to: its successes, of several models those of each, else its first figure."""
    if not total:
        return (Part("This run has no samples."),)
    first = next((row for row in rows if row.value != UNDEFINED), None)
    if success is None and first is not None:
        return (Part(f"{first.title}: "), Part(f"{first.value}{first.unit}", "ok"))
    if success is None or not (success.of or any(map(any, success.models.values()))):
        by = "" if success is None else f" by {brief(success.grader, 60)}"
        return (Part("No result", "no"), Part(f": none of {counted(total, 'samples')} graded{by}"))
    head = Part(f"{capital(words['passed'])}: ")
    if success.many:
        shares = [
            f"{brief(name, 60) or '(no name)'} {percent(ok, ok + no)}" for name, (ok, no) in success.models.items()
        ]
        more = f", {len(shares) - _MOST_MODELS} more models" if len(shares) > _MOST_MODELS else ""
        return (head, Part(", ".join(shares[:_MOST_MODELS]), "ok"), Part(more))
    share = Part(f"{number(success.passed)} of {counted(success.of, reliable.noun)}", "ok")
    if not reliable.parts or success.passed in (0, success.of):
        return (head, share)
    every = f"{number(reliable.parts[0][1])} of {counted(reliable.tasks, 'tasks')}"
    return (head, share, Part("; in every trial: "), Part(every, "no"))


def side_of(summary: Mapping[str, Any]) -> str:
    """Return what is compared on a page: a ``run`` or, of one run, a ``model``."""
    return as_text(summary.get("side")) or "model"


def made_of(summary: Mapping[str, Any], reliable: Reliability) -> str:
    """Return what a run is made of, as a phrase: ``50 tasks × 4 trials = 200 runs``."""
    total = as_count(as_map(summary.get("metrics")).get("total"))
    if reliable.trials is not None and reliable.trials > 1 and reliable.tasks * reliable.trials == total:
        each, left = divmod(reliable.tasks, reliable.models)
        if left:  # the sides have other tasks
            return counted(total, "samples")
        side = side_of(summary)
        sides = f" × {reliable.models} {side}s" if reliable.models > 1 else ""
        tasks = each if sides else reliable.tasks
        noun = "samples" if side == "run" else reliable.noun
        return f"{counted(tasks, 'tasks')}{sides} × {reliable.trials} trials = {number(total)} {noun}"
    return counted(total, "samples")


def findings(
    summary: Mapping[str, Any],
    index: RowIndex,
    success: Success | None,
    main: str,
    noun: str,
) -> tuple[Finding, ...]:
    """Return the findings of a run, the gravest first, and only those that hold."""
    words = words_of(summary)
    found = [*_unread(summary), *_ungraded(summary, main)]
    if success is not None and not success.many:
        found += _unrelated(summary, index, success, words, noun)
    return tuple(found[:_MOST_FINDINGS])


def opposed(index: RowIndex, key: str, words: Mapping[str, str], name: str) -> Shape | None:
    """Return how the scores of one grader go with the outcome; None where they are 0 and 1 only, or all on one side."""
    scores = index.scores.get(key)
    sides = [index.by_outcome.get((key, passed)) for passed in (True, False)]
    if scores is None or not scores.fractional or None in sides:
        return None
    left, right = (each for each in sides if each is not None)
    labels = [*(f"{low:g}–{high:g}" for low, high in itertools.pairwise(scores.edges)), "1"]
    bins = list(zip(labels, left.counts, right.counts, strict=True))[::-1]
    if left.above or right.above:
        bins.insert(0, ("> 1", left.above, right.above))
    if left.below or right.below:
        bins.append(("< 0", left.below, right.below))
    names, ours, theirs = zip(*bins, strict=True)
    return draw.opposed(name, (words["passed"], words["lost"]), names, (ours, theirs))


def _unread(summary: Mapping[str, Any]) -> Iterator[Finding]:
    bad = as_count(as_map(summary.get("bad_records")).get("count"))
    every = bad + as_count(as_map(summary.get("metrics")).get("total"))
    if every and bad / every > _LOST_INPUT:
        head = Part(f"{number(bad)} of {counted(every, 'records')} could not be read", "b")
        yield Finding((head, Part(f" ({percent(bad, every)}) and are in no figure.")), link="problems")


def _ungraded(summary: Mapping[str, Any], main: str) -> Iterator[Finding]:
    states = as_map(as_map(as_map(summary.get("metrics")).get("states")).get(main))
    failed, missing = as_count(states.get("failed")), as_count(states.get("missing"))
    every = as_count(states.get("graded")) + failed + missing
    if every and (failed + missing) / every > _UNGRADED:
        kinds = " and ".join(f"{number(n)} {name}" for name, n in (("failed", failed), ("missing", missing)) if n)
        head = Part(f"{number(failed + missing)} of {counted(every, 'samples')} have no grade", "b")
        rest = Part(f" by {brief(main, 60)} ({kinds}) and are left out of the averages.")
        yield Finding((head, rest), ungraded=failed + missing)


def _unrelated(
    summary: Mapping[str, Any], index: RowIndex, success: Success, words: Mapping[str, str], noun: str
) -> Iterator[Finding]:
    """Yield graders whose scores are about the same whatever the outcome."""
    figures = map(as_map, as_list(as_map(summary.get("headline")).get("figures")))
    names = {as_text(each.get("figure")): brief(as_text(each.get("label")), 60) for each in figures}
    for key in sorted({key for key, _ in index.by_outcome} - {success.grader}):
        ours, theirs = index.by_outcome.get((key, True)), index.by_outcome.get((key, False))
        if ours is None or theirs is None or min(ours.count, theirs.count) < _ENOUGH:
            continue
        high, low = ours.mean or 0.0, theirs.mean or 0.0
        if high - low < _NO_DIFFERENCE:
            name = names.get(f"{key}.mean") or brief(key, 60)
            means = [(words["passed"], high, ours.count), (words["lost"], low, theirs.count)]
            told = ", ".join(f"{word} {mean:.2f} ({counted(n, noun)})" for word, mean, n in means)
            head = Part(f"{name} does not separate “{words['passed']}” from “{words['lost']}”.", "b")
            chart = opposed(index, key, words, name)
            yield Finding((head, Part(f" Mean: {told}.")), chart, _quiet(index, words, noun))


def _quiet(index: RowIndex, words: Mapping[str, str], noun: str) -> str:
    """Return what samples that expect no call have to do with it, "" when nothing."""
    entries = [index.entries[position] for position in index.quiet]
    zero = sum(entry.passed is True and entry.score == 0 for entry in entries)
    if not zero:
        return ""
    tasks = len({(entry.model, entry.id) for entry in entries})
    every = (
        f"No call is expected in {counted(len(entries), noun)} of {counted(tasks, 'tasks')}, where any call scores 0"
    )
    return f"{every}: {number(zero)} of these “{words['passed']}”."


def _problem(entry: Mapping[str, Any]) -> Shape:
    line = entry.get("line")
    place = f"line {line}" if isinstance(line, int) else f"record {as_count(entry.get('ordinal')) + 1}"
    file = brief(as_text(entry.get("file")), 200)
    return Shape(place=f"{file}, {place}", reason=brief(as_text(entry.get("reason")), 600))


def _broken(summary: Mapping[str, Any]) -> list[Shape]:
    broken = {**as_map(summary.get("broken")), **as_map(summary.get("failed_metrics"))}
    found = [(brief(key, 120), text) for key, text in sorted(broken.items())]
    if summary.get("all_failed"):
        found.insert(0, ("error", as_text(summary["all_failed"])))
    stopped = summary.get("incomplete")
    if stopped:
        why = "the run was interrupted; figures cover what was read"
        found.insert(0, ("incomplete", stopped[:300] if isinstance(stopped, str) else why))
    return [Shape(place=place, reason=brief(text, 600)) for place, text in found]


def _components(header: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return what took part; not the engine, on which no result depends."""
    found = map(as_map, as_list(header.get("components")))
    return tuple(_component(entry) for entry in found if entry.get("kind") != "engine")


def _component(entry: Mapping[str, Any]) -> tuple[str, ...]:
    texts = (brief(as_text(entry.get(name)), 120) for name in ("kind", "key", "name", "version", "distribution"))
    options = as_map(entry.get("options"))
    return (*texts, brief(dict(options), 400) if options else "")


def _input(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return name, size and checksum; the folder is left out, since a page says the same wherever the files lay."""
    name = as_text(entry.get("path")).replace("\\", "/").rsplit("/", 1)[-1]
    size = entry.get("bytes")
    return (
        brief(name, 200),
        f"{number(size)} bytes" if size is not None else "",
        brief(as_text(entry.get("sha256")), 80),
    )


class Page(msgspec.Struct, frozen=True):
    """What pages show of a run beside single samples."""

    index: RowIndex
    view: Shape
    panels: Asked
    agreement: Sequence[Shape]
    losses: Losses


_known: WeakKeyDictionary[RowIndex, tuple[Report, Page]] = WeakKeyDictionary()


def page_of(report: Report) -> Page:
    """Return the model of a report's pages; the same one for every reporter of a run."""
    index = index_of(report)
    known = _known.get(index)
    if known is not None and _same(known[0], report):
        return known[1]
    header, summary = report.header, report.summary
    others, pairs = _compared(header, summary, index), agreement_of(header, summary, index)
    view = overview(report, index)
    view.warnings = tuple(each for each in view.warnings if not says_left_out(each))
    shown = asked(panels(report), ("overview", "figures", "page"), report)
    page = Page(index, view, shown, pairs, losses_of(index, others))
    _known[index] = (report, page)
    return page


def _compared(header: Mapping[str, Any], summary: Mapping[str, Any], index: RowIndex) -> frozenset[str]:
    """Return the graders that declare a preset beside the outcome grader, only compared; none of one alone."""
    declared = declared_presets(header).keys()
    known, outcome = index.verdicts.by_grader, as_text(as_map(summary.get("outcome")).get("grader"))
    several = len(declared & known.keys()) > 1 and outcome in known
    return frozenset(declared & known.keys() - {outcome}) if several else frozenset()


def _same(one: Report, other: Report) -> bool:
    return one.summary is other.summary and one.header is other.header and panels(one) is panels(other)

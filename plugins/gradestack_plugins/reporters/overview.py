"""The overview: verdict, gates, key figures, graders, models, problems and how the run was made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs

from gradestack import Report, RowIndex
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.reporters import charts
from gradestack_plugins.reporters.blocks import Block, Figures, Histogram, Table
from gradestack_plugins.reporters.estimates import figure
from gradestack_plugins.reporters.gates import Gate, gate_of, share_of
from gradestack_plugins.reporters.grouping import uncertainty
from gradestack_plugins.reporters.headline import Success, success_of, words_of
from gradestack_plugins.reporters.index import Lost, lost
from gradestack_plugins.reporters.jsonview import Line, lines
from gradestack_plugins.reporters.lead import Lead, lead_of
from gradestack_plugins.reporters.shapes import blocks_of, pull
from gradestack_plugins.reporters.text import brief, natural, number, percent, title

STATES = ("graded", "skipped", "failed", "missing")
MOST_PROBLEMS = 200
SCORES = "Distribution of scores"
_MOST_LOST = 12


@attrs.frozen
class State:
    """How many samples are in one state."""

    name: str
    count: int
    share: str
    start: float
    """Percent of all samples in the states before it."""
    width: float


@attrs.frozen
class GraderView:
    """All figures of one grader."""

    key: str
    main: bool
    """Whether its grade stands as the rows' own."""
    attempted: str
    """Average score over graded samples."""
    total: str
    """Average score over all samples the grader applies to, failed and missing ones counting nothing."""
    spread: str
    interval: str
    low: float | None
    high: float | None
    at: float | None
    """Average in percent of the scale."""
    states: tuple[State, ...]
    scores: Block | None
    """Histogram of its scores: an aggregator's own, else one over six bins; None for scores of 0 and 1 only."""
    bands: Block | None
    """Score bands as interpretation, where an aggregator has some."""
    aggregates: tuple[tuple[str, tuple[Block, ...]], ...]
    lost: tuple[Lost, ...]


@attrs.frozen
class Model:
    """One line of the table of models."""

    name: str
    cells: tuple[str, ...]


@attrs.frozen
class Problem:
    """A bad record or duplicate."""

    place: str
    reason: str


@attrs.frozen
class Overview:
    """Everything before the samples."""

    name: str
    verdict: str
    """``passed``, ``failed`` or ``none``."""
    version: str
    total: int
    attempted: int
    gates: tuple[Gate, ...]
    success: Success | None
    """How many samples are a success; None where the run has no outcome."""
    words: Mapping[str, str]
    """What may become of a sample -> the word for it."""
    stack: str
    """Name of the stack, "" without one."""
    profile: str
    lead: Lead
    graders: tuple[GraderView, ...]
    models: tuple[Model, ...]
    bad_count: int
    bad: tuple[Problem, ...]
    warnings: tuple[str, ...]
    duplicates: int
    duplicate_rule: str
    duplicate_places: tuple[str, ...]
    broken: tuple[Problem, ...]
    """What ended the run early or broke on the way."""
    facts: tuple[tuple[str, str], ...]
    components: tuple[tuple[str, ...], ...]
    """Kind, key, name, version, distribution and options."""
    inputs: tuple[tuple[str, ...], ...]
    """File name, size and checksum."""
    config: tuple[Line, ...]

    @property
    def head(self) -> GraderView | None:
        """The main grader, whose grades stand as the rows' own."""
        return self.graders[0] if self.graders else None


def overview(report: Report, index: RowIndex, aside: Collection[str] = ()) -> Overview:
    """Return the overview of a report.

    Args:
        report: The report.
        index: The index of its rows.
        aside: Keys of graders that are only compared with others.
    """
    summary, header = as_map(report.summary), as_map(report.header)
    metrics, bad = as_map(summary.get("metrics")), as_map(summary.get("bad_records"))
    duplicates, success, head = as_map(summary.get("duplicates")), success_of(summary), main_key(summary, header)
    return Overview(
        name=brief(report.name, 200),
        verdict="none" if report.passed is None else "passed" if report.passed and not report.all_failed else "failed",
        version=brief(as_text(header.get("version")), 40),
        total=as_count(metrics.get("total")),
        attempted=as_count(metrics.get("total_attempted")),
        gates=tuple(gate_of(as_map(gate)) for gate in as_list(summary.get("gates"))),
        success=success,
        words=words_of(summary),
        stack=brief(as_text(as_map(summary.get("config")).get("stack")), 60),
        profile=brief(as_text(header.get("profile")), 60),
        lead=lead_of(summary, index, success, head or "", aside),
        graders=_graders(summary, head, index),
        models=_models(metrics, success),
        bad_count=as_count(bad.get("count")),
        bad=tuple(_problem(as_map(entry)) for entry in as_list(bad.get("listed"))[:MOST_PROBLEMS]),
        warnings=tuple(brief(warning, 1000) for warning in as_list(summary.get("warnings"))[:MOST_PROBLEMS]),
        duplicates=as_count(duplicates.get("count")),
        duplicate_rule=brief(as_text(duplicates.get("policy")), 40),
        duplicate_places=tuple(brief(place, 300) for place in as_list(duplicates.get("listed"))[:MOST_PROBLEMS]),
        broken=_broken(summary),
        facts=tuple((title(key), brief(header[key])) for key in ("profile", "python") if header.get(key)),
        components=_components(header),
        inputs=tuple(_input(as_map(entry)) for entry in as_list(header.get("inputs"))),
        config=lines(summary["config"], (), 20_000) if summary.get("config") else (),
    )


def main_key(summary: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    """Return the key of the main grader, whose grades stand as the rows' own: the gate's, else the suite's first."""
    keys = sorted(as_map(as_map(summary.get("metrics")).get("by_metric")), key=natural)
    gate = next((as_text(as_map(gate).get("metric_key")) for gate in as_list(summary.get("gates"))), "")
    gate = gate or as_text(as_map(as_map(summary.get("config")).get("gate")).get("metric_key"))
    components = map(as_map, as_list(header.get("components")))
    graders = [as_text(each.get("key")) for each in components if each.get("kind") == "grader"]
    return next((key for key in (gate, *graders, *keys) if key in keys), None)


def _graders(summary: Mapping[str, Any], head: str | None, index: RowIndex) -> tuple[GraderView, ...]:
    metrics = as_map(summary.get("metrics"))
    by_metric = as_map(metrics.get("by_metric"))
    keys = {str(key) for part in ("by_metric", "states", "aggregates") for key in as_map(metrics.get(part))}
    return tuple(
        _grader(key, key == head, as_map(by_metric.get(key)), metrics, index)
        for key in sorted(keys, key=lambda key: (key != head, natural(key)))
    )


def _grader(
    key: str, head: bool, figures: Mapping[str, Any], metrics: Mapping[str, Any], index: RowIndex
) -> GraderView:
    aggregates = as_map(as_map(metrics.get("aggregates")).get(key))
    shown = {str(name): _shown(str(name), aggregates[name]) for name in sorted(aggregates, key=natural)}
    histogram = _hoist(shown, SCORES, lambda block: isinstance(block, Histogram) and block.scores)
    bands = _hoist(shown, "Interpretation", lambda block: isinstance(block, Table) and block.bands)
    average = figures.get("avg_score_attempted")
    low, high, spread, told = uncertainty(aggregates, as_number(average))
    scores = index.scores.get(key)
    if histogram is None and scores is not None and scores.fractional:
        histogram = charts.distribution(SCORES, scores)
    return GraderView(
        key=brief(key, 80),
        main=head,
        attempted=number(average),
        total=number(figures.get("avg_score_total")),
        spread=spread,
        interval=told,
        low=share_of(low),
        high=share_of(high),
        at=share_of(as_number(average)),
        states=_states(as_map(as_map(metrics.get("states")).get(key))),
        scores=histogram,
        bands=bands,
        aggregates=tuple((name, blocks) for name, blocks in shown.items() if blocks),
        lost=lost(index, key, _MOST_LOST),
    )


def _shown(name: str, value: Any) -> tuple[Block, ...]:
    """Return an aggregator's metrics as blocks; metrics that are one estimate as one figure."""
    if not isinstance(value, Mapping):
        return blocks_of({name: value})
    single = figure(title(name), value)
    return (Figures("", (single,)),) if single is not None else blocks_of(value)


def _hoist(shown: dict[str, tuple[Block, ...]], heading: str, wanted: Callable[[Block], bool]) -> Block | None:
    """Take the first wanted block out of the aggregates, in place, and return it under a heading of its own."""
    for name, blocks in shown.items():
        found, rest = pull(blocks, wanted)
        if found is not None:
            shown[name] = rest
            return attrs.evolve(found, title=heading)
    return None


def _states(counts: Mapping[str, Any]) -> tuple[State, ...]:
    total = sum(as_count(count) for count in counts.values())
    names = [*STATES, *sorted(set(map(str, counts)) - set(STATES))]
    found, before = [], 0
    for name in names:
        count = as_count(counts.get(name))
        if name in counts and total:
            start, width = round(100 * before / total, 3), round(100 * count / total, 3)
            found.append(State(brief(name, 40), count, percent(count, total), start, width))
        before += count
    return tuple(found)


_MODEL_FIELDS = (
    "total",
    "total_attempted",
    "avg_score_attempted",
    "avg_score_total",
)


def _models(metrics: Mapping[str, Any], success: Success | None) -> tuple[Model, ...]:
    found = []
    for model in map(as_map, as_list(metrics.get("per_model"))):
        cells = [number(model.get(field)) for field in _MODEL_FIELDS]
        if success is not None:
            passed, failed = success.models.get(as_text(model.get("model_name")), (0, 0))
            cells += [number(passed), number(failed), percent(passed, passed + failed)]
        found.append(Model(brief(model.get("model_name") or "(no name)", 120), tuple(cells)))
    return tuple(found)


def _problem(entry: Mapping[str, Any]) -> Problem:
    line = entry.get("line")
    place = f"line {line}" if isinstance(line, int) else f"record {as_count(entry.get('ordinal')) + 1}"
    return Problem(f"{brief(as_text(entry.get('file')), 200)}, {place}", brief(as_text(entry.get("reason")), 600))


def _broken(summary: Mapping[str, Any]) -> tuple[Problem, ...]:
    broken = {**as_map(summary.get("broken")), **as_map(summary.get("failed_metrics"))}
    found = [Problem(brief(key, 120), brief(text, 600)) for key, text in sorted(broken.items())]
    if summary.get("all_failed"):
        found.insert(0, Problem("error", brief(as_text(summary["all_failed"]), 600)))
    stopped = summary.get("incomplete")
    if stopped:
        text = (
            brief(stopped, 300) if isinstance(stopped, str) else "the run was interrupted; figures cover what was read"
        )
        found.insert(0, Problem("incomplete", text))
    return tuple(found)


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

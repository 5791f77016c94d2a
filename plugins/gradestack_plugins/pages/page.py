"""The page of a run as sections of blocks; the same one for every reporter."""

from __future__ import annotations

import operator
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Declarations, Report, declared_presets, set_aside
from gradestack.jsonio import as_count, as_list, as_map, as_text
from gradestack_plugins.pages.amounts import amounts_block, amounts_of, facets_of
from gradestack_plugins.pages.blocks import (
    Block,
    Caveat,
    Cell,
    GateLine,
    Head,
    Link,
    Section,
    Table,
    Words,
)
from gradestack_plugins.pages.chunks import PLACES
from gradestack_plugins.pages.failures import (
    Failures,
    calls_section,
    failures_of,
    skipped_section,
)
from gradestack_plugins.pages.figures import (
    Success,
    gate_lines,
    results_of,
    success_of,
    words_of,
)
from gradestack_plugins.pages.index import RowIndex, index_of, name_of, verdict, worst
from gradestack_plugins.pages.jsonview import laid_out
from gradestack_plugins.pages.panel import Filled, fill_panels, panels, says_left_out
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.sample import gist, source_text
from gradestack_plugins.pages.screen import Screen, caveats_of, main_key, scores_section
from gradestack_plugins.pages.tasks import Reliability, reliability_of
from gradestack_plugins.pages.text import brief, natural, number

_STATES = ("graded", "skipped", "failed", "missing")
_MOST_PROBLEMS, _LONGEST_NOTE, _LONGEST_SUITE = 200, 1000, 20_000
_FIRST_CAUSES, _MOST_OF_TWO = 3, 6
_FEW_RUNS = 10
"""Runs up to which the first screen lists them."""


class Page(msgspec.Struct, frozen=True):
    """The page of a run: its head, and sections by the view they stand in."""

    index: RowIndex
    name: str
    version: str
    total: int
    verdict: str
    """``passed``, ``failed``, ``none`` without a gate, ``no_result`` where nothing was graded."""
    success: Success | None
    words: Mapping[str, str]
    reliable: Reliability
    failures: Failures
    head: Head
    gates: Sequence[GateLine]
    broken: Sequence[tuple[str, str]]
    """What ended the run early or broke on the way, each with the reason."""
    first: Sequence[Section]
    """The cards of the first screen, the most important first."""
    below: Sequence[Section]
    details: Mapping[str, Sequence[Section]]
    """Other views: ``failures``, ``figures``, ``evaluation``."""
    warnings: Sequence[str]
    panels: Filled


def page_of(report: Report) -> Page:
    """Return the page of a report, made once."""
    index = index_of(report)
    header = report.header
    summary = report.summary
    sources = (index, header, summary, panels(report))
    known, page = report.shared.get("page", ((), None))
    if not known or not all(map(operator.is_, known, sources)):
        page = _Maker(report, index).make()
        report.shared["page"] = (sources, page)
    made: Page = page
    return made


class _Maker:
    """Makes the page of a report."""

    def __init__(self, report: Report, index: RowIndex) -> None:
        self._report, self._index = report, index
        self._summary = as_map(report.summary)
        self._header = as_map(report.header)
        metrics = self._summary.get("metrics")
        self._metrics = as_map(metrics)
        self._success = success_of(self._summary)
        self._words = words_of(self._summary)
        self._main = main_key(self._summary, self._header) or ""
        warnings = as_list(self._summary.get("warnings"))
        listed = [brief(warning, 1000) for warning in warnings]
        self._warnings = [
            warning for warning in listed[:_MOST_PROBLEMS] if not says_left_out(warning)
        ]
        places = ("lead", "first", "overview", "figures", "page")
        offered = panels(report)
        self._panels = fill_panels(offered, places, report)
        has_outcome = self._success is not None
        self._reliable = reliability_of(index, outcome=has_outcome)
        grader = as_text(as_map(self._summary.get("outcome")).get("grader"))
        outcome = grader or None
        aside = set_aside(declared_presets(self._header), outcome)
        passed = self._words["passed"]
        self._failures = failures_of(index, aside, passed)
        self._facets = facets_of(index, self._words) if has_outcome else []

    def make(self) -> Page:
        """Return the page."""
        declarations = Declarations(self._header)
        results = results_of(self._summary, declarations)
        replaced = self._replaced()
        has_rows = self._report.has_rows
        screen = Screen(
            report=self._report,
            index=self._index,
            reliable=self._reliable,
            results=results,
            warnings=self._warnings,
            rows_kept=has_rows,
            left_out=replaced,
        )
        return Page(
            index=self._index,
            name=brief(self._report.name, 200),
            version=brief(as_text(self._header.get("version")), 40),
            total=as_count(self._metrics.get("total")),
            verdict=self._verdict(),
            success=self._success,
            words=self._words,
            reliable=self._reliable,
            failures=self._failures,
            head=screen.head(),
            gates=gate_lines(self._summary, results),
            broken=[(name, brief(text, 600)) for name, text in _broken(self._summary)],
            first=[*self._first_screen(screen)],
            below=[*self._categories(short=True)],
            details={
                "failures": [*self._failure_sections()],
                "figures": [*self._graders(), *self._categories(short=False)],
                "evaluation": [*self._problems(), *self._evaluation()],
            },
            warnings=self._warnings,
            panels=self._panels,
        )

    def _verdict(self) -> str:
        report = self._report
        if report.passed is None:
            return "no_result" if report.all_failed else "none"
        return "passed" if report.passed and not report.all_failed else "failed"

    # The first screen

    def _replaced(self) -> set[str]:
        panels_shown = self._panels.at("lead", "first")
        return {name for panel in panels_shown for name in panel.placed.panel.replaces}

    def _first_screen(self, screen: Screen) -> Iterator[Section]:
        """Yield the cards of the first screen, the most important first."""
        replaced = self._replaced()
        results = screen.results_section()
        if results is not None:
            yield results
        yield from self._caveats()
        if self._failures.lines and "causes" not in replaced:
            yield self._causes()
        yield from self._amounts()
        yield from self._scores()
        if not self._panels.at("lead"):
            yield from self._few_runs()

    def _few_runs(self) -> Iterator[Section]:
        """Yield the runs themselves, the worst first, where they are few and no trials."""
        count = len(self._index.entries)
        if not 0 < count <= _FEW_RUNS or len(self._index.names) < count:
            return
        entries = worst(self._index.entries, count)
        positions = [entry.position for entry in entries]
        read = rows_at(self._report, positions)
        reasons = [gist(row) for row in read]
        rows: dict[str, Sequence[Cell]] = {}
        links = {}
        for entry, reason in zip(entries, reasons, strict=True):
            name = name_of(entry.id)
            word = self._words[verdict(entry)]
            rows[name] = [word, *([reason or "–"] if any(reasons) else ())]
            links[name] = Link(name, position=entry.position)
        columns = ["outcome", "what happened"] if any(reasons) else ["outcome"]
        table = Table(columns, rows, corner="Run", links=links)
        yield Section("Runs, worst first", [table], id="few-runs")

    def _caveats(self) -> Iterator[Section]:
        states = ("lost", "graded", "skipped", "passed")
        without = "".join(str(PLACES[state]) for state in states)
        success, main = self._success, self._main
        key = success.grader if success is not None else main
        caveats: list[Caveat] = caveats_of(self._summary, self._index, success, key, without)
        if caveats:
            yield Section("Before you quote these numbers", caveats, id="findings", tone="bad")

    def _causes(self) -> Section:
        """Return the section of the first causes of failure; two models stand side by side.

        It links to the full list where that shows more: further causes, or parts of one.
        """
        models = {model for _, model in self._failures.by_model}
        if len(models) == 2:
            block = self._failures.block_of_two(_MOST_OF_TWO)
        else:
            block = self._failures.block(_FIRST_CAUSES)
        has_more = bool(block.rest) or any(line.parts for line in block.lines)
        note: Link | str = ""
        if has_more:
            failed = number(self._failures.failed)
            kind = "failed runs" if self._success is not None else "of them"
            note = Link(f"all {failed} {kind} by cause", href="#failures")
        blocks: list[Block] = [block]
        kinds = _kinds_of_failed(self._failures, self._words)
        if len(kinds) > 1:
            words = Words(f"{number(self._failures.failed)} runs: {', '.join(kinds)}.")
            blocks.append(words)
        title_of_causes = self._title_of_causes()
        return Section(title_of_causes, blocks, id="causes", note=[note])

    def _title_of_causes(self) -> str:
        if self._success is None:
            return "Why runs score below 1"
        models = {entry.model for entry in self._index.entries}
        return "Why runs fail" if len(models) < 3 else "Why runs of all models fail"

    def _amounts(self) -> Iterator[Section]:
        models = self._success.models if self._success is not None else {}
        lines = amounts_of(self._index, models)
        if lines:
            yield Section("What it takes", [amounts_block(lines, self._words)], id="took")

    def _scores(self) -> Iterator[Section]:
        models = {entry.model for entry in self._index.entries}
        model_count = len(models)
        several = model_count > 1
        if several or self._panels.at("lead"):
            return
        scores = self._index.scores.get(self._main)
        section = scores_section(self._main, scores)
        if section is not None:
            yield section

    def _categories(self, *, short: bool) -> Iterator[Section]:
        """Yield successes by category: the first short ones, or all."""
        shown = [facet.block for facet in self._facets if facet.is_short or not short]
        if not shown or (short and ("categories" in self._replaced() or self._is_mapped())):
            return
        note: Link | str = ""
        if short and len(self._facets) > 2:
            note = Link("all categories", href="#all-facets")
        blocks = shown[:2] if short else shown
        yield Section("By category", blocks, id="facets" if short else "all-facets", note=[note])

    def _is_mapped(self) -> bool:
        return bool(self._reliable.parts)

    # Other views

    def _failure_sections(self) -> Iterator[Section]:
        failures = self._failures
        if failures.failed:
            skipped_runs = sum(count for _, _, count in failures.others)
            entry_count = len(self._index.entries)
            applicable = entry_count - skipped_runs
            text = _failed_sentence(failures, applicable, self._words)
            words = Words(text)
            block = failures.block(whole=True)
            blocks: list[Block] = [words, block]
        else:
            word = self._words["lost"]
            what = "scored below 1"
            if self._success is not None:
                what = f"failed ({word})"
            blocks = [Words(f"No run {what}.")]
        yield Section("Failed runs by cause", blocks, id="failures")
        skipped = skipped_section(failures, PLACES)
        if skipped is not None:
            yield skipped
        calls = calls_section(self._index)
        if calls is not None:
            yield calls

    def _graders(self) -> Iterator[Section]:
        """Yield averages of graders over graded runs and over all, and states."""
        names = ("by_metric", "aggregates", "states")
        by_metric, aggregates, states = (as_map(self._metrics.get(name)) for name in names)
        keys = {*by_metric, *aggregates, *states}
        rows: dict[str, Sequence[Cell]] = {}
        for key in sorted(keys, key=lambda key: (key != self._main, natural(key))):
            averages = as_map(by_metric.get(key))
            counts = as_map(states.get(key))
            means = [number(averages.get(f"avg_score_{over}")) for over in ("attempted", "total")]
            rows[brief(key, 80)] = [*means, *(as_count(counts.get(name)) for name in _STATES)]
        if rows:
            columns = ["average (graded)", "average (all)", "graded", "not applicable", "error"]
            table = Table([*columns, "missing"], rows, corner="Grader")
            yield Section("Graders", [table], id="graders")

    def _problems(self) -> Iterator[Section]:
        """Yield warnings, unread records and repeated samples."""
        summary = self._summary
        blocks = list[Block]()
        blocks += [Words(warning) for warning in self._warnings]
        bad = as_map(summary.get("bad_records"))
        records = list(map(as_map, as_list(bad.get("listed"))[:_MOST_PROBLEMS]))
        if as_count(bad.get("count")):
            rows = {}
            for number_shown, record in enumerate(records, 1):
                where = source_text(record) or f"record {number_shown}"
                reason = record.get("reason")
                rows[where] = [brief(as_text(reason), 600)]
            table = Table(["what"], rows, "Records that could not be read", "where")
            blocks.append(table)
            count = bad.get("count")
            left_out = as_count(count) - len(records)
            if left_out > 0:
                words = Words(f"{number(left_out)} more are not listed.")
                blocks.append(words)
        duplicates = summary.get("duplicates")
        blocks += _duplicates(as_map(duplicates))
        if blocks:
            yield Section("Problems", blocks, id="problems")

    def _evaluation(self) -> Iterator[Section]:
        """Yield the section about the evaluation itself."""
        entries = as_list(self._header.get("inputs"))
        inputs = [_input(as_map(entry)) for entry in entries]
        names = {name for name, _ in inputs}
        notes = [_note(as_text(note), names) for note in as_list(self._header.get("notes"))]
        blocks: list[Block] = [Words(note) for note in notes]
        components: dict[str, Sequence[Cell]] = {}
        for entry in map(as_map, as_list(self._header.get("components"))):
            if entry.get("kind") != "engine":  # no result depends on it
                name, cells = _component(entry)
                components[name] = cells
        if components:
            columns = ["name", "version", "from", "options"]
            table = Table(columns, components, "Components", "key")
            blocks.append(table)
        if inputs:
            rows = {name or "(no name)": cells for name, cells in inputs}
            blocks.append(Table(["size", "SHA-256"], rows, "Inputs", "file"))
        if self._summary.get("config"):
            config = self._summary["config"]
            suite = Words(laid_out(config, _LONGEST_SUITE))
            section = Section("Suite", [suite], folded=True, tone="code")
            blocks.append(section)
        blocks.append(Words(_WHERE_ALL_IS))
        yield Section("This evaluation", blocks, id="run")


_WHERE_ALL_IS = (
    "Every run: results.jsonl. Every figure: summary.json. Versions, options, checksums: "
    "header.json. Every table as a file: gradestack report RUN_DIR --format csv, or json."
)


def _kinds_of_failed(failures: Failures, words: Mapping[str, str]) -> list[str]:
    """Count the failed runs that were graded, that ended in an error, and that are missing."""
    kinds = {"graded": words["lost"], "failed": "ended in an error", "missing": "missing"}
    counts = {word: failures.states.get(state, 0) for state, word in kinds.items()}
    return [f"{number(count)} {word}" for word, count in counts.items() if count]


def _failed_sentence(failures: Failures, total: int, words: Mapping[str, str]) -> str:
    """Return the number of failed runs, by how they failed."""
    kinds = ", ".join(_kinds_of_failed(failures, words))
    return (
        f"{number(failures.failed)} of {number(total)} runs failed: {kinds}. "
        "Each failed run is counted once. Open a cause for its tools; click a name for its runs."
    )


def _duplicates(duplicates: Mapping[str, Any]) -> Iterator[Block]:
    count = as_count(duplicates.get("count"))
    if not count:
        return
    policy = duplicates.get("policy")
    rule = brief(as_text(policy), 40)
    title = f"{number(count)} repeated runs"
    yield Words(f"Same id, model and run as an earlier record; rule {rule}.", title)
    for source in as_list(duplicates.get("listed"))[:_MOST_PROBLEMS]:
        yield Words(brief(source, 300))


def _input(entry: Mapping[str, Any]) -> tuple[str, list[Cell]]:
    """Return the cells of an input file: its name without folders, its size and checksum."""
    path = entry.get("path")
    name = as_text(path).replace("\\", "/").rpartition("/")[2]
    size = entry.get("bytes")
    if size is None:
        known = ""
    else:
        known = f"{number(size)} bytes"
    return brief(name, 200), [known, brief(as_text(entry.get("sha256")), 80)]


def _component(entry: Mapping[str, Any]) -> tuple[str, list[Cell]]:
    texts = [brief(as_text(entry.get(name)), 120) for name in ("name", "version", "distribution")]
    options = as_map(entry.get("options"))
    kind = as_text(entry.get("kind"))
    key = as_text(entry.get("key"))
    of = ""
    if entry.get("of"):
        of = f" of {as_text(entry['of'])}"
    shown = brief(dict(options), 400) if options else ""
    return brief(f"{kind} {key}{of}", 120), [*texts, shown]


def _note(text: str, names: Collection[str]) -> str:
    """Return a note; input files in a command by their names."""
    head, command, words = text.partition("The same as: ")
    if command:
        parts = []
        for part in shlex.split(words):
            last = part.rpartition("/")[2]
            parts.append(last if last in names else part)
        text = f"{head}{command}{shlex.join(parts)}"
    return brief(text, _LONGEST_NOTE)


def _broken(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    stopped = summary.get("incomplete")
    if stopped:
        why = "the run was interrupted; figures cover what was read"
        yield "incomplete", stopped[:300] if isinstance(stopped, str) else why
    if summary.get("all_failed"):
        yield "error", as_text(summary["all_failed"])
    failed_metrics = summary.get("failed_metrics")
    broken = {**as_map(summary.get("broken")), **as_map(failed_metrics)}
    for key, text in sorted(broken.items()):
        yield brief(key, 120), text


def count_verdicts(index: RowIndex) -> Counter[str]:
    """Count the runs of each outcome."""
    return Counter(map(verdict, index.entries))

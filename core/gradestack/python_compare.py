"""Comparing from Python.

Run directories, models of one run, reports at hand, or files that are graded on the way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradestack.comparison.compared import Comparison, compared
from gradestack.comparison.figures import Aggregators, figure_of, headline_figures
from gradestack.comparison.rows import Rules
from gradestack.comparison.sides import Match, Side, sides_of, split_name
from gradestack.errors import ConfigError, DataError, PluginError, guarded, writing
from gradestack.grading.subset import Subset
from gradestack.jsonio.values import dumps
from gradestack.outcome.pages import COMPARISON, COMPARISON_PARTS, keep_foreign_comparison
from gradestack.python_api import files_suite
from gradestack.registry import Registry, discover
from gradestack.report import Report, damage, is_run, load_report
from gradestack.rundir.place import check_directory, filling, reserve
from gradestack.runner import grade_suite
from gradestack.suites.spec import RunOptions, Suite

PAGES = ("html", "markdown")  # reporters asked for a page of a comparison


def compare(  # noqa: C901
    *runs: str | Path | Report,
    baseline: str | None = None,
    match: Match = "id",
    failed: str = "zero",
    confidence: float = 0.95,
    headline: str | None = None,
    by: str | None = None,
    figures: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 - as the command line has it
    tasks: str | Path | None = None,
    limit: int | None = None,
    force: bool = False,
    output: str | Path | None = None,
    allow_code: bool = False,
    registry: Registry | None = None,
) -> Comparison:
    """Compare two or more runs task by task; the first is the baseline.

    Args:
        runs: Run directories, ``RUN::MODEL`` for one model of a run, reports at hand, or result
            files and directories, which are graded first. Of one run its models are compared; where
            each of several has several models, those of one name are.
        baseline: Model that the others are compared with; default: the first in input order.
        match: What makes two samples the same task: ``id`` (or cluster), ``input``, or their
            ``ordinal`` in the file.
        failed: What failed and missing trials count as: ``zero``, the worst score, or ``skip``,
            nothing.
        confidence: Of the intervals, between 0 and 1.
        headline: Grader whose mean the sentence and the leaderboard are about; default: the
            outcome's rate, else the first grader's mean.
        by: Facet; differences are given within each of its values, too.
        figures: Paths of figures that are no means of scores, such as
            ``label.classification.macro_f1``, compared beside the graders' means; default: those of
            the baseline's headline.
        filter: Only samples of which it is true, on every side: ``facet.domain == "air"``.
        tasks: File with the ids of the only tasks to compare, one a line.
        limit: Only the first tasks of each run.
        force: Compare runs that differ in graders, expectations or inputs all the same.
        output: Directory for ``comparison.json`` and its pages; default: nothing is written.
        allow_code: Whether Python files that aggregators of the runs stand in may be imported
            again.
        registry: Plugins to use; default: all installed ones.

    Raises:
        ConfigError: Fewer than two things to compare, or options that cannot be honoured.
        DataError: A run cannot be read or keeps no rows, or the runs cannot be compared.
        PluginError: The aggregator of a figure raises.

    Examples:
        >>> gradestack.compare("runs/before", "runs/after").sentence  # doctest: +SKIP
        'Solved: after is better than before by 6.5 points (95% interval: 0.3 to 12.7; 50 tasks, 4
        trials each)'
    """
    for holds, rule, said in (
        (0 < confidence < 1, "confidence lies between 0 and 1", confidence),
        (failed in ("zero", "skip"), "failed is zero or skip", failed),
        (match in ("id", "input", "ordinal"), "match is id, input or ordinal", match),
    ):
        if not holds:
            raise ConfigError(f"{rule}, got {said!r}")
    registry = registry or discover()
    if output is not None:
        _check_output(Path(output))
    options = RunOptions(registry=registry, overrides=("reports=[]",))
    subset = Subset.read(filter, tasks, limit)
    aggregators, names = Aggregators(registry, allow_code), _names(runs)
    ready = [_ready(run, options) for run in runs]
    reports: dict[int, Report] = {}
    groups: list[list[Side]] = []
    for files in (False, True):  # all that can be refused is, before files are graded
        new = {place: run for place, run in enumerate(ready) if files != isinstance(run, Report)}
        for place, run in new.items():
            reports[place] = (run if isinstance(run, Report) else grade_suite(run, options)).only(
                subset
            )
        if new:
            of_runs = (path for report in reports.values() for path in headline_figures(report))
            paths = dict.fromkeys(of_runs if figures is None else figures)
            groups = []
            for place, report in sorted(reports.items()):
                given, metrics = runs[place], aggregators.metrics(report, names[place], paths)
                model = None if isinstance(given, Report) else _place(given)[1]
                groups.append(
                    sides_of(report, names[place], model, match, metrics, by, reasons=True)
                )
    sides = _ordered(groups, baseline)
    comparable, left_out = [], {}
    for path in dict.fromkeys(headline_figures(sides[0].report) if figures is None else figures):
        try:
            comparable.append(figure_of(path, sides, aggregators))
        except (ConfigError, DataError) as error:
            if figures is not None:
                raise
            left_out[path] = str(error)
    asked: Any = {
        "headline": headline,
        "failed": failed,
        "confidence": confidence,
        "force": force,
        "by": by,
        "are_figures_asked": figures is not None,
    }
    found = compared(
        sides, Rules(**asked, figures=comparable, left_out=left_out), _by_model(groups)
    )
    if output is not None:
        write_comparison(found, Path(output), registry)
    return found


def _check_output(out: Path) -> None:
    with writing(out):
        check_directory(out)
        keep_foreign_comparison(out)


def write_comparison(comparison: Comparison, out: Path, registry: Registry) -> list[Path]:
    """Write ``comparison.json`` and its pages, return the paths.

    Broken pages are a PluginError after all else.
    """
    _check_output(out)
    broken: list[PluginError] = []
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with reserve(out), writing(out), filling(out, (COMPARISON_PARTS,)) as new:
        pages = [new / COMPARISON]
        pages[0].write_text(dumps(comparison.data) + "\n", encoding="utf-8")
        for name in PAGES:
            reporter = registry.load("reporter", name)()
            try:
                with guarded(f"reporter {name}"):
                    pages += reporter.comparison(comparison, new, registry)
            except PluginError as error:  # costs its page, not the comparison
                broken.append(error)
    if broken:
        raise PluginError("; ".join(map(str, broken))) from broken[0]
    return [out / page.relative_to(new) for page in pages]


def _place(run: str | Path) -> tuple[str, str | None]:
    text = str(run)
    return (text, None) if Path(text).exists() else split_name(text)


def _names(runs: Sequence[str | Path | Report]) -> list[str]:
    """Return what runs are called: the last part of their path, else the whole.

    Those in memory by name and number.
    """
    whole = [
        (str(run.path or run.name) if isinstance(run, Report) else _place(run)[0]) for run in runs
    ]
    held = [
        isinstance(run, Report) and run.path is None and whole.count(run.name) > 1 for run in runs
    ]
    whole = [f"{name} {at + 1}" if held[at] else name for at, name in enumerate(whole)]
    short = {each: Path(os.path.realpath(each)).name for each in whole}
    return [short[each] for each in whole] if len({*short.values()}) == len(short) else whole


def _ready(run: str | Path | Report, options: RunOptions) -> Report | Suite:
    if isinstance(run, Report):
        return run
    path = Path(_place(run)[0])
    return (
        load_report(path)
        if path.is_dir() and (is_run(path) or damage(path))
        else files_suite(path, options)
    )


def _by_model(groups: Sequence[Sequence[Side]]) -> list[tuple[Side, Side]] | None:
    """Return the pairs of one model each, where every run has several.

    None where all are compared with all.
    """
    if len(groups) < 2 or any(len(group) == 1 for group in groups):
        return None
    first, *others = groups
    pairs = [(a, b) for a in first for other in others for b in other if a.model == b.model]
    if not pairs:
        raise ConfigError("the runs have no model in common; RUN::MODEL picks one of each")
    return pairs


def _ordered(groups: Sequence[Sequence[Side]], baseline: str | None) -> list[Side]:
    sides = [side for group in groups for side in group]
    if baseline is not None:
        first = [side for side in sides if baseline in (side.model, side.name)]
        if not first:
            there = ", ".join(side.name for side in sides)
            raise ConfigError(f"no model or run {baseline!r} to compare with; there are: {there}")
        sides = [*first, *(side for side in sides if side not in first)]
    if len(sides) < 2:
        only = sides[0].name if sides else "nothing"
        raise ConfigError(
            f"there is nothing to compare {only} with: name a second run, or a run of several "
            "models"
        )
    return sides

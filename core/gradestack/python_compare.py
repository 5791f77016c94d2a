"""Comparing from Python.

Report directories, models of one run, reports at hand, or files that are graded on the way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from gradestack.comparison.compared import Comparison, compare_sides
from gradestack.comparison.figures import Aggregators, Figure, figure_of, headline_figures
from gradestack.comparison.rows import Rules
from gradestack.comparison.sides import Failed, Match, Side, sides_of, split_name
from gradestack.errors import ConfigError, DataError, PluginError, guarded, writing
from gradestack.grading.subset import Subset
from gradestack.interpreter import collected_seldom
from gradestack.jsonio.values import dumps
from gradestack.outcome.earlier import find_previous
from gradestack.outcome.pages import COMPARISON, COMPARISON_PARTS, refuse_foreign_comparison
from gradestack.python_api import files_suite
from gradestack.registry import Registry, discover
from gradestack.report import Report, damage, is_run, load_report
from gradestack.rundir.place import check_directory, filling, list_folder, reserve
from gradestack.runner import grade_suite
from gradestack.suites.spec import RunOptions, Suite

Runs = Sequence[str | Path | Report]
PAGES = ("html", "markdown")  # reporters asked for a page of a comparison


def compare(
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
    report_url: str | None = None,
    previous: bool = False,
    allow_code: bool = False,
    registry: Registry | None = None,
) -> Comparison:
    """Compare two or more runs task by task; the first is the baseline.

    Args:
        runs: Report directories, ``RUN::MODEL`` for one model of a run, reports at hand, or result
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
        report_url: Address at which ``comparison.html`` will stand; ``comparison.md`` links to it.
        previous: Compare a run with the one before of the same suite beside it whose gates passed;
            of a folder of runs the newest.
        allow_code: Whether Python files with aggregators of the runs may be imported again.
        registry: Plugins to use; default: all installed ones.

    Raises:
        ConfigError: Fewer than two things to compare, or options that are wrong.
        DataError: A run cannot be read or keeps no rows, or the runs cannot be compared.
        PluginError: The aggregator of a figure raises.

    Examples:
        >>> gradestack.compare("runs/before", "runs/after").sentence  # doctest: +SKIP
        'Solved: after is better than before by 6.5 points (95% interval: 0.3 to 12.7; 50 tasks, 4
        trials each)'
    """
    _check_options(confidence, failed, match, report_url)
    registry = registry or discover()
    if output is not None:
        _check_output(Path(output))
    if previous:
        runs = _with_previous(runs)
    aggregators = Aggregators(registry, allow_code)
    subset = Subset.read(filter, tasks, limit)
    options = RunOptions(registry=registry, overrides=("reports=[]",))
    ready = [_load_or_plan(run, options) for run in runs]
    needed = _figures_of_headlines(ready) if figures is None else figures

    def read_sides(name: str, model: str | None, report: Report) -> list[Side]:
        """Return the sides of a run, or its one model that is named."""
        metrics = aggregators.metrics(report, name, needed)
        only = report.filter(subset)
        return sides_of(only, name, model, match, metrics, by, is_only_run=len(runs) == 1)

    groups = _read_groups(runs, _grade_plans(ready, options), read_sides)
    sides = _order_sides(groups, baseline)
    if figures is None:
        comparable, left_out = _comparable_figures(sides, aggregators)
    else:
        paths = dict.fromkeys(figures)
        comparable = [figure_of(path, sides, aggregators) for path in paths]
        left_out = {}
    rules = Rules(
        headline=headline,
        failed="skip" if failed == "skip" else "zero",
        confidence=confidence,
        force=force,
        by=by,
        figures=comparable,
        are_figures_asked=figures is not None,
        left_out=left_out,
        report_url=report_url,
    )
    with collected_seldom():
        comparison = compare_sides(sides, rules, _pair_models(groups))
    if output is not None:
        write_comparison(comparison, Path(output), registry)
    return comparison


def _read_groups(
    runs: Runs,
    reports: Iterable[tuple[int, Report]],
    read_sides: Callable[[str, str | None, Report], list[Side]],
) -> list[list[Side]]:
    """Return the sides of each run, in the order of the runs."""
    groups: list[list[Side]] = [[] for _ in runs]
    names = _name_runs(runs)
    for index, report in reports:
        run = runs[index]
        model = None if isinstance(run, Report) else _split(run)[1]
        with collected_seldom():
            groups[index] = read_sides(names[index], model, report)
    return groups


def _check_options(confidence: float, failed: str, match: str, report_url: str | None) -> None:
    """Refuse values of compare() that are out of range or no choice."""
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence lies between 0 and 1, got {confidence!r}")
    if failed not in get_args(Failed):
        raise ConfigError(f"failed is zero or skip, got {failed!r}")
    if report_url is not None and not report_url.startswith(("https://", "http://")):
        raise ConfigError(f"report_url is an address that begins with https://, got {report_url!r}")
    if match not in get_args(Match):
        raise ConfigError(f"match is id, input or ordinal, got {match!r}")


def _with_previous(runs: Runs) -> tuple[Path, Path]:
    """Return the run before and the newest one, at or below the one path that is named."""
    if len(runs) != 1 or isinstance(runs[0], Report):
        raise ConfigError("previous compares one run, or the newest of a folder: name it alone")
    return find_previous(Path(runs[0]))


def _figures_of_headlines(ready: Sequence[Report | Suite]) -> list[str] | None:
    """Return the figures that may be compared; None where a run is graded only then."""
    paths: list[str] = []
    for run in ready:
        if not isinstance(run, Report):
            return None
        paths += headline_figures(run)
    return paths


def _grade_plans(
    ready: Sequence[Report | Suite], options: RunOptions
) -> Iterator[tuple[int, Report]]:
    """Yield every run with its index; files are graded after all finished runs were taken."""
    for index, run in enumerate(ready):
        if isinstance(run, Report):
            yield index, run
    for index, run in enumerate(ready):
        if isinstance(run, Suite):
            yield index, grade_suite(run, options)


def _comparable_figures(
    sides: Sequence[Side], aggregators: Aggregators
) -> tuple[list[Figure], dict[str, str]]:
    """Return the figures of the baseline's headline, and why some cannot be compared."""
    comparable, left_out = [], {}
    for path in headline_figures(sides[0].report):
        try:
            comparable.append(figure_of(path, sides, aggregators))
        except (ConfigError, DataError) as error:
            left_out[path] = str(error)
    return comparable, left_out


def _check_output(out: Path) -> None:
    with writing(out):
        check_directory(out)
        refuse_foreign_comparison(out)


def write_comparison(comparison: Comparison, out: Path, registry: Registry) -> list[Path]:
    """Write ``comparison.json`` and its pages, return the paths.

    Broken pages are a PluginError after all else.
    """
    _check_output(out)
    broken: list[PluginError] = []
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with reserve(out), writing(out), filling(out, (COMPARISON_PARTS,)) as folder:
        pages = [folder / COMPARISON]
        text = dumps(comparison.data)
        pages[0].write_text(text + "\n", encoding="utf-8")
        for name in PAGES:
            reporter = registry.load("reporter", name)()
            try:
                with guarded(f"reporter {name}"):
                    pages += reporter.comparison(comparison, folder, registry)
            except PluginError as error:  # costs its page, not the comparison
                broken.append(error)
    if is_run(out.parent):
        list_folder(out.parent, out.name)
    if broken:
        raise PluginError("; ".join(map(str, broken))) from broken[0]
    return [out / page.relative_to(folder) for page in pages]


def _split(run: str | Path) -> tuple[str, str | None]:
    """Return the path of a run, and of ``RUN::MODEL`` the model."""
    text = str(run)
    if Path(text).exists():
        return (text, None)
    return split_name(text)


def _name_runs(runs: Runs) -> list[str]:
    """Name runs by the last part of their path, else by all of it.

    Those in memory by name and number.
    """
    names = []
    for number, run in enumerate(runs, 1):
        if not isinstance(run, Report):
            name = _split(run)[0]
        elif run.path is None and len(runs) > 1:
            name = f"{run.name} {number}"
        else:
            name = str(run.path or run.name)
        names.append(name)
    short = {name: Path(os.path.realpath(name)).name for name in names}
    is_clear = len({*short.values()}) == len(short)
    if is_clear:
        return [short[name] for name in names]
    return names


def _load_or_plan(run: str | Path | Report, options: RunOptions) -> Report | Suite:
    """Return a finished run, or files that are to be graded."""
    if isinstance(run, Report):
        return run
    path = Path(_split(run)[0])
    if path.is_dir() and (is_run(path) or damage(path)):
        return load_report(path)
    return files_suite(path, options)


def _pair_models(groups: Sequence[Sequence[Side]]) -> list[tuple[Side, Side]] | None:
    """Return the pairs of one model each, where every run has several.

    None where all are compared with all.
    """
    baseline_sides, *later_groups = groups
    if not later_groups or min(map(len, groups)) == 1:
        return None
    later = [side for group in later_groups for side in group]
    pairs = [(a, b) for a in baseline_sides for b in later if a.model == b.model]
    if not pairs:
        raise ConfigError("the runs have no model in common; RUN::MODEL picks one of each")
    return pairs


def _order_sides(groups: Sequence[Sequence[Side]], baseline: str | None) -> list[Side]:
    """Return all sides, the baseline first."""
    sides = [side for group in groups for side in group]
    if baseline is not None:
        baseline_sides = [side for side in sides if baseline in (side.model, side.name)]
        if not baseline_sides:
            names = ", ".join(side.name for side in sides)
            raise ConfigError(f"no model or run {baseline!r} to compare with; there are: {names}")
        sides.sort(key=lambda side: side not in baseline_sides)
    if len(sides) < 2:
        fix = "name a second run, or a run of several models"
        names = ", ".join(side.name for side in sides) or "nothing"
        raise ConfigError(f"there is nothing to compare {names} with: {fix}")
    return sides

"""The command ``show``: one sample of a run in the terminal. Only click is imported here at the top."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gradestack.errors import ConfigError, suggest
from gradestack.output.terminal import terminal_line

if TYPE_CHECKING:
    from gradestack.report import Report
    from gradestack.rows.index import RowEntry
    from gradestack.rows.names import RowName

_WIDTHS = 40, 120
_MOST_LISTED = 200
_WHOLE = 10**9
"""Characters no text has."""


@click.command()
@click.argument("run_dir")
@click.argument("task")
@click.option("--model", metavar="NAME", help="Only samples of this model.")
@click.option("--all", "every", is_flag=True, help="Show all trials of the task [default: list them].")
@click.option("--full", is_flag=True, help="Cut no text.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def show(run_dir: str, task: str, *, model: str | None, every: bool, full: bool) -> None:
    """Show a sample of RUN_DIR: its calls against the expected ones, grades, reasons and conversation.

    TASK is the id of a task, or TASK.TRIAL for one of its runs. Several samples are listed, one is shown.
    """
    from gradestack.cli.signals import forward_termination  # noqa: PLC0415 - not needed for --help
    from gradestack.outcome.trajectories import with_trajectories  # noqa: PLC0415
    from gradestack.registry import discover  # noqa: PLC0415
    from gradestack.report import load_report  # noqa: PLC0415

    report, registry = load_report(run_dir), discover()
    found = _chosen(report, task, model)
    with forward_termination():  # packed inputs of slim rows are unpacked
        report = with_trajectories(report, registry, lambda _: None)  # what is gone is said where it would stand
    if len(found) > 1 and not every:
        _list(report, task, found)
        return
    colour, options = _coloured(), {"max_text": _WHOLE} if full else {}
    reporter = registry.load("reporter", "text")(width=_width(), colour=colour, **options)
    for number, name in enumerate(found):
        for entry, row in report.samples_at([(name.position, name.place)]):
            text = reporter.sample(report, entry, row)
            click.echo(f"\n{text}" if number else text, nl=False, color=colour)


def _chosen(report: Report, task: str, model: str | None) -> list[RowName]:
    """Return the samples of a task, of one trial where one is named; a task of the whole name goes first.

    Raises:
        ConfigError: There is no such task, trial or model.
        DataError: The run kept no rows, or they cannot be read.
    """
    stem, dot, trial = task.rpartition(".")
    whole: list[RowName] = []
    part: list[RowName] = []
    trials: list[RowName] = []
    for name in report.names():
        if name.id == task:
            whole.append(name)
        elif dot and f"{name.id}.{name.run}" == task:  # either may hold dots
            trials.append(name)
        elif dot and name.id == stem:
            part.append(name)
    found = whole or trials
    if not found and part:
        runs = list(dict.fromkeys(name.run for name in part))
        msg = f"task {stem!r} has no trial {trial!r}{suggest(trial, runs)}; there are: {_listed(runs)}"
        raise ConfigError(msg)
    if not found:
        msg = f"no task {task!r} in {report.path}{_nearest(report, task, stem if dot else '')}"
        raise ConfigError(msg)
    if model is None:
        return found
    models = list(dict.fromkeys(name.model for name in found))
    if model not in models:
        msg = f"task {task!r} has no sample of model {model!r}{suggest(model, models)}; there are: {_listed(models)}"
        raise ConfigError(msg)
    return [name for name in found if name.model == model]


def _nearest(report: Report, task: str, stem: str) -> str:
    ids = dict.fromkeys(name.id for name in report.names())
    near = suggest(task, ids) or (suggest(stem, ids) if stem else "")
    return near or f"; there are {len(ids):,}: {_listed(list(ids))}" if ids else "; it has no samples"


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = [terminal_line(name or "(unnamed)")[:60] for name in names[:most]]
    return ", ".join(shown) + (", …" if len(names) > most else "")


def _list(report: Report, task: str, found: Sequence[RowName]) -> None:
    """Print a line for each of several samples, then how to see one."""
    outcome = report.summary.get("outcome") or {}
    words = outcome.get("words") or {"passed": "passed", "failed": "not passed"}
    lines = []
    samples = report.samples_at([(name.position, name.place) for name in found[:_MOST_LISTED]], trajectories=False)
    for entry, _ in samples:
        trial = f"{entry.id}.{entry.run}" if entry.run else entry.id
        lines.append((trial, entry.model, _verdict(entry, words), "" if entry.score is None else f"{entry.score:.3f}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        columns = [text.ljust(width) for text, width in zip(line, widths, strict=True) if width]
        click.echo(terminal_line("  ".join(columns).rstrip()))
    if len(found) > _MOST_LISTED:
        click.echo(f"and {len(found) - _MOST_LISTED:,} more")
    several = "--model NAME" if len({name.model for name in found}) > 1 else f"{terminal_line(task)}.TRIAL"
    click.echo(f"{len(found):,} samples; name one ({several}), or --all shows them all")


def _verdict(entry: RowEntry, words: dict[str, str]) -> str:
    if entry.passed is None:
        return entry.state
    return words["passed"] if entry.passed else words["failed"]


def _width() -> int:
    """Return the columns of the terminal, 80 where there is none; very wide lines are hard to read."""
    least, most = _WIDTHS
    return min(max(shutil.get_terminal_size((80, 24)).columns, least), most)


def _coloured() -> bool:
    """Return whether standard output shows colours, and may."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

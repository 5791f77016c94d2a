"""One sample in the terminal: the command ``show``."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import click
import msgspec
from markupsafe import Markup
from rich.color import ColorSystem
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from gradestack import (
    ConfigError,
    Report,
    Row,
    Subset,
    compile_later,
    load_report,
    suggest,
    terminal_line,
)
from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.pages import jsonview
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.figures import words_of
from gradestack_plugins.pages.index import Names, RowEntry, index_of, shown_entry, verdict, worst
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.sample import (
    call_name,
    calls_of,
    fault_text,
    grade_view,
    grades_of,
    source_text,
    went,
)
from gradestack_plugins.pages.text import brief, clean

_LONGEST_TEXT, _WHOLE = 1000, 10**9
"""Characters shown of one message, argument or rationale; those no text has."""
_MOST_ITEMS = 20
"""Items of a grade that are shown; the rest is counted."""
_VERDICTS = {"passed": "bold blue", "lost": "bold yellow", "error": "bold red"}
_STYLED = compile_later("\x02([a-z ]*)\x03([^\x04]*)\x04")


class Style(msgspec.Struct, frozen=True):
    """Width, colours and limits of the terminal."""

    width: int
    colour: bool
    limit: int
    """Characters of one message, argument or rationale."""

    def cut(
        self, text: str, style: str = "", limit: int = _WHOLE, *, spread: bool = False
    ) -> Markup:
        """Return a text of any number of lines, of a long one its beginning.

        JSON may be spread over lines.
        """
        limit = min(limit, self.limit)
        left = len(text) - limit
        if left > 0:
            styled = _styled(text[:limit], style)
            return styled + _styled(f" … {left:,} more characters", "dim")
        return _styled((jsonview.spread(text) or text) if spread else text, style)

    def json(self, value: Any, style: str = "") -> Markup:
        """Return a value as JSON over lines."""
        laid_out = jsonview.laid_out(value, self.limit)
        return _styled(laid_out, style)


def _styled(text: object, style: str = "") -> Markup:
    """Return a text with its style, its line ends told from those of the template.

    "" for an empty one.
    """
    cleaned = clean(str(text)).expandtabs(4).replace("\n", "\x05")
    # for a terminal, which has no markup
    return Markup(f"\x02{style}\x03{cleaned}\x04" if cleaned else "")  # noqa: S704


def _heading(title: str, note: str = "") -> Markup:
    styled = _styled(f"\n{title}", "bold underline")
    text = f"  {note}" * bool(note)
    return styled + _styled(text, "dim")


def _rendered(text: str, style: Style) -> str:
    """Lay out the template's text in lines that are safe for a terminal and for CI logs."""
    system: Literal["standard"] | None = "standard" if style.colour else None
    string_io = io.StringIO()
    console = Console(
        file=string_io,
        width=style.width,
        color_system=system,
        force_terminal=style.colour,
        legacy_windows=False,
    )
    options = console.options.update(highlight=False, markup=False)
    parts = _parts(text)
    lines = console.render_lines(Group(*parts), options, pad=False)
    return "".join(f"{_safe(line, console)}\n" for line in lines)


def _parts(text: str) -> Iterator[RenderableType]:
    shown = (line.rstrip(" ") for line in text.split("\n"))
    for tabled, lines in groupby(filter(None, shown), key=lambda line: "\t" in line):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        for line in lines:
            indent = len(line) - len(line.lstrip(" "))
            cells = list(map(_text, line[indent:].split("\t")))
            if tabled:
                table.add_row(*cells)
            else:
                yield Padding(cells[0], (0, 0, 0, indent))
        if tabled:
            yield Padding(table, (0, 0, 0, indent))


def _text(line: str) -> Text:
    text_shown, (plain, *styled) = Text(overflow="fold"), _STYLED.split(line)
    text_shown.append(plain)
    for style, text, after in zip(*[iter(styled)] * 3, strict=True):
        text_shown.append(text.replace("\x05", "\n"), style).append(after)
    return text_shown


def _safe(line: Sequence[Segment], console: Console) -> str:
    segments = [segment for segment in line if not segment.control]
    plain = "".join(segment.text for segment in segments).rstrip()
    safe = terminal_line(plain)
    if safe != plain or console.color_system is None:
        return safe
    parts, left = [], len(plain)
    for text, style, _ in segments:
        shown = text[:left]
        left -= len(shown)
        parts.append(
            style.render(shown, color_system=ColorSystem.STANDARD)
            if style and shown.strip()
            else shown
        )
    return "".join(parts)


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    if isinstance(value, str):
        return value
    return "" if value is None else compact(value)


def _content(content: Any) -> str:
    """Return message content as text.

    Its text parts joined by line ends, any other part or value as JSON.
    """
    if isinstance(content, list):
        return "\n".join(_plain(as_map(part).get("text", part)) for part in content)
    return _plain(content)


def _items(grade: Mapping[str, Any]) -> list[Shape]:
    items = map(as_map, as_list(grade.get("items"))[:_MOST_ITEMS])
    views = []
    for item in items:
        key = brief(item.get("id"), 120)
        outcome = item.get("outcome")
        views.append(grade_view(key, {**item, "state": outcome}))
    return views


def sample_texts(
    report: Report, samples: Iterable[tuple[RowEntry, Row]], style: Style
) -> Iterator[str]:
    """Yield samples as texts."""
    env = environment()
    env.filters |= {
        "line": _styled,
        "heading": _heading,
        "cut": style.cut,
        "json": style.json,
        "items_of": _items,
    }
    env.filters |= {"plain": _plain, "content": _content, "text": as_text, "array": as_list}
    env.filters |= {"brief": brief, "tool": call_name, "went": went}
    template = env.get_template("sample.txt")
    words = words_of(report.summary)
    for entry, row in samples:
        context = _context(entry, row)
        text = template.render(context, words=words, verdicts=_VERDICTS)
        yield _rendered(text, style)


def _context(entry: RowEntry, row: Row) -> dict[str, Any]:
    expected, predicted, task = (
        as_map(row.get(name)) for name in ("expected", "predicted", "sample")
    )
    text = expected.get("text")
    truth = text or task.get("ground_truth")
    entries = as_list(row.get("trajectory"))
    loose = [entry for entry in entries if isinstance(entry, Mapping)]
    turns = [
        *(as_list(entry) for entry in entries if not isinstance(entry, Mapping)),
        *([loose] if loose else []),
    ]
    return {
        "e": shown_entry(entry),
        "row": row,
        "source": source_text(as_map(row.get("source"))),
        "error": fault_text(as_map(row.get("error"))),
        "input": prompts if isinstance(prompts := task.get("input"), list) else [prompts],
        "truth": None if truth == expected.get("label") else truth,
        "expected": expected,
        "predicted": predicted,
        "wanted": None if expected.get("calls") is None else as_list(expected["calls"]),
        "made": None if predicted.get("calls") is None else as_list(predicted["calls"]),
        "calls": calls_of(row),
        "grades": grades_of(row),
        "turns": len(turns),
        "talk": [
            (number, as_map(message))
            for number, turn in enumerate(turns, start=1)
            for message in turn
        ],
    }


_WIDTHS = 40, 120
"""Columns at least and at most; very wide lines are hard to read."""
_MOST_LISTED, _MOST_WORST = 200, 10


@click.command(epilog="Example: gradestack show out refund-2")
@click.argument("run_dir")
@click.argument("task", required=False)
@click.option("--model", metavar="NAME", help="Show only runs of this model.")
@click.option(
    "--all", "every", is_flag=True, help="Show all trials of the task [default: list them]."
)
@click.option(
    "--filter",
    metavar="EXPR",
    help="Use only runs for which EXPR is true: 'facet.domain == \"air\"'.",
)
@click.option("--tasks", metavar="FILE", help="Use only tasks whose ids FILE lists, one per line.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Use only the first N of these tasks."
)
@click.option("--full", is_flag=True, help="Do not shorten texts.")
def show(
    run_dir: str, task: str | None, *, model: str | None, every: bool, full: bool, **part: Any
) -> None:
    """Show one run of RUN_DIR: its calls against the expected ones, grades, reasons and messages.

    TASK is the id of a task, or TASK.TRIAL for one of its runs. If a task has several runs, they
    are listed. Without TASK the ten worst runs are listed.
    """
    report = load_report(run_dir)
    subset = Subset.read(**part)
    entries = _chosen(report, task, model)
    if subset:
        chosen = report.filter(subset)
        index = index_of(chosen, short=True)
        names = {(entry.id, entry.run, entry.model) for entry in index.entries}
        for sentence in chosen.header["subset"]["said"]:
            click.echo(terminal_line(sentence), err=True)
        entries = [entry for entry in entries if (entry.id, entry.run, entry.model) in names]
        if not entries:
            if task is None:
                whose = ""
            else:
                whose = f" of task {task!r}"
            raise ConfigError(f"no sample{whose} is left: {subset}")
    if task is None:
        entries = worst(entries, _MOST_WORST)
    if (len(entries) > 1 or task is None) and not every:
        _list(task, entries, words_of(report.summary))
        return
    terminal, (least, most) = Console(), _WIDTHS
    colour = terminal.color_system is not None and not terminal.no_color
    style = Style(min(max(terminal.width, least), most), colour, _WHOLE if full else _LONGEST_TEXT)
    positions = [entry.position for entry in entries]
    rows = rows_at(report, positions)
    for number, text in enumerate(sample_texts(report, zip(entries, rows, strict=True), style)):
        click.echo(f"\n{text}" if number else text, nl=False, color=colour)


def _chosen(report: Report, task: str | None, model: str | None) -> list[RowEntry]:
    """Return the runs of a task, or all; of a model where one is named."""
    if not report.has_rows:
        report.lines()  # raises, and says why
    entries = index_of(report, short=True).entries
    if task is None:
        chosen = entries
    else:
        chosen = _runs_of_task(report, task, entries)
    models = list(dict.fromkeys(entry.model for entry in chosen))
    if model is not None and model not in models:
        if task is None:
            whose = "the evaluation"
        else:
            whose = f"task {task!r}"
        msg = (
            f"{whose} has no sample of model {model!r}{suggest(model, models)}; there "
            f"are: {_listed(models)}"
        )
        raise ConfigError(msg)
    return [entry for entry in chosen if model in (None, entry.model)]


def _runs_of_task(report: Report, task: str, entries: Sequence[RowEntry]) -> list[RowEntry]:
    """Return the runs of a task, of one trial where one is named.

    A task of the whole name goes first.
    """
    stem, dot, trial = task.rpartition(".")
    whole_name, part = map(Names().__getitem__, (task, stem))
    names = (task, f"{part}.{trial}")  # either half may hold dots
    chosen = [entry for entry in entries if entry.id == whole_name]
    chosen = chosen or [entry for entry in entries if dot and f"{entry.id}.{entry.run}" in names]
    if not chosen:
        runs = list(dict.fromkeys(entry.run for entry in entries if dot and entry.id == part))
        if runs:
            raise ConfigError(
                f"task {stem!r} has no trial {trial!r}{suggest(trial, runs)}; there are: "
                f"{_listed(runs)}"
            )
        ids = dict.fromkeys(entry.id for entry in entries)
        near = suggest(task, ids) or (suggest(stem, ids) if dot else "")
        near = near or (
            f"; there are {len(ids):,}: {_listed(list(ids))}" if ids else "; it has no samples"
        )
        raise ConfigError(f"no task {task!r} in {report.path}{near}")
    return chosen


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = []
    for name in names[:most]:
        shown.append(terminal_line(name or "(unnamed)")[:60])
    return ", ".join(shown) + (", …" if len(names) > most else "")


def _list(task: str | None, entries: Sequence[RowEntry], words: Mapping[str, str]) -> None:
    """Print a line for each of several samples, then how to see one."""
    lines = []
    for entry in entries[:_MOST_LISTED]:
        if entry.run:
            trial = f"{entry.id}.{entry.run}"
        else:
            trial = entry.id
        score = entry.score
        word = words[verdict(entry)]
        lines.append((trial, entry.model, word, "" if score is None else f"{score:.3f}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        columns = [text.ljust(width) for text, width in zip(line, widths, strict=True) if width]
        click.echo(terminal_line("  ".join(columns).rstrip()))
    if len(entries) > _MOST_LISTED:
        click.echo(f"and {len(entries) - _MOST_LISTED:,} more")
    if task is None:
        click.echo("The worst runs; to see one: gradestack show RUN_DIR TASK.TRIAL")
        return
    models = {entry.model for entry in entries}
    model_count = len(models)
    if model_count > 1:
        several = "--model NAME"
    else:
        several = f"{terminal_line(task)}.TRIAL"
    click.echo(f"{len(entries):,} samples; name one ({several}), or --all shows them all")

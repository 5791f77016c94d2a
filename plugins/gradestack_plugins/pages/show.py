"""One sample in the terminal: the command ``show``."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import click
import msgspec
from rich.color import ColorSystem
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from gradestack import (
    ConfigError,
    Report,
    Subset,
    discover,
    forward_termination,
    load_report,
    suggest,
    terminal_line,
    with_trajectories,
)
from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.pages.figures import words_of
from gradestack_plugins.pages.index import Entry, RowEntry
from gradestack_plugins.pages.jsonview import Line, lines, spread
from gradestack_plugins.pages.rows import RowName, row_names, samples_at
from gradestack_plugins.pages.sample import (
    Argument,
    Comparison,
    GradeView,
    Pair,
    SampleView,
    call_name,
    content_text,
    sample,
)
from gradestack_plugins.pages.text import Cut, brief, clean, cut, number

_SIGNS = {"matched": ("✓", "bold blue"), "differs": ("≠", "bold yellow"), "absent": ("✗", "bold red")}
_VERDICTS = {"passed": "bold blue", "lost": "bold yellow", "error": "bold red"}
_MOST_MATCHING = 30
_LONGEST_NAME = 30
_MOST_ITEMS = 20
_MOST_MESSAGES = 200
_DIM = {"system", "developer", "tool", "function"}
"""Roles whose messages stand back."""


class Style(msgspec.Struct, frozen=True):
    """How texts are laid out."""

    width: int
    colour: bool
    limit: int
    """Characters of one message, argument or rationale."""


def rendered(parts: Iterable[RenderableType], style: Style) -> str:
    """Return parts as lines, each with its line end; each is safe for a terminal and for the log of a CI system."""
    system: Literal["standard"] | None = "standard" if style.colour else None
    console = Console(
        file=io.StringIO(), width=style.width, color_system=system, force_terminal=style.colour, legacy_windows=False
    )
    options = console.options.update(highlight=False, markup=False)
    return "".join(f"{_safe(line, console)}\n" for line in console.render_lines(Group(*parts), options, pad=False))


def _safe(line: Sequence[Segment], console: Console) -> str:
    kept = [each for each in line if not each.control]
    plain = "".join(each.text for each in kept).rstrip()
    safe = terminal_line(plain)
    if safe != plain or console.color_system is None:
        return safe
    parts, left = [], len(plain)
    for text, style, _ in kept:
        shown, left = text[:left], left - len(text[:left])
        parts.append(style.render(shown, color_system=ColorSystem.STANDARD) if style and shown.strip() else shown)
    return "".join(parts)


def drilldown(
    view: SampleView, row: Mapping[str, Any], words: Mapping[str, str], style: Style
) -> Iterator[RenderableType]:
    """Yield the parts of one sample."""
    expected, predicted, task = (as_map(row.get(name)) for name in ("expected", "predicted", "sample"))
    prompts, truth = task.get("input"), expected.get("text") or task.get("ground_truth")
    yield from _head(view, words, style)
    if view.error:
        yield Text(f"Recorded run failed: {view.error}", "bold red")
    yield from _texts("Task", prompts if isinstance(prompts, list) else [prompts], style)
    yield from _texts("Expected answer", [None if truth == expected.get("label") else truth], style)
    if not view.calls.recorded:
        yield from _texts("Answer", [row.get("submission")], style)
    sides = (("expected", expected), ("predicted", predicted))
    labels = [f"{name} {brief(held['label'], 80)}" for name, held in sides if held.get("label") is not None]
    if labels:
        yield from _heading("Label")
        yield _indented(Text(", ".join(labels)))
    for name, held in sides:
        if held.get("plan") is not None:
            yield from _heading(f"{name.capitalize()} plan")
            yield _indented(_json(lines(held["plan"], (), style.limit)))
    yield from _calls(view.calls)
    yield from _grades(view.grades, view.calls)
    yield from _talk(row, style)


def _head(view: SampleView, words: Mapping[str, str], style: Style) -> Iterator[RenderableType]:
    """Yield a line with names and verdict, which stays one line, and where the sample was read."""
    entry = view.entry
    rest = Text("")
    rest.append(f"  trial {brief(entry.run, _LONGEST_NAME)}" if entry.run else "")
    rest.append(f"  {brief(entry.model, _LONGEST_NAME)}" if entry.model else "", "dim")
    mark = "✓ " if entry.verdict == "passed" else ""
    rest.append(f"  {mark}{words[entry.verdict]}", _VERDICTS.get(entry.verdict, ""))
    if entry.score is not None:
        rest.append(f"  {entry.shown}")
    named = Text(brief(entry.id, max(_LONGEST_NAME // 2, style.width - rest.cell_len)) or "(no id)", "bold")
    yield Text.assemble(named, rest, no_wrap=True, overflow="ellipsis")
    read = f"{view.source}; " if view.source else ""
    yield Text(f"{read}row {entry.line:,} of results.jsonl", "dim")


def _heading(title: str, note: str = "") -> Iterator[RenderableType]:
    yield Text("")
    line = Text(title, "bold underline")
    if note:
        line.append(f"  {note}", "not bold not underline dim")
    yield line


def _indented(part: RenderableType, by: int = 2) -> RenderableType:
    return Padding(part, (0, 0, 0, by))


def _texts(title: str, values: Iterable[Any], style: Style) -> Iterator[RenderableType]:
    found = [text for text in map(_text, values) if text]
    if found:
        yield from _heading(title)
        yield from (_indented(_cut(cut(text, style.limit))) for text in found)


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return value if isinstance(value, str) else "" if value is None else compact(value)


def _cut(text: Cut, style: str = "") -> Text:
    found = Text(clean(text.shown).expandtabs(4), style, overflow="fold")
    if text.dropped:
        found.append(f" … {text.dropped:,} more characters", "dim")
    return found


def _json(lines: Sequence[Line], mark: str = "") -> Text:
    found = Text(overflow="fold")
    for place, line in enumerate(lines):
        found.append("\n" if place else "")
        found.append("  " * line.indent)
        found.append(clean(line.text), mark if line.marked else "")
    return found


def _calls(calls: Comparison) -> Iterator[RenderableType]:
    if not (calls.expected or calls.actual or (calls.known and calls.recorded)):
        return
    counts = [f"{calls.expected} expected"] if calls.known else []
    counts.append(f"{calls.actual} made" if calls.recorded else "none recorded")
    paired = "; paired by name and arguments" if calls.pairs and not calls.by_grader else ""
    yield from _heading("Calls", ", ".join(counts) + paired)
    if calls.known and not calls.expected:
        yield _indented(Text("No call was expected" + (", and none was made." if not calls.actual else ".")))
    for pair in calls.pairs:
        yield from map(_indented, _pair(pair))
    if calls.others:
        yield _indented(Text("other calls made:" if calls.pairs else "calls made:", "dim"))
    for made in calls.others:
        line = Text(f"{made.number:>3}  {made.name} ", overflow="fold")
        line.append(_cut(made.arguments, "dim"))
        yield _indented(line.append(f"  {made.went}" if made.went else "", "dim"))
    if calls.left_out:
        yield _indented(Text(f"{calls.left_out} more calls", "dim"))


def _pair(pair: Pair) -> Iterator[RenderableType]:
    sign, style = _SIGNS[pair.status]
    head = Text(f"{sign} ", style)
    head.append(pair.name, "bold default")
    call = f"{pair.actual_number}" + (f", {pair.actual_name}" if pair.actual_name != pair.name else "")
    how = {"matched": f"matched by call {call}", "differs": f"closest call: no. {call}", "absent": "not called"}
    head.append(f"  {how[pair.status]}", "not bold dim default")
    if pair.score is not None:
        head.append(f"  {number(pair.score)}", "not bold default")
    yield head
    if pair.went:
        yield _indented(Text(pair.went, "dim", overflow="fold"))
    if pair.unreadable:
        yield _indented(Text(f"arguments are no object: {pair.unreadable}", "red", overflow="fold"))
    differing = [each for each in pair.arguments if each.status != "same"]
    if pair.actual_name and differing:
        yield _indented(_differences(differing))
    elif not pair.actual_name and pair.arguments:
        yield _indented(_differences(pair.arguments, answered=False))
    alike = [clean(each.name) for each in pair.arguments if each.status == "same"]
    if alike and differing and pair.actual_name:
        more = f" and {len(alike) - _MOST_MATCHING} more" if len(alike) > _MOST_MATCHING else ""
        yield _indented(Text(f"the same: {', '.join(alike[:_MOST_MATCHING])}{more}", "dim", overflow="fold"))
    for reason in pair.reasons:
        yield _indented(Text(f"- {reason}", overflow="fold"))


def _differences(arguments: Iterable[Argument], *, answered: bool = True) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    for title in ("argument", "expected", "made") if answered else ("argument", "expected"):
        table.add_column(title, overflow="fold")
    for each in arguments:
        cells = [Text(clean(each.name), overflow="fold"), _side(each.expected, "not expected", "bold blue")]
        if answered:
            cells.append(_side(each.actual, "missing", "bold yellow"))
        table.add_row(*cells)
    return table


def _side(lines: Sequence[Line], absent: str, mark: str) -> Text:
    return _json(lines, mark) if lines else Text(absent, "dim italic")


def _grades(grades: Sequence[GradeView], calls: Comparison) -> Iterator[RenderableType]:
    if grades:
        yield from _heading("Grades")
    width = max((len(grade.key) for grade in grades), default=0)
    for place, grade in enumerate(grades):
        told = calls.by_grader and place == 0
        head = Text(f"{grade.key:<{width}}  ", "bold")
        head.append(grade.score, "not bold")
        if grade.passed is not None:
            head.append(", passed" if grade.passed else ", not passed", "not bold")
        if grade.label:
            head.append(f"  label {grade.label}" + (f", expected {grade.gold}" if grade.gold else ""), "not bold")
        head.append("".join(f"  {name} {value}" for name, value in grade.parts), "not bold dim")
        yield _indented(head)
        if grade.fault:
            yield _indented(Text(grade.fault, "red", overflow="fold"), 4)
        if grade.rationale.shown and not told:
            yield _indented(_cut(grade.rationale), 4)
        for reason in grade.reasons:
            yield _indented(Text(f"- {reason}", overflow="fold"), 4)
        if grade.more_reasons:
            yield _indented(Text(f"{grade.more_reasons:,} more reasons", "dim"), 4)
        if not told:
            yield from _items(grade)


def _items(grade: GradeView) -> Iterator[RenderableType]:
    for item in grade.items[:_MOST_ITEMS]:
        line = Text(f"{item.id}  {item.score}", overflow="fold")
        line.append(f"  {item.label or '–'}, expected {item.gold}" if item.gold else "")
        line.append(f"  {item.parts}" if item.parts else "", "dim")
        yield _indented(line, 4)
        yield from (_indented(Text(f"- {reason}", overflow="fold"), 6) for reason in item.reasons)
    left = max(0, len(grade.items) - _MOST_ITEMS) + grade.items_left_out
    if left:
        yield _indented(Text(f"{left:,} more items", "dim"), 4)


def _talk(row: Mapping[str, Any], style: Style) -> Iterator[RenderableType]:
    if gone := brief(as_text(row.get("trajectory_gone")), 600):
        yield from _heading("Conversation")
        yield _indented(Text(gone, "dim"))
    entries = as_list(row.get("trajectory"))
    loose = [entry for entry in entries if isinstance(entry, Mapping)]
    turns = [*(as_list(entry) for entry in entries if not isinstance(entry, Mapping)), *([loose] if loose else [])]
    count, room = sum(map(len, turns)), _MOST_MESSAGES
    if not count:
        return
    yield from _heading("Conversation", f"{count:,} message{'' if count == 1 else 's'}")
    for place, turn in enumerate(turns, start=1):
        messages = turn[:room]
        room -= len(messages)
        if messages and len(turns) > 1:
            yield _indented(Text(f"turn {place}", "dim"))
        for message in messages:
            yield from map(_indented, _message(as_map(message), style))
    if count > _MOST_MESSAGES:
        yield _indented(Text(f"{count - _MOST_MESSAGES:,} more messages", "dim"))


def _message(message: Mapping[str, Any], style: Style) -> Iterator[RenderableType]:
    role, name = brief(as_text(message.get("role")), 40), brief(as_text(message.get("name")), 80)
    head = Text(role or "unknown role", "bold")
    head.append(f" {name}" if name else "", "not bold")
    yield head
    if reasoning := content_text(message.get("reasoning")):
        thought = _cut(cut(reasoning, style.limit), "dim italic")
        yield _indented(Text.assemble(("reasoning: ", "dim"), thought, overflow="fold"))
    if body := _laid_out(content_text(message.get("content")), style):
        yield _indented(_cut(cut(body, style.limit), "dim" if role.lower() in _DIM else ""))
    for call in as_list(message.get("tool_calls"))[:_MOST_MESSAGES]:
        function = as_map(as_map(call).get("function")) or as_map(call)
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else compact(arguments)
        line = Text(f"→ {call_name(function.get('name'))} ", overflow="fold")
        yield _indented(line.append(_cut(cut(_laid_out(text, style), style.limit), "dim")))


def _laid_out(text: str, style: Style) -> str:
    """Return a text of JSON spread over lines; any other, and one that is cut, as it is."""
    return (spread(text) or text) if len(text) <= style.limit else text


def sample_text(report: Report, entry: RowEntry, row: Mapping[str, Any], style: Style) -> str:
    """Return one sample as text."""
    view = sample(Entry.of(entry), row, style.limit)
    return rendered(drilldown(view, row, words_of(report.summary), style), style)


_WIDTHS = 40, 120
_MOST_LISTED = 200
_LONGEST_TEXT, _WHOLE = 1000, 10**9
"""Characters shown of one message, argument or rationale; those no text has."""


@click.command(epilog="Example: gradestack show out refund-2")
@click.argument("run_dir")
@click.argument("task")
@click.option("--model", metavar="NAME", help="Only samples of this model.")
@click.option("--all", "every", is_flag=True, help="Show all trials of the task [default: list them].")
@click.option("--filter", metavar="EXPR", help="Only samples it is true of: 'facet.domain == \"air\"'.")
@click.option("--tasks", metavar="FILE", help="Only tasks whose ids FILE lists, one a line.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N of these tasks.")
@click.option("--full", is_flag=True, help="Do not shorten texts.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def show(run_dir: str, task: str, *, model: str | None, every: bool, full: bool, **part: Any) -> None:
    """Show a sample of RUN_DIR: its calls against the expected ones, grades, reasons and conversation.

    TASK is the id of a task, or TASK.TRIAL for one of its runs. Several samples are listed, one is shown.
    """
    report, subset = load_report(run_dir), Subset.read(**part)
    found = _chosen(report, task, model)
    if subset:
        taken = report.only(subset)
        kept = {(name.id, name.run, name.model) for name in row_names(taken)}
        for said in taken.header["subset"]["said"]:
            click.echo(terminal_line(said), err=True)
        found = [name for name in found if (name.id, name.run, name.model) in kept]
        if not found:
            raise ConfigError(f"no sample of task {task!r} is left: {subset}")
    with forward_termination():  # packed inputs of slim rows are unpacked
        report = with_trajectories(report, discover(), lambda _: None)  # what is gone is said where it would stand
    if len(found) > 1 and not every:
        _list(report, task, found)
        return
    colour = _coloured()
    style = Style(_width(), colour, _WHOLE if full else _LONGEST_TEXT)
    for place, name in enumerate(found):
        for entry, row in samples_at(report, [(name.position, name.place)]):
            text = sample_text(report, entry, row, style)
            click.echo(f"\n{text}" if place else text, nl=False, color=colour)


def _chosen(report: Report, task: str, model: str | None) -> list[RowName]:
    """Return the samples of a task, of one trial where one is named; a task of the whole name goes first."""
    stem, dot, trial = task.rpartition(".")
    whole: list[RowName] = []
    part: list[RowName] = []
    trials: list[RowName] = []
    for name in row_names(report):
        if name.id == task:
            whole.append(name)
        elif dot and f"{name.id}.{name.run}" == task:  # either may hold dots
            trials.append(name)
        elif dot and name.id == stem:
            part.append(name)
    found = whole or trials
    if not found and part:
        runs = list(dict.fromkeys(name.run for name in part))
        raise ConfigError(f"task {stem!r} has no trial {trial!r}{suggest(trial, runs)}; there are: {_listed(runs)}")
    if not found:
        raise ConfigError(f"no task {task!r} in {report.path}{_nearest(report, task, stem if dot else '')}")
    if model is None:
        return found
    models = list(dict.fromkeys(name.model for name in found))
    if model not in models:
        msg = f"task {task!r} has no sample of model {model!r}{suggest(model, models)}; there are: {_listed(models)}"
        raise ConfigError(msg)
    return [name for name in found if name.model == model]


def _nearest(report: Report, task: str, stem: str) -> str:
    ids = dict.fromkeys(name.id for name in row_names(report))
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
    samples = samples_at(report, [(name.position, name.place) for name in found[:_MOST_LISTED]], trajectories=False)
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

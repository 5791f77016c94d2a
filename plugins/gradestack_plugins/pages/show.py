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
from gradestack_plugins.pages.jsonview import laid_out, spread
from gradestack_plugins.pages.rows import RowName, row_names, samples_at
from gradestack_plugins.pages.sample import (
    Argument,
    Calls,
    Pair,
    call_name,
    calls_of,
    fault_text,
    grade_view,
    grades_of,
    source_text,
    went,
)
from gradestack_plugins.pages.text import brief, clean, number

_SIGNS = {"matched": ("✓", "bold blue"), "differs": ("≠", "bold yellow"), "absent": ("✗", "bold red")}
_VERDICTS = {"passed": "bold blue", "lost": "bold yellow", "error": "bold red"}
_MOST_MATCHING, _MOST_CALLS, _MOST_REASONS, _MOST_ITEMS, _MOST_MESSAGES = 30, 60, 100, 20, 200
_LONGEST_NAME, _LONGEST_ARGUMENTS = 30, 400
_DIM = {"system", "developer", "tool", "function"}
"""Roles whose messages stand back."""


class Style(msgspec.Struct, frozen=True):
    """How texts are laid out."""

    width: int
    colour: bool
    limit: int
    """Characters of one message, argument or rationale."""

    def text(self, text: str, style: str = "") -> Text:
        """Return a text as data is shown, of a long one its beginning."""
        found = Text(clean(text[: self.limit]).expandtabs(4), style, overflow="fold")
        if len(text) > self.limit:
            found.append(f" … {len(text) - self.limit:,} more characters", "dim")
        return found

    def spread(self, text: str, style: str = "") -> Text:
        """Return it with JSON spread over lines, but for one that is cut."""
        return self.text((spread(text) or text) if len(text) <= self.limit else text, style)


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


def drilldown(entry: Entry, row: Mapping[str, Any], words: Mapping[str, str], style: Style) -> Iterator[RenderableType]:
    """Yield the parts of one sample."""
    expected, predicted, task = (as_map(row.get(name)) for name in ("expected", "predicted", "sample"))
    prompts, truth = task.get("input"), expected.get("text") or task.get("ground_truth")
    yield from _head(entry, row, words, style)
    if error := fault_text(as_map(row.get("error"))):
        yield Text(f"Recorded run failed: {error}", "bold red")
    yield from _texts("Task", prompts if isinstance(prompts, list) else [prompts], style)
    yield from _texts("Expected answer", [None if truth == expected.get("label") else truth], style)
    if predicted.get("calls") is None:
        yield from _texts("Answer", [row.get("submission")], style)
    sides = (("expected", expected), ("predicted", predicted))
    labels = [f"{name} {brief(held['label'], 80)}" for name, held in sides if held.get("label") is not None]
    if labels:
        yield from _heading("Label")
        yield _indented(Text(", ".join(labels)))
    for name, held in sides:
        if held.get("plan") is not None:
            yield from _heading(f"{name.capitalize()} plan")
            yield _indented(_json(held["plan"], style))
    calls = calls_of(row)
    yield from _calls(expected.get("calls"), predicted.get("calls"), calls, style)
    yield from _grades(row, style, told=calls.by_grader)
    yield from _talk(row, style)


def _head(entry: Entry, row: Mapping[str, Any], words: Mapping[str, str], style: Style) -> Iterator[RenderableType]:
    """Yield a line with names and verdict, which stays one line, and where the sample was read."""
    rest = Text("")
    rest.append(f"  trial {brief(entry.run, _LONGEST_NAME)}" if entry.run else "")
    rest.append(f"  {brief(entry.model, _LONGEST_NAME)}" if entry.model else "", "dim")
    mark = "✓ " if entry.verdict == "passed" else ""
    rest.append(f"  {mark}{words[entry.verdict]}", _VERDICTS.get(entry.verdict, ""))
    rest.append("" if entry.score is None else f"  {entry.shown}")
    named = Text(brief(entry.id, max(_LONGEST_NAME // 2, style.width - rest.cell_len)) or "(no id)", "bold")
    yield Text.assemble(named, rest, no_wrap=True, overflow="ellipsis")
    read = source_text(as_map(row.get("source")))
    yield Text(f"{read}{'; ' * bool(read)}row {entry.line:,} of results.jsonl", "dim")


def _heading(title: str, note: str = "") -> Iterator[RenderableType]:
    yield Text("")
    line = Text(title, "bold underline")
    yield line.append(f"  {note}" if note else "", "not bold not underline dim")


def _indented(part: RenderableType, by: int = 2) -> RenderableType:
    return Padding(part, (0, 0, 0, by))


def _lines(texts: Iterable[str], by: int, style: str = "") -> Iterator[RenderableType]:
    yield from (_indented(Text(text, style, overflow="fold"), by) for text in texts if text)


def _texts(title: str, values: Iterable[Any], style: Style) -> Iterator[RenderableType]:
    if found := [text for text in map(_text, values) if text]:
        yield from _heading(title)
        yield from (_indented(style.text(text)) for text in found)


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return value if isinstance(value, str) else "" if value is None else compact(value)


def _json(value: Any, style: Style, mark: str = "") -> Text:
    return Text(clean(laid_out(value, style.limit)), mark, overflow="fold")


def _calls(expected: Any, made: Any, found: Calls, style: Style) -> Iterator[RenderableType]:
    wanted, done = len(as_list(expected)), len(as_list(made))
    if not (wanted or done or (expected is not None and made is not None)):
        return
    counts = [f"{wanted} expected"] if expected is not None else []
    counts.append("none recorded" if made is None else f"{done} made")
    paired = "; paired by name and arguments" if found.pairs and done and not found.by_grader else ""
    yield from _heading("Calls", ", ".join(counts) + paired)
    if expected is not None and not wanted:
        yield _indented(Text("No call was expected" + ("." if done else ", and none was made.")))
    for pair in found.pairs[:_MOST_CALLS]:
        yield from map(_indented, _pair(pair, style))
    if found.others:
        yield _indented(Text("other calls made:" if found.pairs else "calls made:", "dim"))
    short = msgspec.structs.replace(style, limit=min(style.limit, _LONGEST_ARGUMENTS))
    for at, call in found.others[:_MOST_CALLS]:
        held = call.get("arguments")
        text = compact(held) if isinstance(held, Mapping) else as_text(call.get("raw_arguments"))
        line = Text(f"{at:>3}  {call_name(call.get('name'))} ", overflow="fold").append(short.text(text, "dim"))
        yield _indented(line.append(f"  {how}" if (how := went(call)) else "", "dim"))
    left = sum(max(0, len(each) - _MOST_CALLS) for each in (found.pairs, found.others))
    yield from _lines([f"{left} more calls" if left else ""], 2, "dim")


def _pair(pair: Pair, style: Style) -> Iterator[RenderableType]:
    made, name = pair.actual or {}, call_name((pair.actual or {}).get("name"))
    call = f"{pair.number}" + (f", {name}" if name != pair.name else "")
    how = {"matched": f"matched by call {call}", "differs": f"closest call: no. {call}", "absent": "not called"}
    sign, colour = _SIGNS[pair.status]
    head = Text(f"{sign} ", colour).append(pair.name, "bold default")
    head.append(f"  {how[pair.status]}", "not bold dim default")
    yield head.append("" if pair.score is None else f"  {number(pair.score)}", "not bold default")
    yield from _lines([went(made)], 2, "dim")
    if made and not isinstance(made.get("arguments"), Mapping):
        yield from _lines([f"arguments are no object: {brief(made.get('raw_arguments') or 'null', 300)}"], 2, "red")
    differing = [each for each in pair.arguments if each.status != "same"]
    if differing:
        yield _indented(_differences(differing, style, answered=pair.actual is not None))
    alike = [clean(each.name) for each in pair.arguments if each.status == "same"]
    if alike and differing:
        more = f" and {len(alike) - _MOST_MATCHING} more" if len(alike) > _MOST_MATCHING else ""
        yield from _lines([f"the same: {', '.join(alike[:_MOST_MATCHING])}{more}"], 2, "dim")
    yield from _lines((f"- {reason}" for reason in pair.reasons), 2)


def _differences(arguments: Iterable[Argument], style: Style, *, answered: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    for title in ("argument", "expected", "made") if answered else ("argument", "expected"):
        table.add_column(title, overflow="fold")
    expected, made = Text("not expected", "dim italic"), Text("missing", "dim italic")
    for each in arguments:
        cells = [Text(clean(each.name), overflow="fold")]
        cells.append(expected if each.status == "extra" else _json(each.expected, style, "bold blue" * answered))
        if answered:
            cells.append(made if each.status == "missing" else _json(each.actual, style, "bold yellow"))
        table.add_row(*cells)
    return table


def _grades(row: Mapping[str, Any], style: Style, *, told: bool) -> Iterator[RenderableType]:
    """Yield grades; of the first no more than its head where the rest is told with its calls."""
    grades = grades_of(row)
    if grades:
        yield from _heading("Grades")
    width = max((len(grade.key) for grade in grades), default=0)
    for place, grade in enumerate(grades):
        head, passed = Text(f"{grade.key:<{width}}  ", "bold").append(grade.score, "not bold"), grade.held.get("passed")
        head.append(", passed" if passed is True else ", not passed" if passed is False else "", "not bold")
        gold = f", expected {grade.gold}" if grade.gold else ""
        head.append(f"  label {grade.label}{gold}" if grade.label else "", "not bold")
        yield _indented(head.append("".join(f"  {name} {value}" for name, value in grade.parts), "not bold dim"))
        yield from _lines([grade.fault], 4, "red")
        apart = told and place == 0
        if grade.rationale and not apart:
            yield _indented(style.text(grade.rationale), 4)
        yield from _lines((f"- {reason}" for reason in grade.reasons[:_MOST_REASONS]), 4)
        left = max(0, len(grade.reasons) - _MOST_REASONS)
        yield from _lines([f"{left:,} more reasons" if left else ""], 4, "dim")
        if not apart:
            yield from _items([as_map(item) for item in as_list(grade.held.get("items"))])


def _items(items: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    for held in items[:_MOST_ITEMS]:
        item = grade_view(brief(held.get("id"), 120), {**held, "state": held.get("outcome")})
        line = Text(f"{item.key}  {item.score}", overflow="fold")
        line.append(f"  {item.label or '–'}, expected {item.gold}" if item.gold else "")
        parts = ", ".join(f"{name} {value}" for name, value in item.parts[:_MOST_ITEMS])
        yield _indented(line.append(f"  {parts}" if parts else "", "dim"), 4)
        yield from _lines((f"- {reason}" for reason in (*item.reasons[:_MOST_REASONS], item.fault) if reason), 6)
    left = len(items) - _MOST_ITEMS
    yield from _lines([f"{left:,} more items" if left > 0 else ""], 4, "dim")


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
        yield from _lines([f"turn {place}" if messages and len(turns) > 1 else ""], 2, "dim")
        for message in messages:
            yield from map(_indented, _message(as_map(message), style))
    yield from _lines([f"{count - _MOST_MESSAGES:,} more messages" if count > _MOST_MESSAGES else ""], 2, "dim")


def _message(message: Mapping[str, Any], style: Style) -> Iterator[RenderableType]:
    role, name = brief(as_text(message.get("role")), 40), brief(as_text(message.get("name")), 80)
    yield Text(role or "unknown role", "bold").append(f" {name}" if name else "", "not bold")
    if reasoning := _content(message.get("reasoning")):
        yield _indented(Text.assemble(("reasoning: ", "dim"), style.text(reasoning, "dim italic"), overflow="fold"))
    if body := _content(message.get("content")):
        yield _indented(style.spread(body, "dim" if role.lower() in _DIM else ""))
    for call in as_list(message.get("tool_calls"))[:_MOST_MESSAGES]:
        function = as_map(as_map(call).get("function")) or as_map(call)
        line = Text(f"→ {call_name(function.get('name'))} ", overflow="fold")
        yield _indented(line.append(style.spread(_text(function.get("arguments")), "dim")))


def _content(content: Any) -> str:
    """Return message content as text: its text parts joined by line ends, any other part or value as JSON."""
    if isinstance(content, list):
        parts = (as_map(part).get("text", part) for part in content)
        return "\n".join(part if isinstance(part, str) else compact(part) for part in parts)
    return _text(content)


def sample_text(report: Report, entry: RowEntry, row: Mapping[str, Any], style: Style) -> str:
    """Return one sample as text."""
    return rendered(drilldown(Entry.of(entry), row, words_of(report.summary), style), style)


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

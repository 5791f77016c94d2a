"""Panels of the trajectory graders: answers of the tools to calls that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from gradestack import Cause, Report, causes_of_run
from gradestack.jsonio import as_count, as_list, as_map, as_text
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.draw import quoted
from gradestack_plugins.pages.failures import search_path
from gradestack_plugins.pages.index import RowIndex, index_of
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.text import cause_text

_MOST_QUOTES, _MOST_EXAMPLES, _MOST_TOOLS = 4, 3, 3
_GRADER = "tool_success"


@blocks.panel("What the tools answered", place="lead", replaces=["causes"])
def tool_errors(about: Report) -> Iterable[blocks.Block] | None:
    """Errors of tools, grouped, with examples; None if another grader decides, or none failed."""
    outcome = as_map(about.summary.get("outcome"))
    grader = outcome.get("grader")
    if grader != _GRADER or not about.has_rows:
        return None
    failed = as_count(outcome.get("failed"))
    passed = as_count(outcome.get("passed"))
    if not failed:
        return None
    causes = causes_of_run(about)
    index = index_of(about)
    quotes = [_quote(about, index, cause) for cause in causes[:_MOST_QUOTES]]
    total = failed + passed
    head = _head(about, failed, total)
    return [head, blocks.Quotes(quotes, failed), *_rest(causes)]


def _head(about: Report, failed: int, total: int) -> blocks.Head:
    """Build the headline: how many runs had a failing tool call, and how many calls recovered."""
    tool_outcomes = as_map(about.aggregates.get(_GRADER)).get("tool_outcomes")
    outcome_counts = as_map(tool_outcomes)
    errors = as_count(outcome_counts.get("error"))
    recovered = as_count(outcome_counts.get("recovered"))
    sentence: list[str | blocks.Part] = [
        blocks.Part(f"{failed:,} of {total:,} runs", "bad"),
        " had a failing tool call",
    ]
    if errors:
        if recovered == errors:
            share = "every"
        else:
            share = f"{recovered:,} of {errors:,}"
        noun = "failed call was" if recovered == errors else "failed calls were"
        sentence.append(f"; {share} {noun} followed by a successful one of the tool")
    return blocks.Head(sentence, note="The data has no expected calls. ")


def _quote(about: Report, index: RowIndex, cause: Cause) -> blocks.Quote:
    """Return the runs of a cause with the text of the first and links to some of them."""
    positions = list(islice(_positions(index, cause), _MOST_EXAMPLES))
    parts = cause.parts[:_MOST_TOOLS]
    tools = ", ".join(part.name for part in parts)
    more = len(cause.parts) - _MOST_TOOLS
    if more > 0:
        note = f"{tools} and {more} more"
    else:
        note = tools
    examples = [
        blocks.Link(index.entries[position].id or "(no id)", position=position)
        for position in positions
    ]
    error = cause_text(cause.name).removeprefix("call failed: ")
    is_of_one = len(cause.parts) == 1
    name = f"{tools}: {error}" if is_of_one else error
    link = blocks.Link(name, search=f"cause:{quoted(search_path(cause.path))}")
    text = _example_error(about, positions[0]) if positions else ""
    note = "" if is_of_one else note
    return blocks.Quote(link, "" if text == error else text, cause.samples, note, examples)


def _positions(index: RowIndex, cause: Cause) -> Iterable[int]:
    kinds_of_reasons = list(index.reasons.kinds)
    numbers_of_cause = {
        number for number, (_, name, *_) in enumerate(kinds_of_reasons) if name == cause.name
    }
    for position, numbers in enumerate(index.reasons.by_run):
        entry = index.entries[position]
        if entry.passed is False and numbers_of_cause.intersection(numbers):
            yield position


def _example_error(about: Report, position: int) -> str:
    """Return the first error of a tool among the reasons of a row, "" where there is none."""
    (row,) = rows_at(about, [position])
    grades = row.get("grades")
    grade = as_map(as_map(grades).get(_GRADER))
    reasons = grade.get("reasons")
    for reason in map(as_map, as_list(reasons)):
        if reason.get("error"):
            return as_text(reason["error"])
    return ""


def _rest(causes: Sequence[Cause]) -> Iterable[blocks.Block]:
    rest = sum(cause.samples for cause in causes[_MOST_QUOTES:])
    if rest:
        yield blocks.Link(f"{rest:,} runs with other errors", href="#failures")

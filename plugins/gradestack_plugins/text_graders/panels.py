"""Panels of the text graders: answers beside what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.index import index_of, worst
from gradestack_plugins.pages.rows import rows_at

_GRADERS = {
    "exact_match": "are exactly right",
    "contains": "contain what is expected",
    "numeric_close": "are close enough",
    "one_of": "are among those expected",
    "json_equal": "are equal to what is expected",
}
"""Grader -> what its answers that pass are."""
_MOST_ANSWERS = 12


@blocks.panel("Answers", place="lead", replaces=["causes"])
def answers(about: Report) -> Iterable[blocks.Block] | None:
    """The worst answers with question and expected text; None where another grader decides."""
    outcome = as_map(about.summary.get("outcome"))
    headline = as_map(about.summary.get("headline"))
    is_letta = headline.get("letta")
    grader = outcome.get("grader")
    kind = _kind_of(about, as_text(grader))
    if kind not in _GRADERS or is_letta or not about.has_rows:
        return None
    index = index_of(about)
    entries = worst(index.entries, _MOST_ANSWERS)
    positions = [entry.position for entry in entries]
    rows = rows_at(about, positions)
    shown = [_answer(row, position) for position, row in zip(positions, rows, strict=True)]
    passed = sum(entry.passed is True for entry in index.entries)
    of = sum(entry.passed is not None for entry in index.entries)
    if not of or outcome.get("per_model"):
        entry_count = len(index.entries)
        return [blocks.Answers(shown, left_out=entry_count - len(shown))]
    sentence: blocks.Text = [
        blocks.Part(f"{passed:,} of {of:,}", "good"),
        f" answers {_GRADERS[kind]}",
    ]
    head = blocks.Head(sentence)
    left_out = len(index.entries) - len(shown)
    return [
        head,
        blocks.Answers(shown, left_out=left_out),
    ]


def _kind_of(about: Report, key: str) -> str:
    components = as_list(about.header.get("components"))
    for entry in map(as_map, components):
        kind = entry.get("kind")
        if kind == "grader" and entry.get("key") == key:
            return as_text(entry.get("name"))
    return ""


def _answer(row: Mapping[str, Any], position: int) -> blocks.Answer:
    """Build the entry of a row: question, expected text, text given, verdict."""
    sample = as_map(row.get("sample"))
    expected = as_map(row.get("expected"))
    text = _text(sample.get("input"))
    question = text or as_text(sample.get("id")) or "(no question)"
    link = blocks.Link(question, position=position)
    return blocks.Answer(
        question=link,
        expected=_text(expected.get("text")),
        given=_text(row.get("submission")),
        right=row.get("passed"),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value)
    return value if isinstance(value, str) else compact(value)

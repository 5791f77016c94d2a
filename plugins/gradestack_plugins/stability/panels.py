"""Panels of the family: the runs of each question, and how stable answers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from gradestack import Report
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.pages import blocks

_BY_CLASS = {
    "mean_accuracy_across_runs": "right in a run",
    "mean_consistency_at_k": "share of the most frequent",
    "stability_at_k": "always the same",
    "mean_flip_rate": "changed",
}
_MOST_SHOWN, _MOST_READ = 12, 5_000
"""Questions that are shown; runs up to which they are read."""
_MOST_MARKS = 100
"""Marks of a question, up to which missing runs have one each."""


class _Question(msgspec.Struct):
    """The runs of a question in their order."""

    expected: str
    labels: list[str | None] = []
    positions: list[int] = []

    @property
    def flips(self) -> int:
        """Changes of the label from one recorded run to the next."""
        labels = [label for label in self.labels if label is not None]
        return sum(a != b for a, b in pairwise(labels))

    @property
    def mode(self) -> tuple[str, int]:
        """The most frequent label and its runs; "tie" where there are several."""
        counts = Counter(label for label in self.labels if label is not None).most_common()
        if not counts:
            return "none", 0
        top = [label for label, count in counts if count == counts[0][1]]
        first_count = counts[0]
        return (top[0] if len(top) == 1 else f"tie: {', '.join(top)}"), first_count[1]


@blocks.panel("Questions, least stable first", place="lead", replaces=["causes", "outcome"])
def stability(about: Report) -> Iterable[blocks.Block] | None:
    """The runs of each question and the figures by expected label; None in another run."""
    metrics = blocks.find_metrics(about, "stability", "k")
    if not metrics:
        return None
    k = as_count(metrics.get("k"))
    questions_blocks = _questions_blocks(about, k)
    return [*questions_blocks, *_by_class(metrics)]


def _questions_blocks(about: Report, k: int) -> Iterable[blocks.Block]:
    """Yield the share of questions with the same answer every time, and the least stable ones."""
    metrics = as_map(about.summary.get("metrics"))
    total = as_count(metrics.get("total"))
    if not about.has_rows or total > _MOST_READ:
        return
    questions = _read_questions(about)
    recorded_questions = {
        name: question for name, question in questions.items() if any(question.labels)
    }
    same_questions = [question for question in recorded_questions.values() if _is_same(question, k)]
    wrong = sum(question.mode[0] != question.expected for question in same_questions)
    sentence: list[str | blocks.Part] = [f"Same answer all {k} times in "]
    sentence.append(blocks.Part(f"{len(same_questions)} of {len(recorded_questions)}", "good"))
    sentence.append(f" questions, {wrong} of these always wrong")
    yield blocks.Head(sentence)
    ranked = sorted(recorded_questions.items(), key=lambda item: (-item[1].flips, item[0]))
    shown = [_strip(name, question, k) for name, question in ranked[:_MOST_SHOWN]]
    left_out = len(ranked) - len(shown)
    yield blocks.RunStrips(
        shown,
        ["most frequent", "changes"],
        left_out=left_out,
    )


def _is_same(question: _Question, k: int) -> bool:
    """Return whether all k runs are recorded and have one label."""
    label_count = len(question.labels)
    return label_count == k and None not in question.labels and not question.flips


def _read_questions(about: Report) -> dict[str, _Question]:
    """Read labels and positions of all runs, grouped by question."""
    questions: dict[str, _Question] = {}
    for position, row in enumerate(about.rows()):
        grade = as_map(row.get("grade"))
        sample = row.get("sample")
        name = as_text(as_map(sample).get("id"))
        label = as_map(row.get("expected")).get("label")
        expected = as_text(label)
        question = questions.setdefault(name, _Question(expected))
        question.labels.append(as_text(grade.get("label")) or None)
        question.positions.append(position)
    return questions


def _strip(name: str, question: _Question, k: int) -> blocks.RunStrip:
    """Build the row of a question: a mark for each of its ``k`` runs, and its verdict."""
    marks = []
    for label, position in zip(question.labels, question.positions, strict=True):
        if label is None:
            right = None
        else:
            right = label == question.expected
        text = label or "no run"
        marks.append(blocks.RunMark(text, text, right, blocks.Link(text, position=position)))
    missing = min(k, _MOST_MARKS) - len(marks)
    run_mark = blocks.RunMark("no run", "no run")
    marks += [run_mark] * missing
    mode, times = question.mode
    label_count = len(question.labels)
    recorded = label_count - question.labels.count(None)
    verdict, tone = _verdict(question, k - recorded)
    first_position = question.positions[0]
    link = blocks.Link(name, position=first_position)
    cells = [f"{mode} ({times} of {recorded})", f"{question.flips} of {max(0, recorded - 1)}"]
    return blocks.RunStrip(
        task=link,
        expected=question.expected,
        marks=marks,
        cells=cells,
        verdict=verdict,
        tone=tone,
    )


def _verdict(question: _Question, missing: int) -> tuple[str, blocks.Tone]:
    if missing > 0:
        return f"{missing} run{'' if missing == 1 else 's'} missing", ""
    if question.flips:
        return "wavers", "bad"
    if question.labels[0] == question.expected:
        return "stable, right", "good"
    return "stable, wrong", "bad"


def _by_class(metrics: Mapping[str, Any]) -> Iterable[blocks.Block]:
    """Yield the table of figures by expected label, if there are two labels or more."""
    labels = map(as_text, as_list(metrics.get("labels")))
    names = [name for name in labels if metrics.get(f"n_items_gold_{name}")]
    if len(names) < 2:
        return
    rows: dict[str, list[blocks.Cell]] = {}
    for name in names:
        cells: list[blocks.Cell] = [as_count(metrics.get(f"n_items_gold_{name}"))]
        for value in [as_number(metrics.get(f"{key}_gold_{name}")) for key in _BY_CLASS]:
            cells.append("n/a" if value is None else f"{100 * value:.1f}%")
        rows[name] = cells
    columns = ["questions", *_BY_CLASS.values()]
    yield blocks.Table(columns, rows, "By expected label", "expected")

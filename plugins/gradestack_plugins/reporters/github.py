"""The reporter ``github``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Report, Reporter, gate_texts, terminal_line
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.pages.environment import check_limits
from gradestack_plugins.pages.index import all_reasons, index_of, name_of, verdict, worst
from gradestack_plugins.pages.markdown import MarkdownReporter
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.text import brief

ANNOTATIONS, SUMMARY = "annotations.txt", "step_summary.md"


@attrs.frozen(kw_only=True)
class GithubReporter(Reporter):
    """Writes what a step of GitHub Actions shows.

    ``annotations.txt`` to print, ``step_summary.md`` for its summary.

    Annotations are the gates that failed and the worst samples that are no success, ten in all;
    everything else is in the summary, which is the Markdown report with fewer samples. They are
    files, so that nothing but the step that prints them gives commands to the system.
    """

    max_annotations: int = 10
    max_samples: int = 50
    """Samples listed in the summary."""

    def __attrs_post_init__(self) -> None:
        check_limits(self)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        lines = [*_gates(report)][: self.max_annotations]
        lines += _samples(report, self.max_annotations - len(lines))
        annotations, summary = out / ANNOTATIONS, out / SUMMARY
        annotations.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        MarkdownReporter(max_samples=self.max_samples).write_page(report, summary)
        return (annotations, summary)


def _gates(report: Report) -> Iterator[str]:
    for gate in map(as_map, as_list(report.summary.get("gates"))):
        if gate.get("passed") is not True:
            text = brief(as_text(gate.get("text")), 300)
            yield ci_command("error", "gate failed", f"{text}: {gate_verdict(gate)}")


def gate_verdict(gate: Mapping[str, Any]) -> str:
    """Return what became of a gate, and the figure it compared with what people should
    know of it.
    """
    actual, notes = gate_texts(gate)
    return brief("; ".join([f"{as_text(gate.get('outcome'))}, actual: {actual}", *notes]), 300)


def _samples(report: Report, most: int) -> Iterator[str]:
    entries = [
        entry
        for entry in index_of(report).entries
        if verdict(entry) not in ("passed", "skipped", "graded")
    ]
    chosen = worst(entries, most) if most > 0 else []
    rows = rows_at(report, (entry.position for entry in chosen)) if chosen else ()
    for entry, row in zip(chosen, rows, strict=True):
        name = " ".join(
            filter(None, (name_of(entry.id), entry.model, f"run {entry.run}" if entry.run else ""))
        )
        yield ci_command("error", brief(name, 200), brief(_why(as_map(row.get("grade"))), 500))


def _why(grade: Mapping[str, Any]) -> str:
    told = [
        f"{as_text(each.get('code'))}: {as_text(each.get('message'))}"
        for each in all_reasons(grade)
    ]
    fault = as_map(grade.get("fault"))
    state = as_text(grade.get("state"))
    found = as_text(fault.get("message")) or "; ".join(told[:3]) or as_text(grade.get("rationale"))
    score = f"score {grade.get('score')}" if state == "graded" else state
    return f"{score}: {found}" if found else score


def ci_command(name: str, title: object, message: object) -> str:
    r"""Return a workflow command of GitHub as one line: ``::error title=TITLE::MESSAGE``.

    >>> print(ci_command("error", "a: b", "50%"))
    ::error title=a%3A b::50%25
    """
    head, body = (terminal_line(each).replace("%", "%25") for each in (title, message))
    return f"::{name} title={head.replace(':', '%3A').replace(',', '%2C')}::{body}"

"""The reporter ``github``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
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
    """Writes the files that a step of GitHub Actions shows.

    ``annotations.txt`` to print, ``step_summary.md`` for its summary.

    Annotations are the gates that failed and the worst samples that are no success, ten in all.
    Everything else is in the summary, which is the Markdown report with fewer samples. They are
    files, so that nothing but the step that prints them gives commands to the system.
    """

    max_annotations: int = 10
    max_samples: int = 50
    """Samples listed in the summary."""

    def __attrs_post_init__(self) -> None:
        check_limits(self)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        gate_lines = _gate_lines(report)
        lines = list(islice(gate_lines, self.max_annotations))
        lines += _sample_lines(report, self.max_annotations - len(lines))
        annotations = out / ANNOTATIONS
        summary = out / SUMMARY
        annotations.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        markdown_reporter = MarkdownReporter(max_samples=self.max_samples)
        markdown_reporter.write_page(report, summary)
        return (annotations, summary)


def _gate_lines(report: Report) -> Iterator[str]:
    gates = as_list(report.summary.get("gates"))
    for gate in map(as_map, gates):
        if gate.get("passed") is not True:
            text = brief(as_text(gate.get("text")), 300)
            message = f"{text}: {gate_verdict(gate)}"
            yield ci_command("error", "gate failed", message)


def gate_verdict(gate: Mapping[str, Any]) -> str:
    """Return the outcome of a gate, the figure it compared, and the notes on that figure."""
    actual, notes = gate_texts(gate)
    outcome = as_text(gate.get("outcome"))
    return brief("; ".join([f"{outcome}, actual: {actual}", *notes]), 300)


def _sample_lines(report: Report, most: int) -> Iterator[str]:
    """Yield a GitHub error annotation for each of the worst failed samples, ``most`` at most."""
    entries = index_of(report).entries
    failed = [entry for entry in entries if verdict(entry) not in _NO_FAILURES]
    chosen = worst(failed, most) if most > 0 else []
    rows = rows_at(report, [entry.position for entry in chosen]) if chosen else ()
    for entry, row in zip(chosen, rows, strict=True):
        run = f"run {entry.run}" if entry.run else ""
        name = " ".join(filter(None, (name_of(entry.id), entry.model, run)))
        why = f"{report.main_grader} {_why(as_map(row.get('grade')))}".lstrip()
        title = brief(name, 200)
        message = brief(why, 500)
        yield ci_command("error", title, message)


_NO_FAILURES = frozenset({"passed", "skipped", "graded"})


def reason_texts(grade: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a grade and of its items, each as ``code: message``."""
    reasons = all_reasons(grade)
    return [
        f"{as_text(reason.get('code'))}: {as_text(reason.get('message'))}" for reason in reasons
    ]


def _why(grade: Mapping[str, Any]) -> str:
    fault = as_map(grade.get("fault"))
    state = as_text(grade.get("state"))
    reasons = "; ".join(reason_texts(grade)[:3])
    message = fault.get("message")
    why = as_text(message) or reasons or as_text(grade.get("rationale"))
    if state == "graded":
        score = f"score {grade.get('score')}"
    else:
        score = state
    return f"{score}: {why}" if why else score


def ci_command(name: str, title: object, message: object) -> str:
    r"""Return a workflow command of GitHub as one line: ``::error title=TITLE::MESSAGE``.

    >>> print(ci_command("error", "a: b", "50%"))
    ::error title=a%3A b::50%25
    """
    head = terminal_line(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    body = terminal_line(message).replace("%", "%25")
    return f"::{name} title={head}::{body}"

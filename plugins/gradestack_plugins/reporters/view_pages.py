"""Pages of a run on demand: the list of its samples part by part, and single samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import attrs
from markupsafe import Markup

from gradestack import Report, RowEntry, SamplePart
from gradestack.jsonio import as_count, as_map
from gradestack_plugins.reporters.conversation import SharedTexts
from gradestack_plugins.reporters.environment import asset, environment, policy
from gradestack_plugins.reporters.estimate_rows import rows_of
from gradestack_plugins.reporters.headline import success_of, words_of
from gradestack_plugins.reporters.index import Entry
from gradestack_plugins.reporters.panels import Sheets, folders
from gradestack_plugins.reporters.reliability import Reliability
from gradestack_plugins.reporters.samples import gist, sample
from gradestack_plugins.reporters.text import brief

_STYLES = ("report.css", "view.css")


@attrs.frozen
class ListLine:
    """One sample of the list."""

    entry: Entry
    gist: str


def sample_page(report: Report, entry: RowEntry, row: Mapping[str, Any], limit: int) -> str:
    """Return the page of one sample.

    Args:
        report: The run.
        entry: What the index says of it.
        row: Its row.
        limit: Longest text shown.
    """
    shared, words = SharedTexts(limit), words_of(report.summary)
    view = sample(Entry.of(entry), row, limit, shared)
    env = environment(folders=folders(report.panels))
    env.globals["sample_words"] = words
    panels = list(Sheets(env, report.panels, rows=False).of_sample(row))
    inside = env.get_template("_sample.html").render(sample=view, panels=panels, alone=True)
    return env.get_template("view_sample.html").render(
        **_frame(env, report),
        sample=view,
        words=words,
        inside=Markup(inside),  # noqa: S704 - rendered and escaped by our own template
        texts=shared.texts,
        task=f'"{entry.id}"',
        total=_total(report),
    )


def list_page(report: Report, part: SamplePart) -> str:
    """Return the page that lists a part of the samples."""
    summary, words = report.summary, words_of(report.summary)
    asked = {name: value for name, value in (("q", part.query), ("verdict", part.verdict)) if value}
    env = environment()
    return env.get_template("view_list.html").render(
        **_frame(env, report),
        words=words,
        figures=rows_of(summary, success_of(summary), words, Reliability(0, None, {})),
        lines=[ListLine(Entry.of(entry), gist(row)) for entry, row in part.shown],
        part=part,
        models=any(entry.model for entry, _ in part.shown),
        following=f"?{urlencode({**asked, 'from': part.stop + 1})}" if part.stop < part.total else "",
        choices=(("passed", words["passed"]), ("failed", words["lost"]), ("ungraded", "not graded")),
    )


def _frame(env: Any, report: Report) -> dict[str, Any]:
    """Return what every page has: name, styles and a policy that allows them, and a form that asks for a part."""
    styles, early = [asset(env, name) for name in _STYLES], asset(env, "theme.js")
    allowed = policy(styles, [early]).replace("form-action 'none'", "form-action 'self'")
    return {"name": brief(report.name, 200), "styles": styles, "early": early, "policy": allowed}


def _total(report: Report) -> int:
    return as_count(as_map(report.summary.get("metrics")).get("total"))

"""Report pages: ``html`` (one self-contained file) and ``markdown`` (for pull requests and job summaries)."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the two reporters."""
    return (
        Component(
            kind="reporter",
            name="html",
            target="gradestack_plugins.reporters.html:HtmlReporter",
            summary="report.html: one self-contained page with figures, charts, task table and a drill-down per sample",
        ),
        Component(
            kind="reporter",
            name="markdown",
            target="gradestack_plugins.reporters.markdown:MarkdownReporter",
            summary="report.md: verdict, figures, tables and the worst samples, for pull requests and job summaries",
        ),
    )

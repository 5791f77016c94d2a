"""Report pages, and what CI systems read of a run."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reporters."""
    return (
        Component(
            kind="reporter",
            name="html",
            target="gradestack_plugins.reporters.html:HtmlReporter",
            summary="report.html: a self-contained page with figures, charts, task table and a drill-down per sample",
        ),
        Component(
            kind="reporter",
            name="markdown",
            target="gradestack_plugins.reporters.markdown:MarkdownReporter",
            summary="report.md: verdict, figures, tables and the worst samples, for pull requests and job summaries",
        ),
        Component(
            kind="reporter",
            name="csv",
            target="gradestack_plugins.reporters.table_files:CsvReporter",
            summary="tables/NAME.csv: figures, gates, tasks, failures, samples, grades, items, reasons and calls",
        ),
        Component(
            kind="reporter",
            name="json",
            target="gradestack_plugins.reporters.table_files:JsonReporter",
            summary="tables/NAME.json: the tables of csv as lists of objects",
        ),
        Component(
            kind="reporter",
            name="text",
            target="gradestack_plugins.reporters.text_report:TextReporter",
            summary="report.txt: the worst samples as `gradestack show` prints one, for terminals and logs",
        ),
        Component(
            kind="reporter",
            name="junit",
            target="gradestack_plugins.reporters.junit:JunitReporter",
            summary="junit.xml: a test case per task and run, for CI systems that read JUnit",
        ),
        Component(
            kind="reporter",
            name="github",
            target="gradestack_plugins.reporters.github:GithubReporter",
            summary="annotations.txt and step_summary.md, for a step of GitHub Actions",
        ),
    )

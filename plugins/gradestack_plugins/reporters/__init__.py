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
            target="gradestack_plugins.pages.html:HtmlReporter",
            summary="report.html: a self-contained page with figures, charts, task table and a drill-down per sample",
        ),
        Component(
            kind="reporter",
            name="markdown",
            target="gradestack_plugins.pages.markdown:MarkdownReporter",
            summary="report.md: verdict, figures, tables and the worst samples, for pull requests and job summaries",
        ),
        Component(
            kind="reporter",
            name="csv",
            target="gradestack_plugins.pages.table_files:CsvReporter",
            summary="tables/NAME.csv: figures, gates, tasks, failures, samples, grades, items, reasons and calls",
        ),
        Component(
            kind="reporter",
            name="json",
            target="gradestack_plugins.pages.table_files:JsonReporter",
            summary="tables/NAME.json: the tables of csv as lists of objects",
        ),
        Component(
            kind="reporter",
            name="parquet",
            target="gradestack_plugins.pages.table_files:ParquetReporter",
            summary="tables/NAME.parquet: samples, grades, items, reasons, calls, figures, typed, for frames and SQL",
        ),
        Component(
            kind="reporter",
            name="text",
            target="gradestack_plugins.pages.show:TextReporter",
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
        Component(
            kind="command",
            name="new",
            target="gradestack_plugins.reporters.commands:new",
            summary="Begin a plugin: NAME.py with a metric, or a folder NAME with a package and its test.",
        ),
        Component(
            kind="command",
            name="plugins",
            target="gradestack_plugins.reporters.commands:plugins",
            summary="List, describe and check installed components.",
        ),
        Component(
            kind="command",
            name="compare",
            target="gradestack_plugins.pages.comparison:compare",
            summary="Compare two or more runs task by task: figures, what changed, a leaderboard.",
        ),
        Component(
            kind="command",
            name="show",
            target="gradestack_plugins.pages.show:show",
            summary="Show a sample of a run: its calls against the expected ones, grades, conversation.",
        ),
        Component(
            kind="command",
            name="view",
            target="gradestack_plugins.pages.view:view",
            summary="Serve a run to this machine's browser: its samples as a list, one by one, the report.",
        ),
        Component(
            kind="command",
            name="query",
            target="gradestack_plugins.pages.query:query",
            summary="Ask the tables of a run in SQL: samples, grades, items, reasons, calls, figures.",
        ),
        Component(
            kind="command",
            name="index",
            target="gradestack_plugins.pages.runs:index",
            summary="Write a page over all runs of a directory: a row for every run, figures over time.",
        ),
    )

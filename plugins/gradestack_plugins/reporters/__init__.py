"""Report pages, and what CI systems read of a run."""

from __future__ import annotations

from gradestack import Component, Kind, hookimpl


def _offer(kind: Kind, name: str, target: str, summary: str) -> Component:
    return Component(kind=kind, name=name, target=f"gradestack_plugins.{target}", summary=summary)


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reporters."""
    return (
        _offer(
            "reporter",
            "html",
            "pages.html:HtmlReporter",
            "report.html: a self-contained page with figures, charts, task table and a drill-down per sample",
        ),
        _offer(
            "reporter",
            "markdown",
            "pages.markdown:MarkdownReporter",
            "report.md: verdict, figures, tables and the worst samples, for pull requests and job summaries",
        ),
        _offer(
            "reporter",
            "csv",
            "pages.table_files:CsvReporter",
            "tables/NAME.csv: figures, gates, tasks, failures, samples, grades, items, reasons and calls",
        ),
        _offer(
            "reporter",
            "json",
            "pages.table_files:JsonReporter",
            "tables/NAME.json: the tables of csv as lists of objects",
        ),
        _offer(
            "reporter",
            "parquet",
            "pages.table_files:ParquetReporter",
            "tables/NAME.parquet: samples, grades, items, reasons, calls, figures, typed, for frames and SQL",
        ),
        _offer(
            "reporter",
            "text",
            "pages.show:TextReporter",
            "report.txt: the worst samples as `gradestack show` prints one, for terminals and logs",
        ),
        _offer(
            "reporter",
            "junit",
            "reporters.junit:JunitReporter",
            "junit.xml: a test case per task and run, for CI systems that read JUnit",
        ),
        _offer(
            "reporter",
            "github",
            "reporters.github:GithubReporter",
            "annotations.txt and step_summary.md, for a step of GitHub Actions",
        ),
        _offer(
            "command",
            "new",
            "reporters.commands:new",
            "Begin a plugin: NAME.py with a metric, or a folder NAME with a package and its test.",
        ),
        _offer("command", "plugins", "reporters.commands:plugins", "List, describe and check installed components."),
        _offer(
            "command",
            "compare",
            "pages.comparison:compare",
            "Compare two or more runs task by task: figures, what changed, a leaderboard.",
        ),
        _offer(
            "command",
            "show",
            "pages.show:show",
            "Show a sample of a run: its calls against the expected ones, grades, conversation.",
        ),
        _offer(
            "command",
            "view",
            "pages.view:view",
            "Serve a run to this machine's browser: its samples as a list, one by one, the report.",
        ),
        _offer(
            "command",
            "query",
            "pages.query:query",
            "Ask the tables of a run in SQL: samples, grades, items, reasons, calls, figures.",
        ),
        _offer(
            "command",
            "index",
            "pages.runs:index",
            "Write a page over all runs of a directory: a row for every run, figures over time.",
        ),
    )

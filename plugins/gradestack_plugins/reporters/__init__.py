"""Report pages, what CI systems read of a run, and commands."""

from gradestack import Component, hookimpl

_TABLE = """
reporter html .pages.html:HtmlReporter report.html: a self-contained page with figures, charts, task
    table and a
    drill-down per sample
reporter markdown .pages.markdown:MarkdownReporter report.md: verdict, figures, tables and the worst
    samples, for pull
    requests and job summaries
reporter csv .tables.files:CsvReporter tables/NAME.csv: figures, gates, tasks, failures,
    samples, grades, items,
    reasons and calls
reporter json .tables.files:JsonReporter tables/NAME.json: the tables of csv as lists of
    objects
reporter parquet .tables.files:ParquetReporter tables/NAME.parquet: samples, grades, items,
    reasons, calls,
    figures, typed, for frames and SQL
reporter junit .reporters.junit:JunitReporter junit.xml: a test case per task and run, for CI
    systems that read JUnit
reporter github .reporters.github:GithubReporter annotations.txt and step_summary.md, for a step of
    GitHub Actions
panel statements .reporters.panels:statements What metrics say of their figures in their documents'
    words
panel programs .reporters.panels:programs What the original program of the format computes, beside
    our figures
table headline .tables.figures:figure_table The figures of the headline with their intervals
table figures .tables.figures:figure_table Every number of every grader and aggregator with its
    interval
table gates .tables.figures:figure_table Every gate with its verdict
table samples .tables.rows:row_table A row per sample: state, score, calls, tokens, cost
table grades .tables.rows:row_table A row per sample and grader
table items .tables.rows:row_table A row per part that a grader judged by itself
table reasons .tables.rows:row_table A row per reason of a grade
table calls .tables.rows:row_table A row per expected call and per call that was made
command new .reporters.commands:new Create a plugin: NAME.py with a metric, or a folder NAME with a
    package and its test.
command schema .reporters.commands:schema Print the JSON Schema of a suite file, or of a line of the
    jsonl form.
command stacks .reporters.commands:stacks List and print the named metric stacks.
command validate .reporters.commands:validate Check the suite file SUITE without running it.
command plugins .reporters.commands:plugins List, describe, check and upgrade components.
command compare .pages.comparison:compare Compare two or more evaluations task by task: figures,
    what changed, a leaderboard.
command show .pages.show:show Show one run: its calls against the expected ones, grades, messages.
command view .pages.view:view Serve a report to a browser on this machine, for large evaluations.
command query .tables.query:query Run SQL on the tables of an evaluation: samples, grades, items,
    reasons, calls, figures.
command index .pages.runs:index Write a page over all evaluations of a directory, with figures over
    time.
"""
gradestack_components = hookimpl(lambda: Component.table("gradestack_plugins", _TABLE))

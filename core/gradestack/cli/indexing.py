"""The command ``index``: a page over the runs of a folder. Only click is imported here at the top."""

from __future__ import annotations

import click

from gradestack.output.terminal import terminal_line


@click.command()
@click.argument("directory")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def index(directory: str) -> None:
    """Write index.html into DIRECTORY: a row for every run in it and below, and its figures over time.

    Runs that are unfinished or cannot be read are named. Exit code 3 where there is no run.
    """
    from gradestack.python_index import folder_of, problem_lines, write_index  # noqa: PLC0415 - not needed for --help
    from gradestack.registry import discover  # noqa: PLC0415

    found = folder_of(directory)
    page = write_index(found, directory, discover())
    for line in problem_lines(found):
        click.echo(terminal_line(f"warning: {line}"), err=True)
    runs = f"{len(found.runs):,} run{'' if len(found.runs) == 1 else 's'}"
    click.echo(terminal_line(f"Index: {page} ({runs})"))

"""The command ``formats``: what files are read, each with the name of one."""

from __future__ import annotations

import click

from gradestack import discover, terminal_line


@click.command()
def formats() -> None:
    """List the formats that gradestack reads: the reader, what it reads, and an example of a file's
    name.

    Files are recognised by their content, whatever they are called.
    """
    registry = discover()
    components = registry.components()
    about = {
        component.name: component.summary
        for component, _ in components
        if component.kind == "reader"
    }
    width = max(map(len, about), default=0)
    for name, reader in registry.sound("reader").items():
        text = f"{name:<{width}}  {about[name]}"
        click.echo(terminal_line(text))
        if reader.example_file:
            click.echo(terminal_line(f"{'':<{width}}  {reader.example_file}"))

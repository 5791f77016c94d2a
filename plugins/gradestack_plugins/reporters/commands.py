"""The commands ``validate``, ``schema`` and ``stacks`` of suites, ``plugins`` of what is installed,
and ``new``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from gradestack import (
    ConfigError,
    PluginError,
    Registry,
    discover,
    forward_termination,
    load_suite,
    recognise,
    stack_for,
    suite_schema,
    terminal_line,
    with_files,
)
from gradestack.jsonio import dumps
from gradestack_plugins.command_options import (
    allow_code_option,
    allow_outside_option,
    set_option,
)
from gradestack_plugins.reporters.describe import component_data, component_lines, describe_lines
from gradestack_plugins.reporters.new_plugin import start


def _registry() -> Registry:
    known: Registry | None = click.get_current_context().meta.get("gradestack.registry False")
    return known or discover()


def _print(lines: Iterable[str]) -> None:
    click.echo("\n".join(map(terminal_line, lines)))


@click.command(epilog="Example: gradestack new politeness")
@click.argument("name")
@click.option(
    "--with",
    "parts",
    metavar="PARTS",
    help="Add a reader, aggregator, exporter or stack. Separate with commas.",
)
def new(name: str, *, parts: str | None) -> None:
    """Create a plugin: NAME.py with a metric, or a folder NAME with a package and its test."""
    for file in start(name, dict.fromkeys((parts or "").replace(",", " ").split()), _registry()):
        click.echo(terminal_line(f"{file}"))
    step = f"gradestack plugins check {name} --allow-code"
    if not (name.endswith(".py")):
        step = f"cd {name} && pip install -e '.[test]' && pytest"
    click.echo(terminal_line(f"Next: {step}"), err=True)


@click.group()
def plugins() -> None:
    """List, describe, check and upgrade components."""


@plugins.command("list", epilog="Example: gradestack plugins list --kind grader")
@click.option("--kind", metavar="KIND", help="List only this kind: reader, grader, aggregator, ...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: components, broken, conflicts.")
def plugins_list(*, kind: str | None, as_json: bool) -> None:
    """List components with their plugin's distribution and version."""
    if as_json:
        text = json.dumps(component_data(_registry(), kind))
        _print([text])
    else:
        _print(component_lines(_registry(), kind))


@plugins.command("describe", epilog="Example: gradestack plugins describe tool_calls")
@click.argument("name")
def plugins_describe(name: str) -> None:
    """Describe the component NAME.

    Prints what it computes, its options with defaults, and its entry in a suite.
    """
    _print(describe_lines(_registry(), name))


@plugins.command("check", epilog="Example: gradestack plugins check my-plugin --on runs.jsonl")
@click.argument("package")
@click.option("--on", metavar="DATA", help="A result file that the package reads or grades.")
@click.option("--reader", metavar="NAME", help="Format of DATA [default: recognised by content].")
@allow_code_option
def plugins_check(package: str, *, on: str | None, reader: str | None, allow_code: bool) -> None:
    """Check that the components of PACKAGE keep their contracts.

    PACKAGE is an installed distribution or FILE.py. Exit codes: 0 all checks pass, 4 a check fails,
    2 there is nothing to check or a component has required options.
    """
    from gradestack.testing import checks  # noqa: PLC0415 - not needed to list

    files = [package] if package.endswith(".py") else []
    registry = with_files(_registry(), files, allow_code=allow_code)
    if on is None:
        reads = {}
    else:
        paths = [Path(on)]
        reads = {recognise(paths, registry, reader).reader: on}
    exit_code = 0
    for check in checks(package, reads=reads):
        click.echo(terminal_line(f"{check} ... "), nl=False)  # first: it may end the process
        outcome = "ok"
        try:
            check()
        except AssertionError as error:
            outcome = f"FAILED: {_one_line(error, check)}"
            exit_code = max(exit_code, PluginError.exit_code)
        except ConfigError as error:  # it needs an example
            outcome = f"not checked: {_one_line(error, check)}"
            exit_code = max(exit_code, error.exit_code)
        click.echo(terminal_line(outcome))
    sys.exit(exit_code)


def _one_line(error: Exception, check: object) -> str:
    return " ".join(str(error).removeprefix(f"{check}: ").split())


@plugins.command("upgrade", epilog="Example: gradestack plugins upgrade src --dry-run")
@click.argument("path", type=Path)
@click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
def plugins_upgrade(path: Path, *, dry_run: bool) -> None:
    """Rewrite the Python files of PATH for the current contracts.

    PATH is a file or a folder. Exit codes: 0 done, 4 you must change something by hand, 2 a file
    cannot be read or written.
    """
    from gradestack.testing import upgrade  # noqa: PLC0415 - not needed to list

    changed, left = upgrade(path, dry_run=dry_run)
    for text in (*changed, *[f"by hand: {change}" for change in left]):
        click.echo(terminal_line(text))
    sys.exit(PluginError.exit_code if left else 0)


@click.command(epilog="Example: gradestack validate suite.yaml")
@click.argument("suite")
@set_option
@allow_code_option
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Open URLs that the suite names. Use it only if you trust the suite.",
)
@allow_outside_option
def validate(suite: str, **options: Any) -> None:
    """Check the suite file SUITE without running it."""
    installed = _registry()
    with forward_termination():
        resolved = load_suite(suite, registry=installed, **options)
    paths = ", ".join([str(data.path) for data in resolved.inputs.data])
    graders = ", ".join([f"{stage.key} ({stage.name})" for stage in resolved.graders])
    metrics = ", ".join([f"{metric.of}/{metric.stage.key}" for metric in resolved.metrics])
    if resolved.max_failed is None:
        limit = ""
    else:
        limit = f", max_failed {resolved.max_failed}"
    words = resolved.headline
    success = resolved.success
    outcome = "none"
    if success is not None:
        outcome = f"{words.passed} or {words.failed}, by {success.grader}"
    lines = [
        f"{suite}: valid",
        f"  inputs:  {paths} ({resolved.reader.name})",
        f"  graders: {graders}",
        f"  metrics: {metrics or 'none'}",
        f"  gates:   {len(resolved.gates) or 'none'}{limit}; main grader {resolved.main}",
        f"  outcome: {outcome}",
    ]
    _print([*lines, *[f"  warning: {warning}" for warning in resolved.warnings]])


@click.group()
def stacks() -> None:
    """List and print the named metric stacks."""


@stacks.command("list")
def stacks_list() -> None:
    """List the named stacks."""
    for component, plugin in _registry().components():
        if component.kind == "stack":
            line = f"{component.name:<24} {component.summary}  [{plugin.release}]"
            click.echo(terminal_line(line))


@stacks.command("show", epilog="Example: gradestack stacks show tau-bench")
@click.argument("name")
def stacks_show(name: str) -> None:
    """Print the stack NAME as YAML, ready to paste into a suite."""
    import yaml  # noqa: PLC0415 - not needed for --help

    stack = dict(stack_for(_registry(), name))
    click.echo(yaml.safe_dump(stack, sort_keys=False), nl=False)


@click.command(epilog="Example: gradestack schema suite > suite.schema.json")
@click.argument("what", type=click.Choice(["suite", "sample"]))
def schema(what: str) -> None:
    """Print the JSON Schema of a suite file, or of a line of the jsonl form."""
    registry = _registry()
    if what == "suite":
        printed = suite_schema(registry)
    else:
        printed = registry.load("reader", "jsonl").json_schema()
    click.echo(dumps(printed, indent=2))

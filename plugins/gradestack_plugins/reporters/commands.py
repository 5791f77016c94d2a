"""The commands ``validate``, ``schema`` and ``stacks`` of suites, ``plugins`` of what is installed,
and ``new``.
"""

from __future__ import annotations

import inspect
import json
import keyword
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, get_args

import click

from gradestack import (
    ConfigError,
    Kind,
    PluginError,
    Registry,
    __version__,
    class_schema,
    discover,
    forward_termination,
    load_suite,
    recognise,
    stack_for,
    suggest,
    suite_schema,
    terminal_line,
    with_files,
)
from gradestack.jsonio import dumps

KINDS: tuple[Any, ...] = get_args(Kind)
PARTS = ("reader", "aggregator", "exporter", "stack")  # what a package may have beside its grader
_PLACES = {
    **dict.fromkeys(("init", "metric", *PARTS), "src/{}/{}.py"),
    "py.typed": "src/{}/{}",
    **dict.fromkeys(("pyproject.toml", "README.md"), "{1}"),
    "test_package": "tests/{1}.py",
    "records.jsonl": "tests/{1}",
    "ci.yaml": ".github/workflows/{1}",
}
_CONDITION = re.compile(r"  #(with|without) (\w+)$")


def start(name: str, parts: Collection[Any], registry: Registry) -> Iterator[Path]:
    """Write a metric in one file (``FILE.py``), or a package with its test in a folder, and yield
    the files.

    Lines of a template that end in ``#with PART``, or ``#without PART``, are those of packages that
    have it, or not.

    Raises:
        ConfigError: Something has that name, it is none of a distribution, or a part is unknown.
    """
    place, alone = Path(os.path.normpath(name)), name.endswith(".py")
    if unknown := sorted(set(parts) - (set() if alone else {*PARTS})):
        there = "a file has none" if alone else f"there are: {', '.join(PARTS)}"
        raise ConfigError(f"{name}: no part to begin with is called {unknown[0]!r}; {there}")
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", stem := place.name.removesuffix(".py")):
        raise ConfigError(
            f"{name}: name it in lower case letters, digits and single hyphens, such as "
            "gradestack-acme"
        )
    if place.exists():
        raise ConfigError(f"{name}: is there already; choose another name")
    module = stem.replace("-", "_")
    if keyword.iskeyword(module) or find_spec(module):
        raise ConfigError(f"{name}: Python has a {module!r} already; choose another name")
    key = module.removeprefix("gradestack_")
    if taken := next(
        chain.from_iterable(registry.offers(kind, key) for kind in ("grader", *parts)), None
    ):
        raise ConfigError(
            f"{name}: {taken[1].release} has a {taken[0].kind} {key!r} already; choose another name"
        )
    major, minor = map(int, __version__.split(".")[:2])
    takes = f">={major}.{minor},<{major}.{minor + 1}"
    names = {"distribution": stem, "module": module, "key": key, "takes": takes}
    for template, form in _PLACES.items():
        if (template in PARTS and template not in parts) or (alone and template != "metric"):
            continue
        file = place if alone else place / form.format(module, template.replace("init", "__init__"))
        source = (
            files("gradestack_templates") / "new" / f"{template}{'.py' * ('.' not in template)}.txt"
        )
        text = Template(source.read_text(encoding="utf-8")).substitute(
            names, Class=key.title().replace("_", "")
        )
        found = [(line, _CONDITION.search(line)) for line in text.splitlines()]
        kept = [
            _CONDITION.sub("", line)
            for line, if_ in found
            if not if_ or (if_[1] == "with") == (if_[2] in parts)
        ]
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{file}: cannot be written: {error.strerror or error}") from error
        yield file


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
    step = step if name.endswith(".py") else f"cd {name} && pip install -e '.[test]' && pytest"
    click.echo(terminal_line(f"Next: {step}"), err=True)


@click.group()
def plugins() -> None:
    """List, describe, check and upgrade components."""


_SHOWN = {
    "reader": ("provides", "stack", "duplicates"),
    "grader": ("needs", "compares", "metrics"),
    "aggregator": ("keeps",),
    "exporter": ("reader", "graders"),
}
_ENTRIES = {
    "grader": "graders: {{KEY: {}}}",
    "aggregator": "metrics: {{KEY: {}}}",
    "exporter": "exporters: [{}]",
    "reporter": "reports: [{}]",
    "extractor": "graders: {{KEY: {{kind: exact_match, extractor: {}}}}}",
    **{kind: f"{kind}: {{}}" for kind in ("reader", "engine", "stack")},
}
"""How a suite names a component of a kind."""


def component_data(registry: Registry, kind: str | None = None) -> dict[str, list[Any]]:
    """Return every component, broken plugins and names that several distributions offer, as JSON
    data.
    """
    if kind is not None and kind not in KINDS:
        raise ConfigError(
            f"unknown kind {kind!r}{suggest(kind, KINDS)}; there are: {', '.join(KINDS)}"
        )

    def whose(plugin: Any) -> dict[str, str]:
        return {
            "plugin": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
        }

    found = [
        each._asdict() | whose(plugin)
        for each, plugin in registry.components()
        if kind in (None, each.kind)
    ]
    broken = [{**whose(plugin), "error": plugin.error} for plugin in registry.broken]
    return {"components": found, "broken": broken, "conflicts": registry.conflicts}


def component_lines(registry: Registry, kind: str | None = None) -> Iterator[str]:
    """Yield the same as lines."""
    found, end = component_data(registry, kind), "  [{distribution} {version}]"
    yield from (
        f"{{kind:<11}} {{name:<26}} {{summary}}{end}".format(**each) for each in found["components"]
    )
    yield from (
        f"broken      {{plugin:<26}} {{error}}{end}".format(**each) for each in found["broken"]
    )
    yield from (f"conflict    {conflict}" for conflict in found["conflicts"])


def _type_name(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(map(_type_name, schema["anyOf"]))
    return (
        " | ".join(map(str, schema["enum"])) if "enum" in schema else str(schema.get("type", "any"))
    )


def _option_lines(schema: Mapping[str, Any], indent: str) -> Iterator[str]:
    for option, each in schema["properties"].items():
        required = option in schema.get("required", ())
        default = "required" if required else f"default {json.dumps(each.get('default'))}"
        yield f"{indent}{option}: {_type_name(each)} ({default})"
        for nested in (
            each,
            each.get("items"),
            each.get("additionalProperties"),
            *each.get("anyOf", ()),
        ):
            if isinstance(nested, Mapping) and "properties" in nested:
                yield from _option_lines(nested, f"{indent}  ")


def _entry(kind: str, name: str, schema: Mapping[str, Any]) -> str:
    options = {key: json.dumps(each.get("default")) for key, each in schema["properties"].items()}
    options = (
        ({"of": "GRADER"} if kind == "aggregator" else {})
        | options
        | dict.fromkeys(schema.get("required", ()), "...")
    )
    found = ", ".join(f"{key}: {value}" for key, value in {"kind": name, **options}.items())
    return _ENTRIES[kind].format(f"{{{found}}}" if options and kind != "extractor" else name)


def _shown_value(attribute: str, value: Any) -> str:
    """Return what a class variable of a component says."""
    if attribute == "compares" and not isinstance(value, frozenset):
        return "anything" if value is None else "by its options"
    shown = ", ".join(sorted(value)) if isinstance(value, frozenset | tuple) else value
    return str(shown or "none")


def describe_lines(registry: Registry, name: str) -> Iterator[str]:
    """Yield the description of every component of a name."""
    found = [(kind, *offer[:3]) for kind in KINDS for offer in registry.offers(kind, name)]
    if not found:
        known = [component.name for component, _ in registry.components()]
        raise ConfigError(
            f"no component is called {name!r}{suggest(name, known)}; see `gradestack plugins list`"
        )
    for number, (kind, component, plugin, called) in enumerate(found):
        if number:
            yield ""
        target = registry.loaded(component, plugin)
        yield f"{kind} {called}: {component.summary}"
        yield f"  from {plugin.release}, plugin {plugin.name}, {component.target}"
        if hasattr(target, "version"):
            yield f"  version {target.version}"
        for attribute in _SHOWN.get(kind, ()):
            yield f"  {attribute}: {_shown_value(attribute, getattr(target, attribute))}"
        for figure in getattr(target, "figures", ()) if kind == "aggregator" else ():
            yield f"  figure {figure.name}: {figure.label} ({figure.unit}; better: {figure.better})"
        if documentation := inspect.getdoc(target):
            yield from ("", *(f"  {line}".rstrip() for line in documentation.splitlines()))
        schema = class_schema(target) if isinstance(target, type) else {"properties": {}}
        if schema["properties"]:
            yield from ("", "  options:", *_option_lines(schema, "    "))
        if kind in _ENTRIES:
            yield from ("", "  in a suite:", f"    {_entry(kind, called, schema)}")


def _registry() -> Registry:
    found: Registry | None = click.get_current_context().meta.get("gradestack.registry False")
    return found or discover()


@plugins.command("list", epilog="Example: gradestack plugins list --kind grader")
@click.option("--kind", metavar="KIND", help="List only this kind: reader, grader, aggregator, ...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: components, broken, conflicts.")
def plugins_list(*, kind: str | None, as_json: bool) -> None:
    """List components with their plugin's distribution and version."""
    found = (
        [json.dumps(component_data(_registry(), kind))]
        if as_json
        else component_lines(_registry(), kind)
    )
    click.echo("\n".join(map(terminal_line, found)))


@plugins.command("describe", epilog="Example: gradestack plugins describe tool_calls")
@click.argument("name")
def plugins_describe(name: str) -> None:
    """Describe the component NAME.

    Prints what it computes, its options with defaults, and its entry in a suite.
    """
    click.echo("\n".join(map(terminal_line, describe_lines(_registry(), name))))


@plugins.command("check", epilog="Example: gradestack plugins check my-plugin --on runs.jsonl")
@click.argument("package")
@click.option("--on", metavar="DATA", help="A result file that the package reads or grades.")
@click.option("--reader", metavar="NAME", help="Format of DATA [default: recognised by content].")
@click.option(
    "--allow-code",
    is_flag=True,
    help="Import Python code that is named. Use it only if you trust the code.",
)
def plugins_check(package: str, *, on: str | None, reader: str | None, allow_code: bool) -> None:
    """Check that the components of PACKAGE keep their contracts.

    PACKAGE is an installed distribution or FILE.py. Exit codes: 0 all checks pass, 4 a check fails,
    2 there is nothing to check or a component has required options.
    """
    from gradestack.testing import checks  # noqa: PLC0415 - not needed to list

    files = [package] if package.endswith(".py") else []
    registry = with_files(_registry(), files, allow_code=allow_code)
    reads = {} if on is None else {recognise([Path(on)], registry, reader).reader: on}
    broken = 0
    for check in checks(package, reads=reads):
        click.echo(terminal_line(f"{check} ... "), nl=False)  # first: it may end the process
        try:
            check()
        except (AssertionError, ConfigError) as error:  # one needs an example
            broken = max(
                broken,
                PluginError.exit_code if isinstance(error, AssertionError) else error.exit_code,
            )
            said = " ".join(str(error).removeprefix(f"{check}: ").split())
            click.echo(
                terminal_line(
                    f"{'FAILED' if isinstance(error, AssertionError) else 'not checked'}: {said}"
                )
            )
        else:
            click.echo("ok")
    sys.exit(broken)


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
    for text in (*changed, *(f"by hand: {each}" for each in left)):
        click.echo(terminal_line(text))
    sys.exit(PluginError.exit_code if left else 0)


@click.command(epilog="Example: gradestack validate suite.yaml")
@click.argument("suite")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set any option of the suite. VALUE is YAML.",
)
@click.option(
    "--allow-code",
    is_flag=True,
    help="Import Python code that is named. Use it only if you trust the code.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Open URLs that the suite names. Use it only if you trust the suite.",
)
@click.option(
    "--allow-outside",
    is_flag=True,
    help="Let the suite name files outside its folder. Use it only if you trust the suite.",
)
def validate(suite: str, **given: Any) -> None:
    """Check the suite file SUITE without running it."""
    installed = _registry()
    with forward_termination():
        found = load_suite(suite, registry=installed, **given)
    limit = "" if found.max_failed is None else f", max_failed {found.max_failed}"
    words, by = found.headline, found.success
    lines = (
        f"{suite}: valid",
        (
            f"  inputs:  {', '.join(str(each.path) for each in found.inputs.data)} "
            f"({found.reader.name})"
        ),
        f"  graders: {', '.join(f'{stage.key} ({stage.name})' for stage in found.graders)}",
        f"  metrics: {', '.join(f'{metric.of}/{metric.stage.key}' for metric in found.metrics) or 'none'}",
        f"  gates:   {len(found.gates) or 'none'}{limit}; main grader {found.main}",
        f"  outcome: {'none' if by is None else f'{words.passed} or {words.failed}, by {by.grader}'}",
        *(f"  warning: {warning}" for warning in found.warnings),
    )
    click.echo("\n".join(map(terminal_line, lines)))


@click.group()
def stacks() -> None:
    """List and print the named metric stacks."""


@stacks.command("list")
def stacks_list() -> None:
    """List the named stacks."""
    for component, plugin in (pair for pair in _registry().components() if pair[0].kind == "stack"):
        click.echo(terminal_line(f"{component.name:<24} {component.summary}  [{plugin.release}]"))


@stacks.command("show", epilog="Example: gradestack stacks show tau-bench")
@click.argument("name")
def stacks_show(name: str) -> None:
    """Print the stack NAME as YAML, ready to paste into a suite."""
    import yaml  # noqa: PLC0415 - not needed for --help

    click.echo(yaml.safe_dump(dict(stack_for(_registry(), name)), sort_keys=False), nl=False)


@click.command(epilog="Example: gradestack schema suite > suite.schema.json")
@click.argument("what", type=click.Choice(["suite", "sample"]))
def schema(what: str) -> None:
    """Print the JSON Schema of a suite file, or of a line of the jsonl form."""
    registry = _registry()
    found = (
        suite_schema(registry)
        if what == "suite"
        else registry.load("reader", "jsonl").json_schema()
    )
    click.echo(dumps(found, indent=2))

"""Write the reference pages from docstrings: ``make reference``.

``docs/components/*.md`` describe every built-in component, a page for each kind. ``docs/reference.md``
describes the public names. Between ``<!-- generated: NAME -->`` and ``<!-- end -->`` other pages hold
the help of all commands, the combinations of readers and graders, and the table of presets. A test
holds that all of them are current.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import attrs
import click

import gradestack
from gradestack import Registry, discover
from gradestack.cli.commands import CONTEXT, cli

DOCS = Path(__file__).parent
ROOT = DOCS.parent
KINDS = {
    "reader": "Readers turn a file into runs.",
    "grader": "Graders judge one run.",
    "aggregator": "Aggregators make figures from the grades of all runs.",
    "exporter": "Exporters write a benchmark's own result format.",
    "program": "Programs are the originals of benchmarks, run by `--profile upstream`.",
    "extractor": "Extractors take the text to grade from a run.",
    "engine": "Engines distribute the work.",
    "reporter": "Reporters write pages and files for people and CI.",
}
MODULES = {
    "gradestack": "The import root.",
    "gradestack.testing": "The conformance kit for plugins.",
    "gradestack.jsonio": "Reading JSON of others.",
    "gradestack_plugins.pages.blocks": "Blocks of panels.",
    "gradestack_plugins.pages.index": "Figures of many evaluations.",
    "gradestack_plugins.pages.rows": "Rows for panels.",
    "gradestack_plugins.chat": "Reading conversations.",
    "gradestack_plugins.tables.frame": "Tables of a run.",
    "gradestack_plugins.judges.contract": "Graders that ask a model.",
    "gradestack_plugins.judges.journal": "Replies on record.",
    "gradestack_plugins.judges.session": "Ask for missing replies.",
}
WRITTEN_BY = "<!-- Written by `make reference` from docstrings; do not edit. -->"
REGION = re.compile(r"(<!-- generated: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Example|Examples|Note):$")
ENTRY = re.compile(r"^\s+(\*{0,2}[\w.]+)(?: \(([^)]*)\))?: (.*)$")

SET = re.compile(r"frozenset\(\{([^{}]*)\}\)")


def indentation(line: str) -> int:
    """Count the leading spaces of a line."""
    return len(line) - len(line.lstrip())


def is_literal(line: str) -> bool:
    """Return whether a line belongs to a table that is set with spaces."""
    return bool(re.search(r"\S {3,}\S", line)) or "====" in line


def literal_block(lines: list[str], start: int) -> tuple[list[str], int]:
    """Return an indented block as a code fence, and the index of the line behind it."""
    end = start
    while end < len(lines) and (not lines[end].strip() or indentation(lines[end]) > 0):
        end += 1
    body = lines[start:end]
    least = min((indentation(line) for line in body if line.strip()), default=0)
    text = "\n".join(line[least:] for line in body).strip("\n")
    return ["", "```text", text, "```", ""], end


def section_lines(lines: list[str], start: int) -> tuple[list[str], int]:
    """Return the entries below a section's heading as a list, and the index behind them."""
    entries: list[str] = []
    index = start
    depth = indentation(lines[start]) if start < len(lines) else 0
    while index < len(lines) and (not lines[index].strip() or indentation(lines[index]) >= depth):
        line = lines[index]
        index += 1
        entry = ENTRY.match(line) if indentation(line) == depth else None
        if entry:
            kind = f" ({entry[2]})" if entry[2] else ""
            entries.append(f"- `{entry[1]}`{kind}: {entry[3]}")
        elif line.strip() and entries:
            entries[-1] += " " + line.strip()
        elif line.strip():
            entries.append(line.strip())
    return entries, index


def markdown_of(documentation: str) -> str:
    """Turn a Google-style docstring into Markdown."""
    lines = documentation.splitlines()
    output: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        heading = SECTION.match(line)
        if heading and index + 1 < len(lines):
            entries, index = section_lines(lines, index + 1)
            output += ["", f"**{heading[1]}**", "", *entries, ""]
        elif line.rstrip().endswith("::"):
            output.append(line.rstrip()[:-1])
            block, index = literal_block(lines, index + 1)
            output += block
        elif is_literal(line):
            table = []
            while index < len(lines) and lines[index].strip() and is_literal(lines[index]):
                table.append(lines[index])
                index += 1
            output += ["", "```text", *table, "```", ""]
        elif line.startswith(">>>"):
            example = []
            while index < len(lines) and lines[index].strip():
                example.append(lines[index])
                index += 1
            output += ["", "```pycon", *example, "```", ""]
        else:
            output.append(line)
            index += 1
    text = re.sub(r"(?<!`)``(?!`)", "`", "\n".join(output))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def default_text(field: Any) -> str:
    """Return an option's default as it stands in a suite, or that it is required."""
    if field.default is attrs.NOTHING:
        return "required"
    default = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        default = default.factory()
    return f"`{default!r}`"


def option_rows(component: Any) -> Iterator[str]:
    """Yield a table of the options of a component."""
    fields = [field for field in attrs.fields(component) if field.init]
    if not fields:
        return
    yield from ("", "| option | default |", "| --- | --- |")
    for field in fields:
        yield f"| `{field.name}` | {default_text(field).replace('|', '&#124;')} |"


def component_page(registry: Registry, kind: str, lead: str) -> str:
    """Describe every built-in component of a kind."""
    lines = [WRITTEN_BY, f"# {kind.capitalize()}s", "", lead]
    names = [c.name for c, _ in registry.components() if c.kind == kind]
    for name in sorted(names):
        component, plugin = next(
            (c, p) for c, p in registry.components() if (c.kind, c.name) == (kind, name)
        )
        target: Any = registry.loaded(component, plugin)
        lines += ["", f"## {name}", "", f"{component.summary}.", ""]
        lines.append(markdown_of(inspect.getdoc(target) or ""))
        if kind == "aggregator":
            lines += figure_rows(target)
        if isinstance(target, type) and attrs.has(target):
            lines += option_rows(target)
    return "\n".join(lines) + "\n"


def figure_rows(aggregator: Any) -> Iterator[str]:
    """Yield a table of the figures an aggregator declares."""
    figures = getattr(aggregator, "figures", ())
    if not isinstance(figures, tuple) or not figures:
        return
    yield from ("", "| figure | label | unit | better |", "| --- | --- | --- | --- |")
    for figure in figures:
        yield f"| `{figure.name}` | {figure.label} | {figure.unit} | {figure.better} |"


def public_names(module: Any) -> list[str]:
    """List what a module offers."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    )


def signature_text(value: Any) -> str:
    """Return the parameters of a callable with names and defaults, without types."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    text = SET.sub(_sort_members, str(inspect.Signature(plain)))
    return re.sub(r"<[^<>]*>", "…", re.sub(r" at 0x[0-9a-f]+", "", text))


def _sort_members(match: re.Match[str]) -> str:
    """Return a set of texts in alphabetical order, whatever the hash seed."""
    return f"frozenset({{{', '.join(sorted(match[1].split(', ')))}}})"


def name_lines(name: str, value: Any) -> Iterator[str]:
    """Yield the description of one public name, with the public methods of a class."""
    yield from ("", f"### {name}", "")
    if callable(value):
        yield from ("```text", f"{name}{signature_text(value)}", "```", "")
        yield markdown_of(inspect.getdoc(value) or "")
    else:
        yield f"A constant of type `{type(value).__name__}`."
    if inspect.isclass(value):
        yield from method_lines(value)


def method_lines(kind: type) -> Iterator[str]:
    """Yield a list of the public methods a class defines, with the first paragraph of each."""
    heading = ["", "**Methods**", ""]
    for method, member in sorted(vars(kind).items()):
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        documentation = inspect.getdoc(function)
        if method.startswith("_") or not inspect.isfunction(function) or not documentation:
            continue
        summary = markdown_of(documentation).split("\n\n", 1)[0].replace("\n", " ")
        yield from heading
        heading = []
        yield f"- `{method}{signature_text(function)}`: {summary}"


def reference_page() -> str:
    """Describe every public name."""
    lines = [WRITTEN_BY, "# Reference", ""]
    lines.append(
        "Every public name, from its docstring. [Python API](python-api.md) shows them in use."
    )
    for module_name, lead in MODULES.items():
        module = importlib.import_module(module_name)
        lines += ["", f"## {module_name}", "", lead]
        for name in public_names(module):
            value = getattr(module, name)
            if not inspect.ismodule(value):
                lines += name_lines(name, value)
    return "\n".join(lines) + "\n"


def command_help(context: click.Context) -> Iterator[str]:
    """Yield a heading and the help of each command."""
    group: Any = context.command
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = click.Context(
            command, parent=context, info_name=name, max_content_width=100, terminal_width=100
        )
        yield f"\n### `{inner.command_path}`\n\n```text\n{command.get_help(inner)}\n```"
        if isinstance(command, click.Group):
            yield from command_help(inner)


def regions() -> dict[str, str]:
    """Make the text of every generated region of other pages."""
    top = click.Context(cli, info_name="gradestack", **CONTEXT)
    combinations = run_path(str(ROOT / "tests/docs/combinations.py"))
    presets = run_path(str(ROOT / "tests/plugins/tool_calls/presets_table.py"))
    return {
        "commands": "\n".join(command_help(top)).strip(),
        "combinations": combinations["tables"](discover(limit="")).strip(),
        "presets": "\n".join(presets["lines"]()).strip(),
    }


def make_pages() -> dict[Path, str]:
    """Make the text of every page that is generated, whole or in part."""
    registry = discover(limit="")
    pages = {DOCS / "reference.md": reference_page()}
    for kind, lead in KINDS.items():
        pages[DOCS / f"components/{kind}s.md"] = component_page(registry, kind, lead)
    texts = regions()
    for name in ("cli.md", "combinations.md", "tool-calls.md"):
        page = (DOCS / name).read_text(encoding="utf-8")
        pages[DOCS / name] = REGION.sub(lambda m: f"{m[1]}\n{texts[m[2]]}\n{m[3]}", page)
    return pages


if __name__ == "__main__":
    for path, text in make_pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"gradestack {gradestack.__version__}: reference pages written")

"""Hooks of mkdocs.yml.

Navigation of docs/index.md, the notebook as a page, and what is made of the program.
"""

import re
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from runpy import run_path
from typing import Any

import click
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

from gradestack import discover
from gradestack.cli.commands import CONTEXT, cli

HEADING = re.compile(r"^## (.+)$")
LINK = re.compile(r"^\| *\[([^\]]+)\]\(([\w/-]+)\.(?:md|ipynb)\)")
NOTEBOOK = "notebook.ipynb"
RUN = re.compile(r'<a href="out/[^>]*>(.*?)</a>')
FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
NAMES = Path(__file__).parents[1] / "core/gradestack/__init__.pyi"
NAME = re.compile(r"^from (gradestack\S+) import (\w+) as \2$", re.MULTILINE)
EVERY_NAME = "\n::: gradestack\n"
EVERY_COMPONENT = "\n::: gradestack_plugins\n"
EVERY_COMMAND = "\n::: gradestack.cli\n"
COMBINATIONS, PRESETS = "tests/docs/combinations.py", "tests/plugins/tool_calls/presets_table.py"
FAMILIES = Path(__file__).parents[1] / "plugins/gradestack_plugins"
OFFERED = re.compile(
    r"^(reader|grader|aggregator|exporter|extractor|engine|reporter) (\w+) (\S+):(\w+) ",
    re.MULTILINE,
)
PACKAGE = re.compile(r"Component\.table\((\S+), (\w+)\)")


def on_config(config: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Each heading of docs/index.md is a section of the navigation, each row beginning with a link
    is a page in it.
    """
    nav: dict[str, Any] = {"Home": "index.md"}
    section = ""
    for line in Path(config["docs_dir"], "index.md").read_text(encoding="utf-8").splitlines():
        if heading := HEADING.match(line):
            section = heading[1]
        elif link := LINK.match(line):
            nav.setdefault(section, []).append({link[1]: f"{link[2]}.md"})
    config["nav"] = [{title: pages} for title, pages in nav.items()]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Show the executed notebook, outputs included, as a page in place of the file."""
    made = files.get_file_from_path(NOTEBOOK)
    text, _ = MarkdownExporter().from_filename(made.abs_src_path)
    files.remove(made)
    text = RUN.sub(r"\1", text)
    files.append(File.generated(config, NOTEBOOK.replace(".ipynb", ".md"), content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Name all public names where the page asks for them.

    Show a file's name above the block that is written to it.
    """
    names = sorted(
        NAME.findall(NAMES.read_text(encoding="utf-8")), key=lambda found: found[1].lower()
    )
    markdown = markdown.replace(
        EVERY_NAME, "".join(f"\n::: {module}.{name}\n" for module, name in names)
    )
    markdown = markdown.replace(f"{NOTEBOOK})", f"{NOTEBOOK.replace('.ipynb', '.md')})")
    markdown = markdown.replace(EVERY_COMPONENT, _components())
    if EVERY_COMMAND in markdown:
        top = click.Context(cli, info_name="gradestack", **CONTEXT)
        markdown = markdown.replace(EVERY_COMMAND, "".join(_help(top)))
    if f"::: {COMBINATIONS}" in markdown:
        markdown = markdown.replace(
            f"::: {COMBINATIONS}", run_path(COMBINATIONS)["tables"](discover(limit=""))
        )
    if f"::: {PRESETS}" in markdown:
        markdown = markdown.replace(f"::: {PRESETS}", "\n".join(run_path(PRESETS)["lines"]()))
    return FENCE.sub(_titled, markdown).replace("\n```jsonl", "\n```json")


def _help(context: click.Context) -> Iterator[str]:
    """Yield a heading and the help of each command."""
    group: Any = context.command
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        within = click.Context(
            command, parent=context, info_name=name, max_content_width=100, terminal_width=100
        )
        yield f"\n### `{within.command_path}`\n\n```text\n{command.get_help(within)}\n```\n"
        if isinstance(command, click.Group):
            yield from _help(within)


def _components() -> str:
    """Return a heading and the docstring of each component that the packages of the families list,
    kind by kind.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for hooks in FAMILIES.glob("*/__init__.py"):
        text = hooks.read_text(encoding="utf-8")
        for package, table in PACKAGE.findall(text):
            base = (
                f"gradestack_plugins.{hooks.parent.name}"
                if package == "__name__"
                else package.strip('"')
            )
            for kind, name, module, named in OFFERED.findall(
                text.split(f"\n{table} = ")[1].split('"""')[1]
            ):
                found.setdefault((kind, f"{base}{module}.{named}"), []).append(name)
    kinds = OFFERED.pattern.partition("(")[2].partition(")")[0].split("|")
    options = (
        "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}\n"
    )
    return "".join(
        f"\n## {', '.join(names)} ({kind})\n\n::: {path}\n{options}"
        for (kind, path), names in sorted(
            found.items(), key=lambda each: (kinds.index(each[0][0]), each[1])
        )
    )


def _titled(fence: re.Match[str]) -> str:
    return f'```{fence[1]} title="{fence[2]}"' if "." in fence[2] else f"```{fence[1]}"

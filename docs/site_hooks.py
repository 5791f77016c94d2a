"""Hooks of mkdocs.yml.

Navigation of docs/index.md, and the notebook as a page.
"""

import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

HEADING = re.compile(r"^## (.+)$")
LINK = re.compile(r"^\| *\[([^\]]+)\]\(([\w/-]+)\.(?:md|ipynb)\)")
NOTEBOOK = "notebook.ipynb"
RUN = re.compile(r'<a href="out/[^>]*>(.*?)</a>')
FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


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
    """Point to the notebook as a page, and show a file's name above the block written to it."""
    markdown = markdown.replace(f"{NOTEBOOK})", f"{NOTEBOOK.replace('.ipynb', '.md')})")
    return FENCE.sub(_titled, markdown).replace("\n```jsonl", "\n```json")


def _titled(fence: re.Match[str]) -> str:
    return f'```{fence[1]} title="{fence[2]}"' if "." in fence[2] else f"```{fence[1]}"

"""Hooks of mkdocs.yml: navigation of docs/index.md, reference pages of names and components, the notebook as a page."""

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
NAMES = Path(__file__).parents[1] / "core/gradestack/__init__.pyi"
NAME = re.compile(r"^from (gradestack\S+) import (\w+) as \2$", re.MULTILINE)
EVERY_NAME = "\n::: gradestack\n"
EVERY_COMPONENT = "\n::: gradestack_plugins\n"
FAMILIES = Path(__file__).parents[1] / "plugins/gradestack_plugins"
OFFERED = re.compile(r":([A-Z]\w+)\"")


def on_config(config: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Each heading of docs/index.md is a section of the navigation, each row beginning with a link is a page in it."""
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
    """Name all public names where the page asks for them; show a file's name above the block that is written to it."""
    names = sorted(NAME.findall(NAMES.read_text(encoding="utf-8")), key=lambda found: found[1].lower())
    markdown = markdown.replace(EVERY_NAME, "".join(f"\n::: {module}.{name}\n" for module, name in names))
    markdown = markdown.replace(f"{NOTEBOOK})", f"{NOTEBOOK.replace('.ipynb', '.md')})")
    alone = "    options: {members: false}"
    markdown = markdown.replace(EVERY_COMPONENT, "".join(f"\n::: {path}\n{alone}\n" for path in _components()))
    return FENCE.sub(_titled, markdown).replace("\n```jsonl", "\n```json")


def _components() -> list[str]:
    """Find the classes that the hooks of the families name, by the files they are defined in."""
    found = []
    for hooks in FAMILIES.glob("*/__init__.py"):
        for name in OFFERED.findall(hooks.read_text(encoding="utf-8")):
            files = sorted(FAMILIES.rglob("*.py"), key=lambda path: (hooks.parent not in path.parents, path))
            file = next(path for path in files if f"\nclass {name}(" in path.read_text(encoding="utf-8"))
            found.append(".".join((*file.relative_to(FAMILIES.parent).with_suffix("").parts, name)))
    return sorted(set(found), key=lambda path: path.rpartition(".")[2].lower())


def _titled(fence: re.Match[str]) -> str:
    return f'```{fence[1]} title="{fence[2]}"' if "." in fence[2] else f"```{fence[1]}"

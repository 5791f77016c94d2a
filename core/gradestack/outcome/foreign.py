"""Pages that are there already: those gradestack wrote are written anew, those of others are not touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gradestack.errors import ConfigError
from gradestack.rundir.place import filling

COMPARISON, COMPARISON_PAGE, COMPARISON_TEXT = "comparison.json", "comparison.html", "comparison.md"
REPORT_PAGES = ("report.html", "report.md")
_MARKS = {".html": b'<meta name="generator" content="gradestack', ".json": b'{"baseline":', ".md": b" gradestack "}
"""What stands near the beginning of a page, and of a comparison."""
_BEGINNING = 8192


def keep_foreign(*pages: Path) -> None:
    """Refuse to write where a file of somebody else's stands."""
    for page in pages:
        if not page.exists():
            continue
        if not page.is_file():  # a pipe would be waited for
            raise _in_the_way(page)
        with page.open("rb") as file:
            if _MARKS[page.suffix] not in file.read(_BEGINNING):
                raise _in_the_way(page)


def publish(out: Path, pages: Mapping[str, str]) -> None:
    """Write pages into a directory that anybody may have filled: links there are replaced, pages of others are not.

    Args:
        out: The directory.
        pages: File name -> text.

    Raises:
        ConfigError: A page of that name is there and was not written by gradestack.
        OSError: It cannot be written.
    """
    keep_foreign(*(out / name for name in pages))
    with filling(out) as new:
        for name, text in pages.items():
            (new / name).write_text(text, encoding="utf-8", errors="replace", newline="\n")


def keep_foreign_comparison(out: Path) -> None:
    """Refuse to write a comparison where a file of somebody else's stands.

    What ``comparison.json`` says of itself goes for its pages; without it the HTML page is asked. Markdown says nothing
    of itself: where it stands alone it is not one of ours.
    """
    data, page, text = (out / name for name in (COMPARISON, COMPARISON_PAGE, COMPARISON_TEXT))
    keep_foreign(data if data.exists() else page)
    if text.exists() and not data.exists() and not page.exists():
        raise _in_the_way(text)


def _in_the_way(page: Path) -> ConfigError:
    return ConfigError(f"{page}: is there already and was not written by gradestack; move it away")

"""Pages that are there already: those gradestack wrote are written anew, those of others are not touched."""

from __future__ import annotations

from pathlib import Path

from gradestack.errors import ConfigError

COMPARISON, COMPARISON_PAGE = "comparison.json", "comparison.html"
REPORT_PAGES = ("report.html", "report.md")
_MARKS = {".html": b'<meta name="generator" content="gradestack', ".json": b'{"baseline":', ".md": b" gradestack "}
"""What stands near the beginning of a page, and of a comparison."""
_BEGINNING = 8192


def keep_foreign(*pages: Path) -> None:
    """Refuse to write where a file of somebody else's stands.

    Raises:
        ConfigError: One of them is there and was not written by gradestack.
        OSError: One of them cannot be read.
    """
    for page in pages:
        if not page.exists():
            continue
        with page.open("rb") as file:
            if _MARKS[page.suffix] not in file.read(_BEGINNING):
                msg = f"{page}: is there already and was not written by gradestack; move it away"
                raise ConfigError(msg)

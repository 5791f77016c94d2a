"""Files of a run directory, by name, and whether a directory is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gradestack.jsonio.files import read_regular

GENERATOR = "gradestack"
HEADER, ROWS, SUMMARY = "header.json", "results.jsonl", "summary.json"


def header_of(path: Path) -> dict[str, Any]:
    """Return what header.json of a run directory holds; nothing where it is none."""
    try:
        header = json.loads(read_regular(path / HEADER))
    except (OSError, ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) and header.get("generator") == GENERATOR else {}


def is_run(path: Path) -> bool:
    """Return whether a directory is a gradestack run directory."""
    return bool(header_of(path))

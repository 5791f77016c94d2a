"""Files of a run directory, by name, and whether a directory is one."""

from __future__ import annotations

import json
from pathlib import Path

from gradestack.jsonio.files import read_regular

GENERATOR = "gradestack"
HEADER, ROWS, SUMMARY = "header.json", "results.jsonl", "summary.json"


def is_run(path: Path) -> bool:
    """Return whether a directory is a gradestack run directory."""
    try:
        header = json.loads(read_regular(path / HEADER))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("generator") == GENERATOR

"""Files of sessions, traces and histories: a test case, repeated with ids and texts of its own.

The cases stand in ``tests/cases``, after files that the programs wrote themselves. Of each reader
the first case counts whose files are JSON Lines. A text with a space in it is lengthened, since
those of the cases are short.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from formats import FORMATS, Files, lines

CASES = Path(__file__).parents[1] / "tests/cases"
FOLDERS = ("sessions", "traces", "histories")
CHARACTERS = 550
"""Length of a text."""
FILLER = "The customer was told so, and the change was written down for the next one who asks. "
_ID = re.compile(r"(?i).*(?<!model)_?(?:id|uuid|parents)")
"""Keys of ids."""


def first_cases() -> dict[str, list[Any]]:
    """Return the records of the first case of each reader that has one in JSON Lines."""
    records: dict[str, list[Any]] = {}
    for folder in FOLDERS:
        for path in sorted((CASES / folder).glob("*.yaml")):
            if path.stem == "damaged":
                continue
            for case in yaml.safe_load(path.read_text(encoding="utf-8")):
                files = list(case["files"].values())
                is_whole = len(files) == 1 and not case.get("bad_records")
                if is_whole and isinstance(files[0], list) and case["reader"] not in FORMATS:
                    records.setdefault(case["reader"], files[0])
    return records


def repeated(value: Any, number: int, key: str = "") -> Any:
    """Return a value with ids of its own for each number, and texts that are long."""
    if isinstance(value, dict):
        return {name: repeated(inner, number, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [repeated(inner, number, key) for inner in value]
    if not isinstance(value, str):
        return value
    if value.startswith(("{", "[")):
        try:
            return json.dumps(repeated(json.loads(value), number), ensure_ascii=False)
        except ValueError:
            return value
    if _ID.fullmatch(key) and value:
        return f"{value}-{number}"
    if " " not in value:
        return value
    missing = max(0, CHARACTERS - len(value))
    return f"{value} {number}. {FILLER * (missing // len(FILLER))}"


def copies(records: list[Any], number: int, seed: int) -> Iterator[Any]:
    """Yield the records as often as asked, each time with ids and texts of their own."""
    for copy in range(number):
        yield from repeated(records, seed * number + copy)


def write(records: list[Any], folder: Path, number: int, seed: int) -> Files:
    """Write copies of a case's records, one record a line."""
    return Files(lines(folder / "log.jsonl", copies(records, number, seed)))


WRITERS: dict[str, Callable[[Path, int, int], Files]] = {
    name: partial(write, records) for name, records in first_cases().items()
}
"""Reader -> what writes a file for it."""

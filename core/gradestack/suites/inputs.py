"""From paths on a command line or in a suite to named inputs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from gradestack.api import Input
from gradestack.copies.addresses import is_address
from gradestack.copies.files import STANDARD_INPUT, fetched, readable, shown_path, standard_input
from gradestack.errors import DataError, suggest
from gradestack.suites.paths import MAGIC, local_files, path_of

_NEIGHBOURS = 1000
"""Names of a directory that are compared with one that is not there."""


def expand(texts: Iterable[str], base: Path | None = None) -> list[Path]:
    """Return the paths meant, those of copies of what is packed, remote or standard input; one may come twice."""
    found: list[Path] = []
    known: dict[str, Path] = {}
    for text in texts:
        if not text:
            raise DataError("an empty path was given; name result files or directories")
        if text == STANDARD_INPUT:
            found.append(standard_input())
        elif there := local_files(text, base):
            found += map(readable, there)
        elif is_address(text):
            found += fetched(text, known)
        else:
            path, pattern = path_of(text, base), MAGIC & set(text)
            why = "the pattern matches no file" if pattern else f"no such file or directory{_nearly(path)}"
            raise DataError(f"{path}: {why}")
    return found


def _nearly(path: Path) -> str:
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _NEIGHBOURS)]
    except OSError:
        return ""
    near = [name for name in names if suggest(path.stem, [Path(name).stem], cutoff=0.75)]  # suffixes are alike anyway
    return suggest(path.name, near)


def _apart(paths: Iterable[Path]) -> list[Path]:
    """Return paths, those that differ only in the query of their address, which is not shown, by a number."""
    found: dict[Path, None] = {}
    for path in paths:
        number, each = 1, path
        while each in found:
            number += 1
            each = path.with_name(f"{path.name} ({number})")
        found[each] = None
    return list(found)


def name_inputs(paths: Sequence[Path]) -> tuple[Input, ...]:
    """Give every path a short unique name (its stem) and a short unique way to show it (as few parts as needed)."""
    called = _apart(map(shown_path, paths))
    tails = cache(lambda length: Counter(each.parts[-length:] for each in called))
    shown: list[str] = []
    for path in called:
        lengths = range(1, len(path.parts))
        length = next((each for each in lengths if tails(each)[path.parts[-each:]] == 1), len(path.parts))
        shown.append("/".join(path.parts[-length:]) if path.name else path.resolve().name)
    stems = [path.stem if path.is_file() else (path.name or path.resolve().name) for path in paths]
    total, seen = Counter(stems), Counter[str]()
    taken = {stem for stem in stems if total[stem] == 1}
    inputs = []
    for path, stem, text in zip(paths, stems, shown, strict=True):
        name = stem
        while total[stem] > 1 and (name == stem or name in taken):
            seen[stem] += 1
            name = f"{stem}-{seen[stem]}"
        taken.add(name)
        inputs.append(Input(path=path, name=name, shown=text))
    return tuple(inputs)

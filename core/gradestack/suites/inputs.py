"""From paths on a command line or in a suite to named inputs."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from gradestack.api import Input
from gradestack.copies.addresses import is_address
from gradestack.copies.files import STANDARD_INPUT, fetched, readable, shown_path, standard_input
from gradestack.errors import DataError, suggest
from gradestack.jsonio.files import read_regular
from gradestack.jsonio.values import loads
from gradestack.run_files import HEADER, is_run
from gradestack.suites.strict import path_of

_NEIGHBOURS = 1000
"""Names of a directory that are compared with one that is not there."""
_MAGIC = frozenset("*?[")


class Recognised(NamedTuple):
    """What the given paths hold."""

    reader: str
    paths: list[Path]
    ignored: list[str]
    repeated: Mapping[Path, int]
    """How often a path was given, for those that were given more than once, whatever their spelling."""
    odd: list[tuple[Path, str]]
    """What is odd about a file, with its line in front."""


def expand(texts: Iterable[str], base: Path | None = None) -> list[Path]:
    """Return the paths meant, globs expanded in sorted order, relative ones taken from ``base``.

    One that is meant twice is returned twice. Of what is packed, remote or standard input, the path is that of a copy.
    """
    found: list[Path] = []
    known: dict[str, Path] = {}
    for text in texts:
        if not text:
            raise DataError("an empty path was given; name result files or directories")
        if text == STANDARD_INPUT:
            found.append(standard_input())
        elif there := _there(text, base):
            found += map(readable, there)
        elif is_address(text):
            found += fetched(text, known)
        else:
            path, pattern = path_of(text, base), _MAGIC & set(text)
            why = "the pattern matches no file" if pattern else f"no such file or directory{_nearly(path)}"
            raise DataError(f"{path}: {why}")
    return found


def is_remote(text: str, base: Path | None = None) -> bool:
    """Return whether a text is taken for an address: one like it that no local file is called."""
    return is_address(text) and not _there(text, base)


def _there(text: str, base: Path | None) -> list[Path]:
    """Return the local files and directories that a text means: the one it names, or those its pattern matches."""
    try:
        path = path_of(text, base)
        there = path.exists()
    except (OSError, ValueError) as error:  # a name too long, a directory that may not be entered, a NUL character
        if is_address(text):
            return []
        why = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else error
        raise DataError(f"{text if base is None else base / text}: {why}") from error
    if not there:
        # As shells do it: * leaves hidden files alone, which Path.glob does not.
        return sorted(map(Path, glob.glob(str(path), recursive=True))) if _MAGIC & set(text) else []  # noqa: PTH207
    if not path.is_file() and not path.is_dir():  # a pipe would be used up by looking at its head
        raise DataError(f"{path}: neither a file nor a directory; write it to a file first, or pipe it to -")
    return [path]


def _nearly(path: Path) -> str:
    """Return which file beside it a path that leads nowhere may have meant."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _NEIGHBOURS)]
    except OSError:
        return ""
    near = [name for name in names if suggest(path.stem, [Path(name).stem], cutoff=0.75)]  # suffixes are alike anyway
    return suggest(path.name, near)


def input_remarks(inputs: Iterable[Input], found: Recognised) -> list[str]:
    """Return a warning for each input that is a slim run of ours, was given more than once, or holds something odd."""
    folders = {given: given.path if given.path.is_dir() else given.path.parent for given in inputs}
    slim = {folder for folder in set(folders.values()) if is_run(folder) and recorded_rows(folder) == "slim"}
    why = "graders and extractors that read it find none; grade the input of that run instead"
    shown = {given.path: given.shown for given in folders}
    return [
        *(
            f"{given.shown}: a run with slim rows, which hold no conversation: {why}"
            for given, folder in folders.items()
            if folder in slim
        ),
        *(f"{shown[path]}: given {times} times; it is read once" for path, times in found.repeated.items()),
        *(f"{shown[path]}{what}" for path, what in found.odd),
    ]


def recorded_rows(run: Path) -> Any:
    """Return what header.json says is kept of the samples of a run."""
    return loads(read_regular(run / HEADER)).get("rows")


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

"""Where the copy of a packed file lies: as the file does, for formats that look for others beside it or around it."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from gradestack.copies.names import is_copy, new_folder, note

SUFFIXES: Final = frozenset({".gz", ".zst"})
_LEVELS: Final = 6
"""Directories around a file, its own included, that are laid out again."""
_MOST: Final = 200
"""Entries of a directory up to which the others are linked."""

_like: dict[Path, Path] = {}
"""Directory -> the one that is laid out like it."""


def free_place(path: Path, name: str) -> Path:
    """Return a free path to unpack a file to as ``name``, with links to what stands around the packed file."""
    if is_copy(path):
        return new_folder() / name
    copy = _folder_like(path.parent.resolve()) / name
    if copy.is_symlink() and name == path.name:
        copy.unlink()
    return new_folder() / name if copy.exists() else copy


def _folder_like(folder: Path) -> Path:
    if folder in _like:
        return _like[folder]
    around = [each for each in (folder, *folder.parents)[:_LEVELS] if each.name][::-1]
    place = new_folder()
    for outer, inner in zip(around, (*around[1:], None), strict=True):
        place = place / outer.name
        place.mkdir()
        if outer is around[0]:
            note(place, outer)
        with suppress(OSError):  # one that may be passed through and not be looked into
            _link(outer, place, "" if inner is None else inner.name)
    _like[folder] = place
    return place


def _link(folder: Path, place: Path, left_out: str) -> None:
    """Put links to the entries of a directory into another; none where they are many, and none to packed files."""
    with os.scandir(folder) as found:
        entries = list(islice(found, _MOST + 1))
    for each in entries if len(entries) <= _MOST else ():
        if each.name != left_out and Path(each.name).suffix.lower() not in SUFFIXES and not is_copy(Path(each.path)):
            (place / each.name).symlink_to(each.path)

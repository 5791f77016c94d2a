"""Packed files, unpacked once into a temporary directory: readers cut files into ranges and open them many times."""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Final

from gradestack.copies.names import new_folder, note
from gradestack.copies.surroundings import SUFFIXES, free_place
from gradestack.errors import DataError
from gradestack.jsonio.files import open_regular

_PIECE: Final = 1 << 20
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_ZSTD: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"

_made: dict[tuple[Any, ...], Path] = {}
"""What a copy was made of -> the copy; one file given twice is unpacked once."""


def readable(path: Path) -> Path:
    """Return a path that readers can open: itself, or a copy where it is packed, or holds files that are."""
    try:
        if path.is_dir():
            return _directory(path)
        with open_regular(path) as file:
            kind = _packed(file)
            if kind is None:
                return path
            stat = os.fstat(file.fileno())
            key = (str(path.resolve()), stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if key not in _made:
                copy = free_place(path, path.stem if path.suffix.lower() in SUFFIXES else path.name)
                _unpack(path, file, kind, copy)
                _made[key] = copy
            note(_made[key], path)
            return _made[key]
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _packed(file: BinaryIO) -> str | None:
    """Return how a file is packed, by its first bytes; it stands at its beginning afterwards."""
    head = file.read(4)
    file.seek(0)
    return next((kind for first, kind in _PACKED.items() if head.startswith(first)), None)


def _unpack(path: Path, file: BinaryIO, kind: str, copy: Path) -> None:
    """Write what a packed file holds to a new file, piece by piece."""
    library = importlib.import_module("gzip" if kind == "gzip" else _ZSTD)
    reader = library.GzipFile(fileobj=file) if kind == "gzip" else library.ZstdFile(file)
    broken = _errors(kind, library)
    written = 0
    try:
        with copy.open("xb") as to:
            while True:
                try:
                    piece = reader.read(_PIECE)
                except broken as error:
                    raise DataError(
                        f"{path}: cannot be unpacked ({kind}): {error}; {written:,} bytes were unpacked before"
                    ) from error
                if not piece:
                    return
                written += to.write(piece)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


def _errors(kind: str, library: Any) -> tuple[type[Exception], ...]:
    own = (library.BadGzipFile, zlib.error) if kind == "gzip" else (library.ZstdError,)
    return (EOFError, ValueError, *own)


def _directory(path: Path) -> Path:
    """Return a directory itself, or where it holds packed files a copy with these unpacked and links to the others."""
    files = sorted(each for each in path.rglob("*") if each.is_file())
    if not any(each.suffix.lower() in SUFFIXES for each in files):
        return path
    stats = [each.stat() for each in files]
    key = (str(path.resolve()), *((str(f), s.st_size, s.st_mtime_ns) for f, s in zip(files, stats, strict=True)))
    if key in _made:
        return _made[key]
    copy = new_folder() / path.resolve().name
    taken = {each.relative_to(path) for each in files}
    for each in files:
        below = each.relative_to(path)
        with open_regular(each) as file:
            kind = _packed(file) if each.suffix.lower() in SUFFIXES else None
            plain = below if kind is None or below.stem == "." else below.with_name(below.stem)
            if kind is not None:
                plain = below if plain in taken else plain
                taken.add(plain)
            to = copy / plain
            to.parent.mkdir(parents=True, exist_ok=True)
            if kind is None:
                to.symlink_to(each.resolve())
            else:
                _unpack(each, file, kind, to)
                note(to, each)
    note(copy, path)
    _made[key] = copy
    return copy

"""Opens the files that a suite, a report directory or a command line names."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NOT_REGULAR = "not a regular file"
_LARGEST_HOLLOW = 256 * 1024 * 1024
_BLOCK, _MOST_TIMES = 512, 1000
ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
"""The module that packs and unpacks Zstandard."""
LARGEST_SIDE_FILE = 64 * 1024 * 1024
"""Bytes of a list of tasks, of labels, a prompt or a style sheet."""
_PIECE = 1 << 20


def files_below(path: Path, *, hidden: bool = True) -> list[Path]:
    """Return a file itself, or the regular files below a directory, sorted.

    A link to a file counts as the file, and no link to a directory is followed. Without ``hidden``
    files and directories whose names begin with a point are left out.
    """
    if path.is_file():
        return [path]
    files: list[Path] = []
    folders = [path]
    while folders:
        folder = folders.pop()
        with suppress(PermissionError, FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") and not hidden:
                    continue
                below = folder / entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(below)
                elif below.is_file() if entry.is_symlink() else entry.is_file():
                    files.append(below)
    return sorted(files)


def real_paths() -> Callable[[Path], Path]:
    """Return a function that finds the real path of a file, and asks for that of each folder
    once.
    """
    folder_of: Callable[[Path], Path] = cache(Path.resolve)

    def real_path(path: Path) -> Path:
        if path.is_symlink() or path.name == "..":
            return path.resolve()
        return folder_of(path.parent) / path.name

    return real_path


def _opener(path: str, flags: int) -> int:
    """Open a path for ``open()``; refuse whatever is no regular file or mostly holes."""
    try:
        opened = os.open(
            path, flags | _FLAGS, 0o666
        )  # a FIFO that nobody writes to is opened at once
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise OSError(errno.EINVAL, _NOT_REGULAR, path) from None
        raise
    status = os.fstat(opened)
    if stat.S_ISREG(status.st_mode) and not _is_hollow(status):
        return opened
    os.close(opened)
    if stat.S_ISREG(status.st_mode):
        what = f"{status.st_size:,} bytes of holes, of which the disk holds hardly any"
        raise OSError(errno.EINVAL, what, path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, _NOT_REGULAR, path)


def _is_hollow(status: os.stat_result) -> bool:
    """Return whether a file is made of holes, which take nothing to send and hours to read."""
    allocated = getattr(status, "st_blocks", status.st_size) * _BLOCK
    return status.st_size > _LARGEST_HOLLOW and allocated * _MOST_TIMES < status.st_size


def open_regular(path: Path, buffering: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Return a file opened for reading, as ``path.open("rb")`` does.

    Raises:
        OSError: It cannot be opened, or is no regular file: a FIFO, a device, a socket, a
            directory.
    """
    file_io = io.FileIO(path, opener=_opener)
    return io.BufferedReader(file_io, buffering)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def append_regular(path: Path) -> io.FileIO:
    """Return a file opened for writing at its end, made where there is none; no link is followed.

    Raises:
        OSError: It cannot be opened, is a link, or is no regular file.
    """
    return io.FileIO(path, "ab", opener=_append_opener)


def _append_opener(path: str, flags: int) -> int:
    return _opener(path, flags | getattr(os, "O_NOFOLLOW", 0))


def read_bounded(path: Path, most: int = LARGEST_SIDE_FILE) -> bytes:
    """Return the content of a file of at most ``most`` bytes.

    Raises:
        OSError: It cannot be opened, is no regular file, or is larger.
    """
    with open_regular(path) as file:
        # the size is asked first: a file with holes may have any
        if os.fstat(file.fileno()).st_size <= most:
            # in pieces: room for all that is asked for at once is taken before it is read
            pieces: list[bytes] = []
            size = 0
            while size <= most and (piece := file.read(_PIECE)):
                pieces.append(piece)
                size += len(piece)
            if size <= most:
                return b"".join(pieces)
    raise OSError(errno.EFBIG, f"larger than {most >> 20:,} MiB", str(path))


def read_text(path: Path, most: int = LARGEST_SIDE_FILE) -> str:
    """Return the text of a file of at most ``most`` bytes, without a byte-order mark.

    Raises:
        OSError: It cannot be opened, is no regular file, or is larger.
        UnicodeDecodeError: It is not UTF-8 text.
    """
    return read_bounded(path, most).decode("utf-8-sig")

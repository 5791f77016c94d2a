"""The one way in which files are opened that a suite, a run directory or a command line names."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NOT_REGULAR = "not a regular file"
LARGEST_SIDE_FILE = 64 * 1024 * 1024
"""Bytes of a list of tasks, of labels, a prompt or a style sheet."""


def _opener(path: str, flags: int) -> int:
    try:
        opened = os.open(path, flags | _FLAGS)  # a FIFO that nobody writes to is opened at once
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise OSError(errno.EINVAL, _NOT_REGULAR, path) from None
        raise
    mode = os.fstat(opened).st_mode
    if stat.S_ISREG(mode):
        return opened
    os.close(opened)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, _NOT_REGULAR, path)


def open_regular(path: Path, buffering: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Return a file opened for reading, as ``path.open("rb")`` does.

    Raises:
        OSError: It cannot be opened, or is no regular file: a FIFO, a device, a socket, a
            directory.
    """
    return io.BufferedReader(io.FileIO(path, opener=_opener), buffering)


def read_bounded(path: Path, most: int = LARGEST_SIDE_FILE) -> bytes:
    """Return the content of a file of at most ``most`` bytes.

    Raises:
        OSError: It cannot be opened, is no regular file, or is larger.
    """
    with open_regular(path) as file:
        # the size is asked first: a file with holes may have any
        if os.fstat(file.fileno()).st_size <= most:
            content = file.read(most + 1) or b""
            if len(content) <= most:
                return content
    raise OSError(errno.EFBIG, f"larger than {most >> 20:,} MiB", str(path))


def read_text(path: Path, most: int = LARGEST_SIDE_FILE) -> str:
    """Return the text of a file of at most ``most`` bytes, without a byte-order mark.

    Raises:
        OSError: It cannot be opened, is no regular file, or is larger.
        UnicodeDecodeError: It is not UTF-8 text.
    """
    return read_bounded(path, most).decode("utf-8-sig")

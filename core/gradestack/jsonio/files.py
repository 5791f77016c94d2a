"""Files as they lie in a directory of somebody else's: what is no regular file is refused, and never waited for."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NOT_REGULAR = "not a regular file"


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
        OSError: It cannot be opened, or is no regular file: a FIFO, a device, a socket, a directory.
    """
    return io.BufferedReader(io.FileIO(path, opener=_opener), buffering)


def read_regular(path: Path) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: As of :func:`open_regular`.
    """
    with open_regular(path) as file:
        return file.read()

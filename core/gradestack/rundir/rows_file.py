"""results.jsonl while it grows."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from gradestack.errors import storage_failed


class RowsFile:
    """results.jsonl while it grows, shard by shard.

    Attributes:
        size: Bytes written so far.
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self.path, self.size = path, size
        self._to = self._open()
        os.ftruncate(self._to, size)
        os.lseek(self._to, 0, os.SEEK_END)

    def append(self, part: Path) -> int:
        """Move the content of a file to the end and return its size."""
        if not self.size and os.name == "posix":  # elsewhere an open file cannot be replaced
            part.replace(self.path)
            os.close(self._to)
            self._to = self._open()
            self.size = os.lseek(self._to, 0, os.SEEK_END)
            return self.size
        size = self.copy(part)
        part.unlink()
        return size

    def copy(self, part: Path) -> int:
        """Add the content of a file and return its size."""
        with part.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            try:
                self._copy(file, size)
            except OSError as error:
                error.filename = error.filename or str(self.path)
                raise
        self.size += size
        return size

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)

    def _copy(self, file: FileIO, left: int) -> None:
        try:
            while left and (moved := os.copy_file_range(file.fileno(), self._to, left)):
                left -= moved
        except (AttributeError, OSError) as error:  # not on every system, nor between all file systems
            if storage_failed(error):
                raise
        while left and (chunk := file.read(1 << 20)):
            left -= len(chunk)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(self._to, rest) :]

    def trim(self) -> None:
        """Cut off what was not added to its end."""
        os.ftruncate(self._to, self.size)
        os.lseek(self._to, self.size, os.SEEK_SET)

    def synchronise(self) -> None:
        """Have everything added so far on the disk before returning."""
        os.fsync(self._to)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._to)

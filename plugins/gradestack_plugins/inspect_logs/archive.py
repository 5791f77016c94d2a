"""Zip archives, whose members are stored, deflated, or compressed with Zstandard."""

from __future__ import annotations

import importlib
import struct
import sys
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gradestack import DataError, reading
from gradestack.jsonio import JsonProblem, TooLong, exceeds_limit, loads, open_regular

_zip: Final = importlib.import_module(
    "zipfile" if sys.version_info >= (3, 14) else "backports.zstd.zipfile"
)
_zstd: Final = importlib.import_module(
    "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
)
_METHODS: Final = (_zip.ZIP_STORED, _zip.ZIP_DEFLATED, _zip.ZIP_ZSTANDARD)
"""Methods that unpack no more than is asked for."""
_DAMAGED: Final = (
    _zip.BadZipFile,
    _zstd.ZstdError,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    OSError,
)


class Archive:
    """An archive opened for reading. Use it as a context manager.

    Attributes:
        members: Its members by name, in the order of its directory.

    Raises:
        DataError: It cannot be read, or has no directory: it was cut short.
    """

    def __init__(self, path: Path, shown: str) -> None:
        """Open an ``.eval`` archive, a zip file, and list its members by name."""
        with reading(shown):
            self._file = open_regular(path)
        try:
            self._archive = _zip.ZipFile(self._file)
        except (*_DAMAGED, ValueError) as error:
            self._file.close()
            raise DataError(f"{shown}: the archive is damaged or cut short: {error}") from error
        members = self._archive.infolist()
        self.members = {member.filename: member for member in members}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._archive.close()  # while its file is open: no destructor has anything left to do
        self._file.close()

    def json(self, name: str) -> Any:
        """Return the content of a member.

        Raises:
            ValueError: It is missing, damaged, above ``limits.record_bytes``, or no JSON; the
                message names it.
        """
        member = self.members.get(name)
        if member is None:
            raise ValueError(f"{name}: missing in the archive")
        if member.compress_type not in _METHODS:
            raise ValueError(
                f"{name}: is compressed by method {member.compress_type}, which is not supported"
            )
        size = member.file_size
        try:
            if exceeds_limit(size):
                return loads(TooLong(b"", size))
            with self._archive.open(member) as opened:
                return loads(opened.read(size + 1))  # no more than it says that it holds
        except (*_DAMAGED, JsonProblem, RuntimeError) as error:  # the last for an encrypted one
            raise ValueError(f"{name}: {error}") from error

"""Zip archives whose members are stored, deflated or, as inspect_ai writes them, compressed with Zstandard."""

from __future__ import annotations

import importlib
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gradestack import DataError, reading
from gradestack.jsonio import JsonProblem, TooLong, exceeds_limit, loads, open_regular

_ZSTD: Final = 93
_LIBRARY: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_LOCAL_HEADER: Final = 30
_ENCRYPTED: Final = 1


class Archive:
    """An archive opened for reading. Use it as a context manager.

    Attributes:
        members: Its members by name, in the order of its directory.

    Raises:
        DataError: It cannot be read, or has no directory: it was cut short.
    """

    def __init__(self, path: Path, shown: str) -> None:
        with reading(shown):
            self._file = open_regular(path)
        try:
            with zipfile.ZipFile(self._file) as archive:
                self.members = {each.filename: each for each in archive.infolist()}
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
            self._file.close()
            raise DataError(f"{shown}: the archive is damaged or cut short: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def json(self, name: str) -> Any:
        """Return what a member holds.

        Raises:
            ValueError: It is missing, damaged, above ``limits.record_bytes``, or no JSON; the message names it.
        """
        member = self.members.get(name)
        if member is None:
            raise ValueError(f"{name}: missing in the archive")
        try:
            return loads(self._read(member))
        except (JsonProblem, EOFError, struct.error, zlib.error, zipfile.BadZipFile, OSError) as error:
            raise ValueError(f"{name}: {error}") from error

    def _read(self, member: zipfile.ZipInfo) -> bytes:
        size = member.file_size
        if exceeds_limit(size):
            return TooLong(b"", size)
        self._file.seek(member.header_offset)
        header = self._file.read(_LOCAL_HEADER)
        if member.flag_bits & _ENCRYPTED:
            raise zipfile.BadZipFile("is encrypted")
        name, extra = struct.unpack("<HH", header[26:])
        self._file.seek(name + extra, 1)
        packed = self._file.read(member.compress_size)
        data = _unpacked(packed, member.compress_type, size + 1)  # no more than it says that it holds
        if len(data) != size or zlib.crc32(data) != member.CRC:
            raise zipfile.BadZipFile("is damaged: its size or checksum is another one")
        return data


def _unpacked(packed: bytes, method: int, most: int) -> bytes:
    if method == zipfile.ZIP_STORED:
        return packed
    if method == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
    if method != _ZSTD:
        raise zipfile.BadZipFile(f"is compressed by method {method}, which is not supported")
    library = importlib.import_module(_LIBRARY)
    found, rest = b"", packed
    while rest and len(found) < most:  # of several frames
        unpacking = library.ZstdDecompressor()
        try:
            found += unpacking.decompress(rest, most - len(found))
        except library.ZstdError as error:
            raise zipfile.BadZipFile(f"is damaged: {error}") from error
        rest = unpacking.unused_data if unpacking.eof else b""
    return found

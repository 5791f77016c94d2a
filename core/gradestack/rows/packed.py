"""Rows on disk: results.jsonl, or results.jsonl.zst, which holds the same bytes in about a tenth.

A packed file is a sequence of Zstandard frames, each of 1 MiB of rows or what was left of a shard.
In front of each frame stands a skippable one, with the numbers of bytes that it takes and gives. So
any tool that knows Zstandard unpacks the file, and any row of it is found by unpacking one frame.
"""

from __future__ import annotations

import importlib
import io
import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from typing_extensions import override

from gradestack.errors import DataError
from gradestack.regular_files import ZSTD, open_regular

ROWS: Final = "results.jsonl"
PACKED_ROWS: Final = f"{ROWS}.zst"
_FRAME: Final = 1 << 20
"""Bytes of rows in a frame: 2 ms to unpack."""
_HEAD: Final = struct.Struct("<IIII")
"""The head of a skippable frame and its size, bytes of the frame behind it, bytes of its rows."""
_SKIPPED: Final = (0x184D2A50, 8)
_BUFFER: Final = 1 << 18


def rows_file(folder: Path) -> Path:
    """Return the file with the rows of a report directory; results.jsonl where there is none."""
    plain, packed = folder / ROWS, folder / PACKED_ROWS
    return packed if packed.exists() and not plain.exists() else plain


def create_rows(path: Path) -> IO[bytes] | PackedWriter:
    """Return a new file to write rows into, packed where its name says so."""
    return PackedWriter(path) if path.name.endswith(".zst") else path.open("wb", _BUFFER)


def open_rows(path: Path) -> io.BufferedReader:
    """Return a file of rows opened for reading and seeking, as if it were not packed.

    Raises:
        OSError: It cannot be opened.
        DataError: It is packed, and was not packed by gradestack, or is damaged.
    """
    if path.name.endswith(".zst"):
        return io.BufferedReader(_PackedReader(path), _BUFFER)
    return open_regular(path, _BUFFER)


class PackedWriter:
    """Writes rows into a file of frames."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._file = path.open("wb", _BUFFER)
        self._waiting = bytearray()
        self._library = importlib.import_module(ZSTD)

    def writelines(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Add rows, which may come in pieces."""
        for piece in pieces:
            self._waiting += piece
            while len(self._waiting) >= _FRAME:
                self._write_frame(self._waiting[:_FRAME])
                del self._waiting[:_FRAME]

    def _write_frame(self, rows: bytearray) -> None:
        options = {self._library.CompressionParameter.checksum_flag: 1}
        packed = self._library.compress(rows, options=options)
        self._file.write(_HEAD.pack(*_SKIPPED, len(packed), len(rows)))
        self._file.write(packed)

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        with self._file:
            if self._waiting:
                self._write_frame(self._waiting)
                self._waiting = bytearray()


class _PackedReader(io.RawIOBase):
    """Reads the rows of a file of frames, one frame in memory at a time."""

    def __init__(self, path: Path) -> None:
        """Open a compressed file of rows and index its frames."""
        self._path, self._library = path, importlib.import_module(ZSTD)
        self._file = open_regular(path)
        self._position = self._size = 0
        self._starts: list[int] = []  # first byte of the rows in each frame
        self._frames: list[tuple[int, int, int]] = []  # position, bytes and bytes of rows
        self._number, self._rows = -1, b""  # of the frame that was unpacked last
        try:
            for frame in self._heads():
                self._starts.append(self._size)
                self._frames.append(frame)
                self._size += frame[2]
        except BaseException:
            self._file.close()
            raise

    def _heads(self) -> Iterator[tuple[int, int, int]]:
        """Yield position, bytes and bytes of rows of each frame."""
        while head := self._file.read(_HEAD.size):
            if len(head) < _HEAD.size:
                self._refuse("it ends within a frame")
            *skipped, packed, size = _HEAD.unpack(head)
            if tuple(skipped) != _SKIPPED or not 0 < size <= _FRAME or packed > 2 * _FRAME:
                self._refuse("gradestack did not pack it")
            yield self._file.tell(), packed, size
            self._file.seek(packed, os.SEEK_CUR)

    def _refuse(self, problem: str) -> NoReturn:
        advice = f"unpack it with `zstd -d {self._path.name}`, or grade the files again"
        raise DataError(f"{self._path}: cannot be unpacked: {problem}", advice)

    def _unpack(self, number: int) -> bytes:
        """Return the rows of a frame."""
        if number != self._number:
            position, packed, size = self._frames[number]
            self._file.seek(position)
            unpacker = self._library.ZstdDecompressor()
            try:
                self._rows = unpacker.decompress(self._file.read(packed), size + 1)
            except self._library.ZstdError as error:
                self._refuse(str(error))
            if not unpacker.eof or len(self._rows) != size:
                self._refuse("a frame is damaged")
            self._number = number
        return self._rows

    @override
    def readinto(self, buffer: Any) -> int:
        if self._position >= self._size:
            return 0
        number = bisect_right(self._starts, self._position) - 1
        begin = self._position - self._starts[number]
        piece = self._unpack(number)[begin : begin + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}
        self._position = max(0, base[whence] + offset)
        return self._position

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def close(self) -> None:
        self._file.close()
        super().close()

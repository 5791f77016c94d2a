"""The files of a run's inputs: as they are when it begins, and which have grown since."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from gradestack.api import Inputs, Shard
from gradestack.errors import DataError
from gradestack.grading.reading import shards_in
from gradestack.regular_files import files_below, open_regular

_END_BYTES = 64 * 1024
_EDITED = "was edited while it was read"


class FileState(msgspec.Struct, frozen=True):
    """The state of a file, which another of its name, or the same one edited, does not have."""

    identity: tuple[int, int]
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """Return the state of a file by its status."""
        return cls((status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def read_ends(path: Path, start: int = 0, end: int | None = None) -> tuple[bytes, bytes]:
    """Return the first and the last 64 KiB of a range of a file; they overlap in a short one."""
    with open_regular(path) as file:
        if end is None:
            end = os.fstat(file.fileno()).st_size
        size = min(end - start, _END_BYTES)
        file.seek(start)
        first = file.read(size)
        file.seek(max(start, end - _END_BYTES))
        return first, file.read(size)


def _digest_of_ends(path: Path, end: int | None = None) -> bytes:
    """Return a digest of the ends of a file: of many files they are too much to hold."""
    digest = blake2b(digest_size=16)
    for part in read_ends(path, 0, end):
        digest.update(part)
    return digest.digest()


class InputFiles:
    """The files of a run's inputs as they are when it begins, and which have grown since.

    Attributes:
        states: File -> its state at the beginning.
        grown: File -> the sentence that says how much was appended.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = {
            path: input_ for input_ in inputs.files for path in files_below(input_.path)
        }
        self.states = {path: FileState.of(path.stat()) for path in self._inputs}
        self.grown: dict[Path, str] = {}
        files = [input_.path for input_ in inputs.files if input_.path in self.states]
        self._ends = {path: _digest_of_ends(path) for path in files}

    def check(self, shards: Sequence[Shard], paths: Iterable[Path] | None = None) -> None:
        """Refuse inputs of which a file has changed since.

        Args:
            shards: The ranges that are read of them.
            paths: The files to look at; default: all.

        Raises:
            DataError: A file was edited, replaced or cut short.
        """
        appended: list[Path] = []
        for path in self.states if paths is None else paths:
            before = self.states.get(path)
            try:
                now = FileState.of(path.stat())
            except FileNotFoundError:  # no other one: who has not read it all will say so
                continue
            if before is not None and now != before:
                self._require_grown(path, before, now)
                appended.append(path)
        if appended:
            self._require_appended(appended, shards)

    def _require_grown(self, path: Path, before: FileState, now: FileState) -> None:
        """Refuse a changed file that has not grown; note by how much one has."""
        if now.identity != before.identity:
            raise self._changed(path, "was replaced by another file while it was read")
        if now.size < before.size:
            sizes = f"it held {before.size} bytes, now {now.size}"
            raise self._changed(path, f"was cut short while it was read: {sizes}")
        if now.size == before.size:
            raise self._changed(path, _EDITED)
        added = f"{now.size - before.size:,} bytes were appended while it was read"
        self.grown[path] = f"{self._shown(path)}: {added} and are not graded"

    def _shown(self, path: Path) -> str:
        input_ = self._inputs[path]
        if path == input_.path:
            return input_.shown
        return f"{input_.shown}/{path.relative_to(input_.path).as_posix()}"

    def _changed(self, path: Path, problem: str) -> DataError:
        advice = "grade it again when nothing writes to it"
        return DataError(f"{self._shown(path)}: {problem}; {advice}")

    def _require_appended(self, paths: Iterable[Path], shards: Iterable[Shard]) -> None:
        """Refuse grown files unless they only grew behind the ranges that are read."""
        ends: dict[Path, list[int | None]] = {}
        for bundle in shards:
            for shard in shards_in(bundle):
                ends.setdefault(shard.input.path, []).append(shard.end)
        for path in paths:
            size, read = self.states[path].size, ends.get(path, ())
            is_before = bool(read) and all(end is not None and end <= size for end in read)
            if not is_before or _digest_of_ends(path, size) != self._ends.get(path):
                del self.grown[path]
                raise self._changed(path, _EDITED)

"""Files that are read while somebody may write to them: what is read of one that changes is of two files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gradestack.api import Inputs, Shard
from gradestack.errors import DataError

_SAMPLE = 64 * 1024


class FileState(NamedTuple):
    """What tells a file from another of its name, and from itself before it was edited."""

    identity: tuple[int, int]
    size: int
    modified: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """Return what the system says of a file."""
        return cls((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def files_below(path: Path) -> Iterator[Path]:
    """Yield a file itself, or the files below a directory, sorted."""
    yield from [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())


def ends_of(path: Path, start: int = 0, end: int | None = None) -> tuple[bytes, bytes]:
    """Return the first and the last 64 KiB of a range of a file, of a short one all of it twice."""
    with path.open("rb") as file:
        size = (os.fstat(file.fileno()).st_size if end is None else end) - start
        file.seek(start)
        first = file.read(min(size, _SAMPLE))
        file.seek(start + max(0, size - _SAMPLE))
        return first, file.read(min(size, _SAMPLE))


class InputFiles:
    """The files of a run's inputs as they are when it begins, and which of them have grown since."""

    def __init__(self, inputs: Inputs) -> None:
        given = [*inputs.data, *([inputs.dataset] if inputs.dataset is not None else [])]
        self._inputs = {path: each for each in given for path in files_below(each.path)}
        self.states = {path: FileState.of(path.stat()) for path in self._inputs}
        self.grown: dict[Path, str] = {}
        self._ends = {each.path: ends_of(each.path) for each in given if each.path in self.states}

    def check(self, shards: Sequence[Shard], only: Path | None = None) -> None:
        """Refuse inputs of which a file has changed since; ``shards`` are what is read of them, ``only`` one file."""
        for path, before in self.states.items():
            if only not in (None, path):
                continue
            given = self._inputs[path]
            shown = given.shown if path == given.path else f"{given.shown}/{path.relative_to(given.path).as_posix()}"
            try:
                now = FileState.of(path.stat())
            except FileNotFoundError:  # no other one: who has not read it all will say so
                continue
            if now == before:
                continue
            what = "was edited while it was read"
            if now.identity != before.identity:
                what = "was replaced by another file while it was read"
            elif now.size < before.size:
                what = f"was cut short while it was read: it held {before.size} bytes, now {now.size}"
            elif now.size > before.size and self._appended(path, shards):
                many = f"{now.size - before.size:,} bytes were appended"
                self.grown[path] = f"{shown}: {many} while it was read and are not graded"
                continue
            raise DataError(f"{shown}: {what}; grade it again when nothing writes to it")

    def _appended(self, path: Path, shards: Iterable[Shard]) -> bool:
        size = self.states[path].size
        ended = [shard.end is not None and shard.end <= size for shard in shards if shard.input.path == path]
        return bool(ended) and all(ended) and ends_of(path, 0, size) == self._ends.get(path)

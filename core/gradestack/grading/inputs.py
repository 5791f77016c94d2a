"""Files that are read while somebody may write to them: what is read of one that changes is of two files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gradestack.api import Input, Inputs, Shard
from gradestack.errors import DataError

_SAMPLE = 64 * 1024
"""Bytes at either end of a file by which its beginning is known again when it has grown."""


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


def _ends(path: Path, size: int) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        first = file.read(min(size, _SAMPLE))
        file.seek(max(0, size - _SAMPLE))
        return first, file.read(min(size, _SAMPLE))


class InputFiles:
    """The files of a run's inputs as they are when it begins.

    Attributes:
        states: File -> its state then.
        grown: What was appended to files whose shards end where the files ended then: nobody has read it.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._given = [*inputs.data, *([inputs.dataset] if inputs.dataset is not None else [])]
        self.states: dict[Path, FileState] = {}
        self.grown: dict[Path, str] = {}
        self._ends: dict[Path, tuple[bytes, bytes]] = {}
        for each in self._given:
            for path in files_below(each.path):
                try:
                    self.states[path] = FileState.of(path.stat())
                    if path == each.path:
                        self._ends[path] = _ends(path, self.states[path].size)
                except OSError:  # who reads it will say so
                    continue

    def check_shard(self, shard: Shard) -> None:
        """Refuse a shard of a file that has changed; directories have their turn when everything is read.

        Raises:
            DataError: It has.
        """
        if shard.input.path in self.states:
            self._check(shard.input, shard.input.path, [shard])

    def check(self, shards: Sequence[Shard]) -> None:
        """Refuse inputs of which a file has changed since the run began.

        Args:
            shards: All that is read of them.

        Raises:
            DataError: One has.
        """
        for each in self._given:
            own = [shard for shard in shards if shard.input == each]
            for path in self.states if each.path.is_dir() else [each.path]:
                if path in self.states and path.is_relative_to(each.path):
                    self._check(each, path, own)

    def _check(self, given: Input, path: Path, shards: Iterable[Shard]) -> None:
        before = self.states[path]
        shown = given.shown if path == given.path else f"{given.shown}/{path.relative_to(given.path).as_posix()}"
        try:
            now = FileState.of(path.stat())
            if now == before:
                return
            if now.identity != before.identity:
                what = "was replaced by another file while it was read"
            elif now.size < before.size:
                what = f"was cut short while it was read: it held {before.size} bytes, now {now.size}"
            elif now.size > before.size and self._appended(path, shards):
                more = f"{now.size - before.size:,} bytes were appended while it was read"
                self.grown[path] = f"{shown}: {more} and are not graded"
                return
            else:
                what = "was edited while it was read"
        except FileNotFoundError:  # what was read is that file's; who has not read it all will say so
            return
        except OSError as error:
            what = f"cannot be read any more: {error.strerror or error}"
        raise DataError(f"{shown}: {what}; grade it again when nothing writes to it")

    def _appended(self, path: Path, shards: Iterable[Shard]) -> bool:
        """Return whether a file that has grown is as it was up to where all that is read of it ends."""
        ended = [shard.end is not None for shard in shards]
        return bool(ended) and all(ended) and _ends(path, self.states[path].size) == self._ends.get(path)

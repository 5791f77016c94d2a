"""Run directories: written under a temporary name beside their place, moved there whole."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from gradestack.errors import ConfigError, DataError
from gradestack.jsontext import dumps

GENERATOR = "gradestack"
HEADER, ROWS, SUMMARY = "header.json", "results.jsonl", "summary.json"
JOURNAL = "journal.jsonl"
PATIENCE = 5.0
"""Seconds to wait for a directory another process has: workers of a killed run end within a second after it."""
_UNFINISHED, _PARTS, _OLD = ".unfinished", "parts-", "old"


def is_run(path: Path) -> bool:
    """Return whether a directory is a gradestack run directory."""
    try:
        header = json.loads((path / HEADER).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("generator") == GENERATOR


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:100] or "run"


def default_place(name: str, now: datetime) -> Path:
    """Return ``gradestack-runs/NAME/UTC-TIME``, numbered when there is one of that time already."""
    second = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    place, number = Path("gradestack-runs") / _safe(name) / second, 1
    while place.exists() or unfinished(place).exists():  # two runs within a second: the first one stays
        number += 1
        place = place.with_name(f"{second}-{number}")
    return place


def check_place(path: Path) -> None:
    """Refuse a place that holds anything but nothing or an earlier run.

    Raises:
        ConfigError: A file, a directory that is not ours, or one that cannot be written.
    """
    try:
        _check_place(path)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror or error}"
        raise ConfigError(msg) from error


def _check_place(path: Path) -> None:
    if Path.cwd().is_relative_to(path.absolute()) or Path.cwd().is_relative_to(path.resolve()):
        msg = f"{path}: holds the working directory, and a run directory is replaced whole; name another with -o"
        raise ConfigError(msg)
    if path.is_dir():
        if any(path.iterdir()) and not is_run(path):
            msg = f"{path}: the directory is not empty and not a gradestack run; name another with -o"
            raise ConfigError(msg)
    elif path.exists() or path.is_symlink():
        msg = f"{path}: exists and is not a directory; name another place with -o"
        raise ConfigError(msg)
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        msg = f"{path}: {parent} is not a directory that can be written to; name another place with -o"
        raise ConfigError(msg)


def keep_inputs(output: Path, paths: Iterable[Path]) -> None:
    """Refuse an output that holds a file the run reads, or is one: a rerun replaces the directory whole.

    Raises:
        ConfigError: Naming the file that would be lost.
    """
    place = output.resolve()
    for path in paths:
        if path.resolve().is_relative_to(place):
            msg = f"{output}: holds {path}, which this run reads and would replace; name another place with -o"
            raise ConfigError(msg)


def storage_failed(error: BaseException) -> bool:
    """Return whether an error is the disk's: full, over its quota, broken or read-only."""
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
    return isinstance(error, OSError) and error.errno in codes


def unfinished(place: Path) -> Path:
    """Return the hidden directory in which the run of a place is written."""
    return place.absolute().parent / f".{place.name}{_UNFINISHED}"


def can_continue(place: Path) -> bool:
    """Return whether an unfinished run of a place is on record."""
    return (unfinished(place) / JOURNAL).is_file()


def newest_unfinished(name: str, patience: float) -> Path | None:
    """Return the default place of a suite whose run was begun last and is not finished; None when there is none.

    Args:
        name: The suite's name.
        patience: Seconds to wait for one that another process has, say what is left of a killed run.
    """
    found = (Path("gradestack-runs") / _safe(name)).glob(f".*{_UNFINISHED}")
    places = [path.with_name(path.name[1 : -len(_UNFINISHED)]) for path in found if (path / JOURNAL).is_file()]
    for place in sorted(places, key=lambda place: _age(place.name), reverse=True):
        descriptor = lock(unfinished(place), patience)
        if descriptor is not None:
            os.close(descriptor)
            return place
    return None


def _age(name: str) -> tuple[str, int]:
    time, _, number = name.partition("-")
    return time, int(number) if number.isdecimal() else 1


class Staging:
    """A run directory in the making, in a hidden directory beside its place that no other run may use meanwhile.

    ``path`` becomes the run directory; beside it there are the pieces not yet joined, the journal a later ``--resume``
    reads, and while an earlier run is replaced, that run.

    Attributes:
        path: Where files are written until :meth:`commit`.
        parts: Directory for pieces, a new one for every attempt: workers of an attempt that was killed may still write.
        replaced: True when what an unfinished run had left was removed.
    """

    def __init__(self, place: Path | None, *, resume: bool = False) -> None:
        self.place, self.replaced = place, False
        self._lock: int | None = None
        try:
            if place is None:
                self.base = self.path = Path(tempfile.mkdtemp(prefix="gradestack-"))
            else:
                check_place(place)
                if place.is_symlink():  # to a directory: what it leads to is replaced, not the link
                    self.place = place = place.resolve()
                place.absolute().parent.mkdir(parents=True, exist_ok=True)
                self.base = unfinished(place)
                self.path = self.base / "run"
                try:
                    self._enter(resume=resume)
                except BaseException:
                    self.leave()
                    raise
            self.parts = Path(tempfile.mkdtemp(prefix=_PARTS, dir=self.base))
        except OSError as error:
            msg = f"{place or tempfile.gettempdir()}: cannot be written: {error.strerror or error}"
            raise (DataError if storage_failed(error) else ConfigError)(msg) from error

    def _enter(self, *, resume: bool) -> None:
        """Take the hidden directory for this run alone; keep in it what a resumed run needs."""
        self.base.mkdir(exist_ok=True)
        self._lock = lock(self.base)
        if self._lock is None:
            msg = f"{self.place}: another run is writing it ({self.base})"
            raise ConfigError(msg)
        old = self.base / _OLD
        if old.is_dir() and self.place is not None and not self.place.exists():  # killed while it was being replaced
            old.rename(self.place)
        kept = (JOURNAL, _PARTS, "run") if resume and (self.base / JOURNAL).is_file() else ()
        for path in self.base.iterdir():
            if not path.name.startswith((JOURNAL, _PARTS, "run", _OLD)):
                msg = f"{self.base}: holds {path.name}, which is not ours; move the directory away"
                raise ConfigError(msg)
        for path in list(self.base.iterdir()):
            if not kept or not path.name.startswith(kept):
                self.replaced |= path.name == JOURNAL
                _remove(path)
        self.path.mkdir(exist_ok=True)
        for path in list(self.path.iterdir()):
            if path.name != ROWS:
                _remove(path)

    @property
    def journal(self) -> Path:
        """Where finished ranges are recorded."""
        return self.base / JOURNAL

    def write_json(self, name: str, value: Any) -> None:
        """Write one of our JSON files: sorted keys, indent 2, one newline at the end."""
        (self.path / name).write_text(dumps(value, indent=2) + "\n", encoding="utf-8", newline="\n")

    def commit(self, *, durable: bool = False, keep: bool = False) -> Path:
        """Move the directory into its place, replacing an earlier run whole, and return the place.

        Args:
            durable: Have everything on the disk before.
            keep: Keep the journal and the pieces, so that the rest can be graded later.
        """
        if self.place is None:
            shutil.rmtree(self.parts, ignore_errors=True)
            return self.path
        place, old = self.place, self.base / _OLD
        if durable:
            for path in [*self.path.rglob("*"), self.path]:
                synchronise(path)
        if place.exists():
            place.rename(old)
        self.path.rename(place)
        if durable:
            synchronise(place.absolute().parent)
        if keep:
            shutil.rmtree(old, ignore_errors=True)
            self.leave()
        else:
            self.discard()
        self.path = place
        return place

    def discard(self) -> None:
        """Remove everything that is not in its place."""
        shutil.rmtree(self.base, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Let other runs have the hidden directory, as it is."""
        with contextlib.suppress(OSError, AttributeError):  # an attempt that was refused leaves nothing behind
            self.parts.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def files_below(path: Path) -> Iterator[Path]:
    """Yield a file itself, or the files below a directory, sorted."""
    yield from [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def synchronise(path: Path) -> None:
    """Have a file's content, or a directory's entries, on the disk before returning."""
    if os.name != "posix" and path.is_dir():
        return  # only files can be opened there
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(directory: Path, patience: float = PATIENCE) -> int | None:
    """Return a descriptor that keeps a directory for this process, or None when another one has it.

    The system lets go of it when the process ends, however it ends. Its workers end within a second after it.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return os.open(os.devnull, os.O_RDONLY)
    deadline = time.monotonic() + patience
    while True:
        directory.mkdir(exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if directory.exists() and os.path.samestat(directory.stat(), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            pass
        except OSError:  # a file system without locks
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.05)


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


def link_latest(place: Path) -> None:
    """Point ``latest`` beside a default run directory at it; where links are not possible, do nothing."""
    link = place.parent / "latest"
    try:
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(place.name)
    except OSError:
        return

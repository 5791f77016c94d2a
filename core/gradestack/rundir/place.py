"""Places of runs: where a run may be written, the directory it is written in meanwhile, and who
holds it.

A name in a directory that anybody may have filled may be a link to any file of the user's, so
nothing in it is opened for writing. Files are written into a new directory, whose name nobody knows
beforehand, and renamed: that replaces a link, a pipe or a device itself, never what it leads to.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from gradestack.errors import ConfigError, writing
from gradestack.jsonio.values import dumps, loads
from gradestack.regular_files import real_paths
from gradestack.report import HEADER, header_of, is_run
from gradestack.rows.packed import PACKED_ROWS, ROWS

JOURNAL = "journal.jsonl"
PATIENCE = 5.0
"""Seconds to wait for a directory another process has.

Workers of a killed run end within a second after it.
"""
_OF_DESKTOPS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""What file managers leave in a directory that somebody looks at."""
UNFINISHED, _NEW, _PARTS, _OLD = ".unfinished", ".gradestack-", "parts-", "old"


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:100] or "run"


def default_place(name: str, now: datetime) -> Path:
    """Return ``gradestack-runs/NAME/UTC-TIME``, numbered when there is one of that time already."""
    second = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    place, number = Path("gradestack-runs") / _safe(name) / second, 1
    while (
        place.exists() or unfinished(place).exists()
    ):  # two runs within a second: the first one stays
        number += 1
        place = place.with_name(f"{second}-{number}")
    return place


def check_place(path: Path) -> None:
    """Refuse a place that holds anything but nothing or an earlier run."""
    with writing(path):
        if Path.cwd().is_relative_to(path.absolute()) or Path.cwd().is_relative_to(
            os.path.realpath(path)
        ):
            why = "holds the working directory, and a run directory is replaced whole"
            raise ConfigError(f"{path}: {why}; name another with -o")
        if path.is_dir() and any(path.iterdir()) and not is_run(path):
            raise ConfigError(
                f"{path}: the directory is not empty and not a gradestack run; name another with -o"
            )
        if foreign := _foreign(path):
            raise ConfigError(
                f"{path}: holds {min(foreign)}, which gradestack did not write; name another "
                "with -o"
            )
        check_directory(path, path.absolute().parent)


def _files(path: Path) -> set[str]:
    found = (each for each in path.rglob("*") if not each.is_symlink() and not each.is_dir())
    names = (each.relative_to(path).as_posix() for each in found)
    return {
        os.fsencode(each).decode("utf-8", "backslashreplace")
        for each in names
        if not each.startswith(_NEW)
    }


def _listed(path: Path) -> set[str] | None:
    found = header_of(path).get("files")
    return set(map(str, found)) if isinstance(found, list) else None


def _foreign(path: Path) -> set[str]:
    if (own := _listed(path)) is None:
        return set()
    for run in [PurePath(each).parent for each in own if each.endswith(f"/{HEADER}")]:
        own |= {f"{run.as_posix()}/{each}" for each in _listed(path / run) or ()}
    return {each for each in _files(path) - own if PurePath(each).name not in _OF_DESKTOPS}


def _list_files(place: Path, new: Path) -> None:
    head = header_of(place)
    head["files"] = sorted({*(_listed(place) or ()), *_files(new), HEADER})
    (new / HEADER).write_text(dumps(head, indent=2) + "\n", encoding="utf-8", newline="\n")


def check_directory(path: Path, parent: Path | None = None) -> None:
    """Refuse what is no directory, and one that cannot be made or written to."""
    if not path.is_dir() and (path.exists() or path.is_symlink()):
        raise ConfigError(f"{path}: exists and is not a directory; name another place with -o")
    parent = parent or path.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ConfigError(
            f"{path}: {parent} is not a directory that can be written to; name another place "
            "with -o"
        )


def keep_inputs(output: Path, paths: Iterable[Path]) -> None:
    """Refuse an output that holds a file the run reads, or is one.

    A rerun replaces the directory whole.
    """
    place, real_path = output.resolve(), real_paths()
    for path in paths:
        if real_path(path).is_relative_to(place):
            why = "which this run reads and would replace; name another place with -o"
            raise ConfigError(f"{output}: holds {path}, {why}")


def unfinished(place: Path) -> Path:
    """Return the hidden directory in which the run of a place is written."""
    return place.absolute().parent / f".{place.name}{UNFINISHED}"


def can_continue(place: Path) -> bool:
    """Return whether an unfinished run of a place is on record."""
    return (unfinished(place) / JOURNAL).is_file()


def newest_unfinished(name: str, patience: float) -> Path | None:
    """Return the default place of a suite whose run was begun last and is not finished.

    None when there is none.
    """
    found = (Path("gradestack-runs") / _safe(name)).glob(f".*{UNFINISHED}")
    places = [
        path.with_name(path.name[1 : -len(UNFINISHED)])
        for path in found
        if (path / JOURNAL).is_file()
    ]
    for place in sorted(
        places, key=lambda place: [*map(int, re.findall(r"\d+", place.name))], reverse=True
    ):
        descriptor = lock(unfinished(place), patience)
        if descriptor is not None:
            os.close(descriptor)
            return place
    return None


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
    """Return a descriptor that keeps a directory for this process until it ends.

    None when another one has it.
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


@contextmanager
def reserve(place: Path) -> Iterator[None]:
    """Keep a directory, into which pages are written, for this process alone.

    A run that is being written into it, and another writer of pages, are waited for a little.

    Raises:
        ConfigError: Another process has the directory.
    """
    directory = unfinished(place.resolve() if place.is_symlink() else place)
    was_there = directory.exists()
    descriptor = None
    if was_there or os.access(directory.parent, os.W_OK):  # else no run can begin there either
        descriptor = lock(directory, PATIENCE)
        if descriptor is None:
            raise in_use(place, directory)
    try:
        yield
    finally:
        if descriptor is not None:
            if not was_there:
                with contextlib.suppress(OSError):
                    directory.rmdir()
            os.close(descriptor)


def in_use(place: Path, directory: Path) -> ConfigError:
    """Return the refusal of a directory that another process writes into."""
    why = f"another run is writing it ({directory})"
    return ConfigError(f"{place}: {why}", "wait until it has ended, or name another place with -o")


def link_latest(place: Path) -> None:
    """Point ``latest`` beside a default run directory at it.

    Where links are not possible, do nothing.
    """
    link = place.parent / "latest"
    with contextlib.suppress(OSError):
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(place.name)


@contextmanager
def filling(place: Path, earlier: Iterable[str] = ()) -> Iterator[Path]:
    """Yield an empty directory.

    At the end its files are moved into ``place``, after a failure they are removed.

    A link in ``place`` is replaced, also one that leads to a directory. Errors name files as if
    they lay in ``place``.
    """
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=place))
    try:
        yield new
        left = [path for pattern in earlier for path in _left(new, place, PurePath(pattern))]
        if (known := _listed(place)) is not None and not _files(new) <= known:
            _list_files(place, new)
        _move(new, place)
        for path in left:
            path.unlink()
            with contextlib.suppress(OSError):  # holds something else
                path.parent.rmdir()
    except Exception as error:
        was, named = str(new), str(place)
        error.args = tuple(
            each.replace(was, named) if isinstance(each, str) else each for each in error.args
        )
        if isinstance(error, OSError) and error.filename is not None:
            error.filename = os.fsdecode(error.filename).replace(was, named)
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _left(new: Path, place: Path, pattern: PurePath) -> list[Path]:
    folder = place / pattern.parent
    if folder.is_symlink():  # what it leads to is somebody's own
        return []
    found = (path for path in folder.glob(pattern.name) if path.is_symlink() or not path.is_dir())
    return [path for path in found if not (new / path.relative_to(place)).exists()]


def _move(new: Path, place: Path) -> None:
    """Move files, those of folders before the pages that load them."""
    for path in sorted(new.iterdir(), key=lambda each: (not each.is_dir(), each.name)):
        to = place / path.name
        if path.is_symlink() or not path.is_dir():
            path.replace(to)
            continue
        if to.is_symlink():
            to.unlink()
        to.mkdir(exist_ok=True)
        _move(path, to)


class GrowingFile:
    """A file that is written at its end; ``size`` bytes of it are whole."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self.path, self.size = path, size
        self._to = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        self.trim()

    def append(self, part: Path) -> int:
        """Move the content of a file to the end and return its size."""
        size = self.copy(part)
        part.unlink()
        return size

    def copy(self, part: Path) -> int:
        """Add the content of a file and return its size."""
        with part.open("rb", buffering=0) as file:
            return self.write(iter(partial(file.read, 1 << 20), b""))

    def write(self, pieces: Iterable[bytes]) -> int:
        """Add bytes, whole or not at all, and return how many."""
        size = 0
        try:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:  # a file without a buffer may take a part at a time
                    rest = rest[os.write(self._to, rest) :]
                size += len(piece)
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise
        self.size += size
        return size

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


class Staging:
    """A run directory in the making, in a hidden directory beside its place that no other run may
    use meanwhile.

    ``path`` becomes the run directory; beside it there are the pieces not yet joined, the journal a
    later ``--resume`` reads, and while an earlier run is replaced, that run.

    ``parts`` is for pieces, a new one for every attempt: workers of an attempt that was killed may
    still write.
    """

    def __init__(self, place: Path, *, resume: bool = False) -> None:
        self.replaced = self.committed = False
        self._lock: int | None = None
        with writing(place):
            check_place(place)
            self.place = (
                place.resolve() if place.is_symlink() else place
            )  # what a link leads to is replaced, not it
            self.place.absolute().parent.mkdir(parents=True, exist_ok=True)
            self.base = unfinished(self.place)
            self.path = self.base / "run"
            try:
                self._enter(resume=resume)
            except BaseException:
                self.leave()
                raise
            self.parts = Path(tempfile.mkdtemp(prefix=_PARTS, dir=self.base))

    def _enter(self, *, resume: bool) -> None:  # noqa: C901
        if self.base.is_symlink():
            raise ConfigError(
                f"{self.base}: is a link, and an unfinished run is a directory of its own; move "
                "it away"
            )
        self.base.mkdir(exist_ok=True)
        self._lock = lock(self.base)
        if self._lock is None:
            raise in_use(self.place, self.base)
        old = self.base / _OLD
        if old.is_dir() and not self.place.exists():  # killed while it was being replaced
            old.rename(self.place)
        kept = (JOURNAL, _PARTS, "run") if resume and (self.base / JOURNAL).is_file() else ()
        if kept:
            self._check_own()
        for path in self.base.iterdir():
            if not path.name.startswith((JOURNAL, _PARTS, "run", _OLD)):
                raise ConfigError(
                    f"{self.base}: holds {path.name}, which is not ours; move the directory away"
                )
        for path in list(self.base.iterdir()):
            if not kept or not path.name.startswith(kept):
                self.replaced |= path.name == JOURNAL
                _remove(path)
        self.path.mkdir(exist_ok=True)
        for path in list(self.path.iterdir()):
            if path.name not in (ROWS, PACKED_ROWS):
                _remove(path)

    def _check_own(self) -> None:
        """Refuse to continue in files that lie elsewhere, too.

        What is written here would be written there.
        """
        for path in self.base.rglob("*"):
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) and not (
                stat.S_ISREG(found.st_mode) and found.st_nlink < 2
            ):
                why = "is a link or no plain file, which no unfinished run of ours has"
                raise ConfigError(f"{path}: {why}", "run without --resume to start anew")

    @property
    def journal(self) -> Path:
        """Where finished ranges are recorded."""
        return self.base / JOURNAL

    def write_json(self, name: str, value: Any) -> Any:
        """Write one of our JSON files: sorted keys, indent 2, one newline at the end.

        Return it as a reader sees it.
        """
        text, new = dumps(value, indent=2) + "\n", self.base / "run.json"
        new.write_text(text, encoding="utf-8", newline="\n")
        new.replace(self.path / name)
        return loads(text)

    def commit(self, *, durable: bool = False) -> Path:
        """Move the directory into its place, replacing an earlier run whole, and return
        the place.
        """
        place, old = self.place, self.base / _OLD
        for run in [each.parent for each in self.path.rglob(HEADER) if is_run(each.parent)]:
            _list_files(run, run)
        if durable:
            for path in [*self.path.rglob("*"), self.path]:
                synchronise(path)
        if place.exists():
            place.rename(old)
        self.path.rename(place)
        if durable:
            synchronise(place.absolute().parent)
        shutil.rmtree(old, ignore_errors=True)
        self.path, self.committed = place, True
        return place

    def discard(self) -> None:
        """Remove everything that is not in its place, and let other runs have it."""
        shutil.rmtree(self.base, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Let other runs have the hidden directory, as it is."""
        with contextlib.suppress(
            OSError, AttributeError
        ):  # an attempt that was refused leaves nothing behind
            self.parts.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
